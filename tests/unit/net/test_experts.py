"""Mixtures of experts: the forward pass against the definition, one number at a time, under NumPy and JAX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

from cases import each
from nets import LETTERS, random_arrays, random_net
from oracles import naive_transformer
from vitrify.certification import net_check
from vitrify.errors import FolderError, InputError
from vitrify.net.architecture import Output, from_json, to_json
from vitrify.net.experts import Expert, Gate
from vitrify.net.folder import load, save
from vitrify.net.inference import trace
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights

EXPERTS = (
    Expert((0, 1, 2, 3, 4), 3, (4, 0)),
    Expert((3, 1), 2, (1, 2, 3)),
    Expert((2,), 1, (0,)),
    Expert((4, 0), 4, (2,)),
)

WHOLE = (Expert((0, 1, 2, 3, 4), 3, (0, 1, 2, 3, 4)), Expert((1, 0, 2, 4, 3), 3, (2, 1, 0, 3, 4)))


def moe(**changes: Any) -> Transformer:
    """Two blocks: experts beside an MLP with a hidden router, and experts alone with a linear one."""
    fields: dict[str, Any] = {
        "inputs": LETTERS,
        "output": Output("class", ("x", "y", "z")),
        "max_length": 6,
        "d_model": 5,
        "blocks": (
            Block((Head(),), d_head=2, d_value=3, units=4, experts=EXPERTS, router=3, d_out=5),
            Block(experts=EXPERTS[:2], d_out=5),
        ),
    }
    return Transformer(**{**fields, **changes})


NETS = {
    "adding": moe(),
    "concatenating": moe(residual="concatenate"),
    "with norms": moe(norm=True, eps=1e-3),
    "one expert": moe(blocks=(Block(experts=EXPERTS[:1]),)),
    "gates over all": moe(blocks=(Block(experts=EXPERTS, router=2, gate=Gate(2)), Block(experts=EXPERTS, gate=Gate()))),
    "the whole stream": moe(blocks=(Block(experts=WHOLE), Block(experts=WHOLE, gate=Gate(2)))),
    "alike": moe(blocks=(Block(experts=WHOLE[:1] * 3, gate=Gate(2)), Block(experts=WHOLE[:1] * 2, gate=Gate()))),
    "gates over the chosen": moe(blocks=(Block(experts=EXPERTS, units=2, gate=Gate(3, "chosen")),)),
}
TOKENS = np.random.default_rng(5).integers(1, 4, size=(6, 7))
TOKENS[:, 0] = 0


@each("name", NETS)
def test_the_forward_pass_is_the_definition(name: str) -> None:
    net = NETS[name]
    chosen: set[int] = set()
    for seed in range(8):
        arrays = random_arrays(net, seed)
        got = net.forward(arrays, TOKENS, record=lambda key, value: _note(chosen, key, value))
        wanted = [naive_transformer.logits(net, arrays, row) for row in TOKENS.tolist()]
        np.testing.assert_allclose(got, wanted, atol=1e-10)
    assert len(chosen) == len(net.blocks[0].experts)  # all of them worked


def _note(chosen: set[int], key: str, value: Any) -> None:
    if key == "blocks.0.moe.hook_expert":
        chosen.update(value.ravel().tolist())


@pytest.mark.parametrize("name", NETS)
def test_jax_gives_the_same(name: str) -> None:
    net, arrays = NETS[name], random_arrays(NETS[name], 1)
    with jax.enable_x64(True):
        compiled = jax.jit(forward, static_argnums=0)
        got = compiled(net, {key: jnp.asarray(array) for key, array in arrays.items()}, jnp.asarray(TOKENS))
        np.testing.assert_allclose(np.asarray(got), net.forward(arrays, TOKENS), atol=1e-10)


def test_sparse_arrays_give_the_same() -> None:
    net, arrays = NETS["adding"], random_arrays(NETS["adding"], 2)
    thin = {
        key: csr_array(a) if a.ndim == 2 and a.size and ("W_in" in key or "W_out" in key) else a
        for key, a in arrays.items()
    }
    np.testing.assert_allclose(net.forward(thin, TOKENS), net.forward(arrays, TOKENS), atol=1e-12)


def test_of_equal_scores_the_first_wins() -> None:
    net = moe(blocks=(Block(experts=EXPERTS[:2]),))
    arrays = random_arrays(net, 3)
    arrays["blocks.0.moe.router.W_out"][:] = 0
    arrays["blocks.0.moe.router.b_out"][:] = 1
    seen: dict[str, Any] = {}
    net.forward(arrays, TOKENS, record=seen.__setitem__)
    assert not seen["blocks.0.moe.hook_expert"].any()
    arrays["blocks.0.moe.router.b_out"][1] = 2
    net.forward(arrays, TOKENS, record=seen.__setitem__)
    assert (seen["blocks.0.moe.hook_expert"] == 1).all()


def test_of_equal_scores_the_first_get_gates() -> None:
    net = moe(blocks=(Block(experts=EXPERTS, gate=Gate(2)),))
    arrays = random_arrays(net, 3)
    for name in ("W_out", "b_out", "b_choice"):
        arrays[f"blocks.0.moe.router.{name}"][:] = 0
    seen: dict[str, Any] = {}
    net.forward(arrays, TOKENS, record=seen.__setitem__)
    assert (seen["blocks.0.moe.hook_gates"] == [0.25, 0.25, 0, 0]).all()
    assert (seen["blocks.0.moe.hook_expert"] == [0, 1]).all()


def test_activations_are_recorded() -> None:
    seen = trace(random_net(NETS["adding"]), ["a", "b"])
    assert seen["blocks.0.moe.hook_scores"].shape == (3, 4)
    assert seen["blocks.0.moe.router.hook_post"].shape == (3, 3)
    assert seen["blocks.0.moe.hook_expert"].shape == (3, 1)
    assert seen["blocks.0.hook_moe_out"].shape == (3, 5)
    assert "blocks.1.moe.router.hook_post" not in seen.activations
    np.testing.assert_array_equal(
        seen["blocks.0.moe.hook_scores"].argmax(axis=-1), seen["blocks.0.moe.hook_expert"][:, 0]
    )
    total = seen["blocks.0.hook_resid_mid"] + seen["blocks.0.hook_mlp_out"] + seen["blocks.0.hook_moe_out"]
    np.testing.assert_allclose(total, seen["blocks.0.hook_resid_post"])


def test_sizes_and_shapes() -> None:
    net = NETS["adding"]
    shapes = net.shapes()
    assert shapes["blocks.0.moe.router.W_in"] == (5, 3)
    assert shapes["blocks.0.moe.router.W_out"] == (3, 4)
    assert shapes["blocks.1.moe.router.W_out"] == (5, 2)
    assert "blocks.1.moe.router.W_in" not in shapes
    assert shapes["blocks.0.moe.experts.1.W_in"] == (2, 2)
    assert shapes["blocks.0.moe.experts.1.W_out"] == (2, 3)
    assert random_net(net).sizes.units_per_layer == (4 + 3 + 3 + 2 + 1 + 4, 3 + 2)
    assert NETS["concatenating"].widths == (5, 10, 20, 20, 25)


def test_a_net_with_experts_survives_its_folder(tmp_path: Path) -> None:
    for name, net in NETS.items():
        assert from_json(to_json(net)) == net
        weights = random_net(net)
        save(weights, tmp_path / name)
        assert load(tmp_path / name).digest == weights.digest


def test_only_nets_with_gates_tell_of_them() -> None:
    """Digests of nets from before there were gates are what they were; those with gates differ by them."""
    assert repr(Block()) == ("Block(heads=(), d_head=0, d_value=0, units=0, d_out=0, experts=(), router=0, cell=None)")
    digests = set()
    assert repr(Gate(2, "chosen")) == "Gate(top=2, over='chosen')"
    for gate in (Gate(), Gate(2), Gate(2, "chosen"), Gate(by="expert")):
        net = moe(blocks=(Block(experts=EXPERTS, gate=gate),))
        digests.add(Weights(net, random_arrays(net, 0)).digest)
    assert len(digests) == 4
    with pytest.raises(FolderError, match="activates 1 to 2 experts, not 3"):
        Block(experts=EXPERTS[:2], gate=Gate(3))


def chosen_rows(scores: Any, room: int) -> Any:
    """Gates [row, position, expert] where experts choose, one number at a time: of equal ones the first row wins."""
    found = np.zeros_like(scores)
    for place in range(scores.shape[1]):
        shares = [
            [np.exp(s) / np.exp(scores[row, place]).sum() for s in scores[row, place]] for row in range(len(scores))
        ]
        for expert in range(scores.shape[2]):
            order = sorted(range(len(scores)), key=lambda row: (-shares[row][expert], row))
            for row in order[:room]:
                found[row, place, expert] = shares[row][expert]
    return found


@pytest.mark.parametrize(("top", "room"), [(1, 2), (2, 3)])
def test_experts_choose_the_rows_that_they_are_best_for(top: int, room: int) -> None:
    """Each of 4 experts takes as many of 6 rows at each position, under NumPy and JAX, and no later token counts."""
    net = moe(blocks=(Block((Head(),), d_head=2, d_value=3, experts=EXPERTS, gate=Gate(top, by="expert")),))
    assert "blocks.0.moe.router.b_choice" not in net.shapes()
    arrays = random_arrays(net, 6)
    seen: dict[str, Any] = {}
    said = net.forward(arrays, TOKENS, record=seen.__setitem__)
    gates = seen["blocks.0.moe.hook_gates"]
    np.testing.assert_allclose(gates, chosen_rows(seen["blocks.0.moe.hook_scores"], room), atol=1e-12)
    assert ((gates > 0).sum(axis=0) == room).all()
    assert len(set((gates > 0).sum(axis=-1).ravel().tolist())) > 1  # some rows have more experts than others
    x = seen["blocks.0.hook_resid_mid"]
    out = sum(gates[..., e, None] * written(arrays, e, x) for e in range(4))
    np.testing.assert_allclose(seen["blocks.0.hook_moe_out"], out, atol=1e-10)
    with jax.enable_x64(True):
        given = {key: jnp.asarray(array) for key, array in arrays.items()}
        got = jax.jit(forward, static_argnums=0)(net, given, jnp.asarray(TOKENS))
        np.testing.assert_allclose(np.asarray(got), said, atol=1e-10)
    later = TOKENS.copy()
    later[:, 4:] = TOKENS[::-1, 4:]
    np.testing.assert_allclose(net.forward(arrays, later)[:, :4], said[:, :4], atol=1e-12)
    assert np.abs(net.forward(arrays, TOKENS[:3]) - said[:3]).max() > 1e-3  # rows beside a row do count
    with pytest.raises(InputError, match="nothing can be certified"):
        net_check(net, None)
    with pytest.raises(FolderError, match="gates must be over all experts"):
        Gate(2, "chosen", "expert")


def written(arrays: Any, number: int, x: Any) -> Any:
    """What an expert writes at every position, by its definition."""
    expert, name = EXPERTS[number], f"blocks.0.moe.experts.{number}"
    hidden = np.maximum(x[..., list(expert.reads)] @ arrays[f"{name}.W_in"] + arrays[f"{name}.b_in"], 0)
    out = np.zeros((*x.shape[:-1], 5))
    out[..., list(expert.writes)] = hidden @ arrays[f"{name}.W_out"] + arrays[f"{name}.b_out"]
    return out


def test_gates_of_equal_rows_go_to_the_first() -> None:
    net = moe(blocks=(Block(experts=EXPERTS, gate=Gate(by="expert")),))
    arrays = random_arrays(net, 3)
    for name in ("W_out", "b_out"):
        arrays[f"blocks.0.moe.router.{name}"][:] = 0
    seen: dict[str, Any] = {}
    net.forward(arrays, TOKENS, record=seen.__setitem__)
    assert (seen["blocks.0.moe.hook_gates"][:2] == 0.25).all()
    assert not seen["blocks.0.moe.hook_gates"][2:].any()


def test_a_shift_decides_who_works_and_gates_carry_gradients() -> None:
    """With a shift of the choice the gates are those of the scores, and the scores have slopes, the shift none."""
    net = NETS["gates over all"]
    arrays = random_arrays(net, 4)
    arrays["blocks.0.moe.router.b_choice"] = np.array([0.0, 0.0, 99.0, 0.0])
    seen: dict[str, Any] = {}
    net.forward(arrays, TOKENS, record=seen.__setitem__)
    assert (seen["blocks.0.moe.hook_expert"][..., 0] == 2).all()
    scores, gates = seen["blocks.0.moe.hook_scores"], seen["blocks.0.moe.hook_gates"]
    share = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(gates[gates > 0], share[gates > 0])
    assert ((gates > 0).sum(axis=-1) == 2).all()
    with jax.enable_x64(True):
        given = {key: jnp.asarray(array) for key, array in arrays.items()}
        slope = jax.jit(jax.grad(lambda a: net.forward(a, jnp.asarray(TOKENS)).var()))(given)
    assert np.abs(slope["blocks.0.moe.router.W_out"]).max() > 0
    assert np.abs(slope["blocks.1.moe.router.W_out"]).max() > 0
    assert not np.asarray(slope["blocks.0.moe.router.b_choice"]).any()
