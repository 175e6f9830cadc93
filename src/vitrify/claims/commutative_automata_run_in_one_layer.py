r"""An automaton whose letters commute runs on one attention layer with one head.

Statement: For every automaton whose letters commute (modular counters, their products, any automaton in which the order
of letters does not matter) and every length $T$ there is a transformer with one attention layer of one head that gives
its state after every letter. Where the letters form a group, one MLP is enough.
Why: The state depends only on how often each letter occurred. A head with a sink counts exactly, and an MLP looks the
counts up.
Checked: Seven automata (counters modulo 2, 3 and 6, two products, even length, at least two a) at $T = 60$, each with
softmax or sparsemax: all words to length 6, words of one and two letters at full length, every prefix of
random words of length 60. Layers, heads and units are compared with the formulas.
Not checked: Words longer than 60: units grow linearly with $T$. Hard attention. The paper's statement is for modular
counters.
Source: Liu et al. 2023, arXiv 2210.10749 (modular counters) [S]; the weights are our own derivation.
Saboteur: The sink is removed, so that the head gives means instead of counts.
"""

from __future__ import annotations

from dataclasses import replace

from vitrify.claims._figures import attention_of, layers_of_automata, show
from vitrify.claims._nets import SOFT, Claim, Evidence, Subject, Subjects, check_net, in_turn, zeroing
from vitrify.constructions.commutative import group_counters, power_counters, units_for
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, product

LENGTH = 60


def subjects() -> Subjects:
    machines = {
        "counter mod 2": cyclic(2),
        "counter mod 3": cyclic(3),
        "counter mod 6 with steps 0 to 5": cyclic(6, 6),
        "mod 2 × mod 3": product(cyclic(2), cyclic(3)),
        "mod 2 × mod 4": product(cyclic(2), cyclic(4)),
        "even length over a, b": Automaton.from_regex("((a|b)(a|b))*"),
        "at least two a": Automaton.from_regex("(a|b)*a(a|b)*a(a|b)*"),
    }
    return in_turn(machines, "commutative", SOFT, max_length=LENGTH)


def check(subject: Subject) -> Evidence:
    machine = subject.spec.reachable()
    counters, _ = group_counters(machine) if machine.is_group() else power_counters(machine)
    declared = {"layers": 1, "heads": 1, "units": units_for(counters, LENGTH)}
    return check_net(replace(subject, data={}), declared, max_length=6)


sabotage = zeroing("pos_embed.W_pos")  # without a sink the head gives means instead of counts
FIGURE = show(*attention_of(subjects, (0, 0), word="011010"), layers_of_automata)
CLAIM = Claim(subjects, check, sabotage, id="R16", standing="theorem", certified="proved", figure=FIGURE)
