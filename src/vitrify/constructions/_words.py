"""What the nets for word-class languages share: the window, the classes of words, the words of classes, the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.constructions.catalogue import Settings
from vitrify.errors import BuildRefused
from vitrify.kit.heads import shift
from vitrify.kit.network import Builder, Network, Readout, Space
from vitrify.kit.positions import CodeName, position_code
from vitrify.net.architecture import Output
from vitrify.net.spaces import MultiHot
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ngram import BEGIN, END
from vitrify.spec.patterns import Context, WordPatterns

Floats = NDArray[np.float64]
Only = tuple[list[int], MultiHot]  # the dimensions that a head copies, and the space that they make

LOGIT_ERROR = 0.25  # what soft attention may do to a logit, which is at least 1/2 away from 0


@dataclass(frozen=True)
class Window:
    """A language seen through its last `n` - 1 words, and the least n that loses nothing."""

    spec: WordPatterns
    n: int
    least: int

    @classmethod
    def of(cls, spec: WordPatterns, asked: int | None) -> Window:
        """The window that was asked for, or the least one that is exact."""
        least = spec.window()
        n = least if asked is None else asked
        if n < 2:
            raise BuildRefused(f"--window must be at least 2, so that the last word is seen, got {n}")
        return cls(spec, n, least)

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
        """What hidden units write: the classes, and the end of the sentence."""
        return (*self.spec.members, END)

    def answers(self, following: Iterable[frozenset[str]]) -> Floats:
        """The classes that follow each context, as rows of zeros and ones."""
        return np.array([[float(name in found) for name in self.follow] for found in following])

    def unembedding(self) -> tuple[Floats, Floats]:
        """Classes are spread over their words [class, word]; a logit is positive iff some class of the word follows."""
        spread = memberships(self.spec, self.output.symbols, self.follow).T
        return spread, np.full(len(self.output.symbols), -0.5)

    def about(self, construction: str, shape: str, source: str, **more: object) -> dict[str, Any]:
        """What a net says of itself."""
        exact = (
            "yes" if self.n >= self.least else f"no: allows too much, never too little; --window {self.least} is exact"
        )
        head = {"construction": construction, "shape": shape}
        seen = {"window": self.n, "least window": self.least, "exact": exact, "words": len(self.spec.vocabulary)}
        return head | more | seen | {"source": f"in the spirit of {source}"}


def memberships(spec: WordPatterns, words: Sequence[str], names: Sequence[str]) -> Floats:
    """Which words [word, class] are in which of the named classes; BOS and the end can be alone in one of their own."""
    found = np.zeros((len(words), len(names)))
    place = {name: number for number, name in enumerate(names)}
    for number, word in enumerate(words):
        for name in spec.classes_of.get(word, (word,)):
            if name in place:
                found[number, place[name]] = 1.0
    return found


def newest_first(contexts: Iterable[Context]) -> list[tuple[str | None, ...]]:
    """What the contexts have at each slot of the window, nothing beyond the beginning of the sentence."""
    return list(zip_longest(*(reversed(context) for context in contexts)))


def begun(window: Window, name: str, attention: AttentionKind, max_length: int | None) -> Builder:
    """A transformer that reads the words of the language."""
    return Builder(
        name=f"{name}, window {window.n}, {attention}",
        inputs=window.inputs,
        max_length=max_length or window.spec.longest,
        attention=attention,
    )


def with_earlier(net: Builder, own: Space, only: Sequence[Only | None], positions: CodeName) -> list[Space]:
    """What a position holds of its own word and, by one head each, of the words before it: the newest first.

    `only` has one entry for each word before: the part of its space that is copied, or None for all.
    """
    slots = [own]
    if only:
        code = position_code(positions, net.max_length, range(1, len(only) + 1))
        where = net.place("position", code.kind(), code.table())
        for back, part in enumerate(only, start=1):
            slots.append(shift(net, own, back, code, where, name=f"{back} back", only=part))
    return slots


def heads(spec: WordPatterns, n: int) -> int:
    """How many heads bring the words of the window: one for each word or BOS but the newest."""
    return min(n - 1, spec.longest + 1) - 1


def finished(net: Builder, window: Window, next_class: Space, about: dict[str, Any]) -> Network:
    """The network whose logits are positive for the words of the classes that follow."""
    spread, bias = window.unembedding()
    need = LOGIT_ERROR / float(spread.sum(axis=0).max())
    readout = Readout(((next_class, spread),), bias, {next_class: need})
    return net.network(window.output, readout, about, reuse=False)  # no units but the contexts'


def from_settings(construct: Callable[..., Network]) -> Callable[[object, Settings], Network]:
    """A catalogue entry's `make` for a transformer that takes a window, an attention, a length and positions."""

    def make(spec: object, settings: Settings) -> Network:
        return construct(
            spec,
            window=settings.window,
            attention=settings.attention,
            max_length=settings.max_length,
            positions=settings.positions or "dyadic",
        )

    return make
