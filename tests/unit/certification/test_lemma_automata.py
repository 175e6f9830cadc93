"""Automata in transformers: proved equal to their spec for every word; no network that differs on a rare one is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as tuples
from typing import Any

import numpy as np
import pytest

from built import ATTENTIONS
from samples import ENTRIES, LENGTH, SAMPLES, built
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, prove_spec
from vitrify.certification.equivalence.counts import counters
from vitrify.certification.equivalence.doubling import _Units, doubling
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.proof import Proof
from vitrify.certification.margins.units import UnitLayer, case_by_case, table
from vitrify.certification.margins.values import Stretch, Undecided, ValueFactor
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, flip_flop, product, random_automaton, symmetric_group

pytestmark = pytest.mark.long

MERGING = Automaton(tuple("xyzu"), tuple("ab"), ((2, 2), (2, 2), (3, 0), (0, 3)), 1, frozenset({2}))  # x and y
FAMILY = ("log-depth", "looped", "commutative", "cascade")
UNITS = ("W_in", "b_in", "W_out", "b_out")
Index = tuple[int, ...]


def case_of(weights: Weights[Any], spec: Automaton, proof: Proof | None = None) -> SpecCase:
    oracle = WordCheck(weights.architecture, spec).oracle
    return SpecCase(weights, spec, oracle, proof or proof_of(weights, oracle))


def proved(weights: Weights[Any], spec: Automaton) -> SpecProof | None:
    """Return the proof that a network computes an automaton, or None."""
    try:
        proof = prove_spec(case_of(weights, spec))
    except Undecided:
        return None
    return proof if proof.witness is None else None


def changed(weights: Weights[Any], name: str, index: Index, value: float) -> Weights[Any]:
    """Return a network with one weight added to."""
    array = np.array(dense(weights.arrays[name]), dtype=float)
    array[index] += value
    return weights.with_array(name, array)


def is_wrong(weights: Weights[Any], spec: Automaton) -> bool:
    """Return whether a network errs on some word of its full length."""
    net = weights.architecture
    words = np.array(list(tuples(range(1, len(net.inputs)), repeat=net.max_length)))
    logits = batch_logits(weights, with_pads(net, words))[:, net.pads - 1 :]
    return bool(WordCheck(net, spec).oracle.errors(words, logits).any())


# ---- proofs


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("name", FAMILY)
def test_every_sample_is_proved(name: str, attention: Any) -> None:
    for spec in SAMPLES[Automaton]:
        weights = built(ENTRIES[name], spec, attention)
        if weights is None:
            continue
        assert isinstance(spec, Automaton)
        proof = proved(weights, spec)
        assert proof is not None
        assert proof.longest in (LENGTH, None)
        one_state = len(spec.states) == 1 and name != "looped"  # whose layer runs even so
        aperiodic_or_one_state = one_state or (name == "cascade" and not spec.is_group())
        assert (proof.longest is None) == aperiodic_or_one_state


def test_words_of_permutations_are_proved_to_a_thousand_letters() -> None:
    spec = symmetric_group(5)
    proof = prove_spec(case_of(build(spec, "log-depth", max_length=1000), spec))
    assert (proof.longest, proof.lemma[:8]) == (1000, "doubling")


@pytest.mark.parametrize(
    ("name", "spec", "attention", "length"),
    [
        ("log-depth", random_automaton(11, 3, seed=1), "softmax", 64),  # 11^11 maps
        ("log-depth", MERGING, "softmax", 9),
        ("log-depth", MERGING, "hard", 2),
        ("looped", random_automaton(11, 3, seed=1), "softmax", 64),
        ("looped", symmetric_group(5), "softmax", 1000),
        ("commutative", cyclic(7, 5), "softmax", 200),
        ("cascade", symmetric_group(4), "softmax", 128),
        ("cascade", symmetric_group(4), "hard", 64),
        ("cascade", product(cyclic(5), flip_flop()), "sparsemax", 100),
    ],
)
def test_larger_automata_are_proved_for_long_words(name: str, spec: Automaton, attention: Any, length: int) -> None:
    proof = proved(build(spec, name, max_length=length, attention=attention), spec)
    assert proof is not None
    assert proof.longest == length
    assert proof.instances.get("pairs of states", 0) < 100


# ---- networks of another automaton


def rare(kind: str, different: bool) -> Automaton:
    """Return an automaton; the `different` one leaves the same path only after seven letters a."""
    size = 8
    step = {
        "chain": [(min(q + 1, size - 1), 0) for q in range(size)],
        "counter": [((q + 1) % size, q) for q in range(size)],
        "threshold": [(min(q + 1, size - 1), q) for q in range(size)],
    }[kind]
    if different:
        step[size - 1] = {"chain": (0, 0), "counter": (size - 1, size - 1), "threshold": (0, size - 1)}[kind]
    return Automaton(tuple(f"q{q}" for q in range(size)), ("a", "b"), tuple(step), 0, frozenset({size - 1}))


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("kind", ["chain", "counter", "threshold"])
def test_a_network_of_an_automaton_with_another_late_transition_is_not_proved(name: str, kind: str) -> None:
    for different in (False, True):
        weights = built(ENTRIES[name], rare(kind, different), "softmax")
        if weights is None or weights.architecture.output.symbols != rare(kind, False).states:
            continue
        assert proved(weights, rare(kind, different)) is not None
        assert proved(weights, rare(kind, not different)) is None


def test_a_loop_with_fewer_rounds_or_other_distances_is_not_proved() -> None:
    spec = Automaton.from_regex("(ab|ba)*")
    weights = build(spec, "looped", max_length=9)
    assert proved(weights, spec) is not None
    assert proved(replace(weights, architecture=replace(weights.architecture, loops=3)), spec) is None
    assert proved(replace(weights, architecture=replace(weights.architecture, loops=5)), spec) is not None
    (doubled,) = [units for units in weights.labels.units if units.name == "double the distance"]
    (dim,) = dims(weights, "distance")
    for change in (-1.0, 1.0):  # it stays the same, or triples
        assert proved(changed(weights, "blocks.0.mlp.W_in", (dim, doubled.start), change), spec) is None


def test_a_changed_transition_of_any_state_and_letter_is_found() -> None:
    spec = random_automaton(5, 2, seed=2)
    weights = build(spec, "log-depth", max_length=9)
    reachable = {spec.states.index(state) for state in spec.reachable().states}
    for state, letter in tuples(sorted(reachable), range(2)):
        table = [list(row) for row in spec.transitions]
        table[state][letter] = (table[state][letter] + 1) % 5
        other = Automaton(spec.states, spec.alphabet, tuple(map(tuple, table)), spec.initial, spec.accepting)
        assert proved(weights, other) is None


# ---- random mutants


MUTATED = [
    ("log-depth", symmetric_group(3), "softmax", 6),
    ("log-depth", random_automaton(4, 2, seed=3), "hard", 7),
    ("looped", symmetric_group(3), "softmax", 6),
    ("looped", random_automaton(4, 2, seed=3), "hard", 7),
    ("commutative", cyclic(3, 3), "softmax", 5),
    ("commutative", Automaton.from_regex("b*ab*ab*"), "sparsemax", 6),
    ("cascade", symmetric_group(3), "hard", 6),
    ("cascade", product(cyclic(2), flip_flop()), "softmax", 4),
]


@pytest.mark.parametrize(("name", "spec", "attention", "length"), MUTATED)
def test_no_mutant_whose_function_changes_is_proved(name: str, spec: Automaton, attention: Any, length: int) -> None:
    weights = build(spec, name, max_length=length, attention=attention)
    rng, wrong, harmless = np.random.default_rng(0), 0, 0
    names = [key for key, array in weights.arrays.items() if dense(array).any()]
    for _ in range(40):
        key = names[rng.integers(len(names))]
        array = np.asarray(dense(weights.arrays[key]))
        at = rng.choice(np.flatnonzero(array) if rng.random() < 0.7 else array.size)
        index = tuple(int(i) for i in np.unravel_index(int(at), array.shape))
        mutant = changed(weights, key, index, float(rng.choice([-array[index], 1.0, -1.0, 0.5])))
        proof = proved(mutant, spec)
        if is_wrong(mutant, spec):
            wrong += 1
            assert proof is None
        else:
            harmless += proof is not None
    assert wrong > 10
    assert harmless > 3


# ---- every instance is needed: networks that break one of them, beside the proof of margins of the right network


MAPS = random_automaton(4, 2, seed=3)
LOG_DEPTH = build(MAPS, "log-depth", max_length=8)
LOG_DEPTH_PROOF = case_of(LOG_DEPTH, MAPS).proof


def dims(weights: Weights[Any], space: str) -> tuple[int, ...]:
    return weights.labels.space(space).dims


FIRST, PLACE = dims(LOG_DEPTH, "map 0"), dims(LOG_DEPTH, "position")


@pytest.mark.parametrize(
    ("name", "index", "value", "reason"),
    [
        ("embed.W_E", (1, FIRST[0]), 1.0, "copies more than the map"),
        ("pos_embed.W_pos", (3, PLACE[0]), -1.0, "does not select the key . back"),
        ("pos_embed.W_pos", (0, FIRST[1]), 1.0, "identity"),
        ("blocks.0.attn.W_Q", (0, FIRST[0], 0), 1.0, "reads more than positions"),
        ("blocks.0.attn.W_V", (0, PLACE[0], 0), 1.0, "copies something of positions"),
        ("blocks.0.mlp.W_in", (PLACE[0], 0), 1.0, "units read positions"),
        ("blocks.0.mlp.W_in", (FIRST[0], 0), 0.5, "copies more than the map"),
        ("blocks.1.mlp.W_out", (0, dims(LOG_DEPTH, "map 2")[0]), 1.0, "copies more than the map"),
        ("unembed.W_U", (PLACE[0], 1), 1.0, "more than the state"),
        ("unembed.b_U", (1,), 9.0, "wrong"),
    ],
)
def test_doubling_needs_every_instance(name: str, index: Index, value: float, reason: str) -> None:
    broken = changed(LOG_DEPTH, name, index, value)
    with pytest.raises(Undecided, match=reason):
        doubling(case_of(broken, MAPS, LOG_DEPTH_PROOF))


@pytest.mark.parametrize("block", range(3))
def test_doubling_checks_every_unit_that_composes(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if random maps did not show which dimensions hold the compositions."""
    stands = [dict(enumerate(FIRST)), dict(enumerate(FIRST)), {MAPS.initial: dims(LOG_DEPTH, "map 3")[0]}]
    monkeypatch.setattr(_Units, "found", lambda _, index: stands[index])
    assert doubling(case_of(LOG_DEPTH, MAPS, LOG_DEPTH_PROOF)).longest == 8
    name, reasons = f"blocks.{block}.mlp.W_out", set()
    for index in tuples(range(LOG_DEPTH.arrays[name].shape[0]), stands[block].values()):
        broken = changed(LOG_DEPTH, name, index, 0.5)
        with pytest.raises(Undecided) as stop:
            doubling(case_of(broken, MAPS, LOG_DEPTH_PROOF))
        reasons.add(str(stop.value))
    assert "units do not compose two maps" in reasons


