"""Built nets as the start of training: as they are, with noise on every array, or their architecture from scratch.

Does gradient descent keep, find or leave a construction? Tokens and answers of the sandbox are matched with those of
the net by name. Answers that the sandbox does not have are left out, and the others share their probability.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Family, Parameters, normal
from vitrify.net.architecture import Record
from vitrify.net.folder import load
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Row, Sandbox

FIXED = "attn.beta"  # a temperature is a choice, no parameter
LEAST = 1e-30  # what a linear score counts that has no logarithm


@dataclass(frozen=True)
class BuiltFamily(Family):
    """The net of a model `folder`, or the one given as `start`.

    `noise` is the standard deviation of what is added to an array, as a multiple of its root mean square; arrays of
    zeros stay. With `scratch` only the architecture and its temperatures are kept, and weights are random.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("noise",)

    folder: str | None = None
    noise: float = 0.0
    scratch: bool = False
    start: Weights[Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.start is None and self.folder is not None:
            object.__setattr__(self, "start", load(Path(self.folder)))
        super().__post_init__()

    def problems(self) -> Iterator[str]:
        if self.start is None:
            yield "folder must name the model folder of a built net"
        elif self.start.architecture.reads != "tokens":
            yield f"only nets that read tokens can be trained further, not one that reads {self._net.reads}"
        if not self.noise >= 0:
            yield f"noise must be at least 0, not {self.noise:g}"
        if self.scratch and self.noise:
            yield "there is no noise on weights that are random from the start: noise must be 0 with scratch"

    @property
    def _net(self) -> Any:
        return self._built.architecture

    @property
    def _built(self) -> Weights[Any]:
        assert self.start is not None  # or it would have been refused
        return self.start

    def architecture(self, sandbox: Sandbox) -> Any:
        net = self._net
        answers = set(net.output.symbols)
        wrong = [f"it does not read {symbol!r}" for symbol in sandbox.symbols if symbol not in net.input_ids]
        wrong += [f"it does not answer {symbol!r}" for symbol in sandbox.answers if symbol not in answers]
        if sandbox.tokens > net.max_length:
            wrong.append(f"it reads at most {net.max_length} tokens, and rows have {sandbox.tokens}")
        if wrong:
            raise InputError(f"{net.name} can't be trained on {sandbox.name}: " + "; ".join(wrong))
        return net

    def first(self, net: Any, key: Array) -> Parameters:
        whole = {name: dense(array).astype(np.float32) for name, array in self._built.arrays.items()}
        built = {name: array for name, array in whole.items() if not name.endswith(FIXED)}
        shapes = {name: array.shape for name, array in built.items() if array.size}
        if self.scratch:
            depth = len(net.units_per_layer) * getattr(net, "loops", 1)
            return built | _start.first(shapes, key, 1.0, depth, net)
        size = {name: self.noise * np.sqrt((built[name] ** 2).mean()) for name in shapes}
        added = normal(key, shapes, size)
        return {name: built[name] + added.get(name, 0.0) for name in built}

    def arrays(self, net: Any, parameters: Mapping[str, Array]) -> dict[str, Array]:
        del net
        kind = next(iter(parameters.values())).dtype
        fixed = {n: jnp.asarray(dense(a), kind) for n, a in self._built.arrays.items() if n.endswith(FIXED)}
        return fixed | dict(parameters)

    def inputs(self, net: Any, sandbox: Sandbox, row: Row) -> Array:
        numbers = jnp.asarray([net.input_ids[symbol] for symbol in sandbox.symbols])
        return jnp.pad(numbers[row.tokens], ((0, 0), (net.pads, 0)))

    def logits(
        self, net: Any, sandbox: Sandbox, arrays: Mapping[str, Array], row: Row, record: Record | None = None
    ) -> Array:
        found = super().logits(net, sandbox, arrays, row, record)
        places = [net.output.symbols.index(answer) for answer in sandbox.answers]
        found = found[..., jnp.asarray(places)].astype(jnp.float32)
        return jnp.log(jnp.maximum(found, LEAST)) if net.output.scores == "linear" else found

    def identity(self) -> dict[str, Any]:
        return {"net": self._built.digest, "noise": float(self.noise), "scratch": self.scratch}


MODEL = BuiltFamily
