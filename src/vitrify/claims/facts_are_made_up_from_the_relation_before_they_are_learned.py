r"""Before a linear head learns facts it makes them up: it rests at $p(a \mid r)$, what the relation alone tells.

Statement: a linear head over one-hot tokens that starts small and learns facts, of many subjects and few relations
with $D$ answers each, goes through three stages: it says any answer (loss $\ln RD$), then any answer of the relation
that is asked for (loss $\ln D$), then the right one. On the second plateau its loss is within 5 % of that of
$p(a \mid r)$, and at some step its KL from $p(a \mid r)$ is at most 0.03. $\sum_a W(z,a)^2 - w(z)^2$ stays what it is.
Why: a token's two weights grow like $e^{ct}$ from their start, with $c$ in proportion to how often the token is seen
and how much it tells: a relation is seen in $1/R$ of all rows, a subject only in $1/S$. The loss depends on $w(z)$ and
$W(z, \cdot)$ by their product only, so that the flow keeps the difference of their squares.
Checked: SGD on rows with noise from as many data seeds as members; and the exact gradient flow in float64 over all
facts without noise, from random starts. Asked of each: least KL from $p(a \mid r)$ at most 0.03, at least 15 % of the
time within 0.05 nats of its loss, the mean loss while the KL is at most 0.05, loss of the relation at most 0.05 and of
the subject at least 0.95 $\ln D$ at the least KL, the order of stages, accuracy 0.99 and a loss below 0.1 in the end,
drift of what is kept at most 5 % (SGD) and $10^{-6}$ (flow) of the largest $\sum_a W(z,a)^2$.
Source: Nichani, Lee & Bietti 2025, arXiv 2412.06538 [S]; sizes, start and learning rate as in their public code; the
thresholds are ours.
Saboteur: few subjects and many relations, so that what the subject tells is learned first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.flow import flow
from vitrify.learn.measure import log_probabilities, mean_loss, means, sums
from vitrify.learn.models.linear_head import SAID, SCORES, LinearHeadFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.catalogue import Row
from vitrify.sandboxes.facts import FactRecall

NEAR = 0.05  # nats from the loss of p(a | r) that count as being on the plateau
STAGES = {"kl.uniform": NEAR, "kl.relation": NEAR, "kl": 0.1}  # any answer, any of the relation, the right one
DRIFT = {"steps": 0.05, "flow": 1e-6}  # steps of SGD are not the flow
POINTS = 120  # of a curve, for a figure


@dataclass(frozen=True)
class Settings:
    """What is learned and how: by SGD over rows with noise, or by the flow over all facts up to the time `until`."""

    box: FactRecall
    members: int = 8
    recipe: Recipe | None = None
    until: float = 0.0


def _sgd(steps: int, batch: int) -> Recipe:
    return Recipe(
        steps=steps, batch=batch, optimiser="sgd", lr=0.1, beta1=0.0, clip=None, warmup=0, marks=12, test_rows=512
    )


def subjects() -> Iterator[Subject]:
    """SGD with batches of 256, and the flow."""
    yield Subject("SGD", data={"settings": Settings(FactRecall(), recipe=_sgd(5200, 256))})
    yield Subject("gradient flow", data={"settings": Settings(FactRecall(noise=0, length=3), until=600.0)})


def paper() -> Iterator[Subject]:
    """The authors' batches and steps, more seeds, and four times as many facts."""
    yield Subject("SGD", data={"settings": Settings(FactRecall(), 32, _sgd(1 << 13, 1024))})
    large = FactRecall(subjects=32, relations=8, per_relation=16, noise=40)
    yield Subject("SGD, four times the facts", data={"settings": Settings(large, 16, _sgd(1 << 14, 1024))})
    yield Subject("gradient flow", data={"settings": Settings(FactRecall(noise=0, length=3), 16, until=600.0)})


