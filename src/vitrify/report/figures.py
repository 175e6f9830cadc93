"""Figures of claims for pages: the drawing as SVG, what can be read off it as data beside it, and a small picture.

There is one drawing: what the claim's own `draw` makes or, for a claim without one, `promises.py`. Here its lines,
points and images get names in the SVG, and the same names, with the numbers and their places on the page, go into the
data, so that a script can say what is under the pointer and hide a series without drawing anything again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from vitrify.claims.catalogue import claim_of
from vitrify.learn.figures import made
from vitrify.registry import Headline
from vitrify.report.evidence import SOURCES
from vitrify.report.files import put

DRAWN_BY = ("learn/figures.py", "report/figures.py", "report/promises.py")
SMALL = 360  # pixels that the small picture is wide
COLOURS = 64  # of the small picture


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

    def find(self, headline: Headline, data: Mapping[str, Any]) -> Drawing | None:
        """The figure of some evidence, if it was drawn."""
        svg, points, small = self._paths(headline, data)
        if not small.exists():  # the last to be written
            return None
        return Drawing(svg.read_text(encoding="utf-8"), points.read_text(encoding="utf-8"), small.read_bytes())

    def draw(self, headline: Headline, data: Mapping[str, Any]) -> None:
        """Draw the figure of some evidence and keep it."""
        drawing, (svg, points, small) = drawn(headline, data), self._paths(headline, data)
        put(svg, drawing.svg)
        put(points, drawing.points)
        put(small, drawing.small)

    def _paths(self, headline: Headline, data: Mapping[str, Any]) -> tuple[Path, Path, Path]:
        known = hashlib.sha256(json.dumps(data, sort_keys=True).encode())
        for source in (f"claims/{headline.name}.py", *DRAWN_BY):
            known.update((SOURCES / source).read_bytes())
        name = f"{headline.name}.{known.hexdigest()[:16]}"
        return self.folder / f"{name}.svg", self.folder / f"{name}.json", self.folder / f"{name}.png"


def drawn(headline: Headline, data: Mapping[str, Any]) -> Drawing:
    """The figure of a claim's evidence; its own where it has one and there is something to draw."""
    from vitrify.report.promises import glance, promises

    own = claim_of(headline).draw if data.get("shown") else None
    image, small = BytesIO(), BytesIO()
    with made(lambda: own(data["shown"]) if own else promises(data)) as figure:
        names = dict(_named(figure))
        figure.savefig(image, format="svg", facecolor="none", metadata={"Date": None, "Creator": None})
        figure.set_layout_engine("none")  # everything is in its place
        points = _points(figure, names)
        if own:
            figure.savefig(small, format="png", dpi=SMALL / figure.get_figwidth())
    if not own:
        with made(lambda: glance(data)) as figure:
            figure.savefig(small, format="png", dpi=SMALL / figure.get_figwidth())
    text = json.dumps(points, ensure_ascii=False, separators=(",", ":"))
    return Drawing(_inline(image.getvalue().decode()), text.replace("<", "\\u003c"), _fewer_colours(small.getvalue()))


def _named(figure: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Give every artist that shows data a name, in the order of planes; the name, its plane and the artist."""
    for number, plane in enumerate(figure.axes):
        for place, artist in enumerate([*plane.lines, *plane.collections, *plane.images]):
            artist.set_gid(f"plot-{number}-{place}")
            yield f"plot-{number}-{place}", (plane, artist)
    for number, (_, text, handle) in enumerate(_legend(figure)):
        text.set_gid(f"plot-name-{number}")
        handle.set_gid(f"plot-sign-{number}")


def _legend(figure: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The entries of all legends: the plane, if it is of one, the text, and the sign beside it."""
    legends = [(plane, plane.get_legend()) for plane in figure.axes if plane.get_legend()]
    for plane, legend in [*legends, *((None, legend) for legend in figure.legends)]:
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            if handle is not None:
                yield plane, text, handle


def _points(figure: Any, names: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """The data of a figure that was saved: places are in points of the SVG, from its top left corner."""
    width, height = (float(72 * side) for side in figure.get_size_inches())
    entries = list(_legend(figure))
    into = figure.transFigure.inverted()

    def places(transform: Any, pairs: Any) -> list[list[float]]:
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
    about: dict[str, Any], name: str, artist: Any, places: Any, entries: Sequence[tuple[Any, Any, Any]]
) -> None:
    """Add what an artist shows to what is known of its plane."""
    import numpy as np

    if hasattr(artist, "get_extent"):
        values: Any = np.ma.filled(np.ma.asarray(artist.get_array(), dtype=float), np.nan)
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


def _label(artist: Any, entries: Sequence[tuple[Any, Any, Any]]) -> str:
    """The name of a series: its own, else that of the entry of a legend that looks like it."""
    own = str(artist.get_label())
    if own and not own.startswith("_"):
        return own
    colour, style = _look(artist)
    signs = [(plane is artist.axes, _look(handle), text.get_text()) for plane, text, handle in entries]
    for fits in (
        [said for here, looks, said in signs if here and looks == (colour, style)],
        [said for here, looks, said in signs if here and looks[0] == colour],
        [said for _, looks, said in signs if looks == (colour, style)],
        [said for _, looks, said in signs if looks[0] == colour],
    ):
        if fits:
            return str(fits[0]) if len(set(fits)) == 1 else ""
    return ""


def _look(artist: Any) -> tuple[str, str]:
    """The colour of an artist, and how its lines are broken; bands go with whole lines."""
    from matplotlib.colors import to_hex

    style = artist.get_linestyle() if hasattr(artist, "get_linestyle") else "-"
    for source in ("get_color", "get_facecolor", "get_edgecolor"):
        found: Any = getattr(artist, source)() if hasattr(artist, source) else None
        several = found is not None and not isinstance(found, str | tuple) and len(found)
        try:
            return to_hex(found[0] if several else found), style if isinstance(style, str) else "-"
        except (ValueError, TypeError):
            continue
    return "", ""


def _axis(axis: Any) -> dict[str, Any]:
    """What an axis is called, and what its ticks are called where they have names of their own."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    named = {}
    if isinstance(axis.get_major_locator(), FixedLocator) and isinstance(axis.get_major_formatter(), FuncFormatter):
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


def _fewer_colours(png: bytes) -> bytes:
    """The same picture with few colours, a quarter as large."""
    from PIL import Image

    out = BytesIO()
    with Image.open(BytesIO(png)) as picture:
        picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(out, format="png", optimize=True)
    return out.getvalue()
