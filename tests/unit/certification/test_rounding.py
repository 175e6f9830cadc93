"""The bound on rounding holds, on random nets and on built ones, and where it decides, float32 agrees."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cases import each
from vitrify.certification.precision.formats import FORMATS
from vitrify.certification.precision.rounding import bounded_logits, decided, supports
from vitrify.constructions.commutative import commutative
from vitrify.constructions.log_depth import log_depth
from vitrify.constructions.ngram import ngram
from vitrify.kit import assemble
from vitrify.net.architecture import Output
from vitrify.net.sparse import dense
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic, divisibility, symmetric_group
from vitrify.spec.ngrams.families import pydoc_sentences, random_ngram
from vitrify.spec.ngrams.model import NGramModel

KINDS = ("softmax", "sparsemax", "hard")


def in_float32(weights: Weights, tokens: np.ndarray) -> np.ndarray:
    narrow = weights.map(lambda array: dense(array).astype(np.float32))
    found: np.ndarray = forward(narrow.architecture, narrow.arrays, tokens)
    assert found.dtype == np.float32
    return found


def some_tokens(net: Transformer, count: int, seed: int = 0) -> np.ndarray:
    tokens = np.random.default_rng(seed).integers(1, len(net.inputs), size=(count, net.positions))
    tokens[:, : net.pads] = 0
    return tokens


def random_net(seed: int, scale: float) -> Weights:
    rng = np.random.default_rng(seed)
    heads = tuple(
        Head(
            str(rng.choice(KINDS)),  # type: ignore[arg-type]
            str(rng.choice(["causal", "strict", "none"])),  # type: ignore[arg-type]
            window=int(rng.integers(1, 4)) if rng.random() < 0.3 else None,
            ties=str(rng.choice(["left", "right", "average"])),  # type: ignore[arg-type]
            resolution=float(rng.choice([0.0, 0.1])),
        )
        for _ in range(3)
    )
    blocks = (Block(heads, 3, 4, 9), Block((), 0, 0, 7), Block(heads[:2], 3, 4, 0))
    net = Transformer(("<s>", "a", "b", "c"), Output("lm", ("a", "b", "c")), 12, 6, blocks)
    return Weights(net, {name: scale * rng.normal(size=shape) for name, shape in net.shapes().items()})


@each("seed", range(40))
def test_the_bound_holds_on_random_nets(seed: int) -> None:
    weights = random_net(seed, scale=0.3 + 0.02 * seed)
    tokens = some_tokens(weights.architecture, 5, seed)
    logits, bound = bounded_logits(weights, tokens, FORMATS["float32"])
    assert np.abs(forward(weights.architecture, weights.prepared, tokens) - logits).max() <= 1e-9 * np.abs(logits).max()
    assert (np.abs(in_float32(weights, tokens) - logits) <= bound).all()


def built() -> dict[str, Weights]:
    model = random_ngram(4, 4, seed=3)
    nets = {
        f"{shape} {kind}": assemble(ngram(model, variant=shape, attention=kind, max_length=24))  # type: ignore[arg-type]
        for shape in ("heads", "layers", "single")
        for kind in KINDS
    }
    nets |= {f"S5 {k}": assemble(log_depth(symmetric_group(5), attention=k, max_length=60)) for k in KINDS}  # type: ignore[arg-type]
    nets["divisibility"] = assemble(log_depth(divisibility(7), max_length=60))
    nets["counter"] = assemble(commutative(cyclic(6), max_length=60))
    nets["real"] = assemble(ngram(NGramModel.fit(pydoc_sentences(60), 4), max_length=24))
    return nets


NETS = built()


LONG = ("S5 softmax", "heads softmax", "single softmax")  # sparse and hard ones of these are tried in any case


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in NETS]
)
def test_the_bound_holds_and_decides_most_answers_of_built_nets(name: str) -> None:
    weights = NETS[name]
    net = weights.architecture
    tokens = some_tokens(net, 6)
    asked = slice(net.pads - 1, None)
    logits, bound = bounded_logits(weights, tokens, FORMATS["float32"])
    narrow = in_float32(weights, tokens)
    assert (np.abs(narrow - logits) <= bound)[:, asked].all()
    must = decided(weights, tokens)[:, asked]
    assert must.mean() > 0.8  # the bound is worth something
    arrays = dict(weights.map(lambda a: jnp.asarray(dense(a), jnp.float32)).arrays)
    jax32 = jax.jit(lambda arrays: forward(net, arrays, jnp.asarray(tokens)))(arrays)
    best = logits.argmax(-1)[:, asked]
    assert (narrow.argmax(-1)[:, asked] == best)[must].all()
    assert (np.asarray(jax32).argmax(-1)[:, asked] == best)[must].all()


def test_coarser_arithmetic_decides_less() -> None:
    weights = NETS["S5 softmax"]
    tokens = some_tokens(weights.architecture, 4)
    shares = [decided(weights, tokens, precision).mean() for precision in ("float32", "float16", "bfloat16")]
    assert shares[0] > shares[1] >= shares[2]


def test_layer_norm_is_not_covered() -> None:
    net = Transformer(("<s>", "a"), Output("lm", ("a",)), 2, 2, (), norm=True)
    assert not supports(net)
