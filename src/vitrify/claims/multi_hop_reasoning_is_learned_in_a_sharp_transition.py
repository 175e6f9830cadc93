r"""Three attention layers guess the end of a chain of facts, then learn multi-hop reasoning in a sharp transition.

Statement: A sequence lists $K$ chains $a \to b \to c$ as separate facts, all $a \to b$ in random order and then all $b
\to c$, and asks for the $c$ of one $a$. A disentangled transformer of three layers with one head and relative positions
soon knows which names end a chain, and guesses among them: its loss has a plateau at $\ln K$. The plateau takes most of
the steps to a high accuracy, and lasts several times as long as the transition that follows. Such networks of one or
two layers stay near $1/K$, the accuracy of guessing among the ends.
Why: A head that attends to the previous token joins the two names of a fact, and each of the two steps needs a further
head that searches for a name: three layers. Each is useful only when the others work, so the gradient at the guess is
small. Attention of the last token in layers 2 (to the $b$ of the queried $a$) and 3 (to the fact that continues from
it) is reported.
Not checked: The authors' plain and wider transformers with five chains. They list each chain in order, so an end that
comes before the queried chain cannot be the answer; here all first facts come before all second ones. With two chains
some two-layer networks that know absolute positions, and some plain transformers, learn the task; they are not
included.
Source: Guo et al. 2025, arXiv 2502.13913 [A], in the spirit of their two-hop task; the thresholds are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, Trial, evidence, recalled
from vitrify.learn.figures import panel, sheet
from vitrify.learn.models.disentangled import DisentangledFamily
from vitrify.learn.stages import plateau_and_transition, stays_above
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.multi_hop import MultiHop

PLATEAU_NATS = 0.1  # from ln K
MIN_PLATEAU, MIN_SHARP = 0.5, 4.0  # plateau over the steps to a high accuracy, and over the transition
MIN_ACCURACY, MIN_SEEDS, MAX_ABOVE_CHANCE = 0.95, 3 / 4, 0.15  # of three layers, twice; of fewer, above 1/K
NULL_RATE = 1 / 4  # share of the shallower networks that learn, if depth is not needed
SHALLOW = {"two layers": "2", "one layer": "1"}  # with their trials
TARGETS = {"b of the queried a": 1, "fact that continues from it": 2}  # of the last token's attention, with its block
STEADILY = "from the step at which the loss of guessing is reached, networks improve by as much in every step"
PLAN = Plan(
    version=1,
    question="Do three layers guess the end of a chain for long, and then learn to follow it in a sharp transition?",
    statements={
        "plateau": Statement(
            "the loss of three layers has a plateau at ln K, that of guessing among the ends of the K chains",
            f"in {MIN_SEEDS:.0%} of the seeds, {MIN_PLATEAU:.0%} of the steps to the accuracy {MIN_ACCURACY} are spent "
            f"within {PLATEAU_NATS} nats of ln K",
            STEADILY,
        ),
        "transition": Statement(
            "the transition to a high accuracy is short beside the plateau",
            f"in {MIN_SEEDS:.0%} of the seeds the plateau lasts ≥ {MIN_SHARP:g} times as long as the accuracy takes to "
            f"rise from 1/K + {MAX_ABOVE_CHANCE} to {MIN_ACCURACY}",
            STEADILY,
        ),
        **{
            name: Statement(
                f"networks of {name} stay near the accuracy of guessing",
                f"accuracy at the end ≤ 1/K + {MAX_ABOVE_CHANCE} in all seeds",
                f"{NULL_RATE:.0%} of the networks of {name} end like those of three",
            )
            for name in SHALLOW
        },
    },
    units="seed",
    judged=range(100, 116),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "chains": Axis(3, 5),
        "names": Axis(9, "?"),
        "order of facts": Axis("in rounds", "each chain in order"),
        "network": Axis("disentangled, relative positions", "plain"),
        "layers": Axis(3, 3),
        "steps": Axis(4000, "?"),
    },
    chosen="In a run of 12 explored seeds 1 network of two layers learned more than to guess (accuracy 0.54).",
)


def attention_to_chain(block: int, net: object, arrays: object, row: Example, seen: Mapping[str, Array]) -> Array:
    """Return the last token's attention to the end of the queried chain's first step (block 1), or to its second."""
    del net, arrays
    last = seen[f"blocks.{block}.attn.hook_pattern"][:, 0, -1]  # [sequence, token]
    step = 2 * row.latent["steps"][:, block - 1, None]
    tokens = jnp.arange(last.shape[-1])
    return (last * ((tokens >= step + (block == 1)) & (tokens <= step + 1))).sum(axis=-1).mean()


PROBES = {name: partial(attention_to_chain, block) for name, block in TARGETS.items()}


def subjects() -> Subjects:
    recipe = Recipe(steps=2000, batch=32, lr=0.02, evals_per_doubling=6, test_examples=512)
    yield _subject(2, recipe, PLAN.explored[:12])


def large() -> Subjects:
    recipe = Recipe(steps=4000, batch=128, lr=0.02, evals_per_doubling=6, test_examples=1024)
    yield _subject(3, recipe, PLAN.judged)


def _subject(chains: int, recipe: Recipe, seeds: Sequence[int]) -> Subject:
    """Return the trials of all depths; there are only as many names as one sequence uses, so each is frequent."""
    sandbox = MultiHop(chains=chains, names=3 * chains, rounds=True)
    nets = {depth: DisentangledFamily(heads=(1,) * depth, relative=True, scale=0.1) for depth in (1, 2, 3)}
    trials = {str(depth): Trial(sandbox, net, recipe, seeds) for depth, net in nets.items()}
    trials["3"] = replace(trials["3"], probes=PROBES)
    return Subject(f"{chains} chains", data={"chains": chains, "names": 3 * chains}, trials=trials)


def judge(subject: Subject, measured: Measured) -> Evidence:
    depths, chains = recalled(subject, measured), subject.data["chains"]
    names, most = ("loss", "accuracy", *TARGETS), 1 / chains + MAX_ABOVE_CHANCE
    curves = {
        depth: {each: nets.values[each] for each in names if each in nets.values} for depth, nets in depths.items()
    }
    steps = depths["3"].steps
    length = partial(plateau_and_transition, level=np.log(chains), near=PLATEAU_NATS, low=most, high=MIN_ACCURACY)
    pairs = zip(curves["3"]["loss"], curves["3"]["accuracy"], strict=True)
    plateaus, transitions = np.array([length(steps, *pair) for pair in pairs]).T
    solved = [stays_above(steps, np.maximum.accumulate(each), MIN_ACCURACY) for each in curves["3"]["accuracy"]]
    before = plateaus / np.fmin(solved, steps[-1])
    ends = {depth: own["accuracy"][:, -1] for depth, own in curves.items()}
    judged, within = partial(Criterion.judged, share=MIN_SEEDS), f"within {PLATEAU_NATS} nats of ln K"
    criteria = [
        judged("accuracy of three layers at the end", ends["3"], at_least=MIN_ACCURACY, premise=True),
        judged(f"share {within} of the steps to {MIN_ACCURACY}", before, at_least=MIN_PLATEAU, statement="plateau"),
        judged("plateau over transition, in steps", plateaus / transitions, at_least=MIN_SHARP, statement="transition"),
    ]
    for name, depth in SHALLOW.items():
        criteria.append(Criterion.judged(f"accuracy of {name} at the end", ends[depth], at_most=most, statement=name))
    values = {"steps of the plateau": plateaus, "steps of the transition": transitions[np.isfinite(transitions)]}
    values |= {f"attention to the {name}": curves["3"][name][:, -1] for name in TARGETS}
    medians = [Quantity(f"median {name}", np.median(each)) for name, each in values.items() if len(each)]
    figure = {d: {"steps": steps} | {name: each.round(3) for name, each in own.items()} for d, own in curves.items()}
    return evidence(subject, criteria, {"chains": chains, "depths": figure}, medians)


def gradual(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements of redrawn seeds that improve steadily from where they guess to the accuracy of the claim."""
    steps, chains = np.array(subject.trials["3"].recipe.eval_steps()), subject.data["chains"]
    drawn = rng.integers(len(measured["3/loss"]), size=len(measured["3/loss"]))
    loss, accuracy = (measured[f"3/{name}"][drawn] for name in ("loss", "accuracy"))
    for own, right in zip(loss, accuracy, strict=True):
        guessed = int((own <= np.log(chains) + PLATEAU_NATS).argmax())
        solved = int((right >= MIN_ACCURACY).argmax()) or len(steps) - 1
        between, ends = slice(guessed, solved + 1), [guessed, solved]
        own[between] = np.interp(steps[between], steps[ends], own[ends])
        right[between] = np.interp(steps[between], steps[ends], right[ends])
    return {**measured, "3/loss": loss, "3/accuracy": accuracy}


