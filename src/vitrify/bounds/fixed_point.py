r"""Softmax and average-hard attention in finite precision: the definition of the arithmetic.

Numbers of the residual stream are multiples of $2^{-f}$ between $-R$ and $R$; all rounding is to the nearest multiple,
halves upwards, followed by clipping to that range. Weights are rounded to multiples of $2^{-f}$ once, and not clipped.

- $x = W_E[\text{token}] + W_{pos}$, clipped to the range. Queries, keys and values are $xW + b$, rounded.
- A score is $\log_2(e)\,(\beta\,q \cdot k + r)$, rounded to an integer and clipped to $-S \dots S$; so the weight of a
  key, $2^s$, is dyadic. $\log_2(e)\,\beta$ and $\log_2(e)\,r$ are rounded to multiples of $2^{-f}$ like weights.
- The output of a head is $\sum_j 2^{s_j} v_j / \sum_j 2^{s_j}$: both sums exact, *one* rounding for each coordinate.
- A hard head that averages ties compares exact scores; keys within its resolution of the best have weight 1, others 0.
- The residual stream after the heads, the hidden units and the residual stream after the MLP are rounded once each;
  logits are exact.

So everything is integer arithmetic, the order of summation does not matter, and every run is reproducible to the last
bit. A net with $p$ bits for each number has at most $2^{pd}$ vectors of width $d$, its *types*.

**Rounding after each addition.** With `significant` bits $b$ the sums over keys run from left to right, and every
partial sum is rounded to $b$ significant bits and clipped: $t \leftarrow \mathrm{round}(t + a)$. Weights $2^s$ are
multiples of $2^{-f}$ up to $R$. First $Z$ is the sum of the weights; then each share $2^{s_j} / Z$ is rounded, and so
is its product with $v_j$; the output is the sum of these products. Sums over dimensions have a fixed number of terms:
they stay exact. Where $b$ is no less than the bits of a number, a partial sum is never rounded, only clipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from types import EllipsisType

import numpy as np

from vitrify.arrays import Ints, Matrix
from vitrify.bounds.quantized import rounded
from vitrify.bounds.supported import plain_arrays
from vitrify.errors import BuildRefused, InputError
from vitrify.net.attention import allowed_keys
from vitrify.net.weights import Weights

LOG2_E = 1.4426950408889634
MAX_BITS = 52  # of products and of weighted values; the remaining bits are for sums


@dataclass(frozen=True)
class Grid:
    """Fixed-point numbers with `fraction` bits after the point, up to `top`; scores up to `score`.

    Sums over keys are exact and rounded once, or every partial sum is rounded to `significant` bits.
    """

    fraction: int
    top: int
    score: int
    significant: int | None = None

    def __post_init__(self) -> None:
        if min(self.fraction, self.top - 1, self.score) < 0:
            raise InputError(f"a grid has 0 digits or more, a top of 1 or more and scores of 0 or more, not {self}")
        if self.significant is not None and self.significant < 1:
            raise InputError(f"a partial sum has 1 significant bit or more, not {self.significant}")
        if 2 * self.bits + self.fraction > MAX_BITS or 2 * self.score + self.bits > MAX_BITS:
            raise BuildRefused(f"scores or sums on {self} would not fit 64 bits: take fewer digits or smaller scores")

    @property
    def bits(self) -> int:
        """Bits of a number of the residual stream."""
        return (2 * self.top << self.fraction).bit_length()

    @property
    def values(self) -> int:
        """Number of values of a number of the residual stream."""
        return (2 * self.top << self.fraction) + 1

    @property
    def partial_sums(self) -> int:
        """Number of values that a partial sum may have."""
        most, positive = self.top << self.fraction, 0
        for length in range(1, most.bit_length() + 1):
            digits = 0 if self.significant is None else max(0, length - self.significant)
            positive += (min((1 << length) - 1, most) >> digits) - ((1 << length - 1) >> digits) + 1
            exact = most >> digits << digits == most
        return 2 * (positive + (not exact)) + 1

    def weight(self, array: Matrix) -> Ints:
        """Return weights as integer multiples of the step."""
        return np.floor(np.asarray(array) * 2.0**self.fraction + 0.5).astype(np.int64)

    def cut(self, numbers: Ints) -> Ints:
        """Return numbers clipped to the range."""
        most = self.top << self.fraction
        return np.clip(numbers, -most, most)

    def rounded(self, products: Ints) -> Ints:
        """Return multiples of $2^{-2f}$ rounded to multiples of $2^{-f}$ and clipped to the range."""
        return self.cut(_shifted(products, self.fraction))

    def plus(self, total: Ints, summand: Ints) -> Ints:
        """Return partial sums after one more summand, rounded to the significant bits and clipped."""
        exact = np.asarray(total + summand, dtype=np.int64)
        if self.significant is None:
            return exact
        lengths = np.frexp(np.abs(exact).astype(np.float64))[1].astype(np.int64)
        digits = np.maximum(lengths - self.significant, 0)
        return self.cut(_shifted(exact, digits) << digits)

    def share(self, weights: Ints, total: Ints) -> Ints:
        """Return weights divided by their rounded sum, rounded; 0 where that is 0."""
        return self.cut(rounded(weights << self.fraction, total))


def logarithmic(length: int, *, digits: int = 0, top: int = 1, score: int = 0) -> Grid:
    r"""Return a grid of $O(\log n)$ bits for words of $n$ letters.

    It has $\lceil \log_2 n \rceil$ bits after the point and `digits` more, and scores up to $\lceil \log_2 n \rceil$
    and `score` more; `top` must be a polynomial of $n$.

    >>> logarithmic(16, digits=1)
    Grid(fraction=5, top=1, score=4, significant=None)
    """
    bits = (length - 1).bit_length()
    return Grid(bits + digits, top, bits + score)


def _shifted(numbers: Ints, digits: int | Ints) -> Ints:
    """Return numbers divided by a power of two and rounded, halves upwards."""
    return (2 * numbers + (1 << digits)) >> (digits + 1)


class FixedNet:
    """A transformer in finite precision, step by step; all steps but attention treat rows separately.

    Its heads are softmax heads, or hard heads that average ties.
    """

    def __init__(self, weights: Weights, grid: Grid) -> None:
        net = self.net = weights.architecture
        self.grid = grid
        heads = [head for block in getattr(net, "blocks", ()) for head in getattr(block, "heads", ())]
        self.hard = bool(heads) and {head.attention for head in heads} == {"hard"}
        arrays = plain_arrays(weights, "hard" if self.hard else "softmax", "is run in finite precision")
        if self.hard and {head.ties for head in heads} != {"average"}:
            raise BuildRefused(
                "hard attention in finite precision averages ties, but this net breaks them to one side: its circuit "
                "is made by hard_attention_circuit, without threshold gates"
            )
        unit = 1.0 if self.hard else LOG2_E
        sharp = {name: unit * arrays[name] for name in arrays if name.endswith(("beta", "b_rel"))}
        self._arrays = {name: grid.weight(array) for name, array in (arrays | sharp).items()}
        most = grid.top << grid.fraction
        for name, array in self._arrays.items():
            terms = most * net.d_head if name.endswith("beta") else max(array.shape, default=1)
            if int(np.abs(array).max(initial=0)) * most * terms >= 1 << 60:
                raise BuildRefused(f"sums with {name} would not fit 64 bits on {grid}: take fewer digits")

    @property
    def has_positions(self) -> bool:
        """Whether the embedding depends on the position."""
        return bool(self._arrays["pos_embed.W_pos"].any())

    def _affine(self, x: Ints, name: str, head: int | EllipsisType = ...) -> Ints:
        """Return $xW + b$ in multiples of $2^{-2f}$, of one head or all; `name` has * for W and b."""
        matrix, bias = (self._arrays[name.replace("*", letter)][head] for letter in ("W", "b"))
        return x @ matrix + (bias << self.grid.fraction)

    def embedded(self, tokens: Ints, positions: Ints) -> Ints:
        """Return the residual stream after the embedding."""
        return self.grid.cut(self._arrays["embed.W_E"][tokens] + self._arrays["pos_embed.W_pos"][positions])

    def query_key_value(self, block: int, head: int, x: Ints) -> tuple[Ints, Ints, Ints]:
        """Return queries, keys and values of a head."""
        q, k, v = (self.grid.rounded(self._affine(x, f"blocks.{block}.attn.*_{letter}", head)) for letter in "QKV")
        return q, k, v

    def scores(self, block: int, head: int, q: Ints, k: Ints, distance: Ints) -> Ints:
        """Return scores [..., query, key]: exponents of the key weights, or exact ones of a hard head."""
        name, digits = f"blocks.{block}.attn", self.grid.fraction
        products = (q @ np.swapaxes(k, -1, -2)) * self._arrays[f"{name}.beta"][head]
        if self.net.blocks[block].heads[head].window:
            bias = self._arrays[f"{name}.b_rel"][head]
            products = products + (bias[np.clip(distance, 0, len(bias) - 1)] << 2 * digits)
        if self.hard:
            return np.asarray(products)
        return np.clip(_shifted(products, 3 * digits), -self.grid.score, self.grid.score)

    def powers(self, scores: Ints) -> Ints:
        """Return the weights of a softmax head as integers: $2^{s + S}$; with rounded sums, $2^s$ on the grid."""
        grid, weights = self.grid, np.int64(1) << (scores + self.grid.score)
        return weights if grid.significant is None else grid.cut(_shifted(weights << grid.fraction, grid.score))

    def tied(self, block: int, head: int, scores: Ints, best: Ints) -> Ints:
        """Return the weights of a hard head's keys if this is the best score: 1 within its resolution, on the grid."""
        resolution = floor(Fraction(self.net.blocks[block].heads[head].resolution) * 8**self.grid.fraction)
        one = 1 if self.grid.significant is None else 1 << self.grid.fraction
        return np.asarray(scores >= best - resolution) * np.int64(one)

    def mixed(self, weights: Ints, values: Ints) -> Ints:
        """Return the outputs of a head, from weights [..., query, key] and values [..., key, d_value]."""
        grid = self.grid
        if grid.significant is None:
            return rounded(weights @ values, weights.sum(axis=-1, keepdims=True))
        total = np.zeros_like(weights[..., 0])
        output = np.zeros((*weights.shape[:-1], values.shape[-1]), dtype=np.int64)
        for key in range(weights.shape[-1]):
            total = grid.plus(total, weights[..., key])
        for key in range(weights.shape[-1]):
            share = grid.share(weights[..., key], total)[..., None]
            output = grid.plus(output, grid.rounded(share * values[..., None, key, :]))
        return output

    def after(self, block: int, x: Ints, outputs: list[Ints]) -> Ints:
        """Return the residual stream after a block, from the outputs of its heads."""
        total = x << self.grid.fraction
        for head, value in enumerate(outputs):
            total = total + value @ self._arrays[f"blocks.{block}.attn.W_O"][head]
        x = self.grid.rounded(total)
        if self.net.blocks[block].units:
            hidden = np.maximum(self.grid.rounded(self._affine(x, f"blocks.{block}.mlp.*_in")), 0)
            x = self.grid.rounded((x << self.grid.fraction) + self._affine(hidden, f"blocks.{block}.mlp.*_out"))
        return x

    def logits(self, x: Ints) -> Ints:
        """Return the logits, in multiples of $2^{-2f}$."""
        return self._affine(x, "unembed.*_U")

    def run(self, words: Ints) -> Ints:
        """Return logits [word, position, out] of words [word, position] of tokens from 1; pads are put in front."""
        net = self.net
        tokens = np.pad(words, ((0, 0), (net.pads, 0)))
        positions = np.arange(tokens.shape[1])
        x = self.embedded(tokens, positions)
        for index, block in enumerate(net.blocks):
            outputs = []
            for number, head in enumerate(block.heads):
                q, k, v = self.query_key_value(index, number, x)
                scores = self.scores(index, number, q, k, positions[:, None] - positions)
                allowed = allowed_keys(head, positions, positions)
                if self.hard:
                    best = np.where(allowed, scores, np.iinfo(np.int64).min // 2).max(axis=-1, keepdims=True)
                    weights = self.tied(index, number, scores, best)
                else:
                    weights = self.powers(scores)
                outputs.append(self.mixed(weights * allowed, v))
            x = self.after(index, x, outputs)
        return self.logits(x)
