r"""Letters that an answer can depend on: a sound analysis of nets with hard attention under restrictions.

In the spirit of Hahn (2020, arXiv 1906.06755), whose proof fixes some letters so that hard attention attends to few of
the others; here such letters are searched for, net by net. A *restriction* fixes the letters at some positions of a
word and leaves the others free. `activations.py` gives the vectors (*types*) that may then occur at each position, and
the keys that may win. The *cone* of a position is a set of free positions such that letters outside of it can be
changed without changing the vector at the position:

- at the embedding: the position itself, if it is free;
- after a block: empty, if only one type may occur there; else the cone before the block, and those of all keys that
  may win a query whose result is not fixed.

If a free position is not in the cone of the answer, then the letter there makes no difference, whatever the letters at
the other free positions. A net that recognizes PARITY has no such position, under any restriction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vitrify.bounds.activations import Answer, ExactNet, possible
from vitrify.bounds.supported import refuse_length
from vitrify.errors import InputError

Restriction = Mapping[int, int]  # from positions of a word, counted from 0, to letters, counted from 1
Consistent = Callable[[Restriction], bool]


@dataclass(frozen=True)
class Cone:
    """Positions that the answer to words under a restriction may depend on, and the possible answers."""

    fixed: Restriction
    free: frozenset[int]
    depends: frozenset[int]
    answers: frozenset[Answer]

    @property
    def irrelevant(self) -> frozenset[int]:
        """Free positions whose letters never change the answer."""
        return self.free - self.depends


def cone(exact: ExactNet, length: int, fixed: Restriction, free: Sequence[int] | None = None) -> Cone:
    """Return the cone of the answer at the last position of words of one length, some of whose letters are fixed.

    The other positions hold letters of `free`, by default any.
    """
    net, pads = exact.net, exact.net.pads
    letters = range(1, len(net.inputs))
    odd = [
        f"{letter} at {position}"
        for position, letter in fixed.items()
        if position not in range(length) or letter not in letters
    ]
    refuse_length(net, length)
    if odd:
        raise InputError(
            f"a restriction fixes letters 1 to {len(letters)} at positions 0 to {length - 1}, not {', '.join(odd)}"
        )
    some = tuple(letters if free is None else free)
    choices = [(0,)] * pads + [(fixed[at],) if at in fixed else some for at in range(length)]
    layers, types = possible(exact, choices)
    nothing: frozenset[int] = frozenset()
    cones = [frozenset({at - pads}) if len(tokens) > 1 else nothing for at, tokens in enumerate(choices)]
    for index, layer in enumerate(layers):
        after = layers[index + 1].before if index + 1 < len(layers) else types
        cones_after = []
        for at, kinds in enumerate(after):
            contests = [contest for head in layer.contests for contest in head[at].values()]
            seen = [cones[c.position] for contest in contests if len(contest.values) > 1 for c in contest.candidates]
            cones_after.append(cones[at].union(*seen) if len(kinds) > 1 else nothing)
        cones = cones_after
    answers = frozenset(exact.answer(kind) for kind in types[-1])
    open_positions = frozenset(range(length)) - set(fixed)
    return Cone(dict(fixed), open_positions, cones[-1] if len(answers) > 1 else nothing, answers)


def blind_spot(exact: ExactNet, length: int, consistent: Consistent | None = None) -> Cone | None:
    """Return a restriction under which some free position is provably irrelevant, by a greedy search.

    Each step fixes the letter that leaves the smallest cone; only restrictions that `consistent` allows are tried. The
    result is None if all positions are fixed before one becomes irrelevant.
    """
    current = cone(exact, length, {})
    while not current.irrelevant:
        candidates = [
            cone(exact, length, fixed)
            for position in sorted(current.free)
            for letter in range(1, len(exact.net.inputs))
            if (fixed := {**current.fixed, position: letter}) and (consistent is None or consistent(fixed))
        ]
        if len(current.free) < 2 or not candidates:
            return None
        current = min(candidates, key=lambda candidate: len(candidate.depends))
    return current
