"""States of specs: words that lead to equal states have equal answers, now and after every continuation."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from vitrify.spec.kinds import Meaning, Spec, kinds

WORDS, LONGEST, CONTINUED = 120, 7, 4
CASES = {
    f"{kind.spec.__name__} {name} {output}": (spec, output)
    for kind in kinds()
    for name, spec in kind.spec.samples().items()
    for output, meaning in spec.meanings().items()
    if meaning.states is not None
}


def state_after(meaning: Meaning, word: tuple[str, ...]) -> Hashable | None:
    """Return the state after a word; None if it leaves the language."""
    assert meaning.states is not None
    state: Hashable | None = meaning.states.start
    for letter in word:
        state = None if state is None else meaning.states.step(state, letter)
    return state


def drawn(meaning: Meaning, rng: np.random.Generator, start: tuple[str, ...], length: int) -> tuple[str, ...]:
    """Return a random word of at most a length that begins with `start` and stays in the language."""
    word = start
    while len(word) < length:
        letters = [x for x in meaning.inputs if state_after(meaning, (*word, x)) is not None]
        if not letters:
            break
        word = (*word, letters[int(rng.integers(len(letters)))])
    return word


@pytest.mark.parametrize("name", CASES)
def test_equal_states_have_equal_answers_from_then_on(name: str) -> None:
    spec, output = CASES[name]
    assert isinstance(spec, Spec)
    meaning, rng = spec.meanings()[output], np.random.default_rng(0)
    words = {drawn(meaning, rng, (), int(rng.integers(LONGEST + 1))) for _ in range(WORDS)}
    by_state: dict[Hashable, list[tuple[str, ...]]] = {}
    for word in sorted(words):
        by_state.setdefault(state_after(meaning, word), []).append(word)
    assert None not in by_state
    for alike in by_state.values():
        longer = drawn(meaning, rng, alike[0], len(alike[0]) + CONTINUED)[len(alike[0]) :]
        answers = [[*meaning.after((*word, *longer))][len(word) :] for word in alike]
        assert all(other == answers[0] for other in answers[1:]), alike


def test_many_kinds_have_states() -> None:
    assert len({type(spec) for spec, _ in CASES.values()}) >= 3
