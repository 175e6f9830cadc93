"""`vitrify bound` and `vitrify refute`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import vitrify
from vitrify.constructions.catalogue import build
from vitrify.net.folder import save
from vitrify.spec import read_spec

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nets")
    for name, file, length in (("weather", "weather.arpa", 17), ("deep", "brackets.dyck", None)):
        spec = read_spec(EXAMPLES / file)
        save(build(spec, max_length=length), made / name, spec)
    return made


def test_bounds_are_listed_and_evaluated() -> None:
    listed = json.loads(vitrify("bound", "--json").stdout)
    assert {"composition", "induction", "copying"} <= {entry["name"] for entry in listed}
    assert all(entry["status"] in ("unconditional", "conditional", "rate") and entry["title"] for entry in listed)
    shown = json.loads(vitrify("bound", "composition", "n=64", "H=1", "d=14", "p=16", "--json").stdout)
    assert shown["figures"]["error at least"] == 0.125
    assert shown["status"] == "unconditional"
    assert shown["parameters"] == {"n": 64, "H": 1, "d": 14, "p": 16}
    assert all(shown[key] for key in ("says", "statement", "assumes", "source"))
    text = vitrify("bound", "chain-of-thought", "n=64", "H=1", "d=14", "p=16").stdout
    assert "no figure is a certified number" in text


def test_wrong_values_are_told_all_at_once() -> None:
    done = vitrify("bound", "composition", "n=1", "q=3", "d=x", "p", "H=0")
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 6
    assert lines[0].endswith("a parameter is given as key=value, not 'p'")
    assert lines[1].endswith("q is not a parameter; there are: n, H, d, p")
    assert lines[2].endswith("p is missing: bits of a number, a whole number from 1 to 64")
    assert (
        "n (elements that the functions map to each other) must be a whole number from 2 to 1,048,576, not 1"
        in lines[3]
    )
    assert vitrify("bound", "nonsense").returncode == 2


def test_the_sizes_of_a_bound_are_listed() -> None:
    told = json.loads(vitrify("bound", "composition", "--parameters", "--json").stdout)
    assert [(each["name"], each["high"]) for each in told["bound composition"]][::3] == [("n", 2**20), ("p", 64)]


def test_a_net_of_one_layer_is_refuted_by_two_inputs(folder: Path) -> None:
    done = vitrify("refute", folder / "weather", "--task", "induction", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["task"], found["bits"], found["size"], found["forced"]) == ("induction", 8, 8, False)
    one, other = found["refutation"]
    assert one["answer"] != other["answer"]
    assert one["quantized"] == other["quantized"]
    for row in (one, other):
        itself = json.loads(vitrify("run", folder / "weather", *row["input"], "--json").stdout)["next"]
        assert max(itself, key=itself.__getitem__) == row["net"]
    text = vitrify("refute", folder / "weather", "--task", "induction", "--size", 3, "--bits", 1).stdout
    assert "at 1 bits" in text
    assert " ".join(one["input"]) not in text  # three pairs are shorter words


@pytest.mark.parametrize(
    ("net", "words", "said"),
    [
        ("deep", ["--task", "induction"], "it has 2, to which the bound does not apply"),
        ("weather", ["--task", "juggling"], "no task is called 'juggling'"),
        ("weather", ["--task", "induction", "--size", 9], "the size must be from 1 to 8, not 9"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(folder: Path, net: str, words: list[object], said: str) -> None:
    done = vitrify("refute", folder / net, *words)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_survey_is_printed_as_markdown_and_as_data() -> None:
    text = vitrify("bound", "--survey").stdout
    assert text.startswith("## The map\n")
    assert all(line.endswith(" |") for line in text.splitlines() if line.startswith("| "))
    data = json.loads(vitrify("bound", "--survey", "--json").stdout)
    assert len(data["rows"]) > 22
    assert all(cell["derivation"] for cell in data["map"])
    assert vitrify("bound", "hops", "--survey").returncode == 2
