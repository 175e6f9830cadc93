"""What is to be diagnosed: `module:factory`, `file.py:factory`, a Hugging Face folder, or a Python value."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrify.errors import InputError
from vitrify.interop.diagnose.models import Answers, Plain, adapted, attempt

USUAL = "make"
ASKED = ("vocabulary", "length", "seed")
UNBOUNDED = 1 << 30


@dataclass(frozen=True)
class Target:
    """A source of models: `make(vocabulary, length, seed)`.

    `fixed`: it has its weights already, and there is only one;
    `told`: it was never trained on our tasks, so that only those can be asked whose answers follow from the text;
    `longest`: the longest row that it reads.
    """

    name: str
    make: Callable[..., Any]
    kind: str | None = None
    fixed: bool = False
    told: bool = False
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
        return attempt(f"what {self.name} made", lambda: adapted(made, rate, self.device))  # type: ignore[no-any-return]


def target(given: Any, kind: str | None = None, device: str = "cpu") -> Target:
    """What was given, as a source of models."""
    if not isinstance(given, str | Path):
        return _of_value(given, getattr(given, "__name__", type(given).__name__), kind, device)
    text = str(given)
    if Path(text).is_dir():
        from vitrify.interop.diagnose.torch_models import folder

        make, told, longest = folder(Path(text), device)
        return Target(text, make, kind, told=told, longest=longest, device=device)
    module, colon, attribute = text.rpartition(":")
    if not colon:
        module, attribute = text, USUAL
    found = _module(module)
    if not hasattr(found, attribute):
        raise InputError(f"{module} must have a factory {attribute}(vocabulary, length, seed), and has none")
    return _of_value(getattr(found, attribute), attribute, kind, device)


def _module(name: str) -> Any:
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


def _of_value(value: Any, name: str, kind: str | None, device: str) -> Target:
    """A factory, if it takes a vocabulary, a length and a seed; else something that is asked."""
    kind = kind or getattr(value, "kind", None)
    kind = kind if isinstance(kind, str) else None
    if isinstance(value, Answers) and not isinstance(value, type):
        return Target(name, lambda **_: Plain(value.logits), kind, fixed=True, device=device)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        from vitrify.interop.diagnose.torch_models import TorchModel

        return Target(name, lambda **_: Plain(TorchModel(value, 1e-3, device).logits), kind, fixed=True, device=device)
    if not callable(value):
        raise InputError(f"{name} must be a factory or a function of tokens, and is a {type(value).__name__}")
    try:
        taken = inspect.signature(value).parameters
    except (TypeError, ValueError):
        taken = inspect.signature(lambda tokens: tokens).parameters
    needed = [one for one in taken.values() if one.default is one.empty and one.kind < one.VAR_POSITIONAL]
    if set(ASKED) <= set(taken) or any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        return Target(name, value, kind, device=device)
    if len(needed) == len(ASKED):
        return Target(name, lambda vocabulary, length, seed: value(vocabulary, length, seed), kind, device=device)
    if len(needed) == 1:
        return Target(name, lambda **_: Plain(value), kind, fixed=True, device=device)
    raise InputError(
        f"{name} must be a factory {name}(vocabulary, length, seed) or a function {name}(tokens), and takes "
        f"{', '.join(taken) or 'nothing'}"
    )
