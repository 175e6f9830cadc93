r"""One attention layer lets a recurrent network recall nearly all key–value pairs, where the recurrence alone does not.

Statement: A sequence lists key–value pairs and then queries the values by their keys. Two layers of a gated linear
recurrence recall only part of the values when there are many pairs. If the second layer is attention instead, nearly
every value is recalled after as many steps, at every number of pairs, as with attention in both layers.
Why: A recurrence must carry all pairs, bound to their keys, in a state of fixed size before it knows the query. With
attention, the state of the first layer attaches the previous key to each value, and the query finds the value with its
key. Two attention layers can do so once the first attends to the previous token, which takes them longer to learn.
Checked: Share of right values for each seed on fresh sequences; each number of pairs is trained separately. Quick scale
has 3 and 6 pairs, 32 tokens, width 32 and 5 seeds; large scale has 4, 16 and 32 pairs, 512 tokens, width 64 and 8
seeds. The recurrence is judged at the largest number of pairs, the hybrid at all of them and in all seeds, the
transformer in most seeds, as some have not learned to attend to the previous token when training ends.
Not checked: That no recurrence could do it at this width; recurrences with short convolutions or matrix states; the
authors' vocabulary of 8,192 and up to 64 pairs. Every step has the same number of queries: with the same number of
sequences instead, the hybrid reached 0.65 to 0.99 on 2 pairs in 500 steps (seeds 20 to 24). Sizes were then chosen on
other seeds and judged on fresh ones.
Source: Wen, Dang and Lyu 2024, arXiv 2402.18510 [S]: one attention layer suffices; the task and the comparison at equal
width are from Arora et al. 2023, arXiv 2312.04927 [S].
Saboteur: The attention layer of the hybrid is replaced by a second recurrence.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials.trial import Criterion, Evidence, Recipe, Trial, evidence, trained
from vitrify.encoding import JsonObject
from vitrify.learn.figures import panel, sheet
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.hybrid import HybridFamily
from vitrify.learn.models.ssm import StateSpaceFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.sandboxes.recall import RecallSandbox

MIN_RECALL = 0.99  # share of the values, by a net with attention
MAX_RECALL = 0.75  # share of the values, by a recurrence at most pairs
Steps = tuple[int, int, int]  # of the recurrence, the hybrid and the transformer


def subjects() -> Subjects:
    recipe = Recipe(lr=5e-3, schedule="linear", warmup=50, test_examples=256, evals_per_doubling=0)
    boxes = [RecallSandbox(vocabulary=32, pairs=pairs, length=4 * pairs + 8) for pairs in (3, 6)]
    data = {"pairs": [3, 6], "width": 32, "units": 32, "queries": 192, "share": 0.8}
    yield _subject("3 and 6 pairs", boxes, recipe, (500, 500, 600), range(30, 35), data)


def large() -> Subjects:
    recipe = Recipe(lr=2e-3, schedule="linear", warmup=100, test_examples=1024, evals_per_doubling=0)
    boxes = [RecallSandbox(vocabulary=512, pairs=pairs, length=4 * pairs + 16) for pairs in (4, 16, 32)]
    data = {"pairs": [4, 16, 32], "width": 64, "units": 128, "queries": 1024, "share": 0.75}
    yield _subject("4 to 32 pairs", boxes, recipe, (4000, 4000, 6000), range(30, 38), data)


def _subject(
    name: str, boxes: list[RecallSandbox], recipe: Recipe, steps: Steps, seeds: range, data: JsonObject
) -> Subject:
    """Return every net at every number of pairs; all steps have the same number of queries."""
    width, units = data["width"], data["units"]
    families: dict[str, Family] = {
        "recurrence": StateSpaceFamily(layers=2, state=width, d_model=width, units=units),
        "hybrid": HybridFamily(layers=2, heads=1, state=width, d_model=width, units=units),
        "transformer": TransformerFamily(layers=2, heads=2, d_model=width, units=units, positions="rotary"),
    }
    trials = {
        f"{net}, {box.pairs} pairs": Trial(
            box, family, replace(recipe, steps=count, batch=data["queries"] // box.pairs), seeds
        )
        for (net, family), count in zip(families.items(), steps, strict=True)
        for box in boxes
    }
    return Subject(name, data=data, trials=trials)


def sabotage(subject: Subject) -> Subject:
    linear = subject.trials[next(iter(subject.trials))].family
    trials = {
        name: replace(trial, family=linear) if name.startswith("hybrid") else trial
        for name, trial in subject.trials.items()
    }
    return replace(subject, trials=trials)


def check(subject: Subject) -> Evidence:
    accuracy = {name: nets.final("accuracy") for name, nets in trained(subject).items()}
    pairs, share = subject.data["pairs"], subject.data["share"]
    names = {net: [f"{net}, {count} pairs" for count in pairs] for net in ("recurrence", "hybrid", "transformer")}
    *few, most = names["recurrence"]
    criteria = [
        Criterion.judged(most, accuracy[most], at_most=MAX_RECALL),
        *(Criterion.judged(name, accuracy[name]) for name in few),
        *(Criterion.judged(name, accuracy[name], at_least=MIN_RECALL) for name in names["hybrid"]),
        *(Criterion.judged(name, accuracy[name], at_least=MIN_RECALL, share=share) for name in names["transformer"]),
    ]
    recalled = {net: [accuracy[name] for name in own] for net, own in names.items()}
    figure = {"pairs": pairs, "recalled": recalled, "guess": [1 / count for count in pairs]}
    return evidence(subject, criteria, {**figure, "width": subject.data["width"]})


def draw(figures: Figures) -> Figure:
    figure, axes = sheet(1, len(figures), "Recall of pairs, with and without a layer of attention", 6.2, 4.2)
    for own, (name, data) in zip(axes[0], figures.items(), strict=True):
        pairs = np.array(data["pairs"])
        for at, (net, values) in enumerate(data["recalled"].items()):
            numbers = np.array(values)
            beside = pairs * (1 + 0.05 * (at - 1))
            own.plot(beside, numbers.mean(axis=1), color=f"C{at}", label=f"{net} ({numbers.shape[1]} seeds)")
            own.scatter(np.repeat(beside, numbers.shape[1]), numbers.ravel(), s=14, color=f"C{at}", alpha=0.6)
        own.plot(pairs, data["guess"], color="black", linestyle="--", linewidth=1, label="guessing a listed value")
        lines = {"least with attention": MIN_RECALL, f"most without, at {pairs[-1]} pairs": MAX_RECALL}
        own.set(xscale="log", ylim=(0, 1.08), xlabel="key–value pairs", title=f"width {data['width']}, {name}")
        panel(own, lines=lines, at=0.01, legend="center right", ylabel="accuracy")
        own.set_xticks(pairs, [str(count) for count in pairs], minor=False)
        own.minorticks_off()
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="G5", standing="experiment", learned=True, budget_seconds=180)
