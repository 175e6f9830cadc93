r"""A conserved energy decides whether gradient flow of the low-rank transformer learns a binary Markov chain.

Statement: In its low-rank form a tied one-layer transformer has two parameters $e$ and $w$, and with the best bias its
loss $l$ depends only on $A = e^2 (1 + 2w|w|)$. Gradient flow conserves $E = e^2 - w^2 - \mathrm{sign}(w) \log|w|$ and
never crosses $w = 0$. Let $E_s = -(1 + \log 2)/2$, the energy of the saddle at $(0, -1/\sqrt 2)$. If $p + q < 1$, the
flow ends at $e = 0$ with the loss $H(\pi)$ exactly from $w < -1/\sqrt 2$ with $E \le E_s$. If $p + q > 1$, it does so
exactly from $w \ge 0$ and from $-1/\sqrt 2 < w < 0$ with $E \le E_s$. From all other starts with $e \ne 0$ it ends at
the entropy rate. Hence small Gaussian starts all learn if $p + q < 1$, and none does if $p + q > 1$, where starts near
$w = -1$ learn. The same holds for small starts with a third parameter $a$ for attention (our derivation).
Why: The flow is $\dot e = -2e(1+2w|w|)\,l'(A)$, $\dot w = -4|w| e^2\, l'(A)$, so $dE/dt = 0$. Up to the optimum $l'$
has the sign of $p + q - 1$, so the sign of $1 + 2w|w|$ decides whether $e$ shrinks, and only paths with $E > E_s$ pass
the saddle. With attention that returns the token itself, $A = e^2 (1+2w|w|)(1+a)$ and $e^2 - 2(1+a)^2$ is conserved as
well.
Checked: The flow is integrated in float64 until it stops, for four chains $(p, q)$, two on each side of $p + q = 1$,
from random starts: per chain, over the square $[-2, 2]^2$ (60 at quick scale, 500 at large scale), from Gaussian balls
of 4 or 9 sizes, near $w = -1$, and in $(e, w, a)$ from small balls. Compared are the end points with the prediction,
the drift of the conserved energies, and the sign of $w$.
Not checked: Other chains; discrete steps, stochastic gradients and optimisers with momentum; the full network outside
its low-rank form (its training is a claim of its own). Starts on the border of a basin within rounding may be
misclassified, so a few exceptions are allowed.
Source: Makkuva et al. 2024, arXiv 2406.03072 [S]: the loss in $e$ and $w$ and its energy are theirs; the basins were
derived again, and the variant with $a$ is ours.
Saboteur: The prediction for the other side of $p + q = 1$ is used.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials import flows
from vitrify.claims.trials.flows import CHAINS, StartCounts
from vitrify.claims.trials.trial import Criterion, Domain, Evidence, Method, evidence
from vitrify.learn import bit_chain
from vitrify.learn.figures import sheet

MAX_DRIFT = 1e-6  # of conserved quantities
MIN_RIGHT = 58 / 60  # of the starts must end where they should: some lie on the border within what rounding tells
MIN_SURE = 0.99  # of the starts in a small ball


def subjects() -> Subjects:
    yield _subject(StartCounts(square=60, widths=(0.1, 0.3, 0.5, 1.0), each=50, ball=100))


def large() -> Subjects:
    yield _subject(StartCounts(square=500, widths=(0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0), each=200, ball=500))


def _subject(counts: StartCounts) -> Subject:
    flat, solid = counts.square + len(counts.widths) * counts.each + counts.ball, counts.ball
    settings = {"in (e, w)": len(CHAINS) * flat, "in (e, w, a)": len(CHAINS) * solid, "chains": len(CHAINS)}
    domain = Domain("gradient flows", Method.INTEGRATED, len(CHAINS) * (flat + solid), settings=settings)
    return Subject("flows", data={"starts": counts, "mistaken": False, "domain": domain})


def sabotage(subject: Subject) -> Subject:
    return subject.with_data(mistaken=True)


def check(subject: Subject) -> Evidence:
    counts, mistaken, judged = subject.data["starts"], subject.data["mistaken"], Criterion.judged
    flat, solid = flows.followed(counts)
    chain = 1 - flat.chain if mistaken else flat.chain
    agree = flat.trapped == bit_chain.trapped(*(flat.flow.points[name][:, 0] for name in "ew"), *chain.T)
    above, below = not mistaken, mistaken
    right, sure = partial(judged, at_least=1, share=MIN_RIGHT), partial(judged, share=MIN_SURE)
    criteria = [right("ends as predicted, from the square", agree[flat.of("square")])]
    for width in counts.widths:
        criteria.append(right(f"ends as predicted, from a ball of size {width:g}", agree[flat.of(f"ball {width:g}")]))
    small, better = "from a ball of size 0.1 in (e, w, a)", flat.trapped[flat.of("better", above)]
    criteria += [
        sure(f"trapped {small}, p + q > 1", solid.trapped[solid.of("ball", above)], at_least=1),
        sure(f"trapped {small}, p + q < 1", solid.trapped[solid.of("ball", below)], at_most=0),
        sure("trapped from near w = -1, p + q > 1", better, at_most=0),
    ]
    for coordinates, each in (("e, w", flat), ("e, w, a", solid)):
        for name, drift in each.flow.drift.items():
            criteria.append(judged(f"drift of {name} in ({coordinates})", [drift], at_most=MAX_DRIFT))
        signs = np.sign(each.flow.points["w"])
        criteria.append(judged(f"w keeps its sign in ({coordinates})", signs[:, -1] == signs[:, 0], at_least=1))
    figure = {"portraits": flows.portraits(flat), "shares": flows.trapped_shares(counts, flat)}
    return evidence(subject, criteria, figure)


def draw(figures: Figures) -> Figure:
    data = figures["flows"]
    figure, ((*portraits, shares),) = sheet(
        1, 3, "Gradient flow of the low-rank transformer: which starts learn to read?", 4.6, 4.2
    )
    for axes, portrait in zip(portraits, data["portraits"], strict=True):
        flows.draw_portrait(axes, portrait)
    for side, color in zip(data["shares"]["sides"], ("C0", "C3"), strict=True):
        name = "p + q > 1" if side["over"] else "p + q < 1"
        shares.plot(data["shares"]["sizes"], side["rule"], color=color, label=f"{name}, by the energy")
        size, share, low, high = np.array(side["seen"]).T
        bars, label = [share - low, high - share], f"{name}, followed (95 %)"
        shares.errorbar(size, share, bars, fmt="o", color=color, capsize=3, label=label)
    shares.set(xscale="log", xlabel="standard deviation of the first e and w")
    shares.set_ylabel("share of starts that end at the loss H(π)")
    shares.legend(fontsize=8)
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L3", standing="theorem", budget_seconds=120)
