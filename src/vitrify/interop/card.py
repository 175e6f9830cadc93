"""The README card of an export: what it is, how to load it, how far it is from what was certified."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitrify.interop.equality import Equality
from vitrify.net.weights import Ledger, Weights

LIBRARIES = {"torch": "pytorch", "hf": "transformers", "transformer-lens": "transformer-lens", "onnx": "onnx"}
USES = {
    "torch.nn.Module": """from torch_module import load  # in this folder; needs torch and safetensors

model = load(".")
logits, cache = model.run_with_cache(tokens)""",
    "GPT-2": """from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("DIR")
tokenizer = AutoTokenizer.from_pretrained("DIR")
logits = model(**tokenizer("TEXT", return_tensors="pt", return_token_type_ids=False)).logits""",
    "custom code": """from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("DIR", trust_remote_code=True)  # runs the two files of this folder
tokenizer = AutoTokenizer.from_pretrained("DIR", trust_remote_code=True)
logits = model(**tokenizer("TEXT", return_tensors="pt", return_token_type_ids=False)).logits""",
    "HookedTransformer": """from lens_loading import load  # in this folder; needs transformer-lens, 3.x or 4.x

model = load(".")
logits, cache = model.run_with_cache(tokens)""",
    "ONNX": """import onnxruntime

session = onnxruntime.InferenceSession("model.onnx")
(logits,) = session.run(None, {"inputs": inputs})""",
}


def card(weights: Weights[Any], equality: Equality, carried: Mapping[str, Path]) -> str:
    """A page that tells a stranger what the export is, how to load it and what it was compared with."""
    net, size = weights.architecture, Ledger.of(weights)
    facts = "\n".join(f"| {key} | {value} |" for key, value in weights.about.items())
    rows = "\n".join(
        f"| {row.precision} | {row.difference:.3g} | {row.absolute:.3g} | {row.from_float64:.3g} |"
        for row in equality.rows
    )
    hashes = "\n".join(
        f"| `{name}` | `{hashlib.sha256(path.read_bytes()).hexdigest()}` |" for name, path in carried.items()
    )
    return f"""---
library_name: {LIBRARIES[equality.target]}
tags: [vitrify, {net.output.kind}]
---
# {net.name}

Weights of vitrify, exported as {equality.layout} in {equality.stored}.
Every dimension, head and unit is named in `labels.json`, where they are named at all.

| about | |
| --- | --- |
{facts}
| reads | {_reads(net)} |
| writes | {len(net.output.symbols)} symbols ({net.output.kind}): {_some(net.output.symbols)} |
| size | {size.layers} layers, {size.heads} heads, width {size.d_model}, {size.units} units, {size.nonzero} non-zero |

```python
{USES[equality.layout]}
```

## The same answers

{equality.inputs} inputs: {"; ".join(equality.asked)}. Differences are relative to the largest answer, where that is
more than 1, and absolute; the last column is the distance from vitrify's own answers in float64.

| precision | difference | absolute | from float64 |
| --- | --- | --- | --- |
{rows}

## Beside the weights

| file | SHA-256 |
| --- | --- |
{hashes}
"""


def _reads(net: Any) -> str:
    if net.reads == "tokens":
        first = f"`{net.inputs[0]}` {net.pads} times in front, then " if net.pads else ""
        return f"{first}at most {net.max_length} of {len(net.inputs) - 1} symbols: {_some(net.inputs[1:])}"
    if net.reads == "image":
        return f"planes of {net.rows}×{net.columns} numbers"
    return f"{len(net.inputs)} numbers" + (f" at each of {net.max_length} positions" if net.reads == "rows" else "")


def _some(symbols: tuple[str, ...]) -> str:
    shown = " ".join(f"`{symbol}`" for symbol in symbols[:20])
    return shown + (" …" if len(symbols) > 20 else "")
