"""Runs of symbols that occur twice in a text, by listing them all."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.spec.tasks.copying import Copying


def repeats(task: Copying, text: Sequence[str]) -> bool:
    """Return True if an n-gram of `task.gram` symbols occurs twice in a text."""
    runs = [tuple(text[at : at + task.gram]) for at in range(len(text) - task.gram + 1)]
    return len(set(runs)) < len(runs)
