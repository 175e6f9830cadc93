r"""One letter of $n$ moves the output of a softmax transformer at other positions by $O(1/n)$.

Statement: For every transformer of fixed depth with softmax attention over all positions and bounded weights there is a
constant $C$ such that replacing one letter of a word of $n$ letters moves the logits at any other position by at most
$C/n$. So a network that recognizes PARITY has a margin of at most $C/n$, and its cross-entropy tends to that of a coin.
Why: With scores bounded by $B$ each of $n$ keys has weight at most $e^{2B}/n$. A letter moves its own key and value by
$O(1)$ and all others by $O(1/n)$, layer after layer.
Checked: The bound is computed for given weights by intervals for all activations, for two random two-layer nets and
the two-layer PARITY net. At $n$ = 8, 32, 64, 128 it is at least the largest move measured on 10 random words, with the
letter at five positions. From 64 to 128 letters it falls like $n^{-a}$ with $a$ within 0.1 of 1. The margin of the
PARITY net is below it.
Not checked: The asymptotic statement for all $n$ and all networks; the proof is cited. The bound assumes bounded
scores: attention whose inverse temperature grows with $n$ escapes it. The constant is exponential in the scores.
Source: Hahn 2020, arXiv 1906.06755 [S]; the calculation, with masks, windows and one bound per coordinate, is our own.
Saboteur: The bound is computed for a net whose head outputs are divided by 1000.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log, log1p

import numpy as np

from vitrify.bounds.lipschitz import logit_moves, measured
from vitrify.bounds.random_nets import random_net
from vitrify.claims._figures import curves, show
from vitrify.claims._nets import CaseKind, Domain, Evidence, Method, Quantity, divided, witnessed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.parity import margin, parity
from vitrify.kit import assemble
from vitrify.net.transformer import Head
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic

LENGTHS = (8, 32, 64, 128)
SEEDS = (0, 3)
SCALE = 0.35  # of random weights. With larger scores the law sets in later: C is exponential in them
WORDS = 10
WITHIN = 0.1  # the power of n by which the bound falls is 1 up to this
ROUNDING = 1e-9
C = 1.0


def subjects() -> Subjects:
    for seed in SEEDS:
        net = random_net(seed, Head("softmax", "none"), max_length=LENGTHS[-1], heads=2, positions=False, scale=SCALE)
        yield _subject(f"random {seed}", dict.fromkeys(LENGTHS, net))
    nets = {length: assemble(parity(cyclic(2), C, max_length=length)) for length in LENGTHS}
    yield _subject("PARITY in two layers", nets)


def _subject(name: str, nets: Mapping[int, Weights]) -> Subject:
    return Subject(name, weights=nets[LENGTHS[-1]], data={"nets": nets, "bounded": nets})


def check(subject: Subject) -> Evidence:
    rng, cases = np.random.default_rng(0), 0
    bounds: dict[int, float] = {}
    criteria: list[Quantity] = []
    witness: dict[str, object] | None = None
    for length, net in subject.data["nets"].items():
        allowed = logit_moves(subject.data["bounded"][length], length).max(axis=-1)
        words = rng.integers(1, 3, (WORDS, length))
        positions = sorted({0, 1, length // 2, length - 2, length - 1})
        moved = {position: measured(net, words, position) for position in positions}
        cases += 2 * WORDS * len(positions)
        bounds[length] = float(allowed[:-1].max())
        largest = max(moved[position] for position in positions if position < length - 1)
        criteria.append(Quantity(f"n = {length}", {"bound": bounds[length], "largest move": largest}))
        over = [position for position in positions if moved[position] > allowed[position] * (1 + ROUNDING) + ROUNDING]
        if over and witness is None:
            witness = {"letters": length, "position": over[0] + 1, "bound": allowed[over[0]], "actual": moved[over[0]]}
    power = round(log(bounds[64] / bounds[128], 2), 3)
    criteria += [
        Quantity("moves beyond the bound", int(witness is not None), 0, "="),
        Quantity("power of 1/n with which the bound falls", power),
        Quantity("distance of that power from 1", round(abs(power - 1), 3), WITHIN, "<="),
    ]
    if subject.name.startswith("PARITY"):
        share = max(margin(n, C, k) / bounds[n] for n in LENGTHS for k in (0, 1))
        criteria.append(Quantity("largest margin over the bound", share, 1, "<="))
        criteria.append(Quantity("cross-entropy at n = 128, at least", log1p(exp(-bounds[128]))))
    lengths = {"lengths": LENGTHS, "positions in each word": 5}
    domains = (
        Domain(kind, method, count, min(LENGTHS), max(LENGTHS), settings=lengths)
        for kind, method, count in (
            (CaseKind.WORDS, Method.PROVED, None),
            (CaseKind.RANDOM_WORDS, Method.SAMPLED, WORDS * len(LENGTHS)),
        )
    )
    notes = ("a rate: the constant depends on the weights, and is exponential in the size of the scores",)
    return witnessed(witness, cases, *domains, seed=0, notes=notes).adding(*criteria)


def sabotage(subject: Subject) -> Subject:
    quiet = {length: divided(net, "attn.W_O", 1000) for length, net in subject.data["nets"].items()}
    return subject.with_data(bounded=quiet)


FIGURE = show(
    curves(
        "n = {}",
        {"bound": "bound", "largest move found": "largest move"},
        "length n",
        "how far one letter moves the logits",
        "2xy",
        laws={"1/n": lambda n: 1 / n},
    )
)
CLAIM = Claim(
    subjects, check, sabotage, id="B7", standing="theorem", uncertified="about what no net can do", figure=FIGURE
)
