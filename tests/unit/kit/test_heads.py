"""Every head primitive, under every attention kind: what it reads, how far off it is, and whether its gap is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from cases import all_pairs, each
from tiny_nets import (
    KINDS,
    ROUNDING,
    Choice,
    Word,
    built,
    check_choice,
    held,
    letters,
    magnitudes,
    random_words,
    smallest_lead,
    where,
    words,
)
from vitrify.errors import BuildRefused
from vitrify.kit.heads import select as selecting
from vitrify.kit.heads.average import count, mean, weighted_mean, window
from vitrify.kit.heads.match import last_marked, lookup, recent_match
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import Affine, Builder, Space
from vitrify.kit.positions import CodeName, position_code
from vitrify.net.inference import trace
from vitrify.net.spaces import Bits, Circle, Flag, Integers, Kind, OneHot, Reals
from vitrify.net.transformer import AttentionKind, Mask
from vitrify.net.weights import Weights

CODES: tuple[CodeName, ...] = ("dyadic", "quadratic", "sqrt")
Coding = Literal["onehot", "bits", "circle"]
Which = Literal["last", "first"]


def some_words(length: int, alphabet: int = 2) -> list[Word]:
    """All short words and two long ones."""
    return words(alphabet, min(length, 4)) + random_words(alphabet, length, 2, seed=length)


def causal(_: Word, t: int) -> Sequence[int]:
    return range(t + 1)


def strict(_: Word, t: int) -> Sequence[int]:
    return range(t)


def everything(word: Word, _: int) -> Sequence[int]:
    return range(len(word) + 1)


VISIBLE: dict[Mask, Choice] = {"causal": causal, "strict": strict, "none": everything}


# --- shift -----------------------------------------------------------------------------------------------------------


def shifted(name: CodeName, length: int, offset: int, attention: AttentionKind, pads: int = 1) -> Weights:
    net = Builder("shift", letters(2), length, attention, pads)
    code = position_code(name, length, [offset])
    return built(net, shift(net, where(net), offset, code, net.embed_position("position", code.kind(), code.table())))


@pytest.mark.long
@each(("length", "name", "attention"), all_pairs([1, 2, 3, 5, 17], CODES, KINDS))
def test_shift_reads_so_many_places_back(name: CodeName, length: int, attention: AttentionKind) -> None:
    some = [tuple([1] * n) for n in (1, 2, length) if n <= length]  # where a shift looks does not depend on the letters
    for offset in range(length + 1):
        weights = shifted(name, length, offset, attention)

        def back(_: Word, t: int, offset: int = offset) -> list[int]:
            return [max(t - offset, 0)]

        check_choice(weights, some, back)
        gap = weights.labels.heads[0].gap
        if offset:
            lead = smallest_lead(weights, some, back, causal)
            assert lead == pytest.approx(gap, rel=1e-6)


@each("attention", KINDS)
@each("name", CODES)
def test_shift_works_behind_several_pads(name: CodeName, attention: AttentionKind) -> None:
    weights = shifted(name, 4, 2, attention, pads=3)
    check_choice(weights, words(1, 4), lambda _, t: [max(t - 2, 0)])


@pytest.mark.parametrize("attention", KINDS)
def test_shift_copies_chosen_coordinates(attention: AttentionKind) -> None:
    net = Builder("shift", letters(3), 4, attention)
    token = net.embed("token", OneHot(letters(3)), np.eye(4))
    code = position_code("dyadic", 4, [1])
    place = net.embed_position("position", code.kind(), code.table())
    out = shift(net, token, 1, code, place, only=([3, 0], OneHot(("c", "^"))))
    assert out.size == 2
    weights = built(net, out)
    for word, rows in zip(words(3, 3), held(weights, words(3, 3)), strict=True):
        before = [0, 0, *word][: len(word) + 1]
        expected = [[float(i == 3), float(i == 0)] for i in before]
        assert np.abs(rows - expected).max() <= weights.labels.space(out.name).error + ROUNDING


# --- heads that average ----------------------------------------------------------------------------------------------


@each(("pads", "mask", "attention"), all_pairs([1, 3], ["causal", "none"], KINDS))
def test_mean_is_the_mean_of_all_that_is_visible(
    attention: AttentionKind, mask: Literal["causal", "none"], pads: int
) -> None:
    values = np.array([[0.5, -1.0], [0.25, 1.0], [-0.75, 0.0], [1.0, 1.0]])
    net = Builder("mean", letters(3), 40, attention, pads)
    out = mean(net, net.embed("value", Reals(("x", "y"), -1.0, 1.0), values), mask=mask)
    weights = built(net, out)
    error = weights.labels.space(out.name).error
    assert 0 < error < 1e-13
    some = [*words(3, 3), *random_words(3, 40, 5, seed=1)]
    for word, rows in zip(some, held(weights, some), strict=True):
        for t in range(len(word) + 1):
            seen = [*[0] * pads, *word[: t if mask == "causal" else None]]
            assert np.abs(rows[t] - values[seen].mean(axis=0)).max() <= error


@pytest.mark.parametrize("mask", ["causal", "none"])
def test_a_weighted_mean_takes_its_scores_as_they_are(mask: Literal["causal", "none"]) -> None:
    values, scores = np.array([0.5, -1.0, 0.25]), np.array([0.3, -2.0, 1.5])
    net = Builder("weighted", letters(2), 40)
    value = net.embed("value", Reals(("x",), -1.0, 1.0), values[:, None])
    score = net.embed("score", Reals(("s",), -2.0, 2.0), scores[:, None])
    out = weighted_mean(net, Affine.copy(score), Affine.copy(value), Space("out", Reals(("x",), -1.0, 1.0)), mask=mask)
    weights = built(net, out)
    error = weights.labels.space("out").error
    assert 0 < error < 1e-13
    some = [*words(2, 3), *random_words(2, 40, 5, seed=1)]
    for word, rows in zip(some, held(weights, some), strict=True):
        for t in range(len(word) + 1):
            seen = [0, *word[: t if mask == "causal" else None]]
            share = np.exp(scores[seen])
            assert abs(rows[t, 0] - share @ values[seen] / share.sum()) <= error


@each("attention", KINDS)
@each("length", [1, 20, 300])
def test_a_count_whose_terms_cancel_says_how_far_it_is_off(attention: AttentionKind, length: int) -> None:
    """The sum stays within 1, but it is as far off as one that goes all the way."""
    net = Builder("height", letters(2), length, attention, pads=length if attention == "hard" else 1)
    step = Affine.copy(net.embed("step", Integers(("s",), -1.0, 1.0), np.array([[0.0], [1.0], [-1.0]])))
    near = count(net, step, ("h",), 1.0, low=-1.0, abs_total=float(length), name="near")
    far = count(net, step, ("h",), float(length), low=-float(length), name="far")
    weights = built(net, near, far, need=0.2)
    error = weights.labels.space("near").error
    assert error == weights.labels.space("far").error > 0
    some = [((1, 2) * length)[:length], ((2, 1) * length)[:length]]
    for word, rows in zip(some, held(weights, some), strict=True):
        expected = np.cumsum([0, *(1 if letter == 1 else -1 for letter in word)])
        assert np.abs(rows - expected[:, None]).max() <= error


@each("attention", ["softmax", "sparsemax"])
@each(("length", "pads"), [(1, 1), (2, 1), (4, 1), (4, 3), (50, 1), (50, 2), (500, 1)])
def test_count_adds_up(attention: AttentionKind, length: int, pads: int) -> None:
    weight = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    net = Builder("count", letters(3), length, attention, pads)
    value = net.embed("weight", Integers(("x", "y"), 0.0, 2.0), weight)
    out = count(net, Affine.copy(value), ("x", "y"), 2.0 * length, name="count")
    weights = built(net, out, need=0.2)
    error = weights.labels.space("count").error
    assert 0 < error < 1e-7
    some = words(3, min(length, 4)) if length < 500 else []
    some += [*random_words(3, length, 3, seed=2), (2,) * length]
    for word, rows in zip(some, held(weights, some), strict=True):
        expected = np.cumsum(weight[[0, *word]], axis=0)
        assert np.abs(rows - expected).max() <= error
    sink = weights.labels.space("sink of count")
    assert sink.kind.deviation(weights.arrays["pos_embed.W_pos"][pads:, list(sink.dims)]).max() == 0


def test_count_gives_every_token_the_same_weight() -> None:
    for attention in ("softmax", "sparsemax"):
        net = Builder("count", letters(1), 7, attention)
        value = net.embed("one", Flag(), np.array([[0.0], [1.0]]))
        weights = built(net, count(net, Affine.copy(value), ("a",), 7.0, name="count"), need=0.2)
        pattern = trace(weights, ["a"] * 7)["blocks.0.attn.hook_pattern"][0]
        for t in range(1, 8):
            assert np.allclose(pattern[t, 1 : t + 1], 1 / 8, rtol=0, atol=1e-15)
            assert pattern[t, 0] == pytest.approx((8 - t) / 8)


@each("attention", KINDS)
@each("length", [1, 2, 9])
def test_a_strict_count_leaves_out_this_token_and_may_go_below_zero(attention: AttentionKind, length: int) -> None:
    steps = np.array([[0.0], [-1.0], [1.0]])
    net = Builder("count", letters(2), length, attention, pads=length if attention == "hard" else 1)
    value = Affine.copy(net.embed("step", Integers(("s",), -1.0, 1.0), steps))
    made = [
        count(net, value, ("s",), float(length), low=-float(length), name="all"),
        count(net, value, ("s",), float(length), low=-float(length), mask="strict", name="before"),
    ]
    weights = built(net, *made, need=0.2)
    some = [*words(2, min(length, 4)), (1,) * length, (2,) * length, *random_words(2, length, 3, seed=2)]
    for word, rows in zip(some, held(weights, some), strict=True):
        sums = np.cumsum(steps[[0, *word], 0])
        assert np.abs(rows[:, 0] - sums).max() <= weights.labels.space("all").error
        assert np.abs(rows[1:, 1] - sums[:-1]).max(initial=0.0) <= weights.labels.space("before").error


def test_hard_attention_can_not_count_behind_too_few_pads() -> None:
    net = Builder("count", letters(1), 7, "hard", pads=6)
    value = net.embed("one", Flag(), np.array([[0.0], [1.0]]))
    with pytest.raises(
        BuildRefused, match=r"hard attention averages.*can't count: use --attention softmax or sparsemax"
    ):
        count(net, Affine.copy(value), ("a",), 7.0, name="count")


WINDOWS: list[tuple[AttentionKind, list[float]]] = [
    ("softmax", [1.0, 1 / 3, 1 / 9]),
    ("sparsemax", [1.0, 1 / 3, 1 / 9]),
    ("softmax", [0.5, 4.0]),
    ("sparsemax", [0.5, 4.0]),
    ("softmax", [2.0]),
    ("sparsemax", [2.0]),
    ("hard", [1.0, 1.0, 1.0]),
    ("hard", [2.0, 2.0]),
]


@each(("attention", "weighting"), WINDOWS)
@each("extra", [0, 2])
def test_window_mixes_the_last_positions(attention: AttentionKind, weighting: list[float], extra: int) -> None:
    values = np.array([[0.5, -1.0], [0.25, 1.0], [-0.75, 0.0]])
    size = len(weighting)
    net = Builder("window", letters(2), 30, attention, pads=size + extra)
    out = window(net, net.embed("value", Reals(("x", "y"), -1.0, 1.0), values), weighting, name="mix")
    weights = built(net, out)
    error = weights.labels.space("mix").error
    assert 0 < error < 1e-13
    some = [*words(2, 5), *random_words(2, 30, 3, seed=3)]
    for word, rows in zip(some, held(weights, some), strict=True):
        padded = [*[0] * size, *word]
        for t in range(len(word) + 1):
            expected = sum(w * values[padded[size + t - 1 - i]] for i, w in enumerate(weighting))
            assert np.abs(rows[t] - expected).max() <= error
        assert out.kind.deviation(rows).max() <= error


def test_window_refuses_what_it_can_not_do() -> None:
    net = Builder("window", letters(2), 5, "hard", pads=2)
    value = net.embed("value", Flag(), np.array([[0.0], [1.0], [0.0]]))
    with pytest.raises(BuildRefused, match="a window of 3 needs 3 BOS pads, the network has 2"):
        window(net, value, [1.0] * 3, name="mix")
    with pytest.raises(BuildRefused, match="unequal weights needs soft or sparse"):
        window(net, value, [1.0, 0.5], name="mix")


def test_windows_of_different_sizes_share_a_layer() -> None:
    net = Builder("window", letters(2), 5, "softmax", pads=3)
    value = net.embed("value", Integers(("x",), 0.0, 2.0), np.array([[0.0], [1.0], [2.0]]))
    weights = built(net, window(net, value, [1.0, 1.0, 1.0], name="three"), window(net, value, [1.0], name="one"))
    rows = held(weights, [(1, 2, 2, 1)])[0]
    assert np.allclose(rows, [[0, 0], [1, 1], [3, 2], [5, 2], [5, 1]])


# --- heads that match ------------------------------------------------------------------------------------------------

# Queries and keys differ from the letters: two letters ask for the same key, one has none, one key is never asked for.
ASKED = {1: 0, 2: 2, 3: 0}
SHOWN: dict[int, int | None] = {1: 0, 2: None, 3: 1}


def coded(kind: Coding, number: int) -> OneHot | Bits | Circle:
    values = tuple("xyz"[:number])
    if kind == "circle":
        return Circle(values)
    return OneHot(values) if kind == "onehot" else Bits(values)


def matching(net: Builder, kind: OneHot | Bits | Circle) -> tuple[Space, Space]:
    """Query and key spaces; both void at BOS."""
    alphabet = len(net.inputs) - 1
    query, key = np.zeros((alphabet + 1, kind.size)), np.zeros((alphabet + 1, kind.size))
    for letter in range(1, alphabet + 1):
        query[letter] = kind.codes[ASKED[letter] % len(kind.values)]
        shown = SHOWN[letter]
        if shown is not None:
            key[letter] = kind.codes[shown]
    return net.embed("query", kind, query), net.embed("key", kind, key)


def matches(word: Word, t: int, number: int, visible: Choice) -> list[int]:
    """The visible positions whose key is what position t asks for."""
    if t == 0:
        return []
    asked = ASKED[word[t - 1]] % number
    return [j for j in visible(word, t) if j and SHOWN[word[j - 1]] == asked]


MASKS: tuple[Mask, ...] = ("causal", "strict", "none")


def or_bos(found: list[int], word: Word, t: int, mask: Mask) -> list[int]:
    """BOS where nothing was found; nothing at all where even BOS can't be seen."""
    return found or [j for j in VISIBLE[mask](word, t) if j == 0]


