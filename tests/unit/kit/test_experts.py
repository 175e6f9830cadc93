"""Experts in the kit: scheduled and laid out like units, margins from the router's lead, arrays of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases import each
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.gadgets.indicators import Indicator, indicators
from vitrify.kit.gadgets.table import table
from vitrify.kit.heads.shift import shift
from vitrify.kit.margins import margins
from vitrify.kit.network import Affine, Builder, Experts, Network, Readout, Space, Units
from vitrify.kit.positions import position_code
from vitrify.kit.schedule import schedule
from vitrify.net.architecture import Output
from vitrify.net.inference import trace
from vitrify.net.spaces import OneHot, Reals
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights

LETTERS = OneHot(("<s>", "a", "b", "c"))


def network(attention: AttentionKind = "softmax", router: str = "hidden", lead: float = 1.0) -> Network:
    """After `a` the next letter is copied, after anything else it is counted as c: two experts that share a space."""
    net = Builder("two experts", LETTERS.values, 9, attention)
    letter = net.embed("letter", LETTERS, LETTERS.codes)
    code = position_code("dyadic", 9, [1])
    place = net.embed_position("position", code.kind(), code.table())
    before = shift(net, letter, 1, code, place, name="before")
    said = Space("said", Reals(LETTERS.values, 0.0, 2.0))
    letters = range(len(LETTERS.values))
    copy = indicators("copy", [Indicator(str(n), {letter: [n]}) for n in letters], said, np.eye(4))
    fixed = indicators("fixed", [Indicator("any", {letter: letters})], said, np.eye(4)[3:], constant=np.eye(4)[3] / 2)
    if router == "hidden":
        scores = Space("scores", Reals(("copy", "fixed"), 0.0, 1.0))
        asks = [Indicator("after a", {before: [1]}), Indicator("after another", {before: [0, 2, 3]})]
        chosen: Affine | Units = indicators("router", asks, scores, np.eye(2))
    else:
        chosen = Affine.of({before: np.array([[0.0, 1], [1, 0], [0, 1], [0, 1]])})
    net.add(Experts("who", chosen, (copy, fixed), lead))
    readout = Readout(((said, np.eye(4)),), np.zeros(4), {said: 0.2})
    return net.network(Output("class", LETTERS.values), readout, reuse=False)


def answers(weights: Weights, word: str) -> list[str]:
    return [LETTERS.values[i] for i in trace(weights, word)["hook_logits"].argmax(axis=-1)]


@each("attention", ["softmax", "sparsemax", "hard"])
@each("router", ["hidden", "linear"])
def test_the_chosen_expert_works(attention: AttentionKind, router: str) -> None:
    weights = assemble(network(attention, router))
    assert answers(weights, "abacca") == ["c", "c", "b", "c", "c", "c", "c"]
    seen = trace(weights, "abac")["blocks.0.moe.hook_expert"][:, 0]
    assert seen.tolist() == [1, 1, 0, 1, 0]


def test_experts_come_after_what_they_read_and_before_what_reads_them() -> None:
    net = network()
    plan = schedule(net)
    assert plan.blocks == 1
    assert {op.name: moment for op, moment in plan.moments.items()} == {"shift by 1: before": 1, "who": 2}
    assert plan.born[net.readout.parts[0][0]] == 2
    assert "said ← 2 experts 'who' of before, letter" in repr(net)


def test_arrays_hold_only_what_an_expert_reads_and_writes() -> None:
    weights = assemble(network())
    block = weights.architecture.blocks[0]
    letter, said = weights.labels.space("letter").dims, weights.labels.space("said").dims
    assert (block.units, block.router) == (0, 2)
    assert [(expert.reads, expert.units, expert.writes) for expert in block.experts] == [
        (letter, 4, said),
        (letter, 1, said[3:]),
    ]
    np.testing.assert_array_equal(weights.arrays["blocks.0.moe.experts.0.W_in"], 2 * np.eye(4))
    np.testing.assert_array_equal(weights.arrays["blocks.0.moe.experts.1.b_out"], [0.5])
    parts = {label.part: (label.name, label.unit_names) for label in weights.labels.units}
    assert parts["moe.router"] == ("router", ("after a", "after another"))
    assert parts["moe.experts.1"] == ("fixed", ("any",))


def test_a_smaller_lead_makes_the_heads_sharper() -> None:
    for router in ("hidden", "linear"):
        found = []
        for lead in (1.0, 1e-3, 1e-6):
            (sharp,) = margins(network(router=router, lead=lead)).heads.values()
            found.append(sharp.beta)
        assert found[0] < found[1] < found[2]


def test_what_the_readout_needs_reaches_the_heads_through_the_experts() -> None:
    """Noise of a space that an expert reads passes on; too little precision is refused in a sentence."""
    net = network()
    (readout,) = net.readout.max_errors
    (one,) = margins(net).heads.values()
    assert margins(net).errors[readout] == 0.0  # the experts read exact letters only
    noisy = Builder("noisy", LETTERS.values, 9)
    letter = noisy.embed("letter", LETTERS, LETTERS.codes)
    code = position_code("dyadic", 9, [1])
    before = shift(noisy, letter, 1, code, noisy.embed_position("position", code.kind(), code.table()), name="before")
    said = Space("said", Reals(LETTERS.values, 0.0, 1.0))
    expert = indicators("one", [Indicator("b", {before: [2]}, count=True)], said, np.eye(4)[:1])
    exact = indicators("other", [Indicator("b", {letter: [2]})], said, np.eye(4)[:1])
    noisy.add(Experts("who", Affine.of({letter: np.ones((4, 2))}), (exact, expert), 1.0))  # the worse one counts
    output = Output("class", LETTERS.values)
    needs = [{said: 0.2}, {said: 1e-9}]
    betas = []
    for need in needs:
        made = noisy.network(output, Readout(((said, np.eye(4)),), np.zeros(4), need))
        (sharp,) = margins(made).heads.values()
        assert margins(made).errors[said] == margins(made).errors[before] == sharp.leak <= need[said]
        betas.append(sharp.beta)
    assert betas[0] < betas[1]
    assert one.leak <= 1.0


def test_experts_stand_beside_other_units() -> None:
    net = network("hard")
    builder = Builder("both", LETTERS.values, 9, "hard")
    builder._embedded, builder._positional = [*net.embedded], [*net.positional]
    for operation in net.operations:
        builder.add(operation)
    letter = net.embedded[0][0]
    other = table(builder, [letter], np.array([[1]]), Space("is a", Reals(("a",), 0.0, 1.0)), np.ones((1, 1)))
    output = Output("class", LETTERS.values)
    said = net.readout.parts[0][0]
    readout = Readout(((said, np.eye(4)), (other, np.array([[9.0, 0, 0, 0]]))), np.zeros(4), {})
    for reuse, units in ((False, 1), (True, 6)):  # experts write where other units erase what was there
        weights = assemble(builder.network(output, readout, reuse=reuse))
        assert weights.architecture.blocks[0].units == units
        assert answers(weights, "ab") == ["c", "<s>", "b"]


def test_a_block_has_one_set_of_experts() -> None:
    net = network()
    mix = net.operations[-1]
    assert isinstance(mix, Experts)
    again = Space("again", Reals(LETTERS.values, 0.0, 2.0))
    twice = tuple(replace(expert, writes_by=((again, expert.writes_by[0][1]),), constants=()) for expert in mix.experts)
    both = replace(net, operations=(*net.operations, replace(mix, experts=twice)))
    with pytest.raises(BuildRefused, match="one set of experts"):
        assemble(both)


def test_questions_count_or_decide() -> None:
    space = Space("x", OneHot(("a", "b", "c")))
    other = Space("y", OneHot(("a", "b")))
    out = Space("z", Reals(("z",), 0.0, 2.0))
    questions = [
        Indicator("both", {space: [0, 2], other: [1]}),
        Indicator("any", {space: [0], other: [0]}, count=True),
    ]
    units = indicators("u", questions, out, np.ones((2, 1)))
    matrices = {s.name: m.toarray() for s, m in units.reads_by}
    for x in range(3):
        for y in range(2):
            pre = np.eye(3)[x] @ matrices["x"] + np.eye(2)[y] @ matrices["y"] + units.bias
            both = x in (0, 2) and y == 1
            assert pre[0] == 1 if both else pre[0] <= -1
            assert pre[1] == (x == 0) + (y == 0)
    assert units.margin[space] == pytest.approx(1 / 6)  # three coordinates, twice each
    assert units.gain[space] == 2 * 2 + 1  # two coordinates decide, one counts
    assert units.rows == ("both", "any")
