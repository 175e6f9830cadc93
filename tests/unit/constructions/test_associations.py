"""Associative memories: every answer of the net by a plain argmax, weights against their definition, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from built import answers
from cases import each
from vitrify.certification import certify
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.constructions.associations import linear_memory, linear_sizes, mlp_memory, mlp_sizes
from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused
from vitrify.kit import assemble, fact_storage
from vitrify.kit.memory import Rule
from vitrify.net.weights import Weights
from vitrify.spec.memory.associations import Associations, random_associations

SHAPES = ("fitted", "hebbian", "least-squares", "mlp-memory")


def said(weights: Weights, spec: Associations) -> list[str]:
    """The best answer to every word, one word at a time."""
    found = answers(weights, np.arange(1, len(spec.pairs) + 1)[:, None])
    return [weights.architecture.output.symbols[int(np.argmax(scores[1]))] for scores in found]


@each("shape", SHAPES)
@each("count", [1, 2, 30, 200])
def test_every_answer_is_recalled(shape: str, count: int) -> None:
    spec = random_associations(count, seed=count)
    assert said(build(spec, shape), spec) == [answer for _, answer in spec.pairs]


@each(("count", "outputs"), [(40, 2), (100, 9), (5, 1)])
@each("shape", ["fitted", "mlp-memory"])
def test_words_may_share_answers(shape: str, count: int, outputs: int) -> None:
    spec = random_associations(count, seed=0, outputs=outputs)
    assert said(build(spec, shape), spec) == [answer for _, answer in spec.pairs]


def refusals(shape: str, spec: Associations, seeds: int) -> int:
    """Count the seeds with which the default dimension does not suffice."""
    count = 0
    for seed in range(seeds):
        try:
            build(spec, shape, seed=seed)
        except BuildRefused:
            count += 1
    return count


def test_the_default_dimension_suffices_for_most_seeds_but_not_for_shared_answers_of_a_sum() -> None:
    different, shared = random_associations(30, seed=0), random_associations(30, seed=0, outputs=10)
    fitted, hebbian, least_squares, mlp = (refusals(shape, different, 120) for shape in SHAPES)
    assert fitted == least_squares == mlp == 0 < hebbian < 6
    assert refusals("hebbian", shared, 40) > 20 > refusals("fitted", shared, 40) == 0


def test_the_value_matrix_is_the_sum_of_associations() -> None:
    spec = random_associations(50, seed=2)
    weights = assemble(linear_memory(spec, rule="hebbian", dimension=60, seed=5))
    code, recalled = (list(space.dims) for space in weights.labels.spaces)
    words = weights.arrays["embed.W_E"][1:, code]
    codes = weights.arrays["unembed.W_U"].T[:, recalled]
    place = [spec.answers.index(answer) for _, answer in spec.pairs]
    assert np.allclose(weights.arrays["blocks.0.attn.W_V"][0, code], words.T @ codes[place])
    assert np.allclose(np.linalg.norm(words, axis=1), 1)
    assert np.allclose(np.linalg.norm(codes, axis=1), 1)
    logits = answers(weights, np.arange(1, 51)[:, None])[:, 1]
    assert np.allclose(logits, words @ words.T @ codes[place] @ codes.T)


def test_fitted_memories_lead_by_one() -> None:
    spec = random_associations(80, seed=1)
    for weights in (build(spec, "fitted"), build(spec, "mlp-memory")):
        logits = answers(weights, np.arange(1, 81)[:, None])[:, 1]
        own = logits[np.arange(80), [spec.answers.index(answer) for _, answer in spec.pairs]]
        assert np.isclose((own - np.sort(logits, axis=1)[:, -2]).min(), 1.0, atol=1e-6)


def test_many_more_than_units_are_recalled() -> None:
    spec = random_associations(245, seed=0)
    weights = build(spec, "mlp-memory", dimension=32, units=64)
    assert said(weights, spec) == [answer for _, answer in spec.pairs]


@pytest.mark.parametrize("rule", ["hebbian", "fitted"])
def test_sizes_are_what_is_promised(rule: Rule) -> None:
    spec = random_associations(20, seed=0)
    linear = assemble(linear_memory(spec, rule=rule, dimension=48)).sizes
    units = assemble(mlp_memory(spec, dimension=20, units=33)).sizes
    assert not linear_sizes(spec, dimension=48).problems(linear)
    assert not mlp_sizes(spec, dimension=20, units=33).problems(units)


def test_codes_depend_on_the_seed_only() -> None:
    spec = random_associations(20, seed=0)
    one, two = (build(spec, "hebbian", seed=seed) for seed in (0, 1))
    assert one.digest == build(spec, "hebbian").digest != two.digest


def test_imperfect_nets_are_refused() -> None:
    with pytest.raises(BuildRefused, match=r"of 100 answers would be wrong with dimension 10 and seed 3; .* --dimens"):
        build(random_associations(100, seed=0), "hebbian", dimension=10, seed=3)
    with pytest.raises(BuildRefused, match="as words share answers here, --construction fitted"):
        build(random_associations(100, seed=0, outputs=2), "hebbian")
    with pytest.raises(BuildRefused, match=r"with dimension 16, 4 units and seed 0; .* more --units"):
        build(random_associations(100, seed=0), "mlp-memory", dimension=16, units=4)


def test_what_makes_no_sense_is_refused() -> None:
    spec = random_associations(5, seed=0)
    for dimension in (0, -3):
        with pytest.raises(BuildRefused, match=r"--dimension .* must be a whole number of at least 1"):
            build(spec, "hebbian", dimension=dimension)
    with pytest.raises(BuildRefused, match=r"--units .* must be a whole number of at least 1"):
        build(spec, "mlp-memory", units=0)
    with pytest.raises(BuildRefused, match="has no such choice: leave --units out"):
        build(spec, "hebbian", units=3)
    with pytest.raises(BuildRefused, match="leave --attention out"):
        build(spec, "fitted", attention="hard")


def test_fitting_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_storage, "MAX_SCORES", 399)
    for shape in ("fitted", "mlp-memory"):
        with pytest.raises(BuildRefused, match="20 answers to 20 questions at once"):
            build(random_associations(20, seed=0), shape)
    build(random_associations(20, seed=0), "hebbian")


def test_a_net_of_other_associations_fails() -> None:
    spec = random_associations(30, seed=0)
    weights = build(spec)
    assert certify(weights, spec).verdict == "holds"
    first, second, *rest = spec.pairs
    other = Associations(((first[0], second[1]), (second[0], first[1]), *rest))
    swapped = np.asarray(weights.arrays["unembed.W_U"])[:, [1, 0, *range(2, 30)]]
    found = certify(weights.with_array("unembed.W_U", swapped), spec)
    assert found.verdict == "fails"
    assert found.witness is not None
    assert (found.witness["word"], found.witness["expected"]) == ([first[0]], first[1])
    assert certify(weights, other).verdict == "fails"  # its answers are named in another order


def test_ties_are_wrong_and_nothing_is_asked_before_the_word() -> None:
    spec = random_associations(3, seed=0)
    weights = build(spec)
    oracle = oracle_for(spec, weights.architecture)
    words = np.array([[1], [2], [3]])
    logits = np.zeros((3, 2, 3))
    assert oracle.errors(words, logits).tolist() == [[0, 1], [0, 1], [0, 1]]
    logits[[0, 1, 2], 1, [0, 1, 2]] = 1e-3
    assert not oracle.errors(words, logits).any()
    logits[1, 1, 2], logits[2, 1, 2] = np.nan, np.inf
    assert oracle.errors(words, logits)[:, 1].tolist() == [0, 1, 1]
    assert oracle.has_answer(words).tolist() == [[False, True]] * 3


def test_lower_precision_is_judged_where_something_is_asked() -> None:
    spec = random_associations(30, seed=0)
    evidence = certify(build(spec, "hebbian"), spec)
    assert evidence.measured("share of answers that float32 must give too") == 1.0
