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
Not checked: Chains with $|p + q - 1| < 0.2$ or a probability below 0.05; stochastic gradients and optimisers with
momentum; the full network outside its low-rank form (its training is a claim of its own).
Source: Makkuva et al. 2024, arXiv 2406.03072 [S]: the loss in $e$ and $w$ and its energy are theirs; the basins were
derived again, and the variant with $a$ is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import flows
from vitrify.claims.trials.flows import BALL, BETTER_W, BORDER, SOLID, SQUARE, STEP, StartCounts, ball, side
from vitrify.claims.trials.trial import Criterion, Domain, Evidence, Measured, Method, Quantity, evidence
from vitrify.learn import bit_chain
from vitrify.learn.figures import sheet

MAX_DRIFT = 1e-5  # of conserved quantities: what integration adds
MIN_RIGHT = 58 / 60  # of the starts of a chain: some lie on the border within what rounding tells
MIN_SURE = 0.99  # of a chain's starts in small balls
MAX_LEVEL_ERROR = 0.01  # of the critical energy
RIVAL_LEVEL, RIVAL_BALL = 0.03, 0.3  # spread of rival critical energies; size of the balls that rival outcomes are of
IN_BALLS = "Gaussian starts of standard deviation"
PLAN = Plan(
    version=1,
    question="Does a conserved energy decide which starts of the low-rank transformer learn to read the last bit?",
    statements={
        "basins": Statement(
            "p + q, the sign of w and the energy decide whether a flow ends at the loss H(π) or at the entropy rate",
            f"in every chain ≥ {MIN_RIGHT:.1%} of the starts with |e|, |w| ≤ {SQUARE:g} end so, and of all from balls",
            "the line w = −1/√2 decides alone, at any energy",
        ),
        "level": Statement(
            "the basins end at the energy of the saddle, for every chain",
            f"the energy that best parts starts within {BORDER:g} of it is off by ≤ {MAX_LEVEL_ERROR:g} in every chain",
            f"every chain has a critical energy of its own, with a standard deviation of {RIVAL_LEVEL:g}",
        ),
        "small": Statement(
            "small starts all learn if p + q < 1 and none does if p + q > 1, where starts near w = −1 learn",
            f"of {IN_BALLS} ≤ {BALL:g}, and of those around w = {BETTER_W:g}, ≥ {MIN_SURE:.0%} in every chain",
            f"small starts end as {IN_BALLS} {RIVAL_BALL:g} do",
        ),
        "energy": Statement(
            "the flow conserves the energy and never crosses w = 0",
            f"the energy drifts by ≤ {MAX_DRIFT:g} from any start, and w keeps its sign",
            f"it is conserved only as well as by gradient descent with steps of {STEP:g}",
        ),
        "attention": Statement(
            "small starts with a third parameter for attention end alike, and two energies are conserved",
            f"of {IN_BALLS} {BALL:g} in (e, w, a) ≥ {MIN_SURE:.0%} in every chain; drifts ≤ {MAX_DRIFT:g}",
            f"they end as {IN_BALLS} {RIVAL_BALL:g} in (e, w) do",
        ),
    },
    units="chain (p, q), drawn by its number, with starts of its own",
    judged=range(100, 132),
    explored=range(32),
    stopping="the norm of the gradient is at most 1e-8, or the time 10,000 is over",
    scale={
        "parameters": Axis(2, 2),
        "chains": Axis("32, drawn", "all"),
        "starts": Axis("drawn, |e| and |w| up to 2", "all"),
        "attention": Axis("the token itself", "?"),
    },
    chosen="Chains have |p + q − 1| ≥ 0.2 so that flows end in time. Of 9,600 explored starts all ended as predicted.",
)


def subjects() -> Subjects:
    yield _subject(PLAN.explored[:8], StartCounts(square=60, border=100, widths=(0.1, 0.3, 0.5, 1.0), each=30))


def large() -> Subjects:
    widths = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
    yield _subject(PLAN.judged, StartCounts(square=100, border=100, widths=widths, each=30))


def _subject(numbers: Sequence[int], counts: StartCounts) -> Subject:
    flat, chains = counts.square + counts.border + (len(counts.widths) + 1) * counts.each, len(numbers)
    settings = {"in (e, w)": chains * flat, "in (e, w, a)": chains * counts.each, "chains": chains}
    domain = Domain("gradient flows", Method.INTEGRATED, chains * (flat + counts.each), settings=settings)
    drawn = tuple(flows.chain(number) for number in numbers)
    return Subject("flows", data={"numbers": tuple(numbers), "chains": drawn, "starts": counts, "domain": domain})


def measure(subject: Subject) -> Measured:
    return flows.measured(*(subject.data[name] for name in ("numbers", "chains", "starts")))


