"""Constructions: functions that turn a spec into a network, registered by their signature and chosen by the spec.

    @construction("log-depth", "any automaton in ⌈log₂ T⌉ layers", sizes, default=True)
    def log_depth(automaton: Automaton, *, attention: Attention = "softmax", max_length: MaxLength = 128) -> Network:

The annotation of the first parameter is the type of spec. The keyword-only parameters are the user's options, with
ranges and help texts (`MaxLength`): the command line, the app and JSON follow from the signatures. The other files of
this folder, and those of plugins, are parsed as text: only the construction that builds is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypeAlias, TypeVar

from vitrify.errors import BuildRefused
from vitrify.limits import MAX_SEED
from vitrify.parameters import REQUIRED, Fault, Help, Parameter, Within, described, read
from vitrify.registry import Declaration, declared

if TYPE_CHECKING:
    from vitrify.kit.margins import Arithmetic
    from vitrify.kit.network import Network
    from vitrify.net.architecture import Architecture
    from vitrify.net.weights import Sizes, Weights

__all__ = ["BuildRefused"]  # a file of a construction imports it from here, too

PACKAGE = "vitrify.constructions"
Scope = Literal["every length", "to T", "sampled"]  # of all nets: every input can be run for small specs only
Scopes: TypeAlias = tuple[Scope, Scope]
Size: TypeAlias = int | tuple[int, ...]
P = ParamSpec("P")
N = TypeVar("N", bound="Network | Weights[Architecture]")

# Options of several constructions. An option of a single construction is declared where it is used, in the same way.
Attention: TypeAlias = Annotated[Literal["softmax", "sparsemax", "hard"], Help("kind of attention")]
MaxLength: TypeAlias = Annotated[int, Within(1), Help("longest input, in tokens")]
Positions: TypeAlias = Annotated[Literal["dyadic", "quadratic", "sqrt"], Help("position code")]
WindowLength: TypeAlias = Annotated[
    int, Within(2), Help("n: answer from the last n-1 words; by default, as many as it takes")
]
Tolerance: TypeAlias = Annotated[
    float, Within(0, None, "()"), Help("largest error of an output that soft attention may cause")
]
ToleranceOfMeans: TypeAlias = Annotated[
    float, Within(0, 1, "(]"), Help("largest error of a mean that soft attention may cause, of vectors in [-1, 1]")
]
Mode: TypeAlias = Annotated[
    Literal["bounded", "layernorm"], Help("how counts are compared; the weights of layernorm know no length")
]
Dimension: TypeAlias = Annotated[int, Within(1), Help("dimensions of a word's code; the default may fail for a seed")]
Units: TypeAlias = Annotated[int, Within(1), Help("hidden units; the default may fail for a seed")]
Seed: TypeAlias = Annotated[int, Within(0, MAX_SEED), Help("seed of the random codes")]


@dataclass(frozen=True)
class DeclaredSizes:
    """Sizes of a network by closed formulas of the spec's own parameters, under the names of `net.sizes`.

    `unknown` says why there is no formula for what is neither exact nor bounded: depth, heads, width or units.
    """

    exact: Mapping[str, Size] = field(default_factory=dict)
    at_most: Mapping[str, Size] = field(default_factory=dict)
    unknown: str = ""
    RECORDED = "Sizes"

    @classmethod
    def of_layers(cls, heads: tuple[int, ...], units: tuple[int, ...], d_model: int) -> DeclaredSizes:
        """Return exact sizes, from the heads and units of each layer and the width."""
        per_layer: dict[str, Size] = {"heads_per_layer": heads, "units_per_layer": units, "d_model": d_model}
        return cls(per_layer | {"layers": len(heads), "heads": sum(heads), "units": sum(units)})

    def problems(self, measured: Sizes) -> list[str]:
        """Return a sentence for each measured size that differs from its formula."""
        wrong = [(name, size, "") for name, size in self.exact.items() if getattr(measured, name) != size]
        wrong += [
            (name, size, "at most ") for name, size in self.at_most.items() if not _below(getattr(measured, name), size)
        ]
        return [f"{name} is {getattr(measured, name)}, by the formula {word}{size}" for name, size, word in wrong]


def _below(size: Size, bound: Size) -> bool:
    if isinstance(size, tuple) and isinstance(bound, tuple):
        return len(size) == len(bound) and all(map(_below, size, bound))
    return isinstance(size, int) and isinstance(bound, int) and size <= bound


_SIZES: dict[tuple[str, str], Callable[..., DeclaredSizes]] = {}  # by module and name


def construction(
    name: str,
    summary: str,
    sizes: Callable[..., DeclaredSizes],
    *,
    default: bool = False,
    certified: Scopes = ("sampled", "sampled"),
    unproved: str = "",
    **fixed: object,
) -> Callable[[Callable[P, N]], Callable[P, N]]:
    """Register a function as a construction; all arguments but `sizes` are literals, which the catalogue parses.

    `certified` says for which words the two links of a certificate hold, at least, of all its nets under softmax
    attention, or that which is fixed (`certification.evidence.Link`): the stored weights compute their ideal; the ideal
    computes the spec. They are proved for `every length` or up to the maximum length (`to T`), or tested on samples
    (`sampled`). `unproved` is the reason that a failing proof of margins gives. `sizes` takes the spec, and by keyword
    the options that its formulas need. Contract tests check all three. Any other keyword fixes a parameter of the
    function, which is then no option: one function may be several constructions.
    """
    del summary, default, certified, unproved, fixed

    def register(function: Callable[P, N]) -> Callable[P, N]:
        _SIZES[function.__module__, name] = sizes
        if hasattr(function, "__wrapped__"):
            return function  # another construction, which checks already
        positional = {p.name for p in signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY}

        @wraps(function)
        def checked(*args: P.args, **choices: P.kwargs) -> N:
            _checked(name, described(function), {key: choices[key] for key in choices.keys() - positional})
            return function(*args, **choices)

        return checked

    return register


def _checked(
    name: str, parameters: Sequence[Parameter], choices: Mapping[str, object], *, text: bool = False
) -> dict[str, Any]:
    """Return the values of a construction's options; refuse them with everything that is wrong at once."""
    faults: list[Fault] = []
    values = read(parameters, choices, faults, text=text)
    if not faults:
        return values
    known = {parameter.name: option(parameter.name) for parameter in parameters}
    unknown = [option(key) for (key, *_), _ in faults if key not in known]
    problems = [f"{known[key]} {message}" for (key, *_), message in faults if key in known]
    if unknown:
        has = f"it has {', '.join(known.values())}" if known else "it has none"
        problems.insert(0, f"the construction {name!r} has no such choice: leave {' and '.join(unknown)} out; {has}")
    raise BuildRefused("; ".join(problems))


