r"""A solvable automaton runs on a number of attention layers that does not depend on the length of its words.

Statement: If all groups in the holonomy decomposition of an automaton are solvable, then for every length $T$ there is
a transformer that gives the state after every letter. It has one head in each attention layer, and for each level of
the decomposition as many layers as the derived length of its group, and one more if letters reset the level: a number
that does not depend on $T$, as the width. Units and the largest weight are at most linear in $T$. $S_5$ is not
solvable, so it is excluded.
Why: Each level of the cascade only permutes or resets its coordinate. The last reset is found by a look-up;
permutations of a solvable group are exact counts, one abelian factor after the other.
Checked: Seven automata ($S_3$, $S_4$, a corridor, a regular expression, divisibility by 12, a random one, a product) at
$T = 120$, each with softmax, sparsemax or hard attention: all words to length 6, words that repeat, alternate and
wander, every prefix of random words of length 120; for every word of up to 120 letters both links of each certificate
are proved. Attention layers and heads are compared with the formula. The law: at $T = 24, 60, 120, 240, 480$ layers,
heads and width are the same; units lie on one line exactly, below the declared bound $aT + b$; no weight is larger than
$\max(T + 1, 2(q - 1)(T - 1))$, where $q$ is the largest order of a cyclic part of an abelian factor; every state along
two random words of length $T$ is right. The builder refuses $S_5$, which is built in log depth and checked too.
Not checked: $T > 480$. That no constant-depth network computes $S_5$ is conditional (TC⁰ ≠ NC¹); the refusal here only
says that this construction does not apply.
Source: Liu et al. 2023, arXiv 2210.10749, theorem 2 [S]; Krohn & Rhodes 1965 [S]; the weights are our own derivation.
Saboteur: The values of the first layer are zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vitrify.claims._figures import curves, layers_of_automata, show
from vitrify.claims._nets import (
    Claim,
    Evidence,
    Quantity,
    Subject,
    Subjects,
    Weights,
    check_net,
    in_turn,
    proving,
    quantities,
    refused,
    zeroing,
)
from vitrify.constructions.cascade import sizes
from vitrify.constructions.catalogue import build
from vitrify.constructions.log_depth import layers_for
from vitrify.net.inference import batch_logits, with_pads
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.cascade import cascade as decomposed
from vitrify.spec.automata.families import divisibility, product, random_automaton, symmetric_group
from vitrify.spec.automata.families import gridworld as corridor

LENGTH, LENGTHS = 120, (24, 60, 120, 240, 480)
WORDS = 2  # random ones that are run at each of the lengths
S5 = "S5, refused; in log depth"


def subjects() -> Subjects:
    machines = {
        "S3": symmetric_group(3),
        "S4": symmetric_group(4),
        "corridor of 5": corridor(5),
        "(ab|ba)*": Automaton.from_regex("(ab|ba)*"),
        "divisibility by 12 in binary": divisibility(12),
        "random, 6 states": random_automaton(6, 2, seed=4),
        "corridor of 3 × S3": product(corridor(3), symmetric_group(3)),
    }
    yield from in_turn(machines, "cascade", max_length=LENGTH)
    yield Subject(S5, symmetric_group(5), build(symmetric_group(5), "log-depth", max_length=LENGTH))


def check(subject: Subject) -> Evidence:
    if subject.name == S5:
        layers, no = layers_for(LENGTH), "a cascade is refused"
        declared = {"attention_layers": layers, "heads": layers, no: True}
        measured = {no: refused(lambda: build(subject.spec, "cascade"))}
        return proving(subject, check_net(subject, declared, measured, max_length=6))
    evidence = proving(subject, check_net(subject, max_length=6))
    return evidence.adding(*law(subject)) if evidence.verdict == "holds" else evidence


def law(subject: Subject) -> tuple[Quantity, ...]:
    """Return sizes at all lengths: depth and width do not change, units lie on a line, weights below one."""
    nets = list(at_lengths(subject, "cascade", LENGTHS))
    units = [net.sizes.units for net in nets]
    slopes = (np.diff(units) / np.diff(LENGTHS)).tolist()
    wrong = [wrong_states(net, subject.spec) for net in nets]
    fixed = [(net.sizes.layers, net.sizes.heads, net.sizes.d_model) for net in nets]
    bounds: dict[str, object] = {
        f"largest weight at T = {length}": weight_bound(subject.spec, length) for length in LENGTHS
    }
    bounds |= {f"units at T = {n}": sizes(subject.spec, max_length=n).at_most["units"] for n in LENGTHS}
    return (
        Quantity("layers, heads and width at all T", fixed, [fixed[0]] * len(nets), "="),
        Quantity(f"wrong states along {WORDS} words, at all T", wrong, [0] * len(nets), "="),
        Quantity("units more per letter, from each T to the next", slopes, slopes[:1] * len(slopes), "="),
        *quantities(bounds, dict(zip(bounds, [*(net.sizes.max_abs for net in nets), *units], strict=True)), "<="),
    )


def at_lengths(subject: Subject, construction: str, lengths: Sequence[int]) -> Iterator[Weights]:
    """Yield the nets of a subject's automaton for words to some lengths, with its kind of attention."""
    (attention,) = {head.attention for block in subject.weights.architecture.blocks for head in block.heads}
    for length in lengths:
        yield build(subject.spec, construction, attention=attention, max_length=length)


def wrong_states(net: Weights, automaton: Automaton) -> int:
    """Return at how many positions of random words of full length the state is not the automaton's."""
    length, pads = net.architecture.max_length, net.architecture.pads
    words = np.random.default_rng(length).integers(0, len(automaton.alphabet), (WORDS, length))
    states = batch_logits(net, with_pads(net.architecture, words + 1))[:, pads - 1 :].argmax(axis=-1)
    return int((states != automaton.run_batch(words)).sum())


def weight_bound(automaton: Automaton, length: int) -> int:
    """Return the largest weight that is declared: a count of exponents at twice its slope, or a position."""
    factors = [factor for level in decomposed(automaton).levels for factor in level.group.factors]
    order = max((order for factor in factors for order in factor.orders), default=1)
    return max(length + 1, 2 * (order - 1) * (length - 1))


sabotage = zeroing("blocks.0.attn.W_V")  # the first layer fetches nothing
FIGURE = show(layers_of_automata, curves("units at T = {}", None, "length T", "units", "2xy"))
CLAIM = Claim(
    subjects, check, sabotage, id="R15", standing="theorem", certified="proved", budget_seconds=60, figure=FIGURE
)
