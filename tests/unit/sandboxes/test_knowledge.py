"""Knowledge: answers as the spec has them, and guesses of those who know a part of the question."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest

from exact_rows import asked, drawn, foretold, share
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import make
from vitrify.sandboxes.knowledge import Knowledge

WORLD = Path(__file__).parents[3] / "examples" / "world.knowledge.toml"


def test_answers_are_those_of_a_file() -> None:
    sandbox = make("knowledge", {"spec": str(WORLD)})
    assert isinstance(sandbox, Knowledge)
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
    tokens, targets = sandbox.reference(np.random.default_rng(0), 50)
    for row, right in zip(tokens, targets, strict=True):
        word = [sandbox.symbols[k] for k in row if sandbox.symbols[k] != "_"]
        known = sandbox.spec.answer(word)
        assert known is not None
        assert sandbox.answers[right[len(word)]] == known[1]


@pytest.mark.parametrize("shared", [True, False])
def test_a_part_of_the_question_leaves_so_many_values(shared: bool) -> None:
    sandbox = Knowledge(tasks=3, keys=5, templates=2, shared=shared)
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


def test_bad_parameters_are_all_named() -> None:
    with pytest.raises(InputError, match="tasks must be at least 1, not 0; keys must be at least 1, not -1"):
        Knowledge(tasks=0, keys=-1)
    with pytest.raises(InputError, match="at most 65536 queries"):
        Knowledge(tasks=300, keys=300)
    with pytest.raises(InputError, match="must be of type Knowledge, this is of type Dyck"):
        make("knowledge", {"spec": str(WORLD.parent / "brackets.dyck")})
