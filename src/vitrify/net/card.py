"""The README card of a saved model."""

from __future__ import annotations

from typing import Any

from vitrify.net.weights import Ledger, Weights


def card(weights: Weights[Any]) -> str:
    """A page that tells a stranger what the model is, how large it is and how to use it."""
    net, size, about = weights.architecture, Ledger.of(weights), weights.about
    facts = "\n".join(f"| {key} | {value} |" for key, value in about.items())
    rows = "".join(
        f"| {head.block}.{head.place} | {head.name} | {head.writes} | {_number(head.gap)} | {_number(head.kappa)} | "
        f"{_number(float(weights.arrays[f'blocks.{head.block}.attn.beta'][head.place]))} |\n"
        for head in weights.labels.heads
    )
    title = "| head | does | writes | gap | kappa | beta |\n| --- | --- | --- | --- | --- | --- |\n"
    heads = f"{title}{rows}\n" if rows else ""
    words = {"tokens": "TOKEN…", "vector": "NUMBER…", "rows": "EDGE…", "image": "--input IMAGE.npy"}
    given = words[net.reads]
    return f"""---
library_name: vitrify
tags: [vitrify, {net.output.kind}]
---
# {net.name}

Weights written down from a specification, not learned. Every dimension, head and unit is named in `labels.json`.

| about | |
| --- | --- |
{facts}
| reads | {_reads(net)} |
| writes | {len(net.output.symbols)} symbols ({net.output.kind}) |

| layers | heads | width | MLP units | non-zero | dense | largest weight |
| --- | --- | --- | --- | --- | --- | --- |
| {size.layers} | {size.heads} | {size.d_model} | {size.units} | {size.nonzero} | {size.dense} | {size.max_abs:.6g} |

{heads}Run it with `vitrify run DIR {given}`, check it against its spec with `vitrify certify DIR`.
"""


def _reads(net: Any) -> str:
    if net.reads == "tokens":
        return f"{len(net.inputs) - 1} symbols, at most {net.max_length} of them"
    if net.reads == "image":
        return "an image"
    return f"{len(net.inputs)} numbers" + (f" at each of {net.max_length} positions" if net.reads == "rows" else "")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"
