"""Everything the commands print: JSON lines for machines, tables for people. Progress goes to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from vitrify.certify import Campaign, Evidence
    from vitrify.net.explain import Explanation
    from vitrify.net.trace import Trace
    from vitrify.net.weights import Weights
    from vitrify.recheck import Recheck
    from vitrify.spec.analysis import Analysis
    from vitrify.spec.ltl import Formula

COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}
SHOWN = 12


def console(*, stderr: bool = False) -> Console:
    """Where people read; as wide as the terminal, or wide enough for the tables when there is none."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, soft_wrap=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=140)


def json_line(data: Any) -> None:
    """One JSON value on one line."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False) + "\n")


@contextmanager
def status(first: str) -> Iterator[Callable[[str], None]]:
    """A spinner with a text that can change; silent where there is no terminal."""
    with console(stderr=True).status(first) as spinner:
        yield spinner.update


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar that is told how much is done, of how much."""
    with work(title) as tick:
        yield lambda done, total: tick(done, total, title)


@contextmanager
def work(title: str) -> Iterator[Callable[[float, float, str], None]]:
    """The same of work whose parts have names, and some of which is done before the time left can be told."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    err = console(stderr=True)
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal, speed_estimate_period=120) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total, said: bar.update(task, completed=done, total=total, description=said)


def built(weights: Weights[Any], folder: Path, as_json: bool) -> None:
    """What was built, and where."""
    from vitrify.net.weights import Ledger

    size = Ledger.of(weights)
    if as_json:
        json_line(
            {"folder": str(folder), "about": dict(weights.about), "ledger": asdict(size), "digest": weights.digest}
        )
        return
    console().print(f"[bold]{weights.architecture.name}[/bold] → {folder}")
    _ledger(weights)


def analysis(report: Analysis, as_json: bool) -> None:
    """What an automaton is."""
    if as_json:
        json_line(report.to_json())
        return
    out = console()
    table = grid("", "", title="language")
    table.add_row("states", f"{report.states} (minimal: {report.minimal_states}), {report.letters} letters")
    table.add_row("syntactic monoid", _value(report.monoid))
    for name in ("finite", "commutative", "star_free", "solvable"):
        verdict = getattr(report, name)
        table.add_row(name.replace("_", "-"), "unknown" if verdict is None else "yes" if verdict else "no")
    out.print(table)
    levels = grid("level", "sets", "tiles", "group", "order", "attention layers", title="holonomy levels")
    for level in report.levels or ():
        numbers = (level.level, level.sets, level.tiles, level.group, level.order, level.attention_layers)
        levels.add_row(*map(_value, numbers))
    out.print(levels)
    depths = grid("shape", "attention layers", "", title="depth")
    for depth in report.depths:
        pays = f"less than log depth for T > {depth.crossover}" if depth.crossover else depth.why
        depths.add_row(depth.shape, _value(depth.attention_layers), pays)
    out.print(depths)
    for note in report.notes:
        out.print(note, markup=False)


def answer(found: dict[str, Any], trace: Trace | None, as_json: bool) -> None:
    """A network's answer to one sequence."""
    if as_json:
        json_line(found | ({"trace": str(trace)} if trace else {}))
        return
    if trace:
        sys.stdout.write(f"{trace}\n\n")
    out = console()
    if found["kind"] == "lm":
        rows = found["next"] if isinstance(found["next"], list) else [found["next"]]
        first = len(found["tokens"]) + 1 - len(rows)
        for place, row in enumerate(rows, start=first):
            after = " ".join(found["tokens"][:place]) or "nothing"
            table = grid("next token", "probability", title=f"after {after}")
            for token, p in sorted(row.items(), key=lambda item: -item[1])[:SHOWN]:
                table.add_row(token, f"{p:.6g}")
            out.print(table)
            if len(row) > SHOWN:
                out.print(f"… and {len(row) - SHOWN} more; --json shows all")
    elif found["kind"] == "next":
        nested = found["next"] and isinstance(found["next"][0], list)
        sets = found["next"] if nested else [found["next"]]
        for place, legal in enumerate(sets, start=len(found["tokens"]) + 1 - len(sets)):
            after = " ".join(found["tokens"][:place]) or "nothing"
            more = f" … and {len(legal) - SHOWN} more; --json shows all" if len(legal) > SHOWN else ""
            out.print(f"after {after}: {' '.join(legal[:SHOWN]) or 'nothing'}{more}", markup=False)
    elif found["kind"] == "recogniser":
        pairs = zip(["", *found["tokens"]], found["states"], strict=True)
        out.print(" ".join(f"—{token}→ {state}" if token else state for token, state in pairs))
        out.print("[green]accepted[/green]" if found["accept"] else "[red]rejected[/red]")
    elif found["kind"] == "thought":
        out.print(" ".join(found["thought"]), markup=False)
        many = "1 step" if found["steps"] == 1 else f"{found['steps']} steps"
        out.print(many + (", stopped" if found["stopped"] else ""))
        for name, value in found["conclusion"].items():
            out.print(f"{name} = {value}", markup=False)
    elif "connected" in found:
        for group in dict.fromkeys(map(tuple, found["connected"].values())):
            out.print(" ".join(group), markup=False)
    elif found["kind"] == "values":
        for name, value in found["values"].items():
            out.print(f"{name} = {value!r}", markup=False)
    else:
        said = found["class"] if found["kind"] == "class" else found["output"]
        out.print(said if isinstance(said, str) else " ".join(said), markup=False)
        for name, places in found.get("found", {}).items():
            where = ", ".join(f"row {row} column {column}" for row, column in places[:SHOWN])
            out.print(f"  {name}: {where}{' …' if len(places) > SHOWN else ''}", markup=False)


