"""Words that together take every step of a spec: from each of its states by each letter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.spec.kinds import PrefixStates

MAX_STATES = 1 << 9  # of a spec that are listed
CONTINUED = 6  # random letters after a step, which show what it led to

Word = tuple[int, ...]  # input ids


@dataclass(frozen=True)
class Coverage:
    """Words that take steps of a spec, how many different steps they take, and how many there are.

    `total` is None where the spec has too many states to be listed.
    """

    words: tuple[Word, ...]
    taken: int
    total: int | None


def covering_words(
    states: PrefixStates, letters: Sequence[str], longest: int, count: int, rng: np.random.Generator
) -> Coverage:
    """Return at most `count` words up to a length that take as many steps of a spec as possible.

    Each is a shortest word to a state, one more letter, and some random letters.

    >>> flip = PrefixStates(0, lambda state, letter: 1 - state if letter == "b" else state)
    >>> covering_words(flip, "ab", 5, 10, np.random.default_rng(0)).total
    4
    """
    reached: dict[Hashable, Word] = {states.start: ()}
    steps: list[tuple[Word, Hashable]] = []  # the word of each step, and the state after it
    level: list[tuple[Hashable, Word]] = [(states.start, ())]
    while level and len(level[0][1]) < longest and len(reached) <= MAX_STATES:
        longer = []
        for state, word in level:
            for token, letter in enumerate(letters, start=1):
                if (after := states.step(state, letter)) is None:
                    continue
                steps.append(((*word, token), after))
                if after not in reached:
                    reached[after] = (*word, token)
                    longer.append((after, (*word, token)))
        level = longer
    total = len(steps) if len(reached) <= MAX_STATES else None
    tree = set(reached.values())
    last = {state for state, _ in level}
    leaves = [step for step in steps if step[0] not in tree or step[1] in last]
    ends = leaves or steps  # a step of the tree is a prefix of those from the state that it leads to
    picked = sorted(rng.permutation(len(ends))[:count].tolist())
    words = tuple(_continued(word, state, states, letters, longest, rng) for word, state in (ends[i] for i in picked))
    prefixes = {word[:end] for word in words for end in range(1, len(word) + 1)}
    return Coverage(words, sum(word in prefixes for word, _ in steps), total)


def _continued(
    word: Word, state: Hashable, states: PrefixStates, letters: Sequence[str], longest: int, rng: np.random.Generator
) -> Word:
    """Return a word with some random letters that its language allows."""
    for _ in range(min(CONTINUED, longest - len(word))):
        options = [(i, after) for i, x in enumerate(letters, start=1) if (after := states.step(state, x)) is not None]
        if not options:
            break
        token, state = options[int(rng.integers(len(options)))]
        word = (*word, token)
    return word
