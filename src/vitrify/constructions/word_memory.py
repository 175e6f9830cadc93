r"""A word-class language is memorised from one number per word: an embedding of dimension 1 and large weights.

The counterpart of `word_classes`, after the result that $K$ hidden units memorise $K$ pairs (Nandakumar, Qu, Mi & Liu
2025, arXiv 2306.17184v3). Words fall into *types*, the sets of classes that they are in; the embedding is the number of
the type, 0 for BOS. Whole numbers $a_i$ are chosen so that $z = \sum_i a_i x_{t-i}$ is different for each of the
contexts $Q_n$ of $n-1$ types. Through the sorted $z_1 < \dots < z_Q$ goes a continuous piecewise linear function
with the wanted value at each: $y_1 + \sum_{k<Q} (m_k - m_{k-1})\,\mathrm{relu}(z - z_k)$, $m_k$ the slope after $z_k$.

| part | size |
| --- | --- |
| embedding | 1 |
| heads | $H = \min(n-1, \ell+1) - 1$ in one layer |
| hidden units | $\lvert Q_n\rvert - 1$; where no word is in two classes, $\lvert Q_n\rvert = \lvert P_n\rvert$ |
| residual stream | $H + 1 + \lvert C\rvert + 1$ and the position code |

It answers as `word_classes` does, at a price: weights grow with the number of contexts, nothing can be read off a
unit, and between two contexts the answer is a blend of both.
"""

from __future__ import annotations

from itertools import count, product, zip_longest

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.constructions import _words
from vitrify.constructions._words import Window, finish_network, heads, start_builder, with_previous_words
from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, Positions, WindowLength, construction
from vitrify.errors import BuildRefused
from vitrify.kit.network import Affine, Builder, Integers, Network, Reals, Space
from vitrify.kit.positions import CodeName
from vitrify.spec.languages.word_patterns import WordPatterns
from vitrify.spec.ngrams.model import BEGIN

MAX_CONTEXTS = 20_000  # each is a unit, and the answers are a dense matrix


def sizes(
    spec: WordPatterns, *, window: int | None = None, max_length: int | None = None, positions: CodeName = "dyadic"
) -> DeclaredSizes:
    """Return all sizes: one number for each word of the window, positions, and the answer."""
    n = window or spec.window()
    earlier = heads(spec, n)
    width = earlier + len(spec.members) + 2 + _words.position_dimensions(spec, earlier, max_length, positions)
    return DeclaredSizes.of_layers((earlier,), (len(type_contexts(spec, n)) - 1,), width)


@construction("memory", "one number per word, and units that interpolate", sizes, unproved="may have no margin")
def word_memory(
    spec: WordPatterns,
    *,
    window: WindowLength | None = None,
    attention: Attention = "softmax",
    max_length: MaxLength | None = None,
    positions: Positions = "dyadic",
) -> Network:
    """Return a transformer with one number per word whose positive logits are the words that may come next."""
    seen = Window.of(spec, window)
    following = type_contexts(spec, seen.n)
    contexts = np.array(
        list(zip_longest(*following, fillvalue=0)), dtype=np.int64
    ).T  # [context, slot], the newest first
    weights = projection(contexts)
    net = start_builder(seen, "word memory", attention, max_length)
    number = types(spec)
    ids = np.array([[0.0], *([float(number[spec.classes_of[word]])] for word in spec.vocabulary)])
    own = net.embed("type", Integers(("type",), 0.0, float(len(number))), ids)
    slots = with_previous_words(net, own, [None] * (len(weights) - 1), positions)
    next_class = Space("next class", Reals(seen.follow, 0.0, 1.0))
    _interpolate(net, slots, weights, contexts @ weights, seen.answers(following.values()), next_class)
    place = positions if len(slots) > 1 else "none"
    facts = seen.facts("memory", positions=place, types=len(number), contexts=len(contexts))
    return finish_network(
        net, seen, next_class, "word memory", facts, "Nandakumar, Qu, Mi & Liu 2025, arXiv 2306.17184v3"
    )


def types(spec: WordPatterns) -> dict[frozenset[str], int]:
    """Return the sets of classes that some word is in, numbered from 1 in the order of the vocabulary."""
    return {kind: place for place, kind in enumerate(dict.fromkeys(spec.classes_of.values()), start=1)}


def type_contexts(spec: WordPatterns, n: int) -> dict[tuple[int, ...], frozenset[str]]:
    """Return $Q_n$: the windows of types that occur, newest first, 0 for BOS, and the classes that follow each."""
    number = types(spec)
    inside = {name: [place for kind, place in number.items() if name in kind] for name in spec.members} | {BEGIN: [0]}
    following: dict[tuple[int, ...], frozenset[str]] = {}
    for context, follow in spec.contexts(n).items():
        for window in product(*(inside[name] for name in reversed(context))):
            following[window] = following.get(window, frozenset()) | follow
            if len(following) > MAX_CONTEXTS:
                raise BuildRefused(
                    f"there are more than {MAX_CONTEXTS} windows of word types to memorise: use --construction classes"
                )
    return following


def projection(contexts: Ints) -> Ints:
    """Return integers, one per slot, whose weighted sums distinguish all contexts: greedily the least that will do."""
    weights: list[int] = []
    sums = np.zeros(len(contexts), dtype=np.int64)
    for slot, column in enumerate(contexts.T):
        wanted = len(np.unique(contexts[:, : slot + 1], axis=0))
        weights.append(next(a for a in count(1) if len(np.unique(sums + a * column)) == wanted))
        sums = sums + weights[-1] * column
    return np.array(weights)


def _interpolate(net: Builder, slots: list[Space], weights: Ints, sums: Ints, values: Floats, writes: Space) -> None:
    """Add units that interpolate linearly between the values of the contexts, at their weighted sums."""
    order = np.argsort(sums)
    points, wanted = sums[order].astype(float), values[order]
    slopes = np.diff(wanted, axis=0) / np.diff(points)[:, None]
    changes = np.diff(slopes, axis=0, prepend=np.zeros((1, writes.size)))
    steepest = float(np.abs(slopes).max())
    factors = dict(zip(slots, weights.astype(float).tolist(), strict=True))
    read = Affine.of({slot: np.full((1, len(changes)), factor) for slot, factor in factors.items()}, -points[:-1])
    gain = {slot: steepest * factor for slot, factor in factors.items()}
    rows = tuple(f"from {point:.0f}" for point in points[:-1])
    net.units("memory", read, writes, changes, wanted[0], gain=gain, rows=rows)
