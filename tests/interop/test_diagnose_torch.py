"""Torch modules and Hugging Face folders on the battery; and the signs of the atlas for plain models of both kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vitrify.errors import InputError
from vitrify.interop.diagnose.battery import Budget, Diagnosis, diagnose

EXAMPLES = Path(__file__).parents[2] / "examples" / "models"
MODELS = {"jax": EXAMPLES / "in_jax.py", "torch": EXAMPLES / "in_torch.py"}
TINY = Budget(steps=20, batch=8, seeds=(0, 1), rates=(0.01,), rows=16)


@pytest.mark.parametrize("model", ["lstm", "transformer", "linear_attention"])
def test_plain_torch_modules_are_trained(model: str) -> None:
    pytest.importorskip("torch")
    found = diagnose(f"{MODELS['torch']}:{model}", tasks=["parity"], budget=TINY)
    again = diagnose(f"{MODELS['torch']}:{model}", tasks=["parity"], budget=TINY)
    assert found.learns
    assert not found.warnings
    assert max(found.trainings["parity"]["loss"]) < 0.9  # from log 3 = 1.1
    assert [cell.accuracy for cell in again.cells] == [cell.accuracy for cell in found.cells]


def test_a_module_that_needs_a_gpu_is_told_so() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("here it would run")

    def make(vocabulary: int, length: int, seed: int) -> Any:
        del length, seed
        return torch.nn.Embedding(vocabulary, vocabulary).to("cuda")

    with pytest.raises(InputError, match="needs a device that is not here"):
        diagnose(make, tasks=["parity"], budget=TINY)


def test_a_module_without_gradients_or_with_other_outputs_is_refused() -> None:
    torch = pytest.importorskip("torch")

    def frozen(vocabulary: int, length: int, seed: int) -> Any:
        del length, seed
        return torch.nn.Embedding(vocabulary, vocabulary).requires_grad_(False)

    def recurrent(vocabulary: int, length: int, seed: int) -> Any:
        del length, seed
        return torch.nn.Sequential(torch.nn.Embedding(vocabulary, 4), torch.nn.LSTM(4, vocabulary, batch_first=True))

    with pytest.raises(InputError, match="no parameters to train"):
        diagnose(frozen, tasks=["parity"], budget=TINY)
    with pytest.raises(InputError, match="must return an array of logits, and returned a tuple"):
        diagnose(recurrent, tasks=["parity"], budget=TINY)


@pytest.fixture(scope="module")
def config() -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.GPT2Config(vocab_size=50, n_positions=40, n_embd=16, n_layer=2, n_head=2)


def test_a_folder_with_weights_is_asked_in_its_own_tokens(config: Any, tmp_path: Path) -> None:
    models = pytest.importorskip("transformers").AutoModelForCausalLM
    models.from_config(config).save_pretrained(tmp_path)
    found = diagnose(str(tmp_path), budget=TINY)
    assert not found.learns
    assert {cell.task for cell in found.cells} == {"recall", "copying", "induction"}
    assert {cell.test for cell in found.cells} == {"as trained"}  # it has room for 40 tokens
    assert any("parity" in note for note in found.notes)
    assert all(cell.mean < 0.5 for cell in found.cells)
    with pytest.raises(InputError, match="the answers of parity do not follow from the text"):
        diagnose(str(tmp_path), tasks=["parity"], budget=TINY)


def test_a_folder_with_a_configuration_alone_is_an_architecture(config: Any, tmp_path: Path) -> None:
    config.save_pretrained(tmp_path)
    found = diagnose(str(tmp_path), tasks=["parity"], budget=TINY)
    assert found.learns
    assert [cell.test for cell in found.cells] == ["as trained", "twice as long"]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(InputError, match=r"must be a Hugging Face folder with a config.json"):
        diagnose(str(tmp_path), budget=TINY)


def scores(found: Diagnosis) -> dict[tuple[str, str], float]:
    return {(cell.task, cell.test): cell.mean for cell in found.cells}


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("library", ["jax", "torch"])
def test_the_signs_of_the_atlas(library: str) -> None:
    """Parity beyond the trained length: LSTM above attention. Recall and copying: softmax attention above both."""
    pytest.importorskip(library)
    state = Budget(steps=300, seeds=(0, 1), rates=(0.01,))
    looks = Budget(steps=600, seeds=(0, 1), rates=(0.002,))
    found = {}
    for name in ("lstm", "transformer", "linear_attention"):
        source = f"{MODELS[library]}:{name}"
        found[name] = scores(diagnose(source, tasks=["parity"], budget=state))
        found[name] |= scores(diagnose(source, tasks=["recall", "copying"], budget=looks))
    lstm, transformer, linear = found.values()
    far, recall, copying = ("parity", "twice as long"), ("recall", "as trained"), ("copying", "as trained")
    assert lstm[far] > 0.95
    assert lstm[far] > max(transformer[far], linear[far]) + 0.1
    assert transformer[recall] > max(lstm[recall], linear[recall]) + 0.1
    assert transformer[copying] > max(lstm[copying], linear[copying]) + 0.1
