"""Facts learned by a linear attention head: losses of relation and subject, conserved quantity, and gradient flow.

Measurements of members are arrays by name: `step` and the curves `CURVES` [member, point]; and [member], the loss of
p(a | r) as `level`, and as `drift` how far the conserved quantity of a token ever is from its start, over the largest
sum of squares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.trial import Trained
from vitrify.learn.flow import flow
from vitrify.learn.measure import log_probabilities, mean_loss, means, sums
from vitrify.learn.models.linear_head import SAID, SCORES, LinearHeadFamily
from vitrify.learn.program import Probe
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.facts import FactRecall

SAVES = 400  # points of a trajectory
MOMENTS = 2001  # evenly spaced times at which curves are interpolated
CURVES = ("loss", "kl", "kl.uniform", "kl.relation", "relation", "accuracy")
PLATEAU_NATS = 0.05  # from the loss of p(a | r)
# Any answer, any of the relation, the right one: nats from each.
STAGES = {"kl.uniform": PLATEAU_NATS, "kl.relation": PLATEAU_NATS, "kl": 0.1}
NULL_DRIFT = 0.1  # part of the growth of one square that the other lacks, if their difference is not conserved


def head(spread: float) -> LinearHeadFamily:
    """Return a linear head with small initial weights, each spread around its mean."""
    return LinearHeadFamily(start=1e-5, spread=spread, last=True)


def probes(box: FactRecall, family: LinearHeadFamily) -> dict[str, Probe]:
    """Return probes of the conserved quantity, the largest sum of squares and the loss of the relation."""

    def invariant(net: Transformer, arrays: Mapping[str, Array], row: Example, seen: object) -> Array:
        del net, row, seen
        return conserved(arrays)

    def squares(net: Transformer, arrays: Mapping[str, Array], row: Example, seen: object) -> Array:
        del net, row, seen
        return (arrays[SAID] ** 2).sum(axis=-1).max()

    def relation(net: Transformer, arrays: Mapping[str, Array], row: Example, seen: object) -> Array:
        del seen
        return relation_loss(box, family.logits(net, box, arrays, row), row)

    return {"conserved": invariant, "squares": squares, "relation": relation}


def of_steps(nets: Trained) -> Measured:
    """Return the measurements of members that were trained in steps."""
    curves = {name: nets.curves(name) for name in CURVES}
    curves["step"] = np.broadcast_to(np.array(nets.steps, dtype=float), curves["loss"].shape)
    level, (invariant, squares) = nets.final("floor.relation"), map(nets.curves, ("conserved", "squares"))
    return {**curves, "level": level, "drift": _drift(invariant, squares)}


def of_flow(box: FactRecall, seeds: Sequence[int], until: float) -> Measured:
    """Return the measurements of gradient flows over all facts, each a sequence of subject, relation and end."""
    family = head(0.5)
    net, row = family.architecture(box), every_fact(box)
    first = [family.first(net, jax.random.key(seed)) for seed in seeds]

    def logits(point: Mapping[str, Array], row: Example) -> Array:
        return family.logits(net, box, family.arrays(net, point), row)

    paths = flow(
        lambda point, row: mean_loss(logits(point, row), row),
        {name: np.stack([np.asarray(point[name]) for point in first]) for name in first[0]},
        jax.tree.map(lambda array: np.stack([array] * len(seeds)), row),
        until=until,
        conserved={"conserved": conserved},
        saves=SAVES,
    )

    def measured(point: Mapping[str, Array]) -> dict[str, Array]:
        output = logits(point, row)
        return means(sums(box, output, row)) | {"relation": relation_loss(box, output, row)}

    values = {name: jnp.asarray(array, jnp.float32) for name, array in paths.points.items()}
    each = jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(measured)))(values))
    squares = (paths.points[SAID] ** 2).sum(axis=-1).max(axis=(-1, -2))
    ends = {"level": each["floor.relation"][:, -1], "drift": _drift(paths.conserved["conserved"], squares)}
    return {**{name: each[name] for name in CURVES}, "step": paths.times, **ends}


def _drift(invariant: Array, squares: Array) -> Array:
    """Return the largest change [member] of an invariant [member, point, token] over the largest sum of squares."""
    change: Array = np.abs(invariant - invariant[:, :1]).max(axis=(1, 2))
    return change / squares.max(axis=1)


def every_fact(box: FactRecall) -> Example:
    """Return all facts of a sandbox without noise, as sequences of subject, relation and end, in NumPy arrays."""
    known = np.asarray(box.known)
    end = np.full(len(known), len(box.symbols) - 1)
    before = ((0, 0), (box.length, 0))
    return Example(
        np.stack([known[:, 0], known[:, 1], end], axis=1).astype(np.int32),
        np.pad(known[:, 2:], before).astype(np.int32),
        np.pad(np.ones((len(known), 1), np.float32), before),
        {"relation": known[:, 1] - len(box.spec.subjects)},
    )


def relation_loss(box: FactRecall, logits: Array, row: Example) -> Array:
    r"""Return the mean of $-\ln \sum_{a \in A_r} p(a)$ for the queried relation $r$, at the last position."""
    known = np.asarray(box.known)
    possible = np.zeros((box.relations, len(box.answers)), np.float32)
    possible[known[:, 1] - len(box.spec.subjects), known[:, 2]] = 1.0
    predicted = jnp.exp(log_probabilities(logits)[:, -1])
    return -jnp.log((predicted * jnp.asarray(possible)[row.latent["relation"]]).sum(axis=-1)).mean()


def conserved(point: Mapping[str, Array]) -> Array:
    r"""Return $\sum_a W(z,a)^2 - w(z)^2$ of every token."""
    return (point[SAID][0] ** 2).sum(axis=-1) - point[SCORES][0, :, 0] ** 2


def passed(members: Measured, answers: int) -> dict[str, list[float]]:
    """Return plateau, order of stages and end of each member, by name."""
    count = len(members["level"])
    each = [_passed({name: array[at] for name, array in members.items()}, answers) for at in range(count)]
    return {name: [one[name] for one in each] for name in each[0]}


def _passed(curves: Mapping[str, Array], answers: int) -> dict[str, float]:
    """Return the same of one member; curves are interpolated to even times."""
    step, aim = curves["step"], curves["level"]
    even = np.linspace(0, step[-1], MOMENTS)
    loss, *far = (np.interp(even, step, curves[name]) for name in ("loss", *STAGES))
    reached = [np.flatnonzero(each <= most) for each, most in zip(far, STAGES.values(), strict=True)]
    firsts = [int(times[0]) for times in reached if len(times)]
    from_relation, nearest = far[1], int(curves["kl.relation"].argmin())
    return {
        "kl": float(curves["kl.relation"][nearest]),
        "share": float((np.abs(loss - aim) <= PLATEAU_NATS).mean()),
        "level": float(loss[from_relation <= max(PLATEAU_NATS, from_relation.min())].mean() / aim),
        "relation": float(curves["relation"][nearest]),
        "subject": float((curves["loss"] - curves["relation"])[nearest] / np.log(answers)),
        "order": float(len(firsts) == len(STAGES) and firsts == sorted(set(firsts))),
        "accuracy": float(curves["accuracy"][-1]),
        "loss": float(curves["loss"][-1]),
        "drift": float(curves["drift"]),
    }


def _redrawn(measured: Measured, rng: np.random.Generator) -> dict[str, Array]:
    """Return the measurements of members that are drawn with replacement."""
    members = rng.integers(len(measured["level"]), size=len(measured["level"]))
    return {name: array[members] for name, array in measured.items()}


def steady(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the loss falls steadily from where it begins to fall to where it has fallen."""
    del subject
    drawn = _redrawn(measured, rng)
    loss, step = drawn["loss"], drawn["step"]
    first, last = loss[:, :1], loss[:, -1:]
    begins, ends = ((loss <= level).argmax(axis=1) for level in (first - PLATEAU_NATS, last + PLATEAU_NATS))
    begun, ended = (np.take_along_axis(step, at[:, None], axis=1) for at in (begins, ends))
    return {**drawn, "loss": first + (last - first) * np.clip((step - begun) / (ended - begun), 0, 1)}


def in_proportion(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the losses of relation and subject are constant parts of the measured loss."""
    drawn, box = _redrawn(measured, rng), subject.data["box"]
    loss, answers = drawn["loss"], box.per_relation
    relation = loss * np.log(box.relations) / np.log(box.relations * answers)
    others = np.log(np.maximum(np.exp(-relation) - np.exp(-loss), 1e-12) / (answers - 1))  # ln p of any other answer
    far = -np.log(answers) + (loss - (answers - 1) * others) / answers
    return {**drawn, "relation": relation, "kl.relation": far}


def either_first(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the distances from p(a|r) and from the right answer are exchanged by a coin."""
    del subject
    drawn = _redrawn(measured, rng)
    coin = rng.integers(2, size=(len(drawn["level"]), 1)) == 1
    one, two = drawn["kl.relation"], drawn["kl"]
    return {**drawn, "kl.relation": np.where(coin, two, one), "kl": np.where(coin, one, two)}


def unequal(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which one of two squares grows by a tenth less than the other."""
    del subject
    drawn = _redrawn(measured, rng)
    return {**drawn, "drift": drawn["drift"] + NULL_DRIFT}
