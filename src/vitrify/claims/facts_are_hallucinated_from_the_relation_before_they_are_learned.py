r"""A linear head that learns facts goes through a plateau on which it predicts $p(a \mid r)$ from the relation alone.

Statement: Facts map a subject $s$ and a relation $r$ to one of $D$ answers of that relation, with many subjects and $R$
few relations. A linear attention head over one-hot tokens, with scores $w(z)$ and output weights $W(z, a)$, learns them
from small weights in three stages: any answer (loss $\ln RD$), any answer of the right relation (loss $\ln D$, the
hallucination plateau), the right answer. On the plateau the prediction is close to $p(a \mid r)$ in loss and in KL
divergence. Gradient flow conserves $\sum_a W(z,a)^2 - w(z)^2$ for every token $z$.
Why: Both weights of a token grow like $e^{ct}$ from their start, where $c$ is proportional to how often the token
occurs and how informative it is: a relation occurs in $1/R$ of the sequences, a subject in $1/S$. The loss depends on
$w(z)$ and $W(z, \cdot)$ only through their product, so the flow conserves the difference of their squares.
Not checked: Softmax attention, an MLP, trained embeddings, Adam, and other ratios of subjects to relations. Flows run
over all facts without noise tokens, from random starts.
Source: Nichani, Lee and Bietti 2025, arXiv 2412.06538 [S]; sizes, start and learning rate as in their public code; the
thresholds are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import facts
from vitrify.claims.trials.facts import PLATEAU_NATS
from vitrify.claims.trials.trial import Criterion, Domain, Evidence, Measured, Method, Recipe, Trial, evidence, trained
from vitrify.encoding import JsonObject
from vitrify.learn.figures import band, panel, sheet
from vitrify.sandboxes.facts import FactRecall

MAX_KL, MIN_PLATEAU, MAX_RELATION, MIN_SUBJECT = 0.03, 0.15, 0.05, 0.95  # on the plateau; in nats, or in ln D
MIN_LEVEL, MAX_LEVEL = 0.95, 1.05  # loss over that of p(a | r)
MIN_ACCURACY, MAX_LOSS = 0.99, 0.1  # at the end
MAX_DRIFT = {"steps": 0.05, "flow": 1e-6}  # steps of SGD are not the flow
FLOW_TIME = 600.0
POINTS, DRAWN = 120, 16  # of a curve, for a figure; members
PLAN = Plan(
    version=1,
    question="Does a linear head predict p(a|r) from the relation alone for a while, before it learns the facts?",
    statements={
        "plateau": Statement(
            "the loss has a plateau at the loss of p(a|r)",
            f"share of the time within {PLATEAU_NATS} nats of that loss ≥ {MIN_PLATEAU}, and the mean loss where the "
            f"net is nearest to p(a|r) is {MIN_LEVEL} to {MAX_LEVEL} times it, in every seed",
            "from the step at which the loss begins to fall to that at which it has fallen, it falls steadily",
        ),
        "relation": Statement(
            "on the plateau the net predicts p(a|r): it knows the relation and nothing of the subject",
            f"least KL from p(a|r) ≤ {MAX_KL} nats; there the loss of the relation ≤ {MAX_RELATION} nats and that of "
            f"the subject ≥ {MIN_SUBJECT} ln D, in every seed",
            "the losses of relation and subject fall in proportion, and the total loss as measured",
        ),
        "order": Statement(
            "the net predicts any answer first, then p(a|r), then the right one",
            f"it comes within {PLATEAU_NATS}, {PLATEAU_NATS} and {facts.STAGES['kl']} nats of them at later and later "
            "times, in every seed",
            "in each seed a fair coin decides which of p(a|r) and the right answer is reached first",
        ),
        "conserved": Statement(
            "training conserves the difference of squares of each token's weights",
            f"largest change of any token, over the largest sum of squares: ≤ {MAX_DRIFT['flow']:g} by the flow, and ≤ "
            f"{MAX_DRIFT['steps']} by steps of SGD, in every seed",
            f"the two squares grow at rates that differ by {facts.NULL_DRIFT:.0%}",
        ),
    },
    units="seed: of the data for SGD, of the start for the flow",
    judged=range(100, 132),
    explored=range(32),
    stopping="fixed number of steps; a fixed time for the flow",
    scale={
        "subjects": Axis(16, 16),
        "relations": Axis(4, 4),
        "answers per relation": Axis(8, 8),
        "noise tokens": Axis(20, 20),
        "length": Axis(32, 32),
        "batch": Axis(1024, 1024),
        "steps": Axis(1 << 13, 1 << 13),
    },
    chosen="Sizes, start and learning rate are the authors'. A second subject has four times the facts.",
)


def subjects() -> Subjects:
    yield _sgd("SGD", FactRecall(), steps=5200, batch=256, seeds=PLAN.explored[:8])
    yield _flow(FactRecall(noise=0, length=3), PLAN.explored[:8])


def large() -> Subjects:
    """The authors' batches and steps, more seeds, and four times as many facts."""
    yield _sgd("SGD", FactRecall(), steps=1 << 13, batch=1024, seeds=PLAN.judged)
    more = FactRecall(subjects=32, relations=8, per_relation=16, noise=40)
    yield _sgd("SGD, four times the facts", more, steps=1 << 14, batch=1024, seeds=PLAN.judged[:16])
    yield _flow(FactRecall(noise=0, length=3), PLAN.judged[:16])


