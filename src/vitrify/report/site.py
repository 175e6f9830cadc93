"""The site: an index, a page for each claim, maps; written as soon as there is something to say, and again with more.

Nothing on a page depends on when it was written: times and days come with the evidence.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from vitrify.bounds.survey.about_problems import PROBLEMS
from vitrify.bounds.survey.closure import MapCell, published_map, sentence
from vitrify.bounds.survey.models import MODELS
from vitrify.claims import is_learned
from vitrify.claims.catalogue import SECTIONS, claim_of
from vitrify.encoding import JsonMapping, JsonObject
from vitrify.files import keep_only, put
from vitrify.learn.agreement import WORDS, agreement, prediction
from vitrify.optional import need
from vitrify.report import plans, wording
from vitrify.report.evidence import PARTS, SOURCES, AtlasEntry
from vitrify.report.figures import Drawing, Drawings
from vitrify.report.frame import STATIC, page
from vitrify.report.live import LiveNets, embedded, python_of, script, styles
from vitrify.report.mathematics import markup, sentence_of
from vitrify.report.recorded import written
from vitrify.report.stories import available
from vitrify.report.stories import content as story_content
from vitrify.report.tables import by_subject, criteria, line, tables
from vitrify.report.wording import duration, number

if TYPE_CHECKING:
    from markupsafe import Markup

JUDGED = ("holds", "fails", "reversed", "not reached", "undecided")
VERDICTS = (*JUDGED, "being checked", "could not be checked", "not recorded here")
TEASERS = 2  # quantities of a claim that the index shows
REFRESH = 15  # seconds after which an index that is not complete is read again
SURVEY = "the_published_map_of_language_classes_follows_from_the_claims"
ARCHITECTURES = "each_architecture_learns_what_its_theorems_allow"
SIGNS = {"yes": "holds", "no": "no", "no, if": "undecided", "open": "pending"}
SHORT = {
    "as predicted": "agrees",
    "no theorem": "",
    "allowed, not found": "differs",
    "found against a theorem": "against",
}


def style(verdict: str) -> str:
    """Return the style of a verdict's badge."""
    return verdict.replace(" ", "-") if verdict in JUDGED else "pending"


