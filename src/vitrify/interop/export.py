"""Export a model folder to another library; an export whose answers differ from the original's is deleted."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from vitrify.errors import BuildRefused
from vitrify.files import write_text
from vitrify.interop import folders, nets
from vitrify.interop.equality import LIMITS, ComparedInputs, Difference, Equality, Precision, Run, asked, compared
from vitrify.interop.uniform import MAX_PARAMETERS
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.conv import Convolutional
from vitrify.net.folder import save, write_json
from vitrify.net.positions import tabulated
from vitrify.net.weights import Weights

Target = Literal["torch", "hf", "transformer-lens", "onnx"]
TARGETS: tuple[Target, ...] = get_args(Target)
LAYOUTS: dict[Target, dict[str, str]] = {  # modules of this package in the order of trying: names in messages
    "torch": {"torch_folder": "PyTorch"},
    "hf": {"hf_stock": "GPT-2", "huggingface": "Hugging Face"},
    "transformer-lens": {"transformer_lens": "TransformerLens"},
    "onnx": {"onnx": "ONNX"},
}
DRIFT = 1e-3  # change of an answer by float32 that needs no warning
LIBRARIES = {"torch": "pytorch", "hf": "transformers", "transformer-lens": "transformer-lens", "onnx": "onnx"}
TRANSFORMERS = """from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("DIR")
tokenizer = AutoTokenizer.from_pretrained("DIR")
logits = model(**tokenizer("TEXT", return_tensors="pt", return_token_type_ids=False)).logits"""
USES = {
    "torch.nn.Module": """from torch_module import load  # in this folder; needs torch and safetensors

model = load(".")
logits, cache = model.run_with_cache(tokens)""",
    "GPT-2": TRANSFORMERS,
    "custom code": TRANSFORMERS.replace('"DIR")', '"DIR", trust_remote_code=True)  # runs the files of this folder'),
    "HookedTransformer": """from lens_loading import load  # in this folder; needs transformer-lens, 3.x or 4.x

model = load(".")
logits, cache = model.run_with_cache("TEXT")  # symbols between blanks, or their numbers
model.to_str_tokens("TEXT"), model.output_symbols, model.head_labels""",
    "ONNX": """import onnxruntime

session = onnxruntime.InferenceSession("model.onnx")
(logits,) = session.run(None, {"inputs": inputs})""",
}


class ExportLayout(Protocol):
    """One way to write a network for a library: a module of this package."""

    EXTRA: str

    def refusal(self, weights: Weights[Architecture]) -> list[str]:
        """Return the features of a network that it can't represent."""

    def write(self, weights: Weights[Architecture], folder: Path, precision: Precision) -> str:
        """Write the network; return the name of the layout, a key of `USES`."""

    def runner(self, folder: Path, precision: Precision) -> Run:
        """Load an export by the library itself; return it as a function of inputs."""


@dataclass(frozen=True)
class Exported:
    """The result of an export: the report, and the files."""

    equality: Equality
    files: tuple[str, ...]


