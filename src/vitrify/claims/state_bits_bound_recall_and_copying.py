r"""What a recurrent net recalls or copies has to fit the bits of its state.

Statement: a recurrent net that recalls the value of any of $P$ keys, one of $V$, has a state of at least $P\log_2 V$
bits; one that copies all strings of $L$ letters out of $D$ has $L\log_2 D$; and one with a state of $b$ bits copies at
most $2^b$ of the $D^L$ strings.
Why: between what is read and what is asked the state is all there is: who sends it has told everything.
Checked: random recurrent nets, a built linear recurrence, and registers by hand, their states rounded to some bits per
coordinate: the output of the protocol (Alice reads the first part and sends the state, Bob goes on) against that of the
net on instances, bits sent against the size of the state; two inputs with one output and different answers for states
below the bound, run once more; registers are right, one that copies with exactly $L\log_2 D$ bits; the share of all
strings that small random nets copy, against $2^b/D^L$.
Source: Arora et al. 2023, arXiv 2312.04927 [S]; Jelassi et al. 2024, arXiv 2402.01032 [S]; the figures are counting.
Saboteur: in place of a small net a register, which is not refuted; of the registers' states every number loses its last
bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vitrify.bounds.games import Game, copy_game, recall_game
from vitrify.bounds.protocols import Cut
from vitrify.bounds.quantised_recurrent import quantise_recurrent, random_recurrent
from vitrify.bounds.right import register
from vitrify.certify.evidence import Evidence
from vitrify.claims._protocols import check_game, sabotage_game, subject
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.catalogue import build
from vitrify.spec.word_languages import waking_up

RECALL = ((6, 2, 1, 4), (9, 3, 2, 5), (16, 2, 3, 4))  # pairs, values, numbers of the state, bits of each
COPY = ((7, 2, 2, 3), (5, 3, 2, 3))  # letters of a string, different letters, numbers of the state, bits of each
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def recall(pairs: int, values: int) -> Game:
    """Recall with letters for keys and digits for values."""
    return recall_game(LETTERS[:pairs], [str(value) for value in range(values)])


def subjects() -> Iterator[Subject]:
    """Recall and copying, with states that are too small and with registers."""
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
    built = quantise_recurrent(register_net, game.symbols, 2)
    bits = 2 * register_net.architecture.width
    yield subject("recall, 16 pairs, built", Cut(built, game), bits, right=Cut(register(game), game))
    game = recall(4, 3)
    yield subject("recall, 4 pairs, register", Cut(register(game), game), 5 * 3, lambda out: str(np.argmax(out)))
    game = copy_game(6, "ab", "|")
    yield subject("copying 6 letters, register", Cut(register(game), game), 6, lambda out: tuple("ab"[x] for x in out))


def check(subject: Subject) -> Evidence:
    """The protocol; of small nets that copy, also how many strings they copy."""
    evidence, protocol = check_game(subject), subject.data["protocol"]
    game = protocol.game
    if not game.repeats or subject.data["says"]:
        return evidence
    strings = game.numbered(0, game.inputs)
    copied = int((np.asarray(protocol.direct(game.words(strings, None))) == strings).all(axis=1).sum())
    most = min(game.inputs, 2**protocol.bits)
    found = replace(evidence, cases=evidence.cases + game.inputs)
    found = replace(found, measured={**found.measured, "copied": copied, "copied at most": most})
    if copied > most:
        return replace(found, verdict="fails", witness={"copied": copied, "of": game.inputs, "at most": most})
    return found


CLAIM = Claim(row="B5", status="proved", subjects=subjects, check=check, sabotage=sabotage_game)
