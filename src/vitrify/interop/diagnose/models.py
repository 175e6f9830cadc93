"""The protocol: what a model must do to be diagnosed, and how what a factory returns becomes that.

A factory `make(vocabulary, length, seed)` returns any of

- an object with two methods, `logits(tokens)` and `step(tokens, targets, weights)`, which trains itself;
- a pair `(parameters, apply)` of JAX, with `apply(parameters, tokens)` the logits;
- a `torch.nn.Module`, whose call gives the logits;
- an object with `logits(tokens)` alone, or a function of tokens: it is asked, and not trained.

Tokens, targets and weights are NumPy arrays [batch, length]; logits are [batch, length, vocabulary]. A factory is given
as `module:factory`, `file.py:factory` or a Python value; a Hugging Face folder is one, too.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat, TypeAlias, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vitrify.arrays import Array, Floats, Ints
from vitrify.errors import InputError, VitrifyError
from vitrify.interop.pretrained import UNBOUNDED, config_of, pretrained
from vitrify.learn.measure import log_probabilities
from vitrify.learn.recipe import Recipe
from vitrify.optional import need

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PretrainedConfig

T = TypeVar("T")
PyTree: TypeAlias = Any  # parameters or a state of JAX: nested dicts, tuples and lists of arrays
DEFAULT_FACTORY = "make"
SIZES = ("vocabulary", "length", "seed")  # what a factory takes
ACCELERATED = re.compile(r"\b(cuda|nvidia|gpu|triton|hip|rocm|mps|xpu|tpu)\b|cuda", re.IGNORECASE)
Factory: TypeAlias = Callable[[int, int, int], object]  # of a vocabulary, a length and a seed
USUAL = Recipe()  # the same clipping, warm-up and moments as for JAX


@runtime_checkable
class Answers(Protocol):
    """A model that is asked."""

    def logits(self, tokens: Ints, /) -> Array:
        """The logits [batch, length, vocabulary] of the answer after each token."""


@runtime_checkable
class Learns(Answers, Protocol):
    """A model that is trained too."""

    def step(self, tokens: Ints, targets: Ints, weights: Floats) -> SupportsFloat:
        """Make one step of training on a batch, and return its loss."""


@dataclass(frozen=True)
class Plain:
    """A function of tokens, as a model that is asked."""

    logits: Callable[[Ints], Array]


class JaxModel:
    """A pair `(parameters, apply)`, trained by Adam; what is compiled for a function serves all seeds that share it."""

    def __init__(self, parameters: PyTree, apply: Callable[[PyTree, Ints], Array], rate: float) -> None:
        self.parameters, self.rate = parameters, np.float32(rate)
        self.forward, first, self.trained = _compiled(apply)
        self.state = first(parameters, self.rate)

    def logits(self, tokens: Ints) -> Array:
        """Return the logits of `apply`."""
        return self.forward(self.parameters, tokens)

    def step(self, tokens: Ints, targets: Ints, weights: Floats) -> float:
        """One step of Adam."""
        self.parameters, self.state, loss = self.trained(
            self.parameters, self.state, tokens, targets, weights, self.rate
        )
        return float(loss)


@lru_cache(maxsize=4)
def _compiled(apply: Callable[[PyTree, Ints], Array]) -> tuple[Callable[..., PyTree], ...]:
    """The forward pass, the first state of the optimizer, and a step, as compiled functions."""

    def first(parameters: PyTree, rate: Array) -> PyTree:
        return Recipe(lr=rate).transformation().init(parameters)

    def step(
        parameters: PyTree, state: PyTree, tokens: Array, targets: Array, weights: Array, rate: Array
    ) -> tuple[PyTree, PyTree, Array]:
        def loss(parameters: PyTree) -> Array:
            logp = log_probabilities(apply(parameters, tokens))
            each = -jnp.take_along_axis(logp, targets[..., None], axis=-1)[..., 0]
            return (each * weights).sum() / weights.sum()

        value, gradient = jax.value_and_grad(loss)(parameters)
        change, state = Recipe(lr=rate).transformation().update(gradient, state, parameters)
        return optax.apply_updates(parameters, change), state, value

    return jax.jit(apply), jax.jit(first), jax.jit(step)


def adapted(made: object, rate: float, device: str = "cpu") -> Answers:
    """Wrap what a factory returned as a model that can be evaluated or trained."""
    if isinstance(made, Answers):
        return made
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(made, torch.nn.Module):
        return TorchModel(made, rate, device)
    if isinstance(made, tuple) and len(made) == 2 and callable(made[1]):
        return JaxModel(*made, rate)
    if callable(made) and not isinstance(made, type):
        return Plain(made)
    kind = "nothing" if made is None else f"a {type(made).__name__}"
    raise InputError(
        f"a factory must return a torch module, a pair (parameters, apply), or an object with logits(tokens) and "
        f"step(tokens, targets, weights), not {kind}: see docs/how-to/benchmark-your-model.md"
    )


def attempt(what: str, act: Callable[[], T]) -> T:
    """Do something with the user's code; an error in it becomes one sentence."""
    try:
        return act()
    except VitrifyError:
        raise
    except Exception as error:  # whatever the user's code raises
        lines = str(error).strip().splitlines() or [""]
        message = f"{type(error).__name__}: {lines[0]}".rstrip(": ")
        if ACCELERATED.search(str(error)):
            raise InputError(
                f"{what} needs a device that is not here ({message}): it must run on the CPU, or say --device where "
                f"there is another"
            ) from error
        raise InputError(f"{what} raised {message}") from error


