"""The output of commands: one JSON line for machines, or texts and tables; progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from typing import TYPE_CHECKING, TypeAlias

from vitrify.encoding import encoded

if TYPE_CHECKING:
    from rich.console import Console

    from vitrify.net.architecture import Architecture
    from vitrify.net.weights import Weights

VERDICT_COLORS = {"holds": "green", "fails": "red", "undecided": "yellow"}
MAX_SYMBOLS = 12  # of an answer that are printed


class Styled(str):
    """A text in which `[bold]…[/]` is markup; in other texts brackets are brackets."""


def bold(text: str) -> Styled:
    """Return a text in bold letters, whatever brackets it has."""
    return Styled(f"[bold]{text.replace('[', chr(92) + '[')}[/]")


@dataclass(frozen=True)
class TextTable:
    """A table: columns by name (none has a header if all are empty), rows of cells, a title."""

    columns: Sequence[str]
    rows: Iterable[Sequence[object]]
    title: str | None = None
    unbroken: int = 0  # first columns whose cells stay on one line


Part: TypeAlias = str | TextTable | None


def console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, or wide enough for the tables when there is none."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, soft_wrap=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=140)


def json_line(data: object) -> None:
    """Print one JSON value on one line."""
    sys.stdout.write(dumps(encoded(data), ensure_ascii=False) + "\n")


def show(as_json: bool, data: object, *parts: Part) -> None:
    """Print a result: its data as one JSON line, or its parts in turn."""
    if as_json:
        json_line(data)
    else:
        tell(*parts)


def tell(*parts: Part) -> None:
    """Print texts and tables in turn; None is left out."""
    from rich.table import Table

    out = console()
    for part in parts:
        if isinstance(part, TextTable):
            table = Table(title=part.title, title_justify="left", show_header=any(part.columns))
            for number, column in enumerate(part.columns):
                table.add_column(column, overflow="fold", no_wrap=number < part.unbroken)
            for row in part.rows:
                table.add_row(*map(cell, row))
            out.print(table)
        elif part is not None:
            out.print(part, markup=isinstance(part, Styled))


def cell(value: object) -> str:
    """Return a value as it stands in a table: numbers with six significant digits, nothing as a dash."""
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@contextmanager
def status(first: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with a text that can change; nothing where there is no terminal."""
    with console(stderr=True).status(first) as spinner:
        yield spinner.update


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar, and yield a function that takes the amount done and the total."""
    with work(title) as tick:
        yield lambda done, total: tick(done, total, title)


@contextmanager
def work(title: str) -> Iterator[Callable[[float, float, str], None]]:
    """Like `progress`, but every update also sets the description."""
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
        yield lambda done, total, description: bar.update(task, completed=done, total=total, description=description)


def parameters(kinds: Mapping[str, Callable[..., object]], as_json: bool) -> None:
    """Print the parameters of classes or functions, by title: what each may be, its default, its meaning."""
    from vitrify.parameters import described, plain

    tables = {
        title: TextTable(
            ("parameter", "may be", "default", "meaning"),
            [(p.name, p.allowed, "" if p.required else str(plain(p.default)), p.help) for p in described(kind)],
            title,
        )
        for title, kind in kinds.items()
    }
    data = {title: [parameter.to_json() for parameter in described(kind)] for title, kind in kinds.items()}
    show(as_json, data, *tables.values())


def sizes_table(weights: Weights[Architecture]) -> TextTable:
    """Return the sizes of a net as a table."""
    size = weights.sizes
    columns = ("layers", "heads", "width", "MLP units", "non-zero", "dense", "largest weight")
    numbers = (size.layers, size.heads, size.d_model, size.units, size.nonzero, size.dense)
    return TextTable(columns, [(*(f"{number:,}" for number in numbers), size.max_abs)], "sizes")
