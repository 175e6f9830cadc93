r"""Softmax in $O(\log n)$ bits is a threshold circuit of constant depth, which a few counters write down.

Statement: Take a transformer with $L$ layers of softmax attention whose numbers have $O(\log n)$ bits on words of
length $n$. There is a circuit of AND, OR, NOT and weighted threshold gates, of depth at most $3L + 2$ (not counting
NOT) and size polynomial in $n$, that computes it on these words, and a generator in $O(\log n)$ bits of memory that
writes it. So its language is in L-uniform TC⁰, if its position codes are computed in that memory, too.
Why: There are $n^{O(d)}$ vectors of width $d$. Which gates are wired, and with which weight, follows from their numbers
by arithmetic on $O(1)$ numbers of $O(\log n)$ bits.
Checked: In $\lceil \log_2 n \rceil$ bits after the point, two random nets of one and two layers, and the nets built for
MAJORITY: the circuit equals the net in this arithmetic on all words of length 2 to 8 and 1000 random words of length
16; for MAJORITY it also equals the net itself, in floating point. Depth is at most $3L + 2$ and the same at $n = 4$, 8,
16 and 32; weights have at most the declared bits; the exponents of gates and vectors are fitted at these lengths. Two
random nets of width 1: the circuit that the generator writes, of all vectors, equals the net on all words of length 2
and 4. The generator holds 30 numbers or fewer at every length from 2 to 32, none longer than declared, measured in its
frames at every 211th of the first 60,000 wires; its gates are as many as a closed formula says.
Not checked: The containment for all $n$. Memory inside the arithmetic of one step, which is on vectors of constant
width. Nets with position codes, for the generator. The source's arithmetic, which rounds differently.
Source: Merrill & Sabharwal 2023, arXiv 2207.00729 [S]. The arithmetic, the circuits and the generator are our own.
Saboteur: One vector is missing in the circuit: the one that the last position holds after the word 0…0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice, pairwise

from vitrify.bounds.ac0 import difference
from vitrify.bounds.fixed_point import FixedNet, Grid, logarithmic
from vitrify.bounds.gates import Size, all_words
from vitrify.bounds.random_nets import random_net
from vitrify.bounds.tc0 import depth_bound, finite_precision_circuit
from vitrify.bounds.uniform import UniformCircuit, collected, memory
from vitrify.claims._circuits import exponent, first_difference, random_words, without_value
from vitrify.claims._figures import circuits, show
from vitrify.claims._nets import CaseKind, Domain, Evidence, Method, Quantity, Weights, quantities, witnessed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.catalogue import build
from vitrify.net.transformer import Head
from vitrify.spec.logic.crasp import majority

LENGTHS = range(2, 9)  # of all words
LONGER = 16  # letters of the random words
SWEEP = (4, 8, 16, 32)  # between which growth is measured
WRITTEN = (2, 4)  # letters of words whose whole circuit the generator writes
SUSPENDED = (2, 4, 8, 16, 32)  # letters of words for which its memory is measured
STRIDE, WIRES = 211, 60_000  # wires between two measurements, and the most that are written for one

Arithmetic = Callable[[int], tuple[Weights, Grid]]


def subjects() -> Subjects:
    """Random nets, the nets built for MAJORITY, and random nets of width 1, whose circuits the generator writes."""
    head = Head("softmax", "none")
    for seed, layers, width in ((4, 1, 2), (3, 2, 2), (3, 1, 1), (3, 2, 1)):
        net = random_net(
            seed,
            head,
            max_length=32,
            layers=layers,
            width=width,
            positions=False,
            scale=1.5 / width**0.6,
            output="values",
        )
        arithmetic = partial(_on_grid, net)
        data = {"arithmetic": arithmetic, "uniform": width == 1, "missing": False, "built": False}
        yield Subject(f"random {seed}: layers {layers}, width {width}", weights=net, data=data)
    data = {"arithmetic": _majority, "uniform": False, "missing": False, "built": True}
    yield Subject("MAJORITY, as built", weights=_majority(SWEEP[-1])[0], data=data)


def _on_grid(net: Weights, length: int) -> tuple[Weights, Grid]:
    return net, logarithmic(length)


def _majority(length: int) -> tuple[Weights, Grid]:
    """Return the net built for words up to a length, whose numbers grow like 4n, and its grid."""
    return build(majority("0", "01", length)), logarithmic(length, top=4 * (length + 1), score=1)


def check(subject: Subject) -> Evidence:
    return _written(subject) if subject.data["uniform"] else _compared(subject)


def _compared(subject: Subject) -> Evidence:
    """Compare circuits with nets, and measure how both grow."""
    witness, cases, sizes, types = None, dict[int, int](), dict[int, Size](), dict[int, int]()
    bits: dict[int, int] = {}
    for length in sorted({*LENGTHS, *SWEEP}):
        weights, grid = subject.data["arithmetic"](length)
        fixed = FixedNet(weights, grid)
        circuit = finite_precision_circuit(fixed, length)
        sizes[length], types[length] = circuit.circuit.size, max(circuit.types)
        bits[length] = sizes[length].weight_bits - (2 * grid.score + grid.bits + 1)
        if length > LONGER:
            continue
        words = all_words(2, length) if length in LENGTHS else random_words(2, length)
        circuit = without_value(circuit, words[0]) if subject.data["missing"] else circuit
        witness, cases[length] = witness or first_difference(fixed, circuit, words), len(words)
        if subject.data["built"] and not witness and (differing := difference(weights, circuit, words)):
            witness = {"word": words[differing[0]].tolist(), "actual": differing[1]}
    depths = [sizes[length].depth for length in SWEEP]
    domains = (
        Domain(CaseKind.WORDS, Method.EXHAUSTIVE, sum(cases.values()) - cases[LONGER], LENGTHS[0], LENGTHS[-1]),
        Domain(CaseKind.WORDS, Method.SAMPLED, cases[LONGER], LONGER, LONGER),
    )
    return witnessed(witness, sum(cases.values()), *domains, notes=("asymptotic",)).adding(
        Quantity("depth at most", max(size.depth for size in sizes.values()), depth_bound(fixed), "<="),
        Quantity("depth grows by", max(depths) - depths[0], 0, "<="),
        Quantity("bits of weights beyond 2S + bits + 1", max(bits.values()), 0, "<="),
        Quantity("gates grow like n^", exponent({length: sizes[length].gates for length in SWEEP})),
        Quantity("vectors grow like n^", exponent({length: types[length] for length in SWEEP})),
        *quantities({}, {f"n = {n}": {"vectors": types[n], **size.to_json()} for n, size in sizes.items()}),
    )


def _written(subject: Subject) -> Evidence:
    """Compare the circuits that the generator writes with nets, and measure its memory."""
    witness, cases, gates = None, 0, {}
    for length in WRITTEN:
        fixed, words = FixedNet(*subject.data["arithmetic"](length)), all_words(2, length)
        circuit, gates[length] = collected(UniformCircuit(fixed, length))
        circuit = without_value(circuit, words[0]) if subject.data["missing"] else circuit
        witness, cases = witness or first_difference(fixed, circuit, words), cases + len(words)
    streams = {length: UniformCircuit(FixedNet(*subject.data["arithmetic"](length)), length) for length in SUSPENDED}
    states = {length: _largest_state(stream) for length, stream in streams.items()}
    declared = {length: stream.declared for length, stream in streams.items()}
    formula = {length: stream.gates for length, stream in streams.items()}
    domain = Domain(CaseKind.WORDS, Method.EXHAUSTIVE, cases, *WRITTEN)
    return witnessed(witness, cases, domain, notes=("asymptotic; all vectors of the grid",)).adding(
        Quantity("gates are as many as declared", gates == {n: formula[n] for n in WRITTEN}, True, "="),
        Quantity("numbers in memory", max(numbers for numbers, _ in states.values()), 30, "<="),
        Quantity("bits beyond those declared", max(bits - declared[n] for n, (_, bits) in states.items()), 0, "<="),
        Quantity("bits declared per doubling", max(b - a for a, b in pairwise(declared.values())), 3, "<="),
        Quantity("gates grow like n^", exponent({n: formula[n] for n in SWEEP})),
        *quantities(
            {}, {f"n = {n}": {"gates": formula[n], "numbers": states[n][0], "bits": states[n][1]} for n in states}
        ),
    )


def _largest_state(stream: UniformCircuit) -> tuple[int, int]:
    """Return the most numbers, and the longest in bits, that the generator holds between two wires."""
    wires, most = stream.wires(), (0, 0)
    for _ in islice(wires, 0, WIRES, STRIDE):
        state = memory(wires)
        most = max(most[0], state.numbers), max(most[1], state.bits)
    return most


def sabotage(subject: Subject) -> Subject:
    return subject.with_data(missing=True)


FIGURE = show(*circuits(**{"n²": lambda n: n**2, "n⁴": lambda n: n**4}))
CLAIM = Claim(
    subjects,
    check,
    sabotage,
    id="B15",
    standing="theorem",
    uncertified="about any net, and the circuit made of it",
    figure=FIGURE,
)
