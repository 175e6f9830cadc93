"""Specs in texts that begin with lines such as `alphabet: a b` and `length: 20`: how they are read and written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Self, TypeVar

from vitrify.errors import Problem
from vitrify.spec.display import Displayed
from vitrify.spec.files import refuse_suffix, text_of

LONGEST = 65_535  # of words: one more is a number of positions, and expressions have at most 65,536 values
Choice = TypeVar("Choice")


class Headed(Displayed, ABC):
    """A spec that is read from a text and written as one."""

    suffix: ClassVar[str]
    name: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """The spec in a file."""
        if not path.name.endswith(cls.suffix):
            raise refuse_suffix(path, cls.suffix)
        return cls._parsed(text_of(path), str(path), path.name.removesuffix(cls.suffix))

    @classmethod
    def from_text(cls, text: str, name: str | None = None) -> Self:
        """The spec that a text describes."""
        return cls._parsed(text, None, cls.name if name is None else name)

    def write(self, path: Path) -> None:
        """Write a file that reads back as this value."""
        path.write_text(self.to_text(), encoding="utf-8")

    @classmethod
    @abstractmethod
    def _parsed(cls, text: str, file: str | None, name: str) -> Self:
        """The spec that a text describes, or all its problems."""

    @abstractmethod
    def to_text(self) -> str:
        """The spec as a text."""


class Header:
    """The lines `key: value` among numbered lines, and the other lines; problems are added to those known."""

    def __init__(
        self, lines: Iterable[tuple[int, str]], keys: tuple[str, ...], file: str | None, problems: list[Problem]
    ) -> None:
        self.file, self.problems = file, problems
        self.said: dict[str, tuple[int, str]] = {}
        self.others: list[tuple[int, str]] = []
        for number, line in lines:
            key, colon, rest = (part.strip() for part in line.partition(":"))
            if not colon or key not in keys or rest.startswith("="):  # := gives a name
                self.others.append((number, line))
                continue
            if key in self.said:
                problems.append(Problem(f"the line '{key}: …' stands twice", file, number))
            self.said[key] = number, rest
        problems += [Problem(f"the line '{key}: …' is missing", file) for key in keys if key not in self.said]

    def _tell(self, key: str, message: str) -> None:
        self.problems.append(Problem(message, self.file, self.said[key][0]))

    def alphabet(self, *, quoted: bool = False) -> tuple[str, ...]:
        """The symbols of the line `alphabet: …`; they may be `quoted` in what follows."""
        symbols = tuple(self.said.get("alphabet", (0, ""))[1].split())
        if "alphabet" in self.said:
            twice = [symbol for symbol in dict.fromkeys(symbols) if symbols.count(symbol) > 1]
            if twice or not symbols:
                self._tell("alphabet", f"the alphabet has {', '.join(twice) + ' twice' if twice else 'no symbol'}")
            if quoted and any('"' in symbol for symbol in symbols):
                self._tell("alphabet", "symbols can't have double quotes in them")
        return tuple(dict.fromkeys(symbols))

    def number(self, key: str = "length", most: int = LONGEST) -> int:
        """The number, from 1, of a line such as `length: …`; 1 where there is none."""
        text = self.said.get(key, (0, "1"))[1]
        if text.isdecimal() and text.isascii() and len(text) < 12 and 1 <= int(text) <= most:
            return int(text)
        self._tell(key, f"the {key} must be a whole number from 1 to {most:,}, is {text!r}")
        return 1

    def choice(self, key: str, choices: Mapping[str, Choice]) -> Choice:
        """What the value of a line stands for; the first choice where there is none."""
        text = self.said.get(key, (0, next(iter(choices))))[1]
        if text not in choices:
            self._tell(key, f"'{key}' is {' or '.join(map(repr, choices))}, not {text!r}")
        return choices.get(text, next(iter(choices.values())))
