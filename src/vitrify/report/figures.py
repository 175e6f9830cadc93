"""Figures of claims for pages: what is drawn, as data that the page draws, as SVG, and as a small picture.

A claim draws once, with matplotlib. `content` reads axes, curves, points, bands, matrices and texts off that figure,
in the units of the axes: `figure.js` draws them at the width and in the colours of the page, and makes new ticks when a
part is looked at closely. The SVG is for papers, and for browsers without scripts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

from vitrify.arrays import Array
from vitrify.claims.catalogue import Outcome, claim_of
from vitrify.encoding import JsonObject, canonical
from vitrify.files import put
from vitrify.learn.figures import THEME_COLORS, made
from vitrify.optional import need
from vitrify.registry import Headline
from vitrify.report.evidence import SOURCES

DRAWN_BY = ("learn/figures.py", "report/figures.py", "claims/_figures.py")
SMALL = 360  # pixels that the small picture is wide
COLORS = 64  # of the small picture
SHADES = 32  # of a matrix
TEX = {r"\chi": "χ", r"\lambda": "λ", r"\beta": "β", r"\theta": "θ", r"\eta": "η", r"\alpha": "α", r"\times": "×"}
Artist: TypeAlias = Any  # a figure of matplotlib, axes, or anything that is drawn on them
Entry: TypeAlias = tuple[Artist, Artist, Artist]  # of a legend: its axes, the text, the sign
Mark: TypeAlias = JsonObject  # something drawn on axes: its `kind`, where it is, and its looks


@dataclass(frozen=True)
class Drawing:
    """A figure as a page has it: the data that the page draws, as JSON; SVG, and a PNG for the index."""

    svg: str
    data: str
    small: bytes

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the small picture, from the beginning of its file."""
        return int.from_bytes(self.small[16:20], "big"), int.from_bytes(self.small[20:24], "big")


class Drawings:
    """Figures that were drawn, in a folder, under a digest of what they show and of what draws them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def drawn(self, headline: Headline, outcome: Outcome) -> bool:
        """Return whether the figure of some evidence was drawn, or is known not to be there."""
        return self._paths(headline, outcome)[-1].exists()  # the last to be written

    def find(self, headline: Headline, outcome: Outcome) -> Drawing | None:
        """Return the figure of some evidence, if it was drawn."""
        svg, data, small = self._paths(headline, outcome)
        if not small.exists() or not small.stat().st_size:
            return None
        return Drawing(svg.read_text(encoding="utf-8"), data.read_text(encoding="utf-8"), small.read_bytes())

    def draw(self, headline: Headline, outcome: Outcome) -> None:
        """Draw the figure of some evidence and keep it; of a claim without one, keep an empty picture."""
        drawing, (svg, data, small) = drawn(headline, outcome), self._paths(headline, outcome)
        if drawing:
            put(svg, drawing.svg)
            put(data, drawing.data)
        put(small, drawing.small if drawing else b"")

    def _paths(self, headline: Headline, outcome: Outcome) -> tuple[Path, Path, Path]:
        known = hashlib.sha256(canonical(outcome).encode())
        for source in (f"claims/{headline.name}.py", *DRAWN_BY):
            known.update((SOURCES / source).read_bytes())
        name = f"{headline.name}.{known.hexdigest()[:16]}"
        return self.folder / f"{name}.svg", self.folder / f"{name}.json", self.folder / f"{name}.png"


def drawn(headline: Headline, outcome: Outcome) -> Drawing | None:
    """Return the figure of a claim's evidence; None for a claim without one, or with nothing to draw."""
    make = claim_of(headline).drawing(outcome.evidence)
    if make is None:
        return None
    image, small = BytesIO(), BytesIO()
    with made(make) as figure:
        figure.savefig(image, format="svg", metadata={"Date": None, "Creator": None})
        text = json.dumps(content(figure), ensure_ascii=False, separators=(",", ":"))
        figure.savefig(small, format="png", dpi=SMALL / figure.get_figwidth())
    return Drawing(image.getvalue().decode(), text.replace("<", "\\u003c"), _fewer_colors(small.getvalue()))


