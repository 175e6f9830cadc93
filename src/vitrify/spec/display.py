"""How a spec shows itself in a notebook: what kind it is, how large, and the first lines of its file."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

LINES, WIDTH = 12, 160  # of a file, and characters of a line


class Displayed:
    """A spec that a notebook shows; `SIZES` names what is counted, if not all its fields."""

    SIZES: ClassVar[tuple[str, ...]] = ()

    def _repr_html_(self: Any) -> str:
        from vitrify.markup import card, folded, tag, verbatim
        from vitrify.spec import SUFFIXES

        named = getattr(self, "name", "")
        title = f"{type(self).__name__}: {SUFFIXES[self.suffix][0]}" + (f", {named}" if named else "")
        sizes = "; ".join(f"{name} {said}" for name, said in _sizes(self))
        lines = self.first_lines()
        return card(title, tag("div", sizes, class_="said"), folded("as a file", verbatim(lines), unfolded=True))

    def first_lines(self: Any) -> str:
        """How the spec's file begins."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"spec{self.suffix}"
            self.write(path)
            with path.open(encoding="utf-8") as file:
                lines = [line for _, line in zip(range(LINES + 1), file, strict=False)]
        cut = [line.rstrip("\n") for line in lines[:LINES]]
        cut = [line if len(line) <= WIDTH else f"{line[:WIDTH]}…" for line in cut]
        return "\n".join([*cut, "…"] if len(lines) > LINES else cut)


def _sizes(spec: Any) -> list[tuple[str, str]]:
    """Every number and word among a spec's fields, and how many there are of everything else."""
    from vitrify.markup import text

    names = type(spec).SIZES or [each.name for each in fields(spec) if each.repr and each.name != "name"]
    found = []
    for name in names:
        value = getattr(spec, name)
        if isinstance(value, bool | int | float | str):
            found.append((name, text(value)))
        elif isinstance(value, Sized):
            found.append((name, f"{len(value):,}"))
    return found
