r"""A deep CNN classifies a random hierarchy from about $n_c m^L$ sequences on, with one layer per hidden level.

Statement: The class of a Random Hierarchy Model with $n_c$ classes, $v$ symbols, $m$ productions per symbol, pairs as
right sides and $L$ levels is learned by a hierarchical convolutional net of $L$ layers from a few times $P^* = n_c m^L$
training sequences on, for all $m$ and $L$. From there on its layers represent the hidden symbols: layer $h + 1$ is
invariant to the choice among the productions (synonyms) of a symbol of height $h$ (1: just above the leaves), while
layer $h$ is not. Layer $L + 1$ is the readout. Layers 2 to $L$ become invariant at nearly the same number of sequences.
Why: With $P^*$ sequences the correlations of pairs of leaves with the class exceed the sampling noise. They are equal
for synonyms, so gradient descent brings the channels of synonyms together in the next layer. What is left is the same
problem with one level less and stronger correlations.
Not checked: The authors' stopping rule and parametrization (see the scale), a range of $n_c$, and fully connected
networks. One pair of models tells the power of $m$, another one that of a level. Up to one in ten test sequences may
also be in the training set.
Source: Cagnetta, Petrini, Tomasini, Favero and Wyart 2024, arXiv 2307.02129 [A] for $n_c m^L$ and the invariance to
synonyms; the thresholds and the measure are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import synonyms
from vitrify.claims.trials.hierarchies import learner
from vitrify.claims.trials.synonyms import crossings, diagonal
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, evidence, measured, trained
from vitrify.intervals import mean_interval
from vitrify.learn.figures import band, panel, sheet
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.sandboxes.hierarchy import HierarchySandbox

TIMES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # training sequences, in units of n_c m^L
EARLY, FOUR = TIMES.index(0.5), TIMES.index(4.0)
AT_ERROR, MAX_ERROR = 0.10, 0.12  # where numbers of sequences are compared; with 4 P*
POWERS, MAX_FACTOR = (0.9, 1.1), 2.0  # of m, over the stated one; in sequences, between hidden layers
MIN_MOVE, HALF_MOVE = 0.7, 0.5  # sensitivity of the next layer to synonyms: before and after learning
MIN_GRAMMARS, MIN_LAYERS = 13 / 16, 0.9
NULL_FUNCTIONS = synonyms.last_level, synonyms.last_level, synonyms.level_more, synonyms.gradual, synonyms.one_by_one
PLAN = Plan(
    version=1,
    question="How many sequences does a deep CNN need to classify a random hierarchy, and what do its layers learn?",
    statements={
        "productions": Statement(
            "the number of sequences that it needs grows with the productions m as m^L",
            f"power of m in the sequences at {AT_ERROR:.0%} error, over L: 95 % interval within {POWERS}",
            "only the last level counts: n_c m sequences for any L",
        ),
        "levels": Statement(
            "a level more multiplies the number of sequences that it needs by m",
            f"ln of the factor in the sequences at {AT_ERROR:.0%} error, over ln m: 95 % interval within {POWERS}",
            "only the last level counts: n_c m sequences for any L",
        ),
        "enough": Statement(
            "four times n_c m^L sequences are enough",
            f"test error with 4 P* ≤ {MAX_ERROR:.0%} in 13 of 16 nets",
            "the net needs as many sequences as one with a level more, n_c m^(L+1)",
        ),
        "layers": Statement(
            "layer h + 1 becomes insensitive to the productions of symbols of height h, layer h does not",
            f"sensitivity of layer h + 1 ≥ {MIN_MOVE} with P*/2 and ≤ {HALF_MOVE} with 8 P*, where that of layer h is "
            f"≥ {HALF_MOVE}, each in {MIN_LAYERS:.0%} of the layers of all nets; 0 in the net built for the grammar",
            "no layer in particular: layers h and h + 1 have an equal share in what both lose of the sensitivity",
        ),
        "together": Statement(
            "layers 2 to L become insensitive at nearly the same number of sequences",
            f"sequences at sensitivity {HALF_MOVE}: largest over smallest ≤ {MAX_FACTOR:g}, in 13 of 16 nets",
            "one level after another, each with m times the sequences of the one below",
        ),
    },
    units="grammar, each with its own seed of the net; judged ones are those of task seeds 100 to 115",
    judged=range(100, 116),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "v": Axis(16, 16),
        "L": Axis(4, "?"),
        "channels": Axis(256, 512),
        "stopping": Axis("fixed number of steps", "training loss 1e-3"),
        "optimizer and parametrization": Axis("AdamW, standard", "SGD, mean-field"),
    },
    chosen="The sequences are from P*/4 on, as explored nets with four levels have 10 % error below P*. On explored "
    "grammars 10 % error takes 8.2 times the sequences with twice the productions, 2.1 times with a level more.",
)


def subjects() -> Subjects:
    recipe = Recipe(steps=400, batch=64, lr=6e-3, weight_decay=0.3, test_examples=1024, evals_per_doubling=0)
    yield _subject([(8, 3, 3), (8, 4, 3), (8, 3, 4)], 64, recipe, PLAN.explored[:8])


def large() -> Subjects:
    """Sixteen symbols: more productions, or one level more."""
    recipe = Recipe(steps=2000, batch=128, lr=3e-3, weight_decay=0.3, test_examples=4096, evals_per_doubling=0)
    yield _subject([(16, 4, 3), (16, 8, 3), (16, 4, 4)], 256, recipe, PLAN.judged)


def _subject(models: Sequence[synonyms.Model], channels: int, recipe: Recipe, units: Sequence[int]) -> Subject:
    """Return one trial for each model: the second has more productions than the first, the third a level more."""
    trials, family = {}, HierarchicalFamily(channels=channels)
    for v, m, L in models:
        box = HierarchySandbox(v=v, m=m, L=L, task=units[0], mode="classify", grammars=len(units))
        sizes = tuple(round(v * m**L * times) for times in TIMES)
        trials[f"v = {v}, m = {m}, L = {L}"] = learner(box, family, recipe, sizes, units)
    return Subject("; ".join(trials), data={"times P*": TIMES, "channels": channels, "models": models}, trials=trials)


def measure(subject: Subject) -> Measured:
    """Return the curves, and the sensitivities to synonyms of the trained nets and the built ones."""
    arrays = dict(measured(subject))
    for name, nets in trained(subject).items():
        far, wrong = synonyms.built_moves(nets.trial.sandbox)
        arrays |= {f"{name}/moves": synonyms.synonym_moves(nets), f"{name}/built": np.append(diagonal(far, 1), wrong)}
    return arrays


def judge(subject: Subject, arrays: Measured) -> Evidence:
    models, names = subject.data["models"], list(subject.trials)
    error = [1 - arrays[f"{name}/accuracy"][..., -1] for name in names]  # for each model: [size, grammar]
    moves, built = ([arrays[f"{name}/{key}"] for name in names] for key in ("moves", "built"))
    above, below = ([diagonal(each, up) for each in moves] for up in (1, 0))  # [size, grammar, height]
    tenth = [crossings(TIMES, each, AT_ERROR) for each in error]  # [grammar], in P*
    half = [crossings(TIMES, each[..., :-1], HALF_MOVE) for each in above]  # [grammar, hidden height], in P*
    first, more, deeper = (v * m**L * own for (v, m, L), own in zip(models, tenth, strict=True))
    (_, m, L), (_, many, _), (_, _, deep) = models
    apart = [own.max(axis=1) / own.min(axis=1) for own in half]
    enough, together = (partial(Criterion.judged, share=MIN_GRAMMARS, statement=key) for key in ("enough", "together"))
    layers = partial(Criterion.judged, share=MIN_LAYERS, statement="layers")
    move = "sensitivity of layer {} to synonyms of height h, {} sequences".format
    criteria = [
        _power("productions", f"power of m over L, m = {m} and {many}", (first, more), L * np.log(many / m), 1 / L),
        _power("levels", f"power of m, L = {L} and {deep}", (first, deeper), np.log(m), 0.0),
        enough("test error with 4 P* sequences", _flat(each[FOUR] for each in error), at_most=MAX_ERROR),
        layers(move("h + 1", "P*/2"), _flat(each[EARLY] for each in above), at_least=MIN_MOVE),
        layers(move("h + 1", "8 P*"), _flat(each[-1] for each in above), at_most=HALF_MOVE),
        layers(move("h", "8 P*"), _flat(each[-1] for each in below), at_least=HALF_MOVE),
        layers("sensitivity of layer h + 1 and error of the built net", _flat(built), at_most=0, share=1, premise=True),
        together("sequences at sensitivity 1/2 of layers 2 to L: factor", _flat(apart), at_most=MAX_FACTOR),
    ]
    figure, quantities = {}, []
    for at, (name, (v, m, L)) in enumerate(zip(names, models, strict=True)):
        figure[name] = {"star": v * m**L, "error": error[at], "moved": moves[at].round(3)}
        figure[name] |= {"built moved": built[at][:-1], "built error": built[at][-1]}
        reached = np.median(np.column_stack([tenth[at], half[at]]), axis=0)
        quantities.append(Quantity(f"{name}: sequences at 10 % error, and at sensitivity 1/2 of layers 2 …", reached))
    return evidence(subject, criteria, figure, quantities)


def _power(statement: str, name: str, pair: tuple[Array, Array], scale: float, null: float) -> Criterion:
    """Return the criterion on the power of m between the sequences [grammar] that two models need."""
    values = [float(each) for each in np.log(pair[1] / pair[0]) / scale]
    judged = partial(Criterion.estimated, name, float(np.mean(values)), mean_interval(values), statement=statement)
    return judged(at_least=POWERS[0], at_most=POWERS[1], null=null, values=values)


def _flat(arrays: Iterable[Array]) -> list[float]:
    return [float(value) for each in arrays for value in each.reshape(-1)]


def draw(figures: Figures) -> Figure:
    """Draw errors over training sequences in units of P* for all models, and the sensitivity of layers for each."""
    models = [(name, one) for data in figures.values() for name, one in data.items()]
    figure, ((errors, *layers),) = sheet(
        1, 1 + len(models), "Classes of a random hierarchy: sequences and hidden symbols"
    )
    draw = partial(panel, xlabel="training sequences / P*, P* = classes · m^L", size=7, legend="upper right")
    groups = {f"{name}, P* = {one['star']}": np.array(one["error"]).T for name, one in models}
    times = TIMES[-len(models[0][1]["error"]) :]  # the first recorded run began at P*/2
    draw(errors, times, groups, {"10 %": AT_ERROR}, at=0.01, style={"marker": "o"}, ylim=(0, 1), title="test error")
    for axes, (name, one) in zip(layers, models, strict=True):
        far = np.array(one["moved"])  # [size, seed, height, layer]
        for height in range(far.shape[2]):
            where, color = f"layer {height + 2}" if height + 1 < far.shape[2] else "readout", f"C{height}"
            up, here = (far[:, :, height, height + up].T for up in (1, 0))
            band(axes, times, up, f"height {height + 1}, {where}", color, marker="o")
            band(axes, times, here, f"height {height + 1}, layer {height + 1}", color, ls=":")
        label = "sensitivity to synonyms"
        draw(axes, lines={"built net, layer h + 1": 0.0}, ylabel=label, ylim=(-0.05, 1.7), title=name)
    for axes in (errors, *layers):
        axes.set_xscale("log", base=2)
    return figure


NULLS = dict(zip(PLAN.statements, NULL_FUNCTIONS, strict=True))
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, measure, id="L13", standing="experiment")
