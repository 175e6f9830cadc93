"""Softened and trained networks keep the circuit of their construction, and wrong ones are seen."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cases import each
from vitrify.errors import BuildRefused, InputError
from vitrify.mechanisms import soften, train
from vitrify.mechanisms.circuit import Judge
from vitrify.mechanisms.interchange import MAX_MOVE, decided, interchange, interventions, wide_tolerance
from vitrify.mechanisms.puzzle import Puzzle, available, puzzle
from vitrify.mechanisms.soften import Softness, another_judge, soft_judge
from vitrify.mechanisms.zoo import networks
from vitrify.net.architecture import OutputKind

FEW = ["bigram", "induction", "majority", "mod3-one-layer"]


@cache
def plain(name: str) -> Puzzle:
    return puzzle(name)


def changed(made: Puzzle, name: str, factor: float) -> Judge:
    """The softened network of a puzzle with one array multiplied."""
    soft = soft_judge(made.judge, made.circuit.edges, soften.recorded()[made.name])
    weights = soft.wired.weights
    return another_judge(
        made.judge, weights.with_array(name, factor * np.asarray(weights.arrays[name])), soft.tolerance
    )


@pytest.mark.long
@each("name", FEW)
def test_a_softened_network_answers_as_the_construction_under_every_intervention(name: str) -> None:
    made = plain(name)
    soft = puzzle(name, rendering="softened")
    assert soft.comparison is not None
    assert soft.comparison.holds
    assert soft.comparison.compared > 1000
    assert soft.circuit.edges == made.circuit.edges
    assert min(soft.circuit.effects) > 0
    assert set(soft.wired.composed) == set(soft.wired.edges) > set(made.wired.composed)  # noise is everywhere
    assert soft.judge.faithfulness(made.circuit.edges) == 1.0
    for edge in set(soft.wired.edges) - set(made.circuit.edges):
        assert soft.judge.changed((edge,)) == 0


def test_interventions_are_all_that_the_module_says() -> None:
    made = plain("induction")
    edges, true = set(made.wired.edges), set(made.circuit.edges)
    sets = list(interventions(made.wired, made.circuit.edges))
    outside = [set(cut) for cut, aligned in sets if not aligned]
    assert set() in outside
    assert edges - true in outside
    assert all(cut <= edges - true for cut in outside)
    assert [{edge} for edge in edges - true if {edge} not in outside] == []
    nodes = [set(cut) for cut, aligned in sets if aligned]
    for node in made.wired.writers:
        assert {edge for edge in edges if edge[0] == node} in nodes


@each("name", ["bigram", "majority"])
def test_the_nearest_wrong_network_is_rejected(name: str) -> None:
    made = plain(name)
    edges = made.circuit.edges
    assert not interchange(made.judge, changed(made, "unembed.W_U", -1.0), edges).holds  # other answers
    noisy = replace(soften.recorded()[name], noise=0.5)
    assert not interchange(made.judge, soft_judge(made.judge, edges, noisy), edges).holds
    missing = interchange(made.judge, made.judge, edges[1:])  # an edge of which it is not said that it is true
    assert not missing.holds
    assert missing.violations
    outside = next(edge for edge in made.wired.edges if edge not in edges)
    more = interchange(made.judge, made.judge, (*edges, outside))  # one that is not true
    assert not more.holds
    assert more.silent == (outside,)


def test_a_comparison_that_stops_early_measures_no_faithfulness() -> None:
    made = plain("majority")
    edges = made.circuit.edges
    negated = changed(made, "unembed.W_U", -1.0)
    early, full = (interchange(made.judge, negated, edges, stop_early=early) for early in (True, False))
    assert (early.silent, early.faithfulness, early.holds) == (None, None, False)
    assert 0 < early.violations <= early.compared < full.compared
    assert full.faithfulness is not None
    same = interchange(made.judge, made.judge, edges, stop_early=True)
    assert same == interchange(made.judge, made.judge, edges)
    assert same.holds


def test_a_comparison_without_a_decided_output_of_patched_nodes_does_not_hold() -> None:
    made = plain("majority")
    domain = [part.only(np.flatnonzero(~part.aligned)) for part in made.judge.domain if not part.aligned.all()]
    judge = Judge(made.wired, domain)
    result = interchange(judge, judge, made.circuit.edges)
    assert (result.violations, result.silent, result.faithfulness) == (0, (), 1.0)
    assert result.compared > result.compared_with_nodes == 0
    assert not result.holds
    whole = interchange(made.judge, made.judge, made.circuit.edges)
    assert 0 < whole.compared_with_nodes < whole.compared


@pytest.mark.parametrize(
    ("kind", "logits", "expected"),
    [
        ("transducer", [1.0, 0.81, 0.0], False),  # below the largest by less than twice the tolerance
        ("transducer", [1.0, 0.79, 0.0], True),
        ("transducer", [1.0, 1.0 - 5e-7, 0.0], True),  # a tie
        ("transducer", [1.0, 1.0 - 5e-6, 0.0], False),
        ("next", [1.0, 0.049, -0.2], True),
        ("next", [1.0, 0.051, -0.2], False),
        ("next", [1.0, 0.149, -0.2], False),
        ("next", [1.0, 0.151, -0.2], True),
        ("lm", [0.1, 0.1, 0.1], True),
        ("values", [0.1, 0.1, 0.1], True),
    ],
)
def test_outputs_are_decided_where_no_logit_is_near_to_changing_them(
    kind: OutputKind, logits: list[float], expected: bool
) -> None:
    output = replace(plain("majority").wired.weights.architecture.output, kind=kind)
    assert decided(output, np.array([[logits]]), 0.1).tolist() == [[expected]]


def test_an_empty_circuit_has_a_tolerance() -> None:
    assert wide_tolerance(plain("bigram").judge, ()) == MAX_MOVE


def test_without_softness_the_same_answers_and_the_same_bytes() -> None:
    made = plain("induction")
    same = soft_judge(made.judge, made.circuit.edges, Softness(1.0, 0.0, 0))
    assert interchange(made.judge, same, made.circuit.edges).violations == 0
    one, two = (soft_judge(made.judge, made.circuit.edges, Softness(0.5, 0.01, 3)) for _ in range(2))
    assert one.wired.weights.digest == two.wired.weights.digest != same.wired.weights.digest


def test_recorded_renderings_are_of_networks_of_the_zoo() -> None:
    assert set(soften.recorded()) <= set(networks())
    assert set(train.recorded()) <= set(networks())
    assert sum(path.stat().st_size for path in train.RECORDED.glob("*.npz")) < 3_000_000
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "circuit-benchmark.md").read_text(encoding="utf-8")
    counts = f"of the {len(networks())} networks, {len(soften.recorded())} have a softened rendering"
    assert f"{counts} and {len(train.recorded())} a trained one" in page
    assert available("induction")[:2] == ("plain", "entangled")
    absent = next(name for name in networks() if name not in soften.recorded())
    with pytest.raises(InputError, match="there is no softened rendering"):
        puzzle(absent, rendering="softened")
    with pytest.raises(InputError, match="there is no trained rendering"):
        train.recorded_judge("lion", plain("bigram").judge, ())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(soften.recorded()))
def test_every_softened_network_keeps_its_circuit(name: str) -> None:
    assert puzzle(name, rendering="softened").circuit.exact


@pytest.mark.long
@pytest.mark.parametrize("name", train.recorded()[:4])
def test_trained_networks_keep_their_circuit(name: str) -> None:
    made = puzzle(name, rendering="trained")
    assert made.circuit.exact
    assert made.comparison is not None
    assert made.comparison.holds
    start = plain(name).wired.weights
    assert not np.allclose(np.asarray(made.wired.weights.arrays["embed.W_E"]), np.asarray(start.arrays["embed.W_E"]))


@pytest.mark.slow
@pytest.mark.parametrize("name", train.recorded())
def test_every_trained_network_keeps_its_circuit(name: str) -> None:
    assert puzzle(name, rendering="trained").circuit.exact


def test_a_recorded_network_of_another_circuit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soften, "recorded", lambda: {"majority": Softness(1.0, 0.5, 0)})
    with pytest.raises(BuildRefused, match="has not the circuit of the plain one"):
        puzzle("majority", rendering="softened")


@pytest.mark.jax
@pytest.mark.long
def test_a_few_steps_of_training_move_all_arrays_and_are_compared() -> None:
    made = plain("bigram")
    result = train.trained(
        made.judge, made.circuit.edges, soften.recorded()["bigram"], train.TuningRecipe(steps=5, rate=1e-3)
    )
    assert 0 < result.moved < 0.1
    assert result.comparison.compared > 1000
    before = soft_judge(made.judge, made.circuit.edges, soften.recorded()["bigram"]).wired.weights.arrays
    after = result.judge.wired.weights.arrays
    for name in ("embed.W_E", "unembed.W_U"):
        assert np.abs(np.asarray(after[name]) - np.asarray(before[name])).max() > 0
