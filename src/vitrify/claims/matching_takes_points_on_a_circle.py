r"""Pairs that add up to 0 are found by one head from three dimensions, triples with neighbours by two layers.

Statement: a transformer of one layer with one head and three embedded dimensions says at every number of a word whether
another one, perhaps itself, completes it to a multiple of $M$; one of two layers, whether two neighbours do; one of one
layer with $2K$ heads, $2K + 4$ dimensions and $O(K^2)$ units, whether two numbers within $K$ places do.
Why: with numbers as angles, the product of a query and a mirrored key is the cosine of their sum, 1 for a match and at
most $\cos(2\pi/M)$ else; the sum of two neighbours is a number again; a few near numbers can all be brought together.
Checked: all words of small numbers to length 5 or more; random words of 256 numbers modulo 11 to 100003, of 128 modulo
1009 for triples, with many that match or fail by 1; sizes. In float32: what the margins let pass is right, and where
answers go wrong it is refused.
Source: Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896 [S]; the weights here are our own derivation. The paper's
nearby triples take one head; here they take one per neighbour.
Saboteur: keys without one of their two dimensions; the furthest neighbour is not read; float32 is judged by the margins
of float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.task_oracle import TaskOracle
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.catalogue import Settings, build
from vitrify.constructions.matching import sizes
from vitrify.errors import BuildRefused
from vitrify.net.run import encode
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.tasks._matching import Matching
from vitrify.spec.tasks.match2 import Match2
from vitrify.spec.tasks.match3_bigram import Match3Bigram
from vitrify.spec.tasks.match3_local import Match3Local

TASKS: tuple[tuple[Matching, AttentionKind], ...] = (
    (Match2(5, 6), "softmax"),
    (Match2(11, 256), "softmax"),
    (Match2(1009, 256), "sparsemax"),
    (Match2(100003, 256), "softmax"),
    (Match2(100003, 256), "hard"),
    (Match3Bigram(4, 6), "softmax"),
    (Match3Bigram(4, 6), "hard"),
    (Match3Bigram(1009, 128), "softmax"),
    (Match3Local(4, 6, reach=2), "softmax"),
    (Match3Local(4, 6, reach=2), "sparsemax"),
    (Match3Local(1009, 128, reach=4), "softmax"),
)
SAMPLES = 20
SINGLE = (11, 101, 1009, 2003, 5003, 10007, 100003)  # moduli that are tried in float32
WRONG, TOO_FAR = "wrong answers where float32 is allowed", "moduli with wrong answers that are not refused"


def subjects() -> Iterator[Subject]:
    """Small tasks, the largest ones, and float32."""
    for task, attention in TASKS:
        yield Subject(f"{task}, {attention}", task, build(task, None, Settings(attention)))
    yield Subject("Match2 in float32", data={"arithmetic": "float32"})


def check(subject: Subject) -> Evidence:
    """Answers and sizes; or answers in float32 beside what the margins say."""
    if subject.weights is None:
        return _single(subject)
    size, promised = Ledger.of(subject.weights), sizes(subject.spec)
    examination = WordExamination(subject.weights.architecture, subject.spec, samples=SAMPLES, work=1e8)
    evidence = examination.run(subject.weights)
    return with_sizes(evidence, promised, {name: getattr(size, name) for name in promised})


def _single(subject: Subject) -> Evidence:
    """Wrong answers in float32 for every modulus, and which the margins refuse."""
    wrong = {modulus: _wrong(build(Match2(modulus, 64)), Match2(modulus, 64)) for modulus in SINGLE}
    allowed = [modulus for modulus in SINGLE if _allowed(modulus, subject.data["arithmetic"])]
    errors = sum(wrong[modulus] for modulus in allowed)
    missed = [modulus for modulus in allowed if wrong[modulus]]
    return Evidence(
        verdict="holds" if not missed and any(wrong.values()) and allowed else "fails",
        method="sampled",
        domain=f"{SAMPLES} words of 64 numbers for each of {len(SINGLE)} moduli",
        cases=SAMPLES * 64 * len(SINGLE),
        witness=None if not missed else {TOO_FAR: missed},
        declared={WRONG: 0, TOO_FAR: []},
        measured={WRONG: errors, TOO_FAR: missed, "largest allowed": max(allowed), "wrong answers by modulus": wrong},
        seed=0,
        seconds=0.0,
    )


def _allowed(modulus: int, arithmetic: str) -> bool:
    try:
        build(Match2(modulus, 64), arithmetic=arithmetic)  # type: ignore[arg-type]
    except BuildRefused:
        return False
    return True


def _wrong(weights: Weights, task: Match2) -> int:
    """How many answers to drawn words are wrong when the net runs in float32."""
    net, rng = weights.architecture, np.random.default_rng(0)
    single = weights.map(lambda array: array.astype(np.float32))
    words = np.array([encode(net, task.draw(rng, task.length)) for _ in range(SAMPLES)])
    tokens = np.concatenate([np.zeros((SAMPLES, 1), dtype=np.int64), words], axis=1)
    found = np.asarray(net.forward(single.arrays, tokens), dtype=np.float64)
    return int((TaskOracle(task, net).errors(words, found) > 0).sum())


def sabotage(subject: Subject) -> Subject:
    """The second dimension of keys is not looked at; the furthest neighbour is not read; float64's margins are used."""
    if subject.weights is None:
        return replace(subject, data={"arithmetic": "float64"})
    if isinstance(subject.spec, Match3Local):
        return zeroed(subject, "blocks.0.attn.W_O", 2 * subject.spec.reach - 1)
    block, key = (1, "sum of both") if isinstance(subject.spec, Match3Bigram) else (0, "angle")
    return zeroed(subject, f"blocks.{block}.attn.W_K", (0, subject.weights.labels.space(key).dims[1]))


CLAIM = Claim(row="R18", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
