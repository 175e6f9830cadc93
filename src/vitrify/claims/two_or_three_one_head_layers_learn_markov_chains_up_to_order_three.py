r"""Two or three layers of one head learn in-context Markov chains of order up to three; one layer does not.

Statement: Each sequence is drawn from a chain of order $k$ of its own. Transformers with one head per layer and two or
three layers reach the loss of the optimal predictor, which counts what followed the last $k$ symbols, within 0.02 nats.
With one layer the excess loss stays larger.
Why: The head of the first layer can weight the last $k$ tokens differently, so that its output identifies the context.
The second layer, after a LayerNorm or ReLU units, finds earlier positions with the same context and reads the next
symbol there. One layer sees single tokens beside the current one, never a context together with its successor.
Not checked: The published orders, up to 4 with two layers and up to 8 with three, and sequences of 512 symbols. Larger
alphabets. That one layer fails is seen for these trained networks only.
Source: Rajaraman, Bondaschi, Ramchandran, Gastpar and Makkuva 2024, arXiv 2407.17686 [T]; Ekbote et al. 2025, arXiv
2508.07208 [S].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Recipe, Trained, Trial, evidence, recalled
from vitrify.learn.figures import dots, panel, reference_line, sheet
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.stages import OPTIMAL, levels
from vitrify.sandboxes.in_context_markov import InContextMarkov
from vitrify.sandboxes.kit.contexts import order_name

MAX_DEEP, MIN_SHALLOW = 0.02, 0.03  # nats above the optimum
MAX_GAIN = 0.01  # nats by which the excess of one layer may decrease in its last third
MIN_SEEDS = 13 / 16  # share of the seeds of two and three layers
SHORTER = "the net counts what followed one symbol less"
PLAN = Plan(
    version=1,
    question="How many layers of one head learn in-context Markov chains of order k?",
    statements={
        "two layers": Statement(
            "two layers reach the loss of the optimal predictor", f"excess ≤ {MAX_DEEP} nats", SHORTER
        ),
        "three layers": Statement(
            "three layers reach the loss of the optimal predictor", f"excess ≤ {MAX_DEEP} nats", SHORTER
        ),
        "one layer": Statement(
            "one layer does not, and has stopped improving",
            f"excess ≥ {MIN_SHALLOW} nats, and in the last third it decreases by ≤ {MAX_GAIN}",
            "one layer learns as two do, and has come as far after all its steps as they after half of theirs",
        ),
    },
    units="seed; each sequence draws its own chain",
    judged=range(100, 116),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "orders": Axis(3, 8),
        "states": Axis(2, 2),
        "length": Axis(256, 512),
        "batch": Axis(32, 256),
        "d_model": Axis(32, 8),
    },
    chosen="With 3,000 steps instead of 6,000, order 2 with two layers was learned by 6 of 8 explored seeds.",
)


def subjects() -> Subjects:
    """Order one needs no MLP and no LayerNorm."""
    family = TransformerFamily(
        heads=1, d_model=16, units=0, positions="relative", norm=False, biases=False, scale=0.75, gain=10.0
    )
    recipe = Recipe(steps=400, batch=16, lr=3e-3, test_examples=256, evals_per_doubling=6)
    yield _subject(InContextMarkov(states=2, length=48), family, recipe, PLAN.explored[:8])


def large() -> Subjects:
    family = TransformerFamily(heads=1, d_model=32, units=128, positions="relative", gain=10.0)
    recipe = Recipe(
        steps=6000, batch=32, lr=2e-3, weight_decay=1e-3, schedule="cosine", test_examples=512, evals_per_doubling=4
    )
    for order in (2, 3):
        yield _subject(InContextMarkov(states=2, length=256, order=order), family, recipe, PLAN.judged)


def _subject(sandbox: InContextMarkov, family: TransformerFamily, recipe: Recipe, seeds: Sequence[int]) -> Subject:
    name, data = f"order {sandbox.order}, rows of {sandbox.length}", {"order": sandbox.order, "length": sandbox.length}
    trials = {str(depth): Trial(sandbox, replace(family, layers=depth), recipe, seeds) for depth in (1, 2, 3)}
    return Subject(name, data=data, trials=trials)


def judge(subject: Subject, measured: Measured) -> Evidence:
    nets = recalled(subject, measured)
    names = {depth: f"{depth} layer{'s' * (depth != '1')}: nats above the optimum" for depth in nets}
    last = {depth: each.final("excess") for depth, each in nets.items()}
    one = nets["1"].curves("excess")
    # last mark before the last third
    third = int(np.searchsorted(nets["1"].steps, 2 * nets["1"].steps[-1] / 3, side="right")) - 1
    two, three, shallow = (partial(Criterion.judged, statement=key) for key in PLAN.statements)
    criteria = [
        two(names["2"], last["2"], at_most=MAX_DEEP, share=MIN_SEEDS),
        three(names["3"], last["3"], at_most=MAX_DEEP, share=MIN_SEEDS),
        shallow(names["1"], last["1"], at_least=MIN_SHALLOW),
        shallow("1 layer: decrease in its last third, nats", one[:, third] - last["1"], at_most=MAX_GAIN),
    ]
    figure = {
        "steps": nets["3"].steps,
        "excess": {depth: each.curves("excess") for depth, each in nets.items()},
        "levels": _known(nets["3"]),
        "optimum": order_name(subject.data["order"]),
    }
    return evidence(subject, criteria, figure)


def _known(nets: Trained) -> dict[str, float]:
    """Return how far the losses of known predictors are above the optimum, the worst first."""
    known = levels([{name: float(nets.final(name).flat[0]) for name in nets.values if name.startswith("floor")}])
    optimum = known.pop(OPTIMAL)
    return {name: value - optimum for name, value in known.items()}


def one_symbol_less(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which two and three layers have the loss of counts after one symbol less.

    What differs between seeds of one layer is added.
    """
    level, one = min(_known(recalled(subject, measured)["3"]).values()), measured["1/excess"][:, -1]
    null = dict(measured)
    for name in ("2/excess", "3/excess"):
        null[name] = null[name].copy()
        null[name][:, -1] = level + rng.choice(one - one.mean(), size=len(one))
    return null