def numbers(output: Array) -> Array:
    """Logits as a NumPy array of float32, from any library."""
    output = getattr(output, "logits", output)
    if hasattr(output, "detach"):
        output = output.detach().cpu()
        output = output.float() if output.is_floating_point() else output
    array = np.asarray(output)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" or array.dtype.kind == "f" else array


@dataclass(frozen=True)
class Target:
    """A source of models: `make(vocabulary, length, seed)`.

    `fixed`: it has its weights already, and there is only one;
    `pretrained`: it was never trained on our tasks, so that only those can be asked whose answers follow from the text;
    `longest`: the longest row that it reads.
    """

    name: str
    make: Callable[..., object]
    kind: str | None = None
    fixed: bool = False
    pretrained: bool = False
    longest: int = UNBOUNDED
    device: str = "cpu"

    def model(self, vocabulary: int, length: int, seed: int, rate: float) -> Answers:
        """A model with its first weights."""
        sizes = {"vocabulary": vocabulary, "length": length, "seed": seed}
        what = f"{self.name}({', '.join(f'{key}={value}' for key, value in sizes.items())})"
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.manual_seed(seed)  # for factories that take their first weights from torch's own generator
        made = attempt(what, lambda: self.make(**sizes))
        return attempt(f"what {self.name} made", lambda: adapted(made, rate, self.device))


def target(given: object, kind: str | None = None, device: str = "cpu") -> Target:
    """Return a source of models for a target given by the user."""
    if not isinstance(given, str | Path):
        return _of_value(given, getattr(given, "__name__", type(given).__name__), kind, device)
    text = str(given)
    if Path(text).is_dir():
        return folder(text, kind, device)
    module, colon, attribute = text.rpartition(":")
    if not colon:
        module, attribute = text, DEFAULT_FACTORY
    loaded = _module(module)
    if not hasattr(loaded, attribute):
        raise InputError(f"{module} must have a factory {attribute}(vocabulary, length, seed), and has none")
    return _of_value(getattr(loaded, attribute), attribute, kind, device)


def _module(name: str) -> ModuleType:
    path = Path(name)
    if path.suffix == ".py":
        if not path.is_file():
            raise InputError(f"there is no file {name}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise InputError(f"{name} must be a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)  # dataclasses and pickles look their module up
        attempt(f"importing {name}", lambda: spec.loader.exec_module(module))  # type: ignore[union-attr]
        return module
    if not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"a target must be module:factory, file.py:factory or a Hugging Face folder, not {name!r}")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return attempt(f"importing {name}", lambda: importlib.import_module(name))


def _of_value(value: object, name: str, kind: str | None, device: str) -> Target:
    """A factory, if it takes a vocabulary, a length and a seed; else something that is asked."""
    kind = kind or getattr(value, "kind", None)
    kind = kind if isinstance(kind, str) else None
    if isinstance(value, Answers) and not isinstance(value, type):
        return Target(name, lambda **_: Plain(value.logits), kind, fixed=True, device=device)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        return Target(name, lambda **_: Plain(TorchModel(value, 1e-3, device).logits), kind, fixed=True, device=device)
    if not callable(value):
        raise InputError(f"{name} must be a factory or a function of tokens, and is a {type(value).__name__}")
    try:
        taken = inspect.signature(value).parameters
    except (TypeError, ValueError):
        taken = inspect.signature(lambda tokens: tokens).parameters
    needed = [one for one in taken.values() if one.default is one.empty and one.kind < one.VAR_POSITIONAL]
    if set(SIZES) <= set(taken) or any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        return Target(name, value, kind, device=device)
    if len(needed) == len(SIZES):
        return Target(name, lambda vocabulary, length, seed: value(vocabulary, length, seed), kind, device=device)
    if len(needed) == 1:
        return Target(name, lambda **_: Plain(value), kind, fixed=True, device=device)
    raise InputError(
        f"{name} must be a factory {name}(vocabulary, length, seed) or a function {name}(tokens), and takes "
        f"{', '.join(taken) or 'nothing'}"
    )


