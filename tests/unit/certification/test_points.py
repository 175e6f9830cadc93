"""Checks of nets that read numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vitrify.certification.checking import certify, net_check
from vitrify.certification.checks import points
from vitrify.certification.checks.points import PointBatch, PointCheck
from vitrify.errors import FolderError, InputError
from vitrify.net.architecture import Output
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

NET = Transformer(("x", "y"), Output("values", ("sum",)), 1, 2, pads=0, reads="vector")
ARRAYS = {
    "embed.W_E": np.eye(2),
    "pos_embed.W_pos": np.zeros((1, 2)),
    "unembed.W_U": np.ones((2, 1)),
    "unembed.b_U": np.zeros(1),
}
ADDER = Weights(NET, ARRAYS)


class Sums:
    """The oracle of x + y, which asks about 300 points and then one far corner."""

    def cases(self, rng: np.random.Generator) -> list[PointBatch]:
        return [PointBatch("points", rng.uniform(0, 1, (300, 2))), PointBatch("a corner", np.full((1, 2), 8.0))]

    def errors(self, inputs: Any, outputs: Any) -> Any:
        return np.abs(inputs.sum(axis=1) - outputs[:, 0])

    def right(self, point: Any) -> Any:
        return point.sum(keepdims=True)

    def tolerance(self) -> float:
        return 1e-12

    def witness(self, point: Any, output: Any) -> dict[str, object]:
        return {"point": point.tolist(), "actual": output.tolist()}


@pytest.fixture(autouse=True)
def sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "point_oracle_for", lambda _spec, _net: Sums())


def test_a_right_net_holds() -> None:
    seen: list[tuple[int, int]] = []
    evidence = certify(ADDER, "x + y", progress=lambda done, total: seen.append((done, total)))
    assert (evidence.verdict, evidence.cases, evidence.methods) == ("holds", 301, ("sampled",))
    assert seen[-1] == (301, 301)


@pytest.mark.parametrize("wrong", [np.array([[1.0], [0.5]]), np.array([[1.0], [np.nan]])], ids=["half", "nan"])
def test_a_wrong_net_fails_with_a_witness(wrong: Any) -> None:
    evidence = certify(ADDER.with_array("unembed.W_U", wrong), "x + y")
    assert evidence.verdict == "fails"
    assert evidence.witness


def test_the_hardest_questions_may_come_first() -> None:
    net = ADDER.with_array("unembed.b_U", np.ones(1))
    evidence = PointCheck(NET, "x + y").run(net, hardest_first=True)
    assert evidence.cases == 1
    assert evidence.witness == {"point": [8.0, 8.0], "actual": [17.0]}


def test_there_is_no_length_to_ask_for() -> None:
    with pytest.raises(InputError, match="reads no words but vectors"):
        net_check(NET, "x + y", max_length=3)
    with pytest.raises(InputError, match="leave --max-length and --samples out"):
        net_check(NET, "x + y", samples=3)


def test_a_spec_without_oracle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(FolderError, match="no oracle for a spec of type str"):
        certify(ADDER, "x + y")
