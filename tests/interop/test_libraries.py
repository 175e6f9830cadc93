"""Exports in the libraries themselves: the same answers as our forward pass, the same activations by name, and back.

These tests need the extra `interop`; without a library its tests are skipped with a sentence that says so.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from exported import AHEAD, HOOKED, NETS, UNIFORM, net, saved
from vitrify.interop import huggingface
from vitrify.interop.equality import asked, compared
from vitrify.interop.export import Target, export
from vitrify.interop.imports import import_folder
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell, CellKind
from vitrify.net.experts import Expert, Gate
from vitrify.net.folder import load
from vitrify.net.recurrent import Recurrent
from vitrify.net.transformer import AttentionKind, Block, Head, Mask, Ties, Transformer
from vitrify.net.weights import Weights

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # what libraries warn of is their business
WITHIN = 1e-5  # of our own forward pass in float32, absolute
TOKENS = [name for name in NETS if net(name)[0].architecture.reads == "tokens"]
CASES: dict[Target, list[str]] = {
    "torch": list(NETS),
    "hf": TOKENS,
    "transformer-lens": [*UNIFORM, *HOOKED],
    "onnx": list(NETS),
}
LIBRARY: dict[Target, str] = {
    "torch": "torch",
    "hf": "transformers",
    "transformer-lens": "transformer_lens",
    "onnx": "onnxruntime",
}


def needs(*modules: str) -> None:
    """Skip a test where a library is missing."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'vitrify[interop]' runs the tests of exports")


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")


@pytest.mark.parametrize(("target", "name"), [(target, name) for target in CASES for name in CASES[target]])
def test_it_says_the_same_and_comes_back(target: Target, name: str, tmp_path: Path) -> None:
    needs("torch", LIBRARY[target])
    weights, _ = net(name)
    source = saved(name, tmp_path / "net")
    found = export(source, target, tmp_path / "out").equality
    own = next(row for row in found.rows if row.precision == "float32")
    assert own.difference <= WITHIN
    assert own.absolute <= WITHIN
    assert all(row.difference <= 1e-12 for row in found.rows if row.precision == "float64")
    assert len(found.rows) == 2 or (target, name) == ("onnx", "images")  # onnxruntime convolves float32 only
    if target == "hf":
        stock = name in UNIFORM and name not in (*AHEAD, "induction")  # whose large numbers rounding of means moves
        assert found.layout == ("GPT-2" if stock else "custom code")
    if len(found.rows) == 2:
        export(source, target, tmp_path / "out", precision="float64")
        back = import_folder(tmp_path / "out", tmp_path / "back")
        assert back.whole
        assert back.row is not None
        assert back.row.small
        assert load(tmp_path / "back").digest == weights.digest


@pytest.mark.parametrize("name", [name for name in NETS if name != "images"])
def test_every_activation_has_its_name_in_the_torch_module(name: str, tmp_path: Path) -> None:
    needs("torch")
    import torch

    from vitrify.interop import torch_folder
    from vitrify.interop.torch_module import load as load_module

    weights, spec = net(name)
    torch_folder.write(weights, tmp_path, "float64")
    model = load_module(tmp_path)
    inputs = asked(weights, spec).batches[-1][:3]
    ours: dict[str, Any] = {}
    logits = weights.architecture.forward(weights.prepared, inputs, record=ours.__setitem__)
    theirs, cache = model.run_with_cache(torch.from_numpy(inputs))
    assert list(cache) == [key for key in model.hook_names if key in cache]
    assert set(cache) == set(ours)
    for key, value in cache.items():
        wanted = np.concatenate(ours[key], axis=-1) if isinstance(ours[key], list) else ours[key]
        np.testing.assert_allclose(value.detach().numpy(), np.broadcast_to(wanted, value.shape), atol=1e-9, err_msg=key)
    np.testing.assert_allclose(theirs.detach().numpy(), logits, atol=1e-9)
    changed = model.run_with_hooks(torch.from_numpy(inputs), {"hook_logits": lambda x: x + 1.0})
    np.testing.assert_allclose(changed.detach().numpy(), np.asarray(logits) + 1, atol=1e-9)