class TorchModel:
    """A module whose call gives logits, trained by Adam."""

    def __init__(self, module: nn.Module, rate: float, device: str = "cpu") -> None:
        torch = need("torch", "torch")
        self.torch, self.device = torch, device
        self.module = module.to(device)
        self.trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if not self.trained:
            raise InputError("the module has no parameters to train: none of them requires a gradient")
        self.rate, self.steps = rate, 0
        self.optimizer = torch.optim.AdamW(
            self.trained, lr=rate, betas=(USUAL.beta1, USUAL.beta2), weight_decay=USUAL.weight_decay
        )

    def logits(self, tokens: Ints) -> Tensor:
        """Return the logits of the module in evaluation mode."""
        self.module.eval()
        with self.torch.no_grad():
            return self.module(self._tensor(tokens))

    def step(self, tokens: Ints, targets: Ints, weights: Floats) -> float:
        """One step of Adam."""
        torch = self.torch
        self.module.train()
        output = self.module(self._tensor(tokens))
        logits = getattr(output, "logits", output).float()
        each = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), self._tensor(targets).flatten(), reduction="none"
        )
        weight = torch.as_tensor(weights, device=self.device).flatten()
        loss = (each * weight).sum() / weight.sum()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained, USUAL.clip)
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * min(self.steps / USUAL.warmup, 1.0)
        self.optimizer.step()
        return float(loss.detach())

    def _tensor(self, numbers: Ints) -> Tensor:
        return self.torch.as_tensor(np.asarray(numbers), dtype=self.torch.int64, device=self.device)


class TokenMappedModel:
    """A language model that knows nothing of our tokens: each is a random one of its own, and it is only asked."""

    def __init__(self, module: nn.Module, names: Ints, device: str) -> None:
        self.torch, self.module, self.device = need("torch", "torch"), module.to(device).eval(), device
        self.names = self.torch.as_tensor(names, dtype=self.torch.int64, device=device)

    def logits(self, tokens: Ints) -> Tensor:
        """The logits of our tokens among its own."""
        with self.torch.no_grad():
            own = self.names[self.torch.as_tensor(np.asarray(tokens), dtype=self.torch.int64, device=self.device)]
            return self.module(own).logits[..., self.names]


def folder(name: str, kind: str | None, device: str) -> Target:
    """A Hugging Face folder as a source of models: one that has weights is asked, and trained no further.

    One that has only a configuration is an architecture, and is trained from the start in the task's vocabulary.
    """
    transformers, path = need("transformers", "hf"), Path(name)
    config = config_of(path)
    if not any(path.glob("*.safetensors")) and not any(path.glob("*.bin")):
        return Target(name, _from_config(transformers, config), kind, device=device)
    module = pretrained(path)

    def make(vocabulary: int, length: int, seed: int) -> TokenMappedModel:
        del length
        begin = config.bos_token_id if config.bos_token_id in range(config.vocab_size) else None
        free = np.setdiff1d(np.arange(config.vocab_size), [] if begin is None else [begin])
        if len(free) < vocabulary:
            raise InputError(f"the model has {config.vocab_size} tokens, and the task takes {vocabulary}")
        names = np.random.default_rng(seed).choice(free, size=vocabulary, replace=False)
        names[0] = names[0] if begin is None else begin
        return TokenMappedModel(module, names, device)

    longest = int(getattr(config, "max_position_embeddings", None) or UNBOUNDED)
    return Target(name, make, kind, pretrained=True, longest=longest, device=device)


def _from_config(transformers: ModuleType, config: PretrainedConfig) -> Factory:
    def make(vocabulary: int, length: int, seed: int) -> nn.Module:
        del seed  # torch's own generator has it
        own = type(config).from_dict(config.to_dict())
        own.vocab_size = vocabulary
        own.bos_token_id = own.eos_token_id = own.pad_token_id = None
        if getattr(own, "max_position_embeddings", None):
            own.max_position_embeddings = length
        return transformers.AutoModelForCausalLM.from_config(own)

    return make
