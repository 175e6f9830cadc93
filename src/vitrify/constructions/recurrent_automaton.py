r"""Any automaton runs on a simple recurrent net or on a linear recurrence; permutations on products of reflections.

Let $Q$ be the states that words reach, $n = |Q|$, and $\delta$ the transitions. The logit of a state is 1 for the right
one and 0 for all others, in all three constructions; every number of a run is whole, so nothing is rounded at any
length.

- `elman`, the classical simulation by ReLU units (Minsky 1967; in the spirit of Hewitt et al. 2020, arXiv 2010.07515):
  unit $(q, a)$ is 1 iff the last letter was $a$ and the state before it $q$:
  $h_{(q,a)} \leftarrow \mathrm{relu}(\sum_{\delta(q',a')=q} h_{(q',a')} + [x = a] - 1)$.
- `linear-recurrence`: $h \leftarrow h A_x$, the 0/1 matrix of the letter on unit vectors of states; BOS sets $e_{q_0}$.
- `householder` (in the spirit of Grazzi et al. 2024, arXiv 2411.12537), where every letter permutes the states: a cycle
  of $m$ states is a product of $m - 1$ swaps, and the swap of $p$ and $q$ is the reflection $I - v^\top v$ with
  $v = e_p - e_q$. A letter takes $n$ less the number of its cycles; no fewer do, as each factor changes the rank of
  $A_x - I$ by 1 at most. The net has as many factors as its worst letter, and a letter's spare ones are $v = 0$.

| construction | state | else |
| --- | --- | --- |
| `elman` | $n\lvert\Sigma\rvert$, one more if no letter leads to $q_0$ | $\lvert\Sigma\rvert$ ones in $W_A$ for each |
| `linear-recurrence` | $n$ | $n\lvert\Sigma\rvert$ ones in $W_A$ |
| `householder` | $n$ | $\max_a (n - \#\text{cycles of } a)$ factors |

`tracked_permutation` follows not one point but all of them in $n$ numbers: the state begins as $(0, 1, \dots, n-1)$ and
every letter permutes its coordinates. The logit of a permutation is the product with its own row of numbers, which is
largest, by 1 at least, for the right one: numbers in equal order have the largest sum of products. So the word problem
of $S_5$, with its 120 states, takes five numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.arrays import Arrays, Floats, Ints, Matrix
from vitrify.constructions.catalogue import BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.log_depth import begin_symbol
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.recurrent import Recurrent
from vitrify.net.spaces import Integers, Kind, OneHot
from vitrify.net.sparse import from_entries
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import permutation_group
from vitrify.spec.automata.groups import cycles

DEFAULT_MAX_LENGTH = 128  # letters; no weight depends on it


def sizes(automaton: Automaton) -> DeclaredSizes:
    """Return the sizes of linear recurrences: one dimension for each state that words reach."""
    return DeclaredSizes.of_layers((0,), (0,), len(automaton.reachable().states))


def elman_sizes(automaton: Automaton) -> DeclaredSizes:
    """Return all sizes: a unit for each state and letter, and one more if no letter leads to the initial state."""
    machine = automaton.reachable()
    return DeclaredSizes.of_layers((0,), (0,), machine.table.size + (machine.initial not in machine.table))


def count_factors(automaton: Automaton) -> list[int]:
    """Return the Householder factors of each letter, where letters permute: states less cycles."""
    return [len(automaton.states) - len(cycles(action)) for action in automaton.maps().values()]


@construction(
    "elman",
    "a simple recurrent net, one ReLU unit for each state and letter",
    elman_sizes,
    certified=("every length", "every length"),
)
def elman(automaton: Automaton, *, max_length: MaxLength = 128) -> Weights[Recurrent]:
    """Return a simple recurrent net of ReLU units, one for each state and letter."""
    machine = automaton.reachable()
    steps = [(q, a, r) for q, row in enumerate(machine.table.tolist()) for a, r in enumerate(row)]
    into, arrays = step_units(steps, machine.initial, len(machine.alphabet))
    names = [f"{machine.states[q]} {machine.alphabet[a]}" for q, a, _ in steps]
    spaces = [("last step", OneHot((*names, *["begin"] * (len(into) - len(steps)))))]
    arrays["unembed.W_U"] = np.eye(len(machine.states))[into]
    return recurrent_net(
        machine, Cell("relu", len(into)), arrays, spaces, max_length, "elman", "Hewitt 2020, arXiv 2010.07515"
    )


def step_units(steps: Sequence[tuple[int, int, int]], initial: int, letters: int) -> tuple[Ints, dict[str, Matrix]]:
    """Return the state that each unit leads to, and the arrays of a cell with a unit for each (state, letter, next).

    One more unit stands for the beginning if no step leads to the initial state.
    """
    old_state, letter, into = np.array(steps, dtype=np.int64).reshape(-1, 3).T
    start = np.flatnonzero(into == initial)[:1].tolist() or [len(steps)]
    into = np.append(into, np.full(int(start == [len(steps)]), initial))
    old, new = np.nonzero(into[:, None] == old_state[None])
    drives = np.full((letters + 1, len(into)), -1.0)
    drives[0] = 0.0
    drives[0, start] = 1.0
    drives[1 + letter, np.arange(len(steps))] = 0.0
    transition = from_entries(old, new, np.ones(len(old)), (len(into), len(into)))
    return into, {"blocks.0.rec.W_A": transition, "blocks.0.rec.W_B": drives}


@construction(
    "linear-recurrence",
    "a linear recurrence with a 0/1 matrix per letter",
    sizes,
    certified=("every length", "every length"),
)
def linear(automaton: Automaton, *, max_length: MaxLength = 128) -> Weights[Recurrent]:
    """Return a linear recurrence whose transitions are the 0/1 matrices of the letters."""
    machine = automaton.reachable()
    n, letters = machine.table.shape
    read, old = np.divmod(np.arange(n * letters), n)
    arrays = {
        "blocks.0.rec.W_A": from_entries(
            n + np.arange(n * letters), machine.table[old, read], np.ones(n * letters), (letters + 1, n, n)
        ),
        "blocks.0.rec.W_B": _begun(machine, np.eye(n)[machine.initial]),
        "unembed.W_U": np.eye(n),
    }
    spaces = [("state", OneHot(machine.states))]
    return recurrent_net(
        machine, Cell("full", n), arrays, spaces, max_length, "linear recurrence", "Grazzi 2024, arXiv 2411.12537"
    )


@construction(
    "householder",
    "permutations as products of reflections, in a linear recurrence",
    sizes,
    certified=("every length", "every length"),
)
def householder(automaton: Automaton, *, max_length: MaxLength = 128) -> Weights[Recurrent]:
    """Return a linear recurrence on unit vectors of states whose transitions are products of reflections."""
    machine = automaton.reachable()
    n = len(machine.states)
    begun = _begun(machine, np.eye(n)[machine.initial])
    arrays = {"blocks.0.rec.W_A": _factors(machine), "blocks.0.rec.W_B": begun, "unembed.W_U": np.eye(n)}
    spaces = [("state", OneHot(machine.states))]
    return _reflecting(machine, arrays, spaces, max_length)


def tracked_permutation(
    automaton: Automaton, *, max_length: int = DEFAULT_MAX_LENGTH
) -> tuple[Automaton, Weights[Recurrent]]:
    """Return the group the letters generate, acting on itself, and a net that runs it in one number per point."""
    factors = _factors(automaton)
    group = permutation_group(automaton.maps(), regular=True)
    rows = np.zeros((len(group.states), len(automaton.states)))
    rows[0] = np.arange(len(automaton.states))
    for state, targets in enumerate(group.transitions):  # breadth first: each row is known before it is asked for
        for letter, target in enumerate(targets):
            rows[target, automaton.table[:, letter]] = rows[state]
    arrays: dict[str, Matrix] = {
        "blocks.0.rec.W_A": factors,
        "blocks.0.rec.W_B": _begun(group, rows[0]),
        "unembed.W_U": rows.T,
    }
    points = Integers(automaton.states, 0.0, len(automaton.states) - 1.0)
    return group, _reflecting(group, arrays, [("who is where", points)], max_length)


def swaps(images: Sequence[int]) -> list[tuple[int, int]]:
    """Return swaps whose product is a permutation: for every cycle, one less than its length.

    >>> swaps([1, 2, 0, 4, 3])
    [(0, 1), (0, 2), (3, 4)]
    """
    return [(cycle[0], point) for cycle in cycles(images) for point in cycle[1:]]


def _factors(machine: Automaton) -> Floats:
    """Return the vectors [factor, input, state] of all letters; zeros for BOS and spare factors."""
    odd = [letter for letter, action in machine.maps().items() if len(set(action)) < len(machine.states)]
    if odd:
        raise BuildRefused(
            f"reflections only permute, but the letter{'s' if len(odd) > 1 else ''} {', '.join(map(repr, odd))} "
            f"merge{'' if len(odd) > 1 else 's'} states: build this automaton with "
            "--construction linear-recurrence or elman"
        )
    swaps_by_letter = [swaps(action) for action in machine.maps().values()]
    vectors = np.zeros((max(1, *map(len, swaps_by_letter)), len(machine.alphabet) + 1, len(machine.states)))
    for letter, pairs in enumerate(swaps_by_letter, start=1):
        for factor, (p, q) in enumerate(pairs):
            vectors[factor, letter, p], vectors[factor, letter, q] = 1.0, -1.0
    return vectors


def _begun(machine: Automaton, row: Floats) -> Floats:
    """Return the input matrix: BOS adds the row to the state, letters add nothing."""
    return np.vstack([row, np.zeros((len(machine.alphabet), len(row)))])


def _reflecting(
    machine: Automaton, arrays: Arrays, spaces: Sequence[tuple[str, Kind]], max_length: int
) -> Weights[Recurrent]:
    factors, _, state = arrays["blocks.0.rec.W_A"].shape
    cell, source = Cell("householder", state, factors=factors), "Grazzi 2024, arXiv 2411.12537"
    return recurrent_net(machine, cell, arrays, spaces, max_length, "householder", source)


def recurrent_net(
    machine: Automaton,
    cell: Cell,
    arrays: Arrays,
    spaces: Sequence[tuple[str, Kind]],
    max_length: int,
    variant: str,
    source: str,
) -> Weights[Recurrent]:
    """Return a net of one cell that reads unit vectors of letters and outputs the machine's state; spaces label it."""
    net = Recurrent(
        inputs=(begin_symbol(machine), *machine.alphabet),
        output=Output("recognizer", machine.states, accepting=machine.accepting_states),
        max_length=max_length,
        d_embed=len(machine.alphabet) + 1,
        cell=cell,
        name=f"automaton of {len(machine.states)} states, {variant}",
    )
    labels, at = [SpaceLabel("letter", OneHot(net.inputs, void=True), tuple(range(net.d_embed)), 0, 0)], 0
    for name, kind in spaces:
        labels.append(SpaceLabel(name, kind, tuple(range(at, at + kind.size)), 1, 1))
        at += kind.size
    sizes_of = {"states": len(machine.states), "letters": len(machine.alphabet)}
    about = {"construction": f"{variant} automaton", **sizes_of, "source": f"in the spirit of {source}"}
    seen = np.ones(net.d_embed)  # an input that changes nothing is not embedded
    if cell.kind == "householder":
        seen = arrays["blocks.0.rec.W_A"].any(axis=(0, 2)) | arrays["blocks.0.rec.W_B"].any(axis=1)
    elif cell.kind == "relu":
        seen = arrays["blocks.0.rec.W_B"].any(axis=1)
    known = {"embed.W_E": np.diag(seen.astype(float)), "unembed.b_U": np.zeros(len(machine.states))}
    return Weights(net, {**known, **arrays}, Labels(tuple(labels)), about)
