"""Hierarchies: which grammars are some, and the classes of their sentences, against Earley's chart."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from built import rooted
from cases import each
from vitrify.errors import BuildRefused, SpecError
from vitrify.spec.grammars.families import random_hierarchy
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.hierarchy import Hierarchy


def by_chart(grammar: Grammar, tree: Hierarchy, words: tuple[str, ...]) -> list[str]:
    roots = {name: rooted(grammar, name) for name in tree.classes}
    return [name for name, root in roots.items() if set(words) <= set(root.terminals) and root.accepts(words)]


@pytest.mark.parametrize(("v", "m", "s", "L", "classes"), [(3, 2, 2, 2, 2), (2, 1, 3, 2, 2), (3, 1, 2, 3, 1)])
def test_classes_are_those_of_the_chart(v: int, m: int, s: int, L: int, classes: int) -> None:
    grammar = random_hierarchy(v, m, s, L, seed=1, classes=classes)
    tree = Hierarchy.of(grammar)
    rng = np.random.default_rng(0)
    every = list(product(tree.words, repeat=tree.length))
    asked = [every[i] for i in rng.choice(len(every), size=min(60, len(every)), replace=False).tolist()]
    asked += [tree.draw(rng) for _ in range(20)]
    for words in asked:
        found = tree.classify(words)
        assert by_chart(grammar, tree, words) == ([] if found is None else [found])
    assert tree.classify(asked[0][:-1]) is None


def test_examples_make_every_rule_meet_every_rule_of_its_children() -> None:
    tree = Hierarchy.of(random_hierarchy(4, 2, 2, 3, seed=0, classes=3))
    examples = list(tree.examples(np.random.default_rng(0)))
    met = set()
    for words in examples:
        assert tree.classify(words)
        row: list[tuple[int, object]] = [(0, word) for word in words]
        names = list(words)
        for level, rules in enumerate(tree.levels):
            groups = [tuple(names[i : i + 2]) for i in range(0, len(names), 2)]
            chosen = [next(r for r in rules if tuple(s.name for s in r.rhs) == group) for group in groups]
            met |= {(level, rule, place, row[2 * at + place][1]) for at, rule in enumerate(chosen) for place in (0, 1)}
            names, row = [rule.lhs for rule in chosen], [(level, rule) for rule in chosen]
    wanted = sum(
        1 if level == 0 else len([r for r in tree.levels[level - 1] if r.lhs == child.name])
        for level, rules in enumerate(tree.levels)
        for rule in rules
        for child in rule.rhs
    )
    assert len(met) == wanted == len(examples)


@each(
    ("text", "said"),
    [
        ("S -> 'a' 'b' | 'a'", "one length, but there are S -> 'a' 'b' and S -> 'a'"),
        ("S -> A 'b'\nA -> 'a' 'b'", "height just below, but there is S -> A 'b'"),
        ("S -> A | B\nA -> 'a' 'b'\nB -> 'a' 'b'", "same right side, but there are A -> 'a' 'b' and B -> 'a' 'b'"),
        ("S -> A | B\nA -> B B\nB -> 'a' 'b'", "classes must have one height"),
    ],
)
def test_other_grammars_are_refused_with_the_rule(text: str, said: str) -> None:
    with pytest.raises(BuildRefused, match=f"no hierarchy: .*{said}"):
        Hierarchy.of(Grammar.from_text(text))
    with pytest.raises(SpecError, match="leads back"):
        Hierarchy.of(Grammar.from_text("S -> S 'a' | 'a'"))


def test_a_grammar_whose_start_is_the_only_class() -> None:
    tree = Hierarchy.of(Grammar.from_text("S -> A A\nA -> 'a' 'b' | 'b' 'b'"))
    assert (tree.classes, tree.length, tree.arities) == (("S",), 4, (2, 2))
    assert tree.classify("abbb") == "S"
    assert tree.classify("aabb") is None
