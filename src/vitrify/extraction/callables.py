"""A function of tokens as a network: models of other people, of which nothing is known but their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from vitrify.arrays import Array, Arrays, Float, Floats, Int, Ints
from vitrify.errors import InputError
from vitrify.net.architecture import Output, OutputKind, Reads
from vitrify.net.weights import Weights

Function = Callable[[Ints], Floats]
ACTIVATIONS = 1 << 10  # per token, for the size of a batch
COST = 1e5  # multiplications per token, for the number of test words


@dataclass(frozen=True)
class CallableNet:
    """A network that is run by a function: token ids [batch, position], the first being 0 (BOS), to logits.

    The answer after each token must depend on it and those before.
    """

    tag: ClassVar[str] = "callable"
    reads: ClassVar[Reads] = "tokens"
    heads_per_layer: ClassVar[tuple[int, ...]] = ()
    units_per_layer: ClassVar[tuple[int, ...]] = ()
    moments: ClassVar[tuple[str, ...]] = ()
    width: ClassVar[int] = 0
    d_head: ClassVar[int] = 0
    pads: ClassVar[int] = 1
    min_length: ClassVar[int] = 0
    looks_ahead: ClassVar[bool] = False
    soft: ClassVar[bool] = True
    cost: ClassVar[float] = COST

    inputs: tuple[str, ...]
    output: Output
    max_length: int
    function: Function = field(repr=False)
    name: str = "a function"

    @property
    def longest(self) -> int:
        return self.max_length

    @property
    def input_ids(self) -> dict[str, int]:
        return {symbol: place for place, symbol in enumerate(self.inputs) if place}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {}

    def activations(self, positions: int) -> int:
        return positions * ACTIVATIONS

    def forward(self, arrays: Arrays, inputs: Int[Array, "batch pos"], **options: Any) -> Float[Array, "batch pos out"]:
        del arrays, options
        logits = np.asarray(self.function(inputs), dtype=np.float64)
        shape = (*inputs.shape, len(self.output.symbols))
        if logits.shape != shape:
            raise InputError(
                f"{self.name} must return logits [batch, position, answer] of shape {shape}, one for each of the "
                f"answers {', '.join(self.output.symbols[:8])}, and returned {logits.shape}"
            )
        return logits


def callable_net(
    function: Function,
    symbols: Sequence[str],
    answers: Sequence[str],
    *,
    longest: int,
    kind: OutputKind = "class",
    name: str = "a function",
) -> Weights[CallableNet]:
    """Return a function of tokens as a network.

    It reads 0 (BOS) and then the numbers of the `symbols`, from 1, and returns logits of the `answers` after each. Of
    kind "class" the largest one is the answer; of kind "next" those above 0 say what may come next, of "lm" they are
    logits of the next symbol.
    """
    for what, names in (("symbols", symbols), ("answers", answers)):
        if not names or len({*names}) < len(names):
            raise InputError(f"the {what} must be different names, and there must be one: {', '.join(names)}")
    if tuple(answers) in (("yes", "no"), ("True", "False")):  # no comes first, as in networks that say so
        return callable_net(
            lambda tokens: function(tokens)[..., ::-1], symbols, answers[::-1], longest=longest, kind=kind, name=name
        )
    net = CallableNet(("<s>", *symbols), Output(kind, tuple(answers)), longest, function, name)
    return Weights(net, {})
