"""What every family of models owes: gradients for all that it trains, and a net that is one of ours when it is done."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
import pytest

from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.learn.models.catalogue import Family, kind_of, make, names
from vitrify.learn.models.memory import CODES
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.net.folder import load, save
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Sandbox, examples
from vitrify.sandboxes.catalogue import make as make_sandbox
from vitrify.spec.ngrams.model import NGramModel

ROWS, STEPS, RATE = 64, 30, 0.03
FALL = 0.1  # nats; the chain's entropy rate is 0.37 below what is paid for knowing nothing
CLOSE = 1e-4  # two forward passes in single precision

LEAST = "must be a whole number of at least"
BAD: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "built": ({"noise": -1.0}, ("noise must be a number of at least 0, not -1",)),
    "built nothing": ({}, ("folder must name",)),
    "disentangled": ({"heads": "0,1", "pads": -1}, (f"heads.0 {LEAST} 1, not ", f"pads {LEAST} 0, not -1")),
    "experts": (
        {"experts": 2, "top": 3, "heads": 3},
        ("top must be at most the number of experts, 2", "multiple of heads 3"),
    ),
    "frozen_memories": ({"d_model": 0, "draw": -1}, (f"d_model {LEAST} 1, not 0", f"draw {LEAST} 0, not -1")),
    "hierarchical": ({"s": 1, "channels": 0}, (f"s {LEAST} 2, not 1", f"channels {LEAST} 1, not 0")),
    "hybrid": ({"layers": 1, "factors": 0}, (f"layers {LEAST} 2, not 1", f"factors {LEAST} 1, not 0")),
    "hybrid heads": ({"heads": 3}, ("multiple of heads 3",)),
    "linear_head": (
        {"start": 0.0, "spread": -1.0},
        ("start must be a number above 0, not 0", "spread must be a number of"),
    ),
    "memory": (
        {"d_model": 0, "part": 2.0},
        (f"d_model {LEAST} 1, not 0", "part must be a number above 0 and at most 1, not 2"),
    ),
    "mlp": ({"context": 0, "d_out": 0}, (f"context {LEAST} 1, not 0", f"d_out {LEAST} 1 or none, not 0")),
    "one_hot_head": (
        {"d_head": 0, "scale": -1.0},
        ("scale must be a number of at least 0, not -1", f"d_head {LEAST} 1 or none"),
    ),
    "recurrent": ({"state": 0, "d_embed": 0}, (f"state {LEAST} 1, not 0", f"d_embed {LEAST} 1, not 0")),
    "scalar": ({"d_model": 0, "tied": 2.0}, (f"d_model {LEAST} 1, not 0", "tied must be a number from 0 to 1, not 2")),
    "ssm": (
        {"kind": "householder", "factors": 0, "layers": 0},
        (f"factors {LEAST} 1, not 0", f"layers {LEAST} 1, not 0"),
    ),
    "transformer": ({"layers": 0, "heads": -1}, (f"layers {LEAST} 1, not 0", f"heads {LEAST} 0, not -1")),
    "transformer heads": (
        {"heads": 3, "d_head": 5, "positions": "rotary"},
        ("d_head must be even, as rotary positions turn pairs of numbers, not 5",),
    ),
    "transformer width": ({"heads": 3}, ("d_model 32 must be a multiple of heads 3, or give d_head",)),
    "two_attentions": (
        {"epsilon": 0, "scale": -1},
        ("epsilon must be a number above 0, not 0", "scale must be a number of at least 0, not -1"),
    ),
}
MORE: dict[str, dict[str, Any]] = {  # other choices than the small sizes of a family
    **{f"recurrent {kind}": {"kind": kind} for kind in ("elman", "linear", "signed", "householder")},
    "ssm householder": {"kind": "householder", "factors": 2, "norm": False},
    "experts chosen": {"top": 2, "over": "chosen", "shift_rate": 0.1, "z_loss": 0.01},
    "experts choosing": {"by": "expert", "top": 1},
    "two_attentions wide": {"heads": 2, "wide": True, "relative": True},
    "memory matrix": {"heads": 0, "units": 0},
    "memory units": {"heads": 0, "units": 16, "part": 0.75},
    "one_hot_head embedding": {"learns": "embedding", "d_embed": 3, "scale": 0.5},
    "built noise": {"noise": 1.0, "scratch": False},
    "scalar untied": {"tied": 0.0, "e": 0.5, "w": -1.0},
}
ALL = [*names(), *MORE]


@cache
def sandbox() -> Sandbox:
    return make_sandbox("markov", {"p": 0.1, "q": 0.1, "length": 5})


@cache
def chain() -> Weights[Any]:
    """A built net for the binary chain, by trigrams, with an end of sentence that the sandbox does not have."""
    leave = {("0", "0"): 0.81, ("0", "1"): 0.09, ("1", "0"): 0.09, ("1", "1"): 0.81}
    found: dict[tuple[str, ...], tuple[float, float]] = {("<s>",): (-99.0, 0.0)}
    for words in [part for size in (0, 1, 2) for part in product("01", repeat=size)]:
        for last in ("0", "1", "</s>"):
            share = 0.1 if last == "</s>" else leave[words[-1], last] if words else 0.45
            found[*words, last] = (float(np.log10(share)), 0.0)
    return build(NGramModel.from_ngrams(found), max_length=8)


@cache
def family(name: str) -> Family:
    kind = name.split()[0]
    sizes = dict(kind_of(kind).SMALL) if kind != "built" else {"start": chain(), "scratch": True}
    return make(kind, sizes | MORE.get(name, {}))


class Trained(NamedTuple):
    """A member before and after some steps on one batch."""

    first: dict[str, Any]
    last: dict[str, Any]
    loss: tuple[float, float]
    gradient: dict[str, Any]
    inputs: Any
    answers: Any


@cache
def compiled(name: str) -> Any:
    program = TrainingProgram(plan(sandbox(), family(name), Recipe(), {})[0])
    rule = optax.adam(RATE)

    def go(seed: Any) -> Trained:
        values = {**program.lanes[0], "seed": seed}
        batch = examples(sandbox(), 0, "train", 0, ROWS)
        first = program._begin(values).parameters
        slopes = jax.value_and_grad(lambda p: program.loss(values, p, batch))

        def step(_: Any, kept: Any) -> Any:
            parameters, state, before, _, _ = kept
            loss, gradient = slopes(parameters)
            update, state = rule.update(gradient, state)
            return (
                optax.apply_updates(parameters, update),
                state,
                jax.numpy.where(before < 0, loss, before),
                loss,
                gradient,
            )

        zero = jax.tree.map(jax.numpy.zeros_like, first)
        last, _, before, after, gradient = jax.lax.fori_loop(0, STEPS, step, (first, rule.init(first), -1.0, 0.0, zero))
        inputs = family(name).inputs(program.net, sandbox(), batch)
        answers = program.net.forward(family(name).arrays(program.net, last), inputs)
        return Trained(first, last, (before, after), gradient, inputs, answers)

    return jax.jit(go)


@cache
def trained(name: str) -> Trained:
    found: Trained = jax.tree.map(np.asarray, compiled(name)(np.uint32(0)))
    return found


def each(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[pytest.mark.slow] if name in MORE else []) for name in names]
    )


@each(ALL)
def test_training_lowers_the_loss_by_gradients_for_all_that_is_trained(name: str) -> None:
    found = trained(name)
    assert found.loss[1] < found.loss[0] - FALL
    assert {key: array.dtype for key, array in found.last.items()} == dict.fromkeys(found.first, np.float32)
    for key, gradient in found.gradient.items():
        assert np.isfinite(gradient).all(), key
        assert gradient.any() or not gradient.size or key in untaught(name), key
    for key in found.first:
        assert np.isfinite(found.last[key]).all(), key


def untaught(name: str) -> set[str]:
    """Arrays that no gradient need reach: they add the same to the scores of all keys (of a window, of one key).

    Codes stay as they are, and where weights are tied, the readout that would be there without tying has none either.
    """
    shared: tuple[str, ...] = ("attn.b_K", "attn.b_rel") if family(name).name == "built" else ("attn.b_K",)
    shared += ("router.b_choice",) if family(name).name == "experts" else ()  # shifts follow a rule of their own
    found = {key for key in trained(name).first if key.endswith(shared) or (name, key) == ("scalar", "a")}
    return found | set(CODES if "memory" in name else ())


@each(ALL)
def test_what_was_trained_is_a_net_like_any_other(name: str, tmp_path: Path) -> None:
    """Its arrays are those of the architecture, it survives its folder, and NumPy runs it to the same answers."""
    found, net = trained(name), family(name).architecture(sandbox())
    shapes = net.shapes()
    own = {key: array.shape for key, array in found.last.items() if key in shapes}  # others are laid out into arrays
    assert own.items() <= shapes.items()
    weights = family(name).weights(net, found.last, {"trained": family(name).identity()})
    assert {key: tuple(array.shape) for key, array in weights.arrays.items()} == shapes
    save(weights, tmp_path / "net")
    again = load(tmp_path / "net")
    assert again.digest == weights.digest
    answers = again.architecture.forward(again.prepared, found.inputs)
    np.testing.assert_allclose(answers, found.answers, atol=CLOSE, rtol=CLOSE)


@each(ALL)
def test_what_a_family_does_outside_of_its_net_is_declared(name: str) -> None:
    """Where nothing is outside, the net alone gives the family's answers to words of the sandbox, by their names."""
    member, source = family(name), sandbox()
    net = member.architecture(source)
    weights = member.weights(net, trained(name).last, {})
    assert weights.about == ({} if member.outside is None else {"outside": member.outside})
    if (
        member.outside is not None
        or not hasattr(net, "pads")
        or any(getattr(b, "crowded", False) for b in getattr(net, "blocks", ()))
    ):
        return
    batch = examples(source, 0, "test", 0, 8)
    words = [[source.symbols[token] for token in row] for row in np.asarray(batch.tokens).tolist()]
    answers = np.asarray(member.logits(net, source, weights.arrays, batch))
    columns = [net.output.symbols.index(answer) for answer in source.answers]
    ours = np.stack(weights(words))[:, -answers.shape[1] :, columns]
    np.testing.assert_allclose(ours, answers, atol=CLOSE, rtol=CLOSE)


