"""Parameters: declared once by type hints, read from text or JSON, checked when a value is made, described to people.

    @dataclass(frozen=True)
    class Markov(Parameterized):
        states: Annotated[int, Within(2), Help("states of the chain")] = 2
        p: Annotated[float, Within(0, 1)] = 0.2
        start: Literal["fixed", "stationary"] = "stationary"

Fields of a frozen dataclass and keyword-only parameters of a function are declared alike. A type is `bool`, `int`,
`float`, `str`, a `Literal`, a tuple of those, a dataclass or a `Mapping` of names (in files only), any other class (a
spec, which the command line reads by its file or name), or a union of these, with or without `None`. A range on a list
or mapping is of its length. From the declaration follow the check, the reading of `key=value` words, of TOML and of
JSON, the options of the command line, the forms of the app and the tables of the documentation.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from math import isfinite
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from vitrify.encoding import Json, JsonMapping, JsonObject, content, encoded, named_fields, recorded_name
from vitrify.errors import InputError, VitrifyError
from vitrify.hints import bare, class_of, container, metadata, options

Keys: TypeAlias = tuple[str, ...]  # the place of a value in a file: table by table, to its own key
Fault: TypeAlias = tuple[Keys, str]  # one broken rule: where, and a sentence
Find: TypeAlias = Callable[[str], Any]  # a value by its file or name
REQUIRED: Any = MISSING
WORDS: dict[object, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
WORDS |= {list: "a list", object: "a value"}
SHOWN_CHARACTERS = 80  # of a value in a message
TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no")


@dataclass(frozen=True)
class Within:
    """The numbers that a parameter may be: `hops: Annotated[int, Within(1, 64)]`; an end with a round bracket is out.

    >>> print(Within(1, 64), Within(2), Within(0, 1, "()"), Within(0, 1, "[)"), sep=" · ")
    from 1 to 64 · of at least 2 · above 0 and below 1 · of at least 0 and below 1
    """

    low: float | None = None
    high: float | None = None
    ends: Literal["[]", "(]", "[)", "()"] = "[]"

    def __str__(self) -> str:
        if self.ends == "[]" and None not in (self.low, self.high):
            return f"from {self.low:,.15g} to {self.high:,.15g}"
        low = [] if self.low is None else [f"{'above' if self.ends[0] == '(' else 'of at least'} {self.low:,.15g}"]
        word = "below" if self.ends[1] == ")" else "at most" if low else "of at most"
        return " and ".join(low + ([] if self.high is None else [f"{word} {self.high:,.15g}"]))

    def __contains__(self, number: Any) -> bool:
        above = self.low is None or number > self.low or (number == self.low and self.ends[0] == "[")
        below = self.high is None or number < self.high or (number == self.high and self.ends[1] == "]")
        return (isinstance(number, int) or isfinite(number)) and above and below  # no float holds every whole number


@dataclass(frozen=True)
class Help:
    """Meaning of a parameter in a few words: `Annotated[int, Help("optimizer steps")]`."""

    text: str


Count: TypeAlias = Annotated[int, Within(1)]
Natural: TypeAlias = Annotated[int, Within(0)]
Positive: TypeAlias = Annotated[float, Within(0, ends="(]")]
NonNegative: TypeAlias = Annotated[float, Within(0)]
Probability: TypeAlias = Annotated[float, Within(0, 1)]
Share: TypeAlias = Annotated[float, Within(0, 1, "(]")]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a value or a function: name, declared type, default (or `REQUIRED`)."""

    name: str
    hint: object
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        """Return whether there is no default."""
        return self.default is REQUIRED

    @property
    def help(self) -> str:
        """Return its meaning; empty where none is declared."""
        return next((extra.text for extra in self._extras if isinstance(extra, Help)), "")

    @property
    def within(self) -> Within | None:
        """The range of a number, if it has one."""
        return next((extra for extra in self._extras if isinstance(extra, Within)), None)

    @property
    def _extras(self) -> tuple[object, ...]:
        return tuple(extra for hint in (*options(self.hint), self.hint) for extra in metadata(hint))

    @property
    def type(self) -> Any:
        """The type without ranges, help and `None`."""
        return bare((*options(self.hint), self.hint)[0])

    @property
    def choices(self) -> tuple[object, ...]:
        """The values to choose from, where it is one of a few."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def allowed(self) -> str:
        """All that it may be, in words."""
        return in_words(self.hint)

    def to_json(self) -> JsonObject:
        """Return it as data for a form: its kind, the range or the choices, the default, the words."""
        kind = "choice" if self.choices else self.type.__name__ if self.type in WORDS else "text"
        within = self.within or Within()
        about = {"name": self.name, "kind": kind, "allowed": self.allowed, "help": self.help, "required": self.required}
        default = None if self.required else plain(self.default)
        return about | {"low": within.low, "high": within.high, "choices": list(self.choices), "default": default}


def described(kind: Any) -> tuple[Parameter, ...]:
    """Return the parameters of a dataclass, or the keyword-only ones of a function.

    >>> def build(spec: str, *, max_length: Annotated[int, Within(1), Help("longest input")] = 8) -> None: ...
    >>> [(p.name, p.allowed, p.default, p.help) for p in described(build)]
    [('max_length', 'a whole number of at least 1', 8, 'longest input')]
    """
    return _described(kind)


@cache
def _described(kind: Any) -> tuple[Parameter, ...]:
    hints = get_type_hints(kind, include_extras=True)
    if is_dataclass(kind):
        declared = [each for each in fields(kind) if each.init]
        usual = {each.name: each.default_factory for each in declared if each.default_factory is not MISSING}
        return tuple(
            Parameter(each.name, hints[each.name], usual[each.name]() if each.name in usual else each.default)
            for each in declared
        )
    signature = inspect.signature(kind).parameters.values()
    return tuple(
        Parameter(each.name, hints.get(each.name, Any), REQUIRED if each.default is each.empty else each.default)
        for each in signature
        if each.kind is each.KEYWORD_ONLY
    )


def in_words(hint: object) -> str:
    """Return what a value of a declared type may be.

    >>> in_words(Annotated[int | None, Within(0)]), in_words(tuple[Literal["a", "b"], ...])
    ('a whole number of at least 0 or none', 'a list, each entry one of a, b')
    """
    base = bare(hint)
    if choices := options(hint):
        none = ["none"] if len(choices) < len(get_args(base)) else []
        return " or ".join([*map(in_words, choices), *none])
    if get_origin(base) is Literal:
        return f"one of {', '.join(map(str, get_args(base)))}"
    ranges = "".join(f" {extra}" for extra in metadata(hint) if isinstance(extra, Within))
    if get_origin(base) in (tuple, Mapping):
        items = get_args(base)
        if get_origin(base) is tuple and items[-1] is not Ellipsis:
            return f"a list of {len(items)}: {', '.join(map(in_words, items))}"
        kind, entry = ("list", items[0]) if get_origin(base) is tuple else ("table", items[1])
        return f"a {kind}{ranges}, each entry {_table(entry) if is_dataclass(entry) else in_words(entry)}"
    return (WORDS.get(class_of(base)) or f"of type {class_of(base).__name__}") + ranges


def convert(
    hint: object, data: object, keys: Keys, faults: list[Fault], *, text: bool = False, find: Find | None = None
) -> Any:
    """Return the value of a declared type that data describe; what is wrong is appended to `faults`.

    JSON lists become tuples, objects dataclasses, whole numbers floats where those are declared. With `text` strings
    are read as what is declared: `3`, `yes`, `none`, `1,2,3`; `find` reads the file or name of anything else.
    """
    base, before = bare(hint), len(faults)
    if text and find and isinstance(data, str) and data != "none" and _named(hint):
        data = find(data)
    if get_origin(base) in (Union, UnionType):
        choices = options(hint)
        if len(choices) < len(get_args(base)) and (data is None or (text and data == "none")):
            return None
        if len(fitting := [option for option in choices if isinstance(data, container(option))]) == 1:
            return convert(fitting[0], data, keys, faults, text=text, find=find)
        for option in choices:
            trial: list[Fault] = []
            value = convert(option, data, keys, trial, text=text, find=find)
            if not trial:
                return value
    elif get_origin(base) is Literal:
        if value := [choice for choice in get_args(base) if data == choice or (text and data == str(choice))]:
            return value[0]
    elif get_origin(base) is tuple:
        parts = data.split(",") if text and isinstance(data, str) else data
        items = get_args(base)
        if isinstance(parts, list | tuple) and (
            _fits(hint, parts) if items[-1] is Ellipsis else len(parts) == len(items)
        ):
            kinds = items[:1] * len(parts) if items[-1] is Ellipsis else items
            pairs = enumerate(zip(kinds, parts, strict=True))
            return tuple(convert(k, p, (*keys, str(i)), faults, text=text, find=find) for i, (k, p) in pairs)
    elif get_origin(base) is Mapping:
        if isinstance(data, Mapping) and _fits(hint, data):
            return {key: convert(get_args(base)[1], part, (*keys, key), faults) for key, part in data.items()}
    elif is_dataclass(base) and isinstance(data, Mapping):
        values = read(described(class_of(base)), data, faults, keys, text=text, find=find)
        return class_of(base)(**values) if len(faults) == before else None
    else:
        value = _scalar(base, data, text)
        if value is not REQUIRED and _fits(hint, value):
            return value
    quotes = f'; write "{data}"' if base is str and isinstance(data, int | float) and not isinstance(data, bool) else ""
    word = data if text and isinstance(data, str) else shown(data)
    json_data = isinstance(data, str | Real | list | NoneType) and not text  # not a value of another class
    allowed = _table(base) if is_dataclass(base) and json_data else in_words(hint)
    faults.append((keys, f"must be {allowed}, not {word}{quotes}"))
    return None


def _table(kind: Any) -> str:
    return f"a table with {', '.join(each.name for each in fields(kind))}"


def _fits(hint: object, value: object) -> bool:
    """Return whether a number, or the length of a list or mapping, is in the declared range."""
    number = len(value) if isinstance(value, Sized) else value
    return all(number in extra for extra in metadata(hint) if isinstance(extra, Within))


def _scalar(base: object, data: Any, text: bool) -> Any:
    """The value of a simple type, or `REQUIRED` where the data do not describe one."""
    if base is bool and text and str(data).lower() in (*TRUE, *FALSE):
        return str(data).lower() in TRUE
    if base in (int, float):
        number = isinstance(data, Integral if base is int else Real) and not isinstance(data, bool)
        try:
            return base(data) if number or (text and isinstance(data, str)) else REQUIRED
        except (ValueError, OverflowError):
            return REQUIRED
    kind = class_of(base)
    return data if not isinstance(kind, type) or isinstance(data, kind) else REQUIRED


def read(
    parameters: Sequence[Parameter],
    given: JsonMapping,
    faults: list[Fault],
    keys: Keys = (),
    *,
    text: bool = False,
    find: Find | None = None,
) -> JsonObject:
    """Return the values of those parameters that are given; all that is unknown, missing or wrong goes to `faults`."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            faults.append(((*keys, name), f"is not a parameter; there are: {', '.join(known) or 'none'}"))
    for parameter in parameters:
        if parameter.required and parameter.name not in given:
            about = f"{parameter.help}, {parameter.allowed}" if parameter.help else parameter.allowed
            faults.append(((*keys, parameter.name), f"is missing: {about}"))
    values = {}
    for name in [name for name in given if name in known]:
        problems: list[Fault] = []
        values[name] = convert(known[name].hint, given[name], (*keys, name), problems, text=text, find=find)
        meaning = f"({known[name].help}) " if known[name].help else ""
        faults += [(place, f"{meaning}{message}") for place, message in problems]
    return values


