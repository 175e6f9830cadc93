"""Random nets of hard attention whose scores often tie, and their answers to all words of a length."""

from __future__ import annotations

from itertools import product

import numpy as np

from vitrify.net.architecture import Output
from vitrify.net.inference import batch_logits
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

HEADS = [
    Head("hard", mask, None, ties, resolution)
    for mask in ("causal", "strict")
    for ties in ("left", "right")
    for resolution in (0.0, 1.0)
]


def all_words(letters: int, length: int) -> np.ndarray:
    return np.array(list(product(range(letters), repeat=length)))


def random_net(seed: int, kinds: list[Head] = HEADS) -> Weights:
    """Two layers of two hard heads and three units with small whole numbers as weights; scores often tie."""
    rng = np.random.default_rng(seed)
    heads = tuple(kinds[i] for i in rng.integers(0, len(kinds), 2))
    blocks = (Block(heads, d_head=1, d_value=2, units=3),) * 2
    net = Transformer(("<s>", "a", "b"), Output("transducer", ("False", "True")), 9, 4, blocks)
    arrays = {name: rng.integers(-1, 2, shape).astype(float) for name, shape in net.shapes().items()}
    arrays["pos_embed.W_pos"][:] = 0.0
    arrays |= {name: np.ones_like(array) for name, array in arrays.items() if name.endswith("beta")}
    arrays["unembed.b_U"] = np.array([0.5, 0.0])
    return Weights(net, arrays)


def says_true(weights: Weights, words: np.ndarray) -> np.ndarray:
    tokens = np.concatenate([np.zeros((len(words), 1), dtype=np.int64), words + 1], axis=1)
    symbols = np.array(weights.architecture.output.symbols)
    found: np.ndarray = symbols[batch_logits(weights, tokens)[:, 1:].argmax(axis=-1)] == "True"
    return found
