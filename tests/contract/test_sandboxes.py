"""What every sandbox owes: rows that are what they claim to be, and an oracle that no prefix contradicts."""

from __future__ import annotations

import json
import zlib
from dataclasses import fields
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Row, Sandbox, entry, make, names, rows

ANSWERS = 120_000  # at least so many answers are drawn
BATCH = 4096
SUSPICIOUS = 1e-6  # a right sampler fails one test in a million


@cache
def small(name: str) -> Sandbox:
    return make(name, entry(name).small)


@cache
def drawn(name: str) -> tuple[Row, Any]:
    """Many rows of the small sandbox, and the optimal log-probabilities for them, as NumPy arrays."""
    sandbox = small(name)

    @jax.jit
    def batch(start: Any) -> tuple[Row, Any]:
        found = rows(sandbox, 0, "test", start, BATCH)
        return found, jax.vmap(sandbox.optimal)(found)

    parts = [batch(0)]
    each = float((np.asarray(parts[0][0].weight) > 0).sum(axis=-1).mean())
    parts += [batch(start) for start in range(BATCH, int(np.ceil(ANSWERS / each)), BATCH)]
    joined: tuple[Row, Any] = jax.tree.map(lambda *p: np.concatenate([np.asarray(x) for x in p]), *parts)
    return joined


@pytest.mark.parametrize("name", names())
def test_a_row_is_the_same_in_any_batch_and_splits_are_apart(name: str) -> None:
    """Seven rows drawn alone are those rows of the large batches, and other seeds and splits have others."""
    sandbox, (found, _) = small(name), drawn(name)

    @jax.jit
    def few(seed: Any) -> tuple[Row, Row]:
        return rows(sandbox, seed, "test", BATCH - 3, 7), rows(sandbox, seed, "train", BATCH - 3, 7)

    (same, train), (other, _) = few(0), few(1)
    wanted = jax.tree.map(lambda x: x[BATCH - 3 : BATCH + 4], found)
    for one, two in zip(same, wanted, strict=True):
        if isinstance(one, dict):  # latent numbers may be rounded otherwise
            assert all(np.allclose(one[name], two[name], atol=1e-5) for name in two)
        elif sandbox.rounded or one is None:
            assert one is None or np.mean(np.asarray(one) == two) > 0.99
        else:
            assert np.asarray(one).tobytes() == two.tobytes()
    for apart in (train, other):
        pairs = zip(jax.tree.leaves(same), jax.tree.leaves(apart), strict=True)
        assert not all(np.array_equal(one, two) for one, two in pairs)


@pytest.mark.parametrize("name", names())
def test_shapes_and_ranges_are_as_declared(name: str) -> None:
    sandbox, (found, best) = small(name), drawn(name)
    n = sandbox.tokens
    questions = n + 1 if sandbox.reads == "tokens" else 1
    assert found.tokens.shape[1] == n
    assert found.targets.shape[1] == found.weight.shape[1] == best.shape[1] == questions
    assert best.shape[2] == len(sandbox.answers)
    if sandbox.reads == "tokens":
        assert found.tokens.min() >= 0
        assert found.tokens.max() < len(sandbox.symbols)
    assert found.targets.min() >= 0
    assert found.targets.max() < len(sandbox.answers)
    assert (found.weight >= 0).all()
    assert (found.weight.sum(axis=1) > 0).all()


@pytest.mark.parametrize("name", [name for name in names() if small(name).blanks])
def test_nothing_is_asked_after_a_blank(name: str) -> None:
    sandbox, (found, _) = small(name), drawn(name)
    blank = np.isin(found.tokens, [sandbox.symbols.index(symbol) for symbol in sandbox.blanks])
    assert not found.weight[:, 1:][np.cumsum(blank, axis=1) > 0].any()


@pytest.mark.parametrize("name", names())
def test_the_optimal_predictor_is_a_distribution_that_allows_what_happens(name: str) -> None:
    found, best = drawn(name)
    asked = found.weight > 0
    assert np.allclose(np.exp(best[asked]).sum(axis=-1), 1, atol=1e-5)
    assert (np.take_along_axis(best, found.targets[..., None], axis=-1)[..., 0][asked] > -30).all()


