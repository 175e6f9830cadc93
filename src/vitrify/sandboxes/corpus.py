r"""Bags of words of real documents: Python's own help texts, with the topics that LDA finds in them.

A row picks one of the documents, all alike, and draws every word from the document's own frequencies; some words are
masked and asked for. The laws are the documents themselves, so the posterior is an exact sum over them, and nothing
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

from vitrify.arrays import Array
from vitrify.sandboxes._contexts import bounds_of, drawn
from vitrify.sandboxes._draws import below, invert
from vitrify.sandboxes._masking import Masked
from vitrify.sandboxes.catalogue import Entry


@cache
def known() -> dict[str, Any]:
    """The topics, each a list of words from the most frequent on, and the words of every document with their counts."""
    found: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
    return found


@dataclass(frozen=True)
class Corpus(Masked):
    """The `words` most frequent words of the first `topics` topics, in documents that have at least `least` of them."""

    topics: int = 8
    words: int = 8
    least: int = 5

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        for name, most in (("topics", len(known()["topics"])), ("words", len(known()["topics"][0]))):
            if not 1 <= getattr(self, name) <= most:
                yield f"{name} must lie from 1 to {most}, not {getattr(self, name)}"
        if self.topics == self.words == 1:
            yield "there must be at least two words, not 1 topic of 1"
        if self.least < 1:
            yield f"least must be at least 1, not {self.least}"

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(word for topic in known()["topics"][: self.topics] for word in topic[: self.words])

    @cached_property
    def counts(self) -> Array:
        """How often each word stands in each document [document, word]."""
        every = known()
        whole = np.zeros((len(every["documents"]), len(every["topics"]), len(every["topics"][0])), dtype=np.int64)
        for row, document in zip(whole.reshape(len(whole), -1), every["documents"], strict=True):
            for word, times in document:
                row[word] = times
        found = whole[:, : self.topics, : self.words].reshape(len(whole), -1)
        return found[found.sum(axis=1) >= self.least]

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

    def written(self, rng: np.random.Generator, count: int) -> Any:
        _, laws = self.laws
        which = np.repeat(rng.integers(len(laws), size=count), self.length)
        return drawn(rng, laws[which]).reshape(count, self.length)


SANDBOX = Entry(
    Corpus,
    small={"topics": 3, "words": 1, "least": 9, "length": 3, "masked": 0.7, "kept": 0.4, "replaced": 0.3},
)