def _sgd(name: str, box: FactRecall, steps: int, batch: int, seeds: Sequence[int]) -> Subject:
    """Return members that are trained on sequences with noise tokens."""
    sgd = Recipe(optimizer="sgd", lr=0.1, beta1=0.0, clip=None, warmup=0)
    recipe = replace(sgd, steps=steps, batch=batch, evals_per_doubling=12, test_examples=512)
    family = facts.head(0.0)
    trial = Trial(box, family, recipe, seeds, probes=facts.probes(box, family))
    return Subject(name, data={"box": box, **_numbers(box)}, trials={"SGD": trial})


def _flow(box: FactRecall, seeds: Sequence[int]) -> Subject:
    """Return trajectories of the exact flow over all facts."""
    ran = Domain("gradient flows", Method.INTEGRATED, len(seeds), settings={**_numbers(box), "until": FLOW_TIME})
    return Subject("gradient flow", data={"box": box, "seeds": seeds, "domain": ran})


def _numbers(box: FactRecall) -> dict[str, int]:
    return {"subjects": box.subjects, "relations": box.relations, "answers per relation": box.per_relation}


def measure(subject: Subject) -> Measured:
    if subject.trials:
        return facts.of_steps(trained(subject)["SGD"])
    return facts.of_flow(subject.data["box"], subject.data["seeds"], FLOW_TIME)


def judge(subject: Subject, measured: Measured) -> Evidence:
    box, kind = subject.data["box"], "steps" if subject.trials else "flow"
    of, judged = facts.passed(measured, box.per_relation), Criterion.judged
    plateau, relation, order, conserved = (partial(judged, statement=key) for key in PLAN.statements)
    within = f"share of time within {PLATEAU_NATS} nats of the loss of p(a|r)"
    criteria = [
        judged("accuracy at the end", of["accuracy"], at_least=MIN_ACCURACY, premise=True),
        judged("loss at the end", of["loss"], at_most=MAX_LOSS, premise=True),
        plateau(within, of["share"], at_least=MIN_PLATEAU),
        plateau("loss over that of p(a|r) on the plateau", of["level"], at_least=MIN_LEVEL, at_most=MAX_LEVEL),
        relation("least KL from p(a|r)", of["kl"], at_most=MAX_KL),
        relation("loss of the relation on the plateau", of["relation"], at_most=MAX_RELATION),
        relation("loss of the subject on the plateau, in ln D", of["subject"], at_least=MIN_SUBJECT),
        order("any answer, then p(a|r), then the right one", of["order"], at_least=1.0),
        conserved("drift of the conserved quantity", of["drift"], at_most=MAX_DRIFT[kind]),
    ]
    return evidence(subject, criteria, _figure(measured, box, kind))


def _figure(members: Measured, box: FactRecall, kind: str) -> JsonObject:
    """Return losses and KL of every member at common steps, rounded."""
    steps = members["step"]
    at = np.linspace(0, steps[:, -1].min(), POINTS)

    def along(name: str) -> list[Array]:
        return [np.interp(at, *pair).round(4) for pair in zip(steps[:DRAWN], members[name], strict=False)]

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


NULLS = {
    "plateau": facts.steady,
    "relation": facts.in_proportion,
    "order": facts.either_first,
    "conserved": facts.unequal,
}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, measure, id="L11", standing="experiment")
