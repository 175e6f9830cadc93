r"""The law of the next symbol is estimated from the word itself: $k$ heads in two layers, or one head in three or two.

Statement: the shares of the symbols that have followed the last $k$ symbols of a word so far are the output of a
transformer with $k$ heads and then one; of one with one head in each of three layers, and norms; of one with one head
in each of two layers.
Why: a head that gives equal weight to all places whose $k$ symbols before match counts and divides at once. The
symbols before come by $k$ heads, or as one mixture: its digits are told apart by units, or its direction by a norm.
Checked: orders 1 to 5 over two and three symbols: all words to length 8 (7 over three symbols), words over few of the
symbols, every prefix of random words to length 60, against counts by definition; layers, heads, width and units
against the formulas. The error that a net states is what it may be off; for norms it grows with $4^k$.
Source: N. Rajaraman et al. 2024, arXiv 2407.17686 [A] ($k$ heads; three layers with layer norm); C. Ekbote et al. 2025,
arXiv 2508.07208 [A] (one head, two layers); E. Nichani et al. 2024, arXiv 2402.14735 [A] (disentangled). The weights,
and digits instead of a norm in two layers, are our own derivation.
Saboteur: the norms are taken out, where there are any; else the first layer brings nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import examined, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.catalogue import Settings, build
from vitrify.constructions.estimate import sizes
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Ledger
from vitrify.spec.tasks.estimate import Estimate

SHAPES = ("estimate-heads", "estimate-norm", "estimate-digits")
TASKS = (Estimate(1, 3, 40), Estimate(2, 3, 60), Estimate(3, 2, 60), Estimate(5, 2, 40))
KINDS: tuple[AttentionKind, ...] = ("softmax", "sparsemax")


def subjects() -> Iterator[Subject]:
    """Every shape for every order, under softmax and sparsemax in turn; heads under hard attention too."""
    for number, task in enumerate(TASKS):
        for place, shape in enumerate(SHAPES):
            kind = KINDS[(number + place) % 2]
            for attention in (kind, "hard") if shape == "estimate-heads" and number == 1 else (kind,):
                weights = build(task, shape, Settings(attention))
                name = f"order {task.order} over {task.symbols} symbols, {shape}, {attention}"
                yield Subject(name, task, weights, sizes(task, shape, attention))


def check(subject: Subject) -> Evidence:
    """Shares, and sizes."""
    size = Ledger.of(subject.weights)
    measured = {name: getattr(size, name) for name in subject.data}
    return examined(subject, 8 if subject.spec.symbols < 3 else 7, subject.data, measured)


def sabotage(subject: Subject) -> Subject:
    """No norms, or nothing to compare."""
    net = subject.weights
    if not net.architecture.norm:
        return zeroed(subject, "blocks.0.attn.W_O", slice(None))
    arrays = {name: array for name, array in net.arrays.items() if ".ln" not in name}
    plain = replace(net.architecture, norm=False, groups=())
    return replace(subject, weights=replace(net, architecture=plain, arrays=arrays))


CLAIM = Claim(row="R21", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
