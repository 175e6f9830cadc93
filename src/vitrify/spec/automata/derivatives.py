r"""Derivatives of regular expressions, which are the states of their automata; and the minimization of an automaton.

The derivative $\partial_a r$ of an expression $r$ by a letter $a$ matches the words $w$ such that $r$ matches $aw$
(Brzozowski 1964). With $\nu(r)$ for "$r$ matches the empty word":

$$\partial_a(rs) = \partial_a(r)\,s \;|\; \partial_a(s) \text{ if } \nu(r) \qquad
\partial_a(r\{m,n\}) = \partial_a(r)\,r\{m-1,n-1\}$$
$$\partial_a(r\,\&\,s) = \partial_a(r)\,\&\,\partial_a(s) \qquad
\partial_a(r \wedge s) = \partial_a(r) \wedge s \;|\; r \wedge \partial_a(s) \text{ (shuffle)}$$

Up to order and repetition in $|$, an expression has finitely many derivatives of derivatives: they are the states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vitrify.errors import SpecError
from vitrify.limits import Meter

Node = tuple[object, ...]
NONE, EMPTY = 0, 1  # the expressions that match no word, and the empty word only
MAX_PARTS = 2_000_000  # of all expressions on the way to an automaton: a few seconds


class Expressions:
    """A pool of expressions, each stored once and identified by its number; letters are numbers, too.

    >>> pool = Expressions()
    >>> ab = pool.combined(".", [pool.letters({0}), pool.letters({1})])
    >>> pool.derivative(ab, 0) == pool.letters({1}), pool.derivative(ab, 1) == NONE
    (True, True)
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = [("none",), ("empty",)]
        self._numbers: dict[Node, int] = {node: number for number, node in enumerate(self._nodes)}
        self._nullable = [False, True]
        self._derivatives: dict[tuple[int, int], int] = {}
        self._meter = Meter(MAX_PARTS, _too_large)

    def _number(self, node: Node, nullable: bool) -> int:
        if node not in self._numbers:
            self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
            self._nullable.append(nullable)
        return self._numbers[node]

    def _parts(self, number: int, operator: str) -> tuple[int, ...]:
        """Return the operands if the outermost operator of an expression is this one, or else the expression itself."""
        node = self._nodes[number]
        return node[1:] if node[0] == operator else (number,)  # type: ignore[return-value]

    def nullable(self, number: int) -> bool:
        """Return True if an expression matches the empty word."""
        return self._nullable[number]

    def letters(self, chosen: Iterable[int]) -> int:
        """Return the expression that matches one letter out of several."""
        options = tuple(sorted(chosen))
        return self._number(("letters", *options), nullable=False) if options else NONE

    def combined(self, operator: str, numbers: Iterable[int]) -> int:
        """Return `rs…` (.), `r|s|…`, `r&s&…` or `r^s^…`; a union in front of a sequence is distributed.

        So equal alternatives become one.
        """
        neutral = {"|": NONE, "&": -1, "^": EMPTY, ".": EMPTY}[operator]
        parts = [part for number in numbers for part in self._parts(number, operator) if part != neutral]
        self._meter.add(1 + len(parts))
        if operator in "|&":
            parts = list(dict.fromkeys(parts))
        if NONE in parts:
            return NONE
        if len(parts) < 2:
            return parts[0] if parts else neutral
        if operator != ".":
            parts.sort()
        elif len(front := self._parts(parts[0], "|")) > 1:
            return self.combined("|", [self.combined(".", [part, *parts[1:]]) for part in front])
        nullable = map(self.nullable, parts)
        return self._number((operator, *parts), any(nullable) if operator == "|" else all(nullable))

    def repetition(self, number: int, low: int, high: int | None) -> int:
        """Return `r{low,high}`; without an upper bound if `high` is None."""
        if high == 0 or number == EMPTY or (number == NONE and low == 0):
            return EMPTY
        if number == NONE or (low, high) == (1, 1):
            return number
        return self._number(("{}", number, low, high), low == 0 or self.nullable(number))

    def derivative(self, number: int, letter: int) -> int:
        """Return the derivative by a letter; subexpressions are computed first, with a stack instead of recursion."""
        waiting = [number]
        while waiting:
            node = self._nodes[waiting[-1]]
            inner = node[1:2] if node[0] == "{}" else node[1:] if node[0] != "letters" else ()
            missing = [part for part in inner if (part, letter) not in self._derivatives]
            if missing:
                waiting += missing  # type: ignore[arg-type]
            else:
                self._derivatives[waiting.pop(), letter] = self._derived(node, letter)
        return self._derivatives[number, letter]

    def _derived(self, node: Node, letter: int) -> int:
        operator, *parts = node
        if operator in ("none", "empty", "letters"):
            return EMPTY if letter in parts else NONE
        if operator == "{}":
            inner, low, high = parts
            rest = self.repetition(inner, max(low - 1, 0), None if high is None else high - 1)  # type: ignore[arg-type,operator]
            return self.combined(".", [self._derivatives[inner, letter], rest])  # type: ignore[index]
        known = [self._derivatives[part, letter] for part in parts]  # type: ignore[index]
        operands: list[int] = parts  # type: ignore[assignment]
        if operator in ("|", "&"):
            return self.combined(str(operator), known)
        if operator == "^":
            turns = [[*operands[:i], d, *operands[i + 1 :]] for i, d in enumerate(known)]
            return self.combined("|", [self.combined("^", turn) for turn in turns])
        ends = next((i for i, part in enumerate(operands) if not self.nullable(part)), len(operands) - 1)
        return self.combined("|", [self.combined(".", [known[i], *operands[i + 1 :]]) for i in range(ends + 1)])


def _too_large(parts: int) -> SpecError:
    message = f"the automaton of the expression is too large: its states have more than {parts:,} parts"
    return SpecError([f"{message}; repeat less often, or write the automaton itself (.automaton.json)"])


def equivalence(table: Sequence[Sequence[int]], *answers: Iterable[int]) -> list[int]:
    """Return the equivalence class of each state: no word distinguishes two states of one class (Hopcroft 1971).

    Each of `answers` holds the states with one answer, such as the accepting ones; all others share another answer.

    >>> equivalence([[1, 2], [1, 1], [2, 2]], [1, 2])
    [1, 0, 0]
    """
    letters = range(len(table[0]) if table else 0)
    sources: list[list[list[int]]] = [[[] for _ in table] for _ in letters]
    for state, row in enumerate(table):
        for letter in letters:
            sources[letter][row[letter]].append(state)
    groups = [set(states) for states in answers]
    blocks = [block for block in (*groups, set(range(len(table))).difference(*groups)) if block]
    number = [0] * len(table)
    for index, block in enumerate(blocks):
        for state in block:
            number[state] = index
    waiting = set(range(len(blocks)))
    while waiting:
        splitter = [*blocks[waiting.pop()]]
        for letter in letters:
            entered: dict[int, set[int]] = {}
            for state in splitter:
                for source in sources[letter][state]:
                    entered.setdefault(number[source], set()).add(source)
            for index, inside in entered.items():
                outside = blocks[index] - inside
                if not outside:
                    continue
                small, blocks[index] = (inside, outside) if len(inside) <= len(outside) else (outside, inside)
                waiting.add(len(blocks))
                for state in small:
                    number[state] = len(blocks)
                blocks.append(small)
    return number
