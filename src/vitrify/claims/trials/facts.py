"""Facts learned by a linear attention head: losses of relation and subject, conserved quantity, and gradient flow."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.learn.flow import flow
from vitrify.learn.measure import log_probabilities, mean_loss, means, sums
from vitrify.learn.models.linear_head import SAID, SCORES, LinearHeadFamily
from vitrify.learn.program import Probe
from vitrify.learn.stages import Curve
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.facts import FactRecall

SAVES = 400  # points of a trajectory
MOMENTS = 5001  # evenly spaced times at which curves are interpolated
PLATEAU_NATS = 0.05  # from the loss of p(a | r)
STAGES = {
    "kl.uniform": PLATEAU_NATS,
    "kl.relation": PLATEAU_NATS,
    "kl": 0.1,
}  # any answer, any of the relation, the right one: nats from each


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


def flow_curves(box: FactRecall, members: int, until: float) -> list[Curve]:
    """Return the curves of gradient flows over all facts, each a sequence of subject, relation and end."""
    family = head(0.5)
    net, row = family.architecture(box), every_fact(box)
    first = [family.first(net, jax.random.key(seed)) for seed in range(members)]

    def logits(point: Mapping[str, Array], row: Example) -> Array:
        return family.logits(net, box, family.arrays(net, point), row)

    paths = flow(
        lambda point, row: mean_loss(logits(point, row), row),
        {name: np.stack([np.asarray(point[name]) for point in first]) for name in first[0]},
        jax.tree.map(lambda array: np.stack([array] * members), row),
        until=until,
        conserved={"conserved": conserved},
        saves=SAVES,
    )

    def measured(point: Mapping[str, Array]) -> dict[str, Array]:
        output = logits(point, row)
        return means(sums(box, output, row)) | {"relation": relation_loss(box, output, row)}

    values = {name: jnp.asarray(array, jnp.float32) for name, array in paths.points.items()}
    each = jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(measured)))(values))
    each |= {"step": paths.times, "conserved": paths.conserved["conserved"]}
    each["squares"] = (paths.points[SAID] ** 2).sum(axis=-1).max(axis=(-1, -2))
    return [_curve({name: array[start] for name, array in each.items()}) for start in range(members)]


def _curve(each: Mapping[str, Array]) -> list[dict[str, Array]]:
    """Return the points of one trajectory up to its end."""
    times = each["step"]
    last = len(times) if (np.diff(times) > 0).all() else 1 + int(np.argmax(np.diff(times) <= 0))
    return [{name: array[at] for name, array in each.items()} for at in range(last)]


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


def passed(curve: Curve, answers: int) -> dict[str, float]:
    """Return plateau, order of stages and end of a member; curves are interpolated to evenly spaced times."""
    step = np.array([point["step"] for point in curve])
    even = np.linspace(0, step[-1], MOMENTS)

    def along(name: str) -> Array:
        return np.interp(even, step, [point[name] for point in curve])

    loss, far, aim = along("loss"), along("kl.relation"), curve[-1]["floor.relation"]
    nearest = min(curve, key=lambda point: point["kl.relation"])
    reached = [np.flatnonzero(along(name) <= most) for name, most in STAGES.items()]
    firsts = [int(times[0]) for times in reached if len(times)]
    invariant = np.array([point["conserved"] for point in curve])
    return {
        "kl": nearest["kl.relation"],
        "share": float((np.abs(loss - aim) <= PLATEAU_NATS).mean()),
        "level": float(loss[far <= max(PLATEAU_NATS, far.min())].mean() / aim),
        "relation": nearest["relation"],
        "subject": float((nearest["loss"] - nearest["relation"]) / np.log(answers)),
        "order": float(len(firsts) == len(STAGES) and firsts == sorted(set(firsts))),
        "accuracy": curve[-1]["accuracy"],
        "loss": curve[-1]["loss"],
        "drift": float(np.abs(invariant - invariant[0]).max() / max(point["squares"] for point in curve)),
    }
