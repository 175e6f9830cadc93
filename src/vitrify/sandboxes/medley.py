"""A medley: several tasks with sequences of one shape over one alphabet, so members of a program may differ in task.

All tasks share the numbers of symbols and of answers: the fifth symbol of one is the fifth of another. A sequence that
is shorter than the longest is filled up with blanks, of which nobody asks. Which task it is a member is not told: it
sees no other. The best answers must follow from the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Tree
from vitrify.sandboxes.catalogue import LEAST_LOG, Array, Entry, Example, LogProbs, Sandbox, Split
from vitrify.sandboxes.copying import CopyingSandbox
from vitrify.sandboxes.regular import Regular

BLANK = "_"


@dataclass(frozen=True)
class Medley(Sandbox):
    """Number `task` of the `tasks`; of a number that is not whole the part behind the point does not count."""

    blanks = (BLANK,)
    TRACED = ("task",)
    kind = "class"

    tasks: tuple[Sandbox, ...] = field(default_factory=lambda: (CopyingSandbox(states=2, longest=2), Regular(length=6)))
    task: float = 0.0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if not self.tasks:
            yield "tasks", "must not be empty"
        elif not 0 <= self.task < len(self.tasks):
            yield "task", f"must be from 0 to {len(self.tasks) - 1}, not {self.task:g}"
        for task in self.tasks:
            if task.reads != "tokens" or task.bidirectional:
                yield "tasks", f"must be read token by token, {task.name} is not"

    def of(self, split: Split) -> Medley:
        return replace(self, tasks=tuple(task.of(split) for task in self.tasks))

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*map(str, range(max(len(task.symbols) for task in self.tasks))), BLANK)

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(map(str, range(max(len(task.answers) for task in self.tasks))))

    @property
    def tokens(self) -> int:
        return max(task.tokens for task in self.tasks)

    def _chosen(self, act: Callable[[Sandbox, Tree], Tree], arguments: Tree) -> Tree:
        """Return `act(task, arguments)` for the member's task."""
        number = jnp.asarray(self.task, jnp.float32).astype(jnp.int32)
        return jax.lax.switch(
            number, [lambda arguments, task=task: act(task, arguments) for task in self.tasks], arguments
        )

    def draw(self, key: Array) -> Example:
        example: Example = self._chosen(self._drawn, key)
        return example

    def _drawn(self, task: Sandbox, key: Array) -> Example:
        example, more = task.draw(key), (0, self.tokens - task.tokens)
        tokens = jnp.pad(example.tokens, more, constant_values=len(self.symbols) - 1)
        targets, weight = (jnp.pad(each, more) for each in (example.targets, example.weight))
        return Example(tokens.astype(jnp.int32), targets.astype(jnp.int32), weight, {})

    def optimal(self, example: Example) -> LogProbs:
        return self._chosen(lambda task, example: self._told(task, task.optimal(self._own(task, example))), example)

    def uniform(self, example: Example) -> LogProbs:
        """Every answer of the task alike."""
        return self._chosen(lambda task, example: self._told(task, task.uniform(self._own(task, example))), example)

    def _own(self, task: Sandbox, example: Example) -> Example:
        """The sequence without its blanks."""
        n = task.tokens
        return Example(example.tokens[:n], example.targets[: n + 1], example.weight[: n + 1], {})

    def _told(self, task: Sandbox, logp: Array) -> Array:
        """Log-probabilities among all answers, those of other tasks impossible; behind the sequence, all are alike."""
        count = len(self.answers)
        padded = jnp.pad(logp, ((0, 0), (0, count - len(task.answers))), constant_values=LEAST_LOG)
        return jnp.pad(padded, ((0, self.tokens - task.tokens), (0, 0)), constant_values=-np.log(count))


SANDBOX = Entry(Medley, small={"task": 1.0})
