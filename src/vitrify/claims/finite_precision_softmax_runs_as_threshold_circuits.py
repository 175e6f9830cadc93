r"""A softmax transformer in finite precision is, at every length, a threshold circuit of constant depth.

Statement: Take a transformer with $L$ layers whose numbers have a fixed number of bits: activations on a grid,
attention weights rounded to powers of two, exact sums, one rounding. For every $n$ there is a circuit of AND, OR, NOT
and weighted threshold gates, of depth at most $3L + 2$ (not counting NOT) and size polynomial in $n$, that computes it
on words of length $n$. So its language is in TC⁰. With $O(\log n)$ bits there are $n^{O(1)}$ possible vectors
(*types*), and such circuits are still polynomial.
Why: A weighted mean, rounded to the grid, is at least $\theta$ iff $\sum_j w_j(2v_j + 1 - 2\theta) \ge 0$ in units of
the grid: one threshold gate over the bits that say which vectors are at which positions.
Checked: Four random two-layer nets (one or two heads, with and without masks and positions) and the net built for
MAJORITY: the circuit equals the net in finite precision on all words of length 2 to 10. Depth is at most $3L + 2$. From
$n = 8$ to 16 depth must not grow, gates at most like $n^2$, weights by at most one bit. Types, gates by kind, wires and
depth are recorded for each $n$.
Not checked: The containment for all $n$. That such nets cannot multiply in $S_5$ is cited, and conditional on TC⁰ ≠
NC¹. $O(\log n)$ bits and uniformity are a claim of their own,
`logarithmic_precision_runs_as_uniform_threshold_circuits`.
Source: Merrill & Sabharwal 2023, arXiv 2207.00729 [S] (logarithmic precision); Strobl 2023, arXiv 2308.03212 [S]
(average-hard attention); Barrington 1989 [S] for $S_5$. The arithmetic and the circuits here are our own.
Saboteur: The circuit is made from a net in which the heads of the last layer output zero.
"""

from __future__ import annotations

from math import log2

from vitrify.bounds.fixed_point import FixedNet, Grid
from vitrify.bounds.gates import Size, all_words
from vitrify.bounds.random_nets import random_net
from vitrify.bounds.tc0 import BLOCK_DEPTH, finite_precision_circuit
from vitrify.claims._circuits import first_difference
from vitrify.claims._figures import circuits, show
from vitrify.claims._nets import CaseKind, Domain, Evidence, Method, Quantity, quantities, witnessed, zeroed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.catalogue import build
from vitrify.net.transformer import Head, Mask
from vitrify.spec.logic.crasp import majority

LENGTHS = range(2, 11)
DOUBLED = (8, 16)  # the lengths between which growth is measured
DEGREE = 2.0
NETS: tuple[tuple[int, Mask, int, bool, Grid], ...] = (
    (8, "causal", 1, False, Grid(0, 2, 3)),
    (4, "none", 1, False, Grid(1, 2, 4)),
    (15, "causal", 1, True, Grid(0, 2, 3)),
    (14, "causal", 2, False, Grid(0, 1, 3)),
)
MAJORITY = Grid(2, 20, 6)


def subjects() -> Subjects:
    """Random nets of two layers and a net that was built, with the grid on which they compute."""
    for seed, mask, heads, positions, grid in NETS:
        head, name = Head("softmax", mask), f"random {seed}: mask {mask}, heads {heads}, positions {positions}"
        sizes = {"max_length": 16, "heads": heads, "width": 2}
        net = random_net(seed, head, **sizes, positions=positions, scale=1.0, output="values")
        name += f", {grid.bits} bits"
        yield Subject(name, weights=net, data={"grid": grid, "of": net})
    net = build(majority("0", "01", DOUBLED[1]))
    yield Subject("MAJORITY, as built", weights=net, data={"grid": MAJORITY, "of": net})


def check(subject: Subject) -> Evidence:
    net, grid = subject.weights.architecture, subject.data["grid"]
    fixed, made_of = FixedNet(subject.weights, grid), FixedNet(subject.data["of"], grid)
    sizes: dict[int, Size] = {}
    table: dict[str, object] = {}
    witness: dict[str, object] | None = None
    cases = 0
    for length in LENGTHS:
        made, words = finite_precision_circuit(made_of, length), all_words(2, length)
        cases, sizes[length] = cases + len(words), made.circuit.size
        table[f"n = {length}"] = {"types": max(made.types), "answers": len(made.answers), **sizes[length].to_json()}
        witness = witness or first_difference(fixed, made, words)
    half, full = (finite_precision_circuit(made_of, length).circuit.size for length in DOUBLED)
    depth = max(size.depth for size in (*sizes.values(), full))
    words_to = Domain(CaseKind.WORDS, Method.EXHAUSTIVE, cases, LENGTHS[0], LENGTHS[-1])
    notes = ("asymptotic; that S5 is outside of TC0 is conditional on TC0 and NC1 being different",)
    return witnessed(witness, cases, words_to, notes=notes).adding(
        Quantity("depth at most", depth, BLOCK_DEPTH * len(net.blocks) + 2, "<="),
        Quantity("depth grows by", full.depth - half.depth, 0, "<="),
        Quantity("gates grow at most like n^", round(log2(full.gates / half.gates), 2), DEGREE, "<="),
        Quantity("bits of weights grow by", full.weight_bits - half.weight_bits, 1, "<="),
        *quantities({}, table),
    )


def sabotage(subject: Subject) -> Subject:
    silent = zeroed(subject, f"blocks.{len(subject.weights.architecture.blocks) - 1}.attn.W_O")
    return subject.with_data(of=silent.weights)


FIGURE = show(*circuits())
CLAIM = Claim(
    subjects,
    check,
    sabotage,
    id="B8",
    standing="theorem",
    budget_seconds=20,
    uncertified="about any net, and the circuit made of it",
    figure=FIGURE,
)
