r"""Copying takes two layers and $2n + 7$ dimensions, recall two layers and 12, whatever is copied or recalled.

Statement: a transformer of two layers with $n$ heads and then one, and a width of $2n + 7$, copies every text in which
no run of $n$ symbols comes twice; a random text of $L$ of $D$ symbols repeats one with a probability of at most $L^2
D^{-n}$, so that $n = \log_D(L^2/\delta)$ will do for all but a share $\delta$. Recall of the values of any number of
keys takes two layers with one head each and 12 dimensions, and one layer and 7 dimensions where a pair is one symbol.
Why: in a text without repeats, the last $n$ symbols say where the copy is; a key says where its value is. Points on a
circle tell any number of symbols apart.
Checked: all texts of 2 symbols without a repeated run of 3, to length 6, and all short words of pairs and questions;
100 random texts of 100 of 26 symbols with $n = 4$, and 200 random words of 64 pairs of 256 keys and 256 values; sizes.
20,000 random texts: how many repeat a run; of 100 that do not, none is copied wrongly, of 100 that do, most are.
Source: Jelassi et al. 2024, arXiv 2402.01032 [S]; Arora et al. 2023, arXiv 2312.04927 [S]; the weights here are our own
derivation.
Saboteur: runs are compared without their oldest symbol; keys without one of their two dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vitrify.certify.evidence import Evidence
from vitrify.certify.task_oracle import TaskOracle
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions import copying, recall
from vitrify.kit import assemble
from vitrify.net.run import batch_logits
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Ledger
from vitrify.spec.tasks.copying import Copying
from vitrify.spec.tasks.recall import Recall

TASKS: tuple[tuple[Copying | Recall, AttentionKind, int], ...] = (  # with the number of random words
    (Copying(symbols=2, size=6, gram=3), "softmax", 64),
    (Copying(symbols=2, size=6, gram=3), "sparsemax", 64),
    (Copying(symbols=26, size=100, gram=4), "softmax", 100),
    (Copying(symbols=26, size=100, gram=4), "hard", 50),
    (Recall(keys=4, values=3, pairs=3, questions=3, fused=False), "softmax", 64),
    (Recall(keys=4, values=3, pairs=3, questions=3, fused=True), "sparsemax", 64),
    (Recall(keys=256, values=256, pairs=64, questions=64, fused=False), "softmax", 200),
    (Recall(keys=256, values=256, pairs=64, questions=64, fused=True), "hard", 200),
)
TEXTS = 20_000  # random ones, of which the repeats are counted
COPIED = 100  # and that are copied, at most, of either kind
RATE = "share of random texts with a repeated run"
WRONG = "wrong copies of random texts without one"


def subjects() -> Iterator[Subject]:
    """Small tasks, and those of the usual size."""
    for task, attention, samples in TASKS:
        network = copying.copying if isinstance(task, Copying) else recall.recall
        net = assemble(network(task, attention=attention))  # type: ignore[arg-type]
        yield Subject(f"{task}, {attention}", task, net, {"samples": samples})


def check(subject: Subject) -> Evidence:
    """Answers and sizes, and for long texts what becomes of random ones."""
    task, net, size = subject.spec, subject.weights.architecture, Ledger.of(subject.weights)
    promised = copying.sizes(task) if isinstance(task, Copying) else recall.sizes(task)
    evidence = WordExamination(net, task, samples=subject.data["samples"], work=1e8).run(subject.weights)
    evidence = with_sizes(evidence, promised, {name: getattr(size, name) for name in promised})
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
    found = replace(
        evidence,
        cases=evidence.cases + TEXTS,
        declared={**evidence.declared, RATE: f"at most {bound:.4f}", WRONG: 0},
        measured={**evidence.measured, RATE: rate, WRONG: wrong[False], "and of such with one": wrong[True]},
    )
    if rate <= bound and wrong[False] == 0:
        return found
    return replace(found, verdict="fails", witness={RATE: rate, WRONG: wrong[False]})


def _wrong(subject: Subject, texts: NDArray[np.int64]) -> int:
    """How many texts are not copied right to the end."""
    net, task = subject.weights.architecture, subject.spec
    written = [task.word([task.letters[i] for i in text]) for text in texts.tolist()]
    words = np.array([[net.input_ids[symbol] for symbol in word] for word in written])
    tokens = np.concatenate([np.zeros((len(words), 1), dtype=np.int64), words], axis=1)
    errors = TaskOracle(task, net).errors(words, batch_logits(subject.weights, tokens))
    return int((errors > 0).any(axis=1).sum())


def sabotage(subject: Subject) -> Subject:
    """The head that looks furthest back brings nothing; the second dimension of keys is not looked at."""
    if isinstance(subject.spec, Copying):
        return zeroed(subject, "blocks.0.attn.W_O", subject.spec.gram - 1)
    told = subject.weights.labels.space("key" if subject.spec.fused else "key before")
    return zeroed(subject, f"blocks.{0 if subject.spec.fused else 1}.attn.W_K", (0, told.dims[1]))


CLAIM = Claim(row="R23", status="proved", certified="sampled", subjects=subjects, check=check, sabotage=sabotage)
