r"""Sandboxes: synthetic data drawn on the device from counter-based keys, with its exact Bayes-optimal predictor.

A sandbox is a frozen value whose methods describe one example; batches are `jax.vmap`. An example has $n$ tokens and
$n+1$ targets: after $t = 0, \dots, n$ tokens the target is `targets[t]`, with weight `weight[t]` in the loss. A sandbox
that predicts the next symbol of $x_1 \dots x_T$ has the tokens $x_1 \dots x_{T-1}$ and the targets $x_1 \dots x_T$.

The key of an example is made of the sandbox's name, a data seed, the split and the example's index. So an example is
the same whatever the batch size, the device or the number of workers. Splits have independent random streams. They are
not disjoint: where the domain is small, test examples repeat training examples by chance. `modular` and `knowledge`
with `fraction` below 1, and `hierarchy` with `held_out`, override `of`: no example of another split is a training
example.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from vitrify import parameters as declared
from vitrify import registry
from vitrify.arrays import Array, Bool, Float, Int, Num
from vitrify.errors import InputError, SpecError
from vitrify.parameters import Count, Natural, NonNegative, Parameterized, Positive, Probability, Share, Within, later
from vitrify.spec import find_spec
from vitrify.spec.tasks.catalogue import Task

# A file of a sandbox imports these from here, too.
__all__ = ["Array", "Count", "Float", "Int", "Natural", "NonNegative", "Positive", "Probability", "Share", "Within"]
__all__ += ["later"]

PACKAGE = "vitrify.sandboxes"
Split = Literal["train", "test", "probe", "validation"]
SPLITS: dict[Split, int] = {"train": 0, "test": 1, "probe": 2, "validation": 3}
MAX_SYMBOLS = 1 << 16
MAX_EXAMPLES = 1 << 32  # the index of an example is one 32-bit word of its key
LEAST_LOG = -1e30  # stands for the logarithm of zero where an infinity would turn a gradient or a product into NaN


class Example(NamedTuple):
    """One example, or a batch with one more axis in front of every array."""

    tokens: Num[Array, "*batch token"]  # indices into `Sandbox.symbols`; or the values of a vector or an image
    targets: Int[Array, "*batch question"]  # indices into `Sandbox.answers`, one more than tokens
    weight: Num[Array, "*batch question"]  # of each target in the loss
    latent: dict[str, Array]  # hidden variables: states, kernels, topics …
    soft: Float[Array, "*batch question answer"] | None = None  # a distribution as target, where the target is one
    start: Int[Array, "*batch"] | None = None  # first position in a position table, by default 0


LogProbs: TypeAlias = Float[Array, "*batch question answer"]
Predictor = Callable[[Example], LogProbs]


@dataclass(frozen=True)
class Sandbox(Parameterized, ABC):
    """A source of examples with exact answers about it; the fields of a subclass are its parameters."""

    reads: ClassVar[Literal["tokens", "vector", "image"]] = "tokens"
    kind: ClassVar[Literal["lm", "class"]] = "lm"  # answers are next symbols, or anything else
    SIZE: ClassVar[str] = "states"
    PREDICTORS: ClassVar[tuple[str, ...]] = ()  # names of methods, with spaces for underscores

    if TYPE_CHECKING:  # a field of most sandboxes

        @property
        def length(self) -> int: ...

    @property
    def name(self) -> str:
        """The name of the catalogue entry: the file that declares it."""
        return type(self).__module__.rsplit(".", 1)[-1]

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the tokens; by default 0, 1, …, as many as the field that `SIZE` names."""
        return tuple(map(str, range(getattr(self, self.SIZE))))

    @property
    def answers(self) -> tuple[str, ...]:
        """The names of the targets."""
        return self.symbols

    @property
    def blanks(self) -> tuple[str, ...]:
        """Padding symbols: targets after them have weight 0."""
        return ()

    @property
    def tokens(self) -> int:
        """The number of tokens of an example (of a vector or an image: of its values); by default its `length`."""
        return self.length

    @property
    def planes(self) -> tuple[int, int, int] | None:
        """Planes, rows and columns of an image, whose values stand in this order; None if it is no image."""
        return None

    @property
    def bidirectional(self) -> bool:
        """True if a target may depend on later tokens, as in masked prediction."""
        return False

    @property
    def rounded(self) -> bool:
        """True if symbols are drawn by rounded real numbers (logarithms, quotients) and not exactly from the key.

        The last bit of those may depend on how a program was compiled, and one symbol in millions with it.
        """
        return False

    def of(self, split: Split) -> Sandbox:  # noqa: ARG002
        """Return the sandbox that a split is drawn from: another one where some examples are held out."""
        return self

    @abstractmethod
    def draw(self, key: Array) -> Example:
        """Return one example."""

    @abstractmethod
    def optimal(self, example: Example) -> LogProbs:
        """Return the Bayes-optimal log-probabilities [n + 1, answer] given the tokens before each target."""

    def predictors(self) -> Mapping[str, Predictor]:
        """Return simpler predictors that learners may imitate on their way, by name; `uniform` is always there."""
        return {name: getattr(self, name.replace(" ", "_")) for name in ("uniform", *self.PREDICTORS)}

    def uniform(self, example: Example) -> LogProbs:
        """Return the uniform distribution over the answers."""
        return jnp.full((*example.targets.shape, len(self.answers)), -np.log(len(self.answers)))

    def possible(self) -> Bool[Array, " answer"] | None:
        """Return which answers occur [answer]; None if all do."""
        return None

    def floor(self) -> Float[Array, " question"] | None:
        """Return the optimal loss at each target [n + 1] in closed form; None where it has to be sampled."""
        return None

    def rate(self) -> float | None:
        """Return the entropy rate in nats per symbol, where the source is stationary and it is known."""
        return None

    def at(self, values: Mapping[str, Array]) -> Self:
        """Return the sandbox with some of its traced parameters replaced."""
        return replace(self, **{name: values[name] for name in self.TRACED if name in values})


