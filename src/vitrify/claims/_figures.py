"""Kinds of figures of claims about built nets, drawn from what their checks measured.

A figure is a row of panels: `show(points("{} states", "units", "states", "units", "xy"), …)`. A panel reads its numbers
with readers: the name of a quantity (`"units"`; `"sizes[2]"` and `"sizes:gates"` are an entry of it), a pattern with
the number in a subject's name (`"{} states"`), or a function of name and evidence of a subject. `log` names the axes
that are logarithmic: "x", "y" or "xy", to base 2 with a 2 before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from vitrify.certification.evidence import Evidence
from vitrify.learn import figures as drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vitrify.claims.catalogue import Subject

Reader: TypeAlias = str | Callable[[str, Evidence], Any]
Several: TypeAlias = tuple[str, ...] | Mapping[str, Reader]  # quantities, or readers by name
Law: TypeAlias = Callable[[float], float]
Panel: TypeAlias = Callable[["Axes", Evidence], None]

NAMES = {"d_model": "width", "attention_layers": "attention layers"}
MAX_NAME = 38  # letters of a name in a legend
MAX_NAMES = 8  # in a legend
SAMPLES = 120  # points of a law
SIGN: Mapping[str, Any] = {"s": 26, "alpha": 0.8, "linewidth": 0}


def show(*panels: Panel, columns: int = 2, title: str = "", height: float = 3.3) -> Callable[[Evidence], Figure]:
    """Return what makes a figure of some evidence: its panels, in rows."""

    def make(evidence: Evidence) -> Figure:
        wide = min(columns, len(panels))
        figure, grid = drawing.sheet(-(-len(panels) // wide), wide, title, height=height, width=4.8)
        for axes, panel in zip(grid.flat, panels, strict=False):
            panel(axes, evidence)
        for axes in list(grid.flat)[len(panels) :]:
            axes.remove()
        return figure

    return make


def read(reader: Reader, name: str, part: Evidence) -> Any:
    """Return what a reader finds at a subject; None where there is nothing."""
    if not isinstance(reader, str):
        return reader(name, part)
    if "{}" in reader:
        match = re.search(re.escape(reader).replace(r"\{\}", r"([\d.,]*\d)"), name)
        return float(match[1].replace(",", "")) if match else None
    base, mark, key = re.fullmatch(r"(.*?)(?:(\[|:)([^\]]+)\]?)?", reader).groups()  # type: ignore[union-attr]
    value = part.measured(reader) if part.quantity(reader) else part.measured(base)
    if value is None or part.quantity(reader) or not mark:
        return value
    return value[int(key)] if mark == "[" else value.get(key)


def declared(name: str) -> Reader:
    """Return the reader of what is declared of a quantity."""
    return lambda _, part: getattr(part.quantity(name), "declared", None)


def named(pattern: str, default: str = "") -> Callable[[str], str]:
    """Return what a pattern finds in a subject's name: its first group."""

    def find(name: str) -> str:
        match = re.search(pattern, name)
        return match[1] if match else default

    return find


def either(name: str, yes: str, no: str) -> Callable[[str, Evidence], str]:
    """Return a name by the truth of a quantity."""
    return lambda _, part: yes if part.measured(name) else no


def last_word(name: str) -> str:
    """Return what a subject's name ends in after the last comma."""
    return name.rsplit(", ", 1)[-1]


def dress(axes: Axes, pairs: Sequence[tuple[float, float]], x: str, y: str, log: str = "", title: str = "") -> None:
    """Label axes that show some points, and set their scales and limits."""
    if "x" in log:
        axes.set_xscale("log", base=2 if "2" in log else 10)
    if "y" in log:
        axes.set_yscale("log", base=2 if "2y" in log else 10)
    ends = np.array(pairs, dtype=float).reshape(-1, 2)
    if len(ends) and "x" not in log:
        axes.set_xlim(min(0, 1.05 * ends[:, 0].min()), 1.06 * max(ends[:, 0].max(), 1e-12))
    if len(ends) and "y" not in log:
        axes.set_ylim(min(0, 1.08 * ends[:, 1].min()), max(1.15 * ends[:, 1].max(), 1e-12))
    axes.set(xlabel=x, ylabel=y, title=title)
    handles, names = axes.get_legend_handles_labels()
    if names:
        axes.legend(handles[:MAX_NAMES], names[:MAX_NAMES], fontsize=8)