CODED = [("onehot", 2), ("onehot", 3), ("bits", 2), ("bits", 3), ("circle", 3)]


@pytest.mark.long
@each(("attention", "mask", "coding", "number"), [(a, m, *code) for a, m, code in all_pairs(KINDS, MASKS, CODED)])
def test_lookup_averages_over_all_matches(attention: AttentionKind, mask: Mask, coding: Coding, number: int) -> None:
    net = Builder("lookup", letters(3), 20, attention)
    query, key = matching(net, coded(coding, number))
    weights = built(net, lookup(net, query, key, where(net), mask=mask))

    def choice(word: Word, t: int) -> list[int]:
        return or_bos(matches(word, t, number, VISIBLE[mask]), word, t, mask)

    short = words(3, 4)
    check_choice(weights, short + random_words(3, 20, 3, seed=4), choice)
    gap = weights.labels.heads[0].gap
    assert gap is not None
    assert smallest_lead(weights, short, choice, VISIBLE[mask]) == pytest.approx(gap)


@pytest.mark.parametrize("attention", KINDS)
def test_lookup_matches_a_flag(attention: AttentionKind) -> None:
    net = Builder("lookup", letters(2), 6, attention)
    asks = net.embed("asks", Flag(), np.array([[0.0], [1.0], [0.0]]))
    shows = net.embed("shows", Flag(), np.array([[0.0], [0.0], [1.0]]))
    weights = built(net, lookup(net, asks, shows, where(net)))

    def choice(word: Word, t: int) -> list[int]:
        found = [j for j in range(1, t + 1) if word[j - 1] == 2]
        return found if t and word[t - 1] == 1 and found else [0]

    check_choice(weights, words(2, 5), choice)
    assert smallest_lead(weights, words(2, 4), choice, causal) == pytest.approx(0.5)