def check(subject: Subject) -> Evidence:
    """Learn the facts, and ask every member where it was on its way."""
    settings: Settings = subject.data["settings"]
    curves = _trained(settings) if settings.recipe else _flowed(settings)
    seen = [_passed(curve, settings.box) for curve in curves]
    relations, answers = settings.box.relations, settings.box.per_relation
    asked = [
        Asked("least KL from p(a|r)", [one["kl"] for one in seen], most=0.03),
        Asked(f"share of the time within {NEAR} nats of its loss", [one["share"] for one in seen], least=0.15),
        Asked("loss over that of p(a|r) on the plateau", [one["level"] for one in seen], least=0.95, most=1.05),
        Asked("loss of the relation there", [one["relation"] for one in seen], most=0.05),
        Asked("loss of the subject there, in ln D", [one["subject"] for one in seen], least=0.95),
        Asked("any answer, then p(a|r), then the right one", [one["order"] for one in seen], least=1.0),
        Asked("accuracy at the end", [one["accuracy"] for one in seen], least=0.99),
        Asked("loss at the end", [one["loss"] for one in seen], most=0.1),
        Asked("drift of what is kept", [one["drift"] for one in seen], most=DRIFT[_kind(settings)]),
    ]
    box = settings.box
    return decided(
        asked,
        domain=f"{box.subjects} subjects, {relations} relations of {answers} answers, {settings.members} members",
        seed=0,
        shown=_shown(curves, relations, answers, _kind(settings)),
    )


def _kind(settings: Settings) -> str:
    return "steps" if settings.recipe else "flow"


# Learning


def _family(spread: float) -> LinearHeadFamily:
    return LinearHeadFamily(start=1e-5, spread=spread, last=True)


def _trained(settings: Settings) -> list[Sequence[Mapping[str, Any]]]:
    """The curves of members that are trained by SGD, with what is kept and the loss of the relation."""
    box, family = settings.box, _family(0.0)

    def kept(net: Any, arrays: Mapping[str, Array], row: Row, seen: Any) -> Array:
        del net, row, seen
        return _kept(arrays)

    def squares(net: Any, arrays: Mapping[str, Array], row: Row, seen: Any) -> Array:
        del net, row, seen
        return (arrays[SAID] ** 2).sum(axis=-1).max()

    def relation(net: Any, arrays: Mapping[str, Array], row: Row, seen: Any) -> Array:
        del seen
        return relation_loss(box, family.logits(net, box, arrays, row), row)

    probes = {"kept": kept, "squares": squares, "relation": relation}
    runs = train(family, box, members=settings.members, recipe=settings.recipe, probes=probes)
    return [run.curve for run in runs]


def _flowed(settings: Settings) -> list[Sequence[Mapping[str, Any]]]:
    """The same of trajectories of the flow over all facts, each as a row of subject, relation and end."""
    box, family, starts = settings.box, _family(0.5), range(settings.members)
    net, row = family.architecture(box), every_fact(box)
    first = [family.first(net, jax.random.key(seed)) for seed in starts]

    def logits(point: Mapping[str, Array], row: Row) -> Array:
        return family.logits(net, box, family.arrays(net, point), row)

    found = flow(
        lambda point, row: mean_loss(logits(point, row), row),
        {name: np.stack([np.asarray(point[name]) for point in first]) for name in first[0]},
        jax.tree.map(lambda array: np.stack([array] * settings.members), row),
        until=settings.until,
        conserved={"kept": _kept},
        saves=400,
    )

    def measured(point: Mapping[str, Array]) -> dict[str, Array]:
        said = logits(point, row)
        return means(sums(box, said, row)) | {"relation": relation_loss(box, said, row)}

    values = {name: jnp.asarray(array, jnp.float32) for name, array in found.points.items()}
    each = jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(measured)))(values))
    each |= {"step": found.times, "kept": found.conserved["kept"]}
    each["squares"] = (found.points[SAID] ** 2).sum(axis=-1).max(axis=(-1, -2))
    return [_curve({name: array[start] for name, array in each.items()}) for start in starts]


