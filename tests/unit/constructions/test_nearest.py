"""Nets that answer with the label of the nearest point: against angles, sizes, both links, what the lemma refuses."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import pi
from typing import Any

import numpy as np
import pytest

from built import ATTENTIONS
from cases import each
from nets import altered
from vitrify.certification import certify
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof
from vitrify.certification.equivalence.neighbors import the_nearest
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.values import Undecided
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_logits, encode, with_pads
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.spec.tasks.nearest import Nearest

SMALL = Nearest(points=5, labels=2, pairs=2)


def right(task: Nearest, word: tuple[str, ...]) -> list[str | None]:
    """The answers, by angles; the last of the nearest points wins."""
    found: list[str | None] = []
    for at, symbol in enumerate(word):
        best, label = 10.0, "(none)"
        for pair in range(0, at - 1, 2):
            turn = abs(int(word[pair][1:]) - int(symbol[1:])) * 2 * pi / task.points
            angle = min(turn, 2 * pi - turn)
            if angle <= best + 1e-9:
                best, label = angle, word[pair + 1]
        found.append(label if at % 2 == 0 else None)
    return found


def answers(weights: Weights[Any], words: list[tuple[str, ...]]) -> list[list[str | None]]:
    net = weights.architecture
    logits = batch_logits(weights, with_pads(net, np.array([encode(net, word) for word in words])))[:, net.pads :]
    best = logits.argmax(axis=2).tolist()
    return [[None if at % 2 else net.output.symbols[i] for at, i in enumerate(row)] for row in best]


def proof(weights: Weights[Any], task: Nearest) -> SpecProof:
    check = WordCheck(weights.architecture, task)
    return the_nearest(SpecCase(weights, task, check.oracle, proof_of(weights, check.oracle)))


@each("attention", ATTENTIONS)
@each("task", [SMALL, Nearest(4, 2, 2), Nearest(3, 3, 2)])
def test_all_words(task: Nearest, attention: AttentionKind) -> None:
    points, labels = [f"p{i + 1}" for i in range(task.points)], [f"v{i + 1}" for i in range(task.labels)]
    words: list[tuple[str, ...]] = [*product(points, labels, points, labels, points)]
    assert words == [*task.words(task.length)]
    expected = [right(task, word) for word in words]
    assert [list(task.answers(word)) for word in words] == expected
    assert answers(build(task, attention=attention), words) == expected


@each("task", [Nearest(101, 7, 60), Nearest(1000, 3, 40)])
def test_random_words(task: Nearest) -> None:
    rng = np.random.default_rng(0)
    words = [task.draw(rng, task.length) for _ in range(10)]
    assert answers(build(task), words) == [right(task, word) for word in words]


def test_sizes_do_not_depend_on_the_numbers() -> None:
    for task in (SMALL, Nearest(1000, 50, 100)):
        size = build(task).sizes
        assert (size.layers, size.heads_per_layer, size.d_model, size.units) == (2, (1, 1), 11, 0)


@each("attention", ATTENTIONS)
@each("task", [SMALL, Nearest(4, 2, 3), Nearest(24, 3, 10)])
def test_both_links_are_proved(task: Nearest, attention: AttentionKind) -> None:
    certified = certify(build(task, attention=attention), task, work=1e6, prove=True)
    assert [link.scope.value for link in certified.links] == ["to T", "to T"]


def _dim(net: Weights[Any], space: str, index: int = 0) -> int:
    return int(net.labels.space(space).dims[index])


BREAKS: dict[str, tuple[str, Callable[[Any, Weights[Any]], None]]] = {
    "one dimension of points": (
        "blocks.1.attn.W_K",
        lambda a, net: a.__setitem__((0, _dim(net, "point before", 1)), 0),
    ),
    "a small bonus of labels": ("blocks.1.attn.b_Q", lambda a, _: a.__imul__(0.2)),
    "no order of positions": ("blocks.1.attn.W_K", lambda a, net: a.__setitem__((0, _dim(net, "index")), 0.0)),
    "an order that is too steep": ("blocks.1.attn.W_K", lambda a, net: a.__setitem__((0, _dim(net, "index")), 9.0)),
    "the first of equals": ("blocks.1.attn.W_K", lambda a, net: a.__setitem__((0, _dim(net, "index")), -0.9)),
    "a point": ("embed.W_E", lambda a, net: a.__setitem__((2, _dim(net, "point")), -1.0)),
    "a label": ("embed.W_E", lambda a, _: a.__setitem__(6, a[7])),
    "two back": ("blocks.0.attn.b_Q", lambda a, _: a.__setitem__((0, 0), 2 * a[0, 0])),
    "answers are swapped": ("unembed.W_U", lambda a, _: a.__setitem__((slice(None), [1, 2]), a[:, [2, 1]])),
}


@each("name", BREAKS)
def test_what_is_broken_is_refused(name: str) -> None:
    broken = altered(build(SMALL), *BREAKS[name])
    words = [*SMALL.words(SMALL.length)]
    assert answers(broken, words) != [right(SMALL, word) for word in words]
    with pytest.raises(Undecided):
        proof(broken, SMALL)
