r"""An automaton whose letters commute runs on one attention layer with one head.

Statement: modulo counters, their products, and every other automaton in which the order of letters does not matter
run on one attention layer of one head; groups need no second MLP.
Why: the state depends only on how often each letter occurred; a head with a sink counts exactly, and an MLP looks the
counts up.
Checked: all words to length 6, words of one and two letters at full length, every prefix of random words of length
60; layers, heads and units against the formulas.
Source: Liu et al. 2023, arXiv 2210.10749 (modular counters) [S]; the weights here are our own derivation.
Saboteur: the sink is gone, so the head gives means instead of counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import examined, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.commutative import commutative, group_counters, power_counters, units_for
from vitrify.kit import assemble
from vitrify.net.weights import Ledger
from vitrify.spec.automata import cyclic, product
from vitrify.spec.automaton import Automaton

LENGTH = 60


def subjects() -> Iterator[Subject]:
    """Counters modulo 2, 3 and 6, products, parity of two letters, and "at least two a", which is no group."""
    machines = {
        "counter mod 2": cyclic(2),
        "counter mod 3": cyclic(3),
        "counter mod 6 with steps 0 to 5": cyclic(6, 6),
        "mod 2 × mod 3": product(cyclic(2), cyclic(3)),
        "mod 2 × mod 4": product(cyclic(2), cyclic(4)),
        "even length over a, b": Automaton.from_regex("((a|b)(a|b))*"),
        "at least two a": Automaton.from_regex("(a|b)*a(a|b)*a(a|b)*"),
    }
    for place, (name, machine) in enumerate(machines.items()):
        attention = ("softmax", "sparsemax")[place % 2]
        weights = assemble(commutative(machine, attention=attention, max_length=LENGTH))  # type: ignore[arg-type]
        yield Subject(f"{name}, {attention}", machine, weights)


def check(subject: Subject) -> Evidence:
    """State sequences and sizes."""
    machine, size = subject.spec.reachable(), Ledger.of(subject.weights)
    counters, _ = group_counters(machine) if machine.is_group() else power_counters(machine)
    declared = {"layers": 1, "heads": 1, "units": units_for(counters, LENGTH)}
    measured = {"layers": size.layers, "heads": size.heads, "units": size.units}
    return examined(subject, 6, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The sink is gone, so the head gives means instead of counts."""
    return zeroed(subject, "pos_embed.W_pos", slice(None))


CLAIM = Claim(row="R16", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
