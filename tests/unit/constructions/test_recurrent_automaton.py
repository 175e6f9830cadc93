"""Automata on recurrent nets: the state after every letter, exact at any length; sizes; what is refused; mutations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from built import all_words, random_words, walked
from cases import each, rest_slow
from small_automata import closure, compose, full_transformations, minimal_automata
from vitrify.certification import certify, mutation_test
from vitrify.constructions.catalogue import build
from vitrify.constructions.diagonal_automaton import bits_of, diagonal
from vitrify.constructions.recurrent_automaton import (
    count_factors,
    elman,
    elman_sizes,
    householder,
    linear,
    sizes,
    swaps,
    tracked_permutation,
)
from vitrify.errors import BuildRefused
from vitrify.net.inference import batch_logits, trace
from vitrify.net.recurrent import Recurrent
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import (
    alternating_group,
    cyclic,
    divisibility,
    flip_flop,
    permutation_group,
    product,
    random_automaton,
    symmetric_group,
)

Shape = Callable[..., Weights[Recurrent]]
SHAPES: dict[str, Shape] = {"elman": elman, "linear": linear, "householder": householder, "diagonal": diagonal}
LENGTH = 120

ONCE = Automaton(("start", "on", "off"), ("a", "b"), ((1, 2), (2, 1), (1, 2)), 0, frozenset({1}))  # never starts again
MACHINES = {
    "S5": symmetric_group(5),
    "A5": alternating_group(5),
    "S3 on itself": symmetric_group(3, regular=True),
    "random, 7 states, 2 letters": random_automaton(7, 2, seed=7),
    "random, 5 states, 3 letters": random_automaton(5, 3, seed=8),
    "(ab|ba)*": Automaton.from_regex("(ab|ba)*"),
    "divisibility by 7": divisibility(7),
    "all maps of 4 points": full_transformations(4),
    "parity": cyclic(2),
    "bits": product(cyclic(2), flip_flop()),
    "never again": ONCE,
    "one state": cyclic(1),
    "one letter": permutation_group([[1, 2, 3, 4, 0]]),
}
BUILT = {  # what reflections and bits can do; the other two shapes do everything
    "householder": {"S5", "A5", "S3 on itself", "parity", "one state", "one letter", "divisibility by 7"},
    "diagonal": {"parity", "bits", "one state", "never again"},
}


def made(shape: str, name: str) -> Weights[Recurrent]:
    return SHAPES[shape](MACHINES[name], max_length=LENGTH)


def answers(weights: Weights[Recurrent], words: np.ndarray) -> np.ndarray:
    """Logits [word, prefix, out], all words at once."""
    return batch_logits(weights, np.pad(words, ((0, 0), (1, 0))))


def states(weights: Weights[Recurrent], words: np.ndarray) -> np.ndarray:
    found: np.ndarray = answers(weights, words).argmax(axis=-1)
    return found


def cases() -> list[tuple[str, str]]:
    return [(shape, name) for shape in SHAPES for name in MACHINES if name in BUILT.get(shape, MACHINES)]


@pytest.mark.slow
@each(("shape", "name"), cases())
def test_every_short_word_and_a_thousand_long_ones(shape: str, name: str) -> None:
    machine, weights = MACHINES[name].reachable(), made(shape, name)
    letters = len(machine.alphabet)
    short = all_words(letters, 8 if letters < 4 else 5)
    np.testing.assert_array_equal(states(weights, short), walked(machine, short))
    long = random_words(letters, LENGTH, 1_000, seed=1)
    found = answers(weights, long)
    np.testing.assert_array_equal(found.argmax(axis=-1), walked(machine, long))
    assert np.array_equal(found, np.round(found))  # whole numbers: nothing is rounded


@pytest.mark.parametrize("shape", BUILT)
def test_what_does_not_fit_is_refused(shape: str) -> None:
    for name in MACHINES:
        if name not in BUILT[shape]:
            with pytest.raises(
                BuildRefused, match="build this automaton with --construction linear-recurrence or elman"
            ):
                made(shape, name)


def test_refusals_name_what_is_wrong() -> None:
    with pytest.raises(BuildRefused, match="the letters 'reset', 'set' merge states"):
        householder(flip_flop())
    with pytest.raises(BuildRefused, match="the letter 'merge' merges states"):
        householder(full_transformations(3))
    with pytest.raises(BuildRefused, match="no such bit tells the states '0' and '1' apart"):
        diagonal(cyclic(3))
    with pytest.raises(BuildRefused, match=r"--max-length .* must be a whole number of at least 1, not 0"):
        linear(cyclic(2), max_length=0)
    with pytest.raises(BuildRefused, match="'linear-recurrence' has no such choice: leave --attention out"):
        build(cyclic(2), "linear-recurrence", attention="hard")


@each("name", MACHINES)
def test_sizes(name: str) -> None:
    machine = MACHINES[name].reachable()
    letters, units = len(machine.alphabet), len(machine.states) * len(machine.alphabet) + (name == "never again")
    wide, flat = made("elman", name), made("linear", name)
    assert wide.sizes.d_model == units
    assert not elman_sizes(machine).problems(wide.sizes)
    assert np.count_nonzero(wide.arrays["blocks.0.rec.W_A"]) == letters * units
    assert not sizes(machine).problems(flat.sizes)
    assert flat.sizes.d_model == len(machine.states)
    assert np.count_nonzero(flat.arrays["blocks.0.rec.W_A"]) == letters * len(machine.states)
    if name in BUILT["householder"]:
        net = made("householder", name).architecture
        assert (net.cell.state, net.cell.factors) == (len(machine.states), max(1, *count_factors(machine)))
    if name in BUILT["diagonal"]:
        bits = made("diagonal", name).sizes.d_model
        assert (len(machine.states) - 1).bit_length() <= bits <= max(1, len(machine.states) - 1)


def test_every_permutation_is_its_swaps_and_no_fewer_make_it() -> None:
    """Against the definition: least number of transpositions, by multiplying them out."""
    identity = tuple(range(4))
    one = {tuple({a: b, b: a}.get(x, x) for x in identity) for b in range(4) for a in range(b)}
    least, reached, edge = {identity: 0}, 0, {identity}
    while edge:
        reached += 1
        edge = {compose(p, t) for p in edge for t in one} - least.keys()
        least |= dict.fromkeys(edge, reached)
    assert len(least) == 24
    for images in permutations(range(4)):
        point = list(range(4))
        for a, b in swaps(images):
            point = [b if x == a else a if x == b else x for x in point]
        assert tuple(point) == images
        assert len(swaps(images)) == least[images]
        assert max(count_factors(permutation_group([images, (1, 0, 2, 3), (1, 2, 3, 0)]))) == 3
        assert max(count_factors(permutation_group([images], regular=False).reachable())) <= least[images]


def test_the_word_problem_of_s5_takes_five_numbers() -> None:
    points = symmetric_group(5)
    group, weights = tracked_permutation(points, max_length=LENGTH)
    assert (len(group.states), weights.architecture.cell.state, weights.architecture.cell.factors) == (120, 5, 4)
    assert group == symmetric_group(5, regular=True)
    for words in (all_words(2, 8), random_words(2, LENGTH, 1_000, seed=2)):
        found = answers(weights, words)
        np.testing.assert_array_equal(found.argmax(axis=-1), walked(group, words))
        second, first = np.moveaxis(np.sort(found, axis=-1)[..., -2:], -1, 0)
        assert (first - second).min() == 1.0
    assert len(closure(set(points.maps().values()))) == 120
    seen = trace(weights, [points.alphabet[1]] * 2)
    assert seen.read("who is where") == [[0, 1, 2, 3, 4], [4, 0, 1, 2, 3], [3, 4, 0, 1, 2]]


def test_bits_are_the_two_class_congruences() -> None:
    """Against all divisions of the states in two, each asked whether every letter respects it."""
    for machine in [*minimal_automata(3), *minimal_automata(2), product(cyclic(2), flip_flop()).reachable()]:
        n, table = len(machine.states), machine.table
        wanted = set()
        for number in range(2**n):
            sides = tuple(1 if number >> q & 1 else -1 for q in range(n))
            maps = [{(sides[q], sides[table[q, a]]) for q in range(n)} for a in range(table.shape[1])]
            if sides[machine.initial] == 1 and all(len({s for s, _ in pairs}) == len(pairs) for pairs in maps):
                wanted.add(sides)
        assert {sides for sides, _ in bits_of(machine)} == wanted
        apart = all(any(s[p] != s[q] for s in wanted) for q in range(n) for p in range(q))
        try:
            weights = diagonal(machine)
        except BuildRefused:
            assert not apart
            continue
        assert apart
        words = all_words(table.shape[1], 5)
        np.testing.assert_array_equal(states(weights, words), walked(machine, words))


def test_parity_is_one_number_with_the_eigenvalue_minus_one() -> None:
    weights = diagonal(cyclic(2))
    assert weights.arrays["blocks.0.rec.W_A"].tolist() == [[0.0], [1.0], [-1.0]]
    assert trace(weights, "1101")["blocks.0.hook_state"].tolist() == [[1.0], [-1.0], [1.0], [1.0], [-1.0]]


@pytest.mark.parametrize(("shape", "name"), [("linear", "S5"), ("householder", "S5"), ("diagonal", "bits")])
def test_rounds_are_exact_too(shape: str, name: str) -> None:
    weights = made(shape, name)
    net = weights.architecture
    rounds = replace(weights, architecture=replace(net, cell=replace(net.cell, parallel=True)))
    words = random_words(len(MACHINES[name].alphabet), LENGTH, 20, seed=3)
    np.testing.assert_array_equal(answers(rounds, words), answers(weights, words))


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ("householder", "S5"),
        pytest.param("elman", "never again", marks=pytest.mark.slow),
        pytest.param("linear", "(ab|ba)*", marks=pytest.mark.slow),
        pytest.param("diagonal", "bits", marks=pytest.mark.slow),
    ],
)
def test_jax_in_single_precision_is_exact(shape: str, name: str) -> None:
    weights = made(shape, name)
    net = weights.architecture
    words = random_words(len(net.inputs) - 1, LENGTH, 20, seed=4)
    arrays = {name: jnp.asarray(array) for name, array in weights.arrays.items()}
    tokens = jnp.asarray(np.pad(words, ((0, 0), (1, 0))))
    found = jax.jit(Recurrent.forward, static_argnums=0)(net, arrays, tokens)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(found), answers(weights, words))


@pytest.mark.parametrize("count", rest_slow([10, 25], first=1))
@each(("shape", "name"), [(s, n) for s, n in cases() if n not in ("one state", "all maps of 4 points")])
def test_mutations(shape: str, name: str, count: int) -> None:
    weights, machine = SHAPES[shape](MACHINES[name], max_length=20), MACHINES[name]
    assert certify(weights, machine, work=1e6).verdict == "holds"
    found = mutation_test(weights, machine, count=count, work=2e5)
    assert (found.tried, found.survivors) == (count, ())
