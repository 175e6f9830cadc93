"""The oracle of programs: the interpreter's values at every position."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.right import NO_ANSWER, Oracle, some_of, symbol_indices
from vitrify.errors import FolderError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.programs.batch import Batch
from vitrify.spec.programs.program import Program
from vitrify.spec.programs.values import Domain, symbols_of


@oracle(Program)
class ProgramOracle(Oracle):
    """Outputs of a program at every position of a word; before the first token, its answer for the empty word."""

    def __init__(self, program: Program, net: SequenceArchitecture) -> None:
        if net.max_length > program.length:
            raise FolderError(
                f"the network reads {net.max_length} symbols, its program is for {program.length} at most"
            )
        values = program.values
        domain = values[program.root]
        empty = -1 if program.empty is None else domain.index(program.empty)
        self._compare(net, domain, Batch(program.root, values), empty)

    def _compare(
        self, net: SequenceArchitecture, domain: Domain, run: Callable[[Ints], Ints | Bools], empty: int = -1
    ) -> None:
        """Judge a network by a function from letters [word, position] to indices of values in a domain.

        `empty` is the index of the answer for the empty word, -1 if there is none.
        """
        self.net, self._run, self._empty = net, run, empty + 1
        self.answer = "number" if net.output.kind == "values" else "symbol"
        self._rows: Ints | Floats
        if self.answer == "number":
            self._rows = np.array([[np.nan], *([float(value)] for value in domain)])  # type: ignore[arg-type]  # numbers
        else:
            self._rows = np.array([NO_ANSWER, *symbol_indices(net, symbols_of(domain))])

    PAIRS = 600  # words of two letters, at most

    def tolerance(self) -> float:
        return self.TOLERANCE if self.answer == "number" else 0.0

    def known(self, words: Ints) -> Ints | Floats:
        index = self._run(words - 1).astype(np.int64) + 1
        first = 0 if words.shape[1] and self.net.looks_ahead else self._empty  # BOS alone, or what comes is not seen
        return self._rows[np.pad(index, ((0, 0), (1, 0)), constant_values=((0, 0), (first, 0)))]

    def cases(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Words of one letter repeated, at every length that is a power of two; one letter, then another.

        The latter have every number of both letters: where later letters count, at every length, else as prefixes.
        They are a random part if there are many.
        """
        longest, letters = self.net.max_length, range(1, len(self.net.inputs))
        lengths = sorted({min(2**k, longest) for k in range(longest.bit_length() + 1)})
        words = [[letter] * n for letter in letters for n in lengths]
        ends = range(2, longest + 1) if self.net.looks_ahead else [longest]
        shares = [(end, first) for end in ends for first in range(1, end)]
        pairs = [(a, b) for a in letters for b in letters if a != b]
        size = len(shares) * len(pairs)
        most = min(size, self.PAIRS, max(0, count - len(words)))
        picked = sorted(rng.choice(size, size=most, replace=False).tolist())
        for number in picked:
            (a, b), (end, first) = pairs[number // len(shares)], shares[number % len(shares)]
            words.append([a] * first + [b] * (end - first))
        return some_of(words, rng, count)


@oracle(Formula, Crasp)
class TruthOracle(ProgramOracle):
    """Where a formula or a counting program is true, by its meaning and not by way of a program.

    A network that can only ever say one of the two is right where that is so.
    """

    def __init__(self, formula: Formula | Crasp, net: SequenceArchitecture) -> None:
        self._compare(net, (False, True), formula.holds)
