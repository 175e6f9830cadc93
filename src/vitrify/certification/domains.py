"""Scope of a verdict: domains of cases, methods, and the two links between a network and its spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import Any, Literal, Self, get_type_hints

from vitrify.encoding import Json, JsonMapping, decoded, encoded
from vitrify.errors import InputError
from vitrify.hints import accepts

Arithmetic = Literal["float64", "reals"]


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the declared types of the fields of a dataclass."""
    return get_type_hints(kind, include_extras=True)


class Method(StrEnum):
    """Method by which a verdict was reached."""

    EXHAUSTIVE = "exhaustive"  # every case was run: of a network, every input that it reads
    SAMPLED = "sampled"  # some cases of more were run, perhaps every word up to a length below the maximum
    PROVED = "proved"  # derived for all cases at once, with error bounds
    CONSTRUCTED = "constructed"  # a counterexample was constructed and run
    DERIVED = "derived"  # follows from the verdicts of other claims
    TRAINED = "trained"  # measured on networks that were trained, several seeds each
    INTEGRATED = "integrated"  # measured along gradient flows that were integrated numerically

    @property
    def complete(self) -> bool:
        """Return whether a verdict by this method covers every case of its domain."""
        return self in (Method.EXHAUSTIVE, Method.PROVED)


class CaseKind(StrEnum):
    """The kinds of cases that checks of nets run; a claim may name others in `Domain.kind`."""

    WORDS = "words"  # all words of the lengths that the domain names
    PREFIXES = "prefixes of sentences"  # all prefixes of sentences up to a length
    LISTED_WORDS = "words that exercise the listed parts"  # every prefix of each
    FIRST_WORDS = "first words"  # of a domain that is too large; every prefix of each
    RANDOM_WORDS = "random words"  # every prefix of each
    RANDOM_SENTENCES = "random sentences"  # every prefix of each


class JsonData:
    """A frozen dataclass as JSON data and back: fields by name, defaults left out."""

    @classmethod
    def from_json(cls, data: JsonMapping) -> Self:
        """Return the value that `to_json` was called on; unknown and missing keys are refused."""
        known: tuple[Field[object], ...] = fields(cls)  # type: ignore[arg-type]
        required = {entry.name for entry in known if entry.default is MISSING and entry.default_factory is MISSING}
        if not isinstance(data, Mapping):
            raise InputError(f"{cls.__name__} as JSON must be a table")
        unknown, absent = set(data) - {entry.name for entry in known}, required - set(data)
        kind: Any = cls
        hints = _hints(kind)
        odd = [name for name in data.keys() & hints.keys() if not accepts(hints[name], decoded(data[name]))]
        if unknown or absent or odd:
            problems = [f"has no field {name!r}" for name in sorted(unknown)]
            problems += [f"lacks the field {name!r}" for name in sorted(absent)]
            problems += [f"has in the field {name!r} a value of another type" for name in sorted(odd)]
            raise InputError(f"{cls.__name__} as JSON {', '.join(problems)}")
        return cls(**data)

    def to_json(self) -> dict[str, Json]:
        """Return plain JSON data; fields that hold their default are left out."""
        entries: tuple[Field[object], ...] = fields(self)  # type: ignore[arg-type]
        values = {entry.name: (getattr(self, entry.name), _default(entry)) for entry in entries}
        return {name: encoded(value) for name, (value, default) in values.items() if value != default}

    def _normalize(self, *names: str) -> None:
        """Store fields as what JSON gives back: lists, strings, plain numbers, and one NaN that equals itself."""
        for name in names:
            object.__setattr__(self, name, decoded(encoded(getattr(self, name))))

    def _tuples(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else tuple(decoded(encoded(value))))  # type: ignore[arg-type]


def _default(entry: Field[object]) -> object:
    return entry.default if entry.default_factory is MISSING else entry.default_factory()


@dataclass(frozen=True)
class Domain(JsonData):
    """Cases that were run together: `count` of a kind, of lengths `shortest` to `longest` where they have lengths.

    `count` is None where something is proved of all cases, without counting them. `settings` holds what else determines
    the domain, by name: the number of chains, of steps, of symbols.
    """

    kind: str
    method: Method
    count: int | None
    shortest: int | None = None
    longest: int | None = None
    arithmetic: Arithmetic = "float64"
    settings: JsonMapping = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", str(self.kind))
        object.__setattr__(self, "method", Method(self.method))
        self._normalize("count", "settings")

    @property
    def covers_lengths(self) -> bool:
        """Return whether the cases are all words, or all prefixes of sentences, of the lengths that it names."""
        return self.kind in (CaseKind.WORDS, CaseKind.PREFIXES) and self.longest is not None

    @property
    def key(self) -> str:
        """The method as one word that also names the arithmetic where it is not float64."""
        return self.method.value if self.arithmetic == "float64" else f"{self.method.value} in {self.arithmetic}"


class Scope(StrEnum):
    """The words for which a link between a network and its spec is established, the strongest first."""

    EVERY_LENGTH = "every length"  # proved for every word of every length
    MAX_LENGTH = "to T"  # proved for every word up to the maximum length
    EXHAUSTIVE = "exhaustive"  # tested on every word up to the maximum length, or on every input of another kind
    SAMPLED = "sampled"  # tested on samples, and perhaps on every word up to a length below the maximum

    @property
    def proved(self) -> bool:
        return self in (Scope.EVERY_LENGTH, Scope.MAX_LENGTH)


@dataclass(frozen=True)
class Link(JsonData):
    """One of the two links between stored weights and a spec, and the words for which it is established.

    - The link `weights`: the stored weights compute their *ideal*, the same network with heads that select exactly and
      units that are exact.
    - The link `spec`: the ideal computes the spec.

    `longest` is the length up to which every word is covered, None where it is every length or none, or where inputs
    have no lengths. `lemma` names the proof, `instances` what was checked for it, and `reason` says why there is none.
    """

    name: Literal["weights", "spec"]
    scope: Scope
    longest: int | None = None
    lemma: str = ""
    instances: JsonMapping = field(default_factory=dict)
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", Scope(self.scope))
        self._normalize("longest", "instances")


def tested_links(domains: Sequence[Domain]) -> tuple[Link, ...]:
    """Return both links as runs establish them: a run compares the stored weights with the spec.

    >>> runs = Domain("words", "sampled", 7, 0, 2), Domain("random words", "sampled", 1, 9, 9)
    >>> [(link.name, link.scope.value, link.longest) for link in tested_links(runs)]
    [('weights', 'sampled', 2), ('spec', 'sampled', 2)]
    """
    runs = [run for run in domains if run.arithmetic == "float64"]
    complete = max((run.longest or 0 for run in runs if run.covers_lengths), default=None)
    scope = Scope.EXHAUSTIVE if any(run.method is Method.EXHAUSTIVE for run in runs) else Scope.SAMPLED
    return (Link("weights", scope, complete), Link("spec", scope, complete)) if runs else ()
