"""Random formulas of temporal logic for tests."""

from __future__ import annotations

import random

from vitrify.spec.logic.ltl import Formula


def random_formula(seed: int, depth: int = 5, *, letters: str = "abc", length: int = 12, mod: bool = True) -> Formula:
    """A formula whose operators are nested to a depth."""
    atoms = [*letters, "true", *(["MOD(1, 3)"] if mod else [])]
    text = _formula(random.Random(seed), depth, atoms)
    return Formula.from_text(f"alphabet: {' '.join(letters)}\nlength: {length}\n{text}")


def _formula(rng: random.Random, depth: int, atoms: list[str]) -> str:
    if depth == 0:
        return rng.choice(atoms)
    deep, other = _formula(rng, depth - 1, atoms), _formula(rng, rng.randrange(depth), atoms)
    pick = rng.randrange(8)
    if pick < 2:
        return f"({deep} {rng.choice(['&', '|', '->', '<->'])} {other})"
    if pick < 3:
        return f"!({deep})"
    if pick < 5:
        return f"({deep} S {other})" if rng.random() < 0.5 else f"({other} S {deep})"
    return f"{rng.choice('YOH')} ({deep})"
