r"""Associations become one matrix of $d^2$ numbers, or one layer of $m$ units: an associative memory.

In the spirit of Nichani, Lee & Bietti (2025, arXiv 2412.06538) and Cabannes, Dohmatob & Bietti (2024). Every word $x$
has a random unit vector $e_x$ of $d$ numbers, every answer $y$ one called $u_y$; what is recalled is compared with all
$u_y$ by the unembedding.

- Linear memories: the value matrix $W$ of a head that sees its own position only. `hebbian` adds up the associations,
  $W = \sum_x e_x^\top u_{f(x)}$: the right answer scores about 1, another one 0 on average, with a variance of about
  $N/d^2$. So about $d^2/(12 \ln d)$ associations are stored, if answers are different. `least-squares` and
  `fitted` (see `kit/memory.py`) store more; where there are only two answers no matrix stores many more than $2d$
  associations (Cover 1965): one hyperplane must divide the words.
- `mlp-memory`: $m$ ReLU units look in random directions, centred over all words, and a fitted matrix $V$ of $md$
  numbers reads them out. It stores about $0.1\,md$ associations, also where that is many times $m$.

Words and answers are in different dimensions of the stream.

| | linear | `mlp-memory` |
| --- | --- | --- |
| layers, heads, units | 1, 1, 0 | 1, 0, $m$ |
| width | $2d$ | $2d$ |
| numbers of the memory | $d^2$ | $2md$, of which $md$ are fitted |

Building draws the codes, stores, and asks every question; a net that is not perfect is refused.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from vitrify.constructions._memory import (
    Memory,
    affordable,
    chosen,
    fitted_dimension,
    hebbian_dimension,
    layered_sizes,
    linear,
    mlp,
    sure,
)
from vitrify.constructions.catalogue import Choice, Construction, Settings
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.gadgets import features
from vitrify.kit.heads import itself
from vitrify.kit.memory import Rule
from vitrify.kit.network import Affine, Builder, Network, Readout, Space
from vitrify.net.architecture import Output
from vitrify.net.spaces import Reals
from vitrify.spec.associations import Associations
from vitrify.spec.ngram import BEGIN

SOURCE = "in the spirit of Nichani, Lee & Bietti 2025, arXiv 2412.06538"


def linear_memory(spec: Associations, *, rule: Rule, dimension: int | None = None, seed: int = 0) -> Network:
    """A transformer whose one head sends the code of a word to that of its answer."""
    words, answers = len(spec.vocabulary), len(spec.answers)
    usual = fitted_dimension(words, answers) if rule == "fitted" else hebbian_dimension(words)
    size = chosen("--dimension", dimension, usual)
    if rule == "fitted":
        affordable(words, answers)
    memory = linear(right_answers(spec), answers, size, np.random.default_rng(seed), rule)
    lead = sure(memory, f"dimension {size} and seed {seed}", _change(spec, rule))
    net = _builder(f"{rule} memory of {words} associations", spec)
    code = net.embed("code", numbers(size, 1.0), np.vstack([np.zeros(size), memory.keys]))
    read = Affine.of({code: memory.readout})
    recalled = Space("recalled", numbers(size, float(read.bound.max())))
    itself(net, read, recalled, error=UNIT_ROUNDOFF * (size + 4) * recalled.kind.high)
    about = {"shape": rule.replace(" ", "-"), "dimension": size, "seed": seed}
    return _network(net, spec, memory, recalled, lead, about)


def mlp_memory(spec: Associations, *, dimension: int | None = None, units: int | None = None, seed: int = 0) -> Network:
    """A transformer whose one layer of units sends the code of a word to that of its answer."""
    words, answers = len(spec.vocabulary), len(spec.answers)
    affordable(words, answers)
    size, count = layered_sizes(words, answers, dimension, units)
    memory = mlp(right_answers(spec), answers, size, count, np.random.default_rng(seed), "fitted")
    change = "choose more --units, a larger --dimension or another --seed"
    lead = sure(memory, f"dimension {size}, {count} units and seed {seed}", change)
    net = _builder(f"memory of {words} associations in {count} units", spec)
    code = net.embed("code", numbers(size, 1.0), np.vstack([np.zeros(size), memory.keys]))
    recalled = add_units(net, code, memory)
    about = {"shape": "mlp-memory", "dimension": size, "units": count, "seed": seed}
    return _network(net, spec, memory, recalled, lead, about)


def add_units(net: Builder, key: Space, memory: Memory) -> Space:
    """The units of a memory, reading a key."""
    assert memory.directions is not None
    assert memory.centre is not None
    reach = np.abs(memory.centre) + Affine.of({key: memory.directions}).bound
    recalled = Space("recalled", numbers(memory.answers.shape[1], float((reach @ np.abs(memory.readout)).max())))
    return features(net, key, memory.directions, memory.centre, memory.readout, recalled)


def numbers(size: int, most: float) -> Reals:
    """The kind of a space of codes."""
    return Reals(tuple(map(str, range(size))), -most, most)


def compared(memory: Memory, recalled: Space, lead: float) -> Readout:
    """The unembedding: the score of every answer; errors may take half of the least lead."""
    largest = float(np.abs(memory.answers).sum(axis=1).max())
    return Readout(((recalled, memory.answers.T),), np.zeros(len(memory.answers)), {recalled: lead / (4 * largest)})


def right_answers(spec: Associations) -> Any:
    """The number of the right answer to each word."""
    place = {answer: number for number, answer in enumerate(spec.answers)}
    return np.array([place[answer] for _, answer in spec.pairs], dtype=np.int64)


def _change(spec: Associations, rule: Rule) -> str:
    change = "choose a larger --dimension or another --seed"
    if rule == "hebbian" and not spec.injective:
        return f"{change}, or, as words share answers here, --shape fitted"
    return change


def _builder(name: str, spec: Associations) -> Builder:
    return Builder(name, (BEGIN, *spec.vocabulary), max_length=1)


def _network(
    net: Builder, spec: Associations, memory: Memory, recalled: Space, lead: float, about: dict[str, Any]
) -> Network:
    told = {"construction": "associative memory", "attention": "softmax", **about}
    told |= {"associations": len(spec.pairs), "answers": len(spec.answers), "least lead": lead, "source": SOURCE}
    return net.network(Output("class", spec.answers), compared(memory, recalled, lead), told, reuse=False)


def sizes(dimension: int, units: int = 0) -> dict[str, int]:
    """What the formulas promise; without units the memory is linear."""
    return {"layers": 1, "heads": 0 if units else 1, "units": units, "d_model": 2 * dimension}


def _linear(rule: Rule, spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Associations)
    return linear_memory(spec, rule=rule, dimension=settings.dimension, seed=settings.seed or 0)


def _mlp(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Associations)
    return mlp_memory(spec, dimension=settings.dimension, units=settings.units, seed=settings.seed or 0)


LINEAR: tuple[Choice, ...] = ("dimension", "seed")

CONSTRUCTIONS = (
    Construction(
        "fitted",
        Associations,
        "a matrix fitted until every answer leads",
        partial(_linear, "fitted"),
        True,
        LINEAR,
        certified="proved",
    ),
    Construction(
        "hebbian",
        Associations,
        "a matrix, the sum of all associations",
        partial(_linear, "hebbian"),
        choices=LINEAR,
        certified="proved",
    ),
    Construction(
        "least-squares",
        Associations,
        "a matrix with the least squared error",
        partial(_linear, "least squares"),
        choices=LINEAR,
        certified="proved",
    ),
    Construction(
        "mlp-memory",
        Associations,
        "units in random directions, read out",
        _mlp,
        choices=("dimension", "units", "seed"),
        certified="proved",
    ),
)
