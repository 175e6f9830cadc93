r"""Any Turing machine runs on two attention layers that write one step of it after the other.

Statement: For every one-tape Turing machine with $Q'$ states that have rules and $G$ symbols, and every $T$, there is a
transformer with two layers (two heads, then one), $8T + 1 + Q'G$ units and width $O(Q' + G + \log T)$ that writes the
steps of the machine one symbol at a time until it halts, on every input and for as many steps as fit into $T$ symbols.
Why: The cell of the head is the sum of the moves so far; its symbol is what was last written there, input letters
counting as written before the first step. One layer sums, one looks up, a table gives the next step.
Checked: Generated step by step from the input alone, each with one of the three kinds of attention: binary increment
and palindromes on all inputs to length 6; the four-state busy beaver (107 steps from an empty tape); two random
machines for up to 200 steps. Every step after the right steps before it, which implies that the network writes them: a
palindrome and a word with one other letter of each length to 20; 200 more random machines of 2 to 6 states and 2 to 4
symbols, for 200 steps (192 of them) or until they halt. Sizes are compared with the formulas.
Not checked: More steps than $T$: the position table grows with $T$, so this is one network per $T$. The papers have one
network for all lengths (layer norm, no positions) and also bound the power from above; neither is checked.
Source: Merrill & Sabharwal 2024, arXiv 2310.07923 [S]; Pérez et al. 2021 [A]; the weights are our own derivation.
Saboteur: The head that sums the moves outputs zero.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, islice

import numpy as np

from vitrify.claims._figures import points, show
from vitrify.claims._nets import (
    Domain,
    Evidence,
    Method,
    Quantity,
    built,
    groups,
    in_turn,
    on_every_member,
    on_groups,
    sized,
    witnessed,
    zeroing,
)
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.net.generate import generate
from vitrify.net.inference import encode, logits
from vitrify.spec.computation.turing import TuringMachine, busy_beaver, increment, palindrome, random_machine

STEPS = 200
GENERATED, RANDOM, GROUP = 2, 200, 25  # random machines: decoded, checked in one pass, and of these as one subject
LONGEST = 20  # letters of a palindrome


def subjects() -> Subjects:
    machines = {"binary increment": increment(6), "palindromes": palindrome(6), "busy beaver": busy_beaver()}
    drawn = random_machines(GENERATED + RANDOM)
    yield from in_turn({**machines, **dict(islice(drawn.items(), GENERATED))}, "turing")
    machine = replace(palindrome(LONGEST), steps=LONGEST**2)
    longer = built("palindromes", machine, "turing", {"prompts": long_palindromes()})
    yield Subject(f"palindromes to {LONGEST} letters", data={"members": (longer,)})
    yield from groups(in_turn(dict(islice(drawn.items(), GENERATED, None)), "turing"), GROUP, "random machines")


def random_machines(count: int) -> dict[str, TuringMachine]:
    """Return random machines of 2 to 6 states and 2 to 4 symbols by name; in every other one some rules halt."""
    return {
        f"random machine {seed}": random_machine(
            seed, 2 + seed % 5, 2 + seed % 3, halting=0.02 * (seed % 2), length=1, steps=STEPS
        )
        for seed in range(count)
    }


def long_palindromes() -> list[tuple[str, ...]]:
    """Return a palindrome of each length to 20, each with a word in which one letter is another."""
    rng, prompts = np.random.default_rng(0), list[tuple[str, ...]]()
    for length in range(LONGEST + 1):
        half = rng.choice(["a", "b"], (length + 1) // 2).tolist()
        word = [*half, *half[::-1][length % 2 :]]
        prompts.append(tuple(word))
        if length > 1:
            place = int(rng.integers(length // 2))
            prompts.append((*word[:place], "ba"["ab".index(word[place])], *word[place + 1 :]))
    return prompts


def check(subject: Subject) -> Evidence:
    return thoughts(subject, [*subject.spec.prompts()]).adding(*sized(subject))


def check_steps(subject: Subject) -> Evidence:
    """Return the check of each step after the right steps before it, in one pass; by default on the longest input."""
    machine, net, witness, steps = subject.spec, subject.weights.architecture, None, 0
    prompts = subject.data.get("prompts", [*machine.prompts()][-1:])
    for prompt in prompts:
        right = machine.thought(prompt, machine.limit)
        (scores,) = logits(subject.weights, [encode(net, (*prompt, *right[:-1]))])
        written = [net.output.symbols[at] for at in scores[len(prompt) :].argmax(axis=-1)]
        steps += len(right)
        wrong = next((at for at, (a, b) in enumerate(zip(right, written, strict=True)) if a != b), None)
        if wrong is not None:
            witness = {"input": " ".join(prompt), "step": wrong + 1, "expected": right[wrong], "actual": written[wrong]}
            break
    domain = Domain("steps after the right ones", Method.SAMPLED, steps, settings={"steps at most": machine.limit})
    return witnessed(witness, steps, domain).adding(*sized(subject))


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


FIGURE = show(points("longest thought", ("d_model", "layers", "units"), "steps of the machine", "size of the net", "y"))
CLAIM = Claim(
    subjects,
    on_groups(check, check_steps),
    on_every_member(zeroing("blocks.0.attn.W_O", 0)),  # the net believes that it stands on the first cell for ever
    id="R27",
    standing="theorem",
    certified="exhaustive",
    budget_seconds=20,
    figure=FIGURE,
)
