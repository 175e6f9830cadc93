r"""An induction head learns what to answer and what to match first, and which place to look back to last.

Statement: rows are bigrams with triggers, after each of which comes what the row has decided on, and repeated outputs
are asked for. (1) Among frozen random vectors, where only three matrices are trained, the memories of the answers
($W_O^2$) and of the matches ($W_K^2$) recall 90 % of their pairs before 90 % of the answers are right, and that of the
places ($W_K^1$) comes to 70 % after both. (2) In an ordinary transformer too the head that matches has risen by a tenth
and by a half of its rise before the head that looks back at the token before has.
Why: with uniform attention outputs are already more frequent than other tokens, which teaches $W_O^2$; a second head
that favours places with the trigger in their past gains from a first head that spreads its weight; only then does the
first head gain by looking at one place, and each place has to learn this by itself. So the order in which the heads
stand, previous token and then match, is not the one in which they are learnt.
Checked: eight draws of the frozen vectors and eight seeds of the transformer, measured at close steps. The published
order has $W_O^2$ before $W_K^2$; with few triggers the recall of $W_K^2$ is coarse, so that only a delay of at most 20
steps is asked for, and the difference is shown.
Source: in the spirit of Bietti, Cabannes, Bouchacourt, Jégou and Bottou 2023, arXiv 2306.00802 [S].
Saboteur: the memory of places is judged by the place two before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.frozen_memories import FrozenMemoriesFamily, recalled
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import attention_on, induction, previous_token
from vitrify.learn.program import Probe
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import Run, train
from vitrify.sandboxes.bigram_trigger import BigramTrigger
from vitrify.sandboxes.catalogue import Row

RIGHT, KEPT, PLACED, LATE = 0.97, 0.9, 0.7, 20  # answers at the end; recall of two memories, of places; steps
BEGUN, SEEDS = 0.1, 7 / 8  # of a rise; of the transformers
MEMORIES = ("outputs", "matches", "places")


@dataclass(frozen=True)
class Setting:
    """What is trained: frozen memories, and an ordinary transformer of as many seeds; `back` judges the places."""

    sandbox: BigramTrigger
    family: FrozenMemoriesFamily
    recipe: Recipe
    ordinary: TransformerFamily | None
    usual: Recipe
    members: int = 8
    back: int = 1


def subjects() -> Iterator[Subject]:
    """Five triggers among 20 tokens."""
    sandbox = BigramTrigger(vocabulary=20, triggers=5, length=49, asked="repeated")
    recipe = Recipe(steps=144, batch=48, lr=0.02, warmup=0, clip=None, test_rows=64, marks=4)
    ordinary = TransformerFamily(layers=2, heads=1, d_model=32, units=0, pads=0)
    usual = replace(recipe, steps=256, batch=32, lr=0.01, warmup=10, clip=1.0)
    family = FrozenMemoriesFamily(d_model=128)
    yield Subject("five triggers", data={"setting": Setting(sandbox, family, recipe, ordinary, usual)})


def paper() -> Iterator[Subject]:
    """Ten triggers among 65 tokens, rows of 256."""
    sandbox = BigramTrigger(vocabulary=65, triggers=10, length=257, asked="repeated")
    recipe = Recipe(steps=1200, batch=128, lr=0.01, warmup=0, clip=None, test_rows=256, marks=6)
    ordinary = TransformerFamily(layers=2, heads=1, d_model=128, units=0, pads=0)
    usual = replace(recipe, batch=128, lr=3e-3, warmup=10, clip=1.0)
    family = FrozenMemoriesFamily(d_model=256)
    yield Subject("ten triggers", data={"setting": Setting(sandbox, family, recipe, ordinary, usual)})


def check(subject: Subject) -> Evidence:
    """Train both, and say in what order things came."""
    setting: Setting = subject.data["setting"]
    asked_for = jnp.asarray(setting.sandbox.prior > 0)
    heads = {"back": attention_on(previous_token), "match": attention_on(_trigger_match(asked_for))}
    recall: dict[str, Probe] = {"recall": lambda _net, arrays, _row, _seen: _recall(arrays, asked_for, setting.back)}
    runs = train(
        setting.family,
        setting.sandbox,
        axes={"draw": range(setting.members)},
        recipe=setting.recipe,
        probes=recall | heads,
    )
    steps = [float(point["step"]) for point in runs[0].curve]
    recalls = [np.array([point["recall"] for point in run.curve]).T.tolist() for run in runs]
    curves = {name: [own[k] for own in recalls] for k, name in enumerate(MEMORIES)}
    curves["accuracy"] = [[point["accuracy"] for point in run.curve] for run in runs]
    when = {
        name: np.array([reached(steps, curve, PLACED if name == "places" else KEPT) for curve in found])
        for name, found in curves.items()
    }
    both = np.maximum(when["outputs"], when["matches"])
    asked = [
        Asked("right answers at the end", [found[-1] for found in curves["accuracy"]], least=RIGHT),
        Asked("recall of places at the end", [found[-1] for found in curves["places"]], least=PLACED),
        Asked(
            "steps from the memory of answers to that of matches", _plain(when["matches"] - when["outputs"]), most=LATE
        ),
        Asked("steps from these two memories to the answers", _plain(when["accuracy"] - both), least=0),
        Asked("steps from these two memories to that of places", _plain(when["places"] - both), least=1),
        Asked("published: answers before matches, steps", _plain(when["matches"] - when["outputs"])),
    ]
    shown: dict[str, Any] = {
        "steps": steps,
        "recall": curves,
        "when": {name: found.tolist() for name, found in when.items()},
    }
    if setting.ordinary:
        found = train(setting.ordinary, setting.sandbox, members=setting.members, recipe=setting.usual, probes=heads)
        more, drawn = _heads(found)
        asked += more
        shown["ordinary"] = drawn
    box = setting.sandbox
    return decided(
        asked,
        domain=f"{box.triggers} triggers among {box.vocabulary} tokens, {box.tokens} long, {setting.members} members",
        seed=0,
        shown=shown,
    )


def _plain(values: Array) -> list[float]:
    """Numbers of steps; where something never came there is none."""
    return [float(value) for value in values]


def _trigger_match(asked_for: Array) -> Any:
    def target(net: Any, row: Row) -> Array:
        """The places right after an earlier one with the present token, where that is a trigger."""
        mask = induction(net, row)
        return mask & jnp.pad(asked_for[row.tokens], ((0, 0), (net.pads, 0)))[:, :, None]

    return target


def _recall(arrays: Mapping[str, Array], asked_for: Array, back: int) -> Array:
    found = recalled(arrays, asked_for, back)
    return jnp.stack([found[name] for name in MEMORIES])


def reached(steps: Sequence[float], curve: Sequence[float], level: float) -> float:
    """The step from which on a curve stays at a level or above it, by straight lines between measurements, if it does.

    >>> reached([0, 10, 20, 30], [0.0, 0.5, 1.0, 1.0], 0.75), reached([0, 10], [0.0, 0.5], 0.75)
    (15.0, nan)
    """
    low = [at for at, value in enumerate(curve) if value < level]
    if not low:
        return float(steps[0])
    last = low[-1]
    if last == len(curve) - 1:
        return float("nan")
    part = (level - curve[last]) / (curve[last + 1] - curve[last])
    return float(steps[last] + part * (steps[last + 1] - steps[last]))


def _heads(runs: list[Run]) -> tuple[list[Asked], dict[str, Any]]:
    """When the first head looks back, and when the second matches."""
    steps = [float(point["step"]) for point in runs[0].curve]
    curves = {
        name: [np.array([point[name] for point in run.curve])[:, layer].tolist() for run in runs]
        for name, layer in (("back", 0), ("match", 1))
    }

    def when(part: float) -> tuple[Array, Array]:
        back, match = (
            np.array([reached(steps, c, c[0] + part * (c[-1] - c[0])) for c in curves[name]])
            for name in ("back", "match")
        )
        return back, match

    begun, half = when(BEGUN), when(0.5)
    right = [run.last["accuracy"] for run in runs]
    asked = [
        Asked("transformer: right answers at the end", right, least=RIGHT, share=SEEDS),
        Asked(
            "transformer: steps from matching to looking back, begun", _plain(begun[0] - begun[1]), least=0, share=SEEDS
        ),
        Asked(
            "transformer: steps from matching to looking back, half", _plain(half[0] - half[1]), least=0, share=SEEDS
        ),
    ]
    return asked, {"steps": steps, **curves, "begun": [list(x) for x in begun], "half": [list(x) for x in half]}


def sabotage(subject: Subject) -> Subject:
    """Judge the memory of places by the place two before; two members tell."""
    setting: Setting = subject.data["setting"]
    return replace(subject, data={"setting": replace(setting, back=2, members=2, ordinary=None)})


def draw(shown: Mapping[str, Any]) -> Any:
    """Recall of the three memories over steps, and the scores of the two heads of a transformer."""
    from vitrify.learn.figures import band, by_step, level, sheet

    (found,) = shown.values()
    figure, planes = sheet(1, 3, "An induction head learns to look back last", width=4.6)
    names = {"outputs": "answers, $W_O^2$", "matches": "matches, $W_K^2$", "places": "places, $W_K^1$"}
    plane, count = planes[0, 0], len(found["recall"]["places"])
    for number, (name, label) in enumerate(names.items()):
        band(plane, found["steps"], found["recall"][name], label, f"C{number}")
    band(plane, found["steps"], found["recall"]["accuracy"], "right answers", "0.3", linestyle="--")
    level(plane, KEPT, "asked of answers and matches", at=0.01)
    level(plane, PLACED, "asked of places", at=0.01)
    plane.set(title=f"three memories ({count} draws)", ylabel="recall, or share of right answers", ylim=(0, 1.05))
    by_step(plane)
    plane.legend(fontsize=8, loc="center left")
    plane = planes[0, 1]
    for number, (name, label) in enumerate((*names.items(), ("accuracy", "right answers"))):
        times = [np.nan if time is None else time for time in found["when"][name]]
        plane.plot(times, range(1, count + 1), "o", color="0.3" if name == "accuracy" else f"C{number}", label=label)
    plane.set(title="when each is learnt", xlabel="training step", ylabel="draw", ylim=(0, 1.5 * count))
    plane.legend(fontsize=8, loc="upper right")
    plane = planes[0, 2]
    if "ordinary" in found:
        usual = found["ordinary"]
        for name, label, colour in (("back", "first head: token before", "C2"), ("match", "second head: match", "C1")):
            band(plane, usual["steps"], usual[name], f"{label} ({len(usual[name])} seeds)", colour)
            for time, marker in (("begun", "v"), ("half", "o")):
                at = float(np.median(usual[time][name == "match"]))
                height = float(np.interp(at, usual["steps"], np.mean(usual[name], axis=0)))
                plane.plot(at, height, marker, color=colour, markeredgecolor="black", label=f"{time}: step {at:.0f}")
        by_step(plane)
        plane.set(title="heads of an ordinary transformer", ylabel="weight where the head should look", ylim=(0, 1))
        plane.legend(fontsize=7)
    return figure


CLAIM = Claim(
    row="L9",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
