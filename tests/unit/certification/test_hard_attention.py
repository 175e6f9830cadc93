"""Hard attention as a finite machine: the same numbers as the forward pass, and proofs for every length."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import permutations, product

import numpy as np
import pytest

from cases import each, each_then_slow
from tied_nets import all_words, random_net, says_true
from vitrify.certification import certify
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase, bit_by_bit, product_of_states
from vitrify.certification.equivalence.hard import HardAttentionMachine, _product
from vitrify.certification.evidence import Scope
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.values import Undecided
from vitrify.certification.reading.automata import automaton_of
from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.analysis import is_aperiodic
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, flip_flop
from vitrify.spec.automata.holonomy import Holonomy
from vitrify.spec.logic.ltl import Formula

WORD = "abbabaabbbabaababbaa"


def formula(text: str, length: int = 24) -> Formula:
    return Formula.from_text(f"alphabet: a b\nlength: {length}\n{text}")


def net_of(seed: int) -> Weights[Transformer]:
    """Return a random net; in every second one all positions ask the same query, so that keys are forgotten."""
    net: Weights[Transformer] = random_net(seed)
    for block in range(2 if seed % 2 else 0):
        name, shift = f"blocks.{block}.attn.W_Q", f"blocks.{block}.attn.b_Q"
        net = net.with_array(name, 0 * net.arrays[name]).with_array(shift, 1 - 2 * (net.arrays[shift] < 0))
    return net


def with_head(weights: Weights[Transformer], **changes: object) -> Weights[Transformer]:
    """Return the same arrays with all heads changed."""
    net = weights.architecture
    blocks = tuple(
        replace(block, heads=tuple(replace(head, **changes) for head in block.heads))  # type: ignore[arg-type]
        for block in net.blocks
    )
    return replace(weights, architecture=replace(net, blocks=blocks))


@pytest.mark.long
@each_then_slow("seed", range(15), range(15, 300))
def test_the_machine_computes_the_numbers_of_the_forward_pass(seed: int) -> None:
    net, words = net_of(seed), all_words(2, 6)
    machine = HardAttentionMachine(net)
    actual = batch_logits(net, with_pads(net.architecture, words + 1))
    memory, logits = machine.start()
    assert (logits == actual[:, 0]).all()
    memories = [memory] * len(words)
    for at in range(words.shape[1]):
        memories, logits = machine.steps(memories, (words[:, at] + 1).tolist())
        assert (logits == actual[:, at + 1]).all()


@pytest.mark.long
@each_then_slow("seed", range(15), range(15, 300))
def test_words_with_equal_keys_have_equal_futures(seed: int) -> None:
    net, words = net_of(seed), all_words(2, 7)
    machine = HardAttentionMachine(net)
    truth = says_true(net, words)
    futures: dict[object, bytes] = {}
    for prefix in all_words(2, 3):
        memory, _ = machine.start()
        for letter in prefix:
            (memory,), _ = machine.steps([memory], [int(letter) + 1])
        same = truth[(words[:, :3] == prefix).all(axis=1), 3:].tobytes()
        assert futures.setdefault(machine.key(memory), same) == same


@pytest.mark.long
@each_then_slow("seed", range(20), range(20, 300))
def test_random_hard_nets_compute_star_free_languages(seed: int) -> None:
    net, words = net_of(seed), all_words(2, 8)
    automaton = automaton_of(net)
    accepting = np.isin(automaton.run_batch(words)[:, 1:], list(automaton.accepting))
    assert (accepting == says_true(net, words)).all()
    assert automaton == automaton.minimized()
    assert is_aperiodic(automaton)
    assert all(group.order == 1 for _, group in Holonomy(automaton).groups())


@each("text", ["(ab)*", "(aa)*", "(ab|ba)*", "(a|b)*a(a|b)", "(aaa|b)*", "b(ab)*a|a*"])
def test_aperiodic_automata_have_trivial_groups(text: str) -> None:
    automaton = Automaton.from_regex(text, "ab")
    assert is_aperiodic(automaton) == all(group.order == 1 for _, group in Holonomy(automaton).groups())


def test_a_net_of_another_formula_is_refuted_by_the_word_on_which_they_differ() -> None:
    """The word has 20 letters; the formula says that these were not the last ones."""
    last = reduce(lambda before, letter: f"({letter} & Y {before})", WORD[1:], WORD[0])
    declared, other = formula(f"O a & !{last}"), formula("O a")
    for attention, search in (("hard", bit_by_bit), ("softmax", product_of_states)):
        net = build(other, attention=attention)
        evidence = certify(net, declared, prove=True)
        assert evidence.verdict == "fails"
        assert evidence.witness is not None
        assert "".join(evidence.witness["word"]) == WORD
        assert "".join(net.architecture.inputs[i] for i in search(case_of(net, declared)).witness or ()) == WORD
        honest = search(case_of(build(declared, attention=attention), declared))
        assert (honest.witness, honest.longest, honest.instances["pairs of states"]) == (None, None, 23)


def test_a_word_that_is_longer_than_the_net_reads_refutes_nothing() -> None:
    far = formula(f"b & !({'Y ' * 11}true)", 9)
    evidence = certify(build(formula("b", 9), attention="hard"), far, prove=True)
    assert [(link.scope, link.longest) for link in evidence.links] == [(Scope.MAX_LENGTH, 9)] * 2


def case_of(weights: Weights[Transformer], spec: object) -> SpecCase:
    oracle = WordCheck(weights.architecture, spec).oracle
    return SpecCase(weights, spec, oracle, proof_of(weights, oracle))


def exact(weights: Weights[Transformer], spec: object) -> tuple[int, int]:
    """Return the pairs of states and the steps of an exact search."""
    proof = bit_by_bit(case_of(weights, spec))
    assert proof.exact
    assert proof.witness is None
    assert proof.longest is None
    return proof.instances["pairs of states"], proof.instances["steps"]


def test_positions_that_repeat_are_followed() -> None:
    spec = formula("MOD(1, 3) & O a")
    assert exact(build(spec, attention="hard"), spec) == (7, 14)  # 3 residues, and before the first letter
    odd = build(formula("b"), attention="hard")
    table = np.zeros_like(odd.arrays["pos_embed.W_pos"])
    table[7] = 1.0
    with pytest.raises(Undecided, match="positions do not repeat"):
        HardAttentionMachine(odd.with_array("pos_embed.W_pos", table))


def test_what_is_not_exact_is_refused() -> None:
    net = build(formula("a S b"), attention="hard")
    for name, scale in (("blocks.0.mlp.W_in", 0.1), ("blocks.0.mlp.W_in", 2.0**53), ("embed.W_E", 0.1)):
        odd = HardAttentionMachine(net.with_array(name, net.arrays[name] * scale))
        with pytest.raises(Undecided, match="a sum may be rounded"):
            odd.steps([odd.start()[0]], [2])


def test_sums_are_exact_where_no_order_of_their_terms_rounds() -> None:
    rng, allowed = np.random.default_rng(0), 0
    for size in range(2, 52):
        x = np.ldexp(rng.integers(1, 1 << 20, size=(1, 4)).astype(float), -rng.integers(0, size, size=4))
        try:
            total = _product(x, np.ones((4, 1)))[0, 0]
        except Undecided:
            continue
        allowed += 1
        assert total == float(sum(map(Fraction, x[0].tolist())))
        assert all(total == sum(order) for order in permutations(x[0].tolist()))
    assert 10 < allowed < 50
    with pytest.raises(Undecided, match="a sum may be rounded"):
        _product(np.array([[1.0, 2.0**-53]]), np.ones((2, 1)))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"ties": "average"}, "shares its weight"),
        ({"attention": "softmax"}, "is not hard"),
        ({"mask": "none"}, "sees later positions"),
        ({"segment": 3}, "for trained nets"),
    ],
)
def test_other_heads_are_refused(changes: dict[str, object], why: str) -> None:
    net = build(formula("a S b"), attention="hard")
    with pytest.raises(BuildRefused, match=f"no automaton can be read from this net: .*{why}"):
        automaton_of(with_head(net, **changes))


@pytest.mark.parametrize("changes", [{"mask": "causal"}, {"ties": "left"}])
def test_heads_with_another_mask_or_other_ties_are_refuted(changes: dict[str, object]) -> None:
    spec = formula("H ((a -> !Y a) & (b -> !Y b))")
    evidence = certify(with_head(build(spec, attention="hard"), **changes), spec, prove=True)
    assert evidence.verdict == "fails"


def test_star_free_automata_are_built_without_positions_and_read_back() -> None:
    for text in ("(ab)*", "a*b*", "(a|b)a(a|b)*", "(ab|ba)*", "(aab)*", "(a|b)*abb"):
        automaton = Automaton.from_regex(text, "ab")
        net = build(automaton, "star-free", max_length=12)
        assert not net.arrays["pos_embed.W_pos"].any()
        evidence = certify(net, automaton, max_length=6, prove=True)
        assert [link.scope for link in evidence.links] == [Scope.EVERY_LENGTH] * 2
        assert automaton_of(net) == automaton
        assert automaton_of(build(automaton, "star-free", max_length=1)) == automaton
    assert exact(build(flip_flop(), "star-free"), flip_flop()) == (3, 9)


@pytest.mark.parametrize(
    ("automaton", "group"),
    [(Automaton.from_regex("(aa)*"), "Z2"), (Automaton.from_regex("(aaa|b)*"), "Z3"), (cyclic(6), "Z6")],
)
def test_other_automata_are_refused_by_the_name_of_a_group(automaton: Automaton, group: str) -> None:
    with pytest.raises(BuildRefused, match=f"has the group {group} of {group[1:]} permutations"):
        build(automaton, "star-free")


def test_a_product_of_bits_is_found_by_brute_force_too() -> None:
    """An oracle of its own: the language of `formula_of` and the automaton agree with a plain loop."""
    net = build(formula("H (b -> Y a) & b"), attention="hard")
    automaton = automaton_of(net)
    for length in range(1, 9):
        for word in product("ab", repeat=length):
            text = "".join(word)
            assert automaton.accepts(text) == (text[0] == "a" and text[-1] == "b" and "bb" not in text)
