r"""On bigrams with back-copying a head looks at BOS wherever it has nothing to copy, and the value there drains.

Statement: after a trigger the token before it comes again, after any other token a usual one. One layer with one head
learns to be active at triggers, where it looks at the token before, and dormant elsewhere, where it looks at BOS; and
the value of BOS, which dormant queries read, becomes small beside those of other tokens.
Why: the next token after a usual one is known from that token alone, so whatever the head adds there is noise. Softmax
must put its weight somewhere: BOS is always there and is asked for by nobody, so its value can go to zero, and each of
the two makes the other worth more.
Checked: for at least 7 seeds of 8, the accuracy after triggers; the weight on BOS at usual tokens, and how many times
that at triggers it is; the norm of the value at BOS over the mean norm elsewhere, at the end and beside what it was at
the start. Sizes were chosen on the seeds 0 to 23, and are judged on others; on shorter rows the ratio is met less often
(72 tokens: 10 of 16 seeds, 96: 15 of 16). Where training goes on for long, sinks recede in some seeds: at d = 256 after
3,000 steps 3 of 8 were left.
Source: Guo, Pai, Bai, Jiao, Jordan, Mei 2024, arXiv 2410.13835 [S]; the bigrams are random here, not those of a text.
Saboteur: the same networks, judged with other tokens of the language named as triggers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import value_at_sink
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import Run, train
from vitrify.sandboxes.back_copy import BackCopy
from vitrify.sandboxes.catalogue import Row

COPIES = 0.95  # accuracy after triggers
DORMANT = 0.2  # weight on BOS at usual tokens
TIMES = 20.0  # that, over the weight on BOS at triggers
DRAINED = 0.5  # norm of the value at BOS over those elsewhere
SHRUNK = 0.6  # the same, over what it was at the start
SHARE = 7 / 8  # of the seeds: now and then one finds another place to look at


@dataclass(frozen=True)
class Setting:
    """What is trained, and whether the right tokens are called triggers."""

    sandbox: BackCopy
    family: TransformerFamily
    recipe: Recipe
    seeds: tuple[int, ...] = tuple(range(24, 32))
    misnamed: bool = False

    @property
    def trigger(self) -> Array:
        """Which tokens are called triggers [token]."""
        right = self.sandbox.trigger
        return np.roll(right, 1) & ~right if self.misnamed else right


def subjects() -> Iterator[Subject]:
    family = TransformerFamily(layers=1, heads=1, d_model=64)
    recipe = Recipe(steps=300, batch=64, lr=2e-3, test_rows=64, marks=1)
    yield Subject("back-copying", data={"setting": Setting(BackCopy(vocabulary=32, length=96), family, recipe)})


def paper() -> Iterator[Subject]:
    family = TransformerFamily(layers=1, heads=1, d_model=128)
    recipe = Recipe(steps=800, batch=128, lr=1e-3, weight_decay=0.3, test_rows=128)
    yield Subject("back-copying", data={"setting": Setting(BackCopy(vocabulary=64, length=128), family, recipe)})


def sabotage(subject: Subject) -> Subject:
    return Subject(subject.name, data={"setting": replace(subject.data["setting"], misnamed=True)})


def by_token(net: Any, arrays: Any, row: Row, seen: Any) -> Array:
    """Of every token as query: how often it came, the weight on BOS, the weight on the token before, and right answers.

    [4, token], from the second token of a row on.
    """
    del arrays
    pattern = seen["blocks.0.attn.hook_pattern"][:, 0, 2:]  # of tokens from the second on
    places = jnp.arange(pattern.shape[1])
    right = seen["hook_logits"][:, 2:].argmax(axis=-1) == row.targets[:, 2:]
    each = jnp.stack([jnp.ones(right.shape), pattern[:, :, 0], pattern[:, places, places + 1], right])
    return jnp.einsum("xbt,btv->xv", each, jax.nn.one_hot(row.tokens[:, 1:], len(net.inputs) - 1))


@lru_cache(maxsize=2)
def _trained(sandbox: BackCopy, family: TransformerFamily, recipe: Recipe, seeds: tuple[int, ...]) -> list[Run]:
    """All members; training does not know what tokens are called, so a saboteur need not train again."""
    probes: Any = {"by_token": by_token, "drain": value_at_sink}
    return train(family, sandbox, axes={"seed": seeds}, recipe=recipe, probes=probes)


def shares(runs: list[Run], chosen: Array) -> Array:
    """Weight on BOS, weight on the token before and accuracy, at the chosen tokens: [3, member, mark]."""
    found = np.array([[point["by_token"] for point in run.curve] for run in runs])[..., chosen].sum(axis=-1)
    return np.moveaxis(found[..., 1:] / found[..., :1], -1, 0)


def check(subject: Subject) -> Evidence:
    setting: Setting = subject.data["setting"]
    runs = _trained(setting.sandbox, setting.family, setting.recipe, setting.seeds)
    trigger = setting.trigger
    active, dormant = shares(runs, trigger), shares(runs, ~trigger)
    drain = np.array([[point["drain"] for point in run.curve] for run in runs])[..., 0]
    excess = np.array([[point["excess"] for point in run.curve] for run in runs])
    ratio = dormant[0] / active[0]
    asked = [
        Asked("accuracy after triggers", active[2, :, -1].tolist(), least=COPIES, share=SHARE),
        Asked("weight on BOS at usual tokens", dormant[0, :, -1].tolist(), least=DORMANT, share=SHARE),
        Asked("that, over the weight on BOS at triggers", ratio[:, -1].tolist(), least=TIMES, share=SHARE),
        Asked("|v| at BOS / |v| elsewhere", drain[:, -1].tolist(), most=DRAINED, share=SHARE),
        Asked("that, over its first value", (drain[:, -1] / drain[:, 0]).tolist(), most=SHRUNK, share=SHARE),
    ]
    length = setting.sandbox.length
    shown = {
        "steps": [point["step"] for point in runs[0].curve],
        "active": active,
        "dormant": dormant,
        "drain": drain,
        "excess": excess,
        "uniform": float(np.mean(1 / np.arange(3, length + 1))),
        "members": len(setting.seeds),
    }
    notes = [f"loss above the optimum in the end: {excess[:, -1].mean():.3g} nats per token"]
    where = f"{setting.sandbox.identity()}, one layer of one head, d_model {setting.family.d_model}"
    return decided(
        asked, domain=f"{len(setting.seeds)} seeds on {where}", seed=setting.seeds[0], shown=shown, notes=notes
    )


def draw(shown: Mapping[str, Any]) -> Any:
    from vitrify.learn.figures import band, by_step, level, sheet

    (found,) = shown.values()
    figure, planes = sheet(1, 4, "Attention sinks on bigrams with back-copying", width=3.9, height=3.5)
    sink, copy, drain, loss = planes[0]
    for part, label, colour in (("dormant", "at usual tokens", "C0"), ("active", "at triggers", "C3")):
        band(sink, found["steps"], found[part][0], label, colour)
        band(copy, found["steps"], found[part][1], label, colour)
    band(copy, found["steps"], found["active"][2], "accuracy after triggers", "C2", linestyle="--")
    level(sink, found["uniform"], "uniform attention", at=0.01)
    level(sink, DORMANT, "asked at usual tokens", at=0.01)
    sink.set(ylabel="weight on BOS", title="where a dormant head looks")
    copy.set(ylabel="weight on the token before", title="an active head copies")
    band(drain, found["steps"], found["drain"], f"{found['members']} seeds", "C4")
    level(drain, 1.0, "BOS as large as others", at=0.01)
    level(drain, DRAINED, "asked in the end", at=0.01)
    drain.set(ylabel="|value of BOS| / mean |value|", title="the value of BOS drains", ylim=(0, None))
    band(loss, found["steps"], found["excess"], f"{found['members']} seeds", "C1")
    loss.set(ylabel="loss above the optimum (nats per token)", title="loss", yscale="log")
    for plane in planes[0]:
        by_step(plane)
        plane.legend(fontsize=8)
    return figure


CLAIM = Claim(
    row="L8",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
