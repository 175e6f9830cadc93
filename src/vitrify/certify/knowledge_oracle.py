"""The oracle of knowledge: the value after every prefix that is a query, none after any other; who must answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.right import one_of
from vitrify.errors import FolderError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.labels import SpaceLabel
from vitrify.net.run import batch_of
from vitrify.net.spaces import OneHot
from vitrify.net.weights import Weights
from vitrify.spec.knowledge import Knowledge
from vitrify.spec.knowledge_files import NONE, SLOT, Words
from vitrify.spec.ngram import BEGIN

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Query = tuple[int, ...]  # in the net's own numbers

CLEAR = 1e-6  # the lead of the best symbol below which there is no answer
LEAD = 0.5  # the least lead of the right expert: rounding and soft attention may take half of it
MOST_ROUTED = 20_000  # queries whose expert is looked at; of more, a random part
ALONE = 4_000  # sequences that all experts together answer alone
FLOATS = 1 << 23  # activations of one batch
FORCED = 1e6  # the score of an expert that is made to work


class AnswerOracle:
    """A value or none: the distance is 0 or 1."""

    language = None

    def __init__(self, spec: Knowledge, net: SequenceArchitecture) -> None:
        if net.inputs != (BEGIN, *spec.vocabulary) or net.output.symbols != (NONE, *spec.values):
            raise FolderError("the network and its spec do not speak about the same words and values")
        self.spec, self.net = spec, net
        self._input = {word: place for place, word in enumerate(net.inputs)}
        self._symbol = {value: place for place, value in enumerate(net.output.symbols)}
        self._answers = {  # the task and the symbol of every query, in the net's own numbers
            tuple(self._input[word] for word in words): (task, self._symbol[spec.tasks[task].facts[fact][1]])
            for words, (task, _, fact) in spec.queries.items()
        }

    def tolerance(self) -> float:
        return 0.0

    def _expected(self, words: Ids, only: int | None = None) -> Ids:
        """The right symbols [word, prefix]; for one expert alone, none to the queries of other tasks."""
        symbols = np.zeros((len(words), words.shape[1] + 1), dtype=np.int64)
        for row, word in enumerate(words.tolist()):
            for length in range(len(word) + 1):
                task, symbol = self._answers.get(tuple(word[:length]), (only, 0))
                if only is None or task == only:
                    symbols[row, length] = symbol
        return symbols

    def errors(self, words: Ids, logits: Floats) -> Floats:
        return _wrong(self._expected(words), logits)

    def right(self, word: Ids) -> Floats:
        return one_of(self._expected(word[None])[0], len(self._symbol))

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        return self._told(word, logits, None)

    def _told(self, word: Ids, logits: Floats, only: int | None) -> dict[str, object]:
        return {
            "words": [self.net.inputs[i] for i in word],
            "expected": self.net.output.symbols[int(self._expected(word[None], only)[0, -1])],
            "found": self.net.output.symbols[int(logits[-1].argmax())],
        }

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Queries, and what is almost one: a random part if they are many."""
        asked = [[*words] for words in self._answers]
        if len(asked) > count // 2:
            asked = [asked[i] for i in sorted(rng.choice(len(asked), size=count // 2, replace=False).tolist())]
        broken = [word for task in range(len(self.spec.tasks)) for word in self._broken(task, rng)]
        if len(broken) > count // 2:
            broken = [broken[i] for i in sorted(rng.choice(len(broken), size=count // 2, replace=False).tolist())]
        return asked + broken

    def _broken(self, task: int, rng: np.random.Generator) -> Iterator[list[int]]:
        """Queries of a task with one word exchanged, one in front, or the first one missing; most are none any more."""
        here = self.spec.tasks[task]
        words = self.spec.vocabulary
        for template in here.templates:
            for key in _one_of_each_length(here.facts, rng):
                slot = template.index(SLOT)
                query = [self._input[word] for word in (*template[:slot], *key, *template[slot + 1 :])]
                for place in range(len(query)):
                    yield [*query[:place], int(rng.integers(1, len(words) + 1)), *query[place + 1 :]]
                yield query[1:]
                if len(query) < self.net.max_length:
                    yield [int(rng.integers(1, len(words) + 1)), *query]

    def inside(self, weights: Weights[Any], seed: int) -> tuple[dict[str, object], dict[str, object] | None]:
        """Every query is sent to its task's expert with a lead; every expert alone knows its own task and no other."""
        rng = np.random.default_rng(seed)
        lead, witness = self._routing(weights, rng)
        measured: dict[str, object] = {"least lead of the right expert": lead}
        return measured, witness or self._alone(weights, rng)

    def strayed(self, words: Ids, label: SpaceLabel, vectors: Floats) -> float | None:
        """How far a space called "2 back", or so, is from the word that stands there, if it is one that it knows."""
        back, _, said = label.name.partition(" ")
        if said != "back" or not isinstance(label.kind, OneHot):
            return None
        known = np.array([[word == value for value in label.kind.values] for word in self.net.inputs], dtype=float)
        there = np.arange(words.shape[1] + 1) - int(back)
        tokens = np.concatenate([np.zeros((len(words), 1), dtype=np.int64), words], axis=1)
        return float(np.abs(vectors - known[tokens[:, np.maximum(there, 0)]]).max())

    def _routing(self, weights: Weights[Any], rng: np.random.Generator) -> tuple[float, dict[str, object] | None]:
        queries = [*self._answers]
        if len(queries) > MOST_ROUTED:
            queries = [queries[i] for i in sorted(rng.choice(len(queries), size=MOST_ROUTED, replace=False).tolist())]
        least = np.inf
        for some, _, scores in watched(weights, queries):
            tasks = np.array([self._answers[query][0] for query in some])
            ahead = leads(scores, tasks)
            least = min(least, float(ahead.min()))
            if not least >= LEAD:
                row = int(np.flatnonzero(~(ahead >= LEAD))[0])
                words = [self.net.inputs[i] for i in some[row]]
                task = self.spec.tasks[tasks[row]].name
                return least, {"words": words, "expected": f"the expert of {task!r}, ahead", "lead": float(ahead[row])}
        return least, None

    def _alone(self, weights: Weights[Any], rng: np.random.Generator) -> dict[str, object] | None:
        count = max(20, ALONE // len(self.spec.tasks))
        others = [*self._answers]
        for task in range(len(self.spec.tasks)):
            own = [[*query] for query, (of, _) in self._answers.items() if of == task]
            asked = [*own, *self._broken(task, rng), *([*others[i]] for i in rng.integers(len(others), size=count))]
            if len(asked) > count:
                asked = [asked[i] for i in sorted(rng.choice(len(asked), size=count, replace=False).tolist())]
            tokens, lengths = batch_of(self.net, asked)
            logits = forced(weights, tokens, task)[:, self.net.pads - 1 :]
            wrong = _wrong(self._expected(tokens[:, self.net.pads :], task), logits)
            given = np.arange(wrong.shape[1]) <= (lengths - self.net.pads)[:, None]
            found = np.argwhere((wrong > 0) & given).tolist()
            if found:
                row, prefix = min(found, key=lambda place: place[1])
                word = tokens[row, self.net.pads : self.net.pads + prefix]
                told = self._told(word, logits[row, : prefix + 1], task)
                return {"expert alone": self.spec.tasks[task].name, **told}
        return None


def watched(weights: Weights[Any], queries: Iterable[Query]) -> Iterator[tuple[list[Query], Floats, Floats]]:
    """Queries of one length, in batches, with the logits [query, symbol] and the router's scores [query, expert]."""
    net = weights.architecture
    by_length: dict[int, list[Query]] = {}
    for query in queries:
        by_length.setdefault(len(query), []).append(query)
    step = max(1, FLOATS // net.activations(net.max_length + net.pads))
    for alike in by_length.values():
        for at in range(0, len(alike), step):
            some = alike[at : at + step]
            seen: dict[str, Floats] = {}
            logits = net.forward(weights.prepared, batch_of(net, some)[0], record=seen.__setitem__)
            (name,) = [name for name in seen if name.endswith("moe.hook_scores")]
            yield some, logits[:, -1], seen[name][:, -1]


def leads(scores: Floats, experts: Ids) -> Floats:
    """How far the score of each query's right expert is ahead of all others."""
    own = np.take_along_axis(scores, experts[:, None], axis=1)[:, 0]
    others = scores.copy()
    np.put_along_axis(others, experts[:, None], -np.inf, axis=1)
    found: Floats = own - others.max(axis=1)
    return found


def forced(weights: Weights[Any], tokens: Ids, expert: int) -> Floats:
    """Logits [word, pos, symbol] when one expert does all the work."""
    (name,) = [name for name in weights.arrays if name.endswith("moe.router.b_out")]
    bias = weights.arrays[name].copy()
    bias[expert] += FORCED
    return np.asarray(weights.architecture.forward({**weights.prepared, name: bias}, tokens))


def _wrong(expected: Ids, logits: Floats) -> Floats:
    """1 where the best symbol is not the expected one, or leads by too little to be one."""
    right = logits.argmax(axis=-1) == expected
    if logits.shape[-1] > 1:
        second, best = np.moveaxis(np.partition(logits, -2, axis=-1)[..., -2:], -1, 0)
        right &= best - second > CLEAR
    return np.where(right & np.isfinite(logits).all(axis=-1), 0.0, 1.0)


def _one_of_each_length(facts: Sequence[tuple[Words, str]], rng: np.random.Generator) -> list[Words]:
    by_length: dict[int, list[Words]] = {}
    for key, _ in facts:
        by_length.setdefault(len(key), []).append(key)
    return [keys[int(rng.integers(len(keys)))] for _, keys in sorted(by_length.items())]
