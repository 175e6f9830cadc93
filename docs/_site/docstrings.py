r"""Our docstrings are Markdown with $mathematics$; autodoc expects reStructuredText: this turns the one into the other.

Code in backticks, formulas between dollars, emphasis, lists, tables, doctests and indented drawings are kept; every
other character stands for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent, indent
from typing import Any

from sphinx.application import Sphinx

SPAN = re.compile(r"`([^`]+)`|\$([^$]+)\$|(?<![\w*])\*([^*\s][^*]*[^*\s]|[^*\s])\*(?![\w*])")
ITEM = re.compile(r"(- |\d+\. )")
SEPARATOR = re.compile(r"\|( *:?-+:? *\|)+")  # the second line of a table


def inline(text: str) -> str:
    """A paragraph as reStructuredText."""
    found, last = [], 0
    for match in SPAN.finditer(text):
        found.append(plain(text[last : match.start()]))
        code, formula, strong = match.groups()
        if formula is not None:
            found.append(rf"\ :math:`{' '.join(formula.split())}`\ ")
        elif code is not None:
            found.append(rf"\ ``{' '.join(code.split())}``\ ")
        else:
            found.append(rf"\ *{plain(strong)}*\ ")
        last = match.end()
    return "".join([*found, plain(text[last:])])


def plain(text: str) -> str:
    """Text in which every character stands for itself."""
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def parts(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines with a blank line between them."""
    run: list[str] = []
    for line in lines:
        if line.strip():
            run.append(line)
        elif run:
            yield run
            run = []
    if run:
        yield run


def converted(lines: list[str]) -> list[str]:
    """A docstring as reStructuredText."""
    found: list[str] = []
    for run in parts(lines):
        text = "\n".join(run)
        if run[0].startswith(">>>"):
            found.append(text)
        elif run[0].startswith("    "):
            found.append("::\n\n" + indent(dedent(text), "    "))
        elif ITEM.match(run[0]):
            found.append(items(run))
        elif len(run) > 1 and SEPARATOR.fullmatch(run[1].strip()):
            found.append(table([run[0], *run[2:]]))
        else:
            for number, piece in enumerate(text.split("$$")):
                if number % 2:
                    found.append(".. math::\n\n    " + " ".join(piece.split()))
                elif piece.strip():
                    found.append(inline(dedent(piece).strip()))
    return "\n\n".join(found).splitlines()


def items(run: list[str]) -> str:
    """A list, each item on a line of its own or on several that are indented."""
    grouped: list[list[str]] = []
    for line in run:
        if ITEM.match(line):
            grouped.append([line])
        else:
            grouped[-1].append(line.strip())
    return "\n".join(f"- {inline(' '.join(group)[2:].lstrip('. '))}" for group in grouped)


def table(lines: list[str]) -> str:
    """Return the lines of a Markdown table, its head first, as a list-table."""
    split = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines]
    cells = [[inline(cell.replace(r"\|", "|").strip()) for cell in row] for row in split]
    rows = ["    * - " + "\n      - ".join(row) for row in cells]
    return "\n".join([".. list-table::", "    :header-rows: 1", "", *rows])


def process(_app: Sphinx, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    lines[:] = converted(list(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
