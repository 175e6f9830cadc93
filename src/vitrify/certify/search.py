"""Attacks on nets that read words: a search for the word after which the right answer leads by least, or not at all.

An answer says nothing of a fault until the fault is met; what goes on inside does. So the search keeps a beam of the
words with the smallest margins, and beside it, for every hidden unit that no word has switched on yet, the word that
comes nearest to it. In every round such words are changed a little (letters replaced, put in, taken out, stretches
taken over from another word), and some new random ones join them. Where only the sentences of a language may be asked
about, all words are drawn from it. A search that finds nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.oracles import AsksSome
from vitrify.certify.refute import leads
from vitrify.certify.words import FLOATS, WordExamination
from vitrify.net.weights import Weights

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Word = tuple[int, ...]

BEAM = 8  # words with the smallest margins that are gone on from
WATCHED = 16  # units that are nearest to being switched on for the first time
ROUND = 64  # words of one round
FRESH = 8  # of them new
SHOWN = 32  # symbols of a word in a note


@dataclass(frozen=True)
class Attack:
    """How many words were tried, the smallest margin and the word that has it; `witness` is a wrong answer, if any.

    A margin is by how much an answer to a word of at least one symbol leads, or, of numbers and probabilities, what is
    left of the tolerance.
    """

    tried: int
    margin: float
    word: tuple[str, ...]
    witness: dict[str, object] | None = None

    @property
    def said(self) -> str:
        """The word as text, a long one cut."""
        return " ".join(self.word[:SHOWN]) + (f" … ({len(self.word)} symbols)" if len(self.word) > SHOWN else "")


def attack_words(weights: Weights[Any], questions: WordExamination, count: int, seed: int = 0) -> Attack:
    """Try so many words, or fewer if one gets a wrong answer."""
    search = _Search(weights, questions, np.random.default_rng(seed))
    words = search.fresh(min(count, ROUND))
    while True:
        search.ask(words)
        left = count - search.tried
        if search.witness is not None or left <= 0:
            break
        words = search.next(min(left, ROUND))
    inputs = weights.architecture.inputs
    return Attack(search.tried, search.margin, tuple(inputs[i] for i in search.worst), search.witness)


@dataclass(eq=False)
class _Search:
    """The words that the search goes on from, and the worst that it has seen."""

    weights: Weights[Any]
    questions: WordExamination
    rng: np.random.Generator
    beam: list[tuple[float, float, Word]] = field(default_factory=list)  # margin, a lot that parts equal ones, word
    nearest: dict[tuple[str, int], tuple[float, Word]] = field(default_factory=dict)
    awake: set[tuple[str, int]] = field(default_factory=set)
    tried: int = 0
    margin: float = np.inf
    worst: Word = ()
    witness: dict[str, object] | None = None
    _asked: dict[int, NDArray[np.bool_]] = field(default_factory=dict)

    # ---- words
    def fresh(self, count: int) -> list[Word]:
        """Random words: sentences of the language, or words of full length (and, if the end matters, shorter ones)."""
        net, language = self.questions.net, self.questions.oracle.language
        if language is not None:
            return [tuple(language.draw(self.rng)) for _ in range(count)]
        letters = len(net.inputs) - 1
        shortest = max(net.min_length, 1)
        lengths = [net.max_length] * count
        if net.looks_ahead and shortest < net.max_length:
            lengths = [
                int(self.rng.integers(shortest, net.max_length + 1)) if i % 2 else net.max_length for i in lengths
            ]
        return [tuple((self.rng.integers(letters, size=n) + 1).tolist()) if letters else () for n in lengths]

    def next(self, count: int) -> list[Word]:
        """The words of the next round."""
        if self.questions.oracle.language is not None or len(self.questions.net.inputs) < 2:
            return self.fresh(count)
        quiet = sorted(self.nearest.values(), reverse=True)[:WATCHED]
        parents = [word for _, _, word in self.beam] + [word for _, word in quiet]
        picked = [parents[int(i)] for i in self.rng.integers(len(parents), size=max(count - FRESH, 1))]
        changed = [self._changed(word, parents) for word in picked]
        return (changed + self.fresh(FRESH))[:count]

    def _changed(self, word: Word, parents: list[Word]) -> Word:
        """A word a little different from another one."""
        net, rng, new = self.questions.net, self.rng, list(word)
        ways: list[Callable[[list[int], list[Word]], None]] = [self._replace, self._insert, self._delete, self._take]
        for _ in range(int(rng.integers(1, 3))):
            ways[int(rng.integers(len(ways)))](new, parents)
        new = new[: net.max_length]
        while len(new) < (net.min_length if net.looks_ahead else net.max_length):
            new.append(self._letter())
        return tuple(new)

    def _letter(self) -> int:
        return int(self.rng.integers(1, len(self.questions.net.inputs)))

    def _replace(self, word: list[int], _: list[Word]) -> None:
        if word:
            word[int(self.rng.integers(len(word)))] = self._letter()

    def _insert(self, word: list[int], _: list[Word]) -> None:
        word.insert(int(self.rng.integers(len(word) + 1)), self._letter())

    def _delete(self, word: list[int], _: list[Word]) -> None:
        if word:
            del word[int(self.rng.integers(len(word)))]

    def _take(self, word: list[int], parents: list[Word]) -> None:
        """A stretch of another word, at the same place."""
        other = parents[int(self.rng.integers(len(parents)))]
        if word and other:
            start, stop = sorted(self.rng.integers(min(len(word), len(other)) + 1, size=2).tolist())
            word[start:stop] = other[start:stop]

    # ---- answers
    def ask(self, words: Iterable[Word]) -> None:
        """Run words, and keep what is worth going on from."""
        by_length: dict[int, list[Word]] = {}
        for word in words:
            by_length.setdefault(len(word), []).append(word)
        for length, some in sorted(by_length.items()):
            step = max(1, FLOATS // self.questions.net.activations(length + self.questions.net.pads))
            for at in range(0, len(some), step):
                if self.witness is None:
                    part = some[at : at + step]
                    self._run(np.array(part, dtype=np.int64).reshape(len(part), length))

    def _run(self, words: Ids) -> None:
        net, oracle = self.questions.net, self.questions.oracle
        tokens = np.concatenate([np.zeros((len(words), net.pads), dtype=np.int64), words], axis=1)
        seen: dict[str, Floats] = {}

        def record(name: str, value: Any) -> None:
            if name.endswith("mlp.hook_pre"):
                seen[name] = value[:, net.pads :]

        logits = np.asarray(net.forward(self.weights.prepared, tokens, record=record))[:, net.pads - 1 :]
        errors = oracle.errors(words, logits)
        margins = self._margins(words, logits, errors)
        self.tried += len(words)
        known = {word for *_, word in self.beam}
        lots = self.rng.random(len(words))
        for row in np.lexsort((lots, margins))[:BEAM].tolist():
            if (word := tuple(words[row].tolist())) not in known:
                self.beam.append((float(margins[row]), float(lots[row]), word))
        self.beam = sorted(self.beam)[:BEAM]
        if self.beam[0][0] < self.margin:
            self.margin, _, self.worst = self.beam[0]
        for name, value in seen.items():
            self._watch(name, value.max(axis=1, initial=-np.inf), words)
        wrong = np.argwhere(~(errors <= oracle.tolerance())).tolist()
        if wrong:
            row, prefix = min(wrong, key=lambda place: place[1])
            end = words.shape[1] if net.looks_ahead else prefix
            self.margin, self.worst = float(margins[row]), tuple(words[row, :end].tolist())
            self.witness = oracle.witness(words[row, :end], logits[row, : end + 1])

    def _watch(self, name: str, highest: Floats, words: Ids) -> None:
        """Of the units [word, unit] that no word has switched on, the word that comes nearest."""
        best = highest.argmax(axis=0)
        for unit, row in enumerate(best.tolist()):
            key, value = (name, unit), float(highest[row, unit])
            if key in self.awake:
                continue
            if value > 0:
                self.awake.add(key)
                self.nearest.pop(key, None)
            elif value > self.nearest.get(key, (-np.inf, ()))[0]:
                self.nearest[key] = (value, tuple(words[row].tolist()))

    def _margins(self, words: Ids, logits: Floats, errors: Floats) -> Floats:
        """The margin of each word, at the prefix where it is smallest; below 0 where an answer is wrong."""
        tolerance = self.questions.oracle.tolerance()
        spare = np.asarray(tolerance - errors)
        if self.questions.net.output.kind not in ("lm", "values"):
            lead = np.where(self._where(words, logits), leads(self.weights, logits), np.inf)
            lead[:, 0] = np.inf  # one answer, the same for all words
            spare = np.where(errors <= tolerance, lead, spare)
        return np.asarray(np.nan_to_num(spare, nan=-np.inf).min(axis=1))

    def _where(self, words: Ids, logits: Floats) -> NDArray[np.bool_]:
        """After which prefixes there is a right answer."""
        oracle = self.questions.oracle
        if isinstance(oracle, AsksSome):
            return oracle.asked(words)
        length = words.shape[1]
        if length not in self._asked:
            none = np.full_like(logits[:1], np.nan)
            self._asked[length] = np.asarray(~(oracle.errors(words[:1], none) <= oracle.tolerance()))
        return np.broadcast_to(self._asked[length], logits.shape[:2])