def content(figure: Artist) -> JsonObject:
    """Return what is drawn on a figure, in the units of its axes."""
    entries = list(_legend(figure))
    axes = [each for each in figure.axes if each.get_label() != "<colorbar>"]
    title = _plain(figure._suptitle.get_text()) if figure._suptitle else ""
    columns = max(each.get_subplotspec().get_gridspec().ncols for each in axes)
    return {
        "title": title,
        "columns": columns,
        "planes": [_plane(each, entries) for each in axes],
        "legend": [_entry(text, sign) for own, text, sign in entries if own is None],
    }


def _plane(axes: Artist, entries: Sequence[Entry]) -> JsonObject:
    """Return axes with everything that is drawn on them."""
    box = axes.get_window_extent()
    artists = [*axes.images, *axes.patches, *axes.collections, *axes.lines, *axes.texts]
    return {
        "title": _plain(axes.get_title()),
        "ratio": round(float(box.height / box.width), 3),
        "x": _axis(axes.xaxis, axes.get_xlim()),
        "y": _axis(axes.yaxis, axes.get_ylim()),
        "marks": [mark for artist in artists if (mark := _mark(artist, axes, entries))],
        "legend": [_entry(text, sign) for own, text, sign in entries if own is axes],
    }


def _axis(axis: Artist, limits: Sequence[float]) -> JsonObject:
    """Return label, scale and limits of an axis, and its tick labels where they are names."""
    ticker, named = need("matplotlib.ticker", "report"), {}
    fixed = isinstance(axis.get_major_locator(), ticker.FixedLocator)
    if fixed and isinstance(axis.get_major_formatter(), ticker.FuncFormatter):
        ticks = zip(axis.get_majorticklocs().tolist(), axis.get_ticklabels(), strict=False)
        named = {f"{place:g}": _plain(label.get_text()) for place, label in ticks}
    scale = axis.get_scale()
    base = float(axis.get_transform().base) if scale == "log" else 10
    label = _plain(axis.get_label_text())
    ends = [_short(float(end), 9) for end in limits]
    quiet = fixed and not len(axis.get_majorticklocs())
    return {"label": label, "scale": scale, "base": base, "limits": ends, "names": named, "quiet": quiet}


def _mark(artist: Artist, axes: Artist, entries: Sequence[Entry]) -> Mark | None:
    """Return what an artist shows; None for one that shows nothing here."""
    if hasattr(artist, "get_extent"):
        return _matrix(artist)
    if hasattr(artist, "get_text"):
        return _words(artist, axes)
    color, style = _look(artist)
    mark: Mark = {"name": _label(artist, entries), "color": color, "alpha": artist.get_alpha()}
    if hasattr(artist, "get_xydata"):
        return _curve(artist, axes, mark | {"dash": style})
    kind = type(artist).__name__
    if kind == "PathCollection":
        sizes, faces = artist.get_sizes(), artist.get_facecolors()
        each = [_color(face) for face in faces] if len(faces) > 1 else []
        looks = {"kind": "points", "marker": "o", "size": float(sizes[0] ** 0.5), "each": each}
        return mark | looks | _pairs(artist.get_offsets())
    if kind == "LineCollection":
        return mark | {"kind": "segments", "segments": [_ends(path) for path in artist.get_segments()]}
    if hasattr(artist, "get_paths"):
        return mark | {"kind": "area"} | _pairs(artist.get_paths()[0].vertices if artist.get_paths() else [])
    if hasattr(artist, "get_width"):
        return _box(artist, axes, mark)
    return None


