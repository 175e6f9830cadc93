"""Knowledge nets: answers and routes over every query and over all short sequences, sizes, isolation, new tasks."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from built import ATTENTIONS
from cases import each
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.certification.oracles.knowledge import forced, watched
from vitrify.certification.oracles.right import logit_margins
from vitrify.constructions.catalogue import Attention, build
from vitrify.constructions.knowledge import Router, expert_units, hidden_sizes, knowledge, linear_sizes, router_units
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.inference import batch_of, encode, logits, trace
from vitrify.net.sparse import dense
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights
from vitrify.spec.memory.knowledge import Knowledge, KnowledgeTask, large_world, random_world, xor_world

WORLD = Knowledge.read(Path(__file__).parents[3] / "examples" / "world.knowledge.toml")
ROUTERS: tuple[Router, ...] = ("hidden", "linear")
TRICKY = {
    "the same templates": Knowledge.of(
        {"a": (["is #"], {"x": "1", "y": "2"}), "b": (["is #"], {"z": "1", "x y": "3"})}
    ),
    "keys are words of templates": Knowledge.of(
        {"a": (["x #", "# y z"], {"x": "1", "y": "2", "z": "3"}), "b": (["y # x"], {"x": "4", "y": "5"})}
    ),
    "overlapping templates": Knowledge.of({"a": (["p #", "# q"], {"q": "1", "r": "2"})}),
    "nothing but the key": Knowledge.of({"a": (["#"], {"x": "1", "x y": "2", "y": "3"}), "b": (["z #"], {"x": "1"})}),
    "suffixes of keys": Knowledge.of(
        {"a": (["in #", "# is"], {"york": "1", "new york": "2", "new": "3", "los york": "4"})}
    ),
    "a key across the slot": Knowledge.of({"a": (["a # b", "c #"], {"k": "1", "k b": "2"})}),
    "mixed words of keys": Knowledge.of({"a": (["is #"], {"x y": "1", "z w": "2"}), "b": (["is #"], {"x w": "3"})}),
}


@cache
def built(router: Router = "hidden", attention: Attention = "softmax") -> Weights:
    return assemble(knowledge(WORLD, router=router, attention=attention))


def wrong(spec: Knowledge, weights: Weights, sequences: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The prefixes of some sequences after which the net does not say what the spec does."""
    net = weights.architecture
    found = []
    for words, rows in zip(sequences, logits(weights, [encode(net, words) for words in sequences]), strict=True):
        for length, row in enumerate(rows):
            answer = spec.answer(words[:length])
            if net.output.symbols[int(row.argmax())] != (answer[1] if answer else "<none>"):
                found.append(words[:length])
    return found


def near_misses(spec: Knowledge, seed: int, count: int) -> list[tuple[str, ...]]:
    """Queries with one or two words exchanged, one in front or behind, or one missing."""
    rng = np.random.default_rng(seed)
    queries, words = list(spec.queries), spec.vocabulary
    made = []
    for _ in range(count):
        query = list(queries[int(rng.integers(len(queries)))])
        for _ in range(int(rng.integers(3))):
            query[int(rng.integers(len(query)))] = words[int(rng.integers(len(words)))]
        if rng.random() < 0.3:
            query.insert(0, words[int(rng.integers(len(words)))])
        if rng.random() < 0.3:
            query.append(words[int(rng.integers(len(words)))])
        made.append(tuple(query[int(rng.random() < 0.3) :]))
    return made


@pytest.mark.slow
@each("router", ROUTERS)
@each("name", TRICKY)
def test_all_sequences_of_tricky_worlds(name: str, router: Router) -> None:
    """Every sequence to a length beyond the longest query, also without condition on the words of keys."""
    spec = TRICKY[name]
    try:
        weights = assemble(knowledge(spec, router=router, attention="hard"))
    except BuildRefused:
        assert (name, router) == ("mixed words of keys", "linear")
        return
    longest = min(spec.longest + 1, 5)
    assert wrong(spec, weights, list(product(spec.vocabulary, repeat=longest))) == []
    evidence = certify(weights, spec, work=1e7)
    assert evidence.verdict == "holds", evidence


