r"""Three disentangled layers guess the end of a chain of facts for long, then follow it all at once; two only guess.

Statement: a row tells $K$ chains $a \to b \to c$ in pieces, the steps $a \to b$ of all chains and then the steps
$b \to c$, each mixed up, and asks for the $c$ of one $a$. A disentangled transformer of three layers with one head,
which knows distances and no places, soon knows which names end a chain, and guesses among them: its loss rests at
$\ln K$, within 0.1, for at least 10 % of its training, and at least as long as its jump takes, from an accuracy of
$1/K + 0.15$ to 0.95. With one or two layers it stays at most 0.15 above $1/K$.
Why: a piece is joined by a head that looks at the token before, and each of two steps takes one more head that looks
for a name: three in a row. Each of them is of use only when the others work, so that the slope at the guess is small.
Where the last token looks in the second layer (for the $b$ of the asked $a$) and in the third (for the step that goes
on from it) is told: it turns there with the jump.
Checked: all seeds of a depth are one program. Rest, jump and end are asked of 6 in 8 seeds, one and two layers of all.
The share of the training depends on how long one goes on afterwards; that the rest outlasts the jump does not. Two ways
round are closed. The authors tell each chain in order, which excludes the ends that were told before the asked chain
began. And of two chains one bit is asked: some plain transformers of two layers learn it, and so do some disentangled
ones of two layers that know places. Those that know distances only do not, with two chains; with three, at paper scale,
1 of 12 begins to, so that it fails there.
Source: Guo et al. 2025, arXiv 2502.13913 [A], in the spirit of their two-hop task, whose transformers are plain and
wider and whose rows have five chains; the thresholds are ours.
Saboteur: nets of two layers are taken for those of three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.disentangled import DisentangledFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.catalogue import Row
from vitrify.sandboxes.multi_hop import MultiHop

NEAR = 0.1  # nats from ln K
RESTS = 0.1  # of the training
FOLLOWS = 0.95
ABOVE = 0.15  # above 1/K
MOST_SEEDS = 6 / 8
FINE = 20_001  # moments, all alike, at which curves are read
FAMILY = DisentangledFamily(relative=True, scale=0.1)
LOOKS = {"b of the asked a": 1, "step that goes on from it": 2}  # where the last token looks, and in which block
Curves: TypeAlias = dict[str, Any]  # steps [mark]; loss, accuracy and what is looked at [seed, mark]


@dataclass(frozen=True)
class Settings:
    """The chains, how nets are trained, and how many layers are taken for three."""

    box: MultiHop
    recipe: Recipe
    seeds: tuple[int, ...]
    family: DisentangledFamily = FAMILY
    deep: int = 3


def _settings(chains: int, steps: int, batch: int, rows: int, seeds: int) -> Settings:
    """There are no names but those of a row: so each is met as often as can be."""
    recipe = Recipe(steps=steps, batch=batch, lr=0.02, marks=6, test_rows=rows)
    return Settings(MultiHop(chains=chains, names=3 * chains, rounds=True), recipe, tuple(range(seeds)))


def subjects() -> Iterator[Subject]:
    """Two chains."""
    yield Subject("2 chains", data={"settings": _settings(2, 2000, 32, 512, 8)})


def paper() -> Iterator[Subject]:
    """Three chains, which rest longer, with larger batches."""
    yield Subject("3 chains", data={"settings": _settings(3, 4000, 128, 1024, 12)})


def sabotage(subject: Subject) -> Subject:
    settings: Settings = subject.data["settings"]
    return Subject(f"{subject.name}, one layer short", data={"settings": replace(settings, deep=2)})


@cache
def curves(settings: Settings, layers: int) -> Curves:
    """What nets of so many layers do on their way; after a loss that is not a number, nothing is known."""
    family = replace(settings.family, heads=(1,) * layers)
    probes = {name: partial(looked, block) for name, block in LOOKS.items() if layers == 3}
    runs = train(family, settings.box, axes={"seed": settings.seeds}, recipe=settings.recipe, probes=probes)
    steps = settings.recipe.marked()
    found: Curves = {name: np.full((len(runs), len(steps)), np.nan) for name in ("loss", "accuracy", *probes)}
    for name, values in found.items():
        for row, run in zip(values, runs, strict=True):
            row[: len(run.curve)] = [point[name] for point in run.curve]
    return {"steps": steps} | found


def looked(block: int, net: Any, arrays: Any, row: Row, seen: Mapping[str, Array]) -> Array:
    """How much the last token looks at the end of the asked chain's first step (block 1), or at its second step."""
    del net, arrays
    last = seen[f"blocks.{block}.attn.hook_pattern"][:, 0, -1]  # [row, token]
    place = 2 * row.latent["steps"][:, block - 1]
    tokens = jnp.arange(last.shape[-1])
    first = place + 1 if block == 1 else place
    wanted = (tokens >= first[:, None]) & (tokens <= place[:, None] + 1)
    return (last * wanted).sum(axis=-1).mean()


