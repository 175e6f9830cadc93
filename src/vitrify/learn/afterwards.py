"""Evaluate trained members on examples of other sandboxes: other probabilities, other lengths, any number."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled

from vitrify.arrays import Array, Arrays
from vitrify.errors import InputError
from vitrify.learn.measure import aligned, log_probabilities, losses
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import PIECE, TEST_SEED
from vitrify.learn.runs import Run
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Sandbox, examples


def afterwards(
    family: Family,
    runs: Sequence[Run],
    sandboxes: Sequence[Sandbox],
    count: int,
    piece: int = PIECE,
    apart: bool = False,
) -> list[list[dict[str, float]]]:
    """Return the measurements of each member on `count` test examples of each sandbox: [sandbox][member].

    The examples are the same for all members; with `apart` each member has its own. `queries` is the weight of all
    targets and `wrong` the weight of those predicted wrongly; `loss` and `accuracy` are weighted means, as in a curve.
    Examples are evaluated `piece` at a time, the last piece in full. Sandboxes that differ only in traced parameters
    share a program. Members run side by side on a GPU, and one by one on the cores of a CPU.
    """
    wide = jax.default_backend() != "cpu"
    piece = min(piece, count)
    starts = np.arange(0, count, piece, dtype=np.uint32)
    members = [{name: jnp.asarray(array) for name, array in run.weights.arrays.items()} for run in runs]
    lanes = [{name: jnp.stack([arrays[name] for arrays in members]) for name in members[0]}] if wide else members
    seeds = np.arange(len(runs), dtype=np.uint32) * apart + np.uint32(TEST_SEED)
    inputs = list(zip(lanes, [seeds] if wide else seeds, strict=True))
    programs: dict[Sandbox, Compiled] = {}
    results = []
    for sandbox in sandboxes:
        shape, values = _parted(sandbox)
        if shape not in programs:
            measured = _measured(family, runs, shape, piece, wide)
            programs[shape] = jax.jit(measured).lower(*inputs[0], values, starts[0]).compile()
        act = programs[shape]

        def lane(own: tuple[Arrays, Array], act: Compiled = act, values: Arrays = values) -> dict[str, Array]:
            parts = jax.device_get([act(*own, values, start) for start in starts])
            return {name: np.sum([part[name] for part in parts], axis=0, dtype=np.float64) for name in parts[0]}

        with ThreadPoolExecutor(min(len(lanes), os.cpu_count() or 1)) as pool:
            each = list(pool.map(lane, inputs))
        total = {name: np.concatenate([np.atleast_1d(part[name]) for part in each]) for name in each[0]}
        measured_all = total | {name: total[name] / total["queries"] for name in ("loss", "accuracy")}
        results.append([{name: float(value[at]) for name, value in measured_all.items()} for at in range(len(runs))])
    return results


def stretched(family: Family, runs: Sequence[Run], sandbox: Sandbox) -> list[Run]:
    """Return members whose position tables fit longer sequences: embeddings of the added positions are zero."""
    net = family.architecture(sandbox)

    def padded(array: Array, shape: tuple[int, ...]) -> Array:
        return np.pad(array, [(0, want - have) for want, have in zip(shape, np.shape(array), strict=True)])

    shapes = net.shapes()
    arrays = [{name: padded(array, shapes[name]) for name, array in run.weights.arrays.items()} for run in runs]
    return [replace(run, weights=Weights(net, own)) for run, own in zip(runs, arrays, strict=True)]


def _parted(sandbox: Sandbox) -> tuple[Sandbox, dict[str, np.float32]]:
    """Return a sandbox with default traced parameters, and the values that it had."""
    values = {name: np.float32(getattr(sandbox, name)) for name in sandbox.TRACED}
    defaults = {entry.name: entry.default for entry in fields(sandbox) if entry.name in sandbox.TRACED}
    return replace(sandbox, **defaults), values


def _measured(
    family: Family, runs: Sequence[Run], sandbox: Sandbox, piece: int, wide: bool
) -> Callable[..., dict[str, Array]]:
    """Return weighted sums over `piece` examples as a function of arrays, data seed, traced parameters and start."""
    net = family.architecture(sandbox)
    expected = net.shapes()
    for run in runs:
        shapes = {name: np.shape(array) for name, array in run.weights.arrays.items()}
        wrong = sorted(name for name in expected if shapes.get(name) != tuple(expected[name]))
        if wrong or len({run.weights.architecture for run in runs}) > 1:
            about = f"{', '.join(wrong)} would have other shapes" if wrong else "they must share an architecture"
            raise InputError(
                f"these members can't read sequences of {sandbox.name} of {sandbox.tokens} tokens: {about}"
            )

    def one(arrays: Arrays, seed: Array, values: Arrays, start: Array) -> dict[str, Array]:
        source = sandbox.at(values)
        batch = examples(source, seed, "test", start, piece)
        logits = family.logits(net, source, arrays, batch)
        batch = aligned(batch, logits)
        wrong = logits.argmax(axis=-1) != batch.targets
        each = {"queries": 1.0, "wrong": wrong, "accuracy": ~wrong, "loss": losses(log_probabilities(logits), batch)}
        return {name: (value * batch.weight).sum() for name, value in each.items()}

    return jax.vmap(one, in_axes=(0, 0, None, None)) if wide else one
