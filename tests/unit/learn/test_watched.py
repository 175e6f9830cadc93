"""Probes by name, checkpoints of stored runs, and figures of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import vitrify as v
from vitrify.errors import InputError, StoreError
from vitrify.learn import curve_figures
from vitrify.learn.distance import distance
from vitrify.learn.measure import TEST_SEED
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Run
from vitrify.learn.stages import Plateau
from vitrify.learn.store import RunStore
from vitrify.learn.train import train, train_groups
from vitrify.learn.trainer import Trainer
from vitrify.learn.watched import probe
from vitrify.net.trace import Trace
from vitrify.sandboxes.catalogue import examples

CHAINS = v.sandbox("in_context_markov", states=3, length=10)
MODEL = v.model("transformer", layers=2, heads=2, d_model=8, units=8)
NAMES = ("previous", "matches", "induction", "sink", "entropy", "latent:kernel")
FLAT = Plateau(1, 2, 1.0, 3.0, 1.0)  # from step 1 to step 3
RECIPE = Recipe(steps=8, batch=4, test_examples=64, probes=NAMES, checkpoints=4)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunStore, list[Run]]:
    store = RunStore(tmp_path_factory.mktemp("watched") / "runs")
    return store, train(MODEL, CHAINS, members=2, recipe=RECIPE, store=store)


def counted(name: str, traces: list[Trace]) -> list[float]:
    """A probe of every head, by going through all queries and keys of the library's own runs one by one."""
    heads: list[list[float]] = [[] for _ in range(4)]
    for trace in traces:
        tokens = trace.tokens
        for at, weights in enumerate(heads):
            pattern = trace[f"blocks.{at // 2}.attn.hook_pattern"][at % 2]
            for query in range(1, len(tokens)):  # BOS comes first
                if name == "entropy":
                    weights.append(-sum(x * np.log(x) for x in pattern[query, : query + 1] if x > 0))
                    continue
                keys = {
                    "previous": [query - 1] if query > 1 else [],
                    "matches": [key for key in range(1, query) if tokens[key] == tokens[query]],
                    "induction": [key for key in range(2, query + 1) if tokens[key - 1] == tokens[query]],
                    "sink": [0],
                }[name]
                if keys:
                    weights.append(float(pattern[query, keys].sum()))
    return [float(np.mean(weights)) for weights in heads]


@pytest.mark.parametrize("name", NAMES[:5])
def test_probes_are_logged_as_they_are_counted_on_the_checkpoints(
    stored: tuple[RunStore, list[Run]], name: str
) -> None:
    store, (run, _) = stored
    batch = examples(CHAINS, TEST_SEED, "probe", 0, 64)
    words = [[str(token) for token in row] for row in np.asarray(batch.tokens).tolist()]
    for step in (0, 8):
        net = v.load(f"{store.path}/{run.id}@{step}")
        (point,) = [point for point in run.curve if point["step"] == step]
        np.testing.assert_allclose(point[name], counted(name, [v.trace(net, word) for word in words]), atol=1e-4)


def test_a_latent_variable_is_read_at_every_moment(stored: tuple[RunStore, list[Run]]) -> None:
    _, (run, _) = stored
    assert len(np.asarray(run.last["latent:kernel"])) == len(run.weights.architecture.moments)
    chain = v.sandbox("regular", length=8)
    states = probe("latent:states:2", MODEL, chain)
    net = MODEL.architecture(chain)
    batch = examples(chain, 0, "probe", 0, 32)
    seen: dict[str, Any] = {}
    arrays = MODEL.arrays(net, MODEL.first(net, jax.random.key(0)))
    MODEL.logits(net, chain, arrays, batch, seen.__setitem__)
    assert all(0 <= share <= 1 for share in np.asarray(states(net, arrays, batch, seen)).tolist())
    with pytest.raises(InputError, match=r"no latent variable 'x'.*states"):
        probe("latent:x", MODEL, chain)(net, arrays, batch, seen)


def test_the_distance_to_a_construction_is_logged_and_its_weights_name_the_run(tmp_path: Path) -> None:
    built = v.build(v.task("estimate", order=1, symbols=3, length=10))
    renamed = replace(
        built.architecture,
        inputs=("<s>", "0", "1", "2"),
        output=replace(built.architecture.output, symbols=("0", "1", "2")),
    )
    v.save(replace(built, architecture=renamed), tmp_path / "built")
    name = f"distance:{tmp_path / 'built'}"
    model = v.model("built", folder=str(tmp_path / "built"), noise=0.1)
    recipe = Recipe(steps=2, batch=4, test_examples=16, evals_per_doubling=0, probes=(name, "previous"))
    (run,) = train(model, CHAINS, recipe=recipe)
    assert run.last[name] == pytest.approx(distance(run.weights, v.load(tmp_path / "built")), rel=1e-3)
    assert np.asarray(run.curve[0]["previous"])[0] > 0.9  # the construction's first head, with a little noise
    v.save(replace(built, architecture=renamed, arrays={n: a * 2 for n, a in built.arrays.items()}), tmp_path / "built")
    (group,) = plan(CHAINS, model, recipe, {})
    assert run.id != v.Run(group.identities()[0], run.curve, run.weights).id
    with pytest.raises(InputError, match="networks of one architecture"):
        probe(name, MODEL, CHAINS)


def test_names_that_are_no_probes_are_refused_with_those_that_are() -> None:
    for name in ("nope", "latent:", "distance:", "previous:1"):
        with pytest.raises(InputError, match=f"probes must be some of previous.*not '{name}'"):
            Recipe(probes=(name,))
    with pytest.raises(InputError, match="where there are heads"):
        train(v.model("recurrent", state=4, d_embed=4), CHAINS, recipe=Recipe(steps=0, probes=("previous",)))


