"""Oracle of maxout networks: the right outputs, and the points at which a net is checked."""

from __future__ import annotations

from itertools import product

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.checks.points import PointBatch, PointOracle
from vitrify.certification.oracles.catalogue import oracle
from vitrify.errors import FolderError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.geometry.maxout import Maxout
from vitrify.spec.geometry.regions import regions_on_line

RANDOM_POINTS = 256  # random points of the box
MAX_CORNERS = 64  # of the box; random ones if there are more
SEARCHED_POINTS = 8192  # random; searched for the points at which each piece has the largest margin
LINES = 2  # random segments whose breakpoints are checked
BREAKPOINT_OFFSETS = np.array([1e-9, 1e-7, 1e-5, 1e-3])  # shares of a segment
MAX_PARAMETERS = 2000  # breakpoints of larger networks are not computed


@oracle(Maxout, output="values", reads="vector")
class MaxoutOracle(PointOracle):
    """Outputs of a maxout network; the error is the largest difference of two outputs."""

    def __init__(self, spec: Maxout, net: SequenceArchitecture) -> None:
        if net.inputs != spec.input_names or net.output.symbols != spec.output_names:
            raise FolderError("the network and its spec do not have the same inputs and outputs")
        self.spec, self.net = spec, net

    def errors(self, inputs: Floats, outputs: Floats) -> Floats:
        return np.asarray(np.abs(outputs - self.spec(inputs)).max(axis=1))

    def right(self, point: Floats) -> Floats:
        return np.asarray(self.spec(point[None])[0])

    def witness(self, point: Floats, output: Floats) -> dict[str, object]:
        return {"point": point.tolist(), "expected": self.spec(point[None])[0].tolist(), "actual": output.tolist()}

    def cases(self, rng: np.random.Generator) -> list[PointBatch]:
        """Return corners, random points, breakpoints and their neighbours, and where a piece has its largest margin."""
        n, r = self.spec.inputs, self.spec.radius
        if 2**n <= MAX_CORNERS:
            corners = np.array(list(product((-r, r), repeat=n)))
        else:
            corners = rng.choice((-r, r), size=(MAX_CORNERS, n))
        leading = self._widest_margins(rng.uniform(-r, r, size=(SEARCHED_POINTS, n)))
        batches = [
            PointBatch("corners", corners),
            PointBatch("random points", rng.uniform(-r, r, size=(RANDOM_POINTS, n))),
            PointBatch("points at which some piece leads by most", leading),
        ]
        if self.spec.parameters <= MAX_PARAMETERS:
            bends = self._breakpoints(rng)
            batches.insert(2, PointBatch("points at, beside and between breakpoints", bends))
        return batches

    def _widest_margins(self, points: Floats) -> Floats:
        """Return, of some points, those at which a piece of a unit has its largest margin."""
        chosen = set()
        z = points
        for layer in self.spec.layers:
            scores = np.einsum("bi,uki->buk", z, layer.weights) + layer.biases
            if scores.shape[-1] > 1:
                best, second = np.sort(scores, axis=-1)[..., :-3:-1].transpose(2, 0, 1)
                margin = np.where(scores == best[..., None], (best - second)[..., None], -np.inf)
                chosen |= set(margin.argmax(axis=0)[np.isfinite(margin).any(axis=0)].tolist())
            z = scores.max(axis=-1)
        return points[sorted(chosen)]

    def _breakpoints(self, rng: np.random.Generator) -> Floats:
        """Return breakpoints along some segments, points close to them on either side, and the middles between them."""
        n, r = self.spec.inputs, self.spec.radius
        if n == 1:
            lines = [(np.array([-r]), np.array([r]))]
        else:
            lines = [tuple(rng.uniform(-r, r, size=(2, n))) for _ in range(LINES)]
        points = []
        for start, end in lines:
            cells = regions_on_line(self.spec, start.tolist(), end.tolist()).cells
            ends = np.array(sorted({float(corner[0]) for cell in cells for corner in cell.corners}))
            beside = [ends + step for step in (*BREAKPOINT_OFFSETS, *-BREAKPOINT_OFFSETS)]
            shares = np.concatenate([ends, *beside, (ends[1:] + ends[:-1]) / 2])
            points.append(start + np.clip(shares, 0, 1)[:, None] * (end - start))
        return np.concatenate(points)
