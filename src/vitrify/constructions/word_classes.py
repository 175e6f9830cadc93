r"""A word-class language becomes an embedding and one hidden layer.

In the spirit of Nandakumar, Mi & Liu (2023, arXiv 2306.17184v1). The two halves have different roles. The **embedding**
forgets everything about a word but its classes: the vector of a word is the sum of the unit vectors of the classes $C$
that it is in, and BOS has a dimension of its own. Heads bring the vectors of the words before it, $n-1$ with its own.
The **hidden layer** is the memory of the rules: one unit for each class-level context $p \in P_n$ is 1 iff every word
of the window is in the class that $p$ has there, and adds 1 to each class that can follow $p$. The unembedding spreads
classes over their words; with a bias of $-\tfrac12$ a logit is positive iff the word may come next.

| part | size |
| --- | --- |
| embedding | $\lvert C\rvert + 1$ |
| heads | $\min(n-1, \ell+1) - 1$ in one layer, $\ell$ the length of the longest sentence; none for $n = 2$ |
| hidden units | $\lvert P_n\rvert$ |
| residual stream | at most $\lvert C\rvert + 1$ for each slot of the window and for the answer; the position code |

No size depends on how many words a class has; only the rows of the embedding and the columns of the unembedding do.

**Exact iff $n \ge n^*$.** A context that matches a window is realised by a sentence with exactly these words there, so
the net's answer is the union of the true answers over all prefixes with that window. From $n^*$ on these are all equal;
below it no legal word is ever lost, but some window gets a word too many. Words that begin no sentence are outside the
language and get whatever their window allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import ANY, table
from vitrify.kit.heads import shift
from vitrify.kit.network import Builder, Network, Readout, Space
from vitrify.kit.positions import CodeName, position_code
from vitrify.net.architecture import Output
from vitrify.net.spaces import Integers, MultiHot
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ngram import BEGIN, END
from vitrify.spec.pattern_files import side_by_side
from vitrify.spec.patterns import Context, WordPatterns

Floats = NDArray[np.float64]

LOGIT_ERROR = 0.25  # what soft attention may do to a logit, which is at least 1/2 away from 0


def word_classes(
    spec: WordPatterns,
    *,
    window: int | None = None,
    attention: AttentionKind = "softmax",
    max_length: int | None = None,
    positions: CodeName = "dyadic",
) -> Network:
    """A transformer whose positive logits are the words that may come next, judged by the last `window` - 1 words.

    The window is $n^*$ unless said: with less the net allows too much, and says so in `about`.
    """
    least = spec.window()
    n = least if window is None else window
    if n < 2:
        raise BuildRefused(f"--window must be at least 2, so that the last word is seen, got {n}")
    contexts = spec.contexts(n)
    names = (BEGIN, *spec.members)
    net = Builder(
        name=f"word classes, window {n}, {attention}",
        inputs=(BEGIN, *spec.vocabulary),
        max_length=max_length or spec.longest,
        attention=attention,
    )
    classes = net.embed("classes", MultiHot(names), memberships(spec, net.inputs, names))
    asked = _asked(contexts, names)
    slots = _slots(net, classes, asked, positions)
    follow = (*spec.members, END)
    next_class = Space("next class", Integers(follow, 0.0, float(len(contexts))))
    table(
        net,
        slots,
        _rows(contexts, asked),
        next_class,
        np.array([[float(name in found) for name in follow] for found in contexts.values()]),
        matches=len(contexts),  # words in many classes may match many contexts
        name="contexts",
        rows=[side_by_side(context) for context in contexts],
    )
    symbols = (*spec.vocabulary, END)
    spread = memberships(spec, symbols, follow).T
    need = LOGIT_ERROR / float(spread.sum(axis=0).max())
    return net.network(
        Output("next", symbols),
        Readout(((next_class, spread),), np.full(len(symbols), -0.5), {next_class: need}),
        {
            "construction": "word classes",
            "shape": "classes",
            "attention": attention,
            "positions": positions if len(slots) > 1 else "none",
            "window": n,
            "least window": least,
            "exact": "yes" if n >= least else f"no: allows too much, never too little; --window {least} is exact",
            "classes": len(spec.members),
            "words": len(spec.vocabulary),
            "contexts": len(contexts),
            "source": "in the spirit of Nandakumar, Mi & Liu 2023, arXiv 2306.17184v1",
        },
        reuse=False,  # no units but the contexts'
    )


def sizes(spec: WordPatterns, n: int) -> dict[str, int]:
    """What the formulas promise for a window of n: embedding, heads, hidden units and slots of the stream."""
    slots = min(n - 1, spec.longest + 1)
    return {
        "embedding": len(spec.members) + 1,
        "attention_layers": min(slots - 1, 1),
        "heads": slots - 1,
        "units": len(spec.contexts(n)),
    }


def memberships(spec: WordPatterns, words: tuple[str, ...], names: tuple[str, ...]) -> Floats:
    """Which words [word, class] are in which classes; BOS and the end are alone in classes of their own."""
    found = np.zeros((len(words), len(names)))
    place = {name: number for number, name in enumerate(names)}
    for number, word in enumerate(words):
        for name in spec.classes_of.get(word, (word,)):
            found[number, place[name]] = 1.0
    return found


def _slots(net: Builder, classes: Space, asked: list[list[str]], positions: CodeName) -> list[Space]:
    """The classes of the last words, the newest first: its own position holds that one already.

    A head copies the classes that some context asks for at its slot, and no others.
    """
    assert isinstance(classes.kind, MultiHot)
    slots, place = [classes], classes.kind.values.index
    if len(asked) > 1:
        code = position_code(positions, net.max_length, range(1, len(asked)))
        where = net.place("position", code.kind(), code.table())
        for back, names in enumerate(asked[1:], start=1):
            only = ([place(name) for name in names], MultiHot(tuple(names)))
            slots.append(shift(net, classes, back, code, where, name=f"{back} back", only=only))
    return slots


def _asked(contexts: Iterable[Context], names: tuple[str, ...]) -> list[list[str]]:
    """The classes that some context asks for at each slot, the newest first."""
    slots = zip_longest(*(reversed(context) for context in contexts))
    return [[name for name in names if name in asked] for asked in map(set, slots)]


def _rows(contexts: Iterable[Context], asked: list[list[str]]) -> NDArray[np.int64]:
    """Contexts as rows of a table [context, slot]; beyond the beginning of the sentence nothing is asked."""
    place = [{name: number for number, name in enumerate(names)} | {None: ANY} for names in asked]
    slots = zip_longest(*(reversed(context) for context in contexts))
    return np.array([[found[name] for name in slot] for found, slot in zip(place, slots, strict=True)]).T


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, WordPatterns)
    return word_classes(
        spec,
        window=settings.window,
        attention=settings.attention,
        max_length=settings.max_length,
        positions=settings.positions or "dyadic",
    )


CONSTRUCTIONS = (
    Construction(
        "classes",
        WordPatterns,
        "an embedding of word classes and one hidden unit per context",
        _make,
        default=True,
        windowed=True,
    ),
)
