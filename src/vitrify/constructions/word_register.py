r"""A word-class language becomes a linear recurrence: a shift register of class vectors, then one hidden layer.

In the spirit of Nandakumar, Qu, Mi & Liu (2025, arXiv 2306.17184v3, *State space models can express n-gram languages*;
v1 under the same number is another paper, on which `word_classes` rests). A token is the sum of the unit vectors of its
classes $C$, and BOS is zero. The state holds the last $r$ tokens in $r$ blocks: $B$ writes the newest block, and $A$
moves every block one place on (only the classes that a context reads there), so that $A^r = 0$ and whatever came before
is forgotten without a trace. On the state stand the rules of `word_classes`: the unit of a context $p \in P_n$ is 1 iff
every word is in the class that $p$ has there and, where $p$ begins with the beginning of the sentence, that block is
still empty; it adds 1 to each class that can follow, and the unembedding spreads classes over words.

| part | size |
| --- | --- |
| embedding | $\lvert C\rvert$ |
| state | $r\lvert C\rvert$, $r = \min(n-1, \ell)$, $\ell$ the length of the longest sentence |
| transition | $\sum_{c \in C} \min(d_c, r-1)$ ones, $d_c$ the most words that can come after class $c$; $A^r = 0$ |
| hidden units | $\lvert P_n\rvert$ |

No size depends on how many words a class has. Every number of a run is a whole number or half of one, so nothing is
rounded. Exact iff $n \ge n^*$, the least $n$ whose window determines the next words; below it no legal word is
lost, but some are too many, for the reason given in `word_classes`.
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions._words import Window, memberships, newest_first, words_after
from vitrify.constructions.catalogue import DeclaredSizes, MaxLength, WindowLength, construction
from vitrify.net.cells import Cell
from vitrify.net.labels import Labels, SpaceLabel, UnitsLabel
from vitrify.net.recurrent import Recurrent
from vitrify.net.spaces import Integers, MultiHot
from vitrify.net.sparse import from_entries
from vitrify.net.weights import Weights
from vitrify.spec.languages.word_patterns import Context, WordPatterns, side_by_side
from vitrify.spec.ngrams.model import BEGIN


def sizes(spec: WordPatterns, *, window: int | None = None) -> DeclaredSizes:
    """Return all sizes: the width is the state."""
    n = window or spec.window()
    return DeclaredSizes.of_layers((0,), (len(spec.contexts(n)),), min(n - 1, spec.longest) * len(spec.members))


def count_shifts(spec: WordPatterns, n: int) -> int:
    """Return the ones of the transition for a window of n."""
    blocks = min(n - 1, spec.longest)
    return sum(min(words, blocks - 1) for words in words_after(spec).values())


@construction(
    "register",
    "a shift register of word classes and one hidden unit per context",
    sizes,
    certified=("every length", "every length"),
)
def word_register(
    spec: WordPatterns, *, window: WindowLength | None = None, max_length: MaxLength | None = None
) -> Weights[Recurrent]:
    """Return a recurrent net whose positive logits are the words that may follow the last `window` - 1 words."""
    seen = Window.of(spec, window)
    contexts, names = tuple(spec.contexts(seen.n)), tuple(spec.members)
    slots = [[c for c, name in enumerate(names) if name in slot] for slot in newest_first(contexts)]
    blocks = [classes for classes in slots if classes]  # of the classes that some context has there, newest first
    state = len(blocks) * len(names)
    net = Recurrent(
        inputs=seen.inputs,
        output=seen.output,
        max_length=max_length or spec.longest,
        d_embed=len(names),
        cell=Cell("linear", state),
        units=len(contexts),
        d_out=len(seen.follow),
        name=f"word register, window {seen.n}",
    )
    moved = np.array([at * len(names) + c for at, classes in enumerate(blocks) if at for c in classes], dtype=np.int64)
    reads, units, signs = _rules(contexts, names, blocks)
    spread, bias = seen.unembedding()
    arrays = {
        "embed.W_E": memberships(spec, seen.inputs, names),
        "blocks.0.rec.W_A": from_entries(moved - len(names), moved, np.ones(len(moved)), (state, state)),
        "blocks.0.rec.W_B": np.eye(len(names), state),
        "blocks.0.mlp.W_in": from_entries(reads, units, signs, (state, len(contexts))),
        "blocks.0.mlp.b_in": 1.0 - np.array([len(context) - context.count(BEGIN) for context in contexts]),
        "blocks.0.mlp.W_out": seen.answers(spec.contexts(seen.n).values()),
        "blocks.0.mlp.b_out": np.zeros(len(seen.follow)),
        "unembed.W_U": spread,
        "unembed.b_U": bias,
    }
    about = {
        "construction": "word register",
        **seen.facts("register", classes=len(names), contexts=len(contexts)),
        "source": "in the spirit of Nandakumar, Qu, Mi & Liu 2025, arXiv 2306.17184v3",
    }
    return Weights(net, arrays, _labels(seen, contexts, names, len(blocks)), about)


def _rules(
    contexts: tuple[Context, ...], names: tuple[str, ...], blocks: list[list[int]]
) -> tuple[list[int], list[int], list[float]]:
    """Return the entries of the units' input matrix: 1 for the class of each block, -1 where it must be empty."""
    index = {name: number for number, name in enumerate(names)}
    entries = [
        (at * len(names) + c, unit, -1.0 if name == BEGIN else 1.0)
        for unit, context in enumerate(contexts)
        for at, name in enumerate(reversed(context))
        if at < len(blocks)
        for c in (blocks[at] if name == BEGIN else [index[name]])
    ]
    reads, units, signs = map(list, zip(*entries, strict=True))
    return reads, units, signs


def _labels(window: Window, contexts: tuple[Context, ...], names: tuple[str, ...], blocks: int) -> Labels:
    classes, size = MultiHot(names), len(names)
    spaces = [SpaceLabel("classes", classes, tuple(range(size)), 0, 0)]
    for at in range(blocks):
        dims = tuple(range(at * size, (at + 1) * size))
        spaces.append(SpaceLabel(f"{at} back", classes, dims, 1, 1))
    follow = Integers(window.follow, 0.0, float(len(contexts)))
    spaces.append(SpaceLabel("next class", follow, tuple(range(follow.size)), 2, 2))
    rows = tuple(side_by_side(context) for context in contexts)
    return Labels(tuple(spaces), (), (UnitsLabel("contexts", 0, 0, len(contexts), ("next class",), rows),))
