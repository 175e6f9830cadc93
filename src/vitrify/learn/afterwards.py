"""Trained members on rows of another sandbox: other probabilities, other lengths, and as many rows as are asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.measure import aligned, log_probabilities, losses
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import PIECE, TEST_SEED
from vitrify.learn.train import Run
from vitrify.sandboxes.catalogue import Sandbox, rows


def afterwards(
    family: Family,
    runs: Sequence[Run],
    sandboxes: Sequence[Sandbox],
    count: int,
    piece: int = PIECE,
    apart: bool = False,
) -> list[list[dict[str, float]]]:
    """What is measured of each member on `count` test rows of each sandbox: [sandbox][member].

    The rows are the same for all members, or if `apart` each has its own, so that many members see many rows.

    `asked` is how much weight the questions had and `wrong` how much of it was answered wrongly, whole numbers where
    questions count 0 or 1; `loss` and `accuracy` are means, as in a curve. Rows go through in pieces, whose number is
    rounded up; sandboxes that differ in traced parameters only share a program, and members run as they do in training,
    side by side on a GPU and one by one on the cores of a CPU.
    """
    wide = jax.default_backend() != "cpu"
    piece = min(piece, count)
    starts = np.arange(0, count, piece, dtype=np.uint32)
    whole = [{name: jnp.asarray(array) for name, array in run.weights.arrays.items()} for run in runs]
    lanes = [{name: jnp.stack([arrays[name] for arrays in whole]) for name in whole[0]}] if wide else whole
    seeds = np.arange(len(runs), dtype=np.uint32) * apart + np.uint32(TEST_SEED)
    given = list(zip(lanes, [seeds] if wide else seeds, strict=True))
    programs: dict[Any, Any] = {}
    found = []
    for sandbox in sandboxes:
        shape, values = _parted(sandbox)
        if shape not in programs:
            measured = _measured(family, runs, shape, piece, wide)
            programs[shape] = jax.jit(measured).lower(*given[0], values, starts[0]).compile()
        act = programs[shape]

        def lane(own: tuple[Any, Any], act: Any = act, values: Any = values) -> dict[str, Any]:
            parts = jax.device_get([act(*own, values, start) for start in starts])
            return {name: np.sum([part[name] for part in parts], axis=0, dtype=np.float64) for name in parts[0]}

        with ThreadPoolExecutor(min(len(lanes), os.cpu_count() or 1)) as pool:
            each = list(pool.map(lane, given))
        total = {name: np.concatenate([np.atleast_1d(part[name]) for part in each]) for name in each[0]}
        told = total | {name: total[name] / total["asked"] for name in ("loss", "accuracy")}
        found.append([{name: float(value[at]) for name, value in told.items()} for at in range(len(runs))])
    return found


def _parted(sandbox: Sandbox) -> tuple[Sandbox, dict[str, np.float32]]:
    """A sandbox with its traced parameters at one place for all, and what they are."""
    values = {name: np.float32(getattr(sandbox, name)) for name in sandbox.TRACED}
    usual = {entry.name: entry.default for entry in fields(sandbox) if entry.name in sandbox.TRACED}
    return replace(sandbox, **usual), values


def _measured(family: Family, runs: Sequence[Run], sandbox: Sandbox, piece: int, wide: bool) -> Any:
    """The weighted sums over a piece of rows, as a function of arrays, data seed, traced parameters and first row."""
    net = family.architecture(sandbox)
    expected = net.shapes()
    for run in runs:
        given = {name: np.shape(array) for name, array in run.weights.arrays.items()}
        wrong = sorted(name for name in expected if given.get(name) != tuple(expected[name]))
        if wrong or len({run.weights.architecture for run in runs}) > 1:
            about = f"{', '.join(wrong)} would have other shapes" if wrong else "they must share an architecture"
            raise InputError(f"these members can't read rows of {sandbox.name} of {sandbox.tokens} tokens: {about}")

    def one(arrays: Any, seed: Array, values: Any, start: Array) -> dict[str, Array]:
        source = sandbox.at(values)
        row = rows(source, seed, "test", start, piece)
        logits = family.logits(net, source, arrays, row)
        row = aligned(row, logits)
        wrong = logits.argmax(axis=-1) != row.targets
        each = {"asked": 1.0, "wrong": wrong, "accuracy": ~wrong, "loss": losses(log_probabilities(logits), row)}
        return {name: (value * row.weight).sum() for name, value in each.items()}

    return jax.vmap(one, in_axes=(0, 0, None, None)) if wide else one
