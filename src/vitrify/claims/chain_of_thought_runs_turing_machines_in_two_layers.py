r"""Any Turing machine runs on two attention layers that write one step of it after the other.

Statement: for a machine of $Q'$ states and $G$ symbols, two layers with two heads and one, $8T + 1 + Q'G$ units and a
width of $O(Q' + G + \log T)$ write exactly the machine's steps, one symbol each, until it halts, on all inputs and for
all numbers of steps that fit into $T$ symbols.
Why: the cell where the head stands is the sum of the moves so far; its symbol is what was last written there, and the
letters of the input count as written before the first step. One layer sums, one looks up, a table says what to do.
Checked: decoded from the input alone, step by step: binary increment and palindromes on all inputs to length 6, the
busy beaver of four states (107 steps from an empty tape), random machines of 2 to 6 states and 2 to 4 symbols, 200
steps each; under three kinds of attention; sizes against the formulas.
Source: Merrill and Sabharwal 2024, arXiv 2310.07923 [S], whose construction takes other means (layer norm, no
positions); Pérez et al. 2021 [A]; the weights are our own derivation.
Saboteur: the head that sums the moves is silent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import groupby

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import ATTENTIONS, with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.turing import sizes, turing
from vitrify.kit import assemble
from vitrify.net.decode import Thought, decode
from vitrify.net.weights import Ledger
from vitrify.spec.turing_machines import busy_beaver, increment, palindrome, random_machine

STEPS = 200
RANDOM = 5  # machines


def subjects() -> Iterator[Subject]:
    """Three known machines, and random ones that run for 200 steps."""
    machines = {"binary increment": increment(6), "palindromes": palindrome(6), "busy beaver": busy_beaver()}
    for seed in range(RANDOM):
        halting = 0.02 if seed % 2 else 0.0
        machine = random_machine(seed, 2 + seed % 5, 2 + seed % 3, halting=halting, length=1, steps=STEPS)
        machines[f"random machine {seed}"] = machine
    for place, (name, machine) in enumerate(machines.items()):
        attention = ATTENTIONS[place % 3]
        net = assemble(turing(machine, attention=attention))
        yield Subject(f"{name}, {attention}", machine, net, {"attention": attention})


def check(subject: Subject) -> Evidence:
    """The steps on every input, and sizes."""
    start, machine = time.perf_counter(), subject.spec
    prompts = list(machine.prompts())
    witness, most = None, 0
    for prompt, thought in zip(prompts, _thoughts(subject, prompts), strict=True):
        right = machine.thought(prompt, machine.limit)
        most = max(most, thought.steps)
        if thought.symbols != right:
            wrong = next((i for i, (a, b) in enumerate(zip(right, thought.symbols, strict=False)) if a != b), 0)
            witness = {"input": " ".join(prompt), "step": wrong + 1, "expected": right[wrong:][:1]}
            witness |= {"found": thought.symbols[wrong:][:1]}
            break
    promised = sizes(machine, subject.data["attention"])
    size = Ledger.of(subject.weights)
    found = Evidence(
        verdict="holds" if witness is None else "fails",
        method="exhaustive",
        domain=f"all {len(prompts)} inputs to length {machine.length}, to {machine.limit} steps",
        cases=len(prompts),
        witness=witness,
        measured={"longest thought": most},
        seconds=time.perf_counter() - start,
    )
    return with_sizes(found, promised, {name: getattr(size, name) for name in promised})


def _thoughts(subject: Subject, prompts: list[tuple[str, ...]]) -> Iterator[Thought]:
    """Inputs of one length after the other: what is broken shows on the first."""
    for _, same in groupby(prompts, key=len):
        yield from decode(subject.weights, list(same), subject.spec.limit)


def sabotage(subject: Subject) -> Subject:
    """The net believes that it stands on the first cell for ever."""
    return zeroed(subject, "blocks.0.attn.W_O", 0)


CLAIM = Claim(row="R27", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