RECENT = all_pairs(KINDS, MASKS, ["last", "first"], CODED[1:])


@pytest.mark.long
@each(("attention", "mask", "which", "coding", "number"), [(*rest, *code) for *rest, code in RECENT])
def test_recent_match_finds_one_position(
    attention: AttentionKind, mask: Mask, which: Which, coding: Coding, number: int
) -> None:
    net = Builder("recent", letters(3), 20, attention)
    query, key = matching(net, coded(coding, number))
    weights = built(net, recent_match(net, query, key, where(net), which=which, mask=mask))

    def choice(word: Word, t: int) -> list[int]:
        found = matches(word, t, number, VISIBLE[mask])
        return or_bos(found[-1:] if which == "last" else found[:1], word, t, mask)

    short, long = words(3, 3), random_words(3, 20, 3, seed=5)
    check_choice(weights, short + words(3, 4)[-60:] + long, choice)
    gap = weights.labels.heads[0].gap
    assert gap is not None
    # the worst mismatch of a `last` match stands at T, so only words of full length show the whole gap
    assert smallest_lead(weights, short + long, choice, VISIBLE[mask]) == pytest.approx(gap)


@pytest.mark.long
@each(("which", "mask", "attention"), all_pairs(["last", "first"], MASKS, KINDS))
def test_last_marked_finds_the_mark(attention: AttentionKind, mask: Mask, which: Which) -> None:
    for length in (1, 5, 20):
        net = Builder("marked", letters(2), length, attention)
        flag = net.embed("flag", Flag(), np.array([[0.0], [0.0], [1.0]]))
        weights = built(net, last_marked(net, flag, where(net), which=which, mask=mask))

        def choice(word: Word, t: int) -> list[int]:
            found = [j for j in VISIBLE[mask](word, t) if j and word[j - 1] == 2]
            return or_bos(found[-1:] if which == "last" else found[:1], word, t, mask)

        some = words(2, min(length, 5)) + random_words(2, length, 2, seed=6)
        some += [(1,) * length, (2,) + (1,) * (length - 1)]
        check_choice(weights, some, choice)
        gap = weights.labels.heads[0].gap
        lead = smallest_lead(weights, some, choice, VISIBLE[mask])
        told_apart_by_position = attention == "hard" and length > 1
        if not told_apart_by_position:
            assert lead == np.inf if mask == "strict" and length == 1 else lead == pytest.approx(gap)


