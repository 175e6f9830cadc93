r"""A linear head that learns facts first has a plateau where it predicts $p(a \mid r)$ from the relation alone.

Statement: Facts map a subject $s$ and a relation $r$ to one of $D$ answers of that relation, with many subjects and $R$
few relations. A linear attention head over one-hot tokens, with scores $w(z)$ and output weights $W(z, a)$, learns them
from small weights in three stages: any answer (loss $\ln RD$), any answer of the right relation (loss $\ln D$, the
hallucination plateau), the right answer. On the plateau the prediction is close to $p(a \mid r)$ in loss and in KL
divergence. Gradient flow conserves $\sum_a W(z,a)^2 - w(z)^2$ for every token $z$.
Why: Both weights of a token grow like $e^{ct}$ from their start, where $c$ is proportional to how often the token
occurs and how informative it is: a relation occurs in $1/R$ of the sequences, a subject in $1/S$. The loss depends on
$w(z)$ and $W(z, \cdot)$ only through their product, so the flow conserves the difference of their squares.
Checked: SGD on sequences with noise tokens, one data seed per member, and the exact gradient flow in float64 over all
facts without noise, from random starts. Quick scale has 8 members each and batches of 256; large scale has 32 members
with the authors' batch of 1,024 and $2^{13}$ steps, 16 with four times the facts, and 16 flows. Judged are the KL
divergence from $p(a \mid r)$, the length and level of the plateau, the loss of relation and subject there, the order of
the stages, the final accuracy and loss, and the drift of the conserved quantity.
Not checked: Softmax attention, an MLP, trained embeddings, Adam, and other ratios of subjects to relations.
Source: Nichani, Lee and Bietti 2025, arXiv 2412.06538 [S]; sizes, start and learning rate as in their public code; the
thresholds are ours.
Saboteur: Few subjects and many relations, so that what the subject alone tells is learned first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials.facts import PLATEAU_NATS, flow_curves, head, passed, probes
from vitrify.claims.trials.trial import Criterion, Domain, Evidence, Method, Recipe, Trial, evidence, trained
from vitrify.encoding import JsonObject
from vitrify.learn.figures import band, panel, sheet
from vitrify.learn.stages import Curve
from vitrify.sandboxes.facts import FactRecall

MAX_KL, MIN_PLATEAU, MAX_RELATION, MIN_SUBJECT = 0.03, 0.15, 0.05, 0.95  # on the plateau; in nats, or in ln D
MIN_LEVEL, MAX_LEVEL = 0.95, 1.05  # loss over that of p(a | r)
MIN_ACCURACY, MAX_LOSS = 0.99, 0.1  # at the end
MAX_DRIFT = {"steps": 0.05, "flow": 1e-6}  # steps of SGD are not the flow
FLOW_TIME = 600.0
POINTS, DRAWN = 120, 16  # of a curve, for a figure; members


def subjects() -> Subjects:
    yield _sgd("SGD", FactRecall(), steps=5200, batch=256, seeds=8)
    yield _flow(FactRecall(noise=0, length=3), members=8)


def large() -> Subjects:
    """The authors' batches and steps, more seeds, and four times as many facts."""
    yield _sgd("SGD", FactRecall(), steps=1 << 13, batch=1024, seeds=32)
    large = FactRecall(subjects=32, relations=8, per_relation=16, noise=40)
    yield _sgd("SGD, four times the facts", large, steps=1 << 14, batch=1024, seeds=16)
    yield _flow(FactRecall(noise=0, length=3), members=16)


def _sgd(name: str, box: FactRecall, steps: int, batch: int, seeds: int) -> Subject:
    """Return members that are trained on sequences with noise tokens."""
    sgd = Recipe(optimizer="sgd", lr=0.1, beta1=0.0, clip=None, warmup=0)
    recipe = replace(sgd, steps=steps, batch=batch, evals_per_doubling=12, test_examples=512)
    trial = Trial(box, head(0.0), recipe, range(seeds), probes=probes(box, head(0.0)))
    return Subject(name, data={"box": box, **_numbers(box)}, trials={"SGD": trial})


def _flow(box: FactRecall, members: int) -> Subject:
    """Return trajectories of the exact flow over all facts."""
    ran = Domain("gradient flows", Method.INTEGRATED, members, settings={**_numbers(box), "until": FLOW_TIME})
    return Subject("gradient flow", data={"box": box, "members": members, "domain": ran})