@each(ALL)
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(name: str) -> None:
    one, two, other = trained(name), compiled(name)(np.uint32(0)), compiled(name)(np.uint32(1))
    for key, array in one.last.items():
        assert array.tobytes() == np.asarray(two.last[key]).tobytes()
    if name != "disentangled":  # all of it starts at zero
        assert any((np.asarray(other.first[key]) != array).any() for key, array in one.first.items())


@each(ALL)
def test_members_side_by_side_and_half_precision_keep_their_shapes(name: str) -> None:
    """Traced and not compiled: what a GPU would run."""
    recipe = Recipe(steps=2, batch=4, precision="bfloat16", test_examples=4)
    program = TrainingProgram(plan(sandbox(), family(name), recipe, {}, members=2)[0], width=2)
    before = jax.eval_shape(program._begin, program.lanes[0])
    after = jax.eval_shape(program._advance, before, program.lanes[0], np.int32(0), np.int32(2))
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), before) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), after
    )


@each(ALL)
def test_a_family_is_told_from_others_by_json_data(name: str) -> None:
    told = {other: json.dumps(family(other).identity(), sort_keys=True) for other in ALL}
    assert json.loads(told[name]) == family(name).identity()
    assert [other for other in ALL if told[other] == told[name] and family(other).name == family(name).name] == [name]


def test_every_family_has_bad_sizes_to_refuse() -> None:
    assert {case.split()[0] for case in BAD} == {*names()}


@pytest.mark.parametrize("case", BAD)
def test_bad_sizes_are_refused_all_at_once(case: str) -> None:
    (sizes, messages), name = BAD[case], case.split()[0]
    with pytest.raises(InputError) as refused:
        make(name, sizes)
    assert str(refused.value).startswith((f"no such {name}: ", f"model {name}: "))
    for message in messages:
        assert message in str(refused.value)
    with pytest.raises(InputError, match="depht is not a parameter; there are: "):
        make(name, {"depht": 3})


@pytest.mark.parametrize("name", [name for name in names() if name != "built"])
def test_rows_of_another_kind_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"this model reads tokens, and a sequence of scenes .*: image"):
        family(name).architecture(make_sandbox("scenes"))
