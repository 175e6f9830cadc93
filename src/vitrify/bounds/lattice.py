r"""Lattice refuter: two inputs with one additive message, by lattice reduction.

Whatever Bob holds, a layer answers alike on two such inputs, so it is wrong on one of them wherever the right answers
differ; `refute` chooses such an input of Bob's and runs both.

Alice's message is *additive* if it is a constant plus what each of her numbers adds, in integers. Each *move*, of one
number from 0 to another choice $c$, adds a vector to the message. Let $D$ [entry, move] be the matrix of these vectors.
A vector $z \ne 0$ of zeros and signs with $Dz = 0$ gives two inputs with one message: the first makes the moves with
$z = 1$, the second those with $z = -1$. For one number there may be one of each.

If the message has fewer bits than the input, such a $z$ exists, but a search among inputs does not find it. The vectors
$z \in \mathbb Z^n$ with $Dz = 0$ are a lattice; its determinant $\Delta$ says how hard the search is. A subset of $m$
moves, with $m$ from 0.95 to 1.5 times $\log_2 \Delta$, still has signs with $Dz = 0$ if the sums behave like random
ones. The basis is $[\,I_m \mid C D^\top\,]$ with $C = 2^{24}$; LLL reduces it (Lenstra, Lenstra & Lovász 1982), and of
the rows that end in zeros each one, and the sum and difference of each two, is tested. In the spirit of attacks on
subset sums (Lagarias & Odlyzko 1985). LLL finds $z$ up to $\log_2 \Delta \approx 90$, rarely beyond. That it finds none
proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from time import monotonic
from typing import Protocol

import numpy as np
from flint import fmpz_mat

from vitrify.arrays import Array, Ints
from vitrify.bounds.games import Game

SCALE = 1 << 24  # C: vectors outside the kernel are long
LOVASZ = (0.999, 0.501)  # delta and eta of LLL
SHARE = (0.95, 1.5)  # size of a subset of moves, over log2 of the determinant
REACH = 110.0  # log2 of the determinant beyond which no subset is tried by default
SUBSETS = 256  # subsets by default
PROBES = 8  # random inputs on which additivity is tested


class Messages(Protocol):
    """A protocol in which Alice sends integers, as in `vitrify.bounds.protocols.TwoParty`."""

    game: Game

    def numbers(self, alice: Ints) -> Ints:
        """Return Alice's message for each of several inputs, as rows of integers."""


@dataclass(frozen=True)
class LatticeSearch:
    """Result of the lattice refuter: $\\log_2$ of the determinant, the subsets tried, and two inputs or None."""

    log2_det: float
    subsets: int
    pair: tuple[Ints, Ints] | None = None

    def __str__(self) -> str:
        if self.subsets:
            return f"log2 det = {self.log2_det:.1f}, {self.subsets} subsets of moves"
        return f"log2 det = {self.log2_det:.1f}, {'moves that repeat' if self.pair else 'no subset tried'}"


def moves(protocol: Messages) -> Ints | None:
    """Return what each move adds to the message, [entry, number, choice - 1]; None if the message is not additive."""
    game, rng = protocol.game, np.random.default_rng(0)
    zero = np.zeros((1, game.size), dtype=np.int64)
    single = np.concatenate([choice * np.eye(game.size, dtype=np.int64) for choice in range(1, game.choices)])
    base = protocol.numbers(zero)[0]
    added = (protocol.numbers(single) - base).reshape(game.choices - 1, game.size, -1)
    inputs = rng.integers(0, game.choices, (PROBES, game.size))
    steps = np.concatenate([np.zeros_like(added[:1]), added])[inputs, np.arange(game.size)]
    if not np.array_equal(protocol.numbers(inputs), base + steps.sum(axis=1)):
        return None
    vectors: Ints = added.transpose(2, 1, 0)
    return vectors


