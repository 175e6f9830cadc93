r"""Circuit finders: functions from the judge of a puzzle to a score for every edge, the higher the likelier it is true.

All see the same as a stranger does: the network, and the pairs of sequences and donors. $m$ is how strongly the clean
answers are preferred (`contrast`), $d$ how far answers are from the clean ones (`distance`), $\alpha$ the share to which
edges are patched. Scores are means over pairs.

| name | score of an edge | source |
| --- | --- | --- |
| `random` | a random number | |
| `activation-patching` | the smaller one of its two nodes' $\lvert \Delta m \rvert$ when all that leaves a node is patched | Vig et al. 2020, arXiv 2004.12265 |
| `path-patching` | $\lvert \Delta m \rvert$ when it is patched | Goldowsky-Dill et al. 2023, arXiv 2304.05969 |
| `eap` | $\lvert \partial m / \partial \alpha \rvert$ at $\alpha = 0$: attribution patching of edges | Syed et al. 2023, arXiv 2310.10348 |
| `eap-ig` | the same, on average over `IG_STEPS` interpolations of embedding and positions | Hanna et al. 2024, arXiv 2403.17806 |
| `hisp` | the smaller one of its nodes' $\lvert a \cdot \partial m / \partial a \rvert$ | Michel et al. 2019, arXiv 1905.10650 |
| `acdc` | the increase of $d$ when it is patched beside all edges that were left out before, from the output backwards | Conmy et al. 2023, arXiv 2304.14997 |
| `edge-pruning` | its logit after `PRUNING_STEPS` steps of Adam on $d$ plus `SPARSITY` times the share of kept edges | Bhaskar et al. 2024, arXiv 2406.16778 |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vitrify.arrays import Array, Arrays, Bools, Floats, Ints
from vitrify.learn.landscape import float64
from vitrify.mechanisms.circuit import Judge, activities
from vitrify.mechanisms.differentiable import QUICK, CutRuns, contrast, distance, in_jax, scale_of
from vitrify.mechanisms.domain import PatchDomain
from vitrify.mechanisms.parts import Edge, node_of

IG_STEPS = 5
ACDC_PAIRS = 48  # pairs of each length that ACDC looks at
ACDC_THRESHOLD = 0.01  # of d: an edge that moves it by less is left out
PRUNING_STEPS, PRUNING_RATE, PRUNING_PAIRS = 120, 0.1, 64
SPARSITY = 0.5
STRETCH = (-0.1, 1.1)  # of hard concrete gates, Louizos et al. 2018, arXiv 1712.01312

Scores = Mapping[Edge, float]
Method = Callable[[Judge], Scores]


def random(judge: Judge) -> Scores:
    """Return random numbers."""
    rng = np.random.default_rng(0)
    return {edge: float(rng.random()) for edge in judge.wired.edges}


def activation_patching(judge: Judge) -> Scores:
    """Patch all that leaves a node, node by node."""
    edges = judge.wired.edges
    effect = {node: _effect(judge, [edge for edge in edges if edge[0] == node]) for node in judge.wired.writers}
    return _of_nodes(judge, effect)


def path_patching(judge: Judge) -> Scores:
    """Patch every edge by itself."""
    return {edge: _effect(judge, [edge]) for edge in judge.wired.edges}


def eap(judge: Judge) -> Scores:
    """Return the gradients of all edges at the clean run."""
    return _attributed(judge, [0.0])


def eap_ig(judge: Judge) -> Scores:
    """Return the mean gradients of all edges between the clean inputs and those of donors."""
    return _attributed(judge, [(step + 0.5) / IG_STEPS for step in range(IG_STEPS)])


def hisp(judge: Judge) -> Scores:
    """Return the gradients of nodes, times their activations."""
    effect = dict.fromkeys(judge.wired.writers, 0.0)
    for gradient in _gradients(judge, [0.0], zero=True):
        for node in effect:
            leaving = [number for number, edge in enumerate(judge.wired.edges) if edge[0] == node]
            effect[node] += float(np.abs(gradient[:, leaving].sum(axis=1)).sum())
    return _of_nodes(judge, effect)


def acdc(judge: Judge) -> Scores:
    """Leave out edges one after the other, from the output backwards, as long as the answers stay near."""
    wired, scores, out = judge.wired, {}, set[Edge]()
    few = Judge(wired, [part.only(_some(part, ACDC_PAIRS)) for part in judge.domain], judge.tolerance)
    before = 0.0
    for port in sorted(wired.ports.values(), key=lambda port: -port.moment):
        into = [edge for edge in wired.edges if edge[1] == port.name]
        for edge in sorted(into, key=lambda edge: -wired.writers[edge[0]].moment):
            after = _far(few, out | {edge})
            scores[edge] = after - before
            if scores[edge] < ACDC_THRESHOLD:
                out, before = out | {edge}, after
    return scores


def edge_pruning(judge: Judge) -> Scores:
    """Learn which edges are kept, by gradient descent on hard concrete gates."""
    wired = judge.wired
    part, donors, clean = max(judge.ready, key=lambda each: len(each[0].pairs))
    some = _some(part, PRUNING_PAIRS)
    words = part.pairs[some, 0]
    donated = {node: value[some] for node, value in donors.items()}
    with float64():
        data = part.tokens[words], donated, clean[some], part.mask[words], scale_of(judge.output, part, clean)
        logits = _pruned(CutRuns(wired, wired.edges), in_jax(wired), *data)
    return dict(zip(wired.edges, np.asarray(logits).tolist(), strict=True))


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def _pruned(
    runs: CutRuns, arrays: Arrays, tokens: Ints, donors: Arrays, clean: Array, where: Array, scale: Array
) -> Array:
    """Return the logits of the gates of all edges after training."""
    optimizer, output = optax.adam(PRUNING_RATE), runs.wired.weights.architecture.output

    def loss(logits: Array, key: Array) -> Array:
        noise = jax.random.uniform(key, logits.shape, minval=1e-6, maxval=1 - 1e-6)
        gates = jax.nn.sigmoid(jnp.log(noise) - jnp.log1p(-noise) + logits)
        gate = jnp.clip(gates * (STRETCH[1] - STRETCH[0]) + STRETCH[0], 0, 1)
        far = distance(output, clean, runs(arrays, tokens, 1 - gate, donors)[0], scale)
        return (far * where).sum() / where.sum() + SPARSITY * jax.nn.sigmoid(logits).mean()

    def step(carry: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], None]:
        logits, state = carry
        change, state = optimizer.update(jax.grad(loss)(logits, key), state)
        return (optax.apply_updates(logits, change), state), None

    start = jnp.ones(len(runs.edges))
    keys = jax.random.split(jax.random.key(0), PRUNING_STEPS)
    return jax.lax.scan(step, (start, optimizer.init(start)), keys)[0][0]


METHODS: dict[str, Method] = {
    "random": random,
    "activation-patching": activation_patching,
    "path-patching": path_patching,
    "eap": eap,
    "eap-ig": eap_ig,
    "hisp": hisp,
    "acdc": acdc,
    "edge-pruning": edge_pruning,
}


def _some(part: PatchDomain, count: int) -> Array:
    """Return some pairs, spread evenly over all."""
    return np.unique(np.linspace(0, len(part.pairs) - 1, min(count, len(part.pairs))).astype(np.int64))


def _of_nodes(judge: Judge, effect: Mapping[str, float]) -> Scores:
    """Return for every edge the smaller one of the scores of its nodes; the output's is infinite."""
    top = 1 + max(effect.values())
    return {(source, port): min(effect[source], effect.get(node_of(port), top)) for source, port in judge.wired.edges}


