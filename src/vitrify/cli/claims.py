"""The commands about claims and constructions: list, show, check, draw, and write the atlas."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitrify.cli.options import AsJson, EvidenceFolder, Scale
from vitrify.cli.render import VERDICT_COLORS, Part, Styled, TextTable, console, json_line, show, status, tell, work
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.optional import need

if TYPE_CHECKING:
    from vitrify.claims.catalogue import Outcome
    from vitrify.constructions.catalogue import Construction
    from vitrify.registry import Headline

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="claims, or how their names begin")]
MEANING = {  # what a certificate of a net of that construction says at least
    "proved": "margins proved for every word up to the maximum length; all short inputs, and samples, asked about",
    "exhaustive": "all short inputs, and samples of long ones, asked about",
    "sampled": "samples asked about",
    "trained": "networks are trained, several seeds of each, and what they reach is measured",
}
COVERED = "proofs of margins are for transformers that read tokens, without norms, experts, loops and recurrences"


def list_entries(as_json: AsJson = False) -> None:
    """List the claims that can be checked, and the constructions with how their networks are certified."""
    from vitrify.constructions.catalogue import constructions
    from vitrify.registry import headlines

    claims, built = list(headlines("vitrify.claims", "CLAIM")), constructions()
    if as_json:
        about = [{"name": each.name, "title": each.title, **_fields(each)} for each in claims]
        json_line({"claims": about, "constructions": [_described(entry) for entry in built]})
        return
    lines = [f"{'id':<4} {'standing':<10} {'method':<10} claim"]
    for each in claims:
        claim_id, standing, method = _fields(each).values()
        lines.append(f"{claim_id:<4} {standing:<10} {method or '-':<10} {each.name}")
    lines += ["", f"{'method':<10} {'construction':<18} {'of':<22} builds"]
    lines += [f"{entry.certified:<10} {entry.name:<18} {entry.spec:<22} {entry.summary}" for entry in built]
    sys.stdout.write("\n".join(lines) + "\n")


def _described(entry: Construction) -> JsonObject:
    """Return a construction as JSON data."""
    about = {"construction": entry.name, "spec": entry.spec, "summary": entry.summary, "method": entry.certified}
    unproved = {} if entry.certified == "proved" else {"unproved": entry.unproved or COVERED}
    return about | unproved | {"choices": [parameter.to_json() for parameter in entry.parameters]}


def _fields(claim: Headline) -> JsonObject:
    """Return id and standing of a claim, and the method of the certificates of its nets, if there are any."""
    fields = claim.fields
    method = "trained" if fields.get("learned") else fields.get("certified")
    return {"id": fields["id"], "standing": fields["standing"], "method": method}


def show_entries(
    words: Annotated[
        list[str],
        typer.Argument(metavar="WORDS…", help="name, id or words of a claim; or a construction"),
    ],
    as_json: AsJson = False,
) -> None:
    """Show one claim: its statement, why, what is checked here and what is not, and its source; or one construction."""
    from vitrify.claims.catalogue import SECTIONS, find
    from vitrify.constructions.catalogue import constructions, option

    name = " ".join(words)
    entry = next((entry for entry in constructions() if entry.name == name), None)
    if entry is not None:
        rows = [("builds", entry.summary), ("method", f"{entry.certified}: {MEANING[entry.certified]}")]
        rows += [("not proved", entry.unproved or COVERED)] if entry.certified != "proved" else []
        rows += [(option(choice.name), f"{choice.help}: {choice.allowed}") for choice in entry.parameters]
        doc = entry.declaration.doc
        show(
            as_json,
            _described(entry) | {"about": doc},
            TextTable(("", ""), rows, f"{entry.name}, of {entry.spec}"),
            doc,
        )
        return
    claim = find(name)
    parts = {word: claim.section(word) for word in SECTIONS if claim.section(word)}
    claim_id, standing, method = _fields(claim).values()
    certified = f"{method}: {MEANING[method]}" if method else "it has no exact nets to be certified"
    cells = [
        ("claim", claim.title),
        *((SECTIONS[word], text) for word, text in parts.items()),
        ("standing", standing),
        ("method", certified),
    ]
    data = {"name": claim.name, **_fields(claim), "title": claim.title}
    data |= {word.lower().replace(" ", "_"): text for word, text in parts.items()}
    show(as_json, data, TextTable(("", ""), cells, f"{claim_id}  {claim.name}"))


def check(
    names: Names = None,
    every: Annotated[bool, typer.Option("--all", help="all claims")] = False,
    trained: Annotated[
        bool | None, typer.Option("--trained/--untrained", help="all claims that train networks; all that do not")
    ] = None,
    scale: Annotated[
        Scale, typer.Option(help="quick: two CPU cores, a minute or so each; paper: one GPU, some minutes")
    ] = "quick",
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="write the evidence of each claim, NAME.json, to a folder")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="keep trainings in a folder, so that the same command goes on from there"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check claims: run each on its subjects, and its saboteur too."""
    from vitrify.claims.catalogue import find, listing, run_claim
    from vitrify.report.recorded import keep as keep_outcome

    if every + (trained is not None) + bool(names) != 1:
        raise InputError("name the claims to check, or say --all, --trained or --untrained; 'vitrify list' shows them")
    chosen = listing() if not names else [find(name) for name in names]
    if trained is not None:
        chosen = [headline for headline in chosen if headline.fields.get("learned", False) == trained]
    outcomes = []
    with status("checking") as say:
        for headline in chosen:
            trainings = resume and resume / headline.name / scale
            outcomes.append(run_claim(headline, say, scale, trainings))
            if keep:
                keep_outcome(outcomes[-1], keep)
    good = sum(outcome.evidence.verdict == "holds" and outcome.saboteur_rejected for outcome in outcomes)
    if as_json:
        json_line([outcome.to_json() for outcome in outcomes])
    else:
        tell(*_outcomes(outcomes), f"{good} of {len(outcomes)} hold")
    raise typer.Exit(0 if good == len(outcomes) else 1)


