"""The oracle of every spec that says what its networks must answer, for kinds that have none of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product

import numpy as np

from vitrify.arrays import Ints
from vitrify.certification.oracles.right import NO_ANSWER, UNKNOWN_SYMBOL, Known, Oracle, some_of
from vitrify.errors import FolderError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.kinds import Answer, Language, Meaning


class Beginnings:
    """Prefixes of the words of a language, as input ids of a network."""

    def __init__(self, language: Language, net: SequenceArchitecture) -> None:
        self.source, self.net = language, net

    def beginnings(self) -> Iterator[list[int]]:
        return map(self._cut, self.source.prefixes(self.net.max_length))

    def draw(self, rng: np.random.Generator) -> list[int]:
        return self._cut(self.source.draw(rng))

    def cases(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Return words that exercise every listed part of the spec; a random part if they are many."""
        return some_of([self._cut(word) for word in islice(self.source.examples(), 100 * count)], rng, count)

    def _cut(self, words: Iterable[str]) -> list[int]:
        ids = self.net.input_ids
        return [ids[word] for word in islice(words, self.net.max_length)]


def refuse_other_names(meaning: Meaning, net: SequenceArchitecture) -> None:
    """Refuse a network whose inputs, answers or accepting answers are not those of a spec, in the spec's order.

    Of symbols that a spec may answer, a network may lack those that it never answers; their order is free.
    """
    symbols = net.output.symbols
    same = set(symbols) <= set(meaning.outputs) if meaning.answer == "symbol" else symbols == meaning.outputs
    if net.inputs[1:] != meaning.inputs or not same:
        raise FolderError("the network and its spec do not speak about the same symbols and answers")
    if set(net.output.accepting) != set(meaning.accepting) & set(symbols):
        raise FolderError("the network and its spec do not accept the same answers")


class MeaningOracle(Oracle):
    """The answers of a meaning."""

    REMEMBERED = 1 << 12  # words whose answers are stored for the next variant of the net
    PATTERNS = 3  # length of the words that are repeated, where there is no language to draw from

    def __init__(self, meaning: Meaning, net: SequenceArchitecture) -> None:
        refuse_other_names(meaning, net)
        self.meaning, self.net, self.answer = meaning, net, meaning.answer
        self.language, self.longest = Beginnings(meaning.language, net) if meaning.language else None, meaning.longest
        self._symbol = {symbol: place for place, symbol in enumerate(net.output.symbols)}
        self._remembered = lru_cache(maxsize=self.REMEMBERED)(self._expected)

    def _expected(self, word: tuple[int, ...]) -> Known:
        """Return the right answers to one word, as `known` does."""
        return self.rows(self.meaning.after([self.net.inputs[i] for i in word]))

    def rows(self, answers: Sequence[Answer]) -> Known:
        """Return answers as `known` does: a symbol's index, or a row, for each."""
        places, kind = self._symbol, self.answer
        if kind == "symbol":
            return np.array([NO_ANSWER if a is None else places.get(str(a), UNKNOWN_SYMBOL) for a in answers], np.int64)
        if kind == "number":
            nothing = (np.nan,) * len(places)
            return np.array([nothing if answer is None else answer for answer in answers], dtype=np.float64)
        rows = np.zeros((len(answers), len(places)))
        for row, answer in zip(rows, answers, strict=True):
            shares = answer if isinstance(answer, Mapping) else dict.fromkeys(map(str, answer or ()), 1.0)
            row[[places[symbol] for symbol in shares]] = [float(share) for share in shares.values()]
        return rows.astype(bool) if kind == "set" else rows

    def known(self, words: Ints) -> Known:
        return np.stack([self._remembered(tuple(word)) for word in words.tolist()])

    def cases(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Return words of the language, or short words that are repeated to the full length, a random part of them."""
        if isinstance(self.language, Beginnings):
            return self.language.cases(rng, count)
        letters, length = range(1, len(self.net.inputs)), self.net.max_length
        shorts = [
            short for size in range(1, self.PATTERNS + 1) for short in islice(product(letters, repeat=size), count)
        ]
        words = list(dict.fromkeys((short * length)[:length] for short in shorts))
        return [[*words[i]] for i in sorted(rng.permutation(len(words))[:count].tolist())]
