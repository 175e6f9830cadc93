"""Patterns of queries and linear routes, against brute force over sequences and against the definition."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cases import each
from vitrify.spec.memory.knowledge import Knowledge, large_world, random_world, xor_world
from vitrify.spec.memory.knowledge_patterns import expert_levels, fits, patterns, router_levels, sets
from vitrify.spec.memory.knowledge_routes import linear_route

WORLDS = [random_world(seed, long_keys=(seed % 3) / 4, shared_words=(seed % 4) / 6) for seed in range(16)]
TINY = [
    random_world(seed, tasks=(2, 3), words=2, keys=3, facts=(1, 3), length=(0, 2), long_keys=0.5, shared_words=0.4)
    for seed in range(12)
]
SHARED = Knowledge.of({"a": (["the #"], {"x": "1", "y": "2"}), "b": (["the #"], {"z": "3", "w w": "4"})})


@pytest.mark.slow
@each("spec", TINY)
def test_no_sequence_fits_two_patterns_of_an_expert(spec: Knowledge) -> None:
    """By brute force over all sequences; and what level 2 asks for is exactly a query."""
    for task in spec.tasks:
        levels = expert_levels(task)
        cases = [case for pattern, level in levels.items() for case in sets(task, pattern, level)]
        exact = [case for pattern in levels for case in sets(task, pattern, 2)]
        queries = {words for words, _, _ in task.queries()}
        for length in range(spec.longest + 2):
            for words in product(spec.vocabulary, repeat=length):
                assert sum(fits(words, case) for case in cases) <= 1
                assert sum(fits(words, case) for case in exact) == (words in queries)


@each("spec", [*WORLDS, *TINY, SHARED])
def test_a_router_tells_every_query_from_all_other_tasks(spec: Knowledge) -> None:
    levels = router_levels(spec)
    cases = [
        [case for pattern, level in found.items() for case in sets(task, pattern, level)]
        for task, found in zip(spec.tasks, levels, strict=True)
    ]
    for words, (own, _, _) in spec.queries.items():
        votes = [sum(fits(words, case) for case in found) for found in cases]
        assert votes[own] >= 1
        assert sum(votes) == votes[own]


def test_more_is_asked_of_the_slot_only_where_less_would_not_do() -> None:
    assert [list(found.values()) for found in router_levels(SHARED)] == [[1], [1, 0]]
    assert {level for found in router_levels(xor_world()) for level in found.values()} == {0}
    mixed = Knowledge.of({"a": (["the #"], {"x y": "1", "z w": "2"}), "b": (["the #"], {"x w": "3"})})
    assert [list(found.values()) for found in router_levels(mixed)] == [[2], [1]]
    across = Knowledge.of({"a": (["a # b", "c #"], {"k": "1", "k b": "2"})})
    (task,) = across.tasks
    assert {(p.template, p.group[1]): level for p, level in expert_levels(task).items()} == {
        (0, 1): 2,  # in "a k b" the key "k b" is found too
        (0, 2): 1,
        (1, 1): 0,
        (1, 2): 2,  # in "c k b" the key "k" is where that of the first template would be
    }
    for task in [*xor_world().tasks, *large_world(tasks=3).tasks]:
        assert set(expert_levels(task).values()) == {0}


def test_keys_of_one_word_never_need_a_unit_each() -> None:
    for seed in range(40):
        spec = random_world(seed, words=3, shared_words=0.5)
        assert max(level for task in spec.tasks for level in expert_levels(task).values()) <= 1
        assert max(level for found in router_levels(spec) for level in found.values()) <= 1


def least_lead(spec: Knowledge, features: dict[tuple[int, str], int], votes: np.ndarray) -> float:
    """The least lead over all queries, from the definition."""
    least = np.inf
    for words, (own, _, _) in spec.queries.items():
        held = [(offset, word) for offset, word in enumerate(reversed(words))]
        held += [(offset, "<s>") for offset in range(len(words), spec.longest + 1)]
        total = votes[:, [features[feature] for feature in held if feature in features]].sum(axis=1)
        least = min(least, min(total[own] - other for task, other in enumerate(total) if task != own))
    return least


@pytest.mark.parametrize("anchored", [True, False])
def test_linear_routes_lead_by_one_on_every_query(anchored: bool) -> None:
    for seed in range(10):
        spec = random_world(seed, anchored=anchored, long_keys=0.3 * (seed % 2), shared_words=0.2 * (seed % 3))
        route = linear_route(spec)
        assert route is not None
        features = {feature: place for place, feature in enumerate(route.features)}
        assert least_lead(spec, features, route.votes) >= 1


def test_the_xor_world_has_no_linear_route_and_neither_has_a_world_around_it() -> None:
    assert linear_route(xor_world()) is None
    larger = Knowledge((*xor_world().tasks, *random_world(3, anchored=True).tasks))
    assert linear_route(larger) is None


def test_infeasible_worlds_have_a_certificate() -> None:
    """Where the programme has no solution its dual has one: the same features on both sides, in the same total."""
    from scipy.optimize import linprog

    found = 0
    for seed in range(20):
        spec = random_world(seed, words=3, templates=(3, 6), tasks=(5, 8))
        if linear_route(spec) is not None:
            continue
        found += 1
        number: dict[tuple[int, int, str], int] = {}
        columns = []
        for words, (own, _, _) in spec.queries.items():
            held = [(offset, word) for offset, word in enumerate(reversed(words))]
            held += [(offset, "<s>") for offset in range(len(words), spec.longest + 1)]
            for rival in range(len(spec.tasks)):
                if rival != own:
                    pairs = [((who, *f), sign) for f in held for who, sign in ((own, 1.0), (rival, -1.0))]
                    columns.append({number.setdefault(key, len(number)): sign for key, sign in pairs})
        matrix = np.zeros((len(number) + 1, len(columns)))
        for place, column in enumerate(columns):
            matrix[list(column), place] = list(column.values())
        matrix[-1] = 1.0
        dual = linprog(np.zeros(len(columns)), A_eq=matrix, b_eq=np.eye(len(matrix))[-1], bounds=(0, None))
        assert dual.status == 0
    assert found == 3


def test_routes_are_the_same_every_time_and_of_whole_numbers() -> None:
    spec = random_world(1)
    one, two = linear_route(spec), linear_route(spec)
    assert one is not None
    assert two is not None
    assert one.votes.tobytes() == two.votes.tobytes()
    assert (one.votes == np.round(one.votes)).all()


def test_patterns_by_hand() -> None:
    spec = Knowledge.of({"t": (["x # y z"], {"k": "1", "m n": "2"})})
    one, two = patterns(spec.tasks[0])
    assert (one.group, one.length, list(one.slot)) == ((2, 1), 4, [2])
    assert (two.group, two.length, list(two.slot)) == ((2, 2), 5, [2, 3])
    assert sets(spec.tasks[0], two, 1) == [
        {0: {"z"}, 1: {"y"}, 4: {"x"}, 5: {"<s>"}, 2: {"n"}, 3: {"m"}},
    ]
    assert sets(spec.tasks[0], one, 0) == [{0: {"z"}, 1: {"y"}, 3: {"x"}, 4: {"<s>"}}]