def _outcomes(outcomes: list[Outcome]) -> Iterator[Part]:
    """Return claims with their verdicts as a table, and what is to be said about them below it."""
    from vitrify.report import wording

    rows = []
    for o in outcomes:
        nets = ", ".join(f"{count} {method}" for method, count in o.methods.items()) or "–"
        about = (wording.methods(o.evidence), f"{o.evidence.cases:,}", nets)
        rows.append((o.id, o.name, o.standing, _verdict(o), *about, _caught(o), f"{o.evidence.seconds:.1f} s"))
    columns = ("id", "claim", "standing", "verdict", "method", "cases", "nets certified", "saboteur", "time")
    yield TextTable(columns, rows, "claims")
    for o in outcomes:
        if o.evidence.witness:
            yield Styled(f"[red]{o.name}[/red]: {dict(o.evidence.witness)}")
        for path, part in o.evidence.leaves():
            yield from (f"{': '.join([o.name, *path])}: {remark}" for remark in wording.remarks(part))
        yield from (f"{o.name}: {note}" for note in o.evidence.notes if o.evidence.parts)


def _verdict(outcome: Outcome) -> str:
    return f"[{VERDICT_COLORS[outcome.evidence.verdict]}]{outcome.evidence.verdict}[/]"


def _caught(outcome: Outcome) -> str:
    return "rejected" if outcome.saboteur_rejected else "[red]passed[/red]"


def evidence(names: Names = None, folder: EvidenceFolder = None, as_json: AsJson = False) -> None:
    """Show the evidence that is kept: verdicts, at which scale, on which device."""
    from vitrify.claims.catalogue import evidence_folder, find
    from vitrify.report.recorded import kept_names

    folder = folder or evidence_folder()
    outcomes = [find(name).recorded(folder) for name in names or kept_names(folder)]
    rows = [
        (o.id, o.name, _verdict(o), o.scale, o.measured_on.get("device"), _caught(o), f"{o.evidence.seconds:.1f} s")
        for o in outcomes
    ]
    columns = ("id", "claim", "verdict", "scale", "device", "saboteur", "time")
    show(as_json, outcomes, TextTable(columns, rows, "evidence"))


def figure(
    names: Names = None,
    folder: EvidenceFolder = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="where to; by default, --evidence DIR or here")
    ] = None,
    kind: Annotated[str, typer.Option(help="svg, png or pdf")] = "svg",
) -> None:
    """Draw the figures of claims from their kept evidence; without a name, of all that have one."""
    from vitrify.claims.catalogue import evidence_folder, find
    from vitrify.report.recorded import figure as drawn
    from vitrify.report.recorded import kept_names

    into, folder = out or folder or Path(), folder or evidence_folder()
    into.mkdir(parents=True, exist_ok=True)
    for headline in [find(name) for name in names or kept_names(folder)]:
        outcome = headline.recorded(folder)
        if names or outcome.evidence.figures:
            drawn(headline, outcome, into / f"{headline.name}.{kind}")
            tell(Styled(into / f"{headline.name}.{kind}"))


def atlas(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="the folder of the site")] = Path("atlas"),
    scale: Annotated[Scale, typer.Option(help="of what is checked live; paper is for one GPU")] = "quick",
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="a claim, or how its name begins; may be said several times"),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="also train for the claims that take longer than seconds")
    ] = False,
    evidence: EvidenceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Check the claims and write a site about them, to be opened in a browser; it goes on where it was interrupted.

    The exit code is about what was checked, not about what is recorded.
    """
    from vitrify.claims.catalogue import evidence_folder
    from vitrify.report.atlas import build

    for module in ("jinja2", "latex2mathml", "matplotlib"):
        need(module, "report")
    page = (out / "index.html").resolve()
    if not as_json:
        console(stderr=True).print(f"open {page}: it fills in", soft_wrap=True)
    with work("checking") as tick:
        rows = build(out, scale, only or (), every, evidence or evidence_folder(), tick)
    if as_json:
        about = [{"name": row.name, "id": row.id, "verdict": row.verdict, "origin": row.origin} for row in rows]
        json_line({"open": str(page), "claims": about})
    else:
        origins, verdicts = (Counter(getattr(row, word) for row in rows) for word in ("origin", "verdict"))
        for row in rows:
            if row.verdict != "holds":
                verdict = f"[{VERDICT_COLORS.get(row.verdict, 'yellow')}]{row.verdict}[/]"
                console().print(f"{row.id:<4} {verdict} {row.name} {row.why}", soft_wrap=True)
        counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        console().print(f"{counted}; {origins['live']} checked live, {origins['recorded']} recorded")
        console().print(f"open {page}", soft_wrap=True)
    raise typer.Exit(0 if all(row.verdict == "holds" or row.origin in ("recorded", "absent") for row in rows) else 1)


COMMANDS = (list_entries, show_entries, check, evidence, figure, atlas)
