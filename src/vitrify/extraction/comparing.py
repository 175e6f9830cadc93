r"""Two networks on the same words: their answers, where their heads attend, and when their units fire.

Neither needs the architecture of the other, nor its basis. The nearest head is that with the least total variation
distance of the attention, averaged over the positions of all words; the nearest hidden unit that with the largest
correlation of activations. Heads and units that do the same have the distance 0 and the correlation 1. A unit that is
constant on these words has the correlation 0 with all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.extraction.automata import OPPOSITES
from vitrify.extraction.result import LengthErrors
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.weights import Weights

ALL, RANDOM = 1 << 12, 256  # words of all lengths together that are compared, and longer random ones of a length
MAX_RANDOM = 1 << 12  # their longest length
TRACED, MAX_TRACED = 64, 64  # random words, and their longest length, on which heads and units are compared
CONSTANT = 1e-9  # standard deviation of a unit that never changes
HEADS, UNITS = ".attn.hook_pattern", ".hook_post"  # ends of the names of activations


@dataclass(frozen=True)
class Partner:
    """A head or unit, the nearest one of the other network, and their distance, or the correlation of units."""

    name: str
    partner: str | None
    near: float


@dataclass(frozen=True)
class NetComparison:
    """What two networks have in common: words after which they answer otherwise, by length; nearest heads and units."""

    lengths: tuple[LengthErrors, ...]
    word: tuple[str, ...] | None  # the shortest one after which the answers differ
    answers: tuple[str, str] | None
    heads: tuple[Partner, ...] = field(default=(), repr=False)
    units: tuple[Partner, ...] = field(default=(), repr=False)

    def to_json(self) -> JsonObject:
        """Return the comparison as plain JSON data."""
        lengths = [
            {"length": each.length, "words": each.words, "different": each.wrong, "complete": each.complete}
            for each in self.lengths
        ]
        heads, units = ([vars(each) for each in some] for some in (self.heads, self.units))
        return {"lengths": lengths, "word": self.word, "answers": self.answers, "heads": heads, "units": units}


def compare(
    net: Weights[SequenceArchitecture],
    other: Weights[SequenceArchitecture],
    *,
    max_length: int | None = None,
    seed: int = 0,
) -> NetComparison:
    """Compare two networks on all words up to a length over the symbols that both read, and on longer random ones.

    >>> import vitrify as v
    >>> spec = v.read("cyclic:3")
    >>> both = compare(v.build(spec, max_length=8), v.build(spec, "elman"))
    >>> sum(each.wrong for each in both.lengths), both.word
    (0, None)
    """
    symbols = [symbol for symbol in net.architecture.inputs[1:] if symbol in other.architecture.inputs[1:]]
    for one in (net.architecture, other.architecture):
        if one.reads != "tokens" or one.pads < 1 or one.looks_ahead or one.min_length or not symbols:
            raise InputError("networks are compared that answer after every letter, begin with BOS and share symbols")
    names = _comparable(net, other)
    lengths, word, answers = [], None, None
    longest = min(net.architecture.max_length, other.architecture.max_length)
    rng = np.random.default_rng(seed)
    for words, complete in _words(len(symbols), longest, max_length, rng):
        ours, theirs = (_answers(one, _tokens(one, symbols, words), *names) for one in (net, other))
        wrong = [row for row, (one, two) in enumerate(zip(ours, theirs, strict=True)) if one != two]
        lengths.append(LengthErrors(words.shape[1], len(words), len(wrong), complete))
        if len(wrong) and word is None:
            word = tuple(symbols[letter] for letter in words[wrong[0]])
            answers = (ours[wrong[0]], theirs[wrong[0]])
    some = rng.integers(len(symbols), size=(TRACED, min(longest, MAX_TRACED)))
    traces = [_trace(one, _tokens(one, symbols, some)) for one in (net, other)]
    heads, units = (_partners(traces[0][kind], traces[1][kind], kind) for kind in ("heads", "units"))
    return NetComparison(tuple(lengths), word, answers, heads, units)


def _words(letters: int, longest: int, max_length: int | None, rng: np.random.Generator) -> Iterator[tuple[Ints, bool]]:
    """Yield words of one length after the other, all of them while there are few, then random ones; and which."""
    if max_length is not None and (max_length > longest or letters**max_length > 1 << 20):
        raise InputError(f"all words of length {max_length} can't be compared: choose a smaller --max-length")
    length, total = 0, 0
    while length <= longest and (total + letters**length <= ALL if max_length is None else length <= max_length):
        numbers = np.arange(letters**length)
        yield numbers[:, None] // letters ** np.arange(length - 1, -1, -1, dtype=np.int64) % letters, True
        total, length = total + letters**length, length + 1
    length = max(length - 1, 1)
    while length < longest:
        length = min(2 * length, longest, MAX_RANDOM)
        yield rng.integers(letters, size=(RANDOM, length)), False
        if length == MAX_RANDOM:
            return


def _tokens(weights: Weights[SequenceArchitecture], symbols: list[str], words: Ints) -> Ints:
    ids = np.array([weights.architecture.input_ids[symbol] for symbol in symbols], dtype=np.int64)
    return ids[words]


def _comparable(
    net: Weights[SequenceArchitecture], other: Weights[SequenceArchitecture]
) -> tuple[bool, tuple[str, ...]]:
    """Return whether answers are compared by name, or else by whether they accept; and the names that both have."""
    outputs = [one.architecture.output for one in (net, other)]
    if any(output.kind in ("lm", "values") for output in outputs):
        raise InputError("answers that are symbols or sets are compared: for probabilities, use certify --max-error")
    if {*outputs[0].symbols} == {*outputs[1].symbols} and outputs[0].kind == outputs[1].kind:
        return True, outputs[0].symbols
    if any(output.kind == "next" or not _accepting(output.symbols, output.accepting) for output in outputs):
        texts = [", ".join(output.symbols[:6]) for output in outputs]
        raise InputError(f"the answers of the two networks are not about the same: {texts[0]}; and {texts[1]}")
    return False, ()


def _accepting(symbols: tuple[str, ...], accepting: tuple[str, ...]) -> tuple[str, ...]:
    """Return the answers that accept."""
    return accepting or tuple(yes for yes, no in OPPOSITES.items() if {*symbols} == {yes, no})


def _answers(weights: Weights[SequenceArchitecture], words: Ints, by_name: bool, names: tuple[str, ...]) -> list[str]:
    """Return the answer after each word: a name, a set of names, or whether it accepts."""
    net = weights.architecture
    last = batch_logits(weights, with_pads(net, words))[:, -1]
    if net.output.kind == "next":
        order = [net.output.symbols.index(name) for name in names]
        legal = (last[:, order] > 0).tolist()
        return [" ".join(name for name, may_come in zip(names, row, strict=True) if may_come) for row in legal]
    answers = [net.output.symbols[int(best)] for best in last.argmax(axis=-1)]
    accepting = _accepting(net.output.symbols, net.output.accepting)
    return answers if by_name else [("no", "yes")[answer in accepting] for answer in answers]


def _trace(weights: Weights[SequenceArchitecture], words: Ints) -> dict[str, dict[str, Floats]]:
    """Return the attention [word, query, key] of every head and the activations [word, position] of every unit.

    All BOS tokens count as one key, the first.
    """
    seen: dict[str, object] = {}
    net = weights.architecture
    net.forward(weights.prepared, with_pads(net, words), record=seen.__setitem__)
    heads, units, start = dict[str, Floats](), dict[str, Floats](), net.pads - 1
    for name, value in seen.items():
        block = name.removesuffix(HEADS).removesuffix(UNITS).removeprefix("blocks.").split(".")[0]
        if name.endswith(HEADS):
            pattern = np.asarray(value, dtype=np.float64)[:, :, start:]
            first = pattern[..., : start + 1].sum(axis=-1, keepdims=True)
            pattern = np.concatenate([first, pattern[..., start + 1 :]], axis=-1)
            heads |= {f"{block}.{head}": pattern[:, head] for head in range(pattern.shape[1])}
        elif name.endswith(UNITS) and isinstance(value, np.ndarray):
            units |= {f"{block}.{unit}": value[:, start:, unit] for unit in range(value.shape[-1])}
    return {"heads": heads, "units": units}


def _partners(ours: dict[str, Floats], theirs: dict[str, Floats], kind: str) -> tuple[Partner, ...]:
    """Return the nearest part of the other network for every part of one."""
    others = [*theirs]
    if not ours or not others:
        return tuple(Partner(name, None, 0.0 if kind == "units" else 1.0) for name in ours)
    if kind == "units":
        a, b = (_standard(np.array([each.ravel() for each in some.values()])) for some in (ours, theirs))
        near = a @ b.T / a.shape[1]
    else:
        near = np.array([[-np.abs(x - y).sum(axis=-1).mean() / 2 for y in theirs.values()] for x in ours.values()])
    best = near.argmax(axis=1)
    return tuple(
        Partner(name, others[place], abs(float(row[place]))) for name, place, row in zip(ours, best, near, strict=True)
    )


def _standard(rows: Floats) -> Floats:
    """Return activations [unit, case] with mean 0 and variance 1; 0 where one is constant."""
    rows = rows - rows.mean(axis=1, keepdims=True)
    spread = rows.std(axis=1, keepdims=True)
    return np.where(spread > CONSTANT, rows / np.maximum(spread, CONSTANT), 0.0)
