r"""On bigrams with back-copying a head attends to BOS where it has nothing to copy, and the value at BOS shrinks.

Statement: After a trigger token the token before it is repeated; after any other token the next one follows a fixed
bigram distribution. One layer with one head learns to be active at triggers, where it attends to the previous token,
and dormant elsewhere, where it attends to BOS (an attention sink). The value vector at BOS becomes small compared with
those of other tokens.
Why: After an ordinary token the bigram alone gives the next one, so whatever the head adds is noise. Softmax weights
must sum to 1: BOS is always present and nothing needs its value, which can therefore go to zero. A small value makes
attending to BOS cheaper, and attention to BOS makes a small value more useful.
Not checked: The authors' text and sizes (see the scale), three layers, SGD and ReLU attention. That sinks last: at
width 256 after 3,000 steps 3 of 8 seeds still had one.
Source: Guo, Pai, Bai, Jiao, Jordan and Mei 2024, arXiv 2410.13835 [S].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, Trial, evidence, recalled
from vitrify.learn.figures import band, panel, sheet
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import value_at_sink
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.back_copy import BackCopy
from vitrify.sandboxes.catalogue import Example

MIN_ACCURACY = 0.95  # after triggers
MIN_DORMANT = 0.2  # attention to BOS at ordinary tokens
MIN_RATIO = 20.0  # that, over the attention to BOS at triggers
MAX_DRAIN = 0.5  # norm of the value at BOS over those elsewhere
MAX_SHRUNK = 0.6  # the same, over what it was at the start
MIN_SEEDS = 13 / 16  # a seed may attend to another position than BOS
PLAN = Plan(
    version=1,
    question="Does a head attend to BOS where it has nothing to copy, and does the value at BOS become small?",
    statements={
        "sink": Statement(
            "at ordinary tokens the head attends to BOS, at triggers it does not",
            f"attention to BOS at ordinary tokens ≥ {MIN_DORMANT}, and ≥ {MIN_RATIO:g} times that at triggers",
            "the head is not gated: at triggers BOS gets its share of the attention that copying leaves over",
        ),
        "drain": Statement(
            "the value vector at BOS becomes small",
            f"|v| at BOS over the mean |v| elsewhere ≤ {MAX_DRAIN}, and ≤ {MAX_SHRUNK} times what it was at the start",
            "training leaves the ratio of the two norms as it was at the start",
        ),
    },
    units="seed",
    judged=range(100, 116),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "steps": Axis(800, 10_000),
        "batch": Axis(128, 512),
        "d_model": Axis(128, 256),
        "length": Axis(128, 256),
        "tokens": Axis(64, 65),
        "bigrams": Axis("random", "of a text"),
        "layers": Axis(1, 3),
    },
    chosen="On sequences of 72 tokens 10 of 16 explored seeds reach the ratio of 'sink', on sequences of 96 tokens 15.",
)


def subjects() -> Subjects:
    recipe = Recipe(steps=300, batch=64, lr=2e-3, test_examples=64, evals_per_doubling=1)
    yield _subject(BackCopy(vocabulary=32, length=96), 64, recipe, PLAN.explored[-8:])


def large() -> Subjects:
    recipe = Recipe(steps=800, batch=128, lr=1e-3, weight_decay=0.3, test_examples=128)
    yield _subject(BackCopy(vocabulary=64, length=128), 128, recipe, PLAN.judged)


def _subject(sandbox: BackCopy, d_model: int, recipe: Recipe, seeds: Sequence[int]) -> Subject:
    family = TransformerFamily(layers=1, heads=1, d_model=d_model)
    probes = {"by_token": by_token, "drain": value_at_sink}
    data = {"vocabulary": sandbox.vocabulary, "length": sandbox.length, "d_model": d_model}
    return Subject("back-copying", data=data, trials={"sinks": Trial(sandbox, family, recipe, seeds, probes=probes)})


def by_token(net: Transformer, arrays: object, row: Example, seen: Mapping[str, Array]) -> Array:
    """Return by query token: its count, sums of attention to BOS and to the previous token, and right predictions.

    [4, token], from the second token of a sequence on.
    """
    del arrays
    pattern = seen["blocks.0.attn.hook_pattern"][:, 0, 2:]  # of tokens from the second on
    positions = jnp.arange(pattern.shape[1])
    right = seen["hook_logits"][:, 2:].argmax(axis=-1) == row.targets[:, 2:]
    each = jnp.stack([jnp.ones(right.shape), pattern[:, :, 0], pattern[:, positions, positions + 1], right])
    return jnp.einsum("xbt,btv->xv", each, jax.nn.one_hot(row.tokens[:, 1:], len(net.inputs) - 1))


def judge(subject: Subject, measured: Measured) -> Evidence:
    nets = recalled(subject, measured)["sinks"]
    trigger, counts = nets.trial.sandbox.trigger, nets.curves("by_token")  # [token], [seed, step, 4, token]
    sums = (counts[..., own].sum(axis=-1) for own in (trigger, ~trigger))
    active, dormant = (np.moveaxis(each[..., 1:] / each[..., :1], -1, 0) for each in sums)  # [3, seed, step]
    drain, excess = nets.curves("drain")[..., 0], nets.curves("excess")
    sink, small = (partial(Criterion.judged, share=MIN_SEEDS, statement=key) for key in PLAN.statements)
    accuracy = active[2, :, -1]
    criteria = [
        Criterion.judged("accuracy after triggers", accuracy, at_least=MIN_ACCURACY, share=MIN_SEEDS, premise=True),
        sink("attention to BOS at ordinary tokens", dormant[0, :, -1], at_least=MIN_DORMANT),
        sink("attention to BOS, ordinary tokens over triggers", (dormant[0] / active[0])[:, -1], at_least=MIN_RATIO),
        small("|v| at BOS / |v| elsewhere", drain[:, -1], at_most=MAX_DRAIN),
        small("|v| at BOS / |v| elsewhere, over its initial value", drain[:, -1] / drain[:, 0], at_most=MAX_SHRUNK),
    ]
    figure = {
        "steps": nets.steps,
        "active": active,
        "dormant": dormant,
        "drain": drain,
        "excess": excess,
        "uniform": float(np.mean(1 / np.arange(3, subject.data["length"] + 1))),
        "members": len(nets.trial.seeds),
    }
    above = Quantity("loss above the optimum at the end, nats per token", excess[:, -1].mean())
    return evidence(subject, criteria, figure, [above])


def ungated(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements of redrawn seeds in which triggers leave BOS its share of what copying does not take."""
    counts = measured["sinks/by_token"]
    counts = counts[rng.integers(len(counts), size=len(counts))]
    trigger = subject.trials["sinks"].sandbox.trigger
    asked, bos, copied = (counts[..., at, :] for at in range(3))
    rest = bos[..., ~trigger].sum(axis=-1) / asked[..., ~trigger].sum(axis=-1)
    bos[..., trigger] = rest[..., None] * (asked - copied)[..., trigger]
    return {**measured, "sinks/by_token": counts}


