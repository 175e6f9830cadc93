"""In-context chains of any order: symbols follow the row's own kernel, and predictors are counts."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from scipy.stats import chisquare

from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Example, Predictor, examples
from vitrify.sandboxes.in_context_markov import InContextMarkov

ROWS, LENGTH = 3000, 9


@pytest.mark.parametrize("order", [0, 2, 3])
def test_symbols_follow_the_kernel_of_their_row(order: int) -> None:
    """Where the kernel gives a 1 a probability between two tenths, ones are that frequent; first symbols are even."""
    sandbox = InContextMarkov(states=2, length=LENGTH, order=order)
    found = jax.tree.map(np.asarray, jax.jit(lambda: examples(sandbox, 0, "test", 0, ROWS))())
    symbols, kernel = found.targets, found.latent["kernel"]
    assert kernel.shape == (ROWS, 2**order, 2)
    word = sum((symbols[:, place : LENGTH - order + place] << (order - 1 - place) for place in range(order)), start=0)
    word = np.broadcast_to(word, (ROWS, LENGTH - order))
    chance, came = np.take_along_axis(kernel[..., 1], word, axis=1), symbols[:, order:]
    spread = np.sqrt((chance * (1 - chance)).sum())
    assert abs((came - chance).sum()) <= 5 * spread
    for low in np.arange(0, 1, 0.1):
        inside = (chance >= low) & (chance < low + 0.1)
        assert abs((came - chance)[inside].sum()) <= 5 * np.sqrt((chance * (1 - chance))[inside].sum())
    if order:
        first = np.bincount(symbols[:, :order] @ (2 ** np.arange(order)), minlength=2**order)
        assert chisquare(first).pvalue > 1e-6


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_predictors_count_what_followed_the_last_symbols(order: int) -> None:
    sandbox = InContextMarkov(states=2, length=LENGTH, order=order, alpha=0.5)
    known: dict[str, tuple[Predictor, int, float]] = {"optimal": (sandbox.optimal, order, 0.5)}
    names = ("unigram", "bigram", "trigram")[:order]
    assert tuple(sandbox.predictors()) == ("uniform", *names)
    known |= {name: (sandbox.predictors()[name], lower, 1.0) for lower, name in enumerate(names)}

    @jax.jit
    def answered() -> tuple[Example, dict[str, Any]]:
        found = examples(sandbox, 1, "test", 0, 4)
        return found, {name: jax.vmap(predictor)(found) for name, (predictor, _, _) in known.items()}

    found, said = answered()
    for name, (_, lower, more) in known.items():
        for symbols, answers in zip(found.targets.tolist(), np.exp(said[name]), strict=True):
            for t in range(LENGTH):
                counts = np.full(2, more)
                for before in range(lower, t) if t >= lower else ():
                    if symbols[before - lower : before] == symbols[t - lower : t]:
                        counts[symbols[before]] += 1
                np.testing.assert_allclose(answers[t], counts / counts.sum(), rtol=1e-5)


def test_wrong_orders_are_refused() -> None:
    with pytest.raises(InputError, match="order must be a whole number of at least 0, not -1"):
        InContextMarkov(order=-1)
    with pytest.raises(InputError, match="8192 contexts: at most 4096 fit; length must be at least 14, not 9"):
        InContextMarkov(states=2, order=13, length=9)
