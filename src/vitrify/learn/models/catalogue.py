"""Families of networks to train: sizes that make an architecture for a sandbox, and its initial weights.

A family trains `parameters`, a dictionary of some of the architecture's arrays; `arrays` adds the others (fixed ones,
tied ones, ones that trained numbers of another shape are laid out into), so that what comes out of training is the same
`Weights` as a built net.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from vitrify import registry
from vitrify.arrays import Array, Float
from vitrify.errors import InputError
from vitrify.learn.runs import Net
from vitrify.net.architecture import Output, Record
from vitrify.net.weights import Weights
from vitrify.parameters import Count, Natural, NonNegative, Parameterized, Positive, Share, arguments
from vitrify.sandboxes.catalogue import LEAST_LOG, Example, Sandbox
from vitrify.spec import find_spec

# A file of a family imports these from here, too.
__all__ = ["LEAST_LOG", "Array", "Count", "Example", "Natural", "NonNegative", "Positive", "Sandbox", "Share"]

PACKAGE = "vitrify.learn.models"
Parameters = dict[str, Array]
BOS = "<s>"


@dataclass(frozen=True)
class Family(Parameterized, ABC):
    """A family of networks; its fields are the sizes."""

    SMALL: ClassVar[Mapping[str, object]] = MappingProxyType({})

    def __init_subclass__(cls, small: Mapping[str, object] | None = None) -> None:
        """Declare a family; `small` are sizes that make it quick to compile and train."""
        cls.SMALL = cls.SMALL if small is None else small

    @property
    def name(self) -> str:
        """The name of the catalogue entry: the file that declares it."""
        return type(self).__module__.rsplit(".", 1)[-1]

    @abstractmethod
    def architecture(self, sandbox: Sandbox) -> Net:
        """The network for a sandbox, without its numbers."""

    @abstractmethod
    def first(self, net: Net, key: Array) -> Parameters:
        """The weights that training starts from, in float32."""

    def arrays(self, net: Net, parameters: Mapping[str, Array]) -> dict[str, Array]:
        """All arrays of the architecture, from those that are trained."""
        del net
        return dict(parameters)

    def inputs(self, net: Net, sandbox: Sandbox, batch: Example) -> Array:
        """Return the inputs of the net for a batch."""
        del sandbox
        return jnp.pad(batch.tokens + 1, ((0, 0), (net.pads, 0)))  # BOS is the first of the net's inputs

    def logits(
        self, net: Net, sandbox: Sandbox, arrays: Mapping[str, Array], batch: Example, record: Record | None = None
    ) -> Float[Array, "batch asked answer"]:
        """The answers [batch, question, answer] to a batch of sequences: to all questions, or to the last so many.

        A net without pads answers nothing before the first token, and one that reads planes the last question only.
        """
        inputs = self.inputs(net, sandbox, batch)
        if net.reads == "image":
            planes = inputs.astype(arrays["unembed.W_U"].dtype)
            return self.answered(sandbox, net.forward(arrays, planes, record=record)[:, None])
        begun = {} if batch.start is None else {"starts": batch.start}
        logits = net.forward(arrays, inputs, record=record, **begun)
        return self.answered(sandbox, logits[:, max(net.pads - 1, 0) :])

    def answered(self, sandbox: Sandbox, logits: Array) -> Array:
        """Return the logits as the family changes them; by default unchanged."""
        del sandbox
        return logits

    def weights(self, net: Net, parameters: Mapping[str, Array], about: Mapping[str, object]) -> Weights[Net]:
        """A trained net as the same value as a built one."""
        arrays = {name: np.asarray(array) for name, array in self.arrays(net, parameters).items()}
        return Weights(net, arrays, about={**about, **({"outside": self.outside} if self.outside else {})})

    @property
    def outside(self) -> str | None:
        """What the family does to inputs or answers outside of the net, in words; None if the net is all there is."""
        return None

    def penalty(self, seen: Mapping[str, Array], batch: Example) -> Array | float:
        """Return the term added to a batch's loss, from the activations that `watched` names; by default 0."""
        del seen, batch
        return 0.0

    def moved(self, parameters: Mapping[str, Array], seen: Mapping[str, Array], batch: Example) -> Parameters:
        """The parameters that follow a rule of their own and no gradient, after a step; none, for most.

        `parameters` and `seen`, the activations that `watched` names, are those of the step on these sequences.
        """
        del parameters, seen, batch
        return {}

    @property
    def watched(self) -> tuple[str, ...]:
        """The activations that `penalty` and `moved` ask for."""
        return ()

    def suits(self, sandbox: Sandbox) -> None:
        """Refuse a sandbox whose sequences lack something that is asked for; its shapes are no matter here."""
        del sandbox


def names() -> list[str]:
    """Every family of the catalogue."""
    return registry.names(PACKAGE)


def make(name: str, sizes: Mapping[str, object] = MappingProxyType({}), /, **more: object) -> Family:
    """A family by name; sizes may be strings, as on a command line."""
    kind = kind_of(name)
    family: Family = kind(**arguments(kind, {**sizes, **more}, f"model {name}", find=find_spec))
    return family


def kind_of(name: str) -> type[Family]:
    """The class of a family, by name; an unknown name is refused with those that there are."""
    if name not in names():
        raise InputError(f"there is no model {name!r}; there are {', '.join(names())}")
    kind: type[Family] = registry.load(PACKAGE, name).MODEL
    return kind


def answers_of(sandbox: Sandbox) -> Output:
    """Return the output of a net that is trained on a sandbox."""
    return Output(sandbox.kind, sandbox.answers)


def inputs_of(sandbox: Sandbox) -> tuple[str, ...]:
    """Return the inputs of a net that is trained on a sandbox: BOS and the sandbox's symbols."""
    if sandbox.reads != "tokens":
        raise InputError(
            f"this model reads tokens, and a sequence of {sandbox.name} is of another kind: {sandbox.reads}"
        )
    return (BOS, *sandbox.symbols)


def normal(key: Array, shapes: Mapping[str, tuple[int, ...]], deviation: Mapping[str, Array | float]) -> Parameters:
    """Normal numbers of a given standard deviation for each array; one draw for all, as each costs compile time."""
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    parts = jnp.split(jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1])
    return {
        name: deviation[name] * part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
