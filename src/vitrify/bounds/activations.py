r"""Exact activations of a net with hard attention, and the sets of activations that may occur at each position.

A head that picks one key copies one of finitely many values, so the vector at a position is one of finitely many,
called *types*. `ExactNet` computes them in rational arithmetic from the stored weights and numbers them; a variable
`kind` is the index of a type. `possible` computes the sets of types that may occur at every position when some letters
are fixed and others are free. The sets are sound: they contain every type of every run, and may contain more.

**Contests.** Let a query of a head see the positions $j$, with sets $K_j$ of possible keys. Let $s(u)$ be the score of
a key $u$ and $r$ the head's resolution: scores that differ by at most $r$ are tied. A key $u$ at $j$ never wins if
another position scores more than $s(u) + r$ with each of its keys. The scores of all keys that this rule leaves must
fall into groups less than $r$ wide and more than $r$ apart (else the net is refused: whether two are tied would depend
on others). The number of its group is the *rank* of a key. So $u$ at $j$ never wins either if a position further to the
side to which ties are broken has at least the rank of $u$ with each of its keys.

Heads that average over ties are supported if all tied keys have the same value; averages of different values depend on
the number of keys, so there would be infinitely many types: they are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Generic, TypeVar

import numpy as np

from vitrify.arrays import Array, Arrays
from vitrify.bounds.supported import plain_arrays
from vitrify.errors import BuildRefused
from vitrify.net.attention import allowed_keys
from vitrify.net.transformer import Head
from vitrify.net.weights import Weights

V = TypeVar("V", bound=Hashable)
Vector = tuple[Fraction, ...]
Answer = Hashable
QueryKey = tuple[int, int]  # indices of a query and of a key, in one head

SLACK = Fraction(1, 10**9)  # differences of scores this close to a resolution would be decided by rounding
MAX_TYPES = 20_000  # at one position


class Numbered(Generic[V]):
    """Values with indices; equal values share one."""

    def __init__(self) -> None:
        self.values: list[V] = []
        self._numbers: dict[V, int] = {}

    def number(self, value: V) -> int:
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
        return self._numbers[value]


class ExactNet:
    """A net with hard attention in rational arithmetic; types, queries, keys and values get indices on first use.

    A *type* is a vector of the residual stream. A *key* is the pair of the key and the value that a head computes from
    a type, the value as it is written to the residual stream. Methods take and return indices.
    """

    def __init__(self, weights: Weights) -> None:
        net = self.net = weights.architecture
        arrays = plain_arrays(weights, "hard", "can be followed exactly")
        self._embed = [_exact(row) for row in arrays["embed.W_E"]]
        self._position = [_exact(row) for row in arrays["pos_embed.W_pos"]]
        self._unembed = _linear(arrays["unembed.W_U"], arrays["unembed.b_U"])
        self._heads = [
            [_ExactHead(arrays, f"blocks.{index}.attn.", head) for head in range(len(block.heads))]
            for index, block in enumerate(net.blocks)
        ]
        self._mlps = [
            _mlp(arrays, f"blocks.{index}.mlp.") if block.units else None for index, block in enumerate(net.blocks)
        ]
        self.types: Numbered[Vector] = Numbered()
        self._next: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self._answers: dict[int, Answer] = {}

    def embedded(self, token: int, position: int) -> int:
        """Return the type of a token at a position; pads come first and count as positions."""
        return self.types.number(_plus(self._embed[token], self._position[position]))

    def head(self, block: int, head: int) -> _ExactHead:
        """Return one head."""
        return self._heads[block][head]

    def query_key(self, block: int, head: int, kind: int) -> QueryKey:
        """Return the indices of the query and the key of a type in a head."""
        return self._heads[block][head].query_key(kind, self.types.values[kind])

    def after(self, block: int, kind: int, copied: tuple[int, ...]) -> int:
        """Return the type after a block, from the type before it and the values that its heads copy."""
        case = (block, kind, copied)
        if case not in self._next:
            x = self.types.values[kind]
            for head, value in zip(self._heads[block], copied, strict=True):
                x = _plus(x, head.values.values[value])
            mlp = self._mlps[block]
            self._next[case] = self.types.number(_plus(x, mlp(x)) if mlp else x)
        return self._next[case]

    def logits(self, kind: int) -> Vector:
        """Return the logits of a type after the last block."""
        return self._unembed(self.types.values[kind])

    def answer(self, kind: int) -> Answer:
        """Return the answer of a type after the last block: a symbol, the symbols that may come next, or all logits."""
        if kind not in self._answers:
            self._answers[kind] = read_answer(self.net.output.kind, self.net.output.symbols, self.logits(kind))
        return self._answers[kind]


def read_answer(kind: str, symbols: Sequence[str], logits: Sequence[Fraction | float]) -> Answer:
    """Return the answer that logits give, by the kind of output."""
    if kind in ("recognizer", "transducer", "class"):
        return symbols[max(range(len(symbols)), key=lambda index: logits[index])]
    if kind == "next":
        return " ".join(symbol for symbol, logit in zip(symbols, logits, strict=True) if logit > 0)
    return tuple(float(logit) for logit in logits)


class _ExactHead:
    """Matrices of one head, with the queries, keys and values of the types met so far."""

    def __init__(self, arrays: Arrays, prefix: str, head: int) -> None:
        self._q, self._k, self._v = (
            _linear(arrays[f"{prefix}W_{name}"][head], arrays[f"{prefix}b_{name}"][head]) for name in "QKV"
        )
        out = arrays[f"{prefix}W_O"][head]
        self._o = _linear(out, np.zeros(out.shape[1]))
        self._beta = Fraction(float(arrays[f"{prefix}beta"][head]))
        self.bias = _exact(arrays[f"{prefix}b_rel"][head]) if f"{prefix}b_rel" in arrays else ()
        self.queries: Numbered[Vector] = Numbered()
        self.keys: Numbered[tuple[Vector, int]] = Numbered()
        self.values: Numbered[Vector] = Numbered()
        self.nothing = self.values.number((Fraction(0),) * out.shape[1])  # the value of a query without keys
        self._query_keys: dict[int, QueryKey] = {}
        self._scores: dict[tuple[int, int], Fraction] = {}

    def query_key(self, kind: int, x: Vector) -> QueryKey:
        if kind not in self._query_keys:
            key = (self._k(x), self.values.number(self._o(self._v(x))))
            self._query_keys[kind] = (self.queries.number(self._q(x)), self.keys.number(key))
        return self._query_keys[kind]

    def score(self, query: int, key: int) -> Fraction:
        if (query, key) not in self._scores:
            q, k = self.queries.values[query], self.keys.values[key][0]
            self._scores[query, key] = self._beta * sum((a * b for a, b in zip(q, k, strict=True)), Fraction(0))
        return self._scores[query, key]

    def value(self, key: int) -> int:
        return self.keys.values[key][1]


def _exact(row: Iterable[float]) -> Vector:
    return tuple(Fraction(float(number)) for number in row)


def _plus(left: Vector, right: Vector) -> Vector:
    return tuple(a + b if b else a for a, b in zip(left, right, strict=True))


def _linear(matrix: Array, bias: Array) -> Callable[[Vector], Vector]:
    """Return the affine map of a matrix and a bias."""
    columns = [[(int(row), Fraction(float(column[row]))) for row in np.flatnonzero(column)] for column in matrix.T]
    start = _exact(bias)

    def image(x: Vector) -> Vector:
        return tuple(
            sum((x[row] * weight for row, weight in column if x[row]), first)
            for column, first in zip(columns, start, strict=True)
        )

    return image


def _mlp(arrays: Arrays, prefix: str) -> Callable[[Vector], Vector]:
    into, out = (_linear(arrays[f"{prefix}W_{name}"], arrays[f"{prefix}b_{name}"]) for name in ("in", "out"))

    def image(x: Vector) -> Vector:
        return out(tuple(max(number, Fraction(0)) for number in into(x)))

    return image


@dataclass(frozen=True)
class Candidate:
    """A key that may win: its position, its index in the head, its rank, and its preference among ties."""

    position: int
    key: int
    rank: int
    order: int


@dataclass(frozen=True)
class Contest:
    """Keys that may win a query at a position; each occurs in some runs, perhaps not in all.

    `values` are their values. If there is only one, it does not matter which key wins.
    """

    candidates: tuple[Candidate, ...]
    values: tuple[int, ...]


TypeSets = list[tuple[int, ...]]  # per position, the types that may occur there


@dataclass(frozen=True)
class BlockContests:
    """One block: the types before it, the positions it is computed at, and each head's contests."""

    before: TypeSets
    computed: range
    contests: list[list[dict[QueryKey, Contest]]]  # [head][position][query and key of the position]


