r"""What every sandbox is: rows drawn on the device from counter-based keys, and the best possible answers to them.

A sandbox is a frozen value whose methods speak of one row; everything else is `jax.vmap`. A row has $n$ tokens and
$n+1$ questions: after $t = 0, \dots, n$ tokens the right answer is `targets[t]`, and counts `weight[t]`. A sandbox that
predicts the next symbol of $x_1 \dots x_T$ has the tokens $x_1 \dots x_{T-1}$ and the targets $x_1 \dots x_T$.

Randomness has one source. The key of a row is made of the sandbox's name, a data seed, the split and the number of the
row, so a row is the same whatever the batch size, the device or the number of workers, and rows of different splits
come from streams that never meet.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vitrify import registry
from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.sandboxes._parameters import Choices, build_value

PACKAGE = "vitrify.sandboxes"
Split = Literal["train", "test", "probe"]
SPLITS: dict[Split, int] = {"train": 0, "test": 1, "probe": 2}
MAX_ROWS = 1 << 32  # the number of a row is one word of its key
LEAST_LOG = -1e30  # stands for the logarithm of zero where an infinity would turn a gradient or a product into NaN


class Row(NamedTuple):
    """One row, or a batch of them with one more axis in front of every array."""

    tokens: Array  # [n] int32, numbers of `Sandbox.symbols`; or the n numbers of a vector or an image
    targets: Array  # [n + 1] int32, numbers of `Sandbox.answers`
    weight: Array  # [n + 1] float32: how much each answer counts
    latent: dict[str, Array]  # what the reader is not told: states, kernels, topics …
    soft: Array | None = None  # [n + 1, answer]: a distribution as target, where the target is one
    start: Array | None = None  # the place in a table of places at which the row begins, where that is not the first


Predictor = Callable[[Row], Array]  # the log-probabilities [n + 1, answer] for one row


@dataclass(frozen=True)
class Sandbox(Choices, ABC):
    """A source of rows and all that is known about it; the fields of a subclass are its parameters."""

    reads: ClassVar[Literal["tokens", "vector", "image"]] = "tokens"
    kind: ClassVar[Literal["lm", "class"]] = "lm"  # answers are next symbols, or anything else

    @property
    @abstractmethod
    def symbols(self) -> tuple[str, ...]:
        """What tokens stand for."""

    @property
    def answers(self) -> tuple[str, ...]:
        """What targets stand for."""
        return self.symbols

    @property
    def blanks(self) -> tuple[str, ...]:
        """Symbols that only fill rows up: nothing is asked after one."""
        return ()

    @property
    @abstractmethod
    def tokens(self) -> int:
        """How many tokens a row has (of a vector or an image: how many numbers)."""

    @property
    def planes(self) -> tuple[int, int, int] | None:
        """Planes, rows and columns of an image, whose numbers stand in this order."""
        return None

    @property
    def bidirectional(self) -> bool:
        """Whether an answer may depend on tokens after its position, as where masked symbols are to be guessed."""
        return False

    @property
    def rounded(self) -> bool:
        """Whether symbols are drawn by rounded real numbers (logarithms, quotients) and not exactly from the key.

        The last bit of those may depend on how a program was compiled, and one symbol in millions with it.
        """
        return False

    def of(self, split: Split) -> Sandbox:  # noqa: ARG002
        """The sandbox that the rows of a split are drawn from, where some are kept from training; else this one."""
        return self

    @abstractmethod
    def draw(self, key: Array) -> Row:
        """One row."""

    @abstractmethod
    def optimal(self, row: Row) -> Array:
        """The Bayes-optimal predictor: log-probabilities [n + 1, answer], given what the reader is told."""

    @abstractmethod
    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        """Tokens [count, n] and targets [count, n + 1], drawn by plain NumPy: what `draw` is tested against."""

    def predictors(self) -> Mapping[str, Predictor]:
        """Other predictors that learners pass by on their way, by name; `uniform` is always there."""
        return {"uniform": self.uniform}

    def uniform(self, row: Row) -> Array:
        """Every answer alike."""
        return jnp.full((*row.targets.shape, len(self.answers)), -np.log(len(self.answers)))

    def possible(self) -> Array | None:
        """Which answers are ever right [answer], where some are not; else None."""
        return None

    def floor(self) -> Array | None:
        """The optimal loss at each question [n + 1] in closed form; None where only the oracle's average is known."""
        return None

    def rate(self) -> float | None:
        """The entropy rate in nats per symbol, where the source is stationary and it is known."""
        return None

    def at(self, values: Mapping[str, Any]) -> Any:
        """The same sandbox with some of its traced parameters replaced."""
        return replace(self, **{name: values[name] for name in self.TRACED if name in values})


@dataclass(frozen=True)
class Entry:
    """One catalogue entry: the sandbox's class, and parameters that make it small enough to be enumerated."""

    make: type[Any]
    small: Mapping[str, Any] = field(default_factory=dict)


def rows(sandbox: Sandbox, seed: Array | int, split: Split, start: Array | int, count: int) -> Row:
    """A batch: the rows `start`, …, `start + count - 1` of a split."""
    numbers = jnp.uint32(start) + jnp.arange(count, dtype=jnp.uint32)
    return numbered(sandbox, seed, split, numbers)


def numbered(sandbox: Sandbox, seed: Array | int, split: Split, numbers: Array) -> Row:
    """A batch of rows by their numbers, in any order."""
    source = jax.random.key(zlib.crc32(sandbox.name.encode()), impl="threefry2x32")
    stream = jax.random.fold_in(jax.random.fold_in(source, seed), SPLITS[split])
    return jax.vmap(lambda number: sandbox.of(split).draw(jax.random.fold_in(stream, number)))(numbers)


def names() -> list[str]:
    """Every sandbox of the catalogue."""
    return registry.names(PACKAGE)


def entry(name: str) -> Entry:
    """One entry, by name; an unknown name is refused with those that are near."""
    if name not in names():
        from difflib import get_close_matches

        near = get_close_matches(name, names(), n=3)
        hint = f": did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(names())}"
        raise InputError(f"there is no sandbox {name!r}{hint}")
    found: Entry = registry.load(PACKAGE, name).SANDBOX
    return found


def make(name: str, parameters: Mapping[str, Any] = MappingProxyType({}), /, **more: Any) -> Sandbox:
    """A sandbox by name; parameters may be strings, as on a command line. All wrong ones are named at once.

    >>> make("markov", p=0.2, q=0.3) == make("markov", {"p": "0.2", "q": "0.3"})
    True
    """
    sandbox: Sandbox = build_value(entry(name).make, {**parameters, **more}, f"sandbox {name}")
    return sandbox


def in_words(name: str, words: Iterable[str]) -> Sandbox:
    """A sandbox whose parameters are given as `key=value`."""
    odd = [word for word in words if "=" not in word]
    if odd:
        raise InputError(f"a parameter is given as key=value, not {odd[0]!r}")
    return make(name, dict(word.split("=", 1) for word in words))
