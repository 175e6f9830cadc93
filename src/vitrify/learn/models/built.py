r"""Built nets as the start of training: as they are, with noise on every array, or their architecture from scratch.

Does gradient descent keep, find or leave a construction? Tokens and answers of the sandbox are matched with those of
the net by name. Answers that the sandbox does not have are left out, and the others share their probability. A net need
not read what the sandbox calls blank.

Constructions often choose: the answer is the largest score, and so is the expert who works. A choice has no slope.
`smooth` turns both into softmaxes of $c$ times the score: right answers that lead by $g$ are then given all but
about $e^{-cg}$ of the probability, and all arrays have a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Array, Example, Family, NonNegative, Parameters, Sandbox, normal
from vitrify.learn.runs import Net
from vitrify.net.architecture import Record
from vitrify.net.conv import Convolutional
from vitrify.net.experts import Gate
from vitrify.net.folder import load
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights

FIXED = "attn.beta"  # an inverse temperature is a choice, no parameter
LEAST = 1e-30  # what a linear score counts that has no logarithm


@dataclass(frozen=True)
class BuiltFamily(Family):
    """The net of a model `folder`, or the one given as `start`.

    `noise` is the standard deviation of what is added to an array, as a multiple of its root mean square; arrays of
    zeros stay. With `scratch` only the architecture and its inverse temperatures are kept, and weights are random.
    """

    TRACED = ("noise", "scratch")

    folder: str | None = None
    noise: NonNegative = 0.0
    scratch: bool = False
    start: Weights[Net] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.start is None and self.folder is not None:
            object.__setattr__(self, "start", load(Path(self.folder)))
        super().__post_init__()

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.start is None:
            yield "folder", "must name the model folder of a built net"
        elif not self._drawn and self._net.reads != "tokens":
            message = "must be a net that reads tokens to be trained further, not one that reads"
            yield "folder", f"{message} {self._net.reads}"
        if self.scratch and self.noise:
            yield "noise", "must be 0 with scratch: there is none on weights that are random from the start"

    @property
    def _net(self) -> Net:
        return self._built.architecture

    @property
    def _built(self) -> Weights[Net]:
        assert self.start is not None  # or it would have been refused
        return self.start

    @property
    def _drawn(self) -> bool:
        """True for a convolutional net that reads tokens as planes."""
        return isinstance(self._net, Convolutional) and self._net.pixels == "symbols"

    def architecture(self, sandbox: Sandbox) -> Net:
        net = self._net
        read, answers = set(net.symbols if self._drawn else net.input_ids), set(net.output.symbols)
        longest = net.columns if self._drawn else net.max_length
        needed = [symbol for symbol in sandbox.symbols if symbol not in sandbox.blanks]
        wrong = [f"it does not read {symbol!r}" for symbol in needed if symbol not in read]
        wrong += [f"it does not answer {symbol!r}" for symbol in sandbox.answers if symbol not in answers]
        if sandbox.tokens > longest:
            wrong.append(f"it reads at most {longest} tokens, and sequences have {sandbox.tokens}")
        if sandbox.reads != "tokens":
            wrong.append(f"sequences are of another kind: {sandbox.reads}")
        if wrong:
            raise InputError(f"{net.name} can't be trained on {sandbox.name}: " + "; ".join(wrong))
        return net

    def first(self, net: Net, key: Array) -> Parameters:
        arrays = {name: dense(array).astype(np.float32) for name, array in self._built.arrays.items()}
        built = {name: array for name, array in arrays.items() if not name.endswith(FIXED)}
        shapes = {name: array.shape for name, array in built.items() if array.size}
        depth = 1 if self._drawn else len(net.units_per_layer) * getattr(net, "loops", 1)
        fresh = _start.first(shapes, key, 1.0, depth, net)
        size = {name: self.noise * np.sqrt((built[name] ** 2).mean()) for name in shapes}
        added = normal(key, shapes, size)
        scratch = jnp.asarray(self.scratch, bool)
        return built | {name: jnp.where(scratch, fresh[name], built[name] + added[name]) for name in shapes}

    def arrays(self, net: Net, parameters: Mapping[str, Array]) -> dict[str, Array]:
        del net
        kind = next(iter(parameters.values())).dtype
        fixed = {n: jnp.asarray(dense(a), kind) for n, a in self._built.arrays.items() if n.endswith(FIXED)}
        return fixed | dict(parameters)

    def inputs(self, net: Net, sandbox: Sandbox, batch: Example) -> Array:
        if self._drawn:
            places = jnp.asarray([[symbol == plane for plane in net.symbols] for symbol in sandbox.symbols])
            planes = jnp.swapaxes(places[batch.tokens].astype(jnp.float32), 1, 2)[:, :, None]
            return jnp.pad(planes, ((0, 0), (0, 0), (0, 0), (0, net.columns - sandbox.tokens)))
        numbers = jnp.asarray([net.input_ids.get(symbol, 0) for symbol in sandbox.symbols])
        return jnp.pad(numbers[batch.tokens], ((0, 0), (net.pads, 0)))

    def logits(
        self, net: Net, sandbox: Sandbox, arrays: Mapping[str, Array], batch: Example, record: Record | None = None
    ) -> Array:
        places = [net.output.symbols.index(answer) for answer in sandbox.answers]
        logits = super().logits(net, sandbox, arrays, batch, record)[..., jnp.asarray(places)].astype(jnp.float32)
        return jnp.log(jnp.maximum(logits, LEAST)) if net.output.scores == "linear" else logits

    def identity(self) -> JsonObject:
        return {"net": self._built.digest, "noise": float(self.noise), "scratch": bool(self.scratch)}


def smooth(weights: Weights[Net], sharpness: float) -> Weights[Net]:
    """The same net with probabilities for choices: logits, and scores of experts, are so many times larger.

    The best expert then writes times its share of a softmax over all of them.
    """
    net, arrays = weights.architecture, dict(weights.arrays)
    scaled = ["unembed.W_U", "unembed.b_U"]
    for index, block in enumerate(getattr(net, "blocks", ())):
        if block.experts and block.gate is None:
            router = f"blocks.{index}.moe.router"
            blocks = (*net.blocks[:index], replace(block, gate=Gate()), *net.blocks[index + 1 :])
            net = replace(net, blocks=blocks)
            arrays[f"{router}.b_choice"] = np.zeros(len(block.experts))
            scaled += [f"{router}.W_out", f"{router}.b_out"]
    return Weights(net, arrays | {name: sharpness * arrays[name] for name in scaled}, weights.labels, weights.about)


MODEL = BuiltFamily
