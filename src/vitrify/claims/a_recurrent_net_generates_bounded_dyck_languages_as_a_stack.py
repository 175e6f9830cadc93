r"""A recurrent net generates Dyck words of $k$ kinds to depth $D$ in $O(D \log k)$ units: its state is the stack.

Statement: For every $k \ge 2$ and $D$, an Elman network with $(2D - 1)(\lceil\log_2 k\rceil + 1)$ ReLU units, and an
LSTM with $D(\lceil\log_2 k\rceil + 1)$ cells read by $D\lceil\log_2 k\rceil + 2$ ReLU units, give the exact set of next
brackets after every prefix of every word of Dyck$_{k,D}$, at every length. The published widths are $6D\lceil\log_2
k\rceil - 2D$ and $3D\lceil\log_2 k\rceil - D$; ours are no larger.
Why: Opening brackets push, closing ones pop, and a stack of $D$ slots is a shift register in both directions. Each
number of a slot is the sum of a unit for pushing and one for popping; the letter enables one of them. An LSTM leaves
every slot in place, as its gates write only the next one.
Checked: $(k, D)$ = (2, 3), (3, 4), (8, 10), (64, 10), (5, 16), the LSTM for the first and third: next sets after all
prefixes to length 6 (2 for 5 kinds and more), after every prefix of words in which each kind stays open at each depth
for long, and of 100 random words of length 60 or 120. The least distance of a logit from zero is 1/2; widths are
compared with ours and with the published ones.
Not checked: Prefixes that no word of the language has, and words longer than 120. The published network and its proof
of the lower bound $\Omega(D\log k)$ are not reproduced.
Source: Hewitt et al. 2020, arXiv 2010.07515 [A], the published width [S]; the weights are our own derivation.
Saboteur: The last slot is never written, so that the stack is one slot short.
"""

from __future__ import annotations

import numpy as np

from vitrify.claims._figures import named, points, show
from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, check_net, zeroed
from vitrify.constructions import lstm_dyck
from vitrify.constructions.recurrent_dyck import count_bits, dyck_elman, sizes
from vitrify.net.inference import encode, logits
from vitrify.spec.languages.dyck import Dyck

LANGUAGES = ((2, 3, 120), (3, 4, 120), (8, 10, 120), (64, 10, 60), (5, 16, 60))
WORDS = 100
WORK = 1e8  # multiplications spent on words beyond those listed


def subjects() -> Subjects:
    for kinds, depth, length in LANGUAGES:
        spec = Dyck.of_kinds(kinds, depth, length)
        name, to = f"{kinds} kinds to depth {depth}", {"max_length": 6 if kinds < 4 else 2}
        yield Subject(f"{name}, elman", spec, dyck_elman(spec), to)
        if kinds in (2, 8):
            yield Subject(f"{name}, LSTM", spec, lstm_dyck.dyck_lstm(spec), to)


def check(subject: Subject) -> Evidence:
    weights = subject.weights
    net = weights.architecture
    gated = net.cell.kind == "lstm"
    promised = (lstm_dyck.sizes if gated else sizes)(subject.spec).exact
    rng = np.random.default_rng(0)
    words = [encode(net, subject.spec.draw(rng)[: net.max_length]) for _ in range(50)]
    nearest = min(float(np.abs(each).min()) for each in logits(weights, words))
    depth = subject.spec.depth
    most = (1 if gated else 2) * (3 * depth * count_bits(subject.spec) - depth)
    behind, published, least = "units behind it", f"at most {most}, as published", "least logit"
    declared = {"d_model": promised["d_model"], behind: promised["units"], published: True, least: 0.5}
    # An LSTM shows a cell of 1 as tanh(1), which readers divide by.
    measured = {behind: net.units, published: net.cell.state <= most, least: round(nearest, 12)}
    return check_net(subject, declared, measured, samples=WORDS, work=WORK)


def sabotage(subject: Subject) -> Subject:
    """Nothing reaches the last slot: no unit pushes it, or its input gate stays shut."""
    if subject.weights.architecture.cell.kind == "lstm":
        return zeroed(subject, "blocks.0.rec.W_B", (0, subject.spec.depth - 1))
    last = subject.weights.labels.space(f"slot {subject.spec.depth} pushed")
    return zeroed(subject, "blocks.0.rec.W_A", (slice(None), list(last.dims)))


FIGURE = show(points("to depth {}", "d_model", "depth", "width", by=named(r"^(\d+ kinds)")))
CLAIM = Claim(
    subjects, check, sabotage, id="R24", standing="theorem", certified="sampled", budget_seconds=20, figure=FIGURE
)
