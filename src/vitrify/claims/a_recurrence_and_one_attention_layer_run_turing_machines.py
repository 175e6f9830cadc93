r"""A recurrent layer with a state of two numbers and one attention layer run any Turing machine step by step.

Statement: For every one-tape Turing machine and every number $T$ of positions there is a network of one diagonal linear
recurrence with two numbers, followed by one attention layer with one head, that writes the steps of the machine as its
chain of thought. Its MLPs, one after each layer, have $8T + 1$ and $Q'G$ units, and its width is $Q + Q' + 3G + M + 2B
+ 7$, for $Q'$ states with rules, $Q$ to which rules lead, $G$ symbols, $M$ moves and $B$ bits for $2T + 1$ cells.
Why: The recurrence sums the moves, which gives the cell of the head, and the positions of the input letters. The head
finds the last position that wrote to that cell. The tape is in the sequence, not in the state.
Checked: 200 random machines of 2 to 6 states and 2 to 4 symbols, one input and 200 steps each: the next step at every
prefix of the input and its correct chain of thought. Binary increment and palindromes on all inputs to length 6, and
the four-state busy beaver, generated step by step to the end. Layers, heads, state, units and width are compared with
the formulas.
Not checked: More than $T$ positions: units and the position table grow with $T$. The source speaks of all
polynomial-time machines and proves that recurrent networks alone need more state; neither is checked.
Source: Wen, Dang & Lyu 2024, arXiv 2402.18510 [A]; the weights are our own derivation.
Saboteur: The recurrence resets its state at every position.
"""

from __future__ import annotations

import numpy as np

from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.claims._figures import bars, show
from vitrify.claims._nets import Claim, Domain, Evidence, Method, Quantity, Subject, Subjects, quantities, witnessed
from vitrify.constructions.hybrid_turing import hybrid_turing, sizes
from vitrify.kit import assemble
from vitrify.net.generate import generate
from vitrify.net.inference import batch_logits
from vitrify.net.weights import Weights
from vitrify.spec.computation.turing import TuringMachine, busy_beaver, increment, palindrome, random_machine

MACHINES, STEPS, LETTERS = 200, 200, 6
SCALE = "blocks.0.rec.W_A"


def subjects() -> Subjects:
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
        size = weights.sizes
        promised: dict[str, object] = {**sizes(machine, max_length=None).exact, "state": 2}
        cell = weights.architecture.blocks[0].cell
        sizes_measured = {name: getattr(size, name, None) for name in promised} | {"state": cell.state if cell else 0}
        if known or sizes_measured != promised:
            declared, measured = promised, sizes_measured
        taken, witness = _decoded(machine, weights) if known else _followed(machine, weights, number)
        steps += taken
        if witness or sizes_measured != promised:
            break
    if known:
        domain = Domain("inputs, to the end", Method.EXHAUSTIVE, len(list(machines[0].prompts())))
    else:
        domain = Domain("machines, one input each", Method.SAMPLED, len(machines), settings={"steps": STEPS})
    evidence = witnessed(witness, steps, domain, seed=0)
    return evidence.adding(Quantity("answers", steps), *quantities(declared, measured))


def _decoded(machine: TuringMachine, weights: Weights) -> tuple[int, dict[str, object] | None]:
    """Generate from every input; return the steps compared with the machine, and the first difference."""
    taken = 0
    for thought in generate(weights, list(machine.prompts()), machine.limit):
        right = machine.thought(thought.prompt, machine.limit)
        taken += len(right)
        if thought.symbols != right:
            pairs = enumerate(zip(thought.symbols, right, strict=False), start=1)
            step, (written, wanted) = next(
                (pair for pair in pairs if pair[1][0] != pair[1][1]), (0, ("an end", "none"))
            )
            return taken, {"input": thought.prompt, "step": step, "expected": wanted, "actual": written}
    return taken, None


def _followed(machine: TuringMachine, weights: Weights, seed: int) -> tuple[int, dict[str, object] | None]:
    """Compare the next step after every prefix of a random input and its chain of thought."""
    net = weights.architecture
    oracle = oracle_for(machine, net)
    assert oracle.language is not None
    word = np.array(oracle.language.draw(np.random.default_rng(seed)))
    logits = batch_logits(weights, np.pad(word, (1, 0))[None])
    wrong = np.flatnonzero(oracle.errors(word[None], logits)[0])
    if wrong.size:
        end = int(wrong[0])
        return len(word), {"machine": seed, **oracle.witness(word[:end], logits[0, : end + 1])}
    return len(word) + 1, None


def sabotage(subject: Subject) -> Subject:
    return Subject(subject.name, data={**subject.data, "forgets": True})


FIGURE = show(bars({"units": "units", "width": "d_model"}, "size of the net", "y"))
CLAIM = Claim(
    subjects, check, sabotage, id="R25", standing="theorem", certified="proved", budget_seconds=20, figure=FIGURE
)