def test_checkpoints_are_at_log_spaced_steps_and_change_no_number() -> None:
    for count in range(7):
        steps = Recipe(steps=500, checkpoints=count).checkpoint_steps()
        assert len(steps) == count
        assert steps[-1:] == [500][:count]
        gaps = np.diff(np.log1p(steps[1:]))
        assert not len(gaps) or gaps.max() <= 1.5 * gaps.min()
    assert Recipe(checkpoints=0).identity() == Recipe().identity()  # runs from before keep their names
    assert "checkpoints" not in Recipe().identity()
    plain = train(MODEL, CHAINS, recipe=replace(RECIPE, probes=(), checkpoints=0))[0]
    watched = train(MODEL, CHAINS, recipe=RECIPE)[0]
    for name, array in plain.weights.arrays.items():
        np.testing.assert_array_equal(watched.weights.arrays[name], array)


@contextmanager
def stopped_after_step_3(store: RunStore) -> Iterator[tuple[Any, Any]]:
    """Yield a group of two members and its place in the store, both held open, after three steps of training."""
    (group,) = plan(CHAINS, MODEL, RECIPE, {}, 2)
    program = TrainingProgram(group)
    with store.open_many(program.identities) as opened:
        (held,) = opened.groups
        for event in Trainer(program).events(checkpoint_seconds=0):
            held.record(event)
            if event.step == 3:
                break
        yield group, held


def test_an_interrupted_group_keeps_the_same_checkpoints(stored: tuple[RunStore, list[Run]], tmp_path: Path) -> None:
    """Killed after step 3 and resumed, the second member alone: as if it had never been interrupted."""
    whole, runs = stored
    store = RunStore(tmp_path / "runs")
    with stopped_after_step_3(store) as (group, held):
        pass
    assert len(list(held.folder.glob("net-*"))) == 3  # after 0, 1 and 3 steps
    (record,) = train_groups([replace(group, members=group.members[1:])], RunStore(store.path))
    assert record.id == runs[1].id
    assert store.checkpoints(record) == [0, 1, 3, 8]
    names = ("weights.safetensors", "checkpoints.safetensors")
    assert all((store.path / record.id / n).read_bytes() == (whole.path / record.id / n).read_bytes() for n in names)


def test_checkpoints_are_read_while_the_run_is_in_training(stored: tuple[RunStore, list[Run]], tmp_path: Path) -> None:
    """They are those of the finished run; the end is not there yet, and a message names what is."""
    whole, runs = stored
    store = RunStore(tmp_path / "runs")
    with stopped_after_step_3(store):
        reader = RunStore(store.path)
        for run in runs:
            (record,) = reader.runs(f"seed={run.identity['seed']}")
            assert not record.done
            assert reader.checkpoints(record) == [0, 1, 3]
            (ended,) = whole.runs(f"seed={run.identity['seed']}")
            for step in (0, 1, 3):
                assert v.load(f"{store.path}/{record.id}@{step}").digest == whole.net(ended, step).digest
            with pytest.raises(StoreError, match=rf"name a checkpoint, as {record.id}@0, {record.id}@1, {record.id}@3"):
                reader.net(record)
            with pytest.raises(InputError, match="no checkpoint of step 8: it has those of 0, 1, 3"):
                reader.net(record, 8)


def test_a_member_that_stops_early_has_no_later_checkpoints(tmp_path: Path) -> None:
    excess = sorted(run.curve[0]["excess"] for run in train(MODEL, CHAINS, members=2, recipe=replace(RECIPE, steps=0)))
    store, recipe = RunStore(tmp_path / "runs"), replace(RECIPE, probes=(), stop=sum(excess) / 2, lr=1e-9)
    train(MODEL, CHAINS, members=2, recipe=recipe, store=store)
    ends = {record.values["excess"] < recipe.stop: store.checkpoints(record) for record in store.runs()}
    assert ends == {True: [0], False: [0, 1, 3, 8]}


def test_single_seeds_are_drawn_with_their_plateaus(
    stored: tuple[RunStore, list[Run]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, runs = stored
    drawn: list[Any] = []
    monkeypatch.setattr(curve_figures, "saved", lambda make, _out: drawn.append(make()))
    monkeypatch.setattr(curve_figures, "plateaus", lambda *_, window: [FLAT] * (0.5 <= window <= 1))
    quantities = ["loss", "induction", "entropy", "induction.2", "latent:kernel"]
    curve_figures.curves(store, store.runs(), quantities, tmp_path / "x.svg", each=True)
    loss, strongest, sharpest, second, _ = drawn[0].axes
    seeds = [line for line in loss.lines if len(line.get_xdata()) == len(runs[0].curve)]
    marks = [line for line in loss.lines if list(line.get_xdata()) == [1.0, 3.0]]
    assert (len(seeds), len(marks)) == (2, 2)
    assert {name for text in loss.texts for name in text.get_text().split(", ")} == {"optimal", "unigram", "uniform"}
    by_run = {record.id: store.curve(record) for record in store.runs()}
    for axes, name, reduce in ((strongest, "induction", max), (sharpest, "entropy", min)):
        for line, curve in zip(axes.lines, by_run.values(), strict=True):
            assert list(line.get_ydata()) == [reduce(point[name]) for point in curve]
    for line, curve in zip(second.lines, by_run.values(), strict=True):
        assert list(line.get_ydata()) == [point["induction"][2] for point in curve]
    curve_figures.curves(store, store.runs(), ["loss"], tmp_path / "x.svg", each=False)
    assert len(drawn[1].axes[0].collections) == 1  # a band
    with pytest.raises(InputError, match=r"no run has 'induction.4'.*previous"):
        curve_figures.curves(store, store.runs(), ["induction.4"], tmp_path / "x.svg", each=True)
