"""Reader for spec files that have header lines such as `alphabet: a b` and `length: 20`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Self, TypeVar

from vitrify.spec.formats.text import Problem, text_of
from vitrify.spec.kinds import Spec

MAX_WORD_LENGTH = 65_535  # a net has one position more, and expressions have at most 65,536 values
Choice = TypeVar("Choice")


class Headed(Spec):
    """A spec with header lines, read from a file or a string."""

    suffix: ClassVar[str]
    name: str

    @classmethod
    def read(cls, path: str | Path) -> Self:
        return cls._parsed(text_of(path, cls.suffix), str(path), Path(path).name.removesuffix(cls.suffix))

    @classmethod
    def from_text(cls, text: str, name: str | None = None) -> Self:
        """Return the spec that a text describes; a SpecError lists all its problems."""
        return cls._parsed(text, None, cls.name if name is None else name)

    @classmethod
    @abstractmethod
    def _parsed(cls, text: str, file: str | None, name: str) -> Self:
        """Return the spec that a text describes; problems are located in `file`, if the text came from one."""


class Header:
    """The `key: value` lines of a file as `entries`, all other lines as `others`; problems are appended to `problems`.

    Lines are given with their numbers. Each of the `keys` must have a line; `optional` keys may have one.
    """

    def __init__(
        self,
        lines: Iterable[tuple[int, str]],
        keys: tuple[str, ...],
        file: str | None,
        problems: list[Problem] | None = None,
        optional: tuple[str, ...] = (),
    ) -> None:
        self.file, self.problems = file, [] if problems is None else problems
        self.entries: dict[str, tuple[int, str]] = {}  # key -> (line number, value)
        self.others: list[tuple[int, str]] = []
        for number, line in lines:
            key, colon, value = (part.strip() for part in line.partition(":"))
            if not colon or key not in (*keys, *optional) or value.startswith("="):  # `name := …` is a definition
                self.others.append((number, line))
                continue
            if key in self.entries:
                message = f"the line '{key}: …' occurs twice, first on line {self.entries[key][0]}: keep one"
                self.problems.append(Problem(message, file, number))
            self.entries.setdefault(key, (number, value))
        self.problems += [Problem(f"the line '{key}: …' is missing", file) for key in keys if key not in self.entries]

    def report(self, key: str, messages: Iterable[str]) -> None:
        """Append problems with the line of a key; without such a line, do nothing: its absence is reported already."""
        if key in self.entries:
            self.problems += [Problem(message, self.file, self.entries[key][0]) for message in messages]

    def refuse_others(self, message: str) -> None:
        """Append a problem for every line that is no `key: value` line."""
        self.problems += [Problem(message, self.file, number) for number, _ in self.others]

    def words(self, key: str) -> tuple[str, ...]:
        """Return the words of a line; none if there is no such line."""
        return tuple(self.entries.get(key, (0, ""))[1].split())

    def alphabet(self, *, quoted: bool = False) -> tuple[str, ...]:
        """Return the symbols of the line `alphabet: …`; where the file quotes symbols, they may contain no quotes."""
        symbols = self.words("alphabet")
        repeated = [symbol for symbol in dict.fromkeys(symbols) if symbols.count(symbol) > 1]
        if repeated or not symbols:
            self.report("alphabet", [f"the alphabet has {', '.join(repeated) + ' twice' if repeated else 'no symbol'}"])
        if quoted and any('"' in symbol for symbol in symbols):
            self.report("alphabet", ["symbols can't have double quotes in them"])
        return tuple(dict.fromkeys(symbols))

    def number(self, key: str = "length", maximum: int = MAX_WORD_LENGTH, minimum: int = 1) -> int:
        """Return the number of a line such as `length: …`; the minimum if there is no such line or it is wrong."""
        text = self.entries.get(key, (0, str(minimum)))[1]
        if text.isdecimal() and text.isascii() and len(text) < 12 and minimum <= int(text) <= maximum:
            return int(text)
        self.report(key, [f"the {key} must be a whole number from {minimum} to {maximum:,}, is {text!r}"])
        return minimum

    def choice(self, key: str, choices: Mapping[str, Choice]) -> Choice:
        """Return the choice that the value of a line names; the first one if there is no such line or it is wrong."""
        text = self.entries.get(key, (0, next(iter(choices))))[1]
        if text not in choices:
            self.report(key, [f"'{key}' is {' or '.join(map(repr, choices))}, not {text!r}"])
        return choices.get(text, next(iter(choices.values())))
