r"""A counter modulo $m$ runs on $\log_2 T$ layers, of width $2m + 2\log_2 T$.

Statement: For every $m$ and every $T$ that is a power of two there is a transformer with $\log_2 T$ layers and width
$2m + 2\log_2 T$ that gives the number of ones modulo $m$ after every letter of every word to length $T$.
Checked: $m = 2, 3, 5$ and $T = 4, 16$: all words to length 8 and random ones to length $T$, margins for all words to
length $T$, layers and width.
Not checked: Larger $m$ and $T$, and lengths $T$ that are not powers of two.
Source: Liu et al. 2023, arXiv 2210.10749, theorem 1 [S]; the weights are those of the construction `log-depth`.
Saboteur: The last layer attends, but its values are zero.
"""

from __future__ import annotations

from math import log2

from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, built, check_net, zeroed
from vitrify.spec.automata.families import cyclic


def subjects() -> Subjects:
    for m in (2, 3, 5):
        for length in (4, 16):
            data = {"m": m, "T": length, "max_length": min(length, 8)}
            yield built(f"m = {m}, T = {length}", cyclic(m), "log-depth", data, max_length=length)


def check(subject: Subject) -> Evidence:
    depth = int(log2(subject.data["T"]))
    return check_net(subject, {"layers": depth, "d_model": 2 * subject.data["m"] + 2 * depth})


def sabotage(subject: Subject) -> Subject:
    return zeroed(subject, f"blocks.{subject.weights.sizes.layers - 1}.attn.W_V")


CLAIM = Claim(subjects, check, sabotage, id="R901", standing="theorem", certified="proved")
