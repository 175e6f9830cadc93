r"""Upper bound on the effect of one letter on the logits of a softmax transformer, for a given net and length.

In the spirit of Hahn (2020, arXiv 1906.06755): softmax over $n$ keys with bounded scores gives each of them a weight
$O(1/n)$, so that one letter hardly matters elsewhere. Here the bound is computed for the weights at hand, coordinate by
coordinate, for every position $p$ whose letter may change and every position $i$:

- *boxes*: the least and greatest value of each coordinate at each position over all words; and from these the least and
  greatest scores, so that the weight of key $j$ is at most $\bar w_{ij} = 1 / (1 + \sum_{k \ne j} e^{\underline s_{ik}
  - \overline s_{ij}})$;
- *changes* $\delta$: at the embedding, the width of the box at $p$ and 0 elsewhere. Affine maps turn $\delta$ into
  $\delta|W|$, ReLU units don't increase it. A score changes by at most $\varepsilon_{ij} = |\beta|(\delta q_i \cdot
  |k_j| + |q_i| \cdot \delta k_j)$. If scores change one after the other, the sum of $|\Delta w|$ is at most $2 \sum_j
  \bar w_{ij} \min(\varepsilon_{ij}, 1)$; and as $\sum_j \Delta w_j = 0$, only the distance of values from the middle of
  their box counts, so $\delta a_i = \sum_j \bar w_{ij}\,\delta v_j + \rho_i \sum_j 2 \bar w_{ij} \min(\varepsilon_{ij},
  1)$, where $\rho_i$ is half the width of the box of all values that $i$ can see. Nothing changes by more than the
  width of its box.

The bound is a theorem in real arithmetic; it is computed in floating-point numbers, with relative errors near 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Arrays, Bools, Floats, Ints
from vitrify.bounds.supported import plain_arrays, refuse_length
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.attention import allowed_keys
from vitrify.net.inference import batch_logits
from vitrify.net.transformer import Head
from vitrify.net.weights import Weights


@dataclass(frozen=True)
class Box:
    """Range of each coordinate, and the largest effect of a letter on it: `moved` [its position, position, …]."""

    low: Floats
    high: Floats
    moved: Floats

    @property
    def largest(self) -> Floats:
        """Greatest absolute value of each coordinate."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def affine(self, matrix: Floats, bias: Floats) -> Box:
        """Return the box of $xW + b$."""
        up, down = np.maximum(matrix, 0), np.minimum(matrix, 0)
        low, high = self.low @ up + self.high @ down + bias, self.high @ up + self.low @ down + bias
        return Box(low, high, np.minimum(self.moved @ np.abs(matrix), high - low))

    def relu(self) -> Box:
        """Return the box of the positive parts."""
        low, high = np.maximum(self.low, 0), np.maximum(self.high, 0)
        return Box(low, high, np.minimum(self.moved, high - low))

    def __add__(self, other: Box) -> Box:
        low, high = self.low + other.low, self.high + other.high
        return Box(low, high, np.minimum(self.moved + other.moved, high - low))


@dataclass(frozen=True)
class Influence:
    """Bounds on the effect of one letter on any logit at the last position: of the last letter, and of the others."""

    length: int
    own: float
    others: float


def influence(weights: Weights, length: int) -> Influence:
    """Return upper bounds on the effect of one letter on a logit at the last position."""
    moved = logit_moves(weights, length).max(axis=-1)
    return Influence(length, float(moved[-1]), float(moved[:-1].max(initial=0.0)))


def logit_moves(weights: Weights, length: int) -> Floats:
    """Return an upper bound [letter, logit] on the effect of each letter on each logit at the last position."""
    net = weights.architecture
    arrays = plain_arrays(weights, "softmax", "has such a bound")
    refuse_length(net, length)
    x = _embedded(arrays, net.pads, length)
    for index, block in enumerate(net.blocks):
        name = f"blocks.{index}"
        outputs = [_attended(head, arrays, f"{name}.attn", number, x) for number, head in enumerate(block.heads)]
        x = sum(outputs, start=x)
        if block.units:
            hidden = x.affine(arrays[f"{name}.mlp.W_in"], arrays[f"{name}.mlp.b_in"]).relu()
            x = x + hidden.affine(arrays[f"{name}.mlp.W_out"], arrays[f"{name}.mlp.b_out"])
    return x.affine(arrays["unembed.W_U"], arrays["unembed.b_U"]).moved[:, -1]


