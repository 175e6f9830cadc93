r"""The deeper a transformer, the longer the products of permutations (word problems) that it learns.

Statement: A point of five is moved by a word of swaps, and the network predicts where it is after every letter. All
depths are right after two letters, and all get worse with every further letter, deeper transformers later: after the
same training, 4 layers are more accurate than 2, and 2 than 1, in the second half of words. One layer that is looped
four times also gains, without additional parameters.
Why: Swaps of five points generate a group that is not solvable, so no constant depth serves all lengths unless TC0 =
NC1 (B8). Composing neighbouring segments pairwise takes one layer per doubling of the length, and weights for it are
known (R14). That training finds these weights is not implied; it finds part of them.
Checked: Accuracy after each number of letters on fresh sequences, 8 seeds for each depth; its mean over the second half
of the word must grow by a margin from depth to depth, and from one pass of one layer to four. Quick scale has words of
8 letters, width 32 and 1,500 steps; large scale has 16 letters, width 64 and 8,000 steps. The learning rate was chosen
on seeds 100 to 102.
Not checked: The predicted length of order $2^{\text{depth}}$, other depths, longer words, a curriculum, and solvable
groups for comparison. Graph connectivity, for which the same is published.
Source: Merrill and Sabharwal 2025, arXiv 2503.03961 [A]: logarithmic depth suffices, and constant depth does not, for
regular languages and connectivity; Liu et al. 2023, arXiv 2210.10749 [S]; form of the task, sizes and margin are ours.
Saboteur: Networks of one layer are presented at every depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials.trial import Criterion, Evidence, Recipe, Trial, evidence, trained
from vitrify.learn.figures import dots, panel, sheet
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import examples
from vitrify.sandboxes.regular import Regular
from vitrify.spec.automata.families import swaps

MARGIN = 0.04  # of accuracy, from depth to depth
MIN_SEEDS = 7 / 8
SHORT, MIN_ACCURACY = 2, 0.95  # letters after which all depths have this accuracy
DEPTHS = {"1 layer": (1, 1), "2 layers": (2, 1), "4 layers": (4, 1), "1 layer run 4 times": (1, 4)}  # layers, loops
BETTER = (("2 layers", "1 layer"), ("4 layers", "2 layers"), ("1 layer run 4 times", "1 layer"))


def subjects() -> Subjects:
    recipe = Recipe(steps=1500, batch=16, lr=2e-3, test_examples=64, evals_per_doubling=0)
    yield _subject(8, TransformerFamily(heads=2, d_model=32, units=64), recipe, count=512)


def large() -> Subjects:
    recipe = Recipe(steps=8000, batch=64, lr=1e-3, warmup=200, test_examples=64, evals_per_doubling=0)
    yield _subject(16, TransformerFamily(heads=4, d_model=64), recipe, count=2048)


def _subject(length: int, family: TransformerFamily, recipe: Recipe, count: int) -> Subject:
    sandbox, trials = Regular(swaps(5), length, "states"), {}
    for name, (layers, loops) in DEPTHS.items():
        own = replace(family, layers=layers, loops=loops)
        trials[name] = Trial(sandbox, own, recipe, probes={"right": partial(_by_letters, own, sandbox, count)})
    data = {"length": length, "d_model": family.d_model, "test_examples": count}
    return Subject("swaps of five points", data=data, trials=trials)


def sabotage(subject: Subject) -> Subject:
    return replace(subject, trials=dict.fromkeys(subject.trials, subject.trials["1 layer"]))


def _by_letters(
    family: TransformerFamily, sandbox: Regular, count: int, net: Transformer, arrays: Mapping[str, Array], *_: object
) -> Array:
    """Return the accuracy of a member after 1, 2, … letters: [letters]."""
    queries = examples(sandbox, 0, "probe", 0, count)
    logits = family.logits(net, sandbox, arrays, queries)
    return (logits.argmax(axis=-1) == queries.targets)[:, 1:].astype(jnp.float32).mean(axis=0)


def check(subject: Subject) -> Evidence:
    right = {name: nets.final("right") for name, nets in trained(subject).items()}  # [seed, letters]
    late = {name: each[:, subject.data["length"] // 2 :].mean(axis=-1) for name, each in right.items()}
    criteria = [
        Criterion.judged(
            f"{SHORT} letters: accuracy of {name}", each[:, SHORT - 1], at_least=MIN_ACCURACY, premise=True
        )
        for name, each in right.items()
    ]
    criteria += [
        Criterion.judged(
            f"accuracy in second halves: {deep} minus {flat}", late[deep] - late[flat], at_least=MARGIN, share=MIN_SEEDS
        )
        for deep, flat in BETTER
    ]
    rounded = [np.array(list(each.values())).round(4) for each in (right, late)]
    states = len(next(iter(subject.trials.values())).sandbox.automaton.states)
    return evidence(
        subject, criteria, {"names": list(right), "right": rounded[0], "late": rounded[1], "states": states}
    )


def draw(figures: Figures) -> Figure:
    (data,) = figures.values()
    right, late, names = np.array(data["right"]), np.array(data["late"]), data["names"]
    figure, ((curve, ends),) = sheet(1, 2, "Where do swaps of five points take a point?", width=5.2, height=4.0)
    letters = list(range(1, right.shape[-1] + 1))
    for number, values in enumerate(late):
        dots(ends, number, values, None, f"C{number}", spread=0, alpha=0.5)
        ends.plot(number, np.median(values), "_", color=f"C{number}", markersize=28, markeredgewidth=2)
    groups = {f"{name} ({len(each)} seeds)": each for name, each in zip(names, right, strict=True)}
    draw = partial(panel, lines={"guessing": 1 / data["states"]}, at=0.01, ylabel="accuracy", ylim=(0, 1.03))
    title = "by length, with 10th to 90th percentile"
    draw(curve, letters, groups, xlabel="letters read", title=title, legend="lower left")
    title = f"mean over letters {len(letters) // 2 + 1} to {len(letters)}, every seed"
    draw(ends, title=title, xlim=(-0.5, len(names) - 0.5), legend=None)
    ends.set_xticks(range(len(names)), [name.replace(" run", "\nrun") for name in names], fontsize=9)
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="G6", standing="experiment", learned=True, budget_seconds=180)