def check(subject: Subject) -> Evidence:
    """Train all depths, and ask the deepest for its rest, its jump and its end, the others for how little they know."""
    settings: Settings = subject.data["settings"]
    trained = replace(settings, deep=3)
    depths = {1: curves(trained, 1), 2: curves(trained, 2), 3: curves(trained, settings.deep)}
    chains, steps = settings.box.chains, settings.recipe.steps
    deepest = depths[3]
    pairs = zip(deepest["loss"], deepest["accuracy"], strict=True)
    rests, jumps = np.array([rest_and_jump(deepest["steps"], *pair, chains) for pair in pairs]).T
    guess = 1 / chains + ABOVE
    asked = [
        Asked("accuracy of three layers at the end", deepest["accuracy"][:, -1], least=FOLLOWS, share=MOST_SEEDS),
        Asked("share of the training within 0.1 nats of ln K", rests / steps, least=RESTS, share=MOST_SEEDS),
        Asked("how often the jump goes into the rest", rests / jumps, least=1.0, share=MOST_SEEDS),
        Asked("accuracy of two layers at the end", depths[2]["accuracy"][:, -1], most=guess),
        Asked("accuracy of one layer at the end", depths[1]["accuracy"][:, -1], most=guess),
    ]
    known = jumps[np.isfinite(jumps)]
    told = [f"the rest takes {np.median(rests):.0f} of {steps} steps (median of {len(rests)} seeds)"]
    told += [f"the jump takes {np.median(known):.0f} steps (median of {len(known)} seeds)"] if len(known) else []
    told += [
        f"in the end the last token looks at the {name} with {np.median(deepest[name][:, -1]):.2f}"
        for name in LOOKS
        if name in deepest
    ]
    return decided(
        asked,
        domain=f"{chains} chains out of {settings.box.names} names, {len(settings.seeds)} seeds of each depth, "
        f"{steps} steps",
        seed=settings.seeds[0],
        shown={"chains": chains, "depths": {str(depth): _rounded(found) for depth, found in depths.items()}},
        notes=told,
    )


def rest_and_jump(steps: Sequence[int], loss: Any, accuracy: Any, chains: int) -> tuple[float, float]:
    """Steps within 0.1 of ln K before the accuracy is 0.95; and from the last at most 1/K + 0.15 to there, if ever."""
    even = np.linspace(0, steps[-1], FINE)
    loss, accuracy = np.interp(even, steps, loss), np.interp(even, steps, accuracy)
    follows = np.flatnonzero(accuracy >= FOLLOWS)
    until = int(follows[0]) if len(follows) else FINE
    rest = (np.abs(loss[:until] - np.log(chains)) <= NEAR).mean() * even[until - 1]
    guesses = np.flatnonzero(accuracy[:until] <= 1 / chains + ABOVE)
    jump = even[until] - even[guesses[-1]] if len(follows) and len(guesses) else np.inf
    return float(rest), float(jump)


def _rounded(found: Curves) -> Curves:
    return {name: values if name == "steps" else np.round(values, 3) for name, values in found.items()}


def draw(shown: Mapping[str, Any]) -> Any:
    """Loss and accuracy of each depth over the steps, all seeds, with the guess and what is asked; where they look."""
    from vitrify.learn.figures import level, sheet

    figure, planes = sheet(len(shown), 3, "Chains of facts: guessed, then followed", 4.8, 3.8)
    for (subject, found), (losses, rights, looks) in zip(shown.items(), planes, strict=True):
        chains = found["chains"]
        guess = np.log(chains)
        losses.axhspan(guess - NEAR, guess + NEAR, color="black", alpha=0.08, linewidth=0)
        for depth, colour in (("1", "C2"), ("2", "C0"), ("3", "C1")):
            curve = found["depths"][depth]
            label = f"{depth} layer{'s' * (depth != '1')}, {len(curve['loss'])} seeds"
            for plane, name in ((losses, "loss"), (rights, "accuracy")):
                rows = np.array(curve[name], dtype=float).T
                drawn = plane.plot(curve["steps"], rows, color=colour, alpha=0.6, linewidth=1)
                drawn[0].set_label(label)
        for (name, block), colour in zip(LOOKS.items(), ("C3", "C4"), strict=True):
            curve = found["depths"]["3"]
            drawn = looks.plot(
                curve["steps"], np.array(curve[name], dtype=float).T, color=colour, alpha=0.6, linewidth=1
            )
            drawn[0].set_label(f"layer {block + 1}: {name}")
        level(losses, guess + NEAR, f"a guess among the ends: ln {chains} = {guess:.2f}, and 0.1 around it", style="")
        level(losses, guess, "")
        level(rights, 1 / chains, "")
        level(rights, 1 / chains + ABOVE, f"a guess among the ends: 1/{chains}, and 0.15 more", at=0.01)
        level(rights, FOLLOWS, f"follows the chain: {FOLLOWS}", at=0.01)
        losses.set(xlabel="training step", ylabel="test loss (nats per answer)", ylim=(0, None), title=subject)
        rights.set(xlabel="training step", ylabel="accuracy", ylim=(0, 1.05), title=subject)
        looks.set(xlabel="training step", ylabel="attention of the last token", ylim=(0, 1.05), title="three layers")
        rights.legend(fontsize=8, loc="lower right")
        looks.legend(fontsize=8, loc="lower right")
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
