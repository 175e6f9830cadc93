"""HTML for notebooks, made of small pieces: all text is escaped, and a piece needs no script and no other file.

Lines and fills are half-transparent greys, so that a piece can be read on light and on dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

ROWS = 40  # of a table; the rest is counted
TEXT = 400  # characters of one cell
VERDICTS = {"holds": ("✓", "good"), "fails": ("✗", "bad"), "undecided": ("?", "open")}

STYLE = """<style>
.vitrify{font:13px/1.45 system-ui,sans-serif;max-width:72em;border:1px solid rgba(128,128,128,.45);border-radius:6px;\
padding:.5em .8em;overflow-x:auto}
.vitrify .said{opacity:.75}
.vitrify table{border-collapse:collapse;margin:.35em 0;font-size:12px;width:auto}
.vitrify th,.vitrify td{padding:.12em .55em;text-align:left;vertical-align:top;background:none;\
border:0 solid rgba(128,128,128,.3);border-bottom-width:1px}
.vitrify td.number{text-align:right;font-variant-numeric:tabular-nums}
.vitrify summary{cursor:pointer;font-weight:600;margin:.2em 0}
.vitrify pre{font:12px/1.4 ui-monospace,monospace;margin:.35em 0;padding:.4em .6em;background:rgba(128,128,128,.12);\
border-radius:4px;white-space:pre;overflow-x:auto}
.vitrify .badge{border-radius:4px;padding:.05em .5em;font-weight:600;color:#fff}
.vitrify .good{background:#1a7f37}.vitrify .bad{background:#b42318}.vitrify .open{background:#6b6f76}
.vitrify td.shade{min-width:1.1em;text-align:center}
</style>"""


class Html(str):
    """Text that is HTML already; any other text is escaped where it is put."""

    __slots__ = ()


def tag(name: str, *inside: object, **attributes: object) -> Html:
    """An element; `class_` is written as `class`, and an attribute that is True as its name alone.

    >>> tag("td", "a < b", class_="number")
    '<td class="number">a &lt; b</td>'
    """
    present = [(key.rstrip("_"), value) for key, value in attributes.items() if value not in (None, False)]
    words = "".join(f" {key}" if value is True else f' {key}="{escape(str(value))}"' for key, value in present)
    return Html(f"<{name}{words}>{''.join(map(html, inside))}</{name}>")


def html(value: object) -> Html:
    """A value as HTML: escaped, unless it is HTML already."""
    return value if isinstance(value, Html) else Html(escape(text(value)))


def text(value: object) -> str:
    """A value in a few characters: numbers with thousands marked or in six digits, long texts cut."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return text(", ".join(f"{key}: {text(part)}" for key, part in value.items()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return text(", ".join(map(text, value)))
    string = str(value)
    return string if len(string) <= TEXT else f"{string[:TEXT]}…"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], rest: str = "rows", most: int = ROWS) -> Html:
    """A table whose numbers stand on the right; of many rows the first, and how many more there are."""
    entries = list(rows)
    head = tag("thead", tag("tr", *(tag("th", column, scope="col") for column in columns))) if columns else ""
    body = tag("tbody", *(tag("tr", *map(cell, row)) for row in entries[:most]))
    left = len(entries) - most
    more = tag("div", f"… and {left:,} more {rest}", class_="said") if left > 0 else Html("")
    return Html(tag("table", Html(head), body) + more)


def facts(values: Mapping[str, object]) -> Html:
    """Return a table of names and values."""
    return table([], [(name, text(value)) for name, value in values.items()])


def verbatim(lines: str) -> Html:
    """Return lines as they are, none of them cut."""
    return tag("pre", Html(escape(lines)))


def cell(value: object) -> Html:
    """A cell of a table."""
    if isinstance(value, Html) and value.startswith("<td"):
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return tag("td", value, class_="number" if number else None)


def shade(weight: float, title: str = "") -> Html:
    """A cell that is the darker the nearer a number is to 1, and empty near 0; it says more where it is pointed at."""
    strength = min(max(float(weight), 0.0), 1.0)
    if strength < 0.005:
        return tag("td", class_="shade")
    label = f"{strength:.2f}".lstrip("0") if strength < 0.995 else "1"
    style = f"background:rgba(70,110,220,{0.75 * strength:.2f})"
    return tag("td", label, class_="shade", style=style, title=title or None)


def folded(title: object, *inside: object, unfolded: bool = False) -> Html:
    """A part that can be folded away."""
    return tag("details", tag("summary", title), *inside, open=unfolded)


def badge(verdict: str) -> Html:
    """Return a verdict on its colour, with a sign for readers who do not see colours."""
    sign, kind = VERDICTS.get(verdict, ("", "open"))
    return tag("span", f"{sign} {verdict}".strip(), class_=f"badge {kind}")


def card(title: object, *inside: object) -> str:
    """The whole piece: a frame with a title, and its own style."""
    return tag("div", Html(STYLE), tag("div", tag("strong", title)), *inside, class_="vitrify")
