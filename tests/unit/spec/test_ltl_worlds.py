"""Facts about all words at once: they agree with the meaning of formulas, and tell which are the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from cases import each
from vitrify.errors import BuildRefused
from vitrify.spec.logic import ltl_worlds
from vitrify.spec.logic.ltl import Formula, Node
from vitrify.spec.logic.ltl_worlds import Fact, World

WORDS = np.array(list(product(range(2), repeat=8)))


def drawn(rng: random.Random, world: World, depth: int) -> tuple[Node, Fact]:
    """A random formula, by its text and as a fact."""
    if not depth:
        number = rng.randrange(2)
        return ("letter", "ab"[number]), world.letters[number]
    (x, fx), (y, fy) = drawn(rng, world, depth - 1), drawn(rng, world, rng.randrange(depth))
    pick = rng.choice(["not", "and", "or", "Y", "O", "S"])
    made: dict[str, Callable[[], tuple[Node, Fact]]] = {
        "not": lambda: (("not", x), world.negated(fx)),
        "and": lambda: (("and", x, y), world.both(fx, fy)),
        "or": lambda: (("or", x, y), world.either([fx, fy])),
        "Y": lambda: (("Y", x), world.yesterday(fx)),
        "O": lambda: (("O", x), world.once(fx)),
        "S": lambda: (("S", x, y), world.since(fx, fy)),
    }
    return made[pick]()


def holds(node: Node) -> np.ndarray:
    return Formula(node, ("a", "b"), 8).holds(WORDS)


@each("seed", range(25))
def test_what_is_written_for_a_fact_means_the_same(seed: int) -> None:
    world = World(("a", "b"))
    node, fact = drawn(random.Random(seed), world, 4)
    assert (holds(node) == holds(world.nodes[fact])).all()
    assert (holds(world.nodes[world.short(fact)]) == holds(node)).all()
    assert world.possible(fact) == holds(node).any()


@each("seed", range(25))
def test_facts_are_one_iff_formulas_say_the_same(seed: int) -> None:
    world, rng = World(("a", "b")), random.Random(100 + seed)
    found = [drawn(rng, world, 2) for _ in range(6)]
    for x, fx in found:
        for y, fy in found:
            assert (fx == fy) == (holds(x) == holds(y)).all()


def test_too_many_pasts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ltl_worlds, "MAX_NODES", 20)
    world = World(("a", "b"))
    fact = world.letters[0]
    for _ in range(3):  # after k steps back, 2^(k + 1) pasts
        fact = world.yesterday(fact)
    assert len(world.step) < 20
    with pytest.raises(BuildRefused, match="more than 20 pasts"):
        world.yesterday(fact)