def possible(exact: ExactNet, choices: Sequence[Sequence[int]]) -> tuple[list[BlockContests], TypeSets]:
    """Return the contests of each block, and the types that may occur after the last one, for words with these tokens.

    `choices` are the tokens allowed at each position, pads included. The last block is computed only at the last
    position: only the answer after the whole word is analyzed.
    """
    net, last = exact.net, len(choices) - 1
    types: TypeSets = [
        tuple(dict.fromkeys(exact.embedded(token, position) for token in tokens))
        for position, tokens in enumerate(choices)
    ]
    layers = []
    for index, block in enumerate(net.blocks):
        computed = range(len(choices)) if index + 1 < len(net.blocks) else range(last, last + 1)
        contests = [_contests(exact, index, number, head, types, computed) for number, head in enumerate(block.heads)]
        layers.append(BlockContests(types, computed, contests))
        types = [
            tuple(dict.fromkeys(new for kind in here for _, new in outcomes(exact, layers[-1], index, position, kind)))
            if position in computed
            else ()
            for position, here in enumerate(types)
        ]
        if max(map(len, types)) > MAX_TYPES:
            raise BuildRefused(f"more than {MAX_TYPES} vectors may occur at one position: take a smaller net")
    return layers, types


def outcomes(
    exact: ExactNet, layer: BlockContests, block: int, position: int, kind: int
) -> list[tuple[tuple[int, ...], int]]:
    """Return the values that the heads may copy to a type at a position, with the type that results from each."""
    copied = [
        contests[position][exact.query_key(block, head, kind)].values for head, contests in enumerate(layer.contests)
    ]
    combinations = np.prod([len(values) for values in copied], initial=1.0)
    if combinations * len(layer.before[position]) > MAX_TYPES:
        raise BuildRefused(
            f"block {block} has more than {MAX_TYPES} combinations of a vector and copied values: take a smaller net"
        )
    return [(values, exact.after(block, kind, values)) for values in product(*copied)]


