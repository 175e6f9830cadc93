"""ONNX: one graph of standard operators that runs in onnxruntime, recorded from the plain torch module.

Batches may have any size and sequences any length up to the net's own: a recurrent cell becomes a loop. The graph is
recorded by PyTorch's older exporter (`dynamo=False`), which is twenty times as quick as the newer one and knows loops.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np

from vitrify.arrays import Arrays
from vitrify.encoding import JsonObject
from vitrify.errors import BuildRefused, FolderError
from vitrify.interop.equality import Precision, Run
from vitrify.interop.folders import blank, description
from vitrify.interop.torch_folder import arrays
from vitrify.interop.uniform import unknown_layers
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.weights import Weights
from vitrify.optional import need

EXTRA = "onnx"
OPSET = 18
MODEL = "model.onnx"


def refusal(weights: Weights[Architecture]) -> list[str]:
    """The features that no graph of fixed operators can represent."""
    blocks = getattr(weights.architecture, "blocks", ())
    crowded = ["experts that choose among the rows of a batch"] if any(block.crowded for block in blocks) else []
    return crowded + unknown_layers(weights.architecture)


def write(weights: Weights[SequenceArchitecture], folder: Path, precision: Precision) -> str:
    """Write `model.onnx`, with all weights inside; the name of the layout."""
    torch, onnx = need("torch", EXTRA), need("onnx", EXTRA)
    from vitrify.interop.torch_module import VitrifyModule

    net, own = weights.architecture, arrays(weights)
    model = VitrifyModule(description(weights))
    state = {name: torch.from_numpy(np.array(array, dtype=precision)) for name, array in own.items()}
    model.load_state_dict(state, assign=True)
    inputs = blank(net, net.max_length + net.pads if net.reads == "tokens" else 0)
    example = torch.from_numpy(np.concatenate([inputs] * 2).astype(np.int64 if net.reads == "tokens" else precision))
    axes = {"inputs": {0: "batch"} | ({1: "position"} if net.reads == "tokens" else {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the exporter is the older one, and that loops over heads are written out
        torch.onnx.export(
            model,
            (example,),
            str(folder / MODEL),
            input_names=["inputs"],
            output_names=["logits"],
            dynamic_axes=axes,
            opset_version=OPSET,
            do_constant_folding=False,  # arrays keep their names,
            training=torch.onnx.TrainingMode.TRAINING,  # and equal ones stay several; nothing else depends on it
            dynamo=False,
        )
    made = onnx.load(str(folder / MODEL))
    onnx.helper.set_model_props(made, {"vitrify": json.dumps(description(weights))})
    onnx.save_model(made, str(folder / MODEL))
    return "ONNX"


def runner(folder: Path, precision: Precision) -> Run:
    """The graph that a folder holds, as a function of inputs."""
    del precision  # it is that of the file
    runtime = need("onnxruntime", EXTRA)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(str(folder / MODEL), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has errors of its own that share no base class
        raise BuildRefused(f"onnxruntime can't run the graph: {error}") from None
    return lambda inputs: session.run(None, {"inputs": inputs})[0]


def read(folder: Path) -> tuple[JsonObject, Arrays]:
    """The description of the network that a graph was recorded from, and its arrays by name."""
    onnx = need("onnx", EXTRA)
    try:
        model = onnx.load(str(folder / MODEL))
    except Exception as error:
        raise FolderError(f"{folder / MODEL} can't be read: {error}") from None
    about = {entry.key: entry.value for entry in model.metadata_props}
    if "vitrify" not in about:
        raise FolderError(f"{folder / MODEL} was not written by vitrify: graphs of others are not read back")
    arrays = {entry.name: onnx.numpy_helper.to_array(entry) for entry in model.graph.initializer}
    return json.loads(about["vitrify"]), arrays
