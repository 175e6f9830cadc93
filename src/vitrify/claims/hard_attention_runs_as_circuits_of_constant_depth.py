r"""Hard attention on words of $n$ letters is computed by a circuit of constant depth and polynomial size.

Statement: For every transformer with $L$ layers of hard attention that breaks ties to one side, and every $n$, there is
a circuit of AND, OR and NOT gates with unbounded fan-in, of depth at most $5L + 2$ and size polynomial in $n$, that
computes it on words of length $n$: it is in AC⁰. So PARITY and MAJORITY are beyond every such net at all sufficiently
large $n$.
Why: A head copies one value, so with $H$ heads a layer and $S$ letters at most $(Sn)^{(1+H)^L}$ vectors can occur. A
gate for each says whether it occurs; whether a key wins, and which value is read, are ANDs and ORs of such gates, five
levels a layer.
Checked: Three formulas of temporal logic, a bracket recognizer, two 3-gram nets and two random nets: the circuit is
made in exact rational arithmetic from the stored weights and compared with the net in floating point on all words to
length 8 (3 letters) or 10 (2 letters). Depth is at most $5L + 2$ and does not grow from $n = 8$ to 16; gates grow at
most like $n^2$. Rewritten with two-input gates (AIGER) it gives the same on all words of length 4.
Not checked: The containment for all $n$; PARITY ∉ AC⁰ is cited, and neither says from which $n$ on a given net fails.
Averaging hard attention is not covered.
Source: Hao, Angluin & Frank 2022, arXiv 2204.06618 [S]: the containment; the circuits here are our own.
Saboteur: The circuit is made from a net whose last heads output zero.
"""

from __future__ import annotations

from dataclasses import replace
from math import log2

import numpy as np

from vitrify.bounds.ac0 import BLOCK_DEPTH, difference, hard_attention_circuit, to_aiger
from vitrify.bounds.activations import ExactNet
from vitrify.bounds.gates import all_words, input_bits
from vitrify.bounds.random_nets import random_net
from vitrify.claims._figures import circuits, show
from vitrify.claims._nets import CaseKind, Domain, Evidence, Method, Quantity, Weights, quantities, witnessed, zeroed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.catalogue import build
from vitrify.net.transformer import Head, Ties
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.ngrams.families import random_ngram

LONGEST = {2: 10, 3: 8}  # letters: length to which all words are tried
RANDOM: tuple[tuple[int, Ties], ...] = ((4, "left"), (17, "right"))
FORMULAS = ("!c S a", "H (b -> Y a)", "O (c & O (b & O a))")
DOUBLED = (8, 16)  # the lengths between which growth is measured
DEGREE = 2.0  # gates must grow no faster than this power of the length


def subjects() -> Subjects:
    """Formulas, brackets, n-grams in two shapes, random nets; each with the net of which the circuit is made."""
    for text in FORMULAS:
        spec = Formula.from_text(f"alphabet: a b c\nlength: {DOUBLED[1]}\n{text}")
        yield _subject(f"formula {text}", build(spec, attention="hard"))
    brackets = Dyck.of_kinds(1, 2, DOUBLED[1])
    yield _subject("brackets to depth 2", build(brackets, "dyck-recognizer", attention="hard"))
    for shape in ("heads", "layers"):
        net = build(random_ngram(2, 3, seed=1), shape, attention="hard", max_length=DOUBLED[1])
        yield _subject(f"3-gram, {shape}", net)
    for seed, ties in RANDOM:
        net = random_net(seed, Head("hard", "none", ties=ties), max_length=DOUBLED[1], positions=False, output="values")
        yield _subject(f"random, ties to the {ties}", net)


def _subject(name: str, weights: Weights) -> Subject:
    return Subject(name, weights=weights, data={"of": weights})


def check(subject: Subject) -> Evidence:
    weights, exact = subject.weights, ExactNet(subject.data["of"])
    letters, layers = len(weights.architecture.inputs) - 1, len(weights.architecture.blocks)
    longest, cases, table = LONGEST[letters], 0, {}
    witness: dict[str, str] | None = None
    for length in range(2, longest + 1):
        made, words = hard_attention_circuit(exact, length), all_words(letters, length)
        cases += len(words)
        table[length] = made.circuit.size
        differing = difference(weights, made, words)
        if differing:
            word = " ".join(weights.architecture.inputs[t] for t in words[differing[0]])
            witness = {"word": word, "actual": differing[1]}
            break
    declared = {"depth at most": BLOCK_DEPTH * layers + 2, "depth grows by": 0, "gates grow at most like n^": DEGREE}
    measured: dict[str, object] = {f"n = {n}": size.to_json() for n, size in table.items()}
    same: tuple[Quantity, ...] = ()
    if witness is None:
        half, full = (hard_attention_circuit(exact, length).circuit.size for length in DOUBLED)
        numbers = (full.depth, full.depth - half.depth, round(log2(full.gates / half.gates), 2))
        figures, narrow = dict(zip(declared, numbers, strict=True)), _narrow(exact, letters)
        measured |= {**figures, f"n = {DOUBLED[1]}": full.to_json()}
        same = (Quantity("two-input gates say the same", narrow, True, "="),)
    notes = ("the containment is unconditional but asymptotic: words are tried to the stated length",)
    evidence = witnessed(witness, cases, Domain(CaseKind.WORDS, Method.EXHAUSTIVE, cases, 2, longest), notes=notes)
    return evidence.adding(*quantities(declared, measured, "<="), *same)


def _narrow(exact: ExactNet, letters: int) -> bool:
    """Return whether the circuit of two-input gates gives the same on all words of four letters."""
    wide, bits = hard_attention_circuit(exact, 4).circuit, input_bits(all_words(letters, 4), letters)
    return bool(np.array_equal(to_aiger(wide).evaluate(bits), wide.evaluate(bits)))


def sabotage(subject: Subject) -> Subject:
    block = max(index for index, block in enumerate(subject.weights.architecture.blocks) if block.heads)
    return replace(subject, data={"of": zeroed(subject, f"blocks.{block}.attn.W_O").weights})


FIGURE = show(*circuits())
CLAIM = Claim(
    subjects,
    check,
    sabotage,
    id="B6",
    standing="theorem",
    uncertified="about any net, and the circuit made of it",
    figure=FIGURE,
)
