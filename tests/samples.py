"""Small specs of every type, and the nets that constructions make of them: what contracts are tested on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from built import small_scene
from vitrify.constructions.catalogue import KINDS, Attention, Construction, Settings, build, constructions
from vitrify.errors import BuildRefused
from vitrify.net.weights import Weights
from vitrify.spec import programs as library
from vitrify.spec.associations import Associations, random_associations
from vitrify.spec.automata import cyclic, product
from vitrify.spec.automaton import Automaton
from vitrify.spec.circuit import Circuit
from vitrify.spec.circuits import adder, random_circuit
from vitrify.spec.connectivity import Connectivity
from vitrify.spec.crasp import Crasp
from vitrify.spec.dyck import Dyck
from vitrify.spec.facts import Facts, random_facts
from vitrify.spec.grammar import Grammar
from vitrify.spec.grammars import random_grammar, random_hierarchy
from vitrify.spec.knowledge import Knowledge
from vitrify.spec.ltl import Formula
from vitrify.spec.maxout import Maxout
from vitrify.spec.maxout_nets import random_maxout, random_relu, zigzag
from vitrify.spec.ngram import NGramModel
from vitrify.spec.ngrams import random_ngram
from vitrify.spec.patterns import WordPatterns
from vitrify.spec.pfsa import ProbabilisticAutomaton
from vitrify.spec.pfsas import random_pfsa
from vitrify.spec.program_file import Program, program
from vitrify.spec.scene import Scene
from vitrify.spec.scenes import random_bitmaps
from vitrify.spec.tasks.catalogue import Task
from vitrify.spec.turing import TuringMachine
from vitrify.spec.turing_machines import increment, random_machine
from vitrify.spec.word_languages import random_patterns, waking_up
from vitrify.spec.worlds import random_world, xor_world

LENGTH = 12
SAMPLES: dict[type, list[object]] = {  # what every construction of a type must build; a new type of spec needs a line
    NGramModel: [random_ngram(2, 3, seed=1), random_ngram(3, 1, seed=0)],
    Automaton: [cyclic(3), cyclic(2), product(cyclic(2), cyclic(2)), Automaton.from_regex("(a|b)*a(a|b)*"), cyclic(1)],
    Associations: [random_associations(40, seed=0), random_associations(30, seed=1, outputs=3)],
    Grammar: [random_grammar(2, shapes=20), Grammar.from_text("S -> 'a'"), random_hierarchy(3, 2, 2, 2, 1).plain()],
    Program: [program(library.reverse(), "abc", 12), program(library.dyck1("a", "b"), "ab", 12, causal=True)],
    Formula: [Formula.from_text("alphabet: a b\nlength: 12\nb -> Y (a S b)")],
    Crasp: [Crasp.from_text("alphabet: a b\nlength: 12\n#(#a < #b) = 0 & 2 * #a = #true & MOD(1, 2)")],
    Circuit: [adder(2), random_circuit(1, 3, 12, 2), random_circuit(2, 0, 4, 1)],
    TuringMachine: [increment(3), random_machine(0, 3, 3, length=4, steps=9)],
    ProbabilisticAutomaton: [random_pfsa(0, 2, 2), random_pfsa(1, 1, 1)],
    Connectivity: [Connectivity.of(2), Connectivity(("a", "b", "c", "d", "e"))],
    Dyck: [Dyck.of("( ) [ ] { }", depth=3, length=12), Dyck.of("a b", depth=1, length=12)],
    Facts: [random_facts(4, 3, 2, seed=0, fillers=2), random_facts(2, 1, 1, seed=1)],
    Knowledge: [random_world(1, tasks=(2, 3), long_keys=0.3), xor_world()],
    Maxout: [zigzag(3, 2), random_relu((2, 3, 1), 0), random_maxout((2, 3, 2), 3, 0), random_maxout((2, 1), 1, 0)],
    Scene: [small_scene(0), random_bitmaps(2, composites=1)],
    WordPatterns: [waking_up(2), random_patterns(1), WordPatterns((), (('"a"',),))],
}
for path in sorted((Path(__file__).parents[1] / "examples").glob("*.task.toml")):  # every task has an example
    task = Task.read(path)
    SAMPLES.setdefault(type(task), []).append(task)
ENTRIES = {entry.shape: entry for entry in constructions()}


def built(entry: Construction, spec: object, attention: Attention) -> Weights[Any] | None:
    """The net of an entry, or nothing where it refuses in a sentence."""
    try:
        return build(spec, entry.shape, Settings(KINDS[attention], LENGTH if entry.sequences else None))
    except BuildRefused:
        return None
