"""The questions of the landscape explorer and of the live curves, as a browser asks them."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving import Visitor, serving
from vitrify.learn.store import RunStore
from vitrify.report.landscape import path, surface


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return RunStore(tmp_path_factory.mktemp("curves") / "runs")


@pytest.fixture(scope="module")
def visitor(store: RunStore) -> Iterator[Visitor]:
    with serving(workers=0, tracers=0, store=store.path) as address, Visitor(address) as one:
        yield one


def test_answers_are_those_of_the_report(visitor: Visitor) -> None:
    asked: dict[str, Any] = {"form": "attention", "p": 0.5, "q": 0.8, "third": 0.25}
    found = visitor.http.get("/api/landscape/surface", params=asked).raise_for_status().json()
    assert found == surface("attention", 0.5, 0.8, 0.25)
    found = visitor.http.get("/api/landscape/path", params=asked | {"e": 0.3, "w": -1}).raise_for_status().json()
    assert found == path("attention", 0.5, 0.8, 0.3, -1.0, 0.25)
    recorded = visitor.http.get("/api/landscape/recorded", params=asked).raise_for_status().json()
    assert (recorded["p"], recorded["q"], recorded["measured on"]["device"]) == (0.5, 0.8, "CPU")


@pytest.mark.parametrize(
    "asked",
    [
        "surface?form=tied&p=2&q=0.5",
        "surface?form=none&p=0.2&q=0.5",
        "surface?form=tied&p=nan&q=0.5",
        "surface?form=tied&p=inf&q=0.5",
        "path?form=tied&p=0.2&q=0.5&e=1e300&w=0",
        "path?form=tied&p=0.2&q=0.5",
        "surface?form=tied&p=&q=0.5",
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(visitor: Visitor, asked: str) -> None:
    answer = visitor.http.get(f"/api/landscape/{asked}")
    assert answer.status_code == 422
    assert answer.json()["error"]


def test_pages_are_there_and_both_addresses_of_the_landscape(visitor: Visitor) -> None:
    for page in ("/landscape", "/landscape.html", "/curves"):
        answer = visitor.http.get(page)
        assert answer.status_code == 200
        assert "text/html" in answer.headers["content-type"]


def events(visitor: Visitor, **asked: Any) -> Generator[dict[str, Any], None, None]:
    with visitor.http.stream("GET", "/api/curves/stream", params=asked) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


@pytest.mark.long
def test_a_run_appears_in_the_stream_within_two_seconds(visitor: Visitor, store: RunStore) -> None:
    told = events(visitor)
    assert next(told)["sweeps"] == []
    identity = {"sandbox": {"name": "markov"}, "model": {"name": "mlp"}, "seed": 0}
    with store.open(identity) as run:
        began = time.monotonic()
        run.log({"step": 0, "loss": 0.7, "floor": 0.6})
        run.group.flush()
        found = next(one for one in told if one["chosen"] and one["chosen"]["lines"][0]["steps"])
        assert time.monotonic() - began < 2
        assert found["sweeps"][0]["states"] == {"running": 1}
        assert found["chosen"]["lines"][0]["mean"] == [0.7]
        began = time.monotonic()
        run.log({"step": 1, "loss": 0.65, "floor": 0.6})
        run.finish({"loss": 0.65, "floor": 0.6}, {"w": np.zeros(1)})
        found = next(one for one in told if one["chosen"]["lines"][0]["steps"] == [0, 1])
        assert time.monotonic() - began < 2
    told.close()
    assert visitor.http.get("/api/curves").json()["sweeps"][0]["states"] == {"finished": 1}


def test_a_mistaken_query_is_told(visitor: Visitor, store: RunStore) -> None:
    with store.open({"sandbox": {"name": "markov"}, "model": {"name": "mlp"}, "seed": 1}) as run:
        run.finish({"loss": 1.0})
    for kind in ("", "/stream"):
        answer = visitor.http.get(f"/api/curves{kind}", params={"query": "colour=3"})
        assert answer.status_code == 422
        assert "no run has a value 'colour'" in answer.json()["error"]
    assert visitor.http.get("/api/curves", params={"query": "x" * 501}).status_code == 422


def test_where_the_store_is_comes_from_the_settings(visitor: Visitor, store: RunStore) -> None:
    assert str(Path(store.path)) in visitor.http.get("/curves").text
