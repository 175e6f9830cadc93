"""The commands that build networks and say what is in them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitrify.cli.options import (
    CHOICES,
    CONSTRUCTIONS,
    SECONDS,
    AsJson,
    Memory,
    ModelOut,
    Net,
    Seconds,
    arg,
    opt,
    within,
)
from vitrify.cli.render import Part, TextTable, json_line, printable, show, sizes_table, status, styled
from vitrify.errors import InputError
from vitrify.spec.kinds import suffixes

if TYPE_CHECKING:
    from vitrify.net.architecture import Architecture
    from vitrify.net.weights import Weights
    from vitrify.spec.automata.tightness import TightnessReport
    from vitrify.spec.kinds import Spec


LEVELS_READ = "sets: images of the state set under words; tiles: the largest images inside one, permuted by the group"
MAX_STEPS = 2000  # of a machine, in exact fractions whose digits grow with every step
HEADS_READ = "gap: best score minus the next; kappa: largest score / gap; beta: inverse temperature, its least value"


def build(
    ctx: typer.Context,
    file: Annotated[Path, arg(f"Spec, of a kind given by its suffix: {', '.join(suffixes())}.", "FILE")],
    out: ModelOut,
    construction: Annotated[
        str | None, opt("Name of a construction (see `vitrify list`).", autocompletion=CONSTRUCTIONS)
    ] = None,
    depth: Annotated[int | None, opt("Grammars: drop deeper derivations, rescale probabilities.", min=1)] = None,
    order: Annotated[
        int | None, opt("Fit an n-gram model of this order to a text, one sentence per line.", min=1)
    ] = None,
    symbols: Annotated[str | None, opt("Programs of Tracr (FILE.py:NAME): symbols, between commas.")] = None,
    certified: Annotated[bool, opt("Certify the network; if it fails, write nothing (exit 1).", "--certify")] = False,
    seconds: Seconds = SECONDS,
    memory: Memory = None,
    as_json: AsJson = False,
) -> None:
    """Build a network from a spec and write it to a folder."""
    from vitrify.constructions.catalogue import build as build_network
    from vitrify.constructions.catalogue import chosen
    from vitrify.net.folder import save
    from vitrify.spec import bounded, read_spec, unknown_suffix
    from vitrify.spec.ngrams.text import fitted

    with status(f"reading {file}") as say, within(f"building {file}", seconds, memory):
        if file.suffix == ".txt" and not order:
            raise InputError(f"{unknown_suffix(str(file))}; a plain text becomes an n-gram model with --order N")
        if file.suffix.partition(":")[0] == ".py":  # FILE.py, or FILE.py:NAME
            spec: Spec = _of_tracr(str(file), symbols, ctx.meta[CHOICES].get("max_length"))
        else:
            spec = fitted(file, order) if order else read_spec(file)
        spec = spec if depth is None else bounded(spec, depth)
        say("building")
        entry = chosen(spec, construction)
        weights = build_network(spec, entry.name, **entry.parse(ctx.meta[CHOICES]))
        if certified:
            from vitrify.certification import certify as check_against_spec
            from vitrify.certification.certificate import write_certificate
            from vitrify.cli.certifying import show_certificate
            from vitrify.report import wording

            say("certifying")
            evidence = check_against_spec(weights, spec, prove=True)
            if evidence.verdict != "holds":
                show_certificate(out, evidence, None, as_json)
                raise typer.Exit(1)
            about = "".join(f"\n{name}: {text}" for name, text in wording.links(evidence))
        say(f"writing {out}")
        save(weights, out, spec)
        if certified:
            write_certificate(out, evidence)
    data = {"folder": str(out), "about": dict(weights.about)}
    data |= {"sizes": asdict(weights.sizes), "digest": weights.digest}
    data |= {"verdict": evidence.verdict, "methods": evidence.methods} if certified else {}
    title = styled("bold", weights.architecture.name, f" → {out}")
    show(as_json, data, title, sizes_table(weights), styled("bold green", "holds", about) if certified else None)


def _of_tracr(source: str, symbols: str | None, length: str | int | None) -> Spec:
    """Return a program of Tracr; symbols that are whole numbers are numbers."""
    from vitrify.interop.tracr.reader import from_tracr

    names = [int(text) if text.lstrip("-").isdecimal() else text for text in (symbols or "").split(",") if text]
    return from_tracr(source, names or None, None if length is None else int(length))


def analyze(
    file: Annotated[Path, arg("Automaton (.automaton.json, .regex) or language model (.pfsa.json, .arpa, …).", "FILE")],
    steps: Annotated[int, opt("Largest number of steps of a Turing machine.", min=1, max=MAX_STEPS)] = 200,
    seconds: Seconds = SECONDS,
    memory: Memory = None,
    as_json: AsJson = False,
) -> None:
    """Analyze an automaton (its algebra, the depth of each construction) or a language model (its tightness)."""
    from vitrify.spec import read_spec
    from vitrify.spec.automata import analysis
    from vitrify.spec.automata.tightness import LANGUAGE_MODELS, tightness

    with status(f"analyzing {file}"), within(f"analyzing {file}", seconds, memory):
        spec = read_spec(file)
        if isinstance(spec, LANGUAGE_MODELS):
            total = tightness(spec, steps)
            show(as_json, total.to_json(), TextTable(("", ""), _masses(total), "total probability of all strings"))
            return
        report = analysis.analyze(spec)
    verdicts = {name: getattr(report, name) for name in ("finite", "commutative", "star_free", "solvable")}
    about = [
        ("states", f"{report.states} (minimal: {report.minimal_states}), {report.letters} letters"),
        ("syntactic monoid", report.monoid),
        *((name.replace("_", "-"), {None: "unknown", True: "yes", False: "no"}[v]) for name, v in verdicts.items()),
    ]
    levels = [(x.level, x.sets, x.tiles, x.group, x.order, x.attention_layers) for x in report.levels or ()]
    depths = [
        (x.construction, x.attention_layers, f"less than log-depth if T > {x.crossover}" if x.crossover else x.why)
        for x in report.depths
    ]
    show(
        as_json,
        report.to_json(),
        TextTable(("", ""), about, "language"),
        TextTable(("level", "sets", "tiles", "group", "order", "attention layers"), levels, "holonomy levels"),
        LEVELS_READ if levels else None,
        TextTable(("construction", "attention layers", ""), depths, "depth for words of at most T letters"),
        *report.notes,
    )


def _masses(report: TightnessReport) -> list[tuple[str, object]]:
    """Return the rows of a table about the tightness of a language model."""
    data = report.to_json()
    exact = f" = {data['fraction']}" if "/" in (data["fraction"] or "") else ""
    rows: list[tuple[str, object]] = [("probability that a string ends", f"{data['mass']:.10g}{exact}")]
    if report.steps is not None:
        rows = [(f"halted after {report.steps} steps", rows[0][1]), ("not yet halted", f"{data['rest']:.10g}")]
    rows.append(("tight", {None: "unknown", True: "yes", False: "no"}[report.tight]))
    return [("states", report.states), *rows, *([("reaches no end", report.trap)] if report.trap is not None else [])]


def info(net: Net, as_json: AsJson = False) -> None:
    """Show the sizes of a network and, where they are labelled, its heads, spaces and units."""
    from vitrify.interop.nets import load
    from vitrify.net.labels import labels_to_json

    weights = load(net)
    data = {"name": weights.architecture.name, "about": dict(weights.about), "digest": weights.digest}
    data |= {"sizes": asdict(weights.sizes), "labels": labels_to_json(weights.labels)}
    show(as_json, data, *_contents(weights))


def _contents(weights: Weights[Architecture]) -> Iterator[Part]:
    """Return the sizes of a net and its named parts, as texts and tables."""
    from vitrify.net.explain_terms import runs

    labels = weights.labels
    yield styled("bold", weights.architecture.name)
    yield from (f"  {key}: {_listed(value)}" for key, value in weights.about.items())
    yield sizes_table(weights)
    if labels.heads:
        betas = [float(weights.arrays[f"blocks.{h.block}.attn.beta"][h.index]) for h in labels.heads]
        heads = [
            (f"{h.block}.{h.index}", h.name, h.writes, h.gap, h.kappa, beta, h.beta_min)
            for h, beta in zip(labels.heads, betas, strict=True)
        ]
        yield TextTable(("head", "does", "writes", "gap", "kappa", "beta", "least beta"), heads, "heads")
        yield HEADS_READ
    recurrent = weights.architecture.tag == "recurrent"
    first, title = ("recurrence", "spaces") if recurrent else ("attention", "residual stream")
    if labels.spaces:
        spaces = [
            (s.name, s.kind.tag, runs(s.dims), _moment(s.born, first), _moment(s.dies, first), s.error)
            for s in labels.spaces
        ]
        yield TextTable(("space", "kind", "dimensions", "from", "to", "proved error"), spaces, title)
    units = [(u.block, u.part, f"{u.start}–{u.stop - 1}", u.name, ", ".join(u.writes)) for u in labels.units]
    yield TextTable(("block", "part", "units", "compute", "write"), units, "hidden units") if units else None


def _listed(value: object) -> object:
    """Return settings of a run in one line, and any other value as it is."""
    return ", ".join(f"{key}={one}" for key, one in value.items()) if isinstance(value, dict) else value


def _moment(moment: int, first: str) -> str:
    if moment == 0:
        return "embedding"
    block, half = divmod(moment - 1, 2)
    return f"{'MLP' if half else first} {block}"


def explain(
    net: Net,
    everything: Annotated[bool, opt("Do not shorten long tables.", "--all")] = False,
    formula: Annotated[bool, opt("Print a hard-attention net as a formula of past-time logic.", "--formula")] = False,
    seconds: Seconds = SECONDS,
    memory: Memory = None,
    as_json: AsJson = False,
) -> None:
    """Explain every space, head and hidden unit in words, from the weights."""
    from vitrify.interop.nets import load
    from vitrify.net.explain import SHOWN_ROWS
    from vitrify.net.explain import explain as explained

    with within(f"explaining {net}", seconds, memory):
        weights = load(net)
        if formula:
            from vitrify.certification.reading.formulas import formula_of

            read = formula_of(weights)
            data, text = {"formula": str(read), "alphabet": read.alphabet, "depth": read.depth}, str(read)
        else:
            explanation = explained(weights, shown=None if everything else SHOWN_ROWS)
            data, text = explanation.to_json(), str(explanation)
    if as_json:
        json_line(data)
    else:
        sys.stdout.write(f"{printable(text)}\n")  # as wide as it is


COMMANDS = (build, analyze, info, explain)
