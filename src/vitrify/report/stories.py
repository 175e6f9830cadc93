"""Stories: guided pages of a few steps, each a screen of text beside a part of a claim's figure (`stories.toml`).

Nothing is drawn for a story: its elements are planes of figures of claims, so that they show what was measured.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vitrify.encoding import JsonObject
from vitrify.optional import need
from vitrify.report.figures import Drawing
from vitrify.report.mathematics import markup, sentence_of

TEXT = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class StoryStep:
    """A step of a story: a thought, what to do with the figure, and which planes of which claim's figure it shows.

    With a `slider`, whose values these are, one plane is shown at a time.
    """

    title: str
    text: str
    do: str
    claim: str
    planes: tuple[int, ...]
    slider: tuple[str, ...] = ()


@dataclass(frozen=True)
class Story:
    """A guided page: its address, its title, one sentence on what it shows, and its steps."""

    key: str
    title: str
    lead: str
    steps: tuple[StoryStep, ...]

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims whose figures it shows, each once."""
        return tuple(dict.fromkeys(step.claim for step in self.steps))


@cache
def stories() -> tuple[Story, ...]:
    """Return all stories."""
    known = tomllib.loads(TEXT.read_text(encoding="utf-8"))["story"]
    return tuple(Story(steps=tuple(StoryStep(**step) for step in each.pop("step")), **each) for each in known)


def available(figures: Mapping[str, Drawing]) -> list[Story]:
    """Return the stories whose figures are all there."""
    return [story for story in stories() if all(name in figures for name in story.claims)]


def content(story: Story, figures: Mapping[str, Drawing], claims: Container[str]) -> JsonObject:
    """Return what the page of a story shows."""
    marked = need("markupsafe", "report").Markup
    steps = []
    for step in story.steps:
        drawn = json.loads(figures[step.claim].data)
        shown = {**drawn, "title": "", "planes": [drawn["planes"][at] for at in step.planes], "slider": step.slider}
        data = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        known = {"title": step.title, "claim": step.claim, "sentence": sentence_of(step.claim), "figure": marked(data)}
        steps.append({**known, "text": markup(step.text, claims, "../"), "do": markup(step.do, claims, "../")})
    return {"title": story.title, "lead": story.lead, "steps": steps}
