r"""Moore machines: complete deterministic automata with an answer in every state.

States, letters and answers are indices; state 0 is the initial one. Every behavior of finitely many states has one
minimal machine, and `minimized` numbers its states breadth first, so that equal behaviors are equal values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vitrify.arrays import Ints
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.derivatives import equivalence
from vitrify.spec.graphs import reached

Letters = tuple[int, ...]


@dataclass(frozen=True)
class MooreMachine:
    """A machine: `transitions[state][letter]` is the next state, `answers[state]` the answer.

    >>> three = MooreMachine(((1,), (2,), (1,)), (0, 1, 0))  # state 2 is like state 0
    >>> three.minimized()
    MooreMachine(transitions=((1,), (0,)), answers=(0, 1))
    """

    transitions: tuple[tuple[int, ...], ...]
    answers: tuple[int, ...]

    @cached_property
    def _arrays(self) -> tuple[Ints, Ints]:
        return np.array(self.transitions, dtype=np.int64), np.array(self.answers, dtype=np.int64)

    def states(self, words: Ints) -> Ints:
        """Return the states [word, prefix] along words of one length [word, position]."""
        table, _ = self._arrays
        path = np.zeros((len(words), words.shape[1] + 1), dtype=np.int64)
        for at in range(words.shape[1]):
            path[:, at + 1] = table[path[:, at], words[:, at]]
        return path

    def after(self, words: Ints) -> Ints:
        """Return the answers [word, prefix] along words of one length."""
        return np.asarray(self._arrays[1][self.states(words)])

    def levels(self, longest: int) -> list[Ints]:
        """Return the answers after all words of each length up to the longest, in lexicographic order."""
        table, answers = self._arrays
        states = [np.zeros(1, dtype=np.int64)]
        for _ in range(longest):
            states.append(table[states[-1]].reshape(-1))
        return [answers[each] for each in states]

    def counted(self, dead: int, longest: int) -> Iterator[int]:
        """Yield the number of words up to each length whose answer is not that of the dead state."""
        alive, total = Counter({0: int(self.answers[0] != dead)}), 0
        for _ in range(longest + 1):
            total += alive.total()
            yield total
            after = Counter[int]()
            for state, words in alive.items():
                for target in self.transitions[state]:
                    after[target] += words * (self.answers[target] != dead)
            alive = after

    def minimized(self) -> MooreMachine:
        """Return the machine with the fewest states and the same answers, its states in breadth-first order."""
        groups: dict[int, list[int]] = {}
        for state, answer in enumerate(self.answers):
            groups.setdefault(answer, []).append(state)
        classes = equivalence(self.transitions, *list(groups.values())[1:])
        member = {kind: state for state, kind in enumerate(classes)}
        graph = reached([classes[0]], lambda kind: [classes[target] for target in self.transitions[member[kind]]])
        number = {kind: index for index, kind in enumerate(graph)}
        moves = tuple(tuple(number[target] for target in targets) for targets in graph.values())
        return MooreMachine(moves, tuple(self.answers[member[kind]] for kind in graph))

    def with_free_start(self) -> MooreMachine:
        """Return the minimal machine where the answer to the empty word may be any, so that a state may be spared."""
        machine = self.minimized()
        if any(0 in row for row in machine.transitions):
            return machine
        alike = [state for state, row in enumerate(machine.transitions) if state and row == machine.transitions[0]]
        answers = (machine.answers[alike[0]], *machine.answers[1:]) if alike else machine.answers
        return MooreMachine(machine.transitions, answers).minimized()

    def access_words(self) -> list[Letters]:
        """Return a shortest word to every state that some word reaches."""
        words: dict[int, Letters] = {0: ()}
        queue = [0]
        for state in queue:  # grows during the loop
            for letter, target in enumerate(self.transitions[state]):
                if target not in words:
                    words[target] = (*words[state], letter)
                    queue.append(target)
        return list(words.values())

    def distinguishing_words(self) -> list[Letters]:
        """Return words that together tell all states of a minimal machine apart; the empty word is the first."""
        words: list[Letters] = [()]
        rows: list[tuple[int, ...]] = [(answer,) for answer in self.answers]
        while len(set(rows)) < len(rows):
            groups: dict[tuple[int, ...], list[int]] = {}
            for state, row in enumerate(rows):
                groups.setdefault(row, []).append(state)
            split = self._split(next(group for group in groups.values() if len(group) > 1), rows, words)
            words.append(split)
            rows = [(*row, self._answer(state, split)) for state, row in enumerate(rows)]
        return words

    def _split(self, group: list[int], rows: list[tuple[int, ...]], words: list[Letters]) -> Letters:
        """Return a shortest word that tells two states of a group apart, which the words before do not."""
        pair, nothing = (group[0], group[1]), Letters()
        seen, queue = {pair}, [(pair, nothing)]
        for (a, b), word in queue:  # grows during the loop
            if rows[a] != rows[b]:
                tail = next(each for each, x, y in zip(words, rows[a], rows[b], strict=True) if x != y)
                return (*word, *tail)
            for letter, (x, y) in enumerate(zip(self.transitions[a], self.transitions[b], strict=True)):
                if (x, y) not in seen:
                    seen.add((x, y))
                    queue.append(((x, y), (*word, letter)))
        raise AssertionError("the machine must be minimal")

    def _answer(self, state: int, word: Letters) -> int:
        for letter in word:
            state = self.transitions[state][letter]
        return self.answers[state]

    def automaton(
        self, letters: tuple[str, ...], accepting: Container[int], names: Mapping[int, str] | None = None
    ) -> Automaton:
        """Return the automaton that accepts where an answer is `accepting`, its states numbered.

        With `names` of answers, a state is named after its answer; several with one answer, `even` say, are called
        `even`, `even#2`, …
        """
        seen: dict[int, int] = {}
        states = []
        for number, answer in enumerate(self.answers):
            seen[answer] = seen.get(answer, 0) + 1
            again = "" if seen[answer] == 1 else f"#{seen[answer]}"
            states.append(str(number) if names is None else f"{names[answer]}{again}")
        final = frozenset(state for state, answer in enumerate(self.answers) if answer in accepting)
        return Automaton(tuple(states), letters, self.transitions, 0, final)
