"""Small nets of many shapes whose words can all be enumerated: what campaigns against the certifying methods break."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from vitrify.certify.soundness import Subject
from vitrify.constructions.catalogue import KINDS, Attention, Settings, build
from vitrify.spec import programs as library
from vitrify.spec.associations import random_associations
from vitrify.spec.automata import cyclic
from vitrify.spec.automaton import Automaton
from vitrify.spec.circuits import random_circuit
from vitrify.spec.crasp import Crasp
from vitrify.spec.dyck import Dyck
from vitrify.spec.facts import random_facts
from vitrify.spec.grammars import random_grammar
from vitrify.spec.ltl import Formula
from vitrify.spec.ngrams import random_ngram
from vitrify.spec.pfsas import random_pfsa
from vitrify.spec.program_file import program
from vitrify.spec.tasks.catalogue import Task
from vitrify.spec.turing_machines import increment
from vitrify.spec.word_languages import waking_up

LENGTH = 6
EXAMPLES = Path(__file__).parents[1] / "examples"
SOME_A = Automaton.from_regex("(a|b)*a(a|b)*")
FORMULA = Formula.from_text(f"alphabet: a b\nlength: {LENGTH}\nb -> Y (a S b)")
COUNTING = Crasp.from_text(f"alphabet: a b\nlength: {LENGTH}\n#(#a < #b) = 0 & 2 * #a = #true & MOD(1, 2)")

# name: spec, shape, attention, the length to which words are enumerated, and that for real arithmetic
NETS: dict[str, tuple[Any, str, Attention, int, int]] = {
    "n-gram, heads": (random_ngram(2, 3, seed=1), "heads", "soft", LENGTH, 2),
    "n-gram, layers, sparse": (random_ngram(2, 3, seed=1), "layers", "sparse", LENGTH, 2),
    "n-gram, layers, hard": (random_ngram(2, 3, seed=1), "layers", "hard", LENGTH, 2),
    "n-gram, single": (random_ngram(2, 3, seed=1), "single", "soft", LENGTH, 2),
    "Z3, commutative": (cyclic(3), "commutative", "soft", LENGTH, 2),
    "Z3, cascade": (cyclic(3), "cascade", "soft", LENGTH, 2),
    "some a, cascade, hard": (SOME_A, "cascade", "hard", LENGTH, 2),
    "Z3, log depth": (cyclic(3), "log-depth", "soft", LENGTH, 2),
    "some a, log depth, sparse": (SOME_A, "log-depth", "sparse", LENGTH, 2),
    "formula": (FORMULA, "temporal", "soft", LENGTH, 2),
    "formula, hard": (FORMULA, "temporal", "hard", LENGTH, 2),
    "counting program": (COUNTING, "counting", "soft", LENGTH, 2),
    "reversal": (program(library.reverse(), "ab", LENGTH), "program", "soft", LENGTH, 2),
    "balance, causal": (program(library.dyck1("a", "b"), "ab", LENGTH, causal=True), "program", "soft", LENGTH, 2),
    "brackets, recogniser": (Dyck.of("a b", depth=2, length=LENGTH), "dyck-recogniser", "soft", LENGTH, 2),
    "brackets": (Dyck.of("( ) [ ]", depth=2, length=LENGTH), "dyck", "soft", LENGTH, 2),
    "grammar, one pass": (random_grammar(2, shapes=20), "one-pass", "soft", LENGTH, 1),
    "grammar, spans": (random_grammar(2, shapes=20), "spans", "soft", LENGTH, 1),
    "grammar, shapes, hard": (random_grammar(2, shapes=20), "shapes", "hard", LENGTH, 1),
    "word classes": (waking_up(2), "classes", "soft", LENGTH, 1),
    "circuit": (random_circuit(1, 3, 6, 2), "circuit", "soft", 9, 3),
    "Turing machine": (increment(2), "turing", "soft", LENGTH, 1),
    "states aloud": (random_pfsa(0, 2, 2), "states-aloud", "soft", 4, 2),
    "facts": (random_facts(3, 2, 2, seed=0, fillers=1), "facts-heads", "soft", 2, 2),
    "associations": (random_associations(12, seed=0), "fitted", "soft", 1, 1),
    "associations, units": (random_associations(12, seed=0), "mlp-memory", "soft", 1, 1),
    "matches": (Task.read(EXAMPLES / "match2.task.toml"), "match2", "soft", 1, 1),
    "Z2, recurrent": (cyclic(2), "elman", "soft", LENGTH, 2),
}


@cache
def subject(name: str) -> Subject:
    """A net of the table, with what is enumerated."""
    spec, shape, attention, length, real = NETS[name]
    weights = build(spec, shape, Settings(KINDS[attention], LENGTH if _takes_length(shape) else None))
    return Subject(weights, spec, min(length, weights.architecture.max_length), real)


def _takes_length(shape: str) -> bool:
    from vitrify.constructions.catalogue import constructions

    return next(entry.sequences for entry in constructions() if entry.shape == shape)