def _contests(
    exact: ExactNet, block: int, number: int, head: Head, types: TypeSets, computed: range
) -> list[dict[QueryKey, Contest]]:
    """Return the contests of a head, by position and by query and key there."""
    query_keys = [tuple(dict.fromkeys(exact.query_key(block, number, kind) for kind in kinds)) for kinds in types]
    keys = [tuple(dict.fromkeys(key for _, key in pairs)) for pairs in query_keys]
    positions = np.arange(len(types))
    allowed = allowed_keys(head, positions, positions)
    contests: list[dict[QueryKey, Contest]] = [{} for _ in types]
    for here in computed:
        for query, own_key in query_keys[here]:
            visible = {
                int(there): keys[there] if there != here else (own_key,) for there in np.flatnonzero(allowed[here])
            }
            name = f"block {block} head {number}"
            contests[here][query, own_key] = _contest(exact.head(block, number), head, here, query, visible, name)
    return contests


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
    guaranteed = max(min(scores[there, key] for key in kinds) for there, kinds in keys.items())
    remaining = {pair: score for pair, score in scores.items() if score + resolution + SLACK >= guaranteed}
    ranks = _ranks(sorted(set(remaining.values())), resolution, name)
    direction = {"left": 1, "right": -1, "average": 0}[head.ties]
    floors: dict[int, int] = {}  # least rank of the positions all of whose keys remain
    for there, kinds in keys.items():
        if all((there, key) in remaining for key in kinds):
            floors[there] = min(ranks[remaining[there, key]] for key in kinds)
    candidates = [
        Candidate(there, key, ranks[score], direction * there)
        for (there, key), score in remaining.items()
        if not any(direction * other < direction * there and least >= ranks[score] for other, least in floors.items())
    ]
    if not direction:
        _refuse_averages(exact, candidates, name)
    return Contest(tuple(candidates), tuple(dict.fromkeys(exact.value(entry.key) for entry in candidates)))


def _ranks(scores: list[Fraction], resolution: Fraction, name: str) -> dict[Fraction, int]:
    """Return the group of each score, from the lowest; groups are narrower than the resolution and farther apart."""
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
                f"{name} averages over keys with different values, which can count, and has no finite set of vectors: "
                "break its ties to the left or right"
            )
        rank.setdefault(value, set()).add(entry.position)
