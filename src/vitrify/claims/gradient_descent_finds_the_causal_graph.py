r"""Gradient descent makes the first attention layer the causal graph, and the network generalises to other kernels.

Statement: Each token $s_i$ is drawn given its parent token in a fixed graph, $s_i \sim \pi(\cdot \mid s_{pa(i)})$, by a
kernel $\pi$ that is drawn anew for each sequence. (1) The $\chi^2$ mutual information of $s_i$ and $s_j$ is largest at
$j = pa(i)$. (2) The first gradient step on the scores $A^1_{ij}$ of the first attention layer is largest at $j =
pa(i)$. (3) After training on random trees and on chains, nearly every position that has a parent attends to it most.
(4) On kernels from other distributions the error falls as a power of the length, and on flatter kernels than in
training it is at most about that of counting along the true graph. A full disentangled transformer comes close to the
optimum, in the mean.
Why: (1) is the data processing inequality: all paths to a position lead through its parent. To first order in the
second attention matrix $A^2$, and up to a factor of the softmax, the gradient is $\mathrm{E}_\pi \sum_{ab} \pi(b \mid
a) P(s_j = a, s_i = b)/\mu(b) - 1$ with $\mu$ stationary. At the parent this equals the $\chi^2$ information. Once
scores are large, the second layer averages over positions whose parent equals the query: it counts, for any kernel,
with the smoothing that was best in training.
Checked: Ten random trees and eight seeds on a chain, with 3 symbols: lengths 16 to 48 at quick scale, 8 to 64 at paper
scale, which adds the disentangled transformer with 10 symbols and length 20. Errors are the largest difference of
probabilities, averaged over sequences, on sharper and flatter Dirichlet kernels than in training; the exponent is
fitted for each tree. Rank correlations of the gradient with the $\chi^2$ information and with the formula above must
not be negative.
Not checked: The rate $T^{-c\gamma}$: $c$ is unknown, so only the sign of the exponent is judged. The authors use SGD
for $2^{14}$ to $2^{17}$ steps; here Adam trains all parameters at once, for up to 512 steps (16,384 for the full
model). Roots are uniform here, not stationary. On sharper kernels plain counts are better by a factor. Several parents
are not included.
Source: Nichani, Damian and Lee 2024, arXiv 2402.14735 [S]; in the spirit of their experiments.
Saboteur: Attention, gradient and information are compared with another random tree.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials import causal
from vitrify.claims.trials.trial import Criterion, Evidence, Recipe, Trial, evidence, trained
from vitrify.learn.figures import heat, panel, sheet
from vitrify.learn.models.disentangled import DisentangledFamily
from vitrify.sandboxes.causal_graph import CausalGraph

MIN_POSITIONS, MIN_WEIGHT, MIN_TREES = 0.95, 0.9, 0.8  # share of positions; attention; share of the trees
MAX_RATIO = 1.05  # error over that of counting along the true graph, on flatter kernels than in training
MAX_KL = 0.03  # nats of the disentangled transformer above the optimum, in the mean
FULL_MODEL = "full transformer"
RECIPE = Recipe(warmup=0, clip=None, schedule="cosine", test_examples=256, evals_per_doubling=1)


def subjects() -> Subjects:
    sandbox, recipe = CausalGraph(states=3, length=16, trees=10), replace(RECIPE, steps=64, batch=64, lr=0.3)
    yield _subject(sandbox, recipe, (16, 24, 32, 48), (0.3, 3.0), 16384)


def large() -> Subjects:
    """Longer rows, and the whole disentangled transformer on ten symbols."""
    sandbox = CausalGraph(states=3, length=16, alpha=0.3, trees=10)
    recipe = replace(RECIPE, steps=512, batch=512, lr=0.1, test_examples=1024)
    box, longer = replace(sandbox, states=10, length=20, alpha=0.1), replace(recipe, steps=16384, lr=0.02)
    subject = _subject(sandbox, recipe, (8, 16, 32, 64), (0.1, 3.0), 1 << 17)
    yield replace(subject, trials={**subject.trials, FULL_MODEL: causal.tree_trial(box, DisentangledFamily(), longer)})


def _subject(
    sandbox: CausalGraph, recipe: Recipe, lengths: tuple[int, ...], others: tuple[float, ...], rows: int
) -> Subject:
    """Return two-attention models at several lengths; `others` are Dirichlet parameters of other kernels."""
    trials = causal.trials_by_length(sandbox, recipe, lengths)
    line = replace(sandbox, graph="chain", trees=1)
    trials[f"{line.length} tokens, chains"] = Trial(line, causal.FAMILY, recipe, range(8), probes=causal.PROBES)
    data = {"symbols": sandbox.states, "lengths": lengths, "other kernels": others, "rows": rows, "shift": 0}
    return Subject("trees and chains", data=data, trials=trials)


def sabotage(subject: Subject) -> Subject:
    """Compare with another tree; two lengths are enough."""
    trial, lengths = subject.trials["16 tokens, trees"], (16, 24)
    trials = causal.trials_by_length(trial.sandbox, trial.recipe, lengths)
    changed = {"lengths": lengths, "other kernels": subject.data["other kernels"][:1], "rows": causal.BATCH, "shift": 1}
    return replace(subject, data={**subject.data, **changed}, trials=trials)


def check(subject: Subject) -> Evidence:
    nets, shift, judged = trained(subject), subject.data["shift"], Criterion.judged
    trees = {length: nets[f"{length} tokens, trees"] for length in subject.data["lengths"]}
    box, most = trees[16].trial.sandbox, partial(judged, share=MIN_TREES)
    start = causal.first_gradients(box, subject.data["rows"], shift)
    criteria = [
        judged("positions whose information is largest at the parent", start["information"], at_least=1.0),
        most("positions whose first gradient is largest at the parent", start["gradient"], at_least=MIN_POSITIONS),
        judged("rank correlation of gradient and information", start["ranks"][0], at_least=0.0),
        judged("rank correlation of gradient and its first-order formula", start["ranks"][1], at_least=0.0),
    ]
    attention = {name: causal.on_parents(each, shift) for name, each in nets.items()}  # [quantity, member, step]
    for name, (share, weight) in attention.items():
        least = MIN_WEIGHT * (name != FULL_MODEL)
        criteria.append(most(f"{name}: positions attending to their parent", share[:, -1], at_least=MIN_POSITIONS))
        criteria.append(most(f"{name}: attention to the parent", weight[:, -1], at_least=least))
    if FULL_MODEL in nets:
        kl = nets[FULL_MODEL].final("kl").ravel()
        mean = judged(f"{FULL_MODEL}: KL from the optimum, mean", [kl.mean()], at_most=MAX_KL)
        criteria += [mean, judged(f"{FULL_MODEL}: KL from the optimum, each", kl)]
    elsewhere = {}
    for alpha in subject.data["other kernels"]:
        name = f"Dirichlet {alpha:g}"
        errors = np.stack([causal.errors(net, alpha) for net in trees.values()], axis=-1)  # [2, tree, length]
        slopes = [np.polyfit(np.log(list(trees)), np.log(each).T, 1)[0] for each in errors]
        ratio, bound = (errors[0] / errors[1]).ravel(), MAX_RATIO if alpha > box.alpha else np.inf
        criteria.append(judged(f"{name}: error over that of counts", ratio, at_most=bound))
        criteria.append(judged(f"{name}: power of the length in the error", slopes[0], at_most=0.0))
        criteria.append(judged(f"{name}: power for counts", slopes[1]))
        elsewhere[name] = {"net": errors[0], "counts": errors[1], "slopes": slopes}
    portrait = nets.get(FULL_MODEL, trees[16])
    graph, pattern = causal.parents(portrait.trial.sandbox, 0, shift), portrait.final("first")[0, 0].round(3)
    figure = {
        "steps": trees[16].steps,
        "weight": {length: attention[f"{length} tokens, trees"][1] for length in trees},
        "portrait": {"parents": graph, "pattern": pattern},
        **{name: start[name] for name in ("scatter", "ranks")},
        "lengths": list(trees),
        "other kernels": elsewhere,
    }
    return evidence(subject, criteria, figure)


def draw(figures: Figures) -> Figure:
    """A graph beside what was learned, the first gradient against two predictions, and errors on other kernels."""
    (data,) = figures.values()
    title = "Gradient descent makes the first attention the causal graph"
    figure, ((graph, learned, training), (*scattered, errors)) = sheet(2, 3, title)
    pattern, parents = (np.array(data["portrait"][name]) for name in ("pattern", "parents"))
    exact = np.zeros_like(pattern)
    exact[np.flatnonzero(parents >= 0), parents[parents >= 0]] = 1
    titles = {"the graph": exact, "the first attention (roots are free)": pattern}
    for own, (title, matrix) in zip((graph, learned), titles.items(), strict=True):
        heat(own, matrix, "weight", vmin=0, vmax=1, cmap="Greys")
        own.set(title=title, xlabel="key position", ylabel="query position")
    groups = {f"{length} tokens ({len(each)} trees)": each for length, each in data["weight"].items()}
    panel(training, data["steps"], groups, {"threshold": MIN_WEIGHT}, at=0.01, steps=True, ylim=(0, 1))
    training.set(title="training", ylabel="mean attention to the parent")
    for own, name, ranks in zip(scattered, causal.PREDICTIONS, data["ranks"], strict=True):
        causal.draw_scatter(own, data["scatter"], name, ranks)
    causal.draw_errors(errors, data["lengths"], data["other kernels"])
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L4", standing="experiment", learned=True, budget_seconds=180)
