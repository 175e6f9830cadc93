"""Factual recall: every fact at every pair of places among fillers, attention included; ablations; refusals."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from built import ATTENTIONS, answers
from cases import each
from vitrify.certification import certify
from vitrify.constructions.catalogue import build
from vitrify.constructions.facts import MAX_BLOCK, facts, facts_in_heads, sizes, sizes_in_heads
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.inference import encode
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.spec.memory.facts import Facts, random_facts

SHAPES = ("facts", "facts-heads")


def wrong(weights: Weights, spec: Facts, length: int) -> set[tuple[str, str]]:
    """The facts that are not recalled somewhere, by argmax, for all places of the two words among random fillers."""
    rng = np.random.default_rng(0)
    net, missed = weights.architecture, set()
    for subject, relation, answer in spec.facts:
        rows, ends = [], []
        for first, second in permutations(range(length), 2):
            row = [spec.fillers[i] for i in rng.integers(len(spec.fillers), size=length)]
            row[first], row[second] = subject, relation
            rows.append(encode(net, row))
            ends.append(max(first, second) + 1)
        found = answers(weights, np.array(rows))
        right = net.output.symbols.index(answer)
        for scores, end in zip(found, ends, strict=True):
            if (scores[end:].argmax(axis=-1) != right).any():
                missed.add((subject, relation))
    return missed


@each("attention", ATTENTIONS)
@each("shape", SHAPES)
def test_every_fact_is_recalled_wherever_it_is_asked(shape: str, attention: AttentionKind) -> None:
    spec = random_facts(20, 3, 3, seed=1, fillers=3, length=5)
    assert not wrong(build(spec, shape, attention=attention), spec, 5)


@pytest.mark.parametrize("shape", SHAPES)
def test_some_relations_of_some_subjects_are_enough(shape: str) -> None:
    spec = Facts((("s", "r", "1"), ("t", "q", "2"), ("t", "r", "1"), ("u", "q", "3")), ("of",))
    weights = build(spec, shape)
    assert not wrong(weights, spec, 4)
    assert certify(weights, spec).verdict == "holds"


@pytest.mark.parametrize("shape", SHAPES)
def test_one_fact(shape: str) -> None:
    spec = Facts((("s", "r", "1"),))
    assert certify(build(spec, shape), spec).verdict == "holds"


def test_sizes_are_what_is_promised() -> None:
    spec = random_facts(40, 3, 3, seed=0, fillers=1)
    for net, promised in (
        (facts(spec, dimension=20, units=120), sizes(spec, dimension=20, units=120)),
        (facts_in_heads(spec, dimension=200), sizes_in_heads(spec, dimension=200)),
        (
            facts_in_heads(random_facts(5, 1, 2, 0), dimension=30),
            sizes_in_heads(random_facts(5, 1, 2, 0), dimension=30),
        ),
    ):
        measured = assemble(net).sizes
        assert not promised.problems(measured)
    assert sizes_in_heads(spec, dimension=200).exact["heads"] == 3 + 1
    assert sizes_in_heads(spec, dimension=40).exact["heads"] == 4 + 1
    assert assemble(facts_in_heads(spec, dimension=200)).architecture.blocks[0].d_value == MAX_BLOCK


def test_a_head_without_its_output_loses_its_own_subjects_only() -> None:
    spec = random_facts(40, 3, 3, seed=2, fillers=2)
    weights = build(spec, "facts-heads")
    written = weights.arrays["blocks.0.attn.W_O"].copy()
    written[1] = 0.0
    missed = wrong(weights.with_array("blocks.0.attn.W_O", written), spec, 3)
    assert {subject for subject, _ in missed} <= set(spec.subjects[MAX_BLOCK : 2 * MAX_BLOCK])
    assert len(missed) > MAX_BLOCK


def test_the_head_looks_at_the_two_words_only() -> None:
    spec = random_facts(6, 2, 3, seed=0, fillers=2, length=6)
    weights = build(spec)
    seen: dict[str, np.ndarray] = {}
    row = encode(weights.architecture, ["f0", "s1", "f1", "f0", "r1", "f1"])
    weights.architecture.forward(weights.prepared, np.array([[0, *row]]), record=seen.__setitem__)
    (name,) = [name for name in seen if name.endswith("pattern")]
    assert np.allclose(seen[name][0, 0, -1], [0, 0, 0.5, 0, 0, 0.5, 0], atol=1e-4)


def test_confused_relations_are_refused_by_heads_and_built_by_units() -> None:
    spec = Facts((("a", "born", "Rome"), ("a", "died", "Oslo"), ("b", "born", "Oslo")))
    with pytest.raises(
        BuildRefused, match=r"which answer about 'a' is its 'born': 'Oslo' and 'Rome' .* --construction facts"
    ):
        build(spec, "facts-heads")
    assert certify(build(spec, "facts"), spec).verdict == "holds"
    same = Facts((("a", "born", "Rome"), ("a", "died", "Rome"), ("a", "speaks", "Latin"), ("b", "born", "Oslo")))
    assert certify(build(same, "facts-heads"), same).verdict == "holds"


def test_imperfect_nets_are_refused() -> None:
    spec = random_facts(30, 4, 4, seed=0)
    with pytest.raises(BuildRefused, match=r"of 120 answers would be wrong with dimension 16, 4 units and seed 0"):
        build(spec, "facts", dimension=16, units=4)
    with pytest.raises(BuildRefused, match=r"of 120 answers would be wrong with dimension 20 and seed 7"):
        build(spec, "facts-heads", dimension=20, seed=7)
    for shape in SHAPES:
        with pytest.raises(BuildRefused, match="--max-length must be at least 2, is 1"):
            build(spec, shape, max_length=1)


def test_other_facts_fail() -> None:
    spec = random_facts(4, 2, 3, seed=0, fillers=1)
    (s, r, _), *rest = spec.facts
    instead = next(a for _, of, a in rest if of == r and a != spec.facts[0][2])
    changed = Facts((*rest, (s, r, instead)), spec.fillers, spec.length)
    weights = build(changed)
    assert certify(weights, changed).verdict == "holds"
    if changed.vocabulary == spec.vocabulary and changed.answers == spec.answers:
        assert certify(weights, spec).verdict == "fails"