@pytest.mark.parametrize("attention", KINDS)
def test_matches_work_behind_several_pads(attention: AttentionKind) -> None:
    def choice(word: Word, t: int) -> list[int]:
        return [j for j in range(1, t + 1) if word[j - 1] == 2][-1:] or [0]

    net = Builder("marked", letters(2), 5, attention, pads=3)
    flag = net.embed("flag", Flag(), np.array([[0.0], [0.0], [1.0]]))
    check_choice(built(net, last_marked(net, flag, where(net))), words(2, 5), choice)


@each(("sink", "mask", "attention"), all_pairs([True, False], ["causal", "strict"], KINDS))
def test_flags_and_values_may_be_linear_functions(attention: AttentionKind, mask: Mask, sink: bool) -> None:
    """The letters b and c are marks with the values 1 and 2; a has neither, so no sink is needed."""
    net = Builder("marked", letters(3), 6, attention)
    token = net.embed("token", OneHot(("a", "b", "c"), void=True), np.vstack([np.zeros(3), np.eye(3)]))
    value = Affine.of({token: [[0.0], [1.0], [2.0]]}), Integers(("n",), 0.0, 2.0)
    flag = Affine.of({token: [[0.0], [1.0], [1.0]]})
    weights = built(net, last_marked(net, flag, value, mask=mask, sink=sink, name="mark"), need=0.2)
    (head,) = weights.labels.heads
    assert head.gap == (0.5 if sink else 1.0)
    for word, rows in zip(words(3, 6), held(weights, words(3, 6)), strict=True):
        for t in range(1, len(word) + 1):
            marks = [letter - 1 for letter in word[: t if mask == "causal" else t - 1] if letter > 1]
            assert abs(rows[t, 0] - (marks[-1] if marks else 0)) <= weights.labels.space("mark").error + ROUNDING


