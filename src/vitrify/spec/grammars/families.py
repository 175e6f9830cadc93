"""Small families of grammars, for tests, examples and claims."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from vitrify.arrays import Int
from vitrify.spec.formats.text import SpecError, at_least
from vitrify.spec.grammars.grammar import Grammar, Rule, Symbol
from vitrify.spec.grammars.language import derivations
from vitrify.spec.grammars.rules import descendants, grouped

MAX_DRAWS = 10_000  # after these, no random grammar with the required properties is expected


def random_grammar(
    seed: int,
    *,
    depth: int = 3,
    nonterminals: int = 2,
    words: int = 3,
    rules: int = 3,
    arity: int = 3,
    ambiguous: bool | None = True,
    unequal: bool | None = True,
    largest: int = 5_000,
    shapes: int | None = None,
) -> Grammar:
    """Return a random grammar without recursion: up to `nonterminals` at each height below `depth`, `S` on top.

    Each has one to `rules` right sides of one to `arity` symbols, one of them from the height just below, the others
    from anywhere below. Draws are rejected that have more than `largest` derivations, or differ from `ambiguous` (some
    sentence has two derivations) or `unequal` (sentences differ in length), or whose derivation trees have more than
    `shapes` shapes. None means no condition.

    >>> print(random_grammar(0, depth=2))
    S -> A0 A0 | 'b' A1 | A0 A1
    A0 -> 'b'
    A1 -> 'a' 'a' 'a' | 'b' 'c' 'a' | 'c'
    """
    for name, value in [("depth", depth), ("nonterminals", nonterminals), ("words", words), ("arity", arity)]:
        at_least(name, value, 1)
    rng = np.random.default_rng(seed)
    for _ in range(MAX_DRAWS):
        drawn = _draw(rng, depth, nonterminals, words, rules, arity)
        children_first = tuple(reversed(dict.fromkeys(rule.lhs for rule in drawn)))  # they are drawn parents first
        if derivations(children_first, grouped(drawn))["S"] > largest:
            continue
        grammar = Grammar("S", tuple(drawn))
        if unequal is not None and (len(grammar.lengths()) > 1) != unequal:
            continue
        if shapes is not None and grammar.leveled().count_shapes() > shapes:
            continue
        if ambiguous is None or (grammar.ambiguous(largest) is not None) == ambiguous:
            return grammar
    raise SpecError([f"no such grammar was found in {MAX_DRAWS} draws; ask for more rules, or for more derivations"])


def _draw(rng: np.random.Generator, depth: int, nonterminals: int, words: int, rules: int, arity: int) -> list[Rule]:
    """Rules of the start symbol `S` and of what it uses, parents first."""
    below = [[Symbol(letter(k), terminal=True) for k in range(words)]]
    for height in range(1, depth):
        count = int(rng.integers(1, nonterminals + 1))
        below.append([Symbol(f"{chr(ord('A') + (height - 1) % 18)}{k}") for k in range(count)])
    drawn: list[Rule] = []
    for height in range(depth, 0, -1):
        anything = [symbol for row in below[:height] for symbol in row]
        for symbol in [Symbol("S")] if height == depth else below[height]:
            sides: dict[tuple[Symbol, ...], None] = {}
            for _ in range(int(rng.integers(1, rules + 1))):
                side = [anything[int(rng.integers(len(anything)))] for _ in range(int(rng.integers(1, arity + 1)))]
                side[int(rng.integers(len(side)))] = below[height - 1][int(rng.integers(len(below[height - 1])))]
                sides[tuple(side)] = None
            drawn += [Rule(symbol.name, side) for side in sides]
    reachable = set(descendants("S", grouped(drawn)))
    return [rule for rule in drawn if rule.lhs in reachable]


def random_pcfg(seed: int, grammar: Grammar | None = None) -> Grammar:
    """Return a grammar, by default `random_grammar(seed)`, with random integers 1 to 9 as rule weights."""
    grammar = random_grammar(seed) if grammar is None else grammar
    rng = np.random.default_rng([seed, 1])
    weighted = []
    for lhs in grammar.nonterminals:
        weights = rng.integers(1, 10, size=len(grammar.rules_of(lhs))).tolist()
        weighted += [
            Rule(lhs, rule.rhs, Fraction(weight, sum(weights)))
            for rule, weight in zip(grammar.rules_of(lhs), weights, strict=True)
        ]
    return Grammar(grammar.start, tuple(weighted))


def random_hierarchy(v: int, m: int, s: int, L: int, seed: int, *, classes: int = 1) -> Grammar:
    r"""Return a Random Hierarchy Model: $L$ levels of $v$ symbols, each with $m$ equally likely right sides.

    At every level the $vm$ right sides are drawn without replacement from all $v^s$ strings of length $s$, so no two
    symbols share one and each string has one parse; all sentences have $s^L$ words. With one class the start symbol is
    the root itself, with more of them it is one of that many roots, equally probable. Symbols that the draw leaves
    unused are left out.

    >>> print(random_hierarchy(2, 2, 2, 2, seed=0))
    S -> L1_1 L1_1 [0.5] | L1_0 L1_0 [0.5]
    L1_0 -> 'b' 'b' [0.5] | 'a' 'b' [0.5]
    L1_1 -> 'a' 'a' [0.5] | 'b' 'a' [0.5]
    """
    words = [Symbol(letter(k), terminal=True) for k in range(v)]
    below, rules_by_level = words, list[list[Rule]]()
    for level, table in enumerate(hierarchy_tables(v, m, s, L, seed, classes=classes), start=1):
        alone = level == L and classes == 1
        symbols = [Symbol("S" if alone else f"L{level}_{k}") for k in range(len(table))]
        rules = []
        for symbol, sides in zip(symbols, table.tolist(), strict=True):
            rules += [Rule(symbol.name, tuple(below[child] for child in side), Fraction(1, m)) for side in sides]
        rules_by_level.append(rules)
        below = symbols
    if classes > 1:
        rules_by_level.append([Rule("S", (symbol,), Fraction(1, classes)) for symbol in below])
    rules = [rule for level in reversed(rules_by_level) for rule in level]
    reachable = set(descendants("S", grouped(rules)))
    return Grammar("S", tuple(rule for rule in rules if rule.lhs in reachable))


def hierarchy_tables(
    v: int, m: int, s: int, L: int, seed: int, *, classes: int = 1
) -> list[Int[np.ndarray, "symbol production position"]]:
    """Return the right sides of a `random_hierarchy`: per level, lowest first, [symbol, production, position].

    Symbols that no sentence uses are included.

    >>> [table.shape for table in hierarchy_tables(3, 2, 2, 2, seed=0, classes=2)]
    [(3, 2, 2), (2, 2, 2)]
    """
    for name, value in [("v", v), ("m", m), ("s", s), ("L", L), ("classes", classes)]:
        at_least(name, value, 1)
    if max(v, classes) * m > v**s:
        raise SpecError([f"no right side may be shared: {max(v, classes)} symbols with m = {m} of v^s = {v**s}"])
    rng = np.random.default_rng(seed)
    counts = [v] * (L - 1) + [classes]
    codes = [rng.choice(v**s, size=count * m, replace=False).reshape(count, m, 1) for count in counts]
    return [picks // v ** np.arange(s) % v for picks in codes]


PHRASES = """
S -> NPs VPs | NPp VPp | PP ',' NPs VPs | PP ',' NPp VPp | Adv ',' NPs VPs | Adv ',' NPp VPp
NPs -> Dets NBs | Name | NPs_head Rs | NPs_head PP
NPp -> Detp NBp | NPp_head Rp | NPp_head PP
NPs_head -> Dets NBs
NPp_head -> Detp NBp
NBs -> Ns | Adj Ns | Adj Adj Ns
NBp -> Np | Adj Np | Adj Adj Np
NP -> NPs | NPp
Rs -> 'that' VPs | 'who' VPs | 'that' NPs Vts | 'that' NPp Vtp
Rp -> 'that' VPp | 'who' VPp | 'that' NPs Vts | 'that' NPp Vtp
VPs -> Vis | Vis Adv | Vts NP | Vts NP PP | Vds NP 'to' NP | Vcs 'that' S
VPp -> Vip | Vip Adv | Vtp NP | Vtp NP PP | Vdp NP 'to' NP | Vcp 'that' S
PP -> P NP
"""

LEXICON = {
    "Dets": "the a this every",
    "Detp": "the some these many",
    "Name": "alice bob carol dave erin frank grace henry irene jack kate liam",
    "Ns": "dog cat bird teacher farmer doctor painter sailor baker king queen horse rabbit poet singer "
    "pilot guard writer nurse judge dancer driver hunter miller tailor weaver lawyer student "
    "neighbour soldier cousin gardener cook priest captain clerk child fox wolf witness",
    "Np": "dogs cats birds teachers farmers doctors painters sailors bakers kings queens horses rabbits "
    "poets singers pilots guards writers nurses judges dancers drivers hunters millers tailors "
    "weavers lawyers students neighbours soldiers cousins gardeners cooks priests captains clerks "
    "children foxes wolves witnesses",
    "Adj": "old young small large red happy quiet clever brave tired hungry strange tall short kind proud "
    "gentle nervous famous honest lazy polite rich poor curious careful stubborn cheerful",
    "Adv": "today often quietly slowly again outside here there soon twice happily alone",
    "P": "near with behind beside without above below against like before",
    "Vis": "sleeps sings waits laughs dances runs smiles works travels arrives whispers swims",
    "Vip": "sleep sing wait laugh dance run smile work travel arrive whisper swim",
    "Vts": "sees likes follows helps finds hears paints calls visits admires trusts praises remembers avoids",
    "Vtp": "see like follow help find hear paint call visit admire trust praise remember avoid",
    "Vds": "gives shows brings sells sends offers",
    "Vdp": "give show bring sell send offer",
    "Vcs": "says knows thinks hopes believes claims",
    "Vcp": "say know think hope believe claim",
}


def english(depth: int = 7) -> Grammar:
    """Return a grammar of English phrases with agreement, relative clauses and complements, cut at a depth.

    >>> english()
    <Grammar: 312 rules, 46 nonterminals, 228 words, start 'S^7'>
    >>> english().depth, max(english().lengths())
    (7, 41)
    >>> print(*english().sample(1, seed=6)[0])
    beside this student that whispers , many polite young bakers think that with grace , many writers find frank
    """
    lexicon = "".join(
        f"{lhs} -> {' | '.join(repr(word) for word in words.split())}\n" for lhs, words in LEXICON.items()
    )
    return Grammar.from_text(PHRASES + lexicon).cut(depth)


def letter(k: int) -> str:
    """Return a name for the k-th word: a, b, …, then a26, a27, …"""
    return chr(ord("a") + k) if k < 26 else f"a{k}"
