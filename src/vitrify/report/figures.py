"""Figures of claims for pages: the drawing as SVG, what can be read off it as data beside it, and a small picture.

There is one drawing: what the claim's own `draw` makes or, for a claim without one, `promises`: a ring is what was
declared of a subject, a dot what was measured. Here its lines, points and images get names in the SVG, and the same
names, with the numbers and their places on the page, go into the data, so that a script can say what is under the
pointer and hide a series without drawing anything again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from vitrify.arrays import Array
from vitrify.certification.evidence import Evidence
from vitrify.claims.catalogue import Outcome, claim_of
from vitrify.encoding import JsonObject, canonical
from vitrify.files import put
from vitrify.learn.figures import made, sheet
from vitrify.optional import need
from vitrify.registry import Headline
from vitrify.report.evidence import SOURCES

DRAWN_BY = ("learn/figures.py", "report/figures.py")
SMALL = 360  # pixels that the small picture is wide
COLORS = 64  # of the small picture
Artist: TypeAlias = Any  # a figure of matplotlib, axes, or anything that is drawn on them
Entry: TypeAlias = tuple[Artist, Artist, Artist]  # of a legend: its axes, the text, the sign
MAX_PLANES, MAX_SUBJECTS, MAX_LETTERS = 4, 30, 44  # quantities and subjects of a figure, letters of their names
WIDE = 50.0  # times the least that the largest is, from which on an axis is logarithmic
RING, DOT = "#0b6470", "#c2570c"
CASES = "cases tried"  # what is drawn where no numbers were declared


@dataclass(frozen=True)
class Drawing:
    """A figure as a page has it: SVG to stand in the page, the data of its points as JSON, a PNG for the index."""

    svg: str
    points: str
    small: bytes

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the small picture, from the beginning of its file."""
        return int.from_bytes(self.small[16:20], "big"), int.from_bytes(self.small[20:24], "big")


class Drawings:
    """Figures that were drawn, in a folder, under a digest of what they show and of what draws them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, headline: Headline, outcome: Outcome) -> Drawing | None:
        """The figure of some evidence, if it was drawn."""
        svg, points, small = self._paths(headline, outcome)
        if not small.exists():  # the last to be written
            return None
        return Drawing(svg.read_text(encoding="utf-8"), points.read_text(encoding="utf-8"), small.read_bytes())

    def draw(self, headline: Headline, outcome: Outcome) -> None:
        """Draw the figure of some evidence and keep it."""
        drawing, (svg, points, small) = drawn(headline, outcome), self._paths(headline, outcome)
        put(svg, drawing.svg)
        put(points, drawing.points)
        put(small, drawing.small)

    def _paths(self, headline: Headline, outcome: Outcome) -> tuple[Path, Path, Path]:
        known = hashlib.sha256(canonical(outcome).encode())
        for source in (f"claims/{headline.name}.py", *DRAWN_BY):
            known.update((SOURCES / source).read_bytes())
        name = f"{headline.name}.{known.hexdigest()[:16]}"
        return self.folder / f"{name}.svg", self.folder / f"{name}.json", self.folder / f"{name}.png"


def drawn(headline: Headline, outcome: Outcome) -> Drawing:
    """The figure of a claim's evidence; its own where it has one and there is something to draw."""
    data = outcome.evidence.figures
    own = claim_of(headline).draw if data else None
    image, small = BytesIO(), BytesIO()
    with made(lambda: own(data) if own else promises(outcome.evidence)) as figure:
        names = dict(_named(figure))
        figure.savefig(image, format="svg", facecolor="none", metadata={"Date": None, "Creator": None})
        figure.set_layout_engine("none")  # everything is in its place
        points = _points(figure, names)
        if own:
            figure.savefig(small, format="png", dpi=SMALL / figure.get_figwidth())
    if not own:
        with made(lambda: glance(outcome.evidence)) as figure:
            figure.savefig(small, format="png", dpi=SMALL / figure.get_figwidth())
    text = json.dumps(points, ensure_ascii=False, separators=(",", ":"))
    return Drawing(_inline(image.getvalue().decode()), text.replace("<", "\\u003c"), _fewer_colors(small.getvalue()))


