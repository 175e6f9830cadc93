"""A preview of a sandbox: some examples with every answer's optimal distribution, as plain JSON data."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from vitrify import registry
from vitrify.arrays import Array
from vitrify.encoding import JsonObject
from vitrify.sandboxes.catalogue import PACKAGE, Example, Sandbox, examples, in_words

LIKELIEST = 5


def preview(name: str, words: Sequence[str], count: int, seed: int) -> JsonObject:
    """The first sequences of a sandbox's training split, given its parameters as `key=value`."""
    sandbox = in_words(name, words)
    batch = jax.jit(lambda: examples(sandbox, seed, "train", 0, count))()
    best = jax.jit(jax.vmap(sandbox.optimal))(batch)
    batch, best = jax.tree.map(np.asarray, (batch, best))
    losses = -np.take_along_axis(best, batch.targets[..., None], axis=-1)[..., 0]
    return {
        "sandbox": name,
        "title": next(line.title for line in registry.headlines(PACKAGE, "SANDBOX") if line.name == name),
        "parameters": sandbox.identity(),
        "symbols": list(sandbox.symbols),
        "answers": list(sandbox.answers),
        "rate": sandbox.rate(),
        "floor": float((losses * batch.weight).sum() / batch.weight.sum()),
        "examples": [_example(sandbox, batch, best, losses, number) for number in range(count)],
    }


def _example(sandbox: Sandbox, batch: Example, best: Array, losses: Array, number: int) -> JsonObject:
    tokens = batch.tokens[number]
    queries = []
    for t in range(batch.targets.shape[1]):
        likely = np.argsort(-best[number, t], kind="stable")[:LIKELIEST]
        reads = sandbox.reads == "tokens" and t > 0
        queries.append(
            {
                "after": t,
                "token": sandbox.symbols[tokens[t - 1]] if reads else "",
                "answer": sandbox.answers[batch.targets[number, t]],
                "weight": float(batch.weight[number, t]),
                "optimal": [(sandbox.answers[at], float(np.exp(best[number, t, at]))) for at in likely],
                "loss": abs(float(losses[number, t])),  # of a sure answer it would be -0
            }
        )
    latent = {name: np.round(value[number], 4).tolist() for name, value in batch.latent.items()}
    if sandbox.reads == "tokens":
        shown = [sandbox.symbols[token] for token in tokens]
    else:
        shown = [f"{value:.4g}" for value in tokens.ravel()]
    return {"index": number, "tokens": shown, "queries": queries, "latent": latent}
