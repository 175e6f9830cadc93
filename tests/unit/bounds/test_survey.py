"""The survey as data: what follows from its facts, by two implementations, and which rows are executed by what."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from cases import each, each_then_slow
from oracles.naive_closure import closure
from vitrify.bounds.survey import exhibits
from vitrify.bounds.survey.about_models import AS_CIRCUIT, SENSITIVE, STAR_FREE, TWO_LAYERS
from vitrify.bounds.survey.about_problems import PROBLEMS
from vitrify.bounds.survey.closure import MapCell, SurveyFacts, contradictions, derived, published_map, sentence
from vitrify.bounds.survey.export import markdown, to_json
from vitrify.bounds.survey.later import ROWS
from vitrify.bounds.survey.measured import measured
from vitrify.bounds.survey.models import MODELS, SCOPES, ModelVariant, Scope
from vitrify.bounds.survey.rows import SurveyRow, follows
from vitrify.bounds.survey.statements import Below, Built, Inside, Outside
from vitrify.bounds.survey.table import SURVEY
from vitrify.claims.catalogue import claim_of, listing
from vitrify.constructions.catalogue import build, constructions
from vitrify.errors import VitrifyError
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import symmetric_group
from vitrify.spec.automata.holonomy import Holonomy
from vitrify.spec.logic.ltl import Formula

FACTS = SurveyFacts()
CLAIMS = {page.name: page for page in listing()}


def cell(model: str, problem: str, scope: Scope = "one net", facts: SurveyFacts = FACTS) -> MapCell:
    return derived(facts, MODELS[model], problem, scope)


# The map


def test_every_cell_is_what_a_naive_closure_says() -> None:
    """All rows, all variants that facts name, all problems and classes, in both scopes; none stays open in only one."""
    yes, no = closure(FACTS)
    conditions: dict[tuple[ModelVariant, str, str], set[str]] = {}
    for *key, condition in no:
        conditions.setdefault(tuple(key), set()).add(condition)  # type: ignore[arg-type]  # three of four
    nodes = {node for edge in FACTS.below for node in (edge.lower, edge.upper)}
    models = {*MODELS.values(), *(fact.model for fact in FACTS.about_models)}
    for model, node, scope in product(models, nodes, SCOPES):
        known = derived(FACTS, model, node, scope)
        unless = conditions.get((model, node, scope), set())
        expected = "yes" if (model, node, scope) in yes else "no" if "" in unless else "no, if" if unless else "open"
        assert known.verdict == expected, (model, node, scope)
        assert known.condition in unless or not unless
    assert not any((model, node, scope) in yes for model, node, scope in conditions)


def test_the_map_has_a_cell_for_every_variant_problem_and_scope() -> None:
    cells = published_map()
    assert [(known.model, known.problem, known.scope) for known in cells] == [
        *product(MODELS.values(), PROBLEMS, SCOPES),
    ]
    for known in cells:
        assert (known.verdict == "open") == (not known.facts)
        assert bool(known.condition) == (known.verdict == "no, if")
        assert all(rule in range(1, 9) for rule in known.rules)
        assert sentence(known).endswith(".")


def test_what_follows() -> None:
    assert cell("hard attention with masks, no positions", "bounded Dyck").verdict == "yes"
    assert cell("softmax, log n layers", "MAJORITY").verdict == "yes"  # constant depth is less than log n
    assert cell("softmax, log n layers", "Dyck-1", "each length").verdict == "yes"
    conditional = cell("softmax, O(log n) bits", "word problem of S5")
    assert (conditional.verdict, conditional.condition) == ("no, if", "TC⁰ = NC¹")
    assert cell("hard attention, ties to one side", "word problem of S5").verdict == "no"  # by a change of letters
    assert cell("softmax, real numbers", "word problem of S5").verdict == "open"
    assert cell("ties averaged, unbounded steps", "halting").verdict == "yes"
    assert cell("ties averaged, polynomially many steps", "halting").verdict == "no"


def test_one_net_and_a_net_for_each_length_are_two_things() -> None:
    margin = "softmax, real numbers, constant margin"
    assert (cell(margin, "PARITY").verdict, cell(margin, "PARITY", "each length").verdict) == ("no", "yes")
    layer = "softmax, real numbers, one layer"
    assert (cell(layer, "PARITY").verdict, cell(layer, "PARITY", "each length").verdict) == ("no", "yes")
    for model, problem in product(MODELS, PROBLEMS):
        assert cell(model, problem).verdict != "yes" or cell(model, problem, "each length").verdict == "yes"
        assert cell(model, problem, "each length").verdict != "no" or cell(model, problem).verdict == "no"


def test_facts_that_contradict_each_other_are_an_error_with_both_derivations() -> None:
    assert not contradictions(FACTS)
    built = Built(MODELS["hard attention, ties to one side"], "PARITY", "one net", "nobody")
    with pytest.raises(VitrifyError, match=r"PARITY: built, one net, on hard .* But .*inside AC⁰"):
        published_map(replace(FACTS, built=(*FACTS.built, built)))
    wall = Built(MODELS["softmax, O(log n) bits"], "word problem of S5", "each length", "nobody")
    ((yes, no), *_) = contradictions(replace(FACTS, built=(*FACTS.built, wall)))
    assert (yes.verdict, no.verdict) == ("yes", "no, if")
    outside = Outside("PARITY", "TC⁰", "nobody")
    assert contradictions(replace(FACTS, outside=(*FACTS.outside, outside)))
    harder = Below("word problem of S5", "MAJORITY", "nobody", "by a change of letters")
    assert contradictions(replace(FACTS, below=(*FACTS.below, harder)))


@pytest.mark.parametrize(
    ("by", "kind", "change"),
    [
        (AS_CIRCUIT, Inside, {"ties": "averaged"}),
        (TWO_LAYERS, Built, {"decision": "margin"}),
        (TWO_LAYERS, Built, {"depth": "one layer"}),
    ],
)
def test_the_nearest_larger_or_smaller_variant_is_contradicted(by: Any, kind: type, change: dict[str, str]) -> None:
    (fact,) = (fact for fact in FACTS.about_models if fact.by == by and isinstance(fact, kind))
    moved = replace(fact, model=replace(fact.model, **change))
    assert contradictions(FACTS.replaced(fact, moved))


@pytest.mark.long
@each_then_slow("every", [16], [1])
def test_a_fact_about_a_neighboring_variant_loses_a_row_or_is_contradicted_or_changes_nothing_or_says_more(
    every: int,
) -> None:
    """Of all facts with a variant one step away; what says more than is known need not be noticed."""
    verdicts = [known.verdict for known in published_map()]
    moves = [(fact, model) for fact in FACTS.about_models for model in fact.model.neighbors()][::every]
    noticed = 0
    for fact, model in moves:
        facts = FACTS.replaced(fact, replace(fact, model=model))
        if contradictions(facts) or not all(follows(facts, row) for row in ROWS):
            noticed += 1
        elif [known.verdict for known in published_map(facts)] != verdicts:
            says_more = model.within(fact.model) if isinstance(fact, Built) else fact.model.within(model)
            assert says_more, (fact, model)
    assert noticed > len(moves) / 3


# Variants


def test_variants_are_partially_ordered() -> None:
    models = list({*MODELS.values(), *(fact.model for fact in FACTS.about_models)})
    for a, b in product(models, models):
        assert a.within(a)
        assert not (a.within(b) and b.within(a)) or a == b
        assert not a.within(b) or all(b.within(c) for c in models if b.within(c) and not a.within(c)) or a == b
    soft, hard = MODELS["softmax, real numbers"], MODELS["hard attention, ties averaged"]
    assert not soft.within(hard)
    assert not hard.within(soft)


@pytest.mark.parametrize("values", [("softmax", "averaged"), ("hard", ""), ("softmax", "", "sideways")])
def test_a_variant_with_a_wrong_value_is_refused(values: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="not a value of the axis"):
        ModelVariant(*values)


@pytest.mark.parametrize("exhibit", exhibits.EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_the_variant_of_nets_is_read_off(exhibit: exhibits.Exhibit) -> None:
    model, scope = measured([exhibit.net(length)[1] for length in exhibits.LENGTHS], exhibit.fact.model)
    assert model.within(exhibit.fact.model)
    assert scope == exhibit.fact.scope


def test_a_yesterday_under_softmax_is_built_with_positions_for_each_length() -> None:
    """Under hard attention it needs none: see the exhibit with a `Y`."""
    (fact,) = (fact for fact in FACTS.built if fact.by == STAR_FREE)
    nets = [build(Formula.from_text(f"alphabet: a b\nlength: {n}\nY a")) for n in (6, 12)]
    model, scope = measured(nets, fact.model)
    assert scope == "each length"
    assert not model.within(fact.model)


# Rows


def test_the_table_has_all_rows_and_enough_of_them_are_executed() -> None:
    assert [row.number for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert len(SURVEY) == 22
    executed = [row for row in SURVEY if row.by]
    assert len(executed) >= 15
    for row in ROWS:
        assert bool(row.by) == (row.status in ("built here", "refuted here"))
        assert (row.status == "refuted here") == (row.relation == "∌" and bool(row.by))
        assert re.search(r"\[[TASKD]\]|our own nets", row.source)
        assert row.by or not row.fragment
        if row.by and row.relation in ("=", "⊆", "⊋", "∌"):
            assert row.fragment  # nobody executes such a statement in full


@each("row", [row for row in ROWS if row.by], ids=lambda row: f"{row.number}")
def test_what_executes_a_row_is_in_the_catalogue(row: SurveyRow) -> None:
    for by in row.by:
        if by.claim_id:
            assert claim_of(CLAIMS[by.name]).id == by.claim_id
            assert next(iter(claim_of(CLAIMS[by.name]).subjects())) is not None
        else:
            assert by.name in {entry.name for entry in constructions()}


@each("row", ROWS, ids=lambda row: f"{row.number}")
def test_every_row_follows_from_the_facts(row: SurveyRow) -> None:
    assert follows(FACTS, row)
    nothing = replace(FACTS, built=(), inside=(), refuted=())
    assert not follows(nothing, row)


def test_the_export_has_every_row_and_every_cell() -> None:
    text, data = markdown(), to_json()
    for row in ROWS:
        assert f"\n| {row.number} | {row.statement}" in text
    for title in MODELS:
        assert text.count(f"\n| {title} |") == 3  # the map, the variants, the derivations
    assert len(data["map"]) == len(MODELS) * len(PROBLEMS) * 2
    assert {known["verdict"] for known in data["map"]} == {"yes", "no", "no, if", "open"}
    assert "no, unless TC⁰ = NC¹ ([B8](#finite_precision_softmax_runs_as_threshold_circuits))" in text


# SurveyFacts that are derived here


def balanced(word: str) -> bool:
    heights = np.cumsum([1 if letter == "(" else -1 for letter in word])
    return bool(heights.min(initial=0) == 0 and (not word or heights[-1] == 0))


DECIDING: dict[str, tuple[Callable[[int], tuple[str, str]], Callable[[str], bool]]] = {
    "star-free": (lambda n: ("1" * n, "0" + "1" * (n - 1)), lambda word: "0" not in word),
    "bounded Dyck": (lambda n: ("()" * (n // 2), "))" + "()" * (n // 2 - 1)), balanced),
    "PARITY": (lambda n: ("1" * n, "0" + "1" * (n - 1)), lambda word: word.count("1") % 2 == 0),
    "MAJORITY": (
        lambda n: ("1" * (n // 2 + 1) + "0" * (n // 2 - 1), "0" + "1" * (n // 2) + "0" * (n // 2 - 1)),
        lambda word: word.count("1") > word.count("0"),
    ),
    "Dyck-1": (lambda n: ("(" * (n // 2) + ")" * (n // 2), ")" + "(" * (n // 2 - 1) + ")" * (n // 2)), balanced),
    "word problem of S5": (lambda n: ("t" * n, "1" + "t" * (n - 1)), lambda word: word.count("t") % 2 == 0),
}


def test_one_letter_decides_at_some_words_of_every_even_length() -> None:
    """The first letter, so that its influence on the last position goes to zero under any mask that sees all."""
    assert tuple(DECIDING) == SENSITIVE
    for name, (words, member) in DECIDING.items():
        for n in (2, 4, 10, 50):
            one, other = words(n)
            assert (len(one), one[1:]) == (len(other), other[1:]), name
            assert member(one) != member(other), name


@pytest.mark.parametrize(("kinds", "depth"), [(1, 1), (1, 3), (2, 1), (2, 2)])
def test_bounded_brackets_are_star_free(kinds: int, depth: int) -> None:
    pairs = ["()", "[]"][:kinds]
    closing = {pair[1]: pair[0] for pair in pairs}

    def step(stack: str, letter: str) -> str:
        if stack == "dead" or (letter in closing and (not stack or stack[-1] != closing[letter])):
            return "dead"
        deeper = stack[:-1] if letter in closing else stack + letter
        return deeper if len(deeper) <= depth else "dead"

    machine = Automaton.explore("", "".join(pairs), step, lambda stack: stack == "")
    assert all(group.order == 1 for _, group in Holonomy(machine).groups())
    assert any(group.order > 1 for _, group in Holonomy(symmetric_group(3)).groups())


def test_hard_attention_that_averages_ties_decides_parity_by_looking_up_a_position() -> None:
    """Equal scores give the mean k/(n+1), BOS included; then position k wins alone, and its code has the parity."""
    for word in [*product((0, 1), repeat=7), *product((0, 1), repeat=8)]:
        n = len(word)
        a, b = sum(word) / (n + 1), 1 / (n + 1)
        positions = np.arange(n + 1)
        scores = 2 * a * positions - b * positions**2
        assert list(np.flatnonzero(scores > scores.max() - b / 2)) == [sum(word)]


def test_softmax_of_one_temperature_finds_the_last_mark_and_the_previous_position_at_every_length() -> None:
    """The weight of all other keys stays below 1/12, so that units restore bits; hard attention breaks ties exactly."""
    rng = np.random.default_rng(0)
    for i in (1, 2, 3, 10, 100, 1000, 5000):
        positions = np.arange(i + 1)
        for share in (0.0, 1 / (i + 1), 0.5, 1.0):
            marks = rng.random(i + 1) < share
            marks[0] = True  # BOS, where nothing else is marked
            last = int(np.flatnonzero(marks)[-1])
            assert leak(4.0 * (2 * (i + 1) * marks + positions), last) < 1 / 12
            assert np.argmax(marks + positions / (2 * (i + 1))) == last
        assert leak(4.0 * (2 * (i - 1) * positions - positions**2), i - 1) < 1 / 12
    assert 2 * math.exp(-4) / (1 - math.exp(-12)) < 1 / 12


def leak(scores: np.ndarray, winner: int) -> float:
    weights = np.exp(scores - scores.max())
    return float(1 - weights[winner] / weights.sum())
