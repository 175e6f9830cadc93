r"""Position codes: queries and keys that select the token `offset` positions back, with a gap known in advance.

Each code is a `table` of features of the positions $t = 1 \dots T$ (zeros at BOS), held by a space of its `kind`. It
gives, for every offset $h$, linear queries and keys whose product is largest at $j = t-h$ (`match`). The BOS key is the
*sink*: it scores halfway between a match and the best mismatch, so a query whose target lies before the first token
reads BOS. Heads are causal: keys come no later than their query.

| code | dimensions | gap with sink | largest score |
| --- | --- | --- | --- |
| `dyadic` | $2B-1$, $B = \lceil\log_2 \max(T, h+1)\rceil$ | 1 | $B$ |
| `quadratic` | 2 | 1/2 | $\le 4(T+h)^2$ |
| `sqrt` | 2 + 2 per offset | $\approx 1/(16 T^3)$ | 1 |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.net.spaces import Reals

CodeName = Literal["dyadic", "quadratic", "sqrt"]


@dataclass(frozen=True, eq=False)
class OffsetMatch:
    """What makes a head read a fixed number of positions back: linear maps of the code of a position.

    - `query` [dims, features] with its `bias` [features], and `key` [dims, features].
    - `sink` [dims] and `level`: BOS's score, a map of the query's code and a constant, half a gap below a match.
    - `gap`: the smallest difference between the right key's score and any other, the sink included.
    - `bound`: the largest sum of |query × key| over the features.
    """

    query: Floats
    bias: Floats
    key: Floats
    sink: Floats
    level: float
    gap: float
    bound: float


@dataclass(frozen=True)
class ChosenPositions:
    r"""One-hot code of $0 \dots T$ in which only chosen positions $t$ attend back; all others read BOS.

    The query is $e_i$ at the $i$-th chosen position, the key $e_i$ at the position it reads: 1 at a match, 0 elsewhere,
    and the sink scores ½. Positions that nothing reads cost no weight.
    """

    length: int
    positions: tuple[int, ...]

    def match(self, offset: int) -> OffsetMatch:
        codes, positions = np.eye(self.length + 1), np.array(self.positions)
        query, key = codes[:, positions], codes[:, positions - offset]
        return OffsetMatch(query, np.zeros(len(positions)), key, np.zeros(len(codes)), level=0.5, gap=0.5, bound=1.0)


@dataclass(frozen=True)
class Dyadic:
    r"""$\cos, \sin(2\pi t / 2^b)$ for $b = 1 \dots B$; an offset is a fixed rotation of the query.

    $q_t \cdot k_j = \sum_b \cos(2\pi (t-h-j)/2^b)$ is $B$ at a match. If $\delta = t-h-j \ne 0$ has its lowest set
    bit at $r$, the term $b = r+1$ is $\cos(\pi \cdot \text{odd}) = -1$, so the sum is at most $B-2$. The sink scores
    $B-1$. For causal heads $-h \le \delta < T-h$, so $2^B > \max(h, T-1)$ keeps every $\delta \ne 0$ from wrapping
    round to 0. The sine of $b = 1$ is always 0 and is left out.
    """

    length: int
    reach: int

    @property
    def levels(self) -> int:
        return max(1, max(self.length - 1, self.reach).bit_length())

    def kind(self) -> Reals:
        names = ["cos/2"] + [f"{f}/{2**b}" for b in range(2, self.levels + 1) for f in ("cos", "sin")]
        return Reals(tuple(names), -1.0, 1.0)

    def table(self) -> Floats:
        t = np.arange(1, self.length + 1)
        columns = [_turn(t, 1)[0]] + [wave for b in range(2, self.levels + 1) for wave in _turn(t, b)]
        return np.stack(columns, axis=1)

    def match(self, offset: int) -> OffsetMatch:
        size = 2 * self.levels - 1
        query = np.zeros((size, size))
        query[0, 0] = _turn(np.array([offset]), 1)[0][0]
        for b in range(2, self.levels + 1):
            cos, sin = (wave[0] for wave in _turn(np.array([offset]), b))
            at = 2 * b - 3
            query[at : at + 2, at : at + 2] = [[cos, -sin], [sin, cos]]
        bound = float(self.levels)
        return OffsetMatch(query, np.zeros(size), np.eye(size), np.zeros(size), level=bound - 1.0, gap=1.0, bound=bound)


def _turn(t: Ints, b: int) -> tuple[Floats, Floats]:
    """Cosine and sine of t / 2^b turns, exact at quarter turns."""
    part = t % 2**b
    cos, sin = np.cos(2 * np.pi * part / 2**b), np.sin(2 * np.pi * part / 2**b)
    quarter = (4 * part) % 2**b == 0
    return np.where(quarter, np.round(cos), cos), np.where(quarter, np.round(sin), sin)


@dataclass(frozen=True)
class Quadratic:
    r"""$(t, t^2)$ with score $2(t-h)j - j^2 = (t-h)^2 - (j-(t-h))^2$.

    A match scores $(t-h)^2$, any other key at most $(t-h)^2 - 1$; the sink scores $(t-h)^2 - 1/2$, linear in $(t,
    t^2)$.
    """

    length: int

    def kind(self) -> Reals:
        return Reals(("t", "t²"), 0.0, float(self.length**2))

    def table(self) -> Floats:
        t = np.arange(1.0, self.length + 1)
        return np.stack([t, t * t], axis=1)

    def match(self, offset: int) -> OffsetMatch:
        return OffsetMatch(
            query=np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
            bias=np.array([0.0, 1.0, 1.0]),
            key=np.array([[1.0, 0.0, -2.0 * offset], [0.0, -1.0, 0.0]]),
            sink=np.array([-2.0 * offset, 1.0]),
            level=offset * offset - 0.5,
            gap=0.5,
            bound=4.0 * (self.length + offset) ** 2,
        )


@dataclass(frozen=True)
class Sqrt:
    r"""$(\sqrt{1/t}, \sqrt{1-1/t})$, the code of the published n-gram construction, for comparison.

    With $\theta_t = \arctan\sqrt{t-1}$ the score is $\cos(\theta_t - \theta_{j+h})$, 1 at a match. Neighbours differ
    by $\theta_{t+1}-\theta_t = \arctan\big(1/((\sqrt t + \sqrt{t-1})(1 + \sqrt{t(t-1)}))\big) \approx 1/(2 t^{3/2})$,
    so the gap is only $1-\cos \approx 1/(8t^3)$, and the sink halves it. An offset is not a linear map of the code: the
    code of $t+h$ is stored for every offset $h$.
    """

    length: int
    offsets: tuple[int, ...]

    def kind(self) -> Reals:
        names = ["√(1/t)", "√(1-1/t)"]
        names += [name for h in self.offsets for name in (f"√(1/(t+{h}))", f"√(1-1/(t+{h}))")]
        return Reals(tuple(names), 0.0, 1.0)

    def table(self) -> Floats:
        t = np.arange(1.0, self.length + 1)
        return np.concatenate([_pair(t)] + [_pair(t + h) for h in self.offsets], axis=1)

    def match(self, offset: int) -> OffsetMatch:
        a, b = np.sqrt(float(self.length)), np.sqrt(self.length - 1.0)
        step = np.arctan(1.0 / ((a + b) * (1 + a * b)))
        gap = float(np.sin(step / 2) ** 2)  # half of 1 - cos(step): the sink stands in the middle
        codes, at = np.eye(2 + 2 * len(self.offsets)), 2 + 2 * self.offsets.index(offset)
        key = codes[:, at : at + 2]
        return OffsetMatch(codes[:, :2], np.zeros(2), key, np.zeros(len(codes)), level=1.0 - gap, gap=gap, bound=1.0)


PositionCode: TypeAlias = Dyadic | Quadratic | Sqrt


def _pair(t: Floats) -> Floats:
    return np.stack([np.sqrt(1 / t), np.sqrt(1 - 1 / t)], axis=1)


def dimensions(name: CodeName, length: int, offsets: Iterable[int]) -> int:
    """Return the dimensions of a position code, by the formulas of the table above.

    >>> [dimensions(name, 8, (1, 2, 4)) for name in ("dyadic", "quadratic", "sqrt")]
    [5, 2, 8]
    """
    wanted = set(offsets)
    bits = max(1, max(length - 1, max(wanted, default=0)).bit_length())
    return {"dyadic": 2 * bits - 1, "quadratic": 2, "sqrt": 2 + 2 * len(wanted)}[name]


def position_code(name: CodeName, length: int, offsets: Iterable[int]) -> PositionCode:
    """Return a position code by name, for sequences up to `length` and the given offsets."""
    wanted = tuple(sorted(set(offsets)))
    if name == "dyadic":
        return Dyadic(length, max(wanted, default=0))
    if name == "quadratic":
        return Quadratic(length)
    return Sqrt(length, wanted)
