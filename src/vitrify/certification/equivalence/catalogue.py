r"""Lemmas: proofs that the ideal of a network computes its spec, for every word up to a length or of every length.

A lemma is a function that registers for some classes of specs, and is found in the source text like an oracle:

    @lemma(Automaton)
    def doubling(case: SpecCase) -> SpecProof:

It reads the weights, by way of their ideal (`ideal.py`), and checks finitely many instances of its statement; if one
does not hold, or if the network is of another construction, it raises `Undecided` with the reason. Names and labels are
hints for it: no instance may rest on them. Two searches for pairs of states (`product.py`) fit every spec that has
states: `bit_by_bit` follows the stored weights of hard attention, before all lemmas; `product_of_states` follows the
ideal, after them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.attention import AttentionMachine
from vitrify.certification.equivalence.hard import HardAttentionMachine
from vitrify.certification.equivalence.ideal import Ideal
from vitrify.certification.equivalence.product import MAX_PAIRS, Machine, search
from vitrify.certification.equivalence.recurrent import RecurrentMachine
from vitrify.certification.margins.proof import Proof
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.catalogue import SPECS, for_specs, registrations
from vitrify.certification.oracles.right import Oracle
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.recurrent import Recurrent
from vitrify.net.transformer import Transformer
from vitrify.net.unrolled import unrolled
from vitrify.net.weights import Weights, has_architecture
from vitrify.spec.kinds import PrefixStates, Spec

PACKAGE = "vitrify.certification.equivalence"
FOLLOWED_WORDS = 4  # random words on which a machine is compared with the network that it stands for
FOLLOWED_LENGTH = 200  # their longest length
EXACT_PAIRS = 1 << 12  # of states of stored weights and spec, before lemmas about the ideal are tried
LOGIT_SLACK = 1e-6  # rounding of a machine, beyond the proved error of a logit
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class SpecProof:
    """A proof that the ideal computes the spec, for all words up to `longest`, or of every length if that is None.

    `lemma` names the argument, `instances` the statements that were checked for it, with their number. A proof about
    the stored weights themselves, bit by bit, is `exact`: it covers both links. `witness` is a word that refutes the
    equivalence instead, as input ids.
    """

    lemma: str
    longest: int | None
    instances: Mapping[str, int] = field(default_factory=dict)
    exact: bool = False
    witness: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class SpecCase:
    """A network, its spec, the oracle of both, and the proof of the network's margins (None if there is none).

    A network with a loop stands here with every round as blocks of its own, like in the proof of its margins.
    """

    weights: Weights[SequenceArchitecture]
    spec: Any
    oracle: Oracle
    proof: Proof | None
    max_pairs: int = MAX_PAIRS  # of states of network and spec

    def __post_init__(self) -> None:
        if has_architecture(self.weights, Transformer):
            object.__setattr__(self, "weights", unrolled(self.weights))

    @property
    def net(self) -> SequenceArchitecture:
        return self.weights.architecture

    @cached_property
    def ideal(self) -> Ideal:
        """The ideal of a transformer with proved margins; `Undecided` of any other network."""
        if self.proof is None or not has_architecture(self.weights, Transformer):
            raise Undecided("only transformers with proved margins have an ideal")
        return Ideal(self.weights, self.proof)

    @cached_property
    def states(self) -> PrefixStates:
        """The states of the spec; `Undecided` if it has none."""
        meaning = self.spec.meaning(self.net.output.kind, self.net.inputs[1:]) if isinstance(self.spec, Spec) else None
        if meaning is None or meaning.states is None:
            raise Undecided("the spec has no states that determine its later answers")
        states: PrefixStates = meaning.states
        return states


def lemma(*specs: type) -> Callable[[F], F]:
    """Register a lemma for networks of some classes of specs, given by their names."""
    return for_specs(*specs)


def prove_spec(case: SpecCase) -> SpecProof:
    """Prove that the ideal of a network computes its spec, by the first lemma that succeeds; else `Undecided`.

    A search may find a word that refutes it.
    """
    if getattr(case.net, "segmented", False):
        raise Undecided("nothing is proved of nets that have heads with segments")
    kinds = type(case.spec).__mro__
    names = {kind.__name__ for kind in kinds}
    named = [entry.maker for entry in registrations(PACKAGE, "lemma") if names & {*entry.specs}]
    lemmas = [function for function in named if {*SPECS[function]} & {*kinds}]
    reasons = []
    for each in [bit_by_bit, *lemmas, product_of_states]:
        try:
            return each(case)
        except Undecided as stop:
            reasons.append(f"{each.__name__.replace('_', ' ')}: {stop}")
    raise Undecided("; ".join(reasons))


def bit_by_bit(case: SpecCase) -> SpecProof:
    """Search all pairs of states of hard attention, as it is stored, and spec."""
    machine = HardAttentionMachine(case.weights)
    follow(case, machine, case.net.max_length, None)
    few = replace(case, max_pairs=min(case.max_pairs, EXACT_PAIRS))
    return _searched(few, machine, None, case.net.max_length, exact=True)


def product_of_states(case: SpecCase) -> SpecProof:
    """Search all pairs of states of network and spec."""
    if has_architecture(case.weights, Recurrent):
        return _searched(case, RecurrentMachine(case.weights), None, case.net.max_length, exact=True)
    machine = AttentionMachine(case.ideal)
    assert case.proof is not None
    follow(case, machine, case.proof.max_length, case.proof.error or 0.0)
    return _searched(case, machine, machine.longest, case.ideal.longest, exact=False)


def _searched(case: SpecCase, machine: Machine[Any], longest: int | None, limit: int, *, exact: bool) -> SpecProof:
    """Search with a machine that is the network to a length; `limit` is the length that the network is for."""
    result = search(machine, case.oracle, case.states, case.net.inputs[1:], case.max_pairs)
    if result.witness is not None:
        if len(result.witness) <= limit:
            return SpecProof("product of states", None, witness=result.witness)
        longest = limit  # right on shorter words
    checked = {"pairs of states": result.pairs, "steps": result.steps}
    return SpecProof("product of states", longest, checked, exact=exact)


def follow(case: SpecCase, machine: Machine[Any], longest: int, error: float | None) -> None:
    """Compare a machine with the network on random words: the logits must be the same, up to an error if there is one.

    `longest` is the length up to which the machine stands for the network.
    """
    rng, letters = np.random.default_rng(0), len(case.net.inputs) - 1
    length = min(longest, FOLLOWED_LENGTH)
    words = rng.integers(1, letters + 1, size=(FOLLOWED_WORDS, length)) if letters else np.zeros((1, 0), dtype=np.int64)
    if case.oracle.language is not None:
        drawn = [case.oracle.language.draw(rng)[:length] for _ in range(FOLLOWED_WORDS)]
        words = np.array([max(drawn, key=len)], dtype=np.int64).reshape(1, -1)
    actual = batch_logits(case.weights, with_pads(case.net, words))[:, case.net.pads :]
    memories = [machine.start()[0]] * len(words)
    for at in range(words.shape[1]):
        memories, logits = machine.steps(memories, words[:, at].tolist())
        far: Floats = np.abs(logits - actual[:, at])
        slack = 0.0 if error is None else error + LOGIT_SLACK * (1 + np.abs(logits).max(initial=0.0))
        if far.max(initial=0.0) > slack:
            raise Undecided(f"the machine is off by {far.max():.3g} after {at + 1} letters: it is not this network")
