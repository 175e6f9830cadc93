r"""A deep CNN classifies a random hierarchy from about $n_c m^L$ sequences on, with one layer per hidden level.

Statement: The class of a Random Hierarchy Model with $n_c$ classes, $v$ symbols, $m$ productions per symbol, pairs as
right sides and $L$ levels is learned by a hierarchical convolutional net of $L$ layers from a few times $P^* = n_c m^L$
training sequences on, for all $m$ and $L$. From there on its layers represent the hidden symbols: layer $h + 1$ is
invariant to the choice among the productions (synonyms) of a symbol of height $h$ (1: just above the leaves), while
layer $h$ is not. Layer $L + 1$ is the readout. Layers 2 to $L$ become invariant at nearly the same number of sequences.
Why: With $P^*$ sequences the correlations of pairs of leaves with the class exceed the sampling noise. They are equal
for synonyms, so gradient descent brings the channels of synonyms together in the next layer. What is left is the same
problem with one level less and stronger correlations.
Checked: Eight grammars with $n_c = v$ for each model and training sets of $P^*/2$ to $8P^*$ sequences. Quick scale has
$v = 8$, $m = 3$ and 4, $L = 3$; large scale has $v = 16$, $m = 4$ and 8, $L = 3$ and 4. The test error must be at least
30 % at $P^*$ and at most 12 % at $4P^*$. The number of sequences at 10 % error, in units of $P^*$, may differ between
models by a factor of 2. Judged too is the sensitivity of each layer: how far it moves when all productions of a height
are exchanged for synonyms, over how far it moves when the symbols are exchanged. The network built for the grammar, one
channel per rule, must have sensitivity and error 0. At large scale the claim fails by two criteria: 8 of 24 networks
have less than 30 % error at $P^*$ already, and 9 of 80 layers (8 may) stay too sensitive at $8P^*$.
Not checked: The authors' stopping rule (training loss $10^{-3}$; here a fixed number of steps), mean-field scaling,
SGD, and fully connected networks. Up to one in ten test sequences may also be in the training set.
Source: Cagnetta, Petrini, Tomasini, Favero and Wyart 2024, arXiv 2307.02129 [A] for $n_c m^L$ and the invariance to
synonyms; the thresholds and the measure are ours.
Saboteur: The network reads the leaves in a shuffled order, so that no filter sees leaves that belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials.hierarchies import built_moves, diagonal, learner, synonym_moves
from vitrify.claims.trials.ladders import reached
from vitrify.claims.trials.trial import Criterion, Evidence, Quantity, Recipe, evidence, trained
from vitrify.learn.figures import band, panel, sheet
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.sandboxes.hierarchy import HierarchySandbox

TIMES = (0.5, 1.0, 2.0, 4.0, 8.0)  # training sequences, in units of n_c m^L
MIN_ERROR, MAX_ERROR, AT_ERROR = 0.30, 0.12, 0.10  # with P* and 4 P* sequences; where models are compared
MIN_MOVE, HALF_MOVE = 0.7, 0.5  # sensitivity of the next layer to synonyms: before and after learning
MAX_FACTOR = 2.0  # between models, and between hidden layers
MIN_SEEDS, SHUFFLED = 7 / 8, 1


def subjects() -> Subjects:
    recipe = Recipe(steps=400, batch=64, lr=6e-3, weight_decay=0.3, test_examples=1024, evals_per_doubling=0)
    yield _subject("v = 8, m = 3 and 4, L = 3", ((8, 3, 3), (8, 4, 3)), 64, recipe)


def large() -> Subjects:
    """Sixteen symbols: more productions, or one level more."""
    recipe = Recipe(steps=2000, batch=128, lr=3e-3, weight_decay=0.3, test_examples=4096, evals_per_doubling=0)
    yield _subject("v = 16, m = 4 and 8, L = 3 and 4", ((16, 4, 3), (16, 8, 3), (16, 4, 4)), 256, recipe)


def _subject(name: str, models: tuple[tuple[int, int, int], ...], channels: int, recipe: Recipe) -> Subject:
    trials = {}
    for v, m, L in models:
        box = HierarchySandbox(v=v, m=m, L=L, mode="classify", grammars=8)
        sizes = tuple(round(box.roots * m**L * times) for times in TIMES)
        trials[f"v = {v}, m = {m}, L = {L}"] = learner(box, HierarchicalFamily(channels=channels), recipe, sizes)
    return Subject(name, data={"times P*": TIMES, "channels": channels}, trials=trials)


def sabotage(subject: Subject) -> Subject:
    broken = {
        name: replace(trial, family=HierarchicalFamily(channels=subject.data["channels"], order=SHUFFLED))
        for name, trial in subject.trials.items()
    }
    return replace(subject, name=f"{subject.name}, shuffled", trials=broken)


def check(subject: Subject) -> Evidence:
    nets = trained(subject)
    error = {name: 1 - each.final("accuracy") for name, each in nets.items()}  # [size, seed]
    moves = {name: synonym_moves(each).round(3) for name, each in nets.items()}  # [size, seed, height, layer]
    above, below = ({name: diagonal(each, up) for name, each in moves.items()} for up in (1, 0))
    built = {name: built_moves(each.trial.sandbox) for name, each in nets.items()}
    tenth = [reached(TIMES, each.mean(axis=1), AT_ERROR) for each in error.values()]
    half = {name: [reached(TIMES, each, HALF_MOVE) for each in own.mean(axis=1).T] for name, own in above.items()}
    hidden = [max(each[:-1]) / min(each[:-1]) for each in half.values()]
    still = [float(each) for far, _ in built.values() for each in diagonal(far, 1)]
    one, four, judged = TIMES.index(1.0), TIMES.index(4.0), Criterion.judged
    move, name = partial(judged, share=0.9), "sensitivity of layer h + 1 to synonyms of height h, {} sequences"
    criteria = [
        judged("test error with P* sequences", _all(error, one), at_least=MIN_ERROR, share=MIN_SEEDS),
        judged("test error with 4 P* sequences", _all(error, four), at_most=MAX_ERROR, share=MIN_SEEDS),
        judged(
            "sequences with 10 % error: largest over smallest of the models, in P*",
            [max(tenth) / min(tenth)],
            at_most=MAX_FACTOR,
        ),
        move(name.format("P*/2"), _all(above, 0), at_least=MIN_MOVE),
        move(name.format("8 P*"), _all(above, -1), at_most=HALF_MOVE),
        move(name.format("8 P*").replace("h + 1", "h"), _all(below, -1), at_least=HALF_MOVE),
        judged("sequences at sensitivity 1/2 of layer h + 1: largest over smallest", hidden, at_most=MAX_FACTOR),
        judged("sensitivity of layer h + 1 of the built net", still, at_most=0),
        judged("test error of the built net", [wrong for _, wrong in built.values()], at_most=0),
    ]
    figure, quantities = {}, []
    for name, at in zip(nets, tenth, strict=True):
        box, (far, wrong) = nets[name].trial.sandbox, built[name]
        own = {"star": box.roots * box.m**box.L, "error": error[name], "moved": moves[name]}
        figure[name] = own | {"built moved": diagonal(far, 1), "built error": wrong}
        quantities.append(Quantity(f"{name}: sequences with 10 % error, in P*", at))
        quantities.append(Quantity(f"{name}: sequences at sensitivity 1/2, in P*", half[name]))
    return evidence(subject, criteria, figure, quantities)


def _all(values: Mapping[str, Array], at: int) -> list[float]:
    """Return the values of all models at a size, as one list."""
    return [float(each) for own in values.values() for each in own[at].reshape(-1)]


def draw(figures: Figures) -> Figure:
    """Draw errors over training sequences in units of P* for all models, and the sensitivity of layers for each."""
    models = [(name, one) for data in figures.values() for name, one in data.items()]
    title = "Classes of a random hierarchy: training sequences, errors and hidden symbols"
    figure, ((errors, *layers),) = sheet(1, 1 + len(models), title)
    draw = partial(panel, xlabel="training sequences / P*, P* = classes · m^L", size=7, legend="upper right")
    groups = {f"{name}, P* = {one['star']}": np.array(one["error"]).T for name, one in models}
    draw(errors, TIMES, groups, {"10 %": AT_ERROR}, at=0.01, style={"marker": "o"}, ylim=(0, 1), title="test error")
    for axes, (name, one) in zip(layers, models, strict=True):
        far = np.array(one["moved"])  # [size, seed, height, layer]
        for height in range(far.shape[2]):
            where, color = f"layer {height + 2}" if height + 1 < far.shape[2] else "readout", f"C{height}"
            up, here = (far[:, :, height, height + up].T for up in (1, 0))
            band(axes, TIMES, up, f"height {height + 1}, {where}", color, marker="o")
            band(axes, TIMES, here, f"height {height + 1}, layer {height + 1}", color, ls=":")
        label = "sensitivity to synonyms"
        draw(axes, lines={"built net, layer h + 1": 0.0}, ylabel=label, ylim=(-0.05, 1.7), title=name)
    for axes in (errors, *layers):
        axes.set_xscale("log", base=2)
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L13", standing="experiment", learned=True, budget_seconds=180)
