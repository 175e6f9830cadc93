"""`vitrify runs` lists what a store holds, and hands it to other tools."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import vitrify
from vitrify.learn.store import RunStore


@pytest.fixture(autouse=True)
def no_other_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VITRIFY_STORE", raising=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    asked = [{"sandbox": {"name": "markov", "p": 0.2}, "model": {"name": "rnn"}, "seed": seed} for seed in range(3)]
    with RunStore(folder / "runs").open_many(asked) as opened:
        (group,) = opened.groups
        group.log({"step": 8, "loss": np.array([0.75, 0.5, np.nan]), "floor": 0.25})
        group.finish(0, {}, {"w": np.ones(2)})
        group.fail(2, "the loss is [not] a number", 8)
        group.save(8, {"w": np.ones(3)}, {})
    return folder


def test_the_table(folder: Path) -> None:
    done = vitrify("runs", cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines() if "│" in line]
    ids = [record.id for record in RunStore(folder / "runs").runs()]
    assert [row[:-1] for row in rows] == [
        [ids[0], "markov", "rnn", "0", "finished", "8", "0.75", "0.25", "0.5"],
        [ids[1], "markov", "rnn", "1", "partial", "8", "0.5", "0.25", "0.25"],
        [ids[2], "markov", "rnn", "2", "failed", "8", "nan", "0.25", "nan"],
    ]
    assert all(row[-1].endswith((" s", " min")) for row in rows)
    assert f"{ids[2]} failed: the loss is [not] a number" in done.stdout
    assert "seed" in done.stdout
    assert "sandbox.p" not in done.stdout


def test_queries_and_json(folder: Path) -> None:
    done = vitrify("runs", "loss<0.7", "markov", "--json", "--store", folder / "runs", cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    assert (record["identity"]["seed"], record["state"], record["values"]["loss"]) == (1, "partial", 0.5)
    assert json.loads(vitrify("runs", "state=failed", "--json", cwd=folder).stdout)[0]["values"]["loss"] == "NaN"


def test_exports(folder: Path) -> None:
    words = ("--export", "all.parquet", "--curves", "curves.csv", "--tensorboard", "events")
    done = vitrify("runs", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"3 runs → {name}" for name in ("all.parquet", "curves.csv", "events")]
    assert (folder / "curves.csv").read_text().splitlines()[0] == "id,seed,step,floor,loss"
    assert len(list((folder / "events").iterdir())) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--store", "nowhere"], "there is no run store nowhere"),
        (["--store", "."], "not a run store"),
        (["sed=1"], "did you mean seed"),
        (["--export", "runs.xlsx"], ".parquet or .csv"),
    ],
)
def test_bad_input(folder: Path, words: list[str], message: str) -> None:
    done = vitrify("runs", *words, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
