"""Pages that follow from the catalogues: claims with their evidence and figures, and the modules of each room."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import vitrify
from vitrify import registry
from vitrify.certify import certify
from vitrify.claims._kept import kept
from vitrify.claims.catalogue import listing
from vitrify.registry import Headline
from vitrify.report.readme import in_order

DOCS = Path(__file__).parents[1]
EVIDENCE = DOCS / "evidence"
PARTS = ("Statement", "Why", "Checked", "Source", "Saboteur")


class Claims(SphinxDirective):
    """`{claims} R`: a section for each claim whose row begins with this letter."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(EVIDENCE))
        chosen = [h for h in in_order(listing()) if str(h.fields["row"]).startswith(self.arguments[0])]
        text = "\n\n".join(line for headline in chosen for line in claim(headline))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def claim(headline: Headline) -> Iterator[str]:
    """A claim as Markdown: what it says, why, how it is checked, what is kept of it."""
    yield f"({headline.name})="
    yield f"## {headline.fields['row']}: {headline.title}"
    yield f"{headline.fields['status']} · {verdict(headline)} · `vitrify check {headline.name}`"
    for part in PARTS:
        said = headline.section(part)
        if said:
            yield f"**{part}.** {said[0].upper() + said[1:]}"
    if (EVIDENCE / f"{headline.name}.svg").exists():
        yield f"```{{figure}} /evidence/{headline.name}.svg\n:alt: {alt(headline)}\n:class: evidence\n```"


def verdict(headline: Headline) -> str:
    """What was found, where and when."""
    if not (EVIDENCE / f"{headline.name}.json").exists():
        return "holds, and is checked by every run of the tests"
    found = kept(headline, EVIDENCE)
    place = found["measured on"]
    said = f"**{found['verdict']}** at {found['scale']} scale on {place['device']}, {place['date']}"
    return f"{said} ({{download}}`evidence </evidence/{headline.name}.json>`)"


def alt(headline: Headline) -> str:
    return "What was measured for the claim: " + re.sub(r"[$\\{}]", "", headline.title)


class Room(SphinxDirective):
    """`{room} spec`: a section for each module of a room, with all that is public in it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        room = self.arguments[0]
        text = "\n\n".join(module(name) for name in modules(room))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def modules(room: str) -> list[str]:
    """The modules of a room that are no machinery, by name."""
    root = DOCS.parent / "src" / "vitrify"
    files = sorted((root / room).rglob("*.py")) if (root / room).is_dir() else [root / f"{room}.py"]
    shown = [path for path in files if path.name == "__init__.py" or not path.stem.startswith("_")]
    return [".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__") for path in shown]


def module(name: str) -> str:
    return f"## {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n   :ignore-module-all:\n```"


class Door(SphinxDirective):
    """`{door}`: every public name, with its signature and what it does."""

    def run(self) -> list[nodes.Node]:
        found = {name: getattr(vitrify, name) for name in vitrify.PUBLIC} | {"certify": certify}
        lines = ["| name | does |", "| --- | --- |"]
        for name, it in found.items():
            said = str(it.__doc__).splitlines()[0].replace("|", r"\|")
            lines.append(f"| {{py:obj}}`v.{name} <{it.__module__}.{it.__qualname__}>` | {said} |")
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
    directives: dict[str, type[Directive]] = {"claims": Claims, "room": Room, "door": Door, "catalogue": Catalogue}
    for name, directive in directives.items():
        app.add_directive(name, directive)
    app.connect("doctree-read", shorten)
    return {"parallel_read_safe": True}
