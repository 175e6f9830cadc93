"""What a net built from a maxout network must answer, and at which points that is worth asking."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.points import Questions
from vitrify.errors import FolderError
from vitrify.net.architecture import Architecture
from vitrify.spec.maxout import Maxout
from vitrify.spec.regions import regions_on_line

Floats = NDArray[np.float64]

POINTS = 256  # random points of the box
CORNERS = 64  # of the box; random ones if there are more
SEARCHED = 8192  # random points among which those are looked for at which each piece leads by most
LINES = 2  # random segments whose breakpoints are asked about
NEAR = np.array([1e-9, 1e-7, 1e-5, 1e-3])  # of a segment: how far from a breakpoint its neighbours are
MOST_PARAMETERS = 2000  # larger networks are not followed along lines


class MaxoutOracle:
    """A maxout network's outputs: the distance is the largest difference of two of them."""

    def __init__(self, spec: Maxout, net: Architecture) -> None:
        if net.shapes()["embed.W_E"][0] != spec.inputs or len(net.output.symbols) != spec.outputs:
            raise FolderError("the network and its spec do not have the same number of inputs and outputs")
        self.spec, self.net = spec, net

    def tolerance(self) -> float:
        return self.net.output.error

    def errors(self, inputs: Floats, outputs: Floats) -> Floats:
        far: Floats = np.abs(outputs - self.spec(inputs)).max(axis=1)
        return far

    def right(self, point: Floats) -> Floats:
        found: Floats = self.spec(point[None])[0]
        return found

    def witness(self, point: Floats, output: Floats) -> dict[str, object]:
        return {
            "point": point.tolist(),
            "expected": self.spec(point[None])[0].tolist(),
            "found": output.tolist(),
        }

    def questions(self, rng: np.random.Generator) -> list[Questions]:
        """Corners, random points, breakpoints and their neighbours, and where each piece leads by most."""
        n, r = self.spec.inputs, self.spec.radius
        if 2**n <= CORNERS:
            corners = np.array(list(product((-r, r), repeat=n)))
        else:
            corners = rng.choice((-r, r), size=(CORNERS, n))
        leading = self._leading(rng.uniform(-r, r, size=(SEARCHED, n)))
        asked = [
            Questions(f"{len(corners)} corners", corners),
            Questions(f"{POINTS} random points", rng.uniform(-r, r, size=(POINTS, n))),
            Questions(f"{len(leading)} points at which some piece leads by most", leading),
        ]
        if self.spec.parameters <= MOST_PARAMETERS:
            bends = self._breakpoints(rng)
            asked.insert(2, Questions(f"{len(bends)} points at, beside and between breakpoints", bends))
        return asked

    def _leading(self, points: Floats) -> Floats:
        """Where each piece of each unit is furthest ahead, among some points."""
        found = set()
        z = points
        for layer in self.spec.layers:
            scores = np.einsum("bi,uki->buk", z, layer.weights) + layer.biases
            if scores.shape[-1] > 1:
                best, second = np.sort(scores, axis=-1)[..., :-3:-1].transpose(2, 0, 1)
                lead = np.where(scores == best[..., None], (best - second)[..., None], -np.inf)
                found |= set(lead.argmax(axis=0)[np.isfinite(lead).any(axis=0)].tolist())
            z = scores.max(axis=-1)
        return points[sorted(found)]

    def _breakpoints(self, rng: np.random.Generator) -> Floats:
        """Breakpoints along some segments, with points close to them on either side, and the middles between them."""
        n, r = self.spec.inputs, self.spec.radius
        if n == 1:
            lines = [(np.array([-r]), np.array([r]))]
        else:
            lines = [tuple(rng.uniform(-r, r, size=(2, n))) for _ in range(LINES)]
        found = []
        for start, end in lines:
            cells = regions_on_line(self.spec, start.tolist(), end.tolist()).cells
            ends = np.array(sorted({float(corner[0]) for cell in cells for corner in cell.corners}))
            places = np.concatenate([ends, *(ends + step for step in (*NEAR, *-NEAR)), (ends[1:] + ends[:-1]) / 2])
            found.append(start + np.clip(places, 0, 1)[:, None] * (end - start))
        return np.concatenate(found)
