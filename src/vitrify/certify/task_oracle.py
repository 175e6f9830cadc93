"""The oracle of tasks: the right answer at every position at which one is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

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

    def _wanted(self, word: tuple[int, ...]) -> tuple[NDArray[np.bool_], Floats]:
        """Which positions are asked, and what is right there: numbers [position, out], or a one-hot row."""
        answers = self.task.answers([self.net.inputs[i] for i in word])
        asked = np.array([answer is not None for answer in answers], dtype=bool)
        right = np.zeros((len(word), len(self.task.outputs)))
        for row, answer in zip(right, answers, strict=True):
            if isinstance(answer, str):
                row[self._place[answer]] = 1.0
            elif answer is not None:
                row[:] = answer
        return asked, right

    def errors(self, words: Ids, logits: Floats) -> Floats:
        wrong = np.zeros(logits.shape[:2])
        for row, word, found in zip(wrong, words, logits[:, 1:], strict=True):
            asked, right = self._right(tuple(word.tolist()))
            if self.task.numeric:
                far = np.abs(found - right).max(axis=-1, initial=0.0)
                far = np.where(np.isfinite(far), far, np.inf)
            else:
                best = np.where(right > 0, -np.inf, found).max(axis=-1, initial=-np.inf)
                own = (found * right).sum(axis=-1)
                far = np.where((own - best > self.TIE) & np.isfinite(own), 0.0, 1.0)
            row[1:] = np.where(asked, far, 0.0)
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
        lengths = [longest if place % 2 else int(rng.integers(longest + 1)) for place in range(min(count, 64))]
        return [self._words.draw(rng, length) for length in lengths] if self.task.free else []
