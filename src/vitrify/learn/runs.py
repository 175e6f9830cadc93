"""A training run: what determines it, its name, its curve and its weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from vitrify.errors import InputError
from vitrify.net.weights import Weights
from vitrify.optional import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_DRAWN = ("step", "broken", "stopped")  # of a measurement: where and how it ended
LEGEND, MEASURES = 12, 6  # runs that a legend names, measurements that a table shows
Identity: TypeAlias = Mapping[str, Any]  # what determines a run, as JSON data
Net: TypeAlias = Any  # the architecture that was trained: a Transformer, Recurrent or Convolutional


def run_id(identity: Identity) -> str:
    """Return the name of a run: equal for equal identities, whatever the order of their keys.

    >>> run_id({"sandbox": "markov", "seed": 0}) == run_id({"seed": 0, "sandbox": "markov"})
    True
    """
    try:
        return digest(canonical(identity))
    except (TypeError, ValueError) as error:
        raise InputError(f"the identity of a run must be plain JSON data: {error}") from None


def canonical(identity: object) -> str:
    """Return the one text of plain JSON data: keys sorted, no spaces, no number that JSON does not have."""
    return json.dumps(identity, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def digest(text: str) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Run:
    """One run of `train`: its identity, its measurements in order, and its weights.

    The last measurement says how it ended: `broken` is the step whose loss was not a number, `stopped` the step at
    which it was near enough to the optimum; both are -1 otherwise.
    """

    identity: Identity
    curve: Sequence[Mapping[str, float]]
    weights: Weights[Net]

    @property
    def id(self) -> str:
        """The run's name in a store: a digest of its identity."""
        return run_id(self.identity)

    @property
    def last(self) -> Mapping[str, float]:
        """The last measurement."""
        return self.curve[-1]

    @property
    def state(self) -> str:
        """`finished`, or `failed` where the loss was not a number."""
        return "failed" if self.last["broken"] >= 0 else "finished"

    @property
    def message(self) -> str | None:
        """Why the run failed; None if it did not."""
        step, seed = int(self.last["broken"]), self.identity["seed"]
        return f"the loss was not a number at step {step} (seed {seed})" if step >= 0 else None

    def plot(self, measure: str = "loss") -> Figure:
        """Return a matplotlib figure of a measurement by step."""
        return RunList([self]).plot(measure)

    def _repr_html_(self) -> str:
        return RunList([self])._repr_html_()


class RunList(list[Run]):
    """The runs of `train`, in order: a list that a notebook shows as a table, and that can be drawn."""

    def plot(self, measure: str = "loss") -> Figure:
        """Return a matplotlib figure of a measurement by step, with a line for each run."""
        known = [name for name in (self[0].last if self else ()) if name not in NOT_DRAWN]
        if measure not in known:
            raise InputError(f"a run has no measurement {measure!r}; it has {', '.join(known) or 'none'}")
        figure = need("matplotlib.figure", "report").Figure(figsize=(6, 3.4), layout="constrained")
        axes = figure.subplots()
        for run in self:
            points = [(point["step"], point[measure]) for point in run.curve if measure in point]
            axes.plot(*zip(*points, strict=True), label=f"seed {run.identity.get('seed')}", linewidth=1)
        axes.set(xlabel="step", ylabel=measure)
        if 1 < len(self) <= LEGEND:
            axes.legend(frameon=False, fontsize=8)
        drawn: Figure = figure
        return drawn

    def _repr_html_(self) -> str:
        from vitrify.markup import card, table

        names = [name for name in (self[0].last if self else ()) if name not in NOT_DRAWN][:MEASURES]
        rows = [(r.id, r.identity.get("seed"), r.state, r.last["step"], *(r.last.get(n) for n in names)) for r in self]
        return card(f"{len(self)} run{'' if len(self) == 1 else 's'}", table(["run", "seed", "", "step", *names], rows))
