"""Shared parts of the nets for word-class languages: the window, classes of words, words of classes, answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from vitrify.arrays import Floats
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import AttentionKind, Builder, MultiHot, Network, Output, Readout, Space
from vitrify.kit.positions import CodeName, dimensions, position_code
from vitrify.spec.languages.word_patterns import Context, WordPatterns
from vitrify.spec.ngrams.model import BEGIN, END

Only = tuple[list[int], MultiHot]  # the dimensions that a head copies, and the space that they make

MAX_LOGIT_ERROR = 0.25  # by soft attention; logits are at least 1/2 away from 0


@dataclass(frozen=True)
class Window:
    """A language read through its last `n` - 1 words, and the least n that is exact."""

    spec: WordPatterns
    n: int
    least: int

    @classmethod
    def of(cls, spec: WordPatterns, n: int | None) -> Window:
        """Return the window of the given n, by default the least one that is exact."""
        least = spec.window()
        return cls(spec, n or least, least)

    @property
    def inputs(self) -> tuple[str, ...]:
        """BOS, and the words."""
        return (BEGIN, *self.spec.vocabulary)

    @property
    def output(self) -> Output:
        """The set of words that may come next, or the end of the sentence."""
        return Output("next", (*self.spec.vocabulary, END))

    @property
    def follow(self) -> tuple[str, ...]:
        """The names of what hidden units write: the classes, and the end of the sentence."""
        return (*self.spec.members, END)

    def answers(self, following: Iterable[frozenset[str]]) -> Floats:
        """Return the classes that follow each context, as rows of zeros and ones."""
        return np.array([[float(name in classes) for name in self.follow] for classes in following])

    def unembedding(self) -> tuple[Floats, Floats]:
        """Return matrix [class, word] and bias: a logit is positive iff some class of the word follows."""
        spread = memberships(self.spec, self.output.symbols, self.follow).T
        return spread, np.full(len(self.output.symbols), -0.5)

    def facts(self, variant: str, **more: object) -> dict[str, object]:
        """Return the facts a net carries about itself: its variant, more facts, and those of the window."""
        exact = (
            "yes" if self.n >= self.least else f"no: allows too much, never too little; --window {self.least} is exact"
        )
        seen = {"window": self.n, "least window": self.least, "exact": exact, "words": len(self.spec.vocabulary)}
        return {"variant": variant, **more, **seen}


def memberships(spec: WordPatterns, words: Sequence[str], names: Sequence[str]) -> Floats:
    """Return a 0/1 matrix [word, class]: which words are in which classes; BOS and the end are their own class."""
    matrix = np.zeros((len(words), len(names)))
    place = {name: number for number, name in enumerate(names)}
    for number, word in enumerate(words):
        for name in spec.classes_of.get(word, (word,)):
            if name in place:
                matrix[number, place[name]] = 1.0
    return matrix


def newest_first(contexts: Iterable[Context]) -> list[tuple[str | None, ...]]:
    """Return the classes of all contexts slot by slot, the last word first; None before the beginning."""
    return list(zip_longest(*(reversed(context) for context in contexts)))


def start_builder(window: Window, name: str, attention: AttentionKind, max_length: int | None) -> Builder:
    """Return an empty transformer that reads the words of the language."""
    return Builder(
        f"{name}, window {window.n}, {attention}", window.inputs, max_length or window.spec.longest, attention
    )


def with_previous_words(net: Builder, own: Space, only: Sequence[Only | None], positions: CodeName) -> list[Space]:
    """Return the spaces of the word itself and of the words before it, copied by one head each, newest first.

    `only` has one entry for each word before: the dimensions to copy, or None for all.
    """
    slots = [own]
    if only:
        code = position_code(positions, net.max_length, range(1, len(only) + 1))
        position = net.embed_position("position", code.kind(), code.table())
        for back, part in enumerate(only, start=1):
            slots.append(shift(net, own, back, code, position, name=f"{back} back", only=part))
    return slots


def heads(spec: WordPatterns, n: int) -> int:
    """Return the number of heads: one for each word of the window, or BOS, except the newest."""
    return min(n - 1, spec.longest + 1) - 1


def words_after(spec: WordPatterns) -> dict[str, int]:
    """Return $d_c$, the most words that can come after a class, by classes."""
    after = dict.fromkeys(spec.members, 0)
    for pattern in spec.patterns:
        for index, name in enumerate(pattern, start=1):
            after[name] = max(after[name], len(pattern) - index)
    return after


def position_dimensions(spec: WordPatterns, heads: int, max_length: int | None, positions: CodeName) -> int:
    """Return the dimensions of the position code and of the mark of BOS, which nets without heads do not have."""
    return dimensions(positions, max_length or spec.longest, range(1, heads + 1)) + 1 if heads else 0


def finish_network(
    net: Builder, window: Window, next_class: Space, construction: str, facts: dict[str, object], source: str
) -> Network:
    """Return the network whose logits are positive for the words of the classes that follow."""
    spread, bias = window.unembedding()
    need = MAX_LOGIT_ERROR / float(spread.sum(axis=0).max())
    readout = Readout(((next_class, spread),), bias, {next_class: need})
    # without reuse, there are no units but the contexts'
    return net.network(window.output, readout, construction, facts, source=f"in the spirit of {source}", reuse=False)
