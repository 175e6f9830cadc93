"""One model on several devices: each has a part of the batch, and the curve is that of one device."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from vitrify.errors import InputError
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train

# Two devices, of a CPU that is told to pretend; JAX must not have begun before, hence a process of its own.
PROGRAM = """
import jax
import numpy as np
from vitrify.learn.models.catalogue import make as model
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.learn.trainer import Trainer
from vitrify.sandboxes.catalogue import make

family = model("transformer", {"layers": 1, "heads": 1, "d_model": 8, "units": 8})
recipe = Recipe(steps=12, batch=8, lr=0.01, test_examples=16, evals_per_doubling=0)
(group,) = plan(make("markov", {"length": 8}), family, recipe, {}, 1)
curves, found = [], []
for devices in (1, 2):
    program = TrainingProgram(group, devices=devices)
    trainer = Trainer(program)
    list(trainer.events())
    curves.append([[point["loss"], point["train"]] for run in trainer.runs() for point in run.curve])
    weights = jax.tree.leaves(trainer.lanes[0].parameters)[0]
    found.append(("all-reduce" in program.compiled[1].as_text(), len(weights.sharding.device_set)))
assert found == [(False, 1), (True, 2)], found
np.testing.assert_allclose(curves[0], curves[1], rtol=2e-5)
assert np.array(curves)[0, -1, 0] < np.array(curves)[0, 0, 0] - 0.01
"""


def test_two_devices_share_a_batch_and_give_the_curve_of_one() -> None:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_devices_that_are_not_there_are_refused() -> None:
    with pytest.raises(InputError, match="devices must lie between 1 and"):
        train("transformer", "markov", recipe=Recipe(steps=1), devices=1000)
