r"""A context-free grammar, with the plain semantics that everything built from it is checked against.

A grammar has nonterminals, words, a start symbol and rules $A \to X_1 \dots X_k$ with $k \ge 1$, each $X_i$ a
nonterminal or a word. Its sentences are the strings of words that the start symbol rewrites to. With probabilities on
the rules, which sum to one for each left side, a derivation has the product of its rules' probabilities, and a sentence
the sum over its derivations. A sentence ends with `</s>`, which the grammar itself does not mention.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from vitrify.errors import InputError, Problem, SpecError, SpecWarning
from vitrify.spec.formats.text import refuse_any
from vitrify.spec.grammars import chart, language
from vitrify.spec.grammars.checks import GrammarSource, problems_of
from vitrify.spec.grammars.depth import cut, derivation_heights, order, proper, refusal
from vitrify.spec.grammars.files import read_file, read_text
from vitrify.spec.grammars.rules import Rule, Symbol, descendants, grouped
from vitrify.spec.kinds import Kind, Meaning, PrefixStates, Spec, prefixes_by_length
from vitrify.spec.ngrams.trie import BEGIN, END

if TYPE_CHECKING:
    import numpy as np

    from vitrify.spec.grammars.levels import Leveled

__all__ = ["BEGIN", "END", "Grammar", "Rule", "Symbol"]

N_EXAMPLES = 256  # sentences in the examples of a certification
MAX_SENTENCES = 100_000  # default limit of the listings


@dataclass(frozen=True, repr=False)
class Grammar(Spec):
    """A context-free grammar, with or without probabilities.

    >>> grammar = Grammar.from_text('''
    ...     S -> 'the' N V | N V
    ...     N -> 'dogs' | 'cats'
    ...     V -> 'sleep'
    ... ''')
    >>> [" ".join(sentence) for sentence in grammar.sentences()]
    ['cats sleep', 'dogs sleep', 'the cats sleep', 'the dogs sleep']
    >>> sorted(grammar.next_words(["cats", "sleep"])), sorted(grammar.next_words(["the"]))
    (['</s>'], ['cats', 'dogs'])
    >>> grammar
    Grammar.from_text("S -> 'the' N V | N V\\nN -> 'dogs' | 'cats'\\nV -> 'sleep'\\n")
    """

    start: str
    rules: tuple[Rule, ...]
    source: InitVar[GrammarSource | None] = None

    SIZES: ClassVar[tuple[str, ...]] = ("start", "rules", "nonterminals", "terminals", "probabilistic")
    DRAWN = 16  # rules up to which repr is code that rebuilds the grammar

    def __post_init__(self, source: GrammarSource | None) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        refused, warned = problems_of(self.start, self.rules, source or GrammarSource())
        refuse_any(refused)
        for problem in warned:
            warnings.warn(str(problem), SpecWarning, stacklevel=4)

    # Ways in and out

    @classmethod
    def from_text(cls, text: str) -> Grammar:
        """Return the grammar of a text in NLTK's notation; `vitrify.spec.grammars.files` shows it."""
        return cls(*read_text(text))

    @classmethod
    def read(cls, path: str | Path) -> Grammar:
        """Read a `.cfg`, `.pcfg` or `.cfg.json` file; a SpecError names every wrong line."""
        return cls(*read_file(Path(path)))

    @property
    def suffix(self) -> str:
        """Return `.pcfg` if the grammar has probabilities, else `.cfg`."""
        return ".pcfg" if self.probabilistic else ".cfg"

    def to_text(self) -> str:
        """Return the grammar in NLTK's notation, one line for neighbouring rules with the same left side."""
        lines = [f"%start {self.start}"] if self.rules[0].lhs != self.start else []
        last = None
        for rule in self.rules:
            if rule.lhs == last:
                lines[-1] += f" | {str(rule).removeprefix(f'{rule.lhs} -> ')}"
            else:
                lines.append(str(rule))
            last = rule.lhs
        return "\n".join(lines) + "\n"

    def write(self, path: str | Path) -> None:
        if Path(path).suffix != self.suffix:
            why = f"as it has {'' if self.probabilistic else 'no '}probabilities"
            raise SpecError([Problem(f"the file name of this grammar must end in {self.suffix}, {why}", str(path))])
        super().write(path)

    @classmethod
    def samples(cls) -> dict[str, Grammar]:
        from vitrify.spec.grammars.families import random_grammar, random_hierarchy

        tree = random_hierarchy(3, 2, 2, 2, 1).plain()
        return {"random": random_grammar(2, shapes=20), "one sentence": cls.from_text("S -> 'a'"), "hierarchy": tree}

    # Parts and variants

    @property
    def probabilistic(self) -> bool:
        """Return True if the rules have probabilities."""
        return self.rules[0].probability is not None

    @cached_property
    def nonterminals(self) -> tuple[str, ...]:
        """Left sides, in order of first appearance."""
        return tuple(self._rules_of)

    @cached_property
    def terminals(self) -> tuple[str, ...]:
        """Words, in order of first appearance."""
        return tuple(dict.fromkeys(s.name for rule in self.rules for s in rule.rhs if s.terminal))

    @cached_property
    def _rules_of(self) -> dict[str, tuple[Rule, ...]]:
        return grouped(self.rules)

    def rules_of(self, nonterminal: str) -> tuple[Rule, ...]:
        """Return the rules with this left side, in order."""
        return self._rules_of[nonterminal]

    def reachable(self) -> Grammar:
        """Return the grammar without the nonterminals that no sentence uses; order and names stay."""
        reachable = set(descendants(self.start, self._rules_of))
        if len(reachable) == len(self.nonterminals):
            return self
        return self._with(r for r in self.rules if r.lhs in reachable)

    def uniform(self) -> Grammar:
        """Return the grammar with equal probabilities for the rules of each left side."""
        return self._with(Rule(r.lhs, r.rhs, Fraction(1, len(self._rules_of[r.lhs]))) for r in self.rules)

    def plain(self) -> Grammar:
        """Return the grammar without probabilities."""
        return self._with(Rule(rule.lhs, rule.rhs) for rule in self.rules)

    def proper(self) -> Grammar:
        """Return the grammar with probabilities that sum to one exactly, equal ones where there were none.

        Derivations of sentences keep the ratios of their probabilities; unreachable rules are left out.
        """
        weighted = self if self.probabilistic else self.uniform()
        return self._with(rule for rules in weighted._proper_rules.values() for rule in rules)

    def _with(self, rules: Iterable[Rule]) -> Grammar:
        return Grammar(self.start, tuple(rules))

    def __repr__(self) -> str:
        if len(self.rules) <= self.DRAWN:
            return f"Grammar.from_text({self.to_text()!r})"
        kind = " with probabilities" if self.probabilistic else ""
        sizes = f"{len(self.rules)} rules, {len(self.nonterminals)} nonterminals, {len(self.terminals)} words"
        return f"<Grammar{kind}: {sizes}, start {self.start!r}>"

    def __str__(self) -> str:
        return self.to_text().rstrip("\n")

    # Depth

    def cycle(self) -> tuple[str, ...] | None:
        """Return nonterminals that lead back to themselves, the first repeated at the end; None without recursion.

        >>> Grammar.from_text("S -> 'a' T | 'a'\\nT -> 'b' S").cycle()
        ('S', 'T', 'S')
        """
        return self._order[1]

    @cached_property
    def _order(self) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        return order(self.start, self._rules_of)

    def children_first(self) -> tuple[str, ...]:
        """Return the nonterminals below the start symbol, children before parents; a recursive grammar is refused."""
        order, cycle = self._order
        if cycle:
            raise SpecError([refusal(cycle)])
        return order

    @cached_property
    def heights(self) -> dict[str, int]:
        """Height of the highest derivation tree of each reachable nonterminal; a recursive grammar is refused."""
        heights = derivation_heights(self._rules_of, all)
        return {symbol: heights[symbol] for symbol in self.children_first()}

    @property
    def depth(self) -> int:
        """Height of the highest derivation tree, words at height 0; a recursive grammar is refused."""
        return self.heights[self.start]

    def cut(self, depth: int) -> Grammar:
        r"""Return the grammar of the derivations of height at most `depth`, without recursion.

        A nonterminal `A` that may grow higher than the $h$ levels left to it becomes `A^h`, where $h$ is the least
        number of levels with the same derivations. Probabilities become conditional on a height of at most $D$ =
        `depth`. With $Z_h(A)$ the probability that $A$ derives a tree of height at most $h$, the rule
        $A \to X_1 \dots X_k$ gets $p \prod_i Z_{h-1}(X_i) / Z_h(A)$. So every remaining derivation has its old
        probability divided by $Z_D(S)$, and the sentences sum to one again; a sentence that lost some of its
        derivations also loses their share. (Fractions of more than 256 bits are rounded to 192 bits on the way.)

        >>> print(Grammar.from_text("S -> 'a' S [0.5] | 'a' [0.5]").cut(2))
        S^2 -> 'a' S^1 [1/3] | 'a' [2/3]
        S^1 -> 'a' [1.0]
        """
        return Grammar(*cut(self.start, self._rules_of, depth))

    def leveled(self) -> Leveled:
        """Return the same language with every rule leading one level down; a recursive grammar is refused."""
        from vitrify.spec.grammars.levels import leveled

        return leveled(self)

    # Listing sentences and derivations

    def derivations(self) -> int:
        """Return the number of derivation trees; a recursive grammar is refused."""
        return language.derivations(self.children_first(), self._rules_of)[self.start]

    def lengths(self) -> frozenset[int]:
        """Return the lengths of the sentences; a recursive grammar is refused."""
        return language.lengths(self.children_first(), self._rules_of)[self.start]

    @cached_property
    def longest(self) -> int | None:
        """Number of words of the longest sentence; None for a recursive grammar."""
        order, cycle = self._order
        words: dict[str, int] = {}
        for symbol in () if cycle else order:
            sides = (rule.rhs for rule in self._rules_of[symbol])
            words[symbol] = max(sum(1 if part.terminal else words[part.name] for part in side) for side in sides)
        return words.get(self.start)

    def parses(self, limit: int = MAX_SENTENCES) -> dict[tuple[str, ...], int]:
        """Return each sentence with its number of derivations, short ones first; refused above `limit` or if recursive.

        >>> Grammar.from_text("S -> 'a' T | T 'a' | 'b'\\nT -> 'a' | 'b'").parses()
        {('b',): 1, ('a', 'a'): 2, ('a', 'b'): 1, ('b', 'a'): 1}
        """
        return language.parses(self.children_first(), self._rules_of, limit)

    def sentences(self, limit: int = MAX_SENTENCES) -> tuple[tuple[str, ...], ...]:
        """Return every sentence, short ones first, then alphabetically; refused above `limit` or if recursive."""
        return tuple(self.parses(limit))

    def ambiguous(self, limit: int = MAX_SENTENCES) -> tuple[str, ...] | None:
        """Return the first sentence with two derivations or more, or None; refused like `sentences`."""
        return next((sentence for sentence, count in self.parses(limit).items() if count > 1), None)

    def sample(self, count: int, seed: int, longest: int = 10_000) -> tuple[tuple[str, ...], ...]:
        """Return `count` sentences drawn by the rules' probabilities, or by equal ones where there are none.

        >>> Grammar.from_text("S -> 'a' S | 'b'").sample(3, seed=1)
        (('b',), ('b',), ('a', 'b'))
        """
        return language.sample(self.start, self._rules_of, count, seed, longest)

    # Next words, by charts

    def next_words(self, prefix: Sequence[str]) -> frozenset[str]:
        """Return the words that can follow a prefix, with `</s>` if it is a sentence; empty after an illegal prefix.

        Recursive grammars are fine.
        """
        return self.next_words_along(prefix)[-1]

    def next_words_along(self, sentence: Sequence[str]) -> tuple[frozenset[str], ...]:
        """Return the words that can follow each prefix, from the empty one to the full sentence."""
        return tuple(self._charts().next_words_along(self._checked(sentence)))

    def _charts(self) -> chart.EarleyStates:
        return chart.EarleyStates(self.start, self._rules_of)

    # The language as certification queries it

    def meanings(self) -> dict[str, Meaning]:
        """Return the two tasks: the set of next words, and their probabilities (by default equal per rule)."""
        states = PrefixStates(chart.EarleyStates.START, self._charts().step)
        outputs = (*self.vocabulary, END)
        words = Meaning("set", self.vocabulary, outputs, self.next_words_along, self, (), states, self.longest)
        chances = replace(words, answer="distribution", after=lambda s: self._weighted.next_word_probs_along(s))
        prefixes = PrefixStates((), lambda prefix, word: (*prefix, word) if word in self.next_words(prefix) else None)
        return {"next": words, "lm": replace(chances, states=prefixes)}

    @cached_property
    def _weighted(self) -> Grammar:
        return self if self.probabilistic else self.uniform()

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Words that a network reads."""
        return self.terminals

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        return prefixes_by_length(lambda words: sorted(self.next_words(words) - {END}), longest)

    def examples(self) -> Iterator[tuple[str, ...]]:
        """Yield sentences drawn with a fixed seed."""
        yield from self.sample(N_EXAMPLES, seed=0)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return a random sentence."""
        return self.sample(1, seed=int(rng.integers(2**31)))[0]

    def accepts(self, sentence: Sequence[str]) -> bool:
        """Return True if the words are a sentence."""
        return END in self.next_words(sentence)

    def next_word_probs(self, prefix: Sequence[str]) -> dict[str, Fraction]:
        """Return the exact probability of each next word, with `</s>`; empty after an illegal prefix.

        A recursive grammar is refused, because its probabilities need not be rational: cut it first.

        >>> grammar = Grammar.from_text("S -> T T [0.5] | 'a' [0.5]\\nT -> 'a' [1/3] | 'b' [2/3]")
        >>> {word: str(chance) for word, chance in grammar.next_word_probs(["a"]).items()}
        {'a': '1/12', 'b': '1/6', '</s>': '3/4'}
        """
        return self.next_word_probs_along(prefix)[-1]

    def next_word_probs_along(self, sentence: Sequence[str]) -> tuple[dict[str, Fraction], ...]:
        """Return the same after each prefix, from the empty one to the full sentence."""
        forward = self._forward_of(sentence)
        return tuple(chart.normalized(weights) for weights in forward)

    def probability(self, sentence: Sequence[str]) -> Fraction:
        """Return the exact probability of a sentence, 0 outside the language; refused like `next_word_probs`."""
        return self._forward_of(sentence)[-1].get(END, Fraction(0))

    def _forward_of(self, sentence: Sequence[str]) -> tuple[dict[str, Fraction], ...]:
        if not self.probabilistic:
            raise SpecError(["the grammar has no probabilities; uniform() gives equal ones to alternatives"])
        words = self._checked(sentence)
        return chart.forward(self.start, self.children_first(), self._proper_rules, words)

    @cached_property
    def _proper_rules(self) -> dict[str, tuple[Rule, ...]]:
        return grouped(proper(self.children_first(), self._rules_of))

    def _checked(self, words: Sequence[str]) -> tuple[str, ...]:
        unknown = [word for word in dict.fromkeys(words) if word not in self._known]
        if unknown:
            hint = "; give the sentence as a list of words" if isinstance(words, str) else ""
            raise InputError(f"every word must be in the grammar; unknown: {', '.join(map(repr, unknown[:20]))}{hint}")
        return tuple(words)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.terminals)


KIND = Kind(
    Grammar,
    {
        ".cfg": "context-free grammar",
        ".pcfg": "context-free grammar with probabilities",
        ".cfg.json": "rules of a context-free grammar as JSON",
    },
)
