"""Regular languages against a list of all words."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import jax
import numpy as np
import pytest

from vitrify.errors import InputError, SpecError
from vitrify.sandboxes.catalogue import Example, examples, make
from vitrify.sandboxes.regular import Regular
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, divisibility, random_automaton

LANGUAGES = [divisibility(3), Automaton.from_regex("(ab|c)*c?"), random_automaton(4, 2, seed=8)]


@pytest.mark.parametrize("automaton", LANGUAGES)
def test_accepted_words_are_counted(automaton: Automaton) -> None:
    sandbox = Regular(automaton, length=5, mode="generate")
    letters = len(automaton.alphabet)
    all_words = np.array(list(product(range(letters), repeat=5)))
    words = np.array([w for w in all_words if automaton.accepts([automaton.alphabet[a] for a in w])])
    batch = Example(words[:, :-1], words, np.ones(words.shape), {})
    predictors = {"optimal": sandbox.optimal, **sandbox.predictors()}
    found = jax.jit(lambda batch: {name: jax.vmap(each)(batch) for name, each in predictors.items()})(batch)
    found = jax.device_get(found)
    seen = {"optimal": 5, "bigram": 1, "unigram": 0}
    for name, most in seen.items():
        for t in range(5):
            shown = words[:, max(t - most, 0) : t]
            for word, logp in zip(words, np.exp(found[name]), strict=True):
                same = words[(shown == word[max(t - most, 0) : t]).all(axis=1), t]
                assert np.allclose(logp[t], np.bincount(same, minlength=letters) / len(same), atol=1e-6)
    losses = -np.take_along_axis(np.asarray(found["optimal"]), words[..., None], axis=-1)[..., 0]
    assert np.allclose(sandbox.floor(), losses.mean(axis=0), atol=1e-5)
    drawn = jax.device_get(jax.jit(lambda: examples(sandbox, 0, "test", 0, 4000))())
    assert {tuple(word) for word in np.asarray(drawn.targets).tolist()} == {tuple(word) for word in words.tolist()}


@pytest.mark.parametrize("mode", ["accept", "states"])
def test_answers_are_those_of_the_automaton(mode: str) -> None:
    automaton = random_automaton(4, 3, seed=5)
    sandbox = make("regular", {"automaton": "random_automaton:4:3:5", "length": 9, "mode": mode})
    assert isinstance(sandbox, Regular)
    assert sandbox.automaton == automaton

    @jax.jit
    def both() -> tuple[Example, jax.Array, jax.Array]:
        batch = examples(sandbox, 0, "test", 0, 2000)
        return batch, jax.vmap(sandbox.optimal)(batch), jax.vmap(sandbox.marginal)(batch)

    batch, best, marginal = jax.device_get(both())
    for letters, targets, logp in zip(batch.tokens[:50], batch.targets, best, strict=False):
        word = [automaton.alphabet[letter] for letter in letters]
        path = automaton.run(word)
        right = path if mode == "states" else ["yes" if automaton.accepts(word[:t]) else "no" for t in range(10)]
        assert [sandbox.answers[target] for target in targets] == list(right)
        assert np.array_equal(np.exp(logp), np.eye(len(sandbox.answers))[targets])
    often = np.eye(len(sandbox.answers))[batch.targets].mean(axis=0)
    assert np.abs(np.exp(marginal[0]) - often).max() < 0.06
    assert (batch.weight[:, 0] == 0).all()


def test_automata_by_name_and_by_file(tmp_path: Path) -> None:
    path = tmp_path / "parity.automaton.json"
    cyclic(2).write(path)
    by_name, by_file = (make("regular", {"automaton": text}) for text in ("cyclic:2", str(path)))
    assert by_name.identity() == by_file.identity() == Regular().identity()
    large = random_automaton(40, 2, seed=0)
    other = replace(large, transitions=(*large.transitions[:-1], large.transitions[0]))
    assert repr(large) == repr(other)
    assert Regular(large).identity() != Regular(other).identity(), "specs must be told apart by their content"
    with pytest.raises(SpecError, match=r"cyclic:many must be of the form cyclic:n:letters, with whole numbers"):
        make("regular", {"automaton": "cyclic:many"})
    (tmp_path / "x.dyck").write_text("brackets: ( )\ndepth: 2\nlength: 4\n")
    with pytest.raises(InputError, match=r"must be of type Automaton, not a value of type Dyck"):
        make("regular", {"automaton": str(tmp_path / "x.dyck")})


def test_bad_parameters() -> None:
    with pytest.raises(InputError, match=r"automaton must accept a word of length 3"):
        Regular(Automaton.from_regex("(aa)*"), length=3, mode="generate")
    with pytest.raises(InputError, match=r"length must be a whole number of at least 2, not 1"):
        Regular(length=1)
    with pytest.raises(InputError, match=r"mode must be one of accept, states, generate, not guess"):
        make("regular", {"mode": "guess"})
