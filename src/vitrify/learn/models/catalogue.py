"""What every family of networks is: sizes that make an architecture for a sandbox, and its first weights.

A family trains `parameters`, a dictionary of some of the architecture's arrays; `arrays` adds the others (fixed ones,
tied ones, ones that trained numbers of another shape are laid out into), so that what comes out of training is the same
`Weights` as a built net.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from vitrify import registry
from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.net.architecture import Output, Record
from vitrify.net.weights import Weights
from vitrify.sandboxes._parameters import Choices, build_value
from vitrify.sandboxes.catalogue import Row, Sandbox

PACKAGE = "vitrify.learn.models"
Parameters = dict[str, Array]
BOS = "<s>"


@dataclass(frozen=True)
class Family(Choices, ABC):
    """A family of networks; its fields are the sizes."""

    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({})  # sizes that make it quick to compile and train

    @abstractmethod
    def architecture(self, sandbox: Sandbox) -> Any:
        """The network for a sandbox, without its numbers."""

    @abstractmethod
    def first(self, net: Any, key: Array) -> Parameters:
        """The weights that training starts from, in float32."""

    def arrays(self, net: Any, parameters: Mapping[str, Array]) -> dict[str, Array]:
        """All arrays of the architecture, from those that are trained."""
        del net
        return dict(parameters)

    def inputs(self, net: Any, sandbox: Sandbox, row: Row) -> Array:
        """What the net reads of a batch of rows."""
        del sandbox
        return jnp.pad(row.tokens + 1, ((0, 0), (net.pads, 0)))  # BOS is the first of the net's inputs

    def logits(
        self, net: Any, sandbox: Sandbox, arrays: Mapping[str, Array], row: Row, record: Record | None = None
    ) -> Array:
        """The answers [batch, question, answer] to a batch of rows: to all questions, or to the last so many.

        A net without pads answers nothing before the first token.
        """
        begun = {} if row.start is None else {"starts": row.start}
        found = net.forward(arrays, self.inputs(net, sandbox, row), record=record, **begun)
        return found[:, max(net.pads - 1, 0) :]

    def weights(self, net: Any, parameters: Mapping[str, Array], about: Mapping[str, Any]) -> Weights[Any]:
        """A trained net as the same value as a built one."""
        arrays = {name: np.asarray(array) for name, array in self.arrays(net, parameters).items()}
        return Weights(net, arrays, about=about)

    def penalty(self, seen: Mapping[str, Array], row: Row) -> Array | float:
        """What is added to the loss of a batch, from the activations that `watched` names; nothing, for most."""
        del seen, row
        return 0.0

    def moved(self, parameters: Mapping[str, Array], seen: Mapping[str, Array], row: Row) -> Parameters:
        """The parameters that follow a rule of their own and no gradient, after a step; none, for most.

        `parameters` and `seen`, the activations that `watched` names, are those of the step on these rows.
        """
        del parameters, seen, row
        return {}

    @property
    def watched(self) -> tuple[str, ...]:
        """The activations that `penalty` and `moved` ask for."""
        return ()

    def suits(self, sandbox: Sandbox) -> None:
        """Refuse a sandbox whose rows lack something that is asked for; its shapes are no matter here."""
        del sandbox


def names() -> list[str]:
    """Every family of the catalogue."""
    return registry.names(PACKAGE)


def make(name: str, sizes: Mapping[str, Any] = MappingProxyType({}), /, **more: Any) -> Family:
    """A family by name; sizes may be strings, as on a command line."""
    family: Family = build_value(kind_of(name), {**sizes, **more}, f"model {name}")
    return family


def kind_of(name: str) -> type[Any]:
    """The class of a family, by name; an unknown name is refused with those that there are."""
    if name not in names():
        raise InputError(f"there is no model {name!r}; there are {', '.join(names())}")
    kind: type[Any] = registry.load(PACKAGE, name).MODEL
    return kind


def answers_of(sandbox: Sandbox) -> Output:
    """How a net that is trained on a sandbox answers."""
    return Output(sandbox.kind, sandbox.answers)


def inputs_of(sandbox: Sandbox) -> tuple[str, ...]:
    """What a net that is trained on a sandbox reads: BOS, and the sandbox's symbols."""
    if sandbox.reads != "tokens":
        raise InputError(f"this model reads tokens, and a row of {sandbox.name} is of another kind: {sandbox.reads}")
    return (BOS, *sandbox.symbols)


def too_small(family: Family, **least: int) -> Iterator[str]:
    """The sizes that are below what they must be at least."""
    for name, number in least.items():
        if getattr(family, name) < number:
            yield f"{name} must be at least {number}, not {getattr(family, name)}"


def normal(key: Array, shapes: Mapping[str, tuple[int, ...]], deviation: Mapping[str, Any]) -> Parameters:
    """Normal numbers of a given standard deviation for each array; one draw for all, as each costs compile time."""
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    parts = jnp.split(jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1])
    return {
        name: deviation[name] * part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
