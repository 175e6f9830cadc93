r"""Text of an n-gram model with back-off: sentence after sentence, each begun after `<s>` and ended by `</s>`.

What the model says after a history depends only on the longest context at its end that the model lists. These contexts
are the states: as every listed n-gram is listed with its beginnings, the context after one more word is the longest
listed one at the end of the old one and the word. `</s>` leads back to `<s>`, which is never seen itself.

With `apart` a sequence is one sentence, or its first `length` words: after `</s>` it is padded with `</s>` of weight
0, as nets for n-gram models read no `</s>`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from scipy import sparse

from vitrify.encoding import JsonObject
from vitrify.sandboxes.catalogue import Array, Entry, Example, Predictor
from vitrify.sandboxes.kit.contexts import MAX_CELLS, Contexts, ContextSandbox
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import BEGIN, END, NGramModel


@dataclass(frozen=True)
class NGram(ContextSandbox):
    """Sequences of `length` words, `</s>` among them, of the model of an ARPA file."""

    model: NGramModel = field(default_factory=lambda: random_ngram(3, 3, seed=0))
    apart: bool = False

    def conflicts(self) -> Iterator[tuple[str, str]]:
        contexts = 1 + sum(len(level) for level in self.model.contexts())
        if contexts * len(self.model.predicted) > MAX_CELLS:
            words = len(self.model.predicted)
            yield "model", f"has {contexts} contexts times {words} words; at most {MAX_CELLS} such cells fit"

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.model.predicted

    @property
    def blanks(self) -> tuple[str, ...]:
        return (END,) if self.apart else ()

    @property
    def _end(self) -> int:
        return self.symbols.index(END)

    def draw(self, key: Array) -> Example:
        example = super().draw(key)
        if not self.apart:
            return example
        over = jnp.pad(jnp.cumsum(example.targets == self._end)[:-1], (1, 0)) > 0
        targets = jnp.where(over, self._end, example.targets)
        return example._replace(tokens=targets[:-1], targets=targets, weight=jnp.where(over, 0.0, example.weight))

    def floor(self) -> Array:
        """With `apart`: the mean entropy over sentences that have not ended."""
        return self.contexts.losses(self.length, self._end if self.apart else None)

    def rate(self) -> float | None:
        return None if self.apart else super().rate()

    @cached_property
    def _listed(self) -> tuple[tuple[int, ...], ...]:
        """The contexts as word ids; the empty one first."""
        levels = (self.model.words_of(level, places) for level, places in enumerate(self.model.contexts()))
        return ((), *(tuple(words) for level in levels for words in level.tolist()))

    @cached_property
    def contexts(self) -> Contexts:
        model, listed = self.model, self._listed
        place = {context: number for number, context in enumerate(listed)}
        ids = model.ids(model.predicted).tolist()
        begin, end = (int(model.ids([word])[0]) for word in (BEGIN, END))

        def longest(words: tuple[int, ...]) -> int:
            return next(place[words[cut:]] for cut in range(len(words) + 1) if words[cut:] in place)

        start = longest((begin,))
        follow = np.array([[start if w == end else longest((*context, w)) for w in ids] for context in listed])
        padded = np.full((len(listed), model.order - 1), -1)
        for example, context in zip(padded, listed, strict=True):
            example[len(example) - len(context) :] = context
        p = np.exp(model.next_log_probs_of_contexts(padded))
        return Contexts(p / p.sum(axis=1, keepdims=True), follow, start)

    def predictors(self) -> Mapping[str, Predictor]:
        """The best that can be said from nothing and from the last word, in a long text."""
        source, words = self.contexts, len(self.symbols)
        flow = source.law[:, None] * source.p  # how often each word comes in each context
        unigram = Contexts(flow.sum(axis=0, keepdims=True), np.zeros((1, words), dtype=int))
        word = np.broadcast_to(np.arange(words), flow.shape)
        after = sparse.csr_array((flow.ravel(), (word.ravel(), source.follow.ravel())), shape=(words, len(flow)))
        known = after.sum(axis=1) > 0
        p = np.where(known[:, None], (after @ source.p) / np.where(known, after.sum(axis=1), 1.0)[:, None], unigram.p)
        bigram = Contexts(p, np.tile(np.arange(words), (words, 1)), self._end)
        return {"uniform": self.uniform, "unigram": unigram.predict, "bigram": bigram.predict}

    def identity(self) -> JsonObject:
        digest = hashlib.sha256(repr(self.model.vocabulary).encode())
        for level in self.model.levels:
            for array in (level.parent, level.word, level.log10_prob, level.log10_backoff):
                digest.update(array.tobytes())
        return {**super().identity(), "model": f"NGramModel:{digest.hexdigest()[:16]}"}


SANDBOX = Entry(NGram, small={"length": 4})
