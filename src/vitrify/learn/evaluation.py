"""Evaluate members on examples of other sandboxes: other probabilities, longer, rarer or harder ones, any number.

`accuracy_on` is a probe that does so during training, for `train(probes={…})`; `evaluate` does after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled

from vitrify.arrays import Array, Arrays, Float
from vitrify.errors import InputError
from vitrify.learn.measure import PIECE, TEST_SEED, aligned, log_probabilities, losses
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import Probe
from vitrify.learn.runs import Net, Run
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Example, Sandbox, examples


def accuracy_on(family: Family, sandbox: Sandbox, count: int = 512, by: str | None = None, bins: int = 0) -> Probe:
    """A probe: the share of `count` sequences of a sandbox in which every answer that counts is right.

    The sandbox has the symbols and answers of the one that is trained on, and the net room for its sequences
    (`max_positions` of a transformer). `by` names a latent whole number of the sequences: then it is a share [bin] for
    each of its values from 0 on, of those sequences that have the value; without such sequences it is not a number.
    """
    piece = min(PIECE, count)
    if count % piece:
        raise InputError(f"sequences are asked {PIECE} at a time: take a multiple of it, not {count}")

    def probe(net: Net, arrays: Arrays, batch: Example, seen: Arrays) -> Array:
        del batch, seen
        if tuple(net.inputs[1:]) != sandbox.symbols or tuple(net.output.symbols) != sandbox.answers:
            raise InputError(f"the net was not made for the symbols and answers of {sandbox.name}")
        if isinstance(net, Transformer) and net.max_length < sandbox.tokens:
            raise InputError(
                f"the net has room for {net.max_length} tokens, and sequences have {sandbox.tokens}: give max_positions"
            )

        def counts(start: Array) -> tuple[Array, Array]:
            batch_there = examples(sandbox, TEST_SEED, "test", start, piece)
            correct = all_right(family.logits(net, sandbox, arrays, batch_there), batch_there)
            at = jnp.zeros(piece, jnp.int32) if by is None else batch_there.latent[by]
            which = (at[:, None] == jnp.arange(bins if by else 1)).astype(jnp.float32)
            return (which * correct[:, None]).sum(axis=0), which.sum(axis=0)

        starts = jnp.arange(0, count, piece, dtype=jnp.uint32)
        right, total = (part.sum(axis=0) for part in jax.lax.map(counts, starts))
        share = right / total
        return share if by else share[0]

    return probe


def all_right(logits: Float[Array, "batch asked answer"], batch: Example) -> Float[Array, " batch"]:
    """Return 1 for each sequence of a batch whose targets with a weight are all predicted, else 0: [batch]."""
    batch = aligned(batch, logits)
    right = (logits.argmax(axis=-1) == batch.targets) | (batch.weight == 0)
    return right.all(axis=1).astype(jnp.float32)


def evaluate(
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