def option(choice: str) -> str:
    """Return a choice as an option of the command line.

    >>> option("max_length")
    '--max-length'
    """
    return f"--{choice.replace('_', '-')}"


@dataclass(frozen=True)
class Construction:
    """Catalogue entry of a construction, parsed from its source; its module is imported when it is used."""

    name: str
    spec: str
    summary: str
    default: bool = False
    certified: Scopes = ("sampled", "sampled")
    unproved: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False, kw_only=True)
    declaration: Declaration = field(repr=False, kw_only=True)

    @property
    def _node(self) -> ast.FunctionDef:
        assert isinstance(self.declaration.node, ast.FunctionDef)
        return self.declaration.node

    @property
    def choices(self) -> tuple[str, ...]:
        """The names of its options."""
        return tuple(arg.arg for arg in self._node.args.kwonlyargs if arg.arg not in self.fixed)

    @cached_property
    def _origin(self) -> tuple[str, str]:
        """The module and the name of the class of its specs, parsed once: every build compares them."""
        return self.declaration.origin(self.spec)

    @cached_property
    def kind(self) -> type:
        """The class of the specs that it builds; this imports the module of the spec, and no other."""
        annotation = self._node.args.args[0].annotation
        assert annotation is not None
        kind: type = self.declaration.value(annotation)
        return kind

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its options with their types, ranges, defaults and help texts."""
        arguments, evaluated = self._node.args, self.declaration.value
        return tuple(
            Parameter(
                argument.arg,
                Any if argument.annotation is None else evaluated(argument.annotation),
                REQUIRED if default is None else evaluated(default),
            )
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if argument.arg not in self.fixed
        )

    @cached_property
    def function(self) -> Callable[..., Network | Weights[Architecture]]:
        """The function that builds; this imports its module."""
        function: Callable[..., Network | Weights[Architecture]]
        function = getattr(import_module(self.declaration.module), self._node.name)
        return function

    def make(self, spec: object, **choices: object) -> Network | Weights[Architecture]:
        """Return the network of a spec, still to be assembled, or finished weights.

        An option that is None has the construction's default.
        """
        given = {name: value for name, value in choices.items() if value is not None}
        _checked(self.name, self.parameters, given)
        return self.function(spec, **given, **self.fixed)

    def parse(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of options given as text on the command line; refuse with all faults at once."""
        return _checked(self.name, self.parameters, texts, text=True)

    def sizes(self, spec: object, **choices: object) -> DeclaredSizes:
        """Return the sizes of the network that `make` returns for the same arguments."""
        values = {p.name: p.default for p in described(self.function) if not p.required} | choices | dict(self.fixed)
        formula = _SIZES[self.declaration.module, self.name]
        needed = [p.name for p in signature(formula).parameters.values() if p.kind is p.KEYWORD_ONLY]
        return formula(spec, **{choice: values[choice] for choice in needed})

    def distance(self, spec: object) -> int | None:
        """Return the steps of inheritance from a spec's class to the class this builds, or None if it is no subclass.

        Classes are compared by module and name, or by identity if they are imported from another module.
        """
        module, name = self._origin
        for steps, kind in enumerate(type(spec).__mro__):
            if kind.__name__ == name and (
                kind.__module__ == module or getattr(import_module(module), name, None) is kind
            ):
                return steps
        return None


