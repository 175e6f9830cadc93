"""n-gram nets: the model's own probabilities on every string, in every shape, attention and code; the stated sizes."""

from __future__ import annotations

import random
import warnings
from functools import cache

import numpy as np
import pytest

from built import (
    ATTENTIONS,
    CODES,
    PROMISED,
    SHAPES,
    all_words,
    answers,
    evaluator,
    expected,
    listed_contexts,
    probabilities,
    random_words,
)
from cases import all_pairs, each
from vitrify.constructions import catalogue
from vitrify.constructions.catalogue import Attention, chosen
from vitrify.constructions.ngram import Code, Variant, ngram
from vitrify.errors import BuildRefused, SpecWarning
from vitrify.kit import assemble
from vitrify.kit.positions import CodeName
from vitrify.net.sparse import dense, nonzeros
from vitrify.net.weights import Weights
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import NGramModel

LENGTH = 8  # every string up to here
ONE = 1e-11  # how far a sum of 10^5 products of ten probabilities may be from 1 by rounding


def estimated(letters: str, order: int, seed: int, *, unk: bool = False) -> NGramModel:
    """A Kneser–Ney model of a few random sentences: many back-off weights, many contexts with `<s>`."""
    draw = random.Random(seed)
    sentences = [[draw.choice(letters) for _ in range(draw.randint(0, 6))] for _ in range(12)]
    return NGramModel.fit([*sentences, list(letters)], order, unk=unk)


MODELS = {
    "order 1": random_ngram(3, 1, seed=0),
    "one word": random_ngram(1, 3, seed=1),
    "one word, order 4": random_ngram(1, 4, seed=2),
    "2 words, order 2": random_ngram(2, 2, seed=0),
    "2 words, order 3": random_ngram(2, 3, seed=0),
    "2 words, order 4": random_ngram(2, 4, seed=0),
    "2 words, order 4, few listed": random_ngram(2, 4, seed=5, listed=0.3),
    "3 words, order 2": random_ngram(3, 2, seed=1),
    "3 words, order 3": random_ngram(3, 3, seed=1),
    "3 words, order 4": random_ngram(3, 4, seed=1),
    "estimated, 2 words, order 4": estimated("ab", 4, seed=0),
    "estimated, 3 words, order 3": estimated("abc", 3, seed=1),
    "estimated, <unk>, order 3": estimated("ab", 3, seed=2, unk=True),
    "estimated, order 1, <unk>": estimated("a", 1, seed=3, unk=True),
}
LARGE = {
    "4 words, order 4": random_ngram(4, 4, seed=44),
    "4 words, order 1": random_ngram(4, 1, seed=1),
    "4 words, order 2": random_ngram(4, 2, seed=2),
    "4 words, order 3": random_ngram(4, 3, seed=3),
    "estimated, 4 words, order 4": estimated("abcd", 4, seed=4),
    "estimated, <unk>, order 4": estimated("abc", 4, seed=5, unk=True),
}


def build(model: NGramModel, shape: Variant, attention: Attention, code: Code = "auto", length: int = 9) -> Weights:
    return assemble(ngram(model, variant=shape, attention=attention, code=code, max_length=length))


@cache
def right(name: str, length: int) -> np.ndarray:
    model = {**MODELS, **LARGE}[name]
    return expected(model, all_words(len(model.readable), length))


def strings(model: NGramModel, words: np.ndarray, next_: np.ndarray) -> np.ndarray:
    """Of each word, the probability of all its prefixes as whole strings, and of going on after it."""
    end = model.predicted.index("</s>")
    column = np.array([-1, *(model.predicted.index(word) for word in model.readable)])[words]
    steps = np.take_along_axis(next_[:, :-1], column[:, :, None], axis=2)[:, :, 0]
    so_far = np.cumprod(np.concatenate([np.ones((len(words), 1)), steps], axis=1), axis=1)
    going_on = so_far[:, -1:] * (next_[:, -1].sum(axis=-1) - next_[:, -1, end])[:, None]
    return np.concatenate([so_far * next_[:, :, end], going_on], axis=1)


def total(table: np.ndarray, letters: int) -> float:
    """The probability of all strings: each short one once, though it is a prefix of many words."""
    length = table.shape[1] - 2
    weight = np.array([float(letters) ** (n - length) for n in range(length + 1)] + [1.0])
    return float((table * weight).sum())


def check_weakly_equivalent(name: str, attention: Attention, code: Code, shape: Variant, length: int = LENGTH) -> None:
    model = {**MODELS, **LARGE}[name]
    words = all_words(len(model.readable), length)
    weights = build(model, shape, attention, code)
    found, wanted = probabilities(weights, words), right(name, length)
    assert np.abs(found - wanted).max() <= PROMISED[attention]
    p, q = strings(model, words, found), strings(model, words, wanted)
    assert np.abs(p - q).max() <= PROMISED[attention]
    assert abs(total(p, len(model.readable)) - 1) <= max(ONE, PROMISED[attention])


