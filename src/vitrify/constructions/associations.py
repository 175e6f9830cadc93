r"""Associations become one matrix of $d^2$ numbers, or one layer of $m$ units: an associative memory.

In the spirit of Nichani, Lee & Bietti (2025, arXiv 2412.06538) and Cabannes, Dohmatob & Bietti (2024). Every word $x$
has a random unit vector $e_x$ of $d$ numbers, every answer $y$ one called $u_y$; what is recalled is compared with all
$u_y$ by the unembedding.

- Linear memories: the value matrix $W$ of a head that sees its own position only. `hebbian` adds up the associations,
  $W = \sum_x e_x^\top u_{f(x)}$: the right answer scores about 1, another one 0 on average, with a variance of about
  $N/d^2$. So about $d^2/(12 \ln d)$ associations are stored, if answers are different. `least-squares` and
  `fitted` (see `kit/memory.py`) store more; where there are only two answers no matrix stores many more than $2d$
  associations (Cover 1965): one hyperplane must divide the words.
- `mlp-memory`: $m$ ReLU units look in random directions, centered over all words, and a fitted matrix $V$ of $md$
  numbers reads them out. It stores about $0.1\,md$ associations, also where that is many times $m$.

Words and answers are in different dimensions of the residual stream.

| | linear | `mlp-memory` |
| --- | --- | --- |
| layers, heads, units | 1, 1, 0 | 1, 0, $m$ |
| width | $2d$ | $2d$ |
| parameters of the memory | $d^2$ | $2md$, of which $md$ are fitted |

Building draws the codes, stores, and checks every association; a net with an error is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vitrify.arrays import Ints
from vitrify.constructions.catalogue import DeclaredSizes, Dimension, Seed, Units, construction
from vitrify.kit import fact_storage
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.fact_storage import Memory, fitted_dimension, hebbian_dimension, layered_sizes, linear, mlp
from vitrify.kit.gadgets.features import features
from vitrify.kit.heads.shift import itself
from vitrify.kit.memory import Rule
from vitrify.kit.network import Affine, Builder, Network, Output, Readout, Reals, Space
from vitrify.spec.memory.associations import Associations
from vitrify.spec.ngrams.model import BEGIN

SOURCE = "in the spirit of Nichani, Lee & Bietti 2025, arXiv 2412.06538"


def linear_sizes(spec: Associations, *, dimension: int | None) -> DeclaredSizes:
    """Return all sizes: one head, two codes."""
    d = dimension or hebbian_dimension(len(spec.vocabulary))
    return DeclaredSizes({"layers": 1, "heads": 1, "units": 0, "d_model": 2 * d})


def fitted_sizes(spec: Associations, *, dimension: int | None) -> DeclaredSizes:
    """Return the sizes of a linear memory in the dimension that fitting needs."""
    return linear_sizes(spec, dimension=dimension or fitted_dimension(len(spec.vocabulary), len(spec.answers)))


def mlp_sizes(spec: Associations, *, dimension: int | None, units: int | None) -> DeclaredSizes:
    """Return all sizes: units, two codes."""
    d, m = layered_sizes(len(spec.vocabulary), len(spec.answers), dimension, units)
    return DeclaredSizes({"layers": 1, "heads": 0, "units": m, "d_model": 2 * d})


@construction("mlp-memory", "units in random directions, read out", mlp_sizes, certified=("to T", "to T"))
def mlp_memory(
    spec: Associations, *, dimension: Dimension | None = None, units: Units | None = None, seed: Seed = 0
) -> Network:
    """Return a transformer whose one layer of units maps the code of a word to that of its answer."""
    words, answers = len(spec.vocabulary), len(spec.answers)
    fact_storage.check_score_count(words, answers)
    size, count = layered_sizes(words, answers, dimension, units)
    memory = mlp(right_answers(spec), answers, size, count, np.random.default_rng(seed), "fitted")
    change = "choose more --units, a larger --dimension or another --seed"
    margin = fact_storage.require_perfect_recall(memory, f"dimension {size}, {count} units and seed {seed}", change)
    net = Builder(f"memory of {words} associations in {count} units", (BEGIN, *spec.vocabulary), 1)
    code = net.embed("code", numbers(size, 1.0), np.vstack([np.zeros(size), memory.keys]))
    recalled = add_units(net, code, memory)
    facts: dict[str, object] = {"variant": "mlp-memory", "dimension": size, "units": count, "seed": seed}
    return _network(net, spec, memory, recalled, margin, facts)


def add_units(net: Builder, key: Space, memory: Memory) -> Space:
    """Add the units of a memory, which read a key; return the space they write."""
    assert memory.directions is not None
    assert memory.center is not None
    reach = np.abs(memory.center) + Affine.of({key: memory.directions}).bound
    recalled = Space("recalled", numbers(memory.answers.shape[1], float((reach @ np.abs(memory.readout)).max())))
    return features(net, key, memory.directions, memory.center, memory.readout, recalled)


def numbers(size: int, most: float) -> Reals:
    """Return the kind of a space of codes."""
    return Reals(tuple(map(str, range(size))), -most, most)


def compared(
    net: Builder,
    memory: Memory,
    recalled: Space,
    margin: float,
    answers: tuple[str, ...],
    name: str,
    facts: Mapping[str, object],
) -> Network:
    """Return the network that scores every answer; errors may take half of the least margin."""
    largest = float(np.abs(memory.answers).sum(axis=1).max())
    readout = Readout(((recalled, memory.answers.T),), np.zeros(len(answers)), {recalled: margin / (4 * largest)})
    facts = {**facts, "least margin": margin}
    return net.network(Output("class", answers), readout, name, facts, source=SOURCE, reuse=False)


def right_answers(spec: Associations) -> Ints:
    """Return the index of the right answer to each word."""
    index = {answer: number for number, answer in enumerate(spec.answers)}
    return np.array([index[answer] for _, answer in spec.pairs], dtype=np.int64)


def _network(
    net: Builder, spec: Associations, memory: Memory, recalled: Space, margin: float, facts: dict[str, object]
) -> Network:
    facts |= {"associations": len(spec.pairs), "answers": len(spec.answers)}
    return compared(net, memory, recalled, margin, spec.answers, "associative memory", facts)


@construction(
    "fitted",
    "a matrix fitted until every answer leads",
    fitted_sizes,
    default=True,
    certified=("to T", "to T"),
    rule="fitted",
)
@construction(
    "hebbian", "a matrix, the sum of all associations", linear_sizes, certified=("to T", "to T"), rule="hebbian"
)
@construction(
    "least-squares",
    "a matrix with the least squared error",
    linear_sizes,
    certified=("to T", "to T"),
    rule="least squares",
)
def linear_memory(spec: Associations, *, dimension: Dimension | None = None, seed: Seed = 0, rule: Rule) -> Network:
    """Return a transformer whose one head maps the code of a word to that of its answer."""
    words, answers = len(spec.vocabulary), len(spec.answers)
    default = fitted_dimension(words, answers) if rule == "fitted" else hebbian_dimension(words)
    size = dimension or default
    if rule == "fitted":
        fact_storage.check_score_count(words, answers)
    memory = linear(right_answers(spec), answers, size, np.random.default_rng(seed), rule)
    change = "choose a larger --dimension or another --seed"
    if rule == "hebbian" and not spec.injective:
        change += ", or, as words share answers here, --construction fitted"
    margin = fact_storage.require_perfect_recall(memory, f"dimension {size} and seed {seed}", change)
    net = Builder(f"{rule} memory of {words} associations", (BEGIN, *spec.vocabulary), 1)
    code = net.embed("code", numbers(size, 1.0), np.vstack([np.zeros(size), memory.keys]))
    read = Affine.of({code: memory.readout})
    recalled = Space("recalled", numbers(size, float(read.bound.max())))
    itself(net, read, recalled, error=UNIT_ROUNDOFF * (size + 4) * recalled.kind.high)
    facts: dict[str, object] = {"variant": rule.replace(" ", "-"), "dimension": size, "seed": seed}
    return _network(net, spec, memory, recalled, margin, facts)
