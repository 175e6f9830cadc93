r"""What can stand where in a net with hard attention: exact activations, and sets of them.

A head that picks one key copies one of finitely many values, so what stands at a position is one of finitely many
vectors, its *types*, however long the word is. `ExactNet` computes them in rational arithmetic from the stored weights
and numbers them; `possible` follows the sets of types that may stand at every position when some letters are fixed and
others are free. The sets are sound: they contain everything that happens in a run, and may contain more.

**Contests.** Let a query of a head see the keys $j$, with sets $K_j$ of possible key types, and let $s(u)$ be the score
of type $u$ and $r$ the head's resolution. Type $u$ at $j$ never wins if some other key $j'$ scores more than $s(u) + r$
with each of its types. Scores of the others must fall into groups that are less than $r$ wide and more than $r$ apart
(else the net is refused: what is tied would depend on what else is there), so that each has a *rank*; and $u$ at $j$
never wins either if some key on the side that ties are broken to always has at least its rank.

Heads that average over ties are followed as long as all that may be tied have the same value; an average of different
values counts, and has no place here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np

from vitrify.bounds.plain import plain_arrays
from vitrify.errors import BuildRefused
from vitrify.net.attention import allowed_keys
from vitrify.net.transformer import Head
from vitrify.net.weights import Weights

Vector = tuple[Fraction, ...]
Answer = Hashable
Asked = tuple[int, int]  # numbers of a query and of a key, in one head

SLACK = Fraction(1, 10**9)  # scores this close to a head's resolution would be decided by rounding
MOST_TYPES = 20_000  # at one position


class Numbered:
    """Values under numbers: equal ones have the same."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
        return self._numbers[value]


class ExactNet:
    """A net with hard attention in rational arithmetic; types, queries, keys and values are numbered as they turn up.

    A *type* is a vector of the residual stream, a *key* what a head scores and copies there: its key and its value, as
    it is written to the stream.
    """

    def __init__(self, weights: Weights[Any]) -> None:
        net = self.net = weights.architecture
        arrays = plain_arrays(weights, "hard", "can be followed exactly")
        self._embed = [_exact(row) for row in arrays["embed.W_E"]]
        self._place = [_exact(row) for row in arrays["pos_embed.W_pos"]]
        self._unembed = _linear(arrays["unembed.W_U"], arrays["unembed.b_U"])
        self._heads = [
            [_ExactHead(arrays, f"blocks.{index}.attn.", place) for place in range(len(block.heads))]
            for index, block in enumerate(net.blocks)
        ]
        self._mlps = [
            _mlp(arrays, f"blocks.{index}.mlp.") if block.units else None for index, block in enumerate(net.blocks)
        ]
        self.types = Numbered()
        self._next: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self._answers: dict[int, Answer] = {}

    def embedded(self, token: int, position: int) -> int:
        """The type of a token at a position, pads counted."""
        return self.types.number(_plus(self._embed[token], self._place[position]))

    def head(self, block: int, place: int) -> _ExactHead:
        """One head."""
        return self._heads[block][place]

    def asked(self, block: int, place: int, kind: int) -> Asked:
        """The query, and the key, that a type has in a head."""
        return self._heads[block][place].asked(kind, self.types.values[kind])

    def after(self, block: int, kind: int, brought: tuple[int, ...]) -> int:
        """The type that a block makes of a type when its heads bring the values of these numbers."""
        case = (block, kind, brought)
        if case not in self._next:
            x: Vector = self.types.values[kind]
            for head, value in zip(self._heads[block], brought, strict=True):
                x = _plus(x, head.values.values[value])
            mlp = self._mlps[block]
            self._next[case] = self.types.number(_plus(x, mlp(x)) if mlp else x)
        return self._next[case]

    def logits(self, kind: int) -> Vector:
        """The logits at a position whose last type is this."""
        return self._unembed(self.types.values[kind])

    def answer(self, kind: int) -> Answer:
        """What the net says there: the likeliest symbol, the symbols that may come next, or all logits."""
        if kind not in self._answers:
            self._answers[kind] = read_answer(self.net.output.kind, self.net.output.symbols, self.logits(kind))
        return self._answers[kind]


def read_answer(kind: str, symbols: Sequence[str], logits: Sequence[Any]) -> Answer:
    """What logits say, by the kind of output."""
    if kind in ("recogniser", "transducer", "class"):
        return symbols[max(range(len(symbols)), key=lambda place: logits[place])]
    if kind == "next":
        return " ".join(symbol for symbol, logit in zip(symbols, logits, strict=True) if logit > 0)
    return tuple(float(logit) for logit in logits)


