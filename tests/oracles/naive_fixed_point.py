"""Attention in finite precision, one number after the other in rational arithmetic: an independent oracle."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

from vitrify.bounds.fixed_point import Grid
from vitrify.net.weights import Weights

LOG2_E = 1.4426950408889634


def naive_logits(weights: Weights[Any], grid: Grid, word: list[int]) -> list[list[Fraction]]:
    """Logits at every position of a word of tokens from 1."""
    net, unit = weights.architecture, Fraction(1, 2**grid.fraction)

    def nearest(number: Fraction) -> Fraction:
        return floor(number / unit + Fraction(1, 2)) * unit

    def snap(number: Fraction) -> Fraction:
        return max(min(nearest(number), Fraction(grid.top)), Fraction(-grid.top))

    def partial(exact: Fraction) -> Fraction:
        """Round to significant bits, halves upwards, and clip."""
        if not grid.significant or not exact:
            return exact if not grid.significant else Fraction(0)
        step = unit
        while abs(exact) >= step * 2**grid.significant:
            step *= 2
        return max(min(floor(exact / step + Fraction(1, 2)) * step, Fraction(grid.top)), Fraction(-grid.top))

    def array(name: str, factor: float = 1.0) -> Any:
        def convert(part: Any) -> Any:
            return [convert(each) for each in part] if isinstance(part, list) else nearest(Fraction(part * factor))

        return convert(weights.arrays[name].tolist())

    def dot(x: list[Fraction], matrix: Any, column: int) -> Fraction:
        return sum((x[row] * matrix[row][column] for row in range(len(x))), Fraction(0))

    tokens = [0] * net.pads + word
    embed, place = array("embed.W_E"), array("pos_embed.W_pos")
    xs = [[snap(a + b) for a, b in zip(embed[token], place[at], strict=True)] for at, token in enumerate(tokens)]
    for index, block in enumerate(net.blocks):
        name = f"blocks.{index}"
        new = [list(x) for x in xs]
        for number, head in enumerate(block.heads):
            part = {
                letter: (array(f"{name}.attn.W_{letter}")[number], array(f"{name}.attn.b_{letter}")[number])
                for letter in "QKV"
            }
            q, k, v = (
                [[snap(dot(x, part[letter][0], c) + bias) for c, bias in enumerate(part[letter][1])] for x in xs]
                for letter in "QKV"
            )
            hard = head.attention == "hard"
            beta = array(f"{name}.attn.beta", 1.0 if hard else LOG2_E)[number]
            out = array(f"{name}.attn.W_O")[number]
            for at in range(len(xs)):
                scores: dict[int, Fraction] = {}
                for j in range(len(xs)):
                    if (head.mask == "causal" and j > at) or (head.mask == "strict" and j >= at):
                        continue
                    if head.mask == "after" and j <= at:
                        continue
                    if head.window is not None and not 0 <= at - j < head.window:
                        continue
                    score = beta * sum((a * b for a, b in zip(q[at], k[j], strict=True)), Fraction(0))
                    if head.window is not None:
                        score += array(f"{name}.attn.b_rel", 1.0 if hard else LOG2_E)[number][at - j]
                    scores[j] = score if hard else Fraction(floor(score + Fraction(1, 2)))
                best = max(scores.values(), default=Fraction(0))
                powers = {
                    j: Fraction(best - score <= Fraction(head.resolution))
                    if hard
                    else Fraction(2) ** max(min(int(score), grid.score), -grid.score)
                    for j, score in scores.items()
                }
                total, sums = Fraction(0), [Fraction(0)] * block.d_value
                if grid.significant:
                    powers = {j: snap(power) for j, power in powers.items()}
                for power in powers.values():
                    total = partial(total + power)
                for j, power in powers.items():
                    share = snap(power / total) if grid.significant and total else power
                    terms = [snap(share * x) if grid.significant else share * x for x in v[j]]
                    sums = [partial(s + term) for s, term in zip(sums, terms, strict=True)]
                if not grid.significant:
                    sums = [nearest(s / total) if total else Fraction(0) for s in sums]
                elif not total:
                    sums = [Fraction(0)] * block.d_value
                brought = sums
                new[at] = [x + dot(brought, out, c) for c, x in enumerate(new[at])]
        xs = [[snap(number) for number in x] for x in new]
        if block.units:
            into, start = array(f"{name}.mlp.W_in"), array(f"{name}.mlp.b_in")
            out, end = array(f"{name}.mlp.W_out"), array(f"{name}.mlp.b_out")
            for at, x in enumerate(xs):
                hidden = [max(snap(dot(x, into, c) + bias), Fraction(0)) for c, bias in enumerate(start)]
                xs[at] = [snap(x[c] + dot(hidden, out, c) + bias) for c, bias in enumerate(end)]
    matrix, bias = array("unembed.W_U"), array("unembed.b_U")
    return [[dot(x, matrix, c) + b for c, b in enumerate(bias)] for x in xs]