def _curve(artist: Artist, axes: Artist, mark: Mark) -> Mark | None:
    """Return a line, or points without one; a line across the axes has one coordinate only."""
    by_x, by_y = artist.get_transform().contains_branch_seperately(axes.transData)
    if by_x != by_y:
        side, value = ("x", artist.get_xdata()) if by_x else ("y", artist.get_ydata())
        return mark | {"kind": "rule", side: _short(float(value[0]))}
    drawn_line = artist.get_linestyle() not in ("None", "", " ")
    size = float(artist.get_markersize())
    marker = artist.get_marker() if artist.get_marker() not in ("None", "", " ", None) else ""
    looks = {"kind": "line" if drawn_line else "points", "marker": str(marker), "size": size}
    steps = {"steps": True} if "steps" in artist.get_drawstyle() else {}
    return mark | looks | steps | {"width": float(artist.get_linewidth())} | _pairs(artist.get_xydata())


def _box(artist: Artist, axes: Artist, mark: Mark) -> Mark | None:
    """Return a rectangle; one that spans the axes has the limits of one axis only."""
    (left, low), (right, high) = artist.get_bbox().get_points().tolist()
    by_x, by_y = artist.get_transform().contains_branch_seperately(axes.transData)
    sides = ({"x": [left, right]} if by_x else {}) | ({"y": [low, high]} if by_y else {})
    return mark | {"kind": "box", "filled": bool(artist.get_fill())} | sides if sides else None


def _matrix(artist: Artist) -> Mark | None:
    """Return a matrix: its values, the shade of each, and the colours of the shades."""
    import numpy as np

    values: Array = np.ma.filled(np.ma.asarray(artist.get_array(), dtype=float), np.nan)
    if values.ndim != 2:
        return None
    shades = np.asarray(artist.norm(values), dtype=float) * (SHADES - 1)
    levels = [[None if cell != cell else int(min(max(round(cell), 0), SHADES - 1)) for cell in row] for row in shades]
    theme = artist.get_cmap().name == THEME_COLORS
    colors = [] if theme else [_color(artist.get_cmap()(at / (SHADES - 1))) for at in range(SHADES)]
    low, high = artist.get_clim()
    left, right, bottom, top = map(float, artist.get_extent())
    cells = [[_short(cell) for cell in row] for row in values.tolist()]
    bar = artist.colorbar.ax.get_ylabel() if artist.colorbar else ""
    ends = [left, bottom, right, top] if artist.origin == "upper" else [left, top, right, bottom]
    scale = {"label": bar, "range": [_short(float(low)), _short(float(high))]}
    return {"kind": "matrix", "ends": ends, "values": cells, "levels": levels, "colors": colors, "scale": scale}


def _words(artist: Artist, axes: Artist) -> Mark | None:
    """Return a text and its place: in the units of an axis, or as a share of the axes."""
    if not artist.get_text().strip():
        return None
    by_x, by_y = artist.get_transform().contains_branch_seperately(axes.transData)
    note = hasattr(artist, "xyann")
    x, y = artist.xy if note else artist.get_position()
    sides = {"x": float(x), "y": float(y), "share": ["" if by_x or note else "x", "" if by_y or note else "y"]}
    looks = {
        "anchor": artist.get_ha(),
        "above": note or artist.get_va() == "bottom",
        "color": _color(artist.get_color()),
    }
    return {"kind": "text", "text": "\n".join(map(_plain, artist.get_text().split("\n")))} | sides | looks


def _legend(figure: Artist) -> Iterator[Entry]:
    """The entries of all legends: the axes, if it is of some, the text, and the sign beside it."""
    legends = [(axes, axes.get_legend()) for axes in figure.axes if axes.get_legend()]
    for axes, legend in [*legends, *((None, legend) for legend in figure.legends)]:
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            if handle is not None:
                yield axes, text, handle


def _entry(text: Artist, sign: Artist) -> JsonObject:
    color, style = _look(sign)
    shape = "o" if type(sign).__name__ == "PathCollection" else "s" if hasattr(sign, "get_width") else ""
    marker = sign.get_marker() if hasattr(sign, "get_marker") else shape
    known = {"name": _plain(text.get_text()), "color": color, "dash": style}
    return known | {"marker": "" if marker in ("None", None) else str(marker)}


