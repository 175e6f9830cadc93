"""The training recipe: steps, batches, optimizer and precision, and the optax transformation they describe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vitrify.arrays import Array, Tree
from vitrify.encoding import JsonObject, added
from vitrify.parameters import Count, Help, Natural, Parameterized, Positive, Within, later
from vitrify.sandboxes.catalogue import MAX_EXAMPLES

Precision = Literal["float32", "bfloat16"]
Loss = Literal["entropy", "squared"]
AVERAGE_SHARE = 0.1  # of the steps so far that a running average of the weights is over, about


@dataclass(frozen=True)
class Recipe(Parameterized):
    r"""Hyper-parameters of training; those in `TRACED` may differ between members of one compiled program.

    With `train_examples` = n, batches are drawn with replacement from the first n training examples; by default every
    step has new ones. A member stops when its loss exceeds the optimal one by at most `stop`. Members are measured
    before the first step, `evals_per_doubling` times while the step doubles, and at the end. With `random_offset`,
    sequences start at a random position of a transformer's position table, so that short ones train all of it. The loss
    is the cross-entropy, or the squared distance between logits and one-hot target. In `bfloat16` the forward pass and
    its gradient use rounded copies of float32 weights; loss, optimizer and weights stay in float32.

    With `average`, members are measured with a running average of their weights: after step $t$, $a \leftarrow a + (b -
    a) / (0.1 t + 1)$, where $b$ are the weights and $a$ begins as the initial ones. The weights of a run are then $a$,
    too. With `validation_examples`, their excess loss on as many other sequences is measured as `validation`.

    With `stop_training`, a member also stops at the first measurement at which the mean of its training losses since
    the one before is at most that: trained to the end, however many examples it has.

    With `checkpoints`, a run store keeps the weights after at most that many steps: 0, the last, and others between at
    equal distances of $\ln(1 + \text{step})$. Members are measured there, too. `probes` are named in `watched.py`.
    """

    TRACED = ("lr", "weight_decay", "beta1", "beta2", "train_examples")

    steps: Annotated[Natural, Help("optimizer steps")] = 500
    batch: Annotated[Count, Help("sequences per step")] = 32
    optimizer: Annotated[Literal["adamw", "sgd"], Help("update rule")] = "adamw"
    loss: Annotated[Loss, Help("cross-entropy, or squared distance to the one-hot target")] = "entropy"
    lr: Annotated[Positive, Help("learning rate after warmup")] = 3e-3
    weight_decay: Annotated[float, Help("decoupled weight decay")] = 0.0
    beta1: Annotated[float, Within(0, 1, "[)"), Help("decay of the first moment; of SGD: momentum")] = 0.9
    beta2: Annotated[float, Within(0, 1, "[)"), Help("decay of the second moment")] = 0.99
    schedule: Annotated[Literal["constant", "cosine", "linear"], Help("learning rate after warmup")] = "constant"
    warmup: Annotated[Natural, Help("steps in which the learning rate rises")] = 10
    clip: Annotated[float | None, Help("largest global norm of a gradient")] = 1.0
    train_examples: Annotated[Count | None, Help("size of a finite training set")] = None
    test_examples: Annotated[Count, Help("sequences of a measurement")] = 512
    precision: Annotated[Precision, Help("of the forward pass and its gradient")] = "float32"
    stop: Annotated[float | None, Help("excess loss over the optimum at which a member stops")] = None
    evals_per_doubling: Annotated[Natural, Help("measurements per doubling of the step")] = 2
    random_offset: Annotated[bool, Help("sequences begin at random positions of the position table")] = later(False)
    average: Annotated[bool, Help("measure a running average of the weights")] = added(False)
    validation_examples: Annotated[int, Within(0), Help("sequences on which `validation` is measured")] = added(0)
    stop_training: Annotated[float | None, Help("mean training loss at which a member stops")] = added(None)
    checkpoints: Annotated[int, Within(0), Help("log-spaced steps at which a store keeps the weights")] = added(0)
    probes: Annotated[tuple[str, ...], Help("what is measured beside the losses: previous, induction, …")] = added(())

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.steps * self.batch > MAX_EXAMPLES:
            total = f"× batch = {self.steps * self.batch}"
            yield "steps", f"{total} must be at most {MAX_EXAMPLES}, the examples of a split"
        if self.probes:
            from vitrify.learn.watched import problem

            yield from (("probes", fault) for fault in map(problem, self.probes) if fault)

    def identity(self) -> JsonObject:
        """Return the parameters for run identifiers, where probes that compare with a network name its weights."""
        if not self.probes:
            return super().identity()
        from vitrify.learn.watched import pinned

        return super().identity() | {"probes": [pinned(name) for name in self.probes]}

    def rate_at(self, step: Array) -> Array:
        """Return the learning rate at a step: it rises for `warmup` steps, then stays or falls to zero at the last."""
        done = (step - self.warmup) / max(self.steps - self.warmup, 1)
        done = jnp.clip(done, 0.0, 1.0)
        cosine = (1 + jnp.cos(jnp.pi * done)) / 2
        falling: dict[str, Array | float] = {"constant": 1.0, "linear": 1 - done, "cosine": cosine}
        rise = jnp.minimum((step + 1) / self.warmup, 1.0) if self.warmup else 1.0
        return self.lr * falling[self.schedule] * rise

    def transformation(self) -> optax.GradientTransformation:
        """Return the optimizer; its hyper-parameters may be traced, so that each member has its own."""
        parts = [_clipped(self.clip)] if self.clip is not None else []
        if self.optimizer == "adamw":
            parts.append(optax.scale_by_adam(b1=self.beta1, b2=self.beta2))
        else:
            parts.append(optax.trace(decay=self.beta1))
        parts.append(optax.add_decayed_weights(self.weight_decay))
        parts.append(optax.scale_by_schedule(lambda step: -self.rate_at(step)))
        return optax.chain(*parts)

    def averaged(self, average: Tree, weights: Tree, step: Array) -> Tree:
        """Return the running average of the weights after a step, the first of which is number 0."""
        share = 1 / (AVERAGE_SHARE * (step + 1) + 1)
        return jax.tree.map(lambda a, b: a + (b - a) * share, average, weights)

    def eval_steps(self) -> list[int]:
        """Return the steps after which members are measured: 0, `evals_per_doubling`, checkpoints, and the last."""
        steps, at = {0, self.steps, *self.checkpoint_steps()}, 1.0
        while self.evals_per_doubling and at < self.steps:
            steps.add(round(at))
            at *= 2 ** (1 / self.evals_per_doubling)
        return sorted(step for step in steps if step <= self.steps)

    def checkpoint_steps(self) -> list[int]:
        """Return the steps whose weights are kept, at most `checkpoints` of them; of a single one the last.

        >>> Recipe(steps=1000, checkpoints=5).checkpoint_steps()
        [0, 5, 31, 177, 1000]
        """
        if self.checkpoints < 2:
            return [self.steps] * self.checkpoints
        even = np.expm1(np.linspace(0.0, np.log1p(self.steps), self.checkpoints))
        return sorted({round(step) for step in even.tolist()})


def _clipped(limit: float) -> optax.GradientTransformation:
    """Scale gradients down to a global norm; a GPU sums all squares at once, in one launch instead of dozens."""
    clip = optax.clip_by_global_norm(limit)
    if jax.default_backend() != "gpu":
        return clip

    def update(gradients: Tree, state: optax.OptState, _: Tree = None) -> tuple[Tree, optax.OptState]:
        flat = jnp.concatenate([leaf.astype(jnp.float32).ravel() for leaf in jax.tree.leaves(gradients)])
        norm = jnp.sqrt(jnp.vdot(flat, flat))
        scale = jnp.where(norm < limit, 1.0, limit / norm)
        return jax.tree.map(lambda leaf: (leaf * scale).astype(leaf.dtype), gradients), state

    return optax.GradientTransformation(clip.init, update)
