"""Turing machines step by step: against a tape that is rewritten; sizes by formula; what is refused; mutations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from built import ATTENTIONS
from cases import each
from oracles.naive_turing import steps_of
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions.catalogue import Attention, build
from vitrify.constructions.turing import sizes, turing
from vitrify.errors import BuildRefused, FolderError
from vitrify.kit import assemble
from vitrify.net.answers import run_generation
from vitrify.net.generate import generate
from vitrify.net.inference import batch_logits, batch_of, encode, trace
from vitrify.spec.computation.turing import TuringMachine, busy_beaver, increment, palindrome, random_machine

STEPS = 200


def naive(machine: TuringMachine, word: str, most: int) -> tuple[list[str], str]:
    rules = {(rule.state, rule.read): (rule.write, rule.move, rule.to) for rule in machine.rules}
    return steps_of(rules, machine.start, machine.halt, machine.blank, word, most)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_increment_adds_one(attention: Attention) -> None:
    machine = increment(5)
    weights = assemble(turing(machine, attention=attention))
    words = [format(number, f"0{size}b") for size in range(1, 6) for number in range(2**size)]
    for thought in generate(weights, words, machine.limit):
        said = machine.conclusion(thought.prompt, thought.symbols)
        assert thought.stopped
        word = "".join(thought.prompt)
        assert said["tape"].replace(" ", "") == format(int(word, 2) + 1, f"0{len(word)}b")


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_palindromes_are_accepted_and_nothing_else(attention: Attention) -> None:
    machine = palindrome(5)
    weights = assemble(turing(machine, attention=attention))
    words = list(machine.prompts())
    for thought in generate(weights, words, machine.limit):
        said = machine.conclusion(thought.prompt, thought.symbols)
        assert said["accepted"] == ("yes" if thought.prompt == thought.prompt[::-1] else "no")


def test_the_busy_beaver_takes_107_steps_and_writes_13_ones() -> None:
    machine = busy_beaver()
    (thought,) = generate(assemble(turing(machine)), [()], 107)
    assert (thought.steps, thought.stopped) == (107, True)
    assert machine.conclusion((), thought.symbols)["tape"].split().count("1") == 13
    assert (list(thought.symbols), "10" + "1" * 12) == naive(machine, "", 200)


def wanted(machine: TuringMachine, word: str) -> list[str]:
    return naive(machine, word, machine.limit)[0]


@each("seed", range(30))
def test_random_machines_to_200_steps(seed: int) -> None:
    """One pass over the right thought: a net that is right after each of its beginnings writes it."""
    halting = 0.02 if seed % 3 == 0 else 0.0
    machine = random_machine(seed, 1 + seed % 6, 2 + seed % 3, halting=halting, length=4, steps=STEPS)
    word = "".join(machine.alphabet[(seed + place) % len(machine.alphabet)] for place in range(seed % 5))
    attention = ATTENTIONS[seed % 3]
    weights = assemble(turing(machine, attention=attention))
    net, steps = weights.architecture, wanted(machine, word)
    tokens, _ = batch_of(net, [encode(net, [*word, *steps[:-1]])])
    found = batch_logits(weights, tokens)[0, net.pads - 1 + len(word) :]
    assert [net.output.symbols[place] for place in found.argmax(axis=-1)] == steps
    assert not sizes(machine, attention=attention, max_length=None).problems(weights.sizes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_200_random_machines_decoded_for_200_steps(seed: int) -> None:
    machine = random_machine(1000 + seed, 1 + seed % 8, 2 + seed % 4, halting=0.01 * (seed % 2), length=5, steps=STEPS)
    words = ["".join(machine.alphabet[(seed * place) % len(machine.alphabet)] for place in range(5))]
    for thought in generate(assemble(turing(machine, attention=ATTENTIONS[seed % 3])), words, STEPS):
        assert list(thought.symbols) == wanted(machine, words[0])


def test_the_stream_holds_the_cell_and_the_symbol() -> None:
    weights = assemble(turing(increment(4)))
    steps = ["1,R,right", "1,R,right", "_,L,carry", "0,L,carry"]
    seen = trace(weights, ["1", "1", *steps])
    assert seen.read("cell") == [0, 0, 0, 1, 2, 1, 0]
    assert seen.read("code of the cell written")[1:] == ["0", "1", "0", "1", "2", "1"]
    assert seen.read("symbol read")[2:] == ["1", "1", "_", "1", "1"]


def test_nearly_every_mutation_is_noticed() -> None:
    """What survives belongs to cells that no input comes to, to rules that no input uses, or is told twice."""
    machine = random_machine(3, 3, 3, length=3, steps=12)
    found = mutation_test(assemble(turing(machine)), machine, count=60, work=1e7)
    assert found.rate >= 0.7, found.survivors


def forever(**changes: object) -> TuringMachine:
    fields: dict[str, object] = {"start": "on", "halt": ["off"], "alphabet": "1", "length": 2}
    return TuringMachine.of({"on": {"_": "_ R on", "1": "1 S off"}}, **{**fields, **changes})


def test_what_is_refused() -> None:
    with pytest.raises(BuildRefused, match=r"no step limit, and on the input nothing it does not halt within 10000"):
        build(forever())
    assert build(forever(steps=9)).architecture.max_length == 10
    with pytest.raises(BuildRefused, match="more than 5000 inputs to try"):
        build(increment(14))
    with pytest.raises(BuildRefused, match="at least the length of the inputs, 5, is 4"):
        build(increment(5), max_length=4)


def test_examinations_notice_a_machine_with_another_rule() -> None:
    weights = build(increment(3), max_length=12)
    rules = tuple(r._replace(write="0") if r.step == "1,S,done" and r.read == "0" else r for r in increment(3).rules)
    assert certify(weights, increment(3), work=1e7).verdict == "holds"
    other = TuringMachine("right", rules, ("done",), ("0", "1"), length=3)
    evidence = certify(weights, other, work=1e7)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert evidence.witness["expected"] == "a symbol that the network can't output"


def test_a_thought_in_other_symbols_has_no_conclusion() -> None:
    weights, machine = build(increment(3), max_length=12), increment(3)
    prompt = ("1",)
    assert run_generation(weights, prompt, 4, None, machine).conclusion["state"]
    first = generate(weights, [prompt], 1)[0].symbols[0]
    symbols = tuple("another" if symbol == first else symbol for symbol in weights.architecture.output.symbols)
    output = replace(weights.architecture.output, symbols=symbols)
    renamed = replace(weights, architecture=replace(weights.architecture, output=output))
    with pytest.raises(FolderError, match="the same symbols and answers"):
        run_generation(renamed, prompt, 4, None, machine)
