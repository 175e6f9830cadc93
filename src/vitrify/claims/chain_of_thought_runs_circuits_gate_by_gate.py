r"""Any Boolean circuit runs on one attention layer that writes the value of one gate at each step.

Statement: for a circuit of $n$ inputs and $A$ two-input gates, one layer with two heads, at most four units and a width
of $3B + 6$, where $B = \lceil\log_2(n + A)\rceil$ (at least 2), writes the values of all gates in $A$ steps after the
inputs.
Why: each step looks up two values that were written before, by the codes of their addresses, which the position holds,
and combines them. The depth of the circuit becomes length of the thought, and the layer does not grow.
Checked: decoded from the inputs alone, the gates against the circuit and the outputs against arithmetic: an 8-bit adder
on 10,000 random inputs, a 4×4 multiplier on all 256, random circuits with constants and repeated gates on all; under
three kinds of attention; steps and sizes against the formulas.
Source: Li et al. 2024, arXiv 2402.12875 [S]; Feng et al. 2023, arXiv 2305.15408 [S]; the weights are our own
derivation.
Saboteur: the second head forgets which address it was told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import product

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import ATTENTIONS, with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.circuit import circuit_by_steps, sizes
from vitrify.kit import assemble
from vitrify.net.decode import Thought, decode
from vitrify.net.weights import Ledger
from vitrify.spec.circuit import Circuit
from vitrify.spec.circuits import adder, multiplier, random_circuit

SAMPLES = 10_000
SEED = 0
RANDOM = ((3, 20), (5, 60), (7, 100))  # inputs and gates
TOGETHER = 500  # inputs that are run at once


def subjects() -> Iterator[Subject]:
    """An adder, a multiplier, and random circuits."""
    bits = np.random.default_rng(SEED).integers(2, size=(SAMPLES, 16))
    yield _subject("8-bit adder", adder(8), 0, bits, lambda a, b: a + b)
    yield _subject("4×4 multiplier", multiplier(4), 1, _all_rows(8), lambda a, b: a * b)
    for place, (inputs, gates) in enumerate(RANDOM):
        circuit = random_circuit(place, inputs, gates, 4)
        yield _subject(f"random circuit of {inputs} inputs and {gates} gates", circuit, place, _all_rows(inputs))


def _subject(
    name: str, circuit: Circuit, kind: int, bits: np.ndarray, arithmetic: Callable[[int, int], int] | None = None
) -> Subject:
    attention = ATTENTIONS[kind % len(ATTENTIONS)]
    net = assemble(circuit_by_steps(circuit, attention=attention))
    return Subject(f"{name}, {attention}", circuit, net, {"bits": bits, "arithmetic": arithmetic})


def _all_rows(bits: int) -> np.ndarray:
    return np.array(list(product((0, 1), repeat=bits)), dtype=np.int64).reshape(2**bits, bits)


def check(subject: Subject) -> Evidence:
    """Thoughts of all inputs, what they come to, steps and sizes."""
    start, circuit, bits = time.perf_counter(), subject.spec, subject.data["bits"]
    prompts = [tuple(circuit.BITS[bit] for bit in row) for row in bits.tolist()]
    right = circuit.values(bits)[:, 1 + len(circuit.inputs) :]
    witness, taken = None, set()
    for prompt, values, thought in zip(prompts, right, _thoughts(subject, prompts), strict=True):
        taken.add(thought.steps)
        expected = "".join(map(str, values.astype(int).tolist()))
        if "".join(thought.symbols) != expected or not _adds_up(subject, prompt, thought.symbols):
            witness = {"inputs": " ".join(prompt), "expected": expected, "found": "".join(thought.symbols)}
            break
    size, promised = Ledger.of(subject.weights), {**sizes(circuit), "steps": circuit.and_gates}
    found = Evidence(
        verdict="holds" if witness is None else "fails",
        method="exhaustive" if len(bits) == 2 ** len(circuit.inputs) else "sampled",
        domain=f"{len(bits)} inputs",
        cases=len(bits),
        witness=witness,
        seed=SEED,
        seconds=time.perf_counter() - start,
    )
    measured = {name: getattr(size, name) for name in promised if name != "steps"} | {"steps": max(taken)}
    return with_sizes(found, promised, measured)


def _thoughts(subject: Subject, prompts: list[tuple[str, ...]]) -> Iterator[Thought]:
    for at in range(0, len(prompts), TOGETHER):
        yield from decode(subject.weights, prompts[at : at + TOGETHER], subject.spec.and_gates)


def _adds_up(subject: Subject, prompt: tuple[str, ...], thought: tuple[str, ...]) -> bool:
    """Whether the outputs are what arithmetic says, where there is any to ask."""
    arithmetic, half = subject.data["arithmetic"], len(prompt) // 2
    if arithmetic is None:
        return True
    said = subject.spec.conclusion(prompt, thought).values()
    return bool(_number(said) == arithmetic(_number(prompt[:half]), _number(prompt[half:])))


def _number(bits: Iterable[str]) -> int:
    return sum(int(bit) << place for place, bit in enumerate(bits))


def sabotage(subject: Subject) -> Subject:
    """The right operand is read from everywhere at once."""
    return zeroed(subject, "blocks.0.attn.W_Q", 1)


CLAIM = Claim(row="R26", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