@pytest.mark.parametrize("attention", KINDS)
def test_the_first_mark_after_this_position(attention: AttentionKind) -> None:
    """With no key on the right, a head reads nothing: the value 0 is none of those read elsewhere."""
    net = Builder("after", letters(2), 6, attention)
    flag = net.embed("flag", Flag(), np.array([[0.0], [0.0], [1.0]]))
    place = net.embed_position("place", Integers(("n",), 0.0, 7.0), np.arange(2.0, 8.0)[:, None], pads=np.ones((1, 1)))
    weights = built(net, last_marked(net, flag, place, which="first", mask="after", sink=False, name="next"), need=0.2)
    for word, rows in zip(words(2, 6), held(weights, words(2, 6)), strict=True):
        for t in range(len(word) + 1):
            right = range(t + 1, len(word) + 1)
            wanted = next((j for j in right if word[j - 1] == 2), min(right, default=-1))  # no mark: the nearest
            assert abs(rows[t, 0] - (wanted + 1)) <= weights.labels.space("next").error + ROUNDING


@each("attention", KINDS)
@each("which", ["last", None])
def test_a_selection_without_a_sink(attention: AttentionKind, which: Literal["last"] | None) -> None:
    """The letter b is looked for, in words that begin with one; nobody reads from before the word."""
    net = Builder("select", letters(2), 6, attention)
    flag = net.embed("flag", Flag(), np.array([[0.0], [0.0], [1.0]]))
    test, out = selecting.Test(Affine.constant(1.0), Affine.copy(flag), 1.0), Space("out", Reals(("where",), -1.0, 1.0))
    weights = built(net, selecting.select(net, [test], Affine.copy(where(net)), out, which=which, sink="none"))

    def choice(word: Word, t: int) -> list[int]:
        return [j for j in range(1, t + 1) if word[j - 1] == 2][-1 if which else 0 :] or [0]

    some = [(2, *word) for word in words(2, 5)]
    check_choice(weights, some, choice)
    assert weights.labels.heads[0].gap == 1.0
    if not (which and attention == "hard"):  # there, equal scores are told apart by their place
        assert smallest_lead(weights, some, choice, lambda _, t: range(t + 1)) == pytest.approx(1.0)


