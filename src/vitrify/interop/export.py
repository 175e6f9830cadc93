"""Export a model folder to another library; nothing is kept that does not say what ours says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from vitrify.errors import BuildRefused, FolderError
from vitrify.interop import card, folders
from vitrify.interop.equality import LIMITS, Asked, Equality, Precision, Row, Run, asked, compared
from vitrify.interop.uniform import MOST
from vitrify.net.folder import load, save, spec_path
from vitrify.net.weights import Ledger, Weights

Target = Literal["torch", "hf", "transformer-lens", "onnx"]
TARGETS: tuple[Target, ...] = get_args(Target)
LAYOUTS: dict[Target, tuple[str, ...]] = {  # in the order in which they are tried
    "torch": ("torch_folder",),
    "hf": ("hf_stock", "hf_custom"),
    "transformer-lens": ("transformer_lens",),
    "onnx": ("onnx",),
}
NAMES = {
    "torch_folder": "PyTorch",
    "hf_stock": "GPT-2",
    "hf_custom": "Hugging Face",
    "transformer_lens": "TransformerLens",
    "onnx": "ONNX",
}
DRIFT = 1e-3  # what a precision may do to an answer before that is worth a word


class Layout(Protocol):
    """One way to write a network for a library: a file of this room."""

    EXTRA: str

    def refusal(self, weights: Weights[Any]) -> list[str]:
        """The features of a network that it can't represent."""
        ...

    def write(self, weights: Weights[Any], folder: Path, precision: Precision) -> str:
        """Write the network; the name of the layout."""
        ...

    def runner(self, folder: Path, precision: Precision) -> Run:
        """What was written, loaded by the library itself, as a function of inputs."""
        ...


@dataclass(frozen=True)
class Exported:
    """What an export came to: the report, and the files."""

    equality: Equality
    files: tuple[str, ...]


def export(
    source: Path,
    target: Target,
    out: Path,
    *,
    precision: Precision = "float32",
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> Exported:
    """Write a model folder for another library, load it there, and compare it with ours on the certificate's inputs.

    Refused where no layout of the target can represent the net, or where answers differ by more than rounding.
    """
    tell = say or (lambda _text: None)
    if folders.is_run(source):
        from vitrify.interop.trained import trained  # which imports JAX

        with tempfile.TemporaryDirectory() as made:
            save(trained(source), Path(made) / "net")
            return export(Path(made) / "net", target, out, precision=precision, seed=seed, say=say)
    weights = load(source)
    tell("choosing inputs")
    questions = asked(weights, _spec(source), seed)
    reasons: list[str] = []
    for name in LAYOUTS[target]:
        layout: Any = import_module(f"vitrify.interop.{name}")
        found = _too_large(weights) or layout.refusal(weights)
        if found:
            reasons.append(f"{NAMES[name]} has no {', no '.join(found)}")
            continue
        try:
            with folders.writing(out) as partial:
                equality = _written(layout, weights, partial, target, precision, questions, tell)
                equality = replace(equality, notes=(*reasons, *_drift(equality.rows, precision)))
                carried = folders.carry(source, partial)
                folders.write_json(partial / folders.REPORT, equality.to_json())
                (partial / "README.md").write_text(card.card(weights, equality, carried), encoding="utf-8")
                files = tuple(sorted(path.name for path in partial.iterdir()))
            return Exported(equality, files)
        except _Differs as error:
            reasons.append(str(error))
    raise BuildRefused(f"{weights.architecture.name!r} can't be exported to {target}: " + "; ".join(reasons))


class _Differs(BuildRefused):
    """A layout that was written and answers otherwise."""


def _written(
    layout: Layout,
    weights: Weights[Any],
    folder: Path,
    target: Target,
    precision: Precision,
    questions: Asked,
    say: Callable[[str], None],
) -> Equality:
    """Write a layout, and once more in the other precision for the report's sake; what differs is refused."""
    say(f"writing {folder.name}")
    title = layout.write(weights, folder, precision)
    rows = []
    for kind in sorted(LIMITS):
        say(f"comparing answers in {kind}")
        with tempfile.TemporaryDirectory(dir=folder.parent) as other:
            place = folder if kind == precision else Path(other)
            try:
                if kind != precision:
                    layout.write(weights, place, kind)
                row = compared(weights, layout.runner(place, kind), questions.batches, kind)
            except BuildRefused as error:
                if kind == precision:
                    raise _Differs(f"{title}: {error}") from None
                continue  # the library has no such precision
        if kind == precision and not row.small:
            raise _Differs(_too_far(title, row))
        rows.append(row)
    count = sum(len(part) for part in questions.batches)
    answers = sum(part.shape[0] * (part.shape[1] if part.dtype.kind == "i" else 1) for part in questions.batches)
    return Equality(target, title, precision, tuple(rows), count, answers, questions.names)


def _too_far(title: str, row: Row) -> str:
    other = " (float64 may do: --dtype float64)" if row.precision == "float32" else ""
    return (
        f"{title}: answers in {row.precision} differ from ours by {row.difference:.3g}, more than "
        f"{LIMITS[row.precision]:g}{other}"
    )


def _drift(rows: tuple[Row, ...], precision: Precision) -> list[str]:
    """A warning, if the precision of the file moves the answers by more than a trifle."""
    own = next(row for row in rows if row.precision == precision)
    if own.from_float64 <= DRIFT:
        return []
    return [f"{precision} by itself moves answers by {own.from_float64:.2g}: certified are those in float64"]


def _too_large(weights: Weights[Any]) -> list[str]:
    dense = Ledger.of(weights).dense
    return [f"room for {dense:,} numbers (with their zeros; at most {MOST:,})"] if dense > MOST else []


def _spec(source: Path) -> object | None:
    """The spec of a folder, if it has one: trained nets may have none."""
    from vitrify.spec import read_spec

    try:
        path = spec_path(source)
    except FolderError:
        return None
    return read_spec(path)
