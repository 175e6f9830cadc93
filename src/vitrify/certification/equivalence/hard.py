r"""A transformer of hard attention as a machine, bit by bit, for every length.

A head that breaks ties to the right reads the last of the keys with the best score; of equal keys only the last one is
ever read, whatever the query. So its memory is each key once, with its last value, in the order in which they occurred
last; with ties to the left it is the first one. Where all queries are equal, a key is forgotten as soon as a preferred
one scores as much. Finitely many vectors occur, and no sum of products is rounded, in whatever order it is taken: all
weights and activations are multiples of $2^{-16}$ of moderate size, which is checked wherever they occur. So a search
over the memories is about the stored weights themselves, in their own arithmetic.

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

STEPS_OF_ONE = 2.0**16  # weights and activations are multiples of its inverse
MAX_SUM = 2.0**20  # of the sizes of products, which are multiples of 2^-32: 52 bits
MAX_PERIOD = 64  # of the positions


class KeyAndValue(NamedTuple):
    """A key that a head may read later and its value there, with a number for each of the two."""

    key: Floats
    value: Floats
    numbers: tuple[int, int]


class HeadMemory(NamedTuple):
    """The number of tokens read, pads included, and the keys of every head, in the order in which they occurred."""

    length: int
    keys: tuple[tuple[KeyAndValue, ...], ...]


class HardAttentionMachine:
    """The memory of a transformer of hard attention after a word."""

    longest: int | None = None

    def __init__(self, weights: Weights[SequenceArchitecture]) -> None:
        if not has_architecture(weights, Transformer):
            raise Undecided("no transformer")
        self.net = weights.architecture
        _refuse(self.net)
        self.arrays = {name: np.asarray(dense(array)) for name, array in weights.arrays.items()}
        for name, array in self.arrays.items():
            _need_exact(array, name)
        self.heads = [head for _, block in self.net.turns for head in block.heads]
        _need_exact(np.array([head.resolution for head in self.heads]), "the resolution of a head")
        self.places = self.arrays["pos_embed.W_pos"]
        self.period = _period(self.places[self.net.pads :])
        self._numbers: dict[bytes, int] = {}

    def start(self) -> tuple[HeadMemory, Floats]:
        memory, logits = HeadMemory(0, ((),) * len(self.heads)), np.zeros((1, 0))
        for _ in range(self.net.pads):
            (memory,), logits = self.steps([memory], [0])
        return memory, logits[0]

    def key(self, memory: HeadMemory) -> Hashable:
        at = (memory.length - self.net.pads) % self.period
        return at, tuple(tuple(entry.numbers for entry in entries) for entries in memory.keys)

    def letter(self, token: int) -> Hashable:
        return bytes(self.arrays["embed.W_E"][token].tobytes())

    def steps(self, memories: Sequence[HeadMemory], tokens: Sequence[int]) -> tuple[list[HeadMemory], Floats]:
        x = self.arrays["embed.W_E"][list(tokens)] + self.places[[self._place(m.length) for m in memories]]
        after: list[list[tuple[KeyAndValue, ...]]] = [[] for _ in memories]
        for index, block in self.net.turns:
            written = [self._head(index, at, head, x, memories, after) for at, head in enumerate(block.heads)]
            x = sum(written, start=x)
            _need_exact(x, "the residual stream")
            if block.units:
                post = np.maximum(self._read(x, f"blocks.{index}.mlp.W_in", f"blocks.{index}.mlp.b_in"), 0.0)
                x = x + self._read(post, f"blocks.{index}.mlp.W_out", f"blocks.{index}.mlp.b_out")
                _need_exact(x, "the residual stream")
        lengths = [memory.length + 1 for memory in memories]
        states = [HeadMemory(length, tuple(keys)) for length, keys in zip(lengths, after, strict=True)]
        return states, self._read(x, "unembed.W_U", "unembed.b_U")

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
    out = x @ matrix + bias
    if (np.abs(x) @ np.abs(matrix) + np.abs(bias)).max(initial=0.0) > MAX_SUM:
        raise Undecided("a sum is too large to be exact")
    _need_exact(out, "an activation")
    return np.asarray(out)


def _need_exact(array: Floats, name: str) -> None:
    scaled = array * STEPS_OF_ONE
    if not np.array_equal(scaled, np.round(scaled)) or np.abs(array).max(initial=0.0) > MAX_SUM:
        raise Undecided(f"{name} holds numbers that are no multiples of {1 / STEPS_OF_ONE:g}: sums may be rounded")


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
    if any(block.experts or block.cell for block in net.blocks) or net.only_learned:
        raise Undecided("a block has experts or a recurrent cell, or heads of a kind for trained nets")
    heads = [head for block in net.blocks for head in block.heads]
    if any(head.attention != "hard" or head.ties == "average" for head in heads):
        raise Undecided("a head is not hard, or shares its weight among several keys")
    if any(head.mask not in ("causal", "strict") or head.window is not None for head in heads):
        raise Undecided("a head sees later positions, or only a window of them")
