r"""A probabilistic Turing machine is a language model that writes its steps, on a transformer or a ReLU recurrence.

Statement: For every probabilistic Turing machine with $Q$ states that have rules and $G$ symbols of the tape there are
(i) a transformer with three layers of hard attention (2, 4 and 1 heads), $QG$ units and a width that no length enters,
at a precision logarithmic in the number of steps, and (ii) a simple recurrent net of ReLU units with $2M(2G - 1) + Q$
numbers ($M$ different moves of steps that do not halt) and $QG$ hidden units, at a precision linear in the number of
steps, that generate steps, one token for each, such that the strings that these emit have exactly the probabilities of
the machine.
Why: Given the state and the symbol under the head, the next step depends on nothing else. The transformer is the one
that runs deterministic machines at any length, up to that symbol; its unembedding holds logarithms of probabilities.
The recurrence holds the tape as two stacks, numbers in a base $b > G$, of which a step reads and shifts one digit.
Checked: $a^n b^n$ with geometric $n$, marked palindromes, a drifting walk and four random machines, each on both
networks. All runs of up to 9 steps that the net gives a probability: summed by the strings that they emit, and by
whether they have halted, these are the masses of the machine, as exact fractions. On 1,000 random runs of up to 64
steps, on the recurrence as many as float64 carries, all distributions are compared. Sizes are compared with the
formulas. For each network both links are proved: of the transformer for 23,726,565 steps, of the recurrence bit by bit
for all steps that float64 carries. The transformers for $T = 10, 100, 1000$ and $2^5, \dots, 2^{12}$ have the same
arrays. The stacks of the recurrence equal the tape as exact fractions, with $\log_2 b$ bits for each symbol. With $p =
8, 12, 16$ and $20$ bits behind the point, $a^n b^n$ is generated right up to $n = p / \log_2 b$, and no longer.
Not checked: Machines with an input; other base numbers; real-valued weights; longer runs; that networks with a chain
of thought represent no other distributions. 20 random machines are in the slow tests.
Source: Nowak et al. 2024, arXiv 2406.14197 [A], for precision [S]; the weights are our own derivation.
Saboteur: Of the transformer, no sink, so that a cell without a write reads another one. Of the recurrence, in turn: the
stacks are rounded to 10 bits behind the point; a push writes the digit of the blank.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.claims._figures import bars, show
from vitrify.claims._nets import (
    Claim,
    Domain,
    Evidence,
    Method,
    Quantity,
    Subject,
    Subjects,
    built,
    edited,
    sized,
    witnessed,
)
from vitrify.claims._runs import error_on_runs, largest_difference, random_runs, stacks_on_runs, string_masses
from vitrify.claims.one_set_of_weights_runs_a_turing_machine_for_any_time import TESTED, TIMES, without_sink
from vitrify.constructions.catalogue import build
from vitrify.net.positions import FLOAT64_BITS
from vitrify.net.recurrent import Recurrent
from vitrify.net.weights import Weights
from vitrify.spec.computation.probabilistic_turing import (
    ProbabilisticTuringMachine,
    drifting_walk,
    equal_numbers,
    marked_palindromes,
    random_probabilistic_machine,
)
from vitrify.spec.computation.turing import MOVES

TRANSFORMER, RECURRENCE = "probabilistic-turing", "probabilistic-turing-rnn"
STEPS, LONG, RUNS = 9, 64, 1000  # of all runs; of random runs, and their number
RANDOM = 4  # machines
TOLERANCE = 1e-12  # of a sum of products of probabilities in float64
BITS = (8, 12, 16, 20)  # behind the point
FEW_BITS = 10
TRACED = 20  # runs on which stacks are compared
STACKS = ("right of the head", "left of the head")


def subjects() -> Subjects:
    machines = {"a^n b^n": equal_numbers(), "drifting walk": drifting_walk(), "palindromes": marked_palindromes()}
    drawn = [random_probabilistic_machine(seed, 2 + seed % 2, 3 - seed % 2) for seed in range(RANDOM)]
    machines |= {f"random machine {seed}": machine for seed, machine in enumerate(drawn)}
    for name, machine in machines.items():
        yield subject_of(name, machine, TRANSFORMER, "no sink")
        saboteur = "wrong digit" if name == "drifting walk" else "few bits"
        yield subject_of(f"{name}, recurrence", machine, RECURRENCE, saboteur)


def subject_of(name: str, machine: ProbabilisticTuringMachine, construction: str, saboteur: str) -> Subject:
    """Return a network of a machine, and the saboteur that must be rejected there."""
    length = {"max_length": TESTED} if construction == TRANSFORMER else {}
    return built(name, machine, construction, {"saboteur": saboteur}, **length)


def check(subject: Subject, count: int = RUNS) -> Evidence:
    machine, weights = subject.spec, subject.weights
    net = weights.architecture
    exact = machine.masses(STEPS)
    emitted = {rule.step: rule.emitted for rule in machine.rules if rule.emitted}
    strings, running = string_masses(weights, emitted, STEPS)
    worst, string = largest_difference(strings, {s: float(p) for s, p in exact.strings.items()})
    runs = random_runs(machine, net, count, min(LONG, net.longest), seed=1)
    along = error_on_runs(machine, weights, runs)
    witness = {"string": " ".join(string), "error": worst} if not worst <= TOLERANCE else None
    if witness is None and not along <= TOLERANCE:
        witness = {"error of a distribution on random runs": along}
    all_runs = Domain("strings of all runs", Method.EXHAUSTIVE, len(exact.strings), 0, STEPS)
    random = Domain("random runs", Method.SAMPLED, count, longest=max(map(len, runs)))
    written = [machine.erased(net.inputs[token] for token in run) for run in runs]
    evidence = witnessed(witness, len(exact.strings) + count, all_runs, random, seed=1).adding(
        Quantity("largest error of the probability of a string", worst, TOLERANCE, "<="),
        Quantity("error of the mass that has not halted", abs(running - float(exact.running)), TOLERANCE, "<="),
        Quantity("largest error of a distribution on random runs", along, TOLERANCE, "<="),
        Quantity("tokens for each emitted symbol", len(machine.written) / len(machine.emits)),
        Quantity("steps for each emitted symbol", sum(map(len, runs)) / max(1, sum(map(len, written)))),
    )
    return evidence.adding(*(_stacks(subject, runs) if isinstance(net, Recurrent) else _at_all_times(subject)))


def _at_all_times(subject: Subject) -> tuple[Quantity, ...]:
    """Return the sizes, and whether the arrays are the same for all running times."""
    arrays = subject.weights.arrays
    others = [build(subject.spec, TRANSFORMER, max_length=length).arrays for length in TIMES]
    same = all(array.tobytes() == other[name].tobytes() for other in others for name, array in arrays.items())
    name = "the arrays are those for other running times"
    return sized(subject, {name: True}, {name: same})


def _stacks(subject: Subject, runs: list[list[int]]) -> tuple[Quantity, ...]:
    """Return the sizes, the errors of the numbers that hold the tape, and the bits of a symbol."""
    wrong, bits = stacks_on_runs(subject.spec, subject.weights, runs[:TRACED], STACKS)
    name, per_symbol = "wrong numbers of stacks", subject.weights.about["bits per step"]
    most = Quantity("bits for each symbol of a stack", bits, per_symbol, "<=")
    return *sized(subject, {name: 0}, {name: wrong}), most, *_precision(subject)


def _precision(subject: Subject) -> tuple[Quantity, ...]:
    """Return for some numbers of bits the largest n to which a^n b^n is generated right; nothing of other machines."""
    if not subject.name.startswith("a^n b^n"):
        return ()
    ids, longest = subject.weights.architecture.input_ids, subject.weights.architecture.max_length
    steps = [["1,R,push,a"] * n + ["_,L,pop"] + ["_,L,pop,b"] * n for n in range(longest // 2)]
    runs, right = [[ids[step] for step in run] for run in steps], []
    for bits in BITS:
        weights = few_bits(subject, bits).weights
        wrong = (n for n, run in enumerate(runs) if error_on_runs(subject.spec, weights, [run]) > TOLERANCE)
        right.append(next(wrong, len(runs)) - 1)
    law = tuple(bits // subject.weights.about["bits per step"] for bits in BITS)
    return (Quantity(f"largest n with {', '.join(map(str, BITS))} bits", tuple(right), law, "="),)


# Saboteurs


def sabotage(subject: Subject) -> Subject:
    """Return the subject with the saboteur that is its own."""
    return SABOTEURS[subject.data["saboteur"]](subject)


def few_bits(subject: Subject, bits: int = FEW_BITS) -> Subject:
    """Return the subject whose stacks are held next to a number so large that few bits remain behind the point."""
    weights, big = subject.weights, 2.0 ** (FLOAT64_BITS - 1 - bits)
    held = {move: [weights.labels.space(f"{name} after {move}").dims[0] for name in STACKS] for move in _moves(weights)}
    transition, drives = weights.arrays["blocks.0.rec.W_A"], weights.arrays["blocks.0.rec.W_B"].copy()
    first = next(iter(held.values()))
    drives[1:] -= big * transition[first].sum(axis=0)  # what the next step adds because of it
    drives[0, first] += big
    for row, token in enumerate(weights.architecture.inputs[1:], start=1):
        drives[row, held[token.split(",")[1]]] += big
    return replace(subject, weights=weights.with_array("blocks.0.rec.W_B", drives))


def _moves(weights: Weights[Recurrent]) -> list[str]:
    """Return the moves for which a net has units of the stacks."""
    return [move for move in MOVES if any(label.name.endswith(f" after {move}") for label in weights.labels.spaces)]


def wrong_digit(subject: Subject) -> Subject:
    """Return the subject that pushes the digit of the blank when it should push another symbol and move right."""
    net, weights = subject.weights.architecture, subject.weights
    dims = list(weights.labels.space("left of the head after R").dims)
    rows = [row for row, token in enumerate(net.inputs) if token.split(",")[1:2] == ["R"]]
    pushed = weights.arrays["blocks.0.rec.W_B"][rows, dims[0]]
    return edited(subject, "blocks.0.rec.W_B", np.ix_([rows[int(pushed.argmax())]], dims), plus=-float(pushed.max()))


SABOTEURS = {"no sink": without_sink, "few bits": few_bits, "wrong digit": wrong_digit}
FIGURE = show(
    bars(
        {"tokens": "tokens for each emitted symbol", "steps of the machine": "steps for each emitted symbol"},
        "for each emitted symbol",
    ),
    bars(("d_model", "units"), "size of the net"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R41", standing="theorem", certified="proved", budget_seconds=20, figure=FIGURE
)
