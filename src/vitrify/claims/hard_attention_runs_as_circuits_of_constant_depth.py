r"""What hard attention computes on words of $n$ letters, a circuit of constant depth and polynomial size computes.

Statement: a transformer of $L$ layers with hard attention that breaks its ties to one side is, on words of length $n$,
a circuit of AND, OR and NOT gates with unbounded fan-in, of depth at most $5L + 2$ for every $n$ and a number of gates
that is a polynomial in $n$: hard attention is inside AC⁰. So PARITY and MAJORITY, which are unconditionally outside,
are beyond any such net once words are long enough; how long, the theorem does not say.
Why: a head copies one value, so finitely many vectors can stand at a position. That one of them stands there, that a
key wins, that a value is brought are statements about bits, each with one more AND or OR over the ones before.
Checked: for formulas of temporal logic, brackets, n-grams and random nets, the circuit is made by exact rational
arithmetic from the stored weights and compared with the net, run in floating-point numbers, on all words to length 8 (3
letters) or 10 (2 letters); its depth against $5L + 2$; from length 8 to 16, whether the depth grows, and how fast the
number of gates does. Split into trees of two-input gates (AIGER), it says the same on all words of length 4. What
the table cannot show is the limit: containment in AC⁰ is about all lengths, and about nets of a fixed size.
Source: Hao, Angluin & Frank 2022, arXiv 2204.06618 [S]: the containment; the circuits here are our own.
Saboteur: the circuit is made of a net whose last heads bring nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

import numpy as np

from vitrify.bounds.ac0 import LEVELS, difference, hard_attention_circuit, to_aiger
from vitrify.bounds.activations import ExactNet
from vitrify.bounds.gates import Size, all_words, input_bits
from vitrify.bounds.random_nets import random_net
from vitrify.certify.evidence import Evidence
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.dyck_recogniser import dyck_recogniser
from vitrify.constructions.ngram import ngram
from vitrify.constructions.temporal import temporal
from vitrify.kit import assemble
from vitrify.net.transformer import Head, Ties
from vitrify.net.weights import Weights
from vitrify.spec.dyck import Dyck
from vitrify.spec.ltl import Formula
from vitrify.spec.ngrams import random_ngram

LONGEST = {2: 10, 3: 8}  # letters: length to which all words are tried
RANDOM: tuple[tuple[int, Ties], ...] = ((4, "left"), (17, "right"))
FORMULAS = ("!c S a", "H (b -> Y a)", "O (c & O (b & O a))")
DOUBLED = (8, 16)  # the lengths between which growth is measured
DEGREE = 2.0  # gates must grow no faster than this power of the length


def subjects() -> Iterator[Subject]:
    """Formulas, brackets, n-grams in two shapes, random nets; each with the net of which the circuit is made."""
    for text in FORMULAS:
        spec = Formula.from_text(f"alphabet: a b c\nlength: {DOUBLED[1]}\n{text}")
        yield _subject(f"formula {text}", assemble(temporal(spec)))
    yield _subject("brackets to depth 2", assemble(dyck_recogniser(Dyck.of_kinds(1, 2, DOUBLED[1]))))
    for shape in ("heads", "layers"):
        net = assemble(ngram(random_ngram(2, 3, seed=1), shape=shape, attention="hard", max_length=DOUBLED[1]))
        yield _subject(f"3-gram, {shape}", net)
    for seed, ties in RANDOM:
        net = random_net(seed, Head("hard", "none", ties=ties), max_length=DOUBLED[1], positions=False, output="values")
        yield _subject(f"random, ties to the {ties}", net)


def _subject(name: str, weights: Weights) -> Subject:
    return Subject(name, weights=weights, data={"of": weights})


def check(subject: Subject) -> Evidence:
    """The circuit against the net on all words, its depth and the growth of its gates."""
    weights, exact = subject.weights, ExactNet(subject.data["of"])
    letters, layers = len(weights.architecture.inputs) - 1, len(weights.architecture.blocks)
    longest, cases, table = LONGEST[letters], 0, {}
    witness: dict[str, str] | None = None
    for length in range(2, longest + 1):
        made, words = hard_attention_circuit(exact, length), all_words(letters, length)
        cases += len(words)
        table[length] = made.circuit.size
        found = difference(weights, made, words)
        if found:
            witness = {"word": " ".join(weights.architecture.inputs[t] for t in words[found[0]]), "found": found[1]}
            break
    declared = {"depth at most": LEVELS * layers + 2, "depth grows by": 0, "gates grow at most like n^": DEGREE}
    measured: dict[str, object] = {f"n = {n}": _row(size) for n, size in table.items()}
    if witness is None:
        half, full = (hard_attention_circuit(exact, length).circuit.size for length in DOUBLED)
        numbers = (full.depth, full.depth - half.depth, round(log2(full.gates / half.gates), 2))
        figures, narrow = dict(zip(declared, numbers, strict=True)), _narrow(exact, letters)
        measured |= {**figures, f"n = {DOUBLED[1]}": _row(full), "two-input gates say the same": narrow}
        over = {name: f"declared {declared[name]}, measured {n}" for name, n in figures.items() if n > declared[name]}
        witness = over or (None if narrow else {"found": "the circuit of two-input gates says something else"})
    return Evidence(
        verdict="fails" if witness is not None else "holds",
        method="exhaustive",
        domain=f"all words of 2 to {longest} letters",
        cases=cases,
        witness=witness,
        declared=declared,
        measured=dict.fromkeys(declared) | measured,
        notes=("the containment is unconditional but asymptotic: words are tried to the stated length",),
    )


def _row(size: Size) -> str:
    kinds = f"{size.ands} AND, {size.ors} OR, {size.nots} NOT"
    return f"{size.gates} gates ({kinds}), {size.wires} wires, depth {size.depth}"


def _narrow(exact: ExactNet, letters: int) -> bool:
    """Whether the circuit of two-input gates says the same on all words of four letters."""
    wide, bits = hard_attention_circuit(exact, 4).circuit, input_bits(all_words(letters, 4), letters)
    return bool(np.array_equal(to_aiger(wide).evaluate(bits), wide.evaluate(bits)))


def sabotage(subject: Subject) -> Subject:
    """The circuit is made of a net in which the heads of the last block with any bring nothing."""
    net = subject.weights.architecture
    block = max(index for index, block in enumerate(net.blocks) if block.heads)
    name = f"blocks.{block}.attn.W_O"
    silent = subject.weights.with_array(name, 0 * subject.weights.arrays[name])
    return Subject(subject.name, weights=subject.weights, data={"of": silent})


CLAIM = Claim(row="B6", status="proved", subjects=subjects, check=check, sabotage=sabotage)
