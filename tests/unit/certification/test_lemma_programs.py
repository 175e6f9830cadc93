"""Networks of programs, formulas and counting programs are proved, expression by expression, and wrong ones are not."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from samples import ENTRIES, LENGTH, SAMPLES, built
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence import translation
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, prove_spec
from vitrify.certification.equivalence.expressions import ProgramExpressions
from vitrify.certification.equivalence.translation import expression_by_expression
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.values import Undecided
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.logic import crasp
from vitrify.spec.logic.crasp import Crasp, random_counting
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.programs import families
from vitrify.spec.programs.expression import (
    Expr,
    aggregate,
    apply,
    before,
    choose,
    first,
    indices,
    last,
    marked,
    mean,
    select,
    tokens,
    upto,
    width,
)
from vitrify.spec.programs.program import Program, program

pytestmark = pytest.mark.long

T = 4  # words up to this length are all run
PROGRAMS: dict[str, tuple[Expr, str, bool]] = {
    "reverse": (families.reverse(), "abc", False),
    "histogram": (families.histogram(), "abc", False),
    "most frequent": (families.most_frequent(), "ab", False),
    "shift": (families.shift(2), "ab", True),
    "mean": (families.fraction_of_previous("a"), "ab", True),
    "union": (width(select(tokens, tokens, "<=") | (select(tokens, "b") & before)), "abc", True),
    "all": (width(upto) + indices, "ab", True),
    "before": (width(marked(tokens == "a") & before) + indices, "ab", True),
    "brackets": (families.dyck([("a", "b"), ("c", "d")], 2), "abcd", True),
    "last": (families.last_marked("a"), "ab", True),
    "induction": (families.induction(), "abc", True),
    "copy": (families.copy_after("c"), "abc", True),
    "remainder": (families.sum_modulo("012"), "012", True),
    "most frequent of": (families.most_frequent_of("abc"), "abc", True),
}


def case_of(weights: Weights[Any], spec: object) -> SpecCase:
    oracle = WordCheck(weights.architecture, spec).oracle
    return SpecCase(weights, spec, oracle, proof_of(weights, oracle))


def formula(text: str, length: int = 12, alphabet: str = "a b c") -> Formula:
    return Formula.from_text(f"alphabet: {alphabet}\nlength: {length}\n{text}")


def counting(text: str, length: int = 12) -> Crasp:
    return Crasp.from_text(f"alphabet: a b\nlength: {length}\n{text}")


def ab(root: Expr, length: int = 5, *, causal: bool = True) -> Program:
    return program(root, "ab", length, causal=causal)


@pytest.mark.parametrize("attention", ["softmax", "sparsemax", "hard"])
@pytest.mark.parametrize("name", ["program", "temporal", "counting"])
def test_every_sample_is_proved(name: str, attention: Any) -> None:
    for spec in SAMPLES[ENTRIES[name].kind]:
        weights = built(ENTRIES[name], spec, attention)
        assert weights is not None
        proof = prove_spec(case_of(weights, spec))
        assert proof.witness is None
        assert proof.longest == (None if name == "temporal" else LENGTH)
        assert all(proof.instances.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_proved(name: str) -> None:
    root, alphabet, causal = PROGRAMS[name]
    spec = program(root, alphabet, 6, causal=causal)
    for attention in ("softmax", "hard"):
        assert expression_by_expression(case_of(build(spec, attention=attention), spec)).longest == 6


def test_counting_programs_are_proved() -> None:
    specs = [random_counting(seed, 3, length=8) for seed in (0, 3, 5, 7, 112, 123)]
    specs += [crasp.shuffle_dyck([("a", "b"), ("c", "d")], 8), crasp.majority("a", "ab", 100)]
    for spec in specs:
        assert expression_by_expression(case_of(build(spec), spec)).longest == spec.length


def test_a_formula_of_length_500_is_proved_for_every_length() -> None:
    """Both links; the words that refute a formula are found."""
    spec = formula("H(a -> Y O b) & O(c & H !a)", 500)
    case = case_of(build(spec), spec)
    assert prove_spec(case).longest is None
    assert len(prove_spec(case_of(case.weights, formula("O(c & H !a)", 500))).witness or ()) == 2


@pytest.mark.parametrize("text", ["b -> Y (a S b)", "(Y Y a) & (b S (c & Y a))", "MOD(1, 3) & (a S MOD(0, 2))"])
def test_formulas_are_proved_as_programs_too(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "product_of_states", undecided)
    for attention in ("softmax", "sparsemax"):
        assert expression_by_expression(case_of(build(formula(text), attention=attention), formula(text))).longest == 12


def undecided(case: SpecCase) -> SpecProof:
    raise Undecided(f"not asked about {case.spec}")


RARE = "Y " * 9 + "(a & Y b)"  # depends on letters ten positions back
A, B = tokens == "a", tokens == "b"
TROJANS: dict[str, tuple[object, object, str]] = {  # the spec that is built, the one that is declared, and the reason
    "a long word": (formula(f"O a & !({RARE})"), formula("O a"), ""),
    "a late position": (formula("a & !(Y (b S MOD(10, 11)))"), formula("a"), ""),
    "a count": (counting("#a > 11 | #b > 3"), counting("#a > 10 | #b > 3"), ""),
    "a nested count": (counting("#(#a > #b) > 10"), counting("#(#a >= #b) > 10"), ""),
    "a rare sum": (counting("2 * #a - #b = 24"), counting("#a = 20"), ""),
    "the result": (ab(A), ab(B), "not right"),
    "a relation": (ab(width(select(tokens, tokens))), ab(width(select(tokens, tokens, "!="))), "not selected may win"),
    "an equal": (
        ab(width(select(indices % 2, indices % 3, "<="))),
        ab(width(select(indices % 2, indices % 3, "<"))),
        "not selected may win",
    ),
    "a mask": (
        ab(last(marked(A) & before, indices, -1)),
        ab(last(marked(A) & upto, indices, -1)),
        "selected key is not visible",
    ),
    "a wider mask": (
        ab(last(marked(A) & upto, indices, -1)),
        ab(last(marked(A) & before, indices, -1)),
        "not selected may win",
    ),
    "first": (ab(first(marked(A) & upto, indices, -1)), ab(last(marked(A) & upto, indices, -1)), "another"),
    "last": (ab(last(marked(A) & upto, indices, -1)), ab(first(marked(A) & upto, indices, -1)), "another"),
    "a default": (ab(families.shift(1, "a")), ab(families.shift(1, "b")), "not the default"),
    "a value": (ab(last(marked(A), indices % 4, -1)), ab(last(marked(A), indices, -1)), "not right"),
    "a distance": (ab(families.shift(2, "a")), ab(families.shift(1, "a")), ""),
    "a table row": (
        ab(apply(lambda n, a: n == 4 and a == "b", families.counted("a"), tokens)),
        ab(apply(lambda n, a: n == 4 and a == "a", families.counted("a"), tokens)),
        "more than one expression",
    ),
    "a mean": (ab(mean(upto, A)), ab(mean(marked(A) & upto, A)), ""),
    "a number": (ab(mean(upto, indices % 4)), ab(mean(upto, indices)), "on no line"),
    "a query": (ab(families.counted("a")), ab(width(select(tokens, tokens))), "nor on the side"),
    "what is counted": (ab(families.counted("a")), ab(families.counted("b")), "not what is counted"),
    "looking ahead": (
        ab(aggregate(select(indices, indices + 1), tokens, "a"), causal=False),
        ab(aggregate(select(indices, indices + 1), tokens, "b"), causal=False),
        "not the default",
    ),
    "a rare branch": (
        ab(choose((families.counted("a") == 5) & (indices == 4), "x", tokens)),
        ab(choose((families.counted("a") == 5) & (indices == 3), "x", tokens)),
        "",
    ),
}


@pytest.mark.parametrize("name", TROJANS)
@pytest.mark.parametrize("attention", ["softmax", "hard"])
def test_trojans_are_not_proved(name: str, attention: str) -> None:
    """The declared spec itself is proved, and the network of another one is not proved to be it."""
    other, spec, reason = TROJANS[name]
    weights = build(other, attention=attention)
    assert prove_spec(case_of(build(spec, attention=attention), spec)).witness is None
    case = case_of(weights, spec)
    said, proof = "", None
    try:
        proof = prove_spec(case)
    except Undecided as stop:
        said = str(stop)
    assert proof is None or proof.witness is not None
    assert proof is None or wrong_words(case, 0, np.array([proof.witness]))
    assert proof is not None or reason in said or attention == "hard"


def wrong_words(case: SpecCase, length: int, words: np.ndarray | None = None) -> bool:
    """Return whether a network answers wrong on some words, or on any word of a length."""
    if words is None:
        words = np.array(list(product(range(1, len(case.net.inputs)), repeat=length)))
    logits = batch_logits(case.weights, with_pads(case.net, words))[:, case.net.pads - 1 :]
    return bool((case.oracle.errors(words, logits) > case.oracle.tolerance()).any())


MUTATED: dict[str, object] = {
    "reverse": program(families.reverse(), "ab", T),
    "most frequent": program(families.most_frequent(), "ab", T),
    "last": ab(families.last_marked("a"), T),
    "mean": ab(families.fraction_of_previous("a"), T),
    "counts": random_counting(6, 2, length=T, alphabet="ab"),
    "formula": formula("(Y Y a) & (b S (a & Y a))", T, "a b"),
}


@pytest.mark.parametrize("attention", ["softmax", "hard"])
@pytest.mark.parametrize("name", MUTATED)
def test_mutants_that_are_wrong_are_not_proved(name: str, attention: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "product_of_states", undecided)
    spec, rng = MUTATED[name], np.random.default_rng(1)
    weights, refuted = build(spec, attention=attention), 0
    for _ in range(25):
        case = case_of(mutant(weights, rng), spec)
        wrong = any(wrong_words(case, length) for length in range(1, T + 1))
        try:
            expression_by_expression(case)
        except Undecided:
            refuted += wrong and case.proof is not None and case.proof.holds
        else:
            assert not wrong
    assert refuted  # margins hold of some that are wrong


CHECKS = {  # what a network can fail in, by a part of the message
    "not selected may win",
    "BOS is not as good",
    "BOS may win",
    "different weights",
    "need not win",
    "another of the selected",
    "not visible",
    "not the same for all words",
    "counts reads a value",
    "not the default",
    "different weights at different positions",
    "nor on the side of a key",
    "not what is counted",
    "more than one expression",
    "is not right",
}


def test_every_check_refuses_some_network() -> None:
    """Mutants of networks and networks of other specs, with the margins of the right one: the second link alone."""
    said, rng = "", np.random.default_rng(0)
    for spec, attention in product(MUTATED.values(), ("softmax", "hard")):
        if isinstance(spec, Formula):
            spec = spec.program
        right = case_of(build(spec, attention=attention), spec)
        for _ in range(30):
            said += reason(SpecCase(mutant(right.weights, rng), spec, right.oracle, right.proof))
    for (other, spec, _), attention in product(TROJANS.values(), ("softmax", "hard")):
        if not isinstance(spec, Formula):
            said += reason(case_of(build(other, attention=attention), spec))
    for spec in (MUTATED["most frequent"], ab(families.histogram())):  # values that heads should not read
        right = case_of(build(spec), spec)
        name, head = max((f"blocks.{label.block}.attn.W_V", label.index) for label in right.weights.labels.heads)
        for dim in range(right.ideal.net.d_model):
            array = np.array(dense(right.weights.arrays[name]))
            array[head, dim] += 1.0
            said += reason(SpecCase(right.weights.with_array(name, array), spec, right.oracle, right.proof))
    assert {check for check in CHECKS if check not in said} == set()


def reason(case: SpecCase) -> str:
    """Return why a network is not proved; nothing if it is."""
    try:
        expression_by_expression(case)
    except Undecided as stop:
        return str(stop)
    return ""


def mutant(weights: Weights[Any], rng: np.random.Generator) -> Weights[Any]:
    """Return a network with one weight changed."""
    names = [name for name, array in weights.arrays.items() if np.any(dense(array))]
    name = names[rng.integers(len(names))]
    array = np.array(dense(weights.arrays[name]), dtype=float)
    places = np.argwhere(array != 0) if rng.random() < 0.75 else np.argwhere(np.ones_like(array))
    at = tuple(places[rng.integers(len(places))])
    array[at] = rng.choice([0.0, -array[at], 1.5 * array[at], 0.5 * array[at], array[at] + 1, array[at] - 1])
    return weights.with_array(name, array)


def test_states_determine_the_answers() -> None:
    rng = np.random.default_rng(0)
    specs: list[Any] = [random_counting(seed, 3, length=9) for seed in range(8)]
    specs += [formula(text) for text in ("Y MOD(0, 3) | H !Y true", "(a S b) S (b S Y c)", "O a <-> H(b -> MOD(1, 2))")]
    for spec in specs:
        meaning = spec.meanings()["transducer"]
        for _ in range(20):
            word = [spec.alphabet[letter] for letter in rng.integers(0, 3, size=9)]
            state = meaning.states.start
            for letter, answer in zip(word, meaning.after(word)[1:], strict=True):
                state = meaning.states.step(state, letter)
                assert str(state[2]) == answer


@pytest.mark.parametrize(
    "text", ["Y x", "O x", "H x", "x S y", "x S (Y y)", "Y (x S y) <-> O (x -> H y)", "MOD(1, 3) & Y x"]
)
def test_formulas_are_their_programs(text: str) -> None:
    spec = formula(text.replace("x", "(a | c)").replace("y", "(b | c)"), 6)
    for word in product("abc", repeat=6):
        holds = spec.holds(np.array([["abc".index(letter) for letter in word]]))[0]
        assert holds.tolist() == spec.program(word)


def test_counting_programs_are_their_programs() -> None:
    for spec in (random_counting(seed, 3, length=5) for seed in range(12)):
        for word in product("abc", repeat=5):
            holds = spec.holds(np.array([["abc".index(letter) for letter in word]]))[0]
            assert holds.tolist() == spec.program(word)


def test_sets_of_values_contain_all_that_occur_and_functions_are_right() -> None:
    """Of every expression of a program, also of widths that are functions of other widths."""
    for root, alphabet, causal in PROGRAMS.values():
        source = ProgramExpressions(program(root, alphabet, 4, causal=causal))
        for word in product(alphabet[:3], repeat=4):
            values = [program_values(source, node, word) for node in source.nodes]
            for n, (args, table) in enumerate(zip(source.args, source.tables, strict=True)):
                at = [source.domains[n].index(value) for value in values[n]]
                if table is not None and source.nodes[n].op != "const":
                    inner = [[source.domains[arg].index(value) for value in values[arg]] for arg in args]
                    assert at == [int(table[place]) for place in zip(*inner, strict=True)] if args else not any(at)


def program_values(source: ProgramExpressions, node: Expr, word: tuple[str, ...]) -> list[Any]:
    from vitrify.spec.programs.expression import evaluate

    return evaluate(node, word, causal=source.causal)


def test_a_sum_of_widths_that_is_none_is_refused() -> None:
    same, other = select(tokens, tokens), select(tokens, "a")
    source = ProgramExpressions(ab(width(same | other)))
    assert source._same(same | other, [(1, same), (1, other), (-1, same & other)])
    assert not source._same(same | other, [(1, same), (1, other)])
    assert not source._same(same | before, [(1, same)])
