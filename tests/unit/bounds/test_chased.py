"""Pairs of functions that a chain of thought confuses: against all functions; complete chains have none."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cases import each
from vitrify.bounds.chased import followed, lookup_chain, refute_chain, transcripts
from vitrify.bounds.composition import functions
from vitrify.errors import InputError

N = 3
EVERY = [tuple(f) for f in functions(N).tolist()]


def pointers(f: tuple[int, ...], g: tuple[int, ...], x: int) -> list[int]:
    """x, g(x), f(g(x)), g(f(g(x))), one after the other."""
    return [x, g[x], f[g[x]], g[f[g[x]]], f[g[f[g[x]]]]]


def test_hops_are_taken_in_turn() -> None:
    for f, g, x in product(EVERY[::5], EVERY[::7], range(N)):
        assert [followed(f, g, x, hops) for hops in range(5)] == pointers(f, g, x)


@pytest.mark.long
@each("steps, dropped", [(1, 0), (2, 0), (3, 0), (4, 0), (2, 1), (4, 1)])
def test_the_search_finds_a_pair_if_there_is_one(steps: int, dropped: int) -> None:
    chain = lookup_chain(N, steps, 3, dropped)
    for g, x, hops in product(EVERY[::9], range(N), (2, 4)):
        ends: dict[object, set[int]] = {}
        for f in EVERY:
            sent = tuple(chain.together(f, g, x).messages)
            ends.setdefault(sent, set()).add(followed(f, g, x, hops))
        search = refute_chain(chain, hops, g, x)
        assert (search.refutation is not None) == any(len(answers) > 1 for answers in ends.values())
        if search.refutation:
            first, second = search.refutation
            assert chain.together(first, g, x).messages == chain.together(second, g, x).messages
            assert pointers(first, g, x)[hops] != pointers(second, g, x)[hops]


def test_transcripts_are_what_two_parties_send() -> None:
    chain, g, x = lookup_chain(4, 3, 3, 0), (2, 0, 3, 1), 1
    some = np.random.default_rng(0).integers(4, size=(12, 4))
    tokens, sent = transcripts(chain, some, g, x)
    runs = [chain.together(f, g, x) for f in some.tolist()]
    assert [run.output for run in runs] == tokens.tolist()
    messages = [tuple(m.bits for m in run.messages if m.sender == "Alice") for run in runs]
    for one, other in product(range(12), repeat=2):
        assert (messages[one] == messages[other]) == (sent[one] == sent[other])


def test_few_bits_alone_refute_no_chain() -> None:
    """A complete chain writes less than f has, so some functions have one transcript; but their pointers agree."""
    g = np.random.default_rng(3).permutation(16).tolist()
    search = refute_chain(lookup_chain(16, 2, 5), 2, g, 0, 2000)
    assert search.bits == 44 < search.needed == 64
    assert search.refutation is None
    assert search.alike is not None
    first, second = search.alike
    assert first != second
    assert followed(first, g, 0, 2) == followed(second, g, 0, 2)
    assert any(followed(first, g, x, 2) != followed(second, g, x, 2) for x in range(16))


def test_values_must_fit() -> None:
    with pytest.raises(InputError, match="16 elements less 0 digits do not fit signed numbers of 4 bits"):
        lookup_chain(16, 2, 4)
