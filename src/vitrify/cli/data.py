"""The commands about data and about what a store holds: rows of sandboxes, curves and tables of runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vitrify.cli.options import AsJson, AskParameters, KeyValues, StoreFolder
from vitrify.cli.render import Part, TextTable, parameters, progress, show, tell
from vitrify.encoding import JsonObject
from vitrify.errors import InputError

if TYPE_CHECKING:
    from vitrify.learn.records import Record

Layout = Literal["parquet", "datasets"]
MAX_EXAMPLES = 1000  # that are shown
MAX_QUESTIONS = 24  # of a row
STATE_COLORS = {"finished": "green", "failed": "red", "running": "cyan"}
UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def data(
    sandbox: Annotated[str | None, typer.Argument(help="a sandbox; without one, all are listed")] = None,
    words: KeyValues = None,
    rows: Annotated[int, typer.Option(min=1, help="rows to show, or to write of each split")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="data seed")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="write rows to this folder instead")
    ] = None,
    layout: Annotated[
        Layout, typer.Option("--format", help="parquet: files; datasets: a folder that `load_dataset` takes")
    ] = "parquet",
    split: Annotated[
        list[str] | None, typer.Option(metavar="NAME[=ROWS]", help="with --out: train (by default), test, probe")
    ] = None,
    ask_parameters: AskParameters = False,
    as_json: AsJson = False,
) -> None:
    """Show rows of a sandbox with their states, the optimal answers and the entropy rate; write them; or list all."""
    if sandbox is None:
        from vitrify.registry import headlines

        titles = {headline.name: headline.title for headline in headlines("vitrify.sandboxes", "SANDBOX")}
        show(as_json, titles, TextTable(("name", "what it is"), list(titles.items()), f"{len(titles)} sandboxes"))
    elif ask_parameters:
        from vitrify.sandboxes.catalogue import entry

        parameters({f"sandbox {sandbox}": entry(sandbox).make}, as_json)
    elif out is not None:
        from vitrify.interop.data import in_splits, write_data
        from vitrify.sandboxes.catalogue import in_words

        source = in_words(sandbox, words or [])
        with progress("writing rows") as tick:
            splits = in_splits(split or ["train"], rows)
            files = write_data(source, out, splits, seed=seed, layout=layout, progress=tick)
        names = [path.relative_to(files.folder).as_posix() for path in files.files]
        counts = ", ".join(f"{count:,} rows of {name}" for name, count in files.rows.items())
        about = {"folder": str(out), "rows": dict(files.rows), "files": names, "bytes": files.bytes}
        show(as_json, about, f"{counts} → {out} ({len(names)} files)")
    elif split or rows > MAX_EXAMPLES:
        raise InputError(f"at most {MAX_EXAMPLES:,} rows of the training split are shown: --out DIR writes any number")
    else:
        from vitrify.learn.glimpse import glimpse

        seen = glimpse(sandbox, words or [], rows, seed)
        show(as_json, seen, *_rows(seen))


def _rows(seen: JsonObject) -> Iterator[Part]:
    """Return some rows of a sandbox: tokens, right answers, the optimal distribution, and what is hidden."""
    yield f"{seen['sandbox']}: {seen['title']}"
    yield "  ".join(f"{key}={value}" for key, value in seen["parameters"].items())
    rate = "" if seen["rate"] is None else f"; entropy rate {seen['rate']:.4f} nats per symbol"
    yield f"mean optimal loss of these examples {seen['floor']:.4f} nats per answer{rate}"
    for row in seen["examples"]:
        yield f"\nexample {row['index']}: {' '.join(row['tokens'])}"
        queries = [line for line in row["queries"] if line["weight"] > 0]
        cells = []
        for line in queries[:MAX_QUESTIONS]:
            best = "  ".join(f"{answer} {p:.3f}" for answer, p in line["optimal"])
            numbers = (f"{line['weight']:g}", best, f"{line['loss']:.4f}")
            cells.append((line["after"], line["token"], line["answer"], *numbers))
        yield TextTable(
            ("after", "last token", "right answer", "weight", "optimal: the likeliest answers", "loss"), cells
        )
        if len(queries) > MAX_QUESTIONS:
            yield f"… {len(queries) - MAX_QUESTIONS} more questions (--json has them all)"
        yield from (f"{key}: {value}" for key, value in row["latent"].items())


def plot(
    query: Annotated[
        list[str] | None, typer.Argument(metavar="QUERY…", help="which runs, as in `vitrify runs`")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="the figure: .svg, .png or .pdf")] = Path(
        "curves.svg"
    ),
    quantity: Annotated[str, typer.Option(help="what is drawn: loss, excess, kl, accuracy …")] = "loss",
    store: StoreFolder = None,
) -> None:
    """Draw curves of runs against steps, with the floor and the known predictors as lines, seeds as a band."""
    from vitrify.learn.figures import curves
    from vitrify.learn.store import RunStore

    opened = RunStore(store)
    records = opened.runs(" ".join(query or []))
    curves(opened, records, quantity, out)
    tell(f"{len(records)} runs → {out}")


def runs(
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY…", help="words, or key=value, key<value … (=, !=, <, <=, >, >=): all must hold"),
    ] = None,
    store: StoreFolder = None,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write a table, a row for every run: .parquet or .csv")
    ] = None,
    curves: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write a table, a row for every line logged: .parquet or .csv")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIR", help="write the curves as event files, a folder for every run")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the runs of a store: what differs between them, how far they are, and how near to the best possible."""
    from vitrify.learn import exports
    from vitrify.learn.store import RunStore

    opened = RunStore(store)
    records = opened.runs(" ".join(query or []))
    if export:
        exports.write_table(exports.table(records), export)
    if curves:
        exports.write_table(exports.curves(opened, records), curves)
    if tensorboard:
        exports.write_tensorboard(opened, records, tensorboard)
    written = [path for path in (export, curves, tensorboard) if path]
    if as_json:
        sys.stdout.write(exports.to_json(records) + "\n")
    elif written:
        sys.stdout.write("".join(f"{len(records)} runs → {path}\n" for path in written))
    else:
        _table(records)


def _table(records: Sequence[Record]) -> None:
    """Print a table of runs, and their messages."""
    from vitrify.learn.records import rows

    columns, lines = rows(records)
    now, state = time.time(), columns.index("state")
    cells = []
    for record, line in zip(records, lines, strict=True):
        row = [f"{value:.4g}" if isinstance(value, float) else value for value in line]
        row[state] = f"[{STATE_COLORS.get(record.state, 'yellow')}]{record.state}[/]"
        cells.append((*row, age(now - (record.ended or record.started))))
    messages = (f"{record.id} {record.state}: {record.message}" for record in records if record.message)
    tell(TextTable((*columns, "age"), cells, f"{len(records)} runs"), *messages)


def age(seconds: float) -> str:
    """Return how long ago something was, in the largest unit that fits.

    >>> age(5), age(200), age(90_000)
    ('5 s', '3 min', '1 d')
    """
    name, length = next(((name, length) for name, length in UNITS if seconds >= length), ("s", 1))
    return f"{int(seconds // length)} {name}"


COMMANDS = (data, plot, runs)
