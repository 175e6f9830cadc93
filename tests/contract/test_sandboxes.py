"""What every sandbox owes: rows that are what they claim to be, and an oracle that no prefix contradicts."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

from cases import each, rest_slow
from oracles.rows import reference
from vitrify.encoding import named_fields
from vitrify.errors import InputError
from vitrify.parameters import described
from vitrify.sandboxes.catalogue import Example, Sandbox, entry, examples, make, names

ANSWERS = 120_000  # at least so many answers are drawn
BATCH = 4096
FEW = slice(BATCH - 3, BATCH + 61)  # rows that are drawn again, in a batch of their own
SUSPICIOUS = 1e-6  # a right sampler fails one test in a million


@cache
def small(name: str) -> Sandbox:
    return make(name, entry(name).small)


@cache
def drawn(name: str) -> tuple[Example, Any]:
    """Many rows of the small sandbox, and the optimal log-probabilities for them, as NumPy arrays."""
    sandbox = small(name)

    @jax.jit
    def batch(start: Any) -> tuple[Example, Any]:
        found = examples(sandbox, 0, "test", start, BATCH)
        return found, jax.vmap(sandbox.optimal)(found)

    parts = [batch(0)]
    per_row = float((np.asarray(parts[0][0].weight) > 0).sum(axis=-1).mean())
    parts += [batch(start) for start in range(BATCH, int(np.ceil(ANSWERS / per_row)), BATCH)]
    joined: tuple[Example, Any] = jax.tree.map(lambda *p: np.concatenate([np.asarray(x) for x in p]), *parts)
    return joined


def hashes(table: np.ndarray) -> np.ndarray:
    """Hash every row after each of its columns, [row, 1 + column]: equal beginnings of rows have equal hashes."""
    values = (np.ascontiguousarray(table, dtype=np.float32) + np.float32(0)).view(np.uint32).astype(np.uint64)
    found = np.zeros((len(table), 1 + table.shape[1]), dtype=np.uint64)
    for column in range(table.shape[1]):
        mixed = (found[:, column] ^ values[:, column]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
        found[:, column + 1] = mixed ^ (mixed >> np.uint64(29))
    return found


def test_beginnings_of_rows_are_told_apart_by_their_hashes() -> None:
    table = np.indices((4,) * 6).reshape(6, -1).T
    for width in range(7):
        exact = np.unique(table[:, :width], axis=0, return_inverse=True)[1]
        hashed = np.unique(hashes(table)[:, width], return_inverse=True)[1]
        assert len(set(zip(exact.tolist(), hashed.tolist(), strict=True))) == 4**width == hashed.max() + 1


@cache
def few(name: str) -> Any:
    """A program of a seed for some rows around the end of the first large batch.

    Where parameters may be traced it draws those of two members, the sandbox itself and one with smaller values.
    """
    sandbox = small(name)
    values = {field: getattr(sandbox, field) for field in sandbox.TRACED}
    members = {field: np.array([value, 0.7 * value], dtype=np.float32) for field, value in values.items()}

    def draw(seed: Any, member: Any) -> Example:
        return examples(sandbox.at(member) if member else sandbox, seed, "test", FEW.start, FEW.stop - FEW.start)

    program = jax.jit(jax.vmap(draw, in_axes=(None, 0)) if members else draw)
    return lambda seed: program(seed, members)


def of_member(found: Example, member: int) -> Example:
    taken: Example = jax.tree.map(lambda x: x[member], found)
    return taken


@pytest.mark.parametrize("name", rest_slow([*names()[::2], *names()[1::2]], first=len(names()) // 2))  # compiles most
def test_a_row_is_the_same_in_any_batch_and_splits_are_apart(name: str) -> None:
    """A few rows drawn alone are those rows of the large batches, and other seeds and splits have others.

    Where both splits draw from the sandbox itself, a split is another key, as a seed is: that is compiled for one only.
    """
    sandbox, (found, _) = small(name), drawn(name)
    same, other_seed = (of_member(few(name)(seed), 0) if sandbox.TRACED else few(name)(seed) for seed in (0, 1))
    apart = [other_seed]
    if name == names()[0] or any(sandbox.of(split) is not sandbox for split in ("train", "test")):
        apart.append(jax.jit(lambda: examples(sandbox, 0, "train", FEW.start, FEW.stop - FEW.start))())
    wanted = jax.tree.map(lambda x: x[FEW], found)
    for one, two in zip(same, wanted, strict=True):
        if isinstance(one, dict):  # latent numbers may be rounded otherwise
            assert all(np.allclose(one[name], two[name], atol=1e-5) for name in two)
        elif sandbox.rounded or one is None:
            assert one is None or np.mean(np.asarray(one) == two) > 0.99
        else:
            assert np.asarray(one).tobytes() == two.tobytes()
    for other in apart:
        pairs = zip(jax.tree.leaves(same), jax.tree.leaves(other), strict=True)
        assert not all(np.array_equal(one, two) for one, two in pairs)


@each("name", names())
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


@each("name", names())
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
    seen = hashes(found.tokens.reshape(len(found.tokens), -1))
    for t in range(found.targets.shape[1]):
        asked = found.weight[:, t] > 0
        if not asked.any():
            continue
        everything = sandbox.bidirectional or sandbox.reads != "tokens"
        _, group = np.unique(seen[asked, -1 if everything else t], return_inverse=True)
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
    tokens, targets = reference(sandbox, np.random.default_rng(7), len(found.tokens))
    bins = 200
    counts = []
    for some, answers in ((found.tokens, found.targets), (tokens, targets)):
        both = np.concatenate([np.round(np.asarray(some), 3), np.asarray(answers)[:, asked]], axis=1)
        place = (hashes(both)[:, -1] >> np.uint64(20)) % np.uint64(bins)
        counts.append(np.bincount(place.astype(np.int64), minlength=bins))
    table = np.stack(counts)
    table = table[:, table.sum(axis=0) >= 10]
    if table.shape[1] > 1:
        assert stats.chi2_contingency(table).pvalue > SUSPICIOUS


@pytest.mark.parametrize("name", names())
def test_nobody_beats_the_optimal_predictor_and_the_floor_is_its_loss(name: str) -> None:
    sandbox, (found, best) = small(name), drawn(name)

    def loss(logp: Any) -> Any:  # [row]
        per_row = -np.take_along_axis(np.asarray(logp), found.targets[..., None], axis=-1)[..., 0]
        return np.where(found.weight > 0, np.clip(per_row, 0, 50) * found.weight, 0).sum(axis=1)

    own = loss(best)
    assert "uniform" in sandbox.predictors()
    for predictor in sandbox.predictors().values():
        other = loss(jax.jit(jax.vmap(predictor))(found))
        assert (other - own).mean() > -5 * (other - own).std() / np.sqrt(len(own)) - 1e-5
    floor = sandbox.floor()
    if floor is not None:
        losses = -np.take_along_axis(best.astype(np.float64), found.targets[..., None], axis=-1)[..., 0]
        error = losses.std(axis=0) / np.sqrt(len(losses))
        asked = (found.weight > 0).all(axis=0)
        assert (np.abs(losses.mean(axis=0) - np.asarray(floor)) <= 5 * error + 1e-4)[asked].all()


@each("name", names())
def test_parameters_are_checked_and_can_be_written_down(name: str) -> None:
    sandbox = small(name)
    known = {f.name for f in named_fields(sandbox)}
    assert json.loads(json.dumps(sandbox.identity())).keys() == known
    with pytest.raises(InputError, match="nonsense is not a parameter; there are: "):
        make(name, {"nonsense": 1})
    for number in (p.name for p in described(type(sandbox)) if p.type in (int, float)):
        with pytest.raises(InputError, match=rf"{number} must be a .*, not many"):
            make(name, {**entry(name).small, number: "many"})


@pytest.mark.parametrize("name", [name for name in names() if entry(name).make.TRACED])
def test_traced_parameters_may_differ_between_members_of_one_program(name: str) -> None:
    (found, _), both = drawn(name), few(name)(0)
    assert np.array_equal(both.tokens[0], found.tokens[FEW])
    assert not np.array_equal(both.tokens[1], found.tokens[FEW])
