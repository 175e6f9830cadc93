r"""A word-class language is memorised from one number per word: an embedding of dimension one and huge weights.

The counterpart of `word_classes`, after the result that $K$ hidden units memorise $K$ pairs (Nandakumar, Qu, Mi & Liu
2025, arXiv 2306.17184v3). Words fall into *types*, the sets of classes that they are in; the embedding is the number of
the type, 0 for BOS. Whole numbers $a_i$ are chosen so that $z = \sum_i a_i x_{t-i}$ is different for each of the
contexts $Q_n$ of $n-1$ types. Through the sorted $z_1 < \dots < z_Q$ goes a continuous piecewise linear function
with the wanted value at each: $y_1 + \sum_{k<Q} (m_k - m_{k-1})\,\mathrm{relu}(z - z_k)$, $m_k$ the slope after $z_k$.

| part | size |
| --- | --- |
| embedding | 1 |
| heads | $\min(n-1, \ell+1) - 1$ in one layer |
| hidden units | $\lvert Q_n\rvert - 1$; where no word is in two classes, $\lvert Q_n\rvert = \lvert P_n\rvert$ |

It answers as `word_classes` does, at a price: weights grow with the number of contexts, nothing can be read off a
unit, and between two contexts the answer is a blend of both.
"""

from __future__ import annotations

from itertools import count, product, zip_longest

import numpy as np
from numpy.typing import NDArray

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.constructions.word_classes import LOGIT_ERROR, memberships
from vitrify.errors import BuildRefused
from vitrify.kit.heads import shift
from vitrify.kit.network import Builder, Network, Readout, Space, Units
from vitrify.kit.positions import CodeName, position_code
from vitrify.net.architecture import Output
from vitrify.net.spaces import Integers, Reals
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ngram import BEGIN, END
from vitrify.spec.patterns import WordPatterns

Floats = NDArray[np.float64]

MOST_CONTEXTS = 20_000  # each is a unit, and the answers are a dense matrix


def word_memory(
    spec: WordPatterns,
    *,
    window: int | None = None,
    attention: AttentionKind = "softmax",
    max_length: int | None = None,
    positions: CodeName = "dyadic",
) -> Network:
    """A transformer with one number per word whose positive logits are the words that may come next."""
    least = spec.window()
    n = least if window is None else window
    if n < 2:
        raise BuildRefused(f"--window must be at least 2, so that the last word is seen, got {n}")
    found = type_contexts(spec, n)
    contexts = np.array(list(zip_longest(*found, fillvalue=0)), dtype=np.int64).T  # [context, slot], the newest first
    weights = projection(contexts)
    net = Builder(
        name=f"word memory, window {n}, {attention}",
        inputs=(BEGIN, *spec.vocabulary),
        max_length=max_length or spec.longest,
        attention=attention,
    )
    number = types(spec)
    ids = np.array([[0.0], *([float(number[spec.classes_of[word]])] for word in spec.vocabulary)])
    kind = Integers(("type",), 0.0, float(len(number)))
    slots = [net.embed("type", kind, ids)]
    if len(weights) > 1:
        code = position_code(positions, net.max_length, range(1, len(weights)))
        place = net.place("position", code.kind(), code.table())
        slots += [shift(net, slots[0], k, code, place, name=f"{k} back") for k in range(1, len(weights))]
    follow = (*spec.members, END)
    next_class = Space("next class", Reals(follow, 0.0, 1.0))
    values = np.array([[float(name in legal) for name in follow] for legal in found.values()])
    net.add(_interpolation(slots, weights, contexts @ weights, values, next_class))
    symbols = (*spec.vocabulary, END)
    spread = memberships(spec, symbols, follow).T
    need = LOGIT_ERROR / float(spread.sum(axis=0).max())
    return net.network(
        Output("next", symbols),
        Readout(((next_class, spread),), np.full(len(symbols), -0.5), {next_class: need}),
        {
            "construction": "word memory",
            "shape": "memory",
            "attention": attention,
            "positions": positions if len(slots) > 1 else "none",
            "window": n,
            "least window": least,
            "exact": "yes" if n >= least else f"no: allows too much, never too little; --window {least} is exact",
            "types": len(number),
            "words": len(spec.vocabulary),
            "contexts": len(contexts),
            "source": "in the spirit of Nandakumar, Qu, Mi & Liu 2025, arXiv 2306.17184v3",
        },
        reuse=False,
    )


def types(spec: WordPatterns) -> dict[frozenset[str], int]:
    """The sets of classes that some word is in, numbered from 1 in the order of the vocabulary."""
    return {kind: place for place, kind in enumerate(dict.fromkeys(spec.classes_of.values()), start=1)}


def type_contexts(spec: WordPatterns, n: int) -> dict[tuple[int, ...], frozenset[str]]:
    """$Q_n$: windows of types that occur, the newest first, 0 for the beginning; and the classes that follow them."""
    number = types(spec)
    inside = {name: [place for kind, place in number.items() if name in kind] for name in spec.members} | {BEGIN: [0]}
    found: dict[tuple[int, ...], frozenset[str]] = {}
    for context, follow in spec.contexts(n).items():
        for window in product(*(inside[name] for name in reversed(context))):
            found[window] = found.get(window, frozenset()) | follow
            if len(found) > MOST_CONTEXTS:
                raise BuildRefused(
                    f"there are more than {MOST_CONTEXTS} windows of word types to memorise: use --shape classes"
                )
    return found


def projection(contexts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers, one per slot, whose weighted sums tell all contexts apart: slot by slot the least that will do."""
    weights: list[int] = []
    sums = np.zeros(len(contexts), dtype=np.int64)
    for slot, column in enumerate(contexts.T):
        wanted = len(np.unique(contexts[:, : slot + 1], axis=0))
        weights.append(next(a for a in count(1) if len(np.unique(sums + a * column)) == wanted))
        sums = sums + weights[-1] * column
    return np.array(weights)


def sizes(spec: WordPatterns, n: int) -> dict[str, int]:
    """What the formulas promise for a window of n."""
    heads = min(n - 1, spec.longest + 1) - 1
    return {"embedding": 1, "heads": heads, "units": len(type_contexts(spec, n)) - 1}


def _interpolation(
    slots: list[Space], weights: NDArray[np.int64], sums: NDArray[np.int64], values: Floats, writes: Space
) -> Units:
    """Units whose sum is the value of each context at its number, and linear between two numbers."""
    order = np.argsort(sums)
    points, wanted = sums[order].astype(float), values[order]
    slopes = np.diff(wanted, axis=0) / np.diff(points)[:, None]
    changes = np.diff(slopes, axis=0, prepend=np.zeros((1, writes.size)))
    steepest = float(np.abs(slopes).max())
    return Units(
        name="memory",
        reads_by=tuple((s, np.full((1, len(changes)), float(a))) for s, a in zip(slots, weights, strict=True)),
        bias=-points[:-1],
        writes_by=((writes, changes),),
        constants=((writes, wanted[0]),),
        gain={slot: steepest * float(a) for slot, a in zip(slots, weights, strict=True)},
        rows=tuple(f"from {point:.0f}" for point in points[:-1]),
    )


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, WordPatterns)
    return word_memory(
        spec,
        window=settings.window,
        attention=settings.attention,
        max_length=settings.max_length,
        positions=settings.positions or "dyadic",
    )


CONSTRUCTIONS = (
    Construction("memory", WordPatterns, "one number per word, and units that interpolate", _make, windowed=True),
)