def points(
    x: Reader,
    y: Reader | Several,
    xlabel: str,
    ylabel: str,
    log: str = "",
    *,
    by: Callable[..., str] | None = None,
    laws: Mapping[str, Law] | None = None,
    joined: bool = False,
    only: str = "",
) -> Panel:
    """Return the panel with a point for each subject: one quantity against another, beside laws.

    `y` may be several quantities, by name. Otherwise `by` names the series of a subject. `only` is a part of the names
    of those that are shown.
    """
    readers = _named(y)

    def draw(axes: Axes, evidence: Evidence) -> None:
        series: dict[str, list[tuple[float, float]]] = {}
        for name, part in evidence.parts.items():
            for label, reader in readers.items() if only in name else ():
                pair = read(x, name, part), read(reader, name, part)
                if all(_number(each) for each in pair):
                    series.setdefault(label or _group(by, name, part), []).append(pair)
        _all_series(axes, series, joined)
        _finish(axes, [pair for pairs in series.values() for pair in pairs], (xlabel, ylabel, log), laws)

    return draw


def curves(
    pattern: str,
    pick: str | int | Mapping[str, str] | None,
    xlabel: str,
    ylabel: str,
    log: str = "",
    *,
    by: Callable[..., str] | None = None,
    laws: Mapping[str, Law] | None = None,
) -> Panel:
    """Return the panel with a curve for each subject, over the number in the names of its quantities (`"n = {}"`).

    `pick` says which entry of the quantity is drawn, or which ones by name. Curves that are the same are one.
    """
    wanted = pick if isinstance(pick, Mapping) else {"": pick}

    def draw(axes: Axes, evidence: Evidence) -> None:
        lines: dict[tuple[tuple[float, float], ...], list[str]] = {}
        for name, part in evidence.parts.items():
            for label, key in wanted.items():
                pairs = [(at, _entry(each, key)) for at, each in _numbered(part, pattern)]
                line = tuple(sorted((at, value) for at, value in pairs if _number(value)))
                if line:
                    own = _group(by, name, part, name if len(evidence.parts) > 1 else "")
                    lines.setdefault(line, []).append(": ".join(filter(None, (own, label))))
        _lines(axes, lines)
        _finish(axes, [pair for line in lines for pair in line], (xlabel, ylabel, log), laws)

    return draw


def sequence(
    quantity: Reader,
    xlabel: str,
    ylabel: str,
    log: str = "",
    *,
    at: Sequence[float] | Callable[[Evidence], Sequence[float]] = range(1, 1000),
    laws: Mapping[str, Law] | None = None,
) -> Panel:
    """Return the panel with a curve for each subject through the entries of a quantity, over the numbers `at`."""

    def draw(axes: Axes, evidence: Evidence) -> None:
        lines: dict[tuple[tuple[float, float], ...], list[str]] = {}
        for name, part in evidence.parts.items():
            values = read(quantity, name, part)
            if isinstance(values, list | tuple) and values:
                places = at(part) if callable(at) else at
                line = tuple((float(x), float(value)) for x, value in zip(places, values, strict=False))
                lines.setdefault(line, []).append(name)
        _lines(axes, lines)
        _finish(axes, [pair for line in lines for pair in line], (xlabel, ylabel, log), laws)

    return draw


