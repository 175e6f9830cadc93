r"""Kernel refuter: a fully connected net whose first layer is too narrow can't compute sparse averages.

The net reads $N$ vectors $z_j$ of the unit ball of $\mathbb{R}^{d'}$ side by side, and after them a pointer set $y$ of
$q$ indices as $N$ numbers 0 or 1; it must return the mean of $z_j$ over $y$. If the part of the first layer that reads
$z$ has a rank below $N d'$, some $v \ne 0$ is in its kernel. Scaled so that its largest block has norm 1, the
inputs $z = v$ and $z = -v$ give the same output under every pointer set, but their means differ by $2|\sum_y v_j|/q$.

Some $y$ makes this larger than $1/q$, so that the net is off by more than $1/(2q)$ on one of the two. Let $a_j$ be the
product of $v_j$ with the largest block, whose own is 1, and $N \ge 2q + 1$. If $q$ of the $a_j$ are at least 0, take
the $q$ largest: their sum is at least 1. If not, let $a$ be the mean size of the negative ones among the $q$ largest:
their sum is at least $1 - (q-1)a$, and the $q$ smallest sum to at most $-qa$; one of the two sizes is at least
$q/(2q-1) > 1/2$. So the refuter never fails below a rank of $N d'$; the published bound asks for a width of $N d'/2$.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Floats
from vitrify.errors import InputError
from vitrify.spec.geometry.maxout import Maxout

RANK_TOLERANCE = 1e-9  # singular values below this fraction of the largest count as zero


@dataclass(frozen=True, eq=False)
class KernelSearch:
    """Result: the rank of the matrix that reads $z$, the `needed` rank, and the refutation if it is lower.

    `z` [index, coordinate] and `-z` under the `pointers` give the `outputs`; `errors` are their distances from the true
    means, the larger of which is above `allowed`.
    """

    rank: int
    needed: int
    allowed: float
    z: Floats | None = None
    pointers: tuple[int, ...] = ()
    outputs: Floats | None = None
    errors: tuple[float, float] = (0.0, 0.0)

    def __str__(self) -> str:
        if self.z is None:
            return f"the first layer has rank {self.rank} of {self.needed}: no kernel, nothing forced"
        return (
            f"the first layer has rank {self.rank} of {self.needed}: with pointers {list(self.pointers)}, z and -z "
            f"give outputs that are off by {self.errors[0]:.4g} and {self.errors[1]:.4g}, allowed is {self.allowed:.4g}"
        )


def refute_averaging(net: Maxout, places: int, width: int, pointers: int) -> KernelSearch:
    """Refute a net of ReLU or maxout units that reads $Nd' + N$ numbers; every affine piece of a unit counts."""
    if places < 2 * pointers + 1 or pointers < 1 or width < 1:
        raise InputError(f"the argument needs N ≥ 2q + 1 vectors: {places} vectors, {pointers} pointers")
    size = places * width
    if (net.inputs, net.outputs) != (size + places, width):
        raise InputError(
            f"the net must read {places} × {width} numbers and {places} marks and output {width}; "
            f"it reads {net.inputs} and outputs {net.outputs}"
        )
    first = net.layers[0].weights.reshape(-1, net.inputs)[:, :size]
    _, singular_values, directions = np.linalg.svd(first, full_matrices=True)
    rank = int((singular_values > RANK_TOLERANCE * singular_values.max(initial=0.0)).sum())
    allowed = 1 / (2 * pointers)
    if rank == size:
        return KernelSearch(rank, size, allowed)
    z = directions[-1].reshape(places, width)
    z = z / np.linalg.norm(z, axis=1).max()
    chosen = _exposing(z, pointers)
    marks = np.zeros(places)
    marks[list(chosen)] = 1
    outputs = np.asarray(net(np.array([[*z.ravel(), *marks], [*(-z).ravel(), *marks]])))
    mean = z[list(chosen)].mean(axis=0)
    errors = float(np.linalg.norm(outputs[0] - mean)), float(np.linalg.norm(outputs[1] + mean))
    if max(errors) <= allowed:
        raise AssertionError(f"a kernel vector did not refute the net: errors {errors}, allowed {allowed}")
    return KernelSearch(rank, size, allowed, z, chosen, outputs, errors)


def _exposing(z: Floats, pointers: int) -> tuple[int, ...]:
    """Return pointers whose vectors sum to more than ½: those most aligned with, or most against, the largest block."""
    order = np.argsort(z @ z[np.linalg.norm(z, axis=1).argmax()], kind="stable")
    choices = [tuple(sorted(map(int, order[-pointers:]))), tuple(sorted(map(int, order[:pointers])))]
    return max(choices, key=lambda places: float(np.linalg.norm(z[list(places)].sum(axis=0))))


def averaging_net(places: int, width: int, pointers: int) -> Maxout:
    r"""Return an exact fully connected net: $N d' + N$ units, $z y = \mathrm{relu}(z + 2y - 1) - y$ for a mark $y$."""
    size = places * width
    marks = np.repeat(np.eye(places), width, axis=0)  # which mark belongs to which number
    first = np.block([[np.eye(size), 2 * marks], [np.zeros((places, size)), np.eye(places)]])
    mean = np.tile(np.eye(width), places) / pointers
    second = np.concatenate([mean, -np.full((width, places), 1 / pointers)], axis=1)
    return Maxout.from_relu([first, second], [np.concatenate([-np.ones(size), np.zeros(places)]), np.zeros(width)])
