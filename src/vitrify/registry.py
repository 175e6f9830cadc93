"""Catalogues: folders in which every file is one entry, found by looking, so that a new entry is one new file.

Files whose name begins with an underscore, and `catalogue.py`, are machinery and not entries.

Other packages may add entries. A package `mine` that is named by the environment variable `VITRIFY_PLUGINS` (several
are separated by commas), or by an entry point of the group `vitrify.plugins`, adds the files of `mine.constructions` to
those of `vitrify.constructions`, and so on for every catalogue.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, resolve_name
from inspect import cleandoc
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from vitrify.errors import InputError

PLUGINS, GROUP = "VITRIFY_PLUGINS", "vitrify.plugins"


@cache
def plugins() -> tuple[str, ...]:
    """Return the packages that add entries: named in the environment variable, or by entry points."""
    text = os.environ.get(PLUGINS, "")
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    packages = tuple(dict.fromkeys([*wanted, *_entry_points()]))
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise InputError(f"{PLUGINS} names packages that can't be imported: {', '.join(missing)}")
    return packages


def _entry_points() -> list[str]:
    """Return the packages that installed distributions name; `importlib.metadata` is slow to import without need."""
    tables = (path for folder in sys.path for path in Path(folder or ".").glob("*.dist-info/entry_points.txt"))
    if not any(f"[{GROUP}]" in path.read_text(encoding="utf-8") for path in tables):
        return []
    from importlib.metadata import entry_points

    return [point.value for point in entry_points(group=GROUP)]


def names(package: str) -> list[str]:
    """Return the names of the entries of a catalogue package, in alphabetical order, without importing them."""
    return sorted(_entries(package))


def load(package: str, name: str) -> ModuleType:
    """Import one entry, of the catalogue itself or of a plugin."""
    root, _ = _entries(package).get(name, (package, None))
    return importlib.import_module(f"{root}.{name}")


def source_of(package: str, name: str) -> tuple[str, Path]:
    """Return the package (a catalogue, or a plugin's counterpart) and the file of one entry."""
    return _entries(package)[name]


class Declaration(NamedTuple):
    """A top-level statement of a module, read without importing the module."""

    module: str
    node: ast.stmt
    source: str = ""

    def origin(self, name: str) -> tuple[str, str]:
        """Return the module that a name of this one is imported from, or itself, and the name there."""
        for module, several, one in _IMPORT.findall(self.source):
            for part in re.sub(r"#.*", "", several or one).split(","):
                words = part.split()
                if words and words[-1] == name:
                    return resolve_name(module, self.module.rpartition(".")[0]), words[0]
        return self.module, name

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression; only the modules that its names are imported from are imported."""
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - set(vars(builtins))
        values = {}
        for name in names:
            module, original = self.origin(name)
            values[name] = getattr(importlib.import_module(module), original)
        return eval(compile(ast.Expression(node), self.module, "eval"), values)  # as an import of the module would

    @property
    def doc(self) -> str:
        """The docstring of the module."""
        return _docstring(self.source)


_IMPORT = re.compile(r"^[ \t]*from (\S+) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)


def declared(package: str, opening: str) -> Iterator[Declaration]:
    """Return the top-level statements that begin with a text, in all modules below a package and in plugins.

    `opening` is the beginning of a line: `KIND = ` or `@construction`. Only these statements are parsed: looking
    through a hundred files takes milliseconds.
    """
    for root in _roots(package):
        for path, module in _modules(root):
            text = path.read_text(encoding="utf-8") + "\n"
            for node in _statements(text, opening):
                yield Declaration(module, node, text)


def _roots(package: str) -> tuple[str, ...]:
    """Return a package and its counterparts in plugins: `vitrify.spec` and `mine.spec`."""
    return (package, *(package.replace("vitrify", plugin, 1) for plugin in plugins()))


def _folders(package: str) -> list[Path]:
    """Return the folders of a package; none if a plugin has no such package."""
    try:
        spec = find_spec(package)
    except ModuleNotFoundError as error:
        if not package.startswith(f"{error.name}"):  # something that the package itself imports is missing
            raise
        spec = None
    return [Path(folder) for folder in (spec.submodule_search_locations if spec else None) or ()]


def _modules(package: str) -> Iterator[tuple[Path, str]]:
    """Return the source files below a package, with the names of their modules."""
    for folder in _folders(package):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield path, ".".join((package, *(part for part in parts if part != "__init__")))


def _entries(package: str) -> dict[str, tuple[str, Path]]:
    """Return the package and the file of every entry of a catalogue and of plugins, by name."""
    entries: dict[str, tuple[str, Path]] = {}
    for root in _roots(package):
        for path in (path for folder in _folders(root) for path in folder.glob("*.py")):
            if path.stem.startswith("_") or path.stem == "catalogue":
                continue
            if path.stem in entries:
                other = entries[path.stem][0]
                raise InputError(f"{root} and {other} both have an entry {path.stem!r}: rename one of the files")
            entries[path.stem] = (root, path)
    return entries


@dataclass(frozen=True)
class Headline:
    """An entry as its source text declares it: its name, its docstring, and the literal keywords of its one value.

    An entry in a file outside all catalogues has the `path` of the file.
    """

    name: str
    doc: str
    fields: dict[str, Any]
    path: Path | None = None

    @property
    def argument(self) -> str:
        """The word that names the entry on the command line: its name, or the path of its file."""
        return self.name if self.path is None else str(self.path)

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return self.doc.splitlines()[0].rstrip(".")

    def section(self, word: str) -> str:
        """Return the part of the docstring that begins with a word and a colon, up to the next such part."""
        return dict(self.sections).get(word, "")

    @property
    def sections(self) -> list[tuple[str, str]]:
        """The parts of the docstring after its first line, each with its word; of what stands before them it is ""."""
        parts = ["", *_SECTION.split("\n".join(self.doc.splitlines()[1:]))]
        return [(word, " ".join(text.split())) for word, text in zip(parts[::2], parts[1::2], strict=True)]


_SECTION = re.compile(r"^(Not checked|[A-Z][a-z]+):(?=\s)", re.MULTILINE)  # at the start of a line


def headlines(package: str, value: str, only: str | None = None) -> Iterator[Headline]:
    """Read the entries' sources without running them: `VALUE = Something(key="literal", …)` gives the fields.

    Listing a catalogue must not cost the import of all that its entries need, nor finding one the reading of all.
    """
    for name, (_, path) in sorted(_entries(package).items()):
        if only in (None, name):
            yield headline(name, path.read_text(encoding="utf-8"), value)


def headline(name: str, text: str, value: str) -> Headline:
    """Return an entry as its source text declares it."""
    text += "\n"
    calls = [node.value for node in _statements(text, f"{value} = ") if isinstance(node, ast.Assign)]
    words = [word for call in calls if isinstance(call, ast.Call) for word in call.keywords]
    fields = {word.arg: word.value.value for word in words if word.arg and isinstance(word.value, ast.Constant)}
    return Headline(name, _docstring(text), fields)


def _statements(text: str, opening: str) -> Iterator[ast.stmt]:
    """Return the top-level statements of a source text that begin with an opening, functions without their bodies."""
    lines = text.splitlines(keepends=True) if opening in text else []
    goes_on = (" ", "\t", "\n", ")", "]", "}") + (("@", "#", "def ", "class ") if opening.startswith("@") else ())
    for start in (number for number, line in enumerate(lines) if line.startswith(opening)):
        taken, named = [lines[start]], False
        for line in lines[start + 1 :]:
            if not line.startswith(goes_on):
                break
            taken.append(line)
            named = named or line.startswith(("def ", "class "))
            if named and line[0] not in " \t\n" and line.partition("#")[0].rstrip().endswith((":", ": ...")):
                taken.append("    ...\n" if line.partition("#")[0].rstrip().endswith(":") else "")
                break
        yield ast.parse("".join(taken)).body[0]


def _docstring(text: str) -> str:
    """Return the docstring of a source text, which is parsed no further."""
    match = re.match(r'(?:\s*|#.*\n)*(r?"""(?:[^\\]|\\.)*?""")', text)
    return cleandoc(ast.literal_eval(match[1])) if match else ""