def judge(subject: Subject, measured: Measured) -> Evidence:
    widths, chains = subject.data["starts"].widths, subject.data["chains"]
    basins, level, small, energy, attention = (partial(Criterion.judged, statement=key) for key in PLAN.statements)
    balls, little = [ball(width) for width in widths], [ball(width) for width in widths if width <= BALL]
    above, ends = side(chains, True), partial(flows.ends, measured)
    ended = np.isfinite(ends("square", "border", *balls, "better", SOLID)).mean(axis=1)
    criteria = [Criterion.judged("flows that ended at one of the two losses", ended, at_least=MIN_RIGHT, premise=True)]
    for name, kinds in {"the square": ["square"], "balls": balls}.items():
        expected = np.concatenate([flows.predicted(measured, kind, chains) for kind in kinds], axis=1)
        shares = (ends(*kinds) == expected).mean(axis=1)
        criteria.append(basins(f"end as predicted, from {name}", shares, at_least=MIN_RIGHT))
    off = abs(flows.critical_energies(measured) - bit_chain.SADDLE)
    criteria.append(level("error of the critical energy", off, at_most=MAX_LEVEL_ERROR))
    for judged, name, kinds in ((small, "small starts", little), (attention, "small starts with a", [SOLID])):
        right = (ends(*kinds) == above[:, None]).mean(axis=1)
        criteria.append(judged(f"{name}: trapped, p + q > 1", right[above], at_least=MIN_SURE))
        criteria.append(judged(f"{name}: learn, p + q < 1", right[~above], at_least=MIN_SURE))
    better = 1 - ends("better")[above].mean(axis=1)
    criteria.append(small("starts near w = -1: learn, p + q > 1", better, at_least=MIN_SURE))
    for judged, plane, names in ((energy, "(e, w)", ("E",)), (attention, "(e, w, a)", ("E", "E with a"))):
        drifts = {name: measured[f"{plane}/drift of {name}"] for name in names}
        criteria += [judged(f"drift of {name} in {plane}", each, at_most=MAX_DRIFT) for name, each in drifts.items()]
        criteria.append(judged(f"starts in {plane} whose w changes its sign", measured[f"{plane}/crossed"], at_most=0))
    figure = {"portraits": flows.portraits(measured, chains), "shares": flows.trapped_shares(widths, measured, chains)}
    drift = measured["square/drift in steps"].max()
    steps = Quantity(f"largest drift of E under gradient descent with steps of {STEP:g}", drift)
    return evidence(subject, criteria, figure, [steps])


def line_alone(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return ends of redrawn starts where the side of w = -1/√2 decides, at any energy."""
    above, redrawn = side(subject.data["chains"], True)[:, None], dict(measured)
    for kind in ("square", *map(ball, subject.data["starts"].widths)):
        names = [f"{kind}/{name}" for name in ("e", "w", "trapped")]
        chosen = rng.integers(measured[names[0]].shape[1], size=measured[names[0]].shape)
        redrawn |= {name: np.take_along_axis(measured[name], chosen, axis=1) for name in names}
        redrawn[names[-1]] = np.where((redrawn[names[1]] > bit_chain.CRITICAL) == above, 1.0, 0.0)
    return redrawn


def own_levels(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return ends of the starts near the border where every chain has a critical energy of its own."""
    levels = bit_chain.SADDLE + rng.normal(0, RIVAL_LEVEL, (len(subject.data["chains"]), 1))
    at = flows.energy({name: measured[f"border/{name}"] for name in "ew"})
    return {**measured, "border/trapped": np.where(at < levels, 1.0, 0.0)}


def larger_balls(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return ends of small starts that are drawn from those of larger ones, on either side of p + q = 1."""
    redrawn, rival = dict(measured), measured[f"{ball(RIVAL_BALL)}/trapped"]
    little = [ball(width) for width in subject.data["starts"].widths if width <= BALL]
    sides = [side(subject.data["chains"], over) for over in (False, True)]
    for kind in (f"{each}/trapped" for each in (*little, SOLID)):
        redrawn[kind] = measured[kind].copy()
        for own in sides:
            redrawn[kind][own] = rng.choice(rival[own].ravel(), size=measured[kind][own].shape)
    return redrawn


def discrete(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return the drift of the energy over redrawn starts of gradient descent."""
    drift, several = measured["square/drift in steps"], subject.data["starts"].square
    chosen = rng.integers(several, size=(len(subject.data["chains"]), several))
    return {**measured, "(e, w)/drift of E": np.take_along_axis(drift, chosen, axis=1).max(axis=1)}


def draw(figures: Figures) -> Figure:
    data = figures["flows"]
    title = "Gradient flow of the low-rank transformer: which starts learn to read?"
    figure, ((*portraits, shares),) = sheet(1, 3, title, 4.6, 4.2)
    for axes, portrait in zip(portraits, data["portraits"], strict=True):
        flows.draw_portrait(axes, portrait)
    for own, color, name in zip(data["shares"]["sides"], ("C0", "C3"), ("p + q < 1", "p + q > 1"), strict=True):
        shares.plot(data["shares"]["sizes"], own["rule"], color=color, label=f"{name}, by the energy")
        size, share, low, high = np.array(own["seen"]).T
        bars, label = [share - low, high - share], f"{name}, followed (95 %)"
        shares.errorbar(size, share, bars, fmt="o", color=color, capsize=3, label=label)
    shares.set(xscale="log", xlabel="standard deviation of the first e and w")
    shares.set_ylabel("share of starts that end at the loss H(π)")
    shares.legend(fontsize=8)
    return figure


NULLS = dict(zip(PLAN.statements, (line_alone, own_levels, larger_balls, discrete, larger_balls), strict=True))
CLAIM = Claim.planned(
    PLAN, subjects, judge, NULLS, large, draw, measure, id="L3", standing="theorem", budget_seconds=120
)
