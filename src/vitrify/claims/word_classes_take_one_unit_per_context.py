r"""A word-class language takes an embedding of its classes and one hidden unit for each class-level context.

Statement: a network that embeds a word as the set of its classes and has one hidden unit for each of the contexts $P_n$
(the last $n-1$ classes before some place of a pattern) gives the exact set of next words after every beginning of a
sentence iff $n \ge n^*$; below, it only ever allows too much; none of its sizes depends on how many words a class has.
Why: every context that matches a window is realised by a sentence with these words, so the answer is the union of the
true ones over all beginnings with that window, and these are equal from $n^*$ on; words in the same classes are the
same vector.
Checked: every beginning of every sentence for small languages, at every window from 2 to $n^* + 1$ and under every kind
of attention; sampled sentences that have every word at every place for classes of 1,000 words, whose sizes must be
those of classes of 2 words; logits stay bit-identical when words are swapped for others in the same classes.
Source: Nandakumar, Mi & Liu 2023, arXiv 2306.17184v1 [A]; the weights here are our own derivation.
Saboteur: one context is forgotten, so legal words are lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import ATTENTIONS, with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.word_classes import sizes, word_classes
from vitrify.kit import assemble
from vitrify.net.run import encode, logits
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.patterns import WordPatterns
from vitrify.spec.word_languages import random_patterns, waking_up

MOST = 20_000  # languages with more sentences are sampled
DRAWN = 200


def subjects() -> Iterator[Subject]:
    """A language at every window around $n^*$, random ones with overlapping classes, and classes of 1,000 words."""
    small = waking_up(2)
    for n in range(2, small.window() + 2):
        attention = ATTENTIONS[n % 3]
        weights = assemble(word_classes(small, window=n, attention=attention))
        yield Subject(f"waking up, window {n}, {attention}", small, weights, {"window": n})
    for seed in range(6):
        spec = random_patterns(seed)
        n = max(2, spec.window() - seed % 2)
        weights = assemble(word_classes(spec, window=n, attention=ATTENTIONS[seed % 3]))
        yield Subject(f"random patterns {seed}, window {n}, {ATTENTIONS[seed % 3]}", spec, weights, {"window": n})
    large = waking_up(1_000)
    like = _shape(assemble(word_classes(small)))
    data = {"window": large.window(), "like": like}
    yield Subject("waking up, classes of 1,000 words", large, assemble(word_classes(large)), data)


def check(subject: Subject) -> Evidence:
    """Missing and superfluous words, sizes, and what a swap of words does."""
    start = time.perf_counter()
    spec, weights, n = subject.spec, subject.weights, subject.data["window"]
    sentences, method = _sentences(spec)
    answers = list(logits(weights, [encode(weights.architecture, sentence) for sentence in sentences]))
    cases, lost, witness, too_many = _compare(spec, weights, sentences, answers)
    promised = sizes(spec, n)
    declared = {
        "beginnings that lose a word": 0,
        "exact": n >= spec.window(),
        "logits that a swap of words moves": 0,
        "distinct embeddings": len(set(spec.classes_of.values())) + 1,
        **{name: promised[name] for name in ("heads", "units", "embedding")},
        **{f"{name}, as with classes of 2 words": size for name, size in subject.data.get("like", {}).items()},
    }
    shape = _shape(weights)
    measured = {
        "beginnings that lose a word": lost,
        "exact": lost + too_many == 0,
        "beginnings that get a word too many": too_many,
        "logits that a swap of words moves": _moved_by_swaps(spec, weights, sentences, answers),
        "distinct embeddings": len(np.unique(weights.arrays["embed.W_E"], axis=0)),
        "heads": shape["heads"],
        "units": shape["units"],
        "embedding": int(np.count_nonzero(weights.arrays["embed.W_E"][:, _embedded(weights)].any(axis=0))),
        **{f"{name}, as with classes of 2 words": shape[name] for name in subject.data.get("like", {})},
    }
    evidence = Evidence(
        verdict="fails" if lost else "holds",
        method=method,
        domain=f"every beginning of {len(sentences)} sentences",
        cases=cases,
        witness=witness if lost else None,
        seed=0,
        seconds=time.perf_counter() - start,
    )
    return with_sizes(evidence, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The context of the first word is forgotten."""
    return zeroed(subject, "blocks.0.mlp.W_out", 0)


def _sentences(spec: WordPatterns) -> tuple[list[tuple[str, ...]], str]:
    products = sum(np.prod([float(len(spec.members[part])) for part in pattern]) for pattern in spec.patterns)
    if products <= MOST:
        return list(spec.sentences()), "exhaustive"
    rng = np.random.default_rng(0)
    return [*spec.examples(), *(spec.draw(rng) for _ in range(DRAWN))], "sampled"


def _compare(
    spec: WordPatterns, weights: Weights, sentences: list[tuple[str, ...]], answers: list[Any]
) -> tuple[int, int, dict[str, Any], int]:
    """How many beginnings there are, how many lose a word (with one of them), and how many get a word too many."""
    place = {symbol: number for number, symbol in enumerate(weights.architecture.output.symbols)}
    seen: set[tuple[str, ...]] = set()
    witness: dict[str, Any] = {}
    lost, too_many = 0, 0
    for sentence, rows in zip(sentences, answers, strict=True):
        for length, row in enumerate(rows):
            beginning = sentence[:length]
            if beginning in seen:
                continue
            seen.add(beginning)
            legal = np.zeros(len(place), dtype=bool)
            legal[[place[word] for word in spec.next_words(beginning)]] = True
            missing = np.flatnonzero(legal & ~(row > 0))
            if len(missing):
                lost += 1
                witness = witness or {"history": list(beginning), "missing": [*place][missing[0]]}
            too_many += bool(((row > 0) & ~legal).any())
    return len(seen), lost, witness, too_many


def _moved_by_swaps(spec: WordPatterns, weights: Weights, sentences: list[tuple[str, ...]], answers: list[Any]) -> int:
    """Logits that change when every word becomes the next one in the same classes."""
    by_type: dict[frozenset[str], list[str]] = {}
    for word, kind in spec.classes_of.items():
        by_type.setdefault(kind, []).append(word)
    other = {word: same[(at + 1) % len(same)] for same in by_type.values() for at, word in enumerate(same)}
    swapped = [encode(weights.architecture, [other[word] for word in sentence]) for sentence in sentences]
    return sum(int((a != b).sum()) for a, b in zip(answers, logits(weights, swapped), strict=True))


def _embedded(weights: Weights) -> list[int]:
    return list(weights.labels.space("classes").dims)


def _shape(weights: Weights) -> dict[str, int]:
    size = Ledger.of(weights)
    return {"heads": size.heads, "units": size.units, "width": size.d_model}


CLAIM = Claim(row="R4", status="proved", subjects=subjects, check=check, sabotage=sabotage)