class _ExactHead:
    """One head's matrices, with what they make of the types that turned up."""

    def __init__(self, arrays: dict[str, Any], prefix: str, place: int) -> None:
        self._q, self._k, self._v = (
            _linear(arrays[f"{prefix}W_{name}"][place], arrays[f"{prefix}b_{name}"][place]) for name in "QKV"
        )
        out = arrays[f"{prefix}W_O"][place]
        self._o = _linear(out, np.zeros(out.shape[1]))
        self._beta = Fraction(float(arrays[f"{prefix}beta"][place]))
        self.bias = _exact(arrays[f"{prefix}b_rel"][place]) if f"{prefix}b_rel" in arrays else ()
        self.queries, self.keys, self.values = Numbered(), Numbered(), Numbered()
        self.nothing = self.values.number((Fraction(0),) * out.shape[1])  # what a query without keys gets
        self._asked: dict[int, Asked] = {}
        self._scores: dict[tuple[int, int], Fraction] = {}

    def asked(self, kind: int, x: Vector) -> Asked:
        if kind not in self._asked:
            key = (self._k(x), self.values.number(self._o(self._v(x))))
            self._asked[kind] = (self.queries.number(self._q(x)), self.keys.number(key))
        return self._asked[kind]

    def score(self, query: int, key: int) -> Fraction:
        if (query, key) not in self._scores:
            q, k = self.queries.values[query], self.keys.values[key][0]
            self._scores[query, key] = self._beta * sum((a * b for a, b in zip(q, k, strict=True)), Fraction(0))
        return self._scores[query, key]

    def value(self, key: int) -> int:
        number: int = self.keys.values[key][1]
        return number


def _exact(row: Any) -> Vector:
    return tuple(Fraction(float(number)) for number in row)


def _plus(left: Vector, right: Vector) -> Vector:
    return tuple(a + b if b else a for a, b in zip(left, right, strict=True))


def _linear(matrix: Any, bias: Any) -> Callable[[Vector], Vector]:
    """The affine map of a matrix and a bias."""
    columns = [[(int(row), Fraction(float(column[row]))) for row in np.flatnonzero(column)] for column in matrix.T]
    start = _exact(bias)

    def image(x: Vector) -> Vector:
        return tuple(
            sum((x[row] * weight for row, weight in column if x[row]), first)
            for column, first in zip(columns, start, strict=True)
        )

    return image


def _mlp(arrays: dict[str, Any], prefix: str) -> Callable[[Vector], Vector]:
    into, out = (_linear(arrays[f"{prefix}W_{name}"], arrays[f"{prefix}b_{name}"]) for name in ("in", "out"))

    def image(x: Vector) -> Vector:
        return out(tuple(max(number, Fraction(0)) for number in into(x)))

    return image


@dataclass(frozen=True)
class Candidate:
    """A key that may win: its position, its number in the head, its rank, and its place in the order of preference."""

    position: int
    key: int
    rank: int
    order: int


@dataclass(frozen=True)
class Contest:
    """What a head may bring to a query at a position: the candidates, none of which need exist in every run.

    `values` are the values that they bring. Where there is only one, the contest need not be held.
    """

    candidates: tuple[Candidate, ...]
    values: tuple[int, ...]


Stands = list[tuple[int, ...]]  # for each position the types that may stand there


@dataclass(frozen=True)
class Layer:
    """One block: what may stand before it, where it works, and each head's contests by what is asked there."""

    before: Stands
    asking: range
    contests: list[list[dict[Asked, Contest]]]  # [head][position][query and key of the position itself]


def possible(exact: ExactNet, choices: Sequence[Sequence[int]]) -> tuple[list[Layer], Stands]:
    """What may stand before and happen in each block, and what may stand at the end, for words with these tokens.

    `choices` are the tokens that may stand at each position, pads included. Of the last block nothing is followed but
    what happens at the last position, where the answer is.
    """
    net, last = exact.net, len(choices) - 1
    stands: Stands = [
        tuple(dict.fromkeys(exact.embedded(token, position) for token in tokens))
        for position, tokens in enumerate(choices)
    ]
    layers = []
    for index, block in enumerate(net.blocks):
        asking = range(len(choices)) if index + 1 < len(net.blocks) else range(last, last + 1)
        contests = [_contests(exact, index, place, head, stands, asking) for place, head in enumerate(block.heads)]
        layers.append(Layer(stands, asking, contests))
        stands = [
            tuple(dict.fromkeys(new for kind in kinds for _, new in outcomes(exact, layers[-1], index, position, kind)))
            if position in asking
            else ()
            for position, kinds in enumerate(stands)
        ]
        if max(map(len, stands)) > MOST_TYPES:
            raise BuildRefused(f"more than {MOST_TYPES} vectors may stand at one position: take a smaller net")
    return layers, stands