@pytest.mark.parametrize("attention", KINDS)
def test_a_key_may_be_a_linear_function(attention: AttentionKind) -> None:
    """BOS holds the code of x, which the key takes away: it is void there, and BOS is the sink."""
    kind = Bits(("x", "y", "z"))
    net = Builder("match", letters(3), 5, attention)
    token = net.embed("token", kind, np.vstack([kind.codes[0], kind.codes]))
    key = Affine.of({token: np.eye(kind.size), net.bos: -kind.codes[:1]})
    weights = built(net, recent_match(net, token, key, net.index, mask="strict", name="before"), need=0.2)
    for word, rows in zip(words(3, 5), held(weights, words(3, 5)), strict=True):
        for t in range(1, len(word) + 1):
            before = [j for j in range(1, t) if word[j - 1] == word[t - 1]]
            assert abs(rows[t, 0] - (before[-1] if before else 0)) <= weights.labels.space("before").error + ROUNDING


@each("attention", KINDS)
@each("kind", [OneHot(("x", "y")), Bits(("x", "y")), Bits(("x", "y", "z"))])
def test_a_fetched_key_may_be_void(attention: AttentionKind, kind: OneHot | Bits) -> None:
    """The key of the first token is BOS's, fetched by a shift: void, and so no match for any query."""
    net = Builder("induction", letters(2), 8, attention)
    token = net.embed("token", kind, np.vstack([np.zeros(kind.size), kind.codes[:2]]))
    code = position_code("dyadic", 8, [1])
    before = shift(net, token, 1, code, net.embed_position("position", code.kind(), code.table()), name="before")
    out = recent_match(net, token, before, where(net))
    weights = built(net, out)
    error = weights.labels.space(out.name).error
    for word, rows in zip(words(2, 5), held(weights, words(2, 5)), strict=True):
        for t in range(1, len(word) + 1):
            found = [j for j in range(2, t + 1) if word[j - 2] == word[t - 1]]
            assert abs(rows[t, 0] - (found[-1] / 8 if found else -1.0)) <= error + ROUNDING


