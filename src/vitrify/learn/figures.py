"""Parts of figures: seeds as bands, lines or dots, reference lines, heat maps; of runs, and of claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from vitrify.arrays import Array
from vitrify.encoding import JsonMapping
from vitrify.errors import InputError
from vitrify.intervals import mean_interval
from vitrify.optional import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Corner: TypeAlias = Literal[
    "best", "upper right", "upper left", "lower left", "lower right", "center left", "center right", "center"
]
MAX_COLORS = 10  # combinations with a colour of their own
THEME_COLORS = "vitrify"  # from the paper of a page to its accent
KINDS = (".svg", ".png", ".pdf")
STYLE: Any = {"svg.hashsalt": "vitrify", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}


@contextmanager
def made(make: Callable[[], Figure]) -> Iterator[Figure]:
    """Make a figure in the house's style, to be saved inside."""
    need("matplotlib", "report").use("agg")
    plt = need("matplotlib.pyplot", "report")
    with plt.rc_context(STYLE):
        figure = make()
        try:
            yield figure
        finally:
            plt.close(figure)


def saved(make: Callable[[], Figure], out: Path) -> None:
    """Make a figure in the house's style and save it; the same data give the same bytes."""
    if out.suffix not in KINDS:
        raise InputError(f"a figure is {', '.join(KINDS)}, not {out.name!r}")
    with made(make) as figure:
        figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else {}, dpi=150)


def sheet(rows: int, columns: int, title: str = "", width: float = 4.2, height: float = 3.4) -> tuple[Figure, Array]:
    """A figure of `rows` times `columns` axes, each of that size in inches; the axes as an array [row, column]."""
    figure, grid = need("matplotlib.pyplot", "report").subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False
    )
    if title:
        figure.suptitle(title, fontsize=12)
    return figure, grid


def band(axes: Axes, steps: Sequence[float], values: Array, label: str, color: str, **style: Any) -> None:
    """The mean over members of values [member, step], and between the 10th and the 90th percentile a band."""
    numbers = np.asarray(values, dtype=float)
    low, high = np.nanpercentile(numbers, [10, 90], axis=0)
    axes.plot(steps, np.nanmean(numbers, axis=0), color=color, label=label, **style)
    axes.fill_between(steps, low, high, color=color, alpha=0.2, linewidth=0)


def reference_line(axes: Axes, y: float, name: str, color: str = "black", style: str = ":", at: float = 0.99) -> None:
    """Draw a horizontal line with its name above it, at the fraction `at` of the width."""
    axes.axhline(y, color=color, linestyle=style, linewidth=1)
    side = "right" if at > 0.5 else "left"
    axes.text(at, y, name, transform=axes.get_yaxis_transform(), color=color, fontsize=8, va="bottom", ha=side)


def by_step(axes: Axes) -> None:
    """Steps from 0 on a logarithmic axis."""
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(left=0)
    axes.set_xlabel("training step")


def panel(
    axes: Axes,
    x: Sequence[float] = (),
    groups: Mapping[str, Array] | None = None,
    lines: Mapping[str, float] | None = None,
    *,
    colors: Sequence[str] = (),
    each_seed: bool = False,
    steps: bool = False,
    at: float = 0.99,
    legend: Corner | None = "best",
    size: float = 8,
    style: Mapping[str, Any] | None = None,
    **labels: Any,
) -> None:
    """Draw groups of values [member, x] by label, as bands or as a thin line for each seed, and dress the axes.

    `lines` are horizontal lines by name, `steps` makes a logarithmic axis of training steps, `labels` is what
    `Axes.set` takes, and `legend` is where the legend stands, if there is one.
    """
    for number, (label, values) in enumerate((groups or {}).items()):
        color = colors[number] if colors else f"C{number}"
        if each_seed:
            drawn = axes.plot(x, np.array(values, dtype=float).T, color=color, alpha=0.6, linewidth=1)
            drawn[0].set_label(label)
        else:
            band(axes, x, values, label, color, **(style or {}))
    for name, value in (lines or {}).items():
        reference_line(axes, value, name, at=at)
    if steps:
        by_step(axes)
    axes.set(**labels)
    if legend:
        axes.legend(fontsize=size, loc=legend)


def dots(
    axes: Axes, at: float, values: Array, label: str | None, color: str, spread: float = 0.08, **style: Any
) -> None:
    """Draw the values of all members as dots side by side around a place `at` of the x-axis."""
    numbers = np.array(values, dtype=float)
    across = at + np.linspace(-spread, spread, len(numbers)) if spread else np.full(len(numbers), at)
    axes.plot(across, numbers, **{"marker": "o", "linestyle": "", "color": color, "label": label, **style})


def interval(axes: Axes, at: float, values: Sequence[float], color: str, floor: float = -math.inf) -> None:
    """Draw the values of all members as dots around a place of the x-axis, beside them their mean and its interval.

    What is smaller than `floor` is drawn there, and a mean of nothing but zeros is not drawn.
    """
    numbers = np.array(values, dtype=float)
    spread = at + np.linspace(-0.22, 0.22, len(numbers))
    axes.scatter(spread, np.maximum(numbers, floor), s=18, color=color, alpha=0.8, linewidth=0)
    if numbers.any():
        low, high = np.maximum(mean_interval(values), floor)
        axes.plot([at + 0.33] * 2, [low, high], color=color, linewidth=1.5)
        axes.plot([at + 0.33], [numbers.mean()], marker="_", color=color, markersize=9)


def heat(axes: Axes, matrix: Array, label: str = "", **style: Any) -> None:
    """Draw a matrix in colours, with their scale beside it."""
    image = axes.imshow(np.array(matrix, dtype=float), **style)
    axes.figure.colorbar(image, ax=axes, label=label)


def shades(axes: Axes, matrix: Array, **style: Any) -> None:
    """Draw a matrix of shares in shades of one colour, which a page has its own for."""
    colors = need("matplotlib.colors", "report").LinearSegmentedColormap.from_list(THEME_COLORS, ["white", "#0b6470"])
    axes.imshow(np.array(matrix, dtype=float), **{"vmin": 0, "vmax": 1, "aspect": "auto", "cmap": colors, **style})


def aligned(curves: Sequence[tuple[Sequence[JsonMapping], bool]], quantity: str) -> tuple[list[int], Array]:
    """Return all steps, and values [member, step]: one that is done keeps its last value, of others the rest is NaN."""
    steps = sorted({int(point["step"]) for curve, _ in curves for point in curve})
    place = {step: at for at, step in enumerate(steps)}
    values = np.full((len(curves), len(steps)), np.nan)
    for row, (curve, done) in zip(values, curves, strict=True):
        for point in curve:
            row[place[int(point["step"])]] = point.get(quantity, math.nan)
        if done:
            end = place[int(curve[-1]["step"])]
            row[end:] = row[end]
    return steps, values
