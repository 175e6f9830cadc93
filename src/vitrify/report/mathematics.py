r"""Sentences of claims as HTML: mathematics as MathML, code, emphasis, links to papers and to other claims.

Browsers draw MathML themselves, so a page needs no script and no font for it. What can't be converted is shown as it
was written.

>>> print(markup("arXiv 2210.10749, *theorem 1*, is about `Automaton`"))
<a href="https://arxiv.org/abs/2210.10749">arXiv 2210.10749</a>, <em>theorem 1</em>, is about <code>Automaton</code>
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from vitrify.optional import need

if TYPE_CHECKING:
    from markupsafe import Markup

PAPER = r"arXiv (\d{4}\.\d{4,5})"
PARTS = re.compile(rf"\$([^$]+)\$|`([^`]+)`|(?<![\w*])\*([^*\s][^*]*)\*(?!\w)|{PAPER}|\[([TAS])\]")
READ = {
    "T": "the text of the source was read",
    "A": "only the abstract of the source was read",
    "S": "the source is known from a secondary account",
}
MAX_FORMULA = 36  # characters; a longer one scrolls where a page is narrow
NAMES = r"\\(?:log|exp|max|min|ln)(?![a-z])"
AFTER = re.compile(rf"({NAMES}(?:_(?:\{{[^{{}}]*\}}|\w))?)\s+(?=[\w\\|])")  # a function and its argument
BEFORE = re.compile(rf"(?<=[\w}}])\s*(?={NAMES})")


def markup(text: str, claims: Container[str] = (), root: str = "") -> Markup:
    """A sentence as HTML; names in `claims` become links; `root` is the relative path to the site's top."""
    pieces, end = [], 0
    for match in PARTS.finditer(text):
        pieces.append(escape(text[end : match.start()]))
        formula, code, stressed, paper, tag = match.groups()
        if formula:
            long = len(formula) > MAX_FORMULA
            pieces.append(f'<span class="formula" tabindex="0">{mathml(formula)}</span>' if long else mathml(formula))
        elif code:
            linked = f'<a href="{root}claims/{code}.html">{sentence_of(code)}</a>'
            pieces.append(linked if code in claims else f"<code>{escape(code)}</code>")
        elif stressed:
            pieces.append(f"<em>{escape(stressed)}</em>")
        elif paper:
            pieces.append(f'<a href="https://arxiv.org/abs/{paper}">arXiv {paper}</a>')
        else:
            pieces.append(f'<abbr title="{READ[tag]}">[{tag}]</abbr>')
        end = match.end()
    html: Markup = need("markupsafe", "report").Markup("".join([*pieces, escape(text[end:])]))
    return html


@cache
def mathml(formula: str) -> str:
    r"""A formula as MathML; as code where it can't be converted.

    >>> mathml(r"\notacommand{x}")
    '<code>\\notacommand{x}</code>'
    """
    convert = need("latex2mathml.converter", "report").convert
    try:
        markup = str(convert(AFTER.sub(r"\1\\,", BEFORE.sub(r"\\,", formula))))
    except Exception:  # the converter has errors of many kinds, and none of them is worth a page
        markup = "\\"
    left = re.sub(r"<[^>]*>", "", markup)
    balanced = len(re.findall(r"(?<!\\){", formula)) == len(re.findall(r"(?<!\\)}", formula))
    return markup if balanced and "\\" not in left else f"<code>{escape(formula)}</code>"


def sentence_of(name: str) -> str:
    """The name of a claim as a sentence.

    >>> sentence_of("any_automaton_runs_in_log_depth")
    'Any automaton runs in log depth'
    """
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]
