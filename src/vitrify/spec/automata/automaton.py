r"""A complete deterministic finite automaton, and the reference semantics that nets built from it are checked against.

An automaton is $(Q, \Sigma, \delta, q_0, F)$: states, letters, a total map $\delta : Q \times \Sigma \to Q$, an initial
state and a set of accepting states. On a word $w_1 \dots w_T$ it passes through the $T + 1$ states
$q_t = \delta(q_{t-1}, w_t)$, and accepts when $q_T \in F$.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from vitrify.arrays import Int
from vitrify.errors import InputError
from vitrify.spec.automata.checks import Transitions, named_problems, table_problems, triples_of
from vitrify.spec.automata.groups import commute
from vitrify.spec.formats.text import refuse_any, refuse_suffix
from vitrify.spec.graphs import reached
from vitrify.spec.kinds import ANSWERS, Kind, Meaning, PrefixStates, Spec

if TYPE_CHECKING:
    from vitrify.spec.automata.legal import LegalWords

S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True, repr=False)
class Automaton(Spec):
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

    MAX_SHOWN = 64  # states × letters of an automaton whose repr is code that rebuilds it

    def __post_init__(self) -> None:
        table = tuple(tuple(operator.index(target) for target in row) for row in self.transitions)
        object.__setattr__(self, "states", tuple(self.states))
        object.__setattr__(self, "alphabet", tuple(self.alphabet))
        object.__setattr__(self, "transitions", table)
        object.__setattr__(self, "initial", operator.index(self.initial))
        object.__setattr__(self, "accepting", frozenset(operator.index(state) for state in self.accepting))
        refuse_any(table_problems(self.states, self.alphabet, self.transitions, self.initial, self.accepting))

    # Constructors

    @classmethod
    def from_dict(
        cls,
        *,
        states: Iterable[str],
        alphabet: Iterable[str],
        transitions: Transitions,
        initial: str,
        accepting: Iterable[str],
    ) -> Automaton:
        """Return the automaton with these names; `transitions[state][letter]` is the name of the next state.

        They may also be given as (state, letter, next state) triples, one for each state and letter.
        """
        names, letters, edges, final = tuple(states), tuple(alphabet), triples_of(transitions), tuple(accepting)
        refuse_any(named_problems(names, letters, edges, initial, final))
        number = {name: index for index, name in enumerate(names)}
        target = {(source, letter): number[end] for source, letter, end in edges}
        table = tuple(tuple(target[name, letter] for letter in letters) for name in names)
        return cls(names, letters, table, number[initial], frozenset(number[name] for name in final))

    @classmethod
    def explore(
        cls,
        start: S,
        alphabet: Iterable[str],
        step: Callable[[S, str], S],
        accepts: Callable[[S], bool],
        name: Callable[[S], str] | None = None,
    ) -> Automaton:
        """Return the automaton of all states that `step` reaches from the initial state `start`, breadth first.

        States are named by `name`, by default "0", "1", … in order of discovery. This order depends only on the order
        of the alphabet, so two minimized automata of one language are equal.

        >>> Automaton.explore(0, ["+1", "+2"], lambda r, letter: (r + int(letter)) % 3, lambda r: r == 0).transitions
        ((1, 2), (2, 0), (0, 1))
        """
        letters = tuple(alphabet)
        graph = reached([start], lambda state: [step(state, letter) for letter in letters])
        number = {state: index for index, state in enumerate(graph)}
        names = tuple(str(index) if name is None else name(state) for state, index in number.items())
        table = tuple(tuple(number[target] for target in targets) for targets in graph.values())
        return cls(names, letters, table, 0, frozenset(index for state, index in number.items() if accepts(state)))

    @classmethod
    def from_regex(cls, expression: str, alphabet: Iterable[str] | None = None) -> Automaton:
        """Return the minimal automaton of a regular expression; `vitrify.spec.automata.regex` lists the operators.

        >>> print(Automaton.from_regex("(a|b)*abb"))
             a  b
        → 0  1  0
          1  1  2
          2  1  3
         *3  1  0
        """
        from vitrify.spec.automata.regex import compile_regex

        return compile_regex(expression, None if alphabet is None else tuple(alphabet))

    @classmethod
    def read(cls, path: str | Path) -> Automaton:
        """Read a `.automaton.json` or `.regex` file; a SpecError lists all problems of the file."""
        from vitrify.spec.automata.files import read_json, read_regex

        path = Path(path)
        if path.name.endswith(cls.suffix):
            return cls.from_dict(**read_json(path))
        if path.suffix == ".regex":
            return read_regex(path)
        raise refuse_suffix(path, cls.suffix, ".regex")

    def to_text(self) -> str:
        """Return the `.automaton.json` text, one line for each state."""
        from vitrify.spec.formats.data import json_object

        names = {"states": self.states, "alphabet": self.alphabet, "transitions": self.named_transitions()}
        return json_object(names | {"initial": self.initial_state, "accepting": self.accepting_states}, "transitions")

    @classmethod
    def samples(cls) -> dict[str, Automaton]:
        from vitrify.spec.automata.families import cyclic, product

        counters = {f"modulo {n}": cyclic(n) for n in (3, 2)}
        both = product(counters["modulo 2"], counters["modulo 2"])
        return counters | {"two counters": both, "some a": cls.from_regex("(a|b)*a(a|b)*"), "one state": cyclic(1)}

    # Reference semantics

    def meanings(self) -> dict[str, Meaning]:
        """Return the expected outputs: the state after every letter, or whether it accepts, or the last state alone.

        Of networks that say what may come next: the letters that begin the rest of an accepted word, or its end.
        """
        steps = PrefixStates(self.initial, lambda state, letter: self.transitions[state][self._letter_number[letter]])
        states = Meaning("symbol", self.alphabet, self.states, self.run, None, self.accepting_states, steps)
        last = replace(states, after=lambda word: (self.run(word)[-1],) * (len(word) + 1), states=None)
        begun = PrefixStates((self.initial, False), lambda state, letter: (steps.step(state[0], letter), True))
        member = replace(states, outputs=ANSWERS, accepting=(), after=self._accepted, states=begun)
        return {"recognizer": states, "class": last, "transducer": member, "next": self.words.meaning()}

    def _accepted(self, word: Sequence[str]) -> tuple[str | None, ...]:
        """Return after every letter whether the word so far is accepted; None before the first."""
        return (None, *(ANSWERS[state in self.accepting_states] for state in self.run(word)[1:]))

    def ids(self, word: Sequence[str]) -> tuple[int, ...]:
        """Return the letter indices of a word."""
        number = self._letter_number
        unknown = [letter for letter in dict.fromkeys(word) if letter not in number]
        if unknown:
            hint = "; give the word as a list of letters" if isinstance(word, str) else ""
            raise InputError(
                f"a word may have the letters {_listing(self.alphabet)} only; "
                f"unknown: {', '.join(map(repr, unknown))}{hint}"
            )
        return tuple(number[letter] for letter in word)

    def run(self, word: Sequence[str]) -> tuple[str, ...]:
        """Return the states along a word, the initial one first: one more than the word has letters."""
        path = [self.initial]
        for letter in self.ids(word):
            path.append(self.transitions[path[-1]][letter])
        return tuple(self.states[state] for state in path)

    def accepts(self, word: Sequence[str]) -> bool:
        """Return True if the word ends in an accepting state."""
        return self.run(word)[-1] in self.accepting_states

    def run_batch(self, letters: Int[np.ndarray, "batch pos"]) -> Int[np.ndarray, "batch pos+1"]:
        """Return the state indices along many words of one length, given as letter indices."""
        letters = np.asarray(letters)
        if letters.ndim != 2 or (letters.size and not np.issubdtype(letters.dtype, np.integer)):
            raise InputError(f"letters must be an integer array [batch, pos], got {letters.dtype} {letters.shape}")
        unknown = np.unique(letters[(letters < 0) | (letters >= len(self.alphabet))])
        if unknown.size:
            raise InputError(f"letter indices run from 0 to {len(self.alphabet) - 1}; unknown: {_listing(unknown)}")
        batch, length = letters.shape
        path = np.full((batch, length + 1), self.initial, dtype=np.int64)
        for t in range(length):
            path[:, t + 1] = self.table[path[:, t], letters[:, t].astype(np.int64)]
        return path

    # Properties

    @property
    def words(self) -> LegalWords:
        """Its words as a language: language models, log-probabilities under laws of length, edit distances."""
        from vitrify.spec.automata.legal import LegalWords

        return LegalWords(self)

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
        """Return the transitions by name, in the form that `from_dict` takes."""
        return {
            state: {letter: self.states[target] for letter, target in zip(self.alphabet, row, strict=True)}
            for state, row in zip(self.states, self.transitions, strict=True)
        }

    def maps(self) -> dict[str, tuple[int, ...]]:
        """Return the action of each letter: entry $q$ is the state that the letter maps $q$ to."""
        return {letter: tuple(row[k] for row in self.transitions) for k, letter in enumerate(self.alphabet)}

    def is_group(self) -> bool:
        """Return True if every letter permutes the states."""
        return all(len(set(action)) == len(self.states) for action in self.maps().values())

    def is_commutative(self) -> bool:
        """Return True if the actions of all letters commute: the order of the letters never matters."""
        return commute(self.maps().values())

    # Equivalent automata

    def reachable(self) -> Automaton:
        """Return the automaton without the states that no word reaches; names and order stay."""
        return self.numbered(sorted(reached([self.initial], self.transitions.__getitem__)))

    def numbered(self, order: Sequence[int]) -> Automaton:
        """Return the automaton of some of the states, which no transition leaves, in this order."""
        number = {state: index for index, state in enumerate(order)}
        return Automaton(
            states=tuple(self.states[state] for state in order),
            alphabet=self.alphabet,
            transitions=tuple(tuple(number[target] for target in self.transitions[state]) for state in order),
            initial=number[self.initial],
            accepting=frozenset(number[state] for state in self.accepting & number.keys()),
        )

    def minimized(self) -> Automaton:
        """Return the smallest automaton that accepts the same words, with states "0", "1", … in breadth-first order."""
        from vitrify.spec.automata.derivatives import equivalence

        classes = equivalence(self.transitions, self.accepting)
        moves = {classes[state]: [classes[target] for target in row] for state, row in enumerate(self.transitions)}
        final = {classes[state] for state in self.accepting}
        number = self._letter_number
        return Automaton.explore(
            classes[self.initial],
            self.alphabet,
            step=lambda state, letter: moves[state][number[letter]],
            accepts=final.__contains__,
        )

    # Printing

    def __repr__(self) -> str:
        if len(self.states) * len(self.alphabet) > self.MAX_SHOWN:
            sizes = f"{len(self.states)} states, {len(self.alphabet)} letters, {len(self.accepting)} accepting"
            return f"<Automaton: {sizes}, initial {self.initial_state!r}>"
        accepting = f"{{{', '.join(map(str, sorted(self.accepting)))}}}" if self.accepting else ""
        return (
            f"Automaton(states={self.states!r}, alphabet={self.alphabet!r}, transitions={self.transitions!r}, "
            f"initial={self.initial}, accepting=frozenset({accepting}))"
        )

    def __str__(self) -> str:
        if len(self.states) * len(self.alphabet) > self.MAX_SHOWN:
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


KIND = Kind(Automaton, {".automaton.json": "finite automaton", ".regex": "regular expression"})
