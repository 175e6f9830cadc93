"""Checks: what they ask, what they refuse to ask, and the mistakes that they must find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from built import ATTENTIONS, all_words, answers, probabilities, random_words, states, walked
from vitrify.certification.checking import certify, net_check
from vitrify.certification.checks.words import COVERED, MAX_STEPS, MAX_WORDS, WordCheck
from vitrify.certification.evidence import Domain, Method
from vitrify.constructions.catalogue import Attention, build
from vitrify.constructions.commutative import commutative
from vitrify.constructions.log_depth import log_depth
from vitrify.constructions.ngram import Variant, ngram
from vitrify.errors import InputError
from vitrify.intervals import upper_failure_rate
from vitrify.kit import assemble
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, divisibility, product, random_automaton, symmetric_group
from vitrify.spec.languages.word_patterns import WordPatterns
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import NGramModel

MODEL = random_ngram(3, 3, seed=1)
LENGTH = 12


@pytest.fixture(scope="module")
def lm() -> Weights:
    return assemble(ngram(MODEL, max_length=LENGTH))


@pytest.fixture(scope="module")
def counter() -> Weights:
    return assemble(log_depth(divisibility(7), attention="hard", max_length=LENGTH))


def test_a_right_net_holds_on_every_word_and_more(lm: Weights) -> None:
    evidence = certify(lm, MODEL, max_length=5)
    assert evidence.verdict == "holds"
    assert evidence.witness is None
    assert evidence.methods == ("sampled",)
    short = sum(3**n for n in range(6))
    assert evidence.domains[0] == Domain("words", Method.SAMPLED, short, 0, 5)
    assert evidence.domains[-1] == Domain("random words", Method.SAMPLED, 64, 12, 12)
    listed = WordCheck(lm.architecture, MODEL, 5).batches[1].words
    assert evidence.cases == short + 64 * 13 + sum(len(words) * (words.shape[1] + 1) for words in listed)
    assert [(q.name, q.declared, q.relation) for q in evidence.quantities if q.relation] == [
        ("largest error", 1e-9, "<="),
        (COVERED, 39, "<="),  # 13 contexts, 3 words
    ]
    assert 0 < float(evidence.measured("largest error")) <= 1e-9
    bound = evidence.measured("rate of random words with an error (95 % upper bound)")
    assert bound == upper_failure_rate(0, 64)
    assert evidence.seed == 0


def test_the_exhaustive_domain_is_all_words() -> None:
    machine = random_automaton(4, 3, seed=1)
    net = assemble(log_depth(machine, max_length=6))
    check = WordCheck(net.architecture, machine, max_length=4)
    short = check.batches[0]
    assert (short.domain.method, short.domain.covers_lengths) == ("sampled", True)
    assert short.cases == sum(3**n for n in range(5))
    [words] = short.words
    prefixes = {tuple(word[:n]) for word in words.tolist() for n in range(5)}
    assert len(prefixes) == short.cases


def test_how_far_to_go_is_chosen_by_cost(lm: Weights) -> None:
    lengths = []
    for work in (1e3, 1e7, 1e10):
        [words] = WordCheck(lm.architecture, MODEL, work=work).batches[0].words
        lengths.append(words.shape[1])
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
    assert 3 ** lengths[-1] <= 1 << 13 < 3 ** (lengths[-1] + 1)
    tiny = assemble(ngram(MODEL, max_length=2))
    [words] = WordCheck(tiny.architecture, MODEL).batches[0].words
    assert words.shape[1] == 2


@pytest.mark.parametrize(("longest", "scope"), [(None, "exhaustive"), (3, "exhaustive"), (2, "sampled")])
def test_a_test_is_exhaustive_only_if_it_reaches_the_longest_word_that_the_network_reads(
    longest: int | None, scope: str
) -> None:
    evidence = certify(assemble(ngram(MODEL, max_length=3)), MODEL, max_length=longest)
    headline = evidence.headline
    assert headline is not None
    assert (headline.scope, headline.longest) == (scope, longest or 3)
    assert ("exhaustive" in evidence.methods) == (scope == "exhaustive")


@pytest.mark.parametrize(("longest", "scope"), [(None, "exhaustive"), (3, "sampled"), (4, "exhaustive")])
def test_a_test_is_exhaustive_if_no_sentence_is_longer(longest: int | None, scope: str) -> None:
    spec = WordPatterns.of({"A": ["x", "y"]}, ['A "is" A A'])
    evidence = certify(build(spec), spec, max_length=longest)
    assert evidence.headline is not None
    assert evidence.headline.scope == scope


def test_words_of_a_network_that_reads_longer_ones_than_are_run_are_sampled() -> None:
    """Of a language over one letter every word up to a length of thousands is run, and there are longer ones."""
    spec = Automaton.from_regex("(aa)*")
    evidence = certify(build(spec, "elman", max_length=2 * MAX_STEPS), spec)
    assert evidence.headline is not None
    assert evidence.domains[0].covers_lengths
    assert evidence.headline.scope == "sampled"


def test_more_random_words_are_asked_about_on_request(lm: Weights) -> None:
    few, many = certify(lm, MODEL, max_length=2), certify(lm, MODEL, max_length=2, samples=100)
    assert many.domains[-1] == Domain("random words", Method.SAMPLED, 100, LENGTH, LENGTH)
    assert many.cases - few.cases == (100 - 64) * (LENGTH + 1)
    rate = "rate of random words with an error (95 % upper bound)"
    assert many.measured(rate) == upper_failure_rate(0, 100)


def test_too_many_words_are_refused() -> None:
    machine = cyclic(3, 9)
    net = assemble(log_depth(machine, max_length=9))
    assert MAX_WORDS < 9**7
    with pytest.raises(InputError, match=r"9\^7 words of length 7, too many .* smaller --max-length"):
        certify(net, machine, max_length=7)


def test_words_longer_than_the_net_reads_are_refused(lm: Weights) -> None:
    with pytest.raises(InputError, match="words of length 13 are longer than the network reads: at most 12"):
        certify(lm, MODEL, max_length=13)


def test_length_zero_asks_about_the_empty_word(lm: Weights) -> None:
    assert certify(lm, MODEL, max_length=0).domains[0] == Domain("words", Method.SAMPLED, 1, 0, 0)


@pytest.mark.long
def test_progress_goes_up_to_the_total(lm: Weights) -> None:
    told: list[tuple[int, int]] = []
    evidence = certify(lm, MODEL, max_length=9, progress=lambda done, total: told.append((done, total)))
    done = [part for part, _ in told]
    assert done == sorted(done)
    assert len(told) >= 3
    assert {total for _, total in told} == {evidence.cases}
    assert done[-1] == evidence.cases


def test_the_same_seed_asks_the_same_questions(lm: Weights) -> None:
    one, two, other = (WordCheck(lm.architecture, MODEL, 2, seed=seed).batches for seed in (0, 0, 1))
    for first, second in zip(one, two, strict=True):
        for a, b in zip(first.words, second.words, strict=True):
            np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one[-1].words[0], other[-1].words[0])
    evidences = [replace(certify(lm, MODEL, max_length=3, seed=5), seconds=0.0) for _ in range(2)]
    assert evidences[0] == evidences[1]
    assert evidences[0].seed == 5


def test_a_net_wrong_only_at_full_length_is_caught(counter: Weights) -> None:
    """The last row of the position table is wrong, so only the last token of the longest words is."""
    table = counter.arrays["pos_embed.W_pos"].copy()
    table[-1] = 0.0
    broken = counter.with_array("pos_embed.W_pos", table)
    words = random_words(2, LENGTH, 200, seed=9)
    differs = states(broken, words) != walked(divisibility(7), words)
    assert differs[:, -1].any()
    assert not differs[:, :-1].any()
    evidence = certify(broken, divisibility(7), max_length=8)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert len(evidence.witness["word"]) == LENGTH


@pytest.mark.parametrize("hardest_first", [False, True])
def test_witnesses_are_wrong_when_run_by_hand(counter: Weights, hardest_first: bool) -> None:
    name = "blocks.1.mlp.W_out"
    array = counter.arrays[name].copy()
    array[3] = 0.0
    broken, machine = counter.with_array(name, array), divisibility(7)
    check = WordCheck(counter.architecture, machine, 6)
    evidence = check.run(broken, hardest_first=hardest_first)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    word = evidence.witness["word"]
    ids = np.array([machine.alphabet.index(letter) + 1 for letter in word], dtype=np.int64)[None]
    assert machine.run(word)[-1] == evidence.witness["expected"]
    assert machine.states[states(broken, ids)[0, -1]] == evidence.witness["actual"]
    assert evidence.witness["expected"] != evidence.witness["actual"]
    if not hardest_first:  # words to length 6 come first, and a shortest wrong one is told
        short = all_words(2, 6)
        wrong = states(broken, short) != walked(machine, short)
        assert len(word) == int(np.flatnonzero(wrong.any(axis=0))[0])
        assert wrong[:, len(word) + 1 :].any()


@pytest.mark.parametrize("shape", ["heads", "layers", "single"])
def test_a_net_wrong_on_one_context_only_is_caught(shape: Variant) -> None:
    weights = assemble(ngram(MODEL, variant=shape, attention="hard", max_length=LENGTH))
    [table] = [units for units in weights.labels.units if units.name == "listed contexts"]
    for unit in range(table.start, table.stop):
        name = f"blocks.{table.block}.mlp.W_out"
        array = weights.arrays[name].copy()
        place = int(np.flatnonzero(array[unit])[0])
        array[unit, place] += 1e-6
        evidence = certify(weights.with_array(name, array), MODEL, max_length=4)
        assert evidence.verdict == "fails"
        assert evidence.witness is not None
        context = table.unit_names[unit - table.start].split()
        assert ["<s>", *evidence.witness["history"]][-len(context) :] == context


def test_a_rare_context_is_asked_about_though_no_random_word_has_it() -> None:
    """Among 40 words, a context of three is too rare for luck; the listed questions find it."""
    from vitrify.spec.ngrams.model import NGramModel

    names = [f"w{i}" for i in range(40)]
    model = NGramModel.fit([names, names[::-1], names[::2]], 4)
    weights = assemble(ngram(model, max_length=10))
    [table] = [units for units in weights.labels.units if units.name == "listed contexts"]
    unit = table.start + table.unit_names.index("w5 w6 w7")
    array = weights.arrays["blocks.0.mlp.W_out"].copy()
    array[unit] *= 1.5
    evidence = certify(weights.with_array("blocks.0.mlp.W_out", array), model, max_length=2)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert evidence.witness["history"][-3:] == ["w5", "w6", "w7"]


def test_a_temperature_below_its_certificate_is_caught(lm: Weights) -> None:
    [head] = [head for head in lm.labels.heads if head.beta_min is not None]
    beta = lm.arrays["blocks.0.attn.beta"].copy()
    assert head.beta_min is not None
    beta[head.index] = head.beta_min * (1 - 1e-9)
    evidence = certify(lm.with_array("blocks.0.attn.beta", beta), MODEL, max_length=3)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert evidence.witness["head"] == head.name
    assert evidence.witness["actual"] == beta[head.index]
    beta[head.index] = head.beta_min
    assert certify(lm.with_array("blocks.0.attn.beta", beta), MODEL, max_length=3).verdict == "holds"


def test_a_space_outside_its_proved_error_is_caught() -> None:
    """A noisy slot that the snapping units hide is still a broken promise of its label."""
    weights = assemble(ngram(MODEL, attention="hard", max_length=LENGTH, snap=True))
    array = weights.arrays["blocks.0.attn.W_O"].copy()
    array[1] *= 1.02
    broken = weights.with_array("blocks.0.attn.W_O", array)
    words = random_words(3, LENGTH, 20, seed=0)
    assert np.abs(probabilities(broken, words) - probabilities(weights, words)).max() <= 1e-14
    evidence = certify(broken, MODEL, max_length=4)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert evidence.witness["space"] == "slot 1"
    assert evidence.witness["actual"] == pytest.approx(0.02, rel=1e-6)


def test_a_space_that_is_wrong_at_the_beginning_only_is_caught() -> None:
    """After the empty history the slots of the single shape hold `<s>` twice; no listed context asks for that."""
    weights = assemble(ngram(MODEL, variant="single", max_length=LENGTH, code="onehot"))
    words = random_words(3, LENGTH, 40, seed=0)
    seen = answers(weights, words)
    [units] = [units for units in weights.labels.units if units.name.startswith("digits")]
    found = []
    for unit in range(units.start, units.stop):
        array = weights.arrays[f"blocks.{units.block}.mlp.W_out"].copy()
        array[unit] = 0.0
        broken = weights.with_array(f"blocks.{units.block}.mlp.W_out", array)
        if np.abs(answers(broken, words) - seen).max() <= 1e-12:
            found.append(certify(broken, MODEL, max_length=3))
    assert weights.architecture.pads == 2
    assert found
    assert all(evidence.witness and "space" in evidence.witness for evidence in found)


def test_nets_that_give_no_numbers_are_caught(lm: Weights) -> None:
    array = lm.arrays["unembed.W_U"].copy()
    array[-1] = np.nan
    with np.errstate(invalid="ignore"):
        assert certify(lm.with_array("unembed.W_U", array), MODEL, max_length=2).verdict == "fails"


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_every_construction_is_certified(attention: Attention) -> None:
    nets: list[tuple[Automaton | NGramModel, Weights]] = [
        (symmetric_group(5), assemble(log_depth(symmetric_group(5), attention=attention, max_length=20)))
    ]
    if attention != "hard":
        machine = product(cyclic(2), cyclic(3))
        nets.append((machine, assemble(commutative(machine, attention=attention, max_length=20))))
    shapes: tuple[Variant, ...] = ("heads", "layers", "single")
    nets += [(MODEL, assemble(ngram(MODEL, variant=shape, attention=attention, max_length=20))) for shape in shapes]
    for spec, weights in nets:
        evidence = certify(weights, spec, work=1e8)
        assert evidence.verdict == "holds", evidence
        spread = evidence.measured("largest distance of a named space from a legal value")
        assert 0 <= float(spread) < 0.25


def test_a_network_without_a_first_token_is_not_certified() -> None:
    net = replace(assemble(log_depth(cyclic(2), max_length=3)).architecture, pads=0)
    with pytest.raises(InputError, match="beginning-of-sequence token first"):
        net_check(net, cyclic(2))


def test_a_recurrent_network_is_checked_on_words_that_fit_into_memory() -> None:
    weights = build(cyclic(2), "linear-recurrence", max_length=1 << 40)
    check = net_check(weights.architecture, cyclic(2), max_length=2, samples=1)
    assert max(words.shape[1] for batch in check.batches for words in batch.words) == MAX_STEPS  # type: ignore[union-attr]
