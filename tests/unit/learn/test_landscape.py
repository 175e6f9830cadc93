"""Landscapes against closed forms: Hessians of a one-layer transformer on a Markov chain, and losses by sampling."""

from __future__ import annotations

from functools import cache, cached_property
from itertools import pairwise, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

import at_once
from exact_rows import exact_means
from oracles.rows import reference
from vitrify.errors import InputError
from vitrify.learn.landscape import Landscape, population, strings
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.sandboxes.catalogue import Example, entry, make, names
from vitrify.sandboxes.in_context_markov import InContextMarkov
from vitrify.sandboxes.markov import Markov

D, UNITS, LENGTH = 3, 6, 5


def entropy(p: float) -> float:
    return float(-p * np.log(p) - (1 - p) * np.log(1 - p))


def one_layer(theta: dict[str, Any], data: tuple[Example, Any]) -> Any:
    """A one-layer transformer on bits with one logit, written out; a tied one reads with `e` and has no use for `a`."""
    row, tied = data
    e, places = theta["e"], theta["places"]
    x = row.tokens[..., None] * e + places
    scores = jnp.where(np.tri(LENGTH - 1) > 0, (x @ theta["Q"]) @ jnp.swapaxes(x @ theta["K"], 1, 2), -jnp.inf)
    y = x + jax.nn.softmax(scores) @ x @ theta["V"]
    z = y + jax.nn.relu(y @ theta["W1"]) @ theta["W2"]
    logit = z @ jnp.where(tied, e, theta["a"]) + theta["b"]
    sign = 1 - 2 * row.targets[:, 1:]
    weight = row.weight[:, 1:]
    return (jax.nn.softplus(sign * logit) * weight).sum() / weight.sum()


def unigram_point(p: float, q: float) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {"Q": (D, D), "K": (D, D), "V": (D, D), "W1": (D, UNITS), "W2": (UNITS, D)}
    theta: dict[str, Any] = {name: np.zeros(shape) for name, shape in shapes.items()}
    theta |= {"e": np.zeros(D), "places": rng.normal(0, 0.3, (LENGTH - 1, D)), "b": np.log(p / q), "a": np.zeros(D)}
    return theta


@cache
def compiled() -> Landscape:
    return Landscape.of(one_layer, unigram_point(0.2, 0.3), (strings(Markov(length=LENGTH)), True))


def makkuva(p: float, q: float, tied: bool) -> Landscape:
    return compiled().over((strings(Markov(p, q, LENGTH)), tied))


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.8), (0.2, 0.3)])
def test_the_unigram_point_of_a_tied_net_has_the_hessian_that_theory_gives(p: float, q: float) -> None:
    land, theta = makkuva(p, q, True), unigram_point(p, q)
    point, one = land.look(theta), p / (p + q)
    assert abs(point.loss - entropy(one)) <= 1e-12
    assert point.stationary
    assert point.slope <= 1e-12
    hessian, places, scale = land.hessian(theta), theta["places"], one * (1 - one)
    at = [land.names.index("b"), *(land.names.index(f"e[{i}]") for i in range(D))]
    wanted = np.zeros((D + 1, D + 1))
    wanted[0, 0], wanted[0, 1:], wanted[1:, 0] = 1, places.mean(axis=0), places.mean(axis=0)
    wanted[1:, 1:] = places.T @ places / len(places) + 2 * (p + q - 1) * np.eye(D)
    np.testing.assert_allclose(hessian[np.ix_(at, at)], scale * wanted, atol=1e-12)
    others = np.setdiff1d(np.arange(len(hessian)), at)
    assert np.abs(hessian[others]).max() <= 1e-12
    negative, _, positive = point.counts
    assert (negative, positive) == ((0, D + 1) if p + q > 1 else (D, 1))
    assert point.kind == ("degenerate" if p + q > 1 else "saddle")
    if point.downhill is None:
        assert p + q > 1
    else:  # along the embedding, and really downhill
        parts = {name.split("[")[0] for name, part in zip(land.names, point.downhill, strict=True) if abs(part) > 0.1}
        assert parts <= {"e", "b"}
        assert land.loss(land.vector(theta) + 0.05 * point.downhill) < point.loss - 1e-6


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.8), (0.2, 0.3)])
def test_an_untied_net_can_always_leave_the_unigram_point(p: float, q: float) -> None:
    point = makkuva(p, q, False).look(unigram_point(p, q))
    assert (point.counts[0], point.counts[2], point.kind) == (D, D + 1, "saddle")
    if (p, q) == (0.5, 0.8):  # the places push it up: |smallest| is π₀π₁(p+q-1) without them
        assert -0.0711 < point.values[0] < -0.06


