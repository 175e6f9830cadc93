"""Arrays of heads that are mostly empty: a net that keeps them as stacks is the same net in every respect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from nets import mixed, random_arrays
from oracles import naive_transformer
from vitrify.certification.mutation_test import mutants
from vitrify.certification.precision.formats import FORMATS
from vitrify.certification.precision.rounding import bounded_logits
from vitrify.net import sparse
from vitrify.net.folder import load, save
from vitrify.net.inference import batch_logits, batch_of
from vitrify.net.sparse import OnRows, Stack, dense, from_entries, matmul, matmul_heads, nonzeros, prepare
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights


def thin(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """A third of the entries, and no entry at all in one row of three."""
    rng = np.random.default_rng(seed)
    full = rng.normal(size=shape) * (rng.random(shape) < 1 / 3)
    full[..., ::3, :] = 0
    return full


def stacked(array: np.ndarray) -> Stack:
    return Stack(len(array), csr_array(array.reshape(-1, array.shape[-1])))


def pair(net: Transformer) -> tuple[Weights, Weights]:
    """The same net twice, with dense arrays and with stacks of heads."""
    arrays = random_arrays(net, 0)
    heads = {name: thin(array.shape, len(name)) for name, array in arrays.items() if array.ndim == 3}
    return Weights(net, arrays | heads), Weights(net, arrays | {name: stacked(a) for name, a in heads.items()})


@pytest.mark.parametrize("density", [0.0, 2.0], ids=["on rows", "sparse"])
def test_products(monkeypatch: pytest.MonkeyPatch, density: float) -> None:
    monkeypatch.setattr(sparse, "DENSE_DENSITY", density)
    array = thin((3, 9, 2))
    x = np.random.default_rng(1).normal(size=(2, 4, 9))
    wanted = np.stack([x @ matrix for matrix in array], axis=-2)
    prepared = prepare(stacked(array))
    assert isinstance(prepared, OnRows)
    assert sparse.is_sparse(prepared.block) == (density > 1)
    np.testing.assert_allclose(matmul(x, stacked(array)), wanted, atol=1e-12)
    np.testing.assert_allclose(matmul(x, prepared), wanted, atol=1e-12)
    z = np.random.default_rng(2).normal(size=(2, 4, 3, 9))
    for form in (array, stacked(array)):
        np.testing.assert_allclose(matmul_heads(z, form), np.einsum("abhi,hio->abo", z, array), atol=1e-12)


def test_entries_become_a_stack_only_where_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns, values = np.array([7, 7, 2, 4]), np.array([1, 1, 0, 1]), np.array([1.0, 2.0, 5.0, 0.0])
    wanted = np.zeros((2, 6, 3))
    wanted[1, 1, 1], wanted[0, 2, 0] = 3.0, 5.0
    assert isinstance(from_entries(rows, columns, values, (2, 6, 3)), np.ndarray)
    monkeypatch.setattr(sparse, "DENSE_ENTRIES", 0)
    assert isinstance(from_entries(rows, columns, values, (2, 6, 3)), np.ndarray)
    monkeypatch.setattr(sparse, "DENSE_DENSITY", 1.0)
    stack = from_entries(rows, columns, values, (2, 6, 3))
    assert isinstance(stack, Stack)
    assert (stack.shape, nonzeros(stack), len(stack.data)) == ((2, 6, 3), 2, 2)
    np.testing.assert_array_equal(dense(stack), wanted)
    np.testing.assert_array_equal(stack[1].toarray(), wanted[1])


@pytest.mark.parametrize("residual", ["add", "concatenate"])
def test_the_net_computes_the_same(residual: str) -> None:
    full, thinned = pair(mixed(residual=residual))
    tokens, lengths = batch_of(full.architecture, [[1, 2, 3, 1], [3, 3, 2, 1]])
    found = batch_logits(thinned, tokens, lengths)
    np.testing.assert_allclose(found, batch_logits(full, tokens, lengths), atol=1e-12)
    slowly = naive_transformer.logits_of_batch(thinned.architecture, thinned.arrays, tokens.tolist(), lengths.tolist())
    np.testing.assert_allclose(found, slowly, atol=1e-9)
    assert thinned.sizes == full.sizes


def test_bounds_on_rounding_are_the_same() -> None:
    full, thinned = pair(mixed())
    tokens, _ = batch_of(full.architecture, [[1, 2, 3, 1]])
    for one, other in zip(*(bounded_logits(net, tokens, FORMATS["float32"]) for net in (thinned, full)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_mutations_are_the_same() -> None:
    full, thinned = pair(mixed())
    for one, other in zip(mutants(full, 300, seed=0), mutants(thinned, 300, seed=0), strict=True):
        assert one.what == other.what
        name = one.what.split("[")[0]
        np.testing.assert_array_equal(dense(other.weights.arrays[name]), one.weights.arrays[name])


def test_folders_keep_stacks_to_the_byte(tmp_path: Path) -> None:
    _, thinned = pair(mixed())
    for name in ("one", "other"):
        save(thinned, tmp_path / name)
    assert len({(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "other")}) == 1
    again = load(tmp_path / "one")
    assert again.digest == thinned.digest
    assert isinstance(again.arrays["blocks.0.attn.W_V"], Stack)
    assert again.arrays["blocks.0.attn.W_V"].shape == thinned.arrays["blocks.0.attn.W_V"].shape
    changed = thinned.arrays["blocks.0.attn.W_V"].copy()
    changed.data[0] += 1
    assert thinned.with_array("blocks.0.attn.W_V", changed).digest != thinned.digest


def test_a_stack_has_a_type_of_numbers_as_an_array_has() -> None:
    stack = stacked(thin((3, 9, 2)))
    assert stack.dtype == np.float64
    single = stack.astype(np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(dense(single), dense(stack).astype(np.float32))
