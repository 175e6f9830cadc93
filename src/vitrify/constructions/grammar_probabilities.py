r"""A probabilistic grammar becomes a transformer that gives the exact Bayes probability of every next word.

In the spirit of Nandakumar et al. (2026, arXiv 2606.17522), with sums where theirs has sets: the residual stream holds
the logarithms of the weights in `spec/grammar_sums.py`. At position $t$ these are, for a symbol $X$ and each number $k$
of words that it can span, the probability that $X$ derives the last $k$ words, and for each $X$ the probability that a
sentence begins with the words read and some $X$ begins here. The logits are those of the words, and of the end.

A product is a sum of logarithms, which heads fetch from fixed distances; a sum of products is a sum of exponentials,
whose logarithm heads find alone (`kit/heads/logsum.py`). Units only keep sums of one product from falling below the
logarithm that stands for 0. What a single word weighs, also through chains of rules, is in its embedding.

| | formula |
| --- | --- |
| stages | at most $n \max(2d - 1, d + 1)$, $d$ the depth and $32^n$ no less than the products in a sum |
| layers | at most 4 per stage: fetch, guess, and two steps |
| heads | one per space and distance fetched; $\lceil(\text{range} + 4)/4\rceil + 4$ per sum; 2 per stage with sums |
| units | one per sum of one product |
| pads | one more than the most products in a sum, at most 33 |

The *range* of a sum is the difference between bounds on its largest and least logarithm. A sum is off by $2 \cdot
10^{-13}$ and rounding, products add up the errors of their factors, and a probability is off by half as much as the
logits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import at_least
from vitrify.kit.heads import alternatives, floor_below, log_sum, shift
from vitrify.kit.heads.logsum import STEPS, Pads, thresholds
from vitrify.kit.network import Affine, Builder, Network, Readout, Space
from vitrify.kit.positions import CodeName, PositionCode, position_code
from vitrify.net.architecture import Output
from vitrify.net.spaces import Reals
from vitrify.net.transformer import AttentionKind
from vitrify.spec.grammar import BEGIN, END, Grammar, Symbol
from vitrify.spec.grammar_sums import LIMIT, Sum, Sums, Term, Weight, log, sums

LOGITS = 1e-9  # how far a logit may be off: a probability is then within half of that
LEAK = 1e-15  # of a head that fetches a logarithm
START = "words read"  # positions say at once where the start symbol is begun


def grammar_probabilities(
    grammar: Grammar,
    *,
    attention: AttentionKind = "softmax",
    max_length: int | None = None,
    positions: CodeName = "dyadic",
    limit: int = LIMIT,
) -> Network:
    """A transformer whose output after every beginning of a sentence is the distribution of the next word.

    Without probabilities, rules of one symbol count as equally probable. After words that begin no sentence there is
    no right answer.
    """
    found = sums(grammar, limit)
    if attention != "softmax":
        raise BuildRefused(
            f"probabilities are made of exponentials and logarithms, which {attention} attention has not: "
            "use --attention soft"
        )
    if max_length is not None and max_length < found.longest:
        raise BuildRefused(
            f"sentences have up to {found.longest} words: --max-length must be at least that, or left out"
        )
    net = Builder(
        name=f"probabilities of a grammar in {found.stages} stages, {attention}",
        inputs=(BEGIN, *grammar.vocabulary),
        max_length=max_length or found.longest,
        attention=attention,
        pads=found.most_rows + 1,
    )
    work = _Stream(net, found, positions)
    for stage in range(1, found.stages + 1):
        work.run(stage)
    symbols = (*grammar.vocabulary, END)
    return net.network(
        Output("lm", symbols),
        work.readout(symbols),
        {
            "construction": "probabilities of a bounded-depth grammar",
            "attention": attention,
            "rules": len(grammar.rules),
            "depth": grammar.depth,
            "sums": len(found.listed),
            "stages": found.stages,
            "longest sentence": found.longest,
            "source": "in the spirit of Nandakumar et al. 2026, arXiv 2606.17522",
        },
        reuse=False,
    )


def sizes(grammar: Grammar, limit: int = LIMIT) -> dict[str, int]:
    """What the formulas promise: heads, units and pads, and a bound on the layers."""
    found = sums(grammar, limit)
    home = _homes(found)
    read = {(home[term.weight], term.back) for s in found.listed for row in s.rows for term in row.terms}
    fetched = [(space, back) for space, back in read if back and space != START]
    many = [s for s in found.listed if len(s.rows) > 1]
    heads = sum(thresholds(s.low, s.high) + STEPS for s in many) + STEPS * len({s.stage for s in many})
    return {
        "heads": len(fetched) + heads,
        "units": len(found.listed) - len(many),
        "pads": found.most_rows + 1,
        "most_layers": (STEPS + 2) * found.rounds * max(2 * grammar.depth - 1, grammar.depth + 1),
    }


def _homes(found: Sums) -> dict[Weight, str]:
    """The name of the space that holds each weight."""
    homes = {Weight(found.start, 0): START} | {Weight(symbol, 1): "last word" for symbol in found.single}
    for s in found.listed:
        homes[s.weight] = f"{'sums' if len(s.rows) > 1 else 'products'} of stage {s.stage}"
    return homes


class _Stream:
    """The named spaces and what they hold, while the stages are being built."""

    def __init__(self, net: Builder, found: Sums, positions: CodeName) -> None:
        self.net, self.sums, self.positions = net, found, positions
        self.floor = floor_below(found.low, found.most_rows)
        self.homes = _homes(found)
        self.members: dict[str, list[Weight]] = defaultdict(list)
        for weight, home in self.homes.items():
            self.members[home].append(weight)
        asked: dict[tuple[str, int], dict[Weight, None]] = defaultdict(dict)
        for weight, back in (term for s in found.listed for row in s.rows for term in row.terms):
            asked[self.homes[weight], back][weight] = None
        self.asked = {key: list(weights) for key, weights in asked.items()}
        self.spaces = {"last word": self._last_word()}
        self.fetched: dict[tuple[str, int], Space] = {}

    # What is known without a sum

    def _last_word(self) -> Space:
        """What the last word weighs by itself."""
        symbols = [weight.symbol for weight in self.members["last word"]]
        table = np.full((len(self.net.inputs), len(symbols)), self.floor)
        for word, weights in self.sums.letters.items():
            for place, symbol in enumerate(symbols):
                if symbol in weights:
                    table[self.net.inputs.index(word), place] = log(weights[symbol])
        return self.net.embed("last word", Reals(tuple(map(str, self.members["last word"])), self.floor, 0.0), table)

    @cached_property
    def read(self) -> Space:
        """For some numbers of words, whether so many have been read, which is when the start symbol was begun there."""
        pads = self.net.pads
        table = np.full((pads + self.net.max_length, len(self.backs)), self.floor)
        for place, back in enumerate(self.backs):
            table[pads - 1 + back, place] = 0.0
        kind = Reals(tuple(map(str, self.backs)), self.floor, 0.0)
        return self.net.place(START, kind, table[pads:], pads=table[:pads])

    @cached_property
    def backs(self) -> list[int]:
        """How far back the begun start symbol is asked for."""
        return sorted(back for home, back in self.asked if home == START)

    @cached_property
    def pads(self) -> Pads:
        return alternatives(self.net, self.sums.most_rows)

    @cached_property
    def code(self) -> PositionCode:
        """A code in which the last pad has a position of its own."""
        fetches = [back for home, back in self.asked if home != START]
        return position_code(self.positions, self.net.max_length + 1, fetches)

    @cached_property
    def place(self) -> Space:
        table = self.code.table()
        pads = np.zeros((self.net.pads, table.shape[1]))
        pads[-1] = table[0]
        return self.net.place("position", self.code.kind(), table[1:], pads=pads)

    # Stages

    def run(self, stage: int) -> None:
        """All sums of a stage: those of one product by units, the others by heads."""
        here = [s for s in self.sums.listed if s.stage == stage]
        for home in dict.fromkeys(self.homes[s.weight] for s in here):
            own = [s for s in here if self.homes[s.weight] == home]
            labels = tuple(str(s.weight) for s in own)
            summands = [self._summands(s) for s in own]
            if len(own[0].rows) == 1:
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
        """The logarithms of a sum's products."""
        parts: dict[Space, NDArray[np.float64]] = {}
        for place, row in enumerate(total.rows):
            for term in row.terms:
                space, coordinate = self._find(term)
                parts.setdefault(space, np.zeros((space.size, len(total.rows))))[coordinate, place] += 1.0
        return Affine.of(parts, [log(row.chance) for row in total.rows])

    def _find(self, term: Term) -> tuple[Space, int]:
        """Where a weight stands, fetched if it is read further back."""
        weight, back = term
        home = self.homes[weight]
        if home == START:
            return self.read, self.backs.index(back)
        if back == 0:
            return self.spaces[home], self.members[home].index(weight)
        asked = self.asked[home, back]
        if (home, back) not in self.fetched:
            whole = self.spaces[home]
            kind = Reals(tuple(map(str, asked)), whole.kind.low, whole.kind.high)
            chosen = [self.members[home].index(weight) for weight in asked]
            self.fetched[home, back] = shift(
                self.net,
                whole,
                back,
                self.code,
                self.place,
                name=f"{home} @ -{back}",
                only=(chosen, kind),
                sink=self.pads.sink,
                leak=LEAK,
            )
        return self.fetched[home, back], asked.index(weight)

    def readout(self, symbols: Sequence[str]) -> Readout:
        """The logits: begun words; the floor for words that no sentence has."""
        parts: dict[Space, NDArray[np.float64]] = {}
        bias = np.full(len(symbols), self.floor)
        for place, name in enumerate(symbols):
            weight = Weight(Symbol(name, terminal=True), 0)
            if weight in self.homes:
                space, coordinate = self._find(Term(weight, 0))
                parts.setdefault(space, np.zeros((space.size, len(symbols))))[coordinate, place] = 1.0
                bias[place] = 0.0
        return Readout(tuple(parts.items()), bias, dict.fromkeys(parts, LOGITS))


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Grammar)
    return grammar_probabilities(
        spec,
        attention=settings.attention,
        max_length=settings.max_length,
        positions=settings.positions or "dyadic",
    )


CONSTRUCTIONS = (
    Construction(
        "probabilities",
        Grammar,
        "grammars with probabilities, by sums of exponentials in attention",
        _make,
        choices=("attention", "max_length", "positions"),
        unproved="weighs its keys by what they hold",
    ),
)
