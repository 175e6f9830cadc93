"""Knowledge: tasks, each with templates for queries and a dictionary of facts; `.knowledge.toml` files.

    [capital]
    templates = ["the capital of #", "# is governed from"]

    [capital.facts]
    France = "Paris"
    "New Zealand" = "Wellington"

Every table is a task. Templates and keys are split into words at blanks; a value is one answer, whatever it looks like.

A template is a sequence of words with one slot `#`; a query is a template with a key of the same task in its slot, and
the answer is the key's value. Keys may have several words, and different tasks may share keys, words and whole
templates, as long as every query can be read in one way only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from vitrify.parameters import Fault, Keys
from vitrify.spec.formats.data import json_text, read_data
from vitrify.spec.formats.text import SpecError, refuse_any
from vitrify.spec.kinds import Kind, Meaning, Spec, at_every_prefix
from vitrify.spec.ngrams.model import BEGIN

Words = tuple[str, ...]

SLOT = "#"
NONE = "<none>"  # the answer to a sequence that is not a query
MAX_QUERIES = 2_000_000  # all are listed, to check that each has one reading


@dataclass(frozen=True)
class TaskFile:
    """A task as it is written in a `.knowledge.toml` file."""

    templates: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KnowledgeTask:
    """One task: its templates, and its facts as pairs of a key and a value."""

    RECORDED: ClassVar[str] = "Task"

    name: str
    templates: tuple[Words, ...]
    facts: tuple[tuple[Words, str], ...]

    @classmethod
    def of(cls, name: str, templates: Iterable[str], facts: Mapping[str, str]) -> KnowledgeTask:
        """Return a task from templates and keys that are split at blanks."""
        keys = tuple((tuple(key.split()), value) for key, value in facts.items())
        return cls(name, tuple(tuple(template.split()) for template in templates), keys)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Numbers of words of keys, ascending."""
        return tuple(sorted({len(key) for key, _ in self.facts}))

    def queries(self) -> Iterator[tuple[Words, int, int]]:
        """Yield every query, with the indices of its template and of its fact."""
        for number, template in enumerate(self.templates):
            slot = template.index(SLOT)
            before, after = template[:slot], template[slot + 1 :]
            for fact, (key, _) in enumerate(self.facts):
                yield (*before, *key, *after), number, fact


