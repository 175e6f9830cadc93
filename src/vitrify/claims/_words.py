"""Checks that the claims about word-class languages share: next words, roles of the layers, sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from vitrify.arrays import Bools
from vitrify.certification.evidence import Domain, Evidence, Method, quantities
from vitrify.claims._nets import witnessed
from vitrify.claims.catalogue import Subject, Subjects
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import encode, logits
from vitrify.net.weights import Weights
from vitrify.spec.languages.word_patterns import WordPatterns, random_patterns, waking_up

MAX_SENTENCES = 20_000  # languages with more sentences are sampled
DRAWN = 200
LOST, TOO_MANY = "prefixes that lose a next word", "prefixes that get a word too many"
SWAPPED = "logits that a swap of words moves"  # where every word becomes the next one in the same classes
LIKE = ", as with classes of 2 words"

Build = Callable[
    [WordPatterns, int, int], Weights[SequenceArchitecture]
]  # spec, window, and a number that may vary the rest


def word_subjects(build: Build) -> Subjects:
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


def _subject(name: str, spec: WordPatterns, n: int, weights: Weights[SequenceArchitecture], **data: object) -> Subject:
    exact = n >= spec.window()  # else the net allows too much
    return Subject(f"{name}: {weights.architecture.name}", spec, weights, {"window": n, **data}, exact)


def sizes_of(weights: Weights[SequenceArchitecture]) -> dict[str, int]:
    """Sizes of a net, and what its embedding can tell apart, all measured on the arrays."""
    size, rows = weights.sizes, weights.arrays["embed.W_E"]
    embedding = rows[:, list(weights.labels.space("classes").dims)]  # the dimensions that hold classes
    return {
        "heads": size.heads,
        "units": size.units,
        "width": size.d_model,
        "embedding": int(np.count_nonzero(embedding.any(axis=0))),
        "distinct embeddings": len(np.unique(rows, axis=0)),
        "rank of the embedding": int(np.linalg.matrix_rank(embedding)),
    }


def check_words(
    subject: Subject, bos_dimensions: int, declared: Mapping[str, object], measured: Mapping[str, object] | None = None
) -> Evidence:
    """Count missing and superfluous words, and logits that a swap of words moves; compare the declared sizes.

    `bos_dimensions` is 1 where BOS has a dimension of its own, 0 where its vector is zero.
    """
    spec, weights, n = subject.spec, subject.weights, subject.data["window"]
    sentences, method = _sentences(spec)
    counts, prefixes, witness = _compared(spec, weights, sentences)
    like, sizes = subject.data.get("like", {}), sizes_of(weights)
    promised = {
        LOST: 0,
        "exact": n >= spec.window(),
        SWAPPED: 0,
        "distinct embeddings": len(set(spec.classes_of.values())) + 1,
        "rank of the embedding": rank(spec) + bos_dimensions,
        **declared,
        **{f"{name}{LIKE}": size for name, size in like.items()},
    }
    measured = {
        **counts,
        "exact": counts[LOST] + counts[TOO_MANY] == 0,
        **sizes,
        **(measured or {}),
        **{f"{name}{LIKE}": sizes[name] for name in like},
    }
    domain = Domain("prefixes of sentences", method, prefixes, settings={"sentences": len(sentences)})
    return witnessed(witness, prefixes, domain, seed=0).adding(*quantities(promised, measured))


def rank(spec: WordPatterns) -> int:
    """Return the rank of the membership matrix [word, class], by exact elimination over its distinct rows."""
    kinds = set(spec.classes_of.values())
    rows = [[Fraction(name in kind) for name in spec.members] for kind in kinds]
    pivots = 0
    for column in range(len(spec.members)):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is not None:
            pivots += 1
            rows = [[a - row[column] / pivot[column] * b for a, b in zip(row, pivot, strict=True)] for row in rows]
    return pivots


def _sentences(spec: WordPatterns) -> tuple[list[tuple[str, ...]], Method]:
    products = sum(np.prod([float(len(spec.members[part])) for part in pattern]) for pattern in spec.patterns)
    if products <= MAX_SENTENCES:
        return list(spec.sentences()), Method.EXHAUSTIVE
    rng = np.random.default_rng(0)
    return [*spec.examples(), *(spec.draw(rng) for _ in range(DRAWN))], Method.SAMPLED


def _compared(
    spec: WordPatterns, weights: Weights[SequenceArchitecture], sentences: list[tuple[str, ...]]
) -> tuple[dict[str, int], int, dict[str, object] | None]:
    """Compare the next words after every prefix once; sentence by sentence, as large classes make long answers.

    Return the counts of what is wrong, the number of prefixes, and the first that loses a next word.
    """
    net, counts = weights.architecture, dict.fromkeys((LOST, TOO_MANY, SWAPPED), 0)
    witness: dict[str, object] | None = None
    column = {symbol: number for number, symbol in enumerate(net.output.symbols)}
    masks: dict[frozenset[str], Bools] = {}
    seen: set[tuple[str, ...]] = set()
    other = _swaps(spec)
    sentences = sorted(sentences, key=len)  # the order in which answers come
    answers = logits(weights, [encode(net, sentence) for sentence in sentences])
    swapped = logits(weights, [encode(net, [other[word] for word in sentence]) for sentence in sentences])
    for sentence, rows, moved in zip(sentences, answers, swapped, strict=True):
        counts[SWAPPED] += int((rows != moved).sum())
        for length, row in enumerate(rows):
            prefix = sentence[:length]
            if prefix in seen:
                continue
            seen.add(prefix)
            legal = spec.next_words(prefix)
            if legal not in masks:
                masks[legal] = np.isin(np.arange(len(column)), [column[word] for word in legal])
            wrong = (row > 0) != masks[legal]
            missing = np.flatnonzero(wrong & masks[legal]).tolist()
            if missing:
                counts[LOST] += 1
                witness = witness or {"history": list(prefix), "missing": [*column][missing[0]]}
            counts[TOO_MANY] += bool((wrong & ~masks[legal]).any())
    return counts, len(seen), witness


def _swaps(spec: WordPatterns) -> dict[str, str]:
    """Return for every word the next one in the same classes."""
    by_type: dict[frozenset[str], list[str]] = {}
    for word, kind in spec.classes_of.items():
        by_type.setdefault(kind, []).append(word)
    return {word: same[(at + 1) % len(same)] for same in by_type.values() for at, word in enumerate(same)}
