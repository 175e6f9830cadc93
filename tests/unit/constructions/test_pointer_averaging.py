"""Nets that average over any set of positions: against fractions, both links, sizes, and what the lemma refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from built import ATTENTIONS
from cases import each
from nets import altered
from vitrify.certification import certify
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof
from vitrify.certification.equivalence.sets import declared_sets, one_pointer, superimposed_keys
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.constructions.catalogue import build
from vitrify.errors import SpecError
from vitrify.net.inference import batch_logits, encode, with_pads
from vitrify.net.sparse import dense
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.spec.tasks.pointer_averaging import PointerAveraging
from vitrify.spec.tasks.sparse_averaging import SparseAveraging, random_sets

SMALL = PointerAveraging(positions=30, sparsity=3, dimensions=2, queries=5)
CONSTRUCTIONS = ("pointers-superimposed", "pointers-heads")


def means(task: PointerAveraging, word: tuple[str, ...]) -> dict[int, list[Fraction]]:
    """The mean after each group, in fractions, from the text of the symbols."""
    n, q, found = task.positions, task.sparsity, dict[int, list[Fraction]]()
    held = [[int(f"{x[-1]}1") if x[:-1] == f"{k + 1}" else 0 for k in range(task.dimensions)] for x in word[:n]]
    for end in range(n + q, len(word) + 1, q):
        rows = [held[int(text.removeprefix("@")) - 1] for text in word[end - q : end]]
        found[end - 1] = [Fraction(sum(column), q) for column in zip(*rows, strict=True)]
    return found


def worst(weights: Weights[Any], task: PointerAveraging, words: int) -> float:
    rng = np.random.default_rng(0)
    drawn = [task.draw(rng, task.length) for _ in range(words)]
    net = weights.architecture
    logits = batch_logits(weights, with_pads(net, np.array([encode(net, word) for word in drawn])))[:, net.pads :]
    pairs = [(row[at], mean) for row, word in zip(logits, drawn, strict=True) for at, mean in means(task, word).items()]
    return max(float(np.linalg.norm(found - np.array(mean, dtype=float))) for found, mean in pairs)


def case(weights: Weights[Any], task: PointerAveraging | SparseAveraging) -> SpecCase:
    return SpecCase(weights, task, oracle_for(task, weights.architecture), None)


def proof(weights: Weights[Any], task: PointerAveraging) -> SpecProof:
    return superimposed_keys(case(weights, task))


def test_answers_against_fractions() -> None:
    rng = np.random.default_rng(1)
    for task in (SMALL, PointerAveraging(5, 5, 1), PointerAveraging(1, 1, 2, 3)):
        word = task.draw(rng, task.length)
        right = means(task, word)
        assert {at: mean for at, mean in enumerate(task.answers(word)) if mean} == {
            at: pytest.approx(tuple(map(float, mean))) for at, mean in right.items()
        }
        assert len(right) == task.queries
    assert len([*PointerAveraging(3, 2, 1, 2).words(7)]) == 2**3 * 6**2
    with pytest.raises(SpecError, match="at most positions = 3"):
        PointerAveraging(3, 4, 1)


@each("attention", ATTENTIONS)
@each("construction", CONSTRUCTIONS)
def test_answers_and_sizes(construction: str, attention: AttentionKind) -> None:
    for tolerance in (0.05, 1e-6):
        weights = build(SMALL, construction, attention=attention, tolerance=tolerance)
        assert worst(weights, SMALL, 8) <= tolerance
    assert certify(weights, SMALL, work=1e6).verdict == "holds"


@each("attention", ATTENTIONS)
def test_every_set_is_proved(attention: AttentionKind) -> None:
    for task in (SMALL, PointerAveraging(4, 1, 1), PointerAveraging(200, 2, 3, 2), PointerAveraging(1024, 8, 1)):
        found = proof(build(task, attention=attention), task)
        assert (found.exact, found.longest) == (True, task.length)
    task = PointerAveraging(4, 2, 1)
    evidence = certify(build(task, attention=attention), task, work=1e6, prove=True)
    assert [link.scope.value for link in evidence.links] == ["to T", "to T"]


@pytest.mark.slow
def test_every_set_of_65536_positions_is_proved() -> None:
    task = PointerAveraging(65_536, 2, 2)
    weights = build(task)
    assert weights.sizes.d_head == 99
    assert proof(weights, task).instances == {"keys": 65_536, "blocks": 9, "largest product of two keys": 4}


BREAKS: dict[str, tuple[str, Any]] = {
    "a key": ("pos_embed.W_pos", lambda a, net: a.__setitem__((5, net.labels.space("position").dims[0]), 0.5)),
    "two keys alike": ("pos_embed.W_pos", lambda a, _: a.__setitem__(7, a[8])),
    "a pointer": ("embed.W_E", lambda a, _: a.__setitem__(9, a[10])),
    "a vector": ("embed.W_E", lambda a, net: a.__setitem__((2, net.labels.space("vector").dims[0]), 0.9)),
    "no clip": ("blocks.0.mlp.b_in", lambda a, _: a.__setitem__(slice(1, None, 2), -99.0)),
    "one unit": ("blocks.0.mlp.b_in", lambda a, _: a.__setitem__(0, -0.6)),
    "a cold head": ("blocks.1.attn.beta", lambda a, _: a.__imul__(0.4)),
    "a window that prefers": ("blocks.0.attn.b_rel", lambda a, _: a.__setitem__((0, 0), 0.1)),
    "a bias": ("unembed.b_U", lambda a, _: a.__setitem__(0, 0.01)),
    "a query of its own": ("blocks.1.attn.b_Q", lambda a, _: a.__setitem__((0, 0), 1.0)),
}


@each("name", BREAKS)
def test_the_lemma_refuses_what_is_broken(name: str) -> None:
    broken = altered(build(SMALL), *BREAKS[name])
    with pytest.raises(Undecided):
        proof(broken, SMALL)


def test_nets_of_another_form_are_refused() -> None:
    with pytest.raises(Undecided, match="two layers of one head"):
        proof(build(SMALL, "pointers-heads"), SMALL)


@each("code", ["units", "signs", "superimposed", "moments", "trivial"])
def test_declared_sets_are_proved(code: str) -> None:
    task = SparseAveraging(20, 3, 2, random_sets(20, 3, 12, seed=0))
    weights = build(task, f"sets-{code}")
    assert declared_sets(case(weights, task)).instances == {"scores": 240}
    vectors = dense(weights.arrays["embed.W_E"]).copy()
    vectors[3, weights.labels.space("vector").dims[0]] *= 0.99
    with pytest.raises(Undecided, match="vectors of tokens"):
        declared_sets(case(weights.with_array("embed.W_E", vectors), task))


POINTED = PointerAveraging(positions=12, sparsity=1, dimensions=2, queries=3)


@each("attention", ATTENTIONS)
def test_one_pointer_is_proved_by_the_list_of_all_scores(attention: AttentionKind) -> None:
    weights = build(POINTED, "pointers-heads", attention=attention)
    assert one_pointer(case(weights, POINTED)).instances == {"scores": 144}
    assert worst(weights, POINTED, 40) <= weights.architecture.output.error


POINTER_BREAKS: dict[str, tuple[str, Any]] = {
    "a pointer": ("embed.W_E", lambda a, _: a.__setitem__(5, a[6])),
    "two keys alike": ("pos_embed.W_pos", lambda a, _: a.__setitem__(7, a[8])),
    "a key of a pointer": ("pos_embed.W_pos", lambda a, _: a.__setitem__(-1, a[1])),
    "a vector": ("embed.W_E", lambda a, net: a.__setitem__((2, net.labels.space("vector").dims[0]), 0.9)),
    "a cold head": ("blocks.0.attn.beta", lambda a, _: a.__imul__(0.3)),
    "a bias": ("unembed.b_U", lambda a, _: a.__setitem__(0, 0.01)),
    "half of the bits": ("blocks.0.attn.W_Q", lambda a, _: a.__setitem__((0, slice(None), 0), 0.0)),
}


@each("name", POINTER_BREAKS)
def test_one_pointer_is_refused_where_it_is_broken(name: str) -> None:
    broken = altered(build(POINTED, "pointers-heads"), *POINTER_BREAKS[name])
    with pytest.raises(Undecided):
        one_pointer(case(broken, POINTED))


def test_several_pointers_are_another_lemma() -> None:
    with pytest.raises(Undecided, match="one pointer is followed by one head"):
        one_pointer(case(build(SMALL), SMALL))