def learned_at_times(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which a seed of fewer layers ends, with a fixed probability, like one of three layers."""
    del subject
    deep, null = measured["3/accuracy"][:, -1], dict(measured)
    for depth in SHALLOW.values():
        accuracy = measured[f"{depth}/accuracy"].copy()
        learns = rng.random(len(accuracy)) < NULL_RATE
        accuracy[:, -1] = np.where(learns, rng.choice(deep, size=len(accuracy)), accuracy[:, -1])
        null[f"{depth}/accuracy"] = accuracy
    return null


def draw(figures: Figures) -> Figure:
    figure, axes = sheet(len(figures), 3, "Chains of facts: guessed, then followed", 4.8, 3.8)
    for (subject, data), (losses, accuracies, attention) in zip(figures.items(), axes, strict=True):
        depths, chance = data["depths"], 1 / data["chains"]
        labels = {depth: f"{depth} layer{'s' * (depth != '1')}, {len(depths[depth]['loss'])} seeds" for depth in "123"}
        loss, accuracy = ({labels[d]: depths[d][name] for d in "123"} for name in ("loss", "accuracy"))
        targets = {f"layer {block + 1}: {name}": depths["3"][name] for name, block in TARGETS.items()}
        line = {f"guessing among the ends: ln K = {-np.log(chance):.2f}, and 0.1 around it": -np.log(chance)}
        limits = {"1/K": chance, "1/K + 0.15": chance + MAX_ABOVE_CHANCE, "follows the chain": MIN_ACCURACY}
        colors, steps = ("C2", "C0", "C1"), depths["3"]["steps"]
        seeds = partial(panel, x=steps, each_seed=True, colors=colors, xlabel="training step")
        losses.axhspan(*(-np.log(chance) + np.array([-1, 1]) * PLATEAU_NATS), color="black", alpha=0.08, linewidth=0)
        seeds(losses, groups=loss, lines=line, ylabel="test loss (nats per answer)", ylim=(0, None), title=subject)
        seeds(accuracies, groups=accuracy, lines=limits, ylabel="accuracy", ylim=(0, 1.05), title=subject, at=0.01)
        seeds(attention, groups=targets, ylabel="attention of the last token", ylim=(0, 1.05), title="three layers")
    return figure


NULLS = {"plateau": gradual, "transition": gradual, **dict.fromkeys(SHALLOW, learned_at_times)}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, id="L11", standing="experiment")