def outcomes(exact: ExactNet, layer: Layer, block: int, position: int, kind: int) -> list[tuple[tuple[int, ...], int]]:
    """The values that the heads may bring to a type at a position, and the type that each combination makes of it."""
    brought = [
        contests[position][exact.asked(block, place, kind)].values for place, contests in enumerate(layer.contests)
    ]
    combinations = np.prod([len(values) for values in brought], initial=1.0)
    if combinations * len(layer.before[position]) > MOST_TYPES:
        raise BuildRefused(f"the heads of block {block} bring more than {MOST_TYPES} combinations: take a smaller net")
    return [(values, exact.after(block, kind, values)) for values in product(*brought)]


def _contests(
    exact: ExactNet, block: int, place: int, head: Head, stands: Stands, asking: range
) -> list[dict[Asked, Contest]]:
    """The contests of a head, for each position that asks and what may be asked there."""
    asked = [tuple(dict.fromkeys(exact.asked(block, place, kind) for kind in kinds)) for kinds in stands]
    keys = [tuple(dict.fromkeys(key for _, key in pairs)) for pairs in asked]
    positions = np.arange(len(stands))
    allowed = allowed_keys(head, positions, positions)
    found: list[dict[Asked, Contest]] = [{} for _ in stands]
    for here in asking:
        for query, own in asked[here]:
            visible = {int(there): keys[there] if there != here else (own,) for there in np.flatnonzero(allowed[here])}
            name = f"block {block} head {place}"
            found[here][query, own] = _contest(exact.head(block, place), head, here, query, visible, name)
    return found


def _contest(
    exact: _ExactHead, head: Head, here: int, query: int, keys: dict[int, tuple[int, ...]], name: str
) -> Contest:
    if not keys:
        return Contest((), (exact.nothing,))
    biased = bool(head.window and exact.bias)
    scores = {
        (there, key): exact.score(query, key) + (exact.bias[here - there] if biased else 0)
        for there, kinds in keys.items()
        for key in kinds
    }
    resolution = Fraction(head.resolution)
    surely = max(min(scores[there, key] for key in kinds) for there, kinds in keys.items())
    left = {pair: score for pair, score in scores.items() if score + resolution + SLACK >= surely}
    ranks = _ranks(sorted(set(left.values())), resolution, name)
    towards = {"left": 1, "right": -1, "average": 0}[head.ties]
    floor: dict[int, int] = {}  # the least rank of the keys that surely stay in the contest
    for there, kinds in keys.items():
        if all((there, key) in left for key in kinds):
            floor[there] = min(ranks[left[there, key]] for key in kinds)
    candidates = [
        Candidate(there, key, ranks[score], towards * there)
        for (there, key), score in left.items()
        if not any(towards * other < towards * there and least >= ranks[score] for other, least in floor.items())
    ]
    if not towards:
        _refuse_averages(exact, candidates, name)
    return Contest(tuple(candidates), tuple(dict.fromkeys(exact.value(entry.key) for entry in candidates)))


def _ranks(scores: list[Fraction], resolution: Fraction, name: str) -> dict[Fraction, int]:
    """The group of each score, counted from the lowest; groups are narrower than the resolution and further apart."""
    ranks, rank, lowest = {}, 0, scores[0]
    for before, score in pairwise([scores[0], *scores]):
        if score - before > resolution:
            rank, lowest = rank + 1, score
        ranks[score] = rank
        close = any(score != other and abs(score - other - resolution) < SLACK for other in (before, lowest))
        if score - lowest > resolution or close:
            raise BuildRefused(
                f"{name}: which scores are tied must not depend on other keys or on rounding, but "
                f"{float(lowest):g}, {float(before):g} and {float(score):g} meet a resolution of {float(resolution):g}"
            )
    return ranks


def _refuse_averages(exact: _ExactHead, candidates: list[Candidate], name: str) -> None:
    """Refuse a head that may average over different values."""
    seen: dict[int, dict[int, set[int]]] = {}  # by rank: the values, and the positions where they may stand
    for entry in candidates:
        value, rank = exact.value(entry.key), seen.setdefault(entry.rank, {})
        if any(other != value and positions - {entry.position} for other, positions in rank.items()):
            raise BuildRefused(
                f"{name} averages over keys with different values, which is counting, and beyond constant depth: "
                "break its ties to the left or right"
            )
        rank.setdefault(value, set()).add(entry.position)
