"""Knowledge: tasks, each a few templates to ask with and a dictionary of facts to answer from.

A template is a sequence of words with one slot `#`; a query is a template with a key of the same task in its slot, and
the answer is the key's value. Keys may have several words, and different tasks may share keys, words and whole
templates, as long as every query can be read in one way only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from vitrify.errors import SpecError
from vitrify.spec.display import Displayed
from vitrify.spec.knowledge_files import SLOT, Words, knowledge_problems, knowledge_text, read_tasks


@dataclass(frozen=True)
class Task:
    """One kind of question: its templates, and its facts as pairs of a key and a value."""

    name: str
    templates: tuple[Words, ...]
    facts: tuple[tuple[Words, str], ...]

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many words a key may have, in order."""
        return tuple(sorted({len(key) for key, _ in self.facts}))

    def queries(self) -> Iterator[tuple[Words, int, int]]:
        """Every query, with the numbers of its template and of its fact."""
        for number, template in enumerate(self.templates):
            slot = template.index(SLOT)
            before, after = template[:slot], template[slot + 1 :]
            for fact, (key, _) in enumerate(self.facts):
                yield (*before, *key, *after), number, fact


@dataclass(frozen=True)
class Knowledge(Displayed):
    """Tasks in order, and what each sequence of words asks for.

    >>> spec = Knowledge.of({
    ...     "capital": (["the capital of #", "# is governed from"], {"France": "Paris", "New Zealand": "Wellington"}),
    ...     "currency": (["in # they pay with"], {"France": "euro"}),
    ... })
    >>> spec.answer("New Zealand is governed from".split())
    ('capital', 'Wellington')
    >>> spec.answer(["France"]) is None
    True
    """

    tasks: tuple[Task, ...]
    suffix: ClassVar[str] = ".knowledge.toml"

    def __post_init__(self) -> None:
        problems = [message for _, message in knowledge_problems(self._plain())]
        if problems:
            raise SpecError(problems)

    @classmethod
    def of(cls, tasks: Mapping[str, tuple[Iterable[str], Mapping[str, str]]]) -> Knowledge:
        """From templates and facts by task; templates and keys are split at blanks."""
        return cls(
            tuple(
                Task(
                    name,
                    tuple(tuple(template.split()) for template in templates),
                    tuple((tuple(key.split()), value) for key, value in facts.items()),
                )
                for name, (templates, facts) in tasks.items()
            )
        )

    @classmethod
    def read(cls, path: str | Path) -> Knowledge:
        """The tasks of a `.knowledge.toml` file."""
        return cls(tuple(Task(*task) for task in read_tasks(Path(path))))

    def write(self, path: str | Path) -> None:
        """Write a `.knowledge.toml` file that reads back as this value."""
        Path(path).write_text(knowledge_text(self._plain()), encoding="utf-8", newline="\n")

    def _plain(self) -> list[tuple[str, tuple[Words, ...], tuple[tuple[Words, str], ...]]]:
        return [(task.name, task.templates, task.facts) for task in self.tasks]

    # What it is

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words of templates and keys, in the order of their first mention."""
        asked = [words for task in self.tasks for words in (*task.templates, *(key for key, _ in task.facts))]
        return tuple(word for word in dict.fromkeys(word for words in asked for word in words) if word != SLOT)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """All values, in the order of their first mention."""
        return tuple(dict.fromkeys(value for task in self.tasks for _, value in task.facts))

    @cached_property
    def longest(self) -> int:
        """The number of words of the longest query."""
        return max(len(template) - 1 + task.lengths[-1] for task in self.tasks for template in task.templates)

    # What it means

    @cached_property
    def queries(self) -> dict[Words, tuple[int, int, int]]:
        """Every query, with the numbers of its task, its template and its fact."""
        return {
            words: (number, template, fact)
            for number, task in enumerate(self.tasks)
            for words, template, fact in task.queries()
        }

    def answer(self, words: Sequence[str]) -> tuple[str, str] | None:
        """The task and the value that a whole sequence of words asks for; nothing if it is no query."""
        found = self.queries.get(tuple(words))
        if found is None:
            return None
        task = self.tasks[found[0]]
        return task.name, task.facts[found[2]][1]