@pytest.mark.long
@pytest.mark.parametrize(("name", "shape", "attention", "code"), all_pairs(MODELS, SHAPES, ATTENTIONS, CODES))
def test_weakly_equivalent_on_every_string(name: str, attention: Attention, code: Code, shape: Variant) -> None:
    check_weakly_equivalent(name, attention, code, shape)


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_weakly_equivalent_on_every_string_of_four_words(attention: Attention, shape: Variant) -> None:
    """Of six letters: all contexts of three, after all others. The slow test asks about strings of eight."""
    check_weakly_equivalent("4 words, order 4", attention, "auto", shape, length=6)


@pytest.mark.slow
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", LARGE)
def test_weakly_equivalent_with_four_words_in_every_code(
    name: str, attention: Attention, code: Code, shape: Variant
) -> None:
    check_weakly_equivalent(name, attention, code, shape)


@each(("seed", "shape", "attention"), all_pairs(range(10, 16), SHAPES, ATTENTIONS))
def test_more_random_models(seed: int, shape: Variant, attention: Attention) -> None:
    model = random_ngram(2 + seed % 2, 2 + seed % 3, seed=seed, listed=0.25 + 0.1 * (seed - 10))
    words = all_words(len(model.readable), 6)
    difference = probabilities(build(model, shape, attention, length=6), words) - expected(model, words)
    assert np.abs(difference).max() <= PROMISED[attention]


@each("name", MODELS)
@each("shape", SHAPES)
def test_sizes_are_those_of_the_formulas(name: str, shape: Variant) -> None:
    model = MODELS[name]
    ngrams = evaluator(model).ngrams
    for attention in ATTENTIONS:
        weights = build(model, shape, attention)
        size = weights.sizes
        table = [units for units in weights.labels.units if units.name == "listed contexts"]
        out = sum(nonzeros(weights.arrays[f"blocks.{u.block}.mlp.W_out"][u.start : u.stop]) for u in table)
        rows = sum(units.stop - units.start for units in table)
        assert not chosen(model, shape).sizes(model, attention=attention, max_length=9).problems(size)
        assert rows == len(listed_contexts(ngrams)) == weights.about["listed contexts"]
        assert out == sum(1 for gram in ngrams if len(gram) > 1)
        assert weights.about["listed n-grams"] == len(ngrams)
        layers = {"heads": min(model.order - 1, 1), "layers": model.order - 1, "single": min(model.order - 1, 1)}
        heads = {"heads": model.order - 1, "layers": model.order - 1, "single": min(model.order - 1, 1)}
        assert (size.attention_layers, size.heads) == (layers[shape], heads[shape])
        if shape != "single":
            assert size.units == len(listed_contexts(ngrams))


@pytest.mark.long
@each(("shape", "attention", "code"), all_pairs(SHAPES, ATTENTIONS, CODES))
def test_the_answer_does_not_depend_on_the_position(shape: Variant, attention: Attention, code: Code) -> None:
    model = MODELS["3 words, order 4"]
    length = 33
    weights = build(model, shape, attention, code, length)
    contexts = all_words(3, 3)
    ends = [3, 4, 5, 8, 9, 16, 17, 31, 32, 33]
    last = []
    for end in ends:
        before = random_words(3, end - 3, len(contexts), seed=end)
        words = np.concatenate([before, contexts], axis=1)
        found = probabilities(weights, words)[:, -1]
        assert np.abs(found - expected(model, words)[:, -1]).max() <= PROMISED[attention]
        last.append(found)
    assert np.ptp(last[1:], axis=0).max() <= PROMISED[attention]


@each(("length", "shape", "attention"), all_pairs([1, 2, 3, 5, 64], SHAPES, ATTENTIONS))
def test_words_of_exactly_the_maximum_length(length: int, shape: Variant, attention: Attention) -> None:
    model = MODELS["estimated, 2 words, order 4"]
    words = random_words(2, length, 20, seed=length)
    weights = build(model, shape, attention, length=length)
    assert weights.architecture.max_length == length
    assert np.abs(probabilities(weights, words) - expected(model, words)).max() <= PROMISED[attention]


