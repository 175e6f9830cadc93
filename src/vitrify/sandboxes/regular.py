r"""Regular languages: any automaton, followed along random words, or writing the words that it accepts.

- `accept`: after each letter of a uniformly random word, whether the word so far is accepted; `states`: in which state
  the automaton is. The answers are determined. The empty word is not asked about.
- `generate`: the next letter of a word drawn uniformly from the accepted words of the length. With $N_r(q)$ the number
  of words of length $r$ that lead from $q$ to an accepting state, the letter $a$ has the probability
  $N_{r-1}(\delta(q, a)) / N_r(q)$ where $r$ letters are still to come.

An automaton is given by a file or a name, as `cyclic:2` (parity), `symmetric_group:5:regular` or `gridworld:4`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Entry, Example, Float, LogProbs, Predictor, Sandbox, Within
from vitrify.sandboxes.kit.draws import follow, integer_below, invert, logarithm
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic
from vitrify.spec.kinds import ANSWERS


@dataclass(frozen=True)
class Regular(Sandbox):
    """Sequences of `length` letters of an automaton."""

    automaton: Automaton = field(default_factory=lambda: cyclic(2))
    length: Annotated[int, Within(2)] = 64
    mode: Literal["accept", "states", "generate"] = "accept"

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.mode == "generate" and not self._counts[0][self.automaton.initial]:
            yield "automaton", f"must accept a word of length {self.length}, and accepts none"

    @property
    def kind(self) -> Literal["lm", "class"]:  # type: ignore[override]  # it depends on the question
        return "lm" if self.mode == "generate" else "class"

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.automaton.alphabet

    @property
    def answers(self) -> tuple[str, ...]:
        return {"accept": ANSWERS, "states": self.automaton.states, "generate": self.symbols}[self.mode]

    @property
    def tokens(self) -> int:
        return self.length - 1 if self.mode == "generate" else self.length

    # The law, in NumPy

    @cached_property
    def _counts(self) -> Float[Array, "read state"]:
        """For each number of letters read, the accepted words from each state on, up to a factor: [length + 1, q]."""
        counts = [_indicator(self.automaton.accepting, len(self.automaton.states))]
        for _ in range(self.length):
            more = counts[-1][self.automaton.table].sum(axis=1)
            counts.append(more / max(more.max(), 1e-300))
        return np.array(counts[::-1])

    @cached_property
    def law(self) -> Float[Array, "place state letter"]:
        """The probabilities of letters [place, state, letter]; uniform where any word will do."""
        letters = len(self.automaton.alphabet)
        uniform = np.full((self.length, len(self.automaton.states), letters), 1 / letters)
        if self.mode != "generate":
            return uniform
        ahead = self._counts[1:, self.automaton.table]  # [place, state, letter]
        total = ahead.sum(axis=-1, keepdims=True)
        return np.where(total > 0, ahead / np.where(total > 0, total, 1), uniform)

    @cached_property
    def occupied(self) -> Float[Array, "read state"]:
        """Return the distribution of the state after each number of letters: [length + 1, state]."""
        laws = [_indicator({self.automaton.initial}, len(self.automaton.states))]
        for law in self.law:
            after = np.zeros_like(laws[-1])
            np.add.at(after, self.automaton.table, laws[-1][:, None] * law)
            laws.append(after)
        return np.array(laws)

    # Sequences

    def draw(self, key: Array) -> Example:
        u = jax.random.uniform(key, (self.length,))
        if self.mode != "generate":
            letters = integer_below(u, len(self.automaton.alphabet))
            states = self._states(letters)
            weight = jnp.ones(self.length + 1).at[0].set(0.0)
            return Example(letters, self._answer(states), weight, {"states": states})
        bounds = jnp.asarray(np.cumsum(self.law, axis=-1)[..., :-1] / self.law.sum(axis=-1, keepdims=True))
        table = jnp.asarray(self.automaton.table, jnp.int32)

        def step(state: Array, inputs: tuple[Array, Array]) -> Array:
            return table[state, invert(inputs[0][state], inputs[1])]

        first = jnp.int32(self.automaton.initial)
        states = jnp.concatenate([first[None], follow(step, table.shape[0], first, (bounds, u))])
        letters = invert(bounds[jnp.arange(self.length), states[:-1]], u)
        return Example(letters[:-1], letters, jnp.ones(self.length), {"states": states})

    def _states(self, letters: Array) -> Array:
        """The states passed through, the initial one first."""
        count = len(self.automaton.alphabet)
        table = jnp.asarray(self.automaton.table.reshape(-1), jnp.int32)
        first = jnp.int32(self.automaton.initial)
        later = follow(lambda q, letter: table[q * count + letter], len(self.automaton.states), first, letters)
        return jnp.concatenate([first[None], later])

    def _answer(self, states: Array) -> Array:
        if self.mode == "states":
            return states
        return jnp.asarray(_indicator(self.automaton.accepting, len(self.automaton.states)), jnp.int32)[states]

    # Predictors

    def optimal(self, example: Example) -> LogProbs:
        states = self._states(example.tokens)
        if self.mode != "generate":
            return logarithm(jax.nn.one_hot(self._answer(states), len(self.answers)))
        return logarithm(jnp.asarray(self.law, jnp.float32)[jnp.arange(self.length), states])

    def predictors(self) -> Mapping[str, Predictor]:
        if self.mode != "generate":
            return {"uniform": self.uniform, "marginal": self.marginal}
        return {"uniform": self.uniform, "unigram": self.marginal, "bigram": self.bigram}

    def marginal(self, example: Example) -> LogProbs:
        """Return the distribution of the answer at each position."""
        if self.mode == "generate":
            law = np.einsum("tq,tqa->ta", self.occupied[:-1], self.law)
        elif self.mode == "states":
            law = self.occupied
        else:
            yes = self.occupied @ _indicator(self.automaton.accepting, len(self.automaton.states))
            law = np.stack([1 - yes, yes], axis=-1)
        return jnp.broadcast_to(logarithm(jnp.asarray(law, jnp.float32)), (*example.targets.shape, len(self.answers)))

    def bigram(self, example: Example) -> LogProbs:
        """Return the bigram distribution of the letters at each position."""
        moves = np.eye(len(self.automaton.states))[self.automaton.table]  # [state, letter, state after]
        before = np.einsum("tq,tqa,qar->tar", self.occupied[:-2], self.law[:-1], moves, optimize=True)
        pairs = np.einsum("taq,tqb->tab", before, self.law[1:])
        law = pairs / np.maximum(pairs.sum(axis=-1, keepdims=True), 1e-300)
        later = logarithm(jnp.asarray(law, jnp.float32))[jnp.arange(self.length - 1), example.tokens]
        return jnp.concatenate([self.marginal(example)[:1], later])

    def floor(self) -> Array:
        if self.mode != "generate":
            return jnp.zeros(self.length + 1)
        each = -(self.law * np.log(np.where(self.law > 0, self.law, 1))).sum(axis=-1)
        return jnp.asarray((self.occupied[:-1] * each).sum(axis=-1))


def _indicator(chosen: Iterable[int], count: int) -> Float[Array, " state"]:
    return np.isin(np.arange(count), list(chosen)).astype(np.float64)


SANDBOX = Entry(Regular, small={"automaton": "divisibility:3", "length": 6, "mode": "generate"})
