r"""Two or three layers of one head learn in-context Markov chains of order up to three; one layer does not.

Statement: Each sequence is drawn from a chain of order $k$ of its own. Transformers with one head per layer and two or
three layers reach the loss of the optimal predictor, which counts what followed the last $k$ symbols, within 0.02 nats.
With one layer the excess loss stays larger.
Why: The head of the first layer can weight the last $k$ tokens differently, so that its output identifies the context.
The second layer, after a LayerNorm or ReLU units, finds earlier positions with the same context and reads the next
symbol there. One layer sees single tokens beside the current one, never a context together with its successor.
Checked: Excess of the final test loss over the optimum, two states, eight seeds for each depth of 1, 2 and 3. Quick
scale has order 1, sequences of 48 symbols and attention-only networks of width 16. Large scale has orders 2 and 3,
sequences of 256 symbols, and width 32 with LayerNorm and ReLU units.
Not checked: The published orders, up to 4 with two layers and up to 8 with three, and sequences of 512 symbols. Larger
alphabets. That one layer fails is seen for these trained networks only. With 3,000 steps instead of 6,000, order 2 with
two layers was learned by 6 of 8 seeds.
Source: Rajaraman, Bondaschi, Ramchandran, Gastpar and Makkuva 2024, arXiv 2407.17686 [T]; Ekbote et al. 2025, arXiv
2508.07208 [S].
Saboteur: Networks of one layer are presented as those of two and three.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials.trial import Criterion, Evidence, Recipe, Trial, evidence, trained
from vitrify.learn.figures import dots, panel, reference_line, sheet
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.stages import OPTIMAL, levels
from vitrify.sandboxes.in_context_markov import InContextMarkov
from vitrify.sandboxes.kit.contexts import order_name

MAX_DEEP, MIN_SHALLOW = 0.02, 0.03  # nats above the optimum
MIN_SEEDS = 7 / 8  # share of the seeds of two and three layers


def subjects() -> Subjects:
    """Order one needs no MLP and no LayerNorm."""
    family = TransformerFamily(
        heads=1, d_model=16, units=0, positions="relative", norm=False, biases=False, scale=0.75, gain=10.0
    )
    recipe = Recipe(steps=400, batch=16, lr=3e-3, test_examples=256, evals_per_doubling=6)
    yield _subject(InContextMarkov(states=2, length=48), family, recipe)


def large() -> Subjects:
    family = TransformerFamily(heads=1, d_model=32, units=128, positions="relative", gain=10.0)
    recipe = Recipe(
        steps=6000, batch=32, lr=2e-3, weight_decay=1e-3, schedule="cosine", test_examples=512, evals_per_doubling=4
    )
    for order in (2, 3):
        yield _subject(InContextMarkov(states=2, length=256, order=order), family, recipe)


def _subject(sandbox: InContextMarkov, family: TransformerFamily, recipe: Recipe) -> Subject:
    name, data = f"order {sandbox.order}, rows of {sandbox.length}", {"order": sandbox.order, "length": sandbox.length}
    trials = {str(depth): Trial(sandbox, replace(family, layers=depth), recipe) for depth in (1, 2, 3)}
    return Subject(name, data=data, trials=trials)


def sabotage(subject: Subject) -> Subject:
    return replace(subject, trials=dict.fromkeys(subject.trials, subject.trials["1"]))


def check(subject: Subject) -> Evidence:
    nets = trained(subject)
    names = {depth: f"{depth} layer{'s' * (depth != '1')}: nats above the optimum" for depth in nets}
    last = {depth: each.final("excess") for depth, each in nets.items()}
    judged = Criterion.judged
    criteria = [
        judged(names["1"], last["1"], at_least=MIN_SHALLOW),
        judged(names["2"], last["2"], at_most=MAX_DEEP, share=MIN_SEEDS),
        judged(names["3"], last["3"], at_most=MAX_DEEP, share=MIN_SEEDS),
    ]
    known = levels(nets["3"].runs[0].curve)
    optimum = known.pop(OPTIMAL)
    figure = {
        "steps": nets["3"].steps,
        "excess": {depth: each.curves("excess") for depth, each in nets.items()},
        "levels": {name: value - optimum for name, value in known.items()},
        "optimum": order_name(subject.data["order"]),
    }
    return evidence(subject, criteria, figure)


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


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L7", standing="experiment", learned=True, budget_seconds=180)
