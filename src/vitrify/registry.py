"""Catalogues: folders in which every file is one entry, found by looking, so that a new entry is one new file.

Files whose name begins with an underscore, and `catalogue.py`, are machinery and not entries.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any


def names(package: str) -> list[str]:
    """The entries of a catalogue package, in alphabetical order, without importing them."""
    return sorted(path.stem for path in _files(package))


def load(package: str, name: str) -> ModuleType:
    """Import one entry."""
    return importlib.import_module(f"{package}.{name}")


@dataclass(frozen=True)
class Headline:
    """What an entry's source says about it: its name, its docstring, and the literal keywords of its one value."""

    name: str
    doc: str
    fields: dict[str, Any]

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return self.doc.splitlines()[0].rstrip(".")

    def section(self, word: str) -> str:
        """A part of the docstring that begins with a word and a colon, up to the next such part."""
        found: list[str] = []
        inside = False
        for line in self.doc.splitlines()[1:]:
            first = line.strip().split(" ", 1)[0]
            if first.endswith(":") and first[:-1].isalpha() and first[0].isupper():
                inside = first == f"{word}:"
                line = line.strip().removeprefix(first)
            if inside and line.strip():
                found.append(line.strip())
        return " ".join(found)


def headlines(package: str, value: str) -> Iterator[Headline]:
    """Read the entries' sources without running them: `VALUE = Something(key="literal", …)` gives the fields.

    Listing a catalogue must not cost the import of all that its entries need.
    """
    for path in sorted(_files(package)):
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        yield Headline(path.stem, ast.get_docstring(tree) or "", _literals(tree, value))


def _literals(tree: ast.Module, value: str) -> dict[str, Any]:
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and value in map(ast.unparse, node.targets)
        ):
            words = node.value.keywords
            return {k.arg: k.value.value for k in words if k.arg and isinstance(k.value, ast.Constant)}
    return {}


def _files(package: str) -> list[Path]:
    found = find_spec(package)
    folders = (found.submodule_search_locations if found else None) or []
    paths = [path for folder in folders for path in Path(folder).glob("*.py")]
    return [path for path in paths if not path.stem.startswith("_") and path.stem != "catalogue"]
