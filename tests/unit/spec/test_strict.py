"""Formulas in terms of strict since mean the same, and are written as formulas."""

from __future__ import annotations

from itertools import product

import pytest

from cases import each
from formulas import random_formula
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.logic.strict import StrictTerms, Term


def formula(text: str) -> Formula:
    return Formula.from_text(f"alphabet: a b c\nlength: 9\n{text}")


def holds(term: Term, word: str, at: int) -> bool:
    """A term by definition: a strict since looks at every earlier position."""
    operator, *data = term
    if operator == "letters":
        return word[at] in set(data[0])
    if operator == "MOD":
        return at % int(data[1]) == int(data[0])
    if operator == "AT":
        return at in data
    if operator == "strict":
        left, right = data
        return any(holds(right, word, j) and all(holds(left, word, k) for k in range(j + 1, at)) for j in range(at))
    inner = [holds(part, word, at) for part in data]
    if operator == "chain":
        return inner[0] or (inner[1] and inner[2])
    return {"not": not inner[0], "and": all(inner), "iff": inner[0] == inner[-1]}[operator]


@pytest.mark.long
@each("seed", range(60))
def test_terms_mean_what_the_formula_means(seed: int) -> None:
    spec = random_formula(seed, 3, letters="ab")
    root = StrictTerms(spec).root
    for word in product("ab", repeat=5):
        wanted = spec.program(word)
        assert [holds(root, "".join(word), at) for at in range(5)] == wanted, str(spec)


@pytest.mark.long
@each("seed", range(20))
def test_a_strict_since_is_decided_at_its_last_mark(seed: int) -> None:
    terms = StrictTerms(random_formula(seed, 3, letters="ab"))
    for term in terms.parts():
        for word in product("ab", repeat=4) if term[0] == "strict" else ():
            marks = [j for j in range(3) if holds(terms.mark(term), "".join(word), j)]
            assert holds(term, "".join(word), 3) == bool(marks and holds(term[2], "".join(word), marks[-1]))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Y a", "Y a"),
        ("Y (a S b)", "Y (a S b)"),
        ("!c S b", "!c S b"),
        ("O a", "!(!a & (!(Y (O a))))"),
        ("a | b", "!c"),
        ("a & b", "false"),
        ("(a -> a) <-> (b | !b)", "true"),
        ("Y true & !Y true", "false"),
        ("Y a & Y a", "Y a"),
        ("Y (b S true)", "Y true"),
        ("Y false | (a S false)", "false"),
        ("Y a <-> true", "Y a"),
        ("Y a <-> Y b", "(Y a) <-> (Y b)"),
        ("MOD(1, 2) & MOD(0, 1)", "MOD(1, 2)"),
        ("Y AT(2, 0)", "Y (AT(0, 2))"),
    ],
)
def test_terms_are_simplified_and_written_as_formulas(text: str, written: str) -> None:
    terms = StrictTerms(formula(text))
    assert terms.text(terms.root) == written


def test_long_texts_are_cut_in_the_middle() -> None:
    terms = StrictTerms(formula("H (a -> Y (b & Y (c & Y a)))"))
    texts = [terms.text(part) for part in terms.parts()]
    assert max(map(len, texts)) == 40
    assert any("…" in text for text in texts)


def test_parts_come_after_what_they_are_made_of() -> None:
    terms = StrictTerms(formula("H (a -> Y (b S (c & Y a))) & !c"))
    seen: set[Term] = set()
    for part in terms.parts():
        assert {other for other in part[1:] if isinstance(other, tuple)} <= seen
        assert part[0] != "strict" or terms.mark(part) in seen
        seen.add(part)
    assert terms.root in seen
