"""Formulas as products of permutations: against Python and SymPy, for all inputs; sizes; what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from sympy.combinatorics import Permutation as SymPyPermutation

from built import ATTENTIONS
from cases import each_then_slow, in_turn
from vitrify.certification import certify
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase, prove_spec
from vitrify.certification.equivalence.permutations import permutations
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.values import Undecided
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions.catalogue import Attention, build, chosen
from vitrify.net.inference import encode, logits
from vitrify.net.weights import Weights
from vitrify.spec.computation.barrington import CYCLE, Instruction, commutator, program
from vitrify.spec.formats.text import SpecError
from vitrify.spec.tasks.catalogue import Task
from vitrify.spec.tasks.formula_value import FormulaValue, random_formula

FORMULAS = ("a", "!a", "a & b", "!(a | b) & c", "(a & !b) | (!a & b)", "(a & b) | (c & (a | b))", "a & b & c & !d")


def by_python(task: FormulaValue) -> list[tuple[tuple[str, ...], bool]]:
    """All inputs with the value of the formula as Python evaluates it."""
    text = task.formula.replace("!", " not ").replace("&", " and ").replace("|", " or ")
    names = task.variables
    rows = list(product((False, True), repeat=len(names)))
    return [
        (tuple(str(int(bit)) for bit in row), bool(eval(text, {}, dict(zip(names, row, strict=True))))) for row in rows
    ]


def by_sympy(instructions: tuple[Instruction, ...], names: tuple[str, ...], bits: tuple[str, ...]) -> tuple[int, ...]:
    result = SymPyPermutation(list(range(5)))
    for name, if_one, if_zero in instructions:
        result = result * SymPyPermutation(list(if_one if bits[names.index(name)] == "1" else if_zero))
    return tuple(result.array_form)


def wrong(weights: Weights, task: FormulaValue) -> int:
    rows = by_python(task)
    words = [encode(weights.architecture, [*bits, *"." * (task.length - len(bits))]) for bits, _ in rows]
    margins = [row[-1, 1] - row[-1, 0] for row in logits(weights, words)]
    return sum((m if value else -m) < 0.25 for m, (_, value) in zip(margins, rows, strict=True))


def test_products_are_the_cycle_or_the_identity() -> None:
    for task in (*map(FormulaValue, FORMULAS), *(random_formula(seed, 5, 3) for seed in range(60))):
        instructions = program(task.node)
        assert len(instructions) <= 4**task.depth
        for bits, value in by_python(task):
            assert by_sympy(instructions, task.variables, bits) == (CYCLE if value else (0, 1, 2, 3, 4)), task


def test_xor_takes_16_permutations_and_a_full_tree_4_to_the_depth() -> None:
    assert len(program(FormulaValue("(a & !b) | (!a & b)").node)) == 16
    for depth in range(5):
        parts = [f"x{n}" for n in range(2**depth)]
        while len(parts) > 1:
            parts = [f"({a} {'&|'[len(parts) // 2 % 2]} {b})" for a, b in zip(parts[::2], parts[1::2], strict=True)]
        task = FormulaValue(parts[0])
        assert (task.depth, len(program(task.node))) == (depth, 4**depth)


def test_commutators_of_every_5_cycle() -> None:
    for rest in product(range(5), repeat=5):
        if len(set(rest)) == 5 and SymPyPermutation(list(rest)).cycle_structure == {5: 1}:
            s, t = (SymPyPermutation(list(each)) for each in commutator(rest))
            assert tuple((s * t * s**-1 * t**-1).array_form) == rest
            assert s.cycle_structure == t.cycle_structure == {5: 1}


@pytest.mark.long
@each_then_slow("formula, attention", *in_turn(FORMULAS, ATTENTIONS))
def test_nets_compute_formulas(formula: str, attention: Attention) -> None:
    task = FormulaValue(formula)
    weights = build(task, attention=attention)
    assert wrong(weights, task) == 0
    assert not chosen(task).sizes(task).problems(weights.sizes)
    assert weights.architecture.loops == max(1, 2 * task.depth)
    fewer = replace(weights, architecture=replace(weights.architecture, loops=max(1, 2 * task.depth - 1)))
    assert wrong(fewer, task) == 0 if task.depth == 0 else wrong(fewer, task) > 0


@pytest.mark.slow
def test_over_a_thousand_random_inputs_of_random_formulas() -> None:
    count = 0
    for seed in range(120):
        task = random_formula(seed, 5, 3)
        assert wrong(build(task, attention=ATTENTIONS[seed % 3]), task) == 0
        count += len(by_python(task))
    assert count > 1000


def test_only_positions_depend_on_the_formula() -> None:
    first, second = (build(FormulaValue(text)) for text in ("!a", "(a & !b) | (!a & b)"))
    different = {name for name in first.arrays if not np.array_equal(first.arrays[name], second.arrays[name])}
    assert different == {"pos_embed.W_pos"}


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_both_links_are_proved_and_another_formula_is_refuted(attention: Attention) -> None:
    task, other = FormulaValue("(a & b) | (!a & c)"), FormulaValue("(a & b) | (a & c)")
    evidence = certify(build(task, attention=attention), task, prove=True, work=1e7)
    assert [(link.lemma, link.scope.value) for link in evidence.links] == [("all inputs", "to T")] * 2
    assert certify(build(other, attention=attention), task, work=1e7).verdict == "fails"


def case_of(task: FormulaValue, weights: Weights, intact: Weights) -> SpecCase:
    """The case of a net, with the margins of the intact one."""
    oracle = WordCheck(weights.architecture, task).oracle
    return SpecCase(weights, task, oracle, proof_of(intact, oracle))


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_formulas_are_proved_where_inputs_are_too_many_to_run(attention: Attention) -> None:
    halves = [" & ".join(f"(x{n} | !x{n + 1})" for n in range(start, start + 4, 2)) for start in (0, 4)]
    for text in (*FORMULAS, " | ".join(f"({half})" for half in halves)):
        task = FormulaValue(text)
        weights = build(task, attention=attention)
        proof = permutations(case_of(task, weights, weights))
        assert (proof.longest, proof.exact) == (task.length, False)
        assert proof.instances["instructions"] == len(program(task.node))
    pairs = [f"(x{n} & !x{n + 1})" for n in range(0, 10, 2)]
    large = FormulaValue(f"(({pairs[0]} | {pairs[1]}) & ({pairs[2]} | {pairs[3]})) | {pairs[4]}")
    weights = build(large, attention=attention)
    assert prove_spec(case_of(large, weights, weights)).lemma == "permutations"


def test_what_the_lemma_refuses() -> None:
    task = FormulaValue("(a & b) | (!a & c)")
    weights = build(task)
    dims = {label.name: list(label.dims) for label in weights.labels.spaces}
    arrays = weights.arrays

    def reason(name: str, at: Any, value: float, spec: FormulaValue = task) -> str:
        array = arrays[name].copy()
        array[at] = value
        with pytest.raises(Undecided) as stop:
            permutations(case_of(spec, weights.with_array(name, array), weights))
        return str(stop.value)

    place, bit = "pos_embed.W_pos", arrays["pos_embed.W_pos"][5, dims["address"]]
    assert "no instruction for" in reason(place, (5, dims["address"]), float(bit[0] % 3 + 1))
    other = FormulaValue("(a & b) | (a & c)")
    assert "depends on more than the value" in reason(place, (0, 0), 0.0, other)
    assert "does not hold its bit and one permutation" in reason(place, (6, dims["permutation"][0]), 7.0)
    assert "BOS does not hold the identity" in reason(place, (0, dims["permutation"][:2]), 1.0)
    assert "does not read the permutation 2 back" in reason("blocks.1.mlp.W_out", (41, dims["distance"][0]), 1.5)
    assert "is read, or is not erased" in reason("blocks.1.mlp.W_in", (dims["bit of the variable"][0], 3), 0.5)
    assert "wrong" in reason("unembed.b_U", 0, 1.5)
    fewer = replace(weights, architecture=replace(weights.architecture, loops=3))
    with pytest.raises(Undecided, match=r"no instruction for|four parts"):
        permutations(case_of(task, fewer, fewer))


@pytest.mark.long
def test_mutations_are_noticed() -> None:
    task = FormulaValue("(a & !b) | (!a & b)")
    tested = mutation_test(build(task), task, count=80)
    assert tested.rate > 0.9, tested.survivors


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("", "ends too early"),
        ("a &", "ends too early"),
        ("a b", "'b' is not expected"),
        ("a + b", "'\\+ b' is not expected"),
        ("&", "a name, ! or an opening bracket"),
        ("(a", "'\\)' is missing"),
        ("!" * 100_000 + "a", "at most 200 brackets and connectives, not 100000"),
        ("&".join("abcdefgh"), "at most 6, not 7"),
    ],
)
def test_a_wrong_formula_is_one_message(formula: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        FormulaValue(formula)


def test_random_formulas_have_their_depth() -> None:
    assert {(seed, random_formula(seed, 4, d).depth - d) for seed in range(9) for d in range(4)} == {
        (seed, 0) for seed in range(9)
    }
    assert isinstance(random_formula(1, 2, 1), Task)
