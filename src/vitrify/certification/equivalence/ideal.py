r"""The ideal of a built transformer: the same network with heads that select exactly and units that are exact.

That the stored weights compute their ideal up to a proved error, for every word, is the result of `margins/`; the
lemmas of this folder prove that the ideal computes the spec. At position $i$ the residual stream is $x_i = p_i + c_i$:
a part $p_i$ that only the position sets, and contents $c_i$. The score of key $j$ is

$$(q(p_i) + q(c_i)) \cdot (k(p_j) + k(c_j)) = P(i, j) + L, \qquad
L = q(p_1) \cdot k(c_j) + q(c_i) \cdot k(c_j) + q(c_i) \cdot k(p_1),$$

if the other products do not depend on $i$ and $j$ (`separate`). So the *level* $L$ of a key is a matter of contents,
and a higher level wins if the difference exceeds all that positions add. Of keys on the best level, $P$ decides: it
selects the last or the first one, or the one a fixed distance back.

Labels are used in two ways, neither of which can make a wrong network right: the proof of margins, which is given, and
the moment from which on a dimension may be erased, which it checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.margins.proof import HeadMargin, Proof
from vitrify.certification.margins.units import UnitLayer
from vitrify.certification.margins.values import Undecided, at_pads
from vitrify.net.attention import allowed_keys
from vitrify.net.positions import tabulated
from vitrify.net.sparse import dense
from vitrify.net.transformer import Head
from vitrify.net.weights import Weights

EQUAL = 1e-7  # scores nearer to each other than this, relative to the largest, are equal
MAX_DIMS = 1 << 11  # of the residual stream
MAX_POSITIONS = 1 << 12  # whose scores are compared
MAX_UNITS_HELD = 1 << 23  # values of units, in memory at once
MAX_PERIOD = 64  # of what positions add outside of scores


class HeadRule:
    """A head of the ideal: its maps to scores and values, and which of the keys on the best level it selects.

    - Queries are $x q + b_q$ (with the inverse temperature), keys $x k + b_k$, and it writes $x v + b_v$; `values` is
      $v = W_V W_O$ as a sparse array. `q_places`, `k_places`, `v_places` [position, …] are what they make of $p_i$,
      with the biases.
    - `pad_keys`, `pad_values`: the keys and values of the pads, the same for every word.
    - `fixed`: positions alone decide the scores, for all contents that words can lead to; `averages`: so do they the
      weights, which several keys may share.
    - `prefers`: which of equal keys wins: the `last`, the `first`, `any` (they share the weight, so that their values
      must agree), or `position`: it depends on the position; `back` is then the distance of the winner, if it is one,
      and else `sources` the index of the winner for every position, -1 - p for pad p.
    - `range`: the most that positions add to one key rather than another.
    """

    def __init__(
        self, weights: Weights, block: int, at: int, places: Floats, pads: Floats, proved: HeadMargin | None
    ) -> None:
        """From what positions and pads hold before the block; `proved` is the margin of the head."""
        from scipy.sparse import csr_array

        names, arrays = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O"), weights.arrays
        part = [np.asarray(dense(arrays[f"blocks.{block}.attn.{name}"][at])) for name in names]
        w_q, b_q, self.k, self.b_k, w_v, b_v, w_o = part
        beta = float(arrays[f"blocks.{block}.attn.beta"][at])
        self.q, self.b_q, self.values, self.b_v = w_q * beta, b_q * beta, csr_array(w_v) @ csr_array(w_o), b_v @ w_o
        self.q_places, self.k_places = (places @ w_q + b_q) * beta, places @ self.k + self.b_k
        self.v_places = places @ self.values
        self.pad_keys, self.pad_values = pads @ self.k + self.b_k, pads @ self.values + self.b_v
        self.head: Head = weights.architecture.blocks[block].heads[at]
        self.bias = arrays[f"blocks.{block}.attn.b_rel"][at] if self.head.window is not None else None
        self.first = len(pads)  # position of the first letter
        self.fixed = proved is not None and proved.fixed
        self.averages = proved is not None and proved.fixed and proved.gap is None
        self._set_preference()

    def _set_preference(self) -> None:
        """Compare the scores that positions add."""
        count = len(self.q_places)
        at = self.first + np.arange(count)
        place = self.q_places @ self.k_places.T
        if self.bias is not None:
            place = place + self.bias[np.clip(at[:, None] - at[None], 0, len(self.bias) - 1)]
        seen = allowed_keys(self.head, at, at)
        self.size = float(np.abs(place).max(initial=0.0)) + 1.0
        low, high = np.where(seen, place, np.inf).min(axis=1), np.where(seen, place, -np.inf).max(axis=1)
        there = seen.any(axis=1)
        self.range = float((high - low)[there].max(initial=0.0))
        self.place, self.seen, self.low, self.high = place, seen, low, high
        steps = np.diff(place, axis=1)[seen[:, 1:] & seen[:, :-1]]
        slack = max(EQUAL * self.size, self.head.resolution if self.head.attention == "hard" else 0.0)
        rises, falls = bool((steps > slack).all()), bool((steps < -slack).all())
        flat = bool((np.abs(steps) <= slack).all())
        ties = {"left": "first", "right": "last"}.get(self.head.ties if self.head.attention == "hard" else "", "any")
        self.prefers = "last" if rises else "first" if falls else ties if flat else "position"
        self.constant_query = not np.any(self.q)
        self.back = self._back(slack) if self.prefers == "position" or self.head.window == 1 else None
        self.sources = self._sources() if self.prefers == "position" and self.back is None else None
        width = self.head.window
        wide = count if self.averages else count + self.first  # a mean is a sum if its window hides no letter
        self.window = width if width is not None and 1 < width < wide else None
        if self.averages and self.window is None and self.head.window != 1 and not flat:
            raise Undecided("an average whose weights differ from position to position is not followed")

    @cached_property
    def v(self) -> Floats:
        """$W_V W_O$, as a dense array."""
        return np.asarray(self.values.toarray())

    def pad_scores(self, query: Floats) -> Floats:
        """Return the scores [position, pad] of the pads for a query with these contents."""
        scores = (self.q_places + query) @ self.pad_keys.T
        at, pads = self.first + np.arange(len(scores)), np.arange(self.first)
        if self.bias is not None:
            scores = scores + self.bias[np.clip(at[:, None] - pads, 0, len(self.bias) - 1)]
        return np.where(allowed_keys(self.head, at, pads), scores, -np.inf)

    def scores(self, key: Floats, query: Floats) -> Floats:
        """Return the scores [position, key] of pads and letters, if all letters have the same contents.

        They are -inf where a key is not seen.
        """
        letters = self.place + (self.q_places @ key)[:, None] + (self.k_places @ query + key @ query)
        return np.hstack([self.pad_scores(query), np.where(self.seen, letters, -np.inf)])

    def winners(self, key: Floats, query: Floats) -> tuple[Ints, Bools]:
        """Return which letter has the best score at every position, -1 for a pad, and which pads have the best score.

        All letters have the same contents. `Undecided` where a letter ties with another key.
        """
        scores = self.scores(key, query)
        by_contents = (self.q_places @ key)[:, None] + self.k_places @ query + key @ query
        slack = EQUAL * (self.size + float(np.abs(by_contents).max(initial=0.0)))
        slack = max(slack, self.head.resolution if self.head.attention == "hard" else 0.0)
        best = scores.max(axis=1, keepdims=True)
        ahead = scores >= best - slack
        if not np.isfinite(best).all() or (ahead[:, self.first :].any(axis=1) & (ahead.sum(axis=1) > 1)).any():
            raise Undecided("two positions share the weight of a head")
        return np.maximum(scores.argmax(axis=1) - self.first, -1), ahead[:, : self.first]

    def separate(self, keys: Floats, query: Floats) -> bool:
        """Return whether contents and positions contribute to the scores of some keys [key, d] separately."""
        slack = EQUAL * (self.size + np.abs(query).max(initial=0.0) + np.abs(keys).max(initial=0.0))
        by_query, by_key = self.k_places @ query, self.q_places @ keys.T
        return bool(np.ptp(by_query) <= slack and (np.ptp(by_key, axis=0) <= slack).all())

    def levels(self, keys: Floats, query: Floats) -> Floats:
        """Return the levels of keys with contents [key, d]: their scores, without what positions add."""
        return np.asarray(keys @ (query + self.q_places[0]) + query @ self.k_places[0])

    def _back(self, slack: float) -> int | None:
        """Return how far back the best position is, where that is the same for every query that is far enough in."""
        masked = np.where(self.seen, self.place, -np.inf)
        backs = np.arange(len(masked)) - masked.argmax(axis=1)
        distance = int(backs[-1])
        inside = np.arange(len(masked)) >= distance
        if not (backs[inside] == distance).all():
            return None
        masked[np.arange(len(masked))[inside], (np.arange(len(masked)) - distance)[inside]] = -np.inf
        second = masked.max(axis=1)
        return distance if (second[inside] < self.high[inside] - slack).all() else None

    def _sources(self) -> Ints | None:
        """Return which position has the best score if contents add nothing, -1 - p for pad p; None where some tie."""
        nothing = np.zeros(self.q.shape[1])
        try:
            winner, pads = self.winners(nothing, nothing)
        except Undecided:
            return None
        return None if (pads.sum(axis=1) > 1).any() else np.where(winner < 0, -1 - pads.argmax(axis=1), winner)


@dataclass(eq=False)
class IdealBlock:
    """A block of the ideal: heads, units (W_in, b_in, W_out, b_out), and the dimensions that other units erase."""

    heads: list[HeadRule]
    units: tuple[Floats, ...]
    gone: Ints


class Ideal:
    """The ideal of a transformer that reads tokens and whose margins are proved.

    `places[b]` [position, dim] is $p_i$ before block $b$ (the last one: at the end), `steady` what all positions have
    in common, which belongs to the contents. `blocks[b]` has the heads, the units without erasers, and the erased
    dimensions of a block. `place_period` is that of what positions add outside of scores: 1 if nothing, None if it has
    none. `period` is the same, but None if a head averages over all positions, or has a source of its own for every
    position; with a period, the ideal is the same at every length.
    """

    def __init__(self, weights: Weights, proof: Proof) -> None:
        net, longest = weights.architecture, proof.max_length
        margins = {(head.block, head.index): head for head in proof.heads}
        if proof.reason is not None:
            raise Undecided(f"margins are not proved: {proof.reason}")
        if net.d_model > MAX_DIMS or longest > MAX_POSITIONS:
            raise Undecided(f"a stream of {net.d_model} dimensions at {longest} positions is too large to follow")
        weights = tabulated(weights)
        self.net, self.weights = net, weights
        arrays = {name: np.asarray(dense(array)) for name, array in weights.arrays.items()}
        self.embed, self.w_u, self.b_u = (arrays[name] for name in ("embed.W_E", "unembed.W_U", "unembed.b_U"))
        self.positions = arrays["pos_embed.W_pos"][: net.pads + longest]
        places = self.positions[net.pads :]
        steady = places[0] if len(places) else np.zeros(net.d_model)  # what all positions have in common
        steady = np.where(np.ptp(places, axis=0) == 0, steady, 0.0) if len(places) else steady
        self.steady, self.places = steady, [places - steady]
        self.blocks: list[IdealBlock] = []
        self.pads, self.first_logits = at_pads(weights)
        visible = []  # what positions add outside of scores
        for index, block in enumerate(net.blocks):
            heads = [
                HeadRule(weights, index, at, self.places[-1], self.pads[2 * index], margins.get((index, at)))
                for at in range(len(block.heads))
            ]
            read = [np.any(head.values.toarray(), axis=1) for head in heads]
            units: tuple[Floats, ...] = ()
            gone = np.zeros(0, dtype=np.int64)
            if block.units:  # that nothing is left in an erased dimension is part of the proof of margins
                names = ("W_in", "b_in", "W_out", "b_out")
                w_in, b_in, w_out, b_out = (arrays[f"blocks.{index}.mlp.{name}"] for name in names)
                layer = UnitLayer(w_in, b_in, w_out, b_out)
                layer, erased = layer.without_erasers(weights.labels.spaces, 2 * index + 2)
                units = layer.w_in, layer.b_in, layer.w_out, layer.b_out
                gone = np.array(sorted(erased), dtype=np.int64)
                read.append(np.any(units[0], axis=1))
            self.blocks.append(IdealBlock(heads, units, gone))
            visible += [self.places[-1][:, dims] for dims in read]
            after = self.places[-1].copy()
            after[:, gone] = 0.0
            self.places.append(after)
        visible.append(self.places[-1][:, np.any(self.w_u, axis=1)])
        means = any(rule.averages and rule.window is None and rule.head.window != 1 for rule in self.rules)
        placed = any(rule.sources is not None for rule in self.rules)
        self.place_period = _period(np.hstack(visible))
        self.period = None if means or placed else self.place_period
        self.longest = longest

    def selecting(self, block: int) -> list[HeadRule]:
        """Return the heads of a block; none may average with fixed weights or see only a window."""
        if any(rule.averages or rule.head.window is not None for rule in self.blocks[block].heads):
            raise Undecided("a head sees only a window, or averages with fixed weights")
        return self.blocks[block].heads

    @property
    def rules(self) -> list[HeadRule]:
        """The heads of all blocks."""
        return [rule for block in self.blocks for rule in block.heads]

    def embedded(self, token: int) -> Floats:
        """Return the contents of a token at the start."""
        return np.asarray(self.embed[token] + self.steady)

    def after_units(self, block: int, x: Floats, at: Ints | int) -> Floats:
        """Return contents [..., dim] after the units of a block, at some positions."""
        units, gone = self.blocks[block].units, self.blocks[block].gone
        if not units:
            return x
        w_in, b_in, w_out, b_out = units
        post = np.maximum((x + self.places[block][at]) @ w_in + b_in, 0.0)
        x = x.copy()
        x[..., gone] = 0.0
        return np.asarray(x + post @ w_out + b_out)

    def after_stored_units(self, block: int, x: Floats) -> Floats:
        """Return residual streams [case, dim] after the units of a block as they are stored, erasers among them."""
        if not len(x) or not self.net.units_per_layer[block]:
            return x
        names = [f"blocks.{block}.mlp.{name}" for name in ("W_in", "b_in", "W_out", "b_out")]
        w_in, b_in, w_out, b_out = (np.asarray(dense(self.weights.arrays[name])) for name in names)
        step = max(1, MAX_UNITS_HELD // len(b_in))
        parts = [np.maximum(x[at : at + step] @ w_in + b_in, 0.0) @ w_out for at in range(0, len(x), step)]
        return np.asarray(x + np.concatenate(parts) + b_out)

    def logits(self, x: Floats, at: Ints | int) -> Floats:
        """Return the logits of contents [..., dim] at the end."""
        return np.asarray((x + self.places[-1][at]) @ self.w_u + self.b_u)


def need_above(high: Floats, low: Floats, size: float, what: str) -> None:
    """Refuse scores that do not exceed others clearly."""
    if not (high > low + EQUAL * (1.0 + size)).all():
        raise Undecided(what)


def _period(places: Floats) -> int | None:
    """Return the period of what positions add outside of scores; 1 if nothing, None if it has none."""
    if not places.size or not np.any(places):
        return 1
    for period in range(1, min(MAX_PERIOD, len(places) // 2) + 1):
        if np.allclose(places[period:], places[:-period], rtol=0, atol=1e-12):
            return period
    return None
