"""The Random Hierarchy Model against a list of all its strings, and against the grammar it is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

from cases import each
from oracles.rows import reference
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Example, examples, make
from vitrify.sandboxes.hierarchy import HierarchySandbox
from vitrify.sandboxes.kit import tree
from vitrify.spec.grammars.families import random_hierarchy
from vitrify.spec.grammars.hierarchy import Hierarchy as Spec

SMALL = [{"v": 3, "m": 2, "L": 2, "classes": 2, "task": 4}, {"v": 2, "m": 2, "L": 3}, {"v": 3, "m": 3, "s": 3, "L": 1}]


def strings(sandbox: HierarchySandbox) -> tuple[Any, Any]:
    """Every derivation's leaves and class, all equally probable: an independent expansion, one symbol at a time."""

    def below(height: int, symbol: int) -> list[tuple[int, ...]]:
        if height == 0:
            return [(symbol,)]
        found = []
        for side in sandbox.rules[height - 1][symbol]:
            parts = [below(height - 1, int(child)) for child in side]
            found += [tuple(x for part in parts for x in part) for parts in product(*parts)]
        return found

    pairs = [(leaves, label) for label in range(sandbox.roots) for leaves in below(sandbox.L, label)]
    return np.array([leaves for leaves, _ in pairs]), np.array([label for _, label in pairs])


def laws(leaves: Any, seen: int, symbols: int) -> Any:
    """For each string, the distribution of each leaf given the `seen` leaves before it, by counting strings."""
    found = np.zeros((*leaves.shape, symbols))
    for t in range(leaves.shape[1]):
        _, group = np.unique(leaves[:, max(t - seen, 0) : t], axis=0, return_inverse=True)
        counts = np.zeros((group.max() + 1, symbols))
        np.add.at(counts, (group.reshape(-1), leaves[:, t]), 1)
        found[:, t] = (counts / counts.sum(axis=1, keepdims=True))[group.reshape(-1)]
    return found


def entropy(law: Any) -> Any:
    return -(law * np.log(np.where(law > 0, law, 1))).sum(axis=-1).mean(axis=0)


@pytest.mark.parametrize("sizes", SMALL)
def test_next_leaves_and_levels_and_their_losses_are_those_of_all_strings(sizes: dict[str, Any]) -> None:
    sandbox = HierarchySandbox(**sizes)
    leaves, _ = strings(sandbox)
    batch = Example(leaves[:, :-1], leaves, np.ones(leaves.shape), {})
    predictors = {"optimal": sandbox.optimal, **sandbox.predictors()}
    found = jax.jit(lambda batch: {name: jax.vmap(each)(batch) for name, each in predictors.items()})(batch)
    right = laws(leaves, sandbox.leaves, sandbox.v)
    assert np.allclose(np.exp(found["optimal"]), right, atol=1e-5)
    assert np.allclose(np.asarray(sandbox.floor()), entropy(right), atol=1e-5)
    for level in range(sandbox.L + 1):
        right = laws(leaves, sandbox.s**level - 1, sandbox.v)
        assert np.allclose(np.exp(found[f"level {level}"]), right, atol=1e-5)
        assert np.allclose(sandbox.plateaus()[level], entropy(right)[-1])


@pytest.mark.parametrize("sizes", SMALL[:1])
def test_classes_and_last_leaves(sizes: dict[str, Any]) -> None:
    classify = HierarchySandbox(**sizes, mode="classify")
    leaves, labels = strings(classify)
    batch = Example(leaves, np.zeros((len(leaves), leaves.shape[1] + 1), int), None, {})
    best = jax.jit(jax.vmap(classify.optimal))(batch)[:, -1]
    assert np.array_equal(np.exp(best), np.eye(classify.roots)[labels])
    drawn = jax.device_get(jax.jit(lambda: examples(classify, 0, "test", 0, 50))())
    tree = Spec.of(random_hierarchy(3, 2, 2, 2, seed=4, classes=2))
    for tokens, targets in zip(drawn.tokens, drawn.targets, strict=True):
        assert tree.classify([classify.symbols[t] for t in tokens]) == classify.answers[targets[-1]]
    last = HierarchySandbox(**sizes, mode="last")
    found = jax.jit(jax.vmap(lambda row: (last.optimal(row), last.level(row, 1))))(
        Example(leaves[:, :-1], leaves, np.ones(leaves.shape), {})
    )
    assert np.allclose(np.exp(found[0][:, -1]), laws(leaves, 4, last.v)[:, -1], atol=1e-5)
    assert np.allclose(np.exp(found[1][:, -1]), laws(leaves, 1, last.v)[:, -1], atol=1e-5)
    assert np.allclose(np.asarray(last.floor()), [0, 0, 0, last.plateaus()[2]])
    assert np.array_equal(jax.jit(lambda: examples(last, 0, "test", 0, 50))().weight.sum(axis=1), np.ones(50))


