"""Every program example in TransformerLens: text in, our answers and our attention patterns out, heads with names."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rasp_examples import EXAMPLES, MEANS
from vitrify.constructions.catalogue import build
from vitrify.interop.equality import asked
from vitrify.interop.export import export
from vitrify.net.folder import save
from vitrify.spec.programs.program import Program

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
WITHIN = 1e-5
NAMES = sorted(MEANS)


def exported(name: str, folder: Path) -> tuple[Any, Any, Any]:
    """The model in TransformerLens, our network and its program."""
    for module in ("torch", "transformer_lens"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'vitrify[interop]' runs the tests of exports")
    from vitrify.interop.lens_loading import load

    spec = Program.read(EXAMPLES / f"{name}.rasp")
    net = build(spec)
    save(net, folder / "net", spec)
    export(folder / "net", "transformer-lens", folder / "out", precision="float64")  # compares float32, too
    return load(folder / "out"), net, spec


@pytest.mark.parametrize("name", NAMES)
def test_a_program_opens_in_transformer_lens_with_words_labels_and_our_patterns(name: str, tmp_path: Path) -> None:
    import torch

    model, net, spec = exported(name, tmp_path)
    words = [row[1:] for batch in asked(net, spec).batches for row in batch[:: max(1, len(batch) // 8)]]
    for word in words:
        symbols = [net.architecture.inputs[at] for at in word]
        text = " ".join(symbols)
        assert model.to_str_tokens(text) == [net.architecture.inputs[0], *symbols]
        ours: dict[str, Any] = {}
        row = np.concatenate([[0], word])[None]
        logits = net.architecture.forward(net.prepared, row, record=ours.__setitem__)
        found, cache = model.run_with_cache(text)
        np.testing.assert_allclose(found.detach().numpy(), logits, atol=WITHIN * max(1.0, np.abs(logits).max()))
        for key in (key for key in ours if key.endswith("attn.hook_pattern")):
            pattern = cache[key].detach().numpy()[:, : ours[key].shape[1]]
            np.testing.assert_allclose(pattern, ours[key], atol=WITHIN, err_msg=f"{key} of {text}")
        if len(word):
            answers = [model.output_symbols[at] for at in found[0, 1:].argmax(-1)]
            assert answers == [*map(str, spec(symbols))]
    heads = {f"L{head.block}H{head.index}": head.name for head in net.labels.heads}
    assert model.head_labels == heads
    assert all(names in heads for names in model.head_labels)
    loss = model(" ".join(spec.alphabet[:2])).square().sum()
    loss.backward()  # rows that see nothing have no NaN
    assert all(torch.isfinite(each.grad).all() for each in model.parameters() if each.grad is not None)


def test_masks_of_single_heads_stay_when_hooks_are_reset(tmp_path: Path) -> None:
    model, net, _ = exported("sort_by_frequency", tmp_path)
    strict = [h for b in net.architecture.blocks for h in b.heads if h.mask == "strict"]
    assert strict
    before = model("a b b c")
    model.reset_hooks()
    assert np.array_equal(before.detach().numpy(), model("a b b c").detach().numpy())
    model.reset_hooks(including_permanent=True)
    assert not np.allclose(before.detach().numpy(), model("a b b c").detach().numpy(), atol=1e-3)


def test_nnsight_reads_and_changes_activations_of_the_torch_module(tmp_path: Path) -> None:
    """Skipped where nnsight is missing; the hooks that it uses are tested for every architecture."""
    nnsight = pytest.importorskip("nnsight", reason="nnsight is not installed: pip install nnsight runs this test")
    import torch

    from vitrify.interop import torch_folder
    from vitrify.interop.torch_module import load

    net = build(Program.read(EXAMPLES / "reverse.rasp"))
    torch_folder.write(net, tmp_path, "float64")
    model = nnsight.NNsight(load(tmp_path))
    tokens = torch.tensor([[0, 1, 2, 3]])
    ours: dict[str, Any] = {}
    logits = net.architecture.forward(net.prepared, tokens.numpy(), record=ours.__setitem__)
    with model.trace(tokens):
        pattern = getattr(model.blocks, "2").attn.hook_pattern.output.save()
        found = model.output.save()
    np.testing.assert_allclose(pattern.detach().numpy(), ours["blocks.2.attn.hook_pattern"], atol=1e-12)
    np.testing.assert_allclose(found.detach().numpy(), logits, atol=1e-9)
    with model.trace(tokens):
        getattr(model.blocks, "2").attn.hook_pattern.output[:] = 0
        changed = model.output.save()
    assert (changed - found).abs().max() > 0.1
