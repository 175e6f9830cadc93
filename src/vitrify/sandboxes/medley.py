"""A medley: several tasks in rows of one shape over one alphabet, so that members of one program may differ in theirs.

All tasks share the numbers of symbols and of answers: the fifth symbol of one is the fifth of another. A row that is
shorter than the longest is filled up with blanks, of which nobody asks. Which task it is a member is not told: it sees
no other. The best answers must follow from the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes.catalogue import LEAST_LOG, Entry, Row, Sandbox, Split
from vitrify.sandboxes.copying import Copying
from vitrify.sandboxes.regular import Regular

BLANK = "_"


@dataclass(frozen=True)
class Medley(Sandbox):
    """Number `task` of the `tasks`; of a number that is not whole the part behind the point does not count."""

    TRACED: ClassVar[tuple[str, ...]] = ("task",)
    kind = "class"

    tasks: tuple[Sandbox, ...] = field(default_factory=lambda: (Copying(states=2, longest=2), Regular(length=6)))
    task: float = 0.0

    def problems(self) -> Iterator[str]:
        if not 0 <= self.task < max(len(self.tasks), 1):
            yield f"task must be from 0 to {len(self.tasks) - 1}, not {self.task:g}"
        if not self.tasks:
            yield "there must be tasks"
        for task in self.tasks:
            if task.reads != "tokens" or task.bidirectional:
                yield f"tasks must be read token by token, {task.name} is not"

    def of(self, split: Split) -> Medley:
        return replace(self, tasks=tuple(task.of(split) for task in self.tasks))

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*map(str, range(max(len(task.symbols) for task in self.tasks))), BLANK)

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(map(str, range(max(len(task.answers) for task in self.tasks))))

    @property
    def blanks(self) -> tuple[str, ...]:
        return (BLANK,)

    @property
    def tokens(self) -> int:
        return max(task.tokens for task in self.tasks)

    def _chosen(self, act: Callable[[Sandbox, Any], Any], given: Any) -> Any:
        """What the member's task makes of something."""
        number = jnp.asarray(self.task, jnp.float32).astype(jnp.int32)
        return jax.lax.switch(number, [lambda given, task=task: act(task, given) for task in self.tasks], given)

    def draw(self, key: Array) -> Row:
        found: Row = self._chosen(self._drawn, key)
        return found

    def _drawn(self, task: Sandbox, key: Array) -> Row:
        row, more = task.draw(key), (0, self.tokens - task.tokens)
        tokens = jnp.pad(row.tokens, more, constant_values=len(self.symbols) - 1)
        return Row(
            tokens.astype(jnp.int32), jnp.pad(row.targets, more).astype(jnp.int32), jnp.pad(row.weight, more), {}
        )

    def optimal(self, row: Row) -> Array:
        return self._chosen(lambda task, row: self._told(task, task.optimal(self._own(task, row))), row)

    def uniform(self, row: Row) -> Array:
        """Every answer of the task alike."""
        return self._chosen(lambda task, row: self._told(task, task.uniform(self._own(task, row))), row)

    def _own(self, task: Sandbox, row: Row) -> Row:
        """The row without its blanks."""
        n = task.tokens
        return Row(row.tokens[:n], row.targets[: n + 1], row.weight[: n + 1], {})

    def _told(self, task: Sandbox, logp: Array) -> Array:
        """Log-probabilities among all answers, those of other tasks impossible; behind the row, all are alike."""
        count = len(self.answers)
        found = jnp.pad(logp, ((0, 0), (0, count - len(task.answers))), constant_values=LEAST_LOG)
        return jnp.pad(found, ((0, self.tokens - task.tokens), (0, 0)), constant_values=-np.log(count))

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        task = self.tasks[int(self.task)]
        tokens, targets = task.reference(rng, count)
        more = ((0, 0), (0, self.tokens - task.tokens))
        return np.pad(tokens, more, constant_values=len(self.symbols) - 1), np.pad(targets, more)


SANDBOX = Entry(Medley, small={"task": 1.0})
