r"""Grammars in levels: words at level 0, the start symbol alone at level $d$, every rule one level down.

Any grammar without recursion has this form: a nonterminal stands at the level of its height, and where a rule needs
a symbol from further below, a chain of padding symbols with one rule each leads down to it. Padding `NP` up to level 4
adds the symbols `NP↑3`, `NP↑4` and the rules `NP↑3 -> NP`, `NP↑4 -> NP↑3`; a padded word is written `'the'↑2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from vitrify.spec.formats.text import SpecError
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.rules import Symbol, number_text
from vitrify.spec.ngrams.trie import END

if TYPE_CHECKING:
    from vitrify.spec.grammars.shapes import Shapes

MAX_SHAPES = 10_000  # default limit of the listing, per level


@dataclass(frozen=True)
class LevelRule:
    """A rule at level $h$: `lhs` indexes the symbols of level $h$, `rhs` those of level $h - 1$."""

    lhs: int
    rhs: tuple[int, ...]
    probability: Fraction | None = None
    padding: bool = False


@dataclass(frozen=True, repr=False)
class Leveled:
    """A grammar whose rules at level $h$ lead to level $h - 1$; `symbols[h]` and `rules[h]` are those of level $h$.

    >>> levels = Grammar.from_text("S -> NP 'sleep'\\nNP -> 'the' N | 'cats'\\nN -> 'dogs'").leveled()
    >>> levels
    <Leveled: depth 3, symbols (4, 4, 2, 1), rules (0, 4, 3, 1)>
    >>> print(levels)
    3  S -> NP 'sleep'↑2
    2  NP -> 'the'↑1 N | 'cats'↑1
    2  'sleep'↑2 -> 'sleep'↑1
    1  'the'↑1 -> the
    1  N -> dogs
    1  'cats'↑1 -> cats
    1  'sleep'↑1 -> sleep
    """

    symbols: tuple[tuple[str, ...], ...]
    rules: tuple[tuple[LevelRule, ...], ...]

    # Sizes

    @property
    def depth(self) -> int:
        """Level $d$ of the start symbol."""
        return len(self.symbols) - 1

    @property
    def words(self) -> tuple[str, ...]:
        """Symbols of level 0."""
        return self.symbols[0]

    @property
    def start(self) -> str:
        """Symbol of the highest level."""
        return self.symbols[-1][0]

    @property
    def size(self) -> int:
        """Number $M$ of rules, padding included."""
        return sum(map(len, self.rules))

    @cached_property
    def rules_of(self) -> tuple[tuple[tuple[LevelRule, ...], ...], ...]:
        """Rules by level and left side: `rules_of[h][lhs]`, empty for words."""
        by_level: list[list[list[LevelRule]]] = [[[] for _ in names] for names in self.symbols]
        for h, rules in enumerate(self.rules):
            for rule in rules:
                by_level[h][rule.lhs].append(rule)
        return tuple(tuple(map(tuple, level)) for level in by_level)

    def __repr__(self) -> str:
        sizes = f"symbols {tuple(map(len, self.symbols))}, rules {tuple(map(len, self.rules))}"
        return f"<Leveled: depth {self.depth}, {sizes}>"

    def __str__(self) -> str:
        lines = []
        for h in reversed(range(1, self.depth + 1)):
            for name, rules in zip(self.symbols[h], self.rules_of[h], strict=True):
                sides = (" ".join(self.symbols[h - 1][child] for child in rule.rhs) for rule in rules)
                chances = ("" if r.probability is None else f" [{number_text(r.probability)}]" for r in rules)
                right = " | ".join(side + chance for side, chance in zip(sides, chances, strict=True))
                lines.append(f"{h}  {name} -> {right}")
        return "\n".join(lines)

    # Derived values

    def with_end(self) -> Leveled:
        """Return the same sentences, each followed by `</s>`: one level, one word and depth + 1 rules more.

        >>> print(Grammar.from_text("S -> 'a' | 'b'").leveled().with_end())
        2  S' -> S '</s>'↑1
        1  S -> a | b
        1  '</s>'↑1 -> </s>
        """
        if END in self.words:
            raise SpecError([f"the sentences end with {END} already"])
        chance = Fraction(1) if self.rules[-1][0].probability is not None else None
        symbols = [(*self.words, END)]
        rules: list[tuple[LevelRule, ...]] = [()]
        for h in range(1, self.depth + 1):
            symbols.append((*self.symbols[h], padded(Symbol(END, True), h)))
            chain = LevelRule(len(self.symbols[h]), (len(self.symbols[h - 1]),), chance, padding=True)
            rules.append((*self.rules[h], chain))
        symbols.append((f"{self.start}'",))
        rules.append((LevelRule(0, (0, 1), chance),))
        return Leveled(tuple(symbols), tuple(rules))

    def shapes(self, limit: int = MAX_SHAPES) -> Shapes:
        """Return the shapes of the derivation trees; refused where a level has more than `limit`."""
        from vitrify.spec.grammars.shapes import shapes

        return shapes(self, limit)

    def count_shapes(self) -> int:
        """Return the number of shapes of the derivation trees, without listing them."""
        from vitrify.spec.grammars.shapes import count_shapes

        return count_shapes(self)


def padded(symbol: Symbol, level: int) -> str:
    """Return the name of the padding symbol above another one."""
    return f"{symbol}↑{level}"


def leveled(grammar: Grammar) -> Leveled:
    """Return the levels of a grammar without its unreachable rules; symbols are in the order of first use."""
    heights = grammar.heights
    depth = heights[grammar.start]
    placed: list[dict[Symbol, int]] = [{} for _ in range(depth + 1)]  # per level, its symbols with their indices
    placed[depth][Symbol(grammar.start)] = 0
    rules: list[tuple[LevelRule, ...]] = []
    for h in range(depth, 0, -1):
        below = placed[h - 1]
        here: list[LevelRule] = []
        for symbol, number in placed[h].items():
            if not symbol.terminal and heights[symbol.name] == h:
                for rule in grammar.rules_of(symbol.name):
                    rhs = tuple(below.setdefault(child, len(below)) for child in rule.rhs)
                    here.append(LevelRule(number, rhs, rule.probability))
            else:
                chance = Fraction(1) if grammar.probabilistic else None
                here.append(LevelRule(number, (below.setdefault(symbol, len(below)),), chance, padding=True))
        rules.append(tuple(here))
    names = [tuple(s.name for s in placed[0])]
    for h in range(1, depth + 1):
        unpadded = [not s.terminal and heights[s.name] == h for s in placed[h]]
        names.append(tuple(s.name if bare else padded(s, h) for s, bare in zip(placed[h], unpadded, strict=True)))
    return Leveled(tuple(names), ((), *reversed(rules)))
