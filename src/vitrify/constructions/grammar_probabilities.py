r"""A probabilistic grammar becomes a transformer that gives the exact Bayes probability of every next word.

In the spirit of Nandakumar et al. (2026, arXiv 2606.17522), with sums where theirs has sets: the residual stream holds
the logarithms of the weights in `spec/grammars/sums.py`: at position $t$, for a symbol $X$ and each number $k$
of words that it can span, the probability that $X$ derives the last $k$ words, and for each $X$ the probability that a
sentence begins with the words read and some $X$ begins here. The logits are those of the words, and of the end.

A product is a sum of logarithms, which heads fetch from fixed distances; a sum of products is a sum of exponentials,
whose logarithm attention heads compute (`kit/heads/logsum.py`). Units only clip sums of one product at the number that
stands for the logarithm of 0. The weights of a single word, also through chains of rules, are in its embedding.

| | formula |
| --- | --- |
| stages | at most $n \max(2d - 1, d + 1)$, $d$ the depth and $32^n$ no less than the products in a sum |
| layers | at most 4 per stage: fetch, guess, and two steps |
| heads | one per space and distance fetched; $\lceil(\text{range} + 4)/4\rceil + 4$ per sum; 2 per stage with sums |
| units | one per sum of one product that a next word depends on |
| pads | one more than the most products in a sum, at most 33 |

The *range* of a sum is the difference between bounds on its largest and least logarithm. A sum is off by $2 \cdot
10^{-13}$ and rounding, products add up the errors of their factors, and a probability is off by half as much as the
logits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import count

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, Positions, construction
from vitrify.kit.gadgets.steps import at_least
from vitrify.kit.heads.logsum import HALLEY_STEPS, Pads, alternatives, floor_below, log_sum, thresholds
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import Affine, Builder, Network, Output, Readout, Reals, Space
from vitrify.kit.positions import CodeName, PositionCode, position_code
from vitrify.spec.grammars.grammar import BEGIN, END, Grammar, Symbol
from vitrify.spec.grammars.language import lengths
from vitrify.spec.grammars.rules import grouped
from vitrify.spec.grammars.sums import MAX_PRODUCTS, SUM_PRODUCTS, Sum, Sums, Term, Weight, log, sums

MAX_LOGIT_ERROR = 1e-9  # how far a logit may be off: a probability is then within half of that
FETCH_LEAK = 1e-15  # of a head that fetches a logarithm
START = "words read"  # positions say at once where the start symbol is begun


def products(grammar: Grammar) -> Counter[tuple[Symbol, int]]:
    r"""Return the number of products in the sum of every weight $(X, k)$, $k = 0$ for those that are begun.

    $\rho(B, 0) = \sum_{r, j:\, X_j = B} \prod_{i<j} \lvert W_{X_i}\rvert$ over the rules $r = A \to X_1 \dots X_m$ and
    places $j$, with the numbers of words $W_X$ that $X$ can span; $\rho(A, k)$ is the number of ways to choose a rule
    of $A$ and to share out $k$ words.
    """
    spans = lengths(grammar.children_first(), grouped(grammar.rules))
    rows = Counter({(Symbol(END, True), 0): len(spans[grammar.start])})
    for rule in grammar.rules:
        ways = Counter({0: 1})
        for child in rule.rhs:
            rows[child, 0] += ways.total()
            further: Counter[int] = Counter()
            for width in (1,) if child.terminal else spans[child.name]:
                further.update({total + width: number for total, number in ways.items()})
            ways = further
        rows.update({(Symbol(rule.lhs), width): number for width, number in ways.items() if width > 1})
    return rows


def sizes(grammar: Grammar) -> DeclaredSizes:
    r"""Return bounds, by the numbers $\rho$ of products in sums, the depth $d$ and the longest sentence, $T$ words.

    A unit for each sum of one product. With $S = n \max(2d - 1, d + 1)$ stages, the least probability $p$ of a rule and
    the thresholds $\theta$ of a sum of range $d(T + 1) \ln(1/p)$: $\theta + 2$ heads for any other sum and its parts, 2
    for each stage, and $(2S + 1)T$ that fetch.
    """
    proper = grammar.proper()
    rows, depth, longest = products(proper), grammar.depth, max(proper.lengths())
    rounds = next(n for n in count(1) if max(rows.values()) <= SUM_PRODUCTS**n)
    stages = rounds * max(2 * depth - 1, depth + 1)
    least = min(log(rule.probability) for rule in proper.rules if rule.probability is not None)
    each = thresholds(depth * (longest + 1) * least, 0.0) + HALLEY_STEPS
    many = sum(1 + 2 * (number // SUM_PRODUCTS) for number in rows.values() if number > 1)
    return DeclaredSizes(
        at_most={
            "layers": (HALLEY_STEPS + 2) * stages,
            "heads": many * each + HALLEY_STEPS * stages + (2 * stages + 1) * longest,
            "units": sum(number == 1 for number in rows.values()),
        },
        unknown="the width depends on which weights are fetched from which distances",
    )


@construction(
    "probabilities",
    "grammars with probabilities, by sums of exponentials in attention",
    sizes,
    unproved="weighs its keys by their contents",
)
def grammar_probabilities(
    grammar: Grammar,
    limit: int = MAX_PRODUCTS,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength | None = None,
    positions: Positions = "dyadic",
) -> Network:
    """Return a transformer whose output after every prefix of a sentence is the distribution of the next word.

    Without probabilities, rules of one symbol count as equally probable. After words that are no prefix of a sentence,
    the output is undefined.
    """
    plan = sums(grammar, limit)
    if attention != "softmax":
        raise BuildRefused(
            f"probabilities are made of exponentials and logarithms, which {attention} attention has not: "
            "use --attention softmax"
        )
    if max_length is not None and max_length < plan.longest:
        raise BuildRefused(
            f"sentences have up to {plan.longest} words: --max-length must be at least that, or left out"
        )
    name = f"probabilities of a grammar in {plan.stages} stages, {attention}"
    net = Builder(name, (BEGIN, *grammar.vocabulary), max_length or plan.longest, attention, pads=plan.max_products + 1)
    work = _ResidualStream(net, plan, positions)
    for stage in range(1, plan.stages + 1):
        work.run(stage)
    symbols = (*grammar.vocabulary, END)
    return net.network(
        Output("lm", symbols),
        work.readout(symbols),
        "probabilities of a bounded-depth grammar",
        {
            "rules": len(grammar.rules),
            "depth": grammar.depth,
            "sums": len(plan.listed),
            "stages": plan.stages,
            "longest sentence": plan.longest,
        },
        source="in the spirit of Nandakumar et al. 2026, arXiv 2606.17522",
        reuse=False,
    )


class _ResidualStream:
    """The spaces of the net and the weights they hold, while the stages are being built."""

    def __init__(self, net: Builder, plan: Sums, positions: CodeName) -> None:
        self.net, self.sums, self.positions = net, plan, positions
        self.floor = floor_below(plan.low, plan.max_products)
        # the name of the space that holds each weight
        self.homes = {Weight(plan.start, 0): START} | {Weight(symbol, 1): "last word" for symbol in plan.single}
        for s in plan.listed:
            self.homes[s.weight] = f"{'sums' if len(s.products) > 1 else 'products'} of stage {s.stage}"
        self.members: dict[str, list[Weight]] = defaultdict(list)
        for weight, home in self.homes.items():
            self.members[home].append(weight)
        fetches: dict[tuple[str, int], dict[Weight, None]] = defaultdict(dict)
        for weight, back in (term for s in plan.listed for row in s.products for term in row.terms):
            fetches[self.homes[weight], back][weight] = None
        self.fetches = {key: list(weights) for key, weights in fetches.items()}
        self.spaces = {"last word": self._last_word()}
        self.fetched: dict[tuple[str, int], Space] = {}

    # What is known without a sum

    def _last_word(self) -> Space:
        """Return the space of the last word's own weights."""
        symbols = [weight.symbol for weight in self.members["last word"]]
        table = np.full((len(self.net.inputs), len(symbols)), self.floor)
        for word, weights in self.sums.letters.items():
            for index, symbol in enumerate(symbols):
                if symbol in weights:
                    table[self.net.inputs.index(word), index] = log(weights[symbol])
        return self.net.embed("last word", Reals(tuple(map(str, self.members["last word"])), self.floor, 0.0), table)

    @cached_property
    def read(self) -> Space:
        """The log-weight of the sentence start, by distance: 0 if that many words were read, else the floor."""
        pads = self.net.pads
        table = np.full((pads + self.net.max_length, len(self.backs)), self.floor)
        for index, back in enumerate(self.backs):
            table[pads - 1 + back, index] = 0.0
        kind = Reals(tuple(map(str, self.backs)), self.floor, 0.0)
        return self.net.embed_position(START, kind, table[pads:], pads=table[:pads])

    @cached_property
    def backs(self) -> list[int]:
        """The distances at which the beginning of the start symbol is read."""
        return sorted(back for home, back in self.fetches if home == START)

    @cached_property
    def pads(self) -> Pads:
        return alternatives(self.net, self.sums.max_products)

    @cached_property
    def code(self) -> PositionCode:
        """A code in which the last pad has a position of its own."""
        fetches = [back for home, back in self.fetches if home != START]
        return position_code(self.positions, self.net.max_length + 1, fetches)

    @cached_property
    def index(self) -> Space:
        table = self.code.table()
        pads = np.zeros((self.net.pads, table.shape[1]))
        pads[-1] = table[0]
        return self.net.embed_position("position", self.code.kind(), table[1:], pads=pads)

    # Stages

    def run(self, stage: int) -> None:
        """Build all sums of a stage: those of one product by units, the others by heads."""
        here = [s for s in self.sums.listed if s.stage == stage]
        for home in dict.fromkeys(self.homes[s.weight] for s in here):
            own = [s for s in here if self.homes[s.weight] == home]
            labels = tuple(str(s.weight) for s in own)
            summands = [self._summands(s) for s in own]
            if len(own[0].products) == 1:
                kind = Reals(labels, self.floor, 0.0)
                self.spaces[home] = at_least(
                    self.net, reduce(Affine.beside, summands), self.floor, Space(home, kind), rows=labels
                )
            else:
                ranges = [(s.low, s.high) for s in own]
                self.spaces[home] = log_sum(
                    self.net, summands, ranges, self.pads, floor=self.floor, name=home, labels=labels
                )

    def _summands(self, total: Sum) -> Affine:
        """Return the map to the logarithms of a sum's products."""
        parts: dict[Space, Floats] = {}
        for index, row in enumerate(total.products):
            for term in row.terms:
                space, coordinate = self._find(term)
                parts.setdefault(space, np.zeros((space.size, len(total.products))))[coordinate, index] += 1.0
        return Affine.of(parts, [log(row.probability) for row in total.products])

    def _find(self, term: Term) -> tuple[Space, int]:
        """Return space and coordinate of a weight, fetched by a head if it is read further back."""
        weight, back = term
        home = self.homes[weight]
        if home == START:
            return self.read, self.backs.index(back)
        if back == 0:
            return self.spaces[home], self.members[home].index(weight)
        fetches = self.fetches[home, back]
        if (home, back) not in self.fetched:
            source = self.spaces[home]
            kind = Reals(tuple(map(str, fetches)), source.kind.low, source.kind.high)
            chosen = [self.members[home].index(weight) for weight in fetches]
            name, only, at = f"{home} @ -{back}", (chosen, kind), (self.code, self.index)
            fetched = shift(self.net, source, back, *at, name=name, only=only, sink=self.pads.sink, leak=FETCH_LEAK)
            self.fetched[home, back] = fetched
        return self.fetched[home, back], fetches.index(weight)

    def readout(self, symbols: Sequence[str]) -> Readout:
        """Return the readout: the logit of a word is its log-weight, or the floor if no sentence contains it."""
        parts: dict[Space, Floats] = {}
        bias = np.full(len(symbols), self.floor)
        for index, name in enumerate(symbols):
            weight = Weight(Symbol(name, terminal=True), 0)
            if weight in self.homes:
                space, coordinate = self._find(Term(weight, 0))
                parts.setdefault(space, np.zeros((space.size, len(symbols))))[coordinate, index] = 1.0
                bias[index] = 0.0
        return Readout(tuple(parts.items()), bias, dict.fromkeys(parts, MAX_LOGIT_ERROR))
