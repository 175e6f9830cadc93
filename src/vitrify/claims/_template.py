r"""A counter modulo $m$ runs on $\log_2 T$ layers of one head, of width $2m + 2\log_2 T$.

Statement: For every $m$ and every $T$ that is a power of two there is a transformer with $\log_2 T$ layers of one
head, width $2m + 2\log_2 T$ and at most $(2m^2 + 1)\log_2 T$ units that gives the number of ones modulo $m$ after
every letter of every word to length $T$.
Why: Letters are maps of the states and composition is associative: layer $l$ composes the maps of two neighboring runs
of $2^l$ letters.
Checked: $m = 2, 3, 5$ and $T = 4, 8, 16$: all words to length 8 and random words to length $T$, margins for all words
to length $T$, and the sizes against their formulas.
Not checked: Larger $m$ and $T$, and lengths $T$ that are not powers of two.
Source: Liu et al. 2023, arXiv 2210.10749, theorem 1 [S]; the weights are those of the construction `log-depth`.
Saboteur: The last layer attends, but its values are zero.
"""

from __future__ import annotations

from math import log2

from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, built, check_net, quantities, zeroed
from vitrify.spec.automata.families import cyclic

# The sweep of sizes.
MODULI, LENGTHS = (2, 3, 5), (4, 8, 16)
EXHAUSTIVE_LENGTH = 8  # all words to this length are tested, longer ones are sampled


def subjects() -> Subjects:
    """Yield one network for each pair of the sweep."""
    for m in MODULI:
        for length in LENGTHS:
            data = {"m": m, "T": length, "max_length": min(length, EXHAUSTIVE_LENGTH)}
            yield built(f"m = {m}, T = {length}", cyclic(m), "log-depth", data, max_length=length)


def law(m: int, length: int) -> dict[str, int]:
    """Return the sizes that the statement declares."""
    depth = int(log2(length))
    return {"layers": depth, "heads": depth, "d_model": 2 * m + 2 * depth}


def check(subject: Subject) -> Evidence:
    """Compare the network with its spec on words, and its sizes with the law."""
    m, length = subject.data["m"], subject.data["T"]
    units = {"units": subject.weights.sizes.units}
    bound = {"units": (2 * m**2 + 1) * int(log2(length))}
    return check_net(subject, law(m, length)).adding(*quantities(bound, units, "<="))


def sabotage(subject: Subject) -> Subject:
    """Return the subject with the nearest error that the check must notice."""
    return zeroed(subject, f"blocks.{subject.weights.sizes.layers - 1}.attn.W_V")


CLAIM = Claim(subjects, check, sabotage, id="R900", standing="theorem", certified="proved")
