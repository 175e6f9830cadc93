"""Counting programs as transformers: exact, one attention layer per nested count."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from cases import each, each_then_slow
from vitrify.certification import certify, mutation_test
from vitrify.certification.oracles.programs import TruthOracle
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.counting import counting
from vitrify.errors import BuildRefused, InputError
from vitrify.kit import assemble
from vitrify.kit.margins import margins
from vitrify.net.inference import encode, logits
from vitrify.net.weights import Weights
from vitrify.spec.logic.crasp import Crasp, dyck1, majority, random_counting, shuffle_dyck

ATTENTIONS: list[Attention] = ["softmax", "sparsemax", "hard"]
PAIRS = [("(", ")"), ("[", "]")]


def says(net: Weights[Any], word: str) -> bool:
    """The answer at the last position."""
    (found,) = logits(net, [encode(net.architecture, list(word))])
    return bool(net.architecture.output.symbols[int(found[-1].argmax())] == "True")


@pytest.mark.long
@each_then_slow("seed", range(9), range(9, 20))
def test_random_programs_are_exact(seed: int) -> None:
    spec = random_counting(seed)
    net = assemble(counting(spec, attention=ATTENTIONS[seed % 3]))
    evidence = certify(net, spec, max_length=6)
    assert evidence.verdict == "holds", (spec.to_text(), evidence.witness)
    size = net.sizes
    assert (size.attention_layers, size.heads) == (spec.depth, spec.counts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_200_random_programs_are_exact(seed: int) -> None:
    spec = random_counting(1_000 + seed, 1 + seed % 4, alphabet="abc"[: 2 + seed % 2], length=12 + seed % 14)
    for attention in ("softmax", "hard"):
        net = assemble(counting(spec, attention=attention))
        evidence = certify(net, spec, max_length=8, samples=200)
        assert evidence.verdict == "holds", (spec.to_text(), evidence.witness)
        size = net.sizes
        assert size.attention_layers <= spec.depth
        assert size.heads <= spec.counts


@pytest.mark.long
@each_then_slow("seed", range(10), range(10, 30))
def test_the_program_says_what_the_text_means(seed: int) -> None:
    spec = random_counting(seed, length=5)
    for length in (1, 3, 4):
        words = list(product(range(3), repeat=length))
        wanted = spec.holds(np.array(words))
        for word, row in zip(words, wanted.tolist(), strict=True):
            assert spec.program(["abc"[i] for i in word]) == row


def test_heads_of_one_nesting_share_a_layer() -> None:
    """Though one of them waits for a minimum, and another for a letter at a place."""
    text = "alphabet: a b\nlength: 9\n#(#a > 1) + #(min(#a, #b) + 1 > max(#b, 2)) > #(MOD(0, 2) & a)"
    spec = Crasp.from_text(text)
    size = assemble(counting(spec)).sizes
    assert (size.attention_layers, size.heads) == (2, 5) == (spec.depth, spec.counts)


SMALL = [
    "true",
    "a",
    "MOD(1, 2)",
    "AT(1, 4) & a",
    "#(b & AT(0, 2, 3)) > #AT(5)",
    "#true > 3",
    "#(a & !a) = 0",
    "1 < 2 & b",
    "!(#b >= 0)",
    "#b > 0 <-> (false <-> 1 < 0)",
]


@each("text", SMALL)
@each("attention", ATTENTIONS)
def test_the_smallest_programs(text: str, attention: Attention) -> None:
    spec = Crasp.from_text(f"alphabet: a b\nlength: 7\n{text}")
    assert certify(assemble(counting(spec, attention=attention)), spec, max_length=6).verdict == "holds"


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_languages_of_counters(attention: Attention) -> None:
    for spec in (majority("a", "abc", 200), dyck1(200), shuffle_dyck(PAIRS, 100)):
        net = assemble(counting(spec, attention=attention))
        assert certify(net, spec, max_length=6).verdict == "holds"


def test_a_height_below_zero_is_remembered() -> None:
    net = assemble(counting(dyck1(512)))
    for word, wanted in (("(" * 256 + ")" * 256, True), (")(" + "(" * 255 + ")" * 255, False), ("()" * 256, True)):
        assert says(net, word) == wanted


def test_counts_that_cancel_are_asked_about_at_full_length() -> None:
    net = assemble(counting(dyck1(12)))
    asked = TruthOracle(dyck1(12), net.architecture).cases(np.random.default_rng(0), 200)
    assert [1] * 6 + [2] * 6 in asked
    assert [1] * 12 in asked


@pytest.mark.long
def test_broken_nets_are_noticed() -> None:
    spec = shuffle_dyck(PAIRS, 12)
    assert mutation_test(assemble(counting(spec)), spec, count=60, seed=1).rate >= 0.95


@pytest.mark.long
@each_then_slow("seed", range(6), range(6, 20))
def test_random_programs_are_exact_by_signs(seed: int) -> None:
    """The same programs, for words as long as the others take, and much longer ones."""
    spec = random_counting(seed)
    net = assemble(counting(spec, attention=ATTENTIONS[seed % 3], mode="layernorm", max_length=40))
    evidence = certify(net, spec, max_length=6, samples=200)
    assert evidence.verdict == "holds", (spec.to_text(), evidence.witness)
    size = net.sizes
    assert size.attention_layers <= spec.depth
    assert size.heads <= spec.depth


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_200_random_programs_are_exact_by_signs(seed: int) -> None:
    spec = random_counting(1_000 + seed, 1 + seed % 4, alphabet="abc"[: 2 + seed % 2], length=12)
    net = assemble(counting(spec, attention=("softmax", "hard")[seed % 2], mode="layernorm", max_length=60))
    evidence = certify(net, spec, max_length=8, samples=2_000)
    assert evidence.verdict == "holds", (spec.to_text(), evidence.witness)


@each("text", [*SMALL, "(a ? 1 : 2) > 1", "#((a ? #b : 2) > 1) = 2 * #b", "min(#a, #b) = max(1, 2)"])
@each("attention", ATTENTIONS)
def test_the_smallest_programs_by_signs(text: str, attention: Attention) -> None:
    spec = Crasp.from_text(f"alphabet: a b\nlength: 7\n{text}")
    net = assemble(counting(spec, attention=attention, mode="layernorm"))
    assert certify(net, spec, max_length=6).verdict == "holds"


def longer(net: Weights[Any], length: int) -> Weights[Any]:
    """The same net with more rows of zeros in its position table."""
    table = net.arrays["pos_embed.W_pos"]
    assert not np.any(table)
    arrays = {**net.arrays, "pos_embed.W_pos": np.zeros((length + 1, table.shape[1]))}
    return Weights(replace(net.architecture, max_length=length), arrays)


def test_no_weight_knows_the_length() -> None:
    """Nets that were built for words of 5 letters answer for 1,200 of them, where a height is off by one."""
    long = "(" * 600 + ")" * 600
    for spec in (dyck1(5), shuffle_dyck(PAIRS, 5)):
        net = longer(assemble(counting(spec, mode="layernorm")), 1_200)
        for word in (long, long[1:], "(" + long[:-2], ")(" + long[2:]):
            wanted = spec.holds(np.array([[spec.alphabet.index(letter) for letter in word]]))[0]
            (found,) = logits(net, [encode(net.architecture, list(word))])
            np.testing.assert_array_equal(found[1:].argmax(axis=1), wanted)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1])
def test_two_thousand_long_words(seed: int) -> None:
    spec = random_counting(seed, length=6)
    made = {n: assemble(counting(spec, mode="layernorm", max_length=n)) for n in (6, 50)}
    net, rng = made[50], np.random.default_rng(seed)
    for name, array in net.arrays.items():
        if name != "pos_embed.W_pos":  # `MOD` stands there, position by position
            np.testing.assert_array_equal(made[6].arrays[name], array)
    words = rng.integers(0, 3, size=(2_000, 50))
    words[1_000:] = np.where(rng.random((1_000, 50)) < 0.8, words[1_000:, :1], words[1_000:])  # few of most letters
    found = np.array(list(logits(net, (words + 1).tolist())))
    np.testing.assert_array_equal(found[:, 1:].argmax(axis=2), spec.holds(words))


def test_without_the_norm_small_differences_are_lost() -> None:
    """Only counts of comparisons suffer: the sign of the last comparison is the answer's, norm or not."""
    spec = dyck1(40)
    net = assemble(counting(spec, mode="layernorm"))
    arrays = {name: array for name, array in net.arrays.items() if ".ln" not in name}
    plain = Weights(replace(net.architecture, norm=False, groups=()), arrays)
    assert certify(net, spec, max_length=6).verdict == "holds"
    assert certify(plain, spec, max_length=6).verdict == "fails"


