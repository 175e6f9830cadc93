r"""Rows with causal structure: every symbol is drawn given its parent, an earlier symbol that the graph names.

The graph is the same for all rows. Each row draws a kernel $\pi$ of its own, its lines from a Dirichlet distribution
with all parameters $\alpha$; roots are uniform, $s_i \sim \pi(\cdot \mid s_{\text{pa}(i)})$, and the last token $s_T$
is uniform and no part of the graph: it is the question, whose answer is drawn from $\pi(\cdot \mid s_T)$; `soft` is
this distribution itself. With $c_{ab}$ the number of edges from $a$ to $b$, the best answer is
$(c_{ab} + \alpha) / (\sum_b c_{ab} + k\alpha)$ for $a = s_T$. With two parents the lines of $\pi$ are pairs, and so is
the question. Source: Nichani, Damian, Lee 2024, arXiv 2402.14735. There roots come from the stationary law of $\pi$,
which would tell something about $\pi$ that no count holds; uniform roots keep the optimum exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.sandboxes._draws import dirichlet, invert
from vitrify.sandboxes._parents import descend
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox

Family = Literal["chain", "icl", "tree", "two"]


def parents_of(family: Family, length: int, task: int) -> Array:
    r"""The parents [position, parent] of `length` positions, counted from 0; -1 stands for none.

    `chain`: the position before. `icl`: pairs, an odd position has the even one before it. `tree`: any earlier position
    or none, all alike, drawn by `task`. `two`: $\lfloor (i-1)/2 \rfloor$ and $i-1$, from the third position on.
    """
    place = np.arange(length)
    if family == "chain":
        return (place - 1)[:, None]
    if family == "icl":
        return np.where(place % 2 == 1, place - 1, -1)[:, None]
    if family == "tree":
        return (np.random.default_rng(task).integers(place + 1) - 1)[:, None]
    return np.where(place[:, None] < 2, -1, np.stack([(place - 1) // 2, place - 1], axis=1))


@dataclass(frozen=True)
class CausalGraph(Sandbox):
    """Rows of `length` tokens, the question among them, with the parents of a family.

    Members of one program may have different trees, any of `trees`: that of number `tree` is drawn by `task` + `tree`.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("tree",)

    graph: Family = "tree"
    states: int = 3
    length: int = 20
    alpha: float = 1.0
    task: int = 0
    trees: int = 1
    tree: int = 0

    def problems(self) -> Iterator[str]:
        if self.states < 2:
            yield f"states must be at least 2, not {self.states}"
        if self.length < 3 + (self.graph == "two"):
            yield f"length must be at least {3 + (self.graph == 'two')}, not {self.length}"
        if not self.alpha > 0:
            yield f"alpha must be positive, not {self.alpha:g}"
        if self.task < 0:
            yield f"task must not be negative, not {self.task}"
        if not 0 <= self.tree < self.trees:
            yield f"tree must be one of {self.trees} trees, from 0, not {self.tree:g}"

    @property
    def rounded(self) -> bool:
        return self.alpha != 1

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(str(state) for state in range(self.states))

    @property
    def tokens(self) -> int:
        return self.length

    @property
    def asking(self) -> int:
        """How many tokens the question has: one for each parent."""
        return 2 if self.graph == "two" else 1

    @property
    def parents(self) -> Array:
        """The parents [position, parent] of all tokens before the question; -1 stands for none."""
        count, own = self.length - self.asking, cast(Any, self.tree)
        if not isinstance(own, jax.core.Tracer):
            return parents_of(self.graph, count, self.task + int(own))
        known = np.stack([parents_of(self.graph, count, self.task + tree) for tree in range(self.trees)])
        return jnp.asarray(known)[jnp.asarray(own, jnp.int32)]

    def draw(self, key: Array) -> Row:
        k, ways = self.states, self.asking
        chance, steps = jax.random.split(key)
        u = jax.random.uniform(steps, (self.length + 1,))
        bounds, kernel = dirichlet(chance, self.alpha, (k,) * (ways + 1))
        roots = jnp.asarray((np.arange(1, k) / k).astype(np.float32))
        table = jnp.broadcast_to(roots, (k + 1,) * ways + (k - 1,)).at[(slice(k),) * ways].set(bounds)
        seen = descend(table, jnp.asarray(self.parents), u[: self.length - ways])
        asked = invert(roots, u[self.length - ways : -1])
        target = invert(bounds[tuple(asked)], u[-1])
        place = jnp.arange(self.length + 1) == self.length
        return Row(
            jnp.concatenate([seen, asked]).astype(jnp.int32),
            jnp.where(place, target, 0),
            place.astype(jnp.float32),
            {"parents": jnp.asarray(self.parents), "kernel": kernel},
            jnp.where(place[:, None], kernel[tuple(asked)], 1 / k),
        )

    def _last(self, counts: Array) -> Array:
        """One distribution after all tokens, proportional to some counts; before, where nothing is asked, any."""
        before = jnp.full((self.length, self.states), -np.log(self.states))
        return jnp.concatenate([before, jnp.log(counts / counts.sum())[None]])

    def optimal(self, row: Row) -> Array:
        seen = row.tokens[: len(self.parents)]
        matched = (seen[self.parents] == row.tokens[-self.asking :]).all(axis=1) & (self.parents >= 0).all(axis=1)
        return self._last(matched.astype(jnp.float32) @ jax.nn.one_hot(seen, self.states) + self.alpha)

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "unigram": self.unigram, "neighbours": self.neighbours}

    def unigram(self, row: Row) -> Array:
        """How often each symbol came up, with one more of each."""
        return self._last(jax.nn.one_hot(row.tokens[: len(self.parents)], self.states).sum(axis=0) + 1.0)

    def neighbours(self, row: Row) -> Array:
        """What followed the last token of the question at the next position, whatever the graph."""
        seen = row.tokens[: len(self.parents)]
        matched = (seen[:-1] == row.tokens[-1]).astype(jnp.float32)
        return self._last(matched @ jax.nn.one_hot(seen[1:], self.states) + self.alpha)

    def laws(self, kernels: Array) -> tuple[Array, Array]:
        """The law of each position, and of any two, if each has one parent at most, by products along the graph.

        Given kernels [kernel, above, symbol], they are [position, kernel, symbol], and
        [j, i, kernel, symbol at j, symbol at i].
        """
        if self.parents.shape[1] > 1:
            raise InputError("laws of two positions follow paths: not where positions have two parents")
        k, count = self.states, len(self.parents)
        pi = np.asarray(kernels, dtype=np.float64)
        one = np.full((count, len(pi), k), 1 / k)
        both = np.zeros((count, count, len(pi), k, k))
        for i, (above,) in enumerate(np.asarray(self.parents)):
            if above >= 0:
                one[i] = np.einsum("na,nab->nb", one[above], pi)
                both[:i, i] = both[:i, above] @ pi
            else:
                both[:i, i] = one[:i, :, :, None] * one[i][:, None, :]
            both[i, :i] = both[:i, i].swapaxes(-1, -2)
            both[i, i] = one[i][:, :, None] * np.eye(k)
        return one, both

    def information(self, kernels: Array) -> Array:
        r"""How much two positions tell of each other, by $\chi^2$, as a mean over kernels: [j, i].

        $\mathrm{E}_\pi\big[\sum_{ab} P(s_j = a, s_i = b)^2 / (P(s_j = a) P(s_i = b))\big] - 1$.
        """
        one, both = self.laws(kernels)
        shares = one[:, None, :, :, None] * one[None, :, :, None, :]
        found: Array = (both**2 / shares).sum(axis=(-1, -2)).mean(axis=-1) - 1
        return found

    def passed_on(self, kernels: Array) -> Array:
        r"""How much two positions are related as a parent and its child are, as a mean over kernels: [j, i].

        $\mathrm{E}_\pi\big[\sum_{ab} \pi(b \mid a)\,(P(s_j = a, s_i = b) - P(s_j = a) P(s_i = b)) / \mu(b)\big]$,
        where $\mu$ is the mean law of all positions. Where all have the same law it is the $\chi^2$ information if $j$
        is the parent of $i$, and else at most the geometric mean of that and the one between $j$ and $i$.
        """
        one, both = self.laws(kernels)
        apart = both - one[:, None, :, :, None] * one[None, :, :, None, :]
        found: Array = np.einsum("nab,jinab,nb->ji", kernels, apart, 1 / one.mean(axis=0)) / len(kernels)
        return found

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        k, ways, each = self.states, self.asking, np.arange(count)
        kernels = rng.dirichlet(np.full(k, self.alpha), (count, *(k,) * ways)).cumsum(axis=-1)[..., :-1]
        tokens = rng.integers(k, size=(count, self.length)).astype(np.int32)
        for i, above in enumerate(self.parents.tolist()):
            if min(above) >= 0:
                bounds = kernels[(each, *(tokens[:, j] for j in above))]
                tokens[:, i] = (rng.random((count, 1)) >= bounds).sum(axis=-1)
        targets = np.zeros((count, self.length + 1), dtype=np.int32)
        bounds = kernels[(each, *tokens[:, -ways:].T)]
        targets[:, -1] = (rng.random((count, 1)) >= bounds).sum(axis=-1)
        return tokens, targets


SANDBOX = Entry(CausalGraph, small={"states": 2, "length": 5, "trees": 5, "tree": 4})
