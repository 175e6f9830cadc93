r"""Any Turing machine runs on two attention layers that write one step of it after the other.

Statement: For every one-tape Turing machine with $Q'$ states that have rules and $G$ symbols, and every $T$, there is a
transformer with two layers (two heads, then one), $8T + 1 + Q'G$ units and width $O(Q' + G + \log T)$ that writes the
steps of the machine one symbol at a time until it halts, on every input and for as many steps as fit into $T$ symbols.
Why: The cell of the head is the sum of the moves so far; its symbol is what was last written there, input letters
counting as written before the first step. One layer sums, one looks up, a table gives the next step.
Checked: Generated step by step from the input alone, each with one of the three kinds of attention: binary increment
and palindromes on all inputs to length 6, the four-state busy beaver (107 steps from an empty tape), and five random
machines of 2 to 6 states and 2 to 4 symbols for up to 200 steps. Sizes are compared with the formulas.
Not checked: More steps than $T$: the position table grows with $T$, so this is one network per $T$. The papers have one
network for all lengths (layer norm, no positions) and also bound the power from above; neither is checked.
Source: Merrill & Sabharwal 2024, arXiv 2310.07923 [S]; Pérez et al. 2021 [A]; the weights are our own derivation.
Saboteur: The head that sums the moves outputs zero.
"""

from __future__ import annotations

from itertools import groupby

from vitrify.claims._nets import Domain, Evidence, Method, Quantity, in_turn, sized, witnessed, zeroing
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.net.generate import generate
from vitrify.spec.computation.turing import busy_beaver, increment, palindrome, random_machine

STEPS = 200
RANDOM = 5  # machines


def subjects() -> Subjects:
    machines = {"binary increment": increment(6), "palindromes": palindrome(6), "busy beaver": busy_beaver()}
    for seed in range(RANDOM):
        halting = 0.02 if seed % 2 else 0.0
        machine = random_machine(seed, 2 + seed % 5, 2 + seed % 3, halting=halting, length=1, steps=STEPS)
        machines[f"random machine {seed}"] = machine
    return in_turn(machines, "turing")


def check(subject: Subject) -> Evidence:
    return thoughts(subject, list(subject.spec.prompts())).adding(*sized(subject))


def thoughts(subject: Subject, prompts: list[tuple[str, ...]], method: Method = Method.EXHAUSTIVE) -> Evidence:
    """Return the evidence that the steps after some inputs are those of the machine, generated one by one."""
    machine, witness, most = subject.spec, None, 0
    batches = (list(same) for _, same in groupby(prompts, key=len))  # what is broken shows on the shortest
    generated = (thought for batch in batches for thought in generate(subject.weights, batch, machine.limit))
    for prompt, thought in zip(prompts, generated, strict=True):
        right = machine.thought(prompt, machine.limit)
        most = max(most, thought.steps)
        if thought.symbols != right:
            wrong = next((i for i, (a, b) in enumerate(zip(right, thought.symbols, strict=False)) if a != b), 0)
            witness = {"input": " ".join(prompt), "step": wrong + 1, "expected": right[wrong:][:1]}
            witness |= {"actual": thought.symbols[wrong:][:1]}
            break
    limits = {"steps at most": machine.limit}
    inputs = Domain("inputs", method, len(prompts), longest=machine.length, settings=limits)
    return witnessed(witness, len(prompts), inputs).adding(Quantity("longest thought", most))


sabotage = zeroing("blocks.0.attn.W_O", 0)  # the net believes that it stands on the first cell for ever
CLAIM = Claim(subjects, check, sabotage, id="R27", standing="theorem", certified="exhaustive", budget_seconds=60)
