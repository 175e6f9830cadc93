r"""Knowledge: questions of several kinds, each with its own words and its own dictionary to answer from.

A sequence is a query of a `Knowledge` spec and blanks up to the longest one; the value is asked for behind its last
word. The task is uniform, and within it the template and the key. Where no spec is given there are `tasks` tasks with
`templates` templates of two words each, a word of their own and the key, and values that no other task has; where keys
are `shared`, only both words together tell the value. Where values are `pooled` all tasks have the same ones, each in a
random order of its own: what the two words say can't just be added up, as it can where values are apart. Which expert
of a mixture takes which task can then be measured against the latent task.

With a `fraction` below 1 training sees only that part of the queries of each task, chosen once by a seed, and every
other split only the rest. Every template and every key comes up in training, so that whoever answers the rest has
understood that templates of a task ask for the same, and has not learnt queries by heart. Source: Fedus, Zoph and
Shazeer 2022, arXiv 2101.03961, for the losses to be compared on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Bool
from vitrify.sandboxes.catalogue import MAX_SYMBOLS, Count, Entry, Exact, Example, LogProbs, Predictor, Share, Split
from vitrify.sandboxes.kit.draws import below, logarithm
from vitrify.spec.memory.knowledge import Knowledge as Spec

BLANK = "_"


@dataclass(frozen=True)
class KnowledgeSandbox(Exact):
    """Queries of a `spec`, or of as many `tasks`, `templates` and `keys` as these numbers say.

    Only the first tasks, the fraction `task_fraction` of them, are drawn. Where a `seed` splits the queries, `part`
    chooses a side.
    """

    blanks = (BLANK,)
    RECORDED = "Knowledge"

    TRACED = ("task_fraction",)

    spec: Spec | None = None
    tasks: Count = 4
    templates: Count = 1
    keys: Count = 48
    shared: bool = True
    pooled: bool = False
    task_fraction: Share = 1.0
    fraction: Share = 1.0
    seed: int = 0
    part: Literal["all", "train", "rest"] = "all"

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.spec is not None:
            if len(self.spec.queries) > MAX_SYMBOLS:
                yield "spec", f"must have at most {MAX_SYMBOLS} queries, not {len(self.spec.queries)}"
            if BLANK in self.spec.vocabulary:
                yield "spec", f"must not have the word {BLANK!r}, which stands for blanks"
        elif self.tasks * self.templates * self.keys > MAX_SYMBOLS:
            yield "keys", f"must be less: there must be at most {MAX_SYMBOLS} queries, tasks × templates × keys"
        if self.fraction == 1 and self.part != "all":
            yield "part", f"must be all where fraction = 1, not {self.part}"
        for task in self.known.tasks if self.fraction < 1 else ():
            total, least = len(task.templates) * len(task.facts), max(len(task.templates), len(task.facts))
            if not least <= round(self.fraction * total) < total:
                yield "fraction", f"= {self.fraction:g} leaves a part of {task.name} empty, or a template or key out"

    def of(self, split: Split) -> KnowledgeSandbox:
        if self.fraction == 1:
            return self
        return replace(self, part="train" if split == "train" else "rest")

    @cached_property
    def known(self) -> Spec:
        """The spec: the one that was given, or one of that size."""
        if self.spec is not None:
            return self.spec
        rng = np.random.default_rng(self.seed)
        orders = [rng.permutation(self.keys) for _ in range(self.tasks)] if self.pooled else []
        return Spec.of(
            {
                f"task {t}": (
                    [f"q{t}.{k} #" if self.templates > 1 else f"q{t} #" for k in range(self.templates)],
                    {
                        (f"k{key}" if self.shared else f"k{t}.{key}"): f"v{orders[t][key]}" if orders else f"v{t}.{key}"
                        for key in range(self.keys)
                    },
                )
                for t in range(self.tasks)
            }
        )

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.known.vocabulary, BLANK)

    @property
    def answers(self) -> tuple[str, ...]:
        return self.known.values

    @property
    def tokens(self) -> int:
        return self.known.longest

    @cached_property
    def _queries(self) -> dict[str, Array]:
        """Every query: its words [query, place], and by name what else is known of it [query]."""
        word, value = ({name: k for k, name in enumerate(names)} for names in (self.symbols, self.answers))
        keys: dict[tuple[str, ...], int] = {}
        words = np.full((len(self.known.queries), self.tokens), word[BLANK], dtype=np.int32)
        rows = []
        for row, (query, (task, template, fact)) in zip(words, self.known.queries.items(), strict=True):
            row[: len(query)] = [word[part] for part in query]
            key, answer = self.known.tasks[task].facts[fact]
            rows.append((task, template, keys.setdefault(key, len(keys)), value[answer], len(query)))
        names = ("task", "template", "key", "answer", "length")
        columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
        drawn = np.flatnonzero(self._kept)
        size = np.bincount(columns["task"][drawn])
        columns |= {"words": words, "share": np.where(self._kept, 1 / size[columns["task"]], 0.0)}
        return {"drawn": drawn, "start": np.cumsum([0, *size[:-1]]), "size": size, **columns}

    @cached_property
    def _kept(self) -> Bool[Array, " query"]:
        """True for the queries that are drawn [query].

        Of each task those in which the number of a key, counted round and round, meets that of a template are trained
        on in any case, in random order, and random others.
        """
        rng = np.random.default_rng(self.seed)
        in_training = []
        for task in self.known.tasks:
            shape = len(task.templates), len(task.facts)
            trained = np.zeros(shape, dtype=bool)
            if self.fraction < 1:
                around = np.arange(max(shape))
                trained[rng.permutation(shape[0])[around % shape[0]], rng.permutation(shape[1])[around % shape[1]]] = 1
                others = rng.permutation(np.flatnonzero(~trained))
                trained.ravel()[others[: round(self.fraction * trained.size) - len(around)]] = True
            in_training.append(trained.ravel() if self.part == "train" else ~trained.ravel())
        return np.concatenate(in_training)

    def _tasks(self) -> Array:
        """Return the number of tasks that are drawn."""
        return jnp.maximum(jnp.round(jnp.asarray(self.task_fraction) * len(self.known.tasks)), 1)

    def draw(self, key: Array) -> Example:
        one, two = jax.random.bits(key, (2,))
        task = below(one, self._tasks())
        known = {name: jnp.asarray(column) for name, column in self._queries.items()}
        return self._asked(known["drawn"][known["start"][task] + below(two, known["size"][task])])

    def every(self) -> tuple[Example, Bool[Array, " query"]]:
        """All queries of all tasks, one row each, and which of them training draws."""
        numbers = jnp.arange(len(self.known.queries))
        return jax.vmap(self._asked)(numbers), replace(self, part="all" if self.fraction == 1 else "train")._kept

    def _asked(self, query: Array) -> Example:
        """The sequence of a query, by its number."""
        known = {name: jnp.asarray(column) for name, column in self._queries.items()}
        end = known["length"][query]
        targets = jnp.zeros(self.tokens + 1, jnp.int32).at[end].set(known["answer"][query])
        weight = jnp.zeros(self.tokens + 1).at[end].set(1.0)
        latent = {name: known[name][query] for name in ("task", "template", "key")}
        return Example(known["words"][query], targets, weight, latent)

    def right(self, tokens: Array) -> Array:
        """The value of the query with these words."""
        return jnp.full(self.tokens + 1, jnp.asarray(self._queries["answer"])[self._found(tokens)])

    def _found(self, tokens: Array) -> Array:
        return jnp.argmax((jnp.asarray(self._queries["words"]) == tokens).all(axis=1))

    def predictors(self) -> Mapping[str, Predictor]:
        return {
            "uniform": self.uniform,
            "unigram": lambda row: self._given(row, np.zeros(len(self._queries["task"]))),
            "task": lambda row: self._given(row, self._queries["task"]),
            "key": lambda row: self._given(row, self._queries["key"]),
        }

    def _given(self, row: Example, label: Array) -> LogProbs:
        """Return the distribution of the value over queries with the same label as this one."""
        known = self._queries
        like = jnp.asarray(label) == jnp.asarray(label)[self._found(row.tokens)]
        like &= jnp.asarray(known["task"]) < self._tasks()
        mass = jnp.zeros(len(self.answers)).at[known["answer"]].add(jnp.where(like, known["share"], 0.0))
        return jnp.where(row.weight[:, None] > 0, logarithm(mass / mass.sum()), self.uniform(row))


SANDBOX = Entry(KnowledgeSandbox, small={"tasks": 3, "keys": 4, "templates": 2})
