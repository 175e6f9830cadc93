"""The border of spec files: lines that say something, and problems in the order of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitrify.errors import Problem, SpecError
from vitrify.spec.formats.text import lines_of, refuse_any


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\n  # nothing\n two # three\n")
    assert lines_of(path) == [(1, "one"), (4, "two # three")]


def test_problems_are_told_from_the_top_those_of_the_whole_file_first() -> None:
    refuse_any([])
    with pytest.raises(SpecError) as refused:
        refuse_any(Problem(message, "f", line) for message, line in (("b", 7), ("a", 2), ("c", 7), ("whole", None)))
    assert [problem.message for problem in refused.value.problems] == ["whole", "a", "b", "c"]
