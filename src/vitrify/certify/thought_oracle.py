"""The oracle of chains of thought: the right next symbol after every beginning of a prompt and its thought."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.right import one_of
from vitrify.errors import FolderError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.thought import Thinking

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
NOTHING = -1  # where no symbol is asked for


class Thoughts:
    """What may be asked about: prompts with their thoughts, and the beginnings of these.

    A net that is right after all of them writes the right thought after every prompt, as each symbol that it reads is
    then the right one.
    """

    MOST = 1 << 10  # prompts that are asked about

    def __init__(self, spec: Thinking, net: SequenceArchitecture) -> None:
        if net.inputs[1:] != spec.vocabulary or net.output.symbols != spec.written:
            raise FolderError("the network and its spec do not speak about the same symbols")
        self.spec, self.net = spec, net

    def whole(self, prompt: Sequence[str]) -> list[int]:
        """A prompt and its thought, without the symbol that ends it, cut to what the network reads."""
        ids = self.net.input_ids
        thought = self.spec.thought(prompt, max(0, self.net.max_length - len(prompt)))
        read = [*prompt, *(symbol for symbol in thought if symbol in ids)]
        return [ids[symbol] for symbol in read[: self.net.max_length]]

    def beginnings(self) -> Iterator[list[int]]:
        for length in range(self.net.max_length + 1):
            for prompt in self.spec.prompts():
                if len(prompt) > length:
                    break
                word = self.whole(prompt)
                if len(word) >= length:
                    yield word[:length]

    def draw(self, rng: np.random.Generator) -> list[int]:
        return self.whole(self.spec.draw_prompt(rng))

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """All prompts if they are few, or else random ones."""
        count = min(count, self.MOST)
        prompts = list(islice(self.spec.prompts(), count + 1))
        if len(prompts) > count:
            prompts = list(dict.fromkeys(self.spec.draw_prompt(rng) for _ in range(count)))
        return [self.whole(prompt) for prompt in prompts]


class ThoughtOracle:
    """The next symbol of a thought: the distance is 0 or 1; nothing is judged where no symbol is asked for.

    A tie of the two largest logits counts as wrong: rounding would decide it.
    """

    TIE = 1e-6  # the likeliest symbol must lead by more
    REMEMBERED = 1 << 14  # words whose answers are kept for the next variant of the net

    def __init__(self, spec: Thinking, net: SequenceArchitecture) -> None:
        self.language = Thoughts(spec, net)
        self.spec, self.net = spec, net
        self._place = {symbol: place for place, symbol in enumerate(net.output.symbols)}
        self._right = lru_cache(maxsize=self.REMEMBERED)(self._wanted)

    def tolerance(self) -> float:
        return 0.0

    def _wanted(self, word: tuple[int, ...]) -> Ids:
        """The place of the right symbol after each number of words."""
        words = [self.net.inputs[i] for i in word]
        start = self.spec.prompt_length(words)
        firsts = [self.spec.thought(words[:end], 1) for end in range(start)]
        along = [first[0] if first else None for first in firsts]
        along += self.spec.thought(words[:start], len(words) - start + 1)
        along += [None] * (len(words) + 1 - len(along))
        return np.array([NOTHING if symbol is None else self._place[symbol] for symbol in along])

    def errors(self, words: Ids, logits: Floats) -> Floats:
        right = np.stack([self._right(tuple(word.tolist())) for word in words])
        own = np.take_along_axis(logits, np.maximum(right, 0)[..., None], axis=-1)[..., 0]
        others = logits.copy()
        np.put_along_axis(others, np.maximum(right, 0)[..., None], -np.inf, axis=-1)
        good = (own - others.max(axis=-1) > self.TIE) & np.isfinite(logits).all(axis=-1)
        return np.where(good | (right == NOTHING), 0.0, 1.0)

    def right(self, word: Ids) -> Floats:
        return one_of(self._right(tuple(word.tolist())), len(self._place))

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        words = [self.net.inputs[i] for i in word]
        start = self.spec.prompt_length(words)
        return {
            "prompt": words[:start],
            "thought": words[start:],
            "expected": self.net.output.symbols[int(self._right(tuple(word.tolist()))[-1])],
            "found": self.net.output.symbols[int(logits[-1].argmax())],
        }

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        return self.language.questions(rng, count)
