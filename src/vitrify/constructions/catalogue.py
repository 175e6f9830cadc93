"""What a construction says of itself, and how one is found for a spec; the files beside this one are the entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.margins import Arithmetic
from vitrify.kit.network import Network
from vitrify.kit.positions import CodeName
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.registry import load, names

Attention = Literal["soft", "sparse", "hard"]
Mode = Literal["bounded", "layernorm"]
Choice = Literal["attention", "max_length", "positions", "window", "tolerance", "mode", "dimension", "units", "seed"]
Method = Literal["proved", "exhaustive", "sampled"]
KINDS: dict[Attention, AttentionKind] = {"soft": "softmax", "sparse": "sparsemax", "hard": "hard"}


@dataclass(frozen=True)
class Settings:
    """What a user may choose; None leaves the choice to the construction."""

    attention: AttentionKind = "softmax"
    max_length: int | None = None
    positions: CodeName | None = None
    window: int | None = None
    tolerance: float | None = None
    mode: Mode | None = None
    dimension: int | None = None
    units: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Construction:
    """A way to turn specs of one type into networks, by the name of its shape.

    Transformers are made as networks of the kit; other architectures as weights, ready made. `certified` is how nets
    are certified at least, under soft attention: margins proved for all words, all short inputs tried, or samples only;
    `unproved` says why margins are not, in words of the proof, where proofs are tried. Contract tests hold it to both.
    """

    shape: str
    spec: type
    summary: str
    make: Callable[[object, Settings], Network | Weights[Any]]
    default: bool = False
    choices: tuple[Choice, ...] = ("attention", "max_length")  # which settings mean something to it
    certified: Method = "exhaustive"
    unproved: str = ""

    @property
    def sequences(self) -> bool:
        """Whether it reads sequences, up to a length that may be chosen."""
        return "max_length" in self.choices


def constructions() -> tuple[Construction, ...]:
    """All constructions: files in order of name, entries in order of writing."""
    package = "vitrify.constructions"
    return tuple(entry for name in names(package) for entry in load(package, name).CONSTRUCTIONS)


def build(
    spec: object,
    shape: str | None = None,
    settings: Settings | None = None,
    *,
    arithmetic: Arithmetic = "float64",
    **choices: Any,
) -> Weights[Any]:
    """The weights of a spec, in the asked-for shape or in the default one of its type.

    Choices are the fields of `Settings`, by name: `build(spec, "log-depth", max_length=8, attention="hard")`.
    """
    settings = _with(settings or Settings(), choices)
    made = _chosen(spec, shape, settings).make(spec, settings)
    return made if isinstance(made, Weights) else assemble(made, arithmetic=arithmetic)


def _with(settings: Settings, choices: Mapping[str, Any]) -> Settings:
    """Settings with some choices made; kinds of attention may be said as on the command line."""
    unknown = [name for name in choices if name not in get_args(Choice)]
    if unknown:
        raise BuildRefused(f"there is no choice {unknown[0]!r}; there are {', '.join(get_args(Choice))}")
    kind = choices.get("attention", settings.attention)
    return replace(settings, **{**choices, "attention": KINDS.get(kind, kind)})


def _chosen(spec: object, shape: str | None, settings: Settings | None) -> Construction:
    fitting: Sequence[Construction] = [c for c in constructions() if isinstance(spec, c.spec)]
    chosen = [c for c in fitting if c.default] if shape is None else [c for c in fitting if c.shape == shape]
    if not fitting:
        known = ", ".join(sorted({c.spec.__name__ for c in constructions()}))
        raise BuildRefused(
            f"no construction builds a spec of type {type(spec).__name__} yet; there are some for {known}"
        )
    if not chosen:
        offered = ", ".join(c.shape for c in fitting)
        raise BuildRefused(f"a spec of type {type(spec).__name__} is built in the shape {offered}, not {shape!r}")
    odd = [f"--{choice.replace('_', '-')}" for choice in _made_by(settings) if choice not in chosen[0].choices]
    if odd:
        raise BuildRefused(f"the shape {chosen[0].shape!r} has no such choice: leave {' and '.join(odd)} out")
    return chosen[0]


def _made_by(settings: Settings | None) -> list[Choice]:
    """The choices that differ from what a construction would take by itself."""
    given, usual = settings or Settings(), Settings()
    return [choice for choice in get_args(Choice) if getattr(given, choice) != getattr(usual, choice)]
