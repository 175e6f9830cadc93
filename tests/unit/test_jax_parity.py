"""Built nets under JAX: the same logits as NumPy in double precision, the same answers in single."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from built import ATTENTIONS, CODES, SHAPES, answers, expected, random_words, walked
from vitrify.constructions.commutative import commutative
from vitrify.constructions.log_depth import log_depth
from vitrify.constructions.ngram import ngram
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.inference import log_probabilities
from vitrify.net.sparse import dense
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, divisibility, product, symmetric_group
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import NGramModel

CLOSE = 1e-12  # relative to the largest logit: two orders of summation
MARGIN = 1e-3  # of the two likeliest next symbols, above which single precision must agree
LENGTH = 20
QUICK = (  # each run compiles for half a second: all others are left to the long tests
    "heads, onehot, softmax",
    "layers, bits, sparsemax",
    "single, bits, softmax",
    "single, onehot, hard",
    "S5, softmax",
    "S5, hard",
    "Z2 × Z3, sparsemax",
    "coins, softmax",
)

compiled = jax.jit(forward, static_argnums=0)

MODEL = random_ngram(3, 4, seed=1)
COINS = Automaton(  # coins of 1 and of 2, until 3 is enough: no group, and needs the second block
    ("0", "1", "2", "3"), ("one", "two"), ((1, 2), (2, 3), (3, 3), (3, 3)), 0, frozenset({3})
)


@cache
def nets() -> dict[str, tuple[NGramModel | Automaton, Weights]]:
    """Every construction under every attention that it supports."""
    found: dict[str, tuple[NGramModel | Automaton, Weights]] = {}
    for attention in ATTENTIONS:
        for shape in SHAPES:
            for code in CODES:
                net = ngram(MODEL, variant=shape, attention=attention, code=code, max_length=LENGTH)
                found[f"{shape}, {code}, {attention}"] = (MODEL, assemble(net))
        for name, machine in {"S5": symmetric_group(5), "div 7": divisibility(7)}.items():
            net = log_depth(machine, attention=attention, max_length=LENGTH)
            found[f"{name}, {attention}"] = (machine, assemble(net))
        for name, machine in {"Z2 × Z3": product(cyclic(2), cyclic(3)), "coins": COINS}.items():
            try:
                net = commutative(machine, attention=attention, max_length=LENGTH)
            except BuildRefused:
                assert attention == "hard"
            else:
                found[f"{name}, {attention}"] = (machine, assemble(net))
    return found


@pytest.fixture(params=[pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in nets()])
def net(request: pytest.FixtureRequest) -> tuple[NGramModel | Automaton, Weights]:
    return nets()[request.param]


@pytest.fixture
def _double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def words_for(weights: Weights) -> np.ndarray:
    return random_words(len(weights.architecture.inputs) - 1, LENGTH, 8, seed=3)


def on_jax(weights: Weights, words: np.ndarray) -> np.ndarray:
    """The logits of a compiled run, in the precision that JAX is set to."""
    pads = weights.architecture.pads
    tokens = np.concatenate([np.zeros((len(words), pads), dtype=np.int64), words], axis=1)
    arrays = {name: jnp.asarray(dense(array)) for name, array in weights.arrays.items()}
    return np.asarray(compiled(weights.architecture, arrays, jnp.asarray(tokens)))[:, pads - 1 :]


@pytest.mark.usefixtures("_double")
def test_double_precision_gives_the_same_logits(net: tuple[NGramModel | Automaton, Weights]) -> None:
    _, weights = net
    words = words_for(weights)
    wanted, got = answers(weights, words), on_jax(weights, words)
    assert got.dtype == np.float64
    assert np.abs(got - wanted).max() <= CLOSE * max(1.0, float(np.abs(wanted).max()))


def test_single_precision_gives_the_same_answers(net: tuple[NGramModel | Automaton, Weights]) -> None:
    spec, weights = net
    words = words_for(weights)
    got = on_jax(weights, words)
    assert got.dtype == np.float32
    if isinstance(spec, Automaton):
        names = np.array([spec.states.index(state) for state in weights.architecture.output.symbols])
        np.testing.assert_array_equal(names[got.argmax(axis=-1)], walked(spec, words))
        return
    right = expected(spec, words)
    second, first = np.moveaxis(np.sort(right, axis=-1)[..., -2:], -1, 0)
    clear = first - second > MARGIN
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(got.argmax(axis=-1)[clear], right.argmax(axis=-1)[clear])
    close = np.exp(np.asarray(log_probabilities(weights.architecture.output, got)))
    assert np.abs(close - right).max() < MARGIN / 2
