"""Oracle of CPWL functions: values by the function's own description, at points where it or its network may bend."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.checks.points import PointBatch
from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.maxout import MaxoutOracle
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.geometry.cpwl import Cpwl

RANDOM_POINTS = 1000  # random points of the box
MIDDLES = 1000  # points between corners: of edges, and of pairs and triples further apart


@oracle(Cpwl, output="values", reads="vector")
class CpwlOracle(MaxoutOracle):
    """Values of a CPWL function on its box; the points are also those at which its maxout network is checked."""

    def __init__(self, spec: Cpwl, net: SequenceArchitecture) -> None:
        super().__init__(spec.maxout(), net)
        self.function = spec

    def errors(self, inputs: Floats, outputs: Floats) -> Floats:
        return np.asarray(np.abs(outputs - self.function(inputs)).max(axis=1))

    def right(self, point: Floats) -> Floats:
        return np.asarray(self.function(point[None])[0])

    def witness(self, point: Floats, output: Floats) -> dict[str, object]:
        return {"point": point.tolist(), "expected": self.right(point).tolist(), "actual": output.tolist()}

    def cases(self, rng: np.random.Generator) -> list[PointBatch]:
        """Return points of the box: vertices, points between them, random ones, and the maxout network's own."""
        low, high, corners = self.function.low, self.function.high, self.function.corners()
        between = corners[rng.integers(len(corners), size=(MIDDLES, 3))]
        shares = rng.dirichlet(np.ones(3), size=MIDDLES)
        random = rng.uniform(low, high, size=(RANDOM_POINTS, len(low)))
        own = [
            PointBatch("vertices and corners", np.concatenate([self.function.box_corners, corners])),
            PointBatch("points between vertices", np.einsum("bk,bki->bi", shares, between)),
            PointBatch("random points of the box", random),
        ]
        others = super().cases(rng)[1:]
        return own + [replace(batch, inputs=np.clip(batch.inputs, low, high)) for batch in others]
