r"""Facts of a chart, from which networks for grammars without recursion are proved.

Facts are statements about the words read, $w_1 \dots w_t$; others follow from them by the rules of the grammar.

| fact | meaning |
| --- | --- |
| $W(j) = M$ | $w_j$ is one of the words $M$ |
| $C(i, j) \ni \alpha$ | the symbols $\alpha$ derive $w_{i+1} \dots w_j$ |
| $F(j) \ni \beta$ | some sentence begins with $w_1 \dots w_j \beta$; for $\beta$ `</s>`, one is $w_1 \dots w_j \beta$ |
| $N(i, t, A) \ni w$ | some string derived from $A$ begins with $w_{i+1} \dots w_t w$ |

Here $\alpha$ is a prefix of a right side or a symbol, and $\beta$ a suffix of one or a symbol. What follows, for rules
$A \to \rho$ and $S' \to S$ `</s>`:

- $C(j - 1, j) \ni w$ for all $w$ if $W(j) = \{w\}$; of several words, what follows from each.
- $C(i, j) \ni \alpha X$ from $C(i, k) \ni \alpha$ and $C(k, j) \ni X$; $C(i, j) \ni A$ from $C(i, j) \ni \rho$.
- $F(0) \ni S$ `</s>`; $F(j) \ni \beta$ from $F(j) \ni \beta\gamma$; $F(j) \ni \rho\gamma$ from $F(j) \ni
  A\gamma$; $F(j) \ni \gamma$ from $F(i) \ni X\gamma$ and $C(i, j) \ni X$.
- $N(i, t, A) \ni w$ from $\rho = \alpha Y \gamma$, $C(i, k) \ni \alpha$ (nothing for $k = i$ and empty $\alpha$) and
  $N(k, t, Y) \ni w$, where $N(t, t, Y)$ are the words that $Y$ may begin with.

Every step is true of all words. As every nonterminal derives something, and no nonterminal nothing, $w$ may come next
if $F(t) \ni w\beta$, or $N(0, t, S') \ni w$. Sets are bit masks. Nonterminals with the same right sides count as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from vitrify.spec.grammars.grammar import END, Grammar
from vitrify.spec.grammars.rules import Symbol

Facts = dict[tuple[Any, ...], int]  # masks by ("W", j), ("C", i, j), ("F", j) and ("N", i, t, A)
Seq = tuple[Symbol, ...]
THE_END = Symbol(END, terminal=True)


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits of a mask."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class GrammarFacts:
    """The rules of a grammar, as tables of what follows from facts.

    With `ahead`, facts $N$ are followed, else facts $F$.
    """

    def __init__(self, grammar: Grammar, *, ahead: bool) -> None:
        self.ahead = ahead
        self.root = Symbol(f"{grammar.start}'")
        while self.root.name in grammar.nonterminals:
            self.root = Symbol(f"{self.root.name}'")
        self.words = {Symbol(word, True): index for index, word in enumerate((*grammar.vocabulary, END))}
        self.rules, same = _without_copies(grammar)
        self.start = same[Symbol(grammar.start)]
        self.rules[self.root] = [(self.start, THE_END)]
        self.widths: dict[Symbol, frozenset[int]] = {word: frozenset({1}) for word in self.words}
        self.first: dict[Symbol, int] = {word: 1 << index for word, index in self.words.items()}
        for symbol, sides in self.rules.items():  # children first
            self.widths[symbol] = frozenset().union(*(self.widths_of(side) for side in sides))
            self.first[symbol] = 0
            for side in sides:
                self.first[symbol] |= self.first[side[0]]
        self._number_prefixes()
        self._number_suffixes()

    def widths_of(self, side: Seq) -> frozenset[int]:
        """Return the numbers of words that some symbols can derive."""
        sums = {0}
        for symbol in side:
            sums = {a + b for a in sums for b in self.widths[symbol]}
        return frozenset(sums)

    @property
    def longest(self) -> int:
        """The number of words of the longest sentence."""
        return max(self.widths[self.start])

    # Tables

    def _number_prefixes(self) -> None:
        sides = [(symbol, side) for symbol, listed in self.rules.items() for side in listed]
        every: list[Seq] = [(symbol,) for symbol in self.widths]
        every += [side[:stop] for _, side in sides for stop in range(1, len(side) + 1)]
        self.prefix = {sequence: index for index, sequence in enumerate(dict.fromkeys(every))}
        parents: dict[Seq, list[Symbol]] = {}
        for symbol, side in sides:
            parents.setdefault(side, []).append(symbol)

        @cache
        def derived(sequence: Seq) -> int:
            mask = 1 << self.prefix[sequence]
            for symbol in parents.get(sequence, ()):
                mask |= derived((symbol,))
            return mask

        self.derived = {sequence: derived(sequence) for sequence in self.prefix}
        self._longer: dict[int, list[tuple[int, int]]] = {}  # by the next symbol: prefixes, and what they become
        for sequence in self.prefix:
            if len(sequence) > 1:
                step = self.prefix[sequence[:-1]], self.derived[sequence]
                self._longer.setdefault(self.prefix[sequence[-1:]], []).append(step)
        self._appended = _mask(self._longer)
        self._behind: dict[int, list[tuple[Symbol, Symbol]]] = {}  # by prefix: left sides, with the symbol behind it
        self._beginning: dict[Symbol, list[Symbol]] = {}
        for symbol, side in sides:
            self._beginning.setdefault(side[0], []).append(symbol)
            for stop in range(1, len(side)):
                self._behind.setdefault(self.prefix[side[:stop]], []).append((symbol, side[stop]))
        self._followed = _mask(self._behind)

    def _number_suffixes(self) -> None:
        sides = [side for symbol, listed in self.rules.items() if symbol != self.root for side in listed]
        tails = dict.fromkeys(side[stop:] for side in sides for stop in range(len(side)))
        self.suffix: dict[Seq, int] = {}
        for tail in (*((symbol,) for symbol in self.widths if symbol not in (self.root, THE_END)), *tails):
            for sequence in (tail, (*tail, THE_END)):
                self.suffix.setdefault(sequence, len(self.suffix))
        self.suffix[THE_END,] = len(self.suffix)

        @cache
        def opened(sequence: Seq) -> int:
            mask = 1 << self.suffix[sequence]
            for shorter in (sequence[:-1], sequence[:1]):
                if shorter in self.suffix and shorter != sequence:
                    mask |= opened(shorter)
            last = sequence[1:] if sequence[1:] == (THE_END,) else ()
            for side in self.rules.get(sequence[0], ()):
                mask |= opened((*side, *last))
            return mask

        self.opened = {sequence: opened(sequence) for sequence in self.suffix}
        self.begins: dict[Symbol, int] = {}  # the suffixes that begin with a symbol
        self._left: dict[int, list[tuple[int, int]]] = {}  # by first symbol: suffixes, and what is open behind it
        for sequence, index in self.suffix.items():
            self.begins[sequence[0]] = self.begins.get(sequence[0], 0) | 1 << index
            if len(sequence) > 1:
                step = index, self.opened[sequence[1:]]
                self._left.setdefault(self.prefix[sequence[:1]], []).append(step)
        self._continued = _mask(self._left)
        self.at_start = self.opened[self.start, THE_END]

    # What follows

    @cache  # noqa: B019
    def _of_words(self, mask: int) -> int:
        """Return the symbols that derive every one of these words."""
        words = list(self.words)
        every = -1
        for index in bits(mask):
            every &= self.derived[words[index],]
        return every

    def closed(self, facts: Facts, at: int) -> Facts | None:
        """Return all that follows from facts about a prefix of `at` words; None if they contradict each other."""
        spans: dict[tuple[int, int], int] = {}
        opened, ahead = {0: self.at_start}, dict[tuple[int, Symbol], int]()
        after: Facts = {}
        for key, mask in facts.items():
            match key:
                case ("W", int(j)):
                    if not mask:
                        return None
                    spans[j - 1, j] = spans.get((j - 1, j), 0) | self._of_words(mask)
                    after[key] = mask
                case ("C", int(i), int(j)):
                    spans[i, j] = spans.get((i, j), 0) | mask
                case ("F", int(j)):
                    opened[j] = opened.get(j, 0) | mask
                case ("N", int(i), int(t), Symbol() as symbol) if t == at:
                    ahead[i, symbol] = mask
        self._join(spans)
        if self.ahead:
            self._look_ahead(spans, ahead, at)
            after |= {("N", i, at, symbol): mask for (i, symbol), mask in ahead.items()}
        else:
            self._open(spans, opened)
            after |= {("F", j): mask for j, mask in opened.items() if j}
        return after | {("C", *span): mask for span, mask in spans.items()}

    def _join(self, spans: dict[tuple[int, int], int]) -> None:
        waiting = list(spans)
        for i, j in waiting:  # the list grows during this loop
            for k, m in list(spans):
                pair = ((i, j), (k, m)) if j == k else ((k, m), (i, j)) if m == i else None
                if pair is None:
                    continue
                more = 0
                for symbol in bits(spans[pair[1]] & self._appended):
                    for prefix, longer in self._longer[symbol]:
                        if spans[pair[0]] >> prefix & 1:
                            more |= longer
                joined = pair[0][0], pair[1][1]
                if more & ~spans.get(joined, 0):
                    spans[joined] = spans.get(joined, 0) | more
                    waiting.append(joined)

    def _open(self, spans: dict[tuple[int, int], int], opened: dict[int, int]) -> None:
        for i, j in sorted(spans):  # what is open at i is known before
            if i in opened:
                for symbol in bits(spans[i, j] & self._continued):
                    for suffix, rest in self._left[symbol]:
                        if opened[i] >> suffix & 1:
                            opened[j] = opened.get(j, 0) | rest

    def _look_ahead(self, spans: dict[tuple[int, int], int], ahead: dict[tuple[int, Symbol], int], at: int) -> None:
        waiting = list(ahead)
        ends: dict[int, list[tuple[int, int]]] = {}
        for i, k in spans:
            ends.setdefault(k, []).append((i, spans[i, k] & self._followed))

        def add(i: int, symbol: Symbol, mask: int) -> None:
            if mask & ~ahead.get((i, symbol), 0):
                ahead[i, symbol] = ahead.get((i, symbol), 0) | mask
                waiting.append((i, symbol))

        for i, mask in ends.get(at, ()):
            for prefix in bits(mask):
                for symbol, behind in self._behind[prefix]:
                    add(i, symbol, self.first[behind])
        for k, child in waiting:  # the list grows during this loop
            for symbol in self._beginning.get(child, ()):
                add(k, symbol, ahead[k, child])
            for i, mask in ends.get(k, ()):
                for prefix in bits(mask):
                    for symbol, behind in self._behind[prefix]:
                        if behind == child:
                            add(i, symbol, ahead[k, child])

    def next_words(self, facts: Facts, at: int) -> int:
        """Return the words that may come next, by closed facts, as a mask."""
        if self.ahead:
            return facts.get(("N", 0, at, self.root), 0)
        opened, mask = facts.get(("F", at), 0), 0
        for word, index in self.words.items():
            if opened & self.begins.get(word, 0):
                mask |= 1 << index
        return mask


def _without_copies(grammar: Grammar) -> tuple[dict[Symbol, list[Seq]], dict[Symbol, Symbol]]:
    """Return the right sides of a grammar in which symbols that derive the same at once are one, children first.

    Also returns which symbol stands for each. Two symbols are one if the rules lead from both to the same words and
    sequences of symbols, where a single nonterminal is replaced by what it leads to itself.
    """
    same = {Symbol(word, True): Symbol(word, True) for word in grammar.vocabulary}
    leads: dict[Symbol, frozenset[Seq]] = {word: frozenset({(word,)}) for word in same}
    first = {sides: word for word, sides in leads.items()}
    rules: dict[Symbol, list[Seq]] = {}
    for name in grammar.children_first():
        symbol = Symbol(name)
        sides = list(dict.fromkeys(tuple(same[part] for part in rule.rhs) for rule in grammar.rules_of(name)))
        leads[symbol] = frozenset(end for side in sides for end in (leads[side[0]] if len(side) == 1 else (side,)))
        same[symbol] = first.setdefault(leads[symbol], symbol)
        if same[symbol] == symbol:
            rules[symbol] = sides
    return rules, same


def _mask(table: Iterable[int]) -> int:
    return sum(1 << index for index in table)


def either(one: Facts | None, other: Facts | None) -> Facts | None:
    """Return the facts that hold whenever one of two sets of facts does; None stands for what never holds."""
    if one is None or other is None:
        return other if one is None else one
    both = {key: one[key] & other[key] for key in one.keys() & other.keys() if key[0] != "W"}
    words = {key: one[key] for key in one.keys() & other.keys() if key[0] == "W" and one[key] == other[key]}
    return {key: mask for key, mask in both.items() if mask} | words


def together(facts: Iterable[Facts]) -> Facts:
    """Return facts that hold at once."""
    merged: Facts = {}
    for each in facts:
        for key, mask in each.items():
            merged[key] = merged[key] & mask if key[0] == "W" and key in merged else merged.get(key, 0) | mask
    return merged
