r"""A recurrent layer of two numbers and one attention layer run any Turing machine step by step.

Statement: for every Turing machine of one tape and every number $T$ of positions there is a net of a diagonal linear
recurrence with two numbers, followed by one attention layer with one head, that writes the steps of the machine as its
chain of thought, as many steps as the machine takes. It has $8T + 1$ and $Q'G$ units and a width of
$Q + Q' + 3G + M + 2B + 7$, for $Q'$ states with rules, $Q$ to which rules go, $G$ symbols, $M$ moves, $B$ bits for
$2T + 1$ cells.
Why: the recurrence adds up the moves, which is where the head stands, and the places of the letters of the input; the
one head finds the last position that wrote to that cell. Neither holds the tape: it is in the sequence.
Checked: 200 random machines of 2 to 6 states and 2 to 4 symbols, 200 steps each: the next step after every beginning of
an input and its thought, so that what is written is right at every step; binary increment and palindromes on all inputs
to length 6, and the busy beaver of four states, decoded step by step to the end; layers, heads, state, units and width.
Source: Wen, Dang & Lyu 2024, arXiv 2402.18510 [A]: one attention layer closes the gap that chains of thought leave for
recurrent nets; the weights here are our own derivation, and the machines that they simulate are not ours.
Saboteur: the recurrence forgets everything at every position.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.oracles import oracle_for
from vitrify.certify.thought_oracle import Thoughts
from vitrify.claims._nets import with_sizes
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.hybrid_turing import hybrid_turing, sizes
from vitrify.kit import assemble
from vitrify.net.decode import decode
from vitrify.net.run import batch_logits
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.turing import TuringMachine
from vitrify.spec.turing_machines import busy_beaver, increment, palindrome, random_machine

MACHINES, STEPS, LETTERS = 200, 200, 6
SCALE = "blocks.0.rec.W_A"


def subjects() -> Iterator[Subject]:
    """Three known machines, and random ones."""
    for name, machine in (
        ("binary increment", increment(LETTERS)),
        ("palindromes", palindrome(LETTERS)),
        ("busy beaver of 4 states", busy_beaver()),
    ):
        net = assemble(hybrid_turing(machine))
        yield Subject(name, machine, net, {"machines": [machine], "forgets": False})
    rng = np.random.default_rng(0)
    sizes_of = [(int(rng.integers(2, 7)), int(rng.integers(2, 5))) for _ in range(MACHINES)]
    machines = [random_machine(seed, *size, length=LETTERS, steps=STEPS) for seed, size in enumerate(sizes_of)]
    yield Subject(f"{MACHINES} random machines", data={"machines": machines, "forgets": False})


def check(subject: Subject) -> Evidence:
    """Every step, and sizes; machines are built one after the other."""
    machines: list[TuringMachine] = subject.data["machines"]
    known = len(machines) == 1
    steps, witness = 0, None
    declared: dict[str, object] = {}
    measured: dict[str, object] = {}
    for number, machine in enumerate(machines):
        weights = assemble(hybrid_turing(machine))
        if subject.data["forgets"]:
            weights = weights.with_array(SCALE, np.zeros_like(weights.arrays[SCALE]))
        size, promised = Ledger.of(weights), {**sizes(machine), "state": 2}
        cell = weights.architecture.blocks[0].cell
        found = {name: getattr(size, name, None) for name in promised} | {"state": cell.state if cell else 0}
        if known or found != promised:
            declared, measured = promised, found
        taken, witness = _decoded(machine, weights) if known else _followed(machine, weights, number)
        steps += taken
        if witness or found != promised:
            break
    evidence = Evidence(
        verdict="fails" if witness else "holds",
        method="exhaustive" if known else "sampled",
        domain="all inputs, to the end" if known else f"{len(machines)} machines, one input each, {STEPS} steps",
        cases=steps,
        witness=witness,
        declared={},
        measured={"answers": steps},
        seed=0,
    )
    return with_sizes(evidence, declared, measured)


def _decoded(machine: TuringMachine, weights: Weights) -> tuple[int, dict[str, object] | None]:
    """What the net writes after every input, and what the machine does; both stop at its limit."""
    taken = 0
    for thought in decode(weights, list(machine.prompts()), machine.limit):
        right = machine.thought(thought.prompt, machine.limit)
        taken += len(right)
        if thought.symbols != right:
            pairs = enumerate(zip(thought.symbols, right, strict=False), start=1)
            step, (found, wanted) = next((pair for pair in pairs if pair[1][0] != pair[1][1]), (0, ("an end", "none")))
            return taken, {"input": thought.prompt, "step": step, "expected": wanted, "found": found}
    return taken, None


def _followed(machine: TuringMachine, weights: Weights, seed: int) -> tuple[int, dict[str, object] | None]:
    """The next step after every beginning of a random input and its thought."""
    net = weights.architecture
    oracle = oracle_for(machine, net)
    word = np.array(Thoughts(machine, net).draw(np.random.default_rng(seed)))
    found = batch_logits(weights, np.pad(word, (1, 0))[None])
    wrong = np.flatnonzero(oracle.errors(word[None], found)[0])
    if wrong.size:
        end = int(wrong[0])
        return len(word), {"machine": seed, **oracle.witness(word[:end], found[0, : end + 1])}
    return len(word) + 1, None


def sabotage(subject: Subject) -> Subject:
    """The scales of the recurrence are 0."""
    return Subject(subject.name, data={**subject.data, "forgets": True})


CLAIM = Claim(row="R25", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
