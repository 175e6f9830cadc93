r"""An induction head takes two layers with one head each and 8 dimensions, for any vocabulary and any length.

Statement: a transformer of two layers with one head each, a width of 8 and one hidden unit says at every position which
symbol came after the last earlier occurrence of the present one, or that there was none.
Why: layer 1 copies the symbol before; layer 2 finds the last place whose symbol before is the present symbol. Points on
a circle and squares of positions tell any number of symbols and places apart in two dimensions each; what grows is the
precision, by $\log V^2$ and $\log T^2$ bits.
Checked: all words to length 8 over 3 symbols; random words over few and over many of $V$ symbols, to $V = 64$, $T =
200$ and $V = 1000$, $T = 500$; sizes, which are the same each time. Soft, sparse and hard attention.
Source: Bietti et al. 2023, arXiv 2306.00802 [S]; Sanford, Hsu and Telgarsky 2024, arXiv 2408.14332 [S]; the weights
here are our own derivation.
Saboteur: the second layer takes any earlier occurrence for the last.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.k_hop import k_hop, sizes
from vitrify.kit import assemble
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Ledger
from vitrify.spec.tasks.k_hop import KHop

CASES: tuple[tuple[int, int, AttentionKind, int | None], ...] = (  # symbols, length, attention, length of all words
    (3, 12, "softmax", 8),
    (3, 12, "sparsemax", 8),
    (3, 12, "hard", 8),
    (64, 200, "softmax", None),
    (64, 200, "hard", None),
    (1000, 500, "softmax", None),
)
WORK = 1e8  # multiplications for what is not asked for explicitly


def subjects() -> Iterator[Subject]:
    """Vocabularies of 3 to 1000 symbols."""
    for symbols, length, attention, longest in CASES:
        task = KHop(1, symbols, length)
        net = assemble(k_hop(task, attention=attention))
        yield Subject(f"{symbols} symbols, length {length}, {attention}", task, net, {"longest": longest})


def check(subject: Subject) -> Evidence:
    """Answers and sizes."""
    promised, size = sizes(subject.spec), Ledger.of(subject.weights)
    asked = WordExamination(subject.weights.architecture, subject.spec, max_length=subject.data["longest"], work=WORK)
    return with_sizes(asked.run(subject.weights), promised, {name: getattr(size, name) for name in promised})


def sabotage(subject: Subject) -> Subject:
    """The keys of the second layer all have the same place."""
    return zeroed(subject, "blocks.1.attn.W_K", (0, list(subject.weights.labels.space("index").dims)))


CLAIM = Claim(row="R20", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
