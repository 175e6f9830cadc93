r"""Automata whose letters commute become one attention layer: count, then look the counts up.

In the spirit of Liu et al. (2023, arXiv 2210.10749): if the order of letters does not matter, the state depends only
on how often each occurs, and one head with exact counts tells that. A *counter* adds a weight $u(a)$ per letter $a$;
its count matters only up to a pre-period $i$ and a period $p$.

- Letters that permute the states form an abelian group, which is split into cyclic factors: one counter per factor,
  $i = 0$, and each
  state is one tuple of remainders.
- Otherwise there is one counter per distinct action of a letter, whose powers are eventually periodic.

The MLP turns each count into its class, a one-hot of $i + p$ values: two units for every place where the class
changes, at most $2 T \max u$ per counter. If every state is a product of sets of classes (always so for groups), the
unembedding adds the classes up and the net has **one layer**; otherwise a second block without attention holds the
table of class tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.log_depth import begin_symbol
from vitrify.kit.gadgets.steps import int_lookup
from vitrify.kit.gadgets.table import table
from vitrify.kit.heads.average import count
from vitrify.kit.network import Affine, Builder, Flag, Integers, Network, OneHot, Output, Readout, Space
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.groups import Permutation, PermutationGroup, basis, then

MAX_ROWS = 1 << 16


@dataclass(frozen=True)
class Counter:
    """Adds up a weight per letter; counts beyond the pre-period matter only modulo the period."""

    name: str
    weights: tuple[int, ...]
    preperiod: int
    period: int

    @property
    def classes(self) -> int:
        return self.preperiod + self.period

    def of(self, count: int) -> int:
        """The class of a count."""
        return count if count < self.preperiod else self.preperiod + (count - self.preperiod) % self.period


def units_for(counters: tuple[Counter, ...], max_length: int) -> int:
    """Return two units for every change of a counter's class: at each count if its period is above 1, else at first."""
    highest = max_length * max((weight for counter in counters for weight in counter.weights), default=0)
    return sum(2 * (highest if c.period > 1 else min(c.preperiod, highest)) for c in counters)


def sizes(automaton: Automaton, *, max_length: int) -> DeclaredSizes:
    r"""Return all sizes exactly for groups, and bounds otherwise.

    With $k$ counters of $c_j = i_j + p_j$ classes: $2k$ dimensions for weights and counts, $\sum_j c_j$ for classes,
    two for BOS and its share.
    """
    machine = automaton.reachable()
    group = machine.is_group()
    counters, tuples = group_counters(machine) if group else power_counters(machine)
    if not counters:
        return DeclaredSizes({"layers": 0, "heads": 0, "d_model": 1, "units": 0})
    units = units_for(counters, max_length)
    width = 2 * len(counters) + sum(counter.classes for counter in counters) + 2
    if group:
        return DeclaredSizes({"layers": 1, "heads": 1, "d_model": width, "units": units})
    bounds = {"layers": 2, "d_model": width + len(machine.states), "units": units + len(tuples)}
    return DeclaredSizes({"heads": 1}, at_most=bounds)


@construction(
    "commutative", "automata whose letters commute, in one attention layer", sizes, certified=("to T", "to T")
)
def commutative(automaton: Automaton, *, attention: Attention = "softmax", max_length: MaxLength = 128) -> Network:
    """Return a transformer with one attention head whose output after every letter is the automaton's state."""
    machine = automaton.reachable()
    _check_commutes(machine)
    counters, states = group_counters(machine) if machine.is_group() else power_counters(machine)
    name = f"commutative automaton of {len(machine.states)} states, {attention}"
    net = Builder(name, (begin_symbol(automaton), *automaton.alphabet), max_length, attention)
    labels = tuple(counter.name for counter in counters)
    heaviest = max((w for counter in counters for w in counter.weights), default=0)
    weights = np.array([[0] * len(automaton.alphabet), *(c.weights for c in counters)], dtype=float)[1:].T
    table_of_weights = np.vstack([np.zeros(len(counters)), weights.reshape(len(automaton.alphabet), len(counters))])
    classes: list[Space] = []
    if counters:
        letter = net.embed("weight", Integers(labels, 0.0, float(heaviest)), table_of_weights)
        counted = count(net, Affine.copy(letter), labels, float(heaviest * max_length), name="count")
        for index, counter in enumerate(counters):
            kind = OneHot(tuple(str(c) for c in range(counter.classes)))
            written = Space(f"class of {counter.name}", kind)
            classes.append(int_lookup(net, counted, _class_code(counter, kind), written, coordinate=index))
    else:
        net.embed("nothing", Flag(), np.zeros((len(net.inputs), 1)))  # a residual stream has at least one dimension
    output = Output("recognizer", machine.states, accepting=machine.accepting_states)
    return net.network(
        output,
        _readout(net, classes, states, len(machine.states)),
        "commutative automaton",
        {
            "states": len(machine.states),
            "counters": "; ".join(f"{c.name} (from {c.preperiod} on mod {c.period})" for c in counters) or "none",
        },
        source="in the spirit of Liu et al. 2023, arXiv 2210.10749",
        reuse=False,
    )