def certificate(folder: Path, evidence: Evidence, broken: Campaign | None, as_json: bool) -> None:
    """The verdict on a folder."""
    if as_json:
        extra = {} if broken is None else {"mutations": asdict(broken) | {"rate": broken.rate}}
        json_line({"folder": str(folder)} | evidence.to_json() | extra)
        return
    out = console()
    out.print(f"[bold {COLOURS[evidence.verdict]}]{evidence.verdict}[/]  {folder}")
    table = grid("", "", title=None)
    table.add_row("method", evidence.method)
    table.add_row("domain", evidence.domain.replace("; ", "\n"))
    table.add_row("cases", f"{evidence.cases:,}")
    for name, value in evidence.measured.items():
        promised = evidence.declared.get(name)
        table.add_row(name, _value(value) + (f" (allowed {_value(promised)})" if promised is not None else ""))
    table.add_row("seed, time", f"{evidence.seed}, {evidence.seconds:.1f} s")
    if evidence.witness:
        table.add_row("[red]witness[/red]", "\n".join(f"{k}: {v}" for k, v in evidence.witness.items()))
    if broken is not None:
        table.add_row("mutations rejected", f"{broken.rejected} of {broken.tried} ({broken.rate:.1%})")
        for what, why in broken.survivors:
            table.add_row("survivor", f"{what}: {why}")
    for note in evidence.notes:
        table.add_row("", note)
    out.print(table)
    if evidence.proof is not None:
        _margins(out, evidence.proof)


def rechecked(folder: Path, found: Recheck, as_json: bool) -> None:
    """What a second opinion came to."""
    if as_json:
        agrees = None if found.unjudged else found.problem is None
        json_line({"folder": str(folder), "agrees": agrees} | asdict(found))
        return
    out = console()
    verdict = "[bold yellow]not judged[/]" if found.unjudged else "[bold green]agrees[/]"
    out.print(f"{'[bold red]does not agree[/]' if found.problem else verdict}  {folder}")
    table = grid("", "", title=None)
    unasked = f"answers are not asked for again: {found.unjudged}" if found.unjudged else None
    for name, line in (("problem", found.problem), ("not judged", unasked)):
        if line:
            table.add_row(name, line)
    for line in found.done:
        table.add_row("done", line)
    for line in found.left if not found.problem else ():
        table.add_row("not done here", line)
    out.print(table)


