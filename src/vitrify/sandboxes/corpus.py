r"""Bags of words of real documents: Python's own help texts, with the topics that LDA finds in them.

A sequence picks one of the documents, all alike, and draws every word from the document's own frequencies; some words
are masked and asked for. The laws are the documents themselves, so the posterior is an exact sum over them, and nothing
about the data is a model's: topics only name words. They were fitted once, by scikit-learn's
`LatentDirichletAllocation`, and stand with the counts in `corpus.json`, which `benchmarks/corpus_topics.py` writes.
Source: the texts are `pydoc_data.topics` of CPython 3.11; masked as in Li, Li, Risteski 2023, arXiv 2303.04245.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Count, Entry
from vitrify.sandboxes.kit.contexts import bounds_of
from vitrify.sandboxes.kit.draws import below, invert
from vitrify.sandboxes.kit.masking import SMALL, Masked


@cache
def known() -> dict[str, Any]:
    """The topics, each a list of words from the most frequent on, and the words of every document with their counts."""
    data: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
    return data


@dataclass(frozen=True)
class Corpus(Masked):
    """The `words` most frequent words of each of `topics` topics; documents have at least `min_words` of them."""

    topics: Count = 8
    words: Count = 8
    min_words: Count = 5

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        for name, most in (("topics", len(known()["topics"])), ("words", len(known()["topics"][0]))):
            if getattr(self, name) > most:
                yield name, f"must be a whole number from 1 to {most}, not {getattr(self, name)}"
        if self.topics == self.words == 1:
            yield "words", "must be at least 2 where there is 1 topic, not 1"

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(word for topic in known()["topics"][: self.topics] for word in topic[: self.words])

    @cached_property
    def counts(self) -> Array:
        """The count of each word in each document [document, word]."""
        every = known()
        table = np.zeros((len(every["documents"]), len(every["topics"]), len(every["topics"][0])), dtype=np.int64)
        for row, document in zip(table.reshape(len(table), -1), every["documents"], strict=True):
            for word, times in document:
                row[word] = times
        counts = table[:, : self.topics, : self.words].reshape(len(table), -1)
        return counts[counts.sum(axis=1) >= self.min_words]

    @cached_property
    def laws(self) -> tuple[Array, Array]:
        counts = self.counts
        return np.full(len(counts), 1 / len(counts)), counts / counts.sum(axis=1, keepdims=True)

    def write(self, key: Array) -> tuple[Array, dict[str, Array]]:
        which, words = jax.random.split(key)
        prior, laws = self.laws
        document = below(jax.random.bits(which), len(prior))
        return invert(jnp.asarray(bounds_of(laws))[document], jax.random.uniform(words, (self.length,))), {
            "document": document
        }


SANDBOX = Entry(Corpus, small={"topics": 3, "words": 1, "min_words": 9, **SMALL})
