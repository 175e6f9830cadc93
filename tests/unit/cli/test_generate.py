"""Generation and graphs on the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from command_line import vitrify
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.net import answers
from vitrify.net.folder import save
from vitrify.spec import read_spec

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("nets")
    for name in ("increment.tm.toml", "towns.connectivity"):
        spec = read_spec(EXAMPLES / name)
        save(build(spec), root / name, spec)
    return root


def test_thoughts_are_written_with_their_steps_and_what_they_come_to(folder: Path) -> None:
    machine = folder / "increment.tm.toml"
    found = json.loads(vitrify("run", machine, *"1011", "--generate", 12, "--json").stdout)
    assert (found["kind"], found["steps"], found["stopped"]) == ("thought", 8, True)
    assert found["thought"][-1] == "1,S,done"
    assert found["conclusion"] == {"state": "done", "halted": "yes", "tape": "1 1 0 0"}
    short = vitrify("run", machine, *"1011", "--generate", 3)
    assert short.stdout.splitlines()[0] == "1,R,right 0,R,right 1,R,right"
    assert "3 steps\n" in short.stdout
    assert "halted = no" in short.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["1", "--generate", 99], "after 1 tokens the network has room for 25 steps, not 99"),
        (["1", "--generate", 3, "--trace"], "--generate takes one prompt"),
        (["1", "--seed", 3], "--seed is for --generate"),
        (["1", "--generate", 3, "--seed", 3], "no probabilities to draw from"),
        (["2", "--generate", 3], "does not read '2'"),
    ],
)
def test_what_generation_refuses(words: list[object], said: str, folder: Path) -> None:
    done = vitrify("run", folder / "increment.tm.toml", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_graphs_in_words_files_and_lines(folder: Path) -> None:
    towns = folder / "towns.connectivity"
    assert vitrify("run", towns, "ash-oak", "oak-elm").stdout.splitlines()[0] == "ash elm oak"
    found = json.loads(vitrify("run", towns, "--input", EXAMPLES / "roads.graph", "--json").stdout)
    assert found["connected"]["cedar"] == ["cedar", "fir", "yew"]
    assert found["connected"]["pine"] == ["pine"]
    refused = vitrify("run", towns, "ash-palm")
    assert (refused.returncode, "there is no node 'palm'" in refused.stderr) == (2, True)


def test_lines_of_graphs() -> None:
    weights = build(read_spec(EXAMPLES / "towns.connectivity"))
    found = list(answers.run_lines(weights, io.StringIO("ash-oak\n\nelm-fir fir-yew\n"), False, None))
    assert [line.connected["fir"] for line in found] == [("fir",), ("fir",), ("elm", "fir", "yew")]
    with pytest.raises(InputError, match="standard input, line 2: there is no node 'x'"):
        list(answers.run_lines(weights, io.StringIO("ash-oak\nx-oak\n"), False, None))


def test_nets_that_read_images_do_not_generate() -> None:
    with pytest.raises(InputError, match="can't generate"):
        answers.run_generation(build(read_spec(EXAMPLES / "faces.scene.toml")), ["0"], 3, None, None)


def test_nets_without_symbols_do_not_generate(folder: Path, tmp_path: Path) -> None:
    done = vitrify("run", folder / "towns.connectivity", "--generate", 3)
    assert (done.returncode, "can't generate" in done.stderr) == (2, True)
    (tmp_path / "x.graph").write_text("ash oak\nash palm\n")
    done = vitrify("run", folder / "towns.connectivity", "--input", tmp_path / "x.graph")
    assert (done.returncode, "x.graph:2: there is no node 'palm'" in done.stderr) == (2, True)
    done = vitrify("run", folder / "increment.tm.toml", "--input", tmp_path / "x.graph")
    assert (done.returncode, "reads no images and no graphs" in done.stderr) == (2, True)
