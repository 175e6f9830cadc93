"""Drawings of circuits as SVG: nodes in rows by layer, edges in the color of the input that they go to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vitrify.markup import Html, tag
from vitrify.mechanisms.parts import PORTS, CircuitNode, Edge, NetWiring, node_of

COLORS = {"q": "#0072b2", "k": "#d55e00", "v": "#009e73", "gate": "#cc79a7", "": "#7f7f7f"}  # color-blind safe
WORDS = {"q": "query", "k": "key", "v": "value", "gate": "gate", "": "other input"}
ROW, COLUMN, BOX, HEIGHT, MARGIN, ASIDE = 64, 96, 78, 22, 16, 56  # in pixels
MISSED, EXTRA = "3 3", "#d62728"  # dashes of true edges that were not found; color of found edges that are not true


def circuit_picture(
    wired: NetWiring, true: Iterable[Edge], predicted: Iterable[Edge] | None = None, title: str = "true circuit"
) -> Html:
    """Return the true circuit as SVG; with a found one, both side by side: missed edges dashed, wrong ones red."""
    right = tuple(true)
    if predicted is None:
        drawing, width, height = _graph(wired, right, right, title)
    else:
        other = tuple(predicted)
        left, width, height = _graph(wired, right, right, title)
        second, more, _ = _graph(
            wired,
            right,
            other,
            f"found: {len(set(right) & set(other))} of {len(right)}, and {len(set(other) - set(right))} wrong",
        )
        drawing, width = Html(left + _svg("g", second, transform=f"translate({width} 0)")), width + more
    legend, wide = _legend(height, predicted is not None)
    width = max(width, wide)
    return _svg(
        "svg", drawing, legend, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height + 24}",
        style=f"max-width:100%;width:{width}px;height:auto;color:inherit", font_family="system-ui,sans-serif",
        font_size="11", role="img", aria_label=f"circuit of {len(right)} edges",
    )  # fmt: skip


def _graph(wired: NetWiring, true: Sequence[Edge], drawn: Sequence[Edge], title: str) -> tuple[Html, int, int]:
    """Return a drawing of some edges and all nodes that these or the true ones touch, its width and its height."""
    used = {node for source, port in {*true, *drawn} for node in (source, node_of(port))}
    rows: dict[float, list[CircuitNode]] = {}
    for node in wired.nodes:
        if node.name in used:
            rows.setdefault(_level(node), []).append(node)
    width = max(len(row) for row in rows.values()) * COLUMN + 2 * MARGIN if rows else 0
    width, height = max(width, 240, 8 * len(title)), len(rows) * ROW + 2 * MARGIN + 12
    places: dict[str, tuple[float, float]] = {}
    for number, level in enumerate(sorted(rows)):
        row = rows[level]
        for at, node in enumerate(row):
            x = width / 2 + (at - (len(row) - 1) / 2) * COLUMN
            aside = ASIDE * (-1) ** number if len(row) == 1 and node.kind != "output" else 0  # edges pass beside it
            places[node.name] = (x + aside, height - MARGIN - HEIGHT - number * ROW)
    edges = [_edge(edge, places, edge in set(true)) for edge in drawn]
    missed = [_edge(edge, places, True, dashed=True) for edge in true if edge not in set(drawn)]
    boxes = [_box(node, *places[node.name]) for row in rows.values() for node in row]
    head = _svg("text", title, x=MARGIN, y=14, fill="currentColor", font_weight="600")
    return Html(head + "".join([*missed, *edges, *boxes])), width, height


def _level(node: CircuitNode) -> float:
    """Return the row of a node: embeddings, heads and cells of block 0, its units and experts, those of block 1, …"""
    if node.block is None:
        return 1e9 if node.kind == "output" else -1.0
    return 2.0 * node.block + {"head": 0, "cell": 0, "router": 0.5}.get(node.kind, 1)


def _box(node: CircuitNode, x: float, y: float) -> Html:
    inside = _svg("title", f"{node.name}: {node.about}" if node.about else node.name)
    box = _svg(
        "rect", x=_number(x - BOX / 2), y=_number(y), width=BOX, height=HEIGHT, rx=4, fill="#eef1f5", stroke="#555"
    )
    return _svg(
        "g", inside, box, _svg("text", _short(node), x=_number(x), y=_number(y + 15), text_anchor="middle", fill="#111")
    )


def _short(node: CircuitNode) -> str:
    """Return the name of a node in a few letters: head 0.1, units 1.0, expert 0.2."""
    if node.block is None:
        return node.name
    number = node.name.rpartition(".")[2]
    kind = {"units": "units", "router": "router", "cell": "cell"}.get(node.kind, node.kind)
    return f"{kind} {node.block}.{number}" if number.isdecimal() else f"{kind} {node.block}"


def _edge(edge: Edge, places: dict[str, tuple[float, float]], true: bool, dashed: bool = False) -> Html:
    """Return an arrow from the top of a node to the bottom of another, into its query, key or value."""
    source, port = edge
    letter = next((end[1:] for end in PORTS if port.endswith(end)), "")
    (x0, y0), (x1, y1) = places[source], places[node_of(port)]
    x1 += {"q": -BOX / 3, "v": BOX / 3}.get(letter, 0.0)
    y1 += HEIGHT
    bend = max(18.0, (y0 - y1) / 2)
    points = (x0, y0), (x0, y0 - bend), (x1, y1 + bend), (x1, y1)
    start, *rest = (f"{_number(x)} {_number(y)}" for x, y in points)
    path = f"M{start}C{' '.join(rest)}"
    style = {"stroke_dasharray": MISSED, "opacity": "0.6"} if dashed else {}
    color = COLORS[letter] if true else EXTRA
    dot = _svg("circle", cx=_number(x1), cy=_number(y1), r=2.5, fill=color)
    line = _svg("path", d=path, fill="none", stroke=color, stroke_width="1.6" if true else "2.2", **style)
    return _svg("g", _svg("title", f"{source} → {port}"), line, dot)


def _legend(y: int, both: bool) -> tuple[Html, int]:
    """Return the meaning of colors, and its width."""
    entries = [(COLORS[letter], WORDS[letter], "") for letter in ("q", "k", "v", "")]
    entries += [(EXTRA, "found, not true", ""), ("#7f7f7f", "missed", MISSED)] if both else []
    parts, x = [], MARGIN
    for color, word, dashes in entries:
        style = {"stroke_dasharray": dashes} if dashes else {}
        parts.append(_svg("path", d=f"M{x} {y + 8}h18", stroke=color, stroke_width=2, **style))
        parts.append(_svg("text", word, x=x + 22, y=y + 12, fill="currentColor"))
        x += 34 + 6 * len(word)
    return Html("".join(parts)), x


def _svg(name: str, *inside: object, **attributes: object) -> Html:
    """Return an element; underscores in names of attributes are hyphens."""
    return tag(name, *inside, **{key.replace("_", "-"): value for key, value in attributes.items()})


def _number(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")
