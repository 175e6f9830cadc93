r"""Chains of thought under hard attention: letters of the prompt on which no thought depends.

A net that writes $s$ symbols runs $s$ times, each time on the prompt and what it has written. `blind_chain` restricts
the prompt step by step: it fixes letters, each where the next symbol may depend on it, until the analysis of `cone.py`
leaves one symbol only; then it appends this symbol and continues. Letters that are still free at the end are in no
cone: the net writes the same symbols whatever they are. A net that answers PARITY with its last symbol has none. In the
spirit of Amiri, Huang, Rofin & Hahn (2025, arXiv 2502.02393), whose theorem is about all nets; here it is one net.

One layer whose $H$ heads choose their keys by position reads $H$ letters at each step, and the last one of the prompt:
$Hs + 1$ in all. `parity_in_blocks` reaches that: it is right on words of $n$ letters with $s = \lceil (n-1)/H\rceil$.
With $d$ more layers, each of which doubles how many letters a position has added, it reads $H 2^d$ at each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

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