def _named(figure: Artist) -> Iterator[tuple[str, tuple[Artist, Artist]]]:
    """Give every artist that shows data a name, in the order of planes; the name, its plane and the artist."""
    for number, plane in enumerate(figure.axes):
        for place, artist in enumerate([*plane.lines, *plane.collections, *plane.images]):
            artist.set_gid(f"plot-{number}-{place}")
            yield f"plot-{number}-{place}", (plane, artist)
    for number, (_, text, handle) in enumerate(_legend(figure)):
        text.set_gid(f"plot-name-{number}")
        handle.set_gid(f"plot-sign-{number}")


def _legend(figure: Artist) -> Iterator[Entry]:
    """The entries of all legends: the plane, if it is of one, the text, and the sign beside it."""
    legends = [(plane, plane.get_legend()) for plane in figure.axes if plane.get_legend()]
    for plane, legend in [*legends, *((None, legend) for legend in figure.legends)]:
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            if handle is not None:
                yield plane, text, handle


def _points(figure: Artist, names: Mapping[str, tuple[Artist, Artist]]) -> JsonObject:
    """The data of a figure that was saved: places are in points of the SVG, from its top left corner."""
    width, height = (float(72 * side) for side in figure.get_size_inches())
    entries = list(_legend(figure))
    into = figure.transFigure.inverted()

    def places(transform: Artist, pairs: Array) -> list[list[float]]:
        return [
            [round(x * width, 1), round((1 - y) * height, 1)] for x, y in into.transform(transform.transform(pairs))
        ]

    planes = []
    for plane in figure.axes:
        (left, low), (right, high) = places(plane.transAxes, [(0, 0), (1, 1)])
        about = {"box": [left, high, right, low], "title": plane.get_title()}
        about |= {"x": _axis(plane.xaxis), "y": _axis(plane.yaxis), "series": [], "images": []}
        for name, (own, artist) in names.items():
            if own is plane:
                _describe(about, name, artist, places, entries)
        planes.append(about)
    legend = [{"name": text.get_text(), "id": number} for number, (_, text, _) in enumerate(entries)]
    return {"size": [width, height], "planes": planes, "legend": legend}


def _describe(
    about: JsonObject,
    name: str,
    artist: Artist,
    places: Callable[[Artist, Array], list[list[float]]],
    entries: Sequence[Entry],
) -> None:
    """Add what an artist shows to what is known of its plane."""
    import numpy as np

    if hasattr(artist, "get_extent"):
        values: Array = np.ma.filled(np.ma.asarray(artist.get_array(), dtype=float), np.nan)
        left, right, bottom, top = artist.get_extent()
        first, last = (top, bottom) if artist.origin == "upper" else (bottom, top)
        if values.ndim == 2:
            corners = places(artist.axes.transData, [(left, first), (right, last)])  # of the first row, and of the last
            cells = [[_short(value) for value in row] for row in values.tolist()]
            about["images"].append({"id": name, "corners": corners, "values": cells})
        return
    if type(artist).__name__ == "PathCollection":
        pairs, transform = np.asarray(artist.get_offsets()), artist.get_offset_transform()
    elif hasattr(artist, "get_xydata"):
        pairs, transform = np.asarray(artist.get_xydata()), artist.get_transform()
    else:
        pairs, transform = np.empty((0, 2)), None  # bands and bars of errors, which can only be hidden
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    points = [[_short(x), _short(y)] for x, y in pairs.tolist()]
    at = places(transform, pairs) if points else []
    about["series"].append({"id": name, "name": _label(artist, entries), "points": points, "at": at})


