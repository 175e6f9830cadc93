r"""Patterns of the queries of a template, read backwards from the last word.

A template $p$ with its slot before the last $s$ words, and a key of $m$ words: the key is at the offsets $s$ to $s+m-1$
(0 is the last word), the words after and before the slot around it, and the beginning of the sequence at offset
$|p|-1+m$. A pattern requires a set of words at each of these offsets; there are three levels of requirements on the
slot:

| level | the slot holds | patterns |
| --- | --- | --- |
| 0 | anything | one for $p$ and $m$ |
| 1 | at each position a word that some key of $m$ words has there | one for $p$ and $m$ |
| 2 | one key | one for each key of $m$ words |

Level 1 is exact for keys of one word. A higher level is used only where a lower one would confuse two queries; but
where the slot comes first, level 1 is the least, or the pattern would fit sequences that begin inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vitrify.spec.memory.knowledge import SLOT, Knowledge, KnowledgeTask, Words
from vitrify.spec.ngrams.model import BEGIN

Group = tuple[int, int]  # location of keys: the offset of the slot, the number of words
Sets = Mapping[int, frozenset[str]]  # the words that are allowed, by offset; any word elsewhere


@dataclass(frozen=True)
class Pattern:
    """Common form of the queries of a template with keys of one length."""

    template: int
    group: Group
    fixed: Words  # the template's words around the slot, in order
    keys: tuple[int, ...]  # the facts whose keys have this length

    @property
    def length(self) -> int:
        return len(self.fixed) + self.group[1]

    @property
    def slot(self) -> range:
        """Offsets of the key's words."""
        return range(self.group[0], self.group[0] + self.group[1])

    @property
    def least(self) -> int:
        """Least level at which no shorter sequence fits."""
        return 1 if self.slot.stop == self.length else 0

    @property
    def around(self) -> Sets:
        """Words around the slot, and the beginning of the sequence."""
        outside = [offset for offset in reversed(range(self.length)) if offset not in self.slot]
        words = {offset: frozenset([word]) for offset, word in zip(outside, self.fixed, strict=True)}
        return words | {self.length: frozenset([BEGIN])}


def patterns(task: KnowledgeTask) -> list[Pattern]:
    """Return all patterns of a task: by template, then by length of keys."""
    listed = []
    for number, template in enumerate(task.templates):
        slot = template.index(SLOT)
        fixed = (*template[:slot], *template[slot + 1 :])
        for length in task.lengths:
            keys = tuple(fact for fact, (key, _) in enumerate(task.facts) if len(key) == length)
            listed.append(Pattern(number, (len(template) - 1 - slot, length), fixed, keys))
    return listed


def key_sets(key: Words, group: Group) -> Sets:
    """Return the words of one key, by offset."""
    return {group[0] + index: frozenset([word]) for index, word in enumerate(reversed(key))}


def slot_sets(task: KnowledgeTask, pattern: Pattern) -> Sets:
    """Return the words that keys of this length have at each offset of the slot."""
    keys = [task.facts[fact][0] for fact in pattern.keys]
    last_first = zip(*map(reversed, keys), strict=True)
    return {pattern.group[0] + index: frozenset(words) for index, words in enumerate(last_first)}


def sets(task: KnowledgeTask, pattern: Pattern, level: int) -> list[Sets]:
    """Return the requirements of a pattern at a level (at least its least): one case, or one per key at level 2."""
    if level == 2:
        return [{**pattern.around, **key_sets(task.facts[fact][0], pattern.group)} for fact in pattern.keys]
    return [{**pattern.around, **(slot_sets(task, pattern) if max(level, pattern.least) else {})}]


def meet(one: Sets, two: Sets) -> bool:
    """Return True if some sequence of words fits both; nothing precedes the beginning of a sequence."""
    beginnings = [offset for wanted in (one, two) for offset, words in wanted.items() if words == {BEGIN}]
    first = min(beginnings, default=max((*one, *two)) + 1)
    words = [offset for wanted in (one, two) for offset, words in wanted.items() if BEGIN not in words]
    return max(words, default=-1) < first and all(one[offset] & two[offset] for offset in one.keys() & two.keys())


def expert_levels(task: KnowledgeTask) -> dict[Pattern, int]:
    """Return the least level of each pattern at which an expert with one hidden layer can answer the task.

    No sequence may fit two patterns, and no other key may match across the border of the slot. The levels depend on the
    task alone.
    """
    all_patterns = patterns(task)
    groups = {pattern.group for pattern in all_patterns}
    keys = {group: [key for key, _ in task.facts if len(key) == group[1]] for group in groups}

    def confused(pattern: Pattern, level: int) -> bool:
        (own,) = sets(task, pattern, level)
        exact = level == 1 and pattern.group[1] == 1  # then the other pattern must have the higher level
        others = (sets(task, other, level)[0] for other in all_patterns if other is not pattern and not exact)
        across = (
            key_sets(key, group)
            for group in groups - {pattern.group}
            if set(range(group[0], sum(group))) & set(pattern.slot)
            for key in keys[group]
        )
        return any(meet(own, other) for other in others) or any(meet(own, key) for key in across)

    levels = {pattern: range(pattern.least, 2) for pattern in all_patterns}
    return {p: next((level for level in levels[p] if not confused(p, level)), 2) for p in all_patterns}


def router_levels(spec: Knowledge) -> list[dict[Pattern, int]]:
    """Return the least level of each pattern of each task that no query of another task fits."""
    levels = [{pattern: pattern.least for pattern in patterns(task)} for task in spec.tasks]
    index: dict[tuple[int, range], dict[Words, list[tuple[int, Pattern]]]] = {}
    for number, by_pattern in enumerate(levels):
        for pattern in by_pattern:
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
    """Return True if a sequence has allowed words at all offsets; offsets before its beginning hold `<s>`."""
    held = (words[-1 - offset] if offset < len(words) else BEGIN for offset in wanted)
    return all(word in allowed for word, allowed in zip(held, wanted.values(), strict=True))