def _curve(each: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Points of one trajectory up to its end."""
    times = each["step"]
    last = len(times) if (np.diff(times) > 0).all() else 1 + int(np.argmax(np.diff(times) <= 0))
    return [{name: array[at] for name, array in each.items()} for at in range(last)]


def every_fact(box: FactRecall) -> Row:
    """All facts of a sandbox without noise, as rows of subject, relation and end, in NumPy arrays."""
    known = np.asarray(box.known)
    end = np.full(len(known), len(box.symbols) - 1)
    before = ((0, 0), (box.length, 0))
    return Row(
        np.stack([known[:, 0], known[:, 1], end], axis=1).astype(np.int32),
        np.pad(known[:, 2:], before).astype(np.int32),
        np.pad(np.ones((len(known), 1), np.float32), before),
        {"relation": known[:, 1] - len(box.spec.subjects)},
    )


def relation_loss(box: FactRecall, logits: Array, row: Row) -> Array:
    r"""The mean of $-\ln \sum_{a \in A_r} p(a)$ for the relation $r$ that is asked for, at the last question."""
    known = np.asarray(box.known)
    own = np.zeros((box.relations, len(box.answers)), np.float32)
    own[known[:, 1] - len(box.spec.subjects), known[:, 2]] = 1.0
    said = jnp.exp(log_probabilities(logits)[:, -1])
    return -jnp.log((said * jnp.asarray(own)[row.latent["relation"]]).sum(axis=-1)).mean()


def _kept(point: Mapping[str, Array]) -> Array:
    r"""$\sum_a W(z,a)^2 - w(z)^2$ of every token."""
    return (point[SAID][0] ** 2).sum(axis=-1) - point[SCORES][0, :, 0] ** 2


# Measuring


def _passed(curve: Sequence[Mapping[str, Any]], box: FactRecall) -> dict[str, float]:
    """Where a member was on its way, and where it came to; all moments count alike, however many were measured."""
    step = np.array([point["step"] for point in curve])
    even = np.linspace(0, step[-1], 5001)

    def along(name: str) -> Any:
        return np.interp(even, step, [point[name] for point in curve])

    loss, far, aim = along("loss"), along("kl.relation"), curve[-1]["floor.relation"]
    nearest = min(curve, key=lambda point: point["kl.relation"])
    reached = [np.flatnonzero(along(name) <= most) for name, most in STAGES.items()]
    firsts = [int(found[0]) for found in reached if len(found)]
    kept = np.array([point["kept"] for point in curve])
    return {
        "kl": nearest["kl.relation"],
        "share": float((np.abs(loss - aim) <= NEAR).mean()),
        "level": float(loss[far <= max(NEAR, far.min())].mean() / aim),
        "relation": nearest["relation"],
        "subject": float((nearest["loss"] - nearest["relation"]) / np.log(box.per_relation)),
        "order": float(len(firsts) == len(STAGES) and firsts == sorted(set(firsts))),
        "accuracy": curve[-1]["accuracy"],
        "loss": curve[-1]["loss"],
        "drift": float(np.abs(kept - kept[0]).max() / max(point["squares"] for point in curve)),
    }


def _shown(curves: Sequence[Any], relations: int, answers: int, kind: str) -> dict[str, Any]:
    """Losses and KL of every member at common steps, rounded."""
    last = min(curve[-1]["step"] for curve in curves)
    at = np.linspace(0, last, POINTS)

    def along(name: str) -> list[list[float]]:
        values = [np.interp(at, [p["step"] for p in curve], [p[name] for p in curve]) for curve in curves]
        return [np.round(value, 4).tolist() for value in values[:16]]

    return {
        "kind": kind,
        "steps": np.round(at, 2).tolist(),
        "loss": along("loss"),
        "relation loss": along("relation"),
        "kl": along("kl.relation"),
        "relations": relations,
        "answers": answers,
    }


def sabotage(subject: Subject) -> Subject:
    """Relations and subjects change places, with an answer of its own for each subject of a relation."""
    settings: Settings = subject.data["settings"]
    box = settings.box
    turned = replace(box, subjects=box.relations, relations=box.subjects, per_relation=box.relations)
    return replace(subject, data={"settings": replace(settings, box=turned)})


def draw(shown: Mapping[str, Any]) -> Any:
    """Losses with their parts over the time, and the distance from p(a | r) below."""
    from vitrify.learn.figures import band, level, sheet

    figure, planes = sheet(2, len(shown), "Facts are made up from the relation before they are learned", 5.4, 3.4)
    for column, (name, seen) in enumerate(shown.items()):
        above, below = planes[0][column], planes[1][column]
        members, steps = len(seen["loss"]), seen["steps"]
        subject = (np.array(seen["loss"]) - np.array(seen["relation loss"])).tolist()
        band(above, steps, seen["loss"], f"loss ({members} members)", "C0")
        band(above, steps, seen["relation loss"], "its part for the relation", "C1")
        band(above, steps, subject, "its part for the subject", "C2", linestyle="--")
        level(above, float(np.log(seen["relations"] * seen["answers"])), "any answer: ln RD")
        level(above, float(np.log(seen["answers"])), "p(a|r): ln D")
        above.set_title(name, fontsize=10)
        above.set_ylabel("loss (nats per answer)")
        above.legend(fontsize=8, loc="lower left")
        band(below, steps, np.maximum(seen["kl"], 1e-4).tolist(), "KL(p(a|r) ‖ member)", "C3")
        level(below, 0.03, "asked for: 0.03")
        below.set_yscale("log")
        below.set_ylabel("KL (nats per answer)")
        below.set_xlabel("SGD step" if seen["kind"] == "steps" else "time of the flow")
        below.legend(fontsize=8, loc="lower left")
    return figure


CLAIM = Claim(
    row="L11",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