def _embedded(arrays: Arrays, pads: int, length: int) -> Box:
    tokens, positions = arrays["embed.W_E"], arrays["pos_embed.W_pos"][: pads + length]
    low, high = (
        np.vstack([np.tile(tokens[0], (pads, 1)), np.tile(bound, (length, 1))]) + positions
        for bound in (tokens[1:].min(axis=0), tokens[1:].max(axis=0))
    )
    moved = np.zeros((length, pads + length, tokens.shape[1]))
    moved[np.arange(length), pads + np.arange(length)] = (high - low)[pads:]
    return Box(low, high, moved)


def _attended(head: Head, arrays: Arrays, name: str, number: int, x: Box) -> Box:
    """Return the box of a head's output."""
    q, k, v = (x.affine(arrays[f"{name}.W_{letter}"][number], arrays[f"{name}.b_{letter}"][number]) for letter in "QKV")
    positions, beta = np.arange(len(x.low)), float(arrays[f"{name}.beta"][number])
    allowed = allowed_keys(head, positions, positions)
    corners = [beta * a[:, None] * b for a in (q.low, q.high) for b in (k.low, k.high)]  # [query, key, coordinate]
    least, greatest = np.minimum.reduce(corners).sum(axis=-1), np.maximum.reduce(corners).sum(axis=-1)
    if head.window is not None:
        bias = arrays[f"{name}.b_rel"][number]
        shift = bias[np.clip(positions[:, None] - positions, 0, len(bias) - 1)]
        least, greatest = least + shift, greatest + shift
    weights = _largest_weights(least, greatest, allowed)
    widest = np.minimum(greatest - least, 1.0)
    drift = np.zeros(x.moved.shape[:2])  # [letter, query]
    for p in range(len(drift)):  # one letter at a time: all at once would need memory of the length cubed
        change = abs(beta) * (q.moved[p] @ k.largest.T + q.largest @ k.moved[p].T)
        drift[p] = 2 * (weights * np.minimum(change, widest)).sum(axis=-1)
    low, high = (_visible(bound, allowed, edge) for bound, edge in ((v.low, np.inf), (v.high, -np.inf)))
    moved = weights @ v.moved + np.minimum(drift, 2.0)[..., None] * (high - low) / 2
    out = arrays[f"{name}.W_O"][number]
    return Box(low, high, np.minimum(moved, high - low)).affine(out, np.zeros(out.shape[1]))


def _largest_weights(least: Floats, greatest: Floats, allowed: Bools) -> Floats:
    """Return the greatest weight of each key for each query: its greatest score against the least of all others."""
    top = np.where(allowed, least, -np.inf).max(axis=-1, keepdims=True, initial=-700.0)
    terms = np.exp(np.where(allowed, least - top, -np.inf))
    others = np.maximum(terms.sum(axis=-1, keepdims=True) - terms, 0.0)
    with np.errstate(over="ignore"):
        return np.where(allowed, 1.0 / (1.0 + others * np.exp(np.minimum(top - greatest, 700.0))), 0.0)


def _visible(bound: Floats, allowed: Bools, edge: float) -> Floats:
    """Return for each query the least (or greatest) value of the visible keys, 0 if there are none."""
    seen = np.where(allowed[:, :, None], bound[None], edge)
    extreme: Floats = seen.min(axis=1) if edge > 0 else seen.max(axis=1)
    return np.where(np.isfinite(extreme), extreme, 0.0)


def measured(weights: Weights[SequenceArchitecture], words: Ints, position: int) -> float:
    """Return the largest change of a logit at the last position over all replacements of the letter at one position."""
    net = weights.architecture
    logits = []
    for letter in range(1, len(net.inputs)):
        changed = words.copy()
        changed[:, position] = letter
        logits.append(batch_logits(weights, np.pad(changed, ((0, 0), (net.pads, 0))))[:, -1])
    return float((np.max(logits, axis=0) - np.min(logits, axis=0)).max())
