r"""One head of $\lceil\log_2 N\rceil$ dimensions looks up an index, a recurrence needs a state of $N$ bits.

Statement: (a) For every $N \ge 3$, a transformer with one layer, one head of $\lceil\log_2 N\rceil$ dimensions, width
$2\lceil\log_2 N\rceil + 2$ and no units reads $N$ signs, then a position $i \le N$, and answers with the sign at $i$.
(b) A recurrent network that does it has at least $N$ bits of state, and $N$ suffice.
Why: (a) Positions are signs, and the product of two codes is largest where they are equal. (b) Two words of $N$ signs
with one state differ at some $i$, and the network can't know which is asked.
Checked: (a) $N$ = 16 to 4096, softmax, sparsemax and hard attention: every word and index, by the list of all scores
without rounding, and random words with 8 indices each (1,000 for $N$ = 16 and 100); sizes. (b) The protocol (the state
is sent after the signs) and the network give the same output, and the bits sent are the formula, on all instances or
64. Registers that store 50 to 90 % of the signs and guess the rest, $N$ = 20 to 80, are refuted by two words, found by
lattice reduction where random ones do not show them; a random recurrence is refuted, too. A register of exactly $N$
bits is right for $N$ = 7.
Not checked: (a) Other $N$. (b) All recurrences: the bound is by counting, for networks that never err. With symbols of
an alphabet $\Sigma$ instead of signs it is $N\log_2|\Sigma|$ bits.
Source: Bhattamishra, Hahn, Blunsom & Kanade 2024, arXiv 2406.09347 [A]; weights and protocol are our own derivation.
Saboteur: (a) The lowest bit of the positions is lost; (b) a register of $N$ bits takes the place of a smaller
recurrence, so that nothing can be refuted; the right one loses the last bit of every number of its message.
"""

from __future__ import annotations

import math

import numpy as np

from vitrify.bounds.by_hand import register
from vitrify.bounds.games import pointer_game
from vitrify.bounds.protocols import Cut
from vitrify.bounds.quantized_recurrent import random_recurrent
from vitrify.certification.evidence import Evidence
from vitrify.claims._figures import bits_sent, points, show
from vitrify.claims._nets import ATTENTIONS, Claim, Quantity, Subject, Subjects, built, check_net, zeroed
from vitrify.claims._protocols import check_game, sabotage_game, subject
from vitrify.claims.one_head_averages_over_every_set import proved
from vitrify.spec.tasks.pointer_averaging import PointerAveraging

LENGTHS = (16, 100, 256, 1024, 4096)
SAMPLES = {16: 1000, 100: 1000}  # random words; of other lengths, 4
STORED = ((20, 10), (40, 30), (80, 72))  # signs, and how many of them a register stores
QUERIES = 8  # of every word
RIGHT = 7  # signs
SHARE = (0.5, 0.9)  # of the needed bits, in a contestant's state


def subjects() -> Subjects:
    for number, length in enumerate(LENGTHS):
        attention = ATTENTIONS[number % len(ATTENTIONS)]
        task = PointerAveraging(length, 1, 1, QUERIES)
        yield built(f"(a) {length} positions, {attention}", task, "pointers-heads", attention=attention)
    for length, stored in STORED:
        game = pointer_game(length)
        short, full = Cut(register(game, stored), game), Cut(register(game), game)
        yield subject(f"(b) register of {stored} of {length} signs", short, stored, right=full)
    game = pointer_game(12)
    drawn = Cut(random_recurrent(game.symbols, "-+", size=3, bits=3, seed=12), game)
    yield subject("(b) random state, 12 signs", drawn, 9, right=Cut(register(game), game))
    game = pointer_game(RIGHT)
    right = Cut(register(game), game)
    yield subject(f"(b) register of all {RIGHT} signs", right, RIGHT, lambda output: "-+"[np.argmax(output)])


def check(subject: Subject) -> Evidence:
    """Prove a built net, and compare it with its formulas; or compare protocol and recurrence, and refute it."""
    if subject.weights is not None:
        bits = (subject.spec.positions - 1).bit_length()
        declared = {"d_head": bits, "d_model": 2 * bits + 2, "layers": 1, "heads": 1, "units": 0}
        evidence = check_net(subject, declared, samples=SAMPLES.get(subject.spec.positions, 4), work=1e6)
        return proved(evidence, subject) if evidence.verdict == "holds" else evidence
    evidence, protocol = check_game(subject), subject.data["protocol"]
    if subject.data["says"]:
        return evidence
    share = protocol.bits / protocol.game.needed
    return evidence.adding(
        Quantity("least share of the needed bits", share, SHARE[0], ">="),
        Quantity("largest share of the needed bits", share, SHARE[1], "<="),
    )


def sabotage(subject: Subject) -> Subject:
    """Zero the lowest bit of queries, or use the saboteur of protocols."""
    if subject.weights is None:
        return sabotage_game(subject)
    return zeroed(subject, "blocks.0.attn.W_Q", (0, slice(None), 0))


FIGURE = show(
    points(
        "{} positions",
        "d_head",
        "positions",
        "width of the head",
        "2x",
        joined=True,
        laws={"⌈log₂ N⌉": lambda N: math.ceil(math.log2(N))},
    ),
    bits_sent("of the state of a recurrence"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R39", standing="theorem", certified="proved", budget_seconds=30, figure=FIGURE
)
