"""Stories: every step shows planes that its claim's figure has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlas_rows import HEADLINES, RECORDED, live
from vitrify.claims import is_learned
from vitrify.report.evidence import AtlasEntry, recorded
from vitrify.report.figures import Drawing, Drawings
from vitrify.report.site import Site
from vitrify.report.stories import available, content, stories

SIZE = (1).to_bytes(4, "big")
SMALL = b"\0" * 16 + SIZE + SIZE


def test_there_are_five_stories_and_a_screen_of_text_in_each_step() -> None:
    assert len({story.key for story in stories()}) == 5
    for story in stories():
        assert 4 <= len(story.steps) <= 6
        for step in story.steps:
            assert 20 <= len(f"{step.text} {step.do}".split()) <= 110, step.title
            assert step.claim in HEADLINES
            assert not step.slider or len(step.slider) == len(step.planes)


def test_a_story_is_there_only_where_all_its_figures_are() -> None:
    first = stories()[0]
    planes = [{"title": str(at), "marks": ["<b>"]} for at in range(9)]
    one = Drawing("", json.dumps({"title": "whole", "columns": 2, "planes": planes, "legend": []}), SMALL)
    figures = dict.fromkeys(first.claims, one)
    assert available(figures) == [first]
    assert available(dict(list(figures.items())[1:])) == []
    steps = content(first, figures, HEADLINES)["steps"]
    assert "<" not in steps[0]["figure"]
    shown = json.loads(steps[2]["figure"])
    assert [plane["title"] for plane in shown["planes"]] == [str(at) for at in first.steps[2].planes]
    assert shown["slider"] == list(first.steps[2].slider)
    assert "claims/any_automaton_runs_in_log_depth.html" in steps[-1]["text"]


@pytest.mark.jax
@pytest.mark.long
def test_the_parity_story_is_written_from_recorded_evidence(tmp_path: Path) -> None:
    story = next(each for each in stories() if each.key == "parity")
    rows, drawings = [], Drawings(tmp_path / "drawings")
    for name in story.claims:
        known = recorded(HEADLINES[name], RECORDED) if is_learned(HEADLINES[name]) else None
        row = AtlasEntry(HEADLINES[name], "recorded", known) if known else live(name)
        rows.append(row)
        assert row.outcome
        drawings.draw(row.headline, row.outcome)
    Site(tmp_path / "site", rows, drawings).write()
    text = (tmp_path / "site" / "stories" / "parity.html").read_text(encoding="utf-8")
    assert text.count('class="plot-data"') == len(story.steps)
    assert "parity.html" in (tmp_path / "site" / "stories.html").read_text(encoding="utf-8")
