"""What the commands that draw data and train print."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vitrify.cli.render import console, json_line

if TYPE_CHECKING:
    from vitrify.interop.data import Layout
    from vitrify.learn.experiment import Experiment
    from vitrify.learn.records import Record
    from vitrify.learn.store import Store
    from vitrify.learn.train import Progress

SHOWN = 24  # questions of a row, combinations of a table


def trained(
    experiments: Sequence[Experiment], store: Path | None, retry: bool, as_json: bool, devices: int = 1
) -> None:
    """Train, with a line of progress, and then a table: what was reached, and what is best possible."""
    from vitrify.learn.cost import estimate
    from vitrify.learn.keep import train_kept
    from vitrify.learn.program import remember_programs
    from vitrify.learn.store import Store

    remember_programs()
    opened = Store(store)
    groups = [group for experiment in experiments for group in experiment.groups()]
    if not as_json:
        console(stderr=True).print(estimate(groups), markup=False)
    with _line(as_json) as watch:
        found = train_kept(groups, opened, watch=watch, retry=retry, devices=devices)
    outcome(found, opened, as_json)


def outcome(found: Sequence[Record], opened: Store, as_json: bool) -> None:
    """What has been trained, as a table or as lines of JSON; exit code 1 if some of it failed."""
    if as_json:
        for record in found:
            json_line(record.to_json())
    else:
        _results(found)
        console(stderr=True).print(f"{len(found)} runs in {opened.path}: `vitrify runs`, `vitrify plot`", markup=False)
    if any(record.state == "failed" for record in found):
        raise typer.Exit(1)


@contextmanager
def _line(silent: bool) -> Iterator[Callable[[Progress], None]]:
    """One line that changes: step, loss and floor, speed, time left. Without a terminal, a line per measurement."""
    err = console(stderr=True)
    if silent:
        yield lambda _progress: None
        return
    if not err.is_terminal:
        seen: set[tuple[int, int]] = set()

        def say(progress: Progress) -> None:
            key = (id(progress.group), progress.step)
            if progress.measured and progress.measured["step"] == progress.step and key not in seen:
                seen.add(key)
                err.print(said(progress), markup=False)

        yield say
        return
    with err.status("compiling …") as spinner:
        yield lambda progress: spinner.update(said(progress))


def said(progress: Progress) -> str:
    """The line of progress: the members' mean loss *and* the floor, member-steps per second, time left."""
    import numpy as np

    steps = progress.group.recipe.steps
    text = f"step {progress.step:,}/{steps:,}"
    if progress.measured:
        loss, floor = (float(np.nanmean(progress.measured[name])) for name in ("loss", "floor"))
        text += f"  loss {loss:.4f}  floor {floor:.4f}  excess {loss - floor:.2g}"
        broken = int((np.asarray(progress.measured["broken"]) >= 0).sum())
        text += f"  {broken} broken" if broken else ""
    if progress.rate:
        text += f"  {progress.rate:,.0f} member-steps/s"
        text += f"  {math.ceil(progress.left):,} s left" if math.isfinite(progress.left) else ""
    return text + f"  (compiled in {progress.compiled:.1f} s)"


def _results(found: Sequence[Record]) -> None:
    from rich.table import Table

    from vitrify.learn.records import axes as varied

    axes = [axis for axis in varied(found) if axis not in ("seed", "data_seed")]
    combinations: dict[tuple[Any, ...], list[Record]] = {}
    for record in found:
        combinations.setdefault(tuple(record.flat.get(axis) for axis in axes), []).append(record)
    table = Table(title="mean ± deviation over seeds, in nats", title_justify="left")
    for column in (*axes, "runs", "step", "loss", "floor", "excess", "accuracy", "nearest known predictor"):
        table.add_column(column)
    for combination, records in list(combinations.items())[:SHOWN]:
        done = [record for record in records if record.state == "finished"]
        failed = f" ({len(records) - len(done)} failed)" if len(done) < len(records) else ""
        steps = sorted({record.step for record in done if record.step is not None})
        cells = [f"{len(records)}{failed}", "–".join(map(str, dict.fromkeys([*steps[:1], *steps[-1:]])))]
        cells += [_spread([record.values[name] for record in done]) for name in ("loss", "floor", "excess", "accuracy")]
        table.add_row(*[_short(value) for value in combination], *cells, _nearest(done))
    console().print(table)
    if len(combinations) > SHOWN:
        console().print(f"… and {len(combinations) - SHOWN} more: `vitrify runs` has them all")
    for record in found:
        if record.message:
            console().print(f"{record.id} {record.state}: {record.message}", markup=False)


