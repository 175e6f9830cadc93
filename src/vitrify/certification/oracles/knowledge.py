"""The oracle of knowledge: the value after every prefix that is a query, none after any other; who must answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.right import Oracle, logit_margins, some_of, symbol_indices
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import batch_of
from vitrify.net.labels import SpaceLabel
from vitrify.net.spaces import OneHot
from vitrify.net.weights import Weights
from vitrify.spec.memory.knowledge import NONE, SLOT, Knowledge, Words

Query = tuple[int, ...]  # in the net's own numbers

MIN_MARGIN = 0.5  # of the right expert: rounding and soft attention may take half of it
MOST_ROUTED = 20_000  # queries whose expert is looked at; of more, a random part
ALONE = 4_000  # sequences that all experts together answer alone
FLOATS = 1 << 23  # activations of one batch
FORCED = 1e6  # the score of an expert that is made to work


@oracle(Knowledge)
class AnswerOracle(Oracle):
    """A value or none."""

    answer, KNOWS_SPACES = "symbol", True

    def __init__(self, spec: Knowledge, net: SequenceArchitecture) -> None:
        self.spec, self.net = spec, net
        self._input = {word: place for place, word in enumerate(net.inputs)}
        names = (NONE, *spec.values)
        symbol = dict(zip(names, symbol_indices(net, names).tolist(), strict=True))
        self._none = symbol[NONE]
        self._answers = {  # the task and the symbol of every query, in the net's own numbers
            tuple(self._input[word] for word in words): (task, symbol[spec.tasks[task].facts[fact][1]])
            for words, (task, _, fact) in spec.queries.items()
        }

    def known(self, words: Ints) -> Ints:
        return self._expected(words)

    def _expected(self, words: Ints, only: int | None = None) -> Ints:
        """The right symbols [word, prefix]; for one expert alone, none to the queries of other tasks."""
        symbols = np.full((len(words), words.shape[1] + 1), self._none)
        for row, word in enumerate(words.tolist()):
            for length in range(len(word) + 1):
                task, symbol = self._answers.get(tuple(word[:length]), (only, self._none))
                if only is None or task == only:
                    symbols[row, length] = symbol
        return symbols

    def cases(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Queries, and what is almost one: a random part if they are many."""
        queries = some_of([[*words] for words in self._answers], rng, count // 2)
        broken = [word for task in range(len(self.spec.tasks)) for word in self._broken(task, rng)]
        return queries + some_of(broken, rng, count // 2)

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

    def check_inside(
        self, weights: Weights[SequenceArchitecture], seed: int
    ) -> tuple[dict[str, object], dict[str, object] | None]:
        """Every query goes to its task's expert with a margin; every expert alone knows its own task and no other."""
        rng = np.random.default_rng(seed)
        margin, witness = self._routing(weights, rng)
        measured: dict[str, object] = {"smallest margin of the right expert": margin}
        return measured, witness or self._alone(weights, rng)

    def space_error(self, words: Ints, label: SpaceLabel, vectors: Floats) -> float | None:
        """Return the distance of a space named like "2 back" from the word at that offset; None for other spaces."""
        back = re.fullmatch(r"(\d{1,9}) back", label.name)
        if not back or not isinstance(label.kind, OneHot):
            return None
        known = np.array([[word == value for value in label.kind.values] for word in self.net.inputs], dtype=float)
        there = np.arange(words.shape[1] + 1) - int(back[1])
        tokens = np.concatenate([np.zeros((len(words), 1), dtype=np.int64), words], axis=1)
        return float(np.abs(vectors - known[tokens[:, np.maximum(there, 0)]]).max())

    def _routing(
        self, weights: Weights[SequenceArchitecture], rng: np.random.Generator
    ) -> tuple[float, dict[str, object] | None]:
        queries = map(tuple, some_of([[*query] for query in self._answers], rng, MOST_ROUTED))
        least = np.inf
        for some, _, scores in watched(weights, queries):
            tasks = np.array([self._answers[query][0] for query in some])
            margins = logit_margins(scores, tasks)
            least = min(least, float(margins.min()))
            if not least >= MIN_MARGIN:
                row = int(np.flatnonzero(~(margins >= MIN_MARGIN))[0])
                words = [self.net.inputs[i] for i in some[row]]
                task = self.spec.tasks[tasks[row]].name
                return least, {"words": words, "expected": f"the expert of {task!r}", "margin": float(margins[row])}
        return least, None

    def _alone(self, weights: Weights[SequenceArchitecture], rng: np.random.Generator) -> dict[str, object] | None:
        count = max(20, ALONE // len(self.spec.tasks))
        others = [*self._answers]
        for task in range(len(self.spec.tasks)):
            own = [[*query] for query, (of, _) in self._answers.items() if of == task]
            words = [*own, *self._broken(task, rng), *([*others[i]] for i in rng.integers(len(others), size=count))]
            tokens, lengths = batch_of(self.net, some_of(words, rng, count))
            logits = forced(weights, tokens, task)[:, self.net.pads - 1 :]
            wrong = self.judged(self._expected(tokens[:, self.net.pads :], task), logits)
            inside_word = np.arange(wrong.shape[1]) <= (lengths - self.net.pads)[:, None]
            mistakes = np.argwhere((wrong > 0) & inside_word).tolist()
            if mistakes:
                row, prefix = min(mistakes, key=lambda place: place[1])
                word = tokens[row, self.net.pads : self.net.pads + prefix]
                answer = self.witness_of(self._expected(word[None], task), word, logits[row, : prefix + 1])
                return {"expert alone": self.spec.tasks[task].name, **answer}
        return None


def watched(
    weights: Weights[SequenceArchitecture], queries: Iterable[Query]
) -> Iterator[tuple[list[Query], Floats, Floats]]:
    """Queries of one length, in batches, with the logits [query, symbol] and the router's scores [query, expert]."""
    net = weights.architecture
    step = max(1, FLOATS // net.activations(net.max_length + net.pads))
    for alike in (list(group) for _, group in groupby(sorted(queries, key=len), len)):
        for at in range(0, len(alike), step):
            some = alike[at : at + step]
            seen: dict[str, Floats] = {}
            logits = net.forward(weights.prepared, batch_of(net, some)[0], record=seen.__setitem__)
            (name,) = [name for name in seen if name.endswith("moe.hook_scores")]
            yield some, logits[:, -1], seen[name][:, -1]


def forced(weights: Weights[SequenceArchitecture], tokens: Ints, expert: int) -> Floats:
    """Logits [word, pos, symbol] when one expert does all the work."""
    (name,) = [name for name in weights.arrays if name.endswith("moe.router.b_out")]
    bias = weights.arrays[name].copy()
    bias[expert] += FORCED
    return np.asarray(weights.architecture.forward({**weights.prepared, name: bias}, tokens))


def _one_of_each_length(facts: Sequence[tuple[Words, str]], rng: np.random.Generator) -> list[Words]:
    by_length = groupby(sorted((key for key, _ in facts), key=len), len)
    return [keys[int(rng.integers(len(keys)))] for keys in (list(group) for _, group in by_length)]
