"""What `vitrify list`, `vitrify show` and `vitrify check` print: claims and shapes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitrify.cli.render import COLOURS, console, grid, json_line
from vitrify.registry import Headline, listed

if TYPE_CHECKING:
    from vitrify.claims.catalogue import Outcome
    from vitrify.report.evidence import Row

MEANING = {  # what a certificate of a net of that shape says at least
    "proved": "margins proved for every word up to the maximum length; all short inputs, and samples, asked about",
    "exhaustive": "all short inputs, and samples of long ones, asked about",
    "sampled": "samples asked about",
    "trained": "networks are trained, several seeds of each, and what they reach is measured",
}
COVERED = "proofs of margins are for transformers that read tokens, without norms, experts, loops and recurrences"


@dataclass(frozen=True)
class Shape:
    """A construction as its source describes it."""

    name: str
    spec: str
    summary: str
    certified: str
    unproved: str
    file: Headline

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        said = {"shape": self.name, "spec": self.spec, "summary": self.summary, "method": self.certified}
        return said | ({} if self.certified == "proved" else {"unproved": self.unproved or COVERED})


def shapes() -> list[Shape]:
    """All constructions, without importing them."""
    return [
        Shape(
            said["shape"],
            said["spec"],
            said["summary"],
            said.get("certified", "exhaustive"),
            said.get("unproved", ""),
            file,
        )
        for said, file in listed("vitrify.constructions", "CONSTRUCTIONS", ("shape", "spec", "summary"))
    ]


def entries(claims: Sequence[Headline], built: Sequence[Shape], as_json: bool) -> None:
    """The catalogues: claims with their status, shapes with the method of their certificates."""
    if as_json:
        told = [{"name": h.name, "title": h.title, **_fields(h)} for h in claims]
        json_line({"claims": told, "shapes": [shape.to_json() for shape in built]})
        return
    lines = [f"{'row':<4} {'status':<9} {'method':<10} claim"]
    for h in claims:
        row, status, method = _fields(h).values()
        lines.append(f"{row:<4} {status:<9} {method or '-':<10} {h.name}")
    lines += ["", f"{'method':<10} {'shape':<18} {'of':<22} builds"]
    lines += [f"{shape.certified:<10} {shape.name:<18} {shape.spec:<22} {shape.summary}" for shape in built]
    sys.stdout.write("\n".join(lines) + "\n")


def _fields(claim: Headline) -> dict[str, Any]:
    """Row and status of a claim, and the method of the certificates of its nets, if there are any."""
    given = claim.fields
    method = "trained" if given.get("learned") else given.get("certified")
    return {"row": given["row"], "status": given["status"], "method": method}


def shape(found: Shape, as_json: bool) -> None:
    """One shape in full."""
    if as_json:
        json_line(found.to_json() | {"about": found.file.doc})
        return
    table = grid("", "", title=f"{found.name}, of {found.spec}")
    table.add_row("builds", found.summary)
    table.add_row("method", f"{found.certified}: {MEANING[found.certified]}")
    if found.certified != "proved":
        table.add_row("not proved", found.unproved or COVERED)
    out = console()
    out.print(table)
    out.print(found.file.doc, markup=False)


def claim(found: Headline, as_json: bool) -> None:
    """One claim in full."""
    parts = {word.lower(): found.section(word) for word in ("Statement", "Why", "Checked", "Source", "Saboteur")}
    if as_json:
        json_line({"name": found.name, **_fields(found), "title": found.title, **parts})
        return
    table = grid("", "", title=f"{found.fields['row']}  {found.name}")
    table.add_row("claim", found.title)
    for name, text in parts.items():
        table.add_row(name, text)
    table.add_row("status", found.fields["status"])
    method = _fields(found)["method"]
    table.add_row("method", f"{method}: {MEANING[method]}" if method else "it has no exact nets to be certified")
    console().print(table)


def kept(found: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Evidence that was kept: the verdicts, and where they come from."""
    if as_json:
        json_line(found)
        return
    table = grid("row", "claim", "verdict", "scale", "device", "saboteur", "time", title="evidence")
    for each in found:
        verdict = f"[{COLOURS[each['verdict']]}]{each['verdict']}[/]"
        caught = "rejected" if each["saboteur_rejected"] else "[red]passed[/red]"
        device = each["measured on"]["device"]
        table.add_row(each["row"], each["name"], verdict, each["scale"], device, caught, f"{each['seconds']:.1f} s")
    console().print(table)


def outcomes(found: Sequence[Outcome], as_json: bool) -> None:
    """Claims with their verdicts."""
    if as_json:
        json_line([outcome.to_json() for outcome in found])
        return
    table = grid(
        "row", "claim", "status", "verdict", "method", "cases", "nets certified", "saboteur", "time", title="claims"
    )
    for o in found:
        verdict = f"[{COLOURS[o.evidence.verdict]}]{o.evidence.verdict}[/]"
        caught = "rejected" if o.saboteur_rejected else "[red]passed[/red]"
        cases, seconds = f"{o.evidence.cases:,}", f"{o.evidence.seconds:.1f} s"
        nets = ", ".join(f"{count} {method}" for method, count in o.methods.items()) or "–"
        table.add_row(o.row, o.name, o.status, verdict, o.evidence.method, cases, nets, caught, seconds)
    out = console()
    out.print(table)
    for o in found:
        if o.evidence.witness:
            out.print(f"[red]{o.name}[/red]: {dict(o.evidence.witness)}")
        for note in o.evidence.notes:
            out.print(f"{o.name}: {note}")
    good = sum(o.evidence.verdict == "holds" and o.saboteur_rejected for o in found)
    out.print(f"{good} of {len(found)} hold")


def atlas(rows: Sequence[Row], out: Path, as_json: bool) -> None:
    """What an atlas says in all, and where it is; what does not hold by name."""
    page = (out / "index.html").resolve()
    if as_json:
        told = [{"name": row.name, "row": row.row, "verdict": row.verdict, "origin": row.origin} for row in rows]
        json_line({"open": str(page), "claims": told})
        return
    origins, verdicts = (Counter(getattr(row, word) for row in rows) for word in ("origin", "verdict"))
    where = console()
    for row in rows:
        if row.verdict != "holds":
            colour = COLOURS.get(row.verdict, "yellow")
            where.print(f"{row.row:<4} [{colour}]{row.verdict}[/] {row.name} {row.why}", soft_wrap=True)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    where.print(f"{counted}; {origins['live']} checked live, {origins['recorded']} recorded")
    where.print(f"open {page}", soft_wrap=True)