def _label(artist: Artist, entries: Sequence[Entry]) -> str:
    """The name of a series: its own, else that of the entry of a legend that looks like it."""
    own = str(artist.get_label())
    if own and not own.startswith("_"):
        return _plain(own)
    color, style = _look(artist)
    signs = [(axes is artist.axes, _look(handle), text.get_text()) for axes, text, handle in entries]
    own_signs = any(here for here, _, _ in signs)  # else the legend of other axes may be meant for these too
    for parts in (2, 1):  # first by colour and style
        fits = [text for here, look, text in signs if here >= own_signs and look[:parts] == (color, style)[:parts]]
        if fits:
            return _plain(str(fits[0])) if len(set(fits)) == 1 else ""
    return ""


def _look(artist: Artist) -> tuple[str, str]:
    """The colour of an artist, and how its lines are broken; bands go with whole lines."""
    style = artist.get_linestyle() if hasattr(artist, "get_linestyle") else "-"
    for source in ("get_color", "get_facecolor", "get_edgecolor"):
        value: Artist = getattr(artist, source)() if hasattr(artist, source) else None
        several = value is not None and not isinstance(value, str | tuple) and len(value)
        color = _color(value[0] if several else value)
        if color:
            return color, style if isinstance(style, str) else "-"
    return "", ""


def _color(value: Artist) -> str:
    """Return a colour by its place in the palette, as ink or a grey of it, or in hexadecimal; "" for none."""
    colors = need("matplotlib.colors", "report")
    try:
        red, green, blue, alpha = colors.to_rgba(value)
    except (ValueError, TypeError):
        return ""
    if not alpha:
        return ""
    name: str = colors.to_hex((red, green, blue))
    palette = [colors.to_hex(each) for each in colors.TABLEAU_COLORS]
    if name in palette:
        return f"C{palette.index(name)}"
    grey = red == green == blue
    return "ink" if name == "#000000" else "muted" if grey and 0.2 < red < 0.8 else name


def _pairs(pairs: Array) -> JsonObject:
    """Return points as two lists; what is no number is null, and breaks a line."""
    import numpy as np

    numbers: Array = np.ma.filled(np.ma.asarray(pairs, dtype=float), np.nan).reshape(-1, 2)
    return {"x": [_short(x) for x in numbers[:, 0].tolist()], "y": [_short(y) for y in numbers[:, 1].tolist()]}


def _ends(path: Array) -> list[float | None]:
    (x, y), (across, up) = path[0], path[-1]
    return [_short(float(each)) for each in (x, y, across, up)]


def _plain(text: str) -> str:
    """Return a text on one line, with letters for the mathematics that figures use.

    >>> _plain("fitted: $T^{-0.51}$ of $W_O^2$")
    'fitted: T⁻⁰·⁵¹ of W_O²'
    """
    words = " ".join(text.split())
    if "$" not in words:
        return words
    for name, letter in TEX.items():
        words = words.replace(name, letter)
    raised = str.maketrans("-0123456789.", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹·")
    words = re.sub(r"\^\{?(-?[\d.]+)\}?", lambda found: found[1].translate(raised), words)
    return words.replace("$", "").replace("{", "").replace("}", "").replace("\\", "")


def _short(value: float, digits: int = 5) -> float | None:
    number = float(f"{value:.{digits}g}") if value == value and abs(value) != float("inf") else None
    return int(number) if number is not None and number == int(number) and abs(number) < 1e15 else number


def _fewer_colors(png: bytes) -> bytes:
    """The same picture with few colours, a quarter as large."""
    from PIL import Image

    out = BytesIO()
    with Image.open(BytesIO(png)) as picture:
        picture.convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE).save(out, format="png", optimize=True)
    return out.getvalue()
