"""The base class of all specs, and the registry of spec kinds: each is one module with a class and a declaration.

    KIND = Kind(Dyck, {".dyck": "well-nested brackets of bounded depth"})

The declaration is found by scanning the source of every module in `vitrify.spec`, and in `mine.spec` of a plugin
`mine` (see `registry.py`). The module is imported when a spec of its kind is read. The class implements the rest: how
its files are read and written, small samples, and the outputs expected of a network built from a spec. Nothing else has
to be edited for a new kind: commands, the app, certificates and contract tests use the declaration.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias

from vitrify.errors import InputError
from vitrify.files import write_text
from vitrify.registry import declared

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np

PACKAGE = "vitrify.spec"
ANSWERS = ("no", "yes")  # is the word in the language?
MAX_LINES, MAX_COLUMNS = 12, 160  # of a file shown in a notebook
Answer: TypeAlias = "str | frozenset[str] | Mapping[str, float | Fraction] | tuple[float, ...] | None"


class Language(Protocol):
    """The words that a network is tested on, if not every sequence of input symbols is valid."""

    def prefixes(self, longest: int | None = None, /) -> Iterator[tuple[str, ...]]:
        """Yield every prefix of a word once, shorter ones first, up to a length."""

    def examples(self) -> Iterator[Iterable[str]]:
        """Yield words that together use every listed part of the spec."""

    def draw(self, rng: np.random.Generator, /) -> Iterable[str]:
        """Return a random word; it may be infinite."""


class PrefixStates(NamedTuple):
    """States of a spec: words that lead to equal states have equal answers, now and after every continuation.

    `step` returns the state after one more symbol, or None if the word then is no prefix of the language.
    """

    start: Hashable
    step: Callable[[Any, str], Hashable | None]


@dataclass(frozen=True)
class Meaning:
    """The reference semantics of a spec: the answer expected of a network after every prefix of a word.

    - `answer`: the type of the answers: a symbol, the set of possible next symbols, their distribution, or numbers.
    - `inputs`: the symbols of the words.
    - `outputs`: the symbols that answers consist of, or the names of the numbers.
    - `after`: maps a word of length $T$ to its $T + 1$ answers, None where no answer is expected.
    - `language`: the words to test; None if every sequence of `inputs` is one.
    - `accepting`: the answers that accept a word.
    - `states`: states that determine all later answers, from which equivalence is decided; None if there are none.
    - `longest`: the length of the longest word of `language`; None if there is none, or no word is longer than networks
      read.
    """

    answer: Literal["symbol", "set", "distribution", "number"]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    after: Callable[[Sequence[str]], Sequence[Answer]]
    language: Language | None = None
    accepting: tuple[str, ...] = ()
    states: PrefixStates | None = None
    longest: int | None = None


def at_every_prefix(answer: Callable[[Sequence[str]], Answer]) -> Callable[[Sequence[str]], list[Answer]]:
    """Return the function that lists the answers after all prefixes of a word."""
    return lambda word: [answer(word[:end]) for end in range(len(word) + 1)]


def prefixes_by_length(
    following: Callable[[tuple[str, ...]], Iterable[str]], longest: int | None = None
) -> Iterator[tuple[str, ...]]:
    """Yield every prefix of a sentence once, shorter ones first, up to the length `longest`.

    `following` returns the words that may come after a prefix, in the order in which they are tried.

    >>> list(prefixes_by_length(lambda words: ["a", "b"] if len(words) < 1 else []))
    [(), ('a',), ('b',)]
    """
    yield ()
    level: list[tuple[str, ...]] = [()]
    while level and (longest is None or len(level[0]) < longest):
        longer: list[tuple[str, ...]] = []
        for words in level:
            for word in following(words):
                longer.append((*words, word))
                yield longer[-1]
        level = longer


class Spec(ABC):
    """A specification: a mathematical object with reference semantics, read from a file and written to one.

    `SIZES` names the attributes whose sizes a notebook shows, by default all fields.
    """

    SIZES: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:

        @property
        def suffix(self) -> str:
            """The end of the names of its files."""

    @classmethod
    @abstractmethod
    def read(cls, path: str | Path) -> Self:
        """Return the spec in a file; a SpecError lists everything that is wrong with the file."""

    @abstractmethod
    def to_text(self) -> str:
        """Return the text of a file that reads back as this value."""

    def write(self, path: str | Path) -> None:
        """Write a file that reads back as this value; its name must end in the spec's suffix."""
        from vitrify.spec.formats.text import refuse_suffix

        if not Path(path).name.endswith(self.suffix):
            raise refuse_suffix(Path(path), self.suffix)
        write_text(path, self.to_text())

    def first_lines(self) -> str:
        """Return the beginning of the spec's file."""
        lines = self.to_text().splitlines()
        shown = [line if len(line) <= MAX_COLUMNS else f"{line[:MAX_COLUMNS]}…" for line in lines[:MAX_LINES]]
        return "\n".join([*shown, "…"] if len(lines) > MAX_LINES else shown)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: kind, sizes and the first lines of the file."""
        from vitrify.markup import card, folded, tag, verbatim

        name = getattr(self, "name", "")
        title = f"{type(self).__name__}: {suffixes()[self.suffix].description}" + (f", {name}" if name else "")
        sizes = "; ".join(f"{quantity} {size}" for quantity, size in self._sizes())
        return card(
            title, tag("div", sizes, class_="said"), folded("as a file", verbatim(self.first_lines()), unfolded=True)
        )

    def _sizes(self) -> Iterator[tuple[str, str]]:
        """Yield the name of every field with its value, if this is a number or a string, or else its length."""
        from vitrify.markup import text

        named = [each.name for each in fields(self) if each.repr and each.name != "name"]  # type: ignore[arg-type]
        for name in self.SIZES or named:
            value = getattr(self, name)
            if isinstance(value, bool | int | float | str):
                yield name, text(value)
            elif isinstance(value, Sized):
                yield name, f"{len(value):,}"

    @classmethod
    @abstractmethod
    def samples(cls) -> Mapping[str, Spec]:
        """Return a few small specs by name: contract tests build, run and certify networks of all of them."""

    def meanings(self) -> Mapping[str, Meaning]:
        """Return the answers expected of a network that reads symbols, by the kind of its output (`Output.kind`)."""
        return {}

    def meaning(self, kind: str, inputs: Sequence[str]) -> Meaning | None:  # noqa: ARG002
        """Return the answers expected of a network with an output of some kind that reads some symbols."""
        return self.meanings().get(kind)


@dataclass(frozen=True)
class Kind:
    """The declaration of a kind of spec: its class, and a description of its files by their suffix.

    It is parsed from the source text: the class must be a plain name, and the suffixes a literal.
    """

    spec: type[Spec]
    suffixes: Mapping[str, str]


class Suffix(NamedTuple):
    """A suffix of spec files: a description of such files, and the class that reads them."""

    description: str
    module: str
    name: str


@cache
def suffixes() -> dict[str, Suffix]:
    """Return all suffixes of spec files, without importing the kinds."""
    table: dict[str, Suffix] = {}
    for declaration in declared(PACKAGE, "KIND = "):
        module = declaration.module
        match declaration.node:
            case ast.Assign(value=ast.Call(args=[ast.Name(id=name), ast.Dict() as listed])):
                entries = ast.literal_eval(listed)
            case _:
                raise InputError(f'{module}: write KIND = Kind(Class, {{".suffix": "description"}}), with literals')
        for suffix, description in entries.items():
            if suffix in table:
                raise InputError(f"{module} and {table[suffix].module} both read {suffix} files: choose another suffix")
            table[suffix] = Suffix(description, module, name)
    return table


def suffix_of(name: str) -> str | None:
    """Return the longest known suffix that a file name ends in, or None."""
    return max((suffix for suffix in suffixes() if name.endswith(suffix)), key=len, default=None)


def kinds() -> tuple[Kind, ...]:
    """Import and return all kinds of specs."""
    return tuple(import_module(module).KIND for module in dict.fromkeys(s.module for s in suffixes().values()))
