"""Tiny networks around one primitive of the kit: build them, run them, and recompute the scores of their heads."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from vitrify.kit.assembly import assemble
from vitrify.kit.margins import Arithmetic
from vitrify.kit.network import Builder, Network, Readout, Space
from vitrify.net.architecture import Output
from vitrify.net.inference import logits, trace
from vitrify.net.spaces import Kind, Reals
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights

Floats = NDArray[np.float64]
Word = tuple[int, ...]  # ids of tokens, from 1; 0 is BOS

KINDS: tuple[AttentionKind, ...] = ("softmax", "sparsemax", "hard")
NEED = 1e-6  # what the readout of a tiny net bears
ROUNDING = 1e-12  # a few dozen operations in float64 on numbers of a few hundred
EXACT = 1e-12  # what units may leave of a value that they restore


def letters(number: int) -> tuple[str, ...]:
    """The inputs of a net: BOS, then so many letters."""
    return ("^", *"abcdefghij"[:number])


def words(alphabet: int, length: int) -> list[Word]:
    """All words up to a length, the empty one included."""
    return [word for n in range(length + 1) for word in product(range(1, alphabet + 1), repeat=n)]


def random_words(alphabet: int, length: int, number: int, seed: int) -> list[Word]:
    """Long random words."""
    draw = random.Random(seed)
    return [tuple(draw.randint(1, alphabet) for _ in range(length)) for _ in range(number)]


def network(net: Builder, *read: Space, need: float = NEED, reuse: bool = False) -> Network:
    """The network whose logits are the spaces themselves, coordinate by coordinate."""
    size = sum(space.size for space in read)
    parts, at = [], 0
    for space in read:
        parts.append((space, np.eye(size)[at : at + space.size]))
        at += space.size
    output = Output("transducer", tuple(f"{space.name}{name}" for space in read for name in space.kind.names))
    return net.network(output, Readout(tuple(parts), np.zeros(size), dict.fromkeys(read, need)), reuse=reuse)


def built(
    net: Builder, *read: Space, need: float = NEED, reuse: bool = False, arithmetic: Arithmetic = "float64"
) -> Weights:
    """The weights of that network."""
    return assemble(network(net, *read, need=need, reuse=reuse), arithmetic=arithmetic)


def held(weights: Weights, some: Sequence[Word]) -> list[Floats]:
    """What the read spaces hold on each word: [1 + tokens, coordinates], the last BOS first."""
    return list(logits(weights, some))


def where(net: Builder) -> Space:
    """A space that tells positions apart: the token's number over T, and -1 at BOS. It shows where a head looked."""
    table = np.arange(1.0, net.max_length + 1)[:, None] / net.max_length
    return net.embed_position("where", Reals(("where",), -1.0, 1.0), table, pads=np.array([[-1.0]]))


def seen_at(net: Builder | Weights, word: Word) -> Floats:
    """What `where` holds at BOS and at the tokens of a word."""
    length = net.max_length if isinstance(net, Builder) else net.architecture.max_length
    return np.array([-1.0, *(np.arange(1, len(word) + 1) / length)])


def scores(weights: Weights, word: Word, block: int = 0, head: int = 0) -> Floats:
    """The head's scores q·k [query, key] before the temperature, from the arrays; one row and column per BOS pad."""
    q, k = _compared(weights, word, block, head)
    return q @ k.T


def magnitudes(weights: Weights, word: Word, block: int = 0, head: int = 0) -> Floats:
    """The same with absolute values: the sum of |query × key| over the features."""
    q, k = _compared(weights, word, block, head)
    return np.abs(q) @ np.abs(k).T


def _compared(weights: Weights, word: Word, block: int, head: int) -> tuple[Floats, Floats]:
    net, arrays = weights.architecture, weights.arrays
    x = trace(weights, [net.inputs[i] for i in word]).residual(2 * block)
    q = x @ arrays[f"blocks.{block}.attn.W_Q"][head] + arrays[f"blocks.{block}.attn.b_Q"][head]
    k = x @ arrays[f"blocks.{block}.attn.W_K"][head] + arrays[f"blocks.{block}.attn.b_K"][head]
    return q, k


Choice = Callable[[Word, int], Sequence[int]]  # the keys that query t of a word must choose; 0 is BOS


def smallest_lead(weights: Weights, some: Sequence[Word], choice: Choice, visible: Choice) -> float:
    """The smallest lead of the right keys over all other visible ones, over all words and queries."""
    best = np.inf
    pads = weights.architecture.pads
    for word in some:
        s = scores(weights, word)[pads - 1 :, pads - 1 :]
        for t in range(len(word) + 1):
            chosen = set(choice(word, t))
            others = [key for key in visible(word, t) if key not in chosen]
            if chosen and others:
                best = min(best, float(s[t, sorted(chosen)].min() - s[t, others].max()))
    return best


def check_choice(weights: Weights, some: Sequence[Word], choice: Choice) -> None:
    """A net that reads `where` through one head holds the mean over the chosen keys, within the proved error."""
    head = weights.labels.heads[0]
    error = weights.labels.space(head.writes).error
    for word, rows in zip(some, held(weights, some), strict=True):
        here = seen_at(weights, word)
        for t in range(len(word) + 1):
            keys = choice(word, t)
            expected = here[list(keys)].mean() if keys else 0.0
            assert abs(rows[t, 0] - expected) <= error + ROUNDING, (word, t)


def evaluate(
    spaces: Sequence[tuple[Kind, Floats]], gadget: Callable[..., Space | Sequence[Space]]
) -> tuple[Floats, Weights]:
    """Outputs [row, coordinates] of a gadget whose input spaces hold the given rows, and the net: one token per row."""
    rows = len(spaces[0][1])
    net = Builder("gadget", ("^", *(str(row) for row in range(rows))), rows)
    given = [
        net.embed(f"x{place}", kind, np.vstack([np.zeros(kind.size), table]))
        for place, (kind, table) in enumerate(spaces)
    ]
    out = gadget(net, *given)
    weights = built(net, *([out] if isinstance(out, Space) else out))
    return held(weights, [tuple(range(1, rows + 1))])[0][1:], weights
