r"""A simple recurrent net generates brackets of $k$ kinds to depth $D$ in $O(D \log k)$ units: its state is the stack.

Statement: for the language of well-nested words over $k$ kinds of brackets, at most $D$ of them open at once, a simple
recurrent net of $(2D - 1)(\lceil\log_2 k\rceil + 1)$ ReLU units gives exactly the set of brackets that may come next
after every beginning, at every length, and so does an LSTM of $D(\lceil\log_2 k\rceil + 1)$ cells, read by
$D\lceil\log_2 k\rceil + 2$ ReLU units. These widths are ours; for $k \ge 2$ they are no larger than the published
$6D\lceil\log_2 k\rceil - 2D$ and $3D\lceil\log_2 k\rceil - D$.
Why: opening brackets push, closing ones pop, and a stack of $D$ slots is a shift register that goes both ways: each
number of a slot is the sum of a unit for pushing and a unit for popping, of which the letter lets one work. An LSTM
can leave every slot where it is, as its gates write only the one that is taken next.
Checked: sets of next brackets after all beginnings to length 6 (2 from 5 kinds on), after every beginning of words in
which each kind waits at each depth through long rows of others, and of 100 random words of length up to 120, for up to
64 kinds and depth 16 (with the LSTM, 8 kinds and depth 10); the distance of all logits from zero; widths against the
formulas and the published ones.
Source: Hewitt et al. 2020, arXiv 2010.07515 [A], the published width [S]; the weights here are our own derivation.
Saboteur: the last slot is never pushed or taken, so that the stack is one slot short.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions import lstm_dyck
from vitrify.constructions.recurrent_dyck import dyck_elman, sizes
from vitrify.net.run import encode, logits
from vitrify.net.weights import Ledger
from vitrify.spec.dyck import Dyck

LANGUAGES = ((2, 3, 120), (3, 4, 120), (8, 10, 120), (64, 10, 60), (5, 16, 60))
WORDS = 100
WORK = 1e8  # multiplications for what is not asked for explicitly


def subjects() -> Iterator[Subject]:
    """Brackets of 2 to 64 kinds, to depths of 3 to 16."""
    for kinds, depth, length in LANGUAGES:
        spec = Dyck.of_kinds(kinds, depth, length)
        name, to = f"{kinds} kinds to depth {depth}", {"to": 6 if kinds < 4 else 2}
        yield Subject(f"{name}, elman", spec, dyck_elman(spec), to)
        if kinds in (2, 8):
            yield Subject(f"{name}, LSTM", spec, lstm_dyck.dyck_lstm(spec), to)


def check(subject: Subject) -> Evidence:
    """Sets of next brackets, logits and sizes."""
    weights = subject.weights
    net, size = weights.architecture, Ledger.of(weights)
    gated = net.cell.kind == "lstm"
    promised = lstm_dyck.sizes(subject.spec) if gated else sizes(subject.spec)
    rng = np.random.default_rng(0)
    words = [encode(net, subject.spec.draw(rng)[: net.max_length]) for _ in range(50)]
    nearest = min(float(np.abs(found).min()) for found in logits(weights, words))
    most = promised["published"]
    declared = {
        "state": promised["cells" if gated else "d_model"],
        "units behind it": promised["units"] if gated else 0,
        f"at most {most}, as published": True,
        "least logit": 0.5,
    }
    measured = {
        "state": net.cell.state,
        "units behind it": size.units,
        f"at most {most}, as published": net.cell.state <= most,
        "least logit": round(nearest, 12),  # an LSTM shows a cell of 1 as tanh(1), which readers divide by
    }
    examination = WordExamination(net, subject.spec, max_length=subject.data["to"], samples=WORDS, work=WORK)
    return with_sizes(examination.run(weights), declared, measured)


def sabotage(subject: Subject) -> Subject:
    """Nothing reaches the last slot: no unit pushes it, or its input gate stays shut."""
    if subject.weights.architecture.cell.kind == "lstm":
        return zeroed(subject, "blocks.0.rec.W_B", (0, subject.spec.depth - 1))
    last = subject.weights.labels.space(f"slot {subject.spec.depth} pushed")
    return zeroed(subject, "blocks.0.rec.W_A", (slice(None), list(last.dims)))


CLAIM = Claim(row="R24", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