@pytest.mark.parametrize("name", names())
def test_after_every_prefix_answers_come_as_often_as_the_oracle_says(name: str) -> None:
    """A chi-squared test over all cells (prefix, answer): an oracle is Bayes-optimal iff no prefix proves it wrong."""
    sandbox, (found, best) = small(name), drawn(name)
    statistic, freedom = 0.0, 0
    for t in range(found.targets.shape[1]):
        asked = found.weight[:, t] > 0
        if not asked.any():
            continue
        seen = found.tokens[asked] if sandbox.bidirectional or sandbox.reads != "tokens" else found.tokens[asked, :t]
        _, group = np.unique(seen, axis=0, return_inverse=True)
        size = np.bincount(group)
        observed = np.zeros((len(size), best.shape[2]))
        np.add.at(observed, (group, found.targets[asked, t]), 1)
        expected = np.zeros_like(observed)
        np.add.at(expected, group, np.exp(best[asked, t].astype(np.float64)))
        assert (observed[expected < 1e-9] == 0).all(), "an answer that the oracle rules out came up"
        cells = expected >= 8
        rest = [observed[~cells].sum(), expected[~cells].sum()]
        statistic += float(((observed[cells] - expected[cells]) ** 2 / expected[cells]).sum())
        if rest[1] >= 8:
            statistic += float((rest[0] - rest[1]) ** 2 / rest[1])
        freedom += int(np.maximum(cells.sum(axis=1) - (cells.sum(axis=1) == (expected > 1e-9).sum(axis=1)), 0).sum())
    if freedom:
        assert stats.chi2.sf(statistic, freedom + 1) > SUSPICIOUS


@pytest.mark.parametrize("name", names())
def test_the_numpy_reference_draws_from_the_same_distribution(name: str) -> None:
    sandbox, (found, _) = small(name), drawn(name)
    asked = found.weight[0] > 0 if (found.weight == found.weight[0]).all() else slice(None)
    tokens, targets = sandbox.reference(np.random.default_rng(7), len(found.tokens))
    bins = 200
    counts = []
    for some, answers in ((found.tokens, found.targets), (tokens, targets)):
        both = np.concatenate([np.round(np.asarray(some), 3), np.asarray(answers)[:, asked]], axis=1)
        different, times = np.unique(both.astype(np.float32), axis=0, return_counts=True)
        place = [zlib.crc32(row.tobytes()) % bins for row in different]
        counts.append(np.bincount(place, weights=times, minlength=bins))
    table = np.stack(counts)
    table = table[:, table.sum(axis=0) >= 10]
    if table.shape[1] > 1:
        assert stats.chi2_contingency(table).pvalue > SUSPICIOUS


@pytest.mark.parametrize("name", names())
def test_nobody_beats_the_optimal_predictor_and_the_floor_is_its_loss(name: str) -> None:
    sandbox, (found, best) = small(name), drawn(name)

    def loss(logp: Any) -> Any:  # [row]
        each = -np.take_along_axis(np.asarray(logp), found.targets[..., None], axis=-1)[..., 0]
        return np.where(found.weight > 0, np.clip(each, 0, 50) * found.weight, 0).sum(axis=1)

    own = loss(best)
    assert "uniform" in sandbox.predictors()
    for predictor in sandbox.predictors().values():
        other = loss(jax.jit(jax.vmap(predictor))(found))
        assert (other - own).mean() > -5 * (other - own).std() / np.sqrt(len(own)) - 1e-5
    floor = sandbox.floor()
    if floor is not None:
        each = -np.take_along_axis(best.astype(np.float64), found.targets[..., None], axis=-1)[..., 0]
        error = each.std(axis=0) / np.sqrt(len(each))
        asked = (found.weight > 0).all(axis=0)
        assert (np.abs(each.mean(axis=0) - np.asarray(floor)) <= 5 * error + 1e-4)[asked].all()


@pytest.mark.parametrize("name", names())
def test_parameters_are_checked_and_can_be_written_down(name: str) -> None:
    sandbox = small(name)
    assert json.loads(json.dumps(sandbox.identity())).keys() == {f.name for f in fields(sandbox)}
    with pytest.raises(InputError, match=r"unknown parameter 'nonsense'"):
        make(name, {"nonsense": 1})
    for number in (f.name for f in fields(sandbox) if f.init and f.type in ("int", "float")):
        with pytest.raises(InputError, match=rf"{number}=many: must be a"):
            make(name, {**entry(name).small, number: "many"})


@pytest.mark.parametrize("name", [name for name in names() if entry(name).make.TRACED])
def test_traced_parameters_may_differ_between_members_of_one_program(name: str) -> None:
    sandbox, (found, _) = small(name), drawn(name)
    values = {field: getattr(sandbox, field) for field in sandbox.TRACED}
    members = {field: np.array([value, 0.7 * value], dtype=np.float32) for field, value in values.items()}
    both = jax.jit(jax.vmap(lambda member: rows(sandbox.at(member), 0, "test", 0, 64)))(members)
    assert np.array_equal(both.tokens[0], found.tokens[:64])
    assert not np.array_equal(both.tokens[1], found.tokens[:64])
