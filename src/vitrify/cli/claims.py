"""The commands about claims and constructions: list, show, new, check and atlas."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vitrify.cli.evidence import caught, described
from vitrify.cli.options import (
    ATLAS,
    CLAIM_NAMES,
    AsJson,
    ClaimNames,
    EvidenceFolder,
    Open,
    Scale,
    arg,
    browse,
    complete,
    construction_names,
    entries,
    opt,
)
from vitrify.cli.render import (
    VERDICT_COLORS,
    Part,
    TextTable,
    colored,
    console,
    json_line,
    progress,
    reflowed,
    show,
    status,
    styled,
)
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.optional import need

if TYPE_CHECKING:
    from vitrify.claims.catalogue import ClaimPage, Outcome
    from vitrify.constructions.catalogue import Construction
    from vitrify.registry import Headline

ALL_NAMES = complete(lambda: [*entries("vitrify.claims"), *construction_names()])
Section = Literal["represent", "limits", "learn", "generalize"]
Standing = Literal["theorem", "experiment", "conjecture"]
Verdict = Literal["holds", "fails", "reversed", "not reached", "undecided", "none"]
PARTS: dict[Section, str] = {"represent": "R", "limits": "B", "learn": "L", "generalize": "G"}  # first letters of ids
MEANING = {  # what every certificate by this method says
    "proved": "besides the check it is proved, for every input of each subject's network up to its maximum length, "
    "that the stored weights compute the network with exact selections (ideal network) and that this computes the spec",
    "exhaustive": "besides the check, every input that the network of each subject reads is run (or proved right)",
    "sampled": "besides the check, the network of each subject is run on samples, usually on all short words, too",
}
SCOPES = {  # of the two links of such a certificate
    "every length": "proved for every word of every length",
    "to T": "proved for every word up to the maximum length T",
    "sampled": "tested on samples; usually on all short words, too",
}
PROVED = ("every length", "to T")
LINKS = ("weights = ideal", "ideal = spec")
UNPROVED = "margins are proved only for transformers that read tokens, without norms, experts, loops or recurrences"


def list_entries(
    words: Annotated[list[str] | None, arg("Show entries that contain all words. Default: all.", "WORDS…")] = None,
    part: Annotated[Section | None, opt("Show only claims of this part of the atlas.")] = None,
    standing: Annotated[Standing | None, opt("Show only claims of this standing in their source.")] = None,
    verdict: Annotated[Verdict | None, opt("Show only claims with this verdict; none: no evidence recorded.")] = None,
    as_json: AsJson = False,
) -> None:
    """List claims with standing and latest verdict, and constructions with how their networks are certified."""
    from vitrify.claims import is_learned, matches, position
    from vitrify.constructions.catalogue import constructions
    from vitrify.registry import headlines

    wanted = (PARTS[part] if part else None, standing, verdict)
    claims, recorded = [], _recorded()
    for each in sorted(headlines("vitrify.claims", "CLAIM"), key=position):
        known = recorded.get(each.name, {"verdict": None})
        known = known if is_learned(each) else {"verdict": known["verdict"]}
        fields = (each.fields["id"][0], each.fields["standing"], known["verdict"] or "none")
        if matches(each, words or ()) and all(w in (None, field) for w, field in zip(wanted, fields, strict=True)):
            claims.append({"name": each.name, "title": each.title, **_fields(each), **known})
    texts = {entry: f"{entry.name} {entry.spec} {entry.summary}".lower() for entry in constructions()}
    built = [e for e in texts if not any(wanted) and all(word.lower() in texts[e] for word in words or ())]
    if as_json:
        json_line({"claims": claims, "constructions": [_described(entry) for entry in built]})
        return
    rows = [
        (f"{c['id']:<4} ", c["name"], f"{c['standing']:<10} {c['verdict'] or '–':<11}", c["title"] + _versioned(c))
        for c in claims
    ]
    lines = _lines(("id   ", "claim", "standing   verdict    ", "title"), rows) if rows else []
    cells = [(*LINKS, "construction", "of", "builds"), *((*e.certified, e.name, e.spec, e.summary) for e in built)]
    rows = [("", f"{a:<15} {b:<12} {name:<18} {spec:<22}", "", text) for a, b, name, spec, text in cells]
    lines += ["", *_lines(rows[0], rows[1:])] if built else []
    sys.stdout.write("\n".join(lines or ["nothing matches: `vitrify list` shows all"]).lstrip("\n") + "\n")


def _recorded() -> dict[str, JsonObject]:
    """Return the latest verdict of each claim that has evidence, in `docs/evidence` or else in the atlas.

    Claims about training also have the verdict on each statement, the version of their plan (0: none) and the scale.
    """
    import json

    from vitrify.claims import evidence_folder

    recorded: dict[str, JsonObject] = {}
    for folder in filter(None, (ATLAS / "store", evidence_folder())):
        for path in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime):
            with suppress(ValueError, LookupError, TypeError):  # no evidence, or damaged
                data = json.loads(path.read_bytes())
                plan = data.get("plan", {})
                verdict = str(data["evidence"]["verdict"]) if data["saboteur_rejected"] or plan else "undecided"
                about = {"scale": data.get("scale"), **data.get("summary", {}), "version": plan.get("version", 0)}
                recorded[path.name.partition(".")[0]] = {"statements": {}, **about, "verdict": verdict}
    return recorded


def _versioned(claim: JsonObject) -> str:
    """Return the verdicts on the statements of a claim about training, and by which plan and at which scale."""
    if claim["method"] != "trained" or not claim["verdict"]:
        return ""
    if not claim["version"]:
        return " [version 0: its criteria are not older than the run]"
    verdicts = "; ".join(f"{key} {verdict}" for key, verdict in claim["statements"].items())
    return f" [plan {claim['version']}, {claim['scale']}: {verdicts}]"


def _lines(header: tuple[str, ...], rows: list[tuple[str, str, str, str]]) -> list[str]:
    """Return a line for every row or, in a terminal, the key and the name, and the other cells below them."""
    from shutil import get_terminal_size
    from textwrap import wrap

    width = get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else 0  # 0: a pipe
    longest = max(len(name) for _, name, _, _ in rows)
    lines = []
    for key, name, state, text in [header, *rows]:
        if width:
            indent = " " * max(len(key), 2)
            lines.append(f"{key}{name}".rstrip())
            lines += wrap(state + text, width, initial_indent=indent, subsequent_indent=indent + " " * len(state))
        else:
            lines.append(f"{key}{state}{name:<{longest}} {text}")
    return lines


def _described(entry: Construction) -> JsonObject:
    """Return a construction as JSON data."""
    links = dict(zip(("weights", "spec"), entry.certified, strict=True))
    about = {"construction": entry.name, "spec": entry.spec, "summary": entry.summary, "links": links}
    unproved = {} if entry.certified[0] in PROVED else {"unproved": entry.unproved or UNPROVED}
    return about | unproved | {"choices": [parameter.to_json() for parameter in entry.parameters]}


def _fields(claim: Headline) -> JsonObject:
    """Return id and standing of a claim, and the method of the certificates of its nets, if there are any."""
    from vitrify.claims import is_learned

    fields = claim.fields
    method = "trained" if is_learned(claim) else fields.get("certified")
    return {"id": fields["id"], "standing": fields["standing"], "method": method}


def show_entries(
    words: Annotated[
        list[str], arg("Claim, by name, id (R14), words or file; or construction.", "WORDS…", autocompletion=ALL_NAMES)
    ],
    as_json: AsJson = False,
) -> None:
    """Show one claim (statement, reason, what is checked, source) or one construction (options, how it works)."""
    from vitrify.claims import is_learned
    from vitrify.claims.catalogue import SECTIONS, claim_of, find
    from vitrify.constructions.catalogue import constructions, option

    name = " ".join(words)
    entry = next((entry for entry in constructions() if entry.name == name), None)
    if entry is not None:
        rows = [("builds", entry.summary)]
        rows += [(link, SCOPES[scope]) for link, scope in zip(LINKS, entry.certified, strict=True)]
        rows += [("not proved", entry.unproved or UNPROVED)] if entry.certified[0] not in PROVED else []
        rows += [(option(choice.name), f"{choice.help}: {choice.allowed}") for choice in entry.parameters]
        doc = entry.declaration.doc
        show(
            as_json,
            _described(entry) | {"about": doc},
            TextTable(("", ""), rows, f"{entry.name}, of {entry.spec}"),
            reflowed(doc),
        )
        return
    claim = find(name)
    parts = {word: claim.section(word) for word in SECTIONS if claim.section(word)}
    claim_id, standing, method = _fields(claim).values()
    cells = [
        ("claim", claim.title),
        *((SECTIONS[word], text if word != "Source" else with_tags(text)) for word, text in parts.items()),
        ("standing in the source", standing),
        ("measured" if method == "trained" else "certificates of the networks", _evidence_of(claim, method)),
    ]
    data = {"name": claim.name, **_fields(claim), "title": claim.title}
    data |= {word.lower().replace(" ", "_"): text for word, text in parts.items()}
    plan = claim_of(claim).plan if is_learned(claim) else None
    data |= {"plan": plan} if plan else {}
    tables = described(plan) if plan else ()
    show(as_json, data, TextTable(("", ""), cells, f"{claim_id}  {claim.name}", unbroken=1), *tables)


def _evidence_of(claim: ClaimPage, method: str | None) -> str:
    """Return the recorded verdict of a claim about training, or how the networks of another claim are certified."""
    from vitrify.report import wording
    from vitrify.report.recorded import latest

    if method != "trained":
        reason = claim.fields.get("uncertified", "about losses")
        return f"{method}: {MEANING[method]}" if method else f"not made, as the claim is {reason}"
    outcome = latest(claim)
    if outcome is None:
        return "not yet: no run by this plan is recorded"
    return f"{wording.statements(outcome)} ({wording.plan(outcome)}; {wording.scale(outcome)})"


def with_tags(source: str) -> str:
    """Return the text with the meaning of the tags in it, which say how a source was read."""
    from vitrify.report.mathematics import READ

    meanings = [f"[{tag}] {meaning}" for tag, meaning in READ.items() if f"[{tag}]" in source]
    return "\n".join([source, "; ".join(meanings)]) if meanings else source


def new(
    kind: Annotated[Literal["claim"], arg("What to write.", "claim")],
    name: Annotated[str, arg("Name of the claim, best a sentence: two_layers_compose_functions.", "NAME")],
    out: Annotated[Path, opt("Write the file into this folder.", "--out", "-o", metavar="DIR")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write NAME.py, a claim that holds as it is, to be changed into one of yours."""
    from vitrify.claims import write_template

    del kind  # there is one
    path = write_template(name, out)
    show(as_json, {"file": str(path)}, f"{path}: 'vitrify check {path}' runs it, 'vitrify show {path}' shows it")


