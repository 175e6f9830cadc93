r"""The ideal of a causal transformer as a machine: what its heads can still select from the letters read so far.

| head | memory |
| --- | --- |
| reads a fixed distance $h$ back, or a window of $w$ positions with fixed weights | the last $h$ (or $w - 1$) values |
| reads a position of its own for every position, by positions alone | the values that later positions read |
| selects by contents, the last or first of equal keys | each key once, with its value, in the order of preference |
| selects by contents, any of equal keys | each key with its value; keys that tie must have the same value |
| averages over all positions, with weights that only the positions set | the sum of the values |

A machine that never reads positions except in scores, and does not average, is the same at every length. What the
letters of `ideal.py` assume of scores is checked whenever a query or a key occurs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.equivalence.ideal import EQUAL, HeadRule, Ideal
from vitrify.certification.margins.values import Undecided
from vitrify.net.attention import weigh

GRID = 1e-9  # ideal values nearer to each other than this are the same
MIXED = "a head whose scores depend on contents and positions together is not followed"


class RememberedKey(NamedTuple):
    """A key that a head may select later: its contents, and the value that it then writes."""

    key: Floats
    value: Floats
    number: tuple[int, int]  # of the key and of the value


Keys = tuple[RememberedKey, ...]


class MachineMemory(NamedTuple):
    """The number of letters read, and what each head remembers."""

    length: int
    heads: tuple[Keys, ...]


def shares(head: HeadRule, key: Floats, query: Floats, length: int, pads: Floats) -> tuple[Floats, float]:
    """Return what the pads add to a mean of level scores at a position, and the weight of every letter in it."""
    count = length + (head.head.mask == "causal")
    letter = head.place[length, 0] + key @ (query + head.q_places[length]) + query @ head.k_places[0]
    scores = np.append(pads, np.full(count, letter))
    seen = np.isfinite(scores)
    weight = weigh(head.head, np.where(seen, scores, 0.0)[None], seen[None])[0]
    return weight[: len(pads)] @ head.pad_values, float(weight[-1]) if count else 0.0


class AttentionMachine:
    """The ideal of a causal transformer, letter by letter."""

    def __init__(self, ideal: Ideal) -> None:
        if any(rule.head.mask not in ("causal", "strict") for rule in ideal.rules):
            raise Undecided("a head that sees later positions is no machine that reads letter by letter")
        self.ideal = ideal
        self.longest = None if ideal.period else ideal.longest
        self._numbers: dict[bytes, int] = {}

    def start(self) -> tuple[MachineMemory, Floats]:
        return MachineMemory(0, tuple(() for _ in self.ideal.rules)), self.ideal.first_logits

    def steps(self, memories: Sequence[MachineMemory], tokens: Sequence[int]) -> tuple[list[MachineMemory], Floats]:
        pairs = [self._step(memory, token) for memory, token in zip(memories, tokens, strict=True)]
        return [memory for memory, _ in pairs], np.stack([logits for _, logits in pairs])

    def key(self, memory: MachineMemory) -> Hashable:
        time = memory.length if self.ideal.period is None else memory.length % self.ideal.period
        return time, tuple(tuple(entry.number for entry in entries) for entries in memory.heads)

    def letter(self, token: int) -> Hashable:
        return bytes(self.ideal.embed[token].tobytes())

    def _step(self, memory: MachineMemory, token: int) -> tuple[MachineMemory, Floats]:
        at = memory.length if self.ideal.period is None else memory.length % self.ideal.period
        x, remembered = self.ideal.embedded(token), list[Keys]()
        for index, block in enumerate(self.ideal.blocks):
            written = np.zeros_like(x)
            for head in block.heads:
                entries, value = self._read(head, x, memory, len(remembered), at)
                remembered.append(entries)
                written = written + value
            x = self.ideal.after_units(index, x + written, at)
        return MachineMemory(memory.length + 1, tuple(remembered)), self.ideal.logits(x, at)

    def _read(self, head: HeadRule, x: Floats, memory: MachineMemory, number: int, at: int) -> tuple[Keys, Floats]:
        """Return what a head remembers with the new letter, and what it reads."""
        key, value, query = x @ head.k, x @ head.values + head.v_places[at] + head.b_v, x @ head.q
        entry = RememberedKey(key, value, (self._number(key), self._number(value)))
        before = memory.heads[number]
        if head.head.window == 1 and head.head.mask == "causal":
            return (), value
        if head.window is not None or head.back is not None:
            if not head.fixed:
                raise Undecided(MIXED)
            return self._by_distance(head, before, entry, query, memory.length)
        if head.sources is not None:
            by_contents = np.abs(head.q_places @ key).max(initial=0.0)
            if not head.fixed or np.any(query) or by_contents > EQUAL * head.size / 4:
                raise Undecided(MIXED)
            return self._by_place(head, before, entry, memory.length)
        if head.averages:
            return self._averaged(head, before, entry, query, memory.length)
        if head.prefers == "position":
            raise Undecided(MIXED)
        after = self._remembered(head, before, entry)
        visible = after if head.head.mask == "causal" else before
        return after, self._selected(head, visible, query)

    def _averaged(
        self, head: HeadRule, before: Keys, entry: RememberedKey, query: Floats, length: int
    ) -> tuple[Keys, Floats]:
        """Add a value to the sum, and return the mean with the weights of this position."""
        if not head.separate(entry.key[None], query):
            raise Undecided("an average whose weights depend on contents is not followed")
        total = entry.value + before[0].value if before else entry.value
        after = (RememberedKey(entry.key, total, (0, self._number(total))),)
        shown = (after if head.head.mask == "causal" else before)[:1]
        mean, share = shares(head, entry.key, query, length, head.pad_scores(query)[length])
        return after, mean + share * shown[0].value if shown else mean

    def _number(self, vector: Floats) -> int:
        grid = np.round(vector / GRID)
        return self._numbers.setdefault((grid + 0.0).tobytes(), len(self._numbers))

    def _by_distance(
        self, head: HeadRule, before: Keys, entry: RememberedKey, query: Floats, length: int
    ) -> tuple[Keys, Floats]:
        """Read a fixed distance back, or a window with weights that depend on distances alone."""
        entries = (*before, entry)
        if head.window is None:
            assert head.back is not None
            of_pads = self._pad_value(head, entry, query, length, length >= head.back)
            value = entries[-1 - head.back].value if length >= head.back else of_pads
            return entries[-head.back :] if head.back else (), value
        moves = np.ptp(head.q_places, axis=0).max(initial=0.0), np.ptp(head.k_places, axis=0).max(initial=0.0)
        if max(moves) > EQUAL * head.size:
            raise Undecided(MIXED)  # weights in the window depend on where it is
        entries = entries[-head.window :]
        pads = len(head.pad_keys)
        shown = max(0, head.window - 1 - length)  # pads in the window
        keys = np.vstack([head.pad_keys[max(0, pads - shown) :], *(each.key for each in entries)])
        values = np.vstack([head.pad_values[max(0, pads - shown) :], *(each.value for each in entries)])
        missing = len(keys) - len(entries)
        row = min(length, len(head.q_places) - 1)
        keys[missing:] += head.k_places[row]
        distance = np.arange(len(keys))[::-1]
        assert head.bias is not None
        scores = keys @ (query + head.q_places[row]) + head.bias[distance]
        seen = distance >= (head.head.mask == "strict")
        weight = weigh(head.head, scores[None], seen[None])[0]
        return entries[1 - head.window :], weight @ values

    def _by_place(self, head: HeadRule, before: Keys, entry: RememberedKey, length: int) -> tuple[Keys, Floats]:
        """Read the position that the positions alone choose, and remember those that later positions read."""
        assert head.sources is not None
        held = dict(zip(_read_later(head.sources, length - 1), before, strict=True)) | {length: entry}
        source = int(head.sources[length])
        value = held[source].value if source >= 0 else np.asarray(head.pad_values[-1 - source])
        return tuple(held[at] for at in _read_later(head.sources, length)), value

    def _remembered(self, head: HeadRule, before: Keys, entry: RememberedKey) -> Keys:
        """Return the keys that can still be selected, the preferred one of each contents, the newest last."""
        if head.prefers == "first":
            kept = before if any(old.number[0] == entry.number[0] for old in before) else (*before, entry)
        elif head.prefers == "last":
            kept = (*(old for old in before if old.number[0] != entry.number[0]), entry)
        else:
            kept = tuple(sorted({old.number: old for old in (*before, entry)}.values(), key=lambda old: old.number))
        keys = np.stack([old.key for old in kept])
        if not head.constant_query or len(kept) < 2 or not head.separate(keys, np.zeros(keys.shape[1])):
            return kept
        levels, slack = keys @ head.q_places[0], EQUAL * head.size
        reach = levels.max() - head.range - slack  # below it, no position makes up for the contents
        kept = tuple(old for old, level in zip(kept, levels, strict=True) if level >= reach)
        if head.prefers == "any" or np.ptp(levels[levels >= reach]) > slack:
            return kept
        return kept[-1:] if head.prefers == "last" else kept[:1]

    def _selected(self, head: HeadRule, entries: Keys, query: Floats) -> Floats:
        """Return the value of the key with the best score, a letter's or a pad's, whatever the positions are."""
        slack = EQUAL * head.size
        pads = head.pad_scores(query)
        best_pad = pads.max(axis=1)
        winning_pads = head.pad_values[np.any(pads >= best_pad[:, None] - slack, axis=0)]
        if not entries:
            return _agreed(winning_pads)
        keys = np.stack([entry.key for entry in entries])
        if not head.separate(keys, query):
            raise Undecided(MIXED)
        levels = head.levels(keys, query)
        top = levels.max()
        ahead = levels >= top - slack
        below = levels[~ahead]
        if len(below) and top - below.max() <= head.range + slack:
            raise Undecided("positions may outweigh contents in the scores of a head")
        there = head.seen.any(axis=1)
        low, high = (top + head.low)[there], (top + head.high)[there]
        winners = [entry for entry, on_top in zip(entries, ahead, strict=True) if on_top]
        chosen = winners if head.prefers == "any" else [winners[-1 if head.prefers == "last" else 0]]
        if (best_pad[there] < low - slack).all():
            return _agreed(np.stack([entry.value for entry in chosen]))
        if (best_pad[there] > high + slack).all():
            return _agreed(winning_pads)
        return _agreed(np.vstack([*(entry.value for entry in winners), head.pad_values]))

    def _pad_value(self, head: HeadRule, entry: RememberedKey, query: Floats, length: int, hidden: bool) -> Floats:
        """Return the value of the pads where no letter is far enough back: they must win, and agree.

        Elsewhere they are `hidden`: a letter must win.
        """
        row = min(length, len(head.q_places) - 1)
        scores, slack = head.pad_scores(query)[row], EQUAL * head.size
        letter = head.high[row] + head.levels(entry.key, query)  # all letters have the same level
        if scores.max() >= letter - slack if hidden else letter >= scores.max() - slack:
            raise Undecided("a pad may win over a letter that is far enough back, or a letter over the pads")
        return np.zeros_like(head.b_v) if hidden else _agreed(head.pad_values[scores >= scores.max() - slack])


def _agreed(values: Floats) -> Floats:
    """Return the one value of several keys that share the weight; `Undecided` where they differ."""
    if np.ptp(values, axis=0).max(initial=0.0) > GRID:
        raise Undecided("keys of different values share the weight of a head")
    return np.asarray(values[0])


def _read_later(sources: Ints, length: int) -> list[int]:
    """Return the positions up to an index that positions behind it read."""
    later = sources[length + 1 :]
    return sorted(set(later[(later >= 0) & (later <= length)].tolist()))
