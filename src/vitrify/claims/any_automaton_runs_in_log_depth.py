r"""Any finite automaton runs on $\lceil\log_2 T\rceil$ attention layers, which give its state after every letter.

Statement: For every automaton with $n = \lvert Q\rvert$ states and every length $T$ there is a transformer with
$\lceil\log_2 T\rceil$ layers, width $O(n + \log T)$ and $O(n^2)$ units per layer that gives the state after every
letter, exactly.
Why: Letters are maps of the states and composition is associative: layer $l = 0, 1, \dots$ composes the maps of two
neighbouring runs of $2^l$ letters.
Checked: Five automata ($S_5$ and $A_5$ on 5 points, a random one with 7 states, $(ab|ba)^*$, divisibility by 7) at $T =
100$, each with one of the three kinds of attention: all words to length 8 and every prefix of random words of length
100. For every word of up to 100 letters both links of each certificate are proved. Layers and width are compared with
the formulas, units per layer with $2n^2 + 1$. The law: at $T = 2^3, \dots, 2^{10}$ there are exactly $\log_2 T$ layers
of one head in a width of $2n + 2\log_2 T$, at most $2n^2 + 1$ units in each, and every state along two random words of
length $T$ is right.
Not checked: $T > 1024$ and larger automata; words of more than 100 letters are sampled. The constants in the $O(\cdot)$
are ours; the paper's theorem was read in a secondary account.
Source: Liu et al. 2023, arXiv 2210.10749, theorem 1 [S]; the weights are our own derivation.
Saboteur: The middle layer attends but its values are zero.
"""

from __future__ import annotations

from dataclasses import replace

from vitrify.claims._figures import attention_of, curves, layers_of_automata, show
from vitrify.claims._nets import (
    Claim,
    Evidence,
    Quantity,
    Subject,
    Subjects,
    check_net,
    in_turn,
    proving,
    quantities,
    zeroed,
)
from vitrify.claims.solvable_automata_run_in_constant_depth import WORDS, at_lengths, wrong_states
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import alternating_group, divisibility, random_automaton, symmetric_group

LENGTH = 100  # not a power of two
POWERS = range(3, 11)


def subjects() -> Subjects:
    machines = {
        "S5 on 5 points": symmetric_group(5),
        "A5 on 5 points": alternating_group(5),
        "random, 7 states": random_automaton(7, 2, seed=7),
        "(ab|ba)*": Automaton.from_regex("(ab|ba)*"),
        "divisibility by 7 in binary": divisibility(7),
    }
    return in_turn(machines, "log-depth", max_length=LENGTH)


def check(subject: Subject) -> Evidence:
    units = subject.weights.sizes.units_per_layer
    limit = 2 * len(subject.spec.states) ** 2 + 1
    within = f"units per layer at most {limit}"
    declared = {**subject.data["sizes"].exact, within: True}
    evidence = check_net(
        replace(subject, data={}), declared, {within: max(units) <= limit, "units": units}, max_length=8
    )
    evidence = proving(subject, evidence)
    return evidence.adding(*law(subject, limit)) if evidence.verdict == "holds" else evidence


def law(subject: Subject, limit: int) -> tuple[Quantity, ...]:
    """Return sizes and wrong states at all lengths that are powers of two."""
    nets, states = list(at_lengths(subject, "log-depth", [2**power for power in POWERS])), len(subject.spec.states)
    declared = {f"layers, heads, width at T = {2**k}": (k, k, 2 * states + 2 * k) for k in POWERS}
    measured = [(net.sizes.layers, net.sizes.heads, net.sizes.d_model) for net in nets]
    units, wrong = [net.sizes.units_per_layer for net in nets], [wrong_states(net, subject.spec) for net in nets]
    return (
        *quantities(declared, dict(zip(declared, measured, strict=True))),
        Quantity("units of the largest layer, at all T", max(map(max, units)), limit, "<="),
        Quantity(f"wrong states along {WORDS} words, at all T", wrong, [0] * len(nets), "="),
    )


def sabotage(subject: Subject) -> Subject:
    return zeroed(subject, f"blocks.{len(subject.weights.architecture.blocks) // 2}.attn.W_V")


FIGURE = show(
    layers_of_automata,
    curves("layers, heads, width at T = {}", 2, "length T", "width", "2x"),
    *attention_of(subjects, *((layer, 0) for layer in range(4)), word="abbaabbabaababba", number=3),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R14", standing="theorem", certified="proved", budget_seconds=20, figure=FIGURE
)
