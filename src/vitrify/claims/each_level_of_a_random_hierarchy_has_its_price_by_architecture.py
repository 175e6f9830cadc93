r"""How many more sequences each further level of a random hierarchy takes, for CNNs and for transformers.

Statement: In the random hierarchy model a symbol of each level has $m$ productions. To predict the last leaf from the
$s^l - 1$ leaves before it, a net needs $P_l$ training sequences. For transformers $P_l \propto m^{2l - 1}$, as the
correlations of two leaves fall by a factor $m^2$ per level; convolutional nets, which are local and share their
weights, see correlations with hidden symbols, and $P_l$ grows by a factor $m$ per level: their exponent of the loss is
twice that of transformers. The source shows both for finite training sets, by theory (asymptotically) and experiment.
Not checked: Finite training sets (`cnns_learn_a_random_hierarchy_from_less_data_than_transformers`), next-token
loss at all leaves, the authors' sizes, other widths. Rates stay constant, and batches stay at 128: small last steps may
be hidden by the noise of the rate. A $P_l$ is infinite, or only bounded, where a net does not get there or where the
best rate is an end of the grid.
Source: Cagnetta, Favero, Sclocchi and Wyart 2025, arXiv 2505.07070 [P].
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import races
from vitrify.claims.trials.races import CNN, LCN, LOCAL, TF, Contrast, Nets, Race, factor, minus, slope, within
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Recipe, evidence
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.models.transformer import TransformerFamily

SLOPES = 1.7, 2.4  # of log_m P_l of the transformer, per level
MIN_LESS = 0.4  # by which the slope of the CNN is below it
MIN_GROWTH = 1.3  # of the factor between the two, per level
POWERS = {TF: (4.5, 5.5), CNN: (3.5, 4.5)}  # of m in P_3
MIN_SHARING = 1.5  # factor between nets without and with shared weights at the last step
SAME = 0.8, 1.25  # factors that count as 1
MIN_LOCALITY = 1.3  # factor between transformers without and with a local mask at step 3
HANDICAP = "a constant handicap: the slower net needs at every level the factor that it needs at step 2"
PLAN = Plan(
    version=1,
    question="How does the number of sequences for the next level grow, by architecture, when data are fresh?",
    statements={
        "transformer": Statement(
            "the slope of log_m P_l of the transformer is about 2",
            f"interval of the slope over l = 2..4 (m = 3) and l = 2, 3 (m = 4) inside {SLOPES}",
            HANDICAP,
        ),
        "less": Statement(
            "the slope of the CNN is below that of the transformer",
            f"interval of the paired difference over the same steps above {MIN_LESS}, for m = 3 and m = 4",
            HANDICAP,
        ),
        "doubling": Statement(
            "the slope of the CNN is 1, half that of the transformer",
            f"interval of the slope over l = 2..4 contains 1 and stays below {SLOPES[0]}, for m = 3 and m = 4",
            "the CNN follows the law of the transformer, with a constant advantage",
        ),
        "growth": Statement(
            "the factor between transformer and CNN grows from level to level",
            f"interval of its growth from step 2 to 3 (m = 3, 4) and from 3 to 4 (m = 3) above {MIN_GROWTH}",
            HANDICAP,
        ),
        "growth by m": Statement(
            "that factor grows by m per level",
            f"interval of each growth above {MIN_GROWTH}, and m inside",
            HANDICAP,
        ),
        "powers": Statement(
            "P_3 grows with m to the power 5 for the transformer, 4 for the CNN",
            "interval of the power of m in P_3 (1 - m/v) / v inside [4.5, 5.5] (m = 3, 4) and [3.5, 4.5] "
            "(m = 3, 4, 6), and of the difference above 0",
            "both powers are that of the CNN: the transformer has a constant handicap over all m",
        ),
        "sharing": Statement(
            "sharing weights saves sequences at step 4, and none at step 3",
            f"factor LCN/CNN: interval above {MIN_SHARING} at step 4, inside {SAME} at step 3, for m = 3 and m = 4",
            "the factor of step 3 at step 4, too",
        ),
        "locality": Statement(
            "a local mask alone saves a transformer sequences at step 3",
            f"factor transformer / transformer with local mask at step 3: interval above {MIN_LOCALITY}, m = 3 and 4",
            "the mask is worth nothing: a factor of 1, with the scatter between grammars that was measured",
        ),
    },
    units="grammar, with a seed of its own; intervals of Student's t over grammars, or of a normal law fitted to "
    "half-lines where a P_l is only bounded",
    judged=range(100, 108),
    explored=range(8),
    stopping="fixed number of sequences; at each mark the rate with the least validation loss",
    scale={
        "v": Axis(16, 32),
        "m": Axis(4, 8),
        "L": Axis(4, 4),
        "d_model": Axis(256, 512),
        "heads": Axis(8, 16),
        "channels": Axis(256, "?"),
        "batch": Axis(128, 128),
        "data": Axis("fresh sequences", "finite training sets"),
        "grammars": Axis(8, "?"),
    },
    chosen="Widths and batch: from runs on grammars 0 to 7 with other code. Rates: grammars 0 to 3, m = 3, up to 2^17 "
    "and 2^18 sequences with this code, on the GPU of the judged run. The best rate of CNNs falls from 6.4e-2 at steps "
    "1 and 2 to 4e-3 near step 4; 0.256 is behind everywhere. That of transformers falls from 3e-3 at step 1 to "
    "1.9e-4 and 4.7e-4 after step 3, where 7.5e-5 is behind. So both grids reach further on both sides.",
)
RACERS = {  # trial -> log2 of its sequences, and the last step that is judged
    f"{CNN}, m = 3": (22, 4),
    f"{LCN}, m = 3": (22, 4),
    f"{TF}, m = 3": (22, 4),
    f"{CNN}, m = 4": (23, 4),
    f"{TF}, m = 4": (20, 3),
    f"{LCN}, m = 4": (23, 4),
    f"{LOCAL}, m = 3": (20, 3),
    f"{LOCAL}, m = 4": (20, 3),
    f"{CNN}, m = 6": (23, 3),
}
LARGE = Nets(
    HierarchicalFamily(channels=256),
    (2.5e-4, 1e-3, 4e-3, 1.6e-2, 6.4e-2, 0.256),
    TransformerFamily(layers=4, heads=8, d_model=256),
    (3e-5, 1e-4, 3.3e-4, 1.1e-3, 3.6e-3),
)
SMALL = Nets(
    HierarchicalFamily(channels=64),
    (2e-3, 8e-3, 3.2e-2, 0.128),
    TransformerFamily(layers=3, heads=4, d_model=64),
    (3e-4, 1e-3, 3e-3, 9e-3),
)


def subjects() -> Subjects:
    recipe = Recipe(batch=32, beta2=0.98, warmup=20, test_examples=512, validation_examples=512)
    racers = {f"{net}, m = 2": (14, 3) for net in (CNN, LCN, TF, LOCAL)}
    yield races.subject(6, 3, recipe, racers, SMALL, PLAN.explored[:4])


def large() -> Subjects:
    recipe = Recipe(batch=128, beta2=0.98, warmup=50, test_examples=8192, validation_examples=8192)
    yield races.subject(16, 4, replace(recipe, precision="bfloat16"), RACERS, LARGE, PLAN.judged)


def judge(subject: Subject, measured: Measured) -> Evidence:
    race, last = Race.of(subject, measured), subject.data["last"]
    criteria: list[Criterion] = []

    def judged(statement: str, name: str, contrast: Contrast, *, ratio: bool = False, **limits: Any) -> None:
        if not subject.statements or statement in subject.statements:
            own = race.mean(contrast)
            value, interval = own.exp() if ratio else own
            criteria.append(Criterion.estimated(name, value, interval, statement=statement, **limits))

    for m in race.productions(TF):
        steps = range(2, last[f"{TF}, m = {m}"] + 1)
        slopes = {net: slope(net, m, steps) for net in (TF, CNN)}
        judged("transformer", f"slope of the transformer, m = {m}", slopes[TF], **within(SLOPES), null=1)
        less = minus(slopes[TF], slopes[CNN])
        judged("less", f"slope of the transformer minus that of the CNN, m = {m}", less, at_least=MIN_LESS, null=0)
        own = slope(CNN, m, range(2, last[f"{CNN}, m = {m}"] + 1))
        judged("doubling", f"slope of the CNN, m = {m}", own, at_most=SLOPES[0], null=2, published=1)
        for step in steps[:-1]:
            growth = minus(factor(TF, CNN, m, step + 1), factor(TF, CNN, m, step))
            name, limits = f"growth of transformer / CNN from step {step} to {step + 1}, m = {m}", {"null": 1}
            judged("growth", name, growth, ratio=True, at_least=MIN_GROWTH, **limits)
            judged("growth by m", f"{name}, against m", growth, ratio=True, at_least=MIN_GROWTH, published=m, **limits)
    for m in race.productions(LCN):
        end = last[f"{LCN}, m = {m}"]
        name, late, early = f"{LCN} / {CNN} at step", *(factor(LCN, CNN, m, step) for step in (end, end - 1))
        judged("sharing", f"{name} {end}, m = {m}", late, ratio=True, at_least=MIN_SHARING, null=1)
        judged("sharing", f"{name} {end - 1}, m = {m}", early, ratio=True, **within(SAME))
    for m in race.productions(LOCAL):
        name, saved = f"transformer / {LOCAL} at step 3, m = {m}", factor(TF, LOCAL, m, 3)
        judged("locality", name, saved, ratio=True, at_least=MIN_LOCALITY, null=1)
    if len(race.productions(TF)) > 1 and (not subject.statements or "powers" in subject.statements):
        criteria += races.powers(race, POWERS, subject.data["v"])
    if subject.statements:
        return evidence(subject, criteria, {})
    return evidence(subject, criteria, race.figure(), race.quantities())


def handicapped(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements of redrawn grammars in which a transformer is a CNN that needs a factor more at each step."""
    return races.delayed(subject, measured, rng, slow=TF, fast=CNN, step=2)


def same_power(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return the same with one factor for all m."""
    return races.delayed(subject, measured, rng, slow=TF, fast=CNN, step=2, common=True)


def advanced(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which a CNN is a transformer that needs a factor less at each step."""
    return races.delayed(subject, measured, rng, slow=CNN, fast=TF, step=2)


def unshared(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which a net without sharing needs at each step the factor of the last step but one."""
    last = min(end for name, end in subject.data["last"].items() if name.startswith(LCN))
    return races.delayed(subject, measured, rng, slow=LCN, fast=CNN, step=last - 1)


def unmasked(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the local mask changes nothing but the luck of a grammar."""
    return races.delayed(subject, measured, rng, slow=TF, fast=LOCAL, step=3, centered=True)


def draw(figures: Figures) -> Figure:
    return races.draw(figures)


NULLS = {
    **dict.fromkeys(("transformer", "less", "growth", "growth by m"), handicapped),
    "doubling": advanced,
    "powers": same_power,
    "sharing": unshared,
    "locality": unmasked,
}
CLAIM = Claim.planned(
    PLAN, subjects, judge, NULLS, large, draw, races.measured, id="L13", standing="experiment", budget_seconds=240
)