def bars(several: Several, ylabel: str, log: str = "") -> Panel:
    """Return the panel with bars for each subject, side by side for each quantity."""
    quantities = _named(several)

    def draw(axes: Axes, evidence: Evidence) -> None:
        rows: dict[str, list[Any]] = {}
        for name, part in evidence.parts.items():
            values = [read(reader, name, part) for reader in quantities.values()]
            if any(_number(value) for value in values):
                rows.setdefault(_brief(name), values)
        wide = 0.8 / len(quantities)
        for number, label in enumerate(quantities):
            heights = [values[number] if _number(values[number]) else np.nan for values in rows.values()]
            places = np.arange(len(rows)) + (number - (len(quantities) - 1) / 2) * wide
            axes.bar(places, heights, 0.92 * wide, color=f"C{number}", label=label if len(quantities) > 1 else "_bars")
            axes.plot(places, heights, "_", color=f"C{number}", markersize=4)
        axes.set_xticks(range(len(rows)), rows, rotation=30, ha="right", fontsize=7)
        axes.set_xlim(-0.6, len(rows) - 0.4)
        heights = [value for values in rows.values() for value in values if _number(value)]
        dress(axes, [], "", ylabel, log)
        if "y" not in log:
            axes.set_ylim(0, 1.15 * max(heights))

    return draw


def listed(readers: Mapping[str, Reader], ylabel: str, log: str = "") -> Panel:
    """Return the panel with a bar for each of some quantities of the first subject."""

    def draw(axes: Axes, evidence: Evidence) -> None:
        name, part = next(iter(evidence.parts.items()))
        values = {label: read(reader, name, part) for label, reader in readers.items()}
        shown = {label: value for label, value in values.items() if _number(value)}
        axes.bar(range(len(shown)), list(shown.values()), 0.7, color="C0")
        axes.set_xticks(range(len(shown)), list(shown), rotation=30, ha="right", fontsize=7)
        dress(axes, [], "", ylabel, log)

    return draw


def layers_of_automata(axes: Axes, _: Evidence) -> None:
    """Draw the layers that the constructions declare for automata, against the length of their words."""
    from vitrify.constructions.catalogue import chosen
    from vitrify.spec.automata.automaton import Automaton
    from vitrify.spec.automata.families import cyclic, gridworld, symmetric_group

    lengths = [2**power for power in range(2, 11)]
    machines: dict[str, tuple[Automaton, str]] = {
        "any automaton: log-depth": (symmetric_group(5), "log-depth"),
        "solvable (S4): cascade": (symmetric_group(4), "cascade"),
        "corridor of 5 cells": (gridworld(5), "gridworld"),
        "commutative: counter modulo 3": (cyclic(3), "commutative"),
    }
    for number, (label, (machine, construction)) in enumerate(machines.items()):
        sizes = [chosen(machine, construction).sizes(machine, max_length=length) for length in lengths]
        layers: list[Any] = [each.exact.get("layers", each.at_most.get("layers")) for each in sizes]
        axes.plot(lengths, layers, color=f"C{number}", marker="o", markersize=3.5, linewidth=1.2, label=label)
    dress(axes, [(4, 12)], "length T", "layers", "2x", "layers that each construction declares")


def grid(rows: Callable[[Evidence], tuple[Sequence[str], Sequence[str], Any]], title: str) -> Panel:
    """Return the panel with a matrix of shares: `rows` makes names of rows, of columns, and values from evidence."""

    def draw(axes: Axes, evidence: Evidence) -> None:
        names, columns, values = rows(evidence)
        drawing.shades(axes, values)
        axes.set_xticks(range(len(columns)), columns, fontsize=7, rotation=30 if max(map(len, columns)) > 3 else 0)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.set_title(title)

    return draw


def attention_of(
    subjects: Callable[[], Iterator[Subject]], *heads: tuple[int, int], word: str | None = None, number: int = 0
) -> tuple[Panel, ...]:
    """Return a panel for each of some heads (block, index) of a subject's net: what positions attend to in a word.

    Without a word of one-letter symbols, the task draws one.
    """

    def pattern(block: int, index: int) -> Panel:
        def draw(axes: Axes, _: Evidence) -> None:
            from itertools import islice

            from vitrify.net.inference import trace

            subject = next(islice(subjects(), number, None))
            net, rng = subject.weights, np.random.default_rng(1)
            length = getattr(subject.spec, "length", net.architecture.max_length)
            seen = trace(net, list(word) if word else subject.spec.draw(rng, length))
            label = next((h.name for h in net.labels.heads if (h.block, h.index) == (block, index)), f"head {index}")
            drawing.shades(axes, seen[f"blocks.{block}.attn.hook_pattern"][index])
            tokens = [each.replace("<", "‹").replace(">", "›") for each in seen.tokens]
            for set_ticks in (axes.set_xticks, axes.set_yticks):
                set_ticks(range(len(tokens)), tokens, fontsize=7)
            axes.set(title=f"layer {block + 1}: {label}", xlabel="attends to", ylabel="position")

        return draw

    return tuple(pattern(*head) for head in heads)