def _label(artist: Artist, entries: Sequence[Entry]) -> str:
    """The name of a series: its own, else that of the entry of a legend that looks like it."""
    own = str(artist.get_label())
    if own and not own.startswith("_"):
        return own
    color, style = _look(artist)
    signs = [(plane is artist.axes, _look(handle), text.get_text()) for plane, text, handle in entries]
    for near, parts in product((True, False), (2, 1)):  # first those of its own axes, and by colour and style
        fits = [caption for here, look, caption in signs if here >= near and look[:parts] == (color, style)[:parts]]
        if fits:
            return str(fits[0]) if len(set(fits)) == 1 else ""
    return ""


def _look(artist: Artist) -> tuple[str, str]:
    """The colour of an artist, and how its lines are broken; bands go with whole lines."""
    to_hex = need("matplotlib.colors", "report").to_hex
    style = artist.get_linestyle() if hasattr(artist, "get_linestyle") else "-"
    for source in ("get_color", "get_facecolor", "get_edgecolor"):
        value: Artist = getattr(artist, source)() if hasattr(artist, source) else None
        several = value is not None and not isinstance(value, str | tuple) and len(value)
        try:
            return to_hex(value[0] if several else value), style if isinstance(style, str) else "-"
        except (ValueError, TypeError):
            continue
    return "", ""


def _axis(axis: Artist) -> JsonObject:
    """Return the label of an axis, and its tick labels where they are names."""
    ticker, named = need("matplotlib.ticker", "report"), {}
    fixed = isinstance(axis.get_major_locator(), ticker.FixedLocator)
    if fixed and isinstance(axis.get_major_formatter(), ticker.FuncFormatter):
        ticks = zip(axis.get_majorticklocs().tolist(), axis.get_ticklabels(), strict=False)
        named = {f"{place:g}": " ".join(label.get_text().split()) for place, label in ticks}
    return {"label": " ".join(axis.get_label_text().split()), "names": named}


def _short(value: float) -> float | None:
    return float(f"{value:.5g}") if value == value and abs(value) != float("inf") else None


