r"""A softmax transformer in finite precision is, at every length, a threshold circuit of constant depth.

Statement: a transformer of $L$ layers whose numbers have a fixed number of bits (activations on a grid, attention
weights powers of two, sums exact, one rounding) is, on words of length $n$, a circuit of AND, OR, NOT and weighted
threshold gates of depth at most $3L + 2$ for every $n$ and of a size that is a polynomial in $n$: it is inside TC⁰.
With $O(\log n)$ bits there are $n^{O(1)}$ types of vectors, and the same circuit is still polynomial.
Why: a rounded weighted mean is at least $\theta$ iff $\sum_j w_j(2v_j + 1 - 2\theta) \ge 0$, and this is one threshold
gate over the bits that say which vectors stand where.
Checked: for random nets of two layers with one or two heads, with and without masks and positions, and for the net
built for MAJORITY, the circuit equals the net in finite precision on all words to length 10 (all logits of random nets
compared exactly, the answers of the built one); its depth against $3L + 2$; from length 8 to 16, whether the depth
grows, how many more bits weights have, and whether the number of gates grows faster than $n^2$. The table gives types,
gates by kind, wires, depth and the bits of the largest weight for $n = 2$ to $10$. What this says and does not: the
containment is about all lengths (asymptotic) and unconditional. That the word problem of $S_5$ is beyond such nets is
conditional: it is complete for NC¹, and whether TC⁰ differs from NC¹ is not known.
Source: Merrill & Sabharwal 2023, arXiv 2207.00729 [S] (logarithmic precision); Strobl 2023, arXiv 2308.03212 [S];
Barrington 1989 [S] for $S_5$. The arithmetic and the circuits here are our own.
Saboteur: the circuit is made of a net in which the heads of the last layer bring nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import log2
from typing import Any

from vitrify.bounds.activations import read_answer
from vitrify.bounds.fixed_point import FixedNet, Grid
from vitrify.bounds.gates import Size, all_words
from vitrify.bounds.random_nets import random_net
from vitrify.bounds.tc0 import LEVELS, finite_precision_circuit
from vitrify.certify.evidence import Evidence
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.counting import counting
from vitrify.kit import assemble
from vitrify.net.transformer import Head, Mask
from vitrify.net.weights import Weights
from vitrify.spec.counting_languages import majority

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


def subjects() -> Iterator[Subject]:
    """Random nets of two layers and a net that was built, with the grid on which they compute."""
    for seed, mask, heads, positions, grid in NETS:
        net = random_net(
            seed,
            Head("softmax", mask),
            max_length=16,
            heads=heads,
            width=2,
            positions=positions,
            scale=1.0,
            output="values",
        )
        name = f"random {seed}: mask {mask}, heads {heads}, positions {positions}, {grid.bits} bits"
        yield Subject(name, weights=net, data={"grid": grid, "of": net})
    net = assemble(counting(majority("0", "01", DOUBLED[1])))
    yield Subject("MAJORITY, as built", weights=net, data={"grid": MAJORITY, "of": net})


def check(subject: Subject) -> Evidence:
    """The circuit against the net on all words, its depth and its growth."""
    net, grid = subject.weights.architecture, subject.data["grid"]
    fixed, made_of = FixedNet(subject.weights, grid), FixedNet(subject.data["of"], grid)
    sizes: dict[int, Size] = {}
    table: dict[str, Any] = {}
    witness: dict[str, Any] | None = None
    cases = 0
    for length in LENGTHS:
        made, words = finite_precision_circuit(made_of, length), all_words(2, length)
        wanted = [read_answer(net.output.kind, net.output.symbols, row) for row in fixed.run(words)[:, -1].tolist()]
        found, cases, sizes[length] = made.say(words), cases + len(words), made.circuit.size
        table[f"n = {length}"] = {"types": made.types, "answers": len(set(wanted)), **made.circuit.size.to_json()}
        wrong = [place for place in range(len(words)) if found[place] != wanted[place]]
        if wrong and witness is None:
            word = " ".join(net.inputs[token] for token in words[wrong[0]])
            witness = {"word": word, "expected": wanted[wrong[0]], "found": found[wrong[0]]}
    half, full = (finite_precision_circuit(made_of, length).circuit.size for length in DOUBLED)
    declared = {
        "depth at most": LEVELS * len(net.blocks) + 2,
        "depth grows by": 0,
        "gates grow at most like n^": DEGREE,
        "bits of weights grow by": 1,
    }
    growth = round(log2(full.gates / half.gates), 2)
    numbers = (
        max(size.depth for size in (*sizes.values(), full)),
        full.depth - half.depth,
        growth,
        full.weight_bits - half.weight_bits,
    )
    measured = dict(zip(declared, numbers, strict=True))
    over = {name: f"declared {declared[name]}, measured {n}" for name, n in measured.items() if n > declared[name]}
    witness = witness or over or None
    return Evidence(
        verdict="fails" if witness else "holds",
        method="exhaustive",
        domain=f"all words of {LENGTHS[0]} to {LENGTHS[-1]} letters",
        cases=cases,
        witness=witness,
        declared=declared,
        measured={**measured, **table},
        notes=("asymptotic; that S5 is outside of TC0 is conditional on TC0 and NC1 being different",),
    )


def sabotage(subject: Subject) -> Subject:
    """The circuit is made of a net whose last heads bring nothing."""
    weights: Weights = subject.weights
    name = f"blocks.{len(weights.architecture.blocks) - 1}.attn.W_O"
    return replace(subject, data={**subject.data, "of": weights.with_array(name, 0 * weights.arrays[name])})


CLAIM = Claim(row="B8", status="proved", subjects=subjects, check=check, sabotage=sabotage)
