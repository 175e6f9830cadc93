"""Specifications: mathematical objects that define the right answers of a network; found by file or by name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from vitrify.errors import InputError, Problem, SpecError
from vitrify.files import bundled
from vitrify.spec.kinds import Spec, suffix_of, suffixes


def bounded(spec: Spec, depth: int) -> Spec:
    """Return a grammar without the derivations deeper than `depth`; other specs raise an InputError."""
    from vitrify.spec.grammars.grammar import Grammar

    if not isinstance(spec, Grammar):
        raise InputError(
            f"only grammars can be cut at a depth, got a spec of type {type(spec).__name__}: omit the depth"
        )
    return spec.cut(depth)


def read_spec(path: Path) -> Spec:
    """Read a spec from a file; the suffix of its name determines the kind."""
    suffix = suffix_of(path.name)
    if suffix is None:
        raise SpecError([unknown_suffix(str(path))])
    example = (bundled("examples") or path.parent) / path.name  # without examples: the path itself
    if example.exists() and not path.exists():
        raise SpecError([f"{path}: no such file; vitrify comes with {example}"])
    _, module, name = suffixes()[suffix]
    try:
        spec: Spec = getattr(import_module(module), name).read(path)
    except RecursionError:
        raise SpecError([Problem("brackets or operators are nested too deep", str(path))]) from None
    except ValueError as error:
        if "digits" not in str(error):
            raise
        raise SpecError([Problem(f"some number has too many digits: {error}", str(path))]) from None
    return spec


def unknown_suffix(name: str) -> str:
    """Return the error message for a name that has no suffix of a spec file."""
    kinds = ", ".join(f"{suffix} ({entry.description})" for suffix, entry in suffixes().items())
    return f"{name}: a spec file ends in one of {kinds}; automata by name look like cyclic:5"


def find_spec(text: str | Path) -> Spec:
    """Return the spec in a file, or an automaton by the name of its family and its size, such as cyclic:5."""
    if suffix_of(str(text)) is None:
        from vitrify.spec.automata.families import named

        automaton = named(str(text))
        if automaton is not None:
            return automaton
    return read_spec(Path(text))
