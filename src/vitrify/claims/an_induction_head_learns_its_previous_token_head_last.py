r"""An induction head learns what to output and what to match first, and its previous-token head last.

Statement: Sequences are bigrams in which trigger tokens are followed by an output token that each sequence chooses for
itself; repeated outputs must be predicted. (1) With frozen random embeddings and three trained matrices, the output
memory $W_O^2$ and the match memory $W_K^2$ recall 90 % of their pairs by the step at which 90 % of the predictions are
right; the position memory $W_K^1$ reaches 70 % recall only after these two. (2) In an ordinary transformer the matching
head of layer 2 reaches 10 % of its rise, and 50 %, no later than the previous-token head of layer 1.
Why: Under uniform attention outputs are already more frequent than other tokens, which trains $W_O^2$. A second head
that favours positions with the trigger in their past gains even from a first head with spread attention. Only then does
the first head gain by attending to a single position, and each position has to learn this separately. So heads are not
learned in the order of their layers.
Checked: Eight draws of the frozen embeddings, and eight seeds of the transformer, of which 7 must pass. All must be
learned in the end. Quick scale has 20 tokens, 5 triggers and sequences of 49; large scale has 65 tokens, 10 triggers
and sequences of 257.
Not checked: The published order of $W_O^2$ before $W_K^2$: here $W_K^2$ must come at most 20 steps after $W_O^2$, and
at large scale it comes 76 to 111 steps before. The authors' SGD with momentum and their bigrams of a text; here Adam
and random bigrams.
Source: Bietti, Cabannes, Bouchacourt, Jégou and Bottou 2023, arXiv 2306.00802 [S]; in the spirit of their experiments.
Saboteur: The position memory is scored by the position two before instead of the previous one.
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
from vitrify.encoding import JsonObject
from vitrify.learn.figures import band, panel, sheet
from vitrify.learn.models.frozen_memories import FrozenMemoriesFamily, recalled
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import attention_on, induction_of, previous_token
from vitrify.learn.program import Probe
from vitrify.learn.stages import risen, stays_above
from vitrify.sandboxes.bigram_trigger import BigramTrigger
from vitrify.sandboxes.catalogue import Example

MIN_ACCURACY = 0.97  # at the end
MEMORIES = {"outputs": 0.9, "matches": 0.9, "positions": 0.7}  # the recall at which each is learned
MAX_DELAY = 20  # steps from the outputs to the matches
BEGUN_PART, HALF_PART, MIN_SEEDS = 0.1, 0.5, 7 / 8  # of a rise; share of the transformers
LABELS = {"outputs": "outputs, $W_O^2$", "matches": "matches, $W_K^2$", "positions": "positions, $W_K^1$"}


def subjects() -> Subjects:
    sandbox = BigramTrigger(vocabulary=20, triggers=5, length=49, scored="repeated")
    recipe = Recipe(steps=144, batch=48, lr=0.02, warmup=0, clip=None, test_examples=64, evals_per_doubling=4)
    usual = replace(recipe, steps=256, batch=32, lr=0.01, warmup=10, clip=1.0)
    yield _subject("five triggers", sandbox, (128, recipe), (32, usual))


def large() -> Subjects:
    sandbox = BigramTrigger(vocabulary=65, triggers=10, length=257, scored="repeated")
    recipe = Recipe(steps=1200, batch=128, lr=0.01, warmup=0, clip=None, test_examples=256, evals_per_doubling=6)
    usual = replace(recipe, batch=128, lr=3e-3, warmup=10, clip=1.0)
    yield _subject("ten triggers", sandbox, (256, recipe), (128, usual))


def _subject(name: str, sandbox: BigramTrigger, frozen: tuple[int, Recipe], usual: tuple[int, Recipe]) -> Subject:
    """Frozen memories of eight draws, and an ordinary transformer of as many seeds; each with its width and recipe."""
    triggers = jnp.asarray(sandbox.prior > 0)
    heads = {"back": attention_on(previous_token), "match": attention_on(induction_of(triggers))}
    recall: dict[str, Probe] = {"recall": partial(_recall, triggers, 1)}
    ordinary = TransformerFamily(layers=2, heads=1, d_model=usual[0], units=0, pads=0)
    memories = FrozenMemoriesFamily(d_model=frozen[0])
    trials = {
        "memories": Trial(sandbox, memories, frozen[1], range(1), {"draw": range(8)}, probes=recall | heads),
        "transformer": Trial(sandbox, ordinary, usual[1], range(8), probes=heads),
    }
    data = {"triggers": sandbox.triggers, "vocabulary": sandbox.vocabulary, "tokens": sandbox.tokens, "draws": 8}
    return Subject(name, data=data, trials=trials)


def sabotage(subject: Subject) -> Subject:
    """Score the position memory by the position two before; two draws are enough."""
    trial = subject.trials["memories"]
    probes: dict[str, Probe] = {**trial.probes, "recall": partial(_recall, jnp.asarray(trial.sandbox.prior > 0), 2)}
    return replace(subject, trials={"memories": replace(trial, axes={"draw": range(2)}, probes=probes)})


def _recall(triggers: Array, back: int, net: object, arrays: Mapping[str, Array], row: Example, seen: object) -> Array:
    del net, row, seen
    return jnp.stack([recalled(arrays, triggers, back)[name] for name in MEMORIES])


def check(subject: Subject) -> Evidence:
    nets = trained(subject)
    memories, judged = nets["memories"], Criterion.judged
    curves = dict(zip(MEMORIES, np.moveaxis(memories.curves("recall")[:, 0], -1, 0), strict=True))  # [draw, step]
    curves["accuracy"] = memories.curves("accuracy")[:, 0]
    levels = MEMORIES | {"accuracy": MEMORIES["outputs"]}
    when = {name: np.array([stays_above(memories.steps, c, levels[name]) for c in own]) for name, own in curves.items()}
    both, delay = np.maximum(when["outputs"], when["matches"]), when["matches"] - when["outputs"]
    criteria = [
        judged("accuracy at the end", curves["accuracy"][:, -1], at_least=MIN_ACCURACY),
        judged("recall of positions at the end", curves["positions"][:, -1], at_least=MEMORIES["positions"]),
        judged("steps from the output memory to the match memory", delay, at_most=MAX_DELAY),
        judged("steps from both memories to 90 % accuracy", when["accuracy"] - both, at_least=0),
        judged("steps from both memories to the position memory", when["positions"] - both, at_least=1),
        judged("published order: steps from the output memory to the match memory", delay),
    ]
    figure: JsonObject = {"steps": memories.steps, "recall": curves, "when": when}
    if "transformer" in nets:
        usual, name = nets["transformer"], "transformer: steps from the match head to the previous-token head"
        heads = {head: usual.curves(head)[..., layer] for head, layer in (("back", 0), ("match", 1))}
        begun, half = ([risen(usual.steps, own, part) for own in heads.values()] for part in (BEGUN_PART, HALF_PART))
        right, share = usual.final("accuracy"), MIN_SEEDS
        criteria += [
            judged("transformer: accuracy at the end", right, at_least=MIN_ACCURACY, share=share),
            judged(f"{name}, 10 % of the rise", begun[0] - begun[1], at_least=0, share=share),
            judged(f"{name}, 50 % of the rise", half[0] - half[1], at_least=0, share=share),
        ]
        figure["ordinary"] = {"steps": usual.steps, **heads, "begun": begun, "half": half}
    return evidence(subject, criteria, figure)


def draw(figures: Figures) -> Figure:
    (data,) = figures.values()
    figure, ((recall, times, heads),) = sheet(1, 3, "An induction head: the previous token is learned last", width=4.6)
    count, colors = len(data["recall"]["positions"]), ("C0", "C1", "C2", "0.3")
    band(recall, data["steps"], data["recall"]["accuracy"], "accuracy", "0.3", linestyle="--")
    groups = {label: data["recall"][name] for name, label in LABELS.items()}
    lines = {"learned: outputs and matches": MEMORIES["outputs"], "learned: positions": MEMORIES["positions"]}
    recall.set(title=f"three memories ({count} draws)", ylabel="recall, or accuracy", ylim=(0, 1.05))
    panel(recall, data["steps"], groups, lines, at=0.01, steps=True, legend="center left")
    for (name, label), color in zip({**LABELS, "accuracy": "accuracy"}.items(), colors, strict=True):
        times.plot(np.array(data["when"][name], dtype=float), range(1, count + 1), "o", color=color, label=label)
    times.set(title="when each is learned", xlabel="training step", ylabel="draw", ylim=(0, 1.5 * count))
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


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L9", standing="experiment", learned=True, budget_seconds=180)
