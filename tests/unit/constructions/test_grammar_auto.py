"""The default construction of grammars declares the smallest width, and is never much wider or slower than others."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from cases import each
from vitrify.constructions import grammar_one_pass
from vitrify.constructions.catalogue import DeclaredSizes, build, chosen, fitting
from vitrify.constructions.grammar_auto import narrowest
from vitrify.errors import BuildRefused
from vitrify.spec.grammars.families import random_grammar, random_hierarchy
from vitrify.spec.grammars.grammar import Grammar

EXAMPLES = Path(__file__).parents[3] / "examples"
MAX_SHAPES = 12  # beyond, what lists shapes takes long, and is ever wider
ALIKE = ("spans", "shapes", "one-pass", "unambiguous")  # all give sets of next words
MAX_WIDER, MAX_SLOWER = 1.5, 3.0
SLACK = 0.01  # seconds that are no difference in time


def drawn(seed: int) -> Grammar:
    return random_grammar(
        seed, depth=2 + seed % 4, nonterminals=2 + seed % 3, words=2 + seed * 7 % 11, rules=2 + seed // 3 % 3,
        arity=2 + seed % 2, shapes=MAX_SHAPES, ambiguous=None, unequal=None,
    )  # fmt: skip


GRAMMARS = {f"random {seed}": drawn(seed) for seed in range(40)}
GRAMMARS |= {str(shape): random_hierarchy(*shape, seed=0) for shape in ((2, 2, 2, 3), (3, 2, 3, 2))}
GRAMMARS |= {path.name: Grammar.read(path) for path in sorted(EXAMPLES.glob("*.?cfg")) + sorted(EXAMPLES.glob("*.cfg"))}


def width(sizes: DeclaredSizes) -> int:
    width = sizes.at_most["d_model"]
    assert isinstance(width, int)
    return width


@pytest.mark.long
@each("name", GRAMMARS)
def test_the_default_is_not_much_wider_or_slower_than_the_best(name: str) -> None:
    grammar = GRAMMARS[name]
    widths, seconds = {}, {}
    for construction in ("auto", *ALIKE):
        try:
            begin = process_time()
            widths[construction] = build(grammar, construction).sizes.d_model
            seconds[construction] = process_time() - begin
        except BuildRefused:
            continue
    assert widths["auto"] <= MAX_WIDER * min(widths.values()), widths
    again = process_time()
    build(grammar, "auto")
    quick = min(seconds["auto"], process_time() - again)
    assert quick <= MAX_SLOWER * min(seconds.values()) + SLACK, seconds


@each("name", GRAMMARS)
def test_the_default_declares_the_smallest_width(name: str) -> None:
    grammar = GRAMMARS[name]
    assert chosen(grammar, None).name == "auto"
    entries = {entry.name: entry for entry in fitting(grammar)}
    least = min(width(entries[each].sizes(grammar)) for each in ("spans", "shapes", "one-pass"))
    assert width(entries["auto"].sizes(grammar)) == least
    assert build(grammar).sizes.d_model <= least


def test_a_narrower_declaration_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = GRAMMARS["phrases.pcfg"]
    assert width(narrowest(grammar, None, "dyadic").sizes) > 1
    monkeypatch.setattr(grammar_one_pass, "sizes", lambda _grammar: DeclaredSizes(at_most={"d_model": 1}))
    assert "one-pass" in narrowest(grammar, None, "dyadic").build(grammar).name
