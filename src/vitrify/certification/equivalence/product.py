r"""Equivalence of a network and its spec for every word, by the pairs of states that words lead to.

A *machine* reads a word letter by letter; its memory determines all later answers. If the states of the spec do so,
too (`PrefixStates`), then two words that lead to the same pair (memory, state) need not be told apart. So a search
over all reachable pairs judges every word: where it ends, the network is right on all of them, and a wrong answer comes
with a shortest word that leads to it. Of the letters that the network does not tell apart and that lead the spec to the
same state, one is tried: all of them lead to the same memory, the same logits and the same right answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import Oracle
from vitrify.spec.kinds import PrefixStates

M = TypeVar("M")
Word = tuple[int, ...]  # input ids
MAX_PAIRS = 1 << 15  # of memory and state; more are not searched
STEPS_PER_PAIR = 8  # steps by a letter that are tried for every pair that may be searched


class Machine(Protocol[M]):
    """A network that reads letter by letter; `longest` is the length up to which it is this machine, None: any."""

    longest: int | None

    def start(self) -> tuple[M, Floats]:
        """Return the memory before the first letter, and the logits there."""

    def steps(self, memories: Sequence[M], tokens: Sequence[int]) -> tuple[list[M], Floats]:
        """Return the memories after one more token each, and the logits [word, symbol] there."""

    def key(self, memory: M) -> Hashable:
        """Return a value that is the same for memories with the same future."""

    def letter(self, token: int) -> Hashable:
        """Return a value that is the same for tokens which the network does not tell apart."""


@dataclass(frozen=True)
class SearchResult:
    """Result of a search: pairs of states and steps judged, the longest word needed, and a word that is wrong."""

    pairs: int
    steps: int
    longest: int
    witness: Word | None = None


def search(
    machine: Machine[M], oracle: Oracle, states: PrefixStates, letters: Sequence[str], max_pairs: int = MAX_PAIRS
) -> SearchResult:
    """Judge the answer at every reachable pair of memory and state; `Undecided` where there are too many.

    `letters` are the symbols of tokens 1, 2, …
    """
    memory, logits = machine.start()
    level: list[tuple[M, Hashable, Word]] = [(memory, states.start, ())]
    seen: set[tuple[Hashable, Hashable]] = {(machine.key(memory), states.start)}
    wrong = first_wrong(oracle, [()], logits[None])
    done, longest = 0, 0
    classes = [machine.letter(token) for token in range(1, len(letters) + 1)]
    while wrong is None and level and (machine.longest is None or longest < machine.longest):
        moves: list[tuple[M, int, Hashable, Word]] = [
            (memory, token, after, (*word, token))
            for memory, state, word in level
            for (_, after), token in _moves(states, state, letters, classes).items()
        ]
        done += len(moves)
        if done > STEPS_PER_PAIR * max_pairs:
            raise Undecided(f"more than {STEPS_PER_PAIR * max_pairs:,} steps of network and spec together")
        if not moves:
            break
        memories, logits = machine.steps([move[0] for move in moves], [move[1] for move in moves])
        wrong = first_wrong(oracle, [move[3] for move in moves], logits)
        longest += 1
        level = []
        for memory, (_, _, state, word) in zip(memories, moves, strict=True):
            pair = (machine.key(memory), state)
            if pair not in seen:
                seen.add(pair)
                level.append((memory, state, word))
        if len(seen) > max_pairs:
            raise Undecided(f"more than {max_pairs:,} pairs of states of network and spec")
    return SearchResult(len(seen), done, longest, wrong)


def _moves(
    states: PrefixStates, state: Hashable, letters: Sequence[str], classes: Sequence[Hashable]
) -> dict[tuple[Hashable, Hashable], int]:
    """Return one token for each class of letters and state of the spec that a letter leads to."""
    moves: dict[tuple[Hashable, Hashable], int] = {}
    for token, (letter, kind) in enumerate(zip(letters, classes, strict=True), start=1):
        after = states.step(state, letter)
        if after is not None:
            moves.setdefault((kind, after), token)
    return moves


def first_wrong(oracle: Oracle, words: list[Word], logits: Floats) -> Word | None:
    """Return the first word of a length whose answer is wrong, or None."""
    length = len(words[0])
    batch: Ints = np.array(words, dtype=np.int64).reshape(len(words), length)
    known = oracle.known(batch)[:, -1:]
    wrong = np.flatnonzero(oracle.judged(known, logits[:, None])[:, 0] > oracle.tolerance())
    return words[int(wrong[0])] if len(wrong) else None
