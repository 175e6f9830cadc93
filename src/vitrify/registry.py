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


def headlines(package: str, value: str, only: str | None = None) -> Iterator[Headline]:
    """Read the entries' sources without running them: `VALUE = Something(key="literal", …)` gives the fields.

    Listing a catalogue must not cost the import of all that its entries need, nor finding one the reading of all.
    """
    for name, doc, calls in _values(package, value, only):
        yield Headline(name, doc, _literals(calls[0], ()) if calls else {})


def listed(package: str, value: str, first: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], Headline]]:
    """The same of files that list several values, `VALUES = (Something(…), …)`: the literals of each, and its file.

    `first` names the leading arguments, which may also be names of types.
    """
    for name, doc, calls in _values(package, value):
        for call in calls:
            yield _literals(call, first), Headline(name, doc, {})


def _values(package: str, value: str, only: str | None = None) -> Iterator[tuple[str, str, list[ast.Call]]]:
    """Of every file, or one only, its name, its docstring and the calls that make its value."""
    for path in sorted(path for path in _files(package) if only in (None, path.stem)):
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        made = [node.value for node in tree.body if isinstance(node, ast.Assign) and _assigns(node, value)]
        calls = [call for node in made for call in (node.elts if isinstance(node, ast.Tuple) else [node])]
        yield path.stem, ast.get_docstring(tree) or "", [call for call in calls if isinstance(call, ast.Call)]


def _assigns(node: ast.Assign, value: str) -> bool:
    return value in map(ast.unparse, node.targets)


def _literals(call: ast.Call, first: tuple[str, ...]) -> dict[str, Any]:
    given = [*zip(first, call.args, strict=False), *((word.arg, word.value) for word in call.keywords if word.arg)]
    plain = {key: node.value for key, node in given if isinstance(node, ast.Constant)}
    return plain | {key: node.id for key, node in given if key in first and isinstance(node, ast.Name)}


def _files(package: str) -> list[Path]:
    found = find_spec(package)
    folders = (found.submodule_search_locations if found else None) or []
    paths = [path for folder in folders for path in Path(folder).glob("*.py")]
    return [path for path in paths if not path.stem.startswith("_") and path.stem != "catalogue"]
