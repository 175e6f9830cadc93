r"""Second-order chains are learned with one head per lag, after a plateau at the near-stationary bigram predictor.

Statement: The next symbol depends on the two before it, by a kernel that is drawn anew for each sequence. A transformer
with two layers of two heads moves from the uniform to the unigram, bigram and trigram predictor, and its loss stays at
that of bigrams for a while. At the end one head of the first layer attends one token back and the other two. In a model
of two attention layers whose first sees only distances, the parameter point that computes bigram counts is
near-stationary: the gradient norm there tends to zero as sequences get longer and attention gets sharper.
Why: At such a point what the heads retrieve is the same at all attended positions, so to first order no change of the
comparison changes the output. Progress needs a head at a new lag and a comparison that uses it, and each is useless
without the other.
Not checked: Orders above 2 and more than 2 states. The trained network is an ordinary transformer, not the authors'
model; the model of the points has no value matrices and no tokens among its keys (with these, gradients were several
times larger and fell less). At the unigram point the gradient falls to length 32, where it changes its sign, and hardly
beyond. Where heads attend one token too far back, which computes nothing, the gradient norm falls as well: a small
gradient shows that attention is sharp, and only with the loss that the point is that of bigrams. A plateau in the sense
of flat slopes was not found at the bigram loss; it is told how often. Steps and learning rate were chosen on other
seeds, and the share of the steps on the plateau depends on them (6 % of 4,000 steps).
Source: Varre, Yüce and Flammarion 2025, arXiv 2508.12837 [S]; Chen, Sheen, Wang and Yang 2024, arXiv 2409.10559 [S]; in
the spirit of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import plateaus, points
from vitrify.claims.trials import trial as trials
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, Trial, evidence, recalled
from vitrify.learn.figures import panel, sheet
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import attention_on, back
from vitrify.learn.stages import WINDOW, distances, gap, nearest, plateau_share
from vitrify.sandboxes.in_context_markov import InContextMarkov

STAGES = ("uniform", "unigram", "bigram", "trigram")
MIN_STAGE, MAX_GAP = 0.1, 0.05  # in ln(1 + step); relative distance from the loss of the nearest predictor
PLATEAU_NATS, BELOW_NATS, MIN_PLATEAU = 0.01, 0.03, 0.1  # from the bigram loss; below it; share of the steps
MIN_WEIGHT, MAX_KL, MIN_SEEDS = 0.5, 0.04, 13 / 16  # attention of a head to its lag; nats to the trigrams at the end
MAX_POWER, MAX_ABOVE = -0.5, 0.01  # of the length in the gradient norm; nats above counting at the last pair
FAMILY = TransformerFamily(
    layers=2, heads=2, d_model=32, units=0, positions="relative", norm=False, biases=False, scale=0.75, gain=10.0
)
PROBES = {f"back {lag}": attention_on(back(lag)) for lag in points.LAGS}
PLAN = Plan(
    version=1,
    question="Are second-order chains learned by way of the bigram predictor, and is that a near-stationary point?",
    statements={
        "stages": Statement(
            "a transformer moves from the uniform to the unigram, bigram and trigram predictor and rests at bigrams",
            f"each is the nearest in KL for ≥ {MIN_STAGE:g} in ln(1 + step), with a loss within {MAX_GAP:.0%} of its "
            f"own; for ≥ {MIN_PLATEAU:.0%} of the steps the loss is within {PLATEAU_NATS:g} nats of that of bigrams",
            "the loss falls smoothly from its first to its last value, with the measured noise",
        ),
        "lags": Statement(
            "at the end one head of the first layer attends one token back and the other one two",
            f"for one assignment of heads to lags all have an attention ≥ {MIN_WEIGHT:g} to their own",
            "both heads attend to both lags, as a drawn network does in the mean of its heads",
        ),
        "point": Statement(
            "at the point that computes bigram counts the gradient vanishes as length and sharpness grow",
            f"power of the length in its norm ≤ {MAX_POWER:g} (interval); loss ≤ {MAX_ABOVE:g} nats above counting",
            "any point with attention as sharp is as good: heads attend one token too far back",
        ),
    },
    units="seed, of the network and all its sequences; for points a batch of sequences",
    judged=range(100, 116),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "steps": Axis(750, 1024),
        "batch": Axis(32, 128),
        "length": Axis(128, 128),
        "states": Axis(2, 5),
        "order": Axis(2, 3),
        "network": Axis("two attention layers without norms", None),
    },
    chosen=f"{MIN_SEEDS:.0%} of the seeds are asked for; of 16 explored ones 15 have one head per lag.",
)


def subjects() -> Subjects:
    recipe = Recipe(steps=1000, batch=16, lr=3e-3, test_examples=256, evals_per_doubling=8)
    yield _chains(64, recipe, PLAN.explored[:8])
    yield points.subject(((8, 3.0), (32, 6.0), (128, 10.0)), batch=1024, first=PLAN.explored[0])


def large() -> Subjects:
    recipe = Recipe(steps=750, batch=32, lr=2e-3, test_examples=1024, evals_per_doubling=6)
    yield _chains(128, recipe, PLAN.judged)
    pairs = ((8, 3.0), (32, 6.0), (64, 8.0), (128, 10.0), (256, 12.0))
    yield points.subject(pairs, batch=2048, first=PLAN.judged[0])


def _chains(length: int, recipe: Recipe, seeds: Sequence[int]) -> Subject:
    trial = Trial(InContextMarkov(states=2, length=length, order=2), FAMILY, recipe, seeds, probes=PROBES)
    return Subject(f"trained, 2 states, rows of {length}", data={"length": length}, trials={"chains": trial})


def measure(subject: Subject) -> Measured:
    return trials.measured(subject) if subject.trials else points.measured(subject)


def judge(subject: Subject, measured: Measured) -> Evidence:
    if not subject.trials:
        return _judged_points(subject, measured)
    nets, optimal, curves = recalled(subject, measured)["chains"], STAGES[-1], plateaus.points(measured)
    found, losses = zip(*(plateaus.stages_of(curve, WINDOW, optimal) for curve in curves), strict=True)
    passed = [nearest(curve, MIN_STAGE, optimal) for curve in curves]
    through = [float(tuple(stage.name for stage in each) == STAGES) for each in passed]
    gaps = [gap(*both) for both in zip(passed, losses, strict=True)]
    loss, kl = nets.curves("loss"), {name: nets.curves(key) for name, key in distances(curves[0], optimal).items()}
    levels = [(own, known["bigram"]) for own, known in zip(loss, losses, strict=True)]
    held = [plateau_share(nets.steps, *both, PLATEAU_NATS, BELOW_NATS) for both in levels]
    weights = np.stack([nets.curves(name)[..., : len(points.LAGS)] for name in PROBES])  # [lag, seed, step, head]
    own = [points.shared_out(weights[:, seed, -1]) for seed in range(len(loss))]
    most = partial(Criterion.judged, share=MIN_SEEDS)
    stages = partial(most, statement="stages")
    criteria = [
        most("KL to the optimum at the end, nats", kl[optimal][:, -1], at_most=MAX_KL, premise=True),
        stages(f"nearest predictors in the order {', '.join(STAGES)}", through, at_least=1),
        stages("distance of the loss from that of the predictor, where nearest", gaps, at_most=MAX_GAP),
        stages("share of the steps at the bigram loss", held, at_least=MIN_PLATEAU),
        most("attention of each head to its own lag", own, at_least=MIN_WEIGHT, statement="lags"),
    ]
    heads = {f"head {head + 1}, {name}": weights[at, ..., head] for head in (0, 1) for at, name in enumerate(PROBES)}
    flat = [any(stage.name == "bigram" for stage in each) for each in found]
    told = Quantity("share of the seeds with a flat part named after bigrams", np.mean(flat))
    figure = {"steps": nets.steps, "loss": loss, **kl, **heads, "levels": losses[0]}
    return evidence(subject, criteria, figure, [told])


def _judged_points(subject: Subject, measured: Measured) -> Evidence:
    pairs, above = subject.data["pairs"], measured["bigram/gaps"][-1]
    power, name = points.exponent(measured["bigram/norms"], pairs), "bigram: power of the length in the gradient norm"
    criteria = [
        Criterion.estimated(name, *power, at_most=MAX_POWER, null=0.0, statement="point"),
        Criterion.judged("bigram: nats above counting at the last pair", above, at_most=MAX_ABOVE, statement="point"),
    ]
    told = [Quantity(f"{key}: gradient norms", measured[f"{key}/norms"].mean(axis=1)) for key in points.POINTS]
    shown = {name: {what: measured[f"{name}/{what}"] for what in ("norms", "gaps")} for name in ("unigram", "bigram")}
    return evidence(subject, criteria, {**shown, "pairs": pairs}, told)


def shared_heads(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return networks of drawn seeds whose heads of the first layer attend alike, as they do in the mean."""
    del subject
    drawn = rng.integers(len(measured["chains/loss"]), size=len(measured["chains/loss"]))
    changed = {key: measured[key][drawn] for key in (f"chains/{name}" for name in PROBES)}
    for weights in changed.values():
        weights[..., : len(points.LAGS)] = weights[..., : len(points.LAGS)].mean(axis=-1, keepdims=True)
    return {**measured, **changed}


