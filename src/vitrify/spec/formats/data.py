"""TOML and JSON files read into dataclasses, with the line number of every key for error messages.

The schema of a file is a dataclass (see `parameters.py`): types and ranges of the fields are checked here, so that the
reader of a format checks only what involves several fields.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from vitrify.encoding import JsonObject
from vitrify.parameters import Fault, Keys, convert, described, read, sentences
from vitrify.spec.formats.text import Problem, SpecError, refuse_any, text_of

TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|\#[^\n]*|[\[\]{}=,\n]|[^\[\]{}=,\n"\'#]+',
    re.DOTALL,
)
Tokens = Iterable[tuple[int, str]]  # (line number, token)
Schema = TypeVar("Schema")


@dataclass(frozen=True)
class DataFile:
    """A parsed file; the lines of its keys are computed when the first problem is reported."""

    path: Path
    text: str
    data: JsonObject  # a JSON file may contain another value: `read` and `parts` refuse it

    @cached_property
    def lines(self) -> dict[Keys, int]:
        """The line number of every table, key and list entry."""
        table: dict[Keys, int] = {}
        for keys, line in _json_lines(self.text) if self.path.suffix == ".json" else _toml_lines(self.text):
            for end in range(1, len(keys) + 1):
                table.setdefault(keys[:end], line)
        return table

    def problem(self, keys: Keys, message: str) -> Problem:
        """Return a problem with the value of a key, located at its line or at that of the nearest value around it."""
        known = next((keys[:n] for n in range(len(keys), 0, -1) if keys[:n] in self.lines), None)
        return Problem(message, str(self.path), self.lines[known] if known else None)

    def problems(self, faults: Iterable[Fault]) -> list[Problem]:
        """Return faults as problems of this file."""
        return [self.problem(keys, *sentences([(keys or ("the file",), message)])) for keys, message in faults]

    def parts(self, schema: type) -> tuple[JsonObject, list[Problem]]:
        """Return the valid values by field name, and the problems with all others."""
        if not isinstance(self.data, dict):
            self.read(schema)
        faults: list[Fault] = []
        values = read(described(schema), self.data, faults)
        invalid = {keys[0] for keys, _ in faults}
        return {key: value for key, value in values.items() if key not in invalid}, self.problems(faults)

    def read(self, schema: type[Schema]) -> Schema:
        """Return the file as a value of a dataclass; a SpecError lists all problems."""
        faults: list[Fault] = []
        value: Schema = convert(schema, self.data, (), faults)
        refuse_any(self.problems(faults))
        return value


def read_data(path: Path, *suffixes: str) -> DataFile:
    """Parse a TOML or JSON file; its name must end in one of the suffixes, if any."""
    text = text_of(path, *suffixes)
    return DataFile(path, text, _parse_json(text, str(path)) if path.suffix == ".json" else _parse_toml(text, path))


def json_object(values: Mapping[str, object], *listed: str) -> str:
    """Return the text of a JSON object, one line per value; values of `listed` keys get one line per entry."""
    parts = []
    for key, value in values.items():
        text = json_text(value)
        if key in listed and isinstance(value, Mapping):
            text = f"{{{_rows(f'{json_text(name)}: {json_text(entry)}' for name, entry in value.items())}}}"
        elif key in listed and isinstance(value, Sequence):
            text = f"[{_rows(map(json_text, value))}]"
        parts.append(f'  "{key}": {text}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def json_text(value: object) -> str:
    """Return a value as JSON on one line; for printable strings, integers and lists this is valid TOML, too."""
    return json.dumps(value, ensure_ascii=False)


def _rows(lines: Iterable[str]) -> str:
    return "\n" + ",\n".join(f"    {line}" for line in lines) + "\n  "


def _parse_toml(text: str, path: Path) -> JsonObject:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        message, line = match.groups() if match else (str(error), None)
        last = text.count("\n") + 1
        raise SpecError([Problem(f"the file must be TOML: {message}", str(path), int(line or last))]) from None
    except (RecursionError, ValueError) as error:  # nested thousands deep, or a number of thousands of digits
        raise SpecError([Problem(f"the file must be TOML of a sane size: {_too_large(error)}", str(path))]) from None


def _parse_json(text: str, file: str) -> JsonObject:
    repeated = False

    def table(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal repeated
        repeated |= len(dict(pairs)) < len(pairs)
        return dict(pairs)

    try:
        data: JsonObject = json.loads(text, object_pairs_hook=table)
    except json.JSONDecodeError as error:
        message = f"the file must be JSON: {error.msg[0].lower()}{error.msg[1:]} at column {error.colno}"
        raise SpecError([Problem(message, file, error.lineno)]) from None
    except (RecursionError, ValueError) as error:  # nested thousands deep, or a number of thousands of digits
        raise SpecError([Problem(f"the file must be JSON of a sane size: {_too_large(error)}", file)]) from None
    if repeated:
        refuse_any(_repeated(text, file))
    return data


def _too_large(error: Exception) -> str:
    """Return what is too large in a file that Python's readers give up on."""
    nested = "brackets or operators are nested too deep"
    return nested if isinstance(error, RecursionError) else f"some number has too many digits: {error}"


