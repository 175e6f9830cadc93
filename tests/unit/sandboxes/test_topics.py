"""Topic models: the optimum by all documents and all ways to mask them, for sets of topics and for shares."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cases import each
from enumerated import Word, many, said
from vitrify.errors import InputError
from vitrify.sandboxes.corpus import Corpus, known
from vitrify.sandboxes.kit.masking import Masked
from vitrify.sandboxes.lda import LDA
from vitrify.sandboxes.topics import Topics

RATES: Any = {"masked": 0.4, "unchanged": 0.25, "replaced": 0.35}


def sets_of_topics(sandbox: Topics) -> list[tuple[float, Any]]:
    """The laws of words of all documents, written from the definition."""
    found = []
    for about in combinations(range(sandbox.topics), sandbox.tau):
        law = [(w // sandbox.words in about) / (sandbox.tau * sandbox.words) for w in range(len(sandbox.answers))]
        found.append((1.0, law))
    return [(p / len(found), law) for p, law in found]


def shares_of_topics(sandbox: LDA) -> list[tuple[float, Any]]:
    found = []
    for counts in product(range(sandbox.grid + 1), repeat=sandbox.topics):
        if sum(counts) == sandbox.grid:
            p = np.ravel(stats.dirichlet_multinomial.pmf(counts, [sandbox.alpha] * sandbox.topics, [sandbox.grid]))[0]
            law = sum(n / sandbox.grid * topic for n, topic in zip(counts, sandbox.laws_of_topics, strict=True))
            found.append((float(p), law))
    return found


def by_all_documents(sandbox: Masked, laws: list[tuple[float, Any]]) -> dict[tuple[Word, int], Any]:
    """The law of the word at each chosen place, given all tokens."""
    return {key: total / total.sum() for key, total in masses(sandbox, laws).items()}


def masses(sandbox: Masked, laws: list[tuple[float, Any]]) -> dict[tuple[Word, int], Any]:
    """How likely tokens, a chosen place and the word there are: by every document, and every fate of every word."""
    words = len(sandbox.answers)
    mass: dict[tuple[Word, int], Any] = defaultdict(lambda: np.zeros(words))
    none = 1 - sandbox.masked
    fates = [("as it is", none), ("kept", sandbox.masked * sandbox.unchanged)]
    fates += [("mask", sandbox.masked * (1 - sandbox.unchanged - sandbox.replaced))]
    fates += [(f"{w}", sandbox.masked * sandbox.replaced / words) for w in range(words)]
    for document in product(range(words), repeat=sandbox.length):
        p = sum(prior * np.prod([law[w] for w in document]) for prior, law in laws)
        for fate in product(fates, repeat=sandbox.length):
            q = p * np.prod([chance for _, chance in fate])
            what = [name for name, _ in fate]
            seen = tuple(
                0 if name == "mask" else (w if name in ("as it is", "kept") else int(name)) + 1
                for w, name in zip(document, what, strict=True)
            )
            for place, name in enumerate(what):
                if name != "as it is" and q > 0:
                    mass[seen, place][document[place]] += q
    return mass


CASES: list[tuple[Masked, Any]] = [
    (Topics(topics=3, words=1, tau=2, length=3, **RATES), sets_of_topics),
    (Topics(topics=2, words=2, tau=1, length=2, **RATES), sets_of_topics),
    (Topics(topics=3, words=1, tau=2, length=3, masked=0.5, unchanged=0.3, replaced=0.0), sets_of_topics),
    (Topics(topics=3, words=1, tau=1, length=3, masked=0.5, unchanged=0.0, replaced=0.0), sets_of_topics),
    (LDA(topics=2, words=3, grid=3, beta=1.0, length=3, **RATES), shares_of_topics),
    (LDA(topics=3, words=2, grid=2, beta=1.0, length=3, alpha=2.0, **RATES), shares_of_topics),
]


@each(("sandbox", "laws"), CASES)
def test_the_optimum_is_that_of_all_documents(sandbox: Masked, laws: Any) -> None:
    known = by_all_documents(sandbox, laws(sandbox))
    tokens = sorted({seen for seen, _ in known})
    found = dict(zip(tokens, said(sandbox, sandbox.optimal, tokens), strict=True))
    for (seen, place), expected in known.items():
        assert np.allclose(found[seen][place + 1], expected, atol=3e-6), (seen, place)


@each(("sandbox", "laws"), CASES[:2] + CASES[4:])
def test_the_best_matrix_on_mean_tokens_is_that_of_all_documents(sandbox: Masked, laws: Any) -> None:
    """The normal equations, with moments summed over every document."""
    words = len(sandbox.answers)
    cross, square, total = np.zeros((words, words + 1)), np.zeros((words + 1, words + 1)), 0.0
    for (seen, _), mass in masses(sandbox, laws(sandbox)).items():
        mean = np.bincount(seen, minlength=words + 1) / len(seen)
        cross += np.outer(mass, mean)
        square += mass.sum() * np.outer(mean, mean)
        total += mass.sum()
    found = sandbox.best_linear(sandbox.length)
    assert np.allclose(found @ square, cross, atol=1e-12)  # no slope is left
    assert np.allclose(found, cross @ np.linalg.pinv(square, rcond=1e-10), atol=1e-8)
    other = sandbox.best_linear(sandbox.length, ridge=0.3)
    assert np.allclose(other, cross @ np.linalg.inv(square + 0.3 * total * np.eye(words + 1)), atol=1e-8)


def test_the_best_matrix_of_long_documents_is_the_closed_form() -> None:
    r"""With a gap of $c = 1/(v\kappa)$; the least such matrix is completed as the text says."""
    sandbox = Topics(topics=5, words=3, tau=2, masked=0.3, unchanged=0.2, replaced=0.25)
    kappa, m0, t, v = 1 - 0.8 * 0.3, 0.3 * 0.55, 5, 3
    a, b, c = kappa + 0.3 * 0.25, 0.3 * 0.25 / t, 1 / (v * kappa)
    other = -c * (v + a * b / m0**2) / (t * v + a**2 / m0**2)
    expected = other + c * np.kron(np.eye(t), np.ones((v, v)))
    found = sandbox.best_linear()
    assert np.allclose(found[:, 1:], expected, atol=1e-10)
    assert np.allclose(found[:, 0], -(a * other + b * c) / m0, atol=1e-10)
    mixed = LDA(topics=5, words=15, grid=3, alpha=0.4, beta=0.0, masked=0.3, unchanged=0.2, replaced=0.25)
    assert np.allclose(mixed.best_linear(), found, atol=1e-9)  # any documents that tell topics apart will do


def test_topics_with_words_of_their_own() -> None:
    sandbox = LDA(topics=2, words=6, beta=0.0)
    assert np.allclose(sandbox.laws_of_topics * 3, [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    with pytest.raises(InputError, match="words must be a multiple of topics = 4"):
        LDA(topics=4, words=6, beta=0.0)


def test_documents_of_the_corpus_are_counts_of_its_words() -> None:
    whole, few = Corpus(min_words=1), Corpus(topics=3, words=2, min_words=4)
    assert len(set(whole.answers)) == 64
    assert few.answers == tuple(word for topic in range(3) for word in whole.answers[8 * topic : 8 * topic + 2])
    assert (few.counts.sum(axis=1) >= 4).all()
    columns = [0, 1, 8, 9, 16, 17]
    wanted = [row[columns] for row in whole.counts if row[columns].sum() >= 4]
    assert np.array_equal(few.counts, wanted)
    stored = sum(times for document in known()["documents"] for _, times in document)
    assert whole.counts.sum() == stored
    for wrong, message in (
        ({"topics": 9}, "from 1 to 8, not 9"),
        ({"min_words": 0}, "min_words must be a whole number of at least 1"),
    ):
        with pytest.raises(InputError, match=message):
            Corpus(**wrong)


def test_documents_are_about_their_topics_and_masked_at_the_rates() -> None:
    sandbox = Topics(topics=6, words=5, tau=2, length=40, masked=0.2, unchanged=0.3, replaced=0.2)
    found = many(sandbox, 2000)
    words, chosen = found.targets[:, 1:], found.weight[:, 1:] > 0
    topic = words // 5
    assert (topic == found.latent["topic"]).all()
    assert (topic[..., None] == found.latent["topics"][:, None]).any(axis=2).all()
    assert (found.latent["topics"][:, 0] < found.latent["topics"][:, 1]).all()
    assert (found.tokens == words + 1)[~chosen].all()
    assert found.weight[:, 0].max() == 0
    count = chosen.sum()
    for share, p in (
        (chosen.mean(), 0.2 / (1 - 0.8**40)),
        ((found.tokens[chosen] == 0).mean(), 0.5),
        ((found.tokens == words + 1)[chosen].mean(), 0.3 + 0.2 / 30),
    ):
        assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / count)
    assert np.abs(chosen.mean(axis=0) - 0.2).max() < 5 * np.sqrt(0.16 / 2000)  # no place is preferred


def test_shares_are_on_the_grid_with_the_probabilities_of_the_urn() -> None:
    sandbox = LDA(topics=3, words=4, grid=4, alpha=0.4)
    shares, prior = sandbox._shares
    assert np.allclose(prior, stats.dirichlet_multinomial.pmf(np.rint(shares * 4).astype(int), [0.4] * 3, [4]))
    assert len(np.unique(shares, axis=0)) == len(shares) == 15
    assert np.allclose(shares.sum(axis=1), 1)


def test_other_predictors_count_what_they_say() -> None:
    sandbox = Topics(topics=2, words=2, tau=1, length=4, masked=0.5, unchanged=0.0, replaced=0.0)
    tokens = [(0, 1, 1, 4)]
    found = {name: said(sandbox, p, tokens)[0, 1] for name, p in sandbox.predictors().items()}
    assert np.allclose(found["uniform"], 1 / 4)
    assert np.allclose(found["unigram"], 1 / 4)
    assert np.allclose(found["frequencies"], np.array([3, 1, 1, 2]) / 7)
    assert np.allclose(found["topic_frequencies"], np.array([3, 3, 2, 2]) / 10)


@each(
    ("make", "wrong", "expected"),
    [
        (
            Topics,
            {"length": 0, "masked": 0, "unchanged": -1},
            "length must be a whole number of at least 1, not 0; masked must be a number above 0 and at most 1, not 0; "
            "unchanged must be a number from 0 to 1, not -1",
        ),
        (
            Topics,
            {"unchanged": 0.8, "replaced": 0.8, "topics": 1, "words": 1, "tau": 2},
            r"unchanged \+ replaced must be at most 1, not 0.8 \+ 0.8; words must be at least 2 where .*, not 1; "
            "tau must be at most topics = 1, not 2",
        ),
        (Topics, {"topics": 40, "tau": 20}, "tau = 20 of 40 topics makes 137846528820 sets: at most 20000 are allowed"),
        (
            LDA,
            {"topics": 0, "words": 1, "grid": 0, "task": -1, "alpha": 0, "beta": -1},
            "topics must be a whole number of at least 1, not 0; words must be a whole number of at least 2, not 1; "
            "grid must be a whole number of at least 1, not 0; alpha must be a number above 0, not 0; "
            "beta must be a number of at least 0, not -1; task must be a whole number of at least 0, not -1",
        ),
        (LDA, {"topics": 10, "grid": 20}, "grid of 20 with 10 topics has 10015005 shares: at most 20000 fit"),
    ],
)
def test_all_that_is_wrong_is_said(make: Any, wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        make(**wrong)