@each("attention", ATTENTIONS)
@each("shape", SHAPES)
def test_a_model_slightly_off_one_is_reproduced_literally(shape: Variant, attention: Attention) -> None:
    ngrams = dict(evaluator(random_ngram(2, 3, seed=4)).ngrams)
    for gram in [("a",), ("a", "b"), ("<s>", "a")]:
        if gram in ngrams:
            ngrams[gram] = (ngrams[gram][0] - 1e-5, ngrams[gram][1])
    with pytest.warns(SpecWarning, match=r"off by [0-9.]+e-0[56]"):
        model = NGramModel.from_ngrams(ngrams)
    words = all_words(2, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = build(model, shape, attention)
    assert weights.architecture.output.scores == "log"
    wanted = np.log(expected(model, words))
    assert np.abs(np.exp(wanted).sum(axis=-1) - 1).max() > 1e-6
    assert np.abs(answers(weights, words) - wanted).max() <= 1e-9


def test_a_model_that_sums_to_one_is_normalised_by_a_softmax() -> None:
    assert build(MODELS["3 words, order 3"], "heads", "hard").architecture.output.scores == "softmax"


def largest_beta(weights: Weights) -> float:
    return max(float(array.max()) for name, array in weights.arrays.items() if name.endswith(".beta"))


@each(("shape", "attention", "code"), all_pairs(SHAPES, ATTENTIONS, CODES))
def test_snapping_costs_a_second_unit_and_leaves_rounding_only(
    shape: Variant, attention: Attention, code: Code
) -> None:
    model = MODELS["3 words, order 3"]
    words = all_words(3, 6)
    snapped = assemble(ngram(model, variant=shape, attention=attention, max_length=6, code=code, snap=True))
    plain = assemble(ngram(model, variant=shape, attention=attention, max_length=6, code=code))
    assert np.abs(probabilities(snapped, words) - expected(model, words)).max() <= 1e-14
    contexts = sum(len(contexts) for contexts in model.contexts())
    assert snapped.sizes.units == plain.sizes.units + contexts
    if attention == "softmax" and shape != "single":  # the single shape averages: it has no temperature to lower
        assert largest_beta(snapped) < largest_beta(plain) / 2


@each(("positions", "shape", "attention"), all_pairs(["sqrt", "quadratic", "dyadic"], ["heads", "layers"], ATTENTIONS))
def test_every_position_code(positions: CodeName, shape: Variant, attention: Attention) -> None:
    model = MODELS["2 words, order 4"]
    weights = assemble(ngram(model, variant=shape, attention=attention, max_length=24, positions=positions))
    assert weights.about["positions"] == positions
    for words in (all_words(2, 6), random_words(2, 24, 50, seed=1)):
        assert np.abs(probabilities(weights, words) - expected(model, words)).max() <= PROMISED[attention]


@each("name", MODELS)
@each("shape", SHAPES)
def test_the_error_of_a_logit_is_proved(name: str, shape: Variant) -> None:
    for attention in ATTENTIONS:
        weights = build(MODELS[name], shape, attention)
        errors = [space.error for space in weights.labels.spaces if space.name == "logits"]
        assert len(errors) == min(MODELS[name].order - 1, 1)
        assert all(0 <= error <= 1e-10 for error in errors)


@each("name", MODELS)
@each("shape", SHAPES)
def test_no_unit_is_idle(name: str, shape: Variant) -> None:
    for attention in ATTENTIONS:
        weights = build(MODELS[name], shape, attention, "onehot")
        for index, block in enumerate(weights.architecture.blocks):
            if block.units:
                inward, outward = (dense(weights.arrays[f"blocks.{index}.mlp.W_{way}"]) for way in ("in", "out"))
                assert inward.any(axis=0).all()
                assert outward.any(axis=1).all()


def test_one_slot_needs_no_position_code() -> None:
    for shape in SHAPES:
        weights = build(MODELS["2 words, order 2"], shape, "softmax")
        assert nonzeros(weights.arrays["pos_embed.W_pos"]) == 0


def test_a_large_vocabulary_is_coded_in_bits() -> None:
    few, many = NGramModel.fit([[chr(97 + i) for i in range(8)]], 2), NGramModel.fit([[f"w{i}" for i in range(80)]], 2)
    assert build(few, "heads", "hard").about["code"] == "onehot"
    assert build(many, "heads", "hard").about["code"] == "bits"


def test_refusals() -> None:
    model = MODELS["2 words, order 3"]
    with pytest.raises(BuildRefused, match=r'--variant must be one of heads, layers, single, not "ring"'):
        ngram(model, variant="ring")  # type: ignore[arg-type]
    with pytest.raises(BuildRefused, match=r"built by the constructions heads, layers, single, not 'log-depth'"):
        catalogue.build(model, "log-depth")
    with pytest.raises(
        BuildRefused, match=r"--max-length \(longest input, in tokens\) must be a whole number of at least 1, not 0"
    ):
        ngram(model, max_length=0)
    with pytest.raises(BuildRefused, match=r"use the dyadic position code"):
        assemble(ngram(model, positions="sqrt", max_length=100_000))
    with pytest.raises(BuildRefused, match=r"float32 rounds them"):
        assemble(ngram(model, positions="sqrt", max_length=128), arithmetic="float32")


def test_settings_reach_the_net() -> None:
    model = MODELS["2 words, order 3"]
    weights = catalogue.build(model, "layers", attention="hard", max_length=17, positions="quadratic")
    assert weights.architecture.max_length == 17
    assert {head.attention for block in weights.architecture.blocks for head in block.heads} == {"hard"}
    assert weights.about["positions"] == "quadratic"
    assert weights.about["variant"] == "layers"
    assert catalogue.build(model).about["variant"] == "heads"
    assert catalogue.build(model).architecture.max_length == 1024
