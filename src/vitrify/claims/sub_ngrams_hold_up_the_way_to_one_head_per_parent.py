r"""Chains of order two are learned with one head per parent, past a plateau at the bigrams, which are near-stationary.

Statement: where the next symbol depends on two symbols, two layers of two heads go from the uniform over the unigram
and the bigram to the trigram predictor: as long as both heads look at the token before, the loss stays at that of
bigrams. In the end one head of the first layer looks one token back and the other two. The points of parameters that
compute the unigram and the bigram counts are near-stationary: in a model of two attentions of which the first sees
distances only, the gradient there falls towards zero as rows get longer and attention gets sharper.

Why: at a sub-n-gram point what the heads fetch is the same at all places that are attended to, so that to first order
no change of what is compared changes the answer; the way on needs a head at a new distance and a comparison with what
it fetches, and each is of no use without the other.

Checked: in 7 of 8 seeds the predictors that are nearest in KL, each for a while, must be uniform, unigram, bigram,
trigram; the loss where a net is nearest to one must be within 5 % of that one's. At least a tenth of the steps must
have a loss within 0.01 nats of the bigram's before it is 0.03 below. At the end each of the two distances must have a
head of its own with more than half of its weight there. At the points, the norm of the gradient, freed from the noise
of sampling, must fall to at most 0.4 from the first to the last pair of length and sharpness, and for bigrams from each
pair to the next. Steps and rate were chosen on other seeds: which part of the steps is spent at the bigrams depends on
how many there are (of 4,000 it was 6 %). For unigrams this is not asked for, as it is not so: their gradient changes
its sign near 32 symbols, and its norm, which is smallest there, falls slowly from 64 on. The first length is 8 for the
same reason: from 16 on, where the norm is small already, it falls to 0.45 only. The loss must come to within 0.01 nats
of counting.

Source: Varre, Yüce and Flammarion 2025, "Learning In-context n-grams with Transformers: Sub-n-grams Are Near-stationary
Points", arXiv 2508.12837 [S]; Chen, Sheen, Wang and Yang 2024, "Unveiling Induction Heads", arXiv 2409.10559 [S]; in
the spirit of both: the trained net is an ordinary transformer, and the model of points has no value matrices and no
tokens among its keys, with which slopes were several times larger and fell less (to 0.4 and 0.5 of the first).

Saboteur: chains of order one, which have no second parent, for the trained nets; for the points, heads that look one
token further back than the comparison is meant for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims._stages import MOST_SEEDS, NEAR, Trial
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.measure import mean_loss
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.models.two_attentions import DISTANCES, TOKENS, TwoAttentionsFamily
from vitrify.learn.probes import attention_on, back
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes._contexts import order_name
from vitrify.sandboxes.catalogue import Row, rows
from vitrify.sandboxes.in_context_markov import InContextMarkov

LAGS = (1, 2)
STAGES = ("uniform", "unigram", "bigram", "trigram")
WHILE = 0.1  # in ln(1 + step): how long a predictor must be the nearest to count as a stage
STILL, BELOW, HELD = 0.01, 0.03, 0.1  # nats from the bigrams' loss, nats below it, and the part of the steps before
OWN = 0.5  # the weight of a head on the distance that is its own
ARRIVED = 0.04  # nats of KL to the trigrams at the end
FALLS, GAP = 0.4, 0.01  # the last norm of a gradient in parts of the first; nats from the loss of counting
LEAST = 1e-3  # added to what the second attention finds: what was never seen costs at most ln 1000
TINY = 1e-9  # what falls falls by more
BATCHES = 8  # of rows, from which gradients are estimated independently


@dataclass(frozen=True)
class Points:
    """Sub-n-gram points: lengths of rows with the sharpness of attention at each, and rows per batch.

    The heads look `back` tokens back: one, unless it is sabotaged.
    """

    states: int
    pairs: tuple[tuple[int, float], ...]
    batch: int
    back: int = 1


def subjects() -> Iterator[Subject]:
    recipe = Recipe(steps=1000, batch=16, lr=3e-3, test_rows=256, marks=8)
    yield _trained("trained, 2 states, rows of 64", InContextMarkov(states=2, length=64, order=2), recipe, members=8)
    pairs = ((8, 3.0), (32, 6.0), (64, 8.0), (128, 10.0))
    yield Subject("points, 2 states", data={"points": Points(2, pairs, batch=1024)})


def paper() -> Iterator[Subject]:
    recipe = Recipe(steps=750, batch=32, lr=2e-3, test_rows=1024, marks=6)
    yield _trained("trained, 2 states, rows of 128", InContextMarkov(states=2, length=128, order=2), recipe, members=16)
    pairs = ((8, 3.0), (32, 6.0), (64, 8.0), (128, 10.0), (256, 12.0))
    yield Subject("points, 2 states", data={"points": Points(2, pairs, batch=2048)})


def _trained(name: str, sandbox: InContextMarkov, recipe: Recipe, members: int) -> Subject:
    family = TransformerFamily(
        layers=2, heads=2, d_model=32, units=0, positions="relative", norm=False, biases=False, scale=0.75, gain=10.0
    )
    probes = {_lag(lag): attention_on(back(lag)) for lag in LAGS}
    return Subject(name, data={"trial": Trial(sandbox, family, recipe, members, probes)})


def _lag(lag: int) -> str:
    return f"back {lag}"


def check(subject: Subject) -> Evidence:
    return _check_points(subject) if "points" in subject.data else _check_trained(subject)


def _check_trained(subject: Subject) -> Evidence:
    trial: Trial = subject.data["trial"]
    runs = trial.runs()
    curves: list[Sequence[Mapping[str, Any]]] = [run.curve for run in runs]
    passed = [trial.nearest(curve, WHILE) for curve in curves]
    asked = [
        Asked(
            f"is nearest to {', '.join(STAGES)}",
            [float(tuple(stage.name for stage in found) == STAGES) for found in passed],
            least=1,
            share=MOST_SEEDS,
        ),
        Asked(
            "distance of the loss from that of the predictor, where nearest",
            [
                max(abs(stage.plateau.level / trial.levels(c)[str(stage.name)] - 1) for stage in found)
                for found, c in zip(passed, curves, strict=True)
            ],
            most=NEAR,
        ),
        Asked(
            "part of the steps at the bigrams' loss", [_held(trial, c) for c in curves], least=HELD, share=MOST_SEEDS
        ),
        Asked("weight on a distance of each head's own", [_own(c[-1]) for c in curves], least=OWN, share=MOST_SEEDS),
        Asked("KL to the optimum at the end, nats", [c[-1]["kl"] for c in curves], most=ARRIVED),
    ]
    heads = {
        f"head {head + 1}, {_lag(lag)}": [[point[_lag(lag)][head] for point in curve] for curve in curves]
        for head in (0, 1)
        for lag in LAGS
    }
    shown = trial.shown(runs, {"loss": "loss", **trial.distances()}, heads)
    domain = f"{trial.members} seeds, {trial.recipe.steps} steps of {trial.recipe.batch} rows, {subject.name}"
    return decided(asked, domain=domain, seed=0, shown=shown)


def _held(trial: Trial, curve: Sequence[Mapping[str, Any]]) -> float:
    """The part of the steps at the loss of bigrams, before the loss is clearly below."""
    level = trial.levels(curve)["bigram"]
    steps, losses = np.array([point["step"] for point in curve]), np.array([point["loss"] for point in curve])
    every = np.arange(steps[-1] + 1)
    loss = np.interp(np.log1p(every), np.log1p(steps), losses)
    below = loss < level - BELOW
    end = int(np.argmax(below)) if below.any() else len(every)
    return float((np.abs(loss[:end] - level) <= STILL).sum() / steps[-1])


def _own(point: Mapping[str, Any]) -> float:
    """The least weight on its own distance of the heads of the first layer, if distances are shared out best."""
    looks = np.array([point[_lag(lag)][: len(LAGS)] for lag in LAGS])  # [lag, head]
    return max(float(looks[range(len(LAGS)), list(chosen)].min()) for chosen in permutations(range(len(LAGS))))


def _check_points(subject: Subject) -> Evidence:
    points: Points = subject.data["points"]
    found = {order: [_measured(points, order, *pair) for pair in points.pairs] for order in (0, 1)}
    asked = []
    for order, each in found.items():
        name = order_name(order)
        norms = np.array([one.norms for one in each])  # [pair, batch left out]
        asked += [
            Asked(f"{name}: last slope in parts of the first", (norms[-1] / norms[0]).tolist(), most=FALLS),
            Asked(f"{name}: loss above counting at the last pair, nats", list(each[-1].gaps), most=GAP),
        ]
        if order:
            asked.append(
                Asked(f"{name}: change of slope to the next pair", np.diff(norms, axis=0).ravel().tolist(), most=-TINY)
            )
    shown = {
        order_name(order): {"norms": [one.norms for one in each], "gaps": [one.gaps for one in each]}
        for order, each in found.items()
    }
    shown["pairs"] = [list(pair) for pair in points.pairs]  # type: ignore[assignment]
    domain = f"{BATCHES} batches of {points.batch} rows, {points.states} states, lengths and sharpness {points.pairs}"
    slopes = ", ".join(f"{np.mean(one.norms):.2g}" for one in found[0])
    return decided(asked, domain=domain, seed=0, shown=shown, notes=[f"unigram: slopes {slopes}"])


@dataclass(frozen=True)
class Measured:
    """Norms of the gradient, one for each batch left out, and the loss above that of counting in each batch."""

    norms: list[float]
    gaps: list[float]


def _measured(points: Points, order: int, length: int, sharp: float) -> Measured:
    r"""The gradient at a point over the batches.

    With the gradients $g_b$ of $n$ independent batches, $(|\sum g_b|^2 - \sum |g_b|^2) / (n(n-1))$ has the mean
    $|\mathrm{E}\,g|^2$: noise of sampling adds nothing.
    """
    losses, counted, slopes = (
        np.asarray(part) for part in _slopes(points.states, length, points.batch)(_point(points, order, length, sharp))
    )
    norms = []
    for left in range(BATCHES):
        kept, n = np.delete(slopes, left, axis=0), BATCHES - 1
        norms.append(float(np.sqrt(max((kept.sum(axis=0) ** 2).sum() - (kept**2).sum(), 0.0) / (n * (n - 1)))))
    return Measured(norms, (losses - counted[:, order]).tolist())


def _point(points: Points, order: int, length: int, sharp: float) -> dict[str, Any]:
    """All heads even and nothing compared: unigrams. All heads one back, compared with the present token: bigrams."""
    k, heads = points.states, len(LAGS)
    distances = np.zeros((heads, length), np.float32)
    compared = np.zeros((1, k * (1 + heads), k * heads), np.float32)
    if order:
        distances[:, points.back] = sharp
        compared[0, :k] = sharp * np.tile(np.eye(k), heads)
    return {DISTANCES: distances, TOKENS: compared}


@cache
def _slopes(states: int, length: int, batch: int) -> Callable[[Any], Any]:
    """Loss, losses of counting symbols and pairs, and gradient for every batch, at the last place of rows."""
    sandbox = InContextMarkov(states=states, length=length + 1, order=len(LAGS))
    family = TwoAttentionsFamily(heads=len(LAGS), wide=True, relative=True, least=LEAST)
    net = family.architecture(sandbox)

    def last(row: Row) -> Row:
        """The last question only, with the law that its answer is drawn from."""
        word = jnp.zeros(batch, jnp.int32)
        for lag in reversed(LAGS):
            word = word * states + row.tokens[:, -lag]
        soft = jnp.take_along_axis(row.latent["kernel"], word[:, None, None], axis=1)
        return row._replace(targets=row.targets[:, -1:], weight=row.weight[:, -1:], soft=soft)

    def one(theta: Any, number: Array) -> tuple[Array, Array, Array]:
        row = rows(sandbox, 0, "test", number * batch, batch)
        asked = last(row)

        def loss(theta: Any) -> Array:
            as_given: Any = jax.lax.optimization_barrier  # or the compiler works out what follows from zeros
            arrays = as_given(family.arrays(net, theta))
            return mean_loss(family.logits(net, sandbox, arrays, row)[:, -1:], asked)

        value, slope = jax.value_and_grad(loss)(theta)
        known = [sandbox.predictors()[order_name(order)] for order in (0, 1)]
        counted = jnp.stack([mean_loss(jax.vmap(predictor)(row)[:, -1:], asked) for predictor in known])
        return value, counted, jnp.concatenate([slope[DISTANCES].ravel(), _alike(slope[TOKENS], states).ravel()])

    return jax.jit(lambda theta: jax.lax.map(lambda n: one(theta, n), jnp.arange(BATCHES, dtype=jnp.uint32)))


def _alike(slope: Array, states: int) -> Array:
    """The mean over all ways to name the symbols: at a point that treats them alike, so does the expected gradient."""
    blocks = slope.reshape(-1, states, len(LAGS), states)
    same = jnp.eye(states)[:, None]
    equal = (blocks * same).sum(axis=(1, 3), keepdims=True) / states
    other = (blocks * (1 - same)).sum(axis=(1, 3), keepdims=True) / (states * (states - 1))
    return equal * same + other * (1 - same)


def sabotage(subject: Subject) -> Subject:
    if "points" in subject.data:
        return replace(subject, data={"points": replace(subject.data["points"], back=2)})
    trial: Trial = subject.data["trial"]
    short = replace(trial.recipe, steps=trial.recipe.steps // 4)  # there is no third stage at any time
    return replace(subject, data={"trial": replace(trial, sandbox=replace(trial.sandbox, order=1), recipe=short)})


def draw(shown: Any) -> Any:
    from vitrify.learn.figures import band, by_step, level, sheet

    figure, planes = sheet(1, 4, "Sub-n-grams hold up the way to one head per parent")
    (losses, far, looks, slopes) = planes[0]
    for name, found in shown.items():
        if "pairs" in found:
            _draw_slopes(slopes, found, name)
            continue
        steps = found["steps"]
        band(losses, steps, found["loss"], f"test loss ({len(found['loss'])} seeds)", "C0")
        for predictor, value in found["levels"].items():
            level(losses, value, predictor)
        for number, predictor in enumerate(STAGES):
            band(far, steps, found[predictor], f"KL({predictor} ‖ net)", f"C{number + 1}")
        pairs = [[found[f"head {head}, {_lag(lag)}"] for lag in LAGS] for head in (1, 2)]
        own = [_sorted(pairs, member) for member in range(len(found["loss"]))]
        for at, lag in enumerate(LAGS):
            band(looks, steps, [each[at] for each in own], f"the head that ends up {lag} back", f"C{at + 6}")
        level(looks, OWN, "more than half")
        losses.set(ylabel="loss (nats per symbol)", title=name)
        far.set(ylabel="nats per symbol", yscale="log", title="distance from known predictors")
        looks.set(ylabel="weight on its own distance", ylim=(0, 1), title="heads of the first layer")
        for plane in (losses, far, looks):
            by_step(plane)
            plane.legend(fontsize=8)
    return figure


def _sorted(pairs: Any, member: int) -> list[Any]:
    """For each distance the curve of the head that ends up there."""
    straight = pairs[0][0][member][-1] + pairs[1][1][member][-1]
    crossed = pairs[1][0][member][-1] + pairs[0][1][member][-1]
    first, second = (0, 1) if straight >= crossed else (1, 0)
    return [pairs[first][0][member], pairs[second][1][member]]


def _draw_slopes(plane: Any, found: Any, name: str) -> None:
    """The norm of the gradient at each point against the length of rows."""
    lengths = [length for length, _ in found["pairs"]]
    for order, colour in ((0, "C2"), (1, "C3")):
        norms = np.array(found[order_name(order)]["norms"])
        plane.plot(lengths, norms.mean(axis=1), "o-", color=colour, label=f"{order_name(order)} point")
        plane.fill_between(lengths, norms.min(axis=1), norms.max(axis=1), color=colour, alpha=0.2, linewidth=0)
    plane.set_xscale("log", base=2)
    plane.set_xticks(lengths, [f"{length}\n{sharp:g}" for length, sharp in found["pairs"]])
    plane.set(ylabel="norm of the gradient", yscale="log", title=name, xlabel="length of rows, sharpness of attention")
    plane.legend(fontsize=8)


CLAIM = Claim(
    row="L6",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