def bits_sent(sender: str, what: str = "bits that the answer takes") -> Panel:
    """Return the panel of a lower bound: bits that are sent against those that are needed, and who was found to err."""
    by, laws = either("refuted", "an error was found", "no error"), {"as many as needed": lambda bits: bits}
    return points("needed", "bits", what, f"bits {sender}", "2x2y", by=by, laws=laws)


def circuits(**laws: Law) -> tuple[Panel, Panel]:
    """Return the panels of circuits for nets: gates and depth against the length."""
    gates = curves("n = {}", "gates", "length n", "gates", "2xy", laws=laws or {"n²": lambda n: n**2})
    return gates, curves("n = {}", "depth", "length n", "depth of the circuit", "2x")


# Parts of panels


def _named(readers: Reader | Several) -> Mapping[str, Reader]:
    """Return readers by the names of their series; one alone has none."""
    if isinstance(readers, Mapping):
        return readers
    return {NAMES.get(each, each): each for each in readers} if isinstance(readers, tuple) else {"": readers}


def _all_series(axes: Axes, series: Mapping[str, Sequence[tuple[float, float]]], joined: bool) -> None:
    for number, (label, pairs) in enumerate(series.items()):
        across, up = zip(*sorted(pairs), strict=True)
        color, name = f"C{number % 10}", _brief(label) or "_points"
        if joined:
            axes.plot(across, up, color=color, marker="o", markersize=4, label=name)
        else:
            axes.scatter(across, up, color=color, label=name, **SIGN)


def _lines(axes: Axes, lines: Mapping[tuple[tuple[float, float], ...], Sequence[str]]) -> None:
    for number, (line, names) in enumerate(lines.items()):
        others = list(dict.fromkeys(names))
        label = _brief(others[0]) + (f" and {len(others) - 1} more" if len(others) > 1 else "")
        color = f"C{number % 10}"
        axes.plot(*zip(*line, strict=True), color=color, marker="o", markersize=3.5, linewidth=1.2, label=label)


def _finish(
    axes: Axes, pairs: Sequence[tuple[float, float]], look: tuple[str, str, str], laws: Mapping[str, Law] | None
) -> None:
    """Draw laws as dashed lines over the range of the points, and dress the axes."""
    ends = [at for at, _ in pairs]
    if ends and laws:
        low, high = min(ends), max(ends)
        low, high = (low, high) if high > low else (low / 2, 2 * high)
        across = np.geomspace(low, high, SAMPLES) if "x" in look[2] else np.linspace(low, high, SAMPLES)
        for number, (label, law) in enumerate(laws.items()):
            up = [float(law(float(at))) for at in across]
            grey = ("black", "0.45", "0.6")[number % 3]
            axes.plot(across, up, "--", color=grey, linewidth=1.1, label=label, zorder=0)
    dress(axes, pairs, *look)


def _numbered(part: Evidence, pattern: str) -> Iterator[tuple[float, Any]]:
    """Yield the number in the name of each quantity that fits a pattern, and what was measured."""
    form = re.compile(re.escape(pattern).replace(r"\{\}", r"([\d.,]*\d)"))
    for each in part.quantities:
        match = form.fullmatch(each.name)
        if match:
            yield float(match[1].replace(",", "")), each.measured


def _entry(value: Any, key: str | int | None) -> Any:
    if isinstance(value, Mapping):
        return value.get(key)
    if isinstance(value, list | tuple):
        return value[key] if isinstance(key, int) else None
    return value if key is None else None


def _group(by: Callable[..., str] | None, name: str, part: Evidence, default: str = "") -> str:
    if by is None:
        return default
    try:
        return by(name, part)
    except TypeError:
        return by(name)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _brief(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
