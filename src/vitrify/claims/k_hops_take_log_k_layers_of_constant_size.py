r"""Following a symbol back $k$ times takes $\lceil\log_2 k\rceil + 2$ layers with one head each, and 10 dimensions.

Statement: For every $k$ there is a transformer with $\lceil\log_2 k\rceil + 2$ layers of one head each, width 10 (8 for
$k = 1$) and at most $3\lceil\log_2 k\rceil + 1$ hidden units that returns, at every position, the symbol $k$ hops back,
or that there is none. One hop goes from a position to the one after the last earlier occurrence of its symbol.
Why: Once every position knows where one hop leads, attending there gives where two hops lead, then four. The position
before the last hop is carried along, so that odd $k$ work too.
Checked: All words to length 7 over 2 symbols for $k = 1, 2, 3, 6, 9$; random words of length 256 over 64 symbols (few
or many of them used) for twenty values of $k$ from 1 to 64, including hops that lead nowhere. Layers, heads, width and
units are compared with the formulas. Softmax for the long words; all three kinds of attention for the short ones.
Not checked: $k > 64$ and words longer than 256. The paper states $\lfloor\log_2 k\rfloor + 2$ layers; ours reaches that
for powers of two only. The matching lower bound is not part of this claim.
Source: Sanford, Hsu & Telgarsky 2024, arXiv 2402.09268 [S]; the weights are our own derivation.
Saboteur: The second layer matches any earlier occurrence, not the last one.
"""

from __future__ import annotations

from math import ceil, log2

from vitrify.claims._nets import Claim, Evidence, Quantity, Subject, Subjects, built, check_net
from vitrify.claims.an_induction_head_takes_two_layers_of_constant_size import sabotage
from vitrify.constructions.catalogue import Attention
from vitrify.spec.tasks.k_hop import KHop

SHORT: tuple[tuple[int, Attention], ...] = ((1, "softmax"), (2, "hard"), (3, "softmax"), (6, "sparsemax"), (9, "hard"))
LONG = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 21, 31, 32, 33, 42, 48, 55, 63, 64)
WORK = 1e7  # multiplications spent on words beyond those listed


def subjects() -> Subjects:
    for hops, attention in SHORT:
        name = f"{hops} hops, short, {attention}"
        yield built(name, KHop(hops, 2, 12), data={"max_length": 7}, attention=attention)
    for hops in LONG:
        yield built(f"{hops} hops, length 256", KHop(hops, 64, 256), data={"max_length": 1})


def check(subject: Subject) -> Evidence:
    depth = subject.weights.sizes.attention_layers
    layers = Quantity("attention_layers", depth, ceil(log2(subject.spec.hops)) + 2)
    return check_net(subject, work=WORK).adding(layers)


CLAIM = Claim(subjects, check, sabotage, id="R20", standing="theorem", certified="sampled", budget_seconds=60)