def half_as_fast(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which one layer goes through the first half of what two layers do."""
    steps, curves = subject.trials["1"].recipe.eval_steps(), measured["2/excess"]
    drawn = rng.choice(curves, size=len(curves))
    return {**measured, "1/excess": np.array([np.interp(np.array(steps) / 2, steps, each) for each in drawn])}


def draw(figures: Figures) -> Figure:
    figure, axes = sheet(len(figures), 2, "One head per layer: how deep a net learns chains of an order")
    for (name, data), (curves, ends) in zip(figures.items(), axes, strict=True):
        excess = {depth: np.maximum(np.array(each, dtype=float), 1e-4) for depth, each in data["excess"].items()}
        for number, (depth, each) in enumerate(excess.items()):
            dots(ends, int(depth), each[:, -1], None, f"C{number}", spread=0, alpha=0.5)
        groups = {f"depth {depth} ({len(each)} seeds)": each for depth, each in excess.items()}
        panel(curves, data["steps"], groups, steps=True, title=name)
        for own in (curves, ends):
            for number, (predictor, value) in enumerate(data["levels"].items()):
                reference_line(own, value, predictor, at=0.99 - 0.15 * (number % 2))
            reference_line(own, MAX_DEEP, f"{data['optimum']} counts + 0.02", "C3", "--", at=0.01)
            own.set(yscale="log", ylabel="excess over the optimum (nats per symbol)")
        depths = [int(depth) for depth in excess]
        ends.set(xlabel="layers of one head", xticks=depths, title="after training", xlim=(0.5, len(depths) + 0.5))
    return figure


NULLS = {"two layers": one_symbol_less, "three layers": one_symbol_less, "one layer": half_as_fast}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, id="L7", standing="experiment")
