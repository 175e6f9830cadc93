"""The oracle of tasks: the right answer at every position at which one is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.right import one_of
from vitrify.errors import FolderError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.tasks.catalogue import Task

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


class TaskLanguage:
    """The well-formed words of a task, where not every word is one."""

    def __init__(self, task: Task, net: SequenceArchitecture) -> None:
        self.task, self.net = task, net

    def beginnings(self) -> Iterator[list[int]]:
        """Every well-formed word once, short ones first; what is asked at their beginnings is asked with them."""
        for length in range(self.net.max_length + 1):
            yield from (self._ids(word) for word in self.task.words(length))

    def draw(self, rng: np.random.Generator, length: int | None = None) -> list[int]:
        return self._ids(self.task.draw(rng, self.net.max_length if length is None else length))

    def _ids(self, word: tuple[str, ...]) -> list[int]:
        ids = self.net.input_ids
        return [ids[symbol] for symbol in word]


class TaskOracle:
    """What a task's answer is at each position; the distance is 0 or 1, or that of the numbers. Nothing else is judged.

    A tie of the two largest logits counts as wrong: rounding would decide it.
    """

    TIE = 1e-6  # the likeliest symbol must lead by more
    DRAWN = 24  # words that the task draws, where random ones are no words of its own
    REMEMBERED = 1 << 14  # words whose answers are kept for the next variant of the net

    def __init__(self, task: Task, net: SequenceArchitecture) -> None:
        if net.inputs[1:] != task.alphabet or net.output.symbols != task.outputs:
            raise FolderError("the network and its task do not speak about the same symbols and answers")
        if task.numeric != (net.output.kind == "values"):
            raise FolderError("the task asks for numbers and the network gives symbols, or the other way round")
        self.task, self.net = task, net
        self._words = TaskLanguage(task, net)
        self.language = None if task.free else self._words
        self._place = {symbol: place for place, symbol in enumerate(task.outputs)}
        self._right = lru_cache(maxsize=self.REMEMBERED)(self._wanted)

    def tolerance(self) -> float:
        return self.net.output.error if self.task.numeric else 0.5

    def _wanted(self, word: tuple[int, ...]) -> Floats:
        """What is right at every position: numbers [position, out] or a symbol [position, 1]; NaN where not asked."""
        answers = self.task.answers([self.net.inputs[i] for i in word])
        if not self.task.numeric:
            return np.array([self._place[a] if isinstance(a, str) else np.nan for a in answers])[:, None]
        nothing = (np.nan,) * len(self.task.outputs)
        return np.array([nothing if answer is None else answer for answer in answers], dtype=np.float64)

    def _all_wanted(self, words: Ids) -> Floats:
        wide = len(self.task.outputs) if self.task.numeric else 1
        found = [self._right(word) for word in map(tuple, words.tolist())]
        return np.array(found, dtype=np.float64).reshape(*words.shape, wide)

    def asked(self, words: Ids) -> NDArray[np.bool_]:
        """After which prefixes an answer is asked for, [word, prefix]; never before the first symbol."""
        return np.pad(~np.isnan(self._all_wanted(words)[..., 0]), ((0, 0), (1, 0)))

    def right(self, word: Ids) -> Floats:
        wanted = self._all_wanted(word[None])[0]
        if not self.task.numeric:
            wanted = one_of(np.nan_to_num(wanted[:, 0], nan=-1), len(self.task.outputs))
        return np.vstack([np.full((1, len(self.task.outputs)), np.nan), wanted])

    def errors(self, words: Ids, logits: Floats) -> Floats:
        right = self._all_wanted(words)
        word, place = np.nonzero(~np.isnan(right[..., 0]))  # most positions may not be asked about
        found, wanted = logits[word, place + 1], right[word, place]
        if self.task.numeric:
            far = np.abs(found - wanted).max(axis=-1, initial=0.0)
            far = np.where(np.isfinite(far), far, np.inf)
        else:
            own = np.take_along_axis(found, wanted.astype(np.int64), axis=-1)
            np.put_along_axis(found, wanted.astype(np.int64), -np.inf, axis=-1)
            lead = own[:, 0] - found.max(axis=-1, initial=-np.inf)
            far = np.where((lead > self.TIE) & np.isfinite(own[:, 0]), 0.0, 1.0)
        wrong = np.zeros(logits.shape[:2])
        wrong[word, place + 1] = far
        return wrong

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        place = int(np.argmax(self.errors(word[None], logits[None])[0, 1:] > self.tolerance()))
        said, letters = logits[place + 1], [self.net.inputs[i] for i in word]
        found = said.tolist() if self.task.numeric else self.net.output.symbols[int(said.argmax())]
        wanted = self.task.answers(letters)[place]
        return {"word": letters, "place": place, "expected": wanted, "found": found}

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Words that the task draws itself, which may be quite unlike random ones; of full length and of any other."""
        longest = self.net.max_length
        lengths = [longest if place % 2 else int(rng.integers(longest + 1)) for place in range(min(count, self.DRAWN))]
        return [self._words.draw(rng, length) for length in lengths] if self.task.free else []