class NextSymbol(Sandbox):
    """A sandbox whose targets are all symbols of a sequence of `length`, each given those before it."""

    @property
    def tokens(self) -> int:
        return self.length - 1


class Exact(Sandbox):
    """A sandbox in which every target with a weight is a function of the tokens before it."""

    kind: ClassVar[Literal["lm", "class"]] = "class"

    @abstractmethod
    def right(self, tokens: Array) -> Array:
        """Return the targets [n + 1] computed from the tokens; arbitrary where the weight is 0."""

    def optimal(self, example: Example) -> LogProbs:
        """Return probability 1 for the right answer where the weight is positive, else the uniform distribution."""
        sure = jnp.where(self.right(example.tokens)[:, None] == jnp.arange(len(self.answers)), 0.0, LEAST_LOG)
        return jnp.where((example.weight > 0)[:, None], sure, self.uniform(example))

    def floor(self) -> Array:
        return jnp.zeros(self.tokens + 1)


class Defined(Sandbox):
    """A sandbox whose symbols, answers and length are those of a task of `vitrify.spec.tasks`."""

    @property
    @abstractmethod
    def definition(self) -> Task:
        """The task, whose `answers` are the right ones."""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        """Yield what the task refuses."""
        try:
            _ = self.definition
        except SpecError as error:
            yield from (("", str(problem)) for problem in error.problems)

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.definition.alphabet

    @property
    def answers(self) -> tuple[str, ...]:
        return self.definition.outputs

    @property
    def tokens(self) -> int:
        return self.definition.length


@dataclass(frozen=True)
class Entry:
    """A catalogue entry: the sandbox's class, and parameters that make it small enough to enumerate."""

    make: type[Sandbox]
    small: Mapping[str, object] = field(default_factory=dict)


def examples(sandbox: Sandbox, seed: Array | int, split: Split, start: Array | int, count: int) -> Example:
    """Return the examples `start`, …, `start + count - 1` of a split, as one batch."""
    numbers = jnp.uint32(start) + jnp.arange(count, dtype=jnp.uint32)
    return examples_at(sandbox, seed, split, numbers)


def examples_at(sandbox: Sandbox, seed: Array | int, split: Split, numbers: Num[Array, " batch"]) -> Example:
    """Return the examples of a split with these indices, as one batch."""
    source = jax.random.key(zlib.crc32(sandbox.name.encode()), impl="threefry2x32")
    stream = jax.random.fold_in(jax.random.fold_in(source, seed), SPLITS[split])
    return jax.vmap(lambda number: sandbox.of(split).draw(jax.random.fold_in(stream, number)))(numbers)


def names() -> list[str]:
    """Return the names of all sandboxes."""
    return registry.names(PACKAGE)


def entry(name: str) -> Entry:
    """Return an entry by name; an unknown name is refused with similar ones."""
    if name not in names():
        from difflib import get_close_matches

        near = get_close_matches(name, names(), n=3)
        hint = f": did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(names())}"
        raise InputError(f"there is no sandbox {name!r}{hint}")
    listed: Entry = registry.load(PACKAGE, name).SANDBOX
    return listed


def make(name: str, parameters: Mapping[str, object] = MappingProxyType({}), /, **more: object) -> Sandbox:
    """Return a sandbox by name; parameters may be strings, as on a command line. All wrong ones are named at once.

    >>> make("markov", p=0.2, q=0.3) == make("markov", {"p": "0.2", "q": "0.3"})
    True
    """
    kind = entry(name).make
    sandbox: Sandbox = kind(**declared.arguments(kind, {**parameters, **more}, f"sandbox {name}", find=find_spec))
    return sandbox


def in_words(name: str, words: Iterable[str]) -> Sandbox:
    """Return a sandbox whose parameters are given as `key=value`."""
    return make(name, declared.key_values(words))