def test_doubling_needs_enough_blocks() -> None:
    case = case_of(LOG_DEPTH, MAPS, LOG_DEPTH_PROOF)
    case.ideal.longest = 9
    with pytest.raises(Undecided, match="3 doublings do not cover 9 letters"):
        doubling(case)


COUNT = cyclic(3, 3)
COUNTING = build(COUNT, "commutative", max_length=8)
COUNTING_PROOF = case_of(COUNTING, COUNT).proof
COUNTED, SINK = (dims(COUNTING, name)[0] for name in ("count", "sink of count"))


@pytest.mark.parametrize(
    ("name", "index", "value", "reason"),
    [
        ("pos_embed.W_pos", (4, SINK), 0.5, "depends on its position"),
        ("embed.W_E", (2, dims(COUNTING, "weight")[0]), 0.5, "not whole"),
        ("embed.W_E", (2, dims(COUNTING, "weight")[0]), -2.0, "falls"),
        ("embed.W_E", (2, COUNTED), 1.0, "added to something else"),
        ("unembed.W_U", (COUNTED, 0), 1.0, "read by more than the units"),
        ("blocks.0.mlp.W_in", (dims(COUNTING, "weight")[0], 0), 1.0, "more than one coordinate"),
        ("blocks.0.attn.W_K", (0, dims(COUNTING, "weight")[0], 0), 1.0, "depend on contents"),
    ],
)
def test_counters_need_every_instance(name: str, index: Index, value: float, reason: str) -> None:
    broken = changed(COUNTING, name, index, value)
    with pytest.raises(Undecided, match=reason):
        counters(case_of(broken, COUNT, COUNTING_PROOF))


