"""What single families are: their nets read what they should, start stably, and are taught by the right losses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from at_once import logits
from vitrify.errors import InputError
from vitrify.learn.models.catalogue import make
from vitrify.learn.models.frozen_memories import TRAINED, recalled
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.catalogue import Example, examples
from vitrify.sandboxes.catalogue import make as make_sandbox

CHAIN = make_sandbox("in_context_markov", {"states": 3, "length": 10})
KEY = jax.random.key(3)


def started(name: str, sizes: dict[str, Any], sandbox: Any = CHAIN) -> tuple[Any, Any, dict[str, Any]]:
    """A family, its net and all its first arrays, in NumPy."""
    family = make(name, sizes)
    net = family.architecture(sandbox)
    arrays = jax.jit(lambda key: family.arrays(net, family.first(net, key)))(KEY)
    return family, net, {key: np.asarray(array) for key, array in arrays.items()}


def shapes(family: Any, net: Any) -> dict[str, Any]:
    """The shapes of all that is trained, by name."""
    found: dict[str, Any] = jax.eval_shape(lambda: family.first(net, KEY))
    return found


def tokens(count: int, seed: int = 0, length: int = 9) -> Any:
    return np.random.default_rng(seed).integers(3, size=(count, length))


def row(found: Any, **latent: Any) -> Example:
    asked = np.ones((len(found), found.shape[1] + 1), np.float32)
    return Example(found, np.zeros(asked.shape, np.int32), asked, latent)


def test_an_mlp_reads_the_last_tokens_and_no_other() -> None:
    family, net, arrays = started("mlp", {"context": 3, "d_embed": 4, "units": 8})
    given = tokens(1)
    ids = np.asarray(family.inputs(net, CHAIN, row(given)))
    seen: dict[str, Any] = {}
    before = np.asarray(net.forward(arrays, ids, record=seen.__setitem__))
    embedded = arrays["embed.W_E"][ids[0]]
    last = np.concatenate([embedded[-1], embedded[-2], embedded[-3]])
    np.testing.assert_allclose(seen["blocks.0.hook_resid_mid"][0, -1], last, atol=1e-6)
    for place in range(9):
        other = given.copy()
        other[0, place] = (other[0, place] + 1) % 3
        after = np.asarray(net.forward(arrays, np.asarray(family.inputs(net, CHAIN, row(other)))))
        changed = np.flatnonzero(np.abs(after - before).max(axis=(0, 2)) > 1e-7) - net.pads
        assert changed.tolist() == [at for at in range(place, place + 3) if at < 9]
    assert (net.pads, logits(family, net, CHAIN, arrays, row(given)).shape) == (3, (1, 10, 3))


def test_a_disentangled_transformer_is_its_definition() -> None:
    """One-hot tokens and places, heads that append what they read, and nothing else."""
    family, net, arrays = started("disentangled", {"heads": "2,1", "scale": 0.5})
    arrays["unembed.W_U"] = np.random.default_rng(0).normal(size=arrays["unembed.W_U"].shape)
    given = tokens(2)
    x = np.concatenate([np.eye(4)[given + 1], np.broadcast_to(np.eye(9), (2, 9, 9))], axis=-1)
    for block in range(2):
        read = [x]
        for matrix in arrays[f"blocks.{block}.attn.W_Q"]:
            scores = np.einsum("bix,xy,bjy->bij", x, matrix, x)
            scores = np.where(np.tri(9, dtype=bool), scores, -np.inf)
            share = np.exp(scores - scores.max(axis=-1, keepdims=True))
            read.append(share / share.sum(axis=-1, keepdims=True) @ x)
        x = np.concatenate(read, axis=-1)
    assert x.shape[-1] == 13 * 3 * 2 == net.width
    found = logits(family, net, CHAIN, arrays, row(given))
    np.testing.assert_allclose(found, x @ arrays["unembed.W_U"], atol=1e-4)
    _, _, nothing = started("disentangled", {})
    assert not any(nothing[key].any() for key in nothing if key.endswith(("W_Q", "W_U")))
    with pytest.raises(InputError, match="fewer heads, or shorter sequences"):
        make("disentangled", {"heads": "3,3,3,3,3"}).architecture(CHAIN)


def test_a_disentangled_transformer_of_distances_is_its_definition() -> None:
    """One-hot tokens, and numbers of distances in the scores of each head; they are trained, and start at zero."""
    family, net, arrays = started("disentangled", {"heads": "1,2", "scale": 0.5, "relative": "true", "pads": 1})
    trained = family.first(net, KEY)
    assert {key.split(".")[-1] for key in trained} == {"W_Q", "W_U", "b_rel"}
    assert not any(trained[key].any() for key in trained if key.endswith(("W_U", "b_rel")))
    rng = np.random.default_rng(0)
    changed = [key for key in trained if key.endswith(("W_U", "b_rel"))]
    arrays |= {key: rng.normal(size=arrays[key].shape) for key in changed}
    given = tokens(2)
    x = np.eye(4)[np.pad(given + 1, ((0, 0), (1, 0)))]
    apart = np.arange(10)[:, None] - np.arange(10)
    for block in range(2):
        read = [x]
        numbers = arrays[f"blocks.{block}.attn.b_rel"]
        for matrix, far in zip(arrays[f"blocks.{block}.attn.W_Q"], numbers, strict=True):
            scores = np.einsum("bix,xy,bjy->bij", x, matrix, x) + far[np.abs(apart)]
            share = np.where(apart >= 0, np.exp(scores), 0)
            read.append(share / share.sum(axis=-1, keepdims=True) @ x)
        x = np.concatenate(read, axis=-1)
    assert x.shape[-1] == 4 * 2 * 3 == net.width
    found = logits(family, net, CHAIN, arrays, row(given))
    np.testing.assert_allclose(found, x @ arrays["unembed.W_U"], atol=1e-4)


def test_a_one_hot_head_is_its_definition_whatever_it_trains() -> None:
    r"""$W_V Z\,\mathrm{softmax}((W_K Z)^\top W_Q Z)$ on one-hot tokens, with parts of it off."""
    documents = make_sandbox("topics", {"topics": 3, "words": 2, "tau": 1, "length": 5})
    given = np.random.default_rng(0).integers(7, size=(2, 5))  # the mask, and six words
    z = np.eye(8)[given + 1]
    for learns in ("all", "attention", "values", "embedding"):
        sizes: dict[str, Any] = {"learns": learns, "d_head": 3, "d_embed": 4, "scale": 0.7, "scores": 0.9}
        family, net, arrays = started("one_hot_head", sizes, documents)
        trained = {key.split(".")[-1] for key in shapes(family, net)}
        w_q, w_k, w_v = (arrays[f"blocks.0.attn.W_{letter}"][0] for letter in "QKV")
        if learns == "embedding":
            assert trained == {"W_E"}
            gram = arrays["embed.W_E"] @ arrays["embed.W_E"].T
            share, values = np.full((2, 5, 5), 0.2), gram[:, 2:]
        else:
            assert trained == {"W_V"} | ({"W_Q", "W_K"} if learns != "values" else set())
            scores = np.einsum("bqt,td,sd,bks->bqk", z, w_q, w_k, z)
            assert scores.any() == (learns != "values")
            share = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
            values = w_v
        found = logits(family, net, documents, arrays, row(given))
        np.testing.assert_allclose(found, share @ z @ values, atol=1e-5)
    family = make("one_hot_head", {"learns": "attention", "scores": 0.5})
    net = family.architecture(documents)
    slopes = jax.grad(lambda p: (family.logits(net, documents, family.arrays(net, p), row(given)) ** 2).sum())
    gradient = jax.jit(lambda key: slopes(family.first(net, key)))(KEY)
    assert {key.split(".")[-1]: bool(each.any()) for key, each in gradient.items()} == {
        "W_V": False,
        "W_Q": True,
        "W_K": True,
    }
    with pytest.raises(InputError, match="answers with symbols that it reads"):
        make("one_hot_head").architecture(make_sandbox("majority"))


def test_a_hierarchical_net_has_a_filter_for_each_level() -> None:
    """Nine tokens are two levels of threes, or sixteen places of which seven are empty; one question is answered."""
    net = make("hierarchical", {"s": 3, "channels": 5}).architecture(CHAIN)
    assert [size[2] for size in net.maps] == [9, 3, 1]
    family, net, arrays = started("hierarchical", {"s": 2, "channels": 5})
    assert [size[2] for size in net.maps] == [16, 8, 4, 2, 1]
    planes = np.asarray(family.inputs(net, CHAIN, row(tokens(2))))
    assert planes.shape == (2, 3, 1, 16)
    np.testing.assert_array_equal(planes[:, :, 0, :9].argmax(axis=1), tokens(2))
    assert not planes[..., 9:].any()
    assert logits(family, net, CHAIN, arrays, row(tokens(2))).shape == (2, 1, 3)


KINDS = ["elman", "lstm", "linear", "positive", "signed", "householder"]


@pytest.mark.parametrize("name", ["recurrent", "ssm"])
@pytest.mark.parametrize("kind", KINDS)
def test_states_start_such_that_they_last(name: str, kind: str) -> None:
    """Over a thousand positions a state does not burst or fade, and the first token is felt for a while."""
    sizes: dict[str, Any] = {"kind": kind, "state": 16, "d_embed": 8} if name == "recurrent" else {"kind": kind}
    sizes = sizes if name == "recurrent" else {**sizes, "state": 16, "d_model": 8, "layers": 1, "units": 8}
    long = make_sandbox("in_context_markov", {"states": 3, "length": 1001})
    _, net, arrays = started(name, sizes, long)
    given = tokens(2, length=1000) + 1
    given[1] = given[0]
    given[1, 0] = given[0, 0] % 3 + 1
    seen: dict[str, Any] = {}
    out = np.asarray(net.forward(arrays, np.pad(given, ((0, 0), (1, 0))), record=seen.__setitem__))
    states = seen["blocks.0.hook_state"]
    size = np.linalg.norm(states, axis=-1)
    assert np.isfinite(out).all()
    read = seen["blocks.0.ln1.hook_normalized"] if name == "ssm" else seen["hook_embed"]
    driven = np.linalg.norm(read @ arrays["blocks.0.rec.W_B"], axis=-1)
    kept = kind in ("linear", "householder")  # what is driven in stays, turned or in part: it may all add up
    assert 0.05 < size[:, 1:].min() <= size.max() < (1.001 * driven.sum(axis=-1).max() if kept else 100)
    felt = np.linalg.norm(states[0] - states[1], axis=-1)
    assert felt[1 + 8] > 0.02 * felt[1] > 0


def test_householder_factors_are_reflections_and_gates_begin_open() -> None:
    _, _, arrays = started("recurrent", {"kind": "householder", "state": 16, "d_embed": 8, "factors": 2})
    for factor in arrays["blocks.0.rec.W_A"]:
        np.testing.assert_allclose(np.linalg.norm(arrays["embed.W_E"] @ factor, axis=1), np.sqrt(2), rtol=1e-5)
    _, _, arrays = started("recurrent", {"kind": "householder", "state": 4, "d_embed": 8})
    assert (np.linalg.norm(arrays["embed.W_E"] @ arrays["blocks.0.rec.W_A"][0], axis=1) <= np.sqrt(2) + 1e-5).all()
    _, _, arrays = started("recurrent", {"kind": "lstm", "state": 3})
    np.testing.assert_array_equal(arrays["blocks.0.rec.b"], [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0])
    _, _, arrays = started("ssm", {"kind": "signed", "state": 5, "layers": 1})
    np.testing.assert_allclose(np.tanh(arrays["blocks.0.rec.b"]), np.linspace(0.9, 0.999, 5), rtol=1e-4)


def test_hybrids_have_cells_and_heads_in_turn() -> None:
    net = make("hybrid", {"layers": 3, "heads": 2, "d_model": 8, "units": 4, "state": 4}).architecture(CHAIN)
    assert [(block.cell is not None, len(block.heads)) for block in net.blocks] == [(True, 0), (False, 2), (True, 0)]


SMALL = {"layers": 2, "heads": 2, "d_model": 8, "units": 4, "experts": 3, "top": 2}


def losses(scores: Any, chosen: Any, task: Any) -> tuple[float, float, float]:
    """Switch balance, z and task loss of router scores [position, expert], by their formulas."""
    p = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    share = np.array([(chosen == expert).sum() for expert in range(3)]) / chosen.size
    z = np.log(np.exp(scores).sum(axis=-1))
    return 3 * float(share @ p.mean(axis=0)), float((z**2).mean()), -float(np.log(p[np.arange(len(p)), task]).mean())


@pytest.mark.parametrize("pads", [0, 3])
def test_router_losses_are_their_formulas(pads: int) -> None:
    class Tasked(type(CHAIN)):  # type: ignore[misc]
        def draw(self, key: Any) -> Example:
            found: Example = super().draw(key)
            return found._replace(latent={"task": found.tokens[0] + 2})

    sandbox = Tasked(states=3, length=10)
    sizes = {**SMALL, "pads": pads, "balance_loss": 0.5, "z_loss": 0.25, "task_loss": 2.0}
    family, net, arrays = started("experts", sizes, sandbox)
    batch = row(tokens(4), task=tokens(4)[:, 0] + 2)
    seen: dict[str, Any] = {}
    net.forward(arrays, np.asarray(family.inputs(net, sandbox, batch)), record=seen.__setitem__)
    assert set(family.watched) <= set(seen)
    wanted = 0.0
    for layer in range(2):
        from_place = max(pads - 1, 0)
        scores = np.asarray(seen[f"blocks.{layer}.moe.hook_scores"])[:, from_place:]
        chosen = np.asarray(seen[f"blocks.{layer}.moe.hook_expert"])[:, from_place:]
        task = np.repeat((batch.latent["task"] % 3)[:, None], scores.shape[1], axis=1)
        found = losses(scores.reshape(-1, 3), chosen.reshape(-1, 2), task.ravel())
        wanted += 0.5 * found[0] + 0.25 * found[1] + 2 * found[2]
    kept = {key: seen[key] for key in family.watched}
    assert float(jax.jit(family.penalty)(kept, batch)) == pytest.approx(wanted, rel=1e-4)
    with pytest.raises(InputError, match="needs examples with the latent 'task'"):
        make("experts", {**SMALL, "task_loss": 1.0}).architecture(CHAIN)


def test_shifts_move_by_their_rate_against_the_load() -> None:
    """Up by the rate below the fair share and down above it; the router loss has nothing to do with it."""
    family, net, arrays = started("experts", {**SMALL, "layers": 1, "top": 1, "shift_rate": 0.25})
    name = "blocks.0.moe.router.b_choice"
    batch, before = row(tokens(16)), np.array([0.5, 9.0, 0.0], np.float32)
    seen: dict[str, Any] = {}
    net.forward(arrays | {name: before}, np.asarray(family.inputs(net, CHAIN, batch)), record=seen.__setitem__)
    assert (seen["blocks.0.moe.hook_expert"] == 1).all()
    moved = family.moved({name: before}, seen, batch)
    assert moved.keys() == {name}
    np.testing.assert_allclose(moved[name], [0.75, 8.75, 0.25], atol=1e-6)
    assert make("experts", {**SMALL, "by": "expert"}).moved({}, seen, batch) == {}


@pytest.mark.slow
def test_what_a_family_moves_stands_instead_of_the_step_of_the_optimiser() -> None:
    """Steps of a whole program, with a large rate and decay: shifts are sums of their own steps."""
    family = make("experts", {**SMALL, "layers": 1, "top": 1, "shift_rate": 0.25})
    program = TrainingProgram(plan(CHAIN, family, Recipe(steps=2, batch=16, lr=0.1, weight_decay=0.5), {})[0])
    name, wanted, lanes = "blocks.0.moe.router.b_choice", np.zeros(3), program.begin()
    for step in range(2):
        given = {key: np.asarray(array) for key, array in lanes[0].parameters.items()}
        batch = examples(CHAIN, 0, "train", 16 * step, 16)
        seen: dict[str, Any] = {}
        family.logits(program.net, CHAIN, family.arrays(program.net, given), batch, seen.__setitem__)
        chosen = np.asarray(seen["blocks.0.moe.hook_expert"])
        load = np.array([(chosen == expert).mean() for expert in range(3)])
        lanes = program.advance(lanes, step, 1)
        wanted = wanted + 0.25 * np.sign(1 / 3 - load)
        np.testing.assert_allclose(np.asarray(lanes[0].parameters[name]), wanted, atol=1e-6)
    assert wanted.any()


def test_experts_that_are_not_working_take_no_part() -> None:
    """Two of four experts: gates, balance and tasks are those of two, whatever the others are."""
    sizes = {**SMALL, "layers": 1, "top": 1, "experts": 4, "active_experts": 0.5, "balance_loss": 1.0}
    family, net, arrays = started("experts", sizes)
    batch = row(tokens(8))

    @jax.jit
    def answers(arrays: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        seen: dict[str, Any] = {}
        return family.logits(net, CHAIN, arrays, batch, seen.__setitem__), seen

    before, seen = answers(arrays)
    scores, chosen = (np.asarray(seen[f"blocks.0.moe.hook_{name}"]) for name in ("scores", "expert"))
    assert set(chosen.ravel().tolist()) == {0, 1}
    p = np.exp(scores[..., :2]) / np.exp(scores[..., :2]).sum(axis=-1, keepdims=True)
    share = np.array([(chosen == expert).mean() for expert in range(2)])
    kept = {key: seen[key] for key in family.watched}
    assert float(jax.jit(family.penalty)(kept, batch)) == pytest.approx(
        2 * float(share @ p.mean(axis=(0, 1))), rel=1e-4
    )
    changed = {key: array + 1 if ".experts.3." in key else array for key, array in arrays.items()}
    np.testing.assert_array_equal(before, answers(changed)[0])
    with pytest.raises(InputError, match=r"leave at least 2 experts, not 0\.25"):
        make("experts", {**SMALL, "experts": 4, "active_experts": 0.25})
    with pytest.raises(InputError, match="a task_loss needs examples with the latent 'task'"):
        plan(CHAIN, make("experts", SMALL), Recipe(), {"task_loss": [0.0, 1.0]})


def test_two_attentions_are_the_two_sums_of_their_definition() -> None:
    family, net, _ = started("two_attentions", {})
    rng = np.random.default_rng(0)
    places, alike = rng.normal(size=(9, 9)), rng.normal(size=(3, 3))
    noise = rng.normal(size=(3, 9)), rng.normal(size=(12, 3))  # what is no score of a place or a token counts nothing
    trained = {
        "blocks.0.attn.W_Q": jnp.asarray(np.concatenate([noise[0], places])[None]),
        "blocks.1.attn.W_Q": jnp.asarray(np.concatenate([alike, noise[1]])[None]),
    }
    given = tokens(4)
    arrays = jax.jit(lambda trained: family.arrays(net, trained))(trained)
    said = np.asarray(logits(family, net, CHAIN, arrays, row(given)))
    for word, found in zip(given, said, strict=True):
        one = np.eye(3)[word]
        fetched = np.array([_softmax(places[i, : i + 1]) @ one[: i + 1] for i in range(9)])
        for t in range(9):
            f = _softmax(fetched[: t + 1] @ (one[t] @ alike)) @ one[: t + 1]
            np.testing.assert_allclose(found[t], np.log(f + family.epsilon), rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="answer with the symbols that they read: parity has others"):
        family.architecture(make_sandbox("parity"))


def test_ideal_memories_among_frozen_vectors_recall_all_pairs() -> None:
    """The sums of outer products of the source hold all pairs; without them, or with others, they do not."""
    _, _, arrays = started("frozen_memories", {"d_model": 256, "draw": 2})
    assert all(not arrays[name].any() for name in TRAINED)
    tokens, places = arrays["embed.W_E"][1:], arrays["pos_embed.W_pos"]
    fetched, read = tokens @ arrays["blocks.0.attn.W_V"][0], tokens @ arrays["blocks.1.attn.W_V"][0]
    ideal = {
        TRAINED[0]: places[:-1].T @ places[1:],  # score = (key W_K) . query
        TRAINED[1]: fetched.T @ tokens,
        TRAINED[2]: read.T @ arrays["unembed.W_U"].T,
    }
    asked = jnp.array([True, False, True])
    found = recalled(arrays | {name: matrix[None] for name, matrix in ideal.items()}, asked)
    assert {name: float(value) for name, value in found.items()} == {"outputs": 1, "matches": 1, "positions": 1}
    other = {TRAINED[0]: np.eye(256), TRAINED[1]: fetched[[1, 2, 0]].T @ tokens, TRAINED[2]: -ideal[TRAINED[2]]}
    found = recalled(arrays | {name: matrix[None] for name, matrix in other.items()}, asked)
    assert {name: float(value) for name, value in found.items()} == {"outputs": 0, "matches": 0, "positions": 0}
    two = {**ideal, TRAINED[0]: places[:-2].T @ places[2:]}
    held = arrays | {name: matrix[None] for name, matrix in two.items()}
    assert float(recalled(held, asked, back=2)["positions"]) == 1
    assert float(recalled(held, asked)["positions"]) < 0.2


def test_members_have_frozen_vectors_of_their_own() -> None:
    runs = train(make("frozen_memories", {"d_model": 8}), CHAIN, axes={"draw": [0, 5]}, recipe=Recipe(steps=1, batch=4))
    for run, draw in zip(runs, (0, 5), strict=True):
        _, _, arrays = started("frozen_memories", {"d_model": 8, "draw": draw})
        np.testing.assert_allclose(run.weights.arrays["embed.W_E"], arrays["embed.W_E"], atol=1e-6)


def _softmax(scores: Any) -> Any:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def test_two_attentions_of_several_heads_are_the_sums_of_their_definition() -> None:
    """Heads fetch by distance; what they fetched asks, beside the present token, for what was fetched elsewhere."""
    family, net, _ = started("two_attentions", {"heads": 2, "wide": True, "relative": True})
    rng = np.random.default_rng(1)
    distances, compared = rng.normal(size=(2, 9)), rng.normal(size=(9, 6))
    trained = {"blocks.0.attn.b_rel": jnp.asarray(distances), "blocks.1.attn.W_Q": jnp.asarray(compared[None])}
    given = tokens(3)
    arrays = jax.jit(lambda trained: family.arrays(net, trained))(trained)
    said = np.asarray(logits(family, net, CHAIN, arrays, row(given)))
    for word, found in zip(given, said, strict=True):
        one = np.eye(3)[word]
        fetched = np.array([[_softmax(d[i::-1]) @ one[: i + 1] for d in distances] for i in range(9)]).reshape(9, 6)
        for t in range(9):
            asking = np.concatenate([one[t], fetched[t]]) @ compared
            answer = _softmax(fetched[: t + 1] @ asking) @ one[: t + 1]
            np.testing.assert_allclose(found[t], np.log(answer + family.epsilon), rtol=1e-4, atol=1e-4)


def test_a_gain_multiplies_the_numbers_of_distances_only() -> None:
    sizes = {"layers": 1, "heads": 1, "d_model": 4, "units": 4, "positions": "relative"}
    _, _, plain = started("transformer", sizes)
    _, _, gained = started("transformer", sizes | {"gain": 8.0})
    for name, array in plain.items():
        np.testing.assert_array_equal(gained[name], 8 * array if name.endswith("b_rel") else array)


def test_a_bit_that_is_read_as_a_number_is_its_definition() -> None:
    """x e + p, one head, ReLU units without biases, one logit; by hand, with tied weights, without and between."""
    chain, rng = make_sandbox("markov", {"length": 6}), np.random.default_rng(0)
    bits = rng.integers(2, size=(3, 5))
    for tied in (1.0, 0.0, 0.25):
        family = make("scalar", {"d_model": 3, "units": 7, "tied": tied})
        net = family.architecture(chain)
        drawn = {name: rng.normal(size=part.shape) for name, part in shapes(family, net).items()}
        drawn["b"] = np.array(0.3)
        parameters = {name: jnp.asarray(part, jnp.float32) for name, part in drawn.items()}
        arrays = {name: np.asarray(array) for name, array in family.arrays(net, parameters).items()}
        found = net.forward(arrays, np.asarray(family.inputs(net, chain, row(bits))))
        q, k, v, o = (drawn[f"blocks.0.attn.W_{name}"][0] for name in "QKVO")
        x = bits[..., None] * drawn["e"] + drawn["pos_embed.W_pos"]
        for one, stream in enumerate(x):
            for at in range(5):
                score = stream[at] @ q @ (stream[: at + 1] @ k).T / np.sqrt(3)
                weight = np.exp(score) / np.exp(score).sum()
                y = stream[at] + weight @ stream[: at + 1] @ v @ o
                z = y + np.maximum(y @ drawn["blocks.0.mlp.W_in"], 0) @ drawn["blocks.0.mlp.W_out"]
                logit = (tied * drawn["e"] + (1 - tied) * drawn["a"]) @ z + 0.3
                np.testing.assert_allclose(found[one, at, 1] - found[one, at, 0], logit, rtol=1e-4, atol=1e-4)


def test_first_weights_of_bits_lie_beside_the_low_rank_form() -> None:
    chain = make_sandbox("markov", {"length": 40})
    plain, moved = (make("scalar", {"d_model": 16, **form}) for form in ({}, {"e": 0.5, "w": -1.0}))
    net = plain.architecture(chain)
    first, other = (jax.tree.map(np.asarray, family.first(net, KEY)) for family in (plain, moved))
    for name in ("pos_embed.W_pos", "blocks.0.attn.W_Q", "blocks.0.mlp.W_in"):
        assert abs(first[name].std() / 0.02 - 1) < 0.2
    for name in ("blocks.0.attn.W_O", "blocks.0.mlp.W_out"):
        assert abs(first[name].std() / 0.02 * np.sqrt(2) - 1) < 0.2
    alpha, share = np.full(16, 1 / 4), 1 / 4  # a unit vector; each of the 64 units has its part of the factor 4
    form: dict[str, Any] = {"e": 0.5 * alpha, "pos_embed.W_pos": np.tile(-0.25 * alpha, (39, 1)), "a": 0.0, "b": 0.0}
    form["blocks.0.mlp.W_in"], form["blocks.0.mlp.W_out"] = share * alpha[:, None], -share * alpha
    for name, array in first.items():
        np.testing.assert_allclose(other[name] - array, np.broadcast_to(form.get(name, 0.0), array.shape), atol=1e-6)


def test_only_two_symbols_are_a_bit() -> None:
    with pytest.raises(InputError, match="the sandbox must have two symbols"):
        make("scalar").architecture(CHAIN)


def test_the_low_rank_form_needs_a_unit() -> None:
    with pytest.raises(InputError, match="units"):
        make("scalar", {"units": 0})
