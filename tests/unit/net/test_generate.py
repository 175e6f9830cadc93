"""Decoding: against running everything again, step by step; counting, stopping, drawing, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cases import all_pairs, each
from nets import LETTERS, mixed, random_net
from vitrify.constructions.log_depth import log_depth
from vitrify.constructions.ngram import ngram
from vitrify.errors import InputError
from vitrify.kit import assemble
from vitrify.net.architecture import Output
from vitrify.net.generate import generate
from vitrify.net.inference import encode, log_probabilities, logits
from vitrify.net.transformer import Block, Head
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic
from vitrify.spec.ngrams.families import random_ngram

BACK = (
    Head("softmax", "causal"),
    Head("softmax", "strict"),
    Head("sparsemax", "causal", window=3),
    Head("hard", "causal", ties="left", resolution=1e-9),
)
PLAIN = Output("lm", ("a", "b", "c"))  # it never ends


def net(seed: int, *, ahead: bool = False, loops: int = 1, **changes: object) -> Weights:
    heads = (*BACK, Head("softmax", "none")) if ahead else BACK
    blocks = (Block(heads, d_head=2, d_value=3, units=4), Block((BACK[0],), d_head=3, d_value=2))
    return random_net(mixed(blocks=blocks, max_length=12, loops=loops, **{"output": PLAIN, **changes}), seed)


def again(weights: Weights, prompt: str, steps: int) -> list[str]:
    """The likeliest symbol each time, after reading everything from the beginning."""
    words = list(prompt)
    for _ in range(steps):
        (found,) = logits(weights, [encode(weights.architecture, words)])
        words.append(weights.architecture.output.symbols[int(found[-1].argmax())])
    return words[len(prompt) :]


@pytest.mark.long
@each(("seed", "ahead", "loops"), all_pairs(range(4), [False, True], [1, 3]))
def test_it_writes_what_running_everything_again_would(seed: int, ahead: bool, loops: int) -> None:
    weights = net(seed, ahead=ahead, loops=loops)
    prompts = ["", "ab", "cab", "bb", "a"]
    found = generate(weights, prompts, 7)
    assert ["".join(thought.prompt) for thought in found] == prompts
    assert [list(thought.symbols) for thought in found] == [again(weights, prompt, 7) for prompt in prompts]
    assert all(thought.steps == 7 and not thought.stopped for thought in found)


@each("parts", [(1, 1, 1, 1, 1, 1), (6,), (2, 3, 1), (4, 2)])
def test_a_cache_continues_what_was_read_before(parts: tuple[int, ...]) -> None:
    weights, cache = net(0, loops=2), Cache()
    tokens = np.array([[0, 0, 1, 3, 2, 2], [0, 0, 2, 2, 1, 3]])
    whole = weights.architecture.forward(weights.prepared, tokens)
    ends = np.cumsum([0, *parts])
    pieces = [tokens[:, a:b] for a, b in pairwise(ends)]
    found = [weights.architecture.forward(weights.prepared, piece, cache=cache) for piece in pieces]
    assert np.allclose(np.concatenate(found, axis=1), whole, rtol=0, atol=1e-12)


def test_it_stops_at_what_it_does_not_read_and_where_it_is_told() -> None:
    ending = net(1, output=Output("lm", ("</s>", "b", "c")))
    thoughts = generate(ending, ["a", "ab", "abc", "c", "cc"], 8)
    assert {thought.stopped for thought in thoughts} == {True, False}
    for thought in thoughts:
        assert ("</s>" in thought.symbols) == thought.stopped
        assert "</s>" not in thought.symbols[:-1]
        assert thought.steps == 8 or thought.stopped
    free = generate(net(2), ["a", "b"], 8)
    (told,) = {thought.symbols[3] for thought in free[:1]}
    for before, thought in zip(free, generate(net(2), ["a", "b"], 8, stop=[told]), strict=True):
        cut = before.symbols.index(told) + 1 if told in before.symbols else 8
        assert thought.symbols == before.symbols[:cut]
        assert thought.stopped == (told in before.symbols)


@pytest.mark.long
def test_draws_follow_the_probabilities_and_their_seed() -> None:
    weights = net(5)
    some = generate(weights, ["ab"] * 4000, 1, seed=7)
    (found,) = logits(weights, [encode(weights.architecture, "ab")])
    chances = np.exp(log_probabilities(PLAIN, found[-1]))
    shares = np.array([sum(thought.symbols == (s,) for thought in some) / 4000 for s in PLAIN.symbols])
    assert np.abs(shares - chances).max() < 4 * np.sqrt(0.25 / 4000)
    assert some == generate(weights, ["ab"] * 4000, 1, seed=7)
    assert some != generate(weights, ["ab"] * 4000, 1, seed=8)
    mixture = generate(weights, ["a", "ab", "b"], 6, seed=3)
    assert mixture[:2] == generate(weights, ["a", "ab"], 6, seed=3)


def test_a_model_of_strings_ends_them() -> None:
    model = random_ngram(2, 2, seed=1)
    weights = assemble(ngram(model, max_length=40))
    thoughts = generate(weights, [()] * 50, 40, seed=0)
    assert sum(thought.stopped for thought in thoughts) > 45
    assert all(thought.symbols[-1] == "</s>" for thought in thoughts if thought.stopped)


def test_what_does_not_fit_is_refused() -> None:
    weights = net(0)
    assert generate(weights, ["abc"], 10)[0].steps == 10  # twelve are read, the last one is only written
    with pytest.raises(InputError, match="after 3 tokens the network has room for 10 steps, not 11"):
        generate(weights, ["a", "abc"], 11)
    with pytest.raises(InputError, match="a whole number from 0, is -1"):
        generate(weights, ["a"], -1)
    with pytest.raises(InputError, match="does not read 'd'"):
        generate(weights, ["d"], 1)
    assert generate(weights, ["a"], 0)[0].symbols == ()
    assert generate(weights, [], 3) == []


def test_nets_that_do_not_write_are_refused() -> None:
    with pytest.raises(InputError, match="can't generate"):
        generate(assemble(log_depth(cyclic(2), max_length=4)), ["1"], 1)
    with pytest.raises(InputError, match="reads none of the symbols"):
        generate(net(0, output=Output("class", ("yes", "no"))), ["a"], 1)
    with pytest.raises(InputError, match="no probabilities to draw from"):
        generate(net(0, output=Output("class", LETTERS[1:])), ["a"], 1, seed=0)
