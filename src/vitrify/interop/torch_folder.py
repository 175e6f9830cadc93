"""A folder with a plain `torch.nn.Module`: its source, the description of the network, and the weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vitrify.arrays import Array
from vitrify.files import write_text
from vitrify.interop.equality import Inputs, Precision, Run
from vitrify.interop.folders import description, write_tensors
from vitrify.interop.uniform import unknown_layers
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.folder import write_json
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.optional import need

if TYPE_CHECKING:
    from torch import Tensor

EXTRA = "torch"


def refusal(weights: Weights[Architecture]) -> list[str]:
    """Return the layers that the module does not know."""
    return unknown_layers(weights.architecture)


def write(weights: Weights[SequenceArchitecture], folder: Path, precision: Precision) -> str:
    """Write `config.json`, `model.safetensors` and the source of the module; the name of the layout."""
    write_json(folder / "config.json", {"format": "vitrify for PyTorch", "vitrify": description(weights)})
    write_tensors(folder / "model.safetensors", arrays(weights), precision)
    travel("torch_module.py", folder)
    return "torch.nn.Module"


def arrays(weights: Weights[Architecture]) -> dict[str, Array]:
    """All arrays, the zeros of mostly empty ones too."""
    return {name: np.asarray(dense(array)) for name, array in weights.arrays.items()}


def travel(name: str, folder: Path, as_name: str | None = None) -> None:
    """Copy a source file that stands beside this one into an export."""
    source = Path(__file__).with_name(name).read_text(encoding="utf-8")
    write_text(folder / (as_name or name), source)


def runner(folder: Path, precision: Precision) -> Run:
    """The module that a folder holds, as a function of inputs."""
    torch = need("torch", EXTRA)
    from vitrify.interop.torch_module import load

    return torch_run(load(folder, getattr(torch, precision)))


def torch_run(model: Callable[[Tensor], Tensor]) -> Run:
    """Return a function of torch tensors as one of NumPy arrays, without gradients."""
    torch = need("torch", EXTRA)

    def run(inputs: Inputs) -> Array:
        with torch.no_grad():
            return model(torch.from_numpy(inputs)).numpy()

    return run
