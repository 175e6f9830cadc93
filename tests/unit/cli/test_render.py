"""How a result is printed: one JSON line for machines, texts and tables for people."""

from __future__ import annotations

import json

import pytest

from vitrify.cli.render import Styled, TextTable, cell, show, styled

PARTS = (
    "a [b] c",
    None,
    Styled("[bold]d[/bold]"),
    styled("bold", "e [f]", " [g]"),
    TextTable(("name", "value"), [("x", 1 / 3), ("y", None)]),
)


def test_a_result_is_its_data_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    show(True, {"value": float("nan"), "places": (1, 2)}, *PARTS)
    assert json.loads(capsys.readouterr().out) == {"value": "NaN", "places": [1, 2]}


def test_a_result_is_its_parts_in_turn_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    show(False, {}, *PARTS)
    text, styled, strong, *table = capsys.readouterr().out.splitlines()
    assert (text, styled, strong) == ("a [b] c", "d", "e [f] [g]")
    rows = [[part.strip() for part in line.split("│")[1:-1]] for line in table if "│" in line]
    assert rows == [["x", "0.333333"], ["y", "–"]]


@pytest.mark.parametrize("columns", ["80", "30"])
def test_only_styled_cells_of_a_table_have_markup(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    show(False, {}, TextTable(("[a]", "[b]"), [("[c]", "[/d] " + "e" * 20), ("\\", Styled("[red]f[/]"))], "[g]"))
    out = capsys.readouterr().out
    assert all(text in out for text in ("[g]", "[b]", "[c]", "[/d]", "e" * 20, "f"))
    assert "red" not in out
    assert out.count("\\") == 1


def test_a_table_without_names_of_columns_has_no_header(capsys: pytest.CaptureFixture[str]) -> None:
    show(False, {}, TextTable(("", ""), [("a", "b")]))
    assert "┃" not in capsys.readouterr().out


def test_cells() -> None:
    assert [cell(value) for value in (None, 2, 0.1234567, "text")] == ["–", "2", "0.123457", "text"]


def test_a_table_that_is_too_wide_becomes_a_paragraph_for_each_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    table = TextTable(("id", "claim", "verdict"), [("R1", "a" * 33, "holds"), ("R2", "b", "")], "claims", keys=2)
    show(False, {}, table)
    assert capsys.readouterr().out.split() == ["claims", "R1", "a" * 33, "verdict:", "holds", "R2", "b"]


def test_only_a_styled_text_has_markup_and_no_text_commands_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["[/bold]", "[red]", ":dog:", "\x1b[31m"]
    table = TextTable(("name", "verdict"), [(name, Styled("[bold]holds[/]")) for name in names], "[/x] of \x07")
    show(False, {}, *names, styled("bold", "[/bold]"), table)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:6] == ["[/bold]", "[red]", ":dog:", "\\x1b[31m", "[/bold]", "[/x] of \\x07"]
    rows = [[part.strip() for part in line.split("│")[1:-1]] for line in lines[6:] if "│" in line]
    assert rows == [[name.replace("\x1b", "\\x1b"), "holds"] for name in names]
