"""Pages that follow from the catalogues: claims with their evidence and figures, and the modules of each package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import vitrify
from vitrify import registry
from vitrify.claims import position
from vitrify.claims.catalogue import SECTIONS, listing
from vitrify.registry import Headline
from vitrify.report.tables import criteria

DOCS = Path(__file__).parents[1]
EVIDENCE = DOCS / "evidence"
SOURCES = DOCS.parent / "src" / "vitrify"
PAGE = """---
orphan: true
---
# {name}

```{{members}} {name}
```

```{{eval-rst}}
.. automodule:: {name}
   :ignore-module-all:
```
"""


class Claims(SphinxDirective):
    """`{claims} R:1-19`: a section for each claim whose id begins with this letter, with a number of this range."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(EVIDENCE))
        letter, _, span = self.arguments[0].partition(":")
        first, last = map(int, span.split("-")) if span else (0, 999)
        part = [h for h in sorted(listing(), key=position) if str(h.fields["id"]).startswith(letter)]
        chosen = [h for h in part if first <= int(str(h.fields["id"])[1:]) <= last]
        text = "\n\n".join([*overview(chosen), *(line for headline in chosen for line in claim(headline))])
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def overview(chosen: Sequence[Headline]) -> Iterator[str]:
    """Return a section with a table of the claims of a page, each with a link to its section."""
    yield "## All claims of this part"
    links = [f"[{each.title}](#{each.name})".replace("|", r"\|") for each in chosen]
    pairs = zip(chosen, links, strict=True)
    lines = [f"| {each.fields['id']} | {link} | {each.fields['standing']} |" for each, link in pairs]
    yield "\n".join(["| id | claim | source gives |", "| --- | --- | --- |", *lines])


def claim(headline: Headline) -> Iterator[str]:
    """Return a claim as Markdown: its sections, its criteria and its figure, where there is recorded evidence."""
    yield f"({headline.name})="
    yield f"## {headline.fields['id']}: {headline.title}"
    yield f"{headline.fields['standing']} · {verdict(headline)} · `vitrify check {headline.name}`"
    for word, title in SECTIONS.items():
        text = headline.section(word)
        if text:
            yield f"**{title}.** {text[0].upper() + text[1:]}"
        if word == "Checked" and (EVIDENCE / f"{headline.name}.json").exists():
            yield table(criteria(headline.recorded(EVIDENCE).evidence))
    if (EVIDENCE / f"{headline.name}.svg").exists():
        yield f"```{{figure}} /evidence/{headline.name}.svg\n:alt: {alt(headline)}\n:class: evidence\n```"


def table(lines: list[dict[str, Any]]) -> str:
    """Return criteria as a Markdown table."""
    columns = "name", "threshold", "measured"
    cells = [" | ".join(str(each[column]).replace("|", r"\|") for column in columns) for each in lines]
    marks = ["✓" if each["all"] else "✗" for each in lines]
    rows = [f"| {row} | {mark} {each['met'] or ''} |" for row, mark, each in zip(cells, marks, lines, strict=True)]
    return "\n".join(["| criterion | threshold | measured | met |", "| --- | --- | --- | --- |", *rows])


def verdict(headline: Headline) -> str:
    """Return the recorded verdict of a claim, with the machine and the date."""
    if not (EVIDENCE / f"{headline.name}.json").exists():
        return "holds, and is checked by every run of the tests"
    outcome = headline.recorded(EVIDENCE)
    machine = outcome.measured_on
    text = f"**{outcome.verdict}** at {outcome.scale} scale on {machine['device']}, {machine['date']}"
    return f"{text} ({{download}}`evidence </evidence/{headline.name}.json>`)"


def alt(headline: Headline) -> str:
    return "What was measured for the claim: " + re.sub(r"[$\\{}]", "", headline.title)


