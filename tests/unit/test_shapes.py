"""Wrong shapes are caught where they cross a border: the checks of `tests/shapes.py` are on, and they bite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nets import mixed, random_net
from shapes import ShapeError
from vitrify.certification.margins.values import ValueFactor
from vitrify.certification.reals.nets import Balls
from vitrify.kit.gadgets.features import features
from vitrify.kit.set_codes import products
from vitrify.learn.evaluation import all_right
from vitrify.learn.flow import Flow
from vitrify.learn.landscape import Point
from vitrify.learn.measure import divergence, losses, mean_loss
from vitrify.learn.probes import _mean
from vitrify.learn.routing import purity
from vitrify.net.attention import softmax
from vitrify.net.inference import batch_logits
from vitrify.sandboxes.catalogue import Example, examples_at
from vitrify.sandboxes.markov import Markov

NET = random_net(mixed())
BOX = Markov(length=8)
TARGETS = np.zeros(8, dtype=np.int32)
EXAMPLE = Example(TARGETS[:-1], TARGETS, np.ones(8), {})
BATCH = Example(np.zeros((2, 7), dtype=np.int32), np.zeros((2, 8), dtype=np.int32), np.ones((2, 8)), {})
TOKENS = np.zeros((2, 4), dtype=np.int64)

WRONG: dict[str, Callable[[], object]] = {
    "net: three axes of tokens": lambda: batch_logits(NET, TOKENS[None]),
    "net: tokens that are no whole numbers": lambda: batch_logits(NET, TOKENS.astype(float)),
    "net: lengths of another batch": lambda: batch_logits(NET, TOKENS, np.array([4, 4, 4])),
    "net: a mask of other keys": lambda: softmax(np.zeros((2, 3, 4)), np.ones((3, 5), dtype=bool)),
    "kit: vectors of unequal length": lambda: products(np.zeros((2, 3)), np.zeros((2, 4))),
    "kit: a center of other units": lambda: features(None, None, np.zeros((3, 4)), np.zeros(5), np.zeros((4, 1)), None),  # type: ignore[arg-type]
    "certify: midpoints and radii apart": lambda: Balls(np.zeros((2, 3)), np.zeros((3, 3))),
    "sandboxes: more weights than questions": lambda: BOX.optimal(EXAMPLE._replace(weight=np.ones(9))),
    "sandboxes: a batch of targets for one example": lambda: BOX.uniform(EXAMPLE._replace(targets=TARGETS[None])),
    "sandboxes: targets that are no whole numbers": lambda: BOX.optimal(EXAMPLE._replace(targets=TARGETS / 2)),
    "sandboxes: a table of numbers of examples": lambda: examples_at(BOX, 0, "train", TOKENS),
    "learn: logits of another batch": lambda: mean_loss(np.zeros((3, 8, 2)), BATCH),
    "learn: a loss for questions that nobody asks": lambda: losses(np.zeros((2, 9, 2)), BATCH),
    "learn: distributions over other answers": lambda: divergence(np.zeros((2, 8, 2)), np.zeros((2, 8, 3))),
    "learn: right answers of an example without a batch": lambda: all_right(np.zeros((8, 2)), EXAMPLE),
    "learn: a count for each expert, of no task": lambda: purity(np.ones(4)),
    "learn: attention to other keys": lambda: _mean(np.ones((2, 1, 4, 4)), np.ones((2, 4, 3), dtype=bool), np.sum),
    "learn: eigenvectors of another point": lambda: Point(0.0, 0.0, np.zeros(3), np.zeros((3, 2))),
    "learn: a trajectory without a loss": lambda: Flow(np.zeros((2, 5)), {}, np.zeros((2, 4)), {}, np.zeros(2)),
    "certify: more bounds than dimensions": lambda: ValueFactor("x", np.arange(2), np.zeros(3), np.ones(3)),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_shape_is_caught_at_the_border(case: str) -> None:
    with pytest.raises(ShapeError, match="must be"):
        WRONG[case]()


def test_right_shapes_pass() -> None:
    assert batch_logits(NET, TOKENS, np.array([4, 3])).shape[:2] == TOKENS.shape
    assert Balls(np.zeros((2, 3)), np.zeros((2, 3))).holds(np.zeros((2, 3)))
    assert BOX.optimal(EXAMPLE).shape == (8, 2)
    assert mean_loss(np.zeros((2, 3, 2)), BATCH).shape == ()  # answers to the last three questions
