r"""Base class of tasks: words, queries at some positions, and the right answers; `.task.toml` files.

    task = "k-hop"          # which one; the other keys are its own
    hops = 3
    symbols = 8
    length = 64

A task is a frozen dataclass in a file of its own beside this one, found by its name (`k-hop` is in `k_hop.py`). Its
fields are the keys of its files, declared as in `vitrify.parameters`. Reading and writing are defined here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, product
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from vitrify.encoding import JsonObject
from vitrify.parameters import Fault, Parameterized, arguments, described, read, sentences
from vitrify.registry import load, names
from vitrify.spec.formats.data import json_text, read_data
from vitrify.spec.formats.text import SpecError, refuse_any
from vitrify.spec.kinds import Kind, Meaning, Spec

PACKAGE = "vitrify.spec.tasks"
MAX_SIZE = 100_000  # symbols or positions: longer words could not be run
NONE = "(none)"  # the answer where there is no match
Answer: TypeAlias = str | tuple[float, ...] | None
Word: TypeAlias = Sequence[str]


@dataclass(frozen=True)
class Task(Parameterized, Spec):
    """Words over an alphabet, and the right answers at their positions.

    If `numeric`, answers are vectors of numbers, named by `outputs`; else they are symbols among `outputs`. If `free`,
    every word up to the length is well formed; else `words` and `draw` give the well-formed ones.
    """

    name: ClassVar[str]
    suffix: ClassVar[str] = ".task.toml"
    numeric: ClassVar[bool] = False
    free: ClassVar[bool] = True

    SAMPLES: ClassVar[Mapping[str, JsonObject]] = {}  # the fields of small instances, by name

    @classmethod
    def refusal(cls, faults: Sequence[Fault]) -> SpecError:
        return SpecError(sentences(faults))

    # Words and answers

    @property
    @abstractmethod
    def alphabet(self) -> tuple[str, ...]:
        """Symbols of the words."""

    @property
    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """Symbols that an answer may be, or the names of its numbers."""

    if TYPE_CHECKING:  # a field of most tasks

        @property
        def length(self) -> int:
            """Length of the longest word."""

    @abstractmethod
    def answers(self, word: Word) -> Sequence[Answer]:
        """Return the right answer at every position of a well-formed word or prefix; None where there is no query.

        This follows the definition and is independent of any network. An answer depends only on earlier symbols, unless
        the task is about whole words.
        """

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        """Return all well-formed words of one length, lazily."""
        return product(self.alphabet, repeat=length)

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return a random well-formed word of at most `length` symbols, as long as possible."""
        return tuple(self.alphabet[i] for i in rng.integers(len(self.alphabet), size=length))

    def meanings(self) -> dict[str, Meaning]:
        """Return the answer at every position; none before the first symbol."""
        language = None if self.free else WellFormed(self)
        answers = Meaning("symbol", self.alphabet, self.outputs, lambda word: [None, *self.answers(word)], language)
        if self.numeric:
            return {"values": replace(answers, answer="number")}
        return {"transducer": answers, "class": answers}

    # Files

    @classmethod
    def samples(cls) -> dict[str, Task]:
        """Return small instances of a task, or of all tasks."""
        entries = [(task, name, values) for task in tasks() for name, values in task.SAMPLES.items()]
        return {name: task(**values) for task, name, values in entries if issubclass(task, cls)}

    @classmethod
    def read(cls, path: str | Path) -> Task:
        file = read_data(Path(path), cls.suffix)
        try:
            kind = task_named(file.data.get("task"))
        except SpecError as error:
            raise SpecError([file.problem(("task",), str(error))]) from None
        faults: list[Fault] = []
        values = read(described(kind), {key: value for key, value in file.data.items() if key != "task"}, faults)
        task = object.__new__(kind)  # unchecked, so that faults can be reported with their keys
        for parameter in described(kind):
            object.__setattr__(task, parameter.name, values.get(parameter.name, parameter.default))
        faults = faults or task.faults()
        refuse_any(file.problems(faults))
        return task

    def to_text(self) -> str:
        values = {"task": self.name} | {f.name: getattr(self, f.name) for f in fields(self)}
        return "".join(f"{key} = {json_text(value)}\n" for key, value in values.items())


@dataclass(frozen=True)
class WellFormed:
    """The words of a task in which not every word is well formed."""

    task: Task

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        """Return every well-formed word once, short ones first; each also covers its prefixes."""
        lengths = range((self.task.length if longest is None else longest) + 1)
        return chain.from_iterable(self.task.words(length) for length in lengths)

    def examples(self) -> Iterator[tuple[str, ...]]:
        """Return no words: random ones exercise everything."""
        return iter(())

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return a random word of full length."""
        return self.task.draw(rng, self.task.length)


def letters(count: int) -> tuple[str, ...]:
    """Return names for `count` symbols: a, b, c …, or s1, s2, s3 … for more than 26."""
    return tuple(ascii_lowercase[:count]) if count <= len(ascii_lowercase) else tuple(f"s{i + 1}" for i in range(count))


def few_symbols(rng: np.random.Generator, alphabet: Sequence[str], length: int) -> tuple[str, ...]:
    """Return a random word over a random part of the alphabet, whose size has a uniform logarithm."""
    used = round(float(np.exp(rng.uniform(0.0, np.log(len(alphabet))))))
    chosen = rng.permutation(len(alphabet))[:used]
    return tuple(alphabet[i] for i in chosen[rng.integers(used, size=length)])


def tasks() -> tuple[type[Task], ...]:
    """Return all tasks, by name."""
    return tuple(load(PACKAGE, name).TASK for name in names(PACKAGE))


def task_named(name: object) -> type[Task]:
    """Return the class of a task by its name; a SpecError lists the names if there is no such task."""
    known = {entry.replace("_", "-"): entry for entry in names(PACKAGE)}
    if name not in known:
        what = "task is missing" if name is None else f"there is no task {name!r}"
        raise SpecError([f"{what}; it must be one of {', '.join(known)}"])
    task: type[Task] = load(PACKAGE, known[str(name)]).TASK
    return task


def make(name: str, **values: Any) -> Task:
    """Return a task by its name and fields: `make("k-hop", hops=3, symbols=8, length=64)`."""
    kind = task_named(name)
    return kind(**arguments(kind, values, f"task {name}"))


KIND = Kind(Task, {".task.toml": "task with a question at some positions"})  # type: ignore[type-abstract]
