"""Shared checks of claims about protocols: outputs, bits sent, and refutations of networks below the bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from vitrify.arrays import Array, Ints
from vitrify.bounds.by_hand import gathering_layer
from vitrify.bounds.games import Game, Label, Question
from vitrify.bounds.protocols import Message, PartialSums, TwoParty, play
from vitrify.bounds.quantized import OneLayer, random_layer
from vitrify.bounds.refute import Refutation, refute
from vitrify.certification.evidence import Domain, Evidence, Method, quantities
from vitrify.claims._nets import witnessed
from vitrify.claims.catalogue import Subject, Subjects

ALL = 256  # instances, if there are no more; else SOME
SOME = 64
TRIES = 1024  # inputs that a refuter may try: more than enough for the small nets here
SUBSETS = 64  # and subsets by lattice reduction, for the large ones

Sizes = tuple[int, int, int, int, int]  # Alice's positions; heads; numbers of a value and of a query; their bits
Says = Callable[[Array], Label]  # an output -> the answer that it is


def sums_formula(model: OneLayer, count: int) -> int:
    r"""Return $H(m+1)(p + \lceil\log_2 n\rceil)$, from the sizes of a layer and the number of Alice's positions."""
    return model.heads * (model.value_size + 1) * (model.bits + int(count - 1).bit_length())


def subject(
    name: str, protocol: TwoParty, bits: int, says: Says | None = None, right: TwoParty | None = None
) -> Subject:
    """A net on a game: one that must win it, if `says` reads its outputs, or else one that must be refuted.

    `bits` is the formula. `right` is a protocol that wins the game: what the saboteur puts in a small net's place.
    """
    return Subject(name, weights=None, data={"protocol": protocol, "bits": bits, "says": says, "right": right})


def layers(
    make: Callable[[int], Game], small: Sequence[Sizes], right: Sequence[int], name: str, says: Says, sure: int
) -> Subjects:
    """Random layers below the bound, each beside one of `sure` bits that is right, and layers that are right."""
    for count, heads, value, query, bits in small:
        game = make(count)
        shape = {"heads": heads, "value_size": value, "query_size": query}
        model = random_layer(game.symbols, game.length, bits=bits, ask=game.ask, seed=count, **shape)
        formula = sums_formula(model, count)
        yield subject(f"random, {name.format(count)}", PartialSums(model, game), formula, right=summing(game, sure))
    for count in right:
        protocol = summing(make(count), 16)
        yield subject(f"right, {name.format(count)}", protocol, sums_formula(protocol.model, count), says)


def summing(game: Game, bits: int) -> PartialSums:
    """Return the protocol of a layer that wins a game."""
    return PartialSums(gathering_layer(game, bits), game)


def check_game(subject: Subject) -> Evidence:
    """Compare protocol and net, and bits with the formula; then check the answers, or refute the net."""
    protocol: TwoParty = subject.data["protocol"]
    game, says = protocol.game, subject.data["says"]
    cases, sent, witness = 0, set[int](), None
    for alice, bob in instances(game):
        run = play(protocol, alice, bob)
        word = game.words(alice, bob)
        alone = np.asarray(protocol.direct(word))[0]
        cases, sent = cases + 1, sent | {run.bits}
        if not np.array_equal(run.output, alone):
            witness = {"input": " ".join(game.spell(word[0])), "two parties": str(run.output), "the net": str(alone)}
            break
        truth = game.truth(word[0].tolist())
        if says and says(run.output) != truth:
            witness = {"input": " ".join(game.spell(word[0])), "expected": str(truth), "actual": str(says(run.output))}
            break
    search = refute(protocol, TRIES, subsets=SUBSETS)
    refuted = None if search.refutation is None else _verified(protocol, search.refutation)
    declared = {"bits": subject.data["bits"], "refuted": says is None}
    measured = {"bits": max(sent) if len(sent) == 1 else sorted(sent), "refuted": bool(refuted)}
    method = Method.EXHAUSTIVE if game.inputs * len(game.questions) <= ALL else Method.SAMPLED
    size = {"numbers": game.size, "choices of each": game.choices}
    domain = Domain(f"instances of {game.name}", method, cases, settings=size)
    evidence = witnessed(witness, cases, domain, seed=0, notes=(str(search),))
    return evidence.adding(*quantities(declared, measured | {"needed": game.needed, "tries": search.tries}))


def _verified(protocol: TwoParty, refutation: Refutation) -> bool:
    """Run two words again; return whether outputs are equal and the answers by the task's definition differ."""
    game = protocol.game
    words = np.array(
        [[game.symbols.index(symbol) for symbol in word] for word in (refutation.first, refutation.second)]
    )
    one, other = (np.asarray(protocol.direct(word[None])) for word in words)
    return np.array_equal(one, other) and game.truth(words[0].tolist()) != game.truth(words[1].tolist())


def instances(game: Game) -> Iterator[tuple[Sequence[int], Question]]:
    """All instances, or some random ones; every other query tells Alice's input from another one."""
    if game.inputs * len(game.questions) <= ALL:
        for alice in game.numbered(0, game.inputs).tolist():
            for bob in game.questions:
                yield alice, bob
        return
    rng = np.random.default_rng(0)
    for number in range(SOME):
        alice, other = rng.integers(0, game.choices, (2, game.size)).tolist()
        telling = number % 2 and alice != other
        yield alice, game.question(alice, other) if telling else game.questions[rng.integers(len(game.questions))]


def sabotage_game(subject: Subject) -> Subject:
    """A small net is replaced by one that wins; of a net that wins, every number of the message loses its last bit."""
    protocol, right = subject.data["protocol"], subject.data["right"]
    return subject.with_data(protocol=Short(protocol) if subject.data["says"] else right)


class Short(TwoParty):
    """A protocol in which every number of the message is without its last bit, and read with a 0 instead."""

    def __init__(self, protocol: TwoParty) -> None:
        self.protocol, self.game, self.width, self.signed = protocol, protocol.game, protocol.width, protocol.signed

    def numbers(self, alice: Ints) -> Ints:
        """Return Alice's full message."""
        return self.protocol.numbers(alice)

    def direct(self, words: Ints) -> Array:
        """The net itself."""
        return self.protocol.direct(words)

    def send(self, alice: Sequence[int]) -> Message:
        """The shorter message."""
        full = self.protocol.send(alice)
        return replace(full, bits="".join(group[:-1] for group in self._numbers(full.bits, self.width)))

    def finish(self, message: Message, bob: Question) -> Array:
        """Read it as if all last bits were 0."""
        filled = "".join(group + "0" for group in self._numbers(message.bits, self.width - 1))
        return self.protocol.finish(replace(message, bits=filled), bob)

    def _numbers(self, bits: str, width: int) -> list[str]:
        return [bits[number * width : (number + 1) * width] for number in range(len(self.signed))]
