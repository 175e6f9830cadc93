"""The site: an index, a page for each claim, maps; written as soon as there is something to say, and again with more.

Nothing on a page depends on when it was written: times and days come with the evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitrify.claims._kept import written
from vitrify.report.evidence import PARTS, SOURCES, Row
from vitrify.report.figures import Drawing, Drawings
from vitrify.report.files import keep_only, put
from vitrify.report.frame import STATIC, page
from vitrify.report.maps import architectures, survey
from vitrify.report.mathematics import markup, said
from vitrify.report.subjects import Quantity, by_subject, columns, notes_of
from vitrify.report.words import duration, number, value

VERDICTS = ("holds", "fails", "undecided", "being checked", "could not be checked", "not recorded here")
SECTIONS = {"Statement": "Statement", "Why": "Why", "Checked": "How it is checked", "Source": "Source"}
WIDEST = 12  # quantities that a table with a line for each subject has at most
TEASERS = 2  # quantities of a claim that the index shows
MEAN = re.compile(r"\S+ \[[^\]]*\]")  # how the evidence of many seeds begins
REFRESH = 15  # seconds after which an index that is not complete is read again


class Site:
    """A folder of pages about some claims, in the order of the atlas."""

    def __init__(self, out: Path, rows: Sequence[Row], drawings: Drawings) -> None:
        self.out, self.drawings = out, drawings
        self.rows = {row.name: row for row in rows}
        self.figures: dict[str, Drawing] = {}
        self.cards: dict[str, dict[str, Any]] = {}

    def write(self) -> None:
        """Write every page, and remove what is not of this site."""
        for path in sorted(STATIC.iterdir()):
            put(self.out / "static" / path.name, path.read_bytes())
        for name in self.rows:
            self._claim(name)
        self._overview()
        keep_only(self.out / "static", {path.name for path in STATIC.iterdir()})
        keep_only(self.out / "claims", {f"{name}.{kind}" for name in self.rows for kind in ("html", "json")})
        keep_only(self.out / "figures", {f"{name}.{kind}" for name in self.figures for kind in ("svg", "png")})

    def update(self, row: Row) -> None:
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
                "cards": [self.cards[row.name] for row in rows if row.row[0] == key],
            }
            for key, (title, about) in PARTS.items()
        ]
        values: dict[str, Any] = {
            "parts": [part for part in parts if part["cards"]],
            "verdicts": [(verdict, verdicts[verdict]) for verdict in VERDICTS if verdicts[verdict]],
            "origins": Counter(row.origin for row in rows),
            "total": len(rows),
            "refresh": REFRESH if verdicts["being checked"] else None,
        }
        put(self.out / "index.html", page("index.html.j2", "atlas", **values))
        maps: dict[str, Any] = {"survey": survey(self.rows), "architectures": architectures(self.rows)}
        put(self.out / "maps.html", page("maps.html.j2", "maps", **maps))

    def _card(self, row: Row) -> dict[str, Any]:
        """What the index says of a claim."""
        promised = [
            (subject, each) for subject, quantities in _known(row).items() for each in quantities if each.promised
        ]
        return {
            **self._head(row, root=""),
            "teasers": [(subject, _line(each, brief=True)) for subject, each in promised[:TEASERS]],
            "promised": len(promised),
            "as_declared": sum(each.kept for _, each in promised),
            "picture": self.figures[row.name].size if row.name in self.figures else None,
            "words": " ".join([row.name.replace("_", " "), row.headline.doc, row.row]).lower(),
        }

    def _head(self, row: Row, root: str) -> dict[str, Any]:
        """What every mention of a claim says."""
        data = row.data or {}
        method = "trained" if row.headline.fields.get("learned") else row.headline.fields.get("certified")
        return {
            "name": row.name,
            "said": said(row.name),
            "row": row.row,
            "title": markup(row.headline.title, self.rows, root),
            "status": row.headline.fields["status"],
            "verdict": row.verdict,
            "verdict_class": row.verdict if row.verdict in VERDICTS[:3] else "pending",
            "origin": row.origin,
            "method": (data.get("method") or method or "").replace("+", ", "),
            "cases": number(data["cases"]) if data else None,
            "seconds": duration(data["seconds"]) if data else None,
            "scale": data.get("scale"),
        }

    def _claim(self, name: str) -> None:
        row = self.rows[name]
        drawing = self.drawings.find(row.headline, row.data) if row.data else None
        if row.data:
            put(self.out / "claims" / f"{name}.json", written(row.data))
        if drawing:
            self.figures[name] = drawing
            put(self.out / "figures" / f"{name}.svg", drawing.svg)
            put(self.out / "figures" / f"{name}.png", drawing.small)
        self.cards[name] = self._card(row)
        names = list(self.rows)
        place = names.index(name)
        values: dict[str, Any] = {
            "claim": self._head(row, root="../"),
            "before": self._head(self.rows[names[place - 1]], "../") if place else None,
            "after": self._head(self.rows[names[place + 1]], "../") if place + 1 < len(names) else None,
            "sections": [(title, self._text(row, word)) for word, title in SECTIONS.items()],
            "saboteur": self._text(row, "Saboteur"),
            "drawing": drawing and _labelled(drawing, said(name)),
            "own_figure": bool(row.data and row.data.get("shown")),
            "data": row.data,
            "provenance": _provenance(row),
            "evidence": _tables(row.data) if row.data else None,
            "code": (SOURCES / "claims" / f"{name}.py").read_text(encoding="utf-8"),
            "part": PARTS[row.row[0]][0],
        }
        put(self.out / "claims" / f"{name}.html", page("claim.html.j2", "atlas", "../", **values))

    def _text(self, row: Row, word: str) -> Any:
        return markup(row.headline.section(word), self.rows, "../")


def _labelled(drawing: Drawing, name: str) -> dict[str, Any]:
    """A drawing to stand in a page, with words for those who can't see it."""
    from markupsafe import Markup, escape

    label = escape(f"{name}: the figure of its evidence")
    svg = drawing.svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return {"svg": Markup(svg), "points": Markup(drawing.points)}


