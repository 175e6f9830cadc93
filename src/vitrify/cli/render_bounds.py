"""What `vitrify bound` and `vitrify refute` print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vitrify.cli.render import console, json_line

if TYPE_CHECKING:
    from vitrify.bounds.calculators.catalogue import Bound, Reading
    from vitrify.bounds.nets import NetSearch
    from vitrify.registry import Headline


def bounds(known: Sequence[Headline], as_json: bool) -> None:
    """All bounds with their status."""
    from rich.table import Table

    from vitrify.bounds.calculators.catalogue import shown

    if as_json:
        json_line([{"name": shown(h), "status": h.fields["status"], "title": h.title} for h in known])
        return
    table = Table("bound", "status", "what it says")
    for headline in known:
        table.add_row(shown(headline), headline.fields["status"], headline.title)
    console().print(table)


def bound(headline: Headline, found: Bound, sizes: Mapping[str, float], reading: Reading, as_json: bool) -> None:
    """One bound at given sizes."""
    from rich.table import Table

    from vitrify.bounds.calculators.catalogue import EXPLAINED, shown

    if as_json:
        json_line(
            {
                "name": shown(headline),
                "title": headline.title,
                "status": found.status,
                "parameters": dict(sizes),
                "figures": dict(reading.figures),
                "says": reading.says,
                "statement": headline.section("Statement"),
                "assumes": headline.section("Assumes"),
                "source": headline.section("Source"),
            }
        )
        return
    out = console()
    out.print(f"[bold]{shown(headline)}[/bold]: {headline.title}")
    table = Table("quantity", "value", title="sizes and figures", title_justify="left")
    for parameter in found.parameters:
        table.add_row(f"{parameter.name}: {parameter.meaning}", f"{sizes[parameter.name]:,.15g}")
    for name, figure in reading.figures.items():
        table.add_row(name, figure if isinstance(figure, str) else f"{figure:,.6g}")
    out.print(table)
    out.print(reading.says, style="bold", markup=False)
    out.print(f"{found.status}: {EXPLAINED[found.status]}", markup=False)
    for word in ("Statement", "Assumes", "Source"):
        out.print(f"{word}: {headline.section(word)}", markup=False)


def refutation(found: NetSearch, as_json: bool) -> None:
    """What a refuter found."""
    from rich.table import Table

    if as_json:
        json_line(found.to_json())
        return
    out = console()
    out.print(f"[bold]{found.net}[/bold] at {found.bits} bits, {found.search.task}, size {found.size}")
    out.print(str(found.search), markup=False)
    data = found.to_json()["refutation"]
    if data is None:
        return
    table = Table("input", "right answer", f"at {found.bits} bits", "the net itself")
    for row in data:
        table.add_row(" ".join(row["input"]), str(row["answer"]), row["quantised"], row["net"])
    out.print(table)
