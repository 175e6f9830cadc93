"""Maxout networks as transformers: outputs, sizes, error bounds and what is refused."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each, each_then_slow, in_turn
from examples import examples
from tiny_nets import KINDS
from vitrify.certification import certify, mutation_test
from vitrify.certification.oracles.maxout import MaxoutOracle
from vitrify.certification.reading.regions import net_regions, net_regions_on_line
from vitrify.constructions.catalogue import Attention, build
from vitrify.constructions.maxout import bound, convex_difference, count_positions, inverse_temperature, maxout, sizes
from vitrify.errors import BuildRefused, FolderError, InputError
from vitrify.kit import assemble
from vitrify.kit.heads.maximum import shortfall
from vitrify.kit.network import Builder, Readout, Space, Units
from vitrify.net.architecture import Output
from vitrify.net.inference import outputs
from vitrify.net.spaces import Reals
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic
from vitrify.spec.geometry.maxout import Layer, Maxout, level_pieces, random_maxout, random_relu, zigzag
from vitrify.spec.geometry.regions import regions, regions_on_line

ROOF = Maxout.from_points([(-2, 0), (-1, 0.5), (0, 2), (0.5, 1), (1.5, 1.25), (2, 0)])


def built(spec: Maxout, attention: Attention = "hard", tolerance: float | None = None) -> Weights[Transformer]:
    return assemble(maxout(spec, attention=attention, tolerance=tolerance))


def worst(spec: Maxout, weights: Weights[Transformer], count: int = 300, seed: int = 0) -> float:
    x = np.random.default_rng(seed).uniform(-spec.radius, spec.radius, size=(count, spec.inputs))
    return float(np.abs(outputs(weights, x) - spec(x)).max())


def measured(weights: Weights[Transformer]) -> dict[str, int]:
    size = weights.sizes
    return {
        "positions": weights.architecture.max_length,
        "layers": size.layers,
        "heads": size.heads,
        "units": size.units,
        "width": size.d_model,
    }


def promised(spec: Maxout) -> dict[str, object]:
    exact = sizes(spec).exact
    named = {name: exact[name] for name in ("layers", "heads", "units")}
    return {"positions": count_positions(spec), **named, "width": exact["d_model"]}


@settings(max_examples=examples(25))
@given(st.lists(st.integers(1, 6), min_size=2, max_size=5), st.integers(1, 4), st.integers(0, 1000))
def test_any_network_is_computed_to_rounding_and_has_the_sizes_of_the_formulas(
    widths: list[int], rank: int, seed: int
) -> None:
    for spec in (random_maxout(widths, rank, seed), random_relu(widths, seed, radius=2.0)):
        weights = built(spec)
        assert worst(spec, weights, 50) <= 1e-12
        assert measured(weights) == promised(spec)


def test_the_largest_networks_of_the_promise() -> None:
    spec = random_maxout((16, 16, 16, 16, 16), 4, seed=0)
    weights = built(spec)
    assert worst(spec, weights) <= 1e-12
    assert promised(spec) == {"positions": 4, "layers": 5, "heads": 64, "units": 4 * 16 * (4 + 2) - 16, "width": 36}
    assert measured(weights) == promised(spec)


def test_equal_layers_take_what_the_table_says() -> None:
    n, k, depth = 5, 3, 4
    spec = random_maxout((n, *[n] * depth), k, seed=1)
    size = built(spec).sizes
    assert size.units_per_layer == (n * k + n, *[n * k + 2 * n] * (depth - 1), 0)
    assert size.heads_per_layer == (0, *[n] * depth)
    assert (size.d_model, size.d_head, size.layers) == (2 * n + k, 1, depth + 1)


def test_units_may_have_different_ranks_and_repeated_pieces_cost_nothing() -> None:
    spec = Maxout((Layer.of([[[1.0], [1.0], [-1.0]], [[2.0], [2.0], [2.0]]], [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5]]),))
    weights = built(spec)
    assert worst(spec, weights) <= 1e-14
    assert measured(weights) == promised(spec)
    assert weights.labels.units[0].unit_names == ("unit 1, piece 1", "unit 1, piece 2", "unit 2, piece 1")


def test_an_affine_network_is_nothing_but_its_unembedding() -> None:
    spec = random_maxout((3, 2), 1, seed=0)
    weights = built(spec, "softmax")
    assert promised(spec) == measured(weights) == {"positions": 1, "layers": 0, "heads": 0, "units": 0, "width": 3}
    assert worst(spec, weights) <= 1e-14
    inner = random_maxout((3, 4, 2, 2), 1, seed=0)  # affine layers before the last are heads with nothing to choose
    assert worst(inner, built(inner, "softmax")) <= 1e-13


# Soft attention


def formula(spec: Maxout, attention: Attention, beta: float) -> float:
    """The bound by its recurrence: what a layer has is steepened, and its own shortfall added."""
    error = 0.0
    layers = spec.layers if max(spec.layers[-1].ranks) > 1 else spec.layers[:-1]
    most = max(max(layer.ranks) for layer in layers)
    for layer in layers:
        own = max(shortfall(attention, rank - 1, most - rank) for rank in layer.ranks)
        error = layer.steepness * error + own / beta
    return error * (1.0 if layers == spec.layers else spec.layers[-1].steepness)


@each_then_slow("tolerance, attention", *in_turn([0.3, 1e-2, 1e-5], ["softmax", "sparsemax"]))
def test_errors_stay_below_the_bound_and_that_below_the_tolerance(attention: Attention, tolerance: float) -> None:
    for seed, spec in enumerate((random_maxout((3, 4, 4, 2), 3, 0), random_relu((2, 5, 5, 1), 1), zigzag(4, 2), ROOF)):
        weights = built(spec, attention, tolerance)
        beta, promised = weights.about["inverse temperature"], weights.about["error bound"]
        assert promised <= tolerance
        assert promised == pytest.approx(bound(spec, attention, beta)) == pytest.approx(formula(spec, attention, beta))
        assert promised > 0.8 * tolerance  # β is a multiple of 1/4
        assert worst(spec, weights, 2000, seed) <= promised + 1e-12
        x = np.random.default_rng(seed).uniform(-spec.radius, spec.radius, size=(300, spec.inputs))
        loose = promised >= np.ptp(spec(x), axis=0).max() / 2  # a constant answer errs as little: nothing is certified
        assert loose == (tolerance == 0.3 and seed == 1)
        evidence = certify(weights, spec)
        assert evidence.verdict == ("fails" if loose else "holds")
        assert not loose or "a constant answer" in str(evidence.witness)
        ends = [head.writes for head in weights.labels.heads if head.block == len(weights.architecture.blocks) - 1]
        readout = spec.layers[-1].steepness if max(spec.layers[-1].ranks) == 1 else 1.0
        account = readout * max(weights.labels.space(name).error for name in ends)  # the kit's own
        assert account == pytest.approx(promised, rel=1e-6, abs=1e-9)


@each("attention", ["softmax", "sparsemax"])
@each(("rank", "depth"), [(2, 1), (2, 3), (4, 2), (9, 2)])
def test_the_bound_is_reached_where_all_rivals_have_the_worst_gap(attention: Attention, rank: int, depth: int) -> None:
    gap = 1 + shortfall("softmax", rank - 1, 0) if attention == "softmax" else 0.5
    beta = inverse_temperature(level_pieces(rank, depth, 1.0), attention, 1e-3)
    spec = level_pieces(rank, depth, gap / beta)
    weights = built(spec, attention, 1e-3)
    assert weights.about["inverse temperature"] == beta
    error = worst(spec, weights)
    assert 0.999 * weights.about["error bound"] <= error <= weights.about["error bound"] + 1e-12
    assert 0.99e-3 <= error <= 1e-3 + 1e-12


def test_softer_heads_are_noticed_even_where_no_answer_shows_it() -> None:
    spec = random_maxout((3, 4, 2), 3, 0)
    weights = built(spec, "softmax", 1e-6)
    evidence = certify(weights.with_array("blocks.1.attn.beta", weights.arrays["blocks.1.attn.beta"] * 0.9), spec)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert "beta of at least" in str(evidence.witness["expected"])


# Functions of one variable


@settings(max_examples=examples(20))
@given(st.dictionaries(st.integers(-16, 16), st.integers(-16, 16), min_size=2, max_size=16))
def test_functions_of_one_variable_take_two_heads_in_one_layer(points: dict[int, int]) -> None:
    spec = Maxout.from_points([(x / 16, points[x] / 16) for x in sorted(points)], radius=1.0)
    pieces = regions(spec).linear
    weights = build(spec, "convex-difference", attention="hard")
    assert worst(spec, weights) <= 1e-12
    size = weights.sizes
    if pieces > 1:
        assert (size.layers, size.attention_layers) == (2, 1)
        assert size.heads <= 2
        drawn = sum(len(u.unit_names) for u in weights.labels.units if u.name != "erase")
        assert drawn == pieces + (size.heads == 2)
    assert net_regions(weights, 1.0).linear == pieces


def test_a_deep_network_becomes_one_layer_at_the_price_of_its_regions() -> None:
    spec = zigzag(3, 3)
    deep, flat = built(spec), build(spec, "convex-difference", attention="hard")
    assert (deep.sizes.attention_layers, flat.sizes.attention_layers) == (3, 1)
    assert deep.architecture.max_length == 2
    assert flat.architecture.max_length == (3**3 + 1) // 2
    assert sum(convex_difference(spec).layers[0].ranks) == 3**3 + 1
    assert worst(spec, flat) <= 1e-9  # slopes of up to 3**6 are subtracted
    assert net_regions(flat, 1.0).linear == net_regions(deep, 1.0).linear == 3**3


# Regions of built nets


@pytest.mark.parametrize("seed", range(2))
def test_the_built_net_has_the_regions_of_its_spec(seed: int) -> None:
    nets = random_maxout((1, 5, 4, 1), 3, seed), random_maxout((2, 3, 2, 1), 3, seed), random_relu((2, 4, 3, 1), seed)
    for spec in nets:
        found, wanted = net_regions(built(spec), spec.radius), regions(spec)
        assert (found.activation, found.linear) == (wanted.activation, wanted.linear)
    spec = random_maxout((4, 5, 5, 2), 3, seed)
    ends = np.random.default_rng(seed).uniform(-1, 1, size=(2, 4)).tolist()
    on_line, wanted = net_regions_on_line(built(spec), *ends), regions_on_line(spec, *ends)
    assert (on_line.activation, on_line.linear) == (wanted.activation, wanted.linear)


def test_cells_of_a_built_net_say_what_it_computes() -> None:
    spec = random_maxout((2, 3, 3, 2), 3, 5)
    weights = built(spec)
    for cell in net_regions(weights, spec.radius).cells:
        middle = np.mean([[float(x) for x in corner] for corner in cell.corners], axis=0)
        said = [float(sum(a * b for a, b in zip(form, [*middle, 1.0], strict=True))) for form in cell.forms]
        np.testing.assert_allclose(outputs(weights, middle[None])[0], said, atol=1e-12)


def test_regions_are_those_of_the_last_position() -> None:
    """relu(x) at the last position, relu(x - 1) at the first."""
    net = Builder("relus", ("x",), 2, "hard", reads="vector")
    x, shift = (
        net.numbers("x", -1.0, 1.0),
        net.embed_position("shift", Reals(("s",), -1.0, 0.0), np.array([[-1.0], [0.0]])),
    )
    out = Space("out", Reals(("y",), 0.0, 1.0))
    net.add(Units("relu", ((x, np.ones((1, 1))), (shift, np.ones((1, 1)))), np.zeros(1), ((out, np.ones((1, 1))),)))
    made = net.network(Output("values", ("y",)), Readout(((out, np.eye(1)),), np.zeros(1), {}))
    assert net_regions(assemble(made), 1.0).linear == 2


def test_regions_of_soft_nets_are_refused() -> None:
    with pytest.raises(InputError, match="--attention hard"):
        net_regions(built(ROOF, "softmax"), 1.0)


# Checks


def test_every_breakpoint_of_a_function_is_asked_about_and_every_piece() -> None:
    spec = zigzag(2, 7)
    questions = MaxoutOracle(spec, built(spec).architecture).cases(np.random.default_rng(0))
    asked = np.concatenate([question.inputs for question in questions])[:, 0]
    assert np.isin(np.linspace(-1, 1, 2**8 + 1), asked).all()  # where it turns, and half way between
    assert np.abs(asked).max() == 1.0


@each("attention", KINDS)
@each("spec", [zigzag(3, 2), zigzag(2, 3, 2), ROOF], ids=["zigzag", "two zigzags", "roof"])
def test_mutations_are_noticed(spec: Maxout, attention: Attention) -> None:
    weights = built(spec, attention)
    found = mutation_test(weights, spec, count=100)
    assert found.rate >= 0.99, found.survivors


def trimmed(spec: Maxout) -> Maxout:
    """The same network without the pieces that lead at none of many points; ranks are filled up by repetition."""
    z = np.random.default_rng(0).uniform(-spec.radius, spec.radius, size=(20_000, spec.inputs))
    layers = []
    for layer in spec.layers:
        scores = np.einsum("bi,uki->buk", z, layer.weights) + layer.biases
        leads = [sorted(set(row.tolist())) for row in scores.argmax(axis=-1).T]
        most = max(map(len, leads))
        kept = np.array([[*row, *[row[0]] * (most - len(row))] for row in leads])
        units = np.arange(layer.units)[:, None]
        layers.append(Layer(layer.weights[units, kept], layer.biases[units, kept]))
        z = scores.max(axis=-1)
    return Maxout(tuple(layers), spec.radius)


@pytest.mark.parametrize("seed", range(2))
def test_what_survives_in_random_nets_is_the_pieces_that_never_lead(seed: int) -> None:
    spec = random_maxout((2, 4, 3, 1), 3, seed)
    less = trimmed(spec)
    assert less.parameters < spec.parameters
    assert mutation_test(built(spec, "softmax"), spec, count=200).rate < 0.99
    found = mutation_test(built(less, "softmax"), less, count=200)
    assert found.rate >= 0.99, found.survivors


def test_a_wrong_net_gets_a_witness_and_another_spec_is_refused() -> None:
    weights = built(ROOF)
    assert certify(weights, ROOF).verdict == "holds"
    evidence = certify(weights, replace(ROOF, layers=(ROOF.layers[0], Layer.of([[1.0, -1.0]], [1e-9]))))
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert set(evidence.witness) == {"point", "expected", "actual"}
    with pytest.raises(FolderError, match="the same inputs and outputs"):
        certify(weights, random_maxout((2, 1), 2, 0))


# JAX


@pytest.mark.parametrize("attention", ["softmax", *(pytest.param(a, marks=pytest.mark.slow) for a in KINDS[1:])])
def test_jax_computes_the_same(attention: Attention) -> None:
    spec = random_maxout((3, 4, 4, 2), 3, 0)
    weights = built(spec, attention)
    x = np.random.default_rng(0).uniform(-1, 1, size=(20, 3))
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(dense(array)) for name, array in weights.arrays.items()}
        found = np.asarray(jax.jit(weights.architecture.forward)(arrays, jnp.asarray(x)))[:, -1]
    np.testing.assert_allclose(found, outputs(weights, x), atol=1e-12)
    np.testing.assert_allclose(found, spec(x), atol=weights.architecture.output.error)


# What is refused


def test_refusals() -> None:
    with pytest.raises(BuildRefused, match="leave --tolerance out"):
        maxout(ROOF, attention="hard", tolerance=0.1)
    for tolerance, reason in ((0.0, "a number above 0"), (-1.0, "a number above 0"), (1e-16, "at least")):
        with pytest.raises(BuildRefused, match=f"--tolerance .*must be {reason}"):
            maxout(ROOF, tolerance=tolerance)
    with pytest.raises(BuildRefused, match=r"--tolerance .* must be a number above 0"):
        maxout(ROOF, tolerance=float("nan"))
    with pytest.raises(BuildRefused, match="activations may grow to 2e"):
        maxout(Maxout.from_relu([[[1e9]], [[1e9]], [[1.0]]], [[0.0], [1e18], [0.0]]))
    with pytest.raises(BuildRefused, match="functions of one variable, this network has 2 inputs and 1 outputs"):
        build(random_maxout((2, 1), 2, 0), "convex-difference")
    with pytest.raises(BuildRefused, match="leave --tolerance out"):
        build(cyclic(2), tolerance=0.1)
    with pytest.raises(BuildRefused, match="leave --max-length out"):
        build(ROOF, max_length=3)


def test_too_many_regions_to_flatten_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitrify.spec.geometry.regions.MAX_CELLS", 10)
    with pytest.raises(BuildRefused, match="more than 10 regions"):
        build(zigzag(2, 4), "convex-difference")
