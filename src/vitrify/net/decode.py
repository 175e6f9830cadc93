"""Decoding: a network reads what it has written, symbol by symbol, and the steps are counted.

A transformer that looks back only keeps the keys and values of what it has read, so a step costs one position: $n$
symbols cost what reading $n$ symbols costs. Other nets read everything again at each step, $n$ times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import InputError
from vitrify.net.run import batch_logits, batch_of, encode, log_probabilities
from vitrify.net.transformer import Transformer
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Thought:
    """What a network wrote after a prompt; `stopped` says that it came to an end by itself."""

    prompt: tuple[str, ...]
    symbols: tuple[str, ...]
    stopped: bool

    @property
    def steps(self) -> int:
        """How many symbols it wrote."""
        return len(self.symbols)


def decode(
    weights: Weights[Any],
    prompts: Sequence[Sequence[str]],
    steps: int,
    *,
    stop: Collection[str] = (),
    seed: int | None = None,
) -> list[Thought]:
    """Let a network write up to so many symbols after each prompt, each time the likeliest, or with a seed at random.

    It stops after a symbol of `stop`, or one that it does not read itself, such as `</s>`. Draws of different prompts
    are independent, and the same whatever else is in the batch.
    """
    net = weights.architecture
    _check(weights, steps, seed)
    read = [encode(net, prompt) for prompt in prompts]
    for ids in read:
        if len(ids) + steps > net.max_length + 1:  # the last symbol is written and not read
            most = net.max_length + 1 - len(ids)
            raise InputError(
                f"after {len(ids)} tokens the network has room for {most} steps, not {steps}: ask for fewer, or build "
                f"it again for longer sequences"
            )
    done: dict[int, Thought] = {}
    for length in sorted({len(ids) for ids in read}):
        members = [place for place, ids in enumerate(read) if len(ids) == length]
        rngs = None if seed is None else [np.random.default_rng([seed, place]) for place in members]
        written = _written(weights, [read[place] for place in members], steps, stop, rngs)
        for place, symbols in zip(members, written, strict=True):
            ends = bool(symbols) and (symbols[-1] in stop or symbols[-1] not in net.input_ids)
            done[place] = Thought(tuple(prompts[place]), tuple(symbols), ends)
    return [done[place] for place in range(len(read))]


def _check(weights: Weights[Any], steps: int, seed: int | None) -> None:
    net = weights.architecture
    if net.reads != "tokens" or net.output.kind not in ("lm", "class"):
        raise InputError("this network does not write symbols one after the other: it can't decode")
    if not set(net.output.symbols) & set(net.input_ids):
        raise InputError("this network reads none of the symbols that it writes: it can't decode")
    if seed is not None and net.output.kind != "lm":
        raise InputError("this network gives no probabilities to draw from: leave the seed out")
    if steps < 0:
        raise InputError(f"the number of steps must be a whole number from 0, is {steps}")


def _written(
    weights: Weights[Any],
    prompts: list[list[int]],
    steps: int,
    stop: Collection[str],
    rngs: Sequence[np.random.Generator] | None,
) -> list[list[str]]:
    """The symbols written after prompts of one length, in step with each other."""
    output, ids = weights.architecture.output, weights.architecture.input_ids
    number = np.array([ids.get(symbol, 0) for symbol in output.symbols])  # by which a symbol is read
    final = np.array([symbol not in ids or symbol in stop for symbol in output.symbols])
    tokens, _ = batch_of(weights.architecture, prompts)
    follow = _reader(weights)
    written: list[Ids] = []
    ended = np.full(len(prompts), steps)  # after how many symbols each thought is over
    while len(written) < steps and (ended > len(written)).any():
        last = follow(tokens)
        chosen = last.argmax(axis=-1) if rngs is None else _drawn(np.exp(log_probabilities(output, last)), rngs)
        written.append(chosen)
        ended = np.where(final[chosen], np.minimum(ended, len(written)), ended)
        tokens = number[chosen][:, None]
    columns = np.stack(written, axis=1).tolist() if written else [[] for _ in prompts]
    pairs = zip(columns, ended.tolist(), strict=True)
    return [[output.symbols[place] for place in row[:end]] for row, end in pairs]


def _drawn(chances: Floats, rngs: Sequence[np.random.Generator]) -> Ids:
    """One symbol for each row of probabilities."""
    ends = np.cumsum(chances, axis=-1)
    points = np.array([rng.random() for rng in rngs]) * ends[:, -1]
    below = (ends <= points[:, None]).sum(axis=-1)
    return np.asarray(np.minimum(below, ends.shape[1] - 1))


def _reader(weights: Weights[Any]) -> Callable[[Ids], Floats]:
    """A function that reads more tokens [batch, new] and gives the logits at the last [batch, out]."""
    net = weights.architecture
    if isinstance(net, Transformer) and not net.looks_ahead:
        cache = Cache()
        return lambda tokens: np.asarray(net.forward(weights.prepared, tokens, cache=cache))[:, -1]
    seen: list[Ids] = []

    def reread(tokens: Ids) -> Floats:
        seen.append(tokens)
        return batch_logits(weights, np.concatenate(seen, axis=1))[:, -1]

    return reread
