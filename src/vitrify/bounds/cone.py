r"""Which letters can an answer depend on? A sound analysis of nets with hard attention under restrictions.

In the spirit of Hahn (2020, arXiv 1906.06755), whose proof fixes some letters so that hard attention looks at few of
the others; here the letters are looked for, net by net. A *restriction* fixes the letters at some places of a word and
leaves the others free. `activations.py` gives the types that may stand at each position then, and the keys that may
win. The *cone* of a position is a set of free places outside of which letters can be changed without changing what
stands at the position:

- of the embedding: the place itself, if it is free;
- after a block: nothing, if only one type may stand there; else the cone before the block, and those of all keys that
  may win some query with more than one possible value.

If a free place is not in the cone of the answer, then no letter there makes a difference, whatever stands at the other
free places. A net that recognises PARITY has no such place, at no restriction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vitrify.bounds.activations import Answer, ExactNet, possible
from vitrify.bounds.plain import refuse_length
from vitrify.errors import InputError

Restriction = Mapping[int, int]  # from places of a word, counted from 0, to letters, counted from 1
Consistent = Callable[[Restriction], bool]


@dataclass(frozen=True)
class Cone:
    """What the answer to words under a restriction may depend on, and what it may be."""

    fixed: Restriction
    free: frozenset[int]
    depends: frozenset[int]
    answers: frozenset[Answer]

    @property
    def irrelevant(self) -> frozenset[int]:
        """The free places whose letters make no difference to the answer, whatever stands at the others."""
        return self.free - self.depends


def cone(exact: ExactNet, length: int, fixed: Restriction) -> Cone:
    """The cone of the answer at the last position of words of one length, some of whose letters are fixed."""
    net, pads = exact.net, exact.net.pads
    letters = range(1, len(net.inputs))
    odd = [
        f"{letter} at {place}" for place, letter in fixed.items() if place not in range(length) or letter not in letters
    ]
    refuse_length(net, length)
    if odd:
        raise InputError(
            f"a restriction fixes letters 1 to {len(letters)} at places 0 to {length - 1}, not {', '.join(odd)}"
        )
    choices = [(0,)] * pads + [(fixed[at],) if at in fixed else tuple(letters) for at in range(length)]
    layers, stands = possible(exact, choices)
    nothing: frozenset[int] = frozenset()
    cones = [frozenset({at - pads}) if len(tokens) > 1 else nothing for at, tokens in enumerate(choices)]
    for index, layer in enumerate(layers):
        after = layers[index + 1].before if index + 1 < len(layers) else stands
        grown = []
        for at, kinds in enumerate(after):
            contests = [contest for head in layer.contests for contest in head[at].values()]
            seen = [cones[c.position] for contest in contests if len(contest.values) > 1 for c in contest.candidates]
            grown.append(cones[at].union(*seen) if len(kinds) > 1 else nothing)
        cones = grown
    answers = frozenset(exact.answer(kind) for kind in stands[-1])
    free = frozenset(range(length)) - set(fixed)
    return Cone(dict(fixed), free, cones[-1] if len(answers) > 1 else nothing, answers)


def blind_spot(exact: ExactNet, length: int, consistent: Consistent | None = None) -> Cone | None:
    """A restriction under which some free place is provably irrelevant, found by fixing one letter after the other.

    Each step fixes the letter that leaves the smallest cone, counted with the places that are fixed; only restrictions
    that `consistent` allows are tried. None if all places are fixed before one becomes irrelevant.
    """
    now = cone(exact, length, {})
    while not now.irrelevant:
        tried = [
            cone(exact, length, fixed)
            for place in sorted(now.free)
            for letter in range(1, len(exact.net.inputs))
            if (fixed := {**now.fixed, place: letter}) and (consistent is None or consistent(fixed))
        ]
        if len(now.free) < 2 or not tried:
            return None
        now = min(tried, key=lambda found: len(found.depends))
    return now
