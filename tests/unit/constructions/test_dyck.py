"""Brackets in two layers and by rounds, against deleting pairs; sizes by formula; what is refused; mutations."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from brackets import all_texts, completions, is_inside
from built import ATTENTIONS
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.constructions import dyck_recognizer as rounds
from vitrify.constructions.catalogue import Attention, build
from vitrify.constructions.dyck import dyck, sizes
from vitrify.constructions.dyck_recognizer import dyck_recognizer
from vitrify.errors import BuildRefused, FolderError
from vitrify.kit import assemble
from vitrify.net.inference import encode, logits, trace
from vitrify.net.weights import Weights
from vitrify.spec.languages.dyck import Dyck


def said(weights: Weights, text: str) -> list[frozenset[str]]:
    (found,) = logits(weights, [encode(weights.architecture, list(text))])
    symbols = weights.architecture.output.symbols
    return [frozenset(s for s, x in zip(symbols, row, strict=True) if x > 0) for row in found]


def test_after_an_illegal_prefix_nets_still_name_brackets() -> None:
    language = Dyck.of("( ) [ ]", depth=2, length=8)
    nets = [build(language, name) for name in ("dyck", "dyck-elman", "dyck-lstm")]
    illegal = [text for text in all_texts("()[]", 3) if language.stack(text) is None]
    assert len(illegal) > 50
    assert not language.next_words(")(")
    assert all(said(net, text)[-1] for net in nets for text in illegal)
    assert [said(net, ")(")[-1] for net in nets] == [{"(", ")", "[", "</s>"}, {"(", ")", "["}, {"(", ")", "["}]


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize(("kinds", "depth", "longest"), [(1, 2, 7), (2, 1, 4), (2, 3, 5), (3, 2, 4)])
def test_next_sets_after_all_short_beginnings(kinds: int, depth: int, longest: int, attention: Attention) -> None:
    letters = "()[]{}"[: 2 * kinds]
    weights = assemble(dyck(Dyck.of(" ".join(letters), depth, longest), attention=attention))
    beginnings = [text for text in all_texts(letters, longest) if completions(text, kinds, depth)]
    assert len(beginnings) > 10
    for text in beginnings:
        assert said(weights, text)[-1] == completions(text, kinds, depth), text


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize(
    ("kinds", "depth", "length"),
    [(1, 1, 9), (8, 10, 60), pytest.param(64, 10, 60, marks=pytest.mark.slow), (3, 16, 40)],
)
def test_long_words_and_sizes(kinds: int, depth: int, length: int, attention: Attention) -> None:
    spec = Dyck.of_kinds(kinds, depth, length)
    weights = assemble(dyck(spec, attention=attention))
    assert certify(weights, spec, max_length=1, work=1e7).verdict == "holds"
    size = weights.sizes
    assert not sizes(spec, attention=attention).problems(size)
    assert size.heads_per_layer == (1, 1)


def test_the_width_grows_like_the_logarithm_of_the_kinds() -> None:
    widths = [assemble(dyck(Dyck.of_kinds(2**b, 10, 60))).sizes.d_model for b in range(2, 9)]
    assert np.diff(widths).tolist() == [2] * 6


def test_it_is_right_at_the_end_of_its_length_with_brackets_open() -> None:
    weights = assemble(dyck(Dyck.of("( ) [ ]", 3, 12)))
    assert said(weights, "[]" * 4 + "([()")[-1] == {"(", "[", "]"}
    assert said(weights, "[]" * 4 + "()([")[-1] == {"(", "[", "]"}
    assert said(weights, "()" * 4 + "[][(")[-1] == {"(", "[", ")"}
    assert said(weights, "()" * 4 + "][(["[1:])[-1] == {"]"}
    assert said(weights, "()" * 6)[-1] == {"(", "[", "</s>"}


def test_the_promised_error_of_the_depth_does_not_count_on_small_depths() -> None:
    shallow, deep = (assemble(dyck(Dyck.of_kinds(2, depth, 60))).labels.space("depth").error for depth in (1, 60))
    assert shallow == deep


def test_depth_and_stack_are_in_named_spaces() -> None:
    seen = trace(assemble(dyck(Dyck.of("( ) [ ]", 3, 12))), "([[])")
    assert seen.read("depth") == [0, 1, 2, 3, 2, 1]
    assert seen.read("bracket to close")[1:] == ["(", "[", "[", "[", "("]


@cache
def balanced_depths(letters: str, longest: int) -> dict[str, frozenset[int]]:
    """Of each word to a length, the limits of depth that it stays within, by deleting pairs."""
    found = {}
    for text in all_texts(letters, longest):
        found[text] = frozenset(d for d in (1, 2, 3) if is_inside(text, d)) if is_inside(text, 8) else frozenset()
    return found


RECOGNISED = [  # of words within a depth and beyond it, the shortest have twice as many letters
    (1, "()[]", 6),
    (2, "()[]", 6),
    (3, "()", 8),
    *(pytest.param(depth, "()[]", 8, marks=pytest.mark.slow) for depth in (1, 2, 3)),
]


@pytest.mark.long
@pytest.mark.parametrize(("depth", "letters", "longest"), RECOGNISED)
def test_the_recognizer_on_all_short_words(depth: int, letters: str, longest: int) -> None:
    spec = Dyck.of(" ".join(letters), depth, 8)
    weights = assemble(dyck_recognizer(spec, attention="hard"))
    size = weights.sizes
    assert not rounds.sizes(spec, attention="hard").problems(size)
    assert size.attention_layers == depth + 1
    ids = {symbol: number for number, symbol in enumerate(weights.architecture.inputs)}
    depths = balanced_depths(letters, longest)
    for length in range(longest + 1):
        some = [text for text in depths if len(text) == length]
        tokens = np.array([[0, *(ids[letter] for letter in text)] for text in some])
        found = weights.architecture.forward(weights.prepared, tokens)
        yes = found[..., 1] > found[..., 0]
        assert (yes == yes[:, :1]).all()  # everybody knows
        assert yes[:, 0].tolist() == [depth in depths[text] for text in some]


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_the_recognizer_on_long_words(attention: Attention) -> None:
    spec = Dyck.of("( ) [ ] { }", 4, 40)
    weights = assemble(dyck_recognizer(spec, attention=attention))
    assert not rounds.sizes(spec, attention=attention).problems(weights.sizes)
    rng = np.random.default_rng(0)
    asked: list[list[str]] = []
    for _ in range(60):
        word = list(spec.draw(rng))[:40]
        asked += [word, [*word[:-1], "("], [*word[1:]], [*word[:3], "]", *word[4:]], [*reversed(word)]]
    answers = [found[-1].argmax() == 1 for found in logits(weights, [encode(weights.architecture, w) for w in asked])]
    wanted = [is_inside("".join(word), 4) for word in asked]
    assert answers == wanted
    assert 20 < sum(wanted) < 200
    assert certify(weights, spec, max_length=3, work=1e7).verdict == "holds"


def test_the_width_of_the_recognizer_does_not_depend_on_the_depth() -> None:
    specs = [Dyck.of_kinds(3, depth, 20) for depth in (1, 2, 7)]
    nets = {
        attention: [assemble(dyck_recognizer(spec, attention=attention)) for spec in specs] for attention in ATTENTIONS
    }
    assert {attention: {net.sizes.d_model for net in some} for attention, some in nets.items()} == {
        "softmax": {13},
        "sparsemax": {13},
        "hard": {12},
    }
    assert not any(net.arrays["pos_embed.W_pos"].any() for net in nets["hard"])


def test_membership_questions_are_of_both_kinds_and_witnesses_are_told() -> None:
    spec = Dyck.of("( ) [ ]", 2, 8)
    weights = assemble(dyck_recognizer(spec, attention="hard"))
    oracle = oracle_for(spec, weights.architecture)
    asked = oracle.cases(np.random.default_rng(0), 400)
    inside = [is_inside("".join(weights.architecture.inputs[i] for i in word), 2) for word in asked]
    assert 40 < sum(inside) < len(inside) - 40
    bias = weights.arrays["unembed.b_U"].copy()
    bias[1] = -0.5  # always no
    evidence = certify(weights.with_array("unembed.b_U", bias), spec)
    assert evidence.witness == {"word": [], "expected": "yes", "actual": "no"}
    with pytest.raises(FolderError, match="the same symbols"):
        oracle_for(Dyck.of("( ) { }", 2, 8), weights.architecture)


def test_refusals_and_settings() -> None:
    spec = Dyck.of("( )", 3, 12)
    for shape in ("dyck", "dyck-recognizer"):
        with pytest.raises(BuildRefused, match="from 1 to the length of the language, 12, got 13"):
            build(spec, shape, max_length=13)
        assert build(spec, shape, max_length=5).architecture.max_length == 5
        assert build(spec, shape).architecture.max_length == 12


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_mutations_of_the_generator(attention: Attention) -> None:
    spec = Dyck.of_kinds(3, 3, 12)
    found = mutation_test(assemble(dyck(spec, attention=attention)), spec, count=100, seed=0, work=3e7)
    explained = {"pos_embed.W_pos[12] zeroed"}  # hard: the first token may have the index 0, only the order counts
    assert {what for what, _ in found.survivors} <= (explained if attention == "hard" else set())
    assert found.tried == 100


def test_mutations_of_the_recognizer() -> None:
    spec = Dyck.of_kinds(2, 2, 8)
    found = mutation_test(assemble(dyck_recognizer(spec, attention="hard")), spec, count=60, seed=0, work=1e7)
    harmless = {"blocks.0.attn.b_Q[0] zeroed", "blocks.0.attn.b_Q[1] zeroed"}  # round 1 looks at the nearest bracket
    assert found.tried == 60
    assert {what for what, _ in found.survivors} <= harmless
