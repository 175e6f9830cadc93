"""Probabilistic machines on both networks: strings against all paths, stacks against tapes, precision, refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from cases import each
from oracles.naive_probabilistic import Rule, machine_masses
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.certification.precision.formats import FORMATS
from vitrify.certification.precision.narrow import narrowed
from vitrify.claims._runs import error_on_runs, largest_difference, random_runs, stacks_on_runs, string_masses
from vitrify.constructions.catalogue import build
from vitrify.constructions.probabilistic_turing import sizes
from vitrify.constructions.probabilistic_turing_recurrent import Code
from vitrify.constructions.probabilistic_turing_recurrent import sizes as recurrent_sizes
from vitrify.errors import BuildRefused
from vitrify.kit.heads.whole import longest_selection
from vitrify.net.generate import generate
from vitrify.spec.computation.probabilistic_turing import (
    ProbabilisticTuringMachine,
    drifting_walk,
    equal_numbers,
    marked_palindromes,
    random_probabilistic_machine,
)

TRANSFORMER, RECURRENCE = "probabilistic-turing", "probabilistic-turing-rnn"
NAMES = (TRANSFORMER, RECURRENCE)
STACKS = ("right of the head", "left of the head")
TOLERANCE = 1e-12


def machine_of(seed: int) -> ProbabilisticTuringMachine:
    choices, letters = 2 + seed % 2, 1 + seed % 3
    return random_probabilistic_machine(100 + seed, 1 + seed % 5, 2 + seed % 4, choices=choices, letters=letters)


def by_paths(machine: ProbabilisticTuringMachine, steps: int) -> tuple[dict[tuple[str, ...], float], float]:
    rules: dict[tuple[str, str], list[Rule]] = {}
    for rule in machine.rules:
        row = (rule.probability, rule.write, rule.move, rule.to, rule.emitted)
        rules.setdefault((rule.state, rule.read), []).append(row)
    strings, running = machine_masses(rules, machine.start, machine.halt, machine.blank, steps)
    return {tuple(string): float(p) for string, p in strings.items()}, float(running)


@pytest.mark.parametrize("name", NAMES)
@each("seed", range(20))
def test_20_random_machines_give_all_strings_their_probabilities(seed: int, name: str) -> None:
    machine = machine_of(seed)
    weights = build(machine, name)
    strings, running = string_masses(weights, {r.step: r.emitted for r in machine.rules if r.emitted}, 6)
    wanted, left = by_paths(machine, 6)
    assert largest_difference(strings, wanted)[0] <= TOLERANCE
    assert running == pytest.approx(left, abs=TOLERANCE)
    assert not (sizes if name == TRANSFORMER else recurrent_sizes)(machine).problems(weights.sizes)
    runs = random_runs(machine, weights.architecture, 20, min(100, weights.architecture.longest), seed)
    assert error_on_runs(machine, weights, runs) <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(23))
def test_1000_random_runs_of_each_machine(seed: int, name: str) -> None:
    known = (equal_numbers(), marked_palindromes(), drifting_walk())
    machine = known[seed - 20] if seed >= 20 else machine_of(seed)
    weights = build(machine, name)
    runs = random_runs(machine, weights.architecture, 1000, min(64, weights.architecture.longest), seed)
    assert error_on_runs(machine, weights, runs) <= TOLERANCE
    if name == RECURRENCE:
        wrong, bits = stacks_on_runs(machine, weights, runs[:100], STACKS)
        assert wrong == 0
        assert bits <= int(str(weights.about["bits per step"]))
    evidence = certify(weights, machine, work=1e7, prove=True)
    assert evidence.verdict == "holds"
    assert all(link.longest == weights.architecture.longest for link in evidence.links)


@each("seed", range(8))
def test_stacks_are_exact_fractions(seed: int) -> None:
    machine = machine_of(seed)
    weights = build(machine, RECURRENCE)
    runs = random_runs(machine, weights.architecture, 10, weights.architecture.max_length, seed)
    assert stacks_on_runs(machine, weights, runs, STACKS)[0] == 0


@pytest.mark.parametrize("name", NAMES)
def test_nothing_depends_on_the_number_of_steps(name: str) -> None:
    machine = marked_palindromes()
    lengths = (1, 7, 100, 1000) if name == TRANSFORMER else (1, 7, 23)
    nets = [build(machine, name, max_length=length) for length in lengths]
    for net in nets[1:]:
        assert all(array.tobytes() == net.arrays[key].tobytes() for key, array in nets[0].arrays.items())


def test_strings_come_as_often_as_they_should() -> None:
    machine = equal_numbers(Fraction(1, 3))
    runs = generate(build(machine, TRANSFORMER), [()] * 900, 60, seed=5)
    lengths = [len(machine.erased(run.symbols)) // 2 for run in runs]
    assert all(run.stopped for run in runs)
    for n in range(4):
        wanted = 900 * 2 / 3 ** (n + 1)
        assert abs(lengths.count(n) - wanted) < 4 * np.sqrt(wanted)


@pytest.mark.parametrize(("kind", "bits"), [("bfloat16", 8), ("float16", 11), ("float32", 24)])
def test_a_narrow_format_carries_the_steps_of_the_formula_and_breaks_soon_after(kind: str, bits: int) -> None:
    """Logits are rounded as well, so that a distribution counts as wrong from 1/10 on."""
    machine = marked_palindromes()
    weights = narrowed(build(machine, RECURRENCE), FORMATS[kind])
    carried = Code.of(len(machine.symbols)).steps_within(bits)
    ids = weights.architecture.input_ids
    runs = []
    for n in range(1, 12):
        word = ("ab" * n)[:n]
        run = [f"{s},R,write,{s}" for s in word] + ["_,L,back,c"] + [f"_,L,back,{s}" for s in word[::-1]]
        runs.append([ids[step] for step in run])
    right = [error_on_runs(machine, weights, [run]) < 0.1 for run in runs]
    for n, fine in enumerate(right, start=1):
        assert fine or 2 * n + 1 > carried
    assert not all(right) or bits == 24
    assert all(error_on_runs(machine, weights, [run[:carried]]) < 0.1 for run in runs)


@pytest.mark.parametrize(("symbols", "steps"), [(1, 50), (2, 24), (3, 23), (4, 15), (7, 14), (8, 11)])
def test_the_steps_that_float64_carries(symbols: int, steps: int) -> None:
    code = Code.of(symbols)
    assert code.steps_within(53) == steps
    assert code.base > symbols
    assert Fraction(code.width) <= Fraction(code.base - symbols, code.base * (code.base - 1))


def test_what_is_refused() -> None:
    with pytest.raises(BuildRefused, match="float64 carries the stacks of 2 symbols for 24 steps, not 25"):
        build(equal_numbers(), RECURRENCE, max_length=25)
    many = random_probabilistic_machine(0, 1, 400)
    with pytest.raises(BuildRefused, match=r"the state has 4,795 numbers, more than 4,096"):
        build(many, RECURRENCE)
    with pytest.raises(BuildRefused, match="at most 16,777,216 logits"):
        build(random_probabilistic_machine(0, 50, 60, choices=3), TRANSFORMER)
    longest = longest_selection(53)
    with pytest.raises(BuildRefused, match=f"up to --max-length {longest}, not {longest + 1}"):
        build(equal_numbers(), TRANSFORMER, max_length=longest + 1)


@pytest.mark.parametrize("name", NAMES)
def test_the_net_of_another_machine_is_told_from_it(name: str) -> None:
    machine = equal_numbers()
    weights = build(equal_numbers(Fraction(1, 4)), name)
    evidence = certify(weights, machine, work=1e6)
    assert evidence.verdict == "fails"
    strings, _ = string_masses(weights, {r.step: r.emitted for r in machine.rules if r.emitted}, 9)
    assert largest_difference(strings, by_paths(machine, 9)[0])[0] > 0.1


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_nearly_every_mutation_is_noticed(name: str) -> None:
    machine = marked_palindromes()
    weights = build(machine, name, max_length=40 if name == TRANSFORMER else 23)
    tested = mutation_test(weights, machine, count=60, work=1e6)
    assert tested.rate >= 0.8, tested.survivors


@each("name", NAMES)
def test_both_links_are_proved(name: str) -> None:
    machine = marked_palindromes()
    weights = build(machine, name)
    evidence = certify(weights, machine, work=1e6, prove=True)
    lemma, longest = ("machine steps at any length", 23_726_565) if name == TRANSFORMER else ("two stacks", 23)
    assert {(link.lemma, link.longest) for link in evidence.links} == {(lemma, longest)}


EDGES = {
    "every rule halts": {"s": {"_": ["1/2 _ S h a", "1/2 _ S h b"]}},
    "it never moves": {"s": {"_": ["1/2 _ S s a", "1/2 _ S h"]}},
    "it never halts": {"s": {"_": ["1/2 _ R s a", "1/2 _ L s"]}},
    "it emits nothing": {"s": {"_": ["1/2 _ R s", "1/2 _ L h"]}},
    "one name for three things": {"a": {"_": ["1/2 _ R a a", "1/2 _ L s"]}, "s": {"_": ["1 _ S h"]}},
}


@pytest.mark.parametrize("name", NAMES)
@each("edge", EDGES)
def test_small_machines_at_the_edge(edge: str, name: str) -> None:
    rules = EDGES[edge]
    machine = ProbabilisticTuringMachine.of(rules, start=next(iter(rules)), halt=["h"], emits="ab")
    weights = build(machine, name)
    assert certify(weights, machine, work=1e5, prove=True).verdict == "holds"
    strings, running = string_masses(weights, {r.step: r.emitted for r in machine.rules if r.emitted}, 5)
    wanted, left = by_paths(machine, 5)
    assert largest_difference(strings, wanted)[0] <= TOLERANCE
    assert running == pytest.approx(left, abs=TOLERANCE)


def test_conclusions_of_runs() -> None:
    machine = marked_palindromes()
    (run,) = generate(build(machine, RECURRENCE), [()], 23, seed=3)
    assert run.stopped
    said = machine.conclusion((), run.symbols)
    assert said["string"] == said["string"][::-1]
    assert said["halted"] == "yes"
    assert list(islice(machine.erased(run.symbols), 99)) == said["string"].split()
