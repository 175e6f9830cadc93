"""The oracle of tasks: the right answer at every position at which one is asked for."""

from __future__ import annotations

import numpy as np

from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.meanings import Beginnings, MeaningOracle
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.tasks.catalogue import Task, WellFormed


class TaskWords(Beginnings):
    """The well-formed words of a task; random ones are as long as the network reads."""

    source: WellFormed

    def draw(self, rng: np.random.Generator) -> list[int]:
        return self._cut(self.source.task.draw(rng, self.net.max_length))


@oracle(Task)
class TaskOracle(MeaningOracle):
    """The answers of a task, and words that it draws itself."""

    DRAWN = 24  # words drawn by the task at most, beside random ones, where every word is well-formed
    REMEMBERED = 1 << 14  # words whose answers are cached

    def __init__(self, task: Task, net: SequenceArchitecture) -> None:
        super().__init__(task.meanings()[net.output.kind], net)
        self.task, self.language = task, None if task.free else TaskWords(WellFormed(task), net)

    def cases(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Return words drawn by the task, half of them of full length, half of random length."""
        longest, ids = self.net.max_length, self.net.input_ids
        lengths = [longest if place % 2 else int(rng.integers(longest + 1)) for place in range(min(count, self.DRAWN))]
        drawn = [self.task.draw(rng, length) for length in lengths] if self.task.free else []
        return [[ids[symbol] for symbol in word] for word in drawn]
