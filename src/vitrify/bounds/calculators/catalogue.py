"""Definition and evaluation of a bound; every other file of this package is one bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from vitrify.errors import InputError, SpecError
from vitrify.parameters import Fault, Help, Within, described, key_values, read, sentences
from vitrify.registry import Headline, headlines, load

PACKAGE = "vitrify.bounds.calculators"
Status = Literal["unconditional", "conditional", "rate"]
MAX_SIZE = 2**40  # of factors whose products are computed in float64, which has all integers up to 2^53
Size: TypeAlias = Annotated[int, Within(1, MAX_SIZE)]
Several: TypeAlias = Annotated[int, Within(2, MAX_SIZE)]
Heads: TypeAlias = Annotated[Size, Help("heads")]
ValueSize: TypeAlias = Annotated[Size, Help("size of a value")]
Bits: TypeAlias = Annotated[int, Within(1, 64), Help("bits of a number")]
StateBits: TypeAlias = Annotated[int, Within(0, MAX_SIZE), Help("bits of the state; 0: find the fewest possible")]

EXPLAINED = {
    "unconditional": "proved, without an unproved assumption; the figures are certain",
    "conditional": "rests on an unproved assumption, which is named",
    "rate": "says how a quantity grows; the constant is unknown, so no figure is a certified number",
}


@dataclass(frozen=True)
class BoundReading:
    """Result of a bound for given sizes: figures by name, and a sentence."""

    figures: Mapping[str, float | int | str]
    says: str


def excluding(figures: Mapping[str, float | int | str], impossible: bool, why: str) -> BoundReading:
    """Return the result of a bound that excludes impossible sizes: it says why, or that the sizes are not excluded."""
    return BoundReading(figures, why if impossible else "not excluded by this bound")


@dataclass(frozen=True, eq=False)
class Bound:
    """A published bound that can be evaluated; its parameters are the keyword-only ones of `evaluate`.

    `conflicts` yields the faults of values that are in range one by one, but not allowed together.
    """

    status: Status
    evaluate: Callable[..., BoundReading]
    conflicts: Callable[..., Iterator[Fault]] = lambda **_: iter(())


def over_twice(*, N: int, q: int, **_: float) -> Iterator[Fault]:
    """Yield a fault unless N is at least 2q + 1."""
    if 2 * q + 1 > N:
        yield ("N",), f"must be at least 2q + 1 = {2 * q + 1}, not {N}"


def listing() -> list[Headline]:
    """Return all bounds, by name, without importing them."""
    return list(headlines(PACKAGE, "BOUND"))


def shown(headline: Headline) -> str:
    """Return the name of a bound as users write it."""
    return headline.name.replace("_", "-")


def find(name: str) -> Headline:
    """Return the bound of that name; a unique prefix is enough."""
    known = listing()
    wanted = name.replace("-", "_")
    matches = [h for h in known if h.name == wanted] or [h for h in known if h.name.startswith(wanted)]
    if len(matches) != 1:
        what = "no bound is called" if not matches else "several bounds begin with"
        raise InputError(f"{what} {name!r}; there are: {', '.join(shown(h) for h in (matches or known))}")
    return matches[0]


def bound_of(headline: Headline) -> Bound:
    """Import a bound."""
    bound = load(PACKAGE, headline.name).BOUND
    assert isinstance(bound, Bound)
    return bound


def bound(name: str, **sizes: float) -> BoundReading:
    """Evaluate a published bound at given sizes: `bound("hops", k=8)`.

    `vitrify bound` lists the bounds, `vitrify bound NAME --parameters` the sizes of one.
    """
    published = bound_of(find(name))
    return published.evaluate(**values_of(published, [f"{key}={value}" for key, value in sizes.items()]))


def values_of(bound: Bound, words: Sequence[str]) -> dict[str, int | float]:
    """Return the values given as words `key=value`, with the defaults; a SpecError lists all faults."""
    parameters, faults = described(bound.evaluate), list[Fault]()
    defaults = {parameter.name: parameter.default for parameter in parameters if not parameter.required}
    values = defaults | read(parameters, key_values(words, faults), faults, text=True)
    faults = faults or list(bound.conflicts(**values))
    if faults:
        raise SpecError(sentences(faults))
    return values
