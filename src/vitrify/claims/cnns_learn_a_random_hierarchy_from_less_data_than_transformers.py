r"""On a random hierarchy the test loss falls in steps with the data, and a CNN takes the third before a transformer.

Statement: A Random Hierarchy Model has $v$ symbols, $m$ productions of $s$ symbols for each, and $L$ levels; let $f =
m/v^{s-1}$. The task is to predict its last leaf. Stair $l$ is the loss of the best predictor that sees the last $s^l -
1$ leaves. The smallest test loss of a network trained on $P$ sequences descends these stairs as $P$ grows. A
transformer takes step $l$ at about $vm^{2l-1}/(1-f)$ sequences. A hierarchical convolutional net, whose filters are
shared between positions, takes it for $l \ge 2$ at about $vm^{l+1}/(1-f)$: the first two steps together with the
transformer, the third a factor $m$ earlier. So its loss falls with the exponent $\ln(1/f)/\ln m$ instead of
$\ln(1/f)/(2\ln m)$.
Why: Leaves $l$ levels away help as soon as their correlation with the last leaf exceeds the sampling noise. Squared
correlations of pairs of leaves fall by $m^2$ per level; those with hidden symbols, which shared filters find at all
positions at once, only by $m$.
Not checked: The exponents are reported, not judged. The authors' sizes and online training, for which
`each_level_of_a_random_hierarchy_has_its_price_by_architecture` is another experiment. Each network has one width and
one learning rate. A plateau within 3 % of stair 2 was expected at first; the curve is flattest far above it, so stairs
are checked by a claim of their own.
Source: Cagnetta, Favero, Sclocchi and Wyart 2025, arXiv 2505.07070 [A]; Cagnetta and Wyart 2024, arXiv 2406.00048 [S];
in the spirit of their experiments. The sample sizes for shared filters are our derivation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import hierarchies, races
from vitrify.claims.trials.hierarchies import Learner
from vitrify.claims.trials.races import Curve, Race, factor, minus
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, evidence
from vitrify.intervals import mean_interval
from vitrify.learn.figures import band, panel, sheet
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.sandboxes.hierarchy import HierarchySandbox

CONVOLUTION, TRANSFORMER = "convolution", "transformer"
COLORS = {CONVOLUTION: "C1", TRANSFORMER: "C0"}
MIN_FACTOR = 1.3  # between the numbers of sequences, and by which it grows
MIN_GRAMMARS = 7 / 8
PLAN = Plan(
    version=1,
    question="From finite training sets, does a CNN take the third step of a random hierarchy before a transformer?",
    statements={
        "third step": Statement(
            "a CNN takes the third step from fewer training sequences than a transformer",
            f"interval of the factor between the two above {MIN_FACTOR}, in every model",
            "both need the same number, with the scatter between grammars that was measured",
        ),
        "growth": Statement(
            "from the second to the third step that factor grows by m",
            f"interval of the growth above {MIN_FACTOR} and m inside, in every model",
            "a constant handicap: at the third step the transformer needs the factor that it needs at the second",
        ),
    },
    units="grammar, with a seed of its own; intervals of Student's t, or of a normal law fitted to half-lines where a "
    "number of sequences is only bounded",
    judged=range(300, 308),
    explored=range(8),
    stopping="fixed number of steps; of each training, the step with the least validation loss",
    scale={
        "v": Axis(16, 32),
        "m": Axis(4, 8),
        "L": Axis(4, 4),
        "d_model": Axis(256, 512),
        "heads": Axis(8, 16),
        "channels": Axis(128, "?"),
        "grammars": Axis(8, "?"),
    },
    chosen="Widths, rates and steps: on the grammars of version 0, with the least loss chosen on test sequences.",
)


def subjects() -> Subjects:
    recipe = Recipe(steps=600, batch=64, lr=1e-2, test_examples=1024, validation_examples=1024, evals_per_doubling=4)
    small = TransformerFamily(layers=3, heads=2, d_model=32, units=64), replace(recipe, lr=3e-3)
    nets = {CONVOLUTION: (HierarchicalFamily(channels=64), recipe), TRANSFORMER: small}
    yield _subject((6, 2, 3), nets, (8, 10, 12, 14), PLAN.explored)


def large() -> Subjects:
    """The size of the papers, 16 symbols and four levels; and a smaller one."""
    common = Recipe(schedule="cosine", test_examples=4096, validation_examples=4096, evals_per_doubling=4)
    common = replace(common, precision="bfloat16")
    recipe = replace(common, batch=128, lr=1e-2, weight_decay=0.3, warmup=200)
    slower = replace(common, batch=256, lr=6e-4, weight_decay=0.1, beta2=0.98, warmup=500)
    for v, m, L, powers, steps in ((16, 4, 4, range(12, 18), 4000), (12, 3, 3, range(10, 16), 2500)):
        large = TransformerFamily(layers=L, heads=8, d_model=256), replace(slower, steps=steps + 1000)
        nets = {CONVOLUTION: (HierarchicalFamily(channels=128), replace(recipe, steps=steps)), TRANSFORMER: large}
        yield _subject((v, m, L), nets, powers, PLAN.judged)


def _subject(
    model: tuple[int, int, int], nets: Mapping[str, Learner], powers: Sequence[int], units: Sequence[int]
) -> Subject:
    """Return two families with their recipes, on the same grammars: those of the task seeds `units`."""
    (v, m, L), sizes = model, tuple(1 << power for power in powers)
    box = HierarchySandbox(v=v, m=m, L=L, mode="last", grammars=len(units), task=units[0], levels=False)
    trials = {name: hierarchies.learner(box, family, recipe, sizes, units) for name, (family, recipe) in nets.items()}
    return Subject(f"v = {v}, m = {m}, L = {L}", data={"v": v, "m": m, "L": L, "sizes": sizes}, trials=trials)


def _race(subject: Subject, arrays: Measured) -> Race:
    """Return the test losses at the steps with the least validation losses, by training set."""
    curves = {}
    for name in subject.trials:
        excess, validation, stair = (arrays[f"{name}/{part}"] for part in ("excess", "validation", "stairs"))
        at = np.where(np.isfinite(validation), validation, np.inf).argmin(axis=-1)
        best = np.take_along_axis(excess, at[..., None], axis=-1)[..., 0].T  # [grammar, size]
        middles = (stair[:, :-1] + stair[:, 1:]) / 2 - stair[:, -1:]
        curves[name, subject.data["m"]] = Curve(np.array(subject.data["sizes"], dtype=float), best, best, middles)
    return Race(curves)


def judge(subject: Subject, arrays: Measured) -> Evidence:
    race, m = _race(subject, arrays), subject.data["m"]
    slow, fast = race.curves[TRANSFORMER, m], race.curves[CONVOLUTION, m]
    late = slow.excess[:, -1] / slow.middles[:, 1]
    name = "transformer's loss above the optimum with the largest training set, over that half-way down step 2"
    criteria = [Criterion.judged(name, late, at_most=1, share=MIN_GRAMMARS, premise=True)]
    judged = partial(Criterion.estimated, at_least=MIN_FACTOR, null=1)
    third, growth = (race.mean(_third(m, before)).exp() for before in (0, 2))
    criteria.append(judged("sequences at step 3, transformer over convolution", *third, statement="third step"))
    criteria.append(judged("growth of that factor from step 2", *growth, statement="growth", published=m))
    if subject.statements:
        return evidence(subject, criteria, {})
    stair, sizes = arrays[f"{TRANSFORMER}/stairs"], subject.data["sizes"]
    losses = {TRANSFORMER: slow.excess + stair[:, -1:], CONVOLUTION: fast.excess + stair[:, -1:]}
    slopes = {name: race.exponents(name, m) for name, _ in race.curves}
    ratio = {"ratio of exponents": slopes[CONVOLUTION] / slopes[TRANSFORMER]}
    told = {f"exponent of the {name}": each for name, each in slopes.items()} | ratio
    finite = {name: each[np.isfinite(each)] for name, each in told.items() if np.isfinite(each).sum() > 1}
    quantities = [Quantity(name, each.mean(), interval=mean_interval(list(each))) for name, each in finite.items()]
    steps = {name: np.exp(race.logs[name, m][1]) for name in losses}
    figure = {"sizes": dict.fromkeys(losses, sizes), "losses": losses, "stairs": stair, "steps": steps}
    expected = hierarchies.expected_rows(subject.trials[TRANSFORMER].sandbox)
    return evidence(subject, criteria, figure | {"expected": expected}, quantities)


def _third(m: int, before: int) -> Mapping[tuple[str, int, int], float]:
    """Return the contrast that is ln of the factor at the third step, over that of a step before if there is one."""
    third = factor(TRANSFORMER, CONVOLUTION, m, 3)
    return minus(third, factor(TRANSFORMER, CONVOLUTION, m, before)) if before else third


def even(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements of redrawn grammars in which the transformer needs as many sequences as the CNN."""
    return _delayed(subject, arrays, rng, step=3, centered=True)


