r"""Knowledge on disk: `.knowledge.toml` files, read and written, with all problems told at once.

    [capital]
    templates = ["the capital of #", "# is governed from"]

    [capital.facts]
    France = "Paris"
    "New Zealand" = "Wellington"

Every table is a task. `templates` are the ways to ask, with one slot # where the key goes; `facts` give each key its
value. Templates and keys are split into words at blanks; a value is one answer, whatever it looks like.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from vitrify.errors import Problem, SpecError
from vitrify.spec.files import refuse_any, refuse_suffix, text_of
from vitrify.spec.ngram import BEGIN

Words = tuple[str, ...]
Facts = tuple[tuple[Words, str], ...]
PlainTask = tuple[str, tuple[Words, ...], Facts]
Place = tuple[str, int, int] | None  # what a problem is about: ("task" | "template" | "fact", number of task, number)

SLOT = "#"
NONE = "<none>"  # the answer to what is no query
MOST_QUERIES = 2_000_000  # all are listed, to see that each can be read in one way
ENTRIES = {"templates", "facts"}


def read_tasks(path: Path) -> list[PlainTask]:
    """The tasks of a `.knowledge.toml` file, checked."""
    if not path.name.endswith(".knowledge.toml"):
        raise refuse_suffix(path, ".knowledge.toml")
    text = text_of(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said, line = _without_line(str(error))
        raise SpecError([Problem(f"the file must be TOML: {said}", str(path), line)]) from None
    lines = _Lines(text, data)
    tasks, found = _parse(data)
    if not found:
        found = list(knowledge_problems(tasks))
    refuse_any(Problem(message, str(path), lines.of(place)) for place, message in found)
    return tasks


def knowledge_text(tasks: Iterable[PlainTask]) -> str:
    """The text of a `.knowledge.toml` file."""
    parts = []
    for name, templates, facts in tasks:
        asked = "\n".join(f"  {_quoted(' '.join(template))}," for template in templates)
        known = "\n".join(f"{_quoted(' '.join(key))} = {_quoted(value)}" for key, value in facts)
        parts.append(f"[{_quoted(name)}]\ntemplates = [\n{asked}\n]\n\n[{_quoted(name)}.facts]\n{known}\n")
    return "\n".join(parts)


def knowledge_problems(tasks: Sequence[PlainTask]) -> Iterator[tuple[Place, str]]:
    """Every broken rule, and what breaks it."""
    problems = list(_task_problems(tasks))
    yield from problems
    if not problems:
        yield from _double_readings(tasks)


def _task_problems(tasks: Sequence[PlainTask]) -> Iterator[tuple[Place, str]]:
    if not tasks:
        yield None, "there must be at least one task: a table [name] with templates and facts"
    names: set[str] = set()
    for number, (name, templates, facts) in enumerate(tasks):
        here: Place = ("task", number, 0)
        if name in names:
            yield here, f"the task {name!r} is there twice: keep one"
        names.add(name)
        if not name or not name.isprintable():
            yield here, f"the name of a task must be printable, got {name!r}"
        if not templates:
            yield here, f"the task {name!r} must have at least one template: templates = ['… {SLOT} …']"
        if not facts:
            yield here, f"the task {name!r} must have at least one fact: key = 'value'"
        yield from _template_problems(number, templates)
        yield from _fact_problems(number, facts)
    count = sum(len(templates) * len(facts) for _, templates, facts in tasks)
    if count > MOST_QUERIES:
        yield None, f"templates and facts make {count} queries, at most {MOST_QUERIES} can be checked: split the file"


def _template_problems(task: int, templates: Sequence[Words]) -> Iterator[tuple[Place, str]]:
    first: dict[Words, int] = {}
    for number, template in enumerate(templates):
        here, text = ("template", task, number), " ".join(template)
        slots = template.count(SLOT)
        if slots != 1:
            glued = " (it must stand alone, with blanks around it)" if not slots and SLOT in text else ""
            yield here, f"a template must have one slot {SLOT}, {text!r} has {slots}{glued}"
        if first.setdefault(template, number) != number:
            yield here, f"the template {text!r} is there twice: keep one"
        for word in dict.fromkeys(template):
            if message := _word_problem(word):
                yield here, message


def _fact_problems(task: int, facts: Facts) -> Iterator[tuple[Place, str]]:
    first: dict[Words, int] = {}
    for number, (key, value) in enumerate(facts):
        here, text = ("fact", task, number), " ".join(key)
        if not key:
            yield here, "a key must have at least one word"
        if SLOT in key:
            yield here, f"the key {text!r} has the word {SLOT}, which is the slot of templates: write it differently"
        if first.setdefault(key, number) != number:
            yield here, f"the key {text!r} is there twice: keep one"
        for word in dict.fromkeys(key):
            if message := _word_problem(word):
                yield here, message
        if not value.strip() or not value.isprintable():
            yield here, f"the value of {text!r} must be printable and not empty, got {value!r}"
        if value == NONE:
            yield here, f"the value {NONE!r} is kept for what is no query: call it something else"


def _word_problem(word: str) -> str | None:
    if word == BEGIN:
        return f"the word {word!r} is kept for the beginning of a sequence: call it something else"
    if not word.isprintable() or word.split() != [word]:
        return f"a word must be printable and without blanks, got {word!r}"
    return None


def _double_readings(tasks: Sequence[PlainTask]) -> Iterator[tuple[Place, str]]:
    """Pairs of templates with a query in common, the first such query of each."""
    seen: dict[Words, tuple[int, int]] = {}
    told: set[tuple[tuple[int, int], tuple[int, int]]] = set()
    for number, (_, templates, facts) in enumerate(tasks):
        for at, template in enumerate(templates):
            slot, here = template.index(SLOT), (number, at)
            for key, _ in facts:
                words = (*template[:slot], *key, *template[slot + 1 :])
                there = seen.setdefault(words, here)
                if there != here and (there, here) not in told:
                    told.add((there, here))
                    one, two = (f"{' '.join(tasks[t][1][p])!r} of {tasks[t][0]!r}" for t, p in (there, here))
                    query = " ".join(words)
                    yield ("template", *here), f"the query {query!r} can be read as {one} and as {two}: change one"


def _parse(data: dict[str, Any]) -> tuple[list[PlainTask], list[tuple[Place, str]]]:
    """Tasks as far as the types are right, and what is of the wrong type."""
    tasks: list[PlainTask] = []
    problems: list[tuple[Place, str]] = []
    for number, (name, given) in enumerate(data.items()):
        here: Place = ("task", number, 0)
        entries = given if isinstance(given, dict) else {}
        templates, facts = entries.get("templates", []), entries.get("facts", {})
        if not isinstance(given, dict):
            problems.append((here, f"{name!r} must be a task, a table [{name}] with templates and facts"))
        problems += [
            (here, f"the task {name!r} has 'templates' and 'facts', not {entry!r}")
            for entry in entries
            if entry not in ENTRIES
        ]
        if not isinstance(templates, list) or not all(isinstance(template, str) for template in templates):
            problems.append((here, f"the templates of {name!r} must be a list of texts in quotes"))
            templates = []
        if not isinstance(facts, dict):
            problems.append((here, f"the facts of {name!r} must be a table of key = 'value'"))
            facts = {}
        problems += [
            (("fact", number, at), f"the value of {key!r} must be a text in quotes, got {value!r}")
            for at, (key, value) in enumerate(facts.items())
            if not isinstance(value, str)
        ]
        split = tuple((tuple(key.split()), value) for key, value in facts.items())
        tasks.append((name, tuple(tuple(template.split()) for template in templates), split))
    return tasks, problems


class _Lines:
    """Where in a file its tasks, templates and facts stand: the parser does not say, so their texts are looked for."""

    HEADER = re.compile(r"\s*\[(?!\[)(.*)\]\s*(#.*)?")

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        self.data = data
        self.names = list(data)
        self.parts: dict[str, list[tuple[int, str]]] = {name: [] for name in self.names}
        owner: str | None = None
        inside = False  # before the first header, names may be dotted: capital.templates = …
        for number, line in enumerate(text.split("\n"), start=1):
            if found := self.HEADER.fullmatch(line):
                owner, inside = self._owner(f"[{found[1]}]") or owner, True
            elif not inside:
                first = re.split(r"[.=]", line)[0].strip(" \t'\"")
                owner = first if first in self.parts else owner
            if owner is not None:
                self.parts[owner].append((number, line))

    def _owner(self, header: str) -> str | None:
        """The task that a header belongs to; a line of a list may look like a header and is none."""
        try:
            name = next(iter(tomllib.loads(header)))
        except (tomllib.TOMLDecodeError, StopIteration):
            return None
        return name if name in self.parts else None

    def of(self, place: Place) -> int | None:
        """The line of a task, a template or a fact; that of its task where it can't be found."""
        if place is None:
            return None
        kind, task, wanted = place
        lines = self.parts[self.names[task]]
        if not lines:
            return None
        given = self.data[self.names[task]]
        if kind == "task" or not isinstance(given, dict):
            return lines[0][0]
        texts = list(given["templates" if kind == "template" else "facts"])[: wanted + 1]
        text, at = "\n".join(line for _, line in lines), 0
        for entry in texts:
            written = "|".join(dict.fromkeys(re.escape(form) for form in (entry, json.dumps(entry)[1:-1])))
            pattern = rf"[\"']({written})[\"']" if kind == "template" else rf"(?<![\w-])[\"']?({written})[\"']?\s*="
            found = re.compile(pattern).search(text, at)
            if found is None:
                return lines[0][0]
            start, at = found.start(), found.end()
        starts = [0]
        for _, line in lines:
            starts.append(starts[-1] + len(line) + 1)
        return lines[bisect_right(starts, start) - 1][0]


def _quoted(text: str) -> str:
    """A TOML string: for printable text, the same as JSON's."""
    return json.dumps(text, ensure_ascii=False)


def _without_line(message: str) -> tuple[str, int | None]:
    """A parser's message, and the line that it ends with."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message)
    if found is None:
        return message, None
    said = found[1][0].lower() + found[1][1:]
    return (said, int(found[2])) if found[2] else (f"{said} at the end of the file", None)
