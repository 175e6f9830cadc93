"""Sandboxes small enough to write all of their rows down, and what follows from a table of these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import jax
import numpy as np

from vitrify.sandboxes.catalogue import Example, Predictor, Sandbox, examples

Word = tuple[int, ...]


def words(symbols: int, length: int) -> list[Word]:
    """All words over some symbols."""
    return list(product(range(symbols), repeat=length))


def many(sandbox: Sandbox, count: int) -> Example:
    """Rows of a sandbox as NumPy arrays."""
    found: Example = jax.tree.map(np.asarray, jax.jit(lambda: examples(sandbox, 3, "test", 0, count))())
    return found


def said(sandbox: Sandbox, predictor: Predictor, tokens: Sequence[Word] | Any) -> Any:
    """The probabilities [row, n + 1, answer] that a predictor gives to rows with these tokens."""
    read = np.asarray(tokens, dtype=np.int32)
    questions = np.zeros((len(read), read.shape[1] + 1))

    def one(tokens: Any, blank: Any) -> Any:
        return predictor(Example(tokens, blank.astype("int32"), blank, {}))

    assert read.shape[1] == sandbox.tokens
    return np.exp(np.asarray(jax.jit(jax.vmap(one))(read, questions), dtype=np.float64))


def conditionals(joint: Callable[[Word], float], symbols: int, length: int) -> dict[Word, Any]:
    """What comes next after every beginning, by the probabilities of all words of a length."""
    mass: dict[Word, Any] = defaultdict(lambda: np.zeros(symbols))
    for word in words(symbols, length):
        p = joint(word)
        for t in range(length):
            mass[word[:t]][word[t]] += p
    assert np.isclose(mass[()].sum(), 1)
    return {beginning: total / total.sum() for beginning, total in mass.items() if total.sum() > 0}


def expect_next(sandbox: Sandbox, joint: Callable[[Word], float]) -> None:
    """Check the optimal predictor against the probabilities of all rows."""
    symbols = len(sandbox.symbols)
    known = conditionals(joint, symbols, sandbox.tokens + 1)
    tokens = [word for word in words(symbols, sandbox.tokens) if word in known]
    found = said(sandbox, sandbox.optimal, tokens)
    for word, row in zip(tokens, found, strict=True):
        for t in range(len(word) + 1):
            assert np.allclose(row[t], known[word[:t]], atol=2e-6), (word, t)


def entropies(joint: Callable[[Word], float], symbols: int, length: int) -> Any:
    """The expected loss of the best predictor at every symbol [length], by the probabilities of all words."""
    known, found = conditionals(joint, symbols, length), np.zeros(length)
    for word in words(symbols, length):
        p = joint(word)
        for t in range(length) if p > 0 else ():
            found[t] -= p * np.log(known[word[:t]][word[t]])
    return found


def on_gpu_paths(monkeypatch: Any) -> None:
    """Have programs take the way of a GPU."""

    def cuda(*args: Any, default: Any, cuda: Any) -> Any:  # noqa: ARG001
        return cuda(*args)

    monkeypatch.setattr(jax.lax, "platform_dependent", cuda)
