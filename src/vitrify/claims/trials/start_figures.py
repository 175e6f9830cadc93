"""The figure of starts of training: a column for each problem."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.trials.starts import MAX_DISTANCE, MAX_EXCESS
from vitrify.encoding import JsonObject
from vitrify.learn.figures import by_step, reference_line

SHADES = ("#c6dbef", "#9ecae1", "#6baed6", "#3182bd", "#08519c")  # of the noises in a figure
MIN_DRAWN = 1e-5  # smaller and negative excesses are drawn here
CORNERS = {  # of the bottom panels: position and alignment of each text
    "as built: kept, repaired, found": (0.02, 0.31, "left"),
    "learned another way": (0.02, 0.93, "left"),
    "not learned": (0.99, 0.93, "right"),
}


def draw_column(column: Array, name: str, data: JsonObject) -> None:
    """Draw one problem: excess, angle and difference in kind by step, and the last against the first at the end."""
    excess, turn, kind, ends = column
    column[0].set_title(f"{name}\n{_caption(data['summary'])}", fontsize=9)
    for start, (color, style) in _styles(data).items():
        own = data["starts"][start]
        for axes, what in ((excess, "excess"), (turn, "turn"), (kind, "kind")):
            least = MIN_DRAWN if what == "excess" else -np.inf
            low, middle, high = np.maximum(np.array(own[what], dtype=float), least)
            axes.plot(data["steps"], middle, color=color, linestyle=style, label=start)
            axes.fill_between(data["steps"], low, high, color=color, alpha=0.15, linewidth=0)
        across = np.maximum(np.array(own["end excess"], dtype=float), MIN_DRAWN)
        ends.scatter(across, own["end kind"], s=18, color=color, alpha=0.8)
    for axes in (excess, turn, kind):
        by_step(axes)
    excess.set(yscale="log", ylim=(MIN_DRAWN / 2, 30))
    reference_line(excess, 1.0, "uniform guess", at=0.01)
    reference_line(excess, MAX_EXCESS, "5 %: solved", at=0.01)
    for axes, random in ((turn, "right angle"), (kind, "random net")):
        axes.set_ylim(0, 1.3)
        reference_line(axes, MAX_DISTANCE, "threshold")
        reference_line(axes, 1.0, random)
    ends.set(xscale="log", xlim=(MIN_DRAWN / 2, 20), ylim=(-0.04, 1.3))
    ends.axvline(MAX_EXCESS, color="black", linestyle=":", linewidth=1)
    reference_line(ends, MAX_DISTANCE, "")
    for text, (x, y, side) in CORNERS.items():
        ends.text(x, y, text, transform=ends.transAxes, fontsize=8, ha=side, style="italic")
    ends.set_xlabel("excess at the end (over the uniform predictor's)", fontsize=9)


def _caption(summary: JsonObject) -> str:
    """Return the summary of a problem in words."""
    counts = {what: f"{value[0]} of {value[1]}" for what, value in summary.items() if isinstance(value, list)}
    rate, noise = (
        "none" if summary[what] is None else f"{summary[what]:g}"
        for what in ("largest rate kept", "largest noise repaired by half")
    )
    return (
        f"preserved {counts['preserved']}, to the rate {rate}\nhalf repaired to noise {noise}\n"
        f"from scratch: loss {counts['loss reached from scratch']}, "
        f"weights {summary['found in weights'][0]}, kind {summary['found in kind'][0]}"
    )


def _styles(data: JsonObject) -> dict[str, tuple[str, str]]:
    """Return color and line style by start: the built net at the judged and the largest rate, noises, scratch."""
    built = [start for start in data["starts"] if start.startswith("built")]
    noisy = [start for start in data["starts"] if start.startswith("noise")]
    styles = {f"built, rate {data['rate']:g}": ("black", "-"), built[-1]: ("grey", "--")}
    styles |= {start: (shade, "-") for start, shade in zip(noisy, SHADES[-len(noisy) :], strict=True)}
    return styles | {data["best"]: ("#d95f02", "-")}
