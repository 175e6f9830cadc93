"""Nets that compare two words: against the text of the words, sizes, both links, and what the lemma refuses."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from built import ATTENTIONS
from cases import each
from nets import altered
from vitrify.certification import certify
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof
from vitrify.certification.equivalence.clashes import a_clash
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.values import Undecided
from vitrify.constructions.catalogue import build
from vitrify.errors import SpecError
from vitrify.net.inference import batch_logits, encode, with_pads
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.spec.tasks.comparison import Comparison

SMALL = Comparison("equality", 3, symbols=3)
SETS = Comparison("disjointness", 4)


def right(task: Comparison, word: tuple[str, ...]) -> str:
    """The answer, from the text alone."""
    text = "".join(word).removesuffix("?")
    x, y = text[: len(text) // 2], text[len(text) // 2 :]
    if task.relation == "equality":
        return "yes" if x == y else "no"
    return "no" if int(x, 2) & int(y, 2) else "yes"


def answers(weights: Weights[Any], words: list[tuple[str, ...]]) -> list[str]:
    net = weights.architecture
    logits = batch_logits(weights, with_pads(net, np.array([encode(net, word) for word in words])))[:, -1]
    assert (np.abs(np.diff(logits, axis=1)) > 0.5).all()
    return [net.output.symbols[index] for index in logits.argmax(axis=1)]


def proof(weights: Weights[Any], task: Comparison) -> SpecProof:
    check = WordCheck(weights.architecture, task)
    return a_clash(SpecCase(weights, task, check.oracle, proof_of(weights, check.oracle)))


@each("task", [SMALL, SETS, Comparison("equality", 1), Comparison("disjointness", 1)])
@each("attention", ATTENTIONS)
def test_all_words(task: Comparison, attention: AttentionKind) -> None:
    words = [(*letters, "?") for letters in product(task.letters, repeat=2 * task.size)]
    assert words == [*task.words(task.length)]
    expected = [right(task, word) for word in words]
    assert [task.answers(word)[-1] for word in words] == expected
    assert answers(build(task, attention=attention), words) == expected


@each("task", [Comparison("equality", 64, symbols=26), Comparison("disjointness", 200)])
def test_one_clash_among_many_positions_decides(task: Comparison) -> None:
    rng, words = np.random.default_rng(0), []
    for place in (0, 1, task.size // 2, task.size - 1):
        x = [task.letters[i] for i in rng.integers(task.symbols, size=task.size)]
        if task.relation == "equality":
            y = x.copy()
            words.append((*x, *y, "?"))
            y[place] = task.letters[(int(y[place]) + 1) % task.symbols]
        else:
            y = ["1" if bit == "0" else "0" for bit in x]
            words.append((*x, *y, "?"))
            x[place] = y[place] = "1"
        words.append((*x, *y, "?"))
    assert answers(build(task), words) == ["yes", "no"] * 4


def test_drawn_words_have_both_answers() -> None:
    rng = np.random.default_rng(0)
    for task in (SMALL, SETS, Comparison("equality", 300), Comparison("disjointness", 300)):
        drawn = [task.draw(rng, task.length) for _ in range(60)]
        said = [task.answers(word)[-1] for word in drawn]
        assert said == [right(task, word) for word in drawn]
        assert 15 <= said.count("yes") <= 45
        assert len(task.draw(rng, 3)) == 3


def test_sizes_do_not_depend_on_the_length() -> None:
    for task in (SMALL, SETS, Comparison("equality", 500, symbols=7), Comparison("disjointness", 500)):
        size = build(task).sizes
        assert (size.layers, size.heads_per_layer, size.d_model) == (2, (1, 1), 8)
        assert size.units == (4 if task.relation == "equality" else 2)


@each("attention", ATTENTIONS)
@each("task", [SMALL, SETS, Comparison("equality", 20)])
def test_both_links_are_proved(task: Comparison, attention: AttentionKind) -> None:
    certified = certify(build(task, attention=attention), task, work=1e6, prove=True)
    assert [link.scope.value for link in certified.links] == ["to T", "to T"]
    n, s = task.size, task.symbols
    assert certified.links[1].instances is not None
    assert certified.links[1].instances["streams"] == n * s + n * s * s


def _half(array: Any, net: Weights[Any], position: int, flag: float) -> None:
    """Set the flag of the second half at a position."""
    array[position, net.labels.space("second half").dims[0]] = flag


Break = Callable[[Any, Weights[Any]], None]
BREAKS: dict[str, tuple[str, Break]] = {
    "one position too near": ("blocks.0.attn.b_Q", lambda a, _: a.__setitem__((0, 0), a[0, 0] + 2)),
    "a number": ("embed.W_E", lambda a, net: a.__setitem__((2, net.labels.space("number").dims[0]), 0.0)),
    "no second half": ("pos_embed.W_pos", lambda a, net: _half(a, net, 4, 0.0)),
    "half too long": ("pos_embed.W_pos", lambda a, net: _half(a, net, 7, 1.0)),
    "a unit": ("blocks.0.mlp.W_out", lambda a, _: a.__setitem__(0, 0.0)),
    "no clash is better than BOS": ("blocks.1.attn.b_Q", lambda a, _: a.__setitem__((0, 1), 4 * a[0, 1])),
    "BOS is read": ("blocks.1.attn.b_V", lambda a, _: a.__iadd__(1.0)),
    "the answers are swapped": ("unembed.W_U", lambda a, _: a.__imul__(-1.0)),
}


@each("name", BREAKS)
def test_what_is_broken_is_refused(name: str) -> None:
    broken = altered(build(SMALL), *BREAKS[name])
    words = [*SMALL.words(SMALL.length)]
    net = broken.architecture
    logits = batch_logits(broken, with_pads(net, np.array([encode(net, word) for word in words])))[:, -1]
    said = [net.output.symbols[index] for index in logits.argmax(axis=1)]
    assert said != [right(SMALL, word) for word in words]
    with pytest.raises(Undecided):
        proof(broken, SMALL)


def test_another_relation_is_refused() -> None:
    with pytest.raises(Undecided):
        proof(build(Comparison("equality", 4)), SETS)


def test_sets_are_words_of_bits() -> None:
    with pytest.raises(SpecError, match="symbols must be 2 for sets, whose words are bits, not 3"):
        Comparison("disjointness", 4, symbols=3)
    with pytest.raises(SpecError, match="relation"):
        Comparison("similarity", 4)  # type: ignore[arg-type]
