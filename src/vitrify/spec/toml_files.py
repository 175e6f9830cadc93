"""TOML files whose problems have line numbers: the values, and the line on which each key stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrify.errors import Problem, SpecError
from vitrify.spec.files import text_of

Keys = tuple[str, ...]  # the way to a value: table, table in it, …, key

TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|\#[^\n]*|[\[\]{}=\n]|[^\[\]{}=\n"\'#]+',
    re.DOTALL,
)


@dataclass(frozen=True)
class TomlFile:
    """A parsed file and where its keys stand."""

    path: Path
    data: dict[str, Any]
    lines: dict[Keys, int]

    def problem(self, keys: Keys, message: str) -> Problem:
        """A problem with the value of a key, on the line of the key or else of the nearest table around it."""
        known = next((keys[:n] for n in range(len(keys), 0, -1) if keys[:n] in self.lines), None)
        return Problem(message, str(self.path), self.lines[known] if known else None)


def read_toml(path: Path) -> TomlFile:
    """Read a TOML file; text that is none is refused with its line."""
    text = text_of(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        message, line = found.groups() if found else (str(error), None)
        last = text.count("\n") + 1
        raise SpecError([Problem(f"the file must be TOML: {message}", str(path), int(line or last))]) from None
    return TomlFile(path, data, dict(_lines(text)))


def _lines(text: str) -> Iterator[tuple[Keys, int]]:
    """Every table and key with its line; the text is known to be TOML."""
    table: Keys = ()
    for line, statement in _statements(text):
        if statement[0] == "[":
            table = _path("".join(statement))
            yield table, line
        else:
            key = "".join(statement[: statement.index("=")])
            yield (*table, *_path(f"{key} = 0")), line


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """The tokens of each statement, comments left out, and the line on which it begins."""
    line, depth, start = 1, 0, 1
    tokens: list[str] = []
    for token in TOKEN.findall(text):
        if token == "\n" and depth == 0:
            if tokens:
                yield start, tokens
            tokens = []
        elif not token.startswith("#") and (tokens or token.strip()):
            start = start if tokens else line
            tokens.append(token)
            depth += (token in "[{") - (token in "]}")
        line += token.count("\n")
    if tokens:
        yield start, tokens


def _path(statement: str) -> Keys:
    """The keys of one statement, read by the TOML reader itself."""
    value: Any = tomllib.loads(statement)
    keys: list[str] = []
    while isinstance(value, dict) and value:
        (key,) = value
        keys.append(key)
        value = value[key]
        value = value[0] if isinstance(value, list) else value
    return tuple(keys)
