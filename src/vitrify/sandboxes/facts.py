r"""Factual recall: a subject and a relation stand among noise tokens; the target is the object of that fact.

A sequence has the subject $s$ and the relation $r$ of a fact at two random positions, noise elsewhere, and `<eos>` at
its end, where the answer $a^*(s, r)$ is predicted. Each relation has $D$ answers of its own. In `structured` facts
$a^*(s, r) = \lfloor sD/S \rfloor$, so neighboring subjects share answers; in `random` facts answers are drawn
uniformly; or they come from a `.facts` file. A model that knows only the relation predicts $p(a \mid r)$, at loss $\log
D$ where the answers of a relation are equally likely: it hallucinates. Only the first facts, the fraction
`fact_fraction` of them, are drawn. Source: Nichani, Lee, Bietti 2024, arXiv 2412.06538.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes.catalogue import Count, Entry, Example, LogProbs, Natural, Predictor, Sandbox, Share, Within
from vitrify.sandboxes.kit.draws import below, logarithm
from vitrify.spec.memory.facts import Facts, random_facts

EOS = "<eos>"


@dataclass(frozen=True)
class FactRecall(Sandbox):
    """Sequences of `length` tokens including `<eos>`; a `file` brings facts and noise, sizes are then ignored."""

    TRACED = ("fact_fraction",)
    kind = "class"

    subjects: Count = 16
    relations: Count = 4
    per_relation: Count = 8
    noise: Natural = 20
    length: Annotated[int, Within(3)] = 32
    table: Literal["structured", "random"] = "structured"
    task: Natural = 0
    file: Facts | None = None
    fact_fraction: Share = 1.0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.file is not None and EOS in self.file.vocabulary:
            yield "file", f"must not have the word {EOS}, which ends every sequence"
        noise = self.noise if self.file is None else len(self.file.fillers)
        if noise < 1 and self.length != 3:
            yield "length", f"must be 3 where there is no noise, not {self.length}"

    @cached_property
    def spec(self) -> Facts:
        """The facts, as a spec."""
        if self.file is not None:
            return self.file
        sizes = (self.subjects, self.relations, self.per_relation)
        drawn = random_facts(*sizes, self.task, fillers=self.noise, length=self.length - 1)
        if self.table == "random":
            return drawn
        shared = [s * self.per_relation // self.subjects for s in range(self.subjects)]
        pairs = [(s, r) for s in range(self.subjects) for r in range(self.relations)]
        facts = tuple((f"s{s}", f"r{r}", f"a{r}.{shared[s]}") for s, r in pairs)
        return Facts(facts, drawn.fillers, drawn.length)

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.spec.vocabulary, EOS)

    @cached_property
    def answers(self) -> tuple[str, ...]:
        return self.spec.answers

    @cached_property
    def known(self) -> Array:
        """The facts as numbers [fact, 3]: of the subject and the relation among symbols, of the answer."""
        place = {word: number for number, word in enumerate(self.spec.vocabulary)}
        answer = {word: number for number, word in enumerate(self.answers)}
        return np.array([(place[s], place[r], answer[a]) for s, r, a in self.spec.facts], dtype=np.int32)

    def _used(self) -> Array:
        """Return the number of facts that are drawn: at least one."""
        return jnp.maximum(jnp.round(jnp.asarray(self.fact_fraction) * len(self.known)), 1)

    def draw(self, key: Array) -> Example:
        words, places = len(self.spec.vocabulary), self.length - 1
        word = jax.random.bits(key, (self.length + 3,))
        fact = jnp.asarray(self.known)[below(word[0], self._used())]
        at, besides = below(word[1], places), below(word[2], places - 1)
        besides += besides >= at
        place = jnp.arange(self.length)
        noise = words - 1 - below(word[3:], max(len(self.spec.fillers), 1))
        tokens = jnp.where(place == at, fact[0], jnp.where(place == besides, fact[1], noise))
        tokens = jnp.where(place == places, words, tokens).astype(jnp.int32)
        scored = jnp.arange(self.length + 1) == self.length
        latent = {"subject": fact[0], "relation": fact[1] - len(self.spec.subjects)}
        return Example(tokens, jnp.where(scored, fact[2], 0), scored.astype(jnp.float32), latent)

    def _said(self, example: Example, wanted: tuple[int, ...]) -> LogProbs:
        """Return the distribution of the answer over the facts that agree with the sequence in the wanted columns."""
        matched = jnp.arange(len(self.known)) < self._used()
        for column in wanted:
            matched &= (example.tokens[None] == self.known[:, column, None]).any(axis=1)
        counts = matched.astype(jnp.float32) @ np.eye(len(self.answers), dtype=np.float32)[self.known[:, 2]]
        return self.uniform(example).at[-1].set(logarithm(counts / counts.sum()))

    def optimal(self, example: Example) -> LogProbs:
        return self._said(example, (0, 1))

    def predictors(self) -> Mapping[str, Predictor]:
        return {
            "uniform": self.uniform,
            "unigram": lambda example: self._said(example, ()),
            "relation": lambda example: self._said(example, (1,)),
            "subject": lambda example: self._said(example, (0,)),
        }

    def floor(self) -> Array:
        return jnp.zeros(self.length + 1)


SANDBOX = Entry(
    FactRecall, small={"subjects": 3, "relations": 2, "per_relation": 2, "noise": 1, "length": 4, "table": "random"}
)
