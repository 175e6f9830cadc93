"""Mutation tests: nets with one row zeroed or one temperature halved are rejected; those that pass do no harm."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from built import all_words, answers, expected, probabilities, random_words, walked
from small_automata import corridors, full_transformations
from vitrify.certification.mutation_test import mutants, mutation_test
from vitrify.constructions.cascade import cascade
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.commutative import commutative
from vitrify.constructions.gridworld import gridworld
from vitrify.constructions.log_depth import log_depth
from vitrify.constructions.ngram import ngram
from vitrify.kit import assemble
from vitrify.kit.network import Network
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, divisibility, flip_flop, product, symmetric_group
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import NGramModel

SOFT_AND_HARD = ("softmax", "sparsemax", "hard")
REJECTED = 0.99  # the least share of mutations that a check must notice
SHORT, MAX_WORDS = 8, 10_000  # survivors are run on every word to this length, or to the last that has fewer words
LONG = 100  # and on so many random words of full length

MODEL = random_ngram(3, 3, seed=1)
Spec = NGramModel | Automaton


@dataclass(frozen=True, eq=False)
class Case:
    spec: Spec
    network: Callable[[], Network]


CASES = {
    "heads, soft": Case(MODEL, lambda: ngram(MODEL, variant="heads", attention="softmax", max_length=24)),
    "layers, sparse": Case(MODEL, lambda: ngram(MODEL, variant="layers", attention="sparsemax", max_length=24)),
    "single, hard": Case(MODEL, lambda: ngram(MODEL, variant="single", attention="hard", max_length=24)),
    "single, soft": Case(MODEL, lambda: ngram(MODEL, variant="single", attention="softmax", max_length=24)),
    "S5, soft": Case(symmetric_group(5), lambda: log_depth(symmetric_group(5), max_length=100)),
    "divisibility by 7, hard": Case(
        divisibility(7), lambda: log_depth(divisibility(7), attention="hard", max_length=100)
    ),
    "Z2 × Z3, soft": Case(
        product(cyclic(2), cyclic(3)), lambda: commutative(product(cyclic(2), cyclic(3)), max_length=60)
    ),
}


@cache
def built(name: str) -> Weights:
    return assemble(CASES[name].network())


def harmless(spec: Spec, weights: Weights) -> bool:
    """Whether a net answers as its spec does on every short word and on random ones of full length."""
    letters, length = len(weights.architecture.inputs) - 1, weights.architecture.max_length
    short = max(n for n in range(1, SHORT + 1) if letters**n <= MAX_WORDS)
    for words in (all_words(letters, short), random_words(letters, length, LONG, seed=77)):
        if isinstance(spec, NGramModel):
            good = bool(np.abs(probabilities(weights, words) - expected(spec, words)).max() <= 1e-9)
        else:
            names = np.array([spec.states.index(state) for state in weights.architecture.output.symbols])
            good = bool((names[answers(weights, words).argmax(axis=-1)] == walked(spec, words)).all())
        if not good:
            return False
    return True


def check_campaign(spec: Spec, weights: Weights, count: int, seed: int) -> tuple[float, set[str]]:
    """Run a mutation test, print what survives and see that it does no harm; the share rejected, and the survivors."""
    found = mutation_test(weights, spec, count=count, seed=seed)
    assert found.tried == count
    nets = {mutant.what: mutant.weights for mutant in mutants(weights, count, seed)}
    for what, why in found.survivors:
        sys.stdout.write(f"survivor: {what}: {why}\n")
        assert harmless(spec, nets[what]), what
    return found.rate, {what for what, _ in found.survivors}


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if name not in ("S5, soft", "divisibility by 7, hard")])
def test_sixty_mutations(name: str) -> None:
    rate, _ = check_campaign(CASES[name].spec, built(name), 60, seed=1)
    assert rate >= REJECTED


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_two_hundred_mutations(name: str) -> None:
    rate, _ = check_campaign(CASES[name].spec, built(name), 200, seed=2)
    assert rate >= REJECTED


@pytest.mark.long
def test_the_nets_themselves_are_right() -> None:
    for name, case in CASES.items():
        assert harmless(case.spec, built(name)), name


@pytest.mark.long
def test_harm_is_recognized() -> None:
    """The judge of the survivors is no rubber stamp."""
    for name, case in CASES.items():
        bias = built(name).arrays["unembed.b_U"].copy()
        bias[0] += 1e3
        assert not harmless(case.spec, built(name).with_array("unembed.b_U", bias)), name


LENGTH = 16
ABBA = Automaton.from_regex("(ab|ba)*")
CORRIDOR = corridors(4, 1, (-1, 1), [0, 1, 2, 3])
CASCADES: dict[str, Callable[[], tuple[Automaton, Network]]] = {
    "(ab|ba)*, soft": lambda: (ABBA, cascade(ABBA, max_length=LENGTH)),
    "S3, soft": lambda: (symmetric_group(3), cascade(symmetric_group(3), max_length=LENGTH)),
    "all maps of 3, hard": lambda: (
        full_transformations(3),
        cascade(full_transformations(3), attention="hard", max_length=LENGTH),
    ),
    "flip-flop, hard": lambda: (flip_flop(), cascade(flip_flop(), attention="hard", max_length=LENGTH)),
    "corridor of 4, sparse": lambda: (CORRIDOR, cascade(CORRIDOR, attention="sparsemax", max_length=LENGTH)),
    "corridor of 4 in two layers, soft": lambda: (CORRIDOR, gridworld(CORRIDOR, max_length=LENGTH)),
}
EXPLAINED = {
    f"pos_embed.W_pos[{LENGTH}] zeroed": "heads look strictly back, so nobody looks for the last position",
    "pos_embed.W_pos[1] zeroed": "the first position still comes before all others when its number is 0",
}


def check_cascade(name: str, count: int, seed: int) -> None:
    """At least 99 % of the mutations are rejected or explained, and those that are not rejected do no harm."""
    spec, network = CASCADES[name]()
    weights = assemble(network)
    rate, survivors = check_campaign(spec, weights, count, seed)
    unexplained = sum(m.what in survivors - set(EXPLAINED) for m in mutants(weights, count, seed))
    assert unexplained <= (1 - REJECTED) * count
    assert rate >= 0.9


@pytest.mark.long
@pytest.mark.parametrize("name", ["S3, soft", "flip-flop, hard", "corridor of 4, sparse"])
def test_mutations_of_cascades(name: str) -> None:
    check_cascade(name, 60, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASCADES)
def test_more_mutations_of_cascades(name: str) -> None:
    check_cascade(name, 200, seed=4)


@pytest.mark.long
@pytest.mark.parametrize(
    ("attention", "count", "longest"),
    [("softmax", 80, 24), *(pytest.param(kind, 200, 64, marks=pytest.mark.slow) for kind in SOFT_AND_HARD)],
)
def test_deeper_copying_layers_have_a_sink_that_they_do_not_need(
    attention: Attention, count: int, longest: int
) -> None:
    """The known survivors: from the third layer of the `layers` shape on, the first token holds `<s>` as BOS does.

    So a head that looks before the first token may miss the sink: it reads the first token, and gets the same. The sink
    stays, because with it the position code has nothing to spare and every other loss is noticed.
    """
    model = random_ngram(2, 4, seed=2)
    weights = assemble(ngram(model, variant="layers", attention=attention, max_length=longest))
    rate, survivors = check_campaign(model, weights, count, seed=0)
    (bos,) = weights.labels.space("bos").dims
    assert survivors <= {f"blocks.2.attn.W_K[0, {bos}] zeroed", "blocks.2.attn.b_Q[0] zeroed"}
    assert rate >= REJECTED
