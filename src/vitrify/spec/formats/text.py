"""Reading text files line by line, and raising all problems of a file as one SpecError."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from vitrify.errors import Problem, SpecError
from vitrify.parameters import shown

__all__ = ["Problem", "SpecError", "in_file", "lines_in", "lines_of", "refuse_any", "refuse_suffix", "text_of"]


def refuse_suffix(path: Path, *allowed: str) -> SpecError:
    """Return the error for a file whose name has no suffix of a known format."""
    return SpecError([Problem(f"the file name must end in {' or '.join(allowed)}", str(path))])


def text_of(path: str | Path, *suffixes: str) -> str:
    """Return the text of a UTF-8 file with `\\n` line ends; its name must end in one of the suffixes, if any."""
    path = Path(path)
    if suffixes and not path.name.endswith(suffixes):
        raise refuse_suffix(path, *suffixes)
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise SpecError([Problem(f"the file can't be read: {error.strerror}", str(path))]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        raise SpecError([Problem(f"the file must be UTF-8; byte 0x{byte:02x} is not", str(path), line)]) from None


def lines_of(path: str | Path, *suffixes: str) -> list[tuple[int, str]]:
    """Return the stripped lines of a file with their numbers, without empty lines and comment lines (#)."""
    return lines_in(text_of(path, *suffixes))


def lines_in(text: str, comment: str = "#") -> list[tuple[int, str]]:
    """Return the stripped lines of a text with their numbers, without empty lines and comment lines."""
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
    return [(number, line) for number, line in lines if line and not line.startswith(comment)]


def is_half(text: str) -> bool:
    """Return True if a text contains half of a surrogate pair, which UTF-8 can't encode."""
    return any("\ud800" <= character <= "\udfff" for character in text)


@contextmanager
def in_file(file: str | None) -> Iterator[None]:
    """Add the file name to the problems of every SpecError that is raised inside."""
    try:
        yield
    except SpecError as error:
        raise SpecError([replace(problem, file=problem.file or file) for problem in error.problems]) from None


def refuse_any(problems: Iterable[Problem | str]) -> None:
    """Raise a SpecError with all problems, if any, in the order of their lines, those without a line first."""
    listed = sorted(SpecError(problems).problems, key=lambda problem: problem.line or 0)
    if listed:
        raise SpecError(listed)


def at_most(name: str, value: int, maximum: int) -> None:
    """Raise a SpecError if a size is above its maximum, before anything of that size is made."""
    if value > maximum:
        raise SpecError([f"{name} must be at most {maximum:,}, got {shown(value)}"])


def at_least(name: str, value: int, minimum: int) -> None:
    """Raise a SpecError if a size is below its minimum."""
    if value < minimum:
        raise SpecError([f"{name} must be at least {minimum}, got {value}"])
