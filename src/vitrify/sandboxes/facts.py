r"""Facts: a subject and a relation stand somewhere among noise, and the relation of the subject is asked for.

A row has one subject and one relation of a fact at two random places, noise everywhere else, and `<eos>` at its end,
where the answer $a^*(s, r)$ is asked for. Answers belong to relations, $D$ to each. In `structured` facts
$a^*(s, r) = \lfloor sD/S \rfloor$, so that subjects in a row share answers; in `random` ones each is drawn; or they are
those of a `.facts` file. Whoever has learned the relations only says $p(a \mid r)$, with the loss $\log D$ where all
answers of a relation are alike, and makes up facts. Of all facts only a `share` may be in use, the first ones. Source:
Nichani, Lee, Bietti 2024, arXiv 2412.06538.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes.catalogue import LEAST_LOG, Entry, Predictor, Row, Sandbox
from vitrify.spec.facts import Facts, random_facts

EOS = "<eos>"


@dataclass(frozen=True)
class FactRecall(Sandbox):
    """Rows of `length` tokens, `<eos>` among them; a file brings its own facts and noise, and no size is asked."""

    TRACED: ClassVar[tuple[str, ...]] = ("share",)
    kind: ClassVar[Literal["lm", "class"]] = "class"

    subjects: int = 16
    relations: int = 4
    per_relation: int = 8
    noise: int = 20
    length: int = 32
    table: Literal["structured", "random"] = "structured"
    task: int = 0
    file: Facts | None = None
    share: float = 1.0

    def problems(self) -> Iterator[str]:
        if self.file is not None:
            noise = len(self.file.fillers)
            if EOS in self.file.vocabulary:
                yield f"{EOS} ends every row, so it may not be a word of the file"
        else:
            noise = self.noise
            for name in ("subjects", "relations", "per_relation"):
                if getattr(self, name) < 1:
                    yield f"{name} must be at least 1, not {getattr(self, name)}"
            if self.task < 0:
                yield f"task must not be negative, not {self.task}"
            if self.noise < 0:
                yield f"noise must not be negative, not {self.noise}"
        if not 0 < self.share <= 1:
            yield f"share must lie in (0, 1], not {self.share:g}"
        if self.length < 3 or (noise < 1 and self.length != 3):
            yield f"length must be at least 3, and just 3 where there is no noise, not {self.length}"

    @cached_property
    def spec(self) -> Facts:
        """The facts: what they mean is said there."""
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

    @property
    def tokens(self) -> int:
        return self.length

    @cached_property
    def known(self) -> Array:
        """The facts as numbers [fact, 3]: of the subject and the relation among symbols, of the answer."""
        place = {word: number for number, word in enumerate(self.spec.vocabulary)}
        answer = {word: number for number, word in enumerate(self.answers)}
        return np.array([(place[s], place[r], answer[a]) for s, r, a in self.spec.facts], dtype=np.int32)

    def _used(self) -> Array:
        """How many facts are in use: at least one."""
        return jnp.maximum(jnp.round(jnp.asarray(self.share) * len(self.known)), 1)

    def draw(self, key: Array) -> Row:
        words, places = len(self.spec.vocabulary), self.length - 1
        word = jax.random.bits(key, (self.length + 3,))
        fact = jnp.asarray(self.known)[below(word[0], self._used())]
        at, besides = below(word[1], places), below(word[2], places - 1)
        besides += besides >= at
        place = jnp.arange(self.length)
        noise = words - 1 - below(word[3:], max(len(self.spec.fillers), 1))
        tokens = jnp.where(place == at, fact[0], jnp.where(place == besides, fact[1], noise))
        tokens = jnp.where(place == places, words, tokens).astype(jnp.int32)
        asked = jnp.arange(self.length + 1) == self.length
        latent = {"subject": fact[0], "relation": fact[1] - len(self.spec.subjects)}
        return Row(tokens, jnp.where(asked, fact[2], 0), asked.astype(jnp.float32), latent)

    def _said(self, row: Row, wanted: tuple[int, ...]) -> Array:
        """How often each answer is that of a fact which shares the wanted columns with the row, all facts alike."""
        matched = jnp.arange(len(self.known)) < self._used()
        for column in wanted:
            matched &= (row.tokens[None] == self.known[:, column, None]).any(axis=1)
        counts = matched.astype(jnp.float32) @ np.eye(len(self.answers), dtype=np.float32)[self.known[:, 2]]
        p = counts / counts.sum()
        last = jnp.where(p > 0, jnp.log(jnp.where(p > 0, p, 1.0)), LEAST_LOG)
        return jnp.concatenate([jnp.full((self.length, len(p)), -np.log(len(p))), last[None]])

    def optimal(self, row: Row) -> Array:
        return self._said(row, (0, 1))

    def predictors(self) -> Mapping[str, Predictor]:
        return {
            "uniform": self.uniform,
            "unigram": lambda row: self._said(row, ()),
            "relation": lambda row: self._said(row, (1,)),
            "subject": lambda row: self._said(row, (0,)),
        }

    def floor(self) -> Array:
        return jnp.zeros(self.length + 1)

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        spec, symbols = self.spec, {word: number for number, word in enumerate(self.symbols)}
        fact = rng.integers(max(round(self.share * len(spec.facts)), 1), size=count)
        first = len(spec.vocabulary) - len(spec.fillers)
        tokens = rng.integers(first, max(len(spec.vocabulary), first + 1), size=(count, self.length)).astype(np.int32)
        places = rng.permuted(np.tile(np.arange(self.length - 1), (count, 1)), axis=1)[:, :2]
        for column in (0, 1):
            word = np.array([symbols[names[column]] for names in spec.facts])
            tokens[np.arange(count), places[:, column]] = word[fact]
        tokens[:, -1] = symbols[EOS]
        targets = np.zeros((count, self.length + 1), dtype=np.int32)
        targets[:, -1] = np.array([self.answers.index(a) for _, _, a in spec.facts])[fact]
        return tokens, targets


SANDBOX = Entry(
    FactRecall, small={"subjects": 3, "relations": 2, "per_relation": 2, "noise": 1, "length": 4, "table": "random"}
)
