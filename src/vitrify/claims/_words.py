"""Checks that the claims about word-class languages share: next words, roles of the layers, sizes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import with_sizes
from vitrify.claims.catalogue import Subject
from vitrify.net.run import encode, logits
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.patterns import WordPatterns
from vitrify.spec.word_languages import random_patterns, waking_up

MOST = 20_000  # languages with more sentences are sampled
DRAWN = 200
LIKE = ", as with classes of 2 words"

Build = Callable[[WordPatterns, int, int], Weights[Any]]  # spec, window, and a number that may vary the rest


def word_subjects(build: Build) -> Iterator[Subject]:
    """A language at every window around $n^*$, random ones with overlapping classes, and classes of 1,000 words."""
    small = waking_up(2)
    for n in range(2, small.window() + 2):
        yield _subject("waking up", small, n, build(small, n, n))
    for seed in range(6):
        spec = random_patterns(seed)
        n = max(2, spec.window() - seed % 2)
        yield _subject(f"random patterns {seed}", spec, n, build(spec, n, seed))
    large, n = waking_up(1_000), small.window()
    like = {name: sizes_of(build(small, n, 0))[name] for name in ("heads", "units", "width", "rank of the embedding")}
    yield _subject("classes of 1,000 words", large, n, build(large, n, 0), like=like)


def _subject(name: str, spec: WordPatterns, n: int, weights: Weights[Any], **data: Any) -> Subject:
    exact = n >= spec.window()  # else the net allows too much
    return Subject(f"{name}: {weights.architecture.name}", spec, weights, {"window": n, **data}, exact)


def sizes_of(weights: Weights[Any]) -> dict[str, int]:
    """Sizes of a net, and what its embedding can tell apart, all measured on the arrays."""
    size, embedding = Ledger.of(weights), _embedding(weights)
    return {
        "heads": size.heads,
        "units": size.units,
        "width": size.d_model,
        "embedding": int(np.count_nonzero(embedding.any(axis=0))),
        "distinct embeddings": len(np.unique(weights.arrays["embed.W_E"], axis=0)),
        "rank of the embedding": int(np.linalg.matrix_rank(embedding)),
    }


def check_words(
    subject: Subject, beginning: int, declared: Mapping[str, Any], measured: Mapping[str, Any] | None = None
) -> Evidence:
    """Missing and superfluous words, what a swap of words does, and the declared sizes beside the measured ones.

    `beginning` is 1 where BOS has a dimension of its own, 0 where its vector is zero.
    """
    start = time.perf_counter()
    spec, weights, n = subject.spec, subject.weights, subject.data["window"]
    sentences, method = _sentences(spec)
    tally = _compare(spec, weights, sentences)
    like = subject.data.get("like", {})
    sizes = sizes_of(weights)
    promised = {
        "beginnings that lose a word": 0,
        "exact": n >= spec.window(),
        "logits that a swap of words moves": 0,
        "distinct embeddings": len(set(spec.classes_of.values())) + 1,
        "rank of the embedding": rank(spec) + beginning,
        **declared,
        **{f"{name}{LIKE}": size for name, size in like.items()},
    }
    found = {
        "beginnings that lose a word": tally.lost,
        "exact": tally.lost + tally.too_many == 0,
        "beginnings that get a word too many": tally.too_many,
        "logits that a swap of words moves": tally.swapped,
        **sizes,
        **(measured or {}),
        **{f"{name}{LIKE}": sizes[name] for name in like},
    }
    evidence = Evidence(
        verdict="fails" if tally.lost else "holds",
        method=method,
        domain=f"every beginning of {len(sentences)} sentences",
        cases=tally.beginnings,
        witness=tally.witness or None,
        seed=0,
        seconds=time.perf_counter() - start,
    )
    return with_sizes(evidence, promised, found)


def rank(spec: WordPatterns) -> int:
    """The rank of the membership matrix [word, class], by exact elimination over its distinct rows."""
    kinds = set(spec.classes_of.values())
    rows = [[Fraction(name in kind) for name in spec.members] for kind in kinds]
    found = 0
    for column in range(len(spec.members)):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is not None:
            found += 1
            rows = [[a - row[column] / pivot[column] * b for a, b in zip(row, pivot, strict=True)] for row in rows]
    return found


def _embedding(weights: Weights[Any]) -> Any:
    """The vectors of all tokens, in the dimensions that hold their classes."""
    return weights.arrays["embed.W_E"][:, list(weights.labels.space("classes").dims)]


def _sentences(spec: WordPatterns) -> tuple[list[tuple[str, ...]], str]:
    products = sum(np.prod([float(len(spec.members[part])) for part in pattern]) for pattern in spec.patterns)
    if products <= MOST:
        return list(spec.sentences()), "exhaustive"
    rng = np.random.default_rng(0)
    return [*spec.examples(), *(spec.draw(rng) for _ in range(DRAWN))], "sampled"


@dataclass
class Tally:
    """What was found on the beginnings of sentences."""

    beginnings: int = 0
    lost: int = 0  # how many lose a legal word
    too_many: int = 0  # how many get a word too many
    swapped: int = 0  # logits that change when every word becomes the next one in the same classes
    witness: dict[str, Any] = field(default_factory=dict)


def _compare(spec: WordPatterns, weights: Weights[Any], sentences: list[tuple[str, ...]]) -> Tally:
    """Every beginning of the sentences, once; one sentence after the other, because large classes make long answers."""
    net, tally = weights.architecture, Tally()
    place = {symbol: number for number, symbol in enumerate(net.output.symbols)}
    masks: dict[frozenset[str], Any] = {}
    seen: set[tuple[str, ...]] = set()
    other = _swaps(spec)
    sentences = sorted(sentences, key=len)  # the order in which answers come
    answers = logits(weights, [encode(net, sentence) for sentence in sentences])
    swapped = logits(weights, [encode(net, [other[word] for word in sentence]) for sentence in sentences])
    for sentence, rows, moved in zip(sentences, answers, swapped, strict=True):
        tally.swapped += int((rows != moved).sum())
        for length, row in enumerate(rows):
            beginning = sentence[:length]
            if beginning in seen:
                continue
            seen.add(beginning)
            legal = spec.next_words(beginning)
            if legal not in masks:
                masks[legal] = np.isin(np.arange(len(place)), [place[word] for word in legal])
            wrong = (row > 0) != masks[legal]
            missing = np.flatnonzero(wrong & masks[legal]).tolist()
            if missing:
                tally.lost += 1
                tally.witness = tally.witness or {"history": list(beginning), "missing": [*place][missing[0]]}
            tally.too_many += bool((wrong & ~masks[legal]).any())
    tally.beginnings = len(seen)
    return tally


def _swaps(spec: WordPatterns) -> dict[str, str]:
    """For every word the next one in the same classes."""
    by_type: dict[frozenset[str], list[str]] = {}
    for word, kind in spec.classes_of.items():
        by_type.setdefault(kind, []).append(word)
    return {word: same[(at + 1) % len(same)] for same in by_type.values() for at, word in enumerate(same)}