class Site:
    """A folder of pages about some claims, in the order of the atlas."""

    def __init__(self, out: Path, rows: Sequence[AtlasEntry], drawings: Drawings, nets: LiveNets | None = None) -> None:
        self.out, self.drawings, self.nets = out, drawings, nets
        self.rows = {row.name: row for row in rows}
        self.figures: dict[str, Drawing] = {}
        self.cards: dict[str, JsonObject] = {}

    def write(self) -> None:
        """Write every page, and remove what is not of this site."""
        for path in sorted(STATIC.iterdir()):
            put(self.out / "static" / path.name, path.read_bytes())
        for name in self.rows:
            self._claim(name)
        self._overview()
        put(self.out / "static" / "live.js", script())
        put(self.out / "static" / "live.css", styles())
        keep_only(self.out / "static", {path.name for path in STATIC.iterdir()} | {"live.js", "live.css"})
        keep_only(self.out / "claims", {f"{name}.{kind}" for name in self.rows for kind in ("html", "json")})
        keep_only(self.out / "stories", {f"{story.key}.html" for story in available(self.figures)})
        keep_only(self.out / "figures", {f"{name}.{kind}" for name in self.figures for kind in ("svg", "png")})

    def update(self, row: AtlasEntry) -> None:
        """Write what changes when more is known of a claim."""
        self.rows[row.name] = row
        self._claim(row.name)
        self._overview()

    def _overview(self) -> None:
        rows = list(self.rows.values())
        verdicts = Counter(row.verdict for row in rows)
        parts = [
            {
                "key": key,
                "title": title,
                "about": about,
                "cards": [self.cards[row.name] for row in rows if row.id[0] == key],
            }
            for key, (title, about) in PARTS.items()
        ]
        values: JsonObject = {
            "parts": [part for part in parts if part["cards"]],
            "verdicts": [(name, style(name), verdicts[name]) for name in VERDICTS if verdicts[name]],
            "origins": Counter(row.origin for row in rows),
            "total": len(rows),
            "refresh": REFRESH if verdicts["being checked"] else None,
        }
        put(self.out / "index.html", page("index.html.j2", "atlas", **values))
        words = {row.name: " ".join([row.name.replace("_", " "), row.headline.doc, row.id]).lower() for row in rows}
        put(self.out / "words.js", f"window.CLAIM_WORDS = {json.dumps(words, ensure_ascii=False)};\n")
        maps: JsonObject = {"survey": survey(self.rows), "architectures": architectures(self.rows)}
        put(self.out / "maps.html", page("maps.html.j2", "maps", **maps))
        known = available(self.figures)
        put(self.out / "stories.html", page("stories.html.j2", "stories", stories=known))
        for story in known:
            about: JsonObject = {"story": story_content(story, self.figures, self.rows), "stories": known}
            put(self.out / "stories" / f"{story.key}.html", page("story.html.j2", "stories", "../", **about))

    def _card(self, row: AtlasEntry) -> JsonObject:
        """Return the entry of a claim in the index."""
        parts = by_subject(row.outcome.evidence) if row.outcome else {}
        declared = [(subject, item) for subject, each in parts.items() for item in each if item.met is not None]
        return {
            **self._head(row, root=""),
            "teasers": [(subject, line(item, brief=True)) for subject, item in declared[:TEASERS]],
            "declared": len(declared),
            "certified": wording.certified_briefly(row.outcome.certificates) if row.outcome else "",
            "picture": self.figures[row.name].size if row.name in self.figures else None,
        }

    def _head(self, row: AtlasEntry, root: str) -> JsonObject:
        """Return the data of a link to a claim."""
        outcome = row.outcome
        expected = "trained" if is_learned(row.headline) else row.headline.fields.get("certified")
        return {
            "name": row.name,
            "sentence": sentence_of(row.name),
            "id": row.id,
            "title": markup(row.headline.title, self.rows, root),
            "standing": row.headline.fields["standing"],
            "verdict": row.verdict,
            "verdict_class": style(row.verdict),
            "origin": row.origin,
            "methods": outcome.evidence.methods if outcome else (expected,) if expected else (),
            "cases": number(outcome.evidence.cases) if outcome else None,
            "seconds": duration(outcome.evidence.seconds) if outcome else None,
            "scale": outcome.scale if outcome else None,
        }

    def _claim(self, name: str) -> None:
        row = self.rows[name]
        drawing = self.drawings.find(row.headline, row.outcome) if row.outcome else None
        if row.outcome:
            put(self.out / "claims" / f"{name}.json", written(row.outcome.to_json()))
        if drawing:
            self.figures[name] = drawing
            put(self.out / "figures" / f"{name}.svg", drawing.svg)
            put(self.out / "figures" / f"{name}.png", drawing.small)
        live = self.nets.find(row.headline, row.outcome) if self.nets and row.outcome else None
        self.cards[name] = self._card(row)
        names = list(self.rows)
        place = names.index(name)
        values: JsonObject = {
            "claim": self._head(row, root="../"),
            "before": self._head(self.rows[names[place - 1]], "../") if place else None,
            "after": self._head(self.rows[names[place + 1]], "../") if place + 1 < len(names) else None,
            "sections": {
                title: self._text(row, word) for word, title in SECTIONS.items() if row.headline.section(word)
            },
            "checked": SECTIONS["Checked"],
            "unchecked": SECTIONS["Not checked"],
            "saboteur": SECTIONS["Saboteur"],
            "criteria": criteria(row.outcome.evidence) if row.outcome else [],
            "plan": self._plan(row),
            "figure": drawing and _markup(drawing.data),
            "live": live and {**live, "data": _markup(embedded(live)), "python": python_of(name, live)},
            "outcome": row.outcome,
            "provenance": _provenance(row),
            "evidence": tables(row.outcome) if row.outcome else None,
            "code": (SOURCES / "claims" / f"{name}.py").read_text(encoding="utf-8"),
            "part": PARTS[row.id[0]][0],
        }
        put(self.out / "claims" / f"{name}.html", page("claim.html.j2", "atlas", "../", **values))

    def _plan(self, row: AtlasEntry) -> JsonObject | None:
        """Return the plan of a claim about training, its sentences with mathematics."""
        plan = claim_of(row.headline).plan if is_learned(row.headline) else None
        return plans.of_claim(row.headline, plan, row.outcome)

    def _text(self, row: AtlasEntry, word: str) -> Markup:
        return markup(row.headline.section(word), self.rows, "../")


def _markup(text: str) -> Markup:
    """Return text that is markup already."""
    marked: Markup = need("markupsafe", "report").Markup(text)
    return marked


