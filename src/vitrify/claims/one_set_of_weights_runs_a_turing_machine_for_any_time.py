r"""One set of weights runs a Turing machine on every input, for any number of steps: three layers that know no length.

Statement: For every one-tape Turing machine with $Q'$ states that have rules and $G$ symbols there is a transformer
with three layers of hard attention (2, 4 and 1 heads), $Q'G$ units and width $O(Q' + G)$, without a length in its
weights, that writes the steps of the machine one symbol at a time: on every input and for any number of steps, in exact
arithmetic. Position $t$ is given as $(t, t^2)$. So what a one-tape machine does in $t$ steps, one network does in $t$
steps of thought, and with unbounded steps all recursively enumerable languages have a network. A linear recurrence of
five numbers and one head do the same without any positions. In floating point with $p$ significant bits the weights of
both are right up to $2^{(p-4)/2} - 1$ symbols, 23,726,565 in float64.
Why: Means over the positions give the cell $H$ of the head as a fraction $H/(i+1)$, next to $1/(i+1)$. A head with the
scores $b(2Hj - j^2)$ finds the whole number, a last one the last write to that cell, or BOS. The recurrence carries
$(H, H^2, p, p^2, 1)$, where $p - 1$ is the cell written last.
Checked: Generated step by step from the input alone: binary increment and palindromes on all inputs to length 6, the
four-state busy beaver, a binary counter for 600 steps, a palindrome and a word with one other letter of each length to
20, and two random machines for up to 200 steps; all but the last also by the recurrence. 200 more random machines of 2
to 6 states and 2 to 4 symbols, by each construction, for 200 steps (192 of them) or until they halt: every step after
the right steps before it. For each network but these 200 both links are proved, for every input and up to 23,726,565
symbols, from the stored weights. Layers, heads, units and width are compared with the formulas. All arrays of the same
machine at $T = 10, 100, 1000$ and $2^5, \dots, 2^{12}$, and for inputs up to 1, 8 and 64 letters, are equal, byte by
byte. The weights of attention that are computed while the counter runs grow with an exponent of at most 2 in the number
of symbols: what a step costs is linear.
Not checked: The published constructions: Merrill and Sabharwal use no positions but norms, and average hard attention
without a tie to the right; Pérez et al. use $(i, 1/i, 1/i^2)$ in an encoder and decoder. Softmax attention. Runs longer
than 600 steps; 2,500 are in the slow tests. Containment in time or space for all networks.
Source: Merrill & Sabharwal 2024, arXiv 2310.07923 [S]; Pérez et al. 2021 [A]; for the recurrence Wen, Dang & Lyu 2024,
arXiv 2402.18510 [A]; the weights are our own derivation.
Saboteur: In turn, no sink, so that a cell without a write reads another one; the cells of the head and of the write are
exchanged (not in recurrences); the first write to a cell is read instead of the last.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice

import numpy as np

from vitrify.arrays import Array
from vitrify.claims._figures import points, show
from vitrify.claims._nets import (
    Claim,
    Evidence,
    Quantity,
    Subject,
    Subjects,
    Weights,
    alike,
    built,
    groups,
    on_every_member,
    on_groups,
    sized,
    zeroed,
)
from vitrify.claims.chain_of_thought_runs_turing_machines_in_two_layers import (
    LONGEST,
    check_steps,
    long_palindromes,
    random_machines,
    thoughts,
)
from vitrify.constructions.catalogue import build
from vitrify.net.transformer_forward import Cache
from vitrify.spec.computation.turing import TuringMachine, busy_beaver, counter, increment, palindrome

THREE_LAYERS, RECURRENCE = "turing-any-length", "turing-hybrid-any-length"
TIMES = (10, 100, 1000, *(2**k for k in range(5, 13)))
INPUTS = (1, 8, 64)  # lengths of the longest input
TESTED = 48  # symbols of the words by which the certificates test what they prove
STEPS = 200
GENERATED, RANDOM, GROUP = 2, 200, 50  # random machines: decoded, checked in one pass, and of these as one subject
COUNTED = (64, 128, 256, 512)  # symbols, for which the cost of decoding is measured


def subjects() -> Subjects:
    machines = {"binary increment": increment(6), "palindromes": palindrome(6), "busy beaver": busy_beaver()}
    machines["binary counter"] = counter(600)
    for (name, machine), saboteur in zip(
        machines.items(), ("no sink", "first write", "first write", "no sink"), strict=True
    ):
        yield _subject(f"{name}, recurrence", machine, RECURRENCE, saboteur)
    drawn = random_machines(GENERATED + RANDOM)
    machines |= dict(islice(drawn.items(), GENERATED))
    for (name, machine), saboteur in zip(machines.items(), cycle(SABOTEURS), strict=False):
        yield _subject(name, machine, THREE_LAYERS, saboteur)
    for construction, saboteur in ((THREE_LAYERS, "cells exchanged"), (RECURRENCE, "no sink")):
        machine = replace(palindrome(6), steps=LONGEST**2)
        long = _subject(f"{construction}, palindromes to {LONGEST} letters", machine, construction, saboteur)
        yield long.with_data(prompts=long_palindromes())
        others = islice(drawn.items(), GENERATED, None)
        members = (_subject(name, machine, construction, saboteur) for name, machine in others)
        yield from groups(members, GROUP, f"{construction}, random machines")


def _subject(name: str, machine: TuringMachine, construction: str, saboteur: str) -> Subject:
    data = {"construction": construction, "saboteur": saboteur}
    return built(name, machine, construction, data, max_length=TESTED)


def check(subject: Subject) -> Evidence:
    machine, own = subject.spec, subject.weights.arrays
    construction = subject.data["construction"]
    others = [build(machine, construction, max_length=length) for length in TIMES]
    others += [build(replace(machine, length=length, steps=STEPS), construction) for length in INPUTS]
    same = "the arrays are those for other running times and inputs"
    declared = {same: True}
    measured = {same: all(alike(own, other.arrays) for other in others)}
    prompts = subject.data.get("prompts", [*machine.prompts()])
    evidence = thoughts(subject, prompts).adding(*sized(subject, declared, measured))
    if machine.halt:
        return evidence
    exponent = _exponent(subject.weights, [*machine.thought((), max(COUNTED))])
    return evidence.adding(Quantity("exponent of the attention weights computed in n + t", exponent, 2.0, "<="))


def _exponent(weights: Weights, thought: list[str]) -> float:
    """Return the fitted exponent of the number of attention weights while a thought is written."""
    net, cache, cost = weights.architecture, Cache(), 0
    costs: list[int] = []

    def count(name: str, value: Array) -> None:
        nonlocal cost
        cost += value.size if name.endswith("hook_pattern") else 0

    for token in [0, *(net.input_ids[symbol] for symbol in thought)]:
        net.forward(weights.prepared, np.array([[token]]), cache=cache, record=count)
        costs.append(cost)
    ends = np.array(COUNTED)
    return float(np.polyfit(np.log(ends), np.log([costs[end] for end in ends]), 1)[0])


# Saboteurs


def sabotage(subject: Subject) -> Subject:
    """Return the subject with the saboteur whose turn it is."""
    return SABOTEURS[subject.data["saboteur"]](subject)


def first_write(subject: Subject) -> Subject:
    """Return the subject whose last head takes the first of equal keys."""
    net = subject.weights.architecture
    head = replace(net.blocks[-1].heads[0], ties="left")
    blocks = (*net.blocks[:-1], replace(net.blocks[-1], heads=(head,)))
    return replace(subject, weights=replace(subject.weights, architecture=replace(net, blocks=blocks)))


def exchanged(subject: Subject) -> Subject:
    """Return the subject whose last head has the queries of the cell written and the keys of the cell of the head."""
    labels, weights = subject.weights.labels, subject.weights
    one, other = (list(labels.space(name).dims) for name in ("cell", "cell written"))
    for name in ("blocks.2.attn.W_Q", "blocks.2.attn.W_K"):
        array = weights.arrays[name].copy()
        array[:, one + other] = array[:, other + one]
        weights = weights.with_array(name, array)
    return replace(subject, weights=weights)


def without_sink(subject: Subject) -> Subject:
    """Return the subject whose last head has no sink: BOS is a write to the cell 0."""
    (dim,) = subject.weights.labels.space("bos").dims
    return zeroed(subject, f"blocks.{len(subject.weights.architecture.blocks) - 1}.attn.W_K", (0, dim, 2))


SABOTEURS = {"no sink": without_sink, "cells exchanged": exchanged, "first write": first_write}
FIGURE = show(points("longest thought", ("d_model", "layers", "units"), "steps of the machine", "size of the net"))
CLAIM = Claim(
    subjects,
    on_groups(check, check_steps),
    on_every_member(sabotage),
    id="R27",
    standing="theorem",
    certified="proved",
    budget_seconds=30,
    figure=FIGURE,
)
