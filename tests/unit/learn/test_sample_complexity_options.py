"""Training to a training loss, nets in mean-field scaling, and held-out strings: each against an oracle of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vitrify.arrays import Ints
from vitrify.errors import InputError
from vitrify.learn.models.catalogue import Family, make
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Run
from vitrify.learn.store import RunStore
from vitrify.learn.train import train
from vitrify.learn.trainer import TrainEvent
from vitrify.sandboxes.catalogue import Split, examples
from vitrify.sandboxes.hierarchy import HierarchySandbox

BOX = HierarchySandbox(v=3, m=2, L=2, mode="classify", levels=False)
SMALL = make("hierarchical", {"channels": 16, "mean_field": True})
LONG = Recipe(steps=512, batch=32, lr=0.1, test_examples=32, train_examples=8, clip=None)
STOPPED = replace(LONG, stop_training=0.05)


# Training to a training loss


def test_a_member_stops_at_the_first_measurement_with_a_small_training_loss() -> None:
    """Its curve is the beginning of that of the same member without the option."""
    runs, whole = (train(SMALL, BOX, members=3, recipe=recipe) for recipe in (STOPPED, LONG))
    for run, other in zip(runs, whole, strict=True):
        small = [point["step"] for point in other.curve if point["step"] and point["train"] <= 0.05]
        assert run.last["step"] == run.last["stopped"] == small[0] < 512
        for point, same in zip(run.curve[:-1], other.curve, strict=False):
            assert point == same
        assert run.last == {**other.curve[len(run.curve) - 1], "stopped": small[0]}
    assert runs[0].curve[0]["train"] == 0  # before the first step nothing was trained on


def test_training_losses_of_other_members_stop_nobody() -> None:
    """At a rate of almost nothing a member goes on to the last step, beside one that stops."""
    fast, slow = train(SMALL, BOX, axes={"lr": [0.1, 1e-9]}, recipe=replace(STOPPED, steps=256))
    assert fast.last["stopped"] == fast.last["step"] < 256
    assert (slow.last["stopped"], slow.last["step"]) == (-1, 256)


def test_a_lane_that_has_ended_is_left_alone() -> None:
    (group,) = plan(BOX, SMALL, STOPPED, {}, 2)
    program = TrainingProgram(group, width=1)
    lanes = program.begin()
    lanes[0] = lanes[0]._replace(alive=jnp.bool_(False))
    after = program.advance(list(lanes), 0, 3)
    assert after[0] is lanes[0]
    assert program.joined([lane.loss for lane in after])[1] > 0


def test_training_to_a_loss_resumes_to_the_bit(tmp_path: Path) -> None:
    def go(last: int, store: RunStore) -> list[Run]:
        def callback(event: TrainEvent) -> None:
            if event.step == last:
                raise KeyboardInterrupt

        return train(SMALL, BOX, members=2, recipe=STOPPED, store=store, callback=callback, checkpoint_seconds=0.0)

    whole = train(SMALL, BOX, members=2, recipe=STOPPED)
    store = RunStore(tmp_path / "runs")
    with pytest.raises(KeyboardInterrupt):
        go(16, store)
    for one, other in zip(go(9999, store), whole, strict=True):
        assert (one.id, one.curve, one.weights.digest) == (other.id, other.curve, other.weights.digest)


def test_new_options_are_named_only_where_they_are_used() -> None:
    assert "stop_training" not in LONG.identity()
    assert STOPPED.identity()["stop_training"] == 0.05
    assert not {"dense", "mean_field"} & make("hierarchical").identity().keys()
    assert not {"held_out", "part"} & BOX.identity().keys()
    assert replace(BOX, held_out=True).identity()["held_out"] is True


# Mean-field scaling and fully connected nets


@pytest.mark.parametrize("sizes", [{}, {"s": 4, "dense": 1}, {"shared": False}])
def test_a_mean_field_net_is_the_forward_pass_of_the_papers(sizes: dict[str, object]) -> None:
    r"""$h_1 = \mathrm{relu}(W x / \sqrt{s / 2} + b)$, the same over fan-in above, and the readout over the width."""
    width = 24
    family = make("hierarchical", {"channels": width, "mean_field": True, **sizes})
    net = family.architecture(BOX)
    trained = {name: np.asarray(array) for name, array in family.first(net, jax.random.key(1)).items()}
    rng = np.random.default_rng(0)
    trained |= {name: rng.normal(size=array.shape) for name, array in trained.items() if not array.any()}
    assert all(0.8 < array.std() < 1.25 for array in trained.values() if array.size > 100)
    batch = examples(BOX, 0, "test", 0, 16)
    ours = np.asarray(family.logits(net, BOX, family.arrays(net, trained), batch))[:, 0]
    for tokens, logits in zip(np.asarray(batch.tokens), ours, strict=True):
        x = np.eye(BOX.v)[tokens]  # [place, channel]
        for layer in range(len(net.convolutions)):
            kernel, bias = trained[f"conv.{layer}.W"], trained[f"conv.{layer}.b"]
            span = kernel.shape[-1]
            fan = span * (1 if layer == 0 else width)
            rows = []
            for place in range(len(x) // span):
                own, add = (kernel, bias) if kernel.ndim == 4 else (kernel[place], bias[place])
                seen = x[place * span : (place + 1) * span]
                rows.append(np.maximum(np.einsum("ocj,jc->o", own[:, :, 0], seen) / np.sqrt(fan / 2) + add, 0))
            x = np.array(rows)
        y = x.sum(axis=0)
        if sizes.get("dense"):
            y = np.maximum(y @ trained["dense.0.W_in"] / np.sqrt(width / 2) + trained["dense.0.b_in"], 0)
        expected = y @ trained["unembed.W_U"] / width + trained["unembed.b_U"]
        np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


def test_wide_mean_field_nets_begin_with_smaller_answers() -> None:
    """Logits fall as one over the square root of the width; those of a standard start do not."""

    def spread(family: Family) -> float:
        net = family.architecture(BOX)
        batch = examples(BOX, 0, "test", 0, 32)
        firsts = [family.arrays(net, family.first(net, jax.random.key(seed))) for seed in range(8)]
        return float(np.std([np.asarray(family.logits(net, BOX, arrays, batch)) for arrays in firsts]))

    sizes = {field: [make("hierarchical", {"channels": w, "mean_field": field}) for w in (16, 256)] for field in (0, 1)}
    narrow, wide = map(spread, sizes[1])
    assert narrow / wide == pytest.approx(4, rel=0.35)
    narrow, wide = map(spread, sizes[0])
    assert narrow / wide == pytest.approx(1, rel=0.35)


# Held-out strings


def strings(box: HierarchySandbox, split: Split, count: int = 20_000) -> dict[bytes, int]:
    drawn: Ints = np.asarray(examples(box, 1, split, 0, count).tokens)
    tokens, counts = np.unique(drawn, axis=0, return_counts=True)
    return {row.astype(np.int32).tobytes(): int(n) for row, n in zip(tokens, counts, strict=True)}


@pytest.mark.parametrize("sizes", [{"v": 3, "m": 2, "L": 3}, {"v": 3, "m": 3, "L": 2}, {"v": 4, "m": 2, "classes": 3}])
def test_no_test_string_is_a_training_string_and_one_in_m_is_held_out(sizes: dict[str, Any]) -> None:
    """Both splits together are all strings, and the strings of a split are equally frequent."""
    box = HierarchySandbox(mode="classify", held_out=True, **sizes)
    every = set(strings(replace(box, held_out=False), "train"))
    assert len(every) == box.roots * box.m ** (2**box.L - 1)
    seen = {split: strings(box, split) for split in ("train", "test", "probe", "validation")}
    assert set(seen["train"]).isdisjoint(seen["test"])
    assert set(seen["test"]) == set(seen["probe"]) == set(seen["validation"])
    assert set(seen["train"]) | set(seen["test"]) == every
    assert len(seen["test"]) * box.m == len(every)
    for split, members in seen.items():
        expected = 20_000 / len(members)
        chi = sum((n - expected) ** 2 / expected for n in members.values())
        assert abs(chi - len(members)) < 6 * np.sqrt(2 * len(members)), split


def test_what_is_held_out_looks_random() -> None:
    """No two of the productions and the class tell it: each pair of values has its share of held-out strings."""
    box = HierarchySandbox(v=4, m=4, L=4, mode="classify", held_out=True)  # no string comes twice
    batch = jax.device_get(examples(box, 0, "test", 0, 40_000))
    latent = batch.latent
    digits = np.concatenate([latent[f"productions {h}"] for h in (4, 3, 2, 1)] + [latent["label"][:, None]], axis=1)
    for one in range(digits.shape[1]):
        for other in range(one):
            counts = np.bincount(digits[:, one] * 4 + digits[:, other], minlength=16)
            chi = ((counts - 2500.0) ** 2 / 2500).sum()
            assert chi < 50, (one, other, chi)  # 15 degrees of freedom: 1e-5


def test_strings_are_held_out_of_classes_only() -> None:
    with pytest.raises(InputError, match="held_out"):
        HierarchySandbox(mode="last", held_out=True)
    with pytest.raises(InputError, match="part"):
        HierarchySandbox(mode="classify", part="train")
