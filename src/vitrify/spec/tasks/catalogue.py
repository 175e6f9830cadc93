r"""What a task is: words, a question at some of their positions, and the right answers; `.task.toml` files.

    task = "k-hop"          # which one; the other keys are its own
    hops = 3
    symbols = 8
    length = 64

A task is a frozen dataclass in a file of its own beside this one, found by its name (`k-hop` is in `k_hop.py`). Its
fields are the keys of its files; `Within` says which numbers a field may hold, `conflicts` what must hold between
several. Everything else is said once, here: reading, writing, and all problems at once with their lines.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import product
from math import isfinite
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, get_args, get_type_hints

import numpy as np

from vitrify.errors import SpecError
from vitrify.registry import load, names
from vitrify.spec.display import Displayed
from vitrify.spec.files import refuse_any, refuse_suffix
from vitrify.spec.toml_files import Keys, read_toml

PACKAGE = "vitrify.spec.tasks"
MANY = 100_000  # symbols or positions, at most: more than a word of them can be run with
NONE = "(none)"  # the answer where a task says that there is nothing to be found
Answer: TypeAlias = str | tuple[float, ...] | None
Word: TypeAlias = Sequence[str]
Found: TypeAlias = Iterator[tuple[Keys, str]]


@dataclass(frozen=True)
class Within:
    """Which numbers a field may hold: `hops: Annotated[int, Within(1, 64)]`."""

    low: float
    high: float | None = None

    def __str__(self) -> str:
        return f"from {self.low}" + (f" to {self.high}" if self.high is not None else "")

    def allows(self, number: float) -> bool:
        """Whether a number is finite and in the range."""
        return isfinite(number) and self.low <= number and (self.high is None or number <= self.high)


@dataclass(frozen=True)
class Task(Displayed, ABC):
    """Words over an alphabet, and the right answers at their positions.

    `numeric` says that answers are vectors of numbers, named by `outputs`; else they are symbols, among `outputs`.
    `free` says that every word to the length is well formed; else `words` and `draw` say which are.
    """

    name: ClassVar[str]
    suffix: ClassVar[str] = ".task.toml"
    numeric: ClassVar[bool] = False
    free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        problems = [message for _, message in type(self).problems(given)]
        if problems:
            raise SpecError(problems)

    # What it asks

    @property
    @abstractmethod
    def alphabet(self) -> tuple[str, ...]:
        """The symbols of its words."""

    @property
    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """The symbols that an answer may be, or the names of the numbers in it."""

    if TYPE_CHECKING:  # a field of most tasks

        @property
        def length(self) -> int:
            """How long a word can be."""

    @abstractmethod
    def answers(self, word: Word) -> Sequence[Answer]:
        """The right answer at every position of a well-formed word or the beginning of one; None where none is asked.

        Written from the definition, with no thought of a network. An answer depends only on what came before it, unless
        the task is about whole words.
        """

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        """All well-formed words of one length, each made when it is asked for."""
        return product(self.alphabet, repeat=length)

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """A random well-formed word, at most so long and as long as that allows."""
        return tuple(self.alphabet[i] for i in rng.integers(len(self.alphabet), size=length))

    # Its files

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:  # noqa: ARG003
        """What is wrong between fields that are right each by itself: the field to be changed, and a sentence."""
        return iter(())

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> Found:
        """Every broken rule of the values of the fields, with the key that breaks it."""
        declared = {f.name: f for f in fields(cls)}
        kinds = get_type_hints(cls, include_extras=True)
        wrong = False
        for key in given:
            if key not in declared:
                yield (key,), f"{key!r} is not a key of the task {cls.name!r}; it has {', '.join(declared)}"
        for key, entry in declared.items():
            if key not in given:
                if entry.default is MISSING and entry.default_factory is MISSING:
                    wrong = True
                    yield (), f"{key} is missing"
            elif message := _complaint(key, kinds[key], given[key]):
                wrong = True
                yield (key,), message
        if not wrong:
            for key, message in cls.conflicts({k: f.default for k, f in declared.items()} | dict(given)):
                yield (key,), message

    @classmethod
    def read(cls, path: str | Path) -> Task:
        """The task of a `.task.toml` file."""
        path = Path(path)
        if not path.name.endswith(cls.suffix):
            raise refuse_suffix(path, cls.suffix)
        file = read_toml(path)
        said = file.data.get("task")
        known = [name.replace("_", "-") for name in names(PACKAGE)]
        if said not in known:
            what = "task is missing" if said is None else f"there is no task {said!r}"
            refuse_any([file.problem(("task",), f"{what}; it must be one of {', '.join(known)}")])
        kind = task_named(str(said))
        kinds = get_type_hints(kind)
        given = {key: _frozen(value) for key, value in file.data.items() if key != "task"}
        refuse_any(file.problem(keys, message) for keys, message in kind.problems(given))
        return kind(**{key: float(value) if kinds[key] is float else value for key, value in given.items()})

    def write(self, path: str | Path) -> None:
        """Write a `.task.toml` file that reads back as this value."""
        values = {"task": self.name} | {f.name: getattr(self, f.name) for f in fields(self)}
        text = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
        Path(path).write_text(text, encoding="utf-8", newline="\n")


def letters(count: int) -> tuple[str, ...]:
    """Names for so many symbols: a, b, c …, or s1, s2, s3 … where there are more than letters."""
    return tuple(ascii_lowercase[:count]) if count <= len(ascii_lowercase) else tuple(f"s{i + 1}" for i in range(count))


def tasks() -> tuple[type[Task], ...]:
    """All tasks, by name."""
    return tuple(load(PACKAGE, name).TASK for name in names(PACKAGE))


def task_named(name: str) -> type[Task]:
    """The task of a name that is known."""
    found: type[Task] = load(PACKAGE, name.replace("-", "_")).TASK
    return found


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def _complaint(key: str, kind: Any, value: object) -> str | None:
    """What is wrong with the value of a field, if anything is."""
    ranges = [extra for extra in getattr(kind, "__metadata__", ()) if isinstance(extra, Within)]
    kind = get_args(kind)[0] if ranges else kind
    if kind in WORDS:
        wanted = WORDS[kind]
        right = type(value) is kind or (kind is float and type(value) is int)
    else:
        item = get_args(kind)[0]
        wanted = f"a list, each entry {WORDS[item]}"
        right = isinstance(value, tuple) and all(type(part) is item for part in value)
    for extra in ranges:
        wanted += f" {extra}"
        right = right and isinstance(value, int | float) and extra.allows(value)
    return None if right else f"{key} must be {wanted}, is {_shown(value)}"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
