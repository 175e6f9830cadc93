r"""Next words of a grammar, by charts: Earley's for sets of words, inside and forward weights for probabilities.

The two share no code, so each is a check of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from vitrify.spec.grammars.rules import Rule, Symbol
from vitrify.spec.ngrams.trie import END

RulesOf = Mapping[str, Sequence[Rule]]
State = frozenset[tuple[int, int, Any]]
"""The items of a chart whose dot is not at the beginning: the index of a rule, the number of its symbols already
matched, and the state where it began. The rule -1 derives a sentence."""

SENTENCE = (-1, 1, None)
"""The item of a complete sentence."""


class EarleyStates:
    r"""Earley's algorithm: the states after the prefixes of sentences, and the words that may follow, now and later on.

    The chart at $t$ holds the items $(A \to \alpha \bullet \beta, i)$ such that some sentence begins with
    $w_1 \dots w_i$ and then an $A$ of which $\alpha$ derives $w_{i+1} \dots w_t$. As every nonterminal derives
    something, and never nothing, the words behind the dots are exactly those that can follow. The items with the dot at
    the beginning follow from the others. A state refers to the states where its items began instead of their positions
    $i$: then what may follow is a matter of the state alone.
    """

    START: State = frozenset({(-1, 0, None)})

    def __init__(self, start: str, rules_of: RulesOf) -> None:
        self._rules = [rule for rules in rules_of.values() for rule in rules]
        self._starting: dict[str, list[int]] = {}
        for index, rule in enumerate(self._rules):
            self._starting.setdefault(rule.lhs, []).append(index)
        self._sides = [*(rule.rhs for rule in self._rules), (Symbol(start),)]  # rule -1 is the last one
        self._states: dict[State, State] = {}  # equal states are one object, so that they are compared quickly
        self._behind_dots: dict[State, dict[Symbol, list[tuple[int, int, Any]]]] = {}

    def next_words_along(self, words: Sequence[str]) -> Iterator[frozenset[str]]:
        """Yield the words that can follow each prefix, with `</s>` where it is a sentence; none where it is illegal."""
        state: State | None = self.START
        for word in (None, *words):
            if word is not None and state is not None:
                state = self.step(state, word)
            following = {symbol.name for symbol in self._waiting(state) if symbol.terminal} if state else set()
            yield frozenset({*following, END} if state and SENTENCE in state else following)

    def step(self, state: State, word: str) -> State | None:
        """Return the state after one more word; None if no sentence goes on with it."""
        items = [(rule, done + 1, begun) for rule, done, begun in self._waiting(state).get(Symbol(word, True), ())]
        after = set()
        for item in items:  # the list grows during this loop
            rule, done, begun = item
            if item not in after:
                after.add(item)
                if done == len(self._sides[rule]) and rule >= 0:
                    parents = self._waiting(begun).get(Symbol(self._rules[rule].lhs), ())
                    items += [(parent, at + 1, origin) for parent, at, origin in parents]
        reached = frozenset(item for item in after if item[0] < 0 or item[1] < len(self._sides[item[0]]))
        return self._states.setdefault(reached, reached) or None

    def _waiting(self, state: State) -> dict[Symbol, list[tuple[int, int, Any]]]:
        """Return the items at a state, by the symbol behind the dot."""
        if state not in self._behind_dots:
            waiting: dict[Symbol, list[tuple[int, int, Any]]] = {}
            items = [item for item in state if item[1] < len(self._sides[item[0]])]
            for item in items:  # the list grows during this loop
                symbol = self._sides[item[0]][item[1]]
                if symbol not in waiting and not symbol.terminal:
                    items += [(rule, 0, state) for rule in self._starting[symbol.name]]
                waiting.setdefault(symbol, []).append(item)
            self._behind_dots[state] = waiting
        return self._behind_dots[state]


# Probabilities

Weights = dict[str, Fraction]
Inside = list[dict[str, dict[int, Fraction]]]
"""By start position and nonterminal: the probability of what it derives up to each end position."""


def inside(children_first: Sequence[str], rules_of: RulesOf, words: Sequence[str]) -> Inside:
    r"""Return the inside weights $\gamma(A, i, j)$: the probability that $A$ derives $w_{i+1} \dots w_j$, $i < j$."""
    chart: Inside = [{} for _ in range(len(words) + 1)]
    for i in reversed(range(len(words))):
        for symbol in children_first:
            ends: dict[int, Fraction] = {}
            for rule in rules_of[symbol]:
                for end, weight in _ends(rule, i, chart, words).items():
                    ends[end] = ends.get(end, Fraction(0)) + weight
            if ends:
                chart[i][symbol] = ends
    return chart


def _ends(rule: Rule, begin: int, chart: Inside, words: Sequence[str]) -> dict[int, Fraction]:
    """Return the end positions of a rule begun at `begin`, with the probability of the rule and its subtrees."""
    assert rule.probability is not None
    so_far = {begin: rule.probability}
    for symbol in rule.rhs:
        further: dict[int, Fraction] = {}
        for position, weight in so_far.items():
            if symbol.terminal:
                if position < len(words) and words[position] == symbol.name:
                    further[position + 1] = weight
                continue
            for end, more in chart[position].get(symbol.name, {}).items():
                further[end] = further.get(end, Fraction(0)) + weight * more
        so_far = further
        if not so_far:
            break
    return so_far


def forward(start: str, children_first: Sequence[str], rules_of: RulesOf, words: Sequence[str]) -> tuple[Weights, ...]:
    r"""Return, for each prefix $w_1 \dots w_t$, the probability that a sentence begins with it and then each word.

    Let $\alpha_t(A \to X_1 \dots X_k, j)$ be the expected number of nodes with this rule, in derivations of sentences
    that begin with the prefix, of which $X_1 \dots X_j$ end exactly at $t$ and $X_{j+1}$ begins there. Then

    $$\alpha_t(r, j) = \sum_{s<t} \alpha_s(r, j-1)\, \gamma(X_j, s, t), \qquad
      \alpha_t(r, 0) = p(r) \sum_{r', j'\,:\,X'_{j'+1} = A} \alpha_t(r', j'),$$

    where the start symbol is begun once, at $t = 0$. Probabilities must sum to one exactly, because symbols that are
    not begun yet count with weight one. Without recursion parents can be handled before children.
    """
    chart = inside(children_first, rules_of, words)
    ending: list[list[tuple[int, str, Fraction]]] = [[] for _ in range(len(words) + 1)]
    for begin, by_symbol in enumerate(chart):
        for symbol, ends in by_symbol.items():
            for end, weight in ends.items():
                ending[end].append((begin, symbol, weight))
    waiting: list[dict[str, list[tuple[Rule, int, Fraction]]]] = []
    scans: dict[str, list[tuple[Rule, int, Fraction]]] = {}
    weights_after: list[Weights] = []
    for t in range(len(words) + 1):
        reached = [(rule, done + 1, alpha) for rule, done, alpha in scans.get(words[t - 1], [])] if t else []
        for begin, symbol, gamma in ending[t]:
            reached += [(rule, done + 1, alpha * gamma) for rule, done, alpha in waiting[begin].get(symbol, ())]
        here, scans = _predicted(reached, {start: Fraction(1)} if t == 0 else {}, children_first, rules_of)
        waiting.append(here)
        weights = {word: sum((alpha for _, _, alpha in items), Fraction(0)) for word, items in scans.items()}
        if t and t in chart[0].get(start, {}):
            weights[END] = chart[0][start][t]
        weights_after.append(weights)
    return tuple(weights_after)


Dotted = dict[str, list[tuple[Rule, int, Fraction]]]


def _predicted(
    reached: Sequence[tuple[Rule, int, Fraction]], begun: Weights, children_first: Sequence[str], rules_of: RulesOf
) -> tuple[Dotted, Dotted]:
    """Return all dotted rules at one position, by the nonterminal and by the word after the dot."""
    summed: dict[tuple[int, int], tuple[Rule, Fraction]] = {}
    for rule, done, alpha in reached:
        before = summed.get((id(rule), done))
        summed[id(rule), done] = (rule, alpha if before is None else before[1] + alpha)
    by_nonterminal: Dotted = {}
    by_word: Dotted = {}

    def put(rule: Rule, done: int, alpha: Fraction) -> None:
        if done == len(rule.rhs):
            return
        symbol = rule.rhs[done]
        (by_word if symbol.terminal else by_nonterminal).setdefault(symbol.name, []).append((rule, done, alpha))
        if not symbol.terminal:
            begun[symbol.name] = begun.get(symbol.name, Fraction(0)) + alpha

    for (_, done), (rule, alpha) in summed.items():
        put(rule, done, alpha)
    for symbol in reversed(children_first):
        if symbol in begun:
            for rule in rules_of[symbol]:
                assert rule.probability is not None
                put(rule, 0, begun[symbol] * rule.probability)
    return by_nonterminal, by_word


def normalized(weights: Weights) -> Weights:
    """Return weights divided by their sum."""
    total = sum(weights.values(), Fraction(0))
    return {word: weight / total for word, weight in weights.items()}
