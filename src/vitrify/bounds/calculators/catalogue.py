"""What a bound is and how one is evaluated; the files beside this one are the bounds, one each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vitrify.errors import InputError, SpecError
from vitrify.registry import Headline, headlines, load

PACKAGE = "vitrify.bounds.calculators"
Status = Literal["unconditional", "conditional", "rate"]
Values = Mapping[str, Any]

EXPLAINED = {
    "unconditional": "proved without assumptions about complexity classes; the figures are certain",
    "conditional": "rests on an unproved assumption, which is named",
    "rate": "says how a quantity grows; the constant is unknown, so no figure is a certified number",
}


@dataclass(frozen=True)
class Parameter:
    """A number that a bound is asked with: what it means and from where to where it may go.

    One with a `default` may be left out. Whole numbers unless `real`.
    """

    name: str
    meaning: str
    low: float = 1
    high: float = 2**40
    default: float | None = None
    real: bool = False


@dataclass(frozen=True)
class Reading:
    """What a bound says about given sizes: figures by name, and a sentence."""

    figures: Mapping[str, float | int | str]
    says: str


@dataclass(frozen=True, eq=False)
class Bound:
    """A published bound that can be evaluated.

    `wrong` names what is wrong with a combination of values that are each in range.
    """

    status: Status
    parameters: tuple[Parameter, ...]
    evaluate: Callable[[Values], Reading]
    wrong: Callable[[Values], Sequence[str]] = lambda _: ()


def listing() -> list[Headline]:
    """All bounds, by name, without importing them."""
    return list(headlines(PACKAGE, "BOUND"))


def shown(headline: Headline) -> str:
    """The name of a bound, as users write it."""
    return headline.name.replace("_", "-")


def find(name: str) -> Headline:
    """The bound of that name; a unique beginning is enough."""
    known = listing()
    wanted = name.replace("-", "_")
    found = [h for h in known if h.name == wanted] or [h for h in known if h.name.startswith(wanted)]
    if len(found) != 1:
        what = "no bound is called" if not found else "several bounds begin with"
        raise InputError(f"{what} {name!r}; there are: {', '.join(shown(h) for h in (found or known))}")
    return found[0]


def bound_of(headline: Headline) -> Bound:
    """The bound itself."""
    found = load(PACKAGE, headline.name).BOUND
    assert isinstance(found, Bound)
    return found


def values_of(bound: Bound, given: Sequence[str]) -> dict[str, int | float]:
    """The values that words `key=value` give, with the defaults; all that is wrong with them at once."""
    problems: list[str] = []
    known = {parameter.name: parameter for parameter in bound.parameters}
    values: dict[str, int | float] = {}
    named: set[str] = set()
    for word in given:
        key, equals, text = word.partition("=")
        if not equals:
            problems.append(f"{word!r} is not of the form key=value")
        elif key not in known:
            problems.append(f"{key!r} is not a parameter of this bound; it has {', '.join(known)}")
        elif key in named:
            problems.append(f"{key} is given twice")
        else:
            _take(known[key], text, values, problems)
        named.add(key)
    for parameter in bound.parameters:
        if parameter.name not in named and parameter.default is None:
            problems.append(f"{parameter.name} is missing: {parameter.meaning}, {_range(parameter)}")
        elif parameter.name not in named and parameter.default is not None:
            values[parameter.name] = parameter.default
    problems = problems or list(bound.wrong(values))
    if problems:
        raise SpecError(problems)
    return values


def _take(parameter: Parameter, text: str, values: dict[str, int | float], problems: list[str]) -> None:
    try:
        number: int | float = float(text) if parameter.real else int(text)
    except ValueError:
        number = float("nan")
    if not parameter.low <= number <= parameter.high:
        problems.append(f"{parameter.name} ({parameter.meaning}) must be {_range(parameter)}, not {text}")
        return
    values[parameter.name] = number


def _range(parameter: Parameter) -> str:
    kind = "a number" if parameter.real else "a whole number"
    return f"{kind} from {parameter.low:,.15g} to {parameter.high:,.15g}"