def _class_code(counter: Counter, kind: OneHot) -> Callable[[int], Floats]:
    return lambda number: kind.codes[counter.of(number)]


def _check_commutes(machine: Automaton) -> None:
    maps = machine.maps()
    for a, first in maps.items():
        for b, second in maps.items():
            for q, state in enumerate(machine.states):
                one, other = machine.states[second[first[q]]], machine.states[first[second[q]]]
                if one != other:
                    raise BuildRefused(
                        f"the letters must commute, but from state {state!r} the word {a!r} {b!r} leads to {one!r} and "
                        f"{b!r} {a!r} to {other!r}: build this automaton with --construction log-depth"
                    )


def _readout(net: Builder, classes: list[Space], states: dict[tuple[int, ...], int], number: int) -> Readout:
    """Logits of the states: by adding up classes where states are products of classes, by a table otherwise."""
    sides = [
        [{tup[j] for tup, s in states.items() if s == state} for j in range(len(classes))] for state in range(number)
    ]
    boxes = sum(int(np.prod([len(side) for side in box])) for box in sides)
    if boxes == len(states):
        parts = []
        for j, space in enumerate(classes):
            matrix = np.array([[float(c in sides[state][j]) for state in range(number)] for c in range(space.size)])
            parts.append((space, matrix))
        return Readout(tuple(parts), np.zeros(number), {space: 1 / (4 * len(classes)) for space in classes})
    if len(states) > MAX_ROWS:
        raise BuildRefused(
            f"this automaton needs a table of {len(states)} class tuples, more than {MAX_ROWS}: "
            "use --construction log-depth"
        )
    written = Space("state", OneHot(tuple(str(s) for s in range(number))))
    patterns = np.array(list(states), dtype=np.int64)
    table(net, classes, patterns, written, np.eye(number)[list(states.values())], name="states")
    return Readout(((written, np.eye(number)),), np.zeros(number), {written: 0.25})


def power_counters(machine: Automaton) -> tuple[tuple[Counter, ...], dict[tuple[int, ...], int]]:
    """One counter per distinct action other than the identity, and the state of every tuple of classes."""
    actions: dict[Permutation, list[int]] = {}
    for letter, action in enumerate(machine.maps().values()):
        if action != tuple(range(len(machine.states))):
            actions.setdefault(action, []).append(letter)
    counters = []
    for action, letters in actions.items():
        seen: dict[Permutation, int] = {}
        power: Permutation = tuple(range(len(machine.states)))
        while power not in seen:
            seen[power] = len(seen)
            power = tuple(action[q] for q in power)
        weights = tuple(int(letter in letters) for letter in range(len(machine.alphabet)))
        name = "+".join(machine.alphabet[letter] for letter in letters)
        counters.append(Counter(f"#{name}", weights, seen[power], len(seen) - seen[power]))
    states = {}
    for classes in product(*(range(counter.classes) for counter in counters)):
        state = machine.initial
        for action, times in zip(actions, classes, strict=True):
            for _ in range(times):
                state = action[state]
        states[classes] = state
    return tuple(counters), states


def group_counters(machine: Automaton) -> tuple[tuple[Counter, ...], dict[tuple[int, ...], int]]:
    r"""One counter per cyclic factor of the letters' group, and the state of every tuple of remainders.

    An abelian group of permutations that reaches every state is regular: its elements are the states, by $g \mapsto
    g(q_0)$. A basis of the group gives the factors.
    """
    group = PermutationGroup(len(machine.states), tuple(machine.maps().values()))
    cyclic, span = basis(group.elements, then)
    letters = [span[action] for action in machine.maps().values()]
    counters = []
    for j, (_, order) in enumerate(cyclic):
        name = "+".join(
            f"{e[j]}·#{a}" if e[j] > 1 else f"#{a}" for e, a in zip(letters, machine.alphabet, strict=True) if e[j]
        )
        counters.append(Counter(name, tuple(e[j] for e in letters), 0, order))
    return tuple(counters), {exponents: g[machine.initial] for g, exponents in span.items()}