def _margins(out: Console, proof: Mapping[str, Any]) -> None:
    """What was proved about every head and every space."""
    heads = grid("head", "looks", "lead (times β)", "lost weight", title=None)
    for head in proof["heads"]:
        lead = "-" if head["gap"] is None else _value(head["gap"])
        heads.add_row(head["name"], head["looks"], lead, _value(head["leak"]))
    spaces = grid("space", "kind", "values", "error", title=None)
    for space in proof["spaces"]:
        count = "within bounds" if space["values"] is None else f"{space['values']:,}"
        spaces.add_row(space["name"], space["kind"], count, _value(space["error"]))
    for table in (heads, spaces, _formats(proof.get("arithmetic", {"formats": []}))):
        if table.row_count:
            out.print(table)


def _formats(report: Mapping[str, Any]) -> Any:
    """To which length each format keeps the answers."""
    table = grid("arithmetic", "proved to length", "logits within", "measured to length", title=None)
    for found in report["formats"]:
        proved = "none" if found["proved"] is None else f"{found['proved']:,}"
        kept = "not tried" if found["kept"] is None else f"{found['kept']:,}"
        error = "-" if found["error"] is None else _value(found["error"])
        table.add_row(found["name"], proved, error, kept + (", then another answer" if found["broken"] else ""))
    return table


def info(weights: Weights[Any], as_json: bool) -> None:
    """The sizes and the named parts of a net."""
    from vitrify.net.explain import runs
    from vitrify.net.labels import labels_to_json
    from vitrify.net.weights import Ledger

    if as_json:
        data = {"name": weights.architecture.name, "about": dict(weights.about), "digest": weights.digest}
        json_line(data | {"ledger": asdict(Ledger.of(weights)), "labels": labels_to_json(weights.labels)})
        return
    out = console()
    out.print(f"[bold]{weights.architecture.name}[/bold]")
    for key, value in weights.about.items():
        out.print(f"  {key}: {value}")
    _ledger(weights)
    heads = grid("head", "does", "writes", "gap", "kappa", "beta", "least beta", title="heads")
    for h in weights.labels.heads:
        beta = float(weights.arrays[f"blocks.{h.block}.attn.beta"][h.place])
        numbers = (h.gap, h.kappa, beta, h.beta_min)
        heads.add_row(f"{h.block}.{h.place}", h.name, h.writes, *(_value(n) for n in numbers))
    if weights.labels.heads:
        out.print(heads)
    recurrent = weights.architecture.tag == "recurrent"
    first, title = ("recurrence", "spaces") if recurrent else ("attention", "residual stream")
    spaces = grid("space", "kind", "dimensions", "from", "to", "proved error", title=title)
    for s in weights.labels.spaces:
        moments = (_moment(moment, first) for moment in (s.born, s.dies))
        spaces.add_row(s.name, s.kind.tag, runs(s.dims), *moments, _value(s.error))
    if weights.labels.spaces:
        out.print(spaces)
    units = grid("block", "part", "units", "compute", "write", title="hidden units")
    for u in weights.labels.units:
        units.add_row(str(u.block), u.part, f"{u.start}–{u.stop - 1}", u.name, ", ".join(u.writes))
    out.print(units)


def explanation(found: Explanation, as_json: bool) -> None:
    """What every part of a net does."""
    if as_json:
        json_line(found.to_json())
        return
    sys.stdout.write(f"{found}\n")


def formula(found: Formula, as_json: bool) -> None:
    """The formula that a net computes."""
    if as_json:
        json_line({"formula": str(found), "alphabet": found.alphabet, "depth": found.depth})
        return
    sys.stdout.write(f"{found}\n")


def _ledger(weights: Weights[Any]) -> None:
    from vitrify.net.weights import Ledger

    size = Ledger.of(weights)
    table = grid("layers", "heads", "width", "MLP units", "non-zero", "dense", "largest weight", title="ledger")
    numbers = (size.layers, size.heads, size.d_model, size.units, size.nonzero, size.dense)
    table.add_row(*(f"{n:,}" for n in numbers), f"{size.max_abs:.6g}")
    console().print(table)


def grid(*columns: str, title: str | None) -> Any:
    """An empty table; nobody names the columns where none has a name."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=any(columns))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _value(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _moment(moment: int, first: str) -> str:
    if moment == 0:
        return "embedding"
    block, half = divmod(moment - 1, 2)
    return f"{'MLP' if half else first} {block}"
