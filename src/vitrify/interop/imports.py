"""Read a network back from the formats that exports write, trained further or not, and GPT-2 models with ReLU units.

Nothing is unpickled: weights come from safetensors files and ONNX graphs only, and no code of a folder is run to read
them. Where the arrays are those of an export, the very network comes back: in float64 bit by bit, from a file in
float32 rounded to that. Where training has changed padding zeros, it comes back with the padded sizes of the export.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from vitrify.arrays import Floats
from vitrify.encoding import JsonMapping, JsonObject
from vitrify.errors import FolderError, InputError
from vitrify.interop import folders, hf_stock, huggingface, onnx, torch_folder, transformer_lens
from vitrify.interop.equality import Difference, Inputs, Precision, Run, asked, compared
from vitrify.interop.uniform import QUERIES, as_large, gathered, places, sparsified, spread
from vitrify.net.architecture import Output, SequenceArchitecture, from_json
from vitrify.net.folder import file_of, save
from vitrify.net.labels import labels_of
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec import read_spec
from vitrify.spec.kinds import Spec

Format = Literal["torch", "hf", "hf-gpt2", "transformer-lens", "onnx"]
FIRST = "<begin>"  # what stands for the beginning of a sequence in a model that knows none
LAYOUTS: dict[Format, ModuleType] = {
    "torch": torch_folder,
    "hf": huggingface,
    "hf-gpt2": hf_stock,
    "transformer-lens": transformer_lens,
    "onnx": onnx,
}
ROUNDING: dict[str, float] = {"float32": 1e-6, "float64": 1e-15}


@dataclass(frozen=True)
class Imported:
    """An imported network: whether it is the one that was exported, and how near our answers are to the library's."""

    weights: Weights[Any]
    format: Format
    stored: str
    whole: bool  # what was exported, and not something larger that training made of it
    row: Difference | None = None
    note: str = ""


def imported(folder: Path) -> Imported:
    """The network in a folder; one whose files do not fit together is refused."""
    kind = _format(folder)
    try:
        return _imported(folder, kind)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise FolderError(f"{folder} is no complete {kind} model: {error!r}") from None


def _imported(folder: Path, kind: Format) -> Imported:
    if kind in ("hf-gpt2", "transformer-lens"):
        return _from_uniform(folder, kind)
    if kind == "onnx":
        about, arrays = onnx.read(folder)
    else:
        about = folders.read_json(folder / "config.json")["vitrify"]
        prefix = huggingface.PREFIX if kind == "hf" else ""
        tensors = folders.tensors(folder / "model.safetensors")
        arrays = {name.removeprefix(prefix): array for name, array in tensors.items()}
    net = from_json(about["net"])
    missing = [name for name in net.shapes() if name not in arrays]
    if missing:
        raise FolderError(f"{folder} does not hold {', '.join(missing[:4])}, which the network has")
    own_arrays = {name: sparsified(arrays[name].astype(about["kind"])) for name in net.shapes()}
    return Imported(Weights(net, own_arrays), kind, str(arrays["unembed.W_U"].dtype), whole=True)


def import_folder(source: Path, out: Path, *, seed: int = 0) -> Imported:
    """Read a folder back, compare it with what the library itself answers, and write a model folder of vitrify.

    Labels and spec that stand beside the weights come along; a certificate does if the weights are those it is about.
    """
    net, spec = labelled(source)
    origin, weights, about = _origin(source), net.weights, net.weights.about
    net = replace(net, **_compared(source, net, weights, spec, seed))
    save(weights, out, spec)
    digest = hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()
    same = origin.get("sha256", {}).get("model.safetensors") == digest
    if same and (source / "certificate.json").is_file():
        shutil.copyfile(file_of(source, "certificate.json"), out / "certificate.json")
    elif not same and origin:
        note = _changed(net, origin)
        save(replace(weights, about={**about, "imported": f"from {net.format}: {note}"}), out, spec)
        net = replace(net, note="; ".join(filter(None, (note, net.note))))
    return net


def labelled(source: Path) -> tuple[Imported, Spec | None]:
    """Return the network in a folder with its name, its labels and its spec, where the export carried them along."""
    net, origin = imported(source), _origin(source)
    weights, spec = replace(net.weights, about={"source": f"imported from {net.format}"}), None
    if net.whole and origin:
        labels = labels_of(folders.read_json(source / "labels.json"), weights.architecture)
        name = origin["net"].get("name", weights.architecture.name)
        architecture = replace(weights.architecture, name=name)
        weights = Weights(architecture, weights.arrays, labels, dict(origin["about"]))
        spec = None if origin.get("spec") is None else read_spec(file_of(source, origin["spec"]))
    return replace(net, weights=weights), spec


def _origin(source: Path) -> JsonObject:
    """Return the config file of the model folder that was exported; empty where there was none."""
    return folders.read_json(source / folders.SOURCE) if (source / folders.SOURCE).is_file() else {}


def _changed(net: Imported, origin: JsonMapping) -> str:
    """Why the weights are not those that were exported, in a few words."""
    if not net.whole:
        return "changed since it was exported, and in the sizes of the export"
    if net.weights.architecture != from_json(origin["net"]):
        return "a concatenating residual stream came back as an adding one"
    rounded = net.stored == "float32" and str(next(iter(net.weights.arrays.values())).dtype) == "float64"
    return "rounded to float32" if rounded else "changed since it was exported"


