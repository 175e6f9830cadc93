"""The border of every spec that is read from a text file: the text, its lines, and all problems told at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from vitrify.errors import Problem, SpecError


def refuse_suffix(path: Path, *allowed: str) -> SpecError:
    """The error for a file name that says nothing about its format."""
    return SpecError([Problem(f"the file name must end in {' or '.join(allowed)}", str(path))])


def text_of(path: Path) -> str:
    """The text of a UTF-8 file, lines ending in a newline."""
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise SpecError([Problem(f"the file can't be read: {error.strerror}", str(path))]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        raise SpecError([Problem(f"the file must be UTF-8; byte 0x{byte:02x} is not", str(path), line)]) from None


def lines_of(path: Path) -> list[tuple[int, str]]:
    """The lines of a file that say something, numbered and without outer blanks; # begins a comment line."""
    return lines_in(text_of(path))


def lines_in(text: str, comment: str = "#") -> list[tuple[int, str]]:
    """The lines of a text that say something, numbered and without outer blanks."""
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
    return [(number, line) for number, line in lines if line and not line.startswith(comment)]


@contextmanager
def in_file(file: str | None) -> Iterator[None]:
    """Problems that are found here are those of a file."""
    try:
        yield
    except SpecError as error:
        raise SpecError([replace(problem, file=problem.file or file) for problem in error.problems]) from None


def refuse_any(problems: Iterable[Problem]) -> None:
    """Refuse a file that has problems, with all of them from its top to its end; those of the whole file come first."""
    found = sorted(problems, key=lambda problem: problem.line or 0)
    if found:
        raise SpecError(found)


class Pairs(dict[str, object]):
    """A JSON object that remembers the keys it was given more than once."""

    def __init__(self, pairs: Sequence[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.repeated = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]


def parse_json(text: str, file: str) -> object:
    """The value that a JSON text describes; its objects are `Pairs`."""
    try:
        parsed: object = json.loads(text, object_pairs_hook=Pairs)
    except json.JSONDecodeError as error:
        message = f"the file must be JSON: {error.msg[0].lower()}{error.msg[1:]} at column {error.colno}"
        raise SpecError([Problem(message, file, error.lineno)]) from None
    except (RecursionError, ValueError) as error:  # nested thousands deep, or a number of thousands of digits
        raise SpecError([Problem(f"the file must be JSON of a sane size: {error}", file)]) from None
    return parsed


def kind_of(value: object) -> str:
    """What a JSON value is, in the words of a complaint."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{'the number ' if number else ''}{json.dumps(value, ensure_ascii=False)}"