def _numbers(box: FactRecall) -> dict[str, int]:
    return {"subjects": box.subjects, "relations": box.relations, "answers per relation": box.per_relation}


def sabotage(subject: Subject) -> Subject:
    """Exchange the numbers of relations and subjects, with one answer for each subject of a relation."""
    box = subject.data["box"]
    turned = replace(box, subjects=box.relations, relations=box.subjects, per_relation=box.relations)
    if not subject.trials:
        return _flow(turned, subject.data["members"])
    trial = replace(subject.trials["SGD"], sandbox=turned, probes=probes(turned, head(0.0)))
    return replace(subject, data={**subject.data, "box": turned, **_numbers(turned)}, trials={"SGD": trial})


def check(subject: Subject) -> Evidence:
    box: FactRecall = subject.data["box"]
    if subject.trials:
        kind, curves = "steps", [run.curve for run in trained(subject)["SGD"].runs]
    else:
        kind, curves = "flow", flow_curves(box, subject.data["members"], FLOW_TIME)
    seen = [passed(curve, box.per_relation) for curve in curves]
    of = {name: [each[name] for each in seen] for name in seen[0]}
    judged = Criterion.judged
    criteria = [
        judged("least KL from p(a|r)", of["kl"], at_most=MAX_KL),
        judged(f"share of time within {PLATEAU_NATS} nats of the loss of p(a|r)", of["share"], at_least=MIN_PLATEAU),
        judged("loss over that of p(a|r) on the plateau", of["level"], at_least=MIN_LEVEL, at_most=MAX_LEVEL),
        judged("loss of the relation on the plateau", of["relation"], at_most=MAX_RELATION),
        judged("loss of the subject on the plateau, in ln D", of["subject"], at_least=MIN_SUBJECT),
        judged("any answer, then p(a|r), then the right one", of["order"], at_least=1.0),
        judged("accuracy at the end", of["accuracy"], at_least=MIN_ACCURACY),
        judged("loss at the end", of["loss"], at_most=MAX_LOSS),
        judged("drift of the conserved quantity", of["drift"], at_most=MAX_DRIFT[kind]),
    ]
    return evidence(subject, criteria, _figure(curves, box, kind))


def _figure(curves: Sequence[Curve], box: FactRecall, kind: str) -> JsonObject:
    """Return losses and KL of every member at common steps, rounded."""
    at = np.linspace(0, min(curve[-1]["step"] for curve in curves), POINTS)

    def along(name: str) -> list[Array]:
        return [
            np.interp(at, [p["step"] for p in curve], [p[name] for p in curve]).round(4) for curve in curves[:DRAWN]
        ]

    names = {"loss": "loss", "relation loss": "relation", "kl": "kl.relation"}
    data = {"kind": kind, "steps": at.round(2), "relations": box.relations, "answers": box.per_relation}
    return data | {name: along(key) for name, key in names.items()}


def draw(figures: Figures) -> Figure:
    """Draw the loss and its parts over time, and the distance from p(a | r) below."""
    title = "Facts: p(a|r) is learned before the right answer"
    figure, axes = sheet(2, len(figures), title, 5.4, 3.4)
    for (name, data), (above, below) in zip(figures.items(), axes.T, strict=True):
        loss, relation = (np.array(data[each]) for each in ("loss", "relation loss"))
        draw, answers = partial(panel, x=data["steps"], legend="lower left"), data["answers"]
        band(above, data["steps"], loss - relation, "its part for the subject", "C2", linestyle="--")
        lines = {"any answer: ln RD": np.log(data["relations"] * answers), "p(a|r): ln D": np.log(answers)}
        groups = {f"loss ({len(loss)} members)": loss, "its part for the relation": relation}
        draw(above, groups=groups, lines=lines, title=name, ylabel="loss (nats per answer)")
        groups = {"KL(p(a|r) ‖ member)": np.maximum(data["kl"], 1e-4)}
        label = "SGD step" if data["kind"] == "steps" else "time of the flow"
        draw(below, groups=groups, lines={"threshold: 0.03": MAX_KL}, colors=("C3",), yscale="log", xlabel=label)
        below.set_ylabel("KL (nats per answer)")
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L11", standing="experiment", learned=True, budget_seconds=180)
