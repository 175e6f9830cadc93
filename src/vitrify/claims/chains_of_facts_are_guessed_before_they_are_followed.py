r"""Three layers guess the end of a chain of facts for long, then follow it all at once; two layers only ever guess.

Statement: a row tells $K$ chains $a \to b \to c$ of facts, in pieces and mixed up, and asks for the $c$ of one $a$. A
transformer of three layers with one head soon knows which names end a chain, and guesses among them: its loss rests at
$\ln K$, within 0.1, for at least 10 % of its training. Then its accuracy jumps to 0.95 and more. With one or two layers
it stays at most 0.15 above $1/K$ for as long.
Why: a piece is joined by a head that looks at the token before, and each of two steps takes one more head that looks
for a name: three in a row. Each of them is of use only when the others work, so that the slope at the guess is small.
Checked: all seeds of a depth are one program, and its steps are the same for each depth. The share of the training on
the plateau counts moments before the accuracy is 0.95, all alike. It, and the end, are asked of 7 of 8 seeds; the
accuracy of one and two layers of all of them. How long the jump takes, from 0.15 above $1/K$ to 0.95, is told.
Source: Guo et al. 2025, arXiv 2502.13913 [S], in the spirit of their two-hop task, without the words between and with
attention only; the thresholds are ours.
Saboteur: nets of two layers are taken for those of three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.multi_hop import MultiHop

NEAR = 0.1  # nats from ln K
RESTS = 0.1  # of the training
FOLLOWS = 0.95
ABOVE = 0.15  # above 1/K
MOST_SEEDS = 6 / 8
BEFORE = "blocks.0.attn.b_rel"


@dataclass(frozen=True)
class Settings:
    """The chains, the nets but for their depth, and which depth is taken for three layers.

    The first layer begins with `ready`, before the family's gain, for the distance to the token before.
    """

    box: MultiHop
    family: TransformerFamily
    recipe: Recipe
    seeds: tuple[int, ...]
    ready: float = 0.0
    deep: int = 3


def subjects() -> Iterator[Subject]:
    """Two chains of six names."""
    family = TransformerFamily(heads=1, d_model=32, units=0, positions="relative", gain=10.0)
    recipe = Recipe(steps=4000, batch=64, lr=2e-3, warmup=50, marks=6, test_rows=512)
    settings = Settings(MultiHop(chains=2, names=6), family, recipe, tuple(range(8)))
    yield Subject("two chains", data={"settings": settings})


def paper() -> Iterator[Subject]:
    """Two and three chains, names out of more, wider nets, longer."""
    family = TransformerFamily(heads=1, d_model=64, units=0)
    recipe = Recipe(steps=10_000, batch=128, lr=5e-4, warmup=100, marks=6, test_rows=2048)
    for chains, names in ((2, 8), (3, 12)):
        settings = Settings(MultiHop(chains=chains, names=names), family, recipe, tuple(range(16)))
        yield Subject(f"{chains} chains, {names} names", data={"settings": settings})


def sabotage(subject: Subject) -> Subject:
    settings: Settings = subject.data["settings"]
    return Subject(f"{subject.name}, one layer short", data={"settings": replace(settings, deep=2)})


@cache
def curves(settings: Settings, layers: int) -> dict[str, list[list[float]]]:
    """Loss and accuracy [seed][mark] of nets of so many layers, and the steps of the marks."""
    family = replace(settings.family, layers=layers)

    def first(net: Any, key: Array, values: Mapping[str, Array]) -> dict[str, Array]:
        del values
        found = dict(family.first(net, key))
        return found | {BEFORE: found[BEFORE].at[:, 1].set(settings.ready)}

    start = first if settings.ready else None
    runs = train(family, settings.box, axes={"seed": settings.seeds}, recipe=settings.recipe, first=start)
    return {name: [[point[name] for point in run.curve] for run in runs] for name in ("step", "loss", "accuracy")}


def check(subject: Subject) -> Evidence:
    """Train all depths, and ask the deepest for its plateau and its end, the others for how little they know."""
    settings: Settings = subject.data["settings"]
    trained = replace(settings, deep=3)
    depths = {1: curves(trained, 1), 2: curves(trained, 2), 3: curves(trained, settings.deep)}
    chains = settings.box.chains
    members = range(len(settings.seeds))
    passed = [_passed({name: rows[member] for name, rows in depths[3].items()}, chains) for member in members]
    asked = [
        Asked(
            "share of the training within 0.1 nats of ln K", [one[0] for one in passed], least=RESTS, share=MOST_SEEDS
        ),
        Asked("accuracy of three layers at the end", _ends(depths[3]), least=FOLLOWS, share=MOST_SEEDS),
        Asked("accuracy of two layers at the end", _ends(depths[2]), most=1 / chains + ABOVE),
        Asked("accuracy of one layer at the end", _ends(depths[1]), most=1 / chains + ABOVE),
    ]
    jumps = [one[1] for one in passed if np.isfinite(one[1])]
    told = [f"the jump takes {np.median(jumps):.3f} of the training (median of {len(jumps)} seeds)"] if jumps else []
    return decided(
        asked,
        domain=f"{chains} chains out of {settings.box.names} names, {len(settings.seeds)} seeds of each depth, "
        f"{settings.recipe.steps} steps",
        seed=settings.seeds[0],
        shown={"chains": chains, "depths": {str(depth): found for depth, found in depths.items()}},
        notes=told,
    )


def _ends(found: Mapping[str, Any]) -> list[float]:
    return [float(row[-1]) for row in found["accuracy"]]


def _passed(curve: Mapping[str, Sequence[float]], chains: int) -> tuple[float, float]:
    """Shares of the training: on the plateau before the accuracy is 0.95, and from the first sign to there."""
    even = np.linspace(0, curve["step"][-1], 5001)
    loss, accuracy = (np.interp(even, curve["step"], curve[name]) for name in ("loss", "accuracy"))
    follows = np.flatnonzero(accuracy >= FOLLOWS)
    until = int(follows[0]) if len(follows) else len(even)
    plateau = (np.abs(loss[:until] - np.log(chains)) <= NEAR).sum() / len(even)
    signs = np.flatnonzero(accuracy[:until] <= 1 / chains + ABOVE)
    jump = (until - signs[-1]) / len(even) if len(follows) and len(signs) else np.nan
    return float(plateau), float(jump)


def draw(shown: Mapping[str, Any]) -> Any:
    """Loss and accuracy of each depth over the steps, all seeds, with the guess and what is asked."""
    from vitrify.learn.figures import level, sheet

    figure, planes = sheet(len(shown), 2, "Chains of facts: guessed, then followed", 5.4, 3.8)
    colours = {"1": "C2", "2": "C0", "3": "C1"}
    for (subject, found), (losses, rights) in zip(shown.items(), planes, strict=True):
        chains = found["chains"]
        for depth, colour in colours.items():
            curve = found["depths"][depth]
            label = f"{depth} layer{'s' * (depth != '1')} ({len(curve['step'])} seeds)"
            for member, (steps, loss, right) in enumerate(
                zip(curve["step"], curve["loss"], curve["accuracy"], strict=True)
            ):
                named = label if member == 0 else None
                losses.plot(steps, loss, color=colour, alpha=0.6, linewidth=1, label=named)
                rights.plot(steps, right, color=colour, alpha=0.6, linewidth=1, label=named)
        level(losses, np.log(chains), f"a guess among the ends: ln {chains} = {np.log(chains):.2f}")
        level(rights, 1 / chains, f"a guess among the ends: 1/{chains}")
        level(rights, FOLLOWS, f"follows the chain: {FOLLOWS}")
        losses.set(xlabel="step", ylabel="test loss (nats)", ylim=(0, None), title=subject)
        rights.set(xlabel="step", ylabel="accuracy", ylim=(0, 1.05), title=subject)
        losses.legend(fontsize=8)
    return figure


CLAIM = Claim(
    row="L11",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
