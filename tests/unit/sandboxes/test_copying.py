"""Copying: answers as the task spec has them, in three orders and for texts of different symbols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from exact_rows import asked, drawn, foretold, share, told
from runs import repeats
from vitrify.errors import InputError
from vitrify.sandboxes.copying import CopyingSandbox
from vitrify.spec.tasks.copying import Copying as Task

ORDERS: dict[str, Callable[[list[str]], list[str]]] = {
    "copy": lambda text: text,
    "reverse": lambda text: text[::-1],
    "sort": sorted,
}


@pytest.mark.parametrize(("mode", "distinct"), [("copy", False), ("reverse", True), ("sort", False)])
def test_answers_are_those_of_the_task(mode: Any, distinct: bool) -> None:
    sandbox = CopyingSandbox(states=9, shortest=2, longest=7, mode=mode, distinct=distinct)
    found = drawn(sandbox, 400)
    best = foretold(sandbox, found)
    task = Task(symbols=9, size=9, gram=1)
    count = 0
    for number, (word, answers) in enumerate(asked(sandbox, found)):
        length = word.index("|")
        assert length == found.latent["length"][number]
        text, again, blanks = word[:length], word[length + 1 : 2 * length + 1], word[2 * length + 1 :]
        assert again == ORDERS[mode](text)
        assert set(blanks) <= {"_"}
        told_of = told(task.answers([*again, "|", *again]))  # the copy of a text in its new order
        assert answers == told_of
        assert [sandbox.answers[best[number, t].argmax()] for t in answers] == [*answers.values()]
        count += repeats(task, text)
    assert (count == 0) == distinct


def test_lengths_and_texts_are_uniform() -> None:
    found = drawn(CopyingSandbox(states=3, shortest=1, longest=3, distinct=True), 30_000)
    texts = Counter(tuple(row[: row.tolist().index(0)].tolist()) for row in found.tokens)
    assert len(texts) == 3 + 6 + 6
    wanted = {1: 1 / 9, 2: 1 / 18, 3: 1 / 18}
    assert share([*texts.values()], [wanted[len(text)] for text in texts]) > 1e-6


def test_whoever_knows_the_symbols_but_no_order_pays_for_the_order() -> None:
    sandbox = CopyingSandbox(states=20, shortest=10, longest=10, distinct=True)
    found = drawn(sandbox, 20)
    guess = np.asarray(jax.jit(jax.vmap(sandbox.multiset))(found))
    right = np.take_along_axis(guess, found.targets[..., None], axis=-1)[..., 0]
    assert np.allclose(right[found.weight > 0], -np.log(11))


def test_bad_parameters_are_all_named() -> None:
    with pytest.raises(InputError, match=r"states must be .* from 1 to 65,535, not 0; shortest must be .* from 1"):
        CopyingSandbox(states=0, shortest=0, longest=4)
    with pytest.raises(
        InputError, match=r"longest must be at least shortest = 5, not 4; longest must be at most states"
    ):
        CopyingSandbox(states=3, shortest=5, longest=4, distinct=True)