@each("which", ["last", "first"])
@each("coding", ["onehot", "bits"])
def test_kappa_bounds_the_sum_of_products(which: Which, coding: Coding) -> None:
    """Rounding is charged by the largest sum of |query × key|: no head may say less than it has."""
    net = Builder("bounds", letters(3), 12)
    query, key = matching(net, coded(coding, 3))
    flag = net.embed("flag", Flag(), np.array([[0.0], [0.0], [1.0], [1.0]]))
    made = [
        lookup(net, query, key, where(net), name="all"),
        recent_match(net, query, key, flag, which=which, name="match"),
        last_marked(net, flag, flag, which=which, name="mark"),
    ]
    weights = built(net, *made)
    worst = np.zeros(3)
    for word in random_words(3, 12, 20, seed=7):
        for place in range(3):
            products = np.tril(magnitudes(weights, word, head=place))
            worst[place] = max(worst[place], products.max())
    for head, largest in zip(weights.labels.heads, worst, strict=True):
        assert head.gap is not None
        assert head.kappa is not None
        assert 0.6 * head.kappa * head.gap <= largest <= head.kappa * head.gap


@pytest.mark.parametrize("attention", KINDS)
def test_recent_match_reads_a_function_of_spaces(attention: AttentionKind) -> None:
    net = Builder("recent", letters(2), 9, attention)
    kind = OneHot(("a", "b"))
    letter = net.embed("letter", kind, np.vstack([np.zeros(2), kind.codes]))
    value = Affine.copy(net.index).beside(Affine.copy(net.index, -1.0)), Integers(("t", "-t"), -9.0, 9.0)
    weights = built(net, recent_match(net, letter, letter, value, mask="strict", name="before"))
    error = weights.labels.space("before").error
    for word, rows in zip(some_words(9), held(weights, some_words(9)), strict=True):
        for t in range(1, len(word) + 1):
            last = max((j for j in range(1, t) if word[j - 1] == word[t - 1]), default=0)
            assert np.abs(rows[t] - [last, -last]).max() <= error + ROUNDING


