"""Every key that a command prints with `--json` is listed on the page of commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import vitrify

ROOT = Path(__file__).parents[3]
SECTIONS = re.split(r"^## ", (ROOT / "docs" / "commands.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
FREE = {
    "figures",
    "settings",
    "instances",
    "parameters",
    "latent",
    "logits",
    "detections",
    "statements",
}  # names of other things


def keys(data: Any) -> Iterator[str]:
    """Yield the keys of all objects, but for objects whose keys are names of symbols, parameters and the like."""
    for item in data if isinstance(data, list) else ():
        yield from keys(item)
    for key, value in data.items() if isinstance(data, dict) else ():
        yield key
        if key not in FREE:
            yield from keys(value)


def unlisted(heading: str, *command: object) -> set[str]:
    """Return the keys that a command prints and the section of the page does not name."""
    done = vitrify(*command, "--json")
    assert done.returncode == 0, done.stderr
    (section,) = (text for text in SECTIONS if text.partition("\n")[0] == heading)
    return set(keys(json.loads(done.stdout))) - set(re.findall(r"[`\"](\w+)[`\"]", section))


@pytest.mark.long
def test_the_page_lists_every_key_of_a_network(tmp_path: Path) -> None:
    weather, faces, words = tmp_path / "weather", tmp_path / "faces", tmp_path / "words"
    examples = ROOT / "examples"
    vitrify("build", examples / "weather.arpa", "-o", weather, "--max-length", 8, "--certify")
    vitrify("build", examples / "faces.scene.toml", "-o", faces)
    vitrify("build", examples / "awoke.patterns", "-o", words, "--construction", "register")
    assert not unlisted("`run --json`", "run", faces, "--input", examples / "face.csv")
    assert not unlisted("`explain --json`", "explain", weather)
    assert not unlisted("`explain --json`", "explain", words)
    assert not unlisted("`certify --json`", "certify", weather, "--mutants", 2, "--no-write")
    assert not unlisted("`recheck --json`", "recheck", weather)


@pytest.mark.parametrize(
    ("heading", "command"),
    [
        ("`analyze --json`", ["analyze", ROOT / "examples" / "abba.regex"]),
        ("`analyze --json`", ["analyze", ROOT / "examples" / "marked_palindromes.ptm.toml", "--steps", "5"]),
        ("`list --json` and `check --json`", ["list", "permutation"]),
        ("`bound --json` and `refute --json`", ["bound", "associative-memory", "N=10", "M=10", "b=8"]),
        ("`data --json`", ["data", "markov", "--rows", "1"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_page_lists_every_key_of_a_list(heading: str, command: list[object]) -> None:
    assert not unlisted(heading, *command)
