"""The oracle of n-gram models: next-token probabilities."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.meanings import MeaningOracle
from vitrify.certification.oracles.right import Oracle
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton
from vitrify.spec.ngrams.model import BEGIN, NGramModel


@oracle(NGramModel)
class NextTokenOracle(Oracle):
    """A language model's next-token probabilities."""

    answer = "distribution"

    def __init__(self, model: NGramModel, net: SequenceArchitecture) -> None:
        self.model, self.net = model, net
        self.exact = not net.soft
        self._word = model.ids((BEGIN, *net.inputs[1:]))  # input id → vocabulary id

    def tolerance(self) -> float:
        return max(1e-12 if self.exact else 1e-9, self.net.output.error)

    def known(self, words: Ints) -> Floats:
        """Return probabilities [word, prefix, symbol]; each distinct context is looked up once."""
        count, length = words.shape
        width = self.model.order - 1
        history = np.concatenate([np.full((count, width), -1), np.zeros((count, 1), dtype=int), words], axis=1)
        seen = np.where(history >= 0, self._word[history], -1)
        windows = np.lib.stride_tricks.sliding_window_view(seen, width + 1, axis=1)[:, :, 1:]
        windows = windows.reshape(count * (length + 1), width)
        distinct, place = np.unique(windows, axis=0, return_inverse=True)
        known: Floats = np.exp(self.model.next_log_probs_of_contexts(distinct))
        return known[place.ravel()].reshape(count, length + 1, -1)

    def cases(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Every listed context, first in a word or after a few random symbols; a random part if they are many."""
        input_of = {BEGIN: 0, **self.net.input_ids}
        places = [(level, i) for level, index in enumerate(self.model.contexts()) for i in index.tolist()]
        if len(places) > count:
            places = [places[i] for i in sorted(rng.choice(len(places), size=count, replace=False).tolist())]
        histories = []
        for level, i in places:
            words = [input_of[self.model.vocabulary[w]] for w in self.model.words_of(level, np.array([i]))[0].tolist()]
            if words[0] == 0:
                words = words[1:]
            elif (room := self.net.max_length - len(words)) > 0:
                words = rng.integers(1, len(self.net.inputs), size=rng.integers(1, min(room, 4) + 1)).tolist() + words
            histories.append(words)
        return [words for words in histories if len(words) <= self.net.max_length]


@oracle(ProbabilisticAutomaton)
def automaton_oracle(automaton: ProbabilisticAutomaton, net: SequenceArchitecture) -> Oracle:
    """Return the oracle of the n-gram model over letters and states; or of letters, if the network reads no others."""
    if net.inputs[1:] == automaton.alphabet:
        return MeaningOracle(automaton.weighted.meaning, net)
    return NextTokenOracle(automaton.ngrams_over(net.inputs[1:]), net)