@each("sizes", [*SMALL, {"v": 3, "m": 2, "s": 3, "L": 2}, {"v": 4, "m": 3, "L": 3, "classes": 2}])
def test_the_loss_of_a_reader_of_any_number_of_leaves_is_that_of_all_strings(sizes: dict[str, Any]) -> None:
    sandbox = HierarchySandbox(**sizes)
    leaves, _ = strings(sandbox)
    for seen in range(sandbox.leaves):
        _, group = np.unique(leaves[:, sandbox.leaves - 1 - seen : -1], axis=0, return_inverse=True)
        counts = np.zeros((group.max() + 1, sandbox.v))
        np.add.at(counts, (group.reshape(-1), leaves[:, -1]), 1)
        law = counts / counts.sum(axis=1, keepdims=True)
        each = -(law * np.log(np.where(law > 0, law, 1))).sum(axis=1)
        assert np.isclose(sandbox.stair(seen), each @ counts.sum(axis=1) / len(leaves), atol=1e-12)


@pytest.mark.parametrize(("sizes", "widest"), [(SMALL[0], 3), (SMALL[1], 7), (SMALL[1], 5), (SMALL[2], 2)])
def test_readers_of_a_part_of_the_leaves(sizes: dict[str, Any], widest: int) -> None:
    every = HierarchySandbox(**sizes, mode="last", widest=widest)
    leaves, _ = strings(every)
    answers = leaves[:, -1 - widest :]
    assert every.tokens == widest
    assert every.symbols == (*every.answers, "?")

    @jax.jit
    def told(window: Any) -> Any:
        sandbox = replace(every, window=window)
        tokens = sandbox._visible(leaves)
        batch = Example(tokens, answers, np.ones(answers.shape), {})
        known = {"optimal": sandbox.optimal, **sandbox.predictors()}
        return tokens, {name: jax.vmap(each)(batch)[:, -1] for name, each in known.items()}

    for window in range(widest + 1):
        seen, sandbox = window or widest, replace(every, window=window)
        tokens, found = told(float(window))
        assert (tokens[:, : widest - seen] == every.v).all()
        assert np.array_equal(tokens[:, widest - seen :], leaves[:, -1 - seen : -1])
        assert np.allclose(np.exp(found["optimal"]), laws(leaves, seen, every.v)[:, -1], atol=1e-5)
        assert np.isclose(sandbox.floor()[-1], sandbox.stair(seen))  # type: ignore[index]
        for name in found:
            if name.startswith("level"):
                right = laws(leaves, min(every.s ** int(name[-1]) - 1, seen), every.v)[:, -1]
                assert np.allclose(np.exp(found[name]), right, atol=1e-5)
        drawn, right = reference(sandbox, np.random.default_rng(0), 50)
        assert {tuple(row) for row in np.concatenate([drawn, right], axis=1)} <= {
            tuple(row) for row in np.concatenate([tokens, answers], axis=1).tolist()
        }


def test_less_is_told_of_the_same_strings() -> None:
    whole = HierarchySandbox(v=4, m=2, L=3, mode="last")
    part = replace(whole, widest=5, window=3)

    @jax.jit
    def both() -> tuple[Example, Example, Example, Example]:
        one, other = (examples(sandbox, 0, "train", 0, 30) for sandbox in (whole, part))
        keys = jax.random.split(jax.random.key(0), 30)
        changed = [jax.vmap(lambda r, k, box=box: box.others(r, k, 1))(one, keys) for box in (whole, part)]
        return one, other, *changed

    one, other, changed, narrow = jax.device_get(both())
    for all_of_it, some in ((one, other), (changed, narrow)):
        assert (some.tokens[:, :2] == 4).all()
        assert np.array_equal(some.tokens[:, 2:], all_of_it.tokens[:, -3:])
    assert np.array_equal(other.targets, one.targets[:, -6:])
    assert np.array_equal(other.weight, one.weight[:, -6:])
    with pytest.raises(InputError, match=r"window must be one of 0, …, widest = 5, not 6"):
        replace(part, window=6)
    with pytest.raises(InputError, match=r"widest must be one of 0, …, 7, not 8"):
        replace(part, widest=8)
    with pytest.raises(
        InputError, match=r"widest must be 0 where the last leaf is not what is asked for, in the mode next"
    ):
        replace(part, mode="next")


def test_it_is_the_grammar_of_the_spec() -> None:
    sandbox = HierarchySandbox(v=3, m=2, L=2, classes=2, task=7)
    grammar = random_hierarchy(3, 2, 2, 2, seed=7, classes=2)
    drawn = jax.jit(
        lambda: (lambda batch: (batch, jax.vmap(sandbox.optimal)(batch)))(examples(sandbox, 0, "test", 0, 5))
    )
    batch, best = jax.device_get(drawn())
    for leaves, logp in zip(batch.targets, best, strict=True):
        laws_of_spec = grammar.next_word_probs_along([sandbox.symbols[leaf] for leaf in leaves])
        wanted = [[float(law.get(word, 0)) for word in sandbox.symbols] for law in laws_of_spec[:-1]]
        assert np.allclose(np.exp(logp), wanted, atol=1e-5)