def export(
    source: Path | str,
    target: Target,
    out: Path | str,
    *,
    precision: Precision = "float32",
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> Exported:
    """Write a network (named as in `nets.source`) for another library, load it there, and compare answers.

    They are compared on the inputs of `certify`. Refused where no layout of the target can represent the net, or where
    answers differ by more than rounding.
    """
    place, out, tell = nets.source(source), Path(out), say or (lambda _text: None)
    if not isinstance(place, nets.ModelFolder):
        with tempfile.TemporaryDirectory() as made:
            save(place.weights(), Path(made) / "net", place.spec())
            return export(Path(made) / "net", target, out, precision=precision, seed=seed, say=say)
    source, weights = place.path, tabulated(place.weights())
    refused, dense = f"{weights.architecture.name!r} can't be exported to {target}: ", weights.sizes.dense
    if dense > MAX_PARAMETERS:
        raise BuildRefused(f"{refused}it has {dense:,} parameters with their zeros, more than {MAX_PARAMETERS:,}")
    tell("choosing inputs")
    questions = asked(weights, place.spec(), seed)
    reasons: list[str] = []
    for name, library in LAYOUTS[target].items():
        layout: Any = import_module(f"vitrify.interop.{name}")
        if reason := layout.refusal(weights):
            reasons.append(f"{library} has no {', no '.join(reason)}")
            continue
        try:
            with folders.writing(out) as partial:
                equality = _written(layout, weights, partial, target, precision, questions, tell)
                equality = replace(equality, notes=(*reasons, *_drift(equality.rows, precision)))
                carried = folders.carry(source, partial)
                write_json(partial / folders.REPORT, equality.to_json())
                write_text(partial / "README.md", card(weights, equality, carried))
                files = tuple(sorted(path.name for path in partial.iterdir()))
            return Exported(equality, files)
        except BuildRefused as error:
            reasons.append(str(error))
    raise BuildRefused(refused + "; ".join(reasons) + _nearest(weights, target))


def _nearest(weights: Weights[Architecture], target: Target) -> str:
    """Return which other target can represent a network, as the end of a refusal."""
    for other in (each for each in TARGETS if each != target):
        for name in LAYOUTS[other]:
            layout: Any = import_module(f"vitrify.interop.{name}")
            if not layout.refusal(weights):
                return f"; --to {other} can hold it"
    return ""


def _written(
    layout: ExportLayout,
    weights: Weights[Architecture],
    folder: Path,
    target: Target,
    precision: Precision,
    questions: ComparedInputs,
    say: Callable[[str], None],
) -> Equality:
    """Write a layout and refuse it if answers differ; the other precision is compared only for the report."""
    say(f"writing {target}")
    title = layout.write(weights, folder, precision)
    rows = []
    for kind in sorted(LIMITS):
        say(f"comparing answers in {kind}")
        with tempfile.TemporaryDirectory(dir=folder) as other:
            place = folder if kind == precision else Path(other)
            try:
                if kind != precision:
                    layout.write(weights, place, kind)
                row = compared(weights, layout.runner(place, kind), questions.batches, kind)
            except BuildRefused as error:
                if kind == precision:
                    raise BuildRefused(f"{title}: {error}") from None
                continue  # only for the report
        if kind == precision and not row.small:
            raise BuildRefused(_too_far(title, row))
        rows.append(row)
    count = sum(len(part) for part in questions.batches)
    answers = sum(part.shape[0] * (part.shape[1] if part.dtype.kind == "i" else 1) for part in questions.batches)
    return Equality(target, title, precision, tuple(rows), count, answers, questions.names)


def _too_far(title: str, row: Difference) -> str:
    other = " (float64 may do: --dtype float64)" if row.precision == "float32" else ""
    return (
        f"{title}: answers in {row.precision} differ from ours by {row.difference:.3g}, more than "
        f"{LIMITS[row.precision]:g}{other}"
    )


def _drift(rows: tuple[Difference, ...], precision: Precision) -> list[str]:
    """Return a warning if the precision of the file moves the answers by more than `DRIFT`."""
    own = next(row for row in rows if row.precision == precision)
    if own.from_float64 <= DRIFT:
        return []
    return [f"{precision} by itself moves answers by {own.from_float64:.2g}: the certificate is about float64"]


def card(weights: Weights[SequenceArchitecture], equality: Equality, carried: Mapping[str, Path]) -> str:
    """Return the README of an export: what it is, how to load it and what it was compared with."""
    net, size = weights.architecture, weights.sizes
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
Names of dimensions, heads and units, if they have any, are in `labels.json`.

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

{equality.inputs} inputs: {"; ".join(equality.asked)}. The relative difference is the absolute one divided by the
largest answer, if that is more than 1; the last column is the distance from vitrify's own answers in float64.

| precision | relative difference | absolute difference | distance from float64 |
| --- | --- | --- | --- |
{rows}

## Beside the weights

| file | SHA-256 |
| --- | --- |
{hashes}
"""


def _reads(net: SequenceArchitecture) -> str:
    if net.reads == "tokens":
        first = f"`{net.inputs[0]}` {net.pads} times in front, then " if net.pads else ""
        return f"{first}at most {net.max_length} of {len(net.inputs) - 1} symbols: {_some(net.inputs[1:])}"
    if isinstance(net, Convolutional):
        return f"planes of {net.rows}×{net.columns} numbers"
    return f"{len(net.inputs)} numbers" + (f" at each of {net.max_length} positions" if net.reads == "rows" else "")


def _some(symbols: tuple[str, ...]) -> str:
    shown = " ".join(f"`{symbol}`" for symbol in symbols[:20])
    return shown + (" …" if len(symbols) > 20 else "")
