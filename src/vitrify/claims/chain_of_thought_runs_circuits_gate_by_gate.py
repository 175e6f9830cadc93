r"""Any Boolean circuit runs on one attention layer that writes the value of one gate at each step.

Statement: For every Boolean circuit with $n$ inputs and $A$ two-input gates there is a transformer with one layer, two
heads, at most four units and width $3B + 6$, where $B = \max(2, \lceil\log_2(n + A)\rceil)$, that writes the values of
all gates in $A$ steps after the inputs.
Why: Each step looks up two earlier values by the codes of their addresses, which its position holds, and combines them.
Depth of the circuit becomes length of the chain of thought.
Checked: Generated from the inputs alone, each with one of the three kinds of attention: an 8-bit adder on 10,000 random
inputs, a 4×4 multiplier on all 256, random circuits of 3, 5 and 7 inputs and 20, 60 and 100 gates on all inputs. Gates
are compared with the circuit, outputs with arithmetic, steps and sizes with the formulas.
Not checked: Larger circuits, and the converse (what a constant-depth transformer with $T$ steps cannot do). The circuit
is in the position table, so the network is non-uniform, as in the source; the uniform version with the circuit in the
prompt is not built here.
Source: Li et al. 2024, arXiv 2402.12875 [S]; Feng et al. 2023, arXiv 2305.15408 [S]; the weights are our own
derivation.
Saboteur: The query of the second head is zero, so that it attends to all positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np

from vitrify.claims._figures import declared, points, show
from vitrify.claims._nets import ATTENTIONS, Domain, Evidence, Method, built, sized, witnessed, zeroing
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.net.generate import generate
from vitrify.spec.computation.circuit import Circuit, adder, multiplier, random_circuit

SAMPLES = 10_000
SEED = 0
RANDOM = ((3, 20), (5, 60), (7, 100))  # inputs and gates
TOGETHER = 500  # inputs that are run at once


def subjects() -> Subjects:
    bits = np.random.default_rng(SEED).integers(2, size=(SAMPLES, 16))
    yield _subject("8-bit adder", adder(8), 0, bits, lambda a, b: a + b)
    yield _subject("4×4 multiplier", multiplier(4), 1, _all_rows(8), lambda a, b: a * b)
    for number, (inputs, gates) in enumerate(RANDOM):
        circuit = random_circuit(number, inputs, gates, 4)
        yield _subject(f"random circuit of {inputs} inputs and {gates} gates", circuit, number, _all_rows(inputs))


def _subject(
    name: str, circuit: Circuit, kind: int, bits: np.ndarray, arithmetic: Callable[[int, int], int] | None = None
) -> Subject:
    attention, data = ATTENTIONS[kind % len(ATTENTIONS)], {"bits": bits, "arithmetic": arithmetic}
    return built(f"{name}, {attention}", circuit, "circuit", data, attention=attention)


def _all_rows(bits: int) -> np.ndarray:
    return np.array(list(product((0, 1), repeat=bits)), dtype=np.int64).reshape(2**bits, bits)


def check(subject: Subject) -> Evidence:
    circuit, bits = subject.spec, subject.data["bits"]
    prompts = [tuple(circuit.BITS[bit] for bit in row) for row in bits.tolist()]
    right = circuit.values(bits)[:, 1 + len(circuit.inputs) :]
    witness, taken = None, set()
    batches = (prompts[at : at + TOGETHER] for at in range(0, len(prompts), TOGETHER))
    thoughts = (thought for batch in batches for thought in generate(subject.weights, batch, circuit.and_gates))
    for prompt, values, thought in zip(prompts, right, thoughts, strict=True):
        taken.add(thought.steps)
        expected = "".join(map(str, values.astype(int).tolist()))
        if "".join(thought.symbols) != expected or not _adds_up(subject, prompt, thought.symbols):
            witness = {"inputs": " ".join(prompt), "expected": expected, "actual": "".join(thought.symbols)}
            break
    method = Method.EXHAUSTIVE if len(bits) == 2 ** len(circuit.inputs) else Method.SAMPLED
    evidence = witnessed(witness, len(bits), Domain("inputs", method, len(bits)), seed=SEED)
    return evidence.adding(*sized(subject, {"steps": circuit.and_gates}, {"steps": max(taken)}))


def _adds_up(subject: Subject, prompt: tuple[str, ...], thought: tuple[str, ...]) -> bool:
    """Return whether the outputs equal the arithmetic result, where there is one."""
    arithmetic, half = subject.data["arithmetic"], len(prompt) // 2
    if arithmetic is None:
        return True
    outputs = subject.spec.conclusion(prompt, thought).values()
    return bool(_number(outputs) == arithmetic(_number(prompt[:half]), _number(prompt[half:])))


def _number(bits: Iterable[str]) -> int:
    return sum(int(bit) << place for place, bit in enumerate(bits))


sabotage = zeroing("blocks.0.attn.W_Q", 1)  # the right operand is read from everywhere at once
FIGURE = show(
    points(
        declared("steps"),
        ("steps", "d_model", "layers"),
        "gates of the circuit",
        "count",
        laws={"one step each": lambda count: count},
    )
)
CLAIM = Claim(
    subjects, check, sabotage, id="R26", standing="theorem", certified="sampled", budget_seconds=20, figure=FIGURE
)
