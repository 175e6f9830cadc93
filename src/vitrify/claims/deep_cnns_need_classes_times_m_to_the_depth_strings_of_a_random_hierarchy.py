r"""A deep CNN needs about $n_c m^L$ strings to classify a random hierarchy; a shallow net needs more and more of them.

Statement: In the random hierarchy model one of $n_c$ classes is rewritten $L$ times, each symbol by one of its $m$
productions. A CNN whose layers see the levels of the tree classifies strings that it has not seen once it is trained on
about $P^* = n_c m^L$ of the $n_c m^{2^L - 1}$ strings: a power of the length $2^L$, not an exponential. A shallow fully
connected net needs a number that grows faster.
Why: Productions of one symbol are equally correlated with the class. $P^*$ strings are enough to see by these
correlations which pairs of symbols are synonyms. A net that is made of $L$ layers of pairs can replace synonyms by
their symbol, level by level; without such layers, it must see them in each context.
Not checked: That hidden layers ignore synonyms at the same $P^*$
([](#deep_cnns_learn_the_random_hierarchy_one_level_per_layer)), productions of more than two symbols, deep fully
connected nets, other widths, rates and thresholds; $v = m$ with $L = 2$ below $v = 8$, where the strings for 10 % error
would be nearly all strings; the largest models of the source. Shallow nets here have two hidden layers.
Source: Cagnetta, Petrini, Tomasini, Favero and Wyart 2024, arXiv 2307.02129 [P].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import sample_complexity
from vitrify.claims.trials.sample_complexity import CNN, SHALLOW, Curves, Model, curves, trials
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Recipe, Trial, evidence
from vitrify.learn.models.hierarchical import HierarchicalFamily

EXPONENTS = 0.9, 1.1  # of n_c and of m^L
LEVELS = 0.4, 0.2, 0.1  # errors at which models are compared
MAX_SPREAD = 1.5  # largest over smallest P / P* of the models with such an error
MIN_GROWTH = 1.5  # power of P* in P(10 %) of the shallow net
MAX_TIMES = 64  # strings of the shallow net, in units of P*
MIN_FITTED = 0.95  # of the members of a model
LOSS = 1e-3  # of training, at which it ends
RATE = 0.5  # of Adam, times the square root of the width: numbers that are trained have deviation 1
RECIPE = Recipe(
    steps=1 << 17,
    batch=128,
    warmup=0,
    clip=None,
    test_examples=4096,
    evals_per_doubling=4,
    stop_training=LOSS,
    precision="bfloat16",
)
MAX_STEPS = {CNN: 1 << 15, SHALLOW: 1 << 17}
DEEP_TIMES = tuple(2 ** (k / 2) for k in range(-3, 9))
SHALLOW_TIMES = tuple(2.0**k for k in range(7))
PLAN = Plan(
    version=1,
    question="How does the number of training strings for 10 % error depend on classes, productions and levels?",
    statements={
        "law": Statement(
            "a deep CNN needs a number of strings proportional to n_c and to m^L",
            f"regression of ln P(10 %) on ln n_c and L ln m: both coefficients' intervals inside {EXPONENTS}",
            "P(10 %) is proportional to n_c m, the number of strings of the last level only",
        ),
        "collapse": Statement(
            "errors of all models are the same function of P / P*, P* = n_c m^L",
            f"P / P* at which the mean error of the grammars falls to {', '.join(map(str, LEVELS))}: largest over "
            f"smallest of the models at most {MAX_SPREAD}",
            "errors are the same function of P / (n_c m)",
        ),
        "shallow": Statement(
            "a fully connected net of two hidden layers needs a number that grows faster than P*",
            f"slope of mean ln P(10 %) over ln P*: interval above {MIN_GROWTH}, where a grammar that errs more often "
            f"with all sizes, up to {MAX_TIMES} P*, counts as the largest size and must not make the slope larger; or "
            "no grammar of any model gets to 10 %",
            "it needs a constant factor more than P*: the CNN's curves, moved so that the slope is 1",
        ),
    },
    units="grammar, with a training seed of its own; eight for each model, intervals of a regression over all of them "
    "or of Student's t over those of each model",
    judged=range(200, 208),
    explored=range(32),
    stopping=f"mean training loss since the last measurement at most {LOSS}, four measurements per doubling of steps",
    scale={
        "width": Axis(512, 512),
        "batch": Axis(128, 128),
        "stopping": Axis(f"training loss {LOSS}", f"training loss {LOSS}"),
        "scaling": Axis("mean field", "mean field"),
        "optimizer": Axis("Adam, constant rate", "SGD"),
        "rate": Axis(f"{RATE} over the square root of the width", "?"),
        "training set": Axis("drawn with replacement, P different strings expected", "P different strings"),
        "v": Axis(16, "?"),
        "L": Axis(6, "?"),
        "shallow net": Axis("two hidden layers", "?"),
        "grammars": Axis(8, "?"),
    },
    chosen="Grammars 0 to 3, v = 3, 4, 8, 16, width 48 to 256. Adam at 0.5 over the square root of the width gets to "
    "the loss in 100 to 4,000 steps. Four times that rate is too noisy to get there with v = 16; a third of it is too "
    "slow with v = 8, and errs more often. SGD in the same scaling (0.3 times the width) errs as often and takes ten "
    "times the steps. In the usual scaling errors are larger: 0.2 instead of 0.02 with 4 P*, v = 3, L = 3. With one "
    "hidden layer the shallow net does not always reach the loss, so it has two. A size is left out where training and "
    "test strings would be more than 90 % of all strings, so v = m with L = 2 begins at v = 8; v = 16 with m = 8 and "
    "L = 4 is left out for its cost.",
)
SMALL = tuple(Model(*sizes) for sizes in ((3, 3, 3, 3), (4, 4, 4, 3), (4, 4, 3, 3), (3, 3, 3, 4), (4, 3, 4, 3)))
SMALL_SHALLOW = SMALL[0], SMALL[1], SMALL[3]
# 19 models x 12 sizes x 8 grammars; a step of a member takes 4e8 (2^(L - 1) - 1) operations: about 1e16 in all.
EQUAL = ((4, 3), (4, 4), (4, 5), (4, 6), (6, 3), (6, 4), (6, 5), (8, 2), (8, 3), (8, 4), (16, 2), (16, 3))
MODELS = (
    *(Model(v, v, v, L) for v, L in EQUAL),  # v = m = n_c
    *(Model(*sizes) for sizes in ((8, 8, 4, 3), (16, 16, 4, 2), (16, 16, 4, 3))),
    *(Model(*sizes) for sizes in ((16, 4, 16, 3), (16, 4, 16, 4), (16, 8, 16, 2), (16, 8, 16, 3))),
)
SHALLOW_MODELS = Model(4, 4, 4, 3), Model(4, 4, 4, 4), Model(6, 6, 6, 3)  # all strings are more and more times P*


def subjects() -> Subjects:
    recipe = replace(RECIPE, steps=1 << 13, test_examples=512, precision="float32")
    times = {CNN: DEEP_TIMES[1:10:2], SHALLOW: SHALLOW_TIMES[1:5]}
    yield _subject(recipe, 96, {CNN: SMALL, SHALLOW: SMALL_SHALLOW}, times, PLAN.explored[:4])


def large() -> Subjects:
    times = {CNN: DEEP_TIMES, SHALLOW: SHALLOW_TIMES}
    yield _subject(RECIPE, 512, {CNN: MODELS, SHALLOW: SHALLOW_MODELS}, times, PLAN.judged)


def _subject(
    recipe: Recipe,
    width: int,
    models: Mapping[str, Sequence[Model]],
    times: Mapping[str, Sequence[float]],
    units: Sequence[int],
) -> Subject:
    family = HierarchicalFamily(channels=width, mean_field=True)
    made: dict[str, Trial] = {}
    for net, chosen in models.items():
        own = replace(recipe, lr=RATE / math.sqrt(width), steps=min(recipe.steps, MAX_STEPS[net]))
        made |= trials(net, chosen, family, own, units, times[net])
    return Subject("classification", data={"width": width, "models": len(models[CNN])}, trials=made)


def judge(subject: Subject, measured: Measured) -> Evidence:
    deep, shallow = (curves(subject, measured, net) for net in (CNN, SHALLOW))
    judges = {"law": (CNN, deep, _law), "collapse": (CNN, deep, _collapse), "shallow": (SHALLOW, shallow, _shallow)}
    criteria: list[Criterion] = []
    for statement in subject.statements or judges:
        net, own, judged = judges[statement]
        name, shares = f"share of nets with training loss {LOSS}, by model, {net}", sample_complexity.fitted(own)
        criteria.append(Criterion.judged(name, shares, at_least=MIN_FITTED, premise=True, statement=statement))
        criteria += judged(own)
    if subject.statements:
        return evidence(subject, criteria, {})
    return evidence(subject, criteria, sample_complexity.figure(deep, shallow), sample_complexity.told(deep, shallow))


def _law(own: Curves) -> list[Criterion]:
    judged = partial(Criterion.estimated, at_least=EXPONENTS[0], at_most=EXPONENTS[1], statement="law")
    _, classes, productions = sample_complexity.law(own).coefficients
    return [judged("coefficient of ln n_c", *classes), judged("coefficient of L ln m", *productions)]


def _collapse(own: Curves) -> list[Criterion]:
    errors, judged = ", ".join(map(str, LEVELS)), partial(Criterion.judged, statement="collapse")
    spreads, known = zip(*(sample_complexity.spread(own, level) for level in LEVELS), strict=True)
    return [
        judged(f"share of models whose P is known for errors {errors}", known, at_least=1, premise=True),
        judged(f"largest over smallest P / P* of models, errors {errors}", spreads, at_most=MAX_SPREAD),
    ]


def _shallow(own: Curves) -> list[Criterion]:
    never = sample_complexity.unreached(own)
    if min(never) == 1:
        name = "share of grammars with more than 10 % error at all sizes, by model"
        return [Criterion.judged(name, never, at_least=1.0, statement="shallow")]
    name = f"power of P* in P(10 %), {SHALLOW}" + (", at least" if any(never) else "")
    slope = sample_complexity.growth(own)
    return [Criterion.estimated(name, *slope, at_least=MIN_GROWTH, null=1.0, statement="shallow")]


def draw(figures: Figures) -> Figure:
    return sample_complexity.draw(figures)


NULLS = {
    "law": sample_complexity.last_level,
    "collapse": sample_complexity.last_level,
    "shallow": sample_complexity.constant_factor,
}
CLAIM = Claim.planned(
    PLAN, subjects, judge, NULLS, large, draw, sample_complexity.measured, id="L13", standing="experiment"
)