def test_the_losses_of_a_large_tree_add_up_to_what_its_choices_hold() -> None:
    r"""A string is a class and a production for every node, so the losses sum to $\log n_c + 31 \log m$."""
    sandbox = HierarchySandbox(v=6, m=3, L=5, classes=5)
    floor = sandbox.floor()
    assert floor is not None
    assert np.isclose(np.asarray(floor).sum(), np.log(5) + 31 * np.log(3), rtol=1e-5)
    stairs = sandbox.plateaus()
    assert (np.diff(stairs) <= 1e-12).all()
    assert np.isclose(stairs[-1], floor[-1])


def test_more_beliefs_than_can_be_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_BELIEFS", 40)
    assert HierarchySandbox(v=8, m=4, L=4).floor() is None
    with pytest.raises(InputError, match=r"more than 40 beliefs: average `level` over sequences"):
        HierarchySandbox(v=8, m=4, L=4).plateaus()


def test_synonyms_keep_what_is_above_and_change_all_productions_of_the_level() -> None:
    sandbox = HierarchySandbox(v=6, m=3, L=3, mode="classify")

    @jax.jit
    def both() -> tuple[Example, Example]:
        batch = examples(sandbox, 0, "test", 0, 20)
        keys = jax.random.split(jax.random.key(0), 20)
        return batch, jax.vmap(lambda row, key: sandbox.synonyms(row, key, 2))(batch, keys)

    old, new = jax.device_get(both())
    for name, before in old.latent.items():
        if name == "productions 2":
            assert (new.latent[name] != before).all()
        elif name != "symbols 1":
            assert np.array_equal(new.latent[name], before)
    assert np.array_equal(old.targets, new.targets)
    assert (old.tokens != new.tokens).any(axis=1).all()


def test_other_symbols_are_other_at_every_node_and_rewritten_by_the_rules() -> None:
    sandbox = HierarchySandbox(v=6, m=3, L=3, mode="classify", classes=4)

    @jax.jit
    def changed() -> list[tuple[Example, Example]]:
        batch = examples(sandbox, 0, "test", 0, 20)
        keys = jax.random.split(jax.random.key(0), 20)
        return [(batch, jax.vmap(lambda r, k, h=h: sandbox.others(r, k, h))(batch, keys)) for h in (1, 2, 3)]

    for height, (old, new) in enumerate(jax.device_get(changed()), start=1):
        assert (old.latent[f"symbols {height}"] != new.latent[f"symbols {height}"]).all()
        for above in range(height + 1, 4):
            assert np.array_equal(old.latent[f"symbols {above}"], new.latent[f"symbols {above}"])
        symbols = new.latent[f"symbols {height}"]
        assert symbols.max() < (4 if height == 3 else 6)
        for level in range(height, 0, -1):
            assert np.array_equal(new.latent[f"symbols {level}"], symbols)
            symbols = sandbox.rules[level - 1][symbols, old.latent[f"productions {level}"]].reshape(20, -1)
        assert np.array_equal(new.tokens, symbols)


@pytest.mark.parametrize("mode", ["last", "classify"])
def test_a_grammar_that_is_chosen_in_a_program_is_that_of_its_seed(mode: Any) -> None:
    sizes: dict[str, Any] = {"v": 4, "m": 2, "L": 2, "classes": 3}
    several = HierarchySandbox(**sizes, mode=mode, task=5, grammars=3)

    def told(sandbox: HierarchySandbox) -> tuple[Any, dict[str, Any]]:
        batch = examples(sandbox, 0, "test", 0, 9)
        known = {"optimal": sandbox.optimal, **sandbox.predictors()}
        return batch, {name: jax.vmap(each)(batch) for name, each in known.items()}

    chosen = jax.jit(lambda grammar: told(replace(several, grammar=grammar)))
    for number in (0, 2):
        alone = HierarchySandbox(**sizes, mode=mode, task=5 + number)
        for one, other in zip(
            jax.tree.leaves(chosen(float(number))),
            jax.tree.leaves(jax.jit(lambda alone=alone: told(alone))()),
            strict=True,
        ):
            assert np.allclose(one, other, atol=1e-6)
        if mode == "last":
            assert np.array_equal(replace(several, grammar=number).plateaus(), alone.plateaus())
    assert set(replace(several, levels=False).predictors()) == {"uniform"}
    with pytest.raises(InputError, match=r"grammar must be one of 0, …, 2, not 3"):
        replace(several, grammar=3)


def test_bad_sizes_are_told_at_once() -> None:
    with pytest.raises(
        InputError,
        match=r"v must be .* at least 2, not 1; m must be .* at least 1, not 0; task must be",
    ):
        make("hierarchy", {"v": 1, "m": 0, "task": -1})
    with pytest.raises(InputError, match=r"m must be at most 2, as productions are distinct, not 3"):
        make("hierarchy", {"v": 2, "m": 3})
    with pytest.raises(InputError, match=r"2\^17 leaves is too large"):
        make("hierarchy", {"L": 17})
