"""Autoregressive generation: a network reads each symbol that it has written.

A causal transformer caches keys and values, a recurrent net its state, so a step costs one position. Other nets read
the whole sequence again at each step: $n$ symbols cost $n$ times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.errors import InputError
from vitrify.limits import checked_seed
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import batch_logits, batch_of, encode, log_probabilities
from vitrify.net.recurrent import Recurrent
from vitrify.net.transformer import Transformer
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights


@dataclass(frozen=True)
class Generation:
    """The `symbols` that a network wrote after a prompt; `stopped` is true if the last one ended the text."""

    prompt: tuple[str, ...]
    symbols: tuple[str, ...]
    stopped: bool

    @property
    def steps(self) -> int:
        """The number of symbols written."""
        return len(self.symbols)


def generate(
    weights: Weights[SequenceArchitecture],
    prompts: Sequence[Sequence[str]],
    steps: int,
    *,
    stop: Collection[str] = (),
    seed: int | None = None,
) -> list[Generation]:
    """Generate up to `steps` symbols after each prompt: the likeliest one each time, or with a seed a random one.

    Generation stops after a symbol of `stop`, or one that the network does not read itself, such as `</s>`. Samples of
    different prompts are independent, and do not depend on the other prompts of the batch.
    """
    net = weights.architecture
    check_generation(weights, steps, seed)
    prompt_ids = [encode(net, prompt) for prompt in prompts]
    for ids in prompt_ids:
        if len(ids) + steps > net.longest + 1:  # the last symbol is written and not read
            max_steps = net.longest + 1 - len(ids)
            raise InputError(
                f"after {len(ids)} tokens the network has room for {max_steps} steps, not {steps}: ask for fewer, or "
                f"build it again for longer sequences"
            )
    generations: dict[int, Generation] = {}
    for length in sorted({len(ids) for ids in prompt_ids}):
        batch = [index for index, ids in enumerate(prompt_ids) if len(ids) == length]
        rngs = None if seed is None else [np.random.default_rng([seed, index]) for index in batch]
        texts = _generate_batch(weights, [prompt_ids[index] for index in batch], steps, stop, rngs)
        for index, symbols in zip(batch, texts, strict=True):
            stopped = bool(symbols) and (symbols[-1] in stop or symbols[-1] not in net.input_ids)
            generations[index] = Generation(tuple(prompts[index]), tuple(symbols), stopped)
    return [generations[index] for index in range(len(prompts))]


def check_generation(weights: Weights[SequenceArchitecture], steps: int, seed: int | None) -> None:
    """Refuse a network that writes no symbols one after the other, and numbers that make no sense."""
    net = weights.architecture
    if net.reads != "tokens" or net.output.kind not in ("lm", "class"):
        raise InputError("this network does not write symbols one after the other: it can't generate")
    if not set(net.output.symbols) & set(net.input_ids):
        raise InputError("this network reads none of the symbols that it writes: it can't generate")
    if seed is not None:
        checked_seed(seed)
    if seed is not None and net.output.kind != "lm":
        raise InputError("this network gives no probabilities to draw from: leave the seed out")
    if steps < 0:
        raise InputError(f"the number of steps must be a whole number from 0, is {steps}")


def _generate_batch(
    weights: Weights[SequenceArchitecture],
    prompts: list[list[int]],
    steps: int,
    stop: Collection[str],
    rngs: Sequence[np.random.Generator] | None,
) -> list[list[str]]:
    """Return the symbols generated after prompts of one length, one step for all prompts at a time."""
    output, ids = weights.architecture.output, weights.architecture.input_ids
    input_id = np.array([ids.get(symbol, 0) for symbol in output.symbols])  # of each output symbol
    final = np.array([symbol not in ids or symbol in stop for symbol in output.symbols])
    tokens, _ = batch_of(weights.architecture, prompts)
    last_logits = _incremental(weights)
    columns: list[Ints] = []  # the output symbols of each step [batch]
    lengths = np.full(len(prompts), steps)
    while len(columns) < steps and (lengths > len(columns)).any():
        logits = last_logits(tokens)
        chosen = logits.argmax(axis=-1) if rngs is None else _sample(np.exp(log_probabilities(output, logits)), rngs)
        columns.append(chosen)
        lengths = np.where(final[chosen], np.minimum(lengths, len(columns)), lengths)
        tokens = input_id[chosen][:, None]
    sequences = np.stack(columns, axis=1).tolist() if columns else [[] for _ in prompts]
    pairs = zip(sequences, lengths.tolist(), strict=True)
    return [[output.symbols[index] for index in sequence[:length]] for sequence, length in pairs]


def _sample(probabilities: Floats, rngs: Sequence[np.random.Generator]) -> Ints:
    """Sample one symbol from each row of probabilities, with a random generator for each."""
    cumulative = np.cumsum(probabilities, axis=-1)
    points = np.array([rng.random() for rng in rngs]) * cumulative[:, -1]
    below = (cumulative <= points[:, None]).sum(axis=-1)
    return np.asarray(np.minimum(below, cumulative.shape[1] - 1))


def _incremental(weights: Weights[SequenceArchitecture]) -> Callable[[Ints], Floats]:
    """Return a function that appends tokens [batch, new] to the input and returns the last logits [batch, out]."""
    net = weights.architecture
    if isinstance(net, Transformer | Recurrent) and not net.looks_ahead:
        cache = Cache()
        return lambda tokens: np.asarray(net.forward(weights.prepared, tokens, cache=cache))[:, -1]
    parts: list[Ints] = []

    def reread(tokens: Ints) -> Floats:
        parts.append(tokens)
        return batch_logits(weights, np.concatenate(parts, axis=1))[:, -1]

    return reread
