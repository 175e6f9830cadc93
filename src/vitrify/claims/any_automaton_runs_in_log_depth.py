r"""Any finite automaton runs on $\lceil\log_2 T\rceil$ attention layers, which give its state after every letter.

Statement: for every automaton with $n$ states and every length $T$ there is a transformer of $\lceil\log_2 T\rceil$
layers, width $O(n + \log T)$ and $O(n^2)$ units per layer that outputs the whole state sequence, exactly.
Why: letters are maps of the states and composition is associative: layer $l$ joins the maps of two neighbouring runs
of $2^l$ letters.
Checked: all words to length 8 and every prefix of random words of length 100; layers, width and units against the
formulas.
Source: Liu et al. 2023, arXiv 2210.10749, theorem 1 [S]; the weights here are our own derivation.
Saboteur: the middle layer fetches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import ATTENTIONS, examined, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.log_depth import log_depth, sizes
from vitrify.kit import assemble
from vitrify.net.weights import Ledger
from vitrify.spec.automata import alternating_group, divisibility, random_automaton, symmetric_group
from vitrify.spec.automaton import Automaton

LENGTH = 100  # not a power of two


def subjects() -> Iterator[Subject]:
    """S5, A5, a random automaton, a regular expression, divisibility by 7; the kinds of attention take turns."""
    machines = {
        "S5 on 5 points": symmetric_group(5),
        "A5 on 5 points": alternating_group(5),
        "random, 7 states": random_automaton(7, 2, seed=7),
        "(ab|ba)*": Automaton.from_regex("(ab|ba)*"),
        "divisibility by 7 in binary": divisibility(7),
    }
    for place, (name, machine) in enumerate(machines.items()):
        attention = ATTENTIONS[place % 3]
        weights = assemble(log_depth(machine, attention=attention, max_length=LENGTH))
        yield Subject(f"{name}, {attention}", machine, weights)


def check(subject: Subject) -> Evidence:
    """State sequences and sizes."""
    size, promised = Ledger.of(subject.weights), sizes(subject.spec, LENGTH)
    limit = promised.pop("most_units_per_layer")
    declared = {**promised, f"units per layer at most {limit}": True}
    measured = {
        "layers": size.layers,
        "heads": size.heads,
        "d_model": size.d_model,
        f"units per layer at most {limit}": max(size.units_per_layer) <= limit,
        "units": size.units_per_layer,
    }
    return examined(subject, 8, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The middle layer fetches nothing."""
    middle = len(subject.weights.architecture.blocks) // 2
    return zeroed(subject, f"blocks.{middle}.attn.W_V", slice(None))


CLAIM = Claim(row="R14", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