@cache
def constructions() -> tuple[Construction, ...]:
    """Return all constructions: files sorted by name, functions in source order, plugins last."""
    return tuple(map(_read, declared(PACKAGE, "@construction(")))


def _read(declaration: Declaration) -> Construction:
    node = declaration.node
    assert isinstance(node, ast.FunctionDef)
    call = next(each for each in node.decorator_list if isinstance(each, ast.Call))
    words = dict(zip(("name", "summary", "sizes"), call.args, strict=False)) | {k.arg: k.value for k in call.keywords}
    literals = {key: ast.literal_eval(value) for key, value in words.items() if key and key != "sizes"}
    fixed = {arg.arg: literals.pop(arg.arg) for arg in node.args.kwonlyargs if arg.arg in literals}
    spec = ast.unparse(node.args.args[0].annotation)  # type: ignore[arg-type]
    return Construction(spec=spec, fixed=fixed, declaration=declaration, **literals)


def offered() -> dict[str, list[tuple[Construction, Parameter]]]:
    """Return every option with the constructions that have it, the commonest first."""
    choices: dict[str, list[tuple[Construction, Parameter]]] = {}
    for entry in constructions():
        for parameter in entry.parameters:
            choices.setdefault(parameter.name, []).append((entry, parameter))
    return dict(sorted(choices.items(), key=lambda pair: -len(pair[1])))


def fitting(spec: object) -> list[Construction]:
    """Return the constructions that build a spec, those for its own class before those for its base classes."""
    distances = [(distance, entry) for entry in constructions() if (distance := entry.distance(spec)) is not None]
    return [entry for _, entry in sorted(distances, key=lambda pair: pair[0])]


def build(
    spec: object, construction: str | None = None, *, arithmetic: Arithmetic = "float64", **choices: object
) -> Weights[Any]:
    """Return the weights of a spec, by the named construction or the default one of its type.

    Options are the keyword parameters of the construction: `build(spec, "log-depth", max_length=8, attention="hard")`.
    The name of a network says up to which length T it was built, unless it is the same at every length, or computes
    its positions.
    """
    from vitrify.kit.assembly import assemble
    from vitrify.net.weights import Weights, has_bounded_length

    entry = chosen(spec, construction)
    network = entry.make(spec, **choices)
    weights = network if isinstance(network, Weights) else assemble(network, arithmetic=arithmetic)
    net: Any = weights.architecture
    if net.reads != "tokens" or net.max_length < 2:
        return weights
    if net.longest > net.max_length or ("every length" in entry.certified and not has_bounded_length(weights)):
        return weights
    return replace(weights, architecture=replace(net, name=f"{net.name}, up to T = {net.max_length}"))


def chosen(spec: object, name: str | None = None) -> Construction:
    """Return the named construction, or the default one, of those that build a spec; refuse if there is none."""
    entries, kind = fitting(spec), type(spec).__name__
    if not entries:
        known = ", ".join(sorted({entry.spec for entry in constructions()}))
        raise BuildRefused(f"no construction builds a spec of type {kind} yet; there are some for {known}")
    for entry in entries:
        if entry.default if name is None else entry.name == name:
            return entry
    offered = ", ".join(entry.name for entry in entries)
    raise BuildRefused(f"a spec of type {kind} is built by the constructions {offered}, not {name!r}")
