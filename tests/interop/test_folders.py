"""Export folders without any library: what stands in them, what they never replace, what is said without extras."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import vitrify
from exported import net, saved
from vitrify.errors import BuildRefused, FolderError
from vitrify.interop import export as exports
from vitrify.interop import huggingface, torch_folder
from vitrify.interop.equality import LIMITS, asked, compared
from vitrify.interop.export import export
from vitrify.interop.folders import REPORT, writing
from vitrify.interop.imports import import_folder
from vitrify.net.folder import load
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights


class Pretended:
    """A layout whose library is our own forward pass, off by as much as is asked for."""

    EXTRA = "torch"

    def __init__(self, weights: Weights[Any], off: float) -> None:
        self.weights, self.off = weights, off

    refusal, write = staticmethod(torch_folder.refusal), staticmethod(torch_folder.write)

    def runner(self, folder: Path, precision: Any) -> Any:
        del folder
        ours = self.weights.map(lambda array: dense(array).astype(precision))
        return lambda inputs: (
            np.asarray(ours.architecture.forward(ours.arrays, inputs)) + np.dtype(precision).type(self.off)
        )


def pretend(monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    layout = Pretended(net("n-gram, softmax")[0], off)
    monkeypatch.setattr(exports, "import_module", lambda _name: layout)


def test_an_export_carries_all_that_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, 0.0)
    source = saved("n-gram, softmax", tmp_path / "net")
    assert vitrify("certify", source, "--max-length", 2, "--samples", 4).returncode == 0
    found = export(source, "torch", tmp_path / "out")
    assert {"config.json", "model.safetensors", "torch_module.py", "labels.json", "spec.arpa"} <= set(found.files)
    for name in ("labels.json", "spec.arpa", "certificate.json"):
        assert (tmp_path / "out" / name).read_bytes() == (source / name).read_bytes()
    report = json.loads((tmp_path / "out" / REPORT).read_text())
    assert [row["precision"] for row in report["rows"]] == ["float32", "float64"]
    assert all(row["difference"] == 0 for row in report["rows"])
    assert report["inputs"] >= 300
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: pytorch\n")
    assert "certificate.json" in card


@pytest.mark.long
@pytest.mark.parametrize("stored", ["float32", "float64"])
def test_a_certificate_comes_back_with_the_weights_that_it_is_about(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stored: Any
) -> None:
    pretend(monkeypatch, 0.0)
    source = saved("n-gram, softmax", tmp_path / "net")
    vitrify("certify", source, "--max-length", 2, "--samples", 4)
    export(source, "torch", tmp_path / "out", precision=stored)
    back = import_folder(tmp_path / "out", tmp_path / "back")
    assert back.whole
    exact = stored == "float64"
    assert ("rounded to float32" in back.note) == (not exact)
    assert (load(tmp_path / "back").digest == load(source).digest) == exact
    assert load(tmp_path / "back").labels == load(source).labels
    assert (tmp_path / "back" / "certificate.json").is_file() == exact
    assert vitrify("recheck", tmp_path / "back").returncode == (0 if exact else 2)


def test_what_differs_is_refused_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = saved("n-gram, softmax", tmp_path / "net")
    for off in (1e-3, float("nan")):
        pretend(monkeypatch, off)
        with pytest.raises(BuildRefused, match="differ from ours by"):
            export(source, "torch", tmp_path / "out")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["net"]
    pretend(monkeypatch, 1e-9)
    export(source, "torch", tmp_path / "out")
    with pytest.raises(BuildRefused, match="float64 differ"):
        export(source, "torch", tmp_path / "two", precision="float64")


def test_only_exports_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear").write_text("dear")
    with pytest.raises(FolderError, match="not an export"), writing(tmp_path / "letters"):
        pass
    with pytest.raises(FolderError, match="is a file"), writing(tmp_path / "letters" / "dear"):
        pass
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "new") as partial:
        (partial / "half").write_text(str(1 / 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letters"]


def test_the_difference_is_the_largest_one_and_relative_to_large_answers() -> None:
    weights, spec = net("n-gram, softmax")
    batches = asked(weights, spec).batches

    def off(inputs: Any) -> Any:
        found = np.array(weights.architecture.forward(weights.prepared, inputs))
        found[-1, -1, 0] += 0.5
        return found

    row = compared(weights, off, batches, "float64")
    largest = max(1.0, *(float(np.abs(weights.architecture.forward(weights.prepared, b)).max()) for b in batches))
    assert row.absolute == pytest.approx(0.5)
    assert row.difference == pytest.approx(0.5 / largest)
    assert not row.small
    assert set(LIMITS) == {"float32", "float64"}


@pytest.mark.long
def test_inputs_are_those_of_a_certificate_or_random() -> None:
    weights, spec = net("n-gram, softmax")
    assert "random words" in asked(weights, spec).names[-1]
    assert asked(weights, None).names == ("random inputs (seed 0)",)
    for name in ("maxout", "graph", "images", "recurrent net"):
        numbers, about = net(name)
        for inputs in (*asked(numbers, about).batches, *asked(numbers, None).batches):
            assert np.asarray(numbers.architecture.forward(numbers.prepared, inputs)).shape[0] == len(inputs)


def test_symbols_have_one_number_each_and_the_beginning_is_put_in_front() -> None:
    weights, _ = net("n-gram, softmax")
    first = weights.architecture
    symbols = huggingface.vocabulary(first)
    assert symbols[: len(first.inputs)] == first.inputs
    assert [symbols[number] for number in huggingface.output_ids(first)] == list(first.output.symbols)
    assert [symbols[number] for number in huggingface.ends(first)] == ["</s>"]
    twice = replace(first, pads=2)
    single = huggingface._tokenizer(twice, symbols)["post_processor"]["single"]
    assert [next(iter(part)) for part in single] == ["SpecialToken", "SpecialToken", "Sequence"]


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in ("torch", "transformers", "transformer_lens", "onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, module, None)
    source = saved("n-gram, softmax", tmp_path / "net")
    for target, extra in (("torch", "torch"), ("hf", "hf"), ("transformer-lens", "transformer-lens"), ("onnx", "onnx")):
        done = vitrify("export", source, "--to", target, "-o", tmp_path / "out")
        assert done.returncode == 2
        assert f"pip install 'vitrify[{extra}]'" in done.stderr
    assert not (tmp_path / "out").exists()
    refused = vitrify("export", saved("n-gram, hard attention", tmp_path / "hard"), "--to", "transformer-lens")
    assert refused.returncode == 2
    assert "TransformerLens has no hard attention" in refused.stderr
