"""Laws of grammars over random ones, against derivations listed one by one."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, pairwise, product
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from next_words import answers
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.grammar_spans import grammar_spans, sizes
from vitrify.errors import BuildRefused, SpecError
from vitrify.kit import assemble
from vitrify.spec.grammars.checks import NAME
from vitrify.spec.grammars.depth import derivation_heights
from vitrify.spec.grammars.grammar import END, Grammar, Rule, Symbol
from vitrify.spec.grammars.levels import Leveled
from vitrify.spec.grammars.rules import descendants, grouped

Sentence = tuple[str, ...]
Derivation = tuple[Sentence, Fraction, int]
"""The words, the probability and the height of one derivation."""

MOST = 2_000  # derivations of a grammar that are listed


def weighted(draw: st.DrawFn, rules: list[Rule]) -> list[Rule]:
    """The rules with random probabilities that sum to one."""
    found = []
    for group in grouped(rules).values():
        weights = [draw(st.integers(1, 9)) for _ in group]
        found += [Rule(r.lhs, r.rhs, Fraction(w, sum(weights))) for r, w in zip(group, weights, strict=True)]
    return found


RESERVED = {"<s>", END}


@st.composite
def acyclic(draw: st.DrawFn, probabilities: bool = False) -> Grammar:
    """Grammars without recursion: right sides use symbols further down the list only."""
    names = ["S", "A", "B", "C"][: draw(st.integers(1, 4))]
    words = [Symbol(word, terminal=True) for word in "ab"]
    rules: list[Rule] = []
    for place, name in enumerate(names):
        symbol = st.sampled_from([*words, *map(Symbol, names[place + 1 :])])
        sides = draw(st.lists(st.lists(symbol, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3, unique=True))
        rules += [Rule(name, side) for side in sides]
    kept = set(descendants("S", grouped(rules)))
    rules = [rule for rule in rules if rule.lhs in kept]
    grammar = Grammar("S", tuple(weighted(draw, rules) if probabilities else rules))
    assume(grammar.derivations() <= MOST)
    return grammar


@st.composite
def any_grammar(draw: st.DrawFn, probabilities: bool = False, strange: bool = False) -> Grammar:
    """Grammars with or without recursion, if asked for with strange names."""
    nonterminal = st.from_regex(NAME, fullmatch=True).filter(lambda name: len(name) < 8)
    text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
    word = text.filter(lambda w: not any(c.isspace() for c in w) and not ("'" in w and '"' in w) and w not in RESERVED)
    names = draw(st.lists(nonterminal, min_size=1, max_size=4, unique=True)) if strange else ["S", "A", "B"]
    words = draw(st.lists(word, min_size=1, max_size=4, unique=True)) if strange else ["a", "b"]
    symbol = st.sampled_from([*map(Symbol, names), *(Symbol(w, terminal=True) for w in words)])
    rules: list[Rule] = []
    for name in draw(st.permutations(names)):
        sides = draw(st.lists(st.lists(symbol, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3, unique=True))
        rules += [Rule(name, side) for side in sides]
    lost = {rule.lhs for rule in rules} - derivation_heights(grouped(rules), any).keys()
    rules = [rule for rule in rules if not lost & {rule.lhs, *rule.children}]
    assume(rules)
    start = draw(st.sampled_from([rule.lhs for rule in rules])) if strange else "S"
    kept = set(descendants(start, grouped(rules)))
    rules = [rule for rule in rules if rule.lhs in kept]
    assume(rules)
    if strange:
        rules = draw(st.permutations(rules))
    try:
        return Grammar(start, tuple(weighted(draw, rules) if probabilities else rules))
    except SpecError as error:
        assume("circle" not in str(error))
        raise


def derivations(grammar: Grammar, highest: int) -> list[Derivation]:
    """All derivations up to a height, listed by plain recursion."""

    def of(symbol: Symbol, left: int) -> Iterator[Derivation]:
        if symbol.terminal:
            yield (symbol.name,), Fraction(1), 0
        elif left:
            for rule in grammar.rules_of(symbol.name):
                for parts in product(*(list(of(child, left - 1)) for child in rule.rhs)):
                    chance = rule.probability or Fraction(1)
                    for _, below, _ in parts:
                        chance *= below
                    yield sum((words for words, _, _ in parts), ()), chance, 1 + max(h for _, _, h in parts)

    return list(of(Symbol(grammar.start), highest))


def level_derivations(levels: Leveled) -> Counter[tuple[Sentence, Fraction]]:
    """All derivations of a leveled grammar with their probabilities, level by level."""
    below: list[list[tuple[Sentence, Fraction]]] = [[((word,), Fraction(1))] for word in levels.words]
    for h in range(1, levels.depth + 1):
        here: list[list[tuple[Sentence, Fraction]]] = [[] for _ in levels.symbols[h]]
        for rule in levels.rules[h]:
            for parts in product(*(below[child] for child in rule.rhs)):
                chance = rule.probability or Fraction(1)
                for _, more in parts:
                    chance *= more
                here[rule.lhs].append((sum((words for words, _ in parts), ()), chance))
        below = here
    return Counter(below[0])


def prefixes(sentences: set[Sentence]) -> set[Sentence]:
    return {sentence[:t] for sentence in sentences for t in range(len(sentence) + 1)}


@settings(deadline=None)
@given(st.booleans().flatmap(lambda chances: any_grammar(probabilities=chances, strange=True)))
def test_reading_undoes_writing(grammar: Grammar) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{grammar.suffix}"
        grammar.write(path)
        once = path.read_bytes()
        again = Grammar.read(path)
        again.write(path)
        assert again == grammar == Grammar.from_text(grammar.to_text())
        assert hash(again) == hash(grammar)
        assert path.read_bytes() == once
    if len(grammar.rules) <= Grammar.DRAWN:
        assert eval(repr(grammar)) == grammar


@settings(deadline=None)
@given(acyclic())
def test_listing_agrees_with_plain_recursion(grammar: Grammar) -> None:
    listed = derivations(grammar, grammar.depth)
    counts = Counter(words for words, _, _ in listed)
    assert grammar.parses() == counts
    assert list(grammar.sentences()) == sorted(counts, key=lambda s: (len(s), s))
    assert grammar.derivations() == len(listed)
    assert grammar.lengths() == {len(words) for words in counts}
    assert max(height for _, _, height in listed) == grammar.depth
    witness = grammar.ambiguous()
    assert (witness is not None) == (max(counts.values()) > 1)
    assert witness is None or counts[witness] > 1


@settings(deadline=None)
@given(acyclic())
def test_next_words_are_those_of_the_listed_sentences(grammar: Grammar) -> None:
    language = set(grammar.sentences())
    follow: dict[Sentence, set[str]] = {}
    for sentence in language:
        for t, word in enumerate([*sentence, END]):
            follow.setdefault(sentence[:t], set()).add(word)
    for prefix, expected in follow.items():
        assert grammar.next_words(prefix) == expected
        for word in set(grammar.terminals) - expected:
            assert grammar.next_words([*prefix, word]) == frozenset()


@settings(max_examples=examples(60), deadline=None)
@given(acyclic(probabilities=True))
def test_next_word_probabilities_are_sums_over_derivations(grammar: Grammar) -> None:
    chance: dict[Sentence, Fraction] = {}
    for words, p, _ in derivations(grammar, grammar.depth):
        chance[words] = chance.get(words, Fraction(0)) + p
    assert sum(chance.values()) == 1
    mass: dict[Sentence, Fraction] = {}
    for words, p in chance.items():
        for t in range(len(words) + 2):
            start = (*words, END)[:t]
            mass[start] = mass.get(start, Fraction(0)) + p
    for prefix in prefixes(set(chance)):
        expected = {w: mass[*prefix, w] / mass[prefix] for w in (*grammar.terminals, END) if (*prefix, w) in mass}
        assert grammar.next_word_probs(prefix) == expected
        assert grammar.next_words(prefix) == set(expected)
        assert grammar.probability(prefix) == chance.get(prefix, 0)


@settings(deadline=None)
@given(acyclic(probabilities=True))
def test_levels_keep_every_derivation_with_its_probability(grammar: Grammar) -> None:
    levels = grammar.leveled()
    listed = Counter((words, p) for words, p, _ in derivations(grammar, grammar.depth))
    assert level_derivations(levels) == listed
    ended = levels.with_end()
    assert level_derivations(ended) == Counter({((*words, END), p): n for (words, p), n in listed.items()})
    assert (levels.depth, ended.depth) == (grammar.depth, grammar.depth + 1)
    assert ended.size == levels.size + levels.depth + 1
    assert levels.start == grammar.start
    own = [rule for level in levels.rules for rule in level if not rule.padding]
    assert len(own) == len(grammar.rules)
    for h, rules in enumerate(levels.rules):  # at most one padding rule for each symbol and level
        pads = [rule.lhs for rule in rules if rule.padding]
        assert len(pads) == len(set(pads)) <= len(grammar.nonterminals) + len(grammar.terminals)
        assert all(len(rule.rhs) == 1 for rule in rules if rule.padding), h


Tree = tuple["Tree", ...]


def trees(levels: Leveled) -> set[Tree]:
    """The shapes of the start symbol as nested tuples, by plain recursion."""
    below: list[set[Tree]] = [{()} for _ in levels.words]
    for h in range(1, levels.depth + 1):
        here: list[set[Tree]] = [set() for _ in levels.symbols[h]]
        for rule in levels.rules[h]:
            here[rule.lhs] |= set(product(*(below[child] for child in rule.rhs)))
        below = here
    return below[0]


@settings(deadline=None)
@given(acyclic())
def test_shapes_are_counted_and_listed_alike(grammar: Grammar) -> None:
    levels = grammar.leveled()
    expected = trees(levels)
    shapes = levels.shapes()
    assert levels.count_shapes() == len(shapes) == len(expected)

    def tree(h: int, number: int) -> Tree:
        return tuple(tree(h - 1, child) for child in shapes.trees[h][number])

    assert {tree(levels.depth, number) for number in shapes.of_start} == expected
    if len(expected) > 1:
        with pytest.raises(BuildRefused, match="reached"):
            levels.shapes(limit=len(expected) - 1)


@settings(deadline=None)
@given(acyclic())
def test_nodes_tile_the_sentence_and_usable_rules_are_those_that_fit(grammar: Grammar) -> None:
    levels = grammar.leveled()
    shapes = levels.shapes()
    for number in shapes.of_start[:20]:
        nodes = shapes.nodes(number)
        width = shapes.widths[-1][number]
        assert width in grammar.lengths()
        for h, row in enumerate(nodes):
            assert row[0].first == 1
            assert row[-1].last == width
            assert all(a.last + 1 == b.first for a, b in pairwise(row))
            for node in row if h else ():
                below = [nodes[h - 1][child] for child in node.children]
                assert (below[0].first, below[-1].last) == (node.first, node.last)
                assert tuple(child.shape for child in below) == shapes.trees[h][node.shape]
                for symbol, rules in enumerate(levels.rules_of[h]):
                    fits = any(shapes.usable(h, rule, node.shape) for rule in rules)
                    assert fits == (node.shape in shapes.of_symbol[h][symbol])


@settings(deadline=None)
@given(acyclic())
def test_ambiguity_within_a_shape_is_found(grammar: Grammar) -> None:
    levels = grammar.leveled()
    below: list[Counter[tuple[Sentence, Tree]]] = [Counter([((word,), ())]) for word in levels.words]
    twice: set[tuple[int, str, Sentence]] = set()
    for h in range(1, levels.depth + 1):
        here: list[Counter[tuple[Sentence, Tree]]] = [Counter() for _ in levels.symbols[h]]
        for rule in levels.rules[h]:
            for parts in product(*(below[child].elements() for child in rule.rhs)):
                here[rule.lhs][sum((words for words, _ in parts), ()), tuple(shape for _, shape in parts)] += 1
        for name, counter in zip(levels.symbols[h], here, strict=True):
            twice |= {(h, name, words) for (words, _), count in counter.items() if count > 1}
        below = here
    found = levels.shapes().ambiguous()
    assert (found is not None) == bool(twice)
    assert found is None or (found.level, found.symbol, found.words) in twice
    assert found is None or grammar.ambiguous() is not None


@settings(max_examples=examples(60), deadline=None)
@given(any_grammar(probabilities=True), st.integers(1, 3))
def test_cutting_keeps_the_low_derivations_in_proportion(grammar: Grammar, depth: int) -> None:
    listed = derivations(grammar, depth)
    if not listed:
        with pytest.raises(SpecError, match="the lowest"):
            grammar.cut(depth)
        return
    cut = grammar.cut(depth)
    assume(cut.derivations() <= MOST)
    total = sum((p for _, p, _ in listed), Fraction(0))
    expected = Counter((words, p / total, height) for words, p, height in listed)
    assert Counter(derivations(cut, depth)) == expected
    assert cut.cycle() is None
    assert cut.depth == max(height for _, _, height in listed)
    assert all(sum(r.probability or 0 for r in cut.rules_of(lhs)) == 1 for lhs in cut.nonterminals)


@settings(deadline=None)
@given(acyclic(probabilities=True))
def test_cutting_no_deeper_than_needed_changes_nothing_but_the_order(grammar: Grammar) -> None:
    assert set(grammar.cut(grammar.depth).rules) == set(grammar.rules)
    assert grammar.cut(grammar.depth) == grammar.cut(grammar.depth + 3)


def short_sentences(grammar: Grammar, longest: int) -> set[Sentence]:
    """All sentences up to a length, of any grammar: sets that grow until nothing is new."""
    found: dict[str, set[Sentence]] = {name: set() for name in grammar.nonterminals}
    grown = True
    while grown:
        grown = False
        for rule in grammar.rules:
            strings: set[Sentence] = {()}
            for child in rule.rhs:
                right = {(child.name,)} if child.terminal else found[child.name]
                strings = {a + b for a in strings for b in right if len(a) + len(b) <= longest}
            grown = grown or not strings <= found[rule.lhs]
            found[rule.lhs] |= strings
    return found[grammar.start]


@settings(max_examples=examples(60), deadline=None)
@given(any_grammar())
def test_next_words_of_recursive_grammars(grammar: Grammar) -> None:
    longest = 5
    sentences = short_sentences(grammar, longest)
    begun = prefixes(sentences)
    for length in range(longest + 1):
        for prefix in product(grammar.terminals, repeat=length):
            after = grammar.next_words(prefix)
            assert (END in after) == (prefix in sentences) == grammar.accepts(prefix)
            assert {w for w in grammar.terminals if (*prefix, w) in begun} <= after
            assert all(grammar.next_words([*prefix, w]) for w in after - {END})  # what is legal goes on
            assert bool(after) == (not prefix or prefix[-1] in grammar.next_words(prefix[:-1]))


@settings(max_examples=examples(30), deadline=None)
@given(acyclic(probabilities=True), st.integers(0, 2**32))
def test_samples_are_sentences_and_repeat_with_the_seed(grammar: Grammar, seed: int) -> None:
    drawn = grammar.sample(5, seed)
    assert drawn == grammar.sample(5, seed)
    assert all(grammar.accepts(sentence) for sentence in drawn)


@settings(max_examples=examples(40), deadline=None)
@given(acyclic(), st.sampled_from(["softmax", "sparsemax", "hard"]))
def test_nets_over_spans_agree_with_the_chart(grammar: Grammar, attention: Attention) -> None:
    weights = assemble(grammar_spans(grammar, attention=attention))
    prefixes = list(islice(grammar.prefixes(), 300))
    assert answers(weights, prefixes) == [set(grammar.next_words(words)) for words in prefixes]
    assert not sizes(grammar, max_length=None, positions="dyadic").problems(weights.sizes)