@pytest.mark.parametrize("router", ROUTERS)
def test_random_worlds(router: Router) -> None:
    for seed in range(20):
        spec = random_world(seed, long_keys=0.2 * (seed % 3), shared_words=0.15 * (seed % 4), anchored=seed % 5 == 0)
        weights = assemble(knowledge(spec, router=router, attention=ATTENTIONS[seed % 3]))
        assert wrong(spec, weights, [*spec.queries, *near_misses(spec, seed, 100)]) == []
        (block,) = weights.architecture.blocks
        assert [expert.units for expert in block.experts] == [expert_units(task) for task in spec.tasks]
        assert block.router == (router_units(spec) if router == "hidden" else 0)
        assert block.units == 0
        promised = (hidden_sizes if router == "hidden" else linear_sizes)(spec, max_length=None, positions="dyadic")
        assert not promised.problems(weights.sizes)
        assert promised.exact["heads"] == spec.longest


def test_an_expert_has_a_unit_for_each_template_and_fact() -> None:
    for seed in range(20):
        spec = random_world(seed, words=3, shared_words=0.2 * (seed % 3))
        weights = assemble(knowledge(spec, attention="hard"))
        units = [expert.units for expert in weights.architecture.blocks[0].experts]
        assert units == [len(task.templates) + len(task.facts) for task in spec.tasks]


def test_longer_keys_cost_what_the_formula_says() -> None:
    """|T||M| + |D₁| + |S| Σ|Dₘ|, where no key can be taken apart in another way."""
    facts = {"k": "1", "l": "2", "m n": "3", "o p": "4", "q r s": "5"}
    spec = Knowledge.of({"t": (["a #", "b c #", "# d e"], facts)})
    (units,) = [expert.units for expert in assemble(knowledge(spec)).architecture.blocks[0].experts]
    assert units == 3 * 3 + 2 + 2 * 3


def test_templates_that_take_keys_apart_get_a_unit_for_each_key() -> None:
    spec = TRICKY["a key across the slot"]
    labels = [label for label in assemble(knowledge(spec)).labels.units if label.part == "moe.experts.0"]
    assert labels[0].unit_names == (
        "template: a # b, key: k",
        "template: a # b (2 words)",
        "template: c #",
        "template: c #, key: k b",
        "key: k",
        "key: k b",
    )


@pytest.mark.slow  # the claim asks the same of soft attention
def test_the_large_world() -> None:
    """200 tasks, 20,000 facts: queries are answered and routed right, with the promised sizes."""
    spec = large_world()
    weights = assemble(knowledge(spec, attention="hard"))
    net = weights.architecture
    counted = [len(task.templates) + len(task.facts) for task in spec.tasks]
    assert [expert.units for expert in net.blocks[0].experts] == counted
    right = {
        tuple(encode(net, words)): (task, spec.tasks[task].facts[fact][1])
        for words, (task, _, fact) in spec.queries.items()
    }
    for queries, found, scores in watched(weights, right):
        tasks, values = zip(*map(right.__getitem__, queries), strict=True)
        assert [net.output.symbols[i] for i in found.argmax(axis=-1)] == list(values)
        assert (scores.argmax(axis=1) == tasks).all()
        assert logit_margins(scores, np.array(tasks)).min() == 1.0


def test_the_xor_world_has_no_linear_router_and_needs_none() -> None:
    spec = xor_world()
    with pytest.raises(BuildRefused, match="no linear router sends every query to its task"):
        build(spec, "linear")
    weights = build(spec)
    assert weights.about["linear router"] == "none exists"
    assert wrong(spec, weights, list(product(spec.vocabulary, repeat=4))) == []
    assert built().about["linear router"].startswith("exists")


@pytest.mark.parametrize("router", ROUTERS)
def test_every_expert_knows_its_own_task_and_no_other(router: Router) -> None:
    """The isolation matrix is the identity, and the right expert alone gives the same logits to the last bit."""
    weights = built(router)
    net = weights.architecture
    tokens, lengths = batch_of(net, [encode(net, words) for words in WORLD.queries])
    tasks = np.array([task for task, _, _ in WORLD.queries.values()])
    values = np.array([WORLD.tasks[task].facts[fact][1] for task, _, fact in WORLD.queries.values()])
    last = (np.arange(len(tokens)), lengths - 1)
    whole = net.forward(weights.prepared, tokens)[last]
    accuracy = np.zeros((len(WORLD.tasks), len(WORLD.tasks)))
    for expert in range(len(WORLD.tasks)):
        found = forced(weights, tokens, expert)[last]
        said = np.array(net.output.symbols)[found.argmax(axis=-1)]
        for task in range(len(WORLD.tasks)):
            accuracy[expert, task] = (said == values)[tasks == task].mean()
        assert (said[tasks != expert] == "<none>").all()
        np.testing.assert_array_equal(found[tasks == expert], whole[tasks == expert])
    np.testing.assert_array_equal(accuracy, np.eye(len(WORLD.tasks)))