def _effect(judge: Judge, cut: list[Edge]) -> float:
    """Return by how much a cut moves the contrast, on average over pairs."""
    moved = []
    for (part, _, clean), logits in zip(judge.ready, judge.logits(cut), strict=True):
        change = (contrast(judge.output, clean) * (logits - clean)).sum(axis=-1)
        moved.append(np.abs((change * part.mask[part.pairs[:, 0]]).sum(axis=1)))
    return float(np.concatenate(moved).mean())


def _far(judge: Judge, cut: set[Edge]) -> float:
    """Return the mean distance of answers from the clean ones when edges are cut."""
    total = count = 0.0
    for (part, _, clean), logits in zip(judge.ready, judge.logits(sorted(cut)), strict=True):
        where: Bools = part.mask[part.pairs[:, 0]]
        far = distance(judge.output, clean, logits, scale_of(judge.output, part, clean))
        total, count = total + float((far * where).sum()), count + where.sum()
    return total / count


def _attributed(judge: Judge, steps: list[float]) -> Scores:
    gradients = np.concatenate(list(_gradients(judge, steps)))
    return dict(zip(judge.wired.edges, np.abs(gradients).mean(axis=0).tolist(), strict=True))


def _gradients(judge: Judge, steps: list[float], zero: bool = False) -> Iterator[Floats]:
    """Yield the gradients of the contrast by the shares [pair, edge], words of each length.

    They are means over steps, at which embedding and positions are patched to a share. With `zero`, donors are zeros.
    """
    wired = judge.wired
    inputs = np.array([source in ("embed", "pos") for source, _ in wired.edges], dtype=float)
    for part, donors, clean in judge.ready:
        words = part.pairs[:, 0]
        weight = contrast(judge.output, clean) * part.mask[words][..., None]
        own = {node: value[words] for node, value in activities(wired, part.tokens).items()}
        donated = {node: np.zeros_like(value) for node, value in donors.items()} if zero else donors
        start = np.tile(inputs, (len(words), 1))
        with float64():
            runs, arrays = CutRuns(wired, wired.edges), in_jax(wired)
            data = (runs, arrays, part.tokens[words], donated, own, weight)
            yield np.mean([np.asarray(_slope(*data, step * start)) for step in steps], axis=0)


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def _slope(runs: CutRuns, arrays: Arrays, tokens: Ints, donors: Arrays, own: Arrays, weight: Array, at: Array) -> Array:
    """Return the gradient of weighted logits by the shares of edges."""
    return jax.grad(lambda shares: (runs(arrays, tokens, shares, donors, own)[0] * weight).sum())(at)