def test_a_count_that_is_read_wrong_at_its_end_is_not_proved() -> None:
    """The last two units tell the highest count, 16, which only the word of eight letters 2 reaches."""
    w_in, b_in = COUNTING.arrays["blocks.0.mlp.W_in"], COUNTING.arrays["blocks.0.mlp.b_in"]
    thresholds = -np.asarray(b_in) / np.asarray(dense(w_in))[COUNTED]
    last = np.argsort(thresholds)[-2:]
    silent = np.array(dense(COUNTING.arrays["blocks.0.mlp.W_out"]))
    silent[last] = 0.0
    broken = COUNTING.with_array("blocks.0.mlp.W_out", silent)
    assert is_wrong(broken, COUNT)
    assert proved(broken, COUNT) is None
    assert counters(case_of(broken, COUNT, COUNTING_PROOF)).witness == (3,) * 8
    deaf = np.array(dense(w_in))
    deaf[:, last] = 0.0
    with pytest.raises(Undecided, match="a count may exceed 15"):
        counters(case_of(broken.with_array("blocks.0.mlp.W_in", deaf), COUNT, COUNTING_PROOF))


# ---- margins of maps of many states


def test_units_case_by_case_write_what_all_combinations_write() -> None:
    """The values are the same, and errors within the bound of the inputs stay within the bound of the outputs."""
    weights = build(symmetric_group(4), "log-depth", max_length=32)
    w_in, b_in, w_out, b_out = (np.asarray(dense(weights.arrays[f"blocks.3.mlp.{name}"])) for name in UNITS)
    older, newer = dims(weights, "older map 3"), dims(weights, "map 3")
    layer, _ = UnitLayer(w_in, b_in, w_out, b_out).without_erasers((), 8)
    w_in, b_in, w_out = layer.w_in, layer.b_in, layer.w_out
    factors = tuple(ValueFactor.of("image", [dim], np.arange(4.0)[:, None]) for dim in (*older, *newer))
    size, error = weights.architecture.d_model, 1e-3
    stretch = Stretch("tokens", 1, np.zeros((1, size)), factors, np.full(size, error))
    rng = np.random.default_rng(0)
    x = np.zeros((200, size))
    x[:, [*older, *newer]] = rng.integers(4, size=(200, 8))
    for dim in newer:
        units = layer.writers([dim])
        points, bound = case_by_case("map", stretch, layer, units, [dim], 1 << 15)
        every, _ = table("map", stretch, layer, units, [dim], 1 << 20)
        np.testing.assert_allclose(points, np.unique(every)[:, None])
        moved = x + rng.uniform(-error, error, x.shape)
        before, after = (np.maximum(y @ w_in[:, units] + b_in[units], 0.0) for y in (x, moved))
        assert np.abs((after - before) @ w_out[units, dim]).max() <= bound[0]
    with pytest.raises(Undecided, match="no factor decides"):
        case_by_case("map", replace(stretch, error=np.full(size, 0.5)), layer, units, newer[-1:], 1 << 15)
