"""Grammars by levels in the style of PhysicsLM4, as JSON, with sentences and a recognizer, without vitrify."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path

Rules = dict[int, list[list[int]]]


def rules_by_level(levels: int, seed: int, symbols: int = 3) -> Rules:
    """Return two right sides of two or three symbols of the level below for each symbol; words are 1, 2, ….

    Each level has `symbols` symbols, the top one; every symbol stands on some right side.
    """
    rng = random.Random(seed)
    rules: Rules = {}
    below = [*range(1, symbols + 1)]
    for level in range(1, levels):
        here = [below[-1] + 1 + place for place in range(1 if level == levels - 1 else symbols)]
        while True:
            sides = {name: [rng.choices(below, k=rng.choice((2, 3))) for _ in range(2)] for name in here}
            distinct = {tuple(side) for pair in sides.values() for side in pair}
            if {symbol for side in distinct for symbol in side} == {*below} and len(distinct) == 2 * len(here):
                break
        rules |= sides
        below = here
    return rules


def sentence(rules: Rules, rng: random.Random) -> list[int]:
    """Return a random sentence of the highest symbol."""
    words = [max(rules)]
    while any(word in rules for word in words):
        words = [part for word in words for part in (rng.choice(rules[word]) if word in rules else [word])]
    return words


def recognized(rules: Rules, words: list[int]) -> bool:
    """Return whether words are a sentence, from the ends that each symbol can have after each start."""

    @cache
    def ends(symbol: int, start: int) -> frozenset[int]:
        if symbol not in rules:
            return frozenset({start + 1} if start < len(words) and words[start] == symbol else ())
        found: set[int] = set()
        for side in rules[symbol]:
            places = {start}
            for part in side:
                places = {end for place in places for end in ends(part, place)}
            found |= places
        return frozenset(found)

    return len(words) in ends(max(rules), 0)


def published(rules: Rules) -> dict[str, object]:
    """Return rules as PhysicsLM4 publishes them: levels from the top, with places in the level below as children."""
    levels = [[max(rules)]]
    while levels[-1][0] in rules:
        levels.append(sorted({part for name in levels[-1] for side in rules[name] for part in side}))
    return {
        "depth": len(levels) - 1,
        "sizes": [*map(len, levels)],
        "idx": levels,
        "all": [
            [
                {"depth": depth, "id": name, "name": f"N{name}", "children":
                 [[levels[depth + 1].index(part) for part in side] for side in rules[name]] if name in rules else None}
                for name in level
            ]
            for depth, level in enumerate(levels)
        ],
    }  # fmt: skip


def write_grammar(folder: Path, name: str, levels: int, count: int, seed: int = 0) -> list[bool]:
    """Write rules as `name.cfg.json` and strings without blanks, with labels, as `name.tsv`; return the labels."""
    rules, rng = rules_by_level(levels, seed), random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.cfg.json").write_text(json.dumps(published(rules)), encoding="utf-8")
    labels, lines = [], []
    for number in range(count):
        words = sentence(rules, rng)
        if number % 2:
            place = rng.randrange(len(words))
            words[place : place + 1] = [rng.randint(1, 3) for _ in range(rng.choice((0, 1, 1, 2)))]
        labels.append(recognized(rules, words))
        lines.append(f"{''.join(map(str, words))}\t{int(labels[-1])}\n")
    (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    return labels
