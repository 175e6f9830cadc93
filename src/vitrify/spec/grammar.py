r"""A context-free grammar, with the plain semantics that everything built from it is checked against.

A grammar has nonterminals, words, a start symbol and rules $A \to X_1 \dots X_k$ with $k \ge 1$, each $X_i$ a
nonterminal or a word. Its sentences are the strings of words that the start symbol rewrites to. With probabilities on
the rules, which sum to one for each left side, a derivation has the product of its rules' probabilities, and a sentence
the sum over its derivations. A sentence ends with `</s>`, which the grammar itself does not mention.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from vitrify.errors import InputError, Problem, SpecError, SpecWarning
from vitrify.spec import grammar_chart, grammar_depth, grammar_language
from vitrify.spec.beginnings import beginnings
from vitrify.spec.display import Displayed
from vitrify.spec.files import refuse_any
from vitrify.spec.grammar_checks import Source, problems_of
from vitrify.spec.grammar_files import grammar_text, read_file, read_text
from vitrify.spec.grammar_rules import Rule, Symbol, descendants, grouped
from vitrify.spec.ngram_trie import BEGIN, END

if TYPE_CHECKING:
    import numpy as np

    from vitrify.spec.grammar_levels import Levelled

__all__ = ["BEGIN", "END", "Grammar", "Rule", "Symbol"]

EXAMPLES = 256  # sentences that an examination asks about by itself
SENTENCES = 100_000  # how many are listed at most unless told otherwise


@dataclass(frozen=True, repr=False)
class Grammar(Displayed):
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
    source: InitVar[Source | None] = None

    SIZES: ClassVar[tuple[str, ...]] = ("start", "rules", "nonterminals", "terminals", "probabilistic")
    DRAWN = 16  # rules up to which repr is code that rebuilds the grammar

    def __post_init__(self, source: Source | None) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        refused, warned = problems_of(self.start, self.rules, source or Source())
        refuse_any(refused)
        for problem in warned:
            warnings.warn(str(problem), SpecWarning, stacklevel=4)

    # Ways in and out

    @classmethod
    def from_text(cls, text: str) -> Grammar:
        """The grammar of a text in NLTK's notation; `vitrify.spec.grammar_files` shows it."""
        return cls(*read_text(text))

    @classmethod
    def read(cls, path: str | Path) -> Grammar:
        """The grammar in a `.cfg` or `.pcfg` file; a SpecError names every line that is wrong."""
        return cls(*read_file(Path(path)))

    @property
    def suffix(self) -> str:
        """How the name of its file ends."""
        return ".pcfg" if self.probabilistic else ".cfg"

    @property
    def text(self) -> str:
        """The grammar in NLTK's notation; `from_text` gives it back."""
        return grammar_text(self.start, self.rules)

    def write(self, path: str | Path) -> None:
        """Save as `.cfg`, or as `.pcfg` if it has probabilities; the same grammar always gives the same bytes."""
        path = Path(path)
        if path.suffix != self.suffix:
            why = f"as it has {'' if self.probabilistic else 'no '}probabilities"
            raise SpecError([Problem(f"the file name of this grammar must end in {self.suffix}, {why}", str(path))])
        path.write_bytes(self.text.encode())

    # What it is

    @property
    def probabilistic(self) -> bool:
        """Whether its rules have probabilities."""
        return self.rules[0].probability is not None

    @cached_property
    def nonterminals(self) -> tuple[str, ...]:
        """The left sides, in order of first appearance."""
        return tuple(self._rules_of)

    @cached_property
    def terminals(self) -> tuple[str, ...]:
        """The words, in order of first appearance."""
        return tuple(dict.fromkeys(s.name for rule in self.rules for s in rule.rhs if s.terminal))

    @cached_property
    def _rules_of(self) -> dict[str, tuple[Rule, ...]]:
        return grouped(self.rules)

    def rules_of(self, nonterminal: str) -> tuple[Rule, ...]:
        """The rules with this left side, in order."""
        return self._rules_of[nonterminal]

    def reachable(self) -> Grammar:
        """The same grammar without the nonterminals that no sentence uses; order and names stay."""
        kept = set(descendants(self.start, self._rules_of))
        return self if len(kept) == len(self.nonterminals) else self._with(r for r in self.rules if r.lhs in kept)

    def uniform(self) -> Grammar:
        """The same grammar with equal probabilities for the rules of each left side."""
        return self._with(Rule(r.lhs, r.rhs, Fraction(1, len(self._rules_of[r.lhs]))) for r in self.rules)

    def plain(self) -> Grammar:
        """The same grammar without probabilities."""
        return self._with(Rule(rule.lhs, rule.rhs) for rule in self.rules)

    def proper(self) -> Grammar:
        """The same sentences with probabilities that sum to one exactly, equal ones where there were none.

        Whole derivations keep the ratios of their probabilities; what no sentence uses is left out.
        """
        given = self if self.probabilistic else self.uniform()
        return self._with(rule for rules in given._proper_rules.values() for rule in rules)

    def _with(self, rules: Iterable[Rule]) -> Grammar:
        return Grammar(self.start, tuple(rules))

    def __repr__(self) -> str:
        if len(self.rules) <= self.DRAWN:
            return f"Grammar.from_text({self.text!r})"
        kind = " with probabilities" if self.probabilistic else ""
        sizes = f"{len(self.rules)} rules, {len(self.nonterminals)} nonterminals, {len(self.terminals)} words"
        return f"<Grammar{kind}: {sizes}, start {self.start!r}>"

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    # Depth

    def cycle(self) -> tuple[str, ...] | None:
        """Nonterminals that lead back to themselves, the first one repeated at the end; None if there are none.

        >>> Grammar.from_text("S -> 'a' T | 'a'\\nT -> 'b' S").cycle()
        ('S', 'T', 'S')
        """
        return self._order[1]

    @cached_property
    def _order(self) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        return grammar_depth.order(self.start, self.rules)

    def children_first(self) -> tuple[str, ...]:
        """The nonterminals below the start symbol, each after those on its right sides; refused with the cycle."""
        order, cycle = self._order
        if cycle:
            raise SpecError([grammar_depth.refusal(cycle)])
        return order

    @cached_property
    def heights(self) -> dict[str, int]:
        """The longest way down to a word, for each nonterminal below the start symbol; refused with the cycle."""
        return grammar_depth.heights(self.children_first(), self._rules_of)

    @property
    def depth(self) -> int:
        """The height of the highest derivation tree, its words at height 0; refused with the cycle."""
        return self.heights[self.start]

    def cut(self, depth: int) -> Grammar:
        r"""The sentences with a derivation of height at most `depth`, as a grammar without recursion.

        A nonterminal `A` that may grow higher than the $h$ levels left to it becomes `A^h`, $h$ being the least number
        of levels with the same derivations. Probabilities are the exact
        conditional ones: with $Z_h(A)$ the probability that $A$ derives something of height at most $h$, the rule
        $A \to X_1 \dots X_k$ gets $p \prod_i Z_{h-1}(X_i) / Z_h(A)$, so that every derivation kept has its old
        probability divided by $Z_D(S)$. (Fractions of more than 256 bits are rounded to 192 on the way.)

        >>> print(Grammar.from_text("S -> 'a' S [0.5] | 'a' [0.5]").cut(2))
        S^2 -> 'a' S^1 [1/3] | 'a' [2/3]
        S^1 -> 'a' [1.0]
        """
        return Grammar(*grammar_depth.cut(self.start, self._rules_of, depth))

    def levelled(self) -> Levelled:
        """The same language with every rule leading from one level to the next lower one; refused with the cycle."""
        from vitrify.spec.grammar_levels import levelled

        return levelled(self)

    # What it derives, by listing

    def derivations(self) -> int:
        """How many derivation trees there are; refused with the cycle."""
        return grammar_language.derivations(self.children_first(), self._rules_of)[self.start]

    def lengths(self) -> frozenset[int]:
        """The lengths of the sentences; refused with the cycle."""
        return grammar_language.lengths(self.children_first(), self._rules_of)[self.start]

    def parses(self, limit: int = SENTENCES) -> dict[tuple[str, ...], int]:
        """Every sentence with the number of its derivations, short ones first; refused above a limit or with a cycle.

        >>> Grammar.from_text("S -> 'a' T | T 'a' | 'b'\\nT -> 'a' | 'b'").parses()
        {('b',): 1, ('a', 'a'): 2, ('a', 'b'): 1, ('b', 'a'): 1}
        """
        return grammar_language.parses(self.children_first(), self._rules_of, limit)

    def sentences(self, limit: int = SENTENCES) -> tuple[tuple[str, ...], ...]:
        """Every sentence, short ones first, then in the order of the words; refused above a limit or with a cycle."""
        return tuple(self.parses(limit))

    def ambiguous(self, limit: int = SENTENCES) -> tuple[str, ...] | None:
        """The first sentence with two derivations or more, None if there is none; refused like `sentences`."""
        return next((sentence for sentence, count in self.parses(limit).items() if count > 1), None)

    def sample(self, count: int, seed: int, longest: int = 10_000) -> tuple[tuple[str, ...], ...]:
        """Sentences drawn by the rules' probabilities, or with equal ones where there are none.

        >>> Grammar.from_text("S -> 'a' S | 'b'").sample(3, seed=1)
        (('b',), ('b',), ('a', 'b'))
        """
        return grammar_language.sample(self.start, self._rules_of, count, seed, longest)

    # What it predicts, by charts

    def next_words(self, prefix: Sequence[str]) -> frozenset[str]:
        """The words that can follow a prefix in some sentence, with `</s>` where it is one; empty if none goes on.

        Recursive grammars are fine.
        """
        return self.next_words_along(prefix)[-1]

    def next_words_along(self, sentence: Sequence[str]) -> tuple[frozenset[str], ...]:
        """The words that can follow each prefix, from the empty one to the whole: one more than there are words."""
        return grammar_chart.next_words_along(self.start, self._rules_of, self._checked(sentence))

    # The language as an examination asks for it

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words, as a network reads them."""
        return self.terminals

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        """Every beginning of a sentence once, short ones first, each made when it is asked for."""
        return beginnings(lambda words: sorted(self.next_words(words) - {END}), longest)

    def examples(self) -> Iterator[tuple[str, ...]]:
        """Sentences drawn with a fixed seed, rules of one symbol equally likely."""
        yield from self.sample(EXAMPLES, seed=0)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """A random sentence."""
        return self.sample(1, seed=int(rng.integers(2**31)))[0]

    def accepts(self, sentence: Sequence[str]) -> bool:
        """Whether the words are a sentence."""
        return END in self.next_words(sentence)

    def next_word_probs(self, prefix: Sequence[str]) -> dict[str, Fraction]:
        """The exact probability of every word that can follow a prefix, with `</s>`; empty if nothing goes on.

        Refused with the cycle for recursive grammars, as theirs need not be rational: cut them first.

        >>> grammar = Grammar.from_text("S -> T T [0.5] | 'a' [0.5]\\nT -> 'a' [1/3] | 'b' [2/3]")
        >>> {word: str(chance) for word, chance in grammar.next_word_probs(["a"]).items()}
        {'a': '1/12', 'b': '1/6', '</s>': '3/4'}
        """
        return self.next_word_probs_along(prefix)[-1]

    def next_word_probs_along(self, sentence: Sequence[str]) -> tuple[dict[str, Fraction], ...]:
        """The same after each prefix, from the empty one to the whole."""
        forward = self._forward_of(sentence)
        return tuple(grammar_chart.normalised(weights) for weights in forward)

    def probability(self, sentence: Sequence[str]) -> Fraction:
        """The exact probability of a sentence, 0 if it is none; refused like `next_word_probs`."""
        return self._forward_of(sentence)[-1].get(END, Fraction(0))

    def _forward_of(self, sentence: Sequence[str]) -> tuple[dict[str, Fraction], ...]:
        if not self.probabilistic:
            raise SpecError(["the grammar has no probabilities; uniform() gives equal ones to alternatives"])
        words = self._checked(sentence)
        return grammar_chart.forward(self.start, self.children_first(), self._proper_rules, words)

    @cached_property
    def _proper_rules(self) -> dict[str, tuple[Rule, ...]]:
        return grouped(grammar_depth.proper(self.children_first(), self._rules_of))

    def _checked(self, words: Sequence[str]) -> tuple[str, ...]:
        strangers = [word for word in dict.fromkeys(words) if word not in self._known]
        if strangers:
            hint = "; give the sentence as a list of words" if isinstance(words, str) else ""
            raise InputError(
                f"every word must be in the grammar; unknown: {', '.join(map(repr, strangers[:20]))}{hint}"
            )
        return tuple(words)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.terminals)
