"""Networks on a grid of bit chains (p, q) and their mirror images (q, p): how much of the way they have left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured

TIED, UNTIED, BETTER = range(3)  # kinds of networks: of the last ones w starts near -1
SHOWN = (0.5, 0.8)  # the papers' own chain, the first one: its curves are drawn, and it is not judged
MIN_GAP = 0.006  # nats between H(π) and the entropy rate of a chain that is judged
EDGE = 0.02  # distance of p and q from 0 and 1
Chains = tuple[tuple[float, float], ...]  # (p, q) of each


def drawn(grid: int, numbers: Sequence[int]) -> Chains:
    """Return chains drawn by numbers: one in every cell of the diagonal of a grid, else one and its mirror image.

    Of two mirror images that with p < q comes first, and the other right after it.
    """
    chains: list[tuple[float, float]] = []
    cells = [(i, j) for i in range(grid) for j in range(i, grid)]
    for cell, number in zip(cells, numbers, strict=True):
        p, q = (float(x) for x in np.random.default_rng(number).random(2))
        p, q = (EDGE + (1 - 2 * EDGE) * (at + x) / grid for at, x in zip(cell, (p, q), strict=True))
        chains += [(p, q)] if cell[0] == cell[1] else [(p, q), (q, p)]
    return tuple(chains)


def pairs(chains: Chains, judged: Array) -> Array:
    """Return the indices of chains with p < q and of their mirror images, where both are judged: [2, pair]."""
    at = {chain: index for index, chain in enumerate(chains)}
    both = [(at[p, q], at[q, p]) for p, q in chains if p < q and (q, p) in at]
    return np.array([pair for pair in both if judged[list(pair)].all()], dtype=int).reshape(-1, 2).T


def gap(measured: Measured) -> Array:
    """Return H(π) minus the entropy rate, in nats, on the sequences of each network: [kind, chain, seed]."""
    return np.asarray(measured["floor.unigram"] - measured["floor"])


def left_of_the_way(measured: Measured) -> Array:
    """Return the part of the way from H(π) to the entropy rate that each network has left: [kind, chain, seed]."""
    return (measured["loss"] - measured["floor"]) / gap(measured)


def with_left(measured: Measured, parts: Array) -> Measured:
    """Return measurements with the losses of networks that have other parts of the way left."""
    return {**measured, "loss": measured["floor"] + parts * gap(measured)}


def sides(subject: Subject, measured: Measured) -> tuple[Array, Array]:
    """Return masks of the judged chains with p + q < 1 and > 1."""
    total, apart = np.sum(subject.data["chains"], axis=1), gap(measured)[TIED].mean(axis=-1) >= MIN_GAP
    apart[0] = False  # the shown chain
    return apart & (total < 1), apart & (total > 1)


def border_elsewhere(subject: Subject, measured: Measured, rng: np.random.Generator, shift: float) -> Measured:
    """Return tied networks that end, between p + q = 1 and another border, as drawn ones of the other side do."""
    total, (below, above) = np.sum(subject.data["chains"], axis=1), sides(subject, measured)
    between = (total - 1) * (1 + shift - total) > 0
    chosen = np.where(
        between, rng.choice(np.flatnonzero(below if shift > 0 else above), size=len(total)), range(len(total))
    )
    left, says = left_of_the_way(measured), measured["after"].copy()
    left[TIED], says[TIED] = left[TIED][chosen], says[TIED][chosen]
    return {**with_left(measured, left), "after": says}


def as_from_the_start(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return untied networks that have as much left as tied ones from the start near w = -1, by seeds drawn anew."""
    del subject
    left = left_of_the_way(measured)
    left[UNTIED] = left[BETTER][:, rng.integers(left.shape[-1], size=left.shape[-1])]
    return with_left(measured, left)


def either_mirror_image(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return networks from the start near w = -1 that are exchanged, or not, with those of the mirror image."""
    left, (below, above) = left_of_the_way(measured), sides(subject, measured)
    both = pairs(subject.data["chains"], below | above)
    both = both[:, rng.random(both.shape[1]) < 0.5]
    left[BETTER, both] = left[BETTER, both[::-1]]
    return with_left(measured, left)
