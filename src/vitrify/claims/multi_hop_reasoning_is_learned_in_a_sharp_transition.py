r"""Three attention layers guess the end of a chain of facts, then learn multi-hop reasoning in a sharp transition.

Statement: A sequence lists $K$ chains $a \to b \to c$ as separate facts, all $a \to b$ in random order and then all $b
\to c$, and asks for the $c$ of one $a$. A disentangled transformer of three layers with one head and relative positions
soon knows which names end a chain, and guesses among them: its loss has a plateau at $\ln K$. The plateau lasts for a
substantial part of the training, and at least as long as the transition to a high accuracy that follows. Such networks
of one or two layers stay near $1/K$, the accuracy of guessing among the ends.
Why: A head that attends to the previous token joins the two names of a fact, and each of the two steps needs a further
head that searches for a name: three layers. Each is useful only when the others work, so the gradient at the guess is
small. Attention of the last token in layers 2 (to the $b$ of the queried $a$) and 3 (to the fact that continues from
it) is reported.
Checked: Depths 1, 2 and 3. Quick scale has 2 chains, 2,000 steps and 8 seeds; large scale has 3 chains, 4,000 steps and
12 seeds. Three quarters of the seeds of three layers must pass: accuracy 0.95, a plateau (0.1 nats around $\ln K$) of a
tenth of the training and no shorter than the transition. All seeds of one and two layers must stay below accuracy $1/K
+ 0.15$. At large scale 1 of 12 networks of two layers is above (0.54), so the claim fails there.
Not checked: The authors' plain and wider transformers with five chains. They list each chain in order, so an end that
comes before the queried chain cannot be the answer; here all first facts come before all second ones. With two chains
some two-layer networks that know absolute positions, and some plain transformers, learn the task; they are not
included. The plateau's share of the training depends on how long training goes on.
Source: Guo et al. 2025, arXiv 2502.13913 [A], in the spirit of their two-hop task; the thresholds are ours.
Saboteur: Networks of two layers are presented as those of three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials.trial import Criterion, Evidence, Quantity, Recipe, Trial, evidence, trained
from vitrify.learn.figures import panel, sheet
from vitrify.learn.models.disentangled import DisentangledFamily
from vitrify.learn.stages import plateau_and_transition
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.multi_hop import MultiHop

PLATEAU_NATS = 0.1  # from ln K
MIN_PLATEAU = 0.1  # of the training
MIN_ACCURACY = 0.95
MAX_ABOVE_CHANCE = 0.15  # accuracy above chance, 1/K
MIN_SEEDS = 6 / 8
TARGETS = {"b of the queried a": 1, "fact that continues from it": 2}  # of the last token's attention, with its block


def attention_to_chain(block: int, net: object, arrays: object, row: Example, seen: Mapping[str, Array]) -> Array:
    """Return the last token's attention to the end of the queried chain's first step (block 1), or to its second."""
    del net, arrays
    last = seen[f"blocks.{block}.attn.hook_pattern"][:, 0, -1]  # [sequence, token]
    step = 2 * row.latent["steps"][:, block - 1, None]
    tokens = jnp.arange(last.shape[-1])
    return (last * ((tokens >= step + (block == 1)) & (tokens <= step + 1))).sum(axis=-1).mean()


PROBES = {name: partial(attention_to_chain, block) for name, block in TARGETS.items()}


def subjects() -> Subjects:
    yield _subject(2, Recipe(steps=2000, batch=32, lr=0.02, evals_per_doubling=6, test_examples=512), seeds=8)


def large() -> Subjects:
    """Three chains, whose plateau is longer, with larger batches."""
    yield _subject(3, Recipe(steps=4000, batch=128, lr=0.02, evals_per_doubling=6, test_examples=1024), seeds=12)


def _subject(chains: int, recipe: Recipe, seeds: int) -> Subject:
    """Return the trials of all depths; there are only as many names as one sequence uses, so each is frequent."""
    sandbox = MultiHop(chains=chains, names=3 * chains, rounds=True)
    nets = {depth: DisentangledFamily(heads=(1,) * depth, relative=True, scale=0.1) for depth in (1, 2, 3)}
    trials = {str(depth): Trial(sandbox, net, recipe, range(seeds)) for depth, net in nets.items()}
    trials["3"] = replace(trials["3"], probes=PROBES)
    return Subject(f"{chains} chains", data={"chains": chains, "names": 3 * chains}, trials=trials)


def sabotage(subject: Subject) -> Subject:
    shallow = {**subject.trials, "3": subject.trials["2"]}
    return replace(subject, name=f"{subject.name}, one layer short", trials=shallow)


def check(subject: Subject) -> Evidence:
    """Train every depth. Judge the deepest by its plateau, transition and final accuracy; the others by chance."""
    depths, chains = trained(subject), subject.data["chains"]
    names, most = ("loss", "accuracy", *TARGETS), 1 / chains + MAX_ABOVE_CHANCE
    curves = {
        depth: {name: nets.curves(name) for name in names if name in nets.runs[0].last}
        for depth, nets in depths.items()
    }
    steps = depths["3"].steps
    measured = partial(plateau_and_transition, level=np.log(chains), near=PLATEAU_NATS, low=most, high=MIN_ACCURACY)
    pairs = zip(curves["3"]["loss"], curves["3"]["accuracy"], strict=True)
    plateaus, transitions = np.array([measured(steps, *pair) for pair in pairs]).T
    one, two, three = (curves[depth]["accuracy"][:, -1] for depth in "123")
    judged = partial(Criterion.judged, share=MIN_SEEDS)
    criteria = [
        judged("accuracy of three layers at the end", three, at_least=MIN_ACCURACY),
        judged("share of the training within 0.1 nats of ln K", plateaus / steps[-1], at_least=MIN_PLATEAU),
        judged("plateau over transition, in steps", plateaus / transitions, at_least=1.0),
        Criterion.judged("accuracy of two layers at the end", two, at_most=most),
        Criterion.judged("accuracy of one layer at the end", one, at_most=most),
    ]
    values = {"steps of the plateau": plateaus, "steps of the transition": transitions[np.isfinite(transitions)]}
    values |= {f"attention to the {name}": curves["3"][name][:, -1] for name in TARGETS if name in curves["3"]}
    medians = [Quantity(f"median {name}", np.median(each)) for name, each in values.items() if len(each)]
    rounded = {depth: {name: each.round(3) for name, each in own.items()} for depth, own in curves.items()}
    figure = {depth: {"steps": steps, **own} for depth, own in rounded.items()}
    return evidence(subject, criteria, {"chains": chains, "depths": figure}, medians)


def draw(figures: Figures) -> Figure:
    """Loss and accuracy of each depth over the steps, all seeds, with chance and thresholds; where they attend."""
    figure, axes = sheet(len(figures), 3, "Chains of facts: guessed, then followed", 4.8, 3.8)
    for (subject, data), (losses, accuracies, attention) in zip(figures.items(), axes, strict=True):
        depths, chance = data["depths"], 1 / data["chains"]
        labels = {depth: f"{depth} layer{'s' * (depth != '1')}, {len(depths[depth]['loss'])} seeds" for depth in "123"}
        loss, accuracy = ({labels[d]: depths[d][name] for d in "123"} for name in ("loss", "accuracy"))
        targets = {f"layer {block + 1}: {name}": depths["3"][name] for name, block in TARGETS.items()}
        line = {f"guessing among the ends: ln K = {-np.log(chance):.2f}, and 0.1 around it": -np.log(chance)}
        limits = {"1/K": chance, "1/K + 0.15": chance + MAX_ABOVE_CHANCE, "follows the chain": MIN_ACCURACY}
        seeds = partial(
            panel, x=depths["3"]["steps"], each_seed=True, colors=("C2", "C0", "C1"), xlabel="training step"
        )
        losses.axhspan(*(-np.log(chance) + np.array([-1, 1]) * PLATEAU_NATS), color="black", alpha=0.08, linewidth=0)
        seeds(losses, groups=loss, lines=line, ylabel="test loss (nats per answer)", ylim=(0, None), title=subject)
        seeds(accuracies, groups=accuracy, lines=limits, ylabel="accuracy", ylim=(0, 1.05), title=subject, at=0.01)
        seeds(attention, groups=targets, ylabel="attention of the last token", ylim=(0, 1.05), title="three layers")
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L11", standing="experiment", learned=True, budget_seconds=180)
