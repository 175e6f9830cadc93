r"""A solvable automaton runs on a number of attention layers that does not depend on the length of its words.

Statement: if all groups in an automaton's holonomy decomposition are solvable, a transformer gives its state after
every letter with $\sum_{\text{levels}}(\text{derived length} + [\text{resets}])$ attention layers of one head each,
for any maximum length; for S5 there is no such cascade, it is refused, and log depth is built instead.
Why: each level of the cascade only permutes or resets its coordinate; resets are found by looking back for the last
one, permutations of a solvable group are exact counts, one abelian factor after the other.
Checked: all words to length 6, words that repeat, alternate and wander, every prefix of random words of length 120;
attention layers and heads against the formula, and the same formula at length 24; that S5 is refused.
Source: Liu et al. 2023, arXiv 2210.10749, theorem 2 [S]; Krohn and Rhodes 1965 [S]; the weights are our own derivation.
Saboteur: the first layer fetches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import ATTENTIONS, examined, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.cascade import cascade
from vitrify.constructions.log_depth import layers_for, log_depth
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.weights import Ledger
from vitrify.spec.automata import divisibility, product, random_automaton, symmetric_group
from vitrify.spec.automata import gridworld as corridor
from vitrify.spec.automaton import Automaton
from vitrify.spec.cascade import cascade as decomposed

LENGTH, SHORT = 120, 24
S5 = "S5, refused; in log depth"


def subjects() -> Iterator[Subject]:
    """Groups, a corridor, a regular expression, a random automaton, under each attention in turn; S5 in log depth."""
    machines = {
        "S3": symmetric_group(3),
        "S4": symmetric_group(4),
        "corridor of 5": corridor(5),
        "(ab|ba)*": Automaton.from_regex("(ab|ba)*"),
        "divisibility by 12 in binary": divisibility(12),
        "random, 6 states": random_automaton(6, 2, seed=4),
        "corridor of 3 × S3": product(corridor(3), symmetric_group(3)),
    }
    for place, (name, machine) in enumerate(machines.items()):
        attention = ATTENTIONS[place % 3]
        weights = assemble(cascade(machine, attention=attention, max_length=LENGTH))
        yield Subject(f"{name}, {attention}", machine, weights)
    yield Subject(S5, symmetric_group(5), assemble(log_depth(symmetric_group(5), max_length=LENGTH)))


def check(subject: Subject) -> Evidence:
    """State sequences; depth at two lengths, or the refusal."""
    size = Ledger.of(subject.weights)
    measured = {"attention_layers": size.attention_layers, "heads": size.heads}
    if subject.name == S5:
        layers = layers_for(LENGTH)
        return examined(
            subject,
            6,
            {"attention_layers": layers, "heads": layers, "a cascade is refused": True},
            measured | {"a cascade is refused": _refused(subject.spec)},
        )
    layers = decomposed(subject.spec).attention_layers
    short = Ledger.of(assemble(cascade(subject.spec, max_length=SHORT))).attention_layers
    return examined(
        subject,
        6,
        {"attention_layers": layers, "heads": layers, f"attention_layers at length {SHORT}": layers},
        measured | {f"attention_layers at length {SHORT}": short},
    )


def _refused(machine: Automaton) -> bool:
    try:
        cascade(machine)
    except BuildRefused:
        return True
    return False


def sabotage(subject: Subject) -> Subject:
    """The first layer fetches nothing."""
    return zeroed(subject, "blocks.0.attn.W_V", slice(None))


CLAIM = Claim(row="R15", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
