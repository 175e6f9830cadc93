"""Knowledge: answers as the spec has them, and guesses of those who know a part of the question."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest

from exact_rows import asked, drawn, foretold, share
from oracles.rows import reference
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Split, examples, make
from vitrify.sandboxes.knowledge import KnowledgeSandbox

WORLD = Path(__file__).parents[3] / "examples" / "world.knowledge.toml"


def test_answers_are_those_of_a_file() -> None:
    sandbox = make("knowledge", {"spec": str(WORLD)})
    assert isinstance(sandbox, KnowledgeSandbox)
    assert sandbox.spec is not None
    found = drawn(sandbox, 4000)
    best = foretold(sandbox, found)
    times = Counter[tuple[str, ...]]()
    for number, (padded, answers) in enumerate(asked(sandbox, found)):
        word = [symbol for symbol in padded if symbol != "_"]
        known = sandbox.spec.answer(word)
        assert known is not None
        assert answers == {len(word): known[1]}
        assert known[0] == sandbox.spec.tasks[found.latent["task"][number]].name
        assert sandbox.answers[best[number, len(word)].argmax()] == known[1]
        times[tuple(word)] += 1
    assert times.keys() == sandbox.spec.queries.keys()
    tasks = sandbox.spec.tasks
    chance = [
        1 / len(tasks) / len(tasks[t].templates) / len(tasks[t].facts) for t, _, _ in sandbox.spec.queries.values()
    ]
    assert share([times[word] for word in sandbox.spec.queries], chance) > 1e-6
    tokens, targets = reference(sandbox, np.random.default_rng(0), 50)
    for row, right in zip(tokens, targets, strict=True):
        word = [sandbox.symbols[k] for k in row if sandbox.symbols[k] != "_"]
        known = sandbox.spec.answer(word)
        assert known is not None
        assert sandbox.answers[right[len(word)]] == known[1]


@pytest.mark.parametrize("shared", [True, False])
def test_a_part_of_the_question_leaves_so_many_values(shared: bool) -> None:
    sandbox = KnowledgeSandbox(tasks=3, keys=5, templates=2, shared=shared)
    assert len(sandbox.answers) == 15
    assert len(sandbox.symbols) == 1 + 6 + (5 if shared else 15)
    found = drawn(sandbox, 20)
    losses = {}
    for name, predictor in sandbox.predictors().items():
        guess = np.asarray(jax.jit(jax.vmap(predictor))(found))
        right = np.take_along_axis(guess, found.targets[..., None], axis=-1)[..., 0]
        losses[name] = -right[found.weight > 0]
    assert np.allclose(losses["unigram"], np.log(15), atol=1e-5)
    assert np.allclose(losses["task"], np.log(5), atol=1e-5)
    assert np.allclose(losses["key"], np.log(3 if shared else 1), atol=1e-5)


def test_held_out_queries_are_those_that_training_does_not_draw() -> None:
    """Parts are disjoint and make up all queries of the tasks in use; every template and key comes up in training."""
    sandbox = KnowledgeSandbox(tasks=4, templates=3, keys=5, fraction=0.6, task_fraction=0.5, seed=3)
    names = ("task", "template", "key")
    splits: tuple[Split, ...] = ("train", "test")
    train, test = jax.jit(lambda: tuple(examples(sandbox, 0, split, 0, 3000).latent for split in splits))()
    parts = {
        split: set(zip(*(np.asarray(latent[name]).tolist() for name in names), strict=True))
        for split, latent in zip(splits, (train, test), strict=True)
    }
    assert not parts["train"] & parts["test"]
    assert parts["train"] | parts["test"] == {(t, p, k) for t in range(2) for p in range(3) for k in range(5)}
    assert len(parts["train"]) == 2 * 9
    for task in range(2):
        own = [one for one in parts["train"] if one[0] == task]
        assert ({one[1] for one in own}, {one[2] for one in own}) == (set(range(3)), set(range(5)))
    every, trained = sandbox.every()
    numbers = zip(*(np.asarray(every.latent[name]).tolist() for name in names), strict=True)
    told = {one for one, kept in zip(numbers, trained, strict=True) if kept}
    assert {one for one in told if one[0] < 2} == parts["train"]
    with pytest.raises(InputError, match="leaves a part of task 0 empty, or a template or key out"):
        KnowledgeSandbox(tasks=2, templates=2, keys=5, fraction=0.3)


def test_pooled_values_are_the_same_for_all_tasks_in_other_orders() -> None:
    sandbox = KnowledgeSandbox(tasks=3, keys=5, pooled=True)
    assert sorted(sandbox.answers) == [f"v{k}" for k in range(5)]
    facts = [tuple(value for _, value in task.facts) for task in sandbox.known.tasks]
    assert len(set(facts)) == 3
    assert all(set(own) == set(sandbox.answers) for own in facts)


def test_bad_parameters_are_all_named() -> None:
    with pytest.raises(
        InputError,
        match="tasks must be a whole number of at least 1, not 0; keys must be a whole number of at least 1, not -1",
    ):
        KnowledgeSandbox(tasks=0, keys=-1)
    with pytest.raises(InputError, match="at most 65536 queries"):
        KnowledgeSandbox(tasks=300, keys=300)
    with pytest.raises(InputError, match="must be of type Knowledge or none, not a value of type Dyck"):
        make("knowledge", {"spec": str(WORLD.parent / "brackets.dyck")})