class Modules(SphinxDirective):
    """`{modules} spec`: a table of the modules of a package, or of some files, each with a page of its own."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        shown = [name for package in self.arguments[0].split() for name in modules(package)]
        lines = ["| module | what is in it |", "| --- | --- |"]
        lines += [f"| [{name}](modules/{name}.md) | {summary(name)} |" for name in shown]
        return self.parse_text_to_nodes("\n".join(lines))


class Members(SphinxDirective):
    """`{members} vitrify.kit.norm`: a table of the public functions and classes of a module, with links to them."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        lines = ["| name | what it does |", "| --- | --- |"]
        for node in ast.parse(source(name).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_" and ast.get_docstring(node):
                lines.append(f"| {{py:obj}}`{node.name} <{name}.{node.name}>` | {cell(ast.get_docstring(node))} |")
        return self.parse_text_to_nodes("\n".join(lines)) if len(lines) > 2 else []


def modules(package: str) -> list[str]:
    """Return the names of the public modules of a package, or of a file."""
    files = sorted((SOURCES / package).rglob("*.py")) if (SOURCES / package).is_dir() else [SOURCES / f"{package}.py"]
    shown = [path for path in files if path.name == "__init__.py" or not path.stem.startswith("_")]
    named = [path.relative_to(SOURCES.parent).with_suffix("").parts for path in shown if docstring(path)]
    return [".".join(parts).removesuffix(".__init__") for parts in named]


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def summary(name: str) -> str:
    """Return the first line of a module's docstring, as a cell of a table."""
    return cell(docstring(source(name)))


def source(name: str) -> Path:
    """Return the file of a module."""
    path = SOURCES.parent.joinpath(*name.split("."))
    package = path / "__init__.py"
    return package if package.exists() else path.with_suffix(".py")


def cell(text: str | None) -> str:
    """Return the first line of a docstring as a cell of a table."""
    return (text or "").splitlines()[0].replace("|", r"\|")


def write_pages(_app: Sphinx) -> None:
    """Write a page for every public module, and remove those of modules that are gone.

    They are in no toctree: the sidebar, which every page carries, would have a line for each of them.
    """
    folder = DOCS / "reference" / "modules"
    folder.mkdir(exist_ok=True)
    pages = {}
    for path in sorted((DOCS / "reference").glob("*.md")):
        packages = re.findall(r"^```\{modules\} (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        for name in (name for package in " ".join(packages).split() for name in modules(package)):
            pages[f"{name}.md"] = PAGE.format(name=name)
    for path in folder.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")


class Door(SphinxDirective):
    """`{door}`: every public name, with its signature and what it does."""

    def run(self) -> list[nodes.Node]:
        public = {name: getattr(vitrify, name) for name in vitrify.PUBLIC}
        lines = ["| name | does |", "| --- | --- |"]
        for name, it in public.items():
            lines.append(f"| {{py:obj}}`v.{name} <{it.__module__}.{it.__qualname__}>` | {cell(it.__doc__)} |")
        return self.parse_text_to_nodes("\n".join(lines))


class Catalogue(SphinxDirective):
    """`{catalogue} vitrify.sandboxes SANDBOX`: a table of the entries with their titles."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        found = registry.headlines(*self.arguments)
        rows = ["| `{}` | {} |".format(line.name, line.title.replace("|", r"\|")) for line in found]
        return self.parse_text_to_nodes("\n".join(["| name | what it is |", "| --- | --- |", *rows]))


def shorten(_app: Sphinx, doctree: nodes.document) -> None:
    """Blocks that end with a blank line, as doctests do, are shown without it."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.astext().rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def setup(app: Sphinx) -> dict[str, Any]:
    directives: dict[str, type[Directive]] = {
        "claims": Claims,
        "members": Members,
        "modules": Modules,
        "door": Door,
        "catalogue": Catalogue,
    }
    for name, directive in directives.items():
        app.add_directive(name, directive)
    app.connect("builder-inited", write_pages)
    app.connect("doctree-read", shorten)
    return {"parallel_read_safe": True}
