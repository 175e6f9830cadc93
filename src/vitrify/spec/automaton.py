r"""A complete deterministic finite automaton, with the plain semantics that all built from it is checked against.

An automaton is $(Q, \Sigma, \delta, q_0, F)$: states, letters, a total map $\delta : Q \times \Sigma \to Q$, an initial
state and a set of accepting states. On a word $w_1 \dots w_T$ it passes through the $T + 1$ states
$q_t = \delta(q_{t-1}, w_t)$, and accepts when $q_T \in F$.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from vitrify.errors import InputError, SpecError
from vitrify.spec.automaton_checks import Triple, named_problems, table_problems
from vitrify.spec.display import Displayed

if TYPE_CHECKING:
    from jaxtyping import Int

S = TypeVar("S")


@dataclass(frozen=True, repr=False)
class Automaton(Displayed):
    """A complete deterministic finite automaton over arbitrary tokens.

    `transitions[state][letter]` is the index of the next state; `initial` and `accepting` are state indices too
    (`initial_state` and `accepting_states` give their names).

    >>> parity = Automaton.from_dict(
    ...     states=["even", "odd"], alphabet=["0", "1"], initial="even", accepting=["even"],
    ...     transitions={"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd", "1": "even"}})
    >>> parity.run(["1", "0", "1"])
    ('even', 'odd', 'odd', 'even')
    >>> parity.accepts("101")
    True
    >>> print(parity)
               0     1
    →*even  even   odd
       odd   odd  even
    """

    suffix: ClassVar[str] = ".automaton.json"
    SIZES: ClassVar[tuple[str, ...]] = ("states", "alphabet", "initial_state", "accepting")

    states: tuple[str, ...]
    alphabet: tuple[str, ...]
    transitions: tuple[tuple[int, ...], ...]
    initial: int
    accepting: frozenset[int]

    DRAWN = 64  # states × letters up to which repr is code that rebuilds the automaton

    def __post_init__(self) -> None:
        table = tuple(tuple(operator.index(target) for target in row) for row in self.transitions)
        object.__setattr__(self, "states", tuple(self.states))
        object.__setattr__(self, "alphabet", tuple(self.alphabet))
        object.__setattr__(self, "transitions", table)
        object.__setattr__(self, "initial", operator.index(self.initial))
        object.__setattr__(self, "accepting", frozenset(operator.index(state) for state in self.accepting))
        problems = table_problems(self.states, self.alphabet, self.transitions, self.initial, self.accepting)
        if problems:
            raise SpecError(problems)

    # Ways in

    @classmethod
    def from_dict(
        cls,
        *,
        states: Iterable[str],
        alphabet: Iterable[str],
        transitions: Mapping[str, Mapping[str, str]],
        initial: str,
        accepting: Iterable[str],
    ) -> Automaton:
        """The automaton with these names; `transitions[state][letter]` names the next state."""
        triples = [(state, letter, target) for state, row in transitions.items() for letter, target in row.items()]
        return cls.from_triples(states=states, alphabet=alphabet, triples=triples, initial=initial, accepting=accepting)

    @classmethod
    def from_triples(
        cls,
        *,
        states: Iterable[str],
        alphabet: Iterable[str],
        triples: Iterable[Triple],
        initial: str,
        accepting: Iterable[str],
    ) -> Automaton:
        """The automaton with these (state, letter, next state) triples, one for each state and letter."""
        names, letters, moves, ends = tuple(states), tuple(alphabet), tuple(triples), tuple(accepting)
        problems = named_problems(names, letters, moves, initial, ends)
        if problems:
            raise SpecError(problems)
        number = {name: index for index, name in enumerate(names)}
        target = {(source, letter): number[end] for source, letter, end in moves}
        table = tuple(tuple(target[name, letter] for letter in letters) for name in names)
        return cls(names, letters, table, number[initial], frozenset(number[end] for end in ends))

    @classmethod
    def explore(
        cls,
        start: S,
        alphabet: Iterable[str],
        step: Callable[[S, str], S],
        accepts: Callable[[S], bool],
        name: Callable[[S], str] | None = None,
    ) -> Automaton:
        """The automaton of everything that `step` reaches from `start`, in breadth-first order.

        States are named by `name`, or "0", "1", … in the order found; `start` is the initial state. The order depends
        only on the alphabet's order, so equal languages give equal bytes once they are minimised.

        >>> Automaton.explore(0, ["+1", "+2"], lambda r, letter: (r + int(letter)) % 3, lambda r: r == 0).transitions
        ((1, 2), (2, 0), (0, 1))
        """
        letters = tuple(alphabet)
        number, order, table = {start: 0}, [start], []
        for state in order:  # grows while it is walked
            row = []
            for letter in letters:
                target = step(state, letter)
                if target not in number:
                    number[target] = len(order)
                    order.append(target)
                row.append(number[target])
            table.append(tuple(row))
        names = tuple(str(index) if name is None else name(state) for index, state in enumerate(order))
        return cls(names, letters, tuple(table), 0, frozenset(number[state] for state in order if accepts(state)))

    @classmethod
    def from_regex(cls, expression: str, alphabet: Iterable[str] | None = None) -> Automaton:
        """The minimal complete automaton of a regular expression; `vitrify.spec.automaton_regex` lists the operators.

        >>> print(Automaton.from_regex("(a|b)*abb"))
             a  b
        → 0  1  0
          1  1  2
          2  1  3
         *3  1  0
        """
        from vitrify.spec.automaton_regex import compile_regex

        regex = compile_regex(expression, None if alphabet is None else tuple(alphabet))
        return cls.explore(regex.start, regex.alphabet, regex.step, regex.accepts)

    @classmethod
    def read(cls, path: str | Path) -> Automaton:
        """The automaton in a `.automaton.json` or `.regex` file; every problem of the file is told at once."""
        from vitrify.spec.automaton_files import read_json, read_regex
        from vitrify.spec.files import refuse_suffix

        path = Path(path)
        if path.name.endswith(".automaton.json"):
            draft = read_json(path)
            return cls.from_triples(
                states=draft.states,
                alphabet=draft.alphabet,
                triples=draft.triples,
                initial=draft.initial,
                accepting=draft.accepting,
            )
        if path.suffix == ".regex":
            regex = read_regex(path)
            return cls.explore(regex.start, regex.alphabet, regex.step, regex.accepts)
        raise refuse_suffix(path, ".automaton.json", ".regex")

    def write(self, path: str | Path) -> None:
        """Save as `.automaton.json`; the same automaton always gives the same bytes."""
        from vitrify.spec.automaton_files import json_text
        from vitrify.spec.files import refuse_suffix

        path = Path(path)
        if not path.name.endswith(".automaton.json"):
            raise refuse_suffix(path, ".automaton.json")
        accepting, transitions = self.accepting_states, self.named_transitions()
        text = json_text(self.states, self.alphabet, transitions, self.initial_state, accepting)
        path.write_bytes(text.encode())

    # What it does: the oracle

    def ids(self, word: Sequence[str]) -> tuple[int, ...]:
        """The letter indices of a word."""
        number = self._letter_number
        unknown = [letter for letter in dict.fromkeys(word) if letter not in number]
        if unknown:
            hint = "; give the word as a list of letters" if isinstance(word, str) else ""
            raise InputError(
                f"a word may hold the letters {_listing(self.alphabet)} only; "
                f"unknown: {', '.join(map(repr, unknown))}{hint}"
            )
        return tuple(number[letter] for letter in word)

    def run(self, word: Sequence[str]) -> tuple[str, ...]:
        """The states passed through, the initial one first: one more than the word has letters."""
        path = [self.initial]
        for letter in self.ids(word):
            path.append(self.transitions[path[-1]][letter])
        return tuple(self.states[state] for state in path)

    def accepts(self, word: Sequence[str]) -> bool:
        """Whether the word ends in an accepting state."""
        state = self.initial
        for letter in self.ids(word):
            state = self.transitions[state][letter]
        return state in self.accepting

    def run_batch(self, letters: Int[np.ndarray, "batch pos"]) -> Int[np.ndarray, "batch pos+1"]:
        """The state indices passed through on many words of one length, given as letter indices."""
        letters = np.asarray(letters)
        if letters.ndim != 2 or (letters.size and not np.issubdtype(letters.dtype, np.integer)):
            raise InputError(
                f"letters must be whole numbers in an array [words, time], got {letters.dtype} {letters.shape}"
            )
        wrong = np.unique(letters[(letters < 0) | (letters >= len(self.alphabet))])
        if wrong.size:
            raise InputError(f"letter indices run from 0 to {len(self.alphabet) - 1}; unknown: {_listing(wrong)}")
        words, time = letters.shape
        path = np.full((words, time + 1), self.initial, dtype=np.int64)
        for t in range(time):
            path[:, t + 1] = self.table[path[:, t], letters[:, t].astype(np.int64)]
        return path

    # What it is

    @property
    def initial_state(self) -> str:
        """The name of the initial state."""
        return self.states[self.initial]

    @property
    def accepting_states(self) -> tuple[str, ...]:
        """The names of the accepting states, in the order of `states`."""
        return tuple(self.states[state] for state in sorted(self.accepting))

    @cached_property
    def table(self) -> Int[np.ndarray, "state letter"]:
        """The transitions as a read-only array."""
        table = np.array(self.transitions, dtype=np.int64)
        table.flags.writeable = False
        return table

    @cached_property
    def _letter_number(self) -> dict[str, int]:
        return {letter: index for index, letter in enumerate(self.alphabet)}

    def named_transitions(self) -> dict[str, dict[str, str]]:
        """The transitions by name: what `from_dict` takes."""
        return {
            state: {letter: self.states[target] for letter, target in zip(self.alphabet, row, strict=True)}
            for state, row in zip(self.states, self.transitions, strict=True)
        }

    def maps(self) -> dict[str, tuple[int, ...]]:
        """The action of each letter: entry $q$ is the state that the letter sends $q$ to."""
        return {letter: tuple(row[k] for row in self.transitions) for k, letter in enumerate(self.alphabet)}

    def is_group(self) -> bool:
        """Whether every letter permutes the states."""
        return all(len(set(action)) == len(self.states) for action in self.maps().values())

    def is_commutative(self) -> bool:
        """Whether the order of the letters never matters: all actions commute."""
        actions = list(self.maps().values())
        return all(
            first[second[state]] == second[first[state]]
            for k, first in enumerate(actions)
            for second in actions[:k]
            for state in range(len(self.states))
        )

    # Smaller ones

    def reachable(self) -> Automaton:
        """The same automaton without the states that no word reaches; names and order stay."""
        kept, waiting = {self.initial}, [self.initial]
        while waiting:
            fresh = set(self.transitions[waiting.pop()]) - kept
            kept |= fresh
            waiting += fresh
        order = sorted(kept)
        number = {state: index for index, state in enumerate(order)}
        return Automaton(
            states=tuple(self.states[state] for state in order),
            alphabet=self.alphabet,
            transitions=tuple(tuple(number[target] for target in self.transitions[state]) for state in order),
            initial=number[self.initial],
            accepting=frozenset(number[state] for state in self.accepting & kept),
        )

    def minimised(self) -> Automaton:
        """The smallest automaton that accepts the same words, its states numbered breadth-first from "0"."""
        from automata.fa.dfa import DFA

        letters = range(len(self.alphabet))
        large = DFA(
            states=set(range(len(self.states))),
            input_symbols=set(self.alphabet),
            transitions={
                state: {self.alphabet[letter]: row[letter] for letter in letters}
                for state, row in enumerate(self.transitions)
            },
            initial_state=self.initial,
            final_states=set(self.accepting),
        )
        small = large.minify()
        start: int = small.initial_state
        moves: Mapping[Any, Mapping[str, int]] = small.transitions
        return Automaton.explore(
            start,
            self.alphabet,
            step=lambda state, letter: moves[state][letter],
            accepts=lambda state: state in small.final_states,
        )

    # How it prints

    def __repr__(self) -> str:
        if len(self.states) * len(self.alphabet) > self.DRAWN:
            sizes = f"{len(self.states)} states, {len(self.alphabet)} letters, {len(self.accepting)} accepting"
            return f"<Automaton: {sizes}, initial {self.initial_state!r}>"
        accepting = f"{{{', '.join(map(str, sorted(self.accepting)))}}}" if self.accepting else ""
        return (
            f"Automaton(states={self.states!r}, alphabet={self.alphabet!r}, transitions={self.transitions!r}, "
            f"initial={self.initial}, accepting=frozenset({accepting}))"
        )

    def __str__(self) -> str:
        if len(self.states) * len(self.alphabet) > self.DRAWN:
            return repr(self)
        left = max(map(len, self.states))
        width = max(map(len, self.states + self.alphabet)) + 2
        lines = [" " * (left + 2) + "".join(letter.rjust(width) for letter in self.alphabet)]
        for index, (state, row) in enumerate(zip(self.states, self.transitions, strict=True)):
            marks = ("→" if index == self.initial else " ") + ("*" if index in self.accepting else " ")
            lines.append(marks + state.rjust(left) + "".join(self.states[target].rjust(width) for target in row))
        return "\n".join(lines)


def _listing(items: Iterable[object], shown: int = 20) -> str:
    texts = [str(item) for item in items]
    return ", ".join(texts[:shown]) + (f" … ({len(texts)} in all)" if len(texts) > shown else "")
