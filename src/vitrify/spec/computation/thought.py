"""Specs with a chain of thought: prompts, and the symbols that are written after each of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Protocol, runtime_checkable

import numpy as np

from vitrify.spec.kinds import Answer, Meaning, Spec

MAX_PROMPTS = 1 << 10  # all are listed if there are no more; else this many random ones


@runtime_checkable
class Concluding(Protocol):
    """A spec that can state the conclusion of a chain of thought."""

    def conclusion(self, prompt: Sequence[str], thought: Sequence[str]) -> Mapping[str, str]:
        """Return the conclusion, in words a person understands."""

    def missing(self, prompt: Sequence[str], thought: Sequence[str]) -> str:
        """Return what a thought that was cut short lacks, in words; nothing if it is complete."""


class Thinking(Spec):
    """A spec with a chain of thought: each next symbol is determined by the prompt and the symbols written so far."""

    @property
    @abstractmethod
    def vocabulary(self) -> tuple[str, ...]:
        """Symbols that are read: those of prompts, and those of thoughts that do not end them."""

    @property
    @abstractmethod
    def written(self) -> tuple[str, ...]:
        """Symbols of thoughts, including those that end one."""

    @property
    def covering_prompts(self) -> tuple[tuple[str, ...], ...]:
        """Prompts whose thoughts together use every listed part of the spec, as far as they are known."""
        return ()

    @abstractmethod
    def prompt_length(self, words: Sequence[str]) -> int:
        """Return the number of words that are the prompt; all others are thought."""

    @abstractmethod
    def thought(self, prompt: Sequence[str], most: int) -> tuple[str, ...]:
        """Return the first `most` symbols of the thought after a prompt; none after an incomplete prompt."""

    @abstractmethod
    def prompts(self) -> Iterator[tuple[str, ...]]:
        """Return every prompt and prefix of one, short ones first."""

    @abstractmethod
    def draw_prompt(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return a random prompt."""

    def meanings(self) -> dict[str, Meaning]:
        """Return the task: the next symbol of a thought; None in an incomplete prompt and after the end."""
        return {"class": Meaning("symbol", self.vocabulary, self.written, self._after, Thoughts(self))}

    def _after(self, words: Sequence[str]) -> list[Answer]:
        start = self.prompt_length(words)
        symbols: list[Answer] = [next(iter(self.thought(words[:end], 1)), None) for end in range(start)]
        symbols += self.thought(words[:start], len(words) - start + 1)
        return symbols + [None] * (len(words) + 1 - len(symbols))


@dataclass(frozen=True)
class Thoughts:
    """Prompts with their thoughts: the test cases of a network.

    A network that is right after all prefixes writes the right thought after every prompt, as each symbol that it reads
    is then the right one.
    """

    spec: Thinking

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        """Return every prefix of a prompt and its thought once, short ones first, up to a length."""
        for length in count() if longest is None else range(longest + 1):
            for prompt in self.spec.prompts():
                if len(prompt) > length:
                    break
                word = tuple(islice(self.stream(prompt), length))
                if len(word) == length:
                    yield word

    def examples(self) -> Iterator[Iterator[str]]:
        """Return all prompts with their thoughts if they are few; else covering and random ones, always the same."""
        prompts = list(islice(self.spec.prompts(), MAX_PROMPTS + 1))
        if len(prompts) > MAX_PROMPTS:
            rng = np.random.default_rng(0)
            prompts = list(
                dict.fromkeys([*self.spec.covering_prompts, *(self.spec.draw_prompt(rng) for _ in range(MAX_PROMPTS))])
            )
        return map(self.stream, prompts)

    def draw(self, rng: np.random.Generator) -> Iterator[str]:
        """Return a random prompt with its thought."""
        return self.stream(self.spec.draw_prompt(rng))

    def stream(self, prompt: Sequence[str]) -> Iterator[str]:
        """Return a prompt and its thought, which may have no end, without the symbol that ends it."""
        yield from prompt
        readable, known, size = set(self.spec.vocabulary), 0, 64
        while len(thought := self.spec.thought(prompt, size)) > known:
            yield from (symbol for symbol in thought[known:] if symbol in readable)
            known, size = len(thought), 2 * size
