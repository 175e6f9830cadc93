"""Exports by layouts that are made up here: the next one is tried where one is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused
from vitrify.interop import export as exports
from vitrify.net.folder import load, save
from vitrify.net.weights import Weights
from vitrify.spec.ngrams.families import random_ngram


def layout(source: Path, *, writes: bool = True, **more: object) -> SimpleNamespace:
    """Return a layout that answers as the model folder does, and may refuse to be written."""

    def write(_weights: Weights, _folder: Path, _precision: str) -> str:
        if not writes:
            raise BuildRefused("this one can't be written")
        return "ONNX"

    def runner(_folder: Path, precision: str) -> object:
        weights = load(source)
        ours = weights.map(lambda array: np.asarray(array).astype(precision))
        return lambda inputs: np.asarray(weights.architecture.forward(ours.arrays, inputs))

    return SimpleNamespace(refusal=lambda _weights: [], write=write, runner=runner, **more)


def test_a_layout_that_fails_while_it_is_written_makes_way_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, told = tmp_path / "net", list[str]()
    save(build(random_ngram(2, 2, seed=0), max_length=4), source)
    layouts = {"vitrify.interop.first": layout(source, writes=False), "vitrify.interop.second": layout(source)}
    monkeypatch.setattr(exports, "import_module", layouts.__getitem__)
    monkeypatch.setitem(exports.LAYOUTS, "onnx", {"first": "first", "second": "second"})
    made = exports.export(source, "onnx", tmp_path / "out", say=told.append)
    assert made.equality.notes == ("this one can't be written",)
    assert "writing onnx" in told
    monkeypatch.setattr(exports, "MAX_PARAMETERS", 10)
    with pytest.raises(BuildRefused, match=r"can't be exported to onnx: it has \d+ parameters .* more than 10"):
        exports.export(source, "onnx", tmp_path / "out")
