"""A look at a sandbox: some rows with every answer's optimal distribution, as plain JSON data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from vitrify import registry
from vitrify.sandboxes.catalogue import PACKAGE, in_words, rows

LIKELIEST = 5


def glimpse(name: str, words: Sequence[str], count: int, seed: int) -> dict[str, Any]:
    """The first rows of a sandbox's training split, given its parameters as `key=value`."""
    sandbox = in_words(name, words)
    found, best = jax.jit(lambda: _with_optimum(sandbox, count, seed))()
    found, best = jax.tree.map(np.asarray, (found, best))
    losses = -np.take_along_axis(best, found.targets[..., None], axis=-1)[..., 0]
    return {
        "sandbox": name,
        "title": next(line.title for line in registry.headlines(PACKAGE, "SANDBOX") if line.name == name),
        "parameters": sandbox.identity(),
        "symbols": list(sandbox.symbols),
        "answers": list(sandbox.answers),
        "rate": sandbox.rate(),
        "floor": float((losses * found.weight).sum() / found.weight.sum()),
        "rows": [_row(sandbox, found, best, losses, number) for number in range(count)],
    }


def _with_optimum(sandbox: Any, count: int, seed: int) -> Any:
    found = rows(sandbox, seed, "train", 0, count)
    return found, jax.vmap(sandbox.optimal)(found)


def _row(sandbox: Any, found: Any, best: Any, losses: Any, number: int) -> dict[str, Any]:
    tokens = found.tokens[number]
    questions = []
    for t in range(found.targets.shape[1]):
        likely = np.argsort(-best[number, t], kind="stable")[:LIKELIEST]
        reads = sandbox.reads == "tokens" and t > 0
        questions.append(
            {
                "after": t,
                "token": sandbox.symbols[tokens[t - 1]] if reads else "",
                "answer": sandbox.answers[found.targets[number, t]],
                "weight": float(found.weight[number, t]),
                "optimal": [(sandbox.answers[at], float(np.exp(best[number, t, at]))) for at in likely],
                "loss": abs(float(losses[number, t])),  # of a sure answer it would be -0
            }
        )
    latent = {name: np.round(value[number], 4).tolist() for name, value in found.latent.items()}
    if sandbox.reads == "tokens":
        shown = [sandbox.symbols[token] for token in tokens]
    else:
        shown = [f"{value:.4g}" for value in tokens.ravel()]
    return {"row": number, "tokens": shown, "questions": questions, "latent": latent}