def kept_norms(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which every seed ends with the ratio of norms that another one began with."""
    del subject
    drain = measured["sinks/drain"].copy()
    drain[:, -1] = rng.choice(drain[:, 0], size=len(drain))
    return {**measured, "sinks/drain": drain}


def draw(figures: Figures) -> Figure:
    (data,) = figures.values()
    figure, ((sink, copy, drain, loss),) = sheet(1, 4, "Attention sinks on bigrams with back-copying", 3.9, 3.5)
    bos, before = ({"at ordinary tokens": data["dormant"][at], "at triggers": data["active"][at]} for at in (0, 1))
    seeds, draw = f"{data['members']} seeds", partial(panel, x=data["steps"], steps=True, at=0.01)
    band(copy, data["steps"], data["active"][2], "accuracy after triggers", "C2", linestyle="--")
    lines = {"uniform attention": data["uniform"], "threshold at ordinary tokens": MIN_DORMANT}
    title = "where a dormant head attends"
    draw(sink, groups=bos, lines=lines, colors=("C0", "C3"), ylabel="attention to BOS", title=title)
    label, title = "attention to the previous token", "an active head copies"
    draw(copy, groups=before, colors=("C0", "C3"), ylabel=label, title=title)
    lines, label = {"BOS as large as others": 1.0, "threshold at the end": MAX_DRAIN}, "|value at BOS| / mean |value|"
    draw(drain, groups={seeds: data["drain"]}, lines=lines, colors=("C4",), ylabel=label, ylim=(0, None))
    label = "loss above the optimum (nats per token)"
    draw(loss, groups={seeds: data["excess"]}, colors=("C1",), ylabel=label, title="loss", yscale="log")
    drain.set_title("the value at BOS shrinks")
    return figure


NULLS = {"sink": ungated, "drain": kept_norms}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, id="L8", standing="experiment")