def _inline(svg: str) -> str:
    """SVG that can stand in an HTML page: no prologue, no metadata, no fixed size, no style beyond itself."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return svg.replace("*{stroke", ".plot *{stroke", 1)


def _fewer_colors(png: bytes) -> bytes:
    """The same picture with few colours, a quarter as large."""
    from PIL import Image

    out = BytesIO()
    with Image.open(BytesIO(png)) as picture:
        picture.convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE).save(out, format="png", optimize=True)
    return out.getvalue()


def promises(evidence: Evidence) -> Artist:
    """Declared and measured numbers of the subjects side by side, or the numbers of cases."""
    declared = numbers(evidence)
    shown = declared or {CASES: _tried(evidence)}
    names = [name for name in evidence.parts or shown[CASES] if any(name in pairs for pairs in shown.values())]
    some = names[:MAX_SUBJECTS]
    figure, planes = sheet(1, len(shown), _title(len(names)), height=1.3 + 0.24 * max(len(some), 4))
    letters = min(MAX_LETTERS, max(map(len, some)))
    figure.set_figwidth(2.8 * len(shown) + 0.075 * letters if declared else 6.5)
    for plane, (quantity, pairs) in zip(planes[0], shown.items(), strict=True):
        rows = [at for at, name in enumerate(some) if name in pairs]
        values = _marks(plane, rows, [pairs[some[at]] for at in rows], quantity, (70, 1.6, 16 if declared else 30))
        _frame(plane, some, quantity, values, first=plane is planes[0, 0])
    if declared:
        entries = planes[0, 0].get_legend_handles_labels()
        figure.legend(*entries, loc="outside lower left", ncols=2, fontsize=8, frameon=False)
    return figure


def _marks(
    plane: Artist, rows: Sequence[int], pairs: Sequence[tuple[float, float]], quantity: str, sizes: tuple[float, ...]
) -> list[float]:
    """Draw a ring for each declared and a dot for each measured number, or a line for each number of cases.

    `sizes` are of the ring, its line, and the dot. Return all numbers.
    """
    declared, measured = ([pair[side] for pair in pairs] for side in (0, 1))
    ring, line, dot = sizes
    if quantity == CASES:
        plane.hlines(rows, 0, measured, color=RING, linewidth=1)
        plane.scatter(measured, rows, s=dot, color=RING, label="cases")
    else:
        plane.scatter(declared, rows, s=ring, facecolors="none", edgecolors=RING, linewidths=line, label="declared")
        plane.scatter(measured, rows, s=dot, color=DOT, label="measured")
    return [*declared, *measured]


def numbers(evidence: Evidence) -> dict[str, dict[str, tuple[float, float]]]:
    """The quantities that are numbers, of each the declared and the measured one by subject; the telling ones first."""
    table: dict[str, dict[str, tuple[float, float]]] = {}
    for subject, part in evidence.parts.items():
        for each in part.quantities:
            if each.relation and _number(each.declared) and _number(each.measured):
                table.setdefault(each.name, {})[subject] = (each.declared, each.measured)

    def order(name: str) -> tuple[bool, bool, bool, bool]:
        """Sort first whole numbers, then what differs by subject, is known of several, and is not always 0."""
        pairs = table[name].values()
        sizes = all(isinstance(each, int) for pair in pairs for each in pair)
        return not sizes, len({declared for declared, _ in pairs}) < 2, len(pairs) < 2, not any(map(any, pairs))

    return {name: table[name] for name in sorted(table, key=order)[:MAX_PLANES]}


def glance(evidence: Evidence) -> Artist:
    """The same at a glance, for a small picture: the most telling quantity, without the names of the subjects."""
    quantity, pairs = next(iter(numbers(evidence).items()), (CASES, _tried(evidence)))
    some = list(pairs.values())[:MAX_SUBJECTS]
    figure, planes = sheet(1, 1, width=3.6, height=2.0)
    plane = planes[0, 0]
    _frame(plane, [""] * len(some), quantity, _marks(plane, range(len(some)), some, quantity, (90, 2, 24)), first=False)
    plane.set_xlabel(plane.get_xlabel(), fontsize=15)
    plane.tick_params(axis="x", labelsize=12)
    plane.tick_params(axis="y", length=0)
    return figure


def _tried(evidence: Evidence) -> dict[str, tuple[float, float]]:
    """Return the number of cases of each subject, as numbers that are declared and measured alike."""
    counts = {name: part.cases for name, part in evidence.parts.items()} or {"all subjects": evidence.cases}
    return {name: (count, count) for name, count in counts.items()}


def _frame(plane: Artist, names: Sequence[str], quantity: str, values: Sequence[float], *, first: bool) -> None:
    """The axes of a plane: subjects downwards, the quantity to the right."""
    if min(values) > 0 and max(values) > WIDE * min(values):
        plane.set_xscale("log")
    elif min(values) >= 0:
        plane.set_xlim(left=-0.04 * (max(values) or 1), right=1.08 * (max(values) or 1))
    if all(isinstance(value, int) for value in values) and plane.get_xscale() == "linear":
        plane.locator_params(axis="x", integer=True)
    shortened = [name if len(name) <= MAX_LETTERS else f"{name[: MAX_LETTERS - 1]}…" for name in names]
    plane.set_yticks(range(len(names)), shortened if first else [""] * len(names), fontsize=8)
    plane.set_ylim(len(names) - 0.4, -0.6)
    plane.set_xlabel(quantity if len(quantity) <= MAX_LETTERS else f"{quantity[: MAX_LETTERS - 1]}…", fontsize=9)
    plane.tick_params(axis="x", labelsize=8)
    plane.grid(axis="y", linewidth=0.4, alpha=0.6)
    plane.set_axisbelow(True)


def _title(subjects: int) -> str:
    return f"The first {MAX_SUBJECTS} of {subjects} subjects" if subjects > MAX_SUBJECTS else ""


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