@pytest.mark.long
@each("attention", KINDS)
@each("length", [1, 7, 40])
def test_at_place_reads_where_the_number_says(attention: AttentionKind, length: int) -> None:
    net = Builder("place", letters(4), length, attention)
    here = where(net)
    places = [0, -3, 0, 1, 2]  # where BOS and each letter look
    wanted = net.embed("place", Integers(("p",), -3.0, 2.0), np.array(places, dtype=float)[:, None])
    there = at_position(net, Affine.copy(wanted), Affine.copy(here), Space("there", here.kind))
    weights = built(net, there)
    some = [word for word in some_words(length, 4) if word[:1] != (4,)]  # nobody looks ahead

    def choice(word: Word, t: int) -> list[int]:
        return [max(places[word[t - 1]], 0) if t else 0]

    check_choice(weights, some, choice)
    if length > 1:
        assert smallest_lead(weights, some, choice, causal) == pytest.approx(1.0)
    assert weights.labels.heads[0].gap == 1.0


@each("attention", KINDS)
@each("offset", [1, 3, 9])
def test_earlier_is_a_shift_without_a_sink(attention: AttentionKind, offset: int) -> None:
    net = Builder("earlier", letters(2), 7, attention)
    here = where(net)
    weights = built(net, at_position(net, earlier(net, offset), Affine.copy(here), Space("x", here.kind)))
    check_choice(weights, some_words(7), lambda _, t: [max(t - offset, 0)])
    assert smallest_lead(weights, some_words(7), lambda _, t: [max(t - offset, 0)], causal) >= 1.0
    assert {space.name for space in weights.labels.spaces} == {"index", "square", "where", "x"}  # no flag of BOS
    kappa = weights.labels.heads[0].kappa
    largest = max(magnitudes(weights, word).max() for word in some_words(7))
    assert kappa is not None
    assert 0.5 * kappa <= largest <= kappa


@pytest.mark.parametrize("kind", [Integers(("n",), 0.0, 3.0), Reals(("x",), 0.0, 1.0)])
def test_numbers_are_no_codes(kind: Kind) -> None:
    net = Builder("lookup", letters(1), 3)
    number = net.embed("number", kind, np.zeros((2, 1)))
    for match in (lookup, recent_match):
        with pytest.raises(TypeError, match="number has no codes to match"):
            match(net, number, number, number)


def names(weights: Weights) -> NDArray[np.str_]:
    return np.array([head.name for head in weights.labels.heads])


def test_heads_say_what_they_do() -> None:
    net = Builder("names", letters(2), 4, pads=2)
    token = net.embed("token", OneHot(letters(2)), np.vstack([np.zeros(3), np.eye(3)[1:]]))
    flag = net.embed("flag", Flag(), np.array([[0.0], [0.0], [1.0]]))
    code = position_code("dyadic", 4, [1])
    place = net.embed_position("position", code.kind(), code.table())
    made = [
        shift(net, token, 0, code, place),
        shift(net, token, 1, code, place),
        mean(net, token),
        window(net, token, [1.0], name="mix"),
        lookup(net, token, token, flag),
        recent_match(net, token, token, flag, which="first"),
        last_marked(net, flag, token),
    ]
    assert names(built(net, *made)).tolist() == [
        "itself: token[t-0]",
        "shift by 1: token[t-1]",
        "mean: mean(token)",
        "window of 1: mix",
        "lookup: flag@token=token",
        "first match: first flag@token=token",
        "last marked: last token@flag",
    ]
