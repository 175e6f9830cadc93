r"""One letter of $n$ moves the answer of a softmax transformer elsewhere by $O(1/n)$, so PARITY has no lasting margin.

Statement: for a transformer of fixed depth with softmax attention over all positions and bounded weights, replacing one
letter of a word of $n$ letters moves the logits at any other position by at most $C/n$. A net that recognises PARITY
must move them at every letter, so its right answer leads by at most $C/n$, and its cross-entropy tends to that of a
coin.
Why: with bounded scores each of $n$ keys has a weight of at most $e^{2B}/n$; a letter moves its own key and value by
$O(1)$ and all others by $O(1/n)$, layer after layer.
Checked: the bound is computed for the given weights, from boxes around all activations. For random nets of two layers
and the two-layer net that does PARITY, it is at least what letters at every place really do in random words, at lengths
8 to 128; and from 64 to 128 letters it falls by the power 1 of the length, within 0.1. For PARITY the lead is below it.
The bound is about nets whose scores stay bounded; sharp attention (a temperature that grows with $n$) escapes it.
Source: Hahn 2020, arXiv 1906.06755 [S]: the statement; the calculation here is our own, with masks, windows and each
coordinate on its own.
Saboteur: the bound is computed for a net whose heads write a thousandth of what they do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import exp, log, log1p
from typing import Any

import numpy as np

from vitrify.bounds.lipschitz import logit_moves, measured
from vitrify.bounds.random_nets import random_net
from vitrify.certify.evidence import Evidence
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.parity import lead, parity
from vitrify.kit import assemble
from vitrify.net.transformer import Head
from vitrify.net.weights import Weights
from vitrify.spec.automata import cyclic

LENGTHS = (8, 32, 64, 128)
SEEDS = (0, 3)
SCALE = 0.35  # of random weights. With larger scores the law sets in later: C is exponential in them
WORDS = 10
WITHIN = 0.1  # the power of n by which the bound falls is 1 up to this
ROUNDING = 1e-9
C = 1.0


def subjects() -> Iterator[Subject]:
    """Random nets, the same at every length, and the PARITY nets by length."""
    for seed in SEEDS:
        net = random_net(seed, Head("softmax", "none"), max_length=LENGTHS[-1], heads=2, positions=False, scale=SCALE)
        yield _subject(f"random {seed}", dict.fromkeys(LENGTHS, net))
    yield _subject("PARITY in two layers", {length: assemble(parity(cyclic(2), length, C)) for length in LENGTHS})


def _subject(name: str, nets: Mapping[int, Weights]) -> Subject:
    return Subject(name, weights=nets[LENGTHS[-1]], data={"nets": nets, "bounded": nets})


def check(subject: Subject) -> Evidence:
    """The bound against what letters do, and how it falls."""
    rng, cases = np.random.default_rng(0), 0
    bounds: dict[int, float] = {}
    numbers: dict[str, Any] = {}
    witness: dict[str, Any] | None = None
    for length, net in subject.data["nets"].items():
        allowed = logit_moves(subject.data["bounded"][length], length).max(axis=-1)
        words = rng.integers(1, 3, (WORDS, length))
        places = sorted({0, 1, length // 2, length - 2, length - 1})
        moved = {place: measured(net, words, place) for place in places}
        cases += 2 * WORDS * len(places)
        bounds[length] = float(allowed[:-1].max())
        largest = max(moved[place] for place in places if place < length - 1)
        numbers[f"n = {length}"] = f"bound {bounds[length]:.3g}, largest move found {largest:.3g}"
        over = [place for place in places if moved[place] > allowed[place] * (1 + ROUNDING) + ROUNDING]
        if over and witness is None:
            witness = {"letters": length, "place": over[0] + 1, "bound": allowed[over[0]], "found": moved[over[0]]}
    power = round(log(bounds[64] / bounds[128], 2), 3)
    declared: dict[str, Any] = {"bound falls like n^-": f"1 within {WITHIN}", "moves beyond the bound": 0}
    numbers |= {"bound falls like n^-": power, "moves beyond the bound": int(witness is not None)}
    if subject.name.startswith("PARITY"):
        declared["largest lead over the bound"] = "at most 1"
        numbers["largest lead over the bound"] = max(lead(n, C, k) / bounds[n] for n in LENGTHS for k in (0, 1))
        numbers["cross-entropy at n = 128, at least"] = log1p(exp(-bounds[128]))
        if numbers["largest lead over the bound"] > 1 and witness is None:
            witness = {"found": "the answer leads by more than one letter can move it"}
    if abs(power - 1) > WITHIN and witness is None:
        witness = {"declared": "the bound falls like 1/n", "found": f"the power {power}"}
    return Evidence(
        verdict="fails" if witness else "holds",
        method="proved+sampled",
        domain=f"{WORDS} random words of {', '.join(map(str, LENGTHS))} letters, five places each",
        cases=cases,
        witness=witness,
        declared=declared,
        measured=numbers,
        seed=0,
        notes=("a rate: the constant depends on the weights, and is exponential in the size of the scores",),
    )


def sabotage(subject: Subject) -> Subject:
    """The bound is that of a net whose heads write next to nothing."""
    quiet = {length: _quiet(net) for length, net in subject.data["nets"].items()}
    return replace(subject, data={**subject.data, "bounded": quiet})


def _quiet(net: Weights) -> Weights:
    for name in [name for name in net.arrays if name.endswith("attn.W_O")]:
        net = net.with_array(name, net.arrays[name] / 1000)
    return net


CLAIM = Claim(row="B7", status="proved", subjects=subjects, check=check, sabotage=sabotage)
