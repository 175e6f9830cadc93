r"""The Random Hierarchy Model: a class is rewritten level by level into $s^L$ leaves.

At each of $L$ levels every symbol has $m$ equally probable productions of $s$ symbols of the level below; the $vm$
productions of a level are drawn once, without replacement, by the `task` seed (`spec.grammars.random_hierarchy`), so a
whole string has one parse. Three questions: the class (`classify`), the last leaf (`last`), or every next leaf
(`next`). Posteriors come from messages up and down the tree (`_tree`), with about $s^L\, v^2 m$ operations a sequence.

Whoever sees only the last $s^l - 1$ leaves is best served by the predictor `level l`, with the loss `plateaus()[l]` at
the last leaf: the stairs that learners go down. Level 0 knows how often a leaf is each symbol, level $L$ is optimal.
A learner that is told no more than these leaves has the stair as its optimum: `window`.
Source: Cagnetta et al. 2024, arXiv 2307.02129; Cagnetta and Wyart 2024, arXiv 2406.00048.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Float
from vitrify.encoding import added
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import (
    Count,
    Entry,
    Example,
    LogProbs,
    Natural,
    Predictor,
    Sandbox,
    Split,
    Within,
    later,
)
from vitrify.sandboxes.kit import tree
from vitrify.sandboxes.kit.draws import below, integer_below, logarithm
from vitrify.spec.grammars.families import hierarchy_tables, letter

Mode = Literal["classify", "last", "next"]
MAX_LEAVES = 1 << 16
UNTOLD = "?"


@dataclass(frozen=True)
class HierarchySandbox(Sandbox):
    """Sequences of the leaves of one random tree: `v` symbols, `m` productions each, `s` children, `L` levels.

    There are `classes` root symbols, `v` of them unless told otherwise. The productions are those of the seed `task +
    grammar`; members of one program may differ in `grammar`, which is one of 0, …, `grammars` - 1.
    Without `levels` members are not compared with the predictors of the levels, which compiles sooner.

    Where the last leaf is asked for, sequences can be the last `widest` leaves before it instead of all. Of these the
    last `window` are told (0: all), and the others are the symbol `?`; members of one program may differ in it. A
    string and its answer are the same whatever is told of it.

    Where the class is asked for, strings can be `held_out`: no test string is then a training string. One string in `m`
    is held out: the root's production is a number below `m` that depends on the class and on all other productions, by
    a hash, and is any other production in training.
    """

    RECORDED = "Hierarchy"

    TRACED = ("grammar", "window")

    v: Annotated[int, Within(2)] = 8
    m: Count = 4
    s: Annotated[int, Within(2)] = 2
    L: Count = 3
    classes: Count | None = None
    task: Natural = 0
    mode: Mode = "next"
    grammars: Count = 1
    grammar: float = 0.0
    levels: bool = True
    widest: Annotated[int, Within(0)] = later(0)
    window: float = later(0.0)
    held_out: bool = added(False)
    part: Literal["all", "train", "rest"] = added("all")

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.grammar not in range(self.grammars):
            yield "grammar", f"must be one of 0, …, {self.grammars - 1}, not {self.grammar:g}"
        if max(self.v, self.roots) * self.m > self.v**self.s:
            most = self.v**self.s // max(self.v, self.roots)
            yield "m", f"must be at most {most}, as productions are distinct, not {self.m}"
        if self.s**self.L > MAX_LEAVES:
            yield "L", f"must be less: a tree of {self.s}^{self.L} leaves is too large, the most are {MAX_LEAVES}"
        elif self.widest >= self.leaves:
            yield "widest", f"must be one of 0, …, {self.leaves - 1}, not {self.widest}"
        if self.widest and self.mode != "last":
            yield "widest", f"must be 0 where the last leaf is not what is asked for, in the mode {self.mode}"
        if self.window not in range(self.widest + 1):
            yield "window", f"must be one of 0, …, widest = {self.widest}, not {self.window:g}"
        if self.held_out and (self.mode != "classify" or self.m == 1):
            yield "held_out", f"takes the mode classify and m > 1, not the mode {self.mode} and m = {self.m}"
        if self.part != "all" and not self.held_out:
            yield "part", f"must be all where no string is held out, not {self.part}"

    @property
    def roots(self) -> int:
        """The number of classes."""
        return self.v if self.classes is None else self.classes

    @property
    def leaves(self) -> int:
        """The length of every string."""
        return int(self.s**self.L)

    @property
    def kind(self) -> Literal["lm", "class"]:  # type: ignore[override]  # it depends on the question
        return "class" if self.mode == "classify" else "lm"

    @property
    def words(self) -> tuple[str, ...]:
        """The symbols of the leaves."""
        return tuple(letter(k) for k in range(self.v))

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.words, UNTOLD) if self.widest else self.words

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(f"L{self.L}_{k}" for k in range(self.roots)) if self.mode == "classify" else self.words

    @property
    def tokens(self) -> int:
        return self.leaves if self.mode == "classify" else self.widest or self.leaves - 1

    @property
    def bidirectional(self) -> bool:
        return self.mode != "next"

    @cached_property
    def rules(self) -> tuple[Array, ...]:
        """The productions [symbol, production, place] of the symbols of height 1, …, L."""
        grammar: Array = self.grammar
        if not isinstance(grammar, jax.core.Tracer):
            return self._drawn(int(grammar))
        if self.grammars == 1:
            return self._drawn(0)
        every = zip(*[self._drawn(number) for number in range(self.grammars)], strict=True)
        return tuple(jnp.asarray(np.stack(tables))[grammar.astype(jnp.int32)] for tables in every)

    def _drawn(self, grammar: int) -> tuple[Array, ...]:
        return tuple(hierarchy_tables(self.v, self.m, self.s, self.L, self.task + grammar, classes=self.roots))

    # Sequences

    def of(self, split: Split) -> HierarchySandbox:
        """Return a copy for probes: the rules of a traced grammar, once cached, belong to the loop that drew tests."""
        if self.held_out:
            return replace(self, part="train" if split == "train" else "rest")
        return replace(self) if split == "probe" else self

    def draw(self, key: Array) -> Example:
        u = jax.random.uniform(key, (1 + (self.leaves - 1) // (self.s - 1),))
        sizes = np.cumsum([self.s**level for level in range(self.L - 1)])
        label, picks = integer_below(u[0], self.roots), integer_below(u[1:], self.m)
        if self.part != "all":
            held, other = _hashed(jnp.append(picks[1:], label), self.m), integer_below(u[1], self.m - 1)
            picks = picks.at[0].set(held if self.part == "rest" else (held + 1 + other) % self.m)
        return self.grown(label, jnp.split(picks, sizes))

    def grown(self, label: Array, productions: list[Array]) -> Example:
        """Return the example of one tree, given its class and its nodes' productions, from the root down."""
        latent, symbols = {"label": label}, label[None]
        for height, picks in zip(range(self.L, 0, -1), productions, strict=True):
            latent |= {f"symbols {height}": symbols, f"productions {height}": picks}
            symbols = self._children(height, symbols, picks)
        if self.mode == "classify":
            targets, tokens = jnp.zeros(self.leaves + 1, jnp.int32).at[-1].set(label), symbols
        else:
            targets, tokens = symbols[-1 - self.tokens :], self._visible(symbols)
        weight = jnp.ones(len(targets)) if self.mode == "next" else jnp.zeros(len(targets)).at[-1].set(1.0)
        return Example(tokens, targets, weight, latent)

    def _visible(self, leaves: Array) -> Array:
        """Return the visible tokens of a string, or of several."""
        if self.mode == "classify":
            return leaves
        visible = leaves[..., -1 - self.tokens : -1]
        if not self.widest:
            return visible
        hidden = jnp.arange(self.widest) < self.widest - self.window
        return jnp.where(hidden & (self.window > 0), self.v, visible)

    def _children(self, height: int, symbols: Array, productions: Array) -> Array:
        """Return the children of nodes of a height with these symbols and productions."""
        rule = symbols * self.m + productions
        sides = jnp.asarray(self.rules[height - 1].reshape(-1, self.s), jnp.int32)
        return jnp.stack([sides[:, j][rule] for j in range(self.s)], axis=-1).reshape(-1)  # 4 times a gather of rows

    def synonyms(self, example: Example, key: Array, level: int) -> Example:
        """Return the example with every production of one height exchanged for another one of the same symbol.

        Symbols of that height and above stay; nodes below keep the number of their production.
        """
        productions = [example.latent[f"productions {height}"] for height in range(self.L, 0, -1)]
        old = productions[self.L - level]
        shift = 1 + integer_below(jax.random.uniform(key, old.shape), self.m - 1) if self.m > 1 else 0
        productions[self.L - level] = (old + shift) % self.m
        return self.grown(example.latent["label"], productions)

    def others(self, example: Example, key: Array, level: int) -> Example:
        """Return the example with every symbol of one height exchanged for another one, and the leaves below with it.

        Nodes of that height and below keep the number of their production. What is above stays as it was, answers too:
        they are not those of a tree any more.
        """
        latent, old = dict(example.latent), example.latent[f"symbols {level}"]
        count = self.roots if level == self.L else self.v
        symbols = (old + 1 + integer_below(jax.random.uniform(key, old.shape), count - 1)) % count
        for height in range(level, 0, -1):
            latent[f"symbols {height}"] = symbols
            symbols = self._children(height, symbols, latent[f"productions {height}"])
        return example._replace(tokens=self._visible(symbols), latent=latent)

    # Predictors

    def _up(self, example: Example) -> list[Array]:
        leaves = jax.nn.one_hot(example.tokens, self.v)
        if self.widest:
            leaves = jnp.where(example.tokens[:, None] < self.v, leaves, 1.0)
        if self.mode != "classify":
            before = self.leaves - 1 - self.tokens
            leaves = jnp.concatenate([jnp.ones((before, self.v)), leaves, jnp.ones((1, self.v))])
        return tree.inside(self.rules, leaves)

    def optimal(self, example: Example) -> LogProbs:
        up = self._up(example)
        if self.mode == "classify":
            last = logarithm(up[-1][0] / jnp.maximum(up[-1][0].sum(), tree.TINY))
            return self.uniform(example).at[-1].set(last)
        return logarithm(tree.from_the_left(self.rules, up, jnp.ones(self.roots))[-1 - self.tokens :])

    def predictors(self) -> Mapping[str, Predictor]:
        visible = self.tokens + 1 if self.levels and self.mode != "classify" else 0
        levels = [level for level in range(self.L + 1) if self.s**level <= visible]
        return {"uniform": self.uniform, **{f"level {level}": partial(self.level, level=level) for level in levels}}

    def level(self, example: Example, level: int) -> LogProbs:
        """The best that can be said of each leaf from the $s^l - 1$ leaves before it; `last` asks of the last only."""
        up, prior = self._up(example), jnp.ones(self.roots)
        seen = self.s**level - 1

        def one(leaf: Array) -> Array:
            return tree.from_a_window(self.rules, up, prior, jnp.maximum(leaf - seen, 0), leaf)

        places = jnp.arange(self.leaves)
        if self.mode == "last":
            return self.uniform(example).at[-1].set(logarithm(one(places[-1])))
        return logarithm(jax.vmap(one)(places))

    # Closed forms

    def plateaus(self) -> Float[Array, " level"]:
        """The loss at the last leaf of who sees the last $s^l - 1$ leaves before it, for l = 0, …, L: NumPy [L + 1]."""
        return np.array([self.stair(self.s**level - 1) for level in range(self.L + 1)])

    def stair(self, seen: int) -> float:
        """The loss at the last leaf of who sees the last `seen` leaves before it."""
        try:
            return self._last(seen)
        except tree.TooMany:
            sizes = f"v = {self.v}, m = {self.m}, s = {self.s}, L = {self.L}"
            message = f"with {sizes} a reader can come to hold more than {tree.MAX_BELIEFS} beliefs"
            raise InputError(f"{message}: average `level` over sequences instead, or choose smaller sizes") from None

    def _last(self, seen: int) -> float:
        return tree.entropies(self.rules, np.ones((1, self.roots), np.int64), np.ones(1), last=True, seen=seen)[-1]

    def floor(self) -> Array | None:
        if self.mode == "classify":
            return jnp.zeros(self.leaves + 1)
        try:
            if self.mode == "last":
                return jnp.zeros(self.tokens + 1).at[-1].set(self._last(int(self.window) or self.tokens))
            return jnp.array(tree.entropies(self.rules, np.ones((1, self.roots), np.int64), np.ones(1)))
        except tree.TooMany:
            return None


def _hashed(digits: Array, bound: int) -> Array:
    """Return a number below a bound that depends on all digits and looks random."""

    def mixed(x: Array) -> Array:
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):  # of the hash lowbias32
            x = (x ^ (x >> shift)) * jnp.uint32(factor)
        return x ^ (x >> 16)

    places = jnp.arange(1, len(digits) + 1, dtype=jnp.uint32) * jnp.uint32(0x9E3779B9)
    return below(mixed(mixed(places + mixed(digits.astype(jnp.uint32))).sum(dtype=jnp.uint32)), bound)


SANDBOX = Entry(HierarchySandbox, small={"v": 3, "m": 2, "L": 2, "classes": 2, "grammars": 3, "grammar": 2.0})
