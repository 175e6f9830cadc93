"""The output of commands: one JSON line for machines, or texts and tables; progress on standard error."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from typing import TYPE_CHECKING, TypeAlias

from vitrify.encoding import encoded

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

    from vitrify.net.architecture import Architecture
    from vitrify.net.weights import Weights

VERDICT_COLORS = {
    "holds": "green",
    "fails": "red",
    "reversed": "red",
    "not reached": "yellow",
    "undecided": "yellow",
}
MAX_WIDTH = 10_000  # characters of a line, while the columns of a table are measured
MAX_SYMBOLS = 12  # tokens, or candidates for the next one, that `vitrify run` prints of an answer
CONTROLS = {code: repr(chr(code))[1:-1] for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


class Styled(str):
    """A text or cell in which `[bold]…[/]` is markup; in all others brackets are brackets."""


def colored(verdict: str) -> Styled:
    """Return a verdict in its color."""
    return styled(VERDICT_COLORS[verdict], verdict)


def styled(style: str, text: str, after: str = "") -> Styled:
    """Return a text in a style such as "bold red", then a plain text; brackets in both are printed."""
    from rich.markup import escape

    return Styled(f"[{style}]{escape(text)}[/]{escape(after)}")


def printable(text: str) -> str:
    """Return a text with control characters written out, so that no name in a file can command a terminal."""
    return text.translate(CONTROLS)


@dataclass(frozen=True)
class TextTable:
    """A table: names of columns (if all are empty, no header is printed), rows of cells, a title.

    Where the terminal is too narrow for the longest word of each column, every row of a table with a header becomes a
    paragraph: the cells of the first `keys` columns, then the others with the names of their columns.
    """

    columns: Sequence[str]
    rows: Iterable[Sequence[object]]
    title: str | None = None
    keys: int = 1
    unbroken: int = 0  # first columns whose cells stay on one line


Part: TypeAlias = str | TextTable | None


def console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, also before a pipe; without one, of `COLUMNS` or 140 characters."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if made.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        return made
    width = os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else 140
    return Console(stderr=stderr, highlight=False, width=width)


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
    out = console()
    for part in parts:
        if isinstance(part, TextTable):
            for each in _laid_out(part, out):
                out.print(each)
        elif part is not None:
            out.print(_text(part))


def _laid_out(table: TextTable, out: Console) -> Iterator[RenderableType]:
    """Return a table, or its title and a paragraph for every row where the table does not fit."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    rows = [list(map(_text, row)) for row in table.rows]
    widths = _widths(table, rows, out)
    if widths is not None:
        title = Text(printable(table.title), "table.title") if table.title else None
        grid = Table(title=title, title_justify="left", show_header=any(table.columns))
        for name, width in zip(table.columns, widths, strict=True):
            grid.add_column(Text(name), overflow="fold", width=width)
        for row in rows:
            grid.add_row(*row)
        yield grid
        return
    yield from [Text(printable(table.title), "italic")] if table.title else []
    for row in rows:
        yield Text("  ").join(Text.assemble(key, style="bold") for key in row[: table.keys])
        named = zip(table.columns[table.keys :], row[table.keys :], strict=True)
        pairs = (Text.assemble(name and f"{name}: ", text) for name, text in named if text)
        yield Padding(Text("; ").join(pairs), (0, 0, 0, 2))


def _text(value: object) -> Text:
    """Return the value of a cell as it is printed; only in a `Styled` one is there markup."""
    from rich.text import Text

    text = cell(value)
    return Text.from_markup(printable(text)) if isinstance(text, Styled) else Text(printable(text))


def _widths(table: TextTable, rows: Sequence[Sequence[Text]], out: Console) -> list[int] | None:
    """Return widths of columns that break no word, with shares of the spare width where they are needed.

    If words must be broken: None for a table with a header, narrower columns for one without.
    """
    from rich.measure import Measurement
    from rich.text import Text

    low, high = [], []
    for number, cells in enumerate(zip(map(Text, table.columns), *rows, strict=True)):
        sizes = [Measurement.get(out, out.options.update(width=MAX_WIDTH), text) for text in cells]
        high.append(max(size.maximum for size in sizes))
        low.append(high[-1] if number < table.unbroken else max(size.minimum for size in sizes))
    spare = out.width - 3 * len(low) - 1 - sum(low)  # 3: a border and two blanks
    if spare < 0 and any(table.columns):
        return None
    for taken, number in enumerate(sorted(range(len(low)), key=lambda number: high[number] - low[number])):
        share = min(high[number] - low[number], spare // (len(low) - taken))
        low[number], spare = low[number] + share, spare - share
    return low


def reflowed(text: str) -> str:
    """Return a docstring with one line for each paragraph, list item (with a dash) and table row."""
    return re.sub(r"(?<=[^\n])\n *(?=[^\s|-])", " ", text)


def cell(value: object) -> str:
    """Return a value as it stands in a table: floats with six significant digits, None as a dash."""
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else value if isinstance(value, str) else str(value)


@contextmanager
def status(first: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with a text that can change; nothing where there is no terminal."""
    from rich.text import Text  # a file may be named like markup

    with console(stderr=True).status(Text(first)) as spinner:
        yield lambda text: spinner.update(Text(text))


@contextmanager
def progress(title: str) -> Iterator[Callable[..., None]]:
    """Show a progress bar, and yield a function that takes the amount done, the total and, if it is new, the title."""
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

        def tick(done: float, total: float, description: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=description)

        yield tick


def parameters(kinds: Mapping[str, Callable[..., object]], as_json: bool) -> None:
    """Print one table for each titled class or function: its parameters with types, defaults and meanings."""
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
