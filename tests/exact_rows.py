"""Rows of sandboxes as NumPy arrays, and what a task spec says about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from vitrify.learn.landscape import float64
from vitrify.learn.measure import means, sums
from vitrify.sandboxes.catalogue import Example, Sandbox, Split, examples


def drawn(sandbox: Sandbox, count: int, split: Split = "test") -> Example:
    """The first rows of a split."""
    found: Example = jax.tree.map(np.asarray, jax.jit(lambda: examples(sandbox, 0, split, 0, count))())
    return found


def foretold(sandbox: Sandbox, found: Example) -> Any:
    """The optimal log-probabilities for rows."""
    return np.asarray(jax.jit(jax.vmap(sandbox.optimal))(found))


def exact_means(sandbox: Sandbox, logits: Any, listed: Example) -> dict[str, float]:
    """Population values, over listed strings, of all that is measured in training: `loss`, `floor`, `kl`, …"""
    with float64():
        measured = jax.jit(lambda logits, listed: means(sums(replace(sandbox), logits, listed)))
        return {name: float(value) for name, value in measured(jax.numpy.asarray(logits), listed).items()}


def asked(sandbox: Sandbox, found: Example) -> list[tuple[list[str], dict[int, str]]]:
    """Of every row its symbols, and the answers where some are asked for, by the number of symbols read before."""
    symbols, answers = sandbox.symbols, sandbox.answers
    return [
        ([symbols[token] for token in tokens], {int(t): answers[targets[t]] for t in np.flatnonzero(weight)})
        for tokens, targets, weight in zip(found.tokens, found.targets, found.weight, strict=True)
    ]


def told(answers: Sequence[Any], places: Iterable[int] | None = None) -> dict[int, Any]:
    """The answers of a task spec, as `asked` writes them: after the symbol at 0 one symbol has been read."""
    wanted = range(1, len(answers) + 1) if places is None else places
    return {t: answers[t - 1] for t in wanted if answers[t - 1] is not None}


def share(counts: Any, expected: Any) -> float:
    """How likely counts at least so far from the expected ones are (chi-squared)."""
    from scipy import stats

    counts, expected = np.asarray(counts, dtype=float), np.asarray(expected, dtype=float)
    return float(stats.chisquare(counts, expected / expected.sum() * counts.sum()).pvalue)
