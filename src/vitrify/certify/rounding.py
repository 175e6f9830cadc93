r"""Rounding: how far a run in lower precision can be from the same run in float64, bounded along the run.

A running error analysis (in the manner of Higham, *Accuracy and Stability of Numerical Algorithms*, chapter 3): beside
every activation $x$ goes a bound $e \ge |\hat x - x|$, where $\hat x$ is what arithmetic with unit roundoff $u$
computes, in any order of summation, from weights rounded to the same precision.

- $y = xW + b$, at most $k$ non-zero terms: $e_y = e|W| + \gamma_{k+2}(|x| + e)|W| + 2u|b|$, $\gamma_k = (1+u)^k - 1$.
- An MLP is affine where no unit changes sign, with Jacobian $J = W_{in} A W_{out}$, $A$ the active units: the error
  that came in passes as $e|J|$, so units that cancel do not blow it up. Units whose sign the error leaves open count
  in full.
- Scores that move by at most $E$ change a softmax weight $w$ by at most $w(e^{2E}(1+\gamma) - 1)$; weights sum to one,
  so a head's output moves by twice the moved weight of all keys but its favourite. A hard head, and a sparse head
  whose favourite leads by 1, do not move at all while the lead exceeds $2E$.

A run is *decided* where the best logit leads by more than both bounds (for a set of next symbols: where every logit is
further from 0 than its bound): there the lower precision must give the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.formats import FORMATS, Format
from vitrify.net.architecture import Architecture
from vitrify.net.attention import allowed_keys, weigh
from vitrify.net.sparse import dense, is_sparse, matmul, prepare, rows
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]

JACOBIAN_ENTRIES = 1 << 16  # larger MLPs are bounded unit by unit


def decided(weights: Weights, tokens: NDArray[np.int64], precision: str = "float32") -> NDArray[np.bool_]:
    """Where [batch, pos] a run in the given precision must give the same answer as one in float64."""
    logits, error = bounded_logits(weights, tokens, FORMATS[precision])
    if weights.architecture.output.kind == "next":
        return np.asarray((np.abs(logits) > error).all(axis=-1))
    if logits.shape[-1] == 1:
        return np.ones(logits.shape[:2], dtype=bool)
    best = logits.argmax(axis=-1, keepdims=True)
    low = np.take_along_axis(logits - error, best, axis=-1)[..., 0]
    others = logits + error
    np.put_along_axis(others, best, -np.inf, axis=-1)
    ahead: NDArray[np.bool_] = low > others.max(axis=-1)
    return ahead


def bounded_logits(weights: Weights, tokens: NDArray[np.int64], found: Format) -> Pair:
    """Logits in float64, and a bound on what a format can do to them."""
    last = bounded_stream(weights, tokens, found)[-1]
    return _linear(last, weights.arrays["unembed.W_U"], weights.arrays["unembed.b_U"], found)


def bounded_stream(weights: Weights, tokens: NDArray[np.int64], found: Format) -> list[Pair]:
    """The residual stream in float64 and a bound on what a format can do to it, at every moment."""
    net, arrays = weights.architecture, weights.arrays
    if net.norm or net.residual != "add":
        raise ValueError(
            "rounding is bounded only for nets without layer norm whose residual adds: ask supports() first"
        )
    embedded, placed = rows(arrays["embed.W_E"], tokens), rows(arrays["pos_embed.W_pos"], np.arange(tokens.shape[1]))
    x = embedded + placed
    u = found.roundoff
    e = u * (1 + u) * (np.abs(embedded) + np.abs(placed)) + u * np.abs(x)
    seen = [(x, e)]
    for index, block in net.turns:
        part = {k.removeprefix(f"blocks.{index}."): v for k, v in arrays.items() if k.startswith(f"blocks.{index}.")}
        if block.heads:
            out, out_error = _attention(block, part, (x, e), found)
            x = x + out
            e = (e + out_error) * (1 + u) + u * np.abs(x)
        seen.append((x, e))
        if block.units:
            out, out_error = _mlp(part, (x, e), found)
            x = x + out
            e = (e + out_error) * (1 + u) + u * np.abs(x)
        seen.append((x, e))
    return seen


def _mlp(part: Mapping[str, Any], pair: Pair, found: Format) -> Pair:
    x, e = pair
    w_in, w_out = part["mlp.W_in"], part["mlp.W_out"]
    pre, whole = _linear(pair, w_in, part["mlp.b_in"], found)
    post = np.maximum(pre, 0)
    if w_in.shape[0] * w_in.shape[1] > JACOBIAN_ENTRIES:
        return _linear((post, np.where(pre <= -whole, 0.0, whole)), w_out, part["mlp.b_out"], found)
    own = _linear((x, np.zeros_like(e)), w_in, part["mlp.b_in"], found)[1]  # rounding of this layer alone
    fresh = own + found.gamma(_terms(w_in) + 2) * whole
    open_sign = np.abs(pre) <= whole
    active = (pre > 0) & ~open_sign
    into, onto = dense(w_in), dense(w_out)
    jacobian = np.abs(np.einsum("du,btu,uo->btdo", into, active.astype(float), onto, optimize=True))
    out, rounded = _linear((post, np.where(active, fresh, 0.0)), w_out, part["mlp.b_out"], found)
    passed = (e[..., None, :] @ jacobian)[..., 0, :]
    return out, rounded + passed + np.where(open_sign, 2 * whole, 0.0) @ np.abs(onto)


def _linear(pair: Pair, matrix: Any, bias: Floats, found: Format) -> Pair:
    x, e = pair
    size = prepare(abs(matrix))
    terms = _terms(matrix) + 2
    y = matmul(x, prepare(matrix)) + bias
    error = matmul(e, size) + found.gamma(terms) * matmul(np.abs(x) + e, size) + 2 * found.roundoff * np.abs(bias)
    error = error * (1 + found.roundoff) + found.roundoff * np.abs(y)
    return y, error + (error > 0) * terms * found.least


def _terms(matrix: Any) -> int:
    """The largest number of non-zero terms in a column."""
    if is_sparse(matrix):
        return int(np.bincount(matrix.indices, minlength=1).max())
    return int((dense(matrix) != 0).sum(axis=-2).max(initial=0))


def _attention(block: Block, part: Mapping[str, Any], pair: Pair, found: Format) -> Pair:
    total = np.zeros_like(pair[0])
    error = np.zeros_like(pair[1])
    for place, head in enumerate(block.heads):
        q, k, v = (_linear(pair, part[f"attn.W_{x}"][place], part[f"attn.b_{x}"][place], found) for x in "QKV")
        bias = part["attn.b_rel"][place] if head.window is not None else None
        z, z_error = _head(head, q, k, v, float(part["attn.beta"][place]), bias, found)
        out, out_error = _linear((z, z_error), part["attn.W_O"][place], np.zeros(total.shape[-1]), found)
        total = total + out
        error = (error + out_error) * (1 + found.roundoff) + found.roundoff * np.abs(total)
    return total, error


def _head(head: Head, q: Pair, k: Pair, v: Pair, beta: float, bias: Floats | None, found: Format) -> Pair:
    length = q[0].shape[1]
    positions = np.arange(length)
    allowed = allowed_keys(head, positions, positions) & np.ones((len(q[0]), 1, 1), dtype=bool)
    scores = beta * q[0] @ k[0].swapaxes(-1, -2)
    sizes = np.abs(q[0]) @ np.abs(k[0]).swapaxes(-1, -2)
    moved = q[1] @ np.abs(k[0]).swapaxes(-1, -2) + (np.abs(q[0]) + q[1]) @ k[1].swapaxes(-1, -2)
    gamma, u = found.gamma(q[0].shape[-1] + 4), found.roundoff
    shift = abs(beta) * (moved * (1 + gamma) + gamma * sizes)
    shift = shift + (shift > 0) * (q[0].shape[-1] + 2) * abs(beta) * found.least
    if bias is not None:
        offset = np.clip(positions[:, None] - positions[None, :], 0, len(bias) - 1)
        scores = scores + bias[offset]
        shift = shift * (1 + u) + 2 * u * (np.abs(bias[offset]) + np.abs(scores))
    w = weigh(head, scores, allowed)
    worst = np.where(allowed, shift, 0.0).max(axis=-1, keepdims=True)
    lost = _moved_weight(head, scores, allowed, w, worst, found)
    largest = np.abs(v[0]).max(axis=1, keepdims=True)
    terms = found.gamma(length + 4)
    z = w @ v[0]
    error = w @ v[1] + lost * 2 * (largest + v[1].max(axis=1, keepdims=True)) + terms * (w @ (np.abs(v[0]) + v[1]))
    error = error + terms * lost * (1 + largest)
    return z, error + (error > 0) * length * found.least * (1 + largest)


def _moved_weight(
    head: Head, scores: Floats, allowed: NDArray[np.bool_], w: Floats, worst: Floats, found: Format
) -> Floats:
    """How much weight [batch, query, 1] can go from one key to another when scores move by at most `worst`."""
    best = np.where(allowed, scores, -np.inf).max(axis=-1, keepdims=True)
    if head.attention == "softmax":
        length = scores.shape[-1]
        others = w.sum(axis=-1, keepdims=True) - w.max(axis=-1, keepdims=True)
        capped = np.minimum(worst, 1.0)
        grown = others * (np.expm1(2 * capped) + 4 * found.gamma(length + 4) * np.exp(2 * capped))
        return np.where(worst < 1.0, np.minimum(grown, 1.0), 1.0)
    lead = _lead(scores, allowed, best, head.resolution if head.attention == "hard" else 0.0)
    alone = (w == w.max(axis=-1, keepdims=True)).sum(axis=-1, keepdims=True) == 1
    if head.attention == "hard":
        tied = np.where(allowed & (scores >= best - head.resolution), best - scores, 0.0).max(axis=-1, keepdims=True)
        safe = (lead - head.resolution > 2 * worst) & (head.resolution - tied > 2 * worst)
        safe |= (worst == 0.0) | ((lead > 2 * worst) & alone & (head.resolution == 0.0))
        return np.where(safe, 0.0, 1.0)
    safe = (lead >= 1 + 2 * worst) & alone
    return np.where(safe, 0.0, np.minimum(scores.shape[-1] * worst, 1.0))


def _lead(scores: Floats, allowed: NDArray[np.bool_], best: Floats, resolution: float) -> Floats:
    """How far the best key outside the winners (within the resolution of the best) is behind."""
    behind = np.where(allowed & (scores < best - resolution), best - scores, np.inf)
    lead: Floats = behind.min(axis=-1, keepdims=True)
    return lead


def supports(net: Architecture) -> bool:
    """Whether this analysis covers the architecture."""
    if not isinstance(net, Transformer) or net.reads != "tokens" or any(b.experts or b.cell for b in net.blocks):
        return False
    return not net.norm and net.residual == "add" and not net.only_learned
