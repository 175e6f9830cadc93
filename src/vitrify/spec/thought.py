"""What a spec must know so that a network can think aloud about it: prompts, and what is written after each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Concluding(Protocol):
    """A spec that can say what a chain of thought comes to."""

    def conclusion(self, prompt: Sequence[str], thought: Sequence[str]) -> Mapping[str, str]:
        """What it comes to, in words a person understands."""
        ...


@runtime_checkable
class Thinking(Concluding, Protocol):
    """A spec with a chain of thought: a prompt decides the first symbol after it, and these together the next one."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The symbols that are read: those of prompts, and those of thoughts that go on."""
        ...

    @property
    def written(self) -> tuple[str, ...]:
        """The symbols of thoughts, those that end one among them."""
        ...

    def prompt_length(self, words: Sequence[str]) -> int:
        """How many of some words are the prompt; all others are thought."""
        ...

    def thought(self, prompt: Sequence[str], most: int) -> tuple[str, ...]:
        """The first symbols of the thought after a prompt, up to so many; none after a prompt that is not whole."""
        ...

    def prompts(self) -> Iterator[tuple[str, ...]]:
        """Every prompt and beginning of one, short ones first."""
        ...

    def draw_prompt(self, rng: np.random.Generator) -> tuple[str, ...]:
        """A random prompt."""
        ...