def sentences(faults: Iterable[Fault]) -> list[str]:
    """Return faults as sentences that begin with the name of the parameter."""
    return [" ".join([*([".".join(keys)] if keys else []), message]) for keys, message in faults]


def arguments(function: Any, given: JsonMapping, what: str, *, find: Find | None = None) -> JsonObject:
    """Return the keyword arguments of a function or a dataclass, from strings or values; all problems at once."""
    faults: list[Fault] = []
    values = read(described(function), given, faults, text=True, find=find)
    if faults:
        raise InputError(f"{what}: " + "; ".join(sentences(faults)))
    return values


def key_values(words: Iterable[str], faults: list[Fault] | None = None) -> dict[str, str]:
    """Return the parameters that words `key=value` give; what is wrong is appended to `faults`, or else raised."""
    values: dict[str, str] = {}
    problems: list[Fault] = []
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            problems.append(((), f"a parameter is given as key=value, not {word!r}"))
        elif key in values:
            problems.append(((key,), "is given twice"))
        else:
            values[key] = text
    if problems and faults is None:
        raise InputError("; ".join(sentences(problems)))
    if faults is not None:
        faults.extend(problems)
    return values


@dataclass(frozen=True)
class Parameterized:
    """A value whose fields are its parameters; it checks itself when it is made.

    Fields named in `TRACED` may be JAX values, so that members of one compiled program can differ in them: while any is
    one, it and the rules between fields are not checked.
    """

    TRACED: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        faults = self.faults()
        if faults:
            raise self.refusal(faults)

    @classmethod
    def refusal(cls, faults: Sequence[Fault]) -> VitrifyError:
        """Return the error that tells all faults at once."""
        return InputError(f"no such {cls.__module__.rsplit('.', 1)[-1]}: " + "; ".join(sentences(faults)))

    def conflicts(self) -> Iterator[tuple[str, str]]:
        """Return what is wrong between fields that are right each by itself: the field to change, and "must be …".

        The field may be empty where the sentence speaks of several.
        """
        return iter(())

    def faults(self) -> list[Fault]:
        """Return every broken rule of single fields, and if there is none, of fields together."""
        faults: list[Fault] = []
        traced = False
        for parameter in described(type(self)):
            value = getattr(self, parameter.name)
            if parameter.name in self.TRACED and hasattr(value, "dtype"):
                traced = True
            else:
                convert(parameter.hint, value, (parameter.name,), faults)
        if not faults and not traced:
            faults = [((key,) if key else (), message) for key, message in self.conflicts()]
        return faults

    def identity(self) -> JsonObject:
        """Return the parameters as plain JSON data, for run identifiers; specs are named by their content."""
        return {entry.name: plain(getattr(self, entry.name)) for entry in named_fields(self)}


def later(default: Any) -> Any:
    """Declare a parameter that was added after results were recorded; these count as runs with its default."""
    return field(default=default, metadata={"later": True})


def plain(value: object) -> Json:
    """Return a parameter as JSON data: numbers, strings and lists as they are, everything else by its digest."""
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "__array__"):
        import numpy as np

        return encoded(np.asarray(value))
    return f"{recorded_name(value)}:{hashlib.sha256(content(value).encode()).hexdigest()[:16]}"


def shown(value: object) -> str:
    """Return a value as it is quoted in a message."""
    try:
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    except (TypeError, ValueError):
        return f"a value of type {type(value).__name__}"


def _named(hint: object) -> bool:
    """Return whether a value is of a class of this package, so that text is its file or name."""
    kinds = (class_of(bare(each)) for each in options(hint) or (hint,))
    return all(isinstance(kind, type) and kind not in (*WORDS, tuple) for kind in kinds)
