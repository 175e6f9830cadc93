r"""A word-class language becomes an embedding of classes, one attention layer and one hidden layer.

In the spirit of Nandakumar, Mi & Liu (2023, arXiv 2306.17184v1). The **embedding** forgets everything about a word but
its classes: the vector of a word is the sum of the unit vectors of the classes $C$ that it is in, and BOS has a
dimension of its own. Heads copy the vectors of the previous words, so that a position has the *window*, its last $n-1$
words. The **hidden layer** is the memory of the rules: one unit for each context $p \in P_n$ (the last $n-1$ classes
before some position of a pattern) is 1 iff every word of the window is in the class that $p$ has there, and adds 1 to
each class, or the end of the sentence, that can follow $p$. The unembedding spreads classes over their words; with a
bias of $-\tfrac12$ a logit is positive iff the word may come next.

| part | size |
| --- | --- |
| embedding | $\lvert C\rvert + 1$ |
| heads | $H = \min(n-1, \ell+1) - 1$ in one layer, $\ell$ the length of the longest sentence; none for $n = 2$ |
| hidden units | $\lvert P_n\rvert$ |
| residual stream | $2\lvert C\rvert + 2 + H + \sum_c \min(d_c, H)$ and the position code |

Here $d_c$ is the largest number of words that can come after one of class $c$ in a sentence.
Only the rows of the embedding and the columns of the unembedding depend on how many words a class has.

**Exact iff $n \ge n^*$**, the least $n$ for which the window determines the words that may come next. Any word of a
class may stand where the class may. So if a context matches a window, some sentence has these words there. The net's
answer is therefore the union of the true answers over all prefixes with that window. From $n^*$ on these are all equal;
below it no legal word is ever lost, but some window gets a word too many. After a string that is no prefix of a
sentence, the answer is whatever its window allows.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from vitrify.arrays import Ints
from vitrify.constructions import _words
from vitrify.constructions._words import Window, heads, memberships, newest_first, with_previous_words, words_after
from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, Positions, WindowLength, construction
from vitrify.kit.gadgets.table import ANY, table
from vitrify.kit.network import Integers, MultiHot, Network, Space
from vitrify.kit.positions import CodeName
from vitrify.spec.languages.word_patterns import Context, WordPatterns, side_by_side
from vitrify.spec.ngrams.model import BEGIN


def sizes(
    spec: WordPatterns, *, window: int | None = None, max_length: int | None = None, positions: CodeName = "dyadic"
) -> DeclaredSizes:
    """Return all sizes. Parts of the width: own classes, answer, copied classes and BOS, position code."""
    n = window or spec.window()
    earlier, classes = heads(spec, n), len(spec.members) + 1
    copied = earlier + sum(min(words, earlier) for words in words_after(spec).values())
    width = 2 * classes + copied + _words.position_dimensions(spec, earlier, max_length, positions)
    return DeclaredSizes.of_layers((earlier,), (len(spec.contexts(n)),), width)


@construction(
    "classes",
    "an embedding of word classes and one hidden unit per context",
    sizes,
    default=True,
    certified=("to T", "every length"),
)
def word_classes(
    spec: WordPatterns,
    *,
    window: WindowLength | None = None,
    attention: Attention = "softmax",
    max_length: MaxLength | None = None,
    positions: Positions = "dyadic",
) -> Network:
    """Return a transformer whose positive logits are the words that may follow the last `window` - 1 words.

    The window is $n^*$ by default: with less the net allows too much, and `about` records it.
    """
    seen = Window.of(spec, window)
    contexts = spec.contexts(seen.n)
    names = (BEGIN, *spec.members)
    net = _words.start_builder(seen, "word classes", attention, max_length)
    classes = net.embed("classes", MultiHot(names), memberships(spec, net.inputs, names))
    slot_classes = [[name for name in names if name in slot] for slot in newest_first(contexts)]
    # A head copies the classes that some context has at its slot, and no others.
    only = [([names.index(name) for name in slot], MultiHot(tuple(slot))) for slot in slot_classes[1:]]
    slots = with_previous_words(net, classes, only, positions)
    next_class = Space("next class", Integers(seen.follow, 0.0, float(len(contexts))))
    table(
        net,
        slots,
        _rows(contexts, slot_classes),
        next_class,
        seen.answers(contexts.values()),
        matches=len(contexts),  # words in many classes may match many contexts
        name="contexts",
        rows=[side_by_side(context) for context in contexts],
    )
    place = positions if only else "none"
    facts = seen.facts("classes", positions=place, classes=len(spec.members), contexts=len(contexts))
    return _words.finish_network(
        net, seen, next_class, "word classes", facts, "Nandakumar, Mi & Liu 2023, arXiv 2306.17184v1"
    )


def _rows(contexts: Iterable[Context], slot_classes: list[list[str]]) -> Ints:
    """Return contexts as rows of a table [context, slot]; slots before the beginning of the sentence are `ANY`."""
    indices = [{name: number for number, name in enumerate(names)} | {None: ANY} for names in slot_classes]
    slots = zip(indices, newest_first(contexts), strict=True)
    return np.array([[numbers[name] for name in slot] for numbers, slot in slots]).T
