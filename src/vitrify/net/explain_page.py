"""An explanation of a net, and the same as a page of text, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from vitrify.encoding import JsonObject

WIDTH = 100


@dataclass(frozen=True)
class SpaceLine:
    """A space: its dimensions, and the moments (0 after embedding, then after each half layer) it exists."""

    name: str
    kind: str
    dims: str
    born: int
    dies: int
    content: str | None  # of an embedded space


@dataclass(frozen=True)
class HeadLines:
    """A head: its block and index, its kind of attention, the keys it attends to, the values it copies."""

    location: str
    name: str
    attention: str
    attends_to: tuple[str, ...]
    sink: str | None
    copies: tuple[str, ...]


@dataclass(frozen=True)
class UnitsLines:
    """A run of hidden units: their location and purpose, a line for each unit, and the constant they add."""

    location: str
    name: str
    lines: tuple[str, ...]
    always: str | None
    left_out: int


@dataclass(frozen=True)
class Explanation:
    """The explanation of a net, part by part."""

    name: str
    tag: str
    what: str
    moments: int
    spaces: tuple[SpaceLine, ...]
    heads: tuple[HeadLines, ...]
    cells: tuple[UnitsLines, ...]
    units: tuple[UnitsLines, ...]
    readout: tuple[str, ...]
    measured: tuple[str, ...]  # of a net without labels, on random words
    left_out: dict[str, int]  # the number of spaces, heads, runs of units and readout symbols that are not shown

    def to_json(self) -> JsonObject:
        """Return the explanation as plain JSON data."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(page(self))

    def _repr_html_(self) -> str:
        from vitrify.markup import card, folded, table, tag, verbatim

        spaces = [(s.name, s.kind, s.dims, s.content or "") for s in self.spaces]
        heads = [(h.location, h.name, "; ".join(h.attends_to), ", ".join(h.copies)) for h in self.heads]
        pieces = [tag("div", self.what, class_="said")]
        if heads:
            pieces.append(table(["head", "does", "attends to", "copies"], heads, "heads"))
        if spaces:
            pieces.append(
                folded(f"{len(spaces)} spaces", table(["space", "kind", "dimensions", "is"], spaces, "spaces"))
            )
        for part in (*self.cells, *self.units):
            lines = [*part.lines, *([f"always: {part.always}"] if part.always else [])]
            pieces.append(folded(f"{part.location}: {part.name}", verbatim("\n".join(lines))))
        return card(self.name, *pieces, folded("readout", verbatim("\n".join(self.readout))))


def page(explanation: Explanation) -> Iterator[str]:
    """The lines of an explanation."""
    yield explanation.name
    yield from _folded("  ", explanation.what)
    if explanation.spaces:
        yield ""
        yield "spaces" if explanation.tag == "recurrent" else "residual stream"
        yield from _strips(explanation)
    for head in explanation.heads:
        yield ""
        yield from _folded(f"head {head.location}  ", f"{head.name}  [{head.attention}]")
        for title, lines in (
            ("attends to", head.attends_to),
            ("sink", [head.sink] if head.sink else []),
            ("copies", head.copies),
        ):
            for i, line in enumerate(lines):
                yield from _folded(f"  {title if i == 0 else '':<11}", line)
    yield from _more("heads", explanation.left_out["heads"])
    for units in (*explanation.cells, *explanation.units):
        yield ""
        yield from _folded("", f"{units.location}: {units.name}")
        for line in units.lines:
            yield from _folded("  ", line)
        yield from _more("", units.left_out)
        if units.always:
            yield from _folded("  always: ", units.always)
    yield from _more("runs of units", explanation.left_out["units"])
    if explanation.measured:
        yield ""
        yield f"measured {explanation.measured[0]}"
        for line in explanation.measured[1:]:
            yield from _folded("  ", line)
    yield ""
    yield "readout"
    for line in explanation.readout:
        yield from _folded("  ", line)
    yield from _more("", explanation.left_out["readout"])


def _strips(explanation: Explanation) -> Iterator[str]:
    """A line for each space, with a mark for every moment at which it is there: embedding, then attention and MLP."""
    longest = max(len(s.name) for s in explanation.spaces)
    name, kind = min(longest, 28), max(len(s.kind) for s in explanation.spaces)
    dims = min(max(len("dims"), *(len(s.dims) for s in explanation.spaces)), 16)
    half, title = ("h", "h: the state") if explanation.tag == "recurrent" else ("a", "a: after attention")
    columns = explanation.moments // 2
    header = ("e " + " ".join([f"{half}m"] * columns))[: explanation.moments + columns]
    yield from _folded(f"  {'space':<{name}} {'kind':<{kind}} {'dims':<{dims}} ", header)
    for s in explanation.spaces:
        marks = ["█" if s.born <= moment <= s.dies else "·" for moment in range(explanation.moments)]
        strip = marks[0] + "".join((" " if at % 2 else "") + mark for at, mark in enumerate(marks[1:], start=1))
        begin = f"  {_short(s.name, name):<{name}} {s.kind:<{kind}} {_short(s.dims, dims):<{dims}} "
        yield from _folded(begin, f"{strip}  {s.content or ''}".rstrip())
    yield from _more("spaces", explanation.left_out["spaces"])
    title += ", m: after the MLP" * (explanation.moments > 2)
    yield f"  (e: after embedding, {title}; █ where the space holds its value)"


def _more(what: str, count: int) -> Iterator[str]:
    if count:
        yield f"  … and {count} more {what}".rstrip() + " (--all)"


def _short(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"


def _folded(begin: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=begin, subsequent_indent=" " * min(len(begin) + 2, 44), break_on_hyphens=False
    ) or [begin]
