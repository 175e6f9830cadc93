"""Text of n-gram models: the model's own back-off, sentence boundaries, and what less words foretell."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from enumerated import many, said, words
from oracles.rows import reference
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import make
from vitrify.sandboxes.ngram import NGram
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import END, NGramModel

WEATHER = Path(__file__).parents[3] / "examples" / "weather.arpa"
MODELS = {
    "weather": NGramModel.read(WEATHER),
    "gaps": random_ngram(2, 4, seed=1, listed=0.5),
    "unigrams": random_ngram(3, 1, seed=2),
}


def history_of(sandbox: NGram, past: tuple[int, ...]) -> list[str]:
    """The words of the sentence that is going on."""
    names = [sandbox.symbols[token] for token in past]
    return names[len(names) - names[::-1].index(END) :] if END in names else names


@pytest.mark.parametrize("name", MODELS)
def test_after_every_beginning_the_model_is_quoted(name: str) -> None:
    sandbox = NGram(model=MODELS[name], length=6 if name == "gaps" else 4)
    tokens = words(len(sandbox.symbols), sandbox.tokens)
    found = said(sandbox, sandbox.optimal, tokens)
    known: dict[tuple[str, ...], Any] = {}
    for word, row in zip(tokens, found, strict=True):
        for t in range(len(word) + 1):
            history = tuple(history_of(sandbox, word[:t]))
            if history not in known:
                known[history] = [np.exp(sandbox.model.log_prob(history, w)) for w in sandbox.symbols]
            assert np.allclose(row[t], known[history], atol=1e-6), (word, t)


def test_floor_and_marginals_are_those_of_long_texts() -> None:
    """The distribution over unfinished sentences' last words, moved on by the model itself."""
    model = MODELS["weather"]
    sandbox = NGram(model=model, length=5)
    texts: dict[tuple[str, ...], float] = {(): 1.0}
    losses, pairs = [], np.zeros((4, 4))
    law = {}
    for t in range(300):
        loss = 0.0
        following: dict[tuple[str, ...], float] = defaultdict(float)
        for history, mass in texts.items():
            if history not in law:
                law[history] = np.exp([model.log_prob([*history], w) for w in sandbox.symbols])
            p = law[history]
            loss -= mass * float(p @ np.log(p))
            for w, word in enumerate(sandbox.symbols):
                following[() if word == END else (*history, word)[-3:]] += mass * p[w]
            if t == 299:
                pairs[sandbox.symbols.index(history[-1] if history else END)] += mass * p
        losses.append(loss)
        texts = dict(following)
    assert np.allclose(sandbox.floor(), losses[:5], atol=1e-6)
    assert sandbox.rate() == pytest.approx(losses[-1], abs=1e-6)
    found = sandbox.predictors()
    tokens = [(1, 2, 0, 3)]
    assert np.allclose(said(sandbox, found["unigram"], tokens)[0], pairs.sum(axis=0), atol=1e-5)
    bigram = pairs / pairs.sum(axis=1, keepdims=True)
    end = sandbox.symbols.index(END)
    assert np.allclose(said(sandbox, found["bigram"], tokens)[0], bigram[[end, *tokens[0]]], atol=1e-5)


def test_models_come_from_files_and_are_told_apart() -> None:
    sandbox = make("ngram", {"model": str(WEATHER), "length": "3"})
    assert sandbox.symbols == ("</s>", "rain", "snow", "sun")
    one, two = (NGram(model=random_ngram(3, 2, seed=seed)).identity() for seed in (0, 1))
    assert one != two
    assert one == NGram(model=random_ngram(3, 2, seed=0)).identity()


def test_contexts_are_told_and_begin_before_the_sentence() -> None:
    sandbox = NGram(model=MODELS["weather"], length=8)
    found = many(sandbox, 20)
    begin = sandbox.contexts.start
    assert (found.latent["context"][:, 0] == begin).all()
    ended = found.targets[:, :-1] == sandbox.symbols.index(END)
    assert ((found.latent["context"][:, 1:] == begin) == ended).all()


def test_all_that_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitrify.sandboxes.ngram.MAX_CELLS", 10)
    with pytest.raises(InputError, match=r"model has .* contexts times 4 words; at most"):
        NGram(model=MODELS["weather"])
    with pytest.raises(InputError, match="length must be a whole number of at least 2, not 1"):
        NGram(model=MODELS["weather"], length=1)


def test_sentences_apart_end_once_and_nobody_asks_after_them() -> None:
    """The floor by enumeration of all sentences: the mean over those that go on."""
    model = MODELS["weather"]
    sandbox = NGram(model=model, length=5, apart=True)
    found = many(sandbox, 200)
    end = sandbox.symbols.index(END)
    over = np.cumsum(found.targets == end, axis=1) - (found.targets == end) > 0
    assert over.any()
    assert (np.asarray(found.weight) == ~over).all()
    assert (np.asarray(found.targets)[over] == end).all()
    assert (np.asarray(found.tokens) == np.asarray(found.targets)[:, :-1]).all()
    assert sandbox.blanks == (END,)
    assert sandbox.rate() is None
    going: dict[tuple[str, ...], float] = {(): 1.0}
    for t in range(5):
        entropy = 0.0
        later: dict[tuple[str, ...], float] = defaultdict(float)
        for history, mass in going.items():
            p = np.exp([model.log_prob([*history], w) for w in sandbox.symbols])
            entropy -= mass * float(p @ np.log(p))
            for w, word in enumerate(sandbox.symbols):
                later[(*history, word)] += mass * p[w] * (word != END)
        assert np.asarray(sandbox.floor())[t] == pytest.approx(entropy / sum(going.values()), abs=1e-6)
        going = {history: mass for history, mass in later.items() if mass}
    tokens, targets = reference(sandbox, np.random.default_rng(0), 4000)
    late = np.cumsum(targets == end, axis=1) - (targets == end) > 0
    assert (targets[late] == end).all()
    assert (tokens == targets[:, :-1]).all()
    shares = [
        np.bincount(np.asarray(rows)[:, 2], minlength=4) / len(rows) for rows in (targets, many(sandbox, 4000).targets)
    ]
    assert np.abs(shares[0] - shares[1]).max() < 0.04
