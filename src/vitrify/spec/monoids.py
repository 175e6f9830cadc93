"""The transition monoid of an automaton: all maps of its states that words make."""

from __future__ import annotations

from vitrify.errors import BuildRefused
from vitrify.spec.automaton import Automaton
from vitrify.spec.groups import then

Map = tuple[int, ...]
MOST_MAPS = 100_000


def transition_monoid(automaton: Automaton) -> tuple[Map, ...]:
    """The maps of all words, the empty one first, in order of length; of a minimal automaton, the syntactic monoid.

    >>> from vitrify.spec.automata import flip_flop
    >>> transition_monoid(flip_flop())
    ((0, 1), (0, 0), (1, 1))
    """
    start = tuple(range(len(automaton.states)))
    letters = list(dict.fromkeys(automaton.maps().values()))
    found = {start: None}
    queue = [start]
    for element in queue:  # grows while it is walked
        for letter in letters:
            after = then(element, letter)
            if after not in found:
                found[after] = None
                queue.append(after)
        if len(queue) > MOST_MAPS:
            raise BuildRefused(f"the words of this automaton make more than {MOST_MAPS} different maps of its states")
    return tuple(found)
