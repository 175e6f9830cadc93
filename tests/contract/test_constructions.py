"""The contract of every construction in the catalogue, found by looking: no line here names one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from built import small_scene
from vitrify.certify import certify
from vitrify.constructions.catalogue import KINDS, Attention, Construction, Settings, build, constructions
from vitrify.errors import BuildRefused
from vitrify.net.explain import explain
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.registry import headlines, load, names
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

PACKAGE = "vitrify.constructions"
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
for path in sorted((Path(__file__).parents[2] / "examples").glob("*.task.toml")):  # every task has an example
    task = Task.read(path)
    SAMPLES.setdefault(type(task), []).append(task)
ENTRIES = {entry.shape: entry for entry in constructions()}


@pytest.fixture(params=ENTRIES)
def entry(request: pytest.FixtureRequest) -> Construction:
    return ENTRIES[request.param]


def built(entry: Construction, spec: object, attention: Attention) -> Weights[Any] | None:
    """The net of an entry, or nothing where it refuses in a sentence."""
    try:
        return build(spec, entry.shape, Settings(KINDS[attention], LENGTH if entry.sequences else None))
    except BuildRefused:
        return None


def test_shapes_are_named_once_and_say_what_they_do(entry: Construction) -> None:
    assert len(ENTRIES) == len(constructions()) >= 5
    assert len(entry.summary.split()) >= 4
    assert entry.spec in SAMPLES


def test_files_are_documented() -> None:
    documented = {headline.name: headline.doc for headline in headlines(PACKAGE, "CONSTRUCTIONS")}
    assert list(documented) == names(PACKAGE)
    for name, doc in documented.items():
        assert doc.splitlines()[0].endswith("."), name
        assert load(PACKAGE, name).CONSTRUCTIONS, name
        assert "arXiv" in doc, name


def test_every_type_of_spec_has_one_default() -> None:
    for spec in {entry.spec for entry in ENTRIES.values()}:
        assert sum(entry.default for entry in ENTRIES.values() if entry.spec is spec) == 1


@pytest.mark.parametrize("attention", KINDS)
def test_it_builds_right_or_refuses(entry: Construction, attention: Attention) -> None:
    for spec in SAMPLES[entry.spec]:
        weights = built(entry, spec, attention)
        if weights is None:
            continue
        net = weights.architecture
        assert weights.about["source"]
        if entry.sequences:
            assert net.max_length == LENGTH
        if isinstance(net, Transformer):
            assert weights.about["attention"] == KINDS[attention]
            assert {head.attention for block in net.blocks for head in block.heads} <= {KINDS[attention]}
        evidence = certify(weights, spec, work=1e7)
        assert evidence.verdict == "holds", evidence


def test_something_is_built_and_by_default_everything(entry: Construction) -> None:
    nets = [built(entry, spec, "soft") for spec in SAMPLES[entry.spec]]
    assert any(nets)
    assert all(nets) or not entry.default


@pytest.mark.parametrize("attention", KINDS)
def test_it_is_deterministic(entry: Construction, attention: Attention) -> None:
    for spec in SAMPLES[entry.spec]:
        one, two = built(entry, spec, attention), built(entry, spec, attention)
        if one is None or two is None:
            assert one is two
            continue
        assert one.digest == two.digest
        assert one.labels == two.labels
        assert one.about == two.about


def test_every_part_is_named(entry: Construction) -> None:
    """Every dimension belongs to a space, every head and every unit to a label."""
    for spec in SAMPLES[entry.spec]:
        weights = built(entry, spec, "soft")
        if weights is None:
            continue
        if not isinstance(weights.architecture, Transformer):
            told = [(label.block, u) for label in weights.labels.units for u in range(label.start, label.stop)]
            layers = enumerate(weights.architecture.units_per_layer)
            assert sorted(told) == [(layer, u) for layer, units in layers for u in range(units)]
            continue
        net, labels = weights.architecture, weights.labels
        assert {dim for space in labels.spaces for dim in space.dims} == set(range(net.d_model))
        for index, block in enumerate(net.blocks):
            heads = [head.place for head in labels.heads if head.block == index]
            assert sorted(heads) == list(range(len(block.heads)))
            wanted = {"mlp": block.units, "moe.router": block.router}
            wanted |= {f"moe.experts.{number}": expert.units for number, expert in enumerate(block.experts)}
            named: dict[str, list[int]] = {part: [] for part in wanted}
            for label in labels.units:
                if label.block == index:
                    named[label.part] += range(label.start, label.stop)
            assert {part: sorted(units) for part, units in named.items()} == {
                part: list(range(count)) for part, count in wanted.items()
            }


def test_it_is_found_by_its_shape(entry: Construction) -> None:
    for spec in SAMPLES[entry.spec]:
        settings = Settings(max_length=LENGTH if entry.sequences else None)
        if entry.default:
            assert build(spec, None, settings).digest == build(spec, entry.shape, settings).digest


def test_a_shape_of_another_spec_is_refused(entry: Construction) -> None:
    for kind, samples in SAMPLES.items():
        if kind is not entry.spec:
            with pytest.raises(BuildRefused, match=f"not {entry.shape!r}"):
                build(samples[0], entry.shape)


def test_every_net_is_explained(entry: Construction) -> None:
    weights = next(filter(None, (built(entry, spec, attention) for spec in SAMPLES[entry.spec] for attention in KINDS)))
    page = str(explain(weights, shown=None))
    assert max(map(len, page.splitlines())) <= 100
    for head in weights.labels.heads:
        assert f"head {head.block}.{head.place}  " in page
    assert page.count(", units ") >= len(weights.labels.units)
