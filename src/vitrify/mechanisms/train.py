r"""Train a network from a softened construction, and keep its circuit: strict interchange intervention training.

Every step of AdamW draws interventions on pairs of a sequence and a donor, a quarter each: none; all edges outside the
circuit patched; one edge patched; all edges that leave one node patched. The loss is the distance of the answers from
those that the construction gives under the same intervention (Geiger et al. 2022, arXiv 2112.00826; strict: Gupta et
al. 2024, arXiv 2407.14494). Arrays are trained relative to their size, and their weights decay, so that nothing but the
data keeps what the construction wrote. Numbers are rounded to 11 bits. Then `interchange` compares the answers, and
only networks without a violation are recorded, in `recorded/trained/NAME.npz`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from vitrify.arrays import Array, Arrays, Floats
from vitrify.errors import FolderError, InputError
from vitrify.files import write_bytes
from vitrify.mechanisms.circuit import Judge
from vitrify.mechanisms.interchange import Interchange, interchange, wide_tolerance
from vitrify.mechanisms.parts import Edge
from vitrify.mechanisms.soften import Softness, another_judge, soft_judge

RECORDED = Path(__file__).parent / "recorded" / "trained"
PAIRS = 96  # of a batch
ATTEMPTS = 3  # each with a quarter of the rate of the one before


@dataclass(frozen=True)
class TuningRecipe:
    """Steps of AdamW, the learning rate and the weight decay of arrays relative to their size, the seed."""

    steps: int = 200
    rate: float = 3e-3
    decay: float = 0.03
    seed: int = 0


@dataclass(frozen=True, eq=False)
class TunedPuzzle:
    """A trained network, its recipe, its comparison with the construction, and how far its weights have moved."""

    judge: Judge
    recipe: TuningRecipe
    comparison: Interchange
    moved: float  # norm of the change of all arrays, relative to their size


def trained(
    reference: Judge, circuit: Sequence[Edge], softness: Softness | None, recipe: TuningRecipe | None = None
) -> TunedPuzzle:
    """Train from the softened construction, or the plain one; with violations, again at a quarter of the rate."""
    start = soft_judge(reference, circuit, softness) if softness else reference
    made = recipe or TuningRecipe()
    for _ in range(ATTEMPTS):
        arrays, moved = _descend(reference, start, circuit, made)
        weights = replace(start.wired.weights, arrays=arrays, about={"name": "a trained network"})
        judge = another_judge(reference, weights, wide_tolerance(reference, circuit))
        result = TunedPuzzle(judge, made, interchange(reference, judge, circuit), moved)
        if result.comparison.holds:
            break
        made = replace(made, rate=made.rate / 4)
    return result


def _descend(
    reference: Judge, start: Judge, circuit: Sequence[Edge], recipe: TuningRecipe
) -> tuple[dict[str, Floats], float]:
    """Return the arrays after training, rounded, and how far they have moved."""
    import jax
    import jax.numpy as jnp
    import optax

    from vitrify.mechanisms.differentiable import QUICK, CutRuns, distance, in_jax, scale_of

    wired, output = reference.wired, reference.output
    runs, target, first = CutRuns(wired, wired.edges), in_jax(wired, np.float32), in_jax(start.wired, np.float32)
    size = {name: float(max(np.sqrt(np.mean(np.square(array))), 1e-3)) for name, array in first.items() if array.size}
    part, donors, clean = max(reference.ready, key=lambda each: len(each[0].pairs))
    kinds, scale = _patches(wired.edges, circuit), scale_of(output, part, clean)
    rate = optax.cosine_decay_schedule(recipe.rate, recipe.steps)
    optimizer = optax.chain(
        optax.zero_nans(), optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=recipe.decay)
    )

    def loss(relative: Arrays, rows: Array, shares: Array) -> Array:
        arrays = first | {name: value * size[name] for name, value in relative.items()}
        words, others = (jnp.asarray(part.tokens[part.pairs[:, side]])[rows] for side in (0, 1))
        at = (jnp.arange(len(rows))[:, None], jnp.asarray(part.donor_positions)[rows])
        donated = {node: jax.lax.stop_gradient(value[at]) for node, value in runs.clean(arrays, others).items()}
        want = runs(target, words, shares, {node: jnp.asarray(value)[rows] for node, value in donors.items()})[0]
        far = distance(output, want, runs(arrays, words, shares, donated)[0], scale)
        where = jnp.asarray(part.mask[part.pairs[:, 0]])[rows]
        return (far * where).sum() / where.sum()

    @partial(jax.jit, compiler_options=QUICK)
    def step(relative: Arrays, state: Array, key: Array) -> tuple[Arrays, Array, Array]:
        keys = jax.random.split(key, 2)
        rows = jax.random.randint(keys[0], (PAIRS,), 0, len(part.pairs))
        shares = jnp.asarray(kinds)[jax.random.randint(keys[1], (PAIRS,), 0, len(kinds))]
        value, slope = jax.value_and_grad(loss)(relative, rows, shares)
        change, state = optimizer.update(slope, state, relative)
        return optax.apply_updates(relative, change), state, value

    relative = {name: first[name] / size[name] for name in size if not name.endswith("beta")}
    state = optimizer.init(relative)
    for key in jax.random.split(jax.random.key(recipe.seed), recipe.steps):
        relative, state, _ = step(relative, state, key)
    last = {name: np.asarray(relative[name] * size[name] if name in relative else first[name]) for name in first}
    rounded = {name: _rounded(array).astype(float) for name, array in last.items()}
    moved = [np.sum(np.square((rounded[name] - first[name]) / size[name])) for name in size]
    return rounded, float(np.sqrt(sum(moved) / sum(first[name].size for name in size)))


def _rounded(array: Array) -> Array:
    """Return float32 numbers with the last 12 bits 0, which compress well."""
    return (np.ascontiguousarray(array, dtype=np.float32).view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)


def _patches(edges: Sequence[Edge], circuit: Sequence[Edge]) -> Floats:
    """Return the shares [intervention, edge] that are drawn from; each of the four kinds has a quarter of the rows."""
    outside = [float(edge not in set(circuit)) for edge in edges]
    single = np.eye(len(edges)).tolist()
    nodes = [[float(edge[0] == node) for edge in edges] for node in dict.fromkeys(edge[0] for edge in edges)]
    kinds = ([[0.0] * len(edges)], [outside], single, nodes)
    most = max(map(len, kinds))
    return np.array([row for kind in kinds for row in (kind * most)[:most]])


def record(name: str, made: TunedPuzzle) -> Path:
    """Write the arrays of a trained network, compressed, with its recipe."""
    arrays = {key: np.asarray(array).astype(np.float32) for key, array in made.judge.wired.weights.arrays.items()}
    recipe = np.array([made.recipe.steps, made.recipe.rate, made.recipe.decay, made.recipe.seed, made.moved])
    file = io.BytesIO()
    np.savez_compressed(file, **arrays, recipe=recipe)  # type: ignore[arg-type]
    RECORDED.mkdir(parents=True, exist_ok=True)
    write_bytes(RECORDED / f"{name}.npz", file.getvalue())
    return RECORDED / f"{name}.npz"


def recorded() -> list[str]:
    """Return the names of the networks that have a trained rendering."""
    return sorted(path.stem for path in RECORDED.glob("*.npz"))


def recorded_judge(name: str, reference: Judge, circuit: Sequence[Edge]) -> Judge:
    """Return the judge of a recorded network."""
    if name not in recorded():
        raise InputError(f"there is no trained rendering of {name!r}; there are {', '.join(recorded())}")
    with np.load(RECORDED / f"{name}.npz") as data:
        arrays = {key: data[key].astype(float) for key in data if key != "recipe"}
    plain = reference.wired.weights
    if {key: value.shape for key, value in arrays.items()} != plain.architecture.shapes():
        raise FolderError(f"the recorded weights of {name!r} are not of the construction of today: train it again")
    weights = replace(plain, arrays=arrays, about={"name": "a trained network"})
    return another_judge(reference, weights, wide_tolerance(reference, circuit))
