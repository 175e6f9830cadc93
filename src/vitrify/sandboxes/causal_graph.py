r"""Sequences with causal structure: every symbol is drawn given its parent, an earlier symbol that the graph names.

The graph is the same for all sequences. Each sequence draws a kernel $\pi$ of its own, its lines from a Dirichlet
distribution with all parameters $\alpha$; roots are uniform, $s_i \sim \pi(\cdot \mid s_{\text{pa}(i)})$, and the last
token $s_T$ is uniform and no part of the graph: it is the question, whose answer is drawn from $\pi(\cdot \mid s_T)$;
`soft` is this distribution itself. With $c_{ab}$ the number of edges from $a$ to $b$, the best answer is $(c_{ab} +
\alpha) / (\sum_b c_{ab} + k\alpha)$ for $a = s_T$. With two parents the lines of $\pi$ are pairs, and so is the
question. Source: Nichani, Damian, Lee 2024, arXiv 2402.14735. There roots come from the stationary law of $\pi$, which
would tell something about $\pi$ that no count holds; uniform roots keep the optimum exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Array, Count, Entry, Example, LogProbs, Natural, Positive, Sandbox, Within
from vitrify.sandboxes.kit.draws import descend, dirichlet, invert

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
    """Sequences of `length` tokens, the question among them, with the parents of a family.

    Members of one program may have different trees, any of `trees`: that of number `tree` is drawn by `task` + `tree`.
    """

    PREDICTORS = ("unigram", "neighbors")
    TRACED = ("tree",)

    graph: Family = "tree"
    states: Annotated[int, Within(2)] = 3
    length: Annotated[int, Within(3)] = 20
    alpha: Positive = 1.0
    task: Natural = 0
    trees: Count = 1
    tree: Natural = 0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.graph == "two" and self.length < 4:
            yield "length", f"must be at least 4 where graph=two, not {self.length}"
        if self.tree >= self.trees:
            yield "tree", f"must be one of {self.trees} trees, from 0, not {self.tree:g}"

    @property
    def rounded(self) -> bool:
        return self.alpha != 1

    @property
    def asking(self) -> int:
        """The number of query tokens: one for each parent."""
        return 2 if self.graph == "two" else 1

    @property
    def parents(self) -> Array:
        """The parents [position, parent] of all tokens before the question; -1 stands for none."""
        count, own = self.length - self.asking, cast(Array, self.tree)
        if not isinstance(own, jax.core.Tracer):
            return parents_of(self.graph, count, self.task + int(own))
        known = np.stack([parents_of(self.graph, count, self.task + tree) for tree in range(self.trees)])
        return jnp.asarray(known)[jnp.asarray(own, jnp.int32)]

    def draw(self, key: Array) -> Example:
        k, ways = self.states, self.asking
        chance, steps = jax.random.split(key)
        u = jax.random.uniform(steps, (self.length + 1,))
        bounds, kernel = dirichlet(chance, self.alpha, (k,) * (ways + 1))
        roots = jnp.asarray((np.arange(1, k) / k).astype(np.float32))
        table = jnp.broadcast_to(roots, (k + 1,) * ways + (k - 1,)).at[(slice(k),) * ways].set(bounds)
        seen = descend(table, jnp.asarray(self.parents), u[: self.length - ways])
        queries = invert(roots, u[self.length - ways : -1])
        target = invert(bounds[tuple(queries)], u[-1])
        place = jnp.arange(self.length + 1) == self.length
        return Example(
            jnp.concatenate([seen, queries]).astype(jnp.int32),
            jnp.where(place, target, 0),
            place.astype(jnp.float32),
            {"parents": jnp.asarray(self.parents), "kernel": kernel},
            jnp.where(place[:, None], kernel[tuple(queries)], 1 / k),
        )

    def _last(self, example: Example, counts: Array) -> LogProbs:
        """One distribution after all tokens, proportional to some counts; before, where nothing is asked, any."""
        return self.uniform(example).at[-1].set(jnp.log(counts / counts.sum()))

    def optimal(self, example: Example) -> LogProbs:
        seen = example.tokens[: len(self.parents)]
        matched = (seen[self.parents] == example.tokens[-self.asking :]).all(axis=1) & (self.parents >= 0).all(axis=1)
        return self._last(example, matched.astype(jnp.float32) @ jax.nn.one_hot(seen, self.states) + self.alpha)

    def unigram(self, example: Example) -> LogProbs:
        """Return the frequencies of the symbols so far, with add-one smoothing."""
        return self._last(example, jax.nn.one_hot(example.tokens[: len(self.parents)], self.states).sum(axis=0) + 1.0)

    def neighbors(self, example: Example) -> LogProbs:
        """Return the frequencies of symbols right after occurrences of the last query token, ignoring the graph."""
        seen = example.tokens[: len(self.parents)]
        matched = (seen[:-1] == example.tokens[-1]).astype(jnp.float32)
        return self._last(example, matched @ jax.nn.one_hot(seen[1:], self.states) + self.alpha)

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
        r"""Return the $\chi^2$ mutual information of two positions, as a mean over kernels: [j, i].

        $\mathrm{E}_\pi\big[\sum_{ab} P(s_j = a, s_i = b)^2 / (P(s_j = a) P(s_i = b))\big] - 1$.
        """
        one, both = self.laws(kernels)
        shares = one[:, None, :, :, None] * one[None, :, :, None, :]
        return (both**2 / shares).sum(axis=(-1, -2)).mean(axis=-1) - 1

    def passed_on(self, kernels: Array) -> Array:
        r"""Return how strongly two positions are related as parent and child, as a mean over kernels: [j, i].

        $\mathrm{E}_\pi\big[\sum_{ab} \pi(b \mid a)\,(P(s_j = a, s_i = b) - P(s_j = a) P(s_i = b)) / \mu(b)\big]$,
        where $\mu$ is the mean law of all positions. Where all have the same law it is the $\chi^2$ information if $j$
        is the parent of $i$, and else at most the geometric mean of that and the one between $j$ and $i$.
        """
        one, both = self.laws(kernels)
        apart = both - one[:, None, :, :, None] * one[None, :, :, None, :]
        return np.einsum("nab,jinab,nb->ji", kernels, apart, 1 / one.mean(axis=0)) / len(kernels)


SANDBOX = Entry(CausalGraph, small={"states": 2, "length": 5, "trees": 5, "tree": 4})
