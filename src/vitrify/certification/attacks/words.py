"""Attacks on nets that read words: a search for the word after which the right answer has the smallest margin.

Answers show a fault only on words that trigger it; activations show how near a word comes. So the search has a beam of
the words with the smallest margins and, for every hidden unit that no word has switched on yet, the word that comes
nearest to it. In every round such words are changed a little (letters replaced, put in, taken out, stretches
taken over from another word), and some new random ones join them. Where only the sentences of a language are
legal, all words are drawn from it. A search that finds nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from vitrify.arrays import Array, Floats, Ints
from vitrify.certification.checks.words import WordCheck, batches, by_length
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.weights import Weights

Word = tuple[int, ...]

BEAM_WIDTH = 8  # words with the smallest margins that the next round starts from
WATCHED_UNITS = 16  # units that are nearest to being switched on for the first time
WORDS_PER_ROUND = 64
NEW_WORDS_PER_ROUND = 8


@dataclass(frozen=True)
class Attack:
    """Number of words tried, the smallest margin and its word; `witness` is a wrong answer, if any.

    The margin of a word of at least one symbol is that of its best logit or, for numbers and probabilities, what is
    left of the tolerance.
    """

    tried: int
    margin: float
    word: tuple[str, ...]
    witness: dict[str, object] | None = None


def attack_words(weights: Weights[SequenceArchitecture], check: WordCheck, count: int, seed: int = 0) -> Attack:
    """Try `count` words, or fewer if one gets a wrong answer."""
    search = _Search(weights, check, np.random.default_rng(seed))
    words = search.fresh(min(count, WORDS_PER_ROUND))
    while True:
        search.ask(words)
        left = count - search.tried
        if search.witness is not None or left <= 0:
            break
        words = search.next(min(left, WORDS_PER_ROUND))
    inputs = weights.architecture.inputs
    return Attack(search.tried, search.margin, tuple(inputs[i] for i in search.worst), search.witness)


@dataclass(eq=False)
class _Search:
    """State of a search: the words of the beam, the units that were never active, and the smallest margin."""

    weights: Weights[Architecture]
    check: WordCheck
    rng: np.random.Generator
    beam: list[tuple[float, float, Word]] = field(default_factory=list)  # margin, a random tie-breaker, word
    nearest: dict[tuple[str, int], tuple[float, Word]] = field(default_factory=dict)
    awake: set[tuple[str, int]] = field(default_factory=set)
    tried: int = 0
    margin: float = np.inf
    worst: Word = ()
    witness: dict[str, object] | None = None

    # ---- words
    def fresh(self, count: int) -> list[Word]:
        """Draw random words: sentences of the language, or words of full length (shorter too if the end matters)."""
        net, language = self.check.net, self.check.oracle.language
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
        """Return the words of the next round."""
        if self.check.oracle.language is not None or len(self.check.net.inputs) < 2:
            return self.fresh(count)
        quiet = sorted(self.nearest.values(), reverse=True)[:WATCHED_UNITS]
        parents = [word for _, _, word in self.beam] + [word for _, word in quiet]
        picked = [parents[int(i)] for i in self.rng.integers(len(parents), size=max(count - NEW_WORDS_PER_ROUND, 1))]
        changed = [self._changed(word, parents) for word in picked]
        return (changed + self.fresh(NEW_WORDS_PER_ROUND))[:count]

    def _changed(self, word: Word, parents: list[Word]) -> Word:
        """Return a word with one or two random edits."""
        net, rng, new = self.check.net, self.rng, list(word)
        edits: list[Callable[[list[int], list[Word]], None]] = [self._replace, self._insert, self._delete, self._take]
        for _ in range(int(rng.integers(1, 3))):
            edits[int(rng.integers(len(edits)))](new, parents)
        new = new[: net.max_length]
        while len(new) < (net.min_length if net.looks_ahead else net.max_length):
            new.append(self._letter())
        return tuple(new)

    def _letter(self) -> int:
        return int(self.rng.integers(1, len(self.check.net.inputs)))

    def _replace(self, word: list[int], _: list[Word]) -> None:
        if word:
            word[int(self.rng.integers(len(word)))] = self._letter()

    def _insert(self, word: list[int], _: list[Word]) -> None:
        word.insert(int(self.rng.integers(len(word) + 1)), self._letter())

    def _delete(self, word: list[int], _: list[Word]) -> None:
        if word:
            del word[int(self.rng.integers(len(word)))]

    def _take(self, word: list[int], parents: list[Word]) -> None:
        """Copy a segment of another word to the same positions."""
        other = parents[int(self.rng.integers(len(parents)))]
        if word and other:
            start, stop = sorted(self.rng.integers(min(len(word), len(other)) + 1, size=2).tolist())
            word[start:stop] = other[start:stop]

    # ---- answers
    def ask(self, words: Iterable[Word]) -> None:
        """Run words, and update the beam."""
        for tokens in batches(self.check.net, by_length(words)):
            if self.witness is None:
                self._run(tokens)

    def _run(self, tokens: Ints) -> None:
        net, oracle = self.check.net, self.check.oracle
        words = tokens[:, net.pads :]
        seen: dict[str, Floats] = {}

        def record(name: str, value: Array) -> None:
            if name.endswith("mlp.hook_pre"):
                seen[name] = value[:, net.pads :]

        logits = np.asarray(net.forward(self.weights.prepared, tokens, record=record))[:, net.pads - 1 :]
        errors = oracle.errors(words, logits)
        margins = self._margins(words, logits, errors)
        self.tried += len(words)
        known = {word for *_, word in self.beam}
        lots = self.rng.random(len(words))
        for row in np.lexsort((lots, margins))[:BEAM_WIDTH].tolist():
            if (word := tuple(words[row].tolist())) not in known:
                self.beam.append((float(margins[row]), float(lots[row]), word))
        self.beam = sorted(self.beam)[:BEAM_WIDTH]
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

    def _watch(self, name: str, highest: Floats, words: Ints) -> None:
        """Record, for each unit that no word has activated, the word that comes nearest."""
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

    def _margins(self, words: Ints, logits: Floats, errors: Floats) -> Floats:
        """Return the margin of each word at its worst prefix; below 0 where an answer is wrong."""
        tolerance = self.check.oracle.tolerance()
        spare = np.asarray(tolerance - errors)
        if self.check.net.output.kind not in ("lm", "values"):
            margins = np.where(self.check.oracle.has_answer(words), answer_margins(self.weights, logits), np.inf)
            margins[:, 0] = np.inf  # one answer, the same for all words
            spare = np.where(errors <= tolerance, margins, spare)
        return np.asarray(np.nan_to_num(spare, nan=-np.inf).min(axis=1))


def answer_margins(weights: Weights[Architecture], logits: Floats) -> Floats:
    """Return the margin of each answer over the next symbol or, where each symbol is a yes or a no, over 0."""
    if weights.architecture.output.kind == "next":
        return np.asarray(np.abs(logits).min(axis=-1))
    if logits.shape[-1] < 2:
        return np.full(logits.shape[:-1], np.inf)
    ordered = np.sort(logits, axis=-1)
    return np.asarray(ordered[..., -1] - ordered[..., -2])