def _provenance(row: Row) -> str:
    """Where evidence was measured, and with what; or why there is none."""
    if row.data is None:
        return row.why
    known = dict(row.data["measured on"])
    device, day, code = known.pop("device"), known.pop("date"), known.pop("code", None)
    code = f"code {code}" if code else "code of that day, whose digest was not kept yet"
    versions = ", ".join([code, *(f"{name} {version}" for name, version in known.items())])
    seeds = f", seeds from {row.data['seed']} on" if row.data["seed"] is not None else ""
    if row.origin == "live":
        return f"Checked by this code: on {device}, {day}{seeds}; {versions}."
    scale = f"at {row.data['scale']} scale{seeds}"
    return f"Recorded, not checked by this run: measured on {device}, {day}, {scale}; {versions}."


def _known(row: Row) -> Mapping[str, Sequence[Quantity]]:
    return by_subject(row.data) if row.data else {}


def _line(quantity: Quantity, *, brief: bool = False) -> dict[str, Any]:
    """A quantity in words; of what many seeds gave, the mean and its interval may be enough."""
    measured = value(quantity.measured)
    mean = MEAN.match(measured) if brief else None
    return {
        "name": quantity.name,
        "declared": value(quantity.declared) if quantity.promised else "",
        "measured": mean.group() if mean else measured,
        "kept": quantity.kept,
        "same": bool(quantity.declared == quantity.measured),
        "missed": quantity.missed,
    }


def _tables(data: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence of a claim as tables: with a line for each subject, or a table for each."""
    found = by_subject(data)
    together = columns(found, WIDEST)
    cells = {
        subject: {each.name: _line(each) for each in quantities if each.promised}
        for subject, quantities in found.items()
    }
    apart = {subject: [_line(each) for each in quantities] for subject, quantities in found.items()}
    beyond = {
        subject: [_line(each) for each in quantities if not each.promised] for subject, quantities in found.items()
    }
    subjects = data.get("subjects") or {}
    return {
        "columns": together,
        "cells": cells if together else {},
        "apart": {} if together else apart,
        "beyond": {subject: lines for subject, lines in beyond.items() if lines and together},
        "witness": _pairs(data["witness"]),
        "notes": notes_of(data),
        "domain": data["domain"] if not subjects else "",
        "subjects": {name: each | {"cases": number(each["cases"])} for name, each in subjects.items()},
        "certificates": {name: _pairs(each) for name, each in (data.get("certificates") or {}).items()},
        "rejected": {name: _rejection(each["saboteur"]) for name, each in subjects.items()},
        "proof": _pairs(
            {key: each for key, each in (data.get("proof") or {}).items() if not isinstance(each, dict | list)}
        ),
    }


def _rejection(saboteur: Mapping[str, Any]) -> dict[str, Any]:
    """How a check rejected what the saboteur made."""
    differs = [
        _line(Quantity(name, each["declared"], each["measured"], promised=True))
        for name, each in saboteur["differs"].items()
    ]
    return {"verdict": saboteur["verdict"], "witness": _pairs(saboteur["witness"]), "differs": differs}


def _pairs(found: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    return [(key, value(each)) for key, each in (found or {}).items()]