def handicapped(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the transformer needs, at every step, the factor of the second step."""
    return _delayed(subject, arrays, rng, step=2, centered=False)


def _delayed(subject: Subject, arrays: Measured, rng: np.random.Generator, step: int, centered: bool) -> Measured:
    race, m = _race(subject, arrays), subject.data["m"]
    logs, fast = race.factors(TRANSFORMER, CONVOLUTION, m, step), race.curves[CONVOLUTION, m]
    late = race.curves[TRANSFORMER, m].delayed(fast, np.exp(logs - (logs.mean() if centered else 0.0)))
    drawn, changed = rng.integers(len(logs), size=len(logs)), {}
    for name, losses in ((CONVOLUTION, fast.excess), (TRANSFORMER, late)):
        changed[f"{name}/stairs"] = arrays[f"{name}/stairs"][drawn]
        changed |= {f"{name}/{split}": losses[drawn].T[..., None] for split in ("excess", "validation")}
    return changed


def draw(figures: Figures) -> Figure:
    """Draw the loss over the training sequences with the stairs, and those at each step beside the expected ones."""
    figure, axes = sheet(len(figures), 2, "A random hierarchy's last leaf: sequences, steps and stairs", 5.6, 4.0)
    for (subject, data), (curves, steps) in zip(figures.items(), axes, strict=True):
        for name, color in COLORS.items():
            rows, sizes, label = data["expected"][name], data["sizes"][name], f"({len(data['losses'][name])} grammars)"
            band(curves, sizes, data["losses"][name], f"{name} {label}", color, marker="o")
            curves.axvline(rows[2], color=color, linestyle="--", linewidth=1)
            across, taken = range(1, len(rows) + 1), np.array(data["steps"][name], dtype=float)
            seen = np.where((taken > sizes[0]) & np.isfinite(taken), taken, np.nan).T
            steps.plot(across, seen, "o", color=color, alpha=0.4, markersize=4)
            later = np.where(np.isfinite(taken), np.nan, sizes[-1]).T
            steps.plot(across, later, "^", color=color, alpha=0.4, markersize=6)
            steps.plot(across, rows, "--", color=color, label=f"{name}: expected")
            steps.plot([], [], "o", color=color, label=f"{name}: half-way down, each grammar")
        steps.plot([], [], "k^", alpha=0.4, label="not with the largest training set")
        curves.plot([], [], "k--", linewidth=1, label="step 3 expected")
        means = np.array(data["stairs"]).mean(axis=0)
        lines = {f"stair {number}: {value:.3f}": value for number, value in enumerate(means)}
        curves.set(xlabel="training sequences P", ylabel="least test loss (nats)", title=subject)
        panel(curves, lines=lines, at=0.01, xscale="log")
        panel(steps, yscale="log", xlabel="step", ylabel="training sequences P", title="each step", xticks=across)
    return figure


NULLS = {"third step": even, "growth": handicapped}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, races.measured, id="L13", standing="experiment")
