r"""Any finite automaton runs on one attention layer applied $\lceil\log_2 T\rceil$ times, at a fixed temperature.

Statement: For every automaton with $n = \lvert Q\rvert$ states there is one transformer layer with one head, width $2n
+ 3$ and at most $2n^2 + 3$ units which, applied $\lceil\log_2 T\rceil$ times (at least once), gives the state after
every letter of every word of at most $T$ letters, exactly. Weights and temperature are the same for every $T$; position
$t$ is given as $(t, t^2)$.
Why: Letters are maps of the states and composition is associative. Position $t$ composes its map with that at $t - s$,
and doubles $s$. A key that is $\delta$ positions away from $t - s$ scores $\delta^2$ less, so the softmax weight of all
wrong keys together is below $2e^{-\beta} / (1 - e^{-3\beta})$, however many there are.
Checked: Automata with permutations, resets and both ($S_5$ and $A_5$ on 5 points, divisibility by 7, a corridor times
$S_3$, a flip-flop times a counter modulo 3) at $T = 100$, the three kinds of attention in turn: all words to length 5
and random words of length 100. $S_5$ at $T = 10$, and on four random words at $T = 1000$. For each of these nets both
links are proved, for all words to its $T$. Stored blocks, rounds, heads, width and units are compared with the
formulas, and the weights with those of the same automaton for $T = 10, 100, 1000$: all arrays are equal, byte by byte,
and shorter tables of positions are the beginnings of longer ones.
Not checked: $T > 1000$. In floating point no weight set is right at every length: the gap of 1 is proved to exceed the
rounding of scores up to $T = 724$ in float32 and $2^{24}$ in float64. That depth $\Omega(\log T)$ is needed is
conditional on $\mathrm{TC}^0 \ne \mathrm{NC}^1$, and not part of this claim. The abstract of the paper states depth
$\Theta(\log T)$ for all regular languages by universal transformers; its constants were not read.
Source: Merrill & Sabharwal 2025, arXiv 2503.03961 [A]; the weights are our own derivation.
Saboteur: The layer is applied one time fewer.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from vitrify.certification.checking import with_proof
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.evidence import tested_links
from vitrify.claims._figures import bars, declared, points, show
from vitrify.claims._nets import (
    CaseKind,
    Claim,
    Domain,
    Evidence,
    Method,
    Subject,
    Subjects,
    Weights,
    built,
    check_net,
    in_turn,
    sized,
    witnessed,
)
from vitrify.claims.one_layer_in_a_loop_decides_connectivity import sabotage
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_logits, with_pads
from vitrify.spec.automata.families import (
    alternating_group,
    cyclic,
    divisibility,
    flip_flop,
    gridworld,
    product,
    symmetric_group,
)

LENGTHS = (10, 100, 1000)
SAMPLES = {10: 1000, 100: 200, 1000: 4}  # random words for each automaton, of each length
WORK = 1e7  # multiplications spent on words that exercise single weights
POSITIONS = "pos_embed.W_pos"


def subjects() -> Subjects:
    """Automata that never forget their first letter, so that a word tells whether enough of it was read."""
    machines = {
        "S5 on 5 points": symmetric_group(5),
        "A5 on 5 points": alternating_group(5),
        "divisibility by 7 in binary": divisibility(7),
        "corridor of 3 × S3": product(gridworld(3), symmetric_group(3)),
        "flip-flop × counter modulo 3": product(flip_flop(), cyclic(3)),
    }
    yield from in_turn(machines, "looped", ("softmax", "hard", "sparsemax"), max_length=100)
    for length in (10, 1000):
        yield built(f"S5 on 5 points, length {length}", symmetric_group(5), "looped", max_length=length)


def check(subject: Subject) -> Evidence:
    net = subject.weights.architecture
    attention = net.blocks[0].heads[0].attention
    others = [build(subject.spec, "looped", attention=attention, max_length=length) for length in LENGTHS]
    same = "weights equal those for T = 10, 100, 1000"
    declared = {"blocks stored": 1, "rounds": max(1, (net.max_length - 1).bit_length()), same: True}
    measured = {"blocks stored": len(net.blocks), "rounds": net.loops}
    measured[same] = all(_alike(subject.weights, other) for other in others)
    if net.max_length <= 100:
        return check_net(subject, declared, measured, max_length=5, samples=SAMPLES[net.max_length], work=WORK)
    return _on_long_words(subject).adding(*sized(subject, declared, measured))


def _on_long_words(subject: Subject) -> Evidence:
    """Return the check of some random words of the greatest length, and the proofs of both links."""
    weights, net = subject.weights, subject.weights.architecture
    questions, count = WordCheck(net, subject.spec), SAMPLES[net.max_length]
    words = np.random.default_rng(0).integers(1, len(net.inputs), size=(count, net.max_length))
    logits = batch_logits(weights, with_pads(net, words))
    wrong = questions.oracle.errors(words, logits).max(axis=1) > questions.oracle.tolerance()
    first = int(wrong.argmax())
    witness = questions.oracle.witness(words[first], logits[first]) if wrong.any() else None
    domain = Domain(CaseKind.RANDOM_WORDS, Method.SAMPLED, count, net.max_length, net.max_length)
    evidence = replace(witnessed(witness, count * net.positions, domain, seed=0), links=tested_links((domain,)))
    evidence = evidence if witness else with_proof(evidence, weights, questions)
    return replace(evidence, checked=(weights, subject.spec, evidence))


def _alike(one: Weights, other: Weights) -> bool:
    """Return whether two nets have the same arrays, as far as both know a position."""
    rows = min(len(weights.arrays[POSITIONS]) for weights in (one, other))
    first, second = ({**w.arrays, POSITIONS: w.arrays[POSITIONS][:rows]} for w in (one, other))
    return all(array.tobytes() == second[name].tobytes() for name, array in first.items())


FIGURE = show(
    points(
        lambda name, _: float(name.rpartition("length ")[2]) if "length" in name else 100,
        "rounds",
        "length T",
        "rounds of the one layer",
        "2x",
        laws={"⌈log₂ T⌉": lambda T: math.ceil(math.log2(T))},
    ),
    bars({"units used": "units", "declared": declared("units")}, "units"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R34", standing="theorem", certified="proved", budget_seconds=15, figure=FIGURE
)
