"""`vitrify train`, `sweep`, `data` and `plot`, as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from command_line import vitrify
from vitrify.learn.store import RunStore

pytestmark = pytest.mark.jax

SMALL = ["layers=1", "heads=1", "d_model=8", "units=8", "length=8", "steps=6", "batch=4", "test_examples=16"]


def test_train_shows_loss_and_floor_keeps_runs_and_does_not_repeat_them(tmp_path: Path) -> None:
    done = vitrify("train", "markov", "transformer", "lr=1e-3,1e-2", *SMALL, "--members", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 members in 1 program" in done.stderr
    assert "operations" in done.stderr
    assert "step 6/6  loss" in done.stderr
    assert "floor 0." in done.stderr
    assert "member-steps/s" in done.stderr
    assert "recipe.lr" in done.stdout
    assert "nearest known predictor" in done.stdout
    again = vitrify("train", "markov", "transformer", "lr=1e-3,1e-2", *SMALL, "--members", "2", "--json", cwd=tmp_path)
    records = [json.loads(line) for line in again.stdout.splitlines()]
    assert [record["state"] for record in records] == ["finished"] * 4
    assert again.stderr == ""
    figure = vitrify("plot", "recipe.lr=0.01", "-o", "curves.svg", cwd=tmp_path)
    assert figure.returncode == 0, figure.stderr
    assert (tmp_path / "curves.svg").read_text().count("optimal") == 1
    assert "2 runs → curves.svg" in figure.stdout
    refused = vitrify("plot", "-o", "curves.gif", cwd=tmp_path)
    assert refused.returncode == 2
    assert ".svg, .png, .pdf" in refused.stderr


def test_a_sweep_with_a_broken_member_ends_with_its_step_and_seed(tmp_path: Path) -> None:
    sizes = ["layers = 1", "heads = 1", "d_model = 8", "units = 8", "length = 8", "steps = 6", "batch = 4"]
    broken = ["test_examples = 16", "warmup = 0", 'clip = "none"', 'optimizer = "sgd"', "[axes]", "lr = [0.01, 1e30]"]
    text = "\n".join(['sandbox = "markov"', 'model = "transformer"', "[set]", *sizes, *broken])
    (tmp_path / "sweep.toml").write_text(text)
    done = vitrify("sweep", "sweep.toml", cwd=tmp_path)
    assert done.returncode == 1
    assert "the loss was not a number at step" in done.stdout
    assert "(seed 0)" in done.stdout


def test_data_shows_rows_states_and_the_optimum(tmp_path: Path) -> None:
    done = vitrify("data", "flip_flop", "--rows", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mean optimal loss" in done.stdout
    assert "optimal prediction" in done.stdout
    seen = json.loads(vitrify("data", "markov", "p=0.4", "--rows", "2", "--json").stdout)
    assert seen["parameters"]["p"] == 0.4
    assert len(seen["examples"]) == 2
    assert {answer for answer, _ in seen["examples"][0]["queries"][0]["optimal"]} == {"0", "1"}
    listed = vitrify("data")
    assert "in_context_markov" in listed.stdout
    assert "sandboxes" in listed.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "markow", "transformer"], "there is no sandbox 'markow': did you mean markov"),
        (["train", "markov", "transformr"], "there is no model 'transformr'; there are"),
        (["train", "markov", "transformer", "lrr=1"], "there is no parameter 'lrr': did you mean lr"),
        (["train", "markov", "transformer", "p=2"], "p must be a number above 0 and at most 1"),
        (["train", "markov", "transformer", "--store", "file/runs"], "file/runs"),
        (["train", "scenes", "transformer"], "this model reads tokens"),
        (["sweep", "none.toml"], "none.toml: the file can't be read"),
        (["data", "markov", "length=1"], "length must be a whole number of at least 2, not 1"),
        (["plot"], "there is no run store runs"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    done = vitrify(*words, *(["steps=1"] if words[0] == "train" and "--store" not in words else []))
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


SWEEP = """
sandbox = "markov"
model = "transformer"
members = 3
set = {layers = 1, heads = 1, d_model = 8, units = 8, length = 8, steps = 6, batch = 4, test_examples = 16}
"""


def test_a_dry_run_prints_shards_cost_and_memory_and_trains_nothing(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    words = ["sweep", str(tmp_path / "sweep.toml"), "--store", str(tmp_path / "runs"), "--dry-run"]
    done = vitrify(*words, "--on", "processes", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "3 of 3 runs are to be trained" in done.stdout
    assert "2 shards for 2 workers, each with one core" in done.stdout
    assert "shard 1: 2 members of transformer on markov, 6 steps" in done.stdout
    assert "shard 2: 1 member of transformer" in done.stdout
    assert "operations" in done.stdout
    assert "MiB" in done.stdout
    assert "1 shard for this process" in vitrify(*words).stdout
    assert not (tmp_path / "runs").exists()


def test_a_sweep_says_where_it_can_run(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    refused = vitrify("sweep", str(tmp_path / "sweep.toml"), "--on", "nowhere")
    assert refused.returncode == 2
    assert "a sweep runs on processes, local-ray, ray or ray://HOST:PORT, not on 'nowhere'" in refused.stderr
    refused = vitrify("sweep", str(tmp_path / "sweep.toml"), "--workers", "2")
    assert refused.returncode == 2
    assert "--workers is for --on" in refused.stderr


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_its_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    refused = vitrify("sweep", str(tmp_path / "sweep.toml"), "--on", "local-ray")
    assert refused.returncode == 2
    assert "pip install 'vitrify[ray]'" in refused.stderr


@pytest.mark.slow
def test_a_sweep_by_processes_is_interrupted_and_leaves_nobody_behind(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP.replace("steps = 6", "steps = 30000"))
    environment = {**os.environ, "VITRIFY_CACHE": str(tmp_path / "cache")}
    words = [sys.executable, "-m", "vitrify", "sweep", "sweep.toml", "--on", "processes", "--workers", "2"]
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as sweep:
        assert sweep.stderr
        for line in sweep.stderr:
            if "step 64/" in line:
                workers = subprocess.run(["pgrep", "-P", str(sweep.pid)], capture_output=True, text=True, check=True)
                sweep.send_signal(signal.SIGINT)
                break
        assert "the same command resumes" in sweep.stderr.read()
    assert sweep.returncode == 1
    assert len(workers.stdout.split()) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers.stdout.split())
    assert {record.state for record in RunStore(tmp_path / "runs").runs()} <= {"new", "partial"}  # nobody holds them
    (tmp_path / "sweep.toml").write_text(SWEEP)
    done = vitrify("sweep", "sweep.toml", "--on", "processes", "--workers", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("overhead") == 2


def test_parameters_are_listed_with_ranges_and_defaults(tmp_path: Path) -> None:
    told = json.loads(vitrify("train", "markov", "transformer", "--parameters", "--json", cwd=tmp_path).stdout)
    assert list(told) == ["sandbox", "model", "recipe"]
    rate = next(each for each in told["recipe"] if each["name"] == "lr")
    assert (rate["kind"], rate["allowed"], rate["default"]) == ("float", "a number above 0", 0.003)
    assert "a number above 0 and at most 1" in vitrify("data", "markov", "--parameters", cwd=tmp_path).stdout
