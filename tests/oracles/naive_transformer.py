"""A transformer as its definition reads, one number at a time: no masks, batches, padding or array calls.

A sequence is run alone, so padding has no part in it; a head looks at a list of keys, so nothing is masked away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vitrify.net.transformer import Block, Head, Transformer

Vector = list[float]
Rows = list[Vector]


def logits_of_batch(
    net: Transformer, arrays: Mapping[str, Any], tokens: Sequence[Sequence[int]], lengths: Sequence[int]
) -> list[Rows]:
    """Logits of each row of a padded batch, up to its length: the row is cut there and run alone."""
    return [logits(net, arrays, row[:length]) for row, length in zip(tokens, lengths, strict=True)]


def logits(net: Transformer, arrays: Mapping[str, Any], tokens: Sequence[int]) -> Rows:
    """Logits after each token of one sequence, whose first `pads` tokens are BOS."""
    numbers = {name: _plain(array) for name, array in arrays.items()}
    embed, places = numbers["embed.W_E"], numbers["pos_embed.W_pos"]
    stream = [_add(embed[int(token)], places[position]) for position, token in enumerate(tokens)]
    for index, block in [pair for _ in range(net.loops) for pair in enumerate(net.blocks)]:
        part = {name.removeprefix(f"blocks.{index}."): value for name, value in numbers.items()}
        if block.heads:
            seen = [_norm(net, part, "ln1", x, 2 * index) for x in stream]
            written = [_head(block, place, part, seen) for place in range(len(block.heads))]
            stream = [_join(net, x, [head[i] for head in written]) for i, x in enumerate(stream)]
        if block.units or block.experts:
            seen = [_norm(net, part, "ln2", x, 2 * index + 1) for x in stream]
            stream = [_join(net, x, _second_half(net, block, part, s)) for x, s in zip(stream, seen, strict=True)]
    final = [_norm(net, numbers, "ln_final", x, -1) for x in stream]
    return [_affine(x, numbers["unembed.W_U"], numbers["unembed.b_U"]) for x in final]


def weights(head: Head, scores: Mapping[int, float]) -> dict[int, float]:
    """How a head shares its attention among the keys it may see, by key."""
    if not scores:
        return {}
    best = max(scores.values())
    if head.attention == "softmax":
        mass = {j: math.exp(s - best) for j, s in scores.items()}
        return {j: m / math.fsum(mass.values()) for j, m in mass.items()}
    if head.attention == "sparsemax":
        tau = _threshold(list(scores.values()))
        return {j: max(s - tau, 0.0) for j, s in scores.items()}
    tied = [j for j, s in sorted(scores.items()) if s >= best - head.resolution]
    chosen = {"left": tied[:1], "right": tied[-1:], "average": tied}[head.ties]
    return dict.fromkeys(chosen, 1 / len(chosen))


def visible_keys(head: Head, query: int, length: int) -> list[int]:
    """The positions that a head sees from one query."""
    before = {"none": range(length), "causal": range(query + 1), "strict": range(query)}
    keys = (before | {"after": range(query + 1, length)})[head.mask]
    return [j for j in keys if head.window is None or 0 <= query - j < head.window]


def _threshold(scores: Vector) -> float:
    """The tau at which sum(max(s - tau, 0)) falls to 1, by bisection: the sum is at least 1 at `low`, 0 at `high`."""
    low, high = max(scores) - 1, max(scores)
    while low < (middle := (low + high) / 2) < high:
        if math.fsum(max(s - middle, 0.0) for s in scores) >= 1:
            low = middle
        else:
            high = middle
    return low


def _head(block: Block, place: int, part: Mapping[str, Any], stream: Rows) -> Rows:
    """What one head writes at every position."""
    head = block.heads[place]
    q, k, v = (
        [_affine(x, part[f"attn.W_{letter}"][place], part[f"attn.b_{letter}"][place]) for x in stream]
        for letter in "QKV"
    )
    written = []
    for i in range(len(stream)):
        scores = {}
        for j in visible_keys(head, i, len(stream)):
            bias = part["attn.b_rel"][place][i - j] if head.window else 0.0
            scores[j] = part["attn.beta"][place] * _dot(q[i], k[j]) + bias
        shares = weights(head, scores)
        mixed = [math.fsum(share * v[j][n] for j, share in shares.items()) for n in range(block.d_value)]
        written.append(_affine(mixed, part["attn.W_O"][place], [0.0] * len(part["attn.W_O"][place][0])))
    return written


def _second_half(net: Transformer, block: Block, part: Mapping[str, Any], x: Vector) -> Rows:
    """What the MLP and the experts write, as far as there are any."""
    width = block.d_out if net.residual == "concatenate" else net.d_model
    return ([_mlp(part, x)] if block.units else []) + ([_experts(block, part, x, width)] if block.experts else [])


def _experts(block: Block, part: Mapping[str, Any], x: Vector, width: int) -> Vector:
    seen = x
    if block.router:
        seen = [max(number, 0.0) for number in _affine(x, part["moe.router.W_in"], part["moe.router.b_in"])]
    scores = _affine(seen, part["moe.router.W_out"], part["moe.router.b_out"])
    best = scores.index(max(scores))
    if block.gate:
        shifted = [score + shift for score, shift in zip(scores, part["moe.router.b_choice"], strict=True)]
        ranked = sorted(range(len(scores)), key=lambda number: (-shifted[number], number))[: block.gate.top]
        whole = math.fsum(math.exp(scores[e]) for e in (ranked if block.gate.over == "chosen" else range(len(scores))))
        parts = [[math.exp(scores[e]) / whole * y for y in _expert(block, part, x, width, e)] for e in ranked]
        return [math.fsum(numbers) for numbers in zip(*parts, strict=True)]
    return _expert(block, part, x, width, best)


def _expert(block: Block, part: Mapping[str, Any], x: Vector, width: int, number: int) -> Vector:
    """What one expert writes."""
    expert, name = block.experts[number], f"moe.experts.{number}"
    read = [x[dim] for dim in expert.reads]
    hidden = [max(number, 0.0) for number in _affine(read, part[f"{name}.W_in"], part[f"{name}.b_in"])]
    written = dict(zip(expert.writes, _affine(hidden, part[f"{name}.W_out"], part[f"{name}.b_out"]), strict=True))
    return [written.get(dim, 0.0) for dim in range(width)]


def _mlp(part: Mapping[str, Any], x: Vector) -> Vector:
    hidden = [max(number, 0.0) for number in _affine(x, part["mlp.W_in"], part["mlp.b_in"])]
    return _affine(hidden, part["mlp.W_out"], part["mlp.b_out"])


def _norm(net: Transformer, part: Mapping[str, Any], name: str, x: Vector, half: int) -> Vector:
    """Mean 0, variance 1, then a scale and a shift; a constant vector has no direction and becomes the shift.

    This is done to each group of dimensions by itself, or to all of them.
    """
    if not net.norm:
        return x
    seen, at = list(x), 0
    for group in net.groups[half] if net.groups else [range(len(x))]:
        some = [x[dim] for dim in group]
        mean = math.fsum(some) / len(some)
        spread = math.sqrt(math.fsum((number - mean) ** 2 for number in some) / len(some) + net.eps)
        for dim in group:
            unit = (x[dim] - mean) / spread if spread else 0.0
            seen[dim] = unit * part[f"{name}.w"][at] + part[f"{name}.b"][at]
            at += 1
    return seen


def _join(net: Transformer, x: Vector, outputs: Rows) -> Vector:
    for output in outputs:
        x = x + output if net.residual == "concatenate" else _add(x, output)
    return x


def _affine(x: Vector, matrix: Rows, shift: Vector) -> Vector:
    return [math.fsum([*(a * row[n] for a, row in zip(x, matrix, strict=True)), b]) for n, b in enumerate(shift)]


def _add(x: Vector, y: Vector) -> Vector:
    return [a + b for a, b in zip(x, y, strict=True)]


def _dot(x: Vector, y: Vector) -> float:
    return math.fsum(a * b for a, b in zip(x, y, strict=True))


def _plain(array: Any) -> Any:
    return (array.toarray() if hasattr(array, "toarray") else array).tolist()
