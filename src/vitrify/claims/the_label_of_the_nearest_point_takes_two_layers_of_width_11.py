r"""The label of the nearest point takes two layers of one head and width 11, for any number of points.

Statement: For all $k$, $M$ and $V$, a transformer with two layers of one head each, width 11 and no units reads $k$
pairs of a point and one of $V$ labels, and then a point; points are $M$ equally spaced ones of a circle. At every point
it answers with the label of the nearest earlier one, the latest of them where several are equally near.
Why: A label reads the point before it. The product of two unit vectors falls with their distance.
Checked: All words to $k = 2$ for $M$ = 3 and 8; random words (1,000 where $M \le 101$) for $M$ to 4096 and $k$ to 256,
all kinds of attention; sizes. To $M = 360$ both links are proved for every word: margins, and the lemma that the label
of the nearest point has the largest score.
Not checked: Points of more dimensions, and points that are not equally spaced: what counts is the least difference
$\gamma$ of two products, here $1 - \cos(2\pi/M)$. The inverse temperature grows like $k \ln k/\gamma$, as positions
break ties; without ties like $\ln k/\gamma$. A recurrence needs $k\log_2 V$ bits, as it must answer for each of $k$
given points: that is `state_bits_bound_recall_and_copying`.
Source: Bhattamishra, Hahn, Blunsom & Kanade 2024, arXiv 2406.09347 [A]; the weights are our own derivation.
Saboteur: Points lose one of their two dimensions where they are compared.
"""

from __future__ import annotations

from vitrify.claims._figures import attention_of, points, show
from vitrify.claims._nets import Claim, Evidence, Quantity, Subject, Subjects, built, check_net, proving, zeroed
from vitrify.constructions.catalogue import Attention
from vitrify.spec.tasks.nearest import Nearest

TASKS: tuple[tuple[Nearest, Attention], ...] = (
    (Nearest(3, 2, 2), "softmax"),
    (Nearest(8, 2, 2), "sparsemax"),
    (Nearest(24, 5, 40), "hard"),
    (Nearest(101, 10, 30), "softmax"),
    (Nearest(360, 10, 64), "sparsemax"),
    (Nearest(4096, 16, 256), "softmax"),
)
SMALL, SAMPLES, SAMPLES_OF_LARGE = 101, 1000, 20  # points; random words of nets with no more, and with more
MAX_PROVED = 360  # points: the margins of more are too many to compare


def subjects() -> Subjects:
    for task, attention in TASKS:
        yield built(f"{task}, {attention}", task, attention=attention)


def check(subject: Subject) -> Evidence:
    """Compare a net with its spec and its formulas, and prove both links unless it is large."""
    task = subject.spec
    evidence = check_net(subject, samples=SAMPLES if task.points <= SMALL else SAMPLES_OF_LARGE, work=1e8)
    if evidence.verdict != "holds" or task.points > MAX_PROVED:
        return evidence
    evidence = proving(subject, evidence)
    return evidence.adding(Quantity("links proved", sum(link.scope.proved for link in evidence.links), 2, "="))


def sabotage(subject: Subject) -> Subject:
    """Points are compared by one dimension."""
    dims = subject.weights.labels.space("point before").dims
    return zeroed(subject, "blocks.1.attn.W_K", (0, dims[1]))


FIGURE = show(
    *attention_of(subjects, (0, 0), (1, 0), number=1),
    points("points={}", ("d_model", "heads", "layers"), "places of the circle", "size of the net", "2x", joined=True),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R40", standing="theorem", certified="sampled", budget_seconds=60, figure=FIGURE
)