def _provenance(row: AtlasEntry) -> str:
    """Where evidence was measured, and with what; or why there is none."""
    outcome = row.outcome
    if outcome is None:
        return row.why
    known = dict(outcome.measured_on)
    device, day, code = known.pop("device"), known.pop("date"), known.pop("code", None)
    code = f"code {code}" if code else "code of that day, whose digest was not kept yet"
    versions = ", ".join([code, *(f"{name} {version}" for name, version in known.items())])
    seeds = "".join(
        f", seeds from {part.seed} on" for _, part in [*outcome.evidence.leaves()][:1] if part.seed is not None
    )
    if row.origin == "live":
        return f"Checked by this code: on {device}, {day}{seeds}; {versions}."
    scale = f"at {outcome.scale} scale{seeds}"
    return f"Recorded, not checked by this run: measured on {device}, {day}, {scale}; {versions}."


def survey(rows: Mapping[str, AtlasEntry]) -> JsonObject:
    """The map of classes: a line for each model, a column for each problem, one answer or two in each cell.

    Two where one net for all lengths and a net for each length differ.
    """
    lines = []
    for model, cells in groupby(published_map(), lambda cell: cell.model):
        line = []
        for _, pair in groupby(cells, lambda cell: cell.problem):
            one, each = pair
            answers = [_answer(rows, cell) for cell in ((one,) if one.verdict == each.verdict else (one, each))]
            line.append({"problem": one.problem, "answers": answers, "shaken": any(a["shaken"] for a in answers)})
        lines.append({"model": next(name for name in MODELS if MODELS[name] == model), "about": model, "cells": line})
    return {"problems": PROBLEMS, "lines": lines, "claim": _claim(rows, SURVEY, "B9")}


def _answer(rows: Mapping[str, AtlasEntry], cell: MapCell) -> JsonObject:
    """One answer of the map, with the claim that executes it or a part of it."""
    by = cell.executed
    claim = _claim(rows, by.name, by.claim_id) if by and by.claim_id else None
    return {
        "scope": cell.scope,
        "verdict": cell.verdict.removesuffix(", if"),
        "sign": SIGNS[cell.verdict],
        "unless": cell.condition,
        "derivation": sentence(cell),
        "claim": claim,
        "shaken": claim is not None and claim["verdict"] in ("fails", "undecided"),
    }


def architectures(rows: Mapping[str, AtlasEntry]) -> JsonObject:
    """The table of architectures: accuracies at the trained size and at twice it, beside what a theorem says."""
    row = rows.get(ARCHITECTURES)
    claim = _claim(rows, ARCHITECTURES, "G4")
    figures = row.outcome.evidence.figures if row and row.outcome else {}
    if not figures:
        return {"claim": claim, "lines": []}
    (table,) = figures.values()
    by_id: dict[str, list[JsonObject]] = {}
    for other in rows.values():
        by_id.setdefault(other.id, []).append(_claim(rows, other.name, other.id))
    lines = []
    for at, name in enumerate(table["architectures"]):
        cells = [_cell(table, at, task, by_id) for task in range(len(table["tasks"]))]
        lines.append({"name": name, "parameters": table["parameters"][name], "cells": cells})
    tasks = [
        {"name": task, "short": short, "long": long, "beyond": beyond}
        for task, (short, long), beyond in zip(table["tasks"], table["lengths"], table["beyond"], strict=True)
    ]
    return {"claim": claim, "lines": lines, "tasks": tasks, "seeds": table["seeds"], "budget": table["budget"]}


def _cell(table: JsonMapping, at: int, task: int, by_id: Mapping[str, list[JsonObject]]) -> JsonObject:
    """One architecture on one task."""
    values = table["accuracy"][at][task]  # [seed][size]
    sizes = [sorted(seed[size] for seed in values) for size in (0, 1)]
    judged = int(table["beyond"][task])
    predicted = table["predicted"][at][task] or prediction(table["architectures"][at], table["tasks"][task])
    verdict = agreement(median(sizes[judged]), predicted)
    theorem = None
    if predicted:
        can, key = predicted
        theorem = {"id": key, "says": WORDS.get(key) or ("can" if can else "can't"), "claims": by_id.get(key, [])}
    return {
        "accuracy": [{"middle": f"{median(own):.2f}", "range": f"{own[0]:.2f} to {own[-1]:.2f}"} for own in sizes],
        "share": round(median(sizes[judged]), 2),
        "judged": judged,
        "verdict": verdict,
        "sign": SHORT[verdict],
        "theorem": theorem,
    }


def _claim(rows: Mapping[str, AtlasEntry], name: str, claim_id: str) -> JsonObject:
    """A claim as a cell mentions it; without an address where it has no page."""
    known = rows.get(name)
    return {
        "id": claim_id,
        "sentence": sentence_of(name),
        "address": f"claims/{name}.html" if known else None,
        "verdict": known.verdict if known else "not on this site",
    }