def _spread(values: Sequence[float]) -> str:
    import numpy as np

    if not values:
        return "–"
    return f"{np.mean(values):.4f}" + (f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else "")


def _nearest(records: Sequence[Record]) -> str:
    """The known predictor that most members end nearest to, by the divergence from it."""
    names = []
    for record in records:
        far = {name: value for name, value in record.values.items() if name == "kl" or name.startswith("kl.")}
        best = min(far, key=far.__getitem__)
        names.append(("optimal" if best == "kl" else best.removeprefix("kl."), far[best]))
    if not names:
        return "–"
    common = max({name for name, _ in names}, key=[name for name, _ in names].count)
    own = [value for name, value in names if name == common]
    return f"{common} in {len(own)} of {len(names)} (KL {sum(own) / len(own):.2g})"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def sandboxes(as_json: bool) -> None:
    """All sandboxes with one line each, and the model families."""
    from rich.table import Table

    from vitrify.registry import headlines

    found = list(headlines("vitrify.sandboxes", "SANDBOX"))
    if as_json:
        json_line({headline.name: headline.title for headline in found})
        return
    table = Table(title=f"{len(found)} sandboxes", title_justify="left")
    table.add_column("name")
    table.add_column("what it is", overflow="fold")
    for headline in found:
        table.add_row(headline.name, headline.title)
    console().print(table)


def rows_of(name: str, words: Sequence[str], count: int, seed: int, as_json: bool) -> None:
    """Some rows of a sandbox: tokens, right answers, the optimal distribution, and what is hidden."""
    from vitrify.learn.glimpse import glimpse

    seen = glimpse(name, words, count, seed)
    if as_json:
        json_line(seen)
        return
    from rich.table import Table

    out = console()
    out.print(f"{seen['sandbox']}: {seen['title']}", markup=False)
    out.print("  ".join(f"{key}={value}" for key, value in seen["parameters"].items()), markup=False)
    rate = "" if seen["rate"] is None else f"; entropy rate {seen['rate']:.4f} nats per symbol"
    out.print(f"mean optimal loss of these rows {seen['floor']:.4f} nats per answer{rate}")
    for row in seen["rows"]:
        out.print(f"\nrow {row['row']}: {' '.join(row['tokens'])}", markup=False)
        table = Table()
        for column in ("after", "last token", "right answer", "weight", "optimal: the likeliest answers", "loss"):
            table.add_column(column, overflow="fold")
        asked = [line for line in row["questions"] if line["weight"] > 0]
        for line in asked[:SHOWN]:
            best = "  ".join(f"{answer} {p:.3f}" for answer, p in line["optimal"])
            cells = [line["after"], line["token"], line["answer"], f"{line['weight']:g}", best, f"{line['loss']:.4f}"]
            table.add_row(*map(str, cells))
        out.print(table)
        if len(asked) > SHOWN:
            out.print(f"… {len(asked) - SHOWN} more questions (--json has them all)")
        for key, value in row["latent"].items():
            out.print(f"{key}: {value}", markup=False)


def written(
    name: str,
    words: Sequence[str],
    splits: Sequence[str],
    count: int,
    seed: int,
    out: Path,
    layout: Layout,
    as_json: bool,
) -> None:
    """Write rows of a sandbox to a folder, with a bar that says how far it is, and then where they are."""
    from vitrify.cli.render import progress as shown_progress
    from vitrify.interop.data import in_splits, write_data
    from vitrify.sandboxes.catalogue import in_words

    sandbox = in_words(name, words)
    with shown_progress("writing rows") as progress:
        found = write_data(sandbox, out, in_splits(splits, count), seed=seed, layout=layout, progress=progress)
    if as_json:
        files = [path.relative_to(found.folder).as_posix() for path in found.files]
        json_line({"folder": str(out), "rows": dict(found.rows), "files": files, "bytes": found.bytes})
        return
    rows = ", ".join(f"{rows:,} rows of {split}" for split, rows in found.rows.items())
    console().print(f"{rows} → {out} ({len(found.files)} files)", markup=False)


def drawn(found: Sequence[Record], out: Path) -> None:
    """Where the figure is."""
    console().print(f"{len(found)} runs → {out}", markup=False)
