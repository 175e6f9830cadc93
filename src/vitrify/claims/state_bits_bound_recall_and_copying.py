r"""A recurrent network recalls or copies no more than the bits of its state hold.

Statement: A recurrent network that recalls the value of any of $P$ keys, with $V$ values each, has at least $P\log_2 V$
bits of state. One that copies all strings of length $L$ over $D$ letters has at least $L\log_2 D$ bits. One with $b$
bits copies at most $2^b$ of the $D^L$ strings.
Why: Between what is read and what is queried the state is all there is; sending it is sending everything.
Checked: The protocol (Alice reads the first part and sends the state, Bob continues) and the network give the same
output, and bits sent equal the size of the state, for random recurrent networks below the bound, a built linear
recurrence and hand-written registers, states rounded to a few bits per coordinate. For states below the bound two
inputs with the same output and different answers are found and run again. A register that copies with exactly $L\log_2
D$ bits is right. The share of all strings that small random networks copy is at most $2^b/D^L$.
Not checked: All recurrent networks: the bound is by counting. Sizes are small: 4 to 16 pairs, 5 to 7 letters. The
papers' average-case versions and their experiments with trained models are not part of this claim.
Source: Arora et al. 2023, arXiv 2312.04927 [S]; Jelassi et al. 2024, arXiv 2402.01032 [S]; the constants are counting.
Saboteur: A register takes the place of a small network, so no such two inputs exist; registers' states lose the last
bit of every number.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.bounds.by_hand import register
from vitrify.bounds.games import Game, copy_game, recall_game
from vitrify.bounds.protocols import Cut
from vitrify.bounds.quantized_recurrent import quantize_recurrent, random_recurrent
from vitrify.certification.evidence import Domain, Evidence, Method, Quantity
from vitrify.claims._figures import bits_sent, show
from vitrify.claims._protocols import check_game, sabotage_game, subject
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.catalogue import build
from vitrify.spec.languages.word_patterns import waking_up

RECALL = ((6, 2, 1, 4), (9, 3, 2, 5), (16, 2, 3, 4))  # pairs, values, numbers of the state, bits of each
COPY = ((7, 2, 2, 3), (5, 3, 2, 3))  # letters of a string, different letters, numbers of the state, bits of each
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def recall(pairs: int, values: int) -> Game:
    """Recall with letters for keys and digits for values."""
    return recall_game(LETTERS[:pairs], [str(value) for value in range(values)])


def subjects() -> Subjects:
    for pairs, values, size, bits in RECALL:
        game = recall(pairs, values)
        net = random_recurrent(game.symbols, game.symbols[pairs:], size=size, bits=bits, seed=pairs)
        yield subject(f"recall, {pairs} pairs, random", Cut(net, game), size * bits, right=Cut(register(game), game))
    for length, letters, size, bits in COPY:
        game = copy_game(length, LETTERS[:letters], "|")
        net = random_recurrent(game.symbols, game.symbols[:-1], size=size, bits=bits, seed=length)
        name = f"copying {length} letters, random"
        yield subject(name, Cut(net, game), size * bits, right=Cut(register(game), game))
    register_net = build(waking_up(8), "register")
    words = register_net.architecture.inputs[1:]
    game = recall_game(words[2:18], words[:2])
    built = quantize_recurrent(register_net, game.symbols, 2)
    bits = 2 * register_net.architecture.width
    yield subject("recall, 16 pairs, built", Cut(built, game), bits, right=Cut(register(game), game))
    game = recall(4, 3)
    yield subject("recall, 4 pairs, register", Cut(register(game), game), 5 * 3, lambda out: str(np.argmax(out)))
    game = copy_game(6, "ab", "|")
    yield subject("copying 6 letters, register", Cut(register(game), game), 6, lambda out: tuple("ab"[x] for x in out))


def check(subject: Subject) -> Evidence:
    evidence, protocol = check_game(subject), subject.data["protocol"]
    game = protocol.game
    if not game.repeats or subject.data["says"]:
        return evidence
    strings = game.numbered(0, game.inputs)
    copied = int((np.asarray(protocol.direct(game.words(strings, None))) == strings).all(axis=1).sum())
    most = min(game.inputs, 2**protocol.bits)
    every = Domain("strings to copy", Method.EXHAUSTIVE, game.inputs)
    evidence = replace(evidence, cases=evidence.cases + game.inputs, domains=(*evidence.domains, every))
    return evidence.adding(Quantity("copied", copied, most, "<="))


FIGURE = show(bits_sent("of the state"))
CLAIM = Claim(
    subjects, check, sabotage_game, id="B5", standing="theorem", uncertified="about what no net can do", figure=FIGURE
)
