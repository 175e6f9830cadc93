r"""Lemmas "declared sets", "one pointer" and "superimposed keys": one head takes the mean over a set.

In all, scores are compared without rounding, the error of the softmax mean and all rounding are bounded by
`proved_error`, and that bound is at most the tolerance that the network states: the proofs are `exact`. Instances, with
arrays as they are stored: what a token adds to the output by way of the last head is its vector, 0 if it has none;
positions and all other paths add 0.

**Declared sets.** One head, queries from symbols, keys from positions: the scores of all sets are listed.

**One pointer.** The same, where each set is one position and its symbol a token of its own. The other tokens, and BOS,
have the key 0.

**Superimposed keys.** $u_j \in \{0,1\}^m$ is the key of position $j$ in the last head, $q$ the size of a set.

1. The head of layer 1 has equal scores and a window of $q$. So units read $\frac1q \sum_{j \in y} a_j$ plus a bias,
   where $a_j$ is what the pointer to $j$ adds to them, at the end of a group that points at $y$.
2. Each coordinate $c$ of the query is the difference of two units, with $a_j = s_c u_{jc}$ (instances: all pointers and
   units), which is $\min(1, \sum_{j \in y} u_{jc})$ (instances: all sums from 0 to $q$). Nothing else enters it.
3. Every key has $n$ ones, so members of $y$ score $n$. Two keys share at most $a$ (`max_agreement`, on the stored
   keys), so other positions score at most $qa < n$; tokens that are no vectors, and BOS, have the key 0.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.sparse_averaging import looked_at, proved_error
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.set_codes import ExactScores, exact_scores
from vitrify.kit.superimposed import max_agreement
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import has_architecture
from vitrify.spec.tasks.pointer_averaging import PointerAveraging
from vitrify.spec.tasks.sparse_averaging import SparseAveraging

MAX_LISTED = 1 << 12  # pointers, whose scores with all positions are listed


@lemma(SparseAveraging)
def declared_sets(case: SpecCase) -> SpecProof:
    """Prove that a network of one head takes the mean over each declared set, from the list of all scores."""
    task: SparseAveraging = case.spec
    scores = looked_at(case.weights, task)
    if scores is None or case.net.units_per_layer != (0,):
        raise Undecided("the scores of all sets cannot be listed")
    _need_means(_Maps(case), np.repeat(task.vectors, len(task.pointers), axis=0))
    _need_error(case, scores)
    return SpecProof("declared sets", case.net.max_length, {"scores": len(task.pointers) * task.length}, exact=True)


@lemma(PointerAveraging)
def superimposed_keys(case: SpecCase) -> SpecProof:
    """Prove that a network takes the mean over every set of positions, by the products of its keys."""
    task: PointerAveraging = case.spec
    net = case.net
    if not has_architecture(case.weights, Transformer) or net.heads_per_layer != (1, 1) or net.units_per_layer[1]:
        raise Undecided("sets are followed through two layers of one head, with units in the first")
    maps, q = _Maps(case), task.sparsity
    first, last = (block.heads[0] for block in net.blocks)  # type: ignore[attr-defined]  # of a transformer
    bias = np.asarray(maps["blocks.0.attn.b_rel"])
    if first.window != q or np.ptp(bias) or maps.of("blocks.0.attn.W_Q").nnz or maps["blocks.0.attn.b_Q"].any():
        raise Undecided("the head of layer 1 does not average over the last pointers")
    if first.mask != "causal" or last.mask != "causal" or last.window is not None:
        raise Undecided("the heads do not see all earlier positions")
    _need_means(maps, np.vstack([task.vectors, np.zeros((task.positions, task.dimensions))]))
    into, out, query, key = (maps.of(f"blocks.{name}") for name in ("0.mlp.W_in", "0.mlp.W_out", *_QUERY_KEY))
    maps.need_none(into, "units", maps.embed, maps.places)
    maps.need_none(query, "queries", maps.embed, maps.places, *maps.written(0))
    maps.need_none(key, "keys", maps.embed, *maps.written(0), out, maps.row("blocks.0.mlp.b_out"))
    added = (maps.embed[1 + len(task.vectors) :] @ maps.written(0)[0] @ into).toarray() / q  # by each pointer
    keys = (maps.places @ key).toarray() + maps["blocks.1.attn.b_K"]
    if keys[: net.pads].any() or keys[net.pads + task.positions :].any():
        raise Undecided("BOS or pointers have keys")
    keys = keys[net.pads : net.pads + task.positions]
    offset = (maps.row("blocks.0.mlp.b_out") @ query).toarray() + maps["blocks.1.attn.b_Q"]
    _need_clipped(keys, added, maps["blocks.0.mlp.b_in"], (out @ query).toarray(), offset, q)
    agreement, points = max_agreement(keys), int(keys[0].sum())
    if agreement is None or q * agreement >= points:
        raise Undecided(f"keys with {points} ones, of which two share {agreement}, do not tell {q} from all others")
    slack = Fraction(16 * (q + 1) * points) * Fraction(UNIT_ROUNDOFF)  # rounding of the sum and of the units
    others = net.pads + net.max_length - q
    high, off = points + slack, q * agreement + slack
    _need_error(case, ExactScores(points - slack, high, off, q, others, keys.shape[1], bound=float(high)))
    checked = {"keys": len(keys), "blocks": points, "largest product of two keys": agreement}
    return SpecProof("superimposed keys", net.max_length, checked, exact=True)


_QUERY_KEY = ("1.attn.W_Q", "1.attn.W_K")


@lemma(PointerAveraging)
def one_pointer(case: SpecCase) -> SpecProof:
    """Prove that a network of one head reads the position that the last token points to, by the list of all scores."""
    task: PointerAveraging = case.spec
    net = case.net
    if task.sparsity > 1 or not has_architecture(case.weights, Transformer) or net.heads_per_layer != (1,):
        raise Undecided("one pointer is followed by one head")
    maps, head, n = _Maps(case), net.blocks[0].heads[0], task.positions  # type: ignore[attr-defined]  # of a transformer
    if net.units_per_layer != (0,) or head.mask not in ("causal", "none") or head.window is not None:
        raise Undecided("the head does not see all earlier positions, or there are units")
    if n > MAX_LISTED:
        raise Undecided(f"the scores of {n:,} pointers are too many to list")
    _need_means(maps, np.vstack([task.vectors, np.zeros((n, task.dimensions))]))
    query, key = (maps.of(f"blocks.0.attn.{name}") for name in ("W_Q", "W_K"))
    maps.need_none(query, "queries", maps.places)
    maps.need_none(key, "keys", maps.embed)
    keys = (maps.places @ key).toarray() + maps["blocks.0.attn.b_K"]
    if keys[: net.pads].any() or keys[net.pads + n :].any():
        raise Undecided("BOS or pointers have keys")
    queries = (maps.embed[1 + len(task.vectors) :] @ query).toarray() + maps["blocks.0.attn.b_Q"]
    scores = exact_scores(keys[net.pads : net.pads + n], queries, np.arange(n)[:, None])
    _need_error(case, replace(scores, others=net.pads + net.max_length - 1))
    return SpecProof("one pointer", net.max_length, {"scores": n * n}, exact=True)


class _Maps:
    """The arrays of a transformer: as SciPy arrays, heads being the only ones of their layers."""

    def __init__(self, case: SpecCase) -> None:
        self.arrays, self.blocks = case.weights.arrays, len(case.net.heads_per_layer)
        self.embed, self.places, self.unembed = map(self.of, ("embed.W_E", "pos_embed.W_pos", "unembed.W_U"))

    def of(self, name: str) -> Any:
        from scipy.sparse import csr_array

        array = self.arrays[name]
        return csr_array(array[0] if len(array.shape) == 3 else array)

    def row(self, name: str) -> Any:
        from scipy.sparse import csr_array

        return csr_array(np.atleast_2d(self[name]))

    def __getitem__(self, name: str) -> Floats:
        array = np.asarray(dense(self.arrays[name]))
        return array[0] if ".attn." in name else array

    def written(self, block: int) -> tuple[Any, Any]:
        """Return what a head writes: the map of the stream at a key, and the bias."""
        out = self.of(f"blocks.{block}.attn.W_O")
        return self.of(f"blocks.{block}.attn.W_V") @ out, self.row(f"blocks.{block}.attn.b_V") @ out

    def need_none(self, target: Any, what: str, *sources: Any) -> None:
        """Refuse sources that reach a target."""
        if any(abs(source @ target).max() > 0 for source in sources):
            raise Undecided(f"{what} have another source")


def _need_means(maps: _Maps, vectors: Floats) -> None:
    """Refuse a net in which the last head adds anything but the vectors of tokens to the output, or another path."""
    last = maps.blocks - 1
    value, bias = maps.written(last)
    earlier = [source for block in range(last) for source in maps.written(block)]
    for block in range(last):
        earlier += [maps.of(f"blocks.{block}.mlp.W_out"), maps.row(f"blocks.{block}.mlp.b_out")]
    maps.need_none(maps.unembed, "outputs", maps.embed, maps.places, bias, *earlier)
    maps.need_none(value @ maps.unembed, "values", maps.places, *earlier)
    added = (maps.embed @ value @ maps.unembed).toarray()
    if added[0].any() or not np.array_equal(added[1:], vectors) or maps["unembed.b_U"].any():
        raise Undecided("the last head does not add the vectors of tokens")


def _need_clipped(keys: Floats, added: Floats, bias: Floats, out: Floats, offset: Floats, q: int) -> None:
    """Refuse units that do not clip the sum of any `q` keys at 1."""
    plus, minus = out.argmax(axis=0), out.argmin(axis=0)
    pairs = np.zeros_like(out)
    pairs[plus, np.arange(len(plus))] += 1.0
    pairs[minus, np.arange(len(minus))] -= 1.0
    if not np.array_equal(pairs, out) or offset.any():
        raise Undecided("a coordinate of the query is no difference of two units")
    sums, clipped = np.arange(q + 1.0)[:, None], 0.0
    for units, sign in ((plus, 1.0), (minus, -1.0)):
        slope = added[:, units].max(axis=0)
        if not np.allclose(added[:, units], keys * slope, rtol=1e-15, atol=0):
            raise Undecided("pointers do not add the keys of their positions")
        clipped = clipped + sign * np.maximum(sums * slope + bias[units], 0.0)
    used = keys.any(axis=0)  # the sum of a coordinate that no key has is always 0
    if np.abs(clipped - np.minimum(sums, 1.0) * used).max() > 8 * (q + 1) * UNIT_ROUNDOFF:
        raise Undecided("units do not clip sums at 1")


def _need_error(case: SpecCase, scores: ExactScores) -> None:
    error, allowed = proved_error(case.weights, scores), case.oracle.tolerance()
    if not error <= allowed:
        raise Undecided(f"an error of {error:.3g} is all that is proved, {allowed:.3g} is allowed")
