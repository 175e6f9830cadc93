r"""Patterns: what a query of a template looks like, read backwards from its last word.

A template $p$ with its slot before the last $s$ words, and a key of $m$ words: the key is at the offsets $s$ to
$s+m-1$ (0 is the last word), the words after and before the slot around it, and the beginning of the sequence at offset
$|p|-1+m$. A pattern asks for a set of words at each of these offsets, and how much it asks of the slot has three
levels:

| level | the slot holds | patterns |
| --- | --- | --- |
| 0 | anything | one for $p$ and $m$ |
| 1 | at each place a word that some key of $m$ words has there | one for $p$ and $m$ |
| 2 | one key | one for each key of $m$ words |

Keys of one word are told exactly by level 1. More is asked only where less would confuse two things; but where the slot
comes first, level 1 is the least, or the pattern would fit sequences that begin inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vitrify.spec.knowledge import Knowledge, Task
from vitrify.spec.knowledge_files import SLOT, Words
from vitrify.spec.ngram import BEGIN

Group = tuple[int, int]  # where keys of a task are looked for: the offset of the slot, the number of words
Sets = Mapping[int, frozenset[str]]  # the words that are allowed, by offset; any word elsewhere


@dataclass(frozen=True)
class Pattern:
    """What the queries of a template with keys of one length have in common."""

    template: int
    group: Group
    fixed: Words  # the template's words around the slot, in order
    keys: tuple[int, ...]  # the facts whose keys have this length

    @property
    def length(self) -> int:
        return len(self.fixed) + self.group[1]

    @property
    def slot(self) -> range:
        """The offsets of the key's words."""
        return range(self.group[0], self.group[0] + self.group[1])

    @property
    def least(self) -> int:
        """The least level, at which no shorter sequence fits."""
        return 1 if self.slot.stop == self.length else 0

    @property
    def around(self) -> Sets:
        """The words around the slot, and the beginning of the sequence."""
        outside = [offset for offset in reversed(range(self.length)) if offset not in self.slot]
        words = {offset: frozenset([word]) for offset, word in zip(outside, self.fixed, strict=True)}
        return words | {self.length: frozenset([BEGIN])}


def patterns(task: Task) -> list[Pattern]:
    """All patterns of a task: templates in order, for each the lengths of keys."""
    found = []
    for number, template in enumerate(task.templates):
        slot = template.index(SLOT)
        fixed = (*template[:slot], *template[slot + 1 :])
        for length in task.lengths:
            keys = tuple(fact for fact, (key, _) in enumerate(task.facts) if len(key) == length)
            found.append(Pattern(number, (len(template) - 1 - slot, length), fixed, keys))
    return found


def key_sets(key: Words, group: Group) -> Sets:
    """The words of one key, by offset."""
    return {group[0] + place: frozenset([word]) for place, word in enumerate(reversed(key))}


def slot_sets(task: Task, pattern: Pattern) -> Sets:
    """The words that keys of this length have at each place of the slot."""
    keys = [task.facts[fact][0] for fact in pattern.keys]
    last_first = zip(*map(reversed, keys), strict=True)
    return {pattern.group[0] + place: frozenset(words) for place, words in enumerate(last_first)}


def sets(task: Task, pattern: Pattern, level: int) -> list[Sets]:
    """What a pattern asks for at a level (but no less than its least): one case, or one for each key at level 2."""
    if level == 2:
        return [{**pattern.around, **key_sets(task.facts[fact][0], pattern.group)} for fact in pattern.keys]
    return [{**pattern.around, **(slot_sets(task, pattern) if max(level, pattern.least) else {})}]


def meet(one: Sets, two: Sets) -> bool:
    """Whether some sequence of words fits both; from its beginning on backwards there is nothing else."""
    beginnings = [offset for wanted in (one, two) for offset, words in wanted.items() if words == {BEGIN}]
    first = min(beginnings, default=max((*one, *two)) + 1)
    words = [offset for wanted in (one, two) for offset, words in wanted.items() if BEGIN not in words]
    return max(words, default=-1) < first and all(one[offset] & two[offset] for offset in one.keys() & two.keys())


def expert_levels(task: Task) -> dict[Pattern, int]:
    """The least level of each pattern that lets an expert of one hidden layer answer the task.

    No sequence may fit two patterns, and no key may be found across the border of the slot, where it is not the key
    that was asked for. Depends on nothing but the task.
    """
    every = patterns(task)
    places = {pattern.group for pattern in every}
    keys = {group: [key for key, _ in task.facts if len(key) == group[1]] for group in places}

    def confused(pattern: Pattern, level: int) -> bool:
        (own,) = sets(task, pattern, level)
        exact = level == 1 and pattern.group[1] == 1  # then it is the other one that must ask for more
        others = (sets(task, other, level)[0] for other in every if other is not pattern and not exact)
        across = (
            key_sets(key, group)
            for group in places - {pattern.group}
            if set(range(group[0], sum(group))) & set(pattern.slot)
            for key in keys[group]
        )
        return any(meet(own, other) for other in others) or any(meet(own, key) for key in across)

    levels = {pattern: range(pattern.least, 2) for pattern in every}
    return {p: next((level for level in levels[p] if not confused(p, level)), 2) for p in every}


def router_levels(spec: Knowledge) -> list[dict[Pattern, int]]:
    """The least level of each pattern of each task that no query of another task fits."""
    levels = [{pattern: pattern.least for pattern in patterns(task)} for task in spec.tasks]
    index: dict[tuple[int, range], dict[Words, list[tuple[int, Pattern]]]] = {}
    for number, found in enumerate(levels):
        for pattern in found:
            alike = index.setdefault((pattern.length, pattern.slot), {})
            alike.setdefault(pattern.fixed, []).append((number, pattern))
    slots: dict[int, list[range]] = {}
    for length, slot in index:
        slots.setdefault(length, []).append(slot)
    for words, (own, _, _) in spec.queries.items():
        size = len(words)
        for slot in slots[size]:
            around = (*words[: size - slot.stop], *words[size - slot.start :])
            for number, pattern in index[size, slot].get(around, ()):
                if number != own:
                    (loose,) = sets(spec.tasks[number], pattern, 1)
                    level = 2 if fits(words, loose) else 1
                    levels[number][pattern] = max(level, levels[number][pattern])
    return levels


def fits(words: Words, wanted: Sets) -> bool:
    """Whether a sequence of words has allowed words at all offsets; before its beginning, there is only that."""
    held = (words[-1 - offset] if offset < len(words) else BEGIN for offset in wanted)
    return all(word in allowed for word, allowed in zip(held, wanted.values(), strict=True))
