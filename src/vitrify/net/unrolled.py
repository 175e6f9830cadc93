"""Unrolling: a transformer whose blocks run several times over, as one in which every pass has blocks of its own."""

from __future__ import annotations

from dataclasses import replace

from vitrify.arrays import Matrix
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.weights import Weights


def unrolled(weights: Weights) -> Weights:
    """Return a network without a loop that computes the same, step by step; one that has no loop is returned as it is.

    Labels get the number of their round, but for spaces that the embedding writes. A space that the last MLP of a round
    writes lasts until the last MLP of the next round replaces it.
    """
    if weights.architecture.loops == 1:
        return weights
    net, labels = weights.architecture, weights.labels
    depth, loops = len(net.blocks), net.loops
    arrays: dict[str, Matrix] = {}
    for name, array in weights.arrays.items():
        prefix, _, rest = name.partition(".")
        index, _, part = rest.partition(".")
        copies = range(int(index), depth * loops, depth) if prefix == "blocks" else []
        arrays |= {f"blocks.{turn}.{part}": array for turn in copies} or {name: array}
    each = [(turn, f" (round {turn + 1})") for turn in range(loops)]
    unrolled_labels = Labels(
        tuple(label for space in labels.spaces for label in _in_rounds(space, 2 * depth, loops)),
        tuple(replace(h, name=h.name + at, block=h.block + t * depth) for t, at in each for h in labels.heads),
        tuple(replace(u, name=u.name + at, block=u.block + t * depth) for t, at in each for u in labels.units),
    )
    groups = net.groups[:-1] * loops + net.groups[-1:]
    once = replace(net, blocks=net.blocks * loops, loops=1, groups=groups)
    return Weights(once, arrays, unrolled_labels, weights.about)


def _in_rounds(space: SpaceLabel, end: int, loops: int) -> list[SpaceLabel]:
    """Return the labels of a space in all rounds, each of `end` moments (after attentions and MLPs)."""
    last = end * loops
    if space.born == 0:
        return [replace(space, dies=last if space.dies == end else space.dies)]
    labels = []
    for turn in range(loops):
        born, dies = space.born + turn * end, space.dies + turn * end
        dies = min(dies + end - 1, last) if space.born == end else dies
        labels.append(replace(space, name=f"{space.name} (round {turn + 1})", born=born, dies=dies))
    return labels
