r"""Hard attention that averages ties is, in $O(\log n)$ bits, a threshold circuit of constant depth.

Statement: Take a transformer with $L$ layers of hard attention that averages over all best keys, whose numbers are
rounded to $O(\log n)$ bits. For every $n$ there is a circuit of AND, OR, NOT and weighted threshold gates, of depth at
most $6L + 2$ (not counting NOT) and size polynomial in $n$, that computes it on words of length $n$. So its language is
in TC⁰.
Why: There are $n^{O(1)}$ vectors. Which score is the best is an OR and an AND over the bits that say which vectors are
at which positions. For each score that may be the best, the mean of the values is at least $\theta$ iff $\sum_j
(2v_j+1-2\theta) \ge 0$ over the tied keys in units of the grid: one threshold gate adds numerator and denominator, and
divides.
Checked: Three random nets of two layers, in $\lceil \log_2 n \rceil$ bits after the point, and the nets built for
MAJORITY, in two bits more: the circuit equals the net in this arithmetic on all words of length 2 to 8 and 1000 random
words of length 16; for MAJORITY it also equals the net itself, in floating point. Depth is at most $6L + 2$ and the
same at $n = 4$, 8 and 16. Exponents of gates, and of distinct vectors at a position after each layer, are fitted at
these lengths; the latter is at most that of all vectors of the grid.
Not checked: The containment for all $n$; uniformity, which Strobl proves. Without rounding the vectors are *not*
$n^{O(1)}$ many: of the means over $i$ of the means over $j \le i$ of $n$ bits, which two layers compute, there are
$2^n$ for $n \le 11$ (see the tests). Both sources round, too: they take floating-point numbers of $O(\log n)$ bits.
Source: Merrill, Sabharwal & Smith 2022, arXiv 2106.16213 [S]; Strobl 2023, arXiv 2308.03212 [A]. The arithmetic and the
circuits here are our own.
Saboteur: One vector is missing in the circuit: the one that the last position holds after the word 0…0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vitrify.bounds.ac0 import difference
from vitrify.bounds.fixed_point import FixedNet, Grid, logarithmic
from vitrify.bounds.gates import Size, all_words
from vitrify.bounds.random_nets import random_net
from vitrify.bounds.tc0 import depth_bound, finite_precision_circuit
from vitrify.claims._circuits import exponent, first_difference, random_words, without_value
from vitrify.claims._figures import circuits, show
from vitrify.claims._nets import CaseKind, Domain, Evidence, Method, Quantity, Weights, quantities, witnessed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.catalogue import build
from vitrify.net.transformer import Head, Mask
from vitrify.spec.logic.crasp import majority

LENGTHS = range(2, 9)  # of all words
SWEEP = (4, 8, 16)  # between which growth is measured; random words have the last length
DIGITS = 2  # after the point beyond log n, in the nets built for MAJORITY
RANDOM: tuple[tuple[int, Mask], ...] = ((1, "causal"), (2, "none"), (2, "causal"))
TOP = 2  # the largest number of random nets

Arithmetic = Callable[[int], tuple[Weights, Grid]]


def subjects() -> Subjects:
    """Random nets, and the nets that are built for MAJORITY, one for each length."""
    for seed, mask in RANDOM:
        head = Head("hard", mask, ties="average")
        net = random_net(seed, head, max_length=SWEEP[-1], width=2, positions=False, output="values")
        yield _subject(f"random {seed}, mask {mask}", partial(_on_grid, net))
    yield _subject("MAJORITY, as built", _majority, built=True)


def _on_grid(net: Weights, length: int) -> tuple[Weights, Grid]:
    return net, logarithmic(length, top=TOP)


def _majority(length: int) -> tuple[Weights, Grid]:
    """Return the net built for words up to a length, whose numbers grow like 4n, and its grid."""
    grid = logarithmic(length, digits=DIGITS, top=4 * (length + 1))
    return build(majority("0", "01", length), attention="hard"), grid


def _subject(name: str, arithmetic: Arithmetic, *, built: bool = False) -> Subject:
    data = {"arithmetic": arithmetic, "built": built, "missing": False}
    return Subject(name, weights=arithmetic(SWEEP[-1])[0], data=data)


def check(subject: Subject) -> Evidence:
    witness, cases, sizes = None, dict[int, int](), dict[int, Size]()
    types, vectors = dict[int, tuple[int, ...]](), dict[int, int]()
    for length in sorted({*LENGTHS, *SWEEP}):
        weights, grid = subject.data["arithmetic"](length)
        fixed = FixedNet(weights, grid)
        words = all_words(2, length) if length in LENGTHS else random_words(2, length)
        circuit = finite_precision_circuit(fixed, length)
        if subject.data["missing"]:
            circuit = without_value(circuit, words[0])
        witness = witness or first_difference(fixed, circuit, words)
        if subject.data["built"] and not witness and (differing := difference(weights, circuit, words)):
            witness = {"word": words[differing[0]].tolist(), "actual": differing[1]}
        cases[length], sizes[length], types[length] = len(words), circuit.circuit.size, circuit.types
        vectors[length] = grid.values**weights.architecture.d_model
    every, last = sum(cases[length] for length in LENGTHS), SWEEP[-1]
    domains = (
        Domain(CaseKind.WORDS, Method.EXHAUSTIVE, every, LENGTHS[0], LENGTHS[-1]),
        Domain(CaseKind.WORDS, Method.SAMPLED, sum(cases.values()) - every, last, last),
    )
    layers = range(1, len(types[last]))
    slopes = {layer: exponent({length: types[length][layer] for length in SWEEP}) for layer in layers}
    table = {f"n = {n}": {"vectors by layer": types[n], **size.to_json()} for n, size in sizes.items()}
    depths = [sizes[length].depth for length in SWEEP]
    return witnessed(witness, sum(cases.values()), *domains, notes=("asymptotic",)).adding(
        Quantity("depth at most", max(size.depth for size in sizes.values()), depth_bound(fixed), "<="),
        Quantity("depth grows by", max(depths) - depths[0], 0, "<="),
        Quantity("vectors grow at most like n^", max(slopes.values()), _degree(vectors), "<="),
        Quantity("gates grow like n^", exponent({length: sizes[length].gates for length in SWEEP})),
        *quantities({}, {f"vectors after layer {layer} grow like n^": slope for layer, slope in slopes.items()}),
        *quantities({}, table),
    )


def _degree(vectors: dict[int, int]) -> float:
    return exponent({length: vectors[length] for length in SWEEP})


def sabotage(subject: Subject) -> Subject:
    return subject.with_data(missing=True)


FIGURE = show(*circuits())
CLAIM = Claim(
    subjects,
    check,
    sabotage,
    id="B14",
    standing="theorem",
    uncertified="about any net, and the circuit made of it",
    figure=FIGURE,
)