def test_a_point_elsewhere_is_a_slope() -> None:
    theta, land = unigram_point(0.5, 0.8) | {"b": 0.0}, makkuva(0.5, 0.8, True)
    assert not land.look(theta).stationary
    assert land.look(theta).kind == "slope"


FORMS = {"minimum": (1.0, 2.0, 3.0), "maximum": (-1.0, -2.0, -1.0), "saddle": (-1.0, 0.0, 1.0)}
FORMS |= {"degenerate": (0.0, 1.0, 1e-12)}


def test_quadratic_forms_are_told_apart() -> None:
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    land = Landscape.of(lambda x, m: (x["y"] @ m @ x["y"]) / 2, {"y": np.zeros(3)}, np.eye(3))
    for kind, values in FORMS.items():
        here = land.over(turn @ np.diag(values) @ turn.T)
        point = here.look(np.zeros(3))
        assert point.kind == kind
        np.testing.assert_allclose(point.values, sorted(values), atol=1e-12)
        assert (point.downhill is None) == (min(values) >= 0)
        if point.downhill is not None:
            np.testing.assert_allclose(here.hessian(np.zeros(3)) @ point.downhill, min(values) * point.downhill)
    assert land.names == ("y[0]", "y[1]", "y[2]")


@cache
def trained() -> tuple[TransformerFamily, Markov, Landscape, Any]:
    family, box = TransformerFamily(layers=1, heads=1, d_model=2, units=2, norm=False), Markov(0.2, 0.3, 4)
    first = at_once.first(family, family.architecture(box), 3)
    return family, box, population(family, box), first


def checked_by_differences(land: Landscape, at: Any) -> None:
    rng, step = np.random.default_rng(0), 1e-5
    assert at.dtype == np.float64
    for _ in range(3):
        way = rng.normal(size=len(at))
        way /= np.linalg.norm(way)
        slope = (land.loss(at + step * way) - land.loss(at - step * way)) / (2 * step)
        assert abs(slope - land.gradient(at) @ way) <= 1e-9
        curve = (land.gradient(at + step * way) - land.gradient(at - step * way)) / (2 * step)
        np.testing.assert_allclose(land.hessian(at) @ way, curve, atol=1e-8)


def test_derivatives_are_those_of_finite_differences() -> None:
    land = makkuva(0.5, 0.8, False)
    checked_by_differences(land, np.random.default_rng(2).normal(0, 0.5, len(land.names)))


@pytest.mark.slow
def test_derivatives_of_a_trained_family_are_those_of_finite_differences() -> None:
    _, _, land, first = trained()
    checked_by_differences(land, land.vector(first))


@pytest.mark.slow
def test_the_population_loss_is_what_rows_give_on_average() -> None:
    family, box, land, first = trained()
    net, count = family.architecture(box), 20_000
    row = at_once.rows(box, 5, "test", 0, count)
    logits = jax.jit(lambda first: family.logits(net, box, family.arrays(net, first), row))(first)
    each = -jnp.take_along_axis(jax.nn.log_softmax(logits), row.targets[..., None], axis=-1)[..., 0].mean(axis=1)
    error = float(each.std()) / np.sqrt(count)
    assert abs(float(each.mean()) - land.loss(first)) <= 4 * error
    assert error < 0.003
    at, way = land.vector(first), np.random.default_rng(0).normal(size=len(land.names))
    fine, coarse = ((land.loss(at + h * way) - land.loss(at - h * way)) / (2 * h) for h in (1e-6, 1e-4))
    assert abs(fine - coarse) <= 1e-5  # in single precision the fine one would be noise


