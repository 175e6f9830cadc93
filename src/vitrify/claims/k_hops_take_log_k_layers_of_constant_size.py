r"""Following a symbol back $k$ times takes $\lceil\log_2 k\rceil + 2$ layers with one head each, and 10 dimensions.

Statement: a transformer of $\lceil\log_2 k\rceil + 2$ layers with one head each, a width of 10 (8 for $k = 1$) and at
most $3\lceil\log_2 k\rceil + 1$ hidden units finds the symbol $k$ hops back at every position, or that there is none.
Why: once every position knows where one hop leads, a look at that place tells where two lead, then four; the place
before the last is carried along, so that odd numbers work as well.
Checked: all words to length 7 over 2 symbols for $k \le 9$; random words of length 256 over few and over many of 64
symbols for twenty numbers $k$ to 64, each also where a hop leads nowhere; layers, heads, width and units.
Source: Sanford, Hsu and Telgarsky 2024, arXiv 2402.09268 [S], who state $\lfloor\log_2 k\rfloor + 2$ layers; the
weights here are our own derivation, and reach that for powers of two only.
Saboteur: the second layer takes any earlier occurrence for the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log2

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.k_hop import k_hop, sizes
from vitrify.kit import assemble
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Ledger
from vitrify.spec.tasks.k_hop import KHop

SHORT: tuple[tuple[int, AttentionKind], ...] = (
    (1, "softmax"),
    (2, "hard"),
    (3, "softmax"),
    (6, "sparsemax"),
    (9, "hard"),
)
LONG = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 21, 31, 32, 33, 42, 48, 55, 63, 64)
WORK = 1e7  # multiplications for what is not asked for explicitly


def subjects() -> Iterator[Subject]:
    """From 1 to 64 hops."""
    for hops, attention in SHORT:
        task = KHop(hops, 2, 12)
        yield Subject(f"{hops} hops, short, {attention}", task, assemble(k_hop(task, attention=attention)), {"to": 7})
    for hops in LONG:
        task = KHop(hops, 64, 256)
        yield Subject(f"{hops} hops, length 256", task, assemble(k_hop(task)), {"to": 1})


def check(subject: Subject) -> Evidence:
    """Answers and sizes; the number of layers by its own formula."""
    size, hops = Ledger.of(subject.weights), subject.spec.hops
    promised = sizes(subject.spec) | {"attention_layers": ceil(log2(hops)) + 2}
    net = subject.weights.architecture
    evidence = WordExamination(net, subject.spec, max_length=subject.data["to"], work=WORK).run(subject.weights)
    return with_sizes(evidence, promised, {name: getattr(size, name) for name in promised})


def sabotage(subject: Subject) -> Subject:
    """The keys of the second layer all have the same place."""
    return zeroed(subject, "blocks.1.attn.W_K", (0, list(subject.weights.labels.space("index").dims)))


CLAIM = Claim(row="R20", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
