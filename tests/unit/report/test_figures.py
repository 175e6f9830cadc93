"""Figures of claims: the data beside the SVG say what is where in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from atlas_rows import AUTOMATA, HEADLINES, SIZES, SWAP, outcome, part
from vitrify.certification.evidence import quantities
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
    left.set_xscale("log")
    left.set(xlabel="how\nmuch", ylabel="y")
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
        patched.setattr(figures, "claim_of", lambda _: SimpleNamespace(draw=lines))
        figure = {"x": [1, 10, 100], "y": [4.0, 5.0, 6.0]}
        return drawn(HEADLINES[AUTOMATA], outcome(AUTOMATA, parts={"curves": part(1, figure=figure)}))


@pytest.mark.long
def test_points_are_where_the_svg_has_them(drawing: Drawing) -> None:
    data = json.loads(drawing.points)
    left = data["planes"][0]
    curve = next(each for each in left["series"] if each["name"] == "curve <1>")
    assert curve["points"] == [[1, 4], [10, 5], [100, 6]]
    group = drawing.svg[drawing.svg.index(f'id="{curve["id"]}"') :]
    path = re.search(r'<path d="M ([\d.]+) ([\d.]+)\s*\nL ([\d.]+) ([\d.]+)\s*\nL ([\d.]+) ([\d.]+)', group)
    assert path
    assert np.allclose(np.array(path.groups(), dtype=float).reshape(3, 2), curve["at"], atol=0.06)
    marks = np.diff([x for x, _ in curve["at"]])
    assert marks[0] == pytest.approx(marks[1], abs=0.11)  # decades are equally far apart
    left_side, top, right_side, bottom = left["box"]
    assert all(left_side <= x <= right_side and top <= y <= bottom for x, y in curve["at"])
    assert (left["x"]["label"], left["y"]["label"]) == ("how much", "y")


@pytest.mark.long
def test_bands_belong_to_the_curve_of_their_colour_and_others_to_none(drawing: Drawing) -> None:
    data = json.loads(drawing.points)
    named = [(each["name"], len(each["points"])) for each in data["planes"][0]["series"]]
    assert named == [("curve <1>", 3), ("mean", 3), ("dashed", 3), ("dashed", 2), ("mean", 0), ("", 1)]
    assert [each["name"] for each in data["planes"][1]["series"]] == ["other", "other", ""]
    assert [entry["name"] for entry in data["legend"]] == ["curve <1>", "mean", "dashed", "other"]
    for number in range(4):
        assert f'id="plot-name-{number}"' in drawing.svg
        assert f'id="plot-sign-{number}"' in drawing.svg


def test_an_image_has_its_values_and_the_names_of_its_columns(drawing: Drawing) -> None:
    plane = json.loads(drawing.points)["planes"][1]
    (image,) = plane["images"]
    assert image["values"] == [[1, 2], [3, None]]
    left, top, right, bottom = plane["box"]
    assert np.allclose(image["corners"], [[left, top], [right, bottom]], atol=0.2)
    assert plane["x"]["names"] == {"0": "first", "1": "second"}


def test_svg_can_stand_in_a_page_and_json_in_a_script(drawing: Drawing) -> None:
    assert drawing.svg.startswith("<svg ")
    assert "metadata" not in drawing.svg
    assert not re.search(r"<svg[^>]*(width|height)=", drawing.svg)
    assert "\n*{" not in drawing.svg
    assert "<" not in drawing.points
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", drawing.svg)


def test_the_small_picture_is_small(drawing: Drawing) -> None:
    assert drawing.size[0] == figures.SMALL
    assert len(drawing.small) < 12_000


def test_a_claim_without_a_figure_shows_its_promises_the_same_every_time(tmp_path: Path) -> None:
    wrong = part(12, *quantities(SIZES, SIZES | {"d_model": 30}))
    data, headline = outcome(AUTOMATA, parts={"S5: softmax": wrong, SWAP: part(3456)}), HEADLINES[AUTOMATA]
    once = drawn(headline, data)
    points = json.loads(once.points)
    by_label = {plane["x"]["label"]: plane["series"] for plane in points["planes"]}
    assert set(by_label) == {"layers", "d_model"}
    assert [(each["name"], each["points"]) for each in by_label["d_model"]] == [
        ("declared", [[24, 0], [24, 1]]),
        ("measured", [[30, 0], [24, 1]]),
    ]
    drawings = Drawings(tmp_path)
    assert drawings.find(headline, data) is None
    drawings.draw(headline, data)
    assert drawings.find(headline, data) == once
    assert drawings.find(headline, replace(data, scale="large")) is None


def test_a_claim_without_numbers_shows_its_cases() -> None:
    bare = {name: replace(part(cases), quantities=()) for name, cases in (("one", 12), ("two", 3456))}
    data = outcome(AUTOMATA, parts=bare)
    (plane,) = json.loads(drawn(HEADLINES[AUTOMATA], data).points)["planes"]
    assert plane["series"][0]["points"] in ([[12, 0], [3456, 1]], [])
    assert [[12, 0], [3456, 1]] in [each["points"] for each in plane["series"]]