def _format(folder: Path) -> Format:
    if (folder / onnx.MODEL).is_file():
        return "onnx"
    config = folders.read_json(folder / "config.json")
    if "transformer_lens" in config:
        return "transformer-lens"
    if config.get("model_type") == "gpt2":
        return "hf-gpt2"
    if "vitrify" in config:
        return "hf" if config.get("model_type") == "vitrify" else "torch"
    known = "folders of 'vitrify export', and GPT-2 models with ReLU units"
    raise FolderError(f"{folder} holds a {config.get('model_type', 'model of unknown type')!r}: read are {known}")


def _from_uniform(folder: Path, kind: Format) -> Imported:
    """A network in the layout of GPT-2 or TransformerLens: the one that was exported, or one as large as the arrays."""
    config = folders.read_json(folder / "config.json")
    arrays: dict[str, Floats] = LAYOUTS[kind].uniform_arrays(folder)
    stored, about = str(arrays["embed.W_E"].dtype), config.get("vitrify")
    if about:
        net = from_json(about["net"])
        weights = _exported(folder, net, about, arrays, kind)
        if weights is not None:
            return Imported(weights, kind, stored, whole=True)
        inputs, pads = huggingface.vocabulary(net) if kind == "hf-gpt2" else net.inputs, net.pads
        output = net.output
    else:
        inputs, pads = _symbols(folder, len(arrays["embed.W_E"])), 0
        output = Output("lm", inputs)
        inputs = (FIRST, *inputs)
        arrays["embed.W_E"] = np.pad(arrays["embed.W_E"], ((1, 0), (0, 0)))
    if kind == "hf-gpt2":
        _only_ours(config)
        eps, causal = config["layer_norm_epsilon"], True
    else:
        settings = config["transformer_lens"]
        eps = settings["eps"] if settings["normalization_type"] else None
        causal = settings["attention_dir"] == "causal"
        if settings["positional_embedding_type"] == "rotary":
            raise FolderError(f"{folder}: a rotary model that was changed in other sizes than its own is not read back")
        if config.get("masks"):
            raise FolderError(f"{folder}: a model with masks of single heads that was changed is not read back")
    large = as_large(arrays, inputs, output, pads=pads, eps=eps, causal=causal)
    return Imported(large, kind, stored, whole=False)


def _exported(
    folder: Path, net: Transformer, about: JsonMapping, arrays: dict[str, Floats], kind: Format
) -> Weights | None:
    """The network that was exported, if these are its arrays: exported again it must give them once more."""
    if kind == "hf-gpt2":  # the bias of the answers stands in the dimension that is 1 everywhere
        arrays = {**arrays, "unembed.b_U": arrays["unembed.W_U"][net.d_model + places(net)]}
    queries = folders.tensors(folder / QUERIES) if (folder / QUERIES).is_file() else None
    weights = gathered(net, arrays, about["beta"], about["kind"], queries)
    stock = kind == "hf-gpt2"
    again = (
        hf_stock.state(spread(weights, hf_stock.PENALTY))
        if stock
        else transformer_lens.state(spread(weights, hooks=True))
    )
    there = folders.tensors(folder / "model.safetensors")
    for name, array in again.items():
        near = ROUNDING[str(there[name].dtype)] if name in there else 0.0
        common = array[: len(there[name])] if name in there else array  # older folders have no row for padding
        if name not in there or not np.allclose(there[name], common, rtol=near, atol=0.0):
            return None
    return weights


def _only_ours(config: JsonMapping) -> None:
    """Refuse a GPT-2 that has something that our architecture does not have."""
    odd = []
    if config.get("activation_function", "gelu_new") != "relu":
        odd.append(f"units with {config.get('activation_function', 'gelu_new')} instead of ReLU")
    if config.get("scale_attn_by_inverse_layer_idx"):
        odd.append("scores that are divided by the number of the layer")
    if config.get("add_cross_attention"):
        odd.append("cross attention")
    if odd:
        raise FolderError(f"this GPT-2 is not of our architecture: it has {'; '.join(odd)}")


def _symbols(folder: Path, count: int) -> tuple[str, ...]:
    """The vocabulary of a model by number, from its tokenizer if there is one."""
    path = folder / "tokenizer.json"
    vocab = folders.read_json(path).get("model", {}).get("vocab", {}) if path.is_file() else {}
    names = {number: symbol for symbol, number in vocab.items()} if isinstance(vocab, dict) else {}
    return tuple(names.get(number, f"[{number}]") for number in range(count))


def _compared(
    source: Path, net: Imported, weights: Weights[SequenceArchitecture], spec: object, seed: int
) -> JsonObject:
    """Return `row`, the distance of our answers from the library's, or `note`, why there is none."""
    precision: Precision = "float64" if net.stored == "float64" else "float32"
    try:
        run: Run = LAYOUTS[net.format].runner(source, precision)
    except InputError as error:
        return {"note": f"not compared: {error}"}
    if getattr(weights.architecture, "inputs", ())[:1] == (FIRST,):  # theirs has no such symbol
        theirs = run
        run = lambda tokens: theirs(tokens - 1)  # noqa: E731
    batches: tuple[Inputs, ...] = asked(weights, spec, seed).batches
    return {"row": compared(weights, run, batches, precision)}
