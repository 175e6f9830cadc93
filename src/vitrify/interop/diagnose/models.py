"""The protocol: what a model must do to be diagnosed, and how what a factory returns becomes that.

A factory `make(vocabulary, length, seed)` returns any of

- an object with two methods, `logits(tokens)` and `step(tokens, targets, weights)`, which trains itself;
- a pair `(parameters, apply)` of JAX, with `apply(parameters, tokens)` the logits;
- a `torch.nn.Module`, whose call gives the logits;
- an object with `logits(tokens)` alone, or a function of tokens: it is asked, and not trained.

Tokens, targets and weights are NumPy arrays [batch, length]; logits are [batch, length, vocabulary].
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from vitrify.errors import InputError, VitrifyError

ACCELERATED = re.compile(r"\b(cuda|nvidia|gpu|triton|hip|rocm|mps|xpu|tpu)\b|cuda", re.IGNORECASE)


@runtime_checkable
class Answers(Protocol):
    """A model that is asked."""

    def logits(self, tokens: Any) -> Any:
        """The logits [batch, length, vocabulary] of the answer after each token."""


@runtime_checkable
class Learns(Answers, Protocol):
    """A model that is trained too."""

    def step(self, tokens: Any, targets: Any, weights: Any) -> Any:
        """Make one step of training on a batch, and return its loss."""


class Plain:
    """A function of tokens, as a model that is asked."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def logits(self, tokens: Any) -> Any:
        """What the function says."""
        return self.function(tokens)


class JaxModel:
    """A pair `(parameters, apply)`, trained by Adam; what is compiled for a function serves all seeds that share it."""

    def __init__(self, parameters: Any, apply: Callable[[Any, Any], Any], rate: float) -> None:
        self.parameters, self.rate = parameters, np.float32(rate)
        self.forward, first, self.trained = _compiled(apply)
        self.state = first(parameters, self.rate)

    def logits(self, tokens: Any) -> Any:
        """What `apply` says."""
        return self.forward(self.parameters, tokens)

    def step(self, tokens: Any, targets: Any, weights: Any) -> float:
        """One step of Adam."""
        self.parameters, self.state, loss = self.trained(
            self.parameters, self.state, tokens, targets, weights, self.rate
        )
        return float(loss)


@lru_cache(maxsize=4)
def _compiled(apply: Callable[[Any, Any], Any]) -> tuple[Any, Any, Any]:
    """The forward pass, the first state of the optimiser, and a step, as compiled functions."""
    import jax
    import jax.numpy as jnp
    import optax

    from vitrify.learn.measure import log_probabilities
    from vitrify.learn.recipe import Recipe

    def first(parameters: Any, rate: Any) -> Any:
        return Recipe(lr=rate).transformation().init(parameters)

    def step(parameters: Any, state: Any, tokens: Any, targets: Any, weights: Any, rate: Any) -> tuple[Any, Any, Any]:
        def loss(parameters: Any) -> Any:
            logp = log_probabilities(apply(parameters, tokens))
            each = -jnp.take_along_axis(logp, targets[..., None], axis=-1)[..., 0]
            return (each * weights).sum() / weights.sum()

        value, gradient = jax.value_and_grad(loss)(parameters)
        change, state = Recipe(lr=rate).transformation().update(gradient, state, parameters)
        return optax.apply_updates(parameters, change), state, value

    return jax.jit(apply), jax.jit(first), jax.jit(step)


def adapted(made: Any, rate: float, device: str = "cpu") -> Answers:
    """What a factory returned, as a model that is asked or trained."""
    if isinstance(made, Answers):
        return made
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(made, torch.nn.Module):
        from vitrify.interop.diagnose.torch_models import TorchModel

        return TorchModel(made, rate, device)
    if isinstance(made, tuple) and len(made) == 2 and callable(made[1]):
        return JaxModel(*made, rate)
    if callable(made) and not isinstance(made, type):
        return Plain(made)
    raise InputError(
        f"a factory must return a torch module, a pair (parameters, apply), or an object with logits(tokens) and "
        f"step(tokens, targets, weights), not {_called(made)}: see docs/howto-diagnose.md"
    )


def _called(made: Any) -> str:
    return "nothing" if made is None else f"a {type(made).__name__}"


def attempt(what: str, act: Callable[[], Any]) -> Any:
    """Do something with the user's code; an error in it becomes one sentence."""
    try:
        return act()
    except VitrifyError:
        raise
    except Exception as error:  # whatever the user's code raises
        lines = str(error).strip().splitlines() or [""]
        said = f"{type(error).__name__}: {lines[0]}".rstrip(": ")
        if ACCELERATED.search(str(error)):
            raise InputError(
                f"{what} needs a device that is not here ({said}): it must run on the CPU, or say --device where "
                f"there is another"
            ) from error
        raise InputError(f"{what} raised {said}") from error


def numbers(found: Any) -> Any:
    """Logits as a NumPy array of float32, from any library."""
    found = getattr(found, "logits", found)
    if hasattr(found, "detach"):
        found = found.detach().cpu()
        found = found.float() if found.is_floating_point() else found
    array = np.asarray(found)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" or array.dtype.kind == "f" else array
