"""Small nets of many shapes whose words can all be enumerated: what audits of the certifying methods break."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from audit import AuditedNet
from samples import ENTRIES, common
from vitrify.constructions.catalogue import Attention, build
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic
from vitrify.spec.automata.probabilistic import random_pfsa
from vitrify.spec.computation.circuit import random_circuit
from vitrify.spec.computation.turing import increment
from vitrify.spec.grammars.families import random_grammar
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.languages.word_patterns import waking_up
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.memory.associations import random_associations
from vitrify.spec.memory.facts import random_facts
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.programs import families as library
from vitrify.spec.programs.program import program
from vitrify.spec.tasks.catalogue import Task

LENGTH = 6
EXAMPLES = Path(__file__).parents[1] / "examples"
SOME_A = Automaton.from_regex("(a|b)*a(a|b)*")
FORMULA = Formula.from_text(f"alphabet: a b\nlength: {LENGTH}\nb -> Y (a S b)")
POSITIONS = Formula.from_text(f"alphabet: a b\nlength: {LENGTH}\nO (a & MOD(1, 3)) <-> Y b")
COUNTING = Crasp.from_text(f"alphabet: a b\nlength: {LENGTH}\n#(#a < #b) = 0 & 2 * #a = #true & MOD(1, 2)")

# name: spec, shape, attention, the length to which words are enumerated, and that for real arithmetic
NETS: dict[str, tuple[Any, str, Attention, int, int]] = {
    "n-gram, heads": (random_ngram(2, 3, seed=1), "heads", "softmax", LENGTH, 2),
    "n-gram, layers, sparse": (random_ngram(2, 3, seed=1), "layers", "sparsemax", LENGTH, 2),
    "n-gram, layers, hard": (random_ngram(2, 3, seed=1), "layers", "hard", LENGTH, 2),
    "n-gram, single": (random_ngram(2, 3, seed=1), "single", "softmax", LENGTH, 2),
    "Z3, commutative": (cyclic(3), "commutative", "softmax", LENGTH, 2),
    "Z3, cascade": (cyclic(3), "cascade", "softmax", LENGTH, 2),
    "some a, cascade, hard": (SOME_A, "cascade", "hard", LENGTH, 2),
    "Z3, log depth": (cyclic(3), "log-depth", "softmax", LENGTH, 2),
    "some a, log depth, sparse": (SOME_A, "log-depth", "sparsemax", LENGTH, 2),
    "formula": (FORMULA, "temporal", "softmax", LENGTH, 2),
    "formula, hard": (FORMULA, "temporal", "hard", LENGTH, 2),
    "counting program": (COUNTING, "counting", "softmax", LENGTH, 2),
    "reversal": (program(library.reverse(), "ab", LENGTH), "program", "softmax", LENGTH, 2),
    "balance, causal": (program(library.dyck1("a", "b"), "ab", LENGTH, causal=True), "program", "softmax", LENGTH, 2),
    "brackets, recognizer": (Dyck.of("a b", depth=2, length=LENGTH), "dyck-recognizer", "softmax", LENGTH, 2),
    "brackets": (Dyck.of("( ) [ ]", depth=2, length=LENGTH), "dyck", "softmax", LENGTH, 2),
    "grammar, one pass": (random_grammar(2, shapes=20), "one-pass", "softmax", LENGTH, 1),
    "grammar, spans": (random_grammar(2, shapes=20), "spans", "softmax", LENGTH, 1),
    "grammar, shapes, hard": (random_grammar(2, shapes=20), "shapes", "hard", LENGTH, 1),
    "word classes": (waking_up(2), "classes", "softmax", LENGTH, 1),
    "circuit": (random_circuit(1, 3, 6, 2), "circuit", "softmax", 9, 3),
    "Turing machine": (increment(2), "turing", "softmax", LENGTH, 1),
    "states aloud": (random_pfsa(0, 2, 2), "states-aloud", "softmax", 4, 2),
    "facts": (random_facts(3, 2, 2, seed=0, fillers=1), "facts-heads", "softmax", 2, 2),
    "associations": (random_associations(12, seed=0), "fitted", "softmax", 1, 1),
    "associations, units": (random_associations(12, seed=0), "mlp-memory", "softmax", 1, 1),
    "matches": (Task.read(EXAMPLES / "match2.task.toml"), "match2", "softmax", 1, 1),
    "Z2, recurrent": (cyclic(2), "elman", "softmax", LENGTH, 2),
    "n-gram, heads, hard": (random_ngram(2, 3, seed=2), "heads", "hard", LENGTH, 2),
    "n-gram, single, sparse": (random_ngram(2, 3, seed=2), "single", "sparsemax", LENGTH, 2),
    "some a, log depth, hard": (SOME_A, "log-depth", "hard", LENGTH, 2),
    "some a, recurrent": (SOME_A, "elman", "softmax", LENGTH, 2),
    "Z3, linear recurrence": (cyclic(3), "linear-recurrence", "softmax", LENGTH, 2),
    "Z3, reflections": (cyclic(3), "householder", "softmax", LENGTH, 2),
    "Z2, diagonal": (cyclic(2), "diagonal", "softmax", LENGTH, 2),
    "Z2, whole words": (cyclic(2), "parity", "softmax", LENGTH, 2),
    "formula, sparse": (FORMULA, "temporal", "sparsemax", LENGTH, 2),
    "formula with positions": (POSITIONS, "temporal", "softmax", LENGTH, 2),
    "counting program, hard": (COUNTING, "counting", "hard", LENGTH, 2),
    "brackets, recurrent": (Dyck.of("( ) [ ]", depth=2, length=LENGTH), "dyck-elman", "softmax", LENGTH, 2),
    "brackets, LSTM": (Dyck.of("( ) [ ]", depth=2, length=LENGTH), "dyck-lstm", "softmax", LENGTH, 1),
    "brackets, hard": (Dyck.of("( ) [ ]", depth=2, length=LENGTH), "dyck", "hard", LENGTH, 2),
    "grammar, shapes": (random_grammar(2, shapes=20), "shapes", "softmax", LENGTH, 1),
    "word classes, hard": (waking_up(2), "classes", "hard", LENGTH, 1),
    "associations, least squares": (random_associations(12, seed=0), "least-squares", "softmax", 1, 1),
}


@cache
def subject(name: str) -> AuditedNet:
    """A net of the table, with what is enumerated."""
    spec, shape, attention, length, real = NETS[name]
    weights = build(spec, shape, **common(ENTRIES[shape], attention, LENGTH))
    return AuditedNet(weights, spec, min(length, weights.architecture.max_length), real)