def check(
    names: ClaimNames = None,
    every: Annotated[bool, opt("Check all claims.", "--all")] = False,
    trained: Annotated[
        bool | None, opt("Check all that train networks, or all others.", "--trained/--untrained")
    ] = None,
    scale: Annotated[
        Scale, opt("quick: two CPU cores, a minute per claim; large: some minutes, on one GPU if it trains.")
    ] = "quick",
    record: Annotated[
        Path | None, opt("Write the evidence to DIR/NAME.json; learned claims need a committed plan.", metavar="DIR")
    ] = None,
    resume: Annotated[Path | None, opt("Save trainings here, so that the same command resumes.", metavar="DIR")] = None,
    measurements: Annotated[
        Path | None, opt("Save what is measured here, to be judged later with --from.", metavar="DIR")
    ] = None,
    saved: Annotated[Path | None, opt("Judge saved measurements; train nothing.", "--from", metavar="DIR")] = None,
    trial: Annotated[
        list[str] | None, opt("Measure only this trial of the claim; repeatable; with --measurements.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check claims. Each check also runs on a deliberately broken network (its saboteur) and must fail there."""
    from vitrify.claims import is_learned
    from vitrify.claims.catalogue import listing, named
    from vitrify.report import checks

    if every + (trained is not None) + bool(names) != 1:
        raise InputError("name the claims to check, or say --all, --trained or --untrained; 'vitrify list' shows them")
    chosen = listing() if not names else named(names)
    if trained is not None:
        chosen = [headline for headline in chosen if is_learned(headline) == trained]
    outcomes, files = [], []
    with status("checking") as say:
        for headline in chosen:
            run = checks.ClaimRun(headline, scale, say, resume and resume / headline.name / scale)
            if trial:
                files.append(str(run.measure(measurements, trial)))
                continue
            outcomes.append(run.judged(measurements, saved, record))
    if trial:
        show(as_json, {"files": files}, *files)
        return
    good = sum(outcome.verdict == "holds" for outcome in outcomes)
    show(as_json, outcomes, *_outcomes(outcomes), f"{good} of {len(outcomes)} hold")
    raise typer.Exit(0 if good == len(outcomes) else 1)


def _outcomes(outcomes: list[Outcome]) -> Iterator[Part]:
    """Return claims with their verdicts as a table, and the remarks about them below it."""
    from vitrify.report import wording

    rows = []
    for o in outcomes:
        nets = ", ".join(f"{count} {method}" for method, count in o.methods.items()) or "–"
        about = (wording.methods(o.evidence), f"{o.evidence.cases:,}", nets)
        rows.append((o.id, o.name, o.standing, colored(o.verdict), *about, caught(o), f"{o.evidence.seconds:.1f} s"))
    columns = ("id", "claim", "standing", "verdict", "method", "cases", "nets certified", "saboteur", "time")
    yield TextTable(columns, rows, "claims", keys=2)
    for o in outcomes:
        if o.statements:
            yield f"{o.name}: {wording.statements(o)} ({wording.scale(o)})"
        if o.evidence.witness:
            yield styled("red", o.name, f": {dict(o.evidence.witness)}")
        for path, part in o.evidence.leaves():
            yield from (f"{': '.join([o.name, *path])}: {remark}" for remark in wording.remarks(part))
        yield from (f"{o.name}: {note}" for note in o.evidence.notes if o.evidence.parts)


def atlas(
    out: Annotated[Path, opt("Write the site here.", "--out", "-o", metavar="DIR")] = ATLAS,
    scale: Annotated[Scale, opt("Scale of the checks that run now; claims that train need a GPU for large.")] = "quick",
    only: Annotated[
        list[str] | None, opt("Only this claim; repeatable.", metavar="NAME", autocompletion=CLAIM_NAMES)
    ] = None,
    every: Annotated[bool, opt("Train networks too. Default: recorded evidence of trainings.", "--all")] = False,
    folder: EvidenceFolder = None,
    opens: Open = False,
    as_json: AsJson = False,
) -> None:
    """Check the claims and write a site about them; the same command resumes after an interruption.

    The exit code is about the checks that ran, not about recorded or missing evidence.
    """
    from vitrify.claims import evidence_folder
    from vitrify.report.atlas import build

    for module in ("jinja2", "latex2mathml", "matplotlib"):
        need(module, "report")
    page = (out / "index.html").resolve()
    if not as_json:
        console(stderr=True).print(f"writing {page}, which can be opened while it fills in", soft_wrap=True)
    with progress("checking") as tick:

        def show_progress(done: float, total: float, what: str) -> None:
            if opens and not done:  # the first call: the index has been written
                browse(page.as_uri())
            tick(done, total, what)

        rows = build(out, scale, only or (), every, folder or evidence_folder(), show_progress)
    if as_json:
        about = [{"name": row.name, "id": row.id, "verdict": row.verdict, "origin": row.origin} for row in rows]
        json_line({"open": str(page), "claims": about})
    else:
        origins, verdicts = (Counter(getattr(row, word) for row in rows) for word in ("origin", "verdict"))
        for row in rows:
            if row.verdict != "holds":
                color, rest = VERDICT_COLORS.get(row.verdict, "yellow"), f" {row.name} {row.why}"
                console().print(f"{row.id:<4} {styled(color, row.verdict, rest)}", soft_wrap=True)
        counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        console().print(f"{counted}; {origins['live']} checked live, {origins['recorded']} recorded")
        console().print(f"open {page}", soft_wrap=True, markup=False)
    raise typer.Exit(0 if all(row.verdict == "holds" or row.origin in ("recorded", "absent") for row in rows) else 1)


COMMANDS = (list_entries, show_entries, new, check, atlas)
