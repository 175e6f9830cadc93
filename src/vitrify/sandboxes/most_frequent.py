"""The most frequent letter of a word, the first in the alphabet among equally frequent ones.

Sources: Zhou et al. 2023, arXiv 2310.16028 (there called mode); Huang et al. 2024, arXiv 2410.02140.
"""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.sandboxes.catalogue import Array, Entry
from vitrify.sandboxes.kit.counted import Letters
from vitrify.spec.tasks.catalogue import letters


@dataclass(frozen=True)
class MostFrequent(Letters):
    """The answer is the most frequent of `states` letters."""

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(letters(self.states))

    def answer(self, counts: Array) -> Array:
        return counts.argmax(axis=-1)


SANDBOX = Entry(MostFrequent, small={"states": 3, "longest": 4})
