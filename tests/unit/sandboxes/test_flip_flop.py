"""Flip-flops against a list of all texts, and against the automaton of the spec."""

from __future__ import annotations

from itertools import product

import jax
import numpy as np
import pytest

from oracles.rows import reference
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Example, examples, make
from vitrify.sandboxes.flip_flop import DENSE, SPARSE, FlipFlop
from vitrify.spec.automata.families import flip_flop


def test_laws_and_losses_are_those_of_all_texts() -> None:
    sandbox = FlipFlop(length=8, ignore=0.5, write=0.2, clean=False)
    chance = {"w": 0.2, "r": 0.3, "i": 0.5}
    texts: list[str] = []
    chances: list[float] = []
    for orders in product("wri", repeat=2):
        for bits in product("01", repeat=4):
            text = "".join(order + bit for order, bit in zip("w" + "".join(orders) + "r", bits, strict=True))
            reads = [k for k in range(0, 8, 2) if text[k] == "r"]
            if all(text[k + 1] == text[text.rindex("w", 0, k) + 1] for k in reads):
                texts.append(text)
                chances.append(chance[orders[0]] * chance[orders[1]] * 0.5 ** (4 - len(reads)))
    assert np.isclose(sum(chances), 1)
    numbers = np.array([["wri01".index(symbol) for symbol in text] for text in texts])
    batch = Example(numbers[:, :-1], numbers, np.ones(numbers.shape), {})
    best = np.asarray(jax.jit(jax.vmap(sandbox.optimal))(batch))
    weights = np.array(chances)
    for place, t in product(range(len(texts)), range(8)):
        same = np.array([text[:t] == texts[place][:t] for text in texts])
        law = np.bincount(numbers[same, t], weights[same], 5) / weights[same].sum()
        assert np.allclose(np.exp(best[place, t]), law, atol=1e-5)
    losses = -np.take_along_axis(best, numbers[..., None], axis=-1)[..., 0]
    assert np.allclose(sandbox.floor(), weights @ losses, atol=1e-5)


def test_reads_show_the_state_of_the_automaton_and_only_they_are_asked() -> None:
    sandbox = FlipFlop(length=30, ignore=0.4, write=0.3)
    batch = jax.device_get(jax.jit(lambda: examples(sandbox, 0, "test", 0, 100))())
    for symbols, weight, stored in zip(batch.targets, batch.weight, batch.latent["stored"], strict=True):
        text = [sandbox.symbols[symbol] for symbol in symbols]
        moves = [
            ("reset", "set")[int(bit)] if order == "w" else "keep"
            for order, bit in zip(text[::2], text[1::2], strict=True)
        ]
        states = flip_flop().run(moves)[1:]
        assert [str(bit) for bit in stored] == list(states)
        assert [bit for order, bit in zip(text[::2], text[1::2], strict=True) if order == "r"] == [
            state for order, state in zip(text[::2], states, strict=True) if order == "r"
        ]
        assert weight.tolist() == [float(t % 2 == 1 and text[t - 1] == "r") for t in range(30)]


def test_who_looks_back_one_pair_knows_what_was_just_written_or_read() -> None:
    sandbox = FlipFlop(length=8)
    tokens = np.array(["wri01".index(symbol) for symbol in "w1r1i0r"])
    law = np.exp(jax.jit(sandbox.previous_pair)(Example(tokens, np.zeros(8, int), np.ones(8), {})))
    assert np.allclose(law[3], [0, 0, 0, 0, 1])
    assert np.allclose(law[7], [0, 0, 0, 0.5, 0.5])
    law = np.exp(jax.jit(sandbox.memoryless)(Example(tokens, np.zeros(8, int), np.ones(8), {})))
    assert np.allclose(law[3], [0, 0, 0, 0.5, 0.5])
    assert np.allclose(law[2], [0.1, 0.1, 0.8, 0, 0], atol=1e-6)


def test_the_tails() -> None:
    """No ignoring at all, and nothing but ignoring, are fine."""
    batches = jax.jit(
        lambda: [examples(FlipFlop(length=10, ignore=p, write=(1 - p) / 2), 0, "test", 0, 200) for p in (0.0, 1.0)]
    )()
    dense, sparse = (np.asarray(batch.targets)[:, 2:-2:2] for batch in batches)
    assert set(dense.reshape(-1).tolist()) == {0, 1}
    assert (sparse == 2).all()


def test_some_rows_come_from_the_tails_and_the_others_are_as_they_were() -> None:
    """Long rows show by their share of ignoring what they were drawn from; NumPy draws as many of each kind."""
    sandbox = FlipFlop(length=402, tails=0.4)
    plain, mixed = jax.jit(
        lambda: [examples(one, 0, "test", 0, 2000).targets for one in (FlipFlop(length=402), sandbox)]
    )()
    theirs = reference(sandbox, np.random.default_rng(0), 2000)[1]
    for targets in (np.asarray(mixed), theirs):
        inner = targets[:, 2:-2:2]
        ignored, written = (inner == 2).mean(axis=1), (inner == 0).mean(axis=1)
        kinds = np.abs(ignored[:, None] - [0.8, SPARSE, DENSE]).argmin(axis=1)
        shares = np.bincount(kinds, minlength=3) / len(kinds)
        assert np.allclose(shares, [0.6, 0.2, 0.2], atol=0.045)  # 5 standard deviations
        for kind, law in enumerate((0.1, (1 - SPARSE) / 2, (1 - DENSE) / 2)):
            assert np.isclose(written[kinds == kind].mean(), law, atol=0.01)
            assert np.isclose(ignored[kinds == kind].mean(), (0.8, SPARSE, DENSE)[kind], atol=0.01)
    same = (np.asarray(plain) == np.asarray(mixed)).all(axis=1)
    assert abs(same.mean() - 0.6) < 0.055


def test_bad_parameters_are_told_at_once() -> None:
    with pytest.raises(
        InputError, match=r"length must be .* at least 4, not 3; tails must be a number from 0 to 1, not 2"
    ):
        make("flip_flop", {"length": 3, "tails": 2, "clean": False})
    both = (
        r"length must be even, not 5; ignore \+ write must be at most 1, not 0.9 \+ 0.2; tails must be 0 unless clean"
    )
    with pytest.raises(InputError, match=both):
        make("flip_flop", {"length": 5, "ignore": 0.9, "write": 0.2, "tails": 0.5, "clean": False})
