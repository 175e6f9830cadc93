"""Circuits of hard attention against the net itself, run in floating-point numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from built import small_scene
from examples import examples
from hard_nets import hard_nets
from nets import copycat, mixed, random_net
from vitrify.bounds.ac0 import BLOCK_DEPTH, difference, hard_attention_circuit, to_aiger
from vitrify.bounds.activations import ExactNet, possible
from vitrify.bounds.gates import all_words, input_bits
from vitrify.constructions.catalogue import build
from vitrify.constructions.counting import counting
from vitrify.constructions.dyck_recognizer import dyck_recognizer
from vitrify.constructions.log_depth import log_depth
from vitrify.constructions.ngram import Variant, ngram
from vitrify.constructions.temporal import temporal
from vitrify.errors import BuildRefused, InputError
from vitrify.kit import assemble
from vitrify.net.architecture import Output
from vitrify.net.inference import batch_logits
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.logic.crasp import majority
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.ngrams.families import random_ngram


def formula(text: str) -> Weights:
    return assemble(temporal(Formula.from_text(f"alphabet: a b c\nlength: 7\n{text}"), attention="hard"))


def gram(shape: Variant) -> Weights:
    return assemble(ngram(random_ngram(2, 3, seed=1), variant=shape, attention="hard", max_length=9))


BUILT: dict[str, tuple[Callable[[], Weights], int]] = {
    "since": (lambda: formula("!c S a"), 7),
    "yesterday": (lambda: formula("H (b -> Y a)"), 7),
    "three nested": (lambda: formula("O (c & O (b & O a))"), 6),
    "places": (lambda: formula("H (MOD(0, 2) -> a)"), 6),
    "brackets": (lambda: assemble(dyck_recognizer(Dyck.of_kinds(1, 2, 10), attention="hard")), 10),
    "brackets of two kinds": (lambda: assemble(dyck_recognizer(Dyck.of_kinds(2, 2, 5), attention="hard")), 5),
    "3-gram, heads": (lambda: gram("heads"), 9),
    "3-gram, layers": (lambda: gram("layers"), 9),
    "parity, log depth": (lambda: assemble(log_depth(cyclic(2), max_length=8, attention="hard")), 8),
    "copycat": (copycat, 5),
}


@pytest.mark.long
@pytest.mark.parametrize("name", BUILT)
def test_a_built_net_and_its_circuit_say_the_same_on_every_word(name: str) -> None:
    make, longest = BUILT[name]
    weights = make()
    exact = ExactNet(weights)
    depths = []
    for length in range(1, longest + 1):
        made = hard_attention_circuit(exact, length)
        assert difference(weights, made, all_words(made.letters, length)) is None
        depths.append(made.circuit.size.depth)
    assert max(depths) <= BLOCK_DEPTH * len(weights.architecture.blocks) + 2


@pytest.mark.long
@given(hard_nets(), st.integers(1, 4))
@settings(max_examples=examples(80), deadline=None)
def test_a_random_net_and_its_circuit_say_the_same_on_every_word(weights: Weights, length: int) -> None:
    try:
        made = hard_attention_circuit(ExactNet(weights), length)
    except BuildRefused:  # ties that are not transitive
        assume(False)
    words = all_words(made.letters, length)
    assert difference(weights, made, words) is None
    assert made.circuit.size.depth <= BLOCK_DEPTH * len(weights.architecture.blocks) + 2
    narrow = to_aiger(made.circuit)
    bits = input_bits(words, made.letters)
    assert np.array_equal(narrow.evaluate(bits), made.circuit.evaluate(bits))


@given(hard_nets(ties=("left", "right", "average")), st.integers(1, 4))
@settings(max_examples=examples(60), deadline=None)
def test_everything_that_happens_in_a_run_is_possible(weights: Weights, length: int) -> None:
    exact, net = ExactNet(weights), weights.architecture
    letters = tuple(range(1, len(net.inputs)))
    try:
        layers, stands = possible(exact, [(0,)] * net.pads + [letters] * length)
    except BuildRefused:
        assume(False)
    seen: dict[str, Any] = {}
    tokens = np.pad(all_words(len(letters), length), ((0, 0), (net.pads, 0)))
    net.forward(weights.prepared, tokens, record=seen.__setitem__)
    for index, layer in enumerate(layers):
        run = seen[f"blocks.{index}.hook_resid_pre"]
        for position, kinds in enumerate(layer.before):
            allowed = np.array([[float(x) for x in exact.types.values[kind]] for kind in kinds])
            far = np.abs(run[:, position, None] - allowed[None]).max(axis=-1).min(axis=-1)
            assert far.max() < 1e-9
    last = {tuple(np.round([float(x) for x in exact.types.values[kind]], 6)) for kind in stands[-1]}
    run = seen[f"blocks.{len(layers) - 1}.hook_resid_post"][:, -1]
    assert {tuple(np.round(row, 6) + 0.0) for row in run} <= {tuple(np.array(row) + 0.0) for row in last}


@pytest.mark.slow
def test_two_kinds_of_brackets_on_all_words_of_eight() -> None:
    weights = assemble(dyck_recognizer(Dyck.of_kinds(2, 2, 8), attention="hard"))
    made = hard_attention_circuit(ExactNet(weights), 8)
    assert difference(weights, made, all_words(4, 8)) is None


def test_depth_does_not_grow_and_gates_grow_slowly() -> None:
    weights = assemble(dyck_recognizer(Dyck.of_kinds(1, 2, 16), attention="hard"))
    exact = ExactNet(weights)
    sizes = {length: hard_attention_circuit(exact, length).circuit.size for length in (4, 8, 16)}
    assert {size.depth for size in sizes.values()} == {11}
    assert sizes[16].gates <= 4 * sizes[8].gates <= 16 * sizes[4].gates
    assert sizes[16].thresholds == 0


def one_head(head: Head, scores: list[float], values: list[float]) -> Weights:
    """Letters with given scores and values: the logit is what the head brings."""
    net = Transformer(
        inputs=("<s>", "a", "b", "c")[: 1 + len(scores)],
        output=Output("values", ("brought",)),
        max_length=4,
        d_model=3,
        blocks=(Block((head,), d_head=1, d_value=1),),
    )
    arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][:, 0] = [-10.0, *scores]
    arrays["embed.W_E"][:, 1] = [0.0, *values]
    arrays["blocks.0.attn.W_K"][0, 0, 0] = arrays["blocks.0.attn.b_Q"][0, 0] = arrays["blocks.0.attn.beta"][0] = 1.0
    arrays["blocks.0.attn.W_V"][0, 1, 0] = arrays["blocks.0.attn.W_O"][0, 0, 2] = arrays["unembed.W_U"][2, 0] = 1.0
    return Weights(net, arrays)


def test_an_average_of_different_values_is_refused_and_of_equal_ones_is_not() -> None:
    head = Head("hard", "none", ties="average")
    with pytest.raises(BuildRefused, match="block 0 head 0 averages over keys with different values"):
        hard_attention_circuit(ExactNet(one_head(head, [1.0, 1.0], [1.0, 2.0])), 3)
    weights = one_head(head, [1.0, 2.0], [1.0, 2.0])
    assert difference(weights, hard_attention_circuit(ExactNet(weights), 3), all_words(2, 3)) is None
    counts = assemble(counting(majority("a", "ab", 8), attention="hard"))
    with pytest.raises(BuildRefused, match="averages over keys with different values"):
        hard_attention_circuit(ExactNet(counts), 4)


def test_ties_that_rounding_or_other_keys_decide_are_refused() -> None:
    third = Head("hard", "none", ties="left", resolution=0.3)
    with pytest.raises(BuildRefused, match="must not depend on other keys or on rounding"):
        hard_attention_circuit(ExactNet(one_head(third, [1.0, 1.0 + 0.3], [1.0, 2.0])), 2)
    close = Head("hard", "none", ties="left")
    with pytest.raises(BuildRefused, match="must not depend on other keys or on rounding"):
        hard_attention_circuit(ExactNet(one_head(close, [1.0, 1.0 + 1e-12], [1.0, 2.0])), 2)
    with pytest.raises(BuildRefused, match=r"1, 1\.2 and 1\.4 meet a resolution of 0\.3"):
        hard_attention_circuit(ExactNet(one_head(third, [1.0, 1.2, 1.4], [1.0, 2.0, 3.0])), 2)
    apart = one_head(third, [1.0, 1.2, 1.6], [1.0, 2.0, 3.0])
    assert difference(apart, hard_attention_circuit(ExactNet(apart), 3), all_words(3, 3)) is None


def test_what_is_not_hard_attention_over_tokens_is_refused() -> None:
    with pytest.raises(BuildRefused, match=r"this net has softmax attention, sparsemax attention$"):
        ExactNet(random_net(mixed(residual="add")))
    with pytest.raises(BuildRefused, match="a layer norm, a growing residual stream"):
        ExactNet(random_net(mixed(residual="concatenate", norm=True)))
    with pytest.raises(BuildRefused, match="this net is convolutional"):
        ExactNet(build(small_scene(0)))
    with pytest.raises(InputError, match="words of 1 to 5 letters, not 6"):
        hard_attention_circuit(ExactNet(copycat()), 6)


def test_a_difference_is_found() -> None:
    weights = copycat()
    made = hard_attention_circuit(ExactNet(weights), 4)
    swapped = replace(made, answers=made.answers[::-1])
    assert difference(weights, made, all_words(2, 4)) is None
    assert difference(weights, swapped, all_words(2, 4)) == (0, "the net says a, the circuit b")


def test_exact_logits_are_those_of_the_net() -> None:
    weights = assemble(dyck_recognizer(Dyck.of_kinds(1, 2, 6), attention="hard"))
    exact = ExactNet(weights)
    _, stands = possible(exact, [(0,), (1,), (2,), (1,), (2,)])
    (kind,) = stands[-1]
    found = batch_logits(weights, np.array([[0, 1, 2, 1, 2]]))[0, -1]
    assert [float(logit) for logit in exact.logits(kind)] == found.tolist()
