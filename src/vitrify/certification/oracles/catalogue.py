"""Oracles: what a network built from a spec must answer after every prefix, from the spec's own semantics.

Every spec that says what it means has one: `meanings.py`. A faster one, or one with better test cases, registers
beside its class:

    @oracle(Automaton)                      of networks that read tokens, whatever their output
    @oracle(Automaton, output="class")      of those whose output is of one kind
    @oracle(Connectivity, reads="rows")     of those that read numbers: a point oracle, see `checks/points.py`

Registrations are found in the source text below `vitrify.certification.oracles`, and below
`mine.certification.oracles` of a plugin `mine`; only the module of the oracle that is used is imported. The nearest
class in the spec's line of descent wins, and of one class the registration that names the output.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from vitrify.errors import FolderError, InputError
from vitrify.net.architecture import Architecture, OutputKind, Reads, SequenceArchitecture
from vitrify.registry import declared
from vitrify.spec.kinds import Spec

if TYPE_CHECKING:
    from vitrify.certification.oracles.right import Oracle

Maker = TypeVar("Maker", bound=Callable[..., object])
PACKAGE = "vitrify.certification.oracles"


def oracle(*specs: type, output: OutputKind | None = None, reads: Reads = "tokens") -> Callable[[Maker], Maker]:
    """Register an oracle, or a function that makes one, of some classes of specs; called with a spec and a network.

    The arguments are read from the source text: classes are names, and the others literals.
    """
    del output, reads
    return for_specs(*specs)


def for_specs(*specs: type) -> Callable[[Maker], Maker]:
    """Register an oracle, or a lemma, of some classes of specs, beside what the source text says."""

    def register(maker: Maker) -> Maker:
        SPECS[maker] = specs
        return maker

    return register


SPECS: dict[Callable[..., object], tuple[type, ...]] = {}  # the classes of what is registered in imported modules


class Registration(NamedTuple):
    """A decorator `@oracle(…)` or `@lemma(…)`, as it stands in the source text."""

    module: str
    name: str
    specs: tuple[str, ...]
    output: str | None
    reads: str

    @property
    def maker(self) -> Callable[..., Any]:
        """What is registered; its module is imported."""
        maker: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return maker


@cache
def registrations(package: str = PACKAGE, decorator: str = "oracle") -> tuple[Registration, ...]:
    """Return all that a decorator registers below a package and its counterparts in plugins, without importing it."""
    entries: list[Registration] = []
    for declaration in declared(package, f"@{decorator}"):
        node = declaration.node
        assert isinstance(node, ast.ClassDef | ast.FunctionDef)
        call = node.decorator_list[0]
        specs = tuple(arg.id for arg in call.args if isinstance(arg, ast.Name)) if isinstance(call, ast.Call) else ()
        if not isinstance(call, ast.Call) or not specs or len(specs) < len(call.args):
            raise InputError(f"{declaration.module}: write @{decorator}(Class, …), with the names of classes")
        words = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        output, reads = words.get("output"), words.get("reads", "tokens")
        entries.append(Registration(declaration.module, node.name, specs, output, reads))
    return tuple(entries)


def registered(spec: object, net: Architecture) -> Callable[..., Any] | None:
    """Return the oracle that is registered for a spec and a network."""
    for kind in type(spec).__mro__:
        fitting = [r for r in registrations() if kind.__name__ in r.specs and r.reads == net.reads]
        for output in (net.output.kind, None):
            named = [r for r in fitting if r.output == output]
            makers = [maker for maker in (r.maker for r in named) if kind in SPECS[maker]]
            if len(makers) > 1:
                both = " and ".join(f"{maker.__module__}:{maker.__name__}" for maker in makers)
                raise InputError(f"{both} are oracles of the same networks of {kind.__name__}: name different outputs")
            if makers:
                return makers[0]
    return None


def oracle_for(spec: object, net: SequenceArchitecture) -> Oracle:
    """Return the oracle of a spec for a network that was built from it."""
    from vitrify.certification.oracles.meanings import MeaningOracle, refuse_other_names

    maker, meanings = registered(spec, net), spec.meanings() if isinstance(spec, Spec) else {}
    meaning = spec.meaning(net.output.kind, net.inputs[1:]) if isinstance(spec, Spec) else None
    if meaning is None and (maker is None or meanings):
        raise FolderError(
            f"there is no oracle for a spec of type {type(spec).__name__} and {net.output.kind!r} answers"
        )
    if meaning is not None:
        refuse_other_names(meaning, net)
    made: Oracle = maker(spec, net) if maker is not None else MeaningOracle(meaning, net)  # type: ignore[arg-type]
    return made
