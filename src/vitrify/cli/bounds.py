"""The commands about lower bounds: published ones, and refuters that break nets."""

from __future__ import annotations

from typing import Annotated

import typer

from vitrify.cli.options import AsJson, Net, Seed, arg, complete, entries, opt
from vitrify.cli.render import TextTable, parameters, show, styled
from vitrify.errors import InputError

TASKS = ("induction", "copy")
BOUND_NAMES = complete(lambda: [name.replace("_", "-") for name in entries("vitrify.bounds.calculators")])


def bound(
    name: Annotated[str | None, arg("Name of a bound. Default: list all.", autocompletion=BOUND_NAMES)] = None,
    values: Annotated[list[str] | None, arg("Sizes to evaluate it at.", "KEY=VALUE…")] = None,
    ask_parameters: Annotated[bool, opt("List the sizes with ranges and meaning, and exit.", "--parameters")] = False,
    survey: Annotated[
        bool, opt("Print the survey of what transformers recognize, as Markdown, and exit.", "--survey")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a published lower bound at given sizes, with its assumptions and its source; or list all bounds."""
    if survey:
        from vitrify.bounds.survey.export import markdown, to_json

        if name is not None:
            raise InputError(f"--survey is about all bounds: leave {name} out")
        if as_json:
            show(True, to_json())
        else:
            typer.echo(markdown())  # as it is: the rows of a Markdown table must not wrap
        return
    from vitrify.bounds.calculators.catalogue import EXPLAINED, bound_of, find, listing, shown, values_of
    from vitrify.parameters import described

    if name is None:
        rows = [(shown(each), each.fields["status"], each.title) for each in listing()]
        data = [dict(zip(("name", "status", "title"), row, strict=True)) for row in rows]
        show(as_json, data, TextTable(("bound", "status", "statement"), rows))
        return
    headline = find(name)
    published = bound_of(headline)
    if ask_parameters:
        parameters({f"bound {name}": published.evaluate}, as_json)
        return
    sizes = values_of(published, values or [])
    reading = published.evaluate(**sizes)
    figures = {key: each if isinstance(each, str) else f"{each:,.6g}" for key, each in reading.figures.items()}
    inputs = [(f"{each.name}: {each.help}", f"{sizes[each.name]:,.15g}") for each in described(published.evaluate)]
    sections = {word: headline.section(word) for word in ("Statement", "Assumes", "Source")}
    data_of_one = {
        "name": shown(headline),
        "title": headline.title,
        "status": published.status,
        "parameters": dict(sizes),
        "figures": dict(reading.figures),
        "says": reading.says,
        **{word.lower(): text for word, text in sections.items()},
    }
    show(
        as_json,
        data_of_one,
        styled("bold", shown(headline), f": {headline.title}"),
        TextTable(("quantity", "value"), [*inputs, *figures.items()], "sizes and figures"),
        styled("bold", reading.says),
        f"{published.status}: {EXPLAINED[published.status]}",
        *(f"{word}: {text}" for word, text in sections.items()),
    )


def refute(
    net: Net,
    task: Annotated[
        str, opt("Task to fail at: induction, or copy (recurrent nets).", autocompletion=complete(lambda: TASKS))
    ],
    bits: Annotated[int, opt("Bits of every number of the quantized net.", min=1)] = 8,
    size: Annotated[int | None, opt("Pairs or letters in an input. Default: as many as fit.", min=1)] = None,
    tries: Annotated[int, opt("Number of inputs to try.", min=2)] = 1 << 16,
    seconds: Annotated[float | None, opt("Time of the lattice search. Default: 256 lattices.", min=0)] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Search for two inputs with the same output but different right answers (one attention layer, or recurrent)."""
    from vitrify.bounds.nets import refute_net
    from vitrify.interop.nets import load

    search = refute_net(load(net), task, bits=bits, size=size, tries=tries, seed=seed, seconds=seconds)
    data = search.to_json()
    rows = [(" ".join(x["input"]), x["answer"], x["quantized"], x["net"]) for x in data["refutation"] or ()]
    show(
        as_json,
        data,
        styled("bold", str(search.net), f" at {search.bits} bits, {search.search.task}, size {search.size}"),
        str(search.search),
        TextTable(("input", "right answer", f"at {search.bits} bits", "the net itself"), rows) if rows else None,
    )
    raise typer.Exit(0 if search.search.refutation is None else 1)


COMMANDS = (bound, refute)
