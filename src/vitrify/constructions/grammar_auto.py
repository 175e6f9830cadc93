"""A bounded-depth grammar becomes the network whose construction declares the smallest width.

All candidates are in the spirit of Nandakumar et al. (2026, arXiv 2606.17522).

The candidates are spans, shapes and one pass (`grammar_spans.py`, `grammar_shapes.py`, `grammar_one_pass.py`): all give
the sets of next words of every grammar without recursion. Where trees have many shapes, only spans are a candidate,
because their sizes do not depend on the number of shapes: to list the others would take longer than to build the net.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from vitrify.constructions import grammar_one_pass, grammar_shapes, grammar_spans
from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, Positions, construction
from vitrify.kit.network import Network
from vitrify.kit.positions import CodeName
from vitrify.spec.grammars.grammar import Grammar

MAX_LISTED_SHAPES = 32  # of sentences, up to which all candidates are compared


class Declared(NamedTuple):
    """A construction for a grammar: its declared sizes and what builds it."""

    sizes: DeclaredSizes
    build: Callable[..., Network]


def narrowest(grammar: Grammar, max_length: int | None, positions: CodeName) -> Declared:
    """Return the candidate that declares the smallest width, spans where several do."""
    spans = grammar_spans.sizes(grammar, max_length=max_length, positions=positions)
    candidates = [Declared(spans, partial(grammar_spans.grammar_spans, positions=positions))]
    if _few_shapes(grammar):
        candidates.append(Declared(grammar_shapes.sizes(grammar), grammar_shapes.grammar_shapes))
        candidates.append(Declared(grammar_one_pass.sizes(grammar), grammar_one_pass.one_pass))
    return min(candidates, key=lambda candidate: candidate.sizes.at_most["d_model"])


def _few_shapes(grammar: Grammar) -> bool:
    try:
        return grammar.leveled().count_shapes() <= MAX_LISTED_SHAPES
    except BuildRefused:
        return False


def sizes(grammar: Grammar, *, max_length: int | None, positions: CodeName) -> DeclaredSizes:
    """Return the bounds of the candidate that is built."""
    return narrowest(grammar, max_length, positions).sizes


@construction(
    "auto",
    "spans, shapes or one pass: the one that declares the smallest width",
    sizes,
    default=True,
    certified=("to T", "to T"),
)
def grammar_auto(
    grammar: Grammar,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength | None = None,
    positions: Positions = "dyadic",
) -> Network:
    """Return the network of the construction that declares the smallest width."""
    return narrowest(grammar, max_length, positions).build(grammar, attention=attention, max_length=max_length)