@dataclass(frozen=True)
class Knowledge(Spec):
    """Tasks in order, and the answer to each sequence of words.

    >>> spec = Knowledge.of({
    ...     "capital": (["the capital of #", "# is governed from"], {"France": "Paris", "New Zealand": "Wellington"}),
    ...     "currency": (["in # they pay with"], {"France": "euro"}),
    ... })
    >>> spec.answer("New Zealand is governed from".split())
    ('capital', 'Wellington')
    >>> spec.answer(["France"]) is None
    True
    """

    tasks: tuple[KnowledgeTask, ...]
    suffix: ClassVar[str] = ".knowledge.toml"

    def __post_init__(self) -> None:
        refuse_any(message for _, message in _problems(self.tasks))

    @classmethod
    def of(cls, tasks: Mapping[str, tuple[Iterable[str], Mapping[str, str]]]) -> Knowledge:
        """Return knowledge from templates and facts by task; templates and keys are split at blanks."""
        return cls(tuple(KnowledgeTask.of(name, templates, facts) for name, (templates, facts) in tasks.items()))

    @classmethod
    def read(cls, path: str | Path) -> Knowledge:
        file = read_data(Path(path), cls.suffix)
        tables: Mapping[str, TaskFile] = file.read(Mapping[str, TaskFile])  # type: ignore[type-abstract]
        tasks = tuple(KnowledgeTask.of(name, table.templates, table.facts) for name, table in tables.items())

        def keys(location: Keys) -> Keys:
            """Return a location with the key of a fact instead of its index."""
            if "facts" not in location[1:2]:
                return location
            return *location[:2], list(tables[location[0]].facts)[int(location[2])]

        refuse_any(file.problem(keys(location), message) for location, message in _problems(tasks))
        return cls(tasks)

    def to_text(self) -> str:
        parts = []
        for task in self.tasks:
            name = json_text(task.name)
            templates = "\n".join(f"  {json_text(' '.join(template))}," for template in task.templates)
            facts = "\n".join(f"{json_text(' '.join(key))} = {json_text(value)}" for key, value in task.facts)
            parts.append(f"[{name}]\ntemplates = [\n{templates}\n]\n\n[{name}.facts]\n{facts}\n")
        return "\n".join(parts)

    @classmethod
    def samples(cls) -> dict[str, Knowledge]:
        return {"random": random_world(1, tasks=(2, 3), long_keys=0.3), "exclusive or": xor_world()}

    # Words

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words of templates and keys, in the order of first mention."""
        phrases = [words for task in self.tasks for words in (*task.templates, *(key for key, _ in task.facts))]
        return tuple(word for word in dict.fromkeys(word for words in phrases for word in words) if word != SLOT)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """All values, in the order of first mention."""
        return tuple(dict.fromkeys(value for task in self.tasks for _, value in task.facts))

    @cached_property
    def longest(self) -> int:
        """Number of words of the longest query."""
        return max(len(template) - 1 + task.lengths[-1] for task in self.tasks for template in task.templates)

    # Meaning

    def meanings(self) -> dict[str, Meaning]:
        """Return the task: the value of a query, and `<none>` after any other sequence."""
        value = at_every_prefix(lambda words: (self.answer(words) or ("", NONE))[1])
        return {"class": Meaning("symbol", self.vocabulary, (NONE, *self.values), value)}

    @cached_property
    def queries(self) -> dict[Words, tuple[int, int, int]]:
        """Every query, with the indices of its task, template and fact."""
        return {
            words: (number, template, fact)
            for number, task in enumerate(self.tasks)
            for words, template, fact in task.queries()
        }

    def answer(self, words: Sequence[str]) -> tuple[str, str] | None:
        """Return the task and the value of a query; None for any other sequence."""
        indices = self.queries.get(tuple(words))
        if indices is None:
            return None
        task = self.tasks[indices[0]]
        return task.name, task.facts[indices[2]][1]


def _problems(tasks: Sequence[KnowledgeTask]) -> Iterator[Fault]:
    """Yield every problem, with its task, or the index of one of its `templates` or `facts`."""
    problems = list(_task_problems(tasks))
    yield from problems
    if not problems:
        yield from _double_readings(tasks)


def _task_problems(tasks: Sequence[KnowledgeTask]) -> Iterator[Fault]:
    if not tasks:
        yield (), "there must be at least one task: a table [name] with templates and facts"
    names: set[str] = set()
    for task in tasks:
        name, templates, facts = task.name, task.templates, task.facts
        here = (name,)
        if name in names:
            yield here, f"the task {name!r} is there twice: keep one"
        names.add(name)
        if not name or not name.isprintable():
            yield here, f"the name of a task must be printable, got {name!r}"
        if not templates:
            yield here, f"the task {name!r} must have at least one template: templates = ['… {SLOT} …']"
        if not facts:
            yield here, f"the task {name!r} must have at least one fact: key = 'value'"
        yield from _template_problems(name, templates)
        yield from _fact_problems(name, facts)
    count = sum(len(task.templates) * len(task.facts) for task in tasks)
    if count > MAX_QUERIES:
        yield (), f"templates and facts make {count} queries, at most {MAX_QUERIES} can be checked: split the file"


def _template_problems(task: str, templates: Sequence[Words]) -> Iterator[Fault]:
    first: dict[Words, int] = {}
    for number, template in enumerate(templates):
        here, text = (task, "templates", str(number)), " ".join(template)
        slots = template.count(SLOT)
        if slots != 1:
            glued = " (it must stand alone, with blanks around it)" if not slots and SLOT in text else ""
            yield here, f"a template must have one slot {SLOT}, {text!r} has {slots}{glued}"
        if first.setdefault(template, number) != number:
            yield here, f"the template {text!r} is there twice: keep one"
        yield from ((here, message) for message in map(_word_problem, dict.fromkeys(template)) if message)


def _fact_problems(task: str, facts: Sequence[tuple[Words, str]]) -> Iterator[Fault]:
    first: dict[Words, int] = {}
    for number, (key, value) in enumerate(facts):
        here, text = (task, "facts", str(number)), " ".join(key)
        if not key:
            yield here, "a key must have at least one word"
        if SLOT in key:
            yield here, f"the key {text!r} has the word {SLOT}, which is the slot of templates: write it differently"
        if first.setdefault(key, number) != number:
            yield here, f"the key {text!r} is there twice: keep one"
        yield from ((here, message) for message in map(_word_problem, dict.fromkeys(key)) if message)
        if not value.strip() or not value.isprintable():
            yield here, f"the value of {text!r} must be printable and not empty, got {value!r}"
        if value == NONE:
            yield here, f"the value {NONE!r} is reserved for sequences that are not queries: choose another one"


def _word_problem(word: str) -> str | None:
    if word == BEGIN:
        return f"the word {word!r} is reserved for the beginning of a sequence: choose another one"
    if not word.isprintable() or word.split() != [word]:
        return f"a word must be printable and without blanks, got {word!r}"
    return None


def _double_readings(tasks: Sequence[KnowledgeTask]) -> Iterator[Fault]:
    """Yield pairs of templates with a common query, with the first such query."""
    seen: dict[Words, tuple[int, int]] = {}
    reported: set[tuple[tuple[int, int], tuple[int, int]]] = set()
    for number, task in enumerate(tasks):
        for words, template, _ in task.queries():
            here = (number, template)
            there = seen.setdefault(words, here)
            if there != here and (there, here) not in reported:
                reported.add((there, here))
                one, two = (f"{' '.join(tasks[t].templates[p])!r} of {tasks[t].name!r}" for t, p in (there, here))
                message = f"the query {' '.join(words)!r} can be read as {one} and as {two}: change one"
                yield (task.name, "templates", str(template)), message


MAX_ATTEMPTS = 200  # random draws per task, until it shares no query with earlier ones


def xor_world() -> Knowledge:
    """Return two tasks whose templates together have the same words at the same positions: `ab#, cd#`; `ad#, cb#`.

    So no linear router tells the tasks apart.

    >>> [len(task.templates) for task in xor_world().tasks]
    [2, 2]
    """
    facts = {"k": "one", "l": "two"}, {"k": "three", "l": "four"}
    return Knowledge.of({"even": (["a b #", "c d #"], facts[0]), "odd": (["a d #", "c b #"], facts[1])})


def random_world(
    seed: int,
    *,
    tasks: tuple[int, int] = (2, 6),
    templates: tuple[int, int] = (1, 4),
    length: tuple[int, int] = (1, 4),
    keys: int = 12,
    facts: tuple[int, int] = (3, 10),
    words: int = 6,
    values: int = 8,
    long_keys: float = 0.0,
    anchored: bool = False,
    shared_words: float = 0.0,
) -> Knowledge:
    """Return random tasks over shared keys; ranges are inclusive, and `length` counts the words around the slot.

    Each key has a second word with probability `long_keys`. `anchored` gives every template a word that no other task
    has. With probability `shared_words`, a word of a template is one that keys are made of.

    >>> random_world(0) == random_world(0)
    True
    """
    rng = np.random.default_rng(seed)
    pool: list[tuple[str, ...]] = [(f"k{number}",) for number in range(keys)]
    pool = [(f"k{rng.integers(keys)}", *key) if rng.random() < long_keys else key for key in pool]
    pool = list(dict.fromkeys(pool))
    vocabulary = [f"w{number}" for number in range(words)]
    accepted: list[KnowledgeTask] = []
    for number in range(int(rng.integers(*tasks, endpoint=True))):
        for _ in range(MAX_ATTEMPTS):
            chosen = rng.permutation(len(pool))[: int(rng.integers(facts[0], min(facts[1], len(pool)), endpoint=True))]
            phrases = []
            for _ in range(int(rng.integers(*templates, endpoint=True))):
                size = int(rng.integers(*length, endpoint=True))
                around = [vocabulary[i] for i in rng.integers(words, size=size)]
                mixed = rng.random(size) < shared_words
                around = [f"k{rng.integers(keys)}" if key else word for word, key in zip(around, mixed, strict=True)]
                if anchored:
                    around[int(rng.integers(size))] = f"anchor{number}"
                around.insert(int(rng.integers(size + 1)), SLOT)
                phrases.append(tuple(around))
            known = tuple((pool[i], f"v{rng.integers(values)}") for i in sorted(chosen.tolist()))
            task = KnowledgeTask(f"task{number}", tuple(dict.fromkeys(phrases)), known)
            try:
                Knowledge((*accepted, task))
            except SpecError:
                continue
            accepted.append(task)
            break
    return Knowledge(tuple(accepted))


def large_world(tasks: int = 200, facts: int = 100, keys: int = 150, seed: int = 0) -> Knowledge:
    """Return many tasks over shared keys and shared words.

    Tasks have one template and two in turn; a template is three words of forty, with its slot after the first word or
    later.

    >>> spec = large_world(tasks=4, facts=5, keys=10)
    >>> len(spec.tasks), len(spec.queries)
    (4, 30)
    """
    rng = np.random.default_rng(seed)
    pool = [f"k{number}" for number in range(keys)]
    vocabulary = [f"w{number}" for number in range(40)]
    seen: set[tuple[str, ...]] = set()
    tasks_made = []
    for number in range(tasks):
        phrases: list[tuple[str, ...]] = []
        while len(phrases) <= number % 2:
            around = tuple(vocabulary[i] for i in rng.integers(len(vocabulary), size=3))
            if around not in seen:
                seen.add(around)
                slot = 3 - int(rng.integers(3))
                phrases.append((*around[:slot], SLOT, *around[slot:]))
        chosen = sorted(rng.permutation(keys)[:facts].tolist())
        tasks_made.append(
            KnowledgeTask(f"task{number}", tuple(phrases), tuple(((pool[i],), f"v{rng.integers(200)}") for i in chosen))
        )
    return Knowledge(tuple(tasks_made))


KIND = Kind(Knowledge, {".knowledge.toml": "tasks, templates and facts"})
