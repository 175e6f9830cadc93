r"""Mathematics as MathML, made while the site is built: no script, no fonts to fetch, and it prints.

All current browsers draw MathML by themselves; a vendored KaTeX or MathJax would be a megabyte or more of scripts.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

LOG = logging.getLogger(__name__)
ARG = (r"\arg\max", r"\operatorname{arg}\max")  # which the converter does not know
# The converter's line over several letters is a dash over their middle.
OVERLINE = re.compile(r'<mover>((?:(?!<mover>).)*)<mo accent="true">&#x02015;</mo></mover>')
LINE = r'<mrow style="border-top: 0.06em solid; padding-top: 0.1em">\1</mrow>'


def mathml(formula: str, display: str = "inline") -> str:
    """A formula as MathML; one that can't be read is refused."""
    try:
        found = OVERLINE.sub(LINE, str(convert(formula.strip().replace(*ARG), display=display)))
    except Exception as error:  # the converter has many errors of its own
        raise ValueError(f"this formula can't be read: {formula} ({error!r})") from None
    if "\\" in found:
        raise ValueError(f"this formula has a command that can't be read: {formula}")
    return found


def drawn(node: nodes.Element, display: str) -> str:
    """The MathML of a node; a formula that can't be read is a warning, and so an error of a strict build."""
    try:
        return mathml(node.astext(), display)
    except ValueError as error:
        LOG.warning(str(error), location=node)
        return ""


def inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(drawn(node, "inline"))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{drawn(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