def equal_messages(
    protocol: Messages, subsets: int = SUBSETS, seconds: float | None = None, seed: int = 0
) -> LatticeSearch | None:
    """Search for two of Alice's inputs with one message; None if the message is not additive.

    With `seconds` the search ends after that time instead of a number of subsets, and has no limit of reach.
    """
    added = moves(protocol)
    if added is None:
        return None
    matrix, shape = added.reshape(len(added), -1), added.shape[1:]
    rank, log2_det = _determinant(matrix)
    pair = _lifted(_repeated(matrix), shape)
    if pair is not None or rank == matrix.shape[1] or (seconds is None and log2_det > REACH):
        return LatticeSearch(log2_det, 0, pair)
    rng, start, tried = np.random.default_rng(seed), monotonic(), 0
    while pair is None and (tried < subsets if seconds is None else monotonic() - start < seconds):
        tried += 1
        size = int(np.clip(rng.uniform(*SHARE) * log2_det, 2, matrix.shape[1]))
        pair = _by_subset(matrix, rng.permutation(matrix.shape[1])[:size], shape)
    return LatticeSearch(log2_det, tried, pair)


def _determinant(matrix: Ints) -> tuple[int, float]:
    r"""Return the rank of $D$, and $\log_2$ of the determinant of the lattice of $z$ with $Dz = 0$.

    With independent rows it is $\sqrt{\det DD^\top}$ over the product of the invariant factors of $D$.
    """
    reduced, _, rank = fmpz_mat(matrix.T.tolist()).rref()
    if rank == 0:
        return 0, 0.0
    echelon = np.array(reduced.tolist(), dtype=object)[:rank]
    rows = fmpz_mat(matrix[(echelon != 0).argmax(axis=1)].tolist())
    factors = rows.snf()
    index = sum(log2(abs(int(factors[at, at]))) for at in range(rank))
    return int(rank), log2(int((rows * rows.transpose()).det())) / 2 - index


def _repeated(matrix: Ints) -> Ints:
    """Return a vector z for each column that is zero, and for each two that are equal or opposite."""
    seen: dict[bytes, tuple[int, int]] = {}
    vectors = []
    for at, column in enumerate(matrix.T):
        z = np.zeros(matrix.shape[1], dtype=np.int64)
        z[at] = 1
        if column.any():
            sign = int(np.sign(column[np.flatnonzero(column)[0]]))
            before, other = seen.setdefault((sign * column).tobytes(), (at, sign))
            z[before] -= sign * other
        if z.any():
            vectors.append(z)
    return np.array(vectors).reshape(-1, matrix.shape[1])


def _by_subset(matrix: Ints, chosen: Ints, shape: tuple[int, ...]) -> tuple[Ints, Ints] | None:
    """Return two inputs that differ in some of the chosen moves, by a reduced basis of these; None if it shows none."""
    size = len(chosen)
    basis = np.concatenate([np.eye(size, dtype=np.int64), SCALE * matrix[:, chosen].T.astype(object)], axis=1)
    reduced: Array = np.array(fmpz_mat(basis.tolist()).lll(False, *LOVASZ).tolist(), dtype=object)
    kernel = reduced[(reduced[:, size:] == 0).all(axis=1), :size].astype(np.int64)
    first, second = np.triu_indices(len(kernel), 1)
    for rows in (kernel, kernel[first] + kernel[second], kernel[first] - kernel[second]):
        short = rows[np.abs(rows).max(axis=1, initial=0) <= 1]
        z = np.zeros((len(short), matrix.shape[1]), dtype=np.int64)
        z[:, chosen] = short
        pair = _lifted(z, shape)
        if pair is not None:
            return pair
    return None


def _lifted(vectors: Ints, shape: tuple[int, ...]) -> tuple[Ints, Ints] | None:
    """Return two inputs that some vector z [move] stands for; None if no vector makes one move of a number each."""
    for z in vectors.reshape(-1, *shape):
        moved = (z > 0), (z < 0)
        if z.any() and all((made.sum(axis=1) <= 1).all() for made in moved):
            first, second = (made @ np.arange(1, shape[1] + 1) for made in moved)
            return first, second
    return None
