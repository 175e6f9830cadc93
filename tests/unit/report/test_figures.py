"""Figures of claims: the data that a page draws are what matplotlib draws."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atlas_rows import AUTOMATA, HEADLINES, SIZES, SWAP, outcome, part
from vitrify.certification.evidence import Quantity, quantities
from vitrify.claims import _figures as kinds
from vitrify.claims.catalogue import Claim, claim_of, listing
from vitrify.report import figures
from vitrify.report.figures import Drawing, Drawings, drawn


def lines(by_subject: Mapping[str, Any]) -> Any:
    """Two planes: curves with a band, on a logarithmic axis, and an image whose columns have names."""
    shown = by_subject["curves"]
    from vitrify.learn.figures import band, sheet

    figure, planes = sheet(1, 2, "two planes")
    left, right = planes[0]
    left.plot(shown["x"], shown["y"], marker="o", color="C0", label="curve <1>")
    band(left, shown["x"], [shown["y"], np.multiply(shown["y"], 2)], "mean", "C1")
    left.plot(shown["x"], shown["x"], "--", color="C1", label="dashed")
    left.plot(shown["x"][:2], shown["x"][:2], "--", color="C1")
    left.scatter([1], [5], color="C2", label="_hidden from the legend")
    left.axhline(7, color="black")
    left.text(0.5, 7, "$T^{-2}$", transform=left.get_yaxis_transform(), va="bottom")
    left.set_xscale("log")
    left.set(xlabel="how\nmuch", ylabel="y", xlim=(1, 100))
    left.legend()
    right.imshow([[1, 2], [3, np.nan]], aspect="auto")
    right.plot([0, 1], [0, 1], color="C0", label="other")
    right.plot([0], [0], "o", color="C0")
    right.plot([0], [0], color="C2")
    right.legend()
    right.set_xticks(range(2), ["first", "second"])
    return figure


@pytest.fixture(scope="module")
def drawing() -> Drawing:
    with pytest.MonkeyPatch.context() as patched:
        claim = replace(claim_of(HEADLINES[AUTOMATA]), draw=lines, figure=None)
        patched.setattr(figures, "claim_of", lambda _: claim)
        figure = {"x": [1, 10, 100], "y": [4.0, 5.0, 6.0]}
        found = drawn(HEADLINES[AUTOMATA], outcome(AUTOMATA, parts={"curves": part(1, figure=figure)}))
        assert found is not None
        return found


def test_curves_rules_and_texts_are_in_the_units_of_their_axes(drawing: Drawing) -> None:
    data = json.loads(drawing.data)
    left = data["planes"][0]
    assert (data["title"], data["columns"]) == ("two planes", 2)
    assert (left["x"]["label"], left["x"]["scale"], left["x"]["limits"]) == ("how much", "log", [1, 100])
    curve = next(mark for mark in left["marks"] if mark.get("name") == "curve <1>")
    assert (curve["x"], curve["y"], curve["marker"], curve["color"]) == ([1, 10, 100], [4, 5, 6], "o", "C0")
    (rule,) = [mark for mark in left["marks"] if mark["kind"] == "rule"]
    assert (rule["y"], rule.get("x"), rule["color"]) == (7, None, "ink")
    (text,) = [mark for mark in left["marks"] if mark["kind"] == "text"]
    assert (text["text"], text["share"], text["above"]) == ("T⁻²", ["x", ""], True)


def test_bands_belong_to_the_curve_of_their_colour_and_others_to_none(drawing: Drawing) -> None:
    left, right = json.loads(drawing.data)["planes"]
    named = [(mark["kind"], mark["name"], len(mark["x"])) for mark in left["marks"] if "x" in mark and "name" in mark]
    curves = [("line", "curve <1>", 3), ("line", "mean", 3), ("line", "dashed", 3), ("line", "dashed", 2)]
    assert [(kind, name) for kind, name, _ in named[:2]] == [("area", "mean"), ("points", "")]
    assert named[2:] == curves
    assert [mark["name"] for mark in right["marks"] if "name" in mark] == ["other", "other", ""]
    assert [entry["name"] for entry in left["legend"]] == ["curve <1>", "mean", "dashed"]


def test_an_image_has_its_values_and_the_names_of_its_columns(drawing: Drawing) -> None:
    plane = json.loads(drawing.data)["planes"][1]
    (image,) = [mark for mark in plane["marks"] if mark["kind"] == "matrix"]
    assert image["values"] == [[1, 2], [3, None]]
    assert (image["levels"][0][0], image["levels"][1]) == (0, [31, None])
    assert image["ends"] == [-0.5, 1.5, 1.5, -0.5]
    assert plane["x"]["names"] == {"0": "first", "1": "second"}


def test_the_svg_is_whole_and_the_data_can_stand_in_a_script(drawing: Drawing) -> None:
    assert drawing.svg.startswith("<?xml")
    assert "<" not in drawing.data
    assert "date>" not in drawing.svg


def test_the_small_picture_is_small(drawing: Drawing) -> None:
    assert drawing.size[0] == figures.SMALL
    assert len(drawing.small) < 12_000


def sweep() -> Any:
    """Evidence of nets of three sizes, of which one was found to err."""
    parts = {}
    for size, missed in ((2, True), (4, False), (8, False)):
        known = Quantity("bits", size), Quantity("needed", 2 * size), Quantity("refuted", missed)
        parts[f"{size} states, soft"] = part(
            1, *known, Quantity("sizes", [size, 3]), Quantity(f"n = {size}", {"gates": 5}), *quantities(SIZES, SIZES)
        )
    return outcome(AUTOMATA, parts=parts).evidence


def marks(*panels: kinds.Panel) -> list[list[Any]]:
    """What is drawn on each panel."""
    from vitrify.learn.figures import made

    with made(lambda: kinds.show(*panels)(sweep())) as figure:
        return [plane["marks"] for plane in figures.content(figure)["planes"]]


def test_points_read_quantities_entries_of_them_and_numbers_of_names() -> None:
    first, second = marks(
        kinds.points("{} states", "sizes[0]", "states", "size", "2x", laws={"twice": lambda at: 2 * at}),
        kinds.points("{} states", ("layers", "d_model"), "states", "size", joined=True),
    )
    by_name = {mark["name"]: (mark["x"], mark["y"]) for mark in first}
    assert by_name[""] == ([2, 4, 8], [2, 4, 8])
    assert by_name["twice"][1][-1] == 16
    assert [(mark["name"], mark["y"]) for mark in second] == [("layers", [7] * 3), ("width", [24] * 3)]


def test_bounds_show_which_nets_were_found_to_err() -> None:
    (bound,) = marks(kinds.bits_sent("of the state"))
    shown = {mark["name"]: mark["x"] for mark in bound if mark["kind"] == "points"}
    assert shown == {"an error was found": [4], "no error": [8, 16]}


def test_curves_that_are_the_same_are_one_and_bars_stand_side_by_side() -> None:
    one, two = marks(kinds.curves("n = {}", "gates", "n", "gates"), kinds.bars({"a": "bits", "b": "needed"}, "bits"))
    assert [(mark["x"], mark["y"]) for mark in one if mark["kind"] == "line"] == [([2], [5]), ([4], [5]), ([8], [5])]
    assert len([mark for mark in two if mark["kind"] == "box"]) == 6


@pytest.mark.parametrize("page", listing(), ids=lambda page: page.name)
def test_every_claim_has_a_figure_of_its_own(page: Any) -> None:
    claim = claim_of(page)
    assert claim.figure or claim.draw


def test_a_claim_without_a_figure_has_none_and_is_not_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim: Claim = replace(claim_of(HEADLINES[AUTOMATA]), figure=None)
    monkeypatch.setattr(figures, "claim_of", lambda _: claim)
    data, headline = outcome(AUTOMATA), HEADLINES[AUTOMATA]
    drawings = Drawings(tmp_path)
    assert not drawings.drawn(headline, data)
    drawings.draw(headline, data)
    assert drawings.drawn(headline, data)
    assert drawings.find(headline, data) is None


def test_a_drawing_is_kept_and_the_same_every_time(tmp_path: Path) -> None:
    wrong = part(12, *quantities(SIZES, SIZES | {"d_model": 30}))
    data, headline = outcome(AUTOMATA, parts={"S5: softmax": wrong, SWAP: part(3456)}), HEADLINES[AUTOMATA]
    once, drawings = drawn(headline, data), Drawings(tmp_path)
    assert drawings.find(headline, data) is None
    drawings.draw(headline, data)
    assert drawings.find(headline, data) == once
    assert drawings.find(headline, replace(data, scale="large")) is None
    assert re.search(r'"name":"any automaton: log-depth"', once.data if once else "")
