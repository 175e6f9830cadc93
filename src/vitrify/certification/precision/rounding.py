r"""Rounding: how far a run in lower precision can be from the same run in float64, bounded along the run.

A running error analysis (in the manner of Higham, *Accuracy and Stability of Numerical Algorithms*, chapter 3): beside
every activation $x$ goes a bound $e \ge |\hat x - x|$, where $\hat x$ is what arithmetic with unit roundoff $u$
computes, in any order of summation, from weights rounded to the same precision.

- $y = xW + b$, at most $k$ non-zero terms: $e_y = e|W| + \gamma_{k+2}(|x| + e)|W| + 2u|b|$, $\gamma_k = (1+u)^k - 1$.
- An MLP is affine where no unit changes sign, with Jacobian $J = W_{in} A W_{out}$, $A$ the active units: the error
  that came in passes as $e|J|$, so units that cancel do not blow it up. Units whose sign the error leaves open count
  in full.
- Scores that move by at most $E$ change a softmax weight $w$ by at most $w(e^{2E}(1+\gamma) - 1)$; weights sum to one,
  so a head's output moves by twice the moved weight of all keys but the best. A hard head, and a sparsemax head
  whose best key has a margin of 1, do not move at all while the margin exceeds $2E$.

A run is *decided* where the margin of the best logit exceeds both bounds (for a set of next symbols: where every
logit is further from 0 than its bound): there the lower precision must give the same answer.
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Arrays, Bool, Float, Floats, Matrix, Tokens
from vitrify.certification.precision.formats import FORMATS, Format
from vitrify.net.architecture import Architecture
from vitrify.net.attention import allowed_keys, weigh
from vitrify.net.positions import tabulated
from vitrify.net.sparse import dense, is_sparse, matmul, prepare, rows
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights, has_architecture

Pair = tuple[Floats, Floats]

JACOBIAN_ENTRIES = 1 << 16  # larger MLPs are bounded unit by unit


def decided(
    weights: Weights[Architecture], tokens: Tokens, precision: str = "float32"
) -> Bool[np.ndarray, "batch pos"]:
    """Return where a run in `precision` must give the same answer as in float64; the net must be supported."""
    assert has_architecture(weights, Transformer)
    logits, error = bounded_logits(weights, tokens, FORMATS[precision])
    if weights.architecture.output.kind == "next":
        return np.asarray((np.abs(logits) > error).all(axis=-1))
    if logits.shape[-1] == 1:
        return np.ones(logits.shape[:2], dtype=bool)
    best = logits.argmax(axis=-1, keepdims=True)
    low = np.take_along_axis(logits - error, best, axis=-1)[..., 0]
    others = logits + error
    np.put_along_axis(others, best, -np.inf, axis=-1)
    return np.asarray(low > others.max(axis=-1))


def bounded_logits(
    weights: Weights, tokens: Tokens, fmt: Format
) -> tuple[Float[np.ndarray, "batch pos out"], Float[np.ndarray, "batch pos out"]]:
    """Return the logits in float64, and a bound on their rounding error in a format."""
    last = bounded_stream(weights, tokens, fmt)[-1]
    return _linear(last, weights.arrays["unembed.W_U"], weights.arrays["unembed.b_U"], fmt)


def bounded_stream(weights: Weights, tokens: Tokens, fmt: Format) -> list[Pair]:
    """Return the residual stream in float64 and a bound on its rounding error in a format, after every half layer."""
    weights = tabulated(weights)
    net, arrays = weights.architecture, weights.arrays
    if net.norm or net.residual != "add":
        raise ValueError(
            "rounding is bounded only for nets without layer norm whose residual adds: call supports() first"
        )
    embedded, placed = rows(arrays["embed.W_E"], tokens), rows(arrays["pos_embed.W_pos"], np.arange(tokens.shape[1]))
    x = embedded + placed
    u = fmt.roundoff
    e = u * (1 + u) * (np.abs(embedded) + np.abs(placed)) + u * np.abs(x)
    moments = [(x, e)]
    for index, block in net.turns:
        part = {k.removeprefix(f"blocks.{index}."): v for k, v in arrays.items() if k.startswith(f"blocks.{index}.")}
        if block.heads:
            out, out_error = _attention(block, part, (x, e), fmt)
            x = x + out
            e = (e + out_error) * (1 + u) + u * np.abs(x)
        moments.append((x, e))
        if block.units:
            out, out_error = _mlp(part, (x, e), fmt)
            x = x + out
            e = (e + out_error) * (1 + u) + u * np.abs(x)
        moments.append((x, e))
    return moments


def _mlp(part: Arrays, pair: Pair, fmt: Format) -> Pair:
    x, e = pair
    w_in, w_out = part["mlp.W_in"], part["mlp.W_out"]
    pre, pre_error = _linear(pair, w_in, part["mlp.b_in"], fmt)
    post = np.maximum(pre, 0)
    if w_in.shape[0] * w_in.shape[1] > JACOBIAN_ENTRIES:
        return _linear((post, np.where(pre <= -pre_error, 0.0, pre_error)), w_out, part["mlp.b_out"], fmt)
    rounding_error = _linear((x, np.zeros_like(e)), w_in, part["mlp.b_in"], fmt)[1]  # rounding of this layer alone
    fresh = rounding_error + fmt.gamma(_terms(w_in) + 2) * pre_error
    open_sign = np.abs(pre) <= pre_error
    active = (pre > 0) & ~open_sign
    into, onto = dense(w_in), dense(w_out)
    jacobian = np.abs(np.einsum("du,btu,uo->btdo", into, active.astype(float), onto, optimize=True))
    out, rounded = _linear((post, np.where(active, fresh, 0.0)), w_out, part["mlp.b_out"], fmt)
    passed = (e[..., None, :] @ jacobian)[..., 0, :]
    return out, rounded + passed + np.where(open_sign, 2 * pre_error, 0.0) @ np.abs(onto)


def _linear(pair: Pair, matrix: Matrix, bias: Floats, fmt: Format) -> Pair:
    x, e = pair
    size = prepare(abs(matrix))
    terms = _terms(matrix) + 2
    y = matmul(x, prepare(matrix)) + bias
    error = matmul(e, size) + fmt.gamma(terms) * matmul(np.abs(x) + e, size) + 2 * fmt.roundoff * np.abs(bias)
    error = error * (1 + fmt.roundoff) + fmt.roundoff * np.abs(y)
    return y, error + (error > 0) * terms * fmt.least


def _terms(matrix: Matrix) -> int:
    """The largest number of non-zero terms in a column."""
    if is_sparse(matrix):
        return int(np.bincount(matrix.indices, minlength=1).max())
    return int((dense(matrix) != 0).sum(axis=-2).max(initial=0))


def _attention(block: Block, part: Arrays, pair: Pair, fmt: Format) -> Pair:
    total = np.zeros_like(pair[0])
    error = np.zeros_like(pair[1])
    for place, head in enumerate(block.heads):
        q, k, v = (_linear(pair, part[f"attn.W_{x}"][place], part[f"attn.b_{x}"][place], fmt) for x in "QKV")
        bias = part["attn.b_rel"][place] if head.window is not None else None
        z, z_error = _head(head, q, k, v, float(part["attn.beta"][place]), bias, fmt)
        out, out_error = _linear((z, z_error), part["attn.W_O"][place], np.zeros(total.shape[-1]), fmt)
        total = total + out
        error = (error + out_error) * (1 + fmt.roundoff) + fmt.roundoff * np.abs(total)
    return total, error


def _head(head: Head, q: Pair, k: Pair, v: Pair, beta: float, bias: Floats | None, fmt: Format) -> Pair:
    length = q[0].shape[1]
    positions = np.arange(length)
    allowed = allowed_keys(head, positions, positions) & np.ones((len(q[0]), 1, 1), dtype=bool)
    scores = beta * q[0] @ k[0].swapaxes(-1, -2)
    sizes = np.abs(q[0]) @ np.abs(k[0]).swapaxes(-1, -2)
    moved = q[1] @ np.abs(k[0]).swapaxes(-1, -2) + (np.abs(q[0]) + q[1]) @ k[1].swapaxes(-1, -2)
    gamma, u = fmt.gamma(q[0].shape[-1] + 4), fmt.roundoff
    shift = abs(beta) * (moved * (1 + gamma) + gamma * sizes)
    shift = shift + (shift > 0) * (q[0].shape[-1] + 2) * abs(beta) * fmt.least
    if bias is not None:
        offset = np.clip(positions[:, None] - positions[None, :], 0, len(bias) - 1)
        scores = scores + bias[offset]
        shift = shift * (1 + u) + 2 * u * (np.abs(bias[offset]) + np.abs(scores))
    w = weigh(head, scores, allowed)
    worst = np.where(allowed, shift, 0.0).max(axis=-1, keepdims=True)
    lost = _moved_weight(head, scores, allowed, w, worst, fmt)
    largest = np.abs(v[0]).max(axis=1, keepdims=True)
    terms = fmt.gamma(length + 4)
    z = w @ v[0]
    error = w @ v[1] + lost * 2 * (largest + v[1].max(axis=1, keepdims=True)) + terms * (w @ (np.abs(v[0]) + v[1]))
    error = error + terms * lost * (1 + largest)
    return z, error + (error > 0) * length * fmt.least * (1 + largest)


def _moved_weight(
    head: Head,
    scores: Float[np.ndarray, "*lead query key"],
    allowed: Bool[np.ndarray, "*#lead query key"],
    w: Float[np.ndarray, "*lead query key"],
    worst: Float[np.ndarray, "*lead query 1"],
    fmt: Format,
) -> Float[np.ndarray, "*lead query 1"]:
    """Return the weight that can move from one key to another when scores move by at most `worst`."""
    best = np.where(allowed, scores, -np.inf).max(axis=-1, keepdims=True)
    if head.attention == "softmax":
        length = scores.shape[-1]
        others = w.sum(axis=-1, keepdims=True) - w.max(axis=-1, keepdims=True)
        capped = np.minimum(worst, 1.0)
        grown = others * (np.expm1(2 * capped) + 4 * fmt.gamma(length + 4) * np.exp(2 * capped))
        return np.where(worst < 1.0, np.minimum(grown, 1.0), 1.0)
    resolution = head.resolution if head.attention == "hard" else 0.0
    behind = np.where(allowed & (scores < best - resolution), best - scores, np.inf)
    margin = behind.min(axis=-1, keepdims=True)  # over the best key that is not a winner
    alone = (w == w.max(axis=-1, keepdims=True)).sum(axis=-1, keepdims=True) == 1
    if head.attention == "hard":
        tied = np.where(allowed & (scores >= best - head.resolution), best - scores, 0.0).max(axis=-1, keepdims=True)
        safe = (margin - head.resolution > 2 * worst) & (head.resolution - tied > 2 * worst)
        safe |= (worst == 0.0) | ((margin > 2 * worst) & alone & (head.resolution == 0.0))
        return np.where(safe, 0.0, 1.0)
    safe = (margin >= 1 + 2 * worst) & alone
    return np.where(safe, 0.0, np.minimum(scores.shape[-1] * worst, 1.0))


def supports(net: Architecture) -> bool:
    """Return whether this analysis covers the architecture."""
    if not isinstance(net, Transformer) or net.reads != "tokens" or any(b.experts or b.cell for b in net.blocks):
        return False
    return not net.norm and net.residual == "add" and not net.only_learned