@pytest.mark.parametrize("router", ROUTERS)
def test_removing_all_other_experts_changes_nothing_for_a_task(router: Router) -> None:
    weights = built(router)
    for number, task in enumerate(WORLD.tasks):
        arrays = {
            name: np.zeros_like(array)
            for name, array in weights.arrays.items()
            if ".experts." in name and f".experts.{number}." not in name
        }
        alone = Weights(weights.architecture, {**weights.arrays, **arrays}, weights.labels)
        queries = [encode(weights.architecture, words) for words, _, _ in task.queries()]
        for one, two in zip(logits(weights, queries), logits(alone, queries), strict=True):
            np.testing.assert_array_equal(one[-1], two[-1])


@pytest.mark.parametrize("router", ROUTERS)
def test_a_new_task_leaves_the_other_experts_as_they_are(router: Router) -> None:
    new = KnowledgeTask("anthem", (("who", "sings", "of", "#", "and", "its", "capital"),), ((("Peru",), "Rebagliati"),))
    grown = Knowledge((*WORLD.tasks, new))
    before, after = built(router), assemble(knowledge(grown, router=router))
    same = {
        name
        for name, array in before.arrays.items()
        if array.shape == after.arrays[name].shape and dense(array).tobytes() == dense(after.arrays[name]).tobytes()
    }
    experts = {name for name in before.arrays if ".experts." in name}
    assert experts <= same
    assert set(after.arrays) - set(before.arrays) == {
        f"blocks.0.moe.experts.{len(WORLD.tasks)}.{part}" for part in ("W_in", "b_in", "W_out", "b_out")
    }
    changed = {name.split(".")[-2] for name in set(before.arrays) - same}
    assert changed <= {"embed", "pos_embed", "attn", "router", "unembed"}  # the stream, the heads and who is called
    assert wrong(grown, after, list(grown.queries)) == []
    rows = {label.part: label.unit_names for label in before.labels.units if "experts" in label.part}
    assert rows == {label.part: label.unit_names for label in after.labels.units if label.part in rows}


def test_broken_templates_get_no_answer() -> None:
    asked = 0
    for task in WORLD.tasks:
        for words, template, _ in task.queries():
            for place, word in enumerate(words):
                if word in task.templates[template]:
                    broken = (*words[:place], "grass", *words[place + 1 :])
                    if WORLD.answer(broken) is None:
                        asked += 1
                        assert wrong(WORLD, built(), [broken]) == []
    assert asked > 50


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_certified_and_mutations_are_noticed(router: Router, attention: Attention) -> None:
    weights = built(router, attention)
    evidence = certify(weights, WORLD, work=1e8)
    assert evidence.verdict == "holds", evidence
    margin = evidence.measured("smallest margin of the right expert")
    assert margin >= (0.99 if attention == "softmax" else 1.0)
    found = mutation_test(weights, WORLD, count=30, seed=3, work=1e7)
    assert found.rate >= 0.99, found.survivors


@pytest.mark.slow
@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_three_hundred_mutations(router: Router, attention: Attention) -> None:
    found = mutation_test(built(router, attention), WORLD, count=300, seed=4, work=1e8)
    assert found.rate >= 0.99, found.survivors


def test_certify_names_a_witness() -> None:
    weights = built()
    array = weights.arrays["blocks.0.moe.experts.2.W_out"].copy()
    array[-1] = 0.0
    evidence = certify(weights.with_array("blocks.0.moe.experts.2.W_out", array), WORLD, work=1e8)
    assert evidence.verdict == "fails"
    assert evidence.witness == {"word": ["new", "is", "not"], "expected": "old", "actual": "<none>"}