def of_random_numbers() -> dict[str, Any]:
    """Small nets with every kind of head, cell, gate and norm."""
    output, inputs = Output("class", ("x", "y", "z")), ("<s>", "a", "b")
    nets: dict[str, Any] = {}
    for kind in get_args(CellKind):
        cell = Cell(kind, 4, factors=2 * (kind == "householder"))
        nets[f"{kind} cell"] = Recurrent(inputs, output, 6, 3, cell, units=5, d_out=3)
        nets[f"{kind} cell in a block"] = Transformer(inputs, output, 6, 7, (Block(cell=cell),))
    for attention in get_args(AttentionKind):
        for mask in get_args(Mask):
            heads = tuple(Head(attention, mask, ties=ties, resolution=0.5) for ties in get_args(Ties))
            block = Block((*heads, Head(attention, window=2)), 2, 3, 4)
            nets[f"{attention}, {mask}"] = Transformer(inputs, output, 6, 7, (block,), loops=2, norm=True, eps=1e-5)
    nets["rotary"] = Transformer(inputs, output, 6, 7, (Block((Head(rotary=50.0),), 4, 2),))
    parts = Block((Head(),) * 2, 2, 2, units=3, d_out=3)
    nets["a stream of parts"] = Transformer(inputs, output, 6, 7, (parts,) * 2, residual="concatenate", norm=True)
    experts = (Expert((0, 1, 2), 4, (3, 4)), Expert((6, 2), 2, (0,)), Expert((1, 5), 3, (5, 6, 1)))
    gates = [None, *(Gate(2, over) for over in ("all", "chosen")), Gate(1, by="expert")]
    for gate in gates:
        nets[f"experts, {gate}"] = Transformer(inputs, output, 6, 7, (Block(experts=experts, router=4, gate=gate),))
    return nets


@pytest.mark.parametrize("name", of_random_numbers())
def test_every_kind_of_part_says_what_ours_says(name: str, tmp_path: Path) -> None:
    needs("torch", "onnx", "onnxruntime")
    from vitrify.interop import onnx, torch_folder

    first = of_random_numbers()[name]
    rng = np.random.default_rng(0)
    weights = Weights(first, {name: rng.normal(size=shape) for name, shape in first.shapes().items()})
    tokens = rng.integers(0, 3, size=(9, 7))
    for layout in (torch_folder, onnx):
        if layout.refusal(weights):
            assert name == "experts, Gate(top=1, over='all', by='expert')"
            continue
        layout.write(weights, tmp_path, "float64")
        assert compared(weights, layout.runner(tmp_path, "float64"), [tokens], "float64").small


@pytest.mark.parametrize("name", [*UNIFORM, *HOOKED])
def test_hooks_of_transformer_lens_return_our_attention_patterns(name: str, tmp_path: Path) -> None:
    needs("torch", "transformer_lens")
    import torch

    from vitrify.interop.lens_loading import load as load_lens

    weights, spec = net(name)
    source = saved(name, tmp_path / "net")
    export(source, "transformer-lens", tmp_path / "out", precision="float64")
    model = load_lens(tmp_path / "out")
    inputs = asked(weights, spec).batches[-1][:3]
    ours: dict[str, Any] = {}
    logits = np.asarray(weights.architecture.forward(weights.prepared, inputs, record=ours.__setitem__))
    tokens = torch.from_numpy(inputs)
    _, cache = model.run_with_cache(tokens)
    patterns = [key for key in ours if key.endswith("attn.hook_pattern")]
    assert patterns
    for key in patterns:
        own = cache[key].numpy()[:, : ours[key].shape[1]]  # heads that a block lacks are added behind its own
        np.testing.assert_allclose(own, ours[key], atol=1e-9, err_msg=key)
    streams = [key for key in ours if "hook_resid" in key and (key in cache or not key.endswith("mid"))]
    for key in streams:
        own = cache[key].numpy()[..., : ours[key].shape[-1]]
        np.testing.assert_allclose(own, ours[key], atol=1e-9, err_msg=key)
    blind = [(key, lambda pattern, hook: 0 * pattern) for key in patterns]  # noqa: ARG005
    blinded = model.run_with_hooks(tokens, fwd_hooks=blind)
    assert np.abs(blinded.detach().numpy() - logits).max() > 1e-3  # the net needs its heads


USE = """
import json, sys, torch, warnings
warnings.simplefilter("error")
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline
from transformers.utils import logging
told = []
logging.get_logger("transformers").handlers.clear()
logging.get_logger("transformers").addHandler(type("Told", (__import__("logging").Handler,), {
    "emit": lambda self, record: told.append(record.getMessage())})())
folder, trust = sys.argv[1], sys.argv[2] == "custom code"
model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=trust)
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust)
given = tokenizer(sys.argv[3], return_tensors="pt", return_token_type_ids=False)
chances = torch.softmax(model(**given).logits[0, -1].double(), -1).tolist()
written = model.generate(**given, do_sample=False, max_new_tokens=3)[0]
model.save_pretrained(sys.argv[4])
alone = model.generate(given.input_ids, do_sample=False, max_new_tokens=3)[0]  # without a mask
assert alone.tolist() == written.tolist(), (alone, written)
words = sys.argv[3].split()
batch = tokenizer([" ".join(words), words[0]], padding=True, return_tensors="pt", return_token_type_ids=False)
short = model(**tokenizer(words[0], return_tensors="pt", return_token_type_ids=False)).logits[0, -1]
end = len(tokenizer(words[0]).input_ids) - 1
assert torch.allclose(model(**batch).logits[1, end], short, atol=1e-4)
piped = pipeline("text-generation", model=model, tokenizer=tokenizer)(sys.argv[3], max_new_tokens=3, do_sample=False)
assert piped[0]["generated_text"].split()[:2] == words, piped
told = [text for text in told if "mask" in text or "pad" in text]
print(json.dumps([given.input_ids.tolist(), chances, tokenizer.decode(written), type(model).__name__, told]))
"""