def test_listed_strings_have_their_probabilities_and_predictors_their_exact_losses() -> None:
    box = Markov(0.5, 0.8, 4)
    row, kernel, start = strings(box), np.array([[0.5, 0.5], [0.8, 0.2]]), np.array([0.8, 0.5]) / 1.3
    chance = {tuple(map(int, x)): float(w[0]) for x, w in zip(row.targets, row.weight, strict=True)}
    for x in product((0, 1), repeat=4):
        assert chance[x] == pytest.approx(start[x[0]] * np.prod([kernel[a, b] for a, b in pairwise(x)]))
    rate = 0.8 / 1.3 * entropy(0.5) + 0.5 / 1.3 * entropy(0.8)
    found = exact_means(box, np.zeros((16, 4, 2)), row)
    assert found["loss"] == pytest.approx(np.log(2), abs=1e-12)
    assert found["floor.unigram"] == pytest.approx(entropy(0.5 / 1.3), abs=1e-12)
    assert found["floor"] == pytest.approx((entropy(0.5 / 1.3) + 3 * rate) / 4, abs=1e-12)


@pytest.mark.slow
def test_hidden_kernels_are_integrated_out() -> None:
    row = strings(InContextMarkov(states=2, length=4))
    chance = {"".join(map(str, np.asarray(x))): float(w[0]) for x, w in zip(row.targets, row.weight, strict=True)}
    assert chance["0000"] == pytest.approx(1 / 2 * 1 / 4)  # ∫ p³ dp
    assert chance["0101"] == pytest.approx(1 / 2 * 1 / 3 * 1 / 2)  # ∫ p² dp · ∫ q dq


LISTED = {"markov", "in_context_markov", "chain", "interleaved", "bigram_trigger", "ngram", "random_ngram", "dyck"}


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_strings_of_every_sandbox_have_the_probabilities_that_its_reference_draws_them_with(name: str) -> None:
    box, count = make(name, entry(name).small), 20_000
    if name not in LISTED:  # it may be refused, but not listed wrongly
        try:
            row = strings(box)
        except InputError:
            return
    row = strings(box)
    chance = row.weight.max(axis=1) / row.weight.max(axis=1).sum()
    base = len(box.symbols) ** np.arange(row.targets.shape[1])
    _, drawn = reference(box, np.random.default_rng(0), count)
    order = np.argsort(row.targets @ base)
    found = np.searchsorted((row.targets @ base)[order], drawn @ base)
    share, wanted = np.bincount(found, minlength=len(order)) / count, chance[order]
    assert not share[wanted == 0].any()
    many = wanted * count >= 5
    pairs = np.array([[*(part[many]), part[~many].sum()] for part in (share, wanted)]) * count
    seen, expected = pairs[:, pairs[1] > 0]
    assert chi2.sf(((seen - expected) ** 2 / expected).sum(), max(len(seen) - 1, 1)) >= 1e-5


def test_nothing_outside_becomes_float64() -> None:
    trained()
    assert jnp.ones(1).dtype == jnp.float32
    assert jax.random.uniform(jax.random.key(0)).dtype == jnp.float32


class Keeping(Markov):
    """A chain that keeps its kernel once it was asked for."""

    @cached_property
    def kept(self) -> Any:
        return self.kernel()

    def optimal(self, row: Example) -> Any:
        return jnp.log(jnp.concatenate([self.stationary()[None], self.kept[row.tokens]]))


def test_a_sandbox_keeps_nothing_in_float64_and_lists_in_no_less() -> None:
    box = Keeping(0.1, 0.7, 3)
    assert box.kept.dtype == jnp.float32
    chance = strings(box).weight[:, 0]
    assert chance[0] == pytest.approx(0.7 / 0.8 * 0.9**2, abs=1e-15)
    fresh = Keeping(0.1, 0.7, 3)
    strings(fresh)
    assert fresh.kept.dtype == jnp.float32


def test_what_can_not_be_listed_is_refused() -> None:
    with pytest.raises(InputError, match=r"2\^30 strings are more than the 65536"):
        strings(Markov(length=30))
    with pytest.raises(InputError, match="a point has 3 numbers, not 2"):
        Landscape.of(lambda x, _: x.sum(), np.zeros(3)).loss(np.zeros(2))
