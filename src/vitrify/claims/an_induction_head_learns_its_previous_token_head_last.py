r"""An induction head learns what to output and what to match first, and its previous-token head last.

Statement: Sequences are bigrams in which trigger tokens are followed by an output token that each sequence chooses for
itself; repeated outputs must be predicted. With frozen random embeddings and three trained matrices, the output memory
$W_O^2$ is learned first, then the match memory $W_K^2$, and the position memory $W_K^1$ last. In an ordinary
transformer the matching head of layer 2 rises no later than the previous-token head of layer 1.
Why: Under uniform attention outputs are already more frequent than other tokens, which trains $W_O^2$. A second head
that favours positions with the trigger in their past gains even from a first head with spread attention. Only then does
the first head gain by attending to a single position, and each position has to learn this separately. So heads are not
learned in the order of their layers.
Not checked: The authors' SGD with momentum and their bigrams of a text; here Adam and one table of random bigrams. The
order by normalized margins instead of recall. Equal numbers of items make the recalls comparable, but not how often
each item is trained: every position is trained in each sequence, a trigger only where it occurs. On all items, of which
there are more outputs than triggers, $W_K^2$ came 76 to 111 steps before $W_O^2$ in an earlier run.
Source: Bietti, Cabannes, Bouchacourt, Jégou and Bottou 2023, arXiv 2306.00802 [S]; the ordinary transformer is in the
spirit of their experiments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import jax.numpy as jnp
import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials.memories import LEARNED, NULLS, among_equal, by_memory, learned, recall
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Recipe, Trial, evidence, recalled
from vitrify.intervals import mean_interval
from vitrify.learn.figures import band, panel, sheet
from vitrify.learn.models.frozen_memories import FrozenMemoriesFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import attention_on, induction_of, previous_token
from vitrify.learn.program import Probe
from vitrify.learn.stages import risen
from vitrify.sandboxes.bigram_trigger import BigramTrigger

MIN_ACCURACY = 0.97  # at the end
SHOWN = 0.7  # of the positions, all of them: where the figure takes them for learned
MIN_STEPS = 1  # by which one memory is learned before another
BEGUN_PART, HALF_PART, MIN_SEEDS = 0.1, 0.5, 13 / 16  # of a rise; share of the units
LABELS = {"outputs": "outputs, $W_O^2$", "matches": "matches, $W_K^2$", "positions": "positions, $W_K^1$"}
PLAN = Plan(
    version=1,
    question="In which order does an induction head learn outputs, matches and previous positions?",
    statements={
        "outputs": Statement(
            "the output memory is learned before the match memory",
            f"steps from {LEARNED:.0%} recall of outputs to {LEARNED:.0%} of matches, both among as many items as "
            f"there are triggers: the interval of the mean is ≥ {MIN_STEPS}; reversed if it is < 0",
            "the order is a coin: the two memories are exchanged in a random half of the draws",
        ),
        "positions": Statement(
            "the position memory is learned after both others",
            f"≥ {MIN_STEPS} step from the later of the two to {LEARNED:.0%} recall of positions, among as many",
            "position memories are learned together with the later of the other two",
        ),
        "predictions": Statement(
            "outputs and matches are recalled by the time predictions are right",
            f"≥ 0 steps from both, on all items, to {LEARNED:.0%} right predictions",
            "predictions become right together with the later of the two memories",
        ),
        "heads": Statement(
            "in an ordinary transformer the match head rises no later than the previous-token head",
            f"≥ 0 steps from the match head to the other at {BEGUN_PART:.0%} and at {HALF_PART:.0%} of their rises",
            "both heads rise together",
        ),
    },
    units="draw of the frozen vectors, with its seed; of the transformer, seed",
    judged=range(100, 116),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "steps": Axis(1200, 1000),
        "batch": Axis(128, 512),
        "d_model": Axis(256, 256),
        "tokens": Axis(256, 256),
        "vocabulary": Axis(65, 65),
        "triggers": Axis(10, 5),
        "optimizer": Axis("Adam", "SGD with momentum"),
        "bigrams": Axis("random", "of a text"),
        "ordinary transformer, d_model": Axis(128, "?"),
    },
    chosen="Recall on all items was judged before, with a level of 0.7 for positions, which do not come to 0.9. Among "
    "equally many items one level serves all; at 0.7 instead, positions come first in 2 of 8 explored draws.",
)


def subjects() -> Subjects:
    sandbox = BigramTrigger(vocabulary=20, triggers=5, length=49, scored="repeated")
    recipe = Recipe(steps=144, batch=48, lr=0.02, warmup=0, clip=None, test_examples=64, evals_per_doubling=4)
    usual = replace(recipe, steps=256, batch=32, lr=0.01, warmup=10, clip=1.0)
    yield _subject("five triggers", sandbox, (128, recipe), (32, usual), PLAN.explored[:8])


def large() -> Subjects:
    sandbox = BigramTrigger(vocabulary=65, triggers=10, length=257, scored="repeated", task=PLAN.judged[0])
    recipe = Recipe(steps=1200, batch=128, lr=0.01, warmup=0, clip=None, test_examples=256, evals_per_doubling=6)
    usual = replace(recipe, batch=128, lr=3e-3, warmup=10, clip=1.0)
    yield _subject("ten triggers", sandbox, (256, recipe), (128, usual), PLAN.judged)


def _subject(
    name: str, sandbox: BigramTrigger, frozen: tuple[int, Recipe], usual: tuple[int, Recipe], units: Sequence[int]
) -> Subject:
    """Frozen memories of as many draws as units, and an ordinary transformer; each with its width and recipe."""
    triggers = sandbox.prior > 0
    heads = {"back": attention_on(previous_token), "match": attention_on(induction_of(jnp.asarray(triggers)))}
    probes: dict[str, Probe] = {"recall": partial(recall, triggers), "equal": partial(among_equal, triggers)}
    ordinary = TransformerFamily(layers=2, heads=1, d_model=usual[0], units=0, pads=0)
    memories, draws = FrozenMemoriesFamily(d_model=frozen[0]), {"draw,seed": [(unit, unit) for unit in units]}
    trials = {
        "memories": Trial(sandbox, memories, frozen[1], axes=draws, probes=probes),
        "transformer": Trial(sandbox, ordinary, usual[1], units, probes=heads),
    }
    data = {"triggers": sandbox.triggers, "vocabulary": sandbox.vocabulary, "tokens": sandbox.tokens}
    return Subject(name, data=data, trials=trials)


def judge(subject: Subject, measured: Measured) -> Evidence:
    nets = recalled(subject, measured)
    memories, usual = nets["memories"], nets["transformer"]
    curves, when = by_memory(memories.curves("recall"), memories.steps)
    equal = by_memory(memories.curves("equal"), memories.steps)[1]
    curves["accuracy"] = memories.curves("accuracy")
    when["accuracy"] = learned(memories.steps, curves["accuracy"])
    when["positions"] = learned(memories.steps, curves["positions"], SHOWN)
    heads = {head: usual.curves(head)[..., layer] for head, layer in (("back", 0), ("match", 1))}
    begun, half = ([risen(usual.steps, own, part) for own in heads.values()] for part in (BEGUN_PART, HALF_PART))
    delay = equal["matches"] - equal["outputs"]
    after = equal["positions"] - np.maximum(equal["outputs"], equal["matches"])
    right = when["accuracy"] - np.maximum(when["outputs"], when["matches"])
    end, ended, name = curves["accuracy"][:, -1], usual.final("accuracy"), "steps from the match head to the other"
    last = memories.curves("equal")[:, -1, 2]
    first, later, by, together = PLAN.statements
    premise, most = partial(Criterion.judged, premise=True), partial(Criterion.judged, share=MIN_SEEDS)
    two_sided = partial(Criterion.estimated, at_least=MIN_STEPS, null=0.0, statement=first)
    criteria = [
        *(premise("memories: accuracy", end, at_least=MIN_ACCURACY, statement=key) for key in (first, later, by)),
        premise("recall of positions at the end", last, at_least=LEARNED, statement=later),
        premise("transformer: accuracy", ended, at_least=MIN_ACCURACY, share=MIN_SEEDS, statement=together),
        two_sided("steps from outputs to matches", delay.mean(), mean_interval(delay), values=delay),
        most("steps from both to positions", after, at_least=MIN_STEPS, statement=later),
        most("steps from both to right predictions", right, at_least=0, statement=by),
        most(f"{name}, {BEGUN_PART:.0%} of the rise", begun[0] - begun[1], at_least=0, statement=together),
        most(f"{name}, {HALF_PART:.0%} of the rise", half[0] - half[1], at_least=0, statement=together),
    ]
    ordinary = {"steps": usual.steps, **heads, "begun": begun, "half": half}
    figure = {"steps": memories.steps, "recall": curves, "when": when, "equal": equal, "ordinary": ordinary}
    return evidence(subject, criteria, figure)


def draw(figures: Figures) -> Figure:
    (data,) = figures.values()
    figure, ((recall, times, heads),) = sheet(1, 3, "An induction head: the previous token is learned last", width=4.6)
    count, colors = len(data["recall"]["positions"]), ("C0", "C1", "C2", "0.3")
    band(recall, data["steps"], data["recall"]["accuracy"], "accuracy", "0.3", linestyle="--")
    groups = {label: data["recall"][name] for name, label in LABELS.items()}
    lines = {"learned: outputs and matches": LEARNED, "learned: positions": SHOWN}
    recall.set(title=f"three memories ({count} draws)", ylabel="recall, or accuracy", ylim=(0, 1.05))
    panel(recall, data["steps"], groups, lines, at=0.01, steps=True, legend="center left")
    for (name, label), color in zip({**LABELS, "accuracy": "accuracy"}.items(), colors, strict=True):
        times.plot(np.array(data["when"][name], dtype=float), range(1, count + 1), "o", color=color, label=label)
    equal = data.get("equal", {})  # not before version 1
    for number, name in enumerate(equal):
        times.plot(np.array(equal[name], dtype=float), range(1, count + 1), "x", color=f"C{number}")
    if equal:
        times.plot([], [], "kx", label="among equally many")
    top = (1.8 if equal else 1.5) * count
    times.set(title="when each is learned", xlabel="training step", ylabel="draw", ylim=(0, top))
    times.legend(fontsize=8, loc="upper right")
    usual = data["ordinary"]
    names = {"back": ("first head: previous token", "C2"), "match": ("second head: match", "C1")}
    for at, (name, (label, color)) in enumerate(names.items()):
        band(heads, usual["steps"], usual[name], f"{label} ({len(usual[name])} seeds)", color)
        for part, marker in (("begun", "v"), ("half", "o")):
            step = float(np.median(usual[part][at]))
            height = float(np.interp(step, usual["steps"], np.mean(usual[name], axis=0)))
            heads.plot(step, height, marker, color=color, markeredgecolor="black", label=f"{part}: step {step:.0f}")
    heads.set(title="heads of an ordinary transformer", ylabel="attention to the right position", ylim=(0, 1))
    panel(heads, steps=True, size=7)
    return figure


CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, id="L9", standing="experiment")
