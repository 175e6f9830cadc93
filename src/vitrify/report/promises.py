"""The figure of a claim that has none of its own: what was declared of each subject, and what was measured.

A ring is what was promised, a dot what was found: a dot in its ring is a promise that was kept. Quantities that differ
between subjects come first, at most four; a claim without numbers shows how many cases were tried on each subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vitrify.learn.figures import sheet
from vitrify.report.subjects import by_subject

MOST, SUBJECTS, WORDS = 4, 30, 44  # planes, lines, letters in the name of a line
WIDE = 50.0  # times the least that the largest is, from which on an axis is logarithmic
RING, DOT = "#0b6470", "#c2570c"


def promises(data: Mapping[str, Any]) -> Any:
    """Declared and measured numbers of the subjects side by side, or the numbers of cases."""
    shown = numbers(data)
    if not shown:
        return _cases(data)
    names = [name for name in by_subject(data) if any(name in pairs for pairs in shown.values())]
    some = names[:SUBJECTS]
    figure, planes = sheet(1, len(shown), _title(len(names)), height=1.3 + 0.24 * max(len(some), 4))
    figure.set_figwidth(2.8 * len(shown) + 0.075 * min(WORDS, max(map(len, some))))
    for plane, (quantity, pairs) in zip(planes[0], shown.items(), strict=True):
        rows = [at for at, name in enumerate(some) if name in pairs]
        declared, measured = ([pairs[some[at]][side] for at in rows] for side in (0, 1))
        plane.scatter(declared, rows, s=70, facecolors="none", edgecolors=RING, linewidths=1.6, label="declared")
        plane.scatter(measured, rows, s=16, color=DOT, label="measured")
        _frame(plane, some, quantity, [*declared, *measured], first=plane is planes[0, 0])
    figure.legend(
        *planes[0, 0].get_legend_handles_labels(), loc="outside lower left", ncols=2, fontsize=8, frameon=False
    )
    return figure


def numbers(data: Mapping[str, Any]) -> dict[str, dict[str, tuple[float, float]]]:
    """The quantities that are numbers, of each the declared and the measured one by subject; the telling ones first."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for subject, quantities in by_subject(data).items():
        for each in quantities:
            if each.promised and _number(each.declared) and _number(each.measured):
                found.setdefault(each.name, {})[subject] = (each.declared, each.measured)

    def dull(name: str) -> tuple[bool, bool, bool, bool]:
        pairs = found[name].values()
        sizes = all(isinstance(each, int) for pair in pairs for each in pair)
        return not sizes, len({declared for declared, _ in pairs}) < 2, len(pairs) < 2, not any(map(any, pairs))

    return {name: found[name] for name in sorted(found, key=dull)[:MOST]}


def glance(data: Mapping[str, Any]) -> Any:
    """The same at a glance, for a small picture: the most telling quantity, without the names of the subjects."""
    shown = dict(list(numbers(data).items())[:1])
    quantity, pairs = next(iter(shown.items()), ("cases tried", {name: (n, n) for name, n in _tried(data).items()}))
    some = list(pairs.values())[:SUBJECTS]
    figure, planes = sheet(1, 1, width=3.6, height=2.0)
    plane, rows = planes[0, 0], range(len(some))
    if shown:
        plane.scatter([declared for declared, _ in some], rows, s=90, facecolors="none", edgecolors=RING, linewidths=2)
    else:
        plane.hlines(rows, 0, [count for count, _ in some], color=RING, linewidth=1)
    plane.scatter([measured for _, measured in some], rows, s=24, color=DOT if shown else RING)
    _frame(plane, [""] * len(some), quantity, [each for pair in some for each in pair], first=False)
    plane.set_xlabel(plane.get_xlabel(), fontsize=15)
    plane.tick_params(axis="x", labelsize=12)
    plane.tick_params(axis="y", length=0)
    return figure


def _tried(data: Mapping[str, Any]) -> dict[str, int]:
    known = {name: int(each["cases"]) for name, each in (data.get("subjects") or {}).items()}
    return known or {"all subjects": int(data["cases"])}


def _cases(data: Mapping[str, Any]) -> Any:
    """How many cases were tried on each subject."""
    known = _tried(data)
    some = list(known)[:SUBJECTS]
    figure, planes = sheet(1, 1, _title(len(known)), width=6.5, height=1.3 + 0.24 * max(len(some), 4))
    plane, counts = planes[0, 0], [known[name] for name in some]
    plane.hlines(range(len(some)), 0, counts, color=RING, linewidth=1)
    plane.scatter(counts, range(len(some)), s=30, color=RING, label="cases")
    _frame(plane, some, "cases tried", counts, first=True)
    return figure


def _frame(plane: Any, names: Sequence[str], quantity: str, values: Sequence[float], *, first: bool) -> None:
    """The axes of a plane: subjects downwards, the quantity to the right."""
    if min(values) > 0 and max(values) > WIDE * min(values):
        plane.set_xscale("log")
    elif min(values) >= 0:
        plane.set_xlim(left=-0.04 * (max(values) or 1), right=1.08 * (max(values) or 1))
    if all(isinstance(value, int) for value in values) and plane.get_xscale() == "linear":
        plane.locator_params(axis="x", integer=True)
    shortened = [name if len(name) <= WORDS else f"{name[: WORDS - 1]}…" for name in names]
    plane.set_yticks(range(len(names)), shortened if first else [""] * len(names), fontsize=8)
    plane.set_ylim(len(names) - 0.4, -0.6)
    plane.set_xlabel(quantity if len(quantity) <= WORDS else f"{quantity[: WORDS - 1]}…", fontsize=9)
    plane.tick_params(axis="x", labelsize=8)
    plane.grid(axis="y", linewidth=0.4, alpha=0.6)
    plane.set_axisbelow(True)


def _title(subjects: int) -> str:
    return f"The first {SUBJECTS} of {subjects} subjects" if subjects > SUBJECTS else ""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