def _repeated(text: str, file: str) -> Iterator[Problem]:
    """Yield a problem for every key that a JSON object has more than once."""
    seen: set[Keys] = set()
    again: set[Keys] = set()
    for keys, line in _json_lines(text):
        if keys in seen and keys[:-1] not in again:
            yield Problem(f"{'.'.join(keys)} is given twice; keep one", file, line)
        (again if keys in seen else seen).add(keys)


def _json_lines(text: str) -> Iterator[tuple[Keys, int]]:
    """Yield every key and list entry of a valid JSON text with its line."""
    return _entries((), _tokens(text), named=True)


def _toml_lines(text: str) -> Iterator[tuple[Keys, int]]:
    """Yield every table, key and list entry of a valid TOML text with its line."""
    table: Keys = ()
    for statement in _statements(text):
        (line, first), tokens = statement[0], [token for _, token in statement]
        if first == "[":
            table = _path("".join(tokens))
            yield table, line
        else:
            equals = tokens.index("=")
            keys = (*table, *_path(f"{''.join(tokens[:equals])} = 0"))
            yield keys, line
            yield from _entries(keys, statement[equals + 1 :])


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    line = 1
    for token in TOKEN.findall(text):
        if not token.startswith("#"):
            yield line, token
        line += token.count("\n")


def _statements(text: str) -> Iterator[list[tuple[int, str]]]:
    """Yield the tokens of each TOML statement, without comments."""
    depth = 0
    tokens: list[tuple[int, str]] = []
    for line, token in (*_tokens(text), (0, "\n")):
        if token == "\n" and depth == 0:
            if tokens:
                yield tokens
            tokens = []
        elif tokens or token.strip():
            tokens.append((line, token))
            depth += (token in "[{") - (token in "]}")


def _entries(keys: Keys, tokens: Tokens, *, named: bool = False) -> Iterator[tuple[Keys, int]]:
    """Yield every entry of nested lists with its line; if `named`, also the entries of JSON objects."""
    path = list(keys)
    brackets: list[str] = []
    begins = False  # whether the next token begins an entry
    for line, token in tokens:
        if not token.strip():
            continue
        if begins and token not in "]}":
            begins = False
            if brackets[-1] == "[":
                path[-1] = str(int(path[-1]) + 1)
            elif named:
                path[-1] = json.loads(token)
            if brackets[-1] == "[" or named:
                yield tuple(path), line
        if token in "[{":
            brackets.append(token)
            path.append("-1")
        elif token in "]}":
            brackets.pop()
            path.pop()
        begins = bool(brackets) and token in "[{,"


def _path(statement: str) -> Keys:
    """Return the keys of one statement, parsed by the TOML reader itself."""
    value: object = tomllib.loads(statement)
    keys: list[str] = []
    while isinstance(value, dict) and value:
        (key,) = value
        keys.append(key)
        value = value[key]
        value = value[0] if isinstance(value, list) else value
    return tuple(keys)
