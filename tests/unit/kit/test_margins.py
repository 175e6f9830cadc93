"""Margins: temperatures follow the formula and are needed, errors add up, and what can't be promised is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from cases import all_pairs, each
from tiny_nets import KINDS, Word, built, held, letters, network, random_words, seen_at, where
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets.gate import gate
from vitrify.kit.gadgets.steps import cpwl, snap
from vitrify.kit.gadgets.table import table
from vitrify.kit.heads.average import count, mean
from vitrify.kit.heads.match import last_marked, lookup, recent_match
from vitrify.kit.heads.shift import shift
from vitrify.kit.margins import Arithmetic, margins
from vitrify.kit.network import Affine, Builder, Network, Space
from vitrify.kit.positions import CodeName, position_code
from vitrify.net.spaces import Flag, OneHot, Reals
from vitrify.net.transformer import AttentionKind


def shifting(
    name: CodeName, length: int, attention: AttentionKind = "softmax", need: float = 1e-6
) -> tuple[Network, Space]:
    net = Builder("shift", letters(2), length, attention)
    code = position_code(name, length, [1])
    place = net.embed_position("position", code.kind(), code.table())
    out = shift(net, where(net), 1, code, place, name="before")
    return network(net, out, need=need), out


@each(("name", "length", "need"), all_pairs(["dyadic", "quadratic", "sqrt"], [1, 10, 300], [0.5, 1e-3, 1e-9]))
def test_the_temperature_follows_the_formula(name: CodeName, length: int, need: float) -> None:
    made, out = shifting(name, length, need=need)
    found = margins(made)
    (head,) = found.heads.values()
    assert head.gap is not None
    assert head.beta_min is not None
    assert head.tolerance == need / 2
    keys, largest = length + 1, 1.0
    exponent = math.log(2 * largest * max(keys - 1, 1) / head.tolerance)
    slack = 1 + 1e-3 if name == "sqrt" and length == 300 else 1 + 1e-9  # rounding eats a part of the sqrt code's gap
    assert exponent / head.gap <= head.beta_min <= slack * exponent / head.gap
    assert head.beta_min <= head.beta <= head.beta_min + 0.25
    assert 4 * head.beta == round(4 * head.beta)
    leak = 2 * largest * max(keys - 1, 1) * math.exp(-head.beta * head.gap)
    assert leak <= found.errors[out] <= head.tolerance * (1 + 1e-12)
    assert found.errors[out] <= 1.1 * leak or name == "sqrt"


@pytest.mark.parametrize("name", ["dyadic", "quadratic", "sqrt"])
def test_sparsemax_needs_a_lead_of_one_and_hard_attention_nothing(name: CodeName) -> None:
    made, out = shifting(name, 100, "sparsemax")
    (head,) = margins(made).heads.values()
    assert head.gap is not None
    assert head.beta_min is not None
    assert 1.0 <= head.beta_min * head.gap < 1.001
    assert head.beta_min <= head.beta <= head.beta_min + 0.25
    assert margins(made).errors[out] == 0
    made, out = shifting(name, 100, "hard")
    (head,) = margins(made).heads.values()
    assert (head.beta, head.beta_min, head.tolerance, head.leak) == (1.0, None, None, 0.0)


def test_kappa_is_the_largest_score_over_the_gap() -> None:
    expected: dict[CodeName, float] = {"dyadic": 7.0, "quadratic": 8.0 * 101**2}
    for name, kappa in expected.items():
        (head,) = margins(shifting(name, 100)[0]).heads.values()
        assert head.kappa == kappa


def hardest(length: int, attention: AttentionKind) -> tuple[Builder, Space]:
    """A lookup that never matches: BOS, at the gap, must beat all other keys, and they all say the opposite."""
    net = Builder("hardest", letters(1), length, attention)
    kind = OneHot(("asked", "shown"))
    query = net.embed("query", kind, np.array([[0.0, 0.0], [1.0, 0.0]]))
    key = net.embed("key", kind, np.array([[0.0, 0.0], [0.0, 1.0]]))
    value = net.embed("value", Reals(("v",), -1.0, 1.0), np.array([[-1.0], [1.0]]))
    return net, lookup(net, query, key, value, name="found")


@pytest.mark.parametrize("length", [10, 200])
def test_the_bound_is_nearly_tight_and_half_the_temperature_breaks_it(length: int) -> None:
    need = 0.02
    net, out = hardest(length, "softmax")
    weights = built(net, out, need=need)
    word: Word = (1,) * length
    error = weights.labels.space("found").error
    (head,) = weights.labels.heads
    assert head.tolerance == need / 2
    worst = float(np.abs(held(weights, [word])[0] + 1.0).max())
    assert 0.95 * error < worst <= error <= head.tolerance * (1 + 1e-9)
    assert head.beta_min is not None
    beta = weights.arrays["blocks.0.attn.beta"]
    at_least = held(weights.with_array("blocks.0.attn.beta", np.array([head.beta_min])), [word])[0]
    assert 0.95 * head.tolerance < np.abs(at_least + 1.0).max() <= head.tolerance
    half = held(weights.with_array("blocks.0.attn.beta", beta / 2), [word])[0]
    assert np.abs(half + 1.0).max() > 10 * need


def test_sparsemax_is_exact_at_its_temperature_and_not_at_half() -> None:
    net, out = hardest(10, "sparsemax")
    weights = built(net, out, need=0.02)
    assert np.abs(held(weights, [(1,) * 10])[0] + 1.0).max() < 1e-12
    half = weights.with_array("blocks.0.attn.beta", weights.arrays["blocks.0.attn.beta"] / 2)
    assert np.abs(held(half, [(1,) * 10])[0] + 1.0).max() > 0.1


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "arithmetic"), [(128, "float32"), (200, "float32"), (10**6, "float64")])
def test_the_sqrt_code_is_refused_where_rounding_eats_its_gap(length: int, arithmetic: Arithmetic) -> None:
    made, _ = shifting("sqrt", length)
    sentence = f"the head 'shift by 1: before' must tell scores apart .* {arithmetic} .* use the dyadic position code"
    with pytest.raises(BuildRefused, match=sentence):
        margins(made, arithmetic)


@each(
    ("name", "length", "arithmetic"),
    [
        ("quadratic", 4096, "float64"),
        ("dyadic", 4096, "float64"),
        ("dyadic", 4096, "float32"),
        ("sqrt", 1000, "float64"),
        ("sqrt", 20, "float32"),
    ],
)
def test_other_codes_are_taken(name: CodeName, length: int, arithmetic: Arithmetic) -> None:
    made, out = shifting(name, length)
    assert margins(made, arithmetic).errors[out] <= 1e-6


def test_quadratic_is_refused_in_single_precision() -> None:
    with pytest.raises(BuildRefused, match="float32 rounds them"):
        margins(shifting("quadratic", 4096)[0], "float32")


def averaging(need: float, length: int = 100) -> Network:
    net = Builder("mean", letters(1), length)
    flag = net.embed("flag", Flag(), np.array([[0.0], [1.0]]))
    return network(net, mean(net, flag, name="share"), need=need)


def test_a_readout_that_needs_more_than_rounding_leaves_is_refused() -> None:
    assert max(margins(averaging(1e-12)).errors.values()) < 1e-12
    with pytest.raises(BuildRefused, match=r"the readout needs 'share' within 1e-15, but only .* can be promised"):
        margins(averaging(1e-15))


def test_units_that_need_more_than_rounding_leaves_are_refused() -> None:
    net = Builder("mean", letters(1), 100)
    share = mean(net, net.embed("flag", Flag(), np.array([[0.0], [1.0]])), name="share")
    points, values = np.array([0.0, 1.0]), np.array([0.0, 1e9])
    out = cpwl(net, share, points, values, Space("steep", Reals(("y",), 0.0, 1e9)))
    with pytest.raises(BuildRefused, match="'piecewise linear: steep' needs 'share' within 1e-15"):
        margins(network(net, out, need=1e-6))
    assert margins(network(net, out, need=1e-3)).errors[out] == pytest.approx(
        1e9 * margins(averaging(1.0)).errors[share]
    )


def test_averages_round_more_in_single_precision() -> None:
    in_double, in_single = (max(margins(averaging(1.0), a).errors.values()) for a in ("float64", "float32"))
    assert in_single == 2.0**29 * in_double


# --- errors ----------------------------------------------------------------------------------------------------------


def test_errors_pass_through_heads_and_units_and_end_at_a_snap() -> None:
    net = Builder("errors", letters(2), 10)
    token = net.embed("token", OneHot(letters(2)), np.eye(3))
    code = position_code("dyadic", 10, [1])
    place = net.embed_position("position", code.kind(), code.table())
    once = shift(net, token, 1, code, place, name="once")
    twice = shift(net, once, 1, code, place, name="twice")
    clean = snap(net, twice, name="clean")
    flag = table(net, [twice], np.array([[1]]), Space("flag", Flag()), np.array([[1.0]]), name="is a")
    gated = gate(net, flag, twice, name="gated")
    made = network(net, clean, gated)
    errors = margins(made).errors
    leaks = {op.writes: found.leak for op, found in margins(made).heads.items()}
    assert errors[token] == errors[place] == errors[net.bos] == errors[clean] == 0
    assert errors[once] == leaks[once] > 0
    assert errors[twice] == pytest.approx(leaks[once] + leaks[twice])
    assert errors[flag] == pytest.approx(2 * errors[twice])  # the table's slope
    assert errors[gated] == pytest.approx(2 * errors[flag] + errors[twice])  # the gate's: twice the largest value
    assert errors[gated] <= 1e-6
    weights = built(net, clean, gated)
    assert [space.error for space in weights.labels.spaces] == [errors[space] for space in made.spaces]


def test_a_snap_asks_for_little_and_a_chain_for_more() -> None:
    """The first head of a chain must be sharper than a head before a snap."""

    def temperatures(snapped: bool) -> list[float]:
        net = Builder("chain", letters(2), 10)
        x = net.embed("token", OneHot(letters(2)), np.eye(3))
        code = position_code("dyadic", 10, [1])
        place = net.embed_position("position", code.kind(), code.table())
        for number in range(3):
            x = shift(net, x, 1, code, place, name=f"x{number}")
            x = snap(net, x, name=f"clean{number}") if snapped else x
        return [head.beta for head in margins(network(net, x, need=1e-9)).heads.values()]

    loose, sharp = temperatures(True), temperatures(False)
    assert loose == [loose[0]] * 3
    assert loose[0] < 6
    assert sharp == sorted(sharp, reverse=True)
    assert sharp[-1] > 20


def test_noisy_inputs_of_a_gate_share_what_its_reader_bears() -> None:
    net = Builder("shared", letters(2), 10)
    code = position_code("dyadic", 10, [1, 2])
    place = net.embed_position("position", code.kind(), code.table())
    flag = shift(net, net.embed("mark", Flag(), np.array([[0.0], [0.0], [1.0]])), 1, code, place, name="flag")
    kind = Reals(("x",), -3.0, 3.0)
    value = shift(net, net.embed("x", kind, np.array([[0.0], [-3.0], [1.0]])), 2, code, place, name="value")
    found = margins(network(net, gate(net, flag, value), need=1e-6))
    tolerances = {op.writes.name: sharp.tolerance for op, sharp in found.heads.items()}
    assert tolerances == {"flag": pytest.approx(1e-6 / 6 / 2 / 2), "value": pytest.approx(1e-6 / 2 / 2)}


def test_the_bound_of_an_affine_map_is_what_its_range_allows() -> None:
    x, y = Space("x", Reals(("a", "b"), -1.0, 2.0)), Space("y", Flag())
    affine = Affine.of({x: [[1.0, -3.0], [2.0, 0.0]], y: [[0.0, 5.0]]}, [0.5, -1.0])
    assert affine.bound.tolist() == [2 * 3 + 0.5, 2 * 3 + 5 + 1]
    assert (affine.gain(x), affine.gain(y), affine.gain(Space("z", Flag()))) == (3.0, 5.0, 0.0)


def test_noisy_keys_cost_half_the_gap() -> None:
    def head_of(noisy: bool) -> tuple[float, float]:
        net = Builder("noisy", letters(2), 10)
        kind = OneHot(("a", "b"))
        token = net.embed("token", kind, np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        code = position_code("dyadic", 10, [1])
        key = shift(net, token, 1, code, net.embed_position("position", code.kind(), code.table()), name="before")
        out = recent_match(net, token, key if noisy else token, where(net), name="found")
        found = {op.writes: sharp for op, sharp in margins(network(net, out)).heads.items()}
        beta, tolerance = found[out].beta_min, found[key].tolerance
        assert beta is not None
        assert tolerance is not None
        return beta, tolerance

    assert head_of(True)[0] == pytest.approx(2 * head_of(False)[0])
    queries = 10 + 10 + 1 + 10.5  # the query is at most (T, T, 1, T + 1/2): so much moves a score per error of a key
    assert head_of(True)[1] == pytest.approx(0.5 / 8 / queries / 2)  # an eighth of the gap, halved for the leak


def test_marks_and_counts_are_priced() -> None:
    net = Builder("priced", letters(1), 50)
    flag = net.embed("flag", Flag(), np.array([[0.0], [1.0]]))
    counted = count(net, Affine.copy(flag), ("a",), 50.0, name="count")
    marked = last_marked(net, flag, flag, name="marked")
    found = margins(network(net, counted, marked, need=0.1))
    heads = {op.writes.name: sharp for op, sharp in found.heads.items()}
    assert (heads["count"].beta, heads["count"].gap) == (1.0, None)
    assert heads["marked"].kappa == 200.0
    assert 0 < found.errors[counted] < 1e-9


@pytest.mark.parametrize("attention", KINDS)
def test_averages_over_matches_want_exact_keys(attention: AttentionKind) -> None:
    """Noise on tied scores would tilt the average: a lookup after a soft head needs a snap in between."""

    def looking(snapped: bool) -> tuple[Builder, Space]:
        net = Builder("looking", letters(2), 30, attention)
        kind = OneHot(("a", "b"))
        token = net.embed("token", kind, np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        code = position_code("quadratic", 30, [1])
        key = shift(net, token, 1, code, net.embed_position("position", code.kind(), code.table()), name="before")
        return net, lookup(net, token, snap(net, key, name="clean") if snapped else key, where(net), name="found")

    net, out = looking(snapped=True)
    weights = built(net, out)
    error = weights.labels.space("found").error
    for word, rows in zip(some := random_words(2, 30, 10, seed=3), held(weights, some), strict=True):
        for t in range(1, 31):
            found = [j for j in range(2, t + 1) if word[j - 2] == word[t - 1]] or [0]
            assert abs(rows[t, 0] - seen_at(weights, word)[found].mean()) <= error
    net, out = looking(snapped=False)
    if attention == "softmax":
        with pytest.raises(BuildRefused, match=r"'lookup: found' averages over keys .* snap the spaces"):
            built(net, out)
    else:
        assert built(net, out).labels.space("found").error < 1e-13


def test_what_nobody_reads_is_sharp_anyway() -> None:
    made, out = shifting("dyadic", 10)
    alone = network_of_unread(made)
    assert margins(alone).errors[out] <= 1e-9


def network_of_unread(made: Network) -> Network:
    """The same network with a readout that reads nothing."""
    return replace(made, readout=replace(made.readout, parts=(), max_errors={}))


@pytest.mark.parametrize(("name", "lengths"), [("sqrt", range(10, 80, 5)), ("quadratic", range(50, 800, 50))])
def test_what_is_accepted_in_single_precision_keeps_its_lead_there(name: CodeName, lengths: range) -> None:
    accepted = []
    for length in lengths:
        try:
            margins(shifting(name, length)[0], "float32")
        except BuildRefused:
            break
        accepted.append(length)
    assert 0 < len(accepted) < len(lengths)
    code = position_code(name, length := accepted[-1], [1])
    match = code.match(1)
    arrays = (code.table(), match.query, match.key, match.sink, match.bias)
    x, wq, wk, ws, b = (array.astype(np.float32) for array in arrays)
    scores = np.column_stack([x @ ws + np.float32(match.level), (x @ wq + b) @ (x @ wk).T])
    for t in range(1, length + 1):
        lead = scores[t - 1, t - 1] - np.delete(scores[t - 1, : t + 1], t - 1).max()
        assert lead >= match.gap / 4
