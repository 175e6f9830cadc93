"""Watching learning: a run at its checkpoints, beside a built network on the same words, as a browser asks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitrify as v
from serving import Visitor, serving
from vitrify.learn.store import RunStore

pytestmark = pytest.mark.jax

PROBES = ("induction", "previous")
WORDS = ["0", "1", "2", "0", "1", "2", "2", "1"]
SECONDS = 0.15  # in which a look must be answered
BUILT = Path("built")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    folder = tmp_path_factory.mktemp("watch")
    model = v.model("transformer", layers=2, heads=1, d_model=8, units=0)
    recipe = v.Recipe(steps=8, batch=4, test_examples=16, checkpoints=4, probes=PROBES)
    chains = v.sandbox("in_context_markov", states=3, length=12)
    runs = v.train(model, chains, members=2, recipe=recipe, store=RunStore(folder / "runs"))
    v.save(v.build(v.task("estimate", order=1, symbols=3, length=12)), folder / BUILT)
    return folder, runs


@pytest.fixture(scope="module")
def visitor(runs: tuple[Path, list[Any]]) -> Iterator[Visitor]:
    folder, _ = runs
    with (
        serving(workers=0, tracers=2, store=folder / "runs", nets=(str(folder / BUILT),)) as address,
        Visitor(address) as one,
    ):
        yield one


def test_runs_and_named_networks_are_offered(visitor: Visitor, runs: tuple[Path, list[Any]]) -> None:
    offered = visitor.http.get("/api/watch/nets").raise_for_status().json()["nets"]
    assert {one["key"] for one in offered} == {run.id for run in runs[1]} | {"net:0"}
    for one in offered[:-1]:
        assert one["steps"] == [0, 1, 3, 8]
        assert set(PROBES) <= set(one["curves"])
    points = visitor.http.get("/api/watch/curves", params={"net": runs[1][0].id}).raise_for_status().json()["points"]
    assert points == [dict(point) for point in runs[1][0].curve]
    assert visitor.http.get("/watch").status_code == 200


@pytest.mark.parametrize("step", [0, 3, 8, None])
def test_a_checkpoint_is_shown_as_the_library_runs_it(
    visitor: Visitor, runs: tuple[Path, list[Any]], step: int | None
) -> None:
    folder, (run, *_) = runs
    wanted = {"net": run.id, "words": WORDS} | ({} if step is None else {"step": step})
    shown = visitor.http.post("/api/watch/look", json=wanted).raise_for_status().json()
    trace = v.trace(v.load(f"{folder}/runs/{run.id}" + ("" if step is None else f"@{step}")), WORDS)
    assert shown["tokens"] == list(trace.tokens)
    for layer, head in enumerate(shown["heads"]):
        rows = [list(bytes.fromhex(row)) for row in head["pattern"]]
        np.testing.assert_array_equal(rows, np.round(255 * trace[f"blocks.{layer}.attn.hook_pattern"][0]))
    for best, logits in zip(shown["answers"], trace["hook_logits"], strict=True):
        shares = np.exp(logits) / np.exp(logits).sum()
        assert [symbol for symbol, _ in best] == [str(at) for at in np.argsort(-shares)]
        assert [share for _, share in best] == pytest.approx(sorted(shares, reverse=True))


def test_a_built_network_reads_the_same_words_by_its_own_names(visitor: Visitor, runs: tuple[Path, list[Any]]) -> None:
    wanted = {"net": "net:0", "words": WORDS, "beside": runs[1][0].id}
    shown = visitor.http.post("/api/watch/look", json=wanted).raise_for_status().json()
    assert shown["tokens"] == ["<s>", *("abc"[int(word)] for word in WORDS)]
    previous = [list(bytes.fromhex(row)) for row in shown["heads"][0]["pattern"]]
    assert [row.index(max(row)) for row in previous[1:]] == list(range(len(WORDS)))  # the head that looks one back


@pytest.mark.parametrize(
    ("wanted", "status", "message"),
    [
        ({"net": "../../etc", "words": []}, 404, "there is no network"),
        ({"net": "net:1", "words": []}, 404, "there is no network"),
        ({"net": "0123456789abcdef", "words": []}, 404, "there is no network"),
        ({"net": "net:0", "words": ["0"]}, 422, "does not read '0'"),
        ({"net": "RUN", "words": ["x"]}, 422, "does not read 'x'"),
        ({"net": "RUN", "words": ["0"] * 12}, 422, "the sequence has 12 tokens"),
        ({"net": "RUN", "words": ["0"], "step": 2}, 422, "no checkpoint of step 2"),
        ({"net": "RUN", "words": ["0"], "more": 1}, 422, "more"),
    ],
)
def test_what_can_t_be_shown_is_refused_in_a_sentence(
    visitor: Visitor, runs: tuple[Path, list[Any]], wanted: dict[str, Any], status: int, message: str
) -> None:
    wanted = wanted | ({"net": runs[1][0].id} if wanted["net"] == "RUN" else {})
    answer = visitor.http.post("/api/watch/look", json=wanted)
    assert (answer.status_code, message in answer.json()["error"]) == (status, True)


@pytest.mark.parametrize("symbols", [["2", "0", "1"], []])
def test_the_spec_of_a_network_is_the_one_that_the_library_extracts(
    runs: tuple[Path, list[Any]], symbols: list[str]
) -> None:
    folder, (run, *_) = runs
    v.save(v.build(v.read("cyclic:3"), "elman"), folder / "three")
    with (
        serving(workers=1, tracers=1, store=folder / "runs", nets=(str(folder / "three"),)) as address,
        Visitor(address) as one,
    ):
        wanted = {"net": run.id, "words": symbols, "step": 3, "kind": "ngram"}
        shown = one.http.post("/api/watch/extract", json=wanted).raise_for_status().json()
        net = v.load(f"{folder}/runs/{run.id}@3")
        right = v.extract(net, "ngram", symbols=symbols or None, words=1 << 14)
        assert (shown["known"], shown["verdict"]) == (right.known, right.evidence.verdict)
        assert shown["facts"] == [list(row) for row in right.rows()]
        three = {"net": "net:0", "words": [], "kind": "counter"}
        shown = one.http.post("/api/watch/extract", json=three).raise_for_status().json()
        assert shown["known"] == "equal for every length, proved"
        assert shown["spec"] == str(v.read("cyclic:3"))
        refused = one.http.post("/api/watch/extract", json=three | {"kind": "formula"})
        assert (refused.status_code, "answers True or False" in refused.json()["error"]) == (422, True)
        assert one.http.post("/api/watch/extract", json=three | {"kind": "essay"}).status_code == 422
        assert one.http.post("/api/watch/extract", json=three | {"net": "net:9"}).status_code == 404


def test_the_slider_is_answered_at_once(visitor: Visitor, runs: tuple[Path, list[Any]]) -> None:
    seconds = []
    for step in (0, 1, 3, 8, 0, 1, 3, 8):
        began = time.perf_counter()
        visitor.http.post("/api/watch/look", json={"net": runs[1][1].id, "words": WORDS, "step": step})
        seconds.append(time.perf_counter() - began)
    assert sorted(seconds)[len(seconds) // 2] < SECONDS