def test_what_float64_cannot_tell_apart_is_refused() -> None:
    margins(counting(dyck1(5), mode="layernorm", max_length=10**6))
    with pytest.raises(BuildRefused, match=r"use a smaller spec or maximum length$"):
        margins(counting(dyck1(5), mode="layernorm", max_length=10**8))


def test_nets_broken_by_signs_are_noticed() -> None:
    """But for the scale of the half of a pair that nobody reads."""
    spec = shuffle_dyck(PAIRS, 12)
    found = mutation_test(assemble(counting(spec, mode="layernorm")), spec, count=60, seed=1)
    idle = [what for what, _ in found.survivors if ".ln2.w" in what]
    assert (found.rejected + len(idle)) / found.tried >= 0.9


def test_towers_of_functions_are_refused() -> None:
    lines = ["x0 := a", *(f"x{i + 1} := x{i} <-> #b > 2" for i in range(20_000)), "x20000"]
    with pytest.raises(BuildRefused, match="line 20003: thousands of functions stand inside each other"):
        counting(Crasp.from_text("\n".join(["alphabet: a b", "length: 3", *lines])))
    tall = Crasp.from_text("\n".join(["alphabet: a b", "length: 3", *lines[:201], "x200"]))
    assert assemble(counting(tall, mode="layernorm")).sizes.attention_layers == 1


def test_other_lengths_are_refused() -> None:
    with pytest.raises(BuildRefused, match="write 'length: 20' there"):
        counting(dyck1(12), max_length=20)
    with pytest.raises(InputError, match="at most 12"):
        says(assemble(counting(dyck1(12))), "(" * 13)
