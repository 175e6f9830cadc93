r"""The deeper a transformer, the longer the products of permutations (word problems) that it learns.

Statement: A point of five is moved by a word of swaps, and the network predicts where it is after every letter. All
depths are right after two letters, and all get worse with every further letter, deeper transformers later: after the
same training, 4 layers are more accurate than 2, and 2 than 1, in the second half of words. One layer that is looped
four times also gains, without additional parameters.
Why: Swaps of five points generate a group that is not solvable, so no constant depth serves all lengths unless TC0 =
NC1 (B8). Composing neighbouring segments pairwise takes one layer per doubling of the length, and weights for it are
known (R14). That training finds these weights is not implied; it finds part of them.
Not checked: The predicted length of order $2^{\text{depth}}$ (the lengths reached are reported, not judged), other
depths, longer words, a curriculum, and solvable groups for comparison. Graph connectivity, for which the same is
published.
Source: Merrill and Sabharwal 2025, arXiv 2503.03961 [A]: logarithmic depth suffices, and constant depth does not, for
regular languages and connectivity; Liu et al. 2023, arXiv 2210.10749 [S]; form of the task, sizes and margin are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, Trial, evidence, recalled
from vitrify.learn.figures import dots, panel, sheet
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import examples
from vitrify.sandboxes.regular import Regular
from vitrify.spec.automata.families import swaps

MARGIN = 0.04  # of accuracy, by which a net is better than a shallower one that reads one letter more
MIN_SEEDS = 13 / 16
SHORT, MIN_ACCURACY = 2, 0.95  # letters after which all depths have this accuracy
DEPTHS = {"1 layer": (1, 1), "2 layers": (2, 1), "4 layers": (4, 1), "1 layer run 4 times": (1, 4)}  # layers, loops
BETTER = {"two": ("2 layers", "1 layer"), "four": ("4 layers", "2 layers"), "loops": ("1 layer run 4 times", "1 layer")}
RULE = f"accuracy in second halves ≥ {MARGIN} above that of the shallower net, if this were right one letter longer"
NULL = "the deeper net is the shallower one and reads one letter more"
PLAN = Plan(
    version=1,
    question="Do deeper transformers learn longer products of permutations after the same training?",
    statements={
        "two": Statement("2 layers are right on longer words than 1", RULE, NULL),
        "four": Statement("4 layers are right on longer words than 2", RULE, NULL),
        "loops": Statement("1 layer that is run 4 times is right on longer words than 1", RULE, NULL),
    },
    units="seed, the same for all depths",
    judged=range(200, 216),
    explored=[*range(32), *range(100, 103)],
    stopping="fixed number of steps",
    scale={
        "layers": Axis(4, "?"),
        "length": Axis(16, "?"),
        "d_model": Axis(64, "?"),
        "steps": Axis(8000, "?"),
        "task": Axis("orbit of a point", None),
    },
    chosen="The learning rate was chosen on seeds 100 to 102. The margin was asked over the shallower net alone "
    "before; reading one letter more is worth 0.03 for 1 layer and 0.065 for 2, so that this did not reject the null.",
)


def subjects() -> Subjects:
    recipe = Recipe(steps=1500, batch=16, lr=2e-3, test_examples=64, evals_per_doubling=0)
    yield _subject(8, TransformerFamily(heads=2, d_model=32, units=64), recipe, PLAN.explored[:8], count=512)


def large() -> Subjects:
    recipe = Recipe(steps=8000, batch=64, lr=1e-3, warmup=200, test_examples=64, evals_per_doubling=0)
    yield _subject(16, TransformerFamily(heads=4, d_model=64), recipe, PLAN.judged, count=2048)


def _subject(length: int, family: TransformerFamily, recipe: Recipe, seeds: Sequence[int], count: int) -> Subject:
    sandbox, trials = Regular(swaps(5), length, "states"), {}
    for name, (layers, loops) in DEPTHS.items():
        own = replace(family, layers=layers, loops=loops)
        trials[name] = Trial(sandbox, own, recipe, seeds, probes={"right": partial(_by_letters, own, sandbox, count)})
    data = {"length": length, "d_model": family.d_model, "test_examples": count}
    return Subject("swaps of five points", data=data, trials=trials)


def _by_letters(
    family: TransformerFamily, sandbox: Regular, count: int, net: Transformer, arrays: Mapping[str, Array], *_: object
) -> Array:
    """Return the accuracy of a member after 1, 2, … letters: [letters]."""
    queries = examples(sandbox, 0, "probe", 0, count)
    logits = family.logits(net, sandbox, arrays, queries)
    return (logits.argmax(axis=-1) == queries.targets)[:, 1:].astype(jnp.float32).mean(axis=0)


def judge(subject: Subject, measured: Measured) -> Evidence:
    right = {name: nets.final("right") for name, nets in recalled(subject, measured).items()}  # [seed, letters]
    half = subject.data["length"] // 2
    late = {name: each[:, half:].mean(axis=-1) for name, each in right.items()}
    further = {name: _one_letter_more(each)[:, half:].mean(axis=-1) for name, each in right.items()}
    premise = partial(Criterion.judged, at_least=MIN_ACCURACY, premise=True)
    criteria = [premise(f"{SHORT} letters: accuracy of {name}", each[:, SHORT - 1]) for name, each in right.items()]
    criteria += [
        Criterion.judged(
            f"accuracy in second halves: {deep} minus {flat} with one letter more",
            late[deep] - further[flat],
            at_least=MARGIN,
            share=MIN_SEEDS,
            statement=key,
        )
        for key, (deep, flat) in BETTER.items()
    ]
    longest = [
        Quantity(f"{name}: letters with accuracy ≥ {MIN_ACCURACY}, mean over seeds", _longest(each).mean())
        for name, each in right.items()
    ]
    rounded = [np.array(list(each.values())).round(4) for each in (right, late)]
    states = len(next(iter(subject.trials.values())).sandbox.automaton.states)
    figure = {"names": list(right), "right": rounded[0], "late": rounded[1], "states": states}
    return evidence(subject, criteria, figure, longest)


def _one_letter_more(right: Array) -> Array:
    """Return accuracies [seed, letters] that come one letter later; right after one letter."""
    return np.concatenate([np.ones((len(right), 1)), right[:, :-1]], axis=1)


def _longest(right: Array) -> Array:
    """Return the number of letters up to which accuracies [seed, letters] are at least `MIN_ACCURACY`."""
    return np.cumprod(right >= MIN_ACCURACY, axis=1).sum(axis=1)


def reads_one_more(deep: str, flat: str) -> Callable[[Subject, Measured, np.random.Generator], Measured]:
    """Return the null that a net has the accuracies of a shallower one, of a drawn seed, one letter later."""

    def null(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
        del subject
        right = measured[f"{deep}/right"].copy()
        right[:, -1] = _one_letter_more(rng.choice(measured[f"{flat}/right"][:, -1], size=len(right)))
        return {**measured, f"{deep}/right": right}

    return null


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


NULLS = {key: reads_one_more(*pair) for key, pair in BETTER.items()}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, id="G6", standing="experiment")
