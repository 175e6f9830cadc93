r"""A network of hard attention and diagonal recurrences as a machine, bit by bit, for every length.

A head that breaks ties to the right reads the last of the keys with the best score; of equal keys only the last one is
ever read, whatever the query. So its memory is each key once, with its last value, in the order in which they occurred
last; with ties to the left it is the first one. Where all queries are equal, a key is forgotten as soon as a preferred
one scores as much. A recurrence remembers its state. Finitely many vectors occur, and no sum of products is rounded, in
whatever order it is taken: its terms are multiples of a power of two, and the sum of their sizes is at most $2^{52}$
times as large, which is checked wherever there is a sum. The factors of a recurrence are 0 or powers of two, so that
its state is rounded once, in a sum of two numbers that has no order. So a search over the memories is about the stored
weights themselves, in their own arithmetic.

Positions may be read if they repeat after a number of letters, like the residues of `MOD`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.margins.values import Undecided
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.sparse import dense
from vitrify.net.transformer import Head, Transformer
from vitrify.net.weights import Weights, has_architecture

MAX_UNITS = 2.0**52  # of the sizes of the terms of a sum, in multiples of a power of two that divides them all
USUAL_STEPS, USUAL_SUM = 2.0**16, 2.0**20  # multiples of 2^-16 that add up to this are exact: quick to see
MAX_PERIOD = 64  # of the positions


class KeyAndValue(NamedTuple):
    """A key that a head may read later and its value there, with a number for each of the two."""

    key: Floats
    value: Floats
    numbers: tuple[int, int]


class HeadMemory(NamedTuple):
    """The number of tokens read, pads included, the keys of every head in the order in which they occurred, and states.

    There is a state for each block with a recurrence.
    """

    length: int
    keys: tuple[tuple[KeyAndValue, ...], ...]
    states: tuple[Floats, ...]


class HardAttentionMachine:
    """The memory of a transformer of hard attention and diagonal recurrences after a word."""

    longest: int | None = None

    def __init__(self, weights: Weights[SequenceArchitecture]) -> None:
        if not has_architecture(weights, Transformer):
            raise Undecided("no transformer")
        self.net = weights.architecture
        _refuse(self.net)
        self.arrays = {name: np.asarray(dense(array)) for name, array in weights.arrays.items()}
        self.heads = [head for _, block in self.net.turns for head in block.heads]
        self.places = self.arrays["pos_embed.W_pos"]
        self.period = _period(self.places[self.net.pads :])
        self._numbers: dict[bytes, int] = {}

    def start(self) -> tuple[HeadMemory, Floats]:
        states = tuple(np.zeros(block.cell.state) for _, block in self.net.turns if block.cell)
        memory, logits = HeadMemory(0, ((),) * len(self.heads), states), np.zeros((1, 0))
        for _ in range(self.net.pads):
            (memory,), logits = self.steps([memory], [0])
        return memory, logits[0]

    def key(self, memory: HeadMemory) -> Hashable:
        at = (memory.length - self.net.pads) % self.period
        keys = tuple(tuple(entry.numbers for entry in entries) for entries in memory.keys)
        return at, keys, tuple(state.tobytes() for state in memory.states)

    def letter(self, token: int) -> Hashable:
        return bytes(self.arrays["embed.W_E"][token].tobytes())

    def steps(self, memories: Sequence[HeadMemory], tokens: Sequence[int]) -> tuple[list[HeadMemory], Floats]:
        x = _sum(self.arrays["embed.W_E"][list(tokens)], self.places[[self._place(m.length) for m in memories]])
        after: list[list[tuple[KeyAndValue, ...]]] = [[] for _ in memories]
        cells: list[Floats] = []  # states [word, state] of each recurrence
        for index, block in self.net.turns:
            written = [self._head(index, at, head, x, memories, after) for at, head in enumerate(block.heads)]
            if block.cell:
                cells.append(self._state(index, x, np.stack([memory.states[len(cells)] for memory in memories])))
                written.append(_product(cells[-1], self.arrays[f"blocks.{index}.rec.W_C"]))
            x = _sum(x, *written)
            if block.units:
                post = np.maximum(self._read(x, f"blocks.{index}.mlp.W_in", f"blocks.{index}.mlp.b_in"), 0.0)
                x = _sum(x, self._read(post, f"blocks.{index}.mlp.W_out", f"blocks.{index}.mlp.b_out"))
        later = [
            HeadMemory(memory.length + 1, tuple(keys), tuple(states[row] for states in cells))
            for row, (memory, keys) in enumerate(zip(memories, after, strict=True))
        ]
        return later, self._read(x, "unembed.W_U", "unembed.b_U")

    def _state(self, index: int, x: Floats, before: Floats) -> Floats:
        """Return the states of a recurrence after each word."""
        scale, driven = (_product(x, self.arrays[f"blocks.{index}.rec.W_{letter}"]) for letter in "AB")
        if not np.isin(np.frexp(scale)[0], (0.0, 0.5, -0.5)).all():
            raise Undecided("a factor of a recurrence is no power of two: its states are rounded more than once")
        return before * scale + driven + 0.0  # + 0.0: no negative zeros

    def _place(self, length: int) -> int:
        """Return the row of the position table for the token after `length` others."""
        pads = self.net.pads
        return length if length < pads else pads + (length - pads) % self.period

    def _read(self, x: Floats, matrix: str, bias: str, at: int | None = None) -> Floats:
        """Return what a part reads, by an affine map; with `at`, the part is that head of a layer."""
        chosen = (
            (self.arrays[matrix], self.arrays[bias]) if at is None else (self.arrays[matrix][at], self.arrays[bias][at])
        )
        return _product(x, *chosen)

    def _head(
        self,
        index: int,
        at: int,
        head: Head,
        x: Floats,
        memories: Sequence[HeadMemory],
        after: list[list[tuple[KeyAndValue, ...]]],
    ) -> Floats:
        """Return what a head writes after each word, and append to `after` what it remembers."""
        name = f"blocks.{index}.attn."
        query, key, value = (self._read(x, f"{name}W_{letter}", f"{name}b_{letter}", at) for letter in "QKV")
        query = _product(query, self.arrays[f"{name}beta"][at] * np.eye(query.shape[1]))
        constant = not self.arrays[f"{name}W_Q"][at].any()
        if constant:  # the score is all that matters of a key
            key, query = _product(key, query[0][:, None]), np.ones((len(x), 1))
        copied = np.zeros_like(value)
        for row, memory in enumerate(memories):
            before, entry = memory.keys[len(after[row])], self._entry(key[row], value[row])
            later = _inserted(before, entry, head, constant)
            after[row].append(later)
            visible = before if head.mask == "strict" else later
            if visible:
                copied[row] = _selected(visible, query[row], head).value
        return _product(copied, self.arrays[f"{name}W_O"][at])

    def _entry(self, key: Floats, value: Floats) -> KeyAndValue:
        numbers = [self._numbers.setdefault((part + 0.0).tobytes(), len(self._numbers)) for part in (key, value)]
        return KeyAndValue(key, value, (numbers[0], numbers[1]))


def _inserted(
    before: tuple[KeyAndValue, ...], entry: KeyAndValue, head: Head, constant: bool
) -> tuple[KeyAndValue, ...]:
    """Return the keys that can still be read, with one more; `constant`: keys are scores, the same for every query."""
    known = any(old.numbers[0] == entry.numbers[0] for old in before)
    if head.ties == "left":
        keys = before if known else (*before, entry)
    else:
        keys = (*(old for old in before if old.numbers[0] != entry.numbers[0]), entry)
    if not constant:
        return keys
    best = max(old.key[0] for old in keys)
    ordered = keys if head.ties == "left" else keys[::-1]  # the preferred one of equal keys first
    left = list[KeyAndValue]()
    for old in ordered:
        if old.key[0] >= best - head.resolution and all(old.key[0] > other.key[0] for other in left):
            left.append(old)
    return tuple(left if head.ties == "left" else left[::-1])


def _selected(keys: tuple[KeyAndValue, ...], query: Floats, head: Head) -> KeyAndValue:
    """Return the key that a query selects."""
    scores = _product(np.stack([entry.key for entry in keys]), query[:, None])[:, 0]
    tied = np.flatnonzero(scores >= scores.max() - head.resolution)
    return keys[int(tied[0 if head.ties == "left" else -1])]


def _product(x: Floats, matrix: Floats, bias: Floats | float = 0.0) -> Floats:
    """Return an affine map of some vectors, where no order of summation rounds; else `Undecided`."""
    out, sizes = x @ matrix + bias, (np.abs(x) @ np.abs(matrix) + np.abs(bias)).max(axis=0, initial=0.0)
    if (sizes <= USUAL_SUM).all() and all(_is_usual(part) for part in (x, matrix, bias)):
        return np.asarray(out)
    steps = (_steps(x).min(axis=0, initial=np.inf)[:, None] * _steps(matrix)).min(axis=0, initial=np.inf)
    if (sizes > MAX_UNITS * np.minimum(np.minimum(steps, _steps(bias)), 2.0**900)).any():
        raise Undecided("a sum may be rounded, in an order that is not known")
    return np.asarray(out)


def _is_usual(array: Floats | float) -> bool:
    scaled = array * USUAL_STEPS
    return bool(np.all(scaled == np.round(scaled)))


def _sum(*parts: Floats) -> Floats:
    """Return a sum of some vectors, where no order of summation rounds; else `Undecided`."""
    out: Floats = sum(parts, start=np.zeros_like(parts[0]))
    if sum(np.abs(part).max(initial=0.0) for part in parts) > USUAL_SUM or not all(map(_is_usual, parts)):
        _product(np.stack(parts, axis=-1).reshape(-1, len(parts)), np.ones((len(parts), 1)))
    return out


def _steps(array: Floats | float) -> Floats:
    """Return the largest power of two that divides each number; infinity for 0."""
    mantissa, exponent = np.frexp(array)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    return np.where(whole == 0, np.inf, np.ldexp((whole & -whole).astype(float), exponent - 53))


def _period(places: Floats) -> int:
    """Return the number of positions after which they repeat."""
    if not places.any():
        return 1
    for period in range(1, min(MAX_PERIOD, len(places) // 2) + 1):
        if np.array_equal(places[period:], places[:-period]):
            return period
    raise Undecided("positions do not repeat")


def _refuse(net: Transformer) -> None:
    """Refuse a transformer that is no machine of hard attention."""
    if net.reads != "tokens" or net.norm or net.residual != "add":
        raise Undecided("no transformer that reads tokens, adds to its residual stream and has no norms")
    if any(block.experts for block in net.blocks) or net.only_learned or not net.tabled:
        raise Undecided("a block has experts, or heads of a kind for trained nets, or its positions have formulas")
    if any(block.cell and (block.cell.kind != "diagonal" or block.cell.parallel) for block in net.blocks):
        raise Undecided("a recurrence is not diagonal, or its states are computed in parallel")
    heads = [head for block in net.blocks for head in block.heads]
    if any(head.attention != "hard" or head.ties == "average" for head in heads):
        raise Undecided("a head is not hard, or shares its weight among several keys")
    if any(head.mask not in ("causal", "strict") or head.window is not None for head in heads):
        raise Undecided("a head sees later positions, or only a window of them")