@pytest.mark.parametrize("name", ["n-gram, softmax", "n-gram, hard attention"])
def test_hugging_face_loads_the_folder_offline_and_generates(name: str, tmp_path: Path) -> None:
    needs("torch", "transformers")
    weights, _ = net(name)
    first = weights.architecture
    found = export(saved(name, tmp_path / "net"), "hf", tmp_path / "out").equality
    words = [first.inputs[2], first.inputs[1]]
    variables = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", USE, str(tmp_path / "out"), found.layout, " ".join(words), str(tmp_path / "again")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ids, chances, text, kind, told = json.loads(done.stdout)
    assert not told  # of a missing mask, or of a missing symbol for padding
    assert kind == ("GPT2LMHeadModel" if found.layout == "GPT-2" else "VitrifyForCausalLM")
    assert ids == [[0, 2, 1]]
    right = np.asarray(first.forward(weights.prepared, np.array(ids)))[0, -1]
    wanted = np.exp(right - right.max()) / np.exp(right - right.max()).sum()
    symbols = huggingface.vocabulary(first)
    by_name = dict(zip(symbols, chances, strict=True))
    np.testing.assert_allclose([by_name[symbol] for symbol in first.output.symbols], wanted, atol=1e-6)
    assert by_name[first.inputs[0]] == by_name[huggingface.PAD] == 0
    assert text.split()[:3] == [first.inputs[0], *words]
    back = import_folder(tmp_path / "again", tmp_path / "back")  # saved by the library, without what stood beside it
    assert back.whole
    assert back.row is not None
    assert back.row.small


def test_a_gpt2_with_relu_units_that_we_never_saw_is_read(tmp_path: Path) -> None:
    needs("torch", "transformers")
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    sizes = {"vocab_size": 11, "n_positions": 9, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_inner": 7}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    model = GPT2LMHeadModel(GPT2Config(**sizes, **ends, activation_function="relu"))
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3)
    model.save_pretrained(tmp_path / "gpt2")
    back = import_folder(tmp_path / "gpt2", tmp_path / "back")
    assert not back.whole
    assert back.row is not None
    assert back.row.absolute <= WITHIN
    other = GPT2LMHeadModel(GPT2Config(**sizes, **ends))
    other.save_pretrained(tmp_path / "other")
    with pytest.raises(Exception, match="gelu_new instead of ReLU"):
        import_folder(tmp_path / "other", tmp_path / "back")


def test_a_trained_run_goes_out_and_comes_back(tmp_path: Path) -> None:
    needs("torch", "transformer_lens", "transformers", "onnxruntime")
    import vitrify as v
    from vitrify.learn.experiment import in_words
    from vitrify.learn.store import RunStore
    from vitrify.learn.train import train_groups

    store = RunStore(tmp_path / "runs")
    words = ["steps=20", "d_model=8", "heads=2", "layers=1", "units=8"]
    (record,) = train_groups(in_words("markov", "transformer", words).groups(), store)
    run = store.path / record.id
    for target in CASES:
        found = export(run, target, tmp_path / "out").equality
        assert next(row for row in found.rows if row.precision == "float32").absolute <= WITHIN
        back = import_folder(tmp_path / "out", tmp_path / "back")
        assert back.whole
        assert load(tmp_path / "back").digest == v.load(run).digest == v.load(tmp_path / "out").digest


def test_graphs_take_any_batch_and_any_length(tmp_path: Path) -> None:
    needs("torch", "onnx", "onnxruntime")
    import onnx as library

    from vitrify.interop import onnx

    for name in ("n-gram, softmax", "LSTM", "mixture of experts"):
        weights, _ = net(name)
        onnx.write(weights, tmp_path, "float32")
        run = onnx.runner(tmp_path, "float32")
        first = weights.architecture
        for rows, length in ((1, first.pads + 1), (5, first.pads + first.max_length)):
            tokens = np.ones((rows, length), np.int64)
            tokens[:, : first.pads] = 0
            assert compared(weights, run, [tokens], "float32").small
        model = library.load(str(tmp_path / onnx.MODEL))
        assert model.opset_import[0].version == onnx.OPSET
        library.checker.check_model(model)
