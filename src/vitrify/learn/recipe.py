"""How a network is trained: steps, batches, optimiser, precision; and how an optimiser is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import optax

from vitrify.arrays import Array
from vitrify.sandboxes._parameters import Choices, later
from vitrify.sandboxes.catalogue import MAX_ROWS

Precision = Literal["float32", "bfloat16"]
Loss = Literal["entropy", "squared"]


@dataclass(frozen=True)
class Recipe(Choices):
    """Everything about training but the network and the data; fields in `TRACED` may differ between members.

    `train_rows` makes the training set finite: rows are then drawn from its first so many, with replacement; members of
    one program may have sets of different sizes. A member stops when its excess over the oracle's loss is at most
    `stop`. `marks` is how many measurements are made per doubling of the step; with none there are the first and the
    last only. Rows that begin `anywhere` take their places from a random part of a transformer's table of places, so
    that all of it is trained by rows that are shorter. The loss is the cross-entropy, or the squared distance between
    the logits and the one-hot target. In `bfloat16` the forward pass and its gradient are computed with rounded copies
    of float32 weights; loss, optimiser and weights stay in float32.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("lr", "weight_decay", "beta1", "beta2", "train_rows")

    steps: int = 500
    batch: int = 32
    optimiser: Literal["adamw", "sgd"] = "adamw"
    loss: Loss = "entropy"
    lr: float = 3e-3
    weight_decay: float = 0.0
    beta1: float = 0.9  # of SGD: the momentum
    beta2: float = 0.99
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    warmup: int = 10
    clip: float | None = 1.0
    train_rows: int | None = None
    test_rows: int = 512
    precision: Precision = "float32"
    stop: float | None = None
    marks: int = 2
    anywhere: bool = later(False)

    def problems(self) -> Iterator[str]:
        """All that is wrong with the recipe."""
        for name, least in (("steps", 0), ("batch", 1), ("warmup", 0), ("test_rows", 1), ("marks", 0)):
            if getattr(self, name) < least:
                yield f"{name} must be at least {least}, not {getattr(self, name)}"
        if self.steps * self.batch > MAX_ROWS:
            yield f"{self.steps} steps of {self.batch} rows are more than the {MAX_ROWS} rows that a split has"
        if self.train_rows is not None and self.train_rows < 1:
            yield f"train_rows must be at least 1, not {self.train_rows}"
        if not self.lr > 0:
            yield f"lr must be positive, not {self.lr:g}"
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1):
            yield f"beta1 and beta2 must lie in [0, 1), not {self.beta1:g} and {self.beta2:g}"

    def rate_at(self, step: Array) -> Array:
        """The learning rate at a step: it rises for `warmup` steps, then stays or falls to zero at the last."""
        done = (step - self.warmup) / max(self.steps - self.warmup, 1)
        done = jnp.clip(done, 0.0, 1.0)
        falling: dict[str, Any] = {"constant": 1.0, "linear": 1 - done, "cosine": (1 + jnp.cos(jnp.pi * done)) / 2}
        rise = jnp.minimum((step + 1) / self.warmup, 1.0) if self.warmup else 1.0
        return self.lr * falling[self.schedule] * rise

    def transformation(self) -> optax.GradientTransformation:
        """The optimiser; its numbers may be JAX values, so that each member has its own."""
        parts = [optax.clip_by_global_norm(self.clip)] if self.clip is not None else []
        if self.optimiser == "adamw":
            parts.append(optax.scale_by_adam(b1=self.beta1, b2=self.beta2))
        else:
            parts.append(optax.trace(decay=self.beta1))
        parts.append(optax.add_decayed_weights(self.weight_decay))
        parts.append(optax.scale_by_schedule(lambda step: -self.rate_at(step)))
        return optax.chain(*parts)

    def marked(self) -> list[int]:
        """The steps after which members are measured: 0, then `marks` per doubling, and the last."""
        found, at = {0, self.steps}, 1.0
        while self.marks and at < self.steps:
            found.add(round(at))
            at *= 2 ** (1 / self.marks)
        return sorted(step for step in found if step <= self.steps)
