"""Families of knowledge: random worlds, one without a linear router, and a large one."""

from __future__ import annotations

import numpy as np

from vitrify.errors import SpecError
from vitrify.spec.knowledge import Knowledge, Task
from vitrify.spec.knowledge_files import SLOT

ATTEMPTS = 200  # random tasks that are tried until one shares no query with those before it


def xor_world() -> Knowledge:
    """Two tasks whose templates have the same words at the same places, counted together: `ab#, cd#` and `ad#, cb#`.

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
    """Random tasks over shared keys; ranges are inclusive, and `length` counts the words around the slot.

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
    made: list[Task] = []
    for number in range(int(rng.integers(*tasks, endpoint=True))):
        for _ in range(ATTEMPTS):
            chosen = rng.permutation(len(pool))[: int(rng.integers(facts[0], min(facts[1], len(pool)), endpoint=True))]
            asked = []
            for _ in range(int(rng.integers(*templates, endpoint=True))):
                size = int(rng.integers(*length, endpoint=True))
                around = [vocabulary[i] for i in rng.integers(words, size=size)]
                mixed = rng.random(size) < shared_words
                around = [f"k{rng.integers(keys)}" if key else word for word, key in zip(around, mixed, strict=True)]
                if anchored:
                    around[int(rng.integers(size))] = f"anchor{number}"
                around.insert(int(rng.integers(size + 1)), SLOT)
                asked.append(tuple(around))
            known = tuple((pool[i], f"v{rng.integers(values)}") for i in sorted(chosen.tolist()))
            task = Task(f"task{number}", tuple(dict.fromkeys(asked)), known)
            try:
                Knowledge((*made, task))
            except SpecError:
                continue
            made.append(task)
            break
    return Knowledge(tuple(made))


def large_world(tasks: int = 200, facts: int = 100, keys: int = 150, seed: int = 0) -> Knowledge:
    """Many tasks over shared keys and shared words.

    Tasks have one template and two in turn; a template is three words of forty, with its slot in the last three places.

    >>> spec = large_world(tasks=4, facts=5, keys=10)
    >>> len(spec.tasks), len(spec.queries)
    (4, 30)
    """
    rng = np.random.default_rng(seed)
    pool = [f"k{number}" for number in range(keys)]
    vocabulary = [f"w{number}" for number in range(40)]
    seen: set[tuple[str, ...]] = set()
    made = []
    for number in range(tasks):
        asked: list[tuple[str, ...]] = []
        while len(asked) <= number % 2:
            around = tuple(vocabulary[i] for i in rng.integers(len(vocabulary), size=3))
            if around not in seen:
                seen.add(around)
                place = 3 - int(rng.integers(3))
                asked.append((*around[:place], SLOT, *around[place:]))
        chosen = sorted(rng.permutation(keys)[:facts].tolist())
        made.append(Task(f"task{number}", tuple(asked), tuple(((pool[i],), f"v{rng.integers(200)}") for i in chosen)))
    return Knowledge(tuple(made))
