r"""Copying takes two layers and width $2n + 7$, associative recall two layers and width 12, at any vocabulary size.

Statement: (a) For every $n$, a transformer with two layers ($n$ heads, then one) and width $2n + 7$ copies every text
in which no run of $n$ symbols occurs twice. A uniformly random text of length $L$ over $D$ symbols repeats one with
probability at most $L^2 D^{-n}$. (b) A transformer with two layers of one head each and width 12 recalls the value of
any key, for any number of keys and pairs; one layer and width 7 suffice where a pair is one symbol.
Why: In a text without repeats the last $n$ symbols determine the position to copy from; a key determines the position
of its value. Points on a circle are distinct for any number of symbols.
Checked: (a) All texts of 2 symbols without a repeated run of 3 to length 6; 100 random texts with $L = 100$, $D = 26$,
$n = 4$. Of 20,000 random texts the share with a repeat is at most $L^2 D^{-n}$; of 100 without a repeat none is copied
wrongly. (b) All prefixes, to length 7 (4 where a pair is one symbol), of words of 3 pairs; 200 random words of 64 pairs
of 256 keys and 256 values. Sizes are compared. The three kinds of attention are used, not all for each task.
Not checked: All texts and words at the large sizes, larger vocabularies, and the comparison with recurrent models (see
`state_bits_bound_recall_and_copying`). The source's network spends $O(\log D)$ dimensions on a symbol; ours has two,
and needs more precision.
Source: Jelassi et al. 2024, arXiv 2402.01032 [S]; Arora et al. 2023, arXiv 2312.04927 [S]; the weights are our own
derivation.
Saboteur: Runs are compared without their oldest symbol; keys without one of their two dimensions.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vitrify.certification.oracles.tasks import TaskOracle
from vitrify.claims._figures import attention_of, points, show
from vitrify.claims._nets import Claim, Domain, Evidence, Method, Quantity, Subject, Subjects, built, check_net, zeroed
from vitrify.net.inference import batch_logits
from vitrify.net.transformer import AttentionKind
from vitrify.spec.tasks.copying import Copying
from vitrify.spec.tasks.recall import Recall

TASKS: tuple[tuple[Copying | Recall, AttentionKind, int], ...] = (  # with the number of random words
    (Copying(symbols=2, size=6, gram=3), "softmax", 64),
    (Copying(symbols=2, size=6, gram=3), "sparsemax", 64),
    (Copying(symbols=26, size=100, gram=4), "softmax", 100),
    (Copying(symbols=26, size=100, gram=4), "hard", 50),
    (Recall(keys=4, values=3, pairs=3, queries=3, fused=False), "softmax", 64),
    (Recall(keys=4, values=3, pairs=3, queries=3, fused=True), "sparsemax", 64),
    (Recall(keys=256, values=256, pairs=64, queries=64, fused=False), "softmax", 200),
    (Recall(keys=256, values=256, pairs=64, queries=64, fused=True), "hard", 200),
)
TEXTS = 20_000  # random ones, of which the repeats are counted
COPIED = 100  # and that are copied, at most, of either kind
RATE = "share of random texts with a repeated run"
WRONG = "wrong copies of random texts without one"


def subjects() -> Subjects:
    for task, attention, samples in TASKS:
        yield built(f"{task}, {attention}", task, data={"samples": samples}, attention=attention)


def check(subject: Subject) -> Evidence:
    task = subject.spec
    evidence = check_net(subject, work=1e8)
    if isinstance(task, Copying) and subject.data["samples"] == COPIED and evidence.verdict == "holds":
        return _random_texts(subject, evidence)
    return evidence


def _random_texts(subject: Subject, evidence: Evidence) -> Evidence:
    """The share of random texts that repeat a run, against the bound; and copies of some of either kind."""
    task: Copying = subject.spec
    rng = np.random.default_rng(0)
    texts = rng.integers(task.symbols, size=(TEXTS, task.size))
    runs = sliding_window_view(texts, task.gram, axis=1) @ task.symbols ** np.arange(task.gram)
    repeats = (np.diff(np.sort(runs, axis=1), axis=1) == 0).any(axis=1)
    rate, bound = float(repeats.mean()), task.size**2 * float(task.symbols) ** -task.gram
    wrong = {kind: _wrong(subject, texts[repeats == kind][:COPIED]) for kind in (False, True)}
    drawn = Domain("random texts", Method.SAMPLED, TEXTS)
    return replace(evidence, cases=evidence.cases + TEXTS, domains=(*evidence.domains, drawn)).adding(
        Quantity(RATE, rate, bound, "<="),
        Quantity(WRONG, wrong[False], 0, "="),
        Quantity("and of such with one", wrong[True]),
    )


def _wrong(subject: Subject, texts: NDArray[np.int64]) -> int:
    """Return the number of texts that are copied with an error."""
    net, task = subject.weights.architecture, subject.spec
    written = [task.word([task.letters[i] for i in text]) for text in texts.tolist()]
    words = np.array([[net.input_ids[symbol] for symbol in word] for word in written])
    errors = TaskOracle(task, net).errors(words, batch_logits(subject.weights, np.pad(words, ((0, 0), (1, 0)))))
    return int((errors > 0).any(axis=1).sum())


def sabotage(subject: Subject) -> Subject:
    if isinstance(subject.spec, Copying):
        return zeroed(subject, "blocks.0.attn.W_O", subject.spec.gram - 1)
    key = subject.weights.labels.space("key" if subject.spec.fused else "key before")
    return zeroed(subject, f"blocks.{0 if subject.spec.fused else 1}.attn.W_K", (0, key.dims[1]))


FIGURE = show(
    *attention_of(subjects, (0, 0), (1, 0)),
    points(
        lambda name, _: float(re.findall(r"(?:symbols|keys)=(\d+)", name)[0]),
        ("d_model", "heads"),
        "symbols, or keys",
        "size of the net",
        "2x",
    ),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R23", standing="theorem", certified="sampled", budget_seconds=60, figure=FIGURE
)
