"""The oracle of programs: the interpreter's values at every position."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.right import one_of
from vitrify.errors import FolderError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.crasp import Crasp
from vitrify.spec.ltl import Formula
from vitrify.spec.program_batch import Batch
from vitrify.spec.program_file import Program

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


def _same_symbols(net: SequenceArchitecture, alphabet: tuple[str, ...]) -> None:
    if net.inputs[1:] != alphabet:
        raise FolderError("the network and its program do not speak about the same symbols")


class ProgramOracle:
    """What a program says at every position of a word; before the first token it says nothing."""

    language = None
    TIE = 1e-6  # the likeliest symbol must lead by more
    TOLERANCE = 1e-9  # of numbers that are means

    def __init__(self, program: Program, net: SequenceArchitecture) -> None:
        _same_symbols(net, program.alphabet)
        if net.max_length > program.length:
            raise FolderError(
                f"the network reads {net.max_length} symbols, its program is for {program.length} at most"
            )
        self.net = net
        self.domain = program.values[program.root]
        self.batch: Callable[[Ids], Ids] = Batch(program.root, program.values)

    def tolerance(self) -> float:
        return self.TOLERANCE if self.net.output.kind == "values" else 0.5

    def errors(self, words: Ids, logits: Floats) -> Floats:
        wanted = self.batch(words - 1)
        found = logits[:, 1:]
        if self.net.output.kind == "values":
            numbers = np.array([float(v) for v in self.domain])  # type: ignore[arg-type]
            wrong = np.abs(found[..., 0] - numbers[wanted])
        else:
            own = np.take_along_axis(found, wanted[..., None], axis=-1)[..., 0]
            others = found.copy()
            np.put_along_axis(others, wanted[..., None], -np.inf, axis=-1)
            ahead = own - others.max(axis=-1, initial=-np.inf) > self.TIE
            wrong = np.where(ahead & np.isfinite(own), 0.0, 1.0)
        wrong = np.where(np.isfinite(wrong), wrong, np.inf)
        return np.concatenate([np.zeros((len(words), 1)), wrong], axis=1)

    def right(self, word: Ids) -> Floats:
        wanted, symbols = self.batch(word[None] - 1)[0], self.net.output.symbols
        if self.net.output.kind == "values":
            rows = np.array([[float(self.domain[place])] for place in wanted.tolist()])
        else:
            said = [str(self.domain[place]) for place in wanted.tolist()]
            rows = one_of([symbols.index(symbol) if symbol in symbols else -1 for symbol in said], len(symbols))
        return np.vstack([np.full((1, len(symbols)), np.nan), rows.reshape(-1, len(symbols))])

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        letters = [self.net.inputs[i] for i in word]
        place = int(np.argmax(self.errors(word[None], logits[None])[0, 1:] > self.tolerance()))
        said = logits[place + 1]
        found = float(said[0]) if self.net.output.kind == "values" else self.net.output.symbols[int(said.argmax())]
        wanted = self.domain[int(self.batch(word[None] - 1)[0, place])]
        return {"word": letters, "place": place, "expected": str(wanted), "found": found}

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Words of one letter repeated, at every length that is a power of two, and at the longest."""
        lengths = sorted({min(2**k, self.net.max_length) for k in range(self.net.max_length.bit_length() + 1)})
        asked = [[letter] * n for letter in range(1, len(self.net.inputs)) for n in lengths]
        picked = rng.permutation(len(asked))[:count]
        return [asked[i] for i in sorted(picked.tolist())]


class TruthOracle(ProgramOracle):
    """Where a formula or a counting program is true, by its meaning and not by way of a program."""

    def __init__(self, formula: Formula | Crasp, net: SequenceArchitecture) -> None:
        _same_symbols(net, formula.alphabet)
        self.net = net
        self.domain = (False, True)
        self.batch = lambda words: formula.holds(words).astype(np.int64)

    def errors(self, words: Ids, logits: Floats) -> Floats:
        """A net that can only ever say one of the two is right where that is so."""
        symbols = self.net.output.symbols
        columns = [logits[..., symbols.index(s)] if s in symbols else -np.inf for s in ("False", "True")]
        return super().errors(words, np.stack(np.broadcast_arrays(*columns, logits[..., 0])[:2], axis=-1))

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Also words of one letter, then as often another: counts that cancel, far from the beginning."""
        letters, half = range(1, len(self.net.inputs)), self.net.max_length // 2
        pairs = [[a] * half + [b] * half for a in letters for b in letters if a != b]
        return [*pairs[:count], *super().questions(rng, count)]
