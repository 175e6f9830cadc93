r"""Answers of a network after words: all words up to a length, and others that were asked for.

The words of length $t$ over $k$ letters are numbered from 0 to $k^t - 1$, in lexicographic order, so that word $w$
followed by letter $a$ has the number $kw + a$. A causal transformer or a recurrence reads every letter once for all
words that begin alike; other networks read whole words, and must give the same answer to a prefix in all of them.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from vitrify.arrays import Floats, Ints
from vitrify.certification.attacks.words import answer_margins
from vitrify.certification.evidence import Progress
from vitrify.certification.reading.automata import ILLEGAL, answer_codes
from vitrify.certification.reals.decide import Decided, decide
from vitrify.errors import InputError
from vitrify.files import write_bytes
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.recurrent import Recurrent
from vitrify.net.transformer import Transformer
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights
from vitrify.spec.automata.moore import Letters, MooreMachine

MAX_ACTIVATIONS = 1 << 22  # activations of one batch
CLOSE = 1e-6  # logits nearer to each other, or to 0, are compared in real arithmetic
MAX_CLOSE = 256  # answers that are decided in real arithmetic; a network that has more is not followed so
PRINTED_WORDS, PRINTED_LENGTH, PRINTED_DIGITS = 16, 32, 4  # random words whose logits identify a function
INTERRUPTED = "interrupted"  # why a search ended early
UNKNOWN = -1  # instead of an answer: not asked yet


def asks_first(net: SequenceArchitecture) -> bool:
    """Return whether the answer before the first letter matters; of networks that say no or yes it does not."""
    return net.output.kind != "transducer"


class Exhausted(Exception):
    """The budget of words or of seconds is spent."""


@dataclass
class SearchBudget:
    """Words that may be run and seconds that it may take; both count from the start of the process."""

    words: int
    seconds: float | None = None
    spent: int = 0
    start: float = field(default_factory=time.perf_counter)

    def spend(self, words: int) -> None:
        """Count words that are about to be run; `Exhausted` if there is nothing left for them."""
        if self.spent + words > self.words:
            raise Exhausted(f"the budget of {self.words:,} words is spent")
        if self.over:
            raise Exhausted(f"the budget of {self.seconds:g} seconds is spent")
        self.spent += words

    def ticking(self, progress: Progress | None) -> Progress:
        """Return a function that reports progress, and stops what reports it where the seconds are spent."""

        def tick(done: int, total: int) -> None:
            self.spend(0)
            if progress:
                progress(done, total)

        return tick

    def close(self) -> None:
        """Let nothing more be run."""
        self.seconds = 0.0

    @property
    def over(self) -> bool:
        """True if the seconds are spent."""
        return self.seconds is not None and time.perf_counter() - self.start > self.seconds


class Observations:
    """The answers of a network, as whole numbers (`answer_codes`); letters are numbered from 0.

    `levels[t]` has the answers after all words of length t. `smallest` is the smallest margin of an answer, `close`
    has the words whose answer was decided in real arithmetic, and `open` counts close answers that were not.
    """

    def __init__(
        self, weights: Weights[SequenceArchitecture], budget: SearchBudget, progress: Progress | None = None
    ) -> None:
        self.weights, self.net, self.budget, self.progress = weights, weights.architecture, budget, progress
        self.letters = len(self.net.inputs) - 1
        self.levels: list[Ints] = []
        self.complete = -1  # all words up to this length are known
        self.smallest = np.inf
        self.close: dict[Letters, int] = {}
        self.open = 0
        self._others: dict[Letters, Letters] = {}  # answers to all prefixes of single words
        self.first = int(not asks_first(self.net))  # length of the shortest word whose answer matters
        symbols = self.net.output.symbols
        self._legal = None  # of networks that say which symbols may come: the place of each letter among them
        if self.net.output.kind == "next":
            self._legal = np.array([symbols.index(letter) for letter in self.net.inputs[1:]], dtype=np.int64)

    # All words up to a length

    def complete_to(self, longest: int) -> None:
        """Run all words up to a length; what is known already is not run again."""
        for depth in dict.fromkeys((longest // 2, longest)):  # if it is interrupted, all short words are known
            if depth > self.complete:
                while len(self.levels) <= depth:
                    self.levels.append(np.full(self.letters ** len(self.levels), UNKNOWN, dtype=np.int64))
                blocks = self._tree(depth) if self._caches else self._whole_words(depth)
                for _ in blocks:
                    if self.progress:
                        self.progress(int((self.levels[depth] != UNKNOWN).sum()), len(self.levels[depth]))
                self.complete = depth

    @property
    def _caches(self) -> bool:
        return isinstance(self.net, Transformer | Recurrent) and not self.net.looks_ahead

    def _tree(self, depth: int) -> Iterator[None]:
        """Run all words letter by letter, depth first, in blocks of words that are neighbors."""
        cache = Cache()
        logits = self._step(np.zeros((1, self.net.pads), dtype=np.int64), cache)
        self._record(0, 0, logits)
        waiting = [(cache, 0, 0, 1)]  # the words of a length with the numbers from `low` to `high`
        block = max(1, MAX_ACTIVATIONS // (self.net.activations(depth + self.net.pads) * max(self.letters, 1)))
        while waiting:
            cache, length, low, high = waiting.pop()
            if length == depth:
                continue
            if high - low > block:
                middle = (low + high) // 2
                waiting += [(cache.rows(np.arange(middle - low, high - low)), length, middle, high)]
                waiting += [(cache.rows(np.arange(middle - low)), length, low, middle)]
                continue
            k = self.letters
            if (self.levels[depth][low * k ** (depth - length) : high * k ** (depth - length)] != UNKNOWN).all():
                continue
            self.budget.spend((high - low) * k)
            longer = cache.rows(np.repeat(np.arange(high - low), k))
            logits = self._step(np.tile(np.arange(1, k + 1), high - low)[:, None], longer)
            self._record(length + 1, low * k, logits)
            waiting.append((longer, length + 1, low * k, high * k))
            yield

    def _step(self, tokens: Ints, cache: Cache) -> Floats:
        net: Any = self.net
        return np.asarray(net.forward(self.weights.prepared, tokens, cache=cache))[:, -1]

    def _whole_words(self, depth: int) -> Iterator[None]:
        """Run all words of a length; an answer to a prefix that differs between them is refused."""
        count = self.letters**depth
        block = max(1, MAX_ACTIVATIONS // self.net.activations(depth + self.net.pads))
        for low in range(0, count, block):
            numbers = np.arange(low, min(low + block, count))
            if (self.levels[depth][numbers] != UNKNOWN).all():
                continue
            words = self.words(depth, numbers)
            self.budget.spend(len(words))
            codes = self._answers(words)
            for length in range(depth + 1):
                prefixes = numbers // self.letters ** (depth - length)
                known = self.levels[length][prefixes]
                first = codes[np.searchsorted(prefixes, prefixes), length]
                if ((known != UNKNOWN) & (known != codes[:, length])).any() or (first != codes[:, length]).any():
                    raise InputError(
                        "this network's answer after a word depends on what comes later: only networks that answer "
                        "after every letter by what they have read are extracted"
                    )
                self.levels[length][prefixes] = codes[:, length]
            yield

    def words(self, length: int, numbers: Ints) -> Ints:
        """Return the words [word, position] of a length with some numbers."""
        place = self.letters ** np.arange(length - 1, -1, -1, dtype=np.int64)
        return np.asarray(numbers[:, None] // place % max(self.letters, 1))

    def _record(self, length: int, low: int, logits: Floats) -> None:
        """Store the answers after the words of a length from number `low` on."""
        numbers = np.arange(low, low + len(logits))
        codes = self._decided(logits, lambda row: self.words(length, numbers[row : row + 1])[0])
        if self._legal is not None and length:
            before = self.levels[length - 1][numbers // self.letters]
            codes = self._alive(before, numbers % self.letters, codes)
        self.levels[length][numbers] = codes

    def _alive(self, before: Ints, letters: Ints, codes: Ints) -> Ints:
        """Return the answers, `ILLEGAL` where the last letter was not among those that might come."""
        assert self._legal is not None
        legal = (before != ILLEGAL) & ((before >> self._legal[letters]) & 1).astype(bool)
        return np.where(legal, codes, ILLEGAL)

    def _decided(self, logits: Floats, word: Any) -> Ints:
        """Return the answers by logits [case, symbol]; where they are close, in real arithmetic."""
        codes = np.array(answer_codes(self.net.output, logits), dtype=np.int64)
        margins = answer_margins(self.weights, logits)
        for row in np.flatnonzero(~(margins > CLOSE)).tolist():
            letters = tuple(word(row).tolist())
            if letters not in self.close and self.weights.arrays and len(self.close) < MAX_CLOSE:
                answer = decide(self.weights, np.array(letters, dtype=np.int64) + 1)
                if isinstance(answer, Decided):
                    places = [self.net.output.symbols.index(symbol) for symbol in answer.symbols]
                    several = self.net.output.kind == "next"
                    self.close[letters] = sum(1 << place for place in places) if several else places[0]
            self.open += letters not in self.close
            codes[row] = self.close.get(letters, codes[row])
        self.smallest = min(self.smallest, float(margins.min(initial=np.inf)))
        return codes

    # Other words

    def _answers(self, words: Ints) -> Ints:
        """Run words [word, position] of one length, and return their answers [word, prefix]."""
        logits = batch_logits(self.weights, with_pads(self.net, words + 1))[:, self.net.pads - 1 :]
        codes = np.stack(
            [self._decided(logits[:, at], lambda row, at=at: words[row, :at]) for at in range(words.shape[1] + 1)],
            axis=1,
        )
        for at in range(1, words.shape[1] + 1) if self._legal is not None else ():
            codes[:, at] = self._alive(codes[:, at - 1], words[:, at - 1], codes[:, at])
        return codes

    def after(self, words: Ints) -> Ints:
        """Return the answers [word, prefix] after all prefixes of words of one length; they are run where needed."""
        length = words.shape[1]
        codes = np.full((len(words), length + 1), UNKNOWN, dtype=np.int64)
        if length <= self.complete:
            numbers = np.zeros(len(words), dtype=np.int64)
            codes[:, 0] = self.levels[0][0]
            for at in range(length):
                numbers = numbers * self.letters + words[:, at]
                codes[:, at + 1] = self.levels[at + 1][numbers]
            return codes
        keys = [tuple(word) for word in words.tolist()]
        new = np.array([row for row, key in enumerate(keys) if key not in self._others], dtype=np.int64)
        block = max(1, MAX_ACTIVATIONS // self.net.activations(length + self.net.pads))
        for low in range(0, len(new), block):
            rows = new[low : low + block]
            self.budget.spend(len(rows))
            answers = self._answers(words[rows]).tolist()
            self._others |= {keys[row]: tuple(each) for row, each in zip(rows.tolist(), answers, strict=True)}
        for row, key in enumerate(keys):
            codes[row] = self._others[key]
        return codes

    def first_difference(self, machine: MooreMachine) -> Letters | None:
        """Return the shortest word, of those up to the complete length, after which a machine answers otherwise."""
        for length, right in enumerate(machine.levels(self.complete)):
            wrong = np.flatnonzero(right != self.levels[length])
            if len(wrong) and length >= self.first:
                return tuple(self.words(length, wrong[:1])[0].tolist())
        return None

    def longer_difference(self, machine: MooreMachine) -> Letters | None:
        """Return the shortest of the other words run so far after which a machine answers otherwise."""
        shortest: Letters | None = None
        for word, codes in self._others.items():
            right = machine.after(np.array([word], dtype=np.int64).reshape(1, -1))[0]
            wrong = self.first + np.flatnonzero((right != np.array(codes))[self.first :])
            if len(wrong) and (shortest is None or wrong[0] < len(shortest)):
                shortest = word[: int(wrong[0])]
        return shortest

    def differences(self, machine: MooreMachine) -> list[int]:
        """Return the number of words of each length up to the complete one after which a machine answers otherwise."""
        pairs = zip(machine.levels(self.complete), self.levels, strict=False)
        return [int((a != b).sum()) if length >= self.first else 0 for length, (a, b) in enumerate(pairs)]

    # Files

    @cached_property
    def _fingerprint(self) -> str:
        """A digest of the arrays or, of a function, of its logits after some random words."""
        if self.weights.arrays:
            return self.weights.digest
        length = min(self.net.max_length, PRINTED_LENGTH)
        words = np.random.default_rng(0).integers(1, self.letters + 1, size=(PRINTED_WORDS, length))
        logits = batch_logits(self.weights, with_pads(self.net, words)).round(PRINTED_DIGITS) + 0.0
        return hashlib.sha256(logits.tobytes()).hexdigest()

    def save(self, path: Path) -> None:
        """Write the answers to all words of each length to a file, in one step."""
        facts = {"net": self._fingerprint, "complete": str(self.complete), "smallest": repr(self.smallest)}
        write_bytes(path, save({f"length {length}": level for length, level in enumerate(self.levels)}, facts))

    def resume(self, path: Path) -> None:
        """Take over what a file knows of the same network."""
        try:
            with safe_open(path, "np") as file:
                facts = file.metadata() or {}
                levels = [file.get_tensor(f"length {length}") for length in range(len([*file.keys()]))]
            complete, smallest = int(facts["complete"]), float(facts["smallest"])
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise InputError(f"{path} can't be resumed: {error}") from None
        if facts.get("net") != self._fingerprint:
            raise InputError(f"{path} is about another network: name another file after --resume")
        shapes = [((self.letters**length,), np.int64) for length in range(len(levels))]
        known = all((level != UNKNOWN).all() for level in levels[: complete + 1])
        if [(level.shape, level.dtype) for level in levels] != shapes or not known or complete >= len(levels):
            raise InputError(f"{path} can't be resumed: it does not hold the answers that it should: delete it")
        self.levels, self.complete, self.smallest = levels, complete, smallest
