r"""One layer, or a recurrence, needs a bit for each bit that it compares: equality, disjointness and brackets.

Statement: Let one attention layer with $H$ heads, value size $m$ and $p$ bits per number decide, at a symbol after
every word: (a) Are two words of $n$ symbols over $\Sigma$ equal? (b) Are two sets of $n$ elements disjoint? (c) Are $n$
pairs of brackets of two kinds balanced, at depth 1? Then $H(m+1)(p + \lceil\log_2 n\rceil)$ is at least
$n\log_2|\Sigma|$ for (a), and $n$ for (b) and (c). For (a) and (b) a recurrent network needs as many bits of state.
Why: One party knows the first word (or set, or all opening brackets) and sends her partial sums, or the state. If two
of her inputs had the same message, the network would give one answer where two are right. A layer does not see an
order of positions, so brackets that alternate between the parties are the same problem.
Checked: The protocol and the network give the same output, and the bits sent equal the formula, on all instances or 64,
of which every other tells two inputs apart. Layers with 54 to 84 % of the needed bits, for $n$ = 100 and 200, are built
to do as well as they can: they store what fits and add checksums of the rest, or have the sums from which inputs are
estimated with the least squared error. Two words with the same output and different answers are found for each, by
lattice reduction, and run again. On 200 random pairs that differ in few symbols their error is measured; it may be 0.
Random recurrences below the bound are refuted, too. Layers and recurrences that are right, for $n$ = 3, are not.
Not checked: All networks below the bound: the theorem covers them by counting. It is about deterministic networks that
are right on every word. Equality with a small error is cheap for two parties with random bits, and a layer with random
numbers errs on few words. Two layers of constant width do (a) and (b), a recurrence of constant size (c): that is
`equality_and_disjointness_take_two_layers` and `a_recurrent_net_generates_bounded_dyck_languages`.
Source: Bhattamishra, Hahn, Blunsom & Kanade 2024, arXiv 2406.09347 [A]; the protocol and its constants are ours.
Saboteur: A layer that stores all of the input takes the place of a small one, so that nothing can be refuted; the right
network's message loses the last bit of every number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

import numpy as np

from vitrify.arrays import Array, Ints
from vitrify.bounds.by_hand import (
    capacity,
    checked_digits,
    comparing_register,
    digits,
    fingerprint_layer,
    least_squares,
    overlap_layer,
)
from vitrify.bounds.games import Game, brackets_game, disjointness_game, equality_game
from vitrify.bounds.protocols import Cut, PartialSums
from vitrify.bounds.quantized_recurrent import random_recurrent
from vitrify.certification.evidence import Domain, Evidence, Method, Quantity
from vitrify.claims._figures import bits_sent, show
from vitrify.claims._protocols import check_game, sabotage_game, subject, summing, sums_formula
from vitrify.claims.catalogue import Claim, Subject, Subjects

Numbers = Callable[[Game, int, int], Ints]
KINDS: dict[str, Numbers] = {"checksums": checked_digits, "least squares": least_squares}
LAYERS = (  # game, value size, bits
    (equality_game(100), 2, 18),
    (equality_game(200), 4, 20),
    (equality_game(200), 5, 20),
    (equality_game(100, 4), 3, 20),
    (brackets_game(100), 2, 18),
    (brackets_game(200), 4, 20),
)
OVERLAPS = ((disjointness_game(100), 2, 18), (disjointness_game(200), 5, 20))
STATES = ((equality_game(12), 2, 3), (equality_game(8, 4), 3, 3), (disjointness_game(12), 2, 4))  # numbers, bits
RIGHT = (equality_game(3), equality_game(3, 3), disjointness_game(3), brackets_game(3))
PAIRS = 200  # random ones
MAX_DIFFERENCES = 4  # symbols in which a pair differs
SHARE = (0.5, 0.9)  # of the needed bits, in a contestant's message


def subjects() -> Subjects:
    for game, size, bits in LAYERS:
        stored = digits(game, ceil(game.size / capacity(game, bits, game.choices)), bits)
        for kind, numbers in KINDS.items():
            model = fingerprint_layer(game, numbers(game, size, bits), bits)
            right = PartialSums(fingerprint_layer(game, stored, bits), game)
            name = f"{kind}, {game.name} of {game.size} × {game.choices}, {size} values"
            yield subject(name, PartialSums(model, game), sums_formula(model, game.size), right=right)
    for game, size, bits in OVERLAPS:
        model, fits = overlap_layer(game, size, bits), capacity(game, bits, 3)
        name = f"stored elements, disjointness of {game.size}, {size} values"
        right = PartialSums(overlap_layer(game, ceil(game.size / fits), bits), game)
        yield subject(name, PartialSums(model, game), sums_formula(model, game.size), right=right)
    for game, size, bits in STATES:
        net = random_recurrent(game.symbols, "01", size=size, bits=bits, seed=game.size)
        name = f"random state, {game.name} of {game.size} × {game.choices}"
        yield subject(name, Cut(net, game), size * bits, right=Cut(comparing_register(game), game))
    for game in RIGHT:
        protocol, name = summing(game, 18), f"{game.name} of {game.size} × {game.choices}"
        yield subject(f"right layer, {name}", protocol, sums_formula(protocol.model, game.size), _says)
        if game.name != "brackets":
            state = Cut(comparing_register(game), game)
            yield subject(f"right state, {name}", state, (game.size + 2) * 3, _says)


def _says(output: Array) -> int:
    return int(np.argmax(output))


def check(subject: Subject) -> Evidence:
    """Compare protocol and network, refute it, and measure the error and the share of the bits of a contestant."""
    evidence, protocol = check_game(subject), subject.data["protocol"]
    if subject.data["says"] or not isinstance(protocol, PartialSums):
        return evidence
    share = protocol.bits / protocol.game.needed
    drawn = Domain("pairs that differ in few symbols", Method.SAMPLED, PAIRS)
    evidence = replace(evidence, cases=evidence.cases + PAIRS, domains=(*evidence.domains, drawn))
    return evidence.adding(
        Quantity("least share of the needed bits", share, SHARE[0], ">="),
        Quantity("largest share of the needed bits", share, SHARE[1], "<="),
        Quantity("error on random pairs", error(protocol)),
    )


def error(protocol: PartialSums) -> float:
    """Return the share of random pairs, half of them equal, on which a layer is wrong.

    Sets are compared with the complement instead.
    """
    game, rng, wrong = protocol.game, np.random.default_rng(1), 0
    for number in range(PAIRS):
        alice = rng.integers(0, game.choices, game.size)
        changed = rng.permutation(game.size)[: number % 2 * rng.integers(1, MAX_DIFFERENCES + 1)]
        bob = 1 - alice if game.name == "disjointness" else alice.copy()
        bob[changed] = (bob[changed] + 1) % game.choices
        word = game.words(alice, tuple(bob.tolist()))
        wrong += _says(protocol.direct(word)[0]) != game.truth(word[0].tolist())
    return wrong / PAIRS


FIGURE = show(bits_sent("of the layer or state"))
CLAIM = Claim(
    subjects,
    check,
    sabotage_game,
    id="B10",
    standing="theorem",
    uncertified="about what no net can do",
    budget_seconds=60,
    figure=FIGURE,
)
