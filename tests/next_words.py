"""Sets of next words: from the list of all sentences, and from a net."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from vitrify.net.inference import batch_logits
from vitrify.net.weights import Weights
from vitrify.spec.grammars.grammar import END, Grammar


def by_listing(grammar: Grammar) -> dict[tuple[str, ...], set[str]]:
    """The next words after every beginning, from the list of all sentences and nothing else."""
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for sentence in grammar.sentences(5000):
        for place, word in enumerate((*sentence, END)):
            found[sentence[:place]].add(word)
    return found


def answers(weights: Weights, beginnings: list[tuple[str, ...]]) -> list[set[str]]:
    net = weights.architecture
    ids = {name: place for place, name in enumerate(net.inputs)}
    tokens = np.zeros((len(beginnings), 1 + max(map(len, beginnings))), dtype=np.int64)
    for row, words in zip(tokens, beginnings, strict=True):
        row[1 : 1 + len(words)] = [ids[word] for word in words]
    logits = batch_logits(weights, tokens)
    last = logits[np.arange(len(beginnings)), [len(words) for words in beginnings]]
    return [{net.output.symbols[i] for i in np.flatnonzero(row > 0)} for row in last]
