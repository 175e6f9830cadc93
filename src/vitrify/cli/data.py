"""The commands about data and run stores: sequences of sandboxes, curves and tables of runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from vitrify import encoding
from vitrify.cli.options import MAX_SEED, SANDBOX_NAMES, AsJson, AskParameters, KeyValues, StoreFolder, arg, opt
from vitrify.cli.render import Part, TextTable, parameters, progress, show, styled, tell
from vitrify.encoding import JsonObject
from vitrify.errors import InputError

if TYPE_CHECKING:
    from vitrify.learn.records import Record

Layout = Literal["parquet", "datasets"]
MAX_EXAMPLES = 1000  # sequences shown
MAX_QUERIES = 24  # of a sequence
STATE_COLORS = {"finished": "green", "failed": "red", "running": "cyan"}
UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def data(
    sandbox: Annotated[str | None, arg("Name of a sandbox. Default: list all.", autocompletion=SANDBOX_NAMES)] = None,
    words: KeyValues = None,
    rows: Annotated[int, opt("Sequences to show, or to write per split.", min=1)] = 3,
    seed: Annotated[int, opt("Seed of the data.", min=0, max=MAX_SEED)] = 0,
    out: Annotated[Path | None, opt("Write the sequences to this folder.", "--out", "-o", metavar="DIR")] = None,
    layout: Annotated[Layout, opt("parquet: files; datasets: a folder for `load_dataset`.", "--format")] = "parquet",
    split: Annotated[
        list[str] | None, opt("train (default), test or probe; repeatable.", metavar="NAME[=ROWS]")
    ] = None,
    ask_parameters: AskParameters = False,
    as_json: AsJson = False,
) -> None:
    """Show or write sequences of a sandbox with hidden states, exact optimal predictions and the entropy rate."""
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
        with progress("writing sequences") as tick:
            splits = in_splits(split or ["train"], rows)
            files = write_data(source, out, splits, seed=seed, layout=layout, progress=tick)
        names = [path.relative_to(files.folder).as_posix() for path in files.files]
        counts = ", ".join(f"{count:,} {name} sequences" for name, count in files.rows.items())
        about = {"folder": str(out), "rows": dict(files.rows), "files": names, "bytes": files.bytes}
        show(as_json, about, f"{counts} → {out} ({len(names)} files)")
    elif split or rows > MAX_EXAMPLES:
        raise InputError(
            f"at most {MAX_EXAMPLES:,} sequences of the training split are shown: --out DIR writes any number"
        )
    else:
        from vitrify.learn.preview import preview

        seen = preview(sandbox, words or [], rows, seed)
        show(as_json, seen, *_rows(seen))


def _rows(seen: JsonObject) -> Iterator[Part]:
    """Return sequences of a sandbox as text: tokens, targets, optimal predictions, and hidden states."""
    yield f"{seen['sandbox']}: {seen['title']}"
    yield "  ".join(f"{key}={value}" for key, value in seen["parameters"].items())
    rate = "" if seen["rate"] is None else f"; entropy rate {seen['rate']:.4f} nats per symbol"
    yield f"mean optimal loss of these sequences: {seen['floor']:.4f} nats per prediction{rate}"
    for row in seen["examples"]:
        yield f"\nsequence {row['index']}: {' '.join(row['tokens'])}"
        queries = [line for line in row["queries"] if line["weight"] > 0]
        cells = []
        for line in queries[:MAX_QUERIES]:
            best = "  ".join(f"{answer} {p:.3f}" for answer, p in line["optimal"])
            numbers = (f"{line['weight']:g}", best, f"{line['loss']:.4f}")
            cells.append((line["after"], line["token"], line["answer"], *numbers))
        yield TextTable(("after", "last token", "target", "weight", "optimal prediction", "loss"), cells)
        if len(queries) > MAX_QUERIES:
            yield f"… {len(queries) - MAX_QUERIES} more predictions (--json has them all)"
        yield from (f"{key}: {value}" for key, value in row["latent"].items())


def plot(
    query: Annotated[list[str] | None, arg("Runs to draw, as in `vitrify runs`.", "QUERY…")] = None,
    out: Annotated[Path, opt("Figure: .svg, .png or .pdf.", "--out", "-o", metavar="FILE")] = Path("curves.svg"),
    quantity: Annotated[
        list[str] | None, opt("Quantity to draw: loss (default), excess, kl, accuracy, a probe … (repeatable).")
    ] = None,
    each: Annotated[bool, opt("Draw every seed as a thin line, and mark the plateaus of the loss.", "--seeds")] = False,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Draw training curves and probes of runs; the optimal loss and simpler predictors are lines, seeds a band."""
    from vitrify.learn.curve_figures import curves
    from vitrify.learn.store import RunStore

    opened = RunStore(store)
    records = opened.runs(" ".join(query or []))
    curves(opened, records, quantity or ["loss"], out, each=each)
    show(as_json, {"runs": [record.id for record in records], "file": str(out)}, f"{len(records)} runs → {out}")


def runs(
    query: Annotated[list[str] | None, arg("Words and comparisons (key=value, key<value, …).", "QUERY…")] = None,
    store: StoreFolder = None,
    export: Annotated[Path | None, opt("Write a table of these runs: .parquet or .csv.", metavar="FILE")] = None,
    curves: Annotated[Path | None, opt("Write a table of their curves: .parquet or .csv.", metavar="FILE")] = None,
    tensorboard: Annotated[Path | None, opt("Write their curves as TensorBoard event files.", metavar="DIR")] = None,
    repair: Annotated[bool, opt("Move damaged runs into the folder `damaged` of the store.", "--repair")] = False,
    as_json: AsJson = False,
) -> None:
    """List the training runs of a store: parameters that differ, progress, and distance to the optimal loss."""
    from vitrify.learn import exports
    from vitrify.learn.store import RunStore

    opened = RunStore(store)
    if repair:
        from vitrify.learn.repair import repair as moved_aside

        moved = moved_aside(opened)
        lines = (f"moved aside: {opened.path / name}: {why}" for name, why in moved.items())
        show(as_json, {"moved": moved}, *lines, f"{len(moved)} damaged in {opened.path}")
        return
    records = opened.runs(" ".join(query or []))
    for name, why in opened.unreadable.items():
        sys.stderr.write(f"warning: {name} is left out: {why}\n")
    if export:
        exports.write_table(exports.table(records), export)
    if curves:
        exports.write_table(exports.curves(opened, records), curves)
    if tensorboard:
        exports.write_tensorboard(opened, records, tensorboard)
    written = [path for path in (export, curves, tensorboard) if path]
    if as_json:
        sys.stdout.write(encoding.line(records) + "\n")
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
        row[state] = styled(STATE_COLORS.get(record.state, "yellow"), record.state)
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
