"""TOML and JSON files: the lines of their keys, keys that are given twice, and shapes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrify.errors import SpecError
from vitrify.spec.formats.data import DataFile, read_data

TEXT = """{
  "a, [b": {"x": [1,
    {"y:": "]}"}, []],
    "z": null},
  "": -1.5e3
}
"""


def test_the_lines_of_a_json_file(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(TEXT)
    assert read_data(tmp_path / "x.json").lines == {
        ("a, [b",): 2,
        ("a, [b", "x"): 2,
        ("a, [b", "x", "0"): 2,
        ("a, [b", "x", "1"): 3,
        ("a, [b", "x", "1", "y:"): 3,
        ("a, [b", "x", "2"): 3,
        ("a, [b", "z"): 4,
        ("",): 5,
    }


Json = st.recursive(
    st.none() | st.integers() | st.text(), lambda part: st.lists(part) | st.dictionaries(st.text(), part), max_leaves=20
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), Json))
def test_every_entry_of_a_json_file_has_its_line(data: dict[str, object]) -> None:
    text = json.dumps(data, indent=1)
    rows = text.split("\n")

    def entries(value: object, keys: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
        parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        named = isinstance(value, dict)
        lines = []
        for key, part in parts:
            begin = f"{json.dumps(key)}: " if named else ""
            lines += [((*keys, str(key)), begin + json.dumps(part, indent=1).split("\n")[0])]
            lines += entries(part, (*keys, str(key)))
        return lines

    lines = DataFile(Path("x.json"), text, data).lines
    wanted = entries(data, ())
    assert set(lines) == {keys for keys, _ in wanted}
    for keys, begin in wanted:
        assert rows[lines[keys] - 1].strip().startswith(begin)


def test_keys_that_are_given_twice_are_told_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": {"b": 1,\n"b": 2},\n"c": [{"d": 1}],\n"c": [{"d": 1}]}')
    with pytest.raises(SpecError) as refused:
        read_data(path)
    assert [(problem.line, problem.message) for problem in refused.value.problems] == [
        (2, "a.b is given twice; keep one"),
        (4, "c is given twice; keep one"),
    ]


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


def test_a_shape_is_read_or_all_its_problems_are_told(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("y = 2\nx = 1\n")
    assert read_data(path, ".toml").read(Point) == Point(1, 2)
    path.write_text("y = 2\nx = 'a'\nz = 3\n")
    parts, problems = read_data(path).parts(Point)
    assert parts == {"y": 2}
    assert [(problem.line, problem.message) for problem in problems] == [
        (3, "z is not a parameter; there are: x, y"),
        (2, 'x must be a whole number, not "a"'),
    ]
    with pytest.raises(SpecError, match=r"x\.toml:2: .*\n.*x\.toml:3: "):
        read_data(path).read(Point)
    with pytest.raises(SpecError, match=r"must end in \.json"):
        read_data(path, ".json")
