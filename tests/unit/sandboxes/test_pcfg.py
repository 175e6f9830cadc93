"""Next words of grammars against the spec's own charts, in fractions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Example, examples, make
from vitrify.sandboxes.pcfg import Pcfg
from vitrify.spec.grammars.families import english, random_pcfg
from vitrify.spec.grammars.grammar import END, Grammar

RECURSIVE = """
S -> S S [0.1] | 'a' S 'b' 'b' [0.2] | T [0.7]
T -> U [0.5] | 'b' [0.3] | 'a' 'c' [0.2]
U -> 'a' [0.5] | 'c' 'a' [0.5]
"""
SMALL = [random_pcfg(1), Grammar.from_text("S -> A A | A\nA -> B | 'a'\nB -> 'b' | 'a' 'b'")]


def drawn(sandbox: Pcfg, count: int) -> tuple[Example, Any]:
    @jax.jit
    def both() -> tuple[Example, Any]:
        batch = examples(sandbox, 0, "test", 0, count)
        return batch, jax.vmap(sandbox.optimal)(batch)

    found: tuple[Example, Any] = jax.device_get(both())
    return found


def compare(sandbox: Pcfg, grammar: Grammar, count: int, tolerance: float, checked: int = 12) -> tuple[Example, Any]:
    """Rows and their optimal laws, some of them checked against the charts of the spec."""
    batch, best = drawn(sandbox, count)
    for sentence, logp, weight in list(zip(batch.targets, best, batch.weight, strict=True))[:checked]:
        asked = int(weight.sum())
        words = [sandbox.symbols[word] for word in sentence[: asked - 1]]
        assert (END in words, weight.tolist()) == (False, [1.0] * asked + [0.0] * (sandbox.length - asked))
        assert (sentence[asked:] == len(sandbox.symbols) - 1).all()
        laws = grammar.next_word_probs_along(words)
        wanted = [[float(law.get(word, 0)) for word in sandbox.symbols] for law in laws]
        assert np.allclose(np.exp(logp[:asked]), wanted, atol=tolerance)
    return batch, best


@pytest.mark.parametrize("grammar", SMALL)
def test_laws_are_those_of_the_spec(grammar: Grammar) -> None:
    compare(Pcfg(grammar, length=7), grammar.proper(), 12, 1e-5)


def test_a_recursive_grammar_is_the_limit_of_its_cuts() -> None:
    """Derivations of a height beyond 9 have little weight: what is cut off is far below the tolerance times ten."""
    grammar = Grammar.from_text(RECURSIVE)
    compare(Pcfg(grammar, length=6), grammar.cut(9), 8, 3e-3)


@pytest.mark.slow
def test_a_grammar_of_hundreds_of_rules_and_long_rows_stays_in_range() -> None:
    grammar = english(6)
    batch, best = compare(Pcfg(grammar, length=32), grammar.uniform(), 200, 1e-4, checked=3)
    right = np.take_along_axis(best, batch.targets[..., None], axis=-1)[..., 0]
    assert (right[batch.weight > 0] > -15).all()
    assert np.allclose(np.exp(best).sum(axis=-1), 1, atol=1e-4)


def test_the_unigram_counts_words_at_a_place() -> None:
    sandbox = Pcfg(SMALL[0], length=5)
    batch = jax.device_get(jax.jit(lambda: examples(sandbox, 0, "test", 0, 20_000))())
    first = jax.tree.map(lambda x: x[0], batch)
    law = np.exp(jax.jit(sandbox.unigram)(first))
    asked = batch.weight > 0
    for t in range(int(first.weight.sum())):
        counts = np.bincount(batch.targets[asked[:, t], t], minlength=len(sandbox.symbols))
        assert np.abs(law[t] - counts / counts.sum()).max() < 0.03


def test_what_waits_behind_each_word() -> None:
    sandbox = Pcfg(Grammar.from_text("S -> 'a' S 'b' | 'c'"), length=6)
    batch, _ = drawn(sandbox, 50)
    for sentence, waiting in zip(batch.targets, batch.latent["waiting"], strict=True):
        words = [sandbox.symbols[word] for word in sentence]
        opened = [words[: t + 1].count("a") - words[: t + 1].count("b") for t in range(6)]
        right = [min(depth + ("c" not in words[: t + 1]), 5 - t) for t, depth in enumerate(opened)]
        assert waiting.tolist() == right


def test_files_and_bad_parameters(tmp_path: Path) -> None:
    path = tmp_path / "twice.cfg"
    path.write_text("S -> 'a' 'a'\n")
    assert make("pcfg", {"grammar": str(path)}).symbols == ("a", END)
    with pytest.raises(InputError, match=r"length must be a whole number from 2 to 64, not 1"):
        make("pcfg", {"length": 1})
