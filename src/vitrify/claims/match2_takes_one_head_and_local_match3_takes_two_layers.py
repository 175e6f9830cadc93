r"""Match2 takes one head on three dimensions; Match3 two layers for neighbours, $2K$ heads within $K$ positions.

Statement: For every modulus $M$ and length $N$: (a) a transformer with one layer, one head and three embedding
dimensions decides at every position $i$ whether some $x_j$ (perhaps $j = i$) has $x_i + x_j \equiv 0 \pmod M$; (b) one
with two layers, whether some neighbours have $x_i + x_j + x_{j+1} \equiv 0 \pmod M$; (c) one with one layer, $2K$
heads, $2K + 4$ dimensions and $O(K^2)$ units, whether two numbers within $K$ positions of $i$ add up to $-x_i$ modulo
$M$.
Why: With numbers as angles, the product of a query and a mirrored key is the cosine of their sum: 1 for a match, at
most $\cos(2\pi/M)$ otherwise. The sum of two neighbours is a number again; a few near numbers can all be fetched.
Checked: All words of small numbers ($M$ = 4 or 5) to length 5 or more; 20 random words each, many of which match or
fail by 1, of 256 numbers modulo 11 to 100003 for (a) and of 128 modulo 1009 for (b) and (c); sizes. Softmax, sparsemax
and hard attention are used, not all for each task. (a) is also run in float32, at seven moduli from 11 to 100003: it is
right wherever the builder accepts float32, and the builder refuses float32 wherever an answer is wrong.
Not checked: All words at the large sizes. In the source (c) takes one head of larger width; here one head per
neighbour. That one layer fails on general Match3: another claim.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896 [S]; the weights are our own derivation.
Saboteur: Keys lose one of their two dimensions; the furthest neighbour is not read; float32 is judged by the margins of
float64.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.certification.evidence import CaseKind, Domain, Evidence, Method, Verdict, quantities
from vitrify.certification.oracles.tasks import TaskOracle
from vitrify.claims._figures import named, points, show
from vitrify.claims._nets import Claim, Subject, Subjects, Weights, built, check_net, refused, zeroed
from vitrify.constructions.catalogue import build
from vitrify.net.inference import encode
from vitrify.net.transformer import AttentionKind
from vitrify.spec.computation.matching import Matching
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


def subjects() -> Subjects:
    for task, attention in TASKS:
        yield built(f"{task}, {attention}", task, attention=attention)
    yield Subject("Match2 in float32", data={"arithmetic": "float32"})


def check(subject: Subject) -> Evidence:
    if subject.weights is None:
        return _single(subject)
    return check_net(subject, samples=SAMPLES, work=1e8)


def _single(subject: Subject) -> Evidence:
    """Wrong answers in float32 for every modulus, and which the margins refuse."""
    wrong = {modulus: _wrong(build(Match2(modulus, 64)), Match2(modulus, 64)) for modulus in SINGLE}
    arithmetic = subject.data["arithmetic"]
    allowed = [m for m in SINGLE if not refused(partial(build, Match2(m, 64), arithmetic=arithmetic))]
    errors = sum(wrong[modulus] for modulus in allowed)
    missed = [modulus for modulus in allowed if wrong[modulus]]
    drawn = Domain(CaseKind.RANDOM_WORDS, Method.SAMPLED, SAMPLES * len(SINGLE), 64, 64, settings={"moduli": SINGLE})
    verdict: Verdict = "holds" if any(wrong.values()) and allowed else "fails"
    evidence = Evidence(verdict, SAMPLES * 64 * len(SINGLE), (drawn,), seed=0)
    measured = {WRONG: errors, TOO_FAR: missed, "largest allowed": max(allowed), "wrong answers by modulus": wrong}
    return evidence.adding(*quantities({WRONG: 0, TOO_FAR: []}, measured))


def _wrong(weights: Weights, task: Match2) -> int:
    """Return the number of wrong answers on random words when the net runs in float32."""
    net, rng = weights.architecture, np.random.default_rng(0)
    single = weights.map(lambda array: array.astype(np.float32))
    words = np.array([encode(net, task.draw(rng, task.length)) for _ in range(SAMPLES)])
    logits = np.asarray(net.forward(single.arrays, np.pad(words, ((0, 0), (1, 0)))), dtype=np.float64)
    return int((TaskOracle(task, net).errors(words, logits) > 0).sum())


def sabotage(subject: Subject) -> Subject:
    if subject.weights is None:
        return replace(subject, data={"arithmetic": "float64"})
    if isinstance(subject.spec, Match3Local):
        return zeroed(subject, "blocks.0.attn.W_O", 2 * subject.spec.reach - 1)
    block, key = (1, "sum of both") if isinstance(subject.spec, Match3Bigram) else (0, "angle")
    return zeroed(subject, f"blocks.{block}.attn.W_K", (0, subject.weights.labels.space(key).dims[1]))


FIGURE = show(
    points("modulus={}", "d_model", "modulus", "width", "x", by=named(r"^(\w+)\(")),
    points("modulus={}", "units", "modulus", "units", "x", by=named(r"^(\w+)\(")),
)
CLAIM = Claim(subjects, check, sabotage, id="R18", standing="theorem", certified="sampled", figure=FIGURE)