def elsewhere(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return norms and losses of the point with heads that attend one token too far back, of batches drawn anew."""
    del subject
    drawn = rng.integers(points.BATCHES, size=points.BATCHES)
    return {**measured, **{f"bigram/{what}": measured[f"elsewhere/{what}"][:, drawn] for what in ("norms", "gaps")}}


def draw(figures: Figures) -> Figure:
    figure, ((losses, far, attention, slopes),) = sheet(1, 4, "Sub-n-gram plateaus before one head per parent")
    name, data = next((name, data) for name, data in figures.items() if "pairs" not in data)
    draw = partial(panel, x=data["steps"], steps=True)
    weights = np.array([[data[f"head {head}, {lag}"] for lag in PROBES] for head in (1, 2)])  # [head, lag, seed, step]
    straight = weights[0, 0, :, -1] + weights[1, 1, :, -1] >= weights[1, 0, :, -1] + weights[0, 1, :, -1]
    own = [np.where(straight[:, None], weights[at, at], weights[1 - at, at]) for at in (0, 1)]  # ends at this lag
    groups = {f"test loss ({len(data['loss'])} seeds)": data["loss"]}
    draw(losses, groups=groups, lines=data["levels"], ylabel="loss (nats per symbol)", title=name)
    groups = {f"KL({predictor} ‖ net)": data[predictor] for predictor in STAGES}
    draw(far, groups=groups, colors=("C1", "C2", "C3", "C4"), ylabel="nats per symbol", yscale="log")
    far.set_title("distance from known predictors")
    groups = {f"head that ends at lag {lag}": each for lag, each in zip(points.LAGS, own, strict=True)}
    draw(attention, groups=groups, lines={"threshold: 0.5": MIN_WEIGHT}, colors=("C6", "C7"), ylim=(0, 1))
    attention.set(ylabel="attention to its own lag", title="heads of the first layer")
    points.draw_slopes(slopes, *next((name, data) for name, data in figures.items() if "pairs" in data))
    return figure


NULLS = {"stages": plateaus.smooth, "lags": shared_heads, "point": elsewhere}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, measure, id="L6", standing="experiment")
