"""What can be said of a network without labels: norms, where heads attend, how early an answer is there.

Norms come from the weights. The rest is measured on random words of the network's symbols, which are uniform and
independent: it describes those words, and says nothing about others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vitrify.arrays import Array, Bools, Floats, Ints
from vitrify.net.explain_page import HeadLines
from vitrify.net.inference import log_probabilities, with_pads
from vitrify.net.sparse import affine, dense
from vitrify.net.transformer import Head, Mask, Transformer
from vitrify.net.transformer_forward import Part, normed
from vitrify.net.weights import Weights

WORDS, LENGTH = 64, 32  # random words, and their length where the network reads so many symbols
SEEN: dict[Mask, Callable[[Ints], Bools]] = {  # whether a query sees the key so many positions before it
    "none": lambda offset: np.ones_like(offset, dtype=bool),
    "causal": lambda offset: offset >= 0,
    "strict": lambda offset: offset > 0,
    "after": lambda offset: offset < 0,
}
FLAT = 1e-12  # variance of weights that are all alike, relative to their mean
SHOWN = 3  # offsets at which a head attends


@dataclass(frozen=True, eq=False)
class Measured:
    """A network without labels, and its activations on random words."""

    weights: Weights[Transformer]

    @cached_property
    def words(self) -> Ints:
        """Random words as input ids [word, position], pads included."""
        net, rng = self.weights.architecture, np.random.default_rng(0)
        length = max(min(net.longest, LENGTH), net.min_length)
        return with_pads(net, rng.integers(1, len(net.inputs), size=(WORDS, length)))

    @cached_property
    def seen(self) -> dict[str, Array]:
        """All activations on the words, by name."""
        seen: dict[str, Array] = {}
        self.weights.architecture.forward(self.weights.prepared, self.words, record=seen.__setitem__)
        return seen

    @property
    def tokens(self) -> Ints:
        """The words without their pads."""
        return self.words[:, self.weights.architecture.pads :]

    @property
    def count(self) -> int:
        """The number of heads, those of each pass of a loop."""
        return sum(len(block.heads) for _, block in self.weights.architecture.turns)

    def heads(self, shown: int | None) -> Iterator[HeadLines]:
        """Yield the norms of the first heads, and where they attend on the words."""
        for turn, (index, block) in enumerate(self.weights.architecture.turns):
            for number, head in enumerate(block.heads[:shown]):
                kind = f"{head.attention}, {head.mask if head.mask != 'none' else 'sees all'}"
                attends_to = self.attention(turn, number, head)
                yield HeadLines(f"{turn}.{number}", self.norms(index, number), kind, attends_to, None, ())
            shown = None if shown is None else max(shown - len(block.heads), 0)

    def norms(self, block: int, head: int) -> str:
        """Return the norms of the two products that a head consists of: what it compares, and what it copies."""
        arrays = self.weights.arrays
        q, k, v, o = (dense(arrays[f"blocks.{block}.attn.W_{letter}"][head]) for letter in "QKVO")
        return f"‖W_Q W_Kᵀ‖ = {np.linalg.norm(q @ k.T):.3g}, ‖W_V W_O‖ = {np.linalg.norm(v @ o):.3g}"

    def attention(self, turn: int, number: int, head: Head) -> tuple[str, ...]:
        """Return where a head attends on the words: by offset, by content, and which of both explains more."""
        pads = self.weights.architecture.pads
        pattern = np.asarray(self.seen[f"blocks.{turn}.attn.hook_pattern"])[:, number, pads:]
        inside, tokens = pattern[..., pads:], self.tokens
        length = tokens.shape[1]
        offsets = np.arange(length)[:, None] - np.arange(length)
        visible = SEEN[head.mask](offsets) & (offsets < (head.window or np.inf))
        by_offset = {
            _place(int(offset)): float(inside[:, (offsets == offset) & visible].mean())
            for offset in np.unique(offsets[visible])
        }
        by_offset |= {"BOS": float(pattern[..., :pads].sum(axis=-1).mean())} if pads else {}
        most = sorted(by_offset.items(), key=lambda item: -item[1])[:SHOWN]
        even = np.broadcast_to(visible / np.maximum(visible.sum(axis=-1, keepdims=True) + bool(pads), 1), inside.shape)
        equal = tokens[:, :, None] == tokens[:, None, :]
        match = equal & (offsets > 0)
        after = np.pad(equal, ((0, 0), (0, 0), (1, 0)))[..., :-1] & (offsets >= 0)
        return (
            "mean weights by position: " + ", ".join(f"{weight:.2f} on {name}" for name, weight in most),
            f"by content: {_share(inside, match)} on earlier keys with the query's symbol, {_share(inside, after)} on "
            f"keys right after such a key; evenly spread, {_share(even, match)} and {_share(even, after)}",
            _explained(inside, visible, offsets, tokens),
        )

    def lines(self) -> Iterator[str]:
        """Yield the norm of the residual stream at every moment, and what the unembedding reads there."""
        net, seen = self.weights.architecture, self.seen
        yield f"on {WORDS} random words of {self.tokens.shape[1]} symbols"
        names = ["embedding", *(f"{half} {at}" for at in range(len(net.turns)) for half in ("attention", "MLP"))]
        there = [
            True,
            *(part for _, block in net.turns for part in (bool(block.heads or block.cell), block.halves > 0)),
        ]
        names = [name for name, exists in zip(names, there, strict=True) if exists]
        stream = [np.asarray(seen[moment]) for moment, exists in zip(net.moments, there, strict=True) if exists]
        norms = (f"{np.linalg.norm(x, axis=-1).mean():.3g} after {name}" for x, name in zip(stream, names, strict=True))
        yield "norm of the residual stream: " + ", ".join(norms)
        if net.residual != "add" or net.output.scores != "softmax" or net.output.kind in ("values", "next"):
            return
        final = log_probabilities(net.output, np.asarray(seen["hook_logits"]))
        root = Part(self.weights.arrays, "", None)
        for x, name in zip(stream, names, strict=True):
            shown = normed(net, root, "ln_final", x, 2 * len(net.blocks))[0]
            unembedded = affine(shown, root["unembed.W_U"], root["unembed.b_U"])
            lens = log_probabilities(net.output, np.asarray(unembedded))
            same = (lens.argmax(axis=-1) == final.argmax(axis=-1)).mean()
            divergence = (np.exp(final) * (final - lens)).sum(axis=-1).mean()
            yield f"logit lens after {name}: the final answer at {same:.0%} of the positions, KL {divergence:.3g}"


def _place(offset: int) -> str:
    """Return the position of a key relative to the query, in words."""
    if offset < 0:
        return f"{-offset} ahead"
    return "itself" if offset == 0 else "the previous position" if offset == 1 else f"{offset} back"


def _share(weights: Floats, chosen: Bools) -> str:
    """Return the mean weight on some keys, over the queries that have any."""
    has = chosen.any(axis=-1)
    return f"{(weights * chosen).sum(axis=-1)[has].mean():.2f}" if has.any() else "–"


def _explained(weights: Floats, visible: Bools, offsets: Ints, tokens: Ints) -> str:
    """Return the shares of the variance of weights that offsets explain, and pairs of a query's and a key's symbols."""
    if (weights * visible.sum(axis=-1)[:, None])[:, visible].var() < FLAT:
        return "attends to all that it sees alike"
    before = np.pad(tokens, ((0, 0), (1, 0)))[:, :-1]  # the symbol before each key
    groups = {
        "the offset": np.broadcast_to(offsets, weights.shape),
        "the symbols of query and key": _pairs(tokens, tokens),
        "those of the query and of the word before the key": _pairs(tokens, before),
    }
    values = weights[:, visible]
    shares = [f"{name} {_between(values, group[:, visible]) / values.var():.0%}" for name, group in groups.items()]
    return "of the variance of the weights explain: " + ", ".join(shares)


def _pairs(queries: Ints, keys: Ints) -> Ints:
    """Return a number for each pair of a query's and a key's symbol [word, query, key]."""
    return np.asarray(queries[:, :, None] * (int(keys.max()) + 1) + keys[:, None, :])


def _between(values: Floats, groups: Ints) -> float:
    """Return the variance of the means of groups of values."""
    _, group = np.unique(groups, return_inverse=True)
    count = np.bincount(group.ravel())
    means = np.bincount(group.ravel(), weights=values.ravel()) / count
    return float((count * (means - values.mean()) ** 2).sum() / count.sum())
