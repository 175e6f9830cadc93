"""Specs of every type in several sizes: what size formulas are measured on. A new type of spec needs a line."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, flip_flop, gridworld, product, random_automaton, symmetric_group
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton, random_pfsa
from vitrify.spec.computation.circuit import Circuit, adder, random_circuit
from vitrify.spec.computation.connectivity import Connectivity
from vitrify.spec.computation.probabilistic_turing import (
    ProbabilisticTuringMachine,
    equal_numbers,
    marked_palindromes,
    random_probabilistic_machine,
)
from vitrify.spec.computation.turing import TuringMachine, increment, random_machine
from vitrify.spec.geometry.grid import GridFunction
from vitrify.spec.geometry.max_min import MaxMin
from vitrify.spec.geometry.maxout import Maxout, random_maxout, random_relu, zigzag
from vitrify.spec.geometry.scene import Scene, random_bitmaps, random_scene
from vitrify.spec.geometry.triangulation import Triangulation, random_triangulation
from vitrify.spec.grammars.families import random_grammar, random_hierarchy
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.languages.word_patterns import WordPatterns, random_patterns, waking_up
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.memory.associations import Associations, random_associations
from vitrify.spec.memory.facts import Facts, random_facts
from vitrify.spec.memory.knowledge import Knowledge, random_world, xor_world
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import NGramModel
from vitrify.spec.programs import families as library
from vitrify.spec.programs.program import Program, program
from vitrify.spec.tasks.comparison import Comparison
from vitrify.spec.tasks.composition import Composition
from vitrify.spec.tasks.copying import Copying
from vitrify.spec.tasks.estimate import Estimate
from vitrify.spec.tasks.formula_value import FormulaValue
from vitrify.spec.tasks.k_hop import KHop
from vitrify.spec.tasks.match2 import Match2
from vitrify.spec.tasks.match3_bigram import Match3Bigram
from vitrify.spec.tasks.match3_local import Match3Local
from vitrify.spec.tasks.nearest import Nearest
from vitrify.spec.tasks.pointer_averaging import PointerAveraging
from vitrify.spec.tasks.reachability import Reachability
from vitrify.spec.tasks.recall import Recall
from vitrify.spec.tasks.sparse_averaging import SparseAveraging


def _parity_of(letters: int) -> Automaton:
    """Whether the number of letters that are not the first is odd."""
    names = [chr(ord("a") + i) for i in range(letters)]
    rows = {state: {a: other if i else state for i, a in enumerate(names)} for state, other in ("eo", "oe")}
    return Automaton.from_dict(states=["e", "o"], alphabet=names, transitions=rows, initial="e", accepting=["o"])


def _formula(text: str, length: int) -> Formula:
    return Formula.from_text(f"alphabet: a b\nlength: {length}\n{text}")


def _counting(text: str, length: int) -> Crasp:
    return Crasp.from_text(f"alphabet: a b\nlength: {length}\n{text}")


SWEEPS: dict[type, Sequence[object]] = {
    Associations: [random_associations(n, seed=n) for n in (12, 30, 70)],
    Automaton: [
        *map(cyclic, (1, 2, 3, 5, 8)),
        product(cyclic(2), cyclic(2)),
        product(cyclic(2), cyclic(3)),
        *map(_parity_of, (2, 3, 5)),
        flip_flop(),
        *map(gridworld, (2, 3, 4)),
        *(Automaton.from_regex(text) for text in ("(a|b)*a(a|b)*", "(a|b)*a(a|b)*a(a|b)*", "(aa)*aaa|b", "(ab|ba)*")),
        symmetric_group(3),
        random_automaton(4, 2, seed=1),
    ],
    Circuit: [adder(1), adder(2), random_circuit(1, 3, 12, 2), random_circuit(2, 4, 20, 3)],
    Comparison: [
        *(Comparison("equality", size, symbols) for size, symbols in ((2, 2), (5, 4), (40, 3))),
        *(Comparison("disjointness", size) for size in (1, 9)),
    ],
    Composition: [Composition(n) for n in (2, 3, 5)],
    Connectivity: [Connectivity.of(n) for n in (2, 3, 5)],
    Copying: [Copying(symbols, size, gram) for symbols, size, gram in ((2, 3, 2), (3, 4, 3), (4, 3, 1))],
    Crasp: [
        _counting(text, length)
        for text, length in (("#a < #b", 6), ("#(#a < #b) = 0", 9), ("#(#a < #b) = 0 & 2 * #a = #true & MOD(1, 2)", 12))
    ],
    Dyck: [Dyck.of_kinds(kinds, depth, 12) for kinds, depth in ((1, 1), (2, 2), (3, 3), (5, 2), (1, 4))],
    Estimate: [Estimate(order, symbols, length) for order, symbols, length in ((1, 2, 8), (2, 2, 9), (1, 4, 12))],
    FormulaValue: [FormulaValue(text) for text in ("a", "a | !b", "(a & !b) | (!a & b)", "a & (b | c) & d")],
    Facts: [random_facts(s, r, a, seed=s) for s, r, a in ((2, 1, 1), (4, 3, 2), (9, 4, 3))],
    Formula: [
        _formula(text, length)
        for text, length in (("Y a", 6), ("a S b", 9), ("b -> Y (a S b)", 12), ("O (a & Y b)", 9))
    ],
    Grammar: [
        Grammar.from_text("S -> 'a'"),
        Grammar.from_text("S -> A B\nA -> 'a' | 'b'\nB -> 'c' A | 'd'"),
        random_grammar(2, shapes=20),
        *(random_hierarchy(3, 2, 2, depth, 1).plain() for depth in (1, 2, 3)),
        random_hierarchy(2, 1, 2, 2, 0).plain(),
    ],
    GridFunction: [
        GridFunction(box=((-1.0, 2.0),) * len(cells), cells=cells, values=tuple(i % 3 - 0.5 * i for i in range(count)))
        for cells, count in (((3,), 4), ((2, 1), 6), ((3, 3), 16), ((1, 2, 1), 12))
    ],
    KHop: [KHop(hops, symbols, length) for hops, symbols, length in ((1, 3, 8), (2, 4, 12), (3, 3, 12), (6, 5, 16))],
    Knowledge: [xor_world(), *(random_world(s, tasks=(2, s + 2), long_keys=0.3 * (s != 2)) for s in (1, 2, 3))],
    Match2: [Match2(m, n) for m, n in ((2, 4), (5, 8), (9, 12))],
    Match3Bigram: [Match3Bigram(m, n) for m, n in ((2, 4), (5, 6), (7, 8))],
    Match3Local: [Match3Local(m, n, k) for m, n, k in ((2, 4, 1), (3, 6, 1), (5, 6, 2), (7, 8, 1))],
    MaxMin: [
        MaxMin(box=((-1.0, 1.0), (0.0, 2.0)), function=text)
        for text in (
            "max(x1, x2, 1)",
            "min(x1, 1 - x2)",
            "max(min(x1, x2), min(1 - x1, x2, 0.25))",
            "2*x1 - x2",
            "3 - 3",
        )
    ],
    Maxout: [
        zigzag(3, 2),
        zigzag(2, 1),
        random_relu((2, 3, 1), 0),
        random_maxout((2, 3, 2), 3, 0),
        random_maxout((3, 8, 5, 7, 2), 3, 0),
        random_maxout((2, 1), 1, 0),
        random_maxout((1, 4, 1), 2, 1),
    ],
    NGramModel: [random_ngram(w, n, seed=w) for w, n in ((2, 1), (2, 2), (3, 2), (2, 3), (3, 3), (2, 4), (70, 2))],
    Nearest: [Nearest(*sizes) for sizes in ((3, 2, 1), (8, 2, 3), (25, 4, 6), (64, 3, 12))],
    Reachability: [Reachability(n) for n in (2, 4, 6)],
    PointerAveraging: [
        PointerAveraging(*sizes) for sizes in ((5, 1, 1, 2), (12, 2, 2, 1), (40, 3, 1, 2), (300, 2, 3, 1))
    ],
    ProbabilisticAutomaton: [
        *(random_pfsa(seed, *size) for seed, size in enumerate(((1, 1), (2, 2), (3, 2), (4, 3)))),
        *(random_pfsa(seed, 2 + seed, 2, deterministic=True) for seed in range(3)),
    ],
    ProbabilisticTuringMachine: [
        equal_numbers(),
        marked_palindromes(),
        *(random_probabilistic_machine(seed, 1 + seed, 2 + seed % 3) for seed in range(3)),
    ],
    Program: [
        program(library.reverse(), "ab", 6),
        program(library.reverse(), "abc", 9),
        program(library.dyck1("a", "b"), "ab", 12, causal=True),
    ],
    Recall: [
        Recall(*sizes, fused=f) for sizes, f in (((2, 2, 2, 1), False), ((4, 3, 3, 2), True), ((6, 5, 4, 3), False))
    ],
    Scene: [random_bitmaps(1), random_bitmaps(2), random_bitmaps(3, composites=1), random_scene(0), random_scene(1)],
    SparseAveraging: [
        SparseAveraging(sparsity=q, dimensions=d, length=n) for q, d, n in ((1, 1, 4), (2, 2, 6), (3, 2, 8))
    ],
    Triangulation: [random_triangulation(inner, inner, dimensions=d) for inner, d in ((0, 1), (3, 1), (3, 2), (1, 3))],
    TuringMachine: [increment(2), increment(3), random_machine(0, 3, 3, length=4, steps=9)],
    WordPatterns: [WordPatterns((), (('"a"',),)), waking_up(2), waking_up(4), random_patterns(1), random_patterns(2)],
}
