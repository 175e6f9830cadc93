r"""Chains of thought under hard attention: letters of the prompt on which no thought depends.

A net that writes $s$ symbols runs $s$ times, each time on the prompt and what it has written. `blind_chain` restricts
the prompt step by step: it fixes letters, each where the next symbol may depend on it, until the analysis of `cone.py`
leaves one symbol only; then it appends this symbol and continues. Letters that are still free at the end are in no
cone: the net writes the same symbols whatever they are. A net that answers PARITY with its last symbol has none. In the
spirit of Amiri, Huang, Rofin & Hahn (2025, arXiv 2502.02393), whose theorem is about all nets; here it is one net.

One layer whose $H$ heads choose their keys by position reads $H$ letters at each step, and the last one of the prompt:
$Hs + 1$ in all. `parity_in_blocks` reaches that: it is right on words of $n$ letters with $s = \lceil (n-1)/H\rceil$.
With $d$ more layers, each of which doubles how many letters a position has added, it reads $H 2^d$ at each step.
`trained_parity` learns the last MLP of such a net and its unembedding by gradient descent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from vitrify.arrays import Bools, Floats
from vitrify.bounds.activations import ExactNet
from vitrify.bounds.cone import Restriction, cone
from vitrify.errors import InputError
from vitrify.kit.assembly import assemble
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.network import Affine, Builder, Flag, Integers, Output, Readout, Space
from vitrify.net.generate import generate
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

BITS = ("0", "1")
TRAINING_STEPS, RATE, MAX_LOGIT = 1000, 0.03, 50.0  # of Adam on all cases
MAX_SEEDS = 20
SAME = 1e-9  # spread of an input that is constant
PER_UNIT = 1 << 12  # trained weights are multiples of 1 / 4096, so that exact arithmetic is quick


@dataclass(frozen=True)
class BlindChain:
    """Fixed letters of a prompt, free positions on which no thought depends, and the thoughts.

    `fixed_by_step` is the number of letters that were fixed when each thought was determined.
    """

    fixed: Restriction
    free: frozenset[int]
    thoughts: tuple[str, ...]
    fixed_by_step: tuple[int, ...]


def blind_chain(exact: ExactNet, length: int, thoughts: int, alphabet: Sequence[str] = BITS) -> BlindChain | None:
    """Return letters that determine all thoughts after prompts of one length; None if they are all letters.

    Prompts are words over an alphabet. Each letter that is fixed is the one that leaves the smallest cone.
    """
    ids = exact.net.input_ids
    letters = [ids[letter] for letter in alphabet]
    fixed: dict[int, int] = {}
    written: list[str] = []
    by_step = []
    for at in range(length, length + thoughts):
        known = {length + number: ids[symbol] for number, symbol in enumerate(written)}
        seen = cone(exact, at, fixed | known, letters)
        while len(seen.answers) > 1:
            candidates = [
                cone(exact, at, {**seen.fixed, position: letter}, letters)
                for position in sorted(seen.depends)
                for letter in letters
            ]
            seen = min(candidates, key=lambda candidate: (len(candidate.answers), len(candidate.depends)))
        fixed = {position: letter for position, letter in seen.fixed.items() if position < length}
        (thought,) = map(str, seen.answers)
        written.append(thought)
        by_step.append(len(fixed))
        if thought not in ids:
            if at + 1 < length + thoughts:
                raise InputError(f"the net stops after {len(written)} thoughts, with {thought!r}: ask for so many")
            break
    free = frozenset(range(length)) - set(fixed)
    return BlindChain(fixed, free, tuple(written), tuple(by_step)) if free else None


def positions_read(weights: Weights[Transformer], prompt: Sequence[str], thoughts: int) -> frozenset[int]:
    """Return the positions of a prompt, from 0, that heads attend to while a net writes, and its last one."""
    net = weights.architecture
    (text,) = generate(weights, [prompt], thoughts)
    ids = [0] * net.pads + [net.input_ids[symbol] for symbol in (*prompt, *text.symbols[:-1])]
    seen: dict[str, np.ndarray] = {}
    net.forward(weights.prepared, np.array([ids]), record=seen.__setitem__)
    patterns = [pattern[0] for name, pattern in seen.items() if name.endswith("hook_pattern")]  # [head, query, key]
    keys = [np.argwhere(pattern[:, net.pads + len(prompt) - 1 :])[:, 2] - net.pads for pattern in patterns]
    read = {len(prompt) - 1, *np.concatenate(keys).tolist()}
    return frozenset(position for position in read if 0 <= position < len(prompt))


def parity_in_blocks(length: int, heads: int, doublings: int = 0) -> tuple[Weights[Transformer], int]:
    r"""Return a net for PARITY of words of one length, and how many thoughts it takes.

    Each thought adds $H$ blocks of $2^d$ letters, whose ends are addresses that its position holds, to the thought
    before it; the first adds them to the last letter. Where no letter is left, heads read BOS, which is 0.
    """
    block = 2**doublings
    thoughts = ceil((length - 1) / (heads * block))
    longest = length + thoughts - 1
    net = Builder(f"PARITY of {length} letters by {heads} heads", ("<s>", *BITS), longest, "hard")
    bit = summed = net.embed("bit", Flag(), np.array([[0.0], [0.0], [1.0]]))
    for doubling in range(doublings):
        writes = Space(f"sum {2**doubling} back", Flag())
        older = at_position(net, earlier(net, 2**doubling), Affine.copy(summed), writes)
        summed = _parity(net, [summed, older], f"parity of {2 * 2**doubling} letters")
    addresses = np.zeros((longest, heads))
    ends = np.maximum(length - 1.0 - block * np.arange(thoughts * heads), 0.0)
    addresses[length - 1 :] = ends.reshape(thoughts, heads)
    kind = Integers(tuple(f"address {head + 1}" for head in range(heads)), 0.0, float(length))
    address, columns = net.embed_position("addresses", kind, addresses), np.eye(heads)
    read = [
        at_position(net, Affine.of({address: columns[:, [h]]}), Affine.copy(summed), Space(f"block {h + 1}", Flag()))
        for h in range(heads)
    ]
    parity = _parity(net, [bit, *read], "parity so far")
    readout = Readout(((parity, np.array([[0.0, 1.0]])),), np.array([0.5, 0.0]), {parity: 0.25})
    return assemble(net.network(Output("class", BITS), readout, reuse=False)), thoughts


def _parity(net: Builder, bits: Sequence[Space], name: str) -> Space:
    """Return the parity of some flags, by a piecewise linear function of their sum."""
    counts = np.arange(len(bits) + 1.0)
    total = Affine.of({space: [[1.0]] for space in bits})
    return steps(net, total, counts, [(Space(name, Flag()), counts[:, None] % 2)], name=f"table: {name}")[0]


def trained_parity(length: int, heads: int, doublings: int = 0) -> tuple[Weights[Transformer], int]:
    """Return the net of `parity_in_blocks` with a last MLP and an unembedding that are trained from random weights.

    Seeds are tried in turn until the net is right on every word, if it may write all its thoughts.
    """
    net, thoughts = parity_in_blocks(length, heads, doublings)
    architecture, block = net.architecture, f"blocks.{len(net.architecture.blocks) - 1}"
    prompts = [tuple(BITS[bit] for bit in word) for word in np.indices((2,) * length).reshape(length, -1).T.tolist()]
    right = [text.symbols for text in generate(net, prompts, thoughts)]
    ids = architecture.input_ids
    tokens = [[0] * architecture.pads + [ids[x] for x in (*p, *t[:-1])] for p, t in zip(prompts, right, strict=True)]
    seen: dict[str, Floats] = {}
    architecture.forward(net.prepared, np.array(tokens), record=seen.__setitem__)
    inputs = seen[f"{block}.hook_resid_mid"][:, -thoughts:].reshape(len(prompts) * thoughts, -1)
    targets = np.array([[symbol == BITS[1] for symbol in symbols] for symbols in right]).ravel()
    names = [f"{block}.mlp.{name}" for name in ("W_in", "b_in", "W_out", "b_out")] + ["unembed.W_U", "unembed.b_U"]
    for seed in range(MAX_SEEDS):
        trained = net
        for name, array in zip(names, _fitted(inputs, targets, len(net.arrays[names[1]]), seed), strict=True):
            trained = trained.with_array(name, np.round(array * PER_UNIT) / PER_UNIT)
        if [text.symbols for text in generate(trained, prompts, thoughts)] == right:
            return trained, thoughts
    raise InputError(f"no net of {MAX_SEEDS} learns PARITY of {length} letters by {heads} heads: take fewer letters")


def _fitted(inputs: Floats, targets: Bools, units: int, seed: int) -> list[Floats]:
    """Return an MLP and an unembedding trained by Adam on the cross-entropy of all cases, from random weights.

    Each dimension of the inputs is divided by its spread, which the weights then hold.
    """
    rng, width = np.random.default_rng(seed), inputs.shape[1]
    spread = np.where(inputs.std(axis=0) < SAME, 1.0, inputs.std(axis=0))
    x = inputs / spread
    shapes = ((width, units), (units,), (units, width), (width,), (width, 2), (2,))
    arrays = [rng.normal(size=shape) / 2 for shape in shapes]
    first, second = [np.zeros(shape) for shape in shapes], [np.zeros(shape) for shape in shapes]
    for step in range(1, TRAINING_STEPS + 1):
        w_in, b_in, w_out, b_out, w_u, b_u = arrays
        hidden = np.maximum(x @ w_in + b_in, 0.0)
        y = x + hidden @ w_out + b_out
        odd = 1 / (1 + np.exp(-np.clip((y @ w_u + b_u) @ (-1.0, 1.0), -MAX_LOGIT, MAX_LOGIT)))
        to_logits = ((odd - targets) / len(x))[:, None] * (-1.0, 1.0)
        to_y = to_logits @ w_u.T
        to_units = (to_y @ w_out.T) * (hidden > 0)
        slopes = [x.T @ to_units, to_units.sum(0), hidden.T @ to_y, to_y.sum(0), y.T @ to_logits, to_logits.sum(0)]
        first = [0.9 * m + 0.1 * slope for m, slope in zip(first, slopes, strict=True)]
        second = [0.999 * v + 0.001 * slope**2 for v, slope in zip(second, slopes, strict=True)]
        rate = RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        arrays = [a - rate * m / (np.sqrt(v) + 1e-8) for a, m, v in zip(arrays, first, second, strict=True)]
    w_in, b_in, w_out, b_out, w_u, b_u = arrays
    return [w_in / spread[:, None], b_in, w_out * spread, b_out * spread, w_u / spread[:, None], b_u]
