r"""A transformer in $O(1)$ bits that rounds after every addition is a circuit of AND and OR gates of constant depth.

Statement: Take a transformer of $L$ layers whose numbers have a fixed number of bits, and whose sums over positions are
rounded after every addition, from left to right: first the sum of the weights, then that of shares times values. For
every $n$ there is a circuit of AND, OR and NOT gates with unbounded fan-in, of a depth that does not depend on $n$ and
a size polynomial in $n$, that computes it on words of length $n$. So its language is in AC⁰: it cannot count.
Why: A partial sum moves by $x \mapsto \mathrm{round}(x + a)$, a monotone map of a finite chain, with saturation too. A
monotone permutation of a finite chain is the identity, so the sum is an automaton without groups, a cascade of resets.
With *exact* sums that are rounded once the chain is infinite, the sum counts, and threshold gates are needed: the model
of accumulation decides the class.
Checked: Four random nets (one or two layers; softmax, or hard attention that averages ties; 1 or 2 significant bits)
and a net for MAJORITY: the circuit equals the net in this arithmetic on all words of length 2 to 8 and 1000 random
words each of length 12 and 24. It has no threshold gate. Depth is at most the declared constant, and does not grow from
$n = 12$ to 24; gates grow at most like $n^2$ (exponent fitted at 6, 12, 24). The maps of all summands on the grid are
monotone; where there are at most 13 partial sums, their holonomy has trivial groups. With exact sums and the same bits
the net for MAJORITY is right on all these words, with 1 significant bit wrong on some.
Not checked: The containment for all $n$. Sums in another order than from left to right; in a tree, partial sums are
added to each other, and this argument does not apply. The source's definition of rounding was not read.
Source: Li, Liu, Zhou & Ma 2024, arXiv 2402.12875 [A]: the containment; Schützenberger 1965 [K]. The arithmetic, the
cascade and the circuits here are our own.
Saboteur: The circuit is made for exact sums that are rounded once, at the end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.bounds.fixed_point import FixedNet, Grid
from vitrify.bounds.gates import Size, all_words
from vitrify.bounds.random_nets import random_net
from vitrify.bounds.rounded_sums import chain
from vitrify.bounds.tc0 import depth_bound, finite_precision_circuit
from vitrify.claims._circuits import exponent, first_difference, random_words
from vitrify.claims._figures import circuits, show
from vitrify.claims._nets import CaseKind, Domain, Evidence, Method, Quantity, Weights, quantities, witnessed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.net.architecture import Output
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.holonomy import Holonomy

LENGTHS = range(2, 9)  # of all words
SWEEP = (6, 12, 24)  # between which growth is measured; random words have the last length
DEGREE = 2.0  # of the number of gates
NETS: tuple[tuple[int, Head, int, Grid], ...] = (
    (14, Head("softmax", "none"), 1, Grid(1, 2, 3, 2)),
    (8, Head("softmax", "causal"), 2, Grid(1, 2, 3, 2)),
    (3, Head("softmax", "causal"), 2, Grid(1, 2, 3, 1)),
    (1, Head("hard", "causal", ties="average"), 1, Grid(1, 4, 3, 2)),
)
MAJORITY = Grid(3, 2, 1, 1)
MAX_DECOMPOSED = 13  # partial sums; of 15, the holonomy has more than 4096 image sets, which it refuses


def subjects() -> Subjects:
    """Random nets and a net that was built, each with its grid and the grid that its circuit is made for."""
    for seed, head, layers, grid in NETS:
        scale = 1.0 if head.attention == "softmax" else None
        sizes = {"max_length": SWEEP[-1], "width": 2, "layers": layers}
        name = (
            f"random {seed}: {head.attention}, mask {head.mask}, layers {layers}, {grid.significant} significant bits"
        )
        net = random_net(seed, head, scale=scale, positions=False, output="values", **sizes)
        yield Subject(name, weights=net, data={"grid": grid, "circuit grid": grid})
    yield Subject("MAJORITY", weights=majority(), data={"grid": MAJORITY, "circuit grid": MAJORITY})


def majority() -> Weights:
    r"""Return a net for MAJORITY at every length: is the mean over all letters, rounded to eighths, positive?

    The letter 1 counts as 1, the letter 0 as -7/8, and BOS as 0. With $a$ ones and $b$ zeros the mean is at least 1/16,
    and so rounded up, iff $16a - 14b \ge a + b + 1$, that is $a > b$.
    """
    head, output = Head("softmax"), Output("class", ("no", "yes"))
    block = Block((head,), d_head=1, d_value=1)
    net = Transformer(("<s>", "0", "1"), output, max_length=SWEEP[-1], d_model=2, blocks=(block,))
    arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][:, 0] = [0, -7 / 8, 1]
    for name in ("blocks.0.attn.W_V", "blocks.0.attn.W_O"):
        arrays[name][0, 0, -1] = 1  # reads dimension 0 and writes dimension 1
    arrays["unembed.W_U"][1, 1] = 1
    return Weights(net, arrays)


def check(subject: Subject) -> Evidence:
    grid = subject.data["grid"]
    fixed, source = FixedNet(subject.weights, grid), FixedNet(subject.weights, subject.data["circuit grid"])
    witness, cases, sizes = None, dict[int, int](), dict[int, Size]()
    for length in sorted({*LENGTHS, *SWEEP}):
        circuit = finite_precision_circuit(source, length)
        words = all_words(2, length) if length in LENGTHS else random_words(2, length)
        witness = witness or first_difference(fixed, circuit, words)
        cases[length], sizes[length] = len(words), circuit.circuit.size
    every, last = sum(cases[length] for length in LENGTHS), SWEEP[-1]
    domains = (
        Domain(CaseKind.WORDS, Method.EXHAUSTIVE, every, LENGTHS[0], LENGTHS[-1]),
        Domain(CaseKind.WORDS, Method.SAMPLED, sum(cases.values()) - every, SWEEP[1], last),
    )
    evidence = witnessed(witness, sum(cases.values()), *domains, notes=("asymptotic; sums run from left to right",))
    return evidence.adding(
        Quantity("threshold gates", max(size.thresholds for size in sizes.values()), 0, "="),
        Quantity("depth at most", max(size.depth for size in sizes.values()), depth_bound(fixed), "<="),
        Quantity("depth grows by", sizes[last].depth - sizes[SWEEP[1]].depth, 0, "<="),
        Quantity(
            "gates grow at most like n^", exponent({length: sizes[length].gates for length in SWEEP}), DEGREE, "<="
        ),
        *_certificate(grid),
        *(_contrast(subject, grid) if subject.name == "MAJORITY" else ()),
        *quantities({}, {f"n = {length}": size.to_json() for length, size in sizes.items()}),
    )


def _certificate(grid: Grid) -> tuple[Quantity, ...]:
    """Return the certificate that partial sums have no groups: no map of a summand on the grid falls anywhere."""
    top = grid.top << grid.fraction
    points, maps = chain(grid, tuple(range(-top, top + 1)))
    falls = int((np.diff(np.array(maps), axis=1) < 0).sum())
    counted = Quantity("values of a partial sum", len(points), grid.partial_sums, "=")
    steps = Quantity(f"steps at which one of {len(maps)} maps falls", falls, 0, "=")
    if len(points) > MAX_DECOMPOSED:
        return counted, steps
    letters = tuple(map(str, range(len(maps))))
    table = tuple(tuple(map_[x] for map_ in maps) for x in range(len(points)))
    sums = Automaton(tuple(map(str, points)), letters, table, points.index(0), frozenset())
    trivial = all(group.order == 1 for _, group in Holonomy(sums).groups())
    return counted, steps, Quantity("groups of the holonomy are trivial", trivial, True, "=")


def _contrast(subject: Subject, grid: Grid) -> tuple[Quantity, ...]:
    """Return on how many words of the check the net misses MAJORITY, with exact sums and with rounded ones."""
    wrong = {}
    for name, arithmetic in (("exact", replace(grid, significant=None)), ("rounded", grid)):
        fixed, wrong[name] = FixedNet(subject.weights, arithmetic), 0
        for length in (*LENGTHS, *SWEEP):
            words = all_words(2, length) if length in LENGTHS else random_words(2, length)
            more = 2 * (words == 2).sum(axis=1) > length
            wrong[name] += int((fixed.run(words)[:, -1].argmax(axis=-1) != more).sum())
    return (
        Quantity("words on which exact sums miss MAJORITY", wrong["exact"], 0, "="),
        Quantity("words on which rounded sums miss MAJORITY", wrong["rounded"], 1, ">="),
    )


def sabotage(subject: Subject) -> Subject:
    return subject.with_data(**{"circuit grid": replace(subject.data["grid"], significant=None)})


FIGURE = show(*circuits())
CLAIM = Claim(
    subjects,
    check,
    sabotage,
    id="B13",
    standing="theorem",
    uncertified="about any net, and the circuit made of it",
    figure=FIGURE,
)
