"""The oracle of grammars: probabilities of the next word, and the numbers on the way to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.meanings import MeaningOracle
from vitrify.errors import FolderError
from vitrify.kit.heads.logsum import floor_below, guessed, stepped
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.labels import SpaceLabel
from vitrify.net.spaces import Reals
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.sums import Sums, log, sums


@oracle(Grammar, output="lm")
class NextWordOracle(MeaningOracle):
    """The exact probabilities of the next word in a grammar, asked about beginnings of sentences only.

    Rules of a grammar without probabilities count as equally probable. The numbers on the way are logarithms of the
    weights in `spec/grammars/sums.py`; that of 0 must only be low.
    """

    KNOWS_SPACES = True
    LOW = 10.0  # above the least number that a space holds

    def __init__(self, grammar: Grammar, net: SequenceArchitecture) -> None:
        super().__init__(grammar.meanings()["lm"], net)
        self.grammar = grammar if grammar.probabilistic else grammar.uniform()
        self._values: dict[tuple[int, ...], dict[str, Floats]] = {}

    def space_error(self, words: Ints, label: SpaceLabel, vectors: Floats) -> float | None:
        named = re.match(r"(?:sums of|products of|last word)(?:.* @ -(\d{1,9})$)?", label.name)
        if not named or not isinstance(label.kind, Reals):
            return None
        names = label.kind.labels
        back = int(named[1] or 0)  # what was fetched from so many places back
        expected = np.full(vectors.shape, -np.inf)
        for row, word in zip(expected, words, strict=True):
            if not set(names) <= self._weights(word).keys():
                raise FolderError(f"the space {label.name!r} holds numbers that the grammar does not know")
            weights = np.stack([self._weights(word)[name] for name in names], axis=-1)
            row[back:] = weights[: max(len(weights) - back, 0)]
        meant = self._meant(label.name.rpartition(", ")[2], names, expected)
        low = np.maximum(vectors - (label.kind.low + self.LOW), 0.0)
        return float(np.where(np.isfinite(meant), np.abs(vectors - meant), low).max())

    def _meant(self, step: str, names: Sequence[str], logs: Floats) -> Floats:
        """Return the right value of a step of a logarithm: a guess, a better one, or the logarithm itself."""
        ranges = {str(entry.weight): (entry.low, entry.high) for entry in self._sums.listed}
        if step not in ("guessed", "step 1") or not set(names) <= ranges.keys():
            return logs
        floor = floor_below(self._sums.low, self._sums.max_products)
        guesses = np.stack([guessed(logs[..., i], *ranges[name], floor) for i, name in enumerate(names)], axis=-1)
        return guesses if step == "guessed" else np.where(np.isfinite(logs), stepped(logs, guesses), logs)

    def _weights(self, word: Ints) -> dict[str, Floats]:
        """The logarithms of all weights after each number of words, by name."""
        ids = tuple(word.tolist())
        if ids not in self._values:
            values = self._sums.values([self.net.inputs[i] for i in ids])
            logs = {str(w): [log(x) if x else -np.inf for x in numbers] for w, numbers in values.items()}
            self._values[ids] = {name: np.array(numbers) for name, numbers in logs.items()}
        return self._values[ids]

    @cached_property
    def _sums(self) -> Sums:
        return sums(self.grammar)
