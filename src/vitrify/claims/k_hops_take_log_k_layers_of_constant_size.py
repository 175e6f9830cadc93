r"""Following a symbol back $k$ times takes $\lfloor\log_2 k\rfloor + 2$ layers with one head each, and 7 dimensions.

Statement: For every $k$, number of symbols $V$ and length $T$ there is a transformer with $\lfloor\log_2 k\rfloor + 2$
layers of one head each, width 7 (8 for $k = 1$) and at most $2\lfloor\log_2 k\rfloor + 1$ hidden units that returns, at
every position, the symbol $k$ hops back, or that there is none. One hop goes from a position to the one after the last
earlier occurrence of its symbol.
Why: Layer 1 finds the last earlier occurrence of the symbol, so that every position has a pointer one hop back. A layer
that attends to the pointer and reads the pointer there doubles it, and the symbol there is added to the answer if the
binary digit of $k$ is 1. The first pointer costs one layer, each digit one more.
Checked: $k = 1, \dots, 64$ over 2, 5 and 64 symbols in turn at length 20, where both links to the task are proved for
every word. All words to length 7 over 2 symbols for $k = 1, 2, 3, 6, 9$. Random words of length 256 (few or many of the
symbols used), 50 for each of twenty values of $k$ up to 64. Layers, heads, width and units are compared with the
formulas for each. Softmax, sparsemax and hard attention take turns; the long words are for softmax.
Not checked: $k > 64$, and the proofs at length 256, which `vitrify certify` makes in a minute. The matching lower bound
is conditional in the source, and not part of this claim.
Source: Sanford, Hsu & Telgarsky 2024, arXiv 2402.09268, Theorem 4.2 [S]; the weights are our own derivation.
Saboteur: The binary digits of $k$ are read in reverse order. Where that changes nothing, or words are short: the first
layer takes the position itself for an earlier occurrence; for $k = 1$, any earlier occurrence for the last one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import cycle

from vitrify.claims._figures import points, show
from vitrify.claims._nets import ATTENTIONS, Claim, Subject, Subjects, Weights, built, checking
from vitrify.claims.an_induction_head_takes_two_layers_of_constant_size import sabotage as any_occurrence
from vitrify.constructions.catalogue import Attention, build
from vitrify.net.transformer import Transformer
from vitrify.spec.tasks.k_hop import KHop

SHORT: tuple[tuple[int, Attention], ...] = ((1, "softmax"), (2, "hard"), (3, "softmax"), (6, "sparsemax"), (9, "hard"))
LONG = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 21, 31, 32, 33, 42, 48, 55, 63, 64)
SYMBOLS = (2, 5, 64)
PROVED_LENGTH = 20  # at which margins of eight heads are proved beside a check
WORK = 1e6  # multiplications spent on words beyond those listed


def subjects() -> Subjects:
    for hops, attention in SHORT:
        name = f"{hops} hops, short, {attention}"
        yield built(name, KHop(hops, 2, 12), data={"max_length": 7}, attention=attention)
    for hops, symbols, attention in zip(range(1, 65), cycle((*SYMBOLS, 64, 2, 5)), cycle(ATTENTIONS), strict=False):
        name = f"{hops} hops over {symbols} symbols, {attention}"
        yield built(name, KHop(hops, symbols, PROVED_LENGTH), attention=attention)
    for hops, symbols in zip(LONG, cycle(SYMBOLS), strict=False):
        data = {"max_length": 1, "samples": 50}
        yield built(f"{hops} hops over {symbols} symbols, length 256", KHop(hops, symbols, 256), data=data)


def sabotage(subject: Subject) -> Subject:
    """Return the network with the digits of k in reverse order; see the saboteur above."""
    task = subject.spec
    if task.hops == 1:
        return any_occurrence(subject)
    reverse = replace(task, hops=int(f"{task.hops:b}"[::-1], 2))
    if reverse == task or task.length < 4 * task.hops:
        return replace(subject, weights=counting_itself(subject.weights))
    return replace(subject, weights=build(reverse))


def counting_itself(weights: Weights[Transformer]) -> Weights[Transformer]:
    """Return the network whose first layer sees the position itself as well, not the earlier ones only."""
    net = weights.architecture
    first, *others = net.blocks
    (head,) = first.heads
    blocks = (replace(first, heads=(replace(head, mask="causal"),)), *others)
    return replace(weights, architecture=replace(net, blocks=blocks))


check = checking(work=WORK)
FIGURE = show(
    points(
        "{} hops", "layers", "hops k", "layers", "2x", laws={"⌊log₂ k⌋ + 2": lambda k: math.floor(math.log2(k)) + 2}
    ),
    points("{} hops", "d_model", "hops k", "width", "2x"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R20", standing="theorem", certified="sampled", budget_seconds=60, figure=FIGURE
)