def test_a_wrong_route_is_noticed_even_where_the_answer_is_right() -> None:
    """An expert that knows another task as well: the answers are right, the route is not."""
    spec = Knowledge.of({"a": (["is #"], {"x": "1"}), "b": (["was #"], {"x": "2"})})
    weights = assemble(knowledge(spec))
    bias = weights.arrays["blocks.0.moe.router.b_out"] + np.array([-0.6, 0.0])
    evidence = certify(weights.with_array("blocks.0.moe.router.b_out", bias), spec)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert evidence.witness["expected"] == "the expert of 'a'"


def test_an_expert_that_knows_too_much_is_noticed() -> None:
    weights = built()
    into, bias = (weights.arrays[f"blocks.0.moe.experts.3.{part}"].copy() for part in ("W_in", "b_in"))
    into[:, 0], bias[0] = 0.0, 1.0  # takes everything for its template; but only what is one comes to this expert
    broken = weights.with_array("blocks.0.moe.experts.3.W_in", into).with_array("blocks.0.moe.experts.3.b_in", bias)
    evidence = certify(broken, WORLD, work=1e8)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert evidence.witness["expert alone"] == "colour"
    assert evidence.witness["expected"] == "<none>"


def test_a_head_that_brings_another_word_is_noticed_even_where_no_answer_depends_on_it() -> None:
    weights = built("hidden", "hard")
    places = weights.arrays["pos_embed.W_pos"].copy()
    places[-1] = 0.0  # so late there are no queries
    broken = weights.with_array("pos_embed.W_pos", places)
    assert wrong(WORLD, broken, [*WORLD.queries, *near_misses(WORLD, 1, 50)]) == []
    evidence = certify(broken, WORLD, work=1e7)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert evidence.witness["space"] == "1 back"


@pytest.mark.parametrize("router", ROUTERS)
def test_jax_gives_the_same_logits(router: Router) -> None:
    weights = built(router)
    net = weights.architecture
    tokens, _ = batch_of(net, [encode(net, words) for words in [*WORLD.queries][::5]])
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(dense(array)) for name, array in weights.arrays.items()}
        got = np.asarray(jax.jit(forward, static_argnums=0)(net, arrays, jnp.asarray(tokens)))
    wanted = net.forward(weights.prepared, tokens)
    lasts = (tokens > 0).sum(axis=1)
    rows = np.arange(len(tokens))
    assert np.abs(got - wanted)[rows, lasts].max() <= 1e-12
    np.testing.assert_array_equal(got.argmax(axis=-1)[rows, lasts], wanted.argmax(axis=-1)[rows, lasts])


def test_labels_tell_every_unit_and_traces_tell_the_words() -> None:
    weights = built("hidden", "hard")
    parts = {label.part: label for label in weights.labels.units}
    assert parts["moe.experts.0"].name == "capital"
    assert parts["moe.experts.0"].unit_names[0] == "template: the capital of #"
    assert "key: South Korea 0 back" in parts["moe.experts.0"].unit_names
    assert parts["moe.router"].unit_names[-1] == "colour: the colour of # is"
    run = trace(weights, ["the", "capital", "of", "Peru"])
    assert run.read("2 back") == [None, None, None, None, "capital"]  # "the" is asked for elsewhere
    assert "block 0 expert: capital  capital  capital  capital  capital\n" in str(run)
    assert "expert: capital  capital  capital  capital  opposite\n" in str(
        trace(weights, ["the", "opposite", "of", "hot"])
    )


def test_refusals() -> None:
    with pytest.raises(BuildRefused, match="the longest query has 6 words: --max-length must be at least that"):
        build(WORLD, max_length=5)
    many = {f"k{number}": "v" for number in range(4_000)}
    with pytest.raises(BuildRefused, match="templates that end with their slot"):
        build(Knowledge.of({"t": (["a # b", "b #"], many)}))
    large = build(Knowledge.of({"t": (["a #"], many)}))
    assert large.architecture.blocks[0].experts[0].units == 4_001


@pytest.mark.parametrize("positions", ["dyadic", "quadratic", "sqrt"])
def test_every_position_code_will_do(positions: str) -> None:
    weights = build(WORLD, positions=positions)
    assert wrong(WORLD, weights, [*WORLD.queries, *near_misses(WORLD, 0, 100)]) == []
