"""Nets of grammars with probabilities: the exact next-word distribution after every beginning of every sentence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from built import answers
from cases import each_then_slow, rest_slow
from vitrify.certification import certify, mutation_test
from vitrify.constructions.grammar_probabilities import grammar_probabilities, sizes
from vitrify.errors import BuildRefused, SpecError
from vitrify.kit import assemble
from vitrify.net.inference import log_probabilities, logits, trace
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights
from vitrify.spec.grammars.families import random_grammar, random_hierarchy, random_pcfg
from vitrify.spec.grammars.grammar import END, Grammar, Symbol
from vitrify.spec.grammars.sums import sums

Floats = NDArray[np.float64]
Chances = dict[tuple[str, ...], dict[str, Fraction]]

AMBIGUOUS = Grammar.from_text(
    "S -> A A [0.3] | B [0.7]\nA -> 'a' [0.4] | 'a' 'a' [0.6]\nB -> 'a' 'a' 'b' [0.5] | A 'b' [0.5]"
)
RARE = Grammar.from_text(
    "S -> A A [0.000001] | B [0.999999]\nA -> C [0.000001] | 'a' 'a' [0.999999]\nB -> 'a' 'b' [0.5] | A 'b' [0.5]\n"
    "C -> 'a' [0.999999] | 'b' [0.000001]"
)
UNARY = Grammar.from_text(
    "S -> A [0.5] | A B C [0.5]\nA -> B [0.25] | C [0.75]\nB -> 'a' [1.0]\nC -> 'a' [1/3] | 'b' [2/3]"
)


def derived(grammar: Grammar, symbols: Sequence[Symbol]) -> dict[tuple[str, ...], Fraction]:
    """Every string of words that some symbols derive, with its probability: by rewriting, and nothing else."""
    if not symbols:
        return {(): Fraction(1)}
    first = symbols[0]
    found: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
    heads: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
    if first.terminal:
        heads[first.name,] = Fraction(1)
    else:
        for rule in grammar.rules_of(first.name):
            for words, chance in derived(grammar, rule.rhs).items():
                heads[words] += (rule.probability or Fraction(1)) * chance
    rest = derived(grammar, symbols[1:])
    for left, one in heads.items():
        for right, two in rest.items():
            found[left + right] += one * two
    return dict(found)


def by_listing(grammar: Grammar) -> Chances:
    """The distribution of the next word after every beginning, from the probabilities of whole sentences."""
    mass: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
    for sentence, chance in derived(grammar, [Symbol(grammar.start)]).items():
        for place in range(len(sentence) + 2):
            mass[(*sentence, END)[:place]] += chance
    found: Chances = defaultdict(dict)
    for words, chance in mass.items():
        if words:
            found[words[:-1]][words[-1]] = chance / mass[words[:-1]]
    return found


def worst(weights: Weights, expected: Chances) -> float:
    """The largest difference of two probabilities over all beginnings."""
    net = weights.architecture
    place = {name: i for i, name in enumerate(net.inputs)}
    longest = [words for words in expected if set(expected[words]) == {END}]
    asked = [*longest, *(words for words in expected if END in expected[words] and len(expected[words]) > 1)]
    seen, far = set[tuple[str, ...]](), 0.0
    for words, found in zip(asked, logits(weights, [[place[w] for w in words] for words in asked]), strict=True):
        chances = np.exp(log_probabilities(net.output, found))
        for n in range(len(words) + 1):
            if words[:n] not in seen:
                seen.add(words[:n])
                right = np.array([float(expected[words[:n]].get(symbol, 0)) for symbol in net.output.symbols])
                far = max(far, float(np.abs(chances[n] - right).max()))
    assert seen == set(expected)
    return far


def check(grammar: Grammar, weights: Weights | None = None) -> Weights:
    weights = weights or assemble(grammar_probabilities(grammar))
    assert worst(weights, by_listing(grammar if grammar.probabilistic else grammar.uniform())) <= 1e-12
    assert not sizes(grammar).problems(weights.sizes)
    assert weights.architecture.pads == sums(grammar).max_products + 1
    return weights


@each_then_slow("seed", [0, 3, 4], [5, 6, 7, 8])
def test_random_grammars(seed: int) -> None:
    check(random_pcfg(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 9])
def test_larger_random_grammars(seed: int) -> None:
    check(random_pcfg(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_the_chart_agrees_on_every_beginning(seed: int) -> None:
    grammar = random_pcfg(seed)
    expected: Chances = {}
    for sentence in grammar.sentences(5000):
        along = grammar.next_word_probs_along(sentence)
        expected |= {sentence[:place]: chances for place, chances in enumerate(along)}
    assert worst(assemble(grammar_probabilities(grammar)), expected) <= 1e-9


@pytest.mark.parametrize(("v", "m", "s", "L"), [(3, 2, 2, 3), (4, 4, 2, 2), (2, 2, 3, 2)])
def test_random_hierarchies(v: int, m: int, s: int, L: int) -> None:
    check(random_hierarchy(v, m, s, L, seed=1))


@pytest.mark.parametrize("grammar", [AMBIGUOUS, RARE, UNARY], ids=["ambiguous", "rare", "unary"])
def test_rare_rules_chains_of_rules_and_unequal_lengths(grammar: Grammar) -> None:
    weights = check(grammar)
    assert certify(weights, grammar).verdict == "holds"


def test_smallest_grammars() -> None:
    for text in ("S -> 'a'", "S -> 'a' | 'b'", "S -> 'a' 'b' 'a'", "S -> A | 'a' A\nA -> 'a'"):
        check(Grammar.from_text(text))


def test_without_probabilities_rules_are_equally_probable() -> None:
    check(random_grammar(3))


def test_long_sums_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = assemble(grammar_probabilities(random_pcfg(4))).sizes
    for module in ("spec.grammars.sums", "constructions.grammar_probabilities"):
        monkeypatch.setattr(f"vitrify.{module}.SUM_PRODUCTS", 3)
    weights = check(random_pcfg(4))
    assert weights.architecture.pads == 4
    assert weights.sizes.layers > whole.layers


@cache
def built(seed: int) -> tuple[Grammar, Weights]:
    grammar = random_pcfg(seed)
    return grammar, assemble(grammar_probabilities(grammar))


def test_numbers_on_the_way_are_within_their_proved_errors() -> None:
    """Also after words that begin no sentence, and at every place of them."""
    grammar, weights = built(4)
    found = sums(grammar)
    rng = np.random.default_rng(0)
    looked, furthest = 0, 0.0
    for words in [*grammar.sentences(5000)[::9], *(rng.choice(grammar.terminals, size=8).tolist() for _ in range(9))]:
        run, values = trace(weights, words), {str(w): v for w, v in found.values(words).items()}
        for label in weights.labels.spaces:
            if re.fullmatch(r"(sums|products) of stage \d+", label.name) is None:
                continue
            held = run.space(label.name)[weights.architecture.pads - 1 :]
            for place, name in enumerate(label.kind.labels):  # type: ignore[union-attr]
                exact = np.array([float(x) for x in values[name]])
                off = np.abs(held[exact > 0, place] - np.log(exact[exact > 0]))
                assert (off <= label.error).all(), (label.name, name, words)
                assert (held[exact == 0, place] < found.low - 35).all(), (label.name, name, words)
                looked += int((exact > 0).sum())
                furthest = max(furthest, float(off.max(initial=0.0)))
    assert looked > 400
    assert 0 < furthest < 1e-12
    final = [label.error for label in weights.labels.spaces if label.name.endswith("stage 5")]
    assert final
    assert max(final) < 1e-10


def test_a_longer_room_changes_nothing() -> None:
    check(AMBIGUOUS, assemble(grammar_probabilities(AMBIGUOUS, max_length=9)))
    for positions in ("quadratic", "sqrt"):
        check(AMBIGUOUS, assemble(grammar_probabilities(AMBIGUOUS, positions=positions)))


def test_words_that_no_sentence_has() -> None:
    with pytest.warns(UserWarning, match="T"):
        grammar = Grammar.from_text("S -> 'a' [1.0]\nT -> 'b' [1.0]")
    weights = assemble(grammar_probabilities(grammar))
    assert weights.architecture.output.symbols == ("a", "b", END)
    assert worst(weights, by_listing(grammar)) <= 1e-12


def test_jax_gives_the_same_probabilities() -> None:
    weights = assemble(grammar_probabilities(UNARY))
    net = weights.architecture
    words = np.array([[net.inputs.index(word) for word in sentence] for sentence in ("aaa", "bab")])
    tokens = np.concatenate([np.zeros((2, net.pads), dtype=np.int64), words], axis=1)
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(array, dtype=jnp.float64) for name, array in weights.arrays.items()}
        raw = jax.jit(forward, static_argnums=0)(net, arrays, jnp.asarray(tokens))
    found = log_probabilities(net.output, np.asarray(raw)[:, net.pads - 1 :])
    assert np.abs(np.exp(found) - np.exp(log_probabilities(net.output, answers(weights, words)))).max() <= 1e-9


def test_refusals() -> None:
    with pytest.raises(SpecError, match="S → S leads back to itself"):
        grammar_probabilities(Grammar.from_text("S -> 'a' S [0.5] | 'b' [0.5]"))
    with pytest.raises(BuildRefused, match="--max-length must be at least that"):
        grammar_probabilities(AMBIGUOUS, max_length=2)
    with pytest.raises(BuildRefused, match="more than 5 products"):
        grammar_probabilities(AMBIGUOUS, limit=5)
    for attention in ("hard", "sparsemax"):
        with pytest.raises(BuildRefused, match="use --attention softmax"):
            grammar_probabilities(AMBIGUOUS, attention=attention)
    with pytest.raises(BuildRefused, match=r"or float64$"):
        assemble(grammar_probabilities(AMBIGUOUS), arithmetic="float32")


def test_a_recursive_grammar_can_be_cut() -> None:
    check(Grammar.from_text("S -> 'a' S [0.5] | 'b' [0.5]").cut(4))


@pytest.mark.parametrize("count", rest_slow([40, 100], first=1))
def test_mutations_are_rejected_or_remove_a_guard_that_nothing_needs(count: int) -> None:
    """Survivors have given the right distribution after every beginning of every sentence, and the right numbers on
    the way. They only change what heads look for: a factor that is 0 only where others of its product are 0 too, or
    the sink of a head that nobody asks beyond the beginning.
    """
    weights = assemble(grammar_probabilities(AMBIGUOUS))
    found = mutation_test(weights, AMBIGUOUS, count=count, seed=1)
    assert found.rate >= 0.93
    for what, why in found.survivors:
        assert re.search(r"attn\.(W_Q|W_K|b_Q)", what), what
        assert float(why.rsplit(" ", 1)[1]) <= 1e-12
