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

import numpy as np
from numpy.typing import NDArray

from vitrify.constructions._words import (
    Window,
    begun,
    finished,
    from_settings,
    heads,
    memberships,
    newest_first,
    with_earlier,
)
from vitrify.constructions.catalogue import Construction
from vitrify.kit.gadgets import ANY, table
from vitrify.kit.network import Network, Space
from vitrify.kit.positions import CodeName
from vitrify.net.spaces import Integers, MultiHot
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ngram import BEGIN
from vitrify.spec.pattern_files import side_by_side
from vitrify.spec.patterns import Context, WordPatterns


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
    seen = Window.of(spec, window)
    contexts = spec.contexts(seen.n)
    names = (BEGIN, *spec.members)
    net = begun(seen, "word classes", attention, max_length)
    classes = net.embed("classes", MultiHot(names), memberships(spec, net.inputs, names))
    asked = [[name for name in names if name in slot] for slot in newest_first(contexts)]
    # A head copies the classes that some context asks for at its slot, and no others.
    only = [([names.index(name) for name in slot], MultiHot(tuple(slot))) for slot in asked[1:]]
    slots = with_earlier(net, classes, only, positions)
    next_class = Space("next class", Integers(seen.follow, 0.0, float(len(contexts))))
    table(
        net,
        slots,
        _rows(contexts, asked),
        next_class,
        seen.answers(contexts.values()),
        matches=len(contexts),  # words in many classes may match many contexts
        name="contexts",
        rows=[side_by_side(context) for context in contexts],
    )
    about = seen.about(
        "word classes",
        "classes",
        "Nandakumar, Mi & Liu 2023, arXiv 2306.17184v1",
        attention=attention,
        positions=positions if only else "none",
        classes=len(spec.members),
        contexts=len(contexts),
    )
    return finished(net, seen, next_class, about)


def sizes(spec: WordPatterns, n: int) -> dict[str, int]:
    """What the formulas promise for a window of n: embedding, heads and hidden units."""
    return {
        "embedding": len(spec.members) + 1,
        "attention_layers": min(heads(spec, n), 1),
        "heads": heads(spec, n),
        "units": len(spec.contexts(n)),
    }


def _rows(contexts: Iterable[Context], asked: list[list[str]]) -> NDArray[np.int64]:
    """Contexts as rows of a table [context, slot]; beyond the beginning of the sentence nothing is asked."""
    place = [{name: number for number, name in enumerate(names)} | {None: ANY} for names in asked]
    found = zip(place, newest_first(contexts), strict=True)
    return np.array([[numbers[name] for name in slot] for numbers, slot in found]).T


CONSTRUCTIONS = (
    Construction(
        "classes",
        WordPatterns,
        "an embedding of word classes and one hidden unit per context",
        from_settings(word_classes),
        default=True,
        choices=("attention", "max_length", "positions", "window"),
        certified="proved",
    ),
)
