r"""PARITY on a diagonal recurrence needs a negative eigenvalue: with −1 one number suffices, otherwise no size does.

Statement: (a) The diagonal recurrence $h \leftarrow \pm h$ on one number, with eigenvalue −1 for the counted letter,
computes the parity of every word. (b) Every diagonal recurrence $h \leftarrow h \odot a + b$ on $S$ numbers with $a \ge
0$, read by $m$ ReLU units and a linear map (the map alone for $m = 0$), is wrong on some word $1^n$ with $1 \le n \le
(mS + 1)(S + 1) + 1$. For $m = 0$ this is tight: some such network is right on $1^1, \dots, 1^{S+1}$.
Why: (b) For $n \ge 1$ each number is $c\,a^n + c'$ or $c\,n + c'$, so all numbers and a constant span at most $S + 1$
functions $1, n, a_i^n$. By Descartes' rule such a sum changes sign at most $S$ times. The units cut $n$ into at most
$mS + 1$ runs; within each, the margin is such a sum again. In all it changes sign at most $(mS + 1)(S + 1) - 1$ times,
and parity changes it at every step.
Checked: (a) All words to length 8 and every prefix of 1,000 random words of length 120. (b) 120 random networks for
each of $m = 0, 1, 4$, with $S \le 6$ and eigenvalues in $[0, 1.2]$, and networks fitted to be right for as long as
possible: the first wrong $n$ is at most the bound, and exactly $S + 2$ for the fitted ones.
Not checked: (b) all weights: that is the proof above. Deeper stacks of layers. The sources state the limit for finite
precision and, in part, for several layers.
Source: Sarrof, Veitsman & Hahn 2024, arXiv 2405.17394 [A]; Grazzi et al. 2024, arXiv 2411.12537 [A]; the bound for all
weights and its proof are our own derivation.
Saboteur: (a) The eigenvalue is 1 instead of −1. (b) One eigenvalue of the networks is −1.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from vitrify.arrays import Array, Arrays
from vitrify.claims._figures import dress, show
from vitrify.claims._nets import Domain, Evidence, Method, Quantity, check_net, quantities, witnessed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.diagonal_automaton import diagonal
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell
from vitrify.net.inference import batch_logits
from vitrify.net.recurrent import Recurrent
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic

LENGTH, WORDS = 120, 1_000
STATES, UNITS, TRIES = range(1, 7), (0, 1, 4), 20
HIGHEST = 1.2  # eigenvalue of a random net
WORK = 1e9  # multiplications spent on words beyond those listed


def subjects() -> Subjects:
    yield Subject("(a) eigenvalue −1", cyclic(2), diagonal(cyclic(2), max_length=LENGTH))
    for units in UNITS:
        nets = [_random(state, units, seed) for state in STATES for seed in range(TRIES)]
        yield Subject(f"(b) random, {units} units", data={"nets": nets, "exact": False})
    yield Subject("(b) fitted", data={"nets": [_fitted(state) for state in STATES], "exact": True})


def bound(state: int, units: int) -> int:
    """The longest word of one letter on which a recurrence without negative eigenvalues can first be wrong."""
    return (units * state + 1) * (state + 1) + 1


def first_wrong(weights: Weights[Recurrent], longest: int) -> int | None:
    """The least $n$ from 1 to a length for which the parity of $1^n$ is wrong, or tied."""
    logits = batch_logits(weights, np.array([[0] + [2] * longest]))[0, 1:]
    margins = (logits[:, 0] - logits[:, 1]) * (-1.0) ** np.arange(1, longest + 1)
    wrong = np.flatnonzero(~(margins > 0))
    return int(wrong[0]) + 1 if wrong.size else None


def check(subject: Subject) -> Evidence:
    if subject.weights is not None:
        numbers = {"numbers in the state": subject.weights.architecture.cell.state}
        return check_net(subject, {"numbers in the state": 1}, numbers, max_length=8, samples=WORDS, work=WORK)
    witness: dict[str, object] | None = None
    latest: dict[str, int] = {}
    for weights in subject.data["nets"]:
        state, units = weights.architecture.cell.state, weights.architecture.units
        most = bound(state, units)
        wrong = first_wrong(weights, most)
        size = f"first wrong n, {state} numbers, {units} units (bound {most})"
        if wrong is None or (subject.data["exact"] and wrong < most):
            expected = f"wrong at n = {most} at the latest"
            witness = {"numbers": state, "units": units, "expected": expected, "actual": wrong}
            break
        latest[size] = max(latest.get(size, 0), wrong)
    nets = len(subject.data["nets"])
    domain = Domain("nets on words of one letter up to the bound", Method.SAMPLED, nets)
    evidence = witnessed(witness, nets, domain, seed=0)
    right = Quantity("nets that are right on all words", int(witness is not None), 0, "=")
    return evidence.adding(right, *quantities({}, latest))


def sabotage(subject: Subject) -> Subject:
    """The counted letter changes nothing; one eigenvalue of each net is −1, and the others are not read."""
    if subject.weights is not None:
        flat = np.abs(subject.weights.arrays["blocks.0.rec.W_A"])
        return Subject(subject.name, subject.spec, subject.weights.with_array("blocks.0.rec.W_A", flat))
    return Subject(subject.name, data={**subject.data, "nets": [_turned(net) for net in subject.data["nets"]]})


def _net(state: int, units: int, arrays: Arrays) -> Weights[Recurrent]:
    """A diagonal net over 0 and 1 whose BOS sets all numbers to 1 by default."""
    net = Recurrent(
        ("<s>", "0", "1"),
        Output("recognizer", ("0", "1"), accepting=("0",)),
        max_length=LENGTH,
        d_embed=3,
        cell=Cell("diagonal", state),
        units=units,
        d_out=2 if units else 0,
    )
    zeros: dict[str, Array] = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    zeros |= {"embed.W_E": np.eye(3), "blocks.0.rec.W_B": np.vstack([np.ones(state), np.zeros((2, state))])}
    return Weights(net, {**zeros, **arrays})


def _random(state: int, units: int, seed: int) -> Weights[Recurrent]:
    rng = np.random.default_rng([state, units, seed])
    empty = _net(state, units, {})
    arrays = {name: rng.normal(size=shape) for name, shape in empty.architecture.shapes().items()}
    arrays |= {"embed.W_E": np.eye(3), "blocks.0.rec.W_A": rng.uniform(0.0, HIGHEST, size=(3, state))}
    return _net(state, units, arrays)


def _fitted(state: int) -> Weights[Recurrent]:
    r"""A net that is right on $1^1 \dots 1^{S+1}$: the margin is solved for, $\pm1$ at each of them."""
    eigenvalues = np.linspace(0.1, 0.9, state)
    n = np.arange(1, state + 2)
    margin = np.linalg.solve(np.hstack([eigenvalues ** n[:, None], np.ones((state + 1, 1))]), (-1.0) ** n)
    arrays = {
        "blocks.0.rec.W_A": np.vstack([np.zeros(state), np.ones(state), eigenvalues]),
        "unembed.W_U": np.stack([margin[:-1], np.zeros(state)], axis=1),
        "unembed.b_U": np.array([margin[-1], 0.0]),
    }
    return _net(state, 0, arrays)


def _turned(weights: Weights[Recurrent]) -> Weights[Recurrent]:
    """The same sizes, but the first number flips and is the only one that is read."""
    net = weights.architecture
    arrays: dict[str, Array] = {"blocks.0.rec.W_A": np.vstack([np.zeros(net.cell.state), np.ones((2, net.cell.state))])}
    arrays["blocks.0.rec.W_A"][2, 0] = -1.0
    reads = np.zeros((net.cell.state, 2))
    reads[0, 0] = 1.0
    if not net.units:
        return _net(net.cell.state, 0, arrays | {"unembed.W_U": reads})
    into, out = np.zeros((net.cell.state, net.units)), np.zeros((net.units, 2))
    into[0, 0] = out[0, 0] = 1.0  # one unit is 1 where the number is even; the constant ½ stands against it
    arrays |= {"blocks.0.mlp.W_in": into, "blocks.0.mlp.W_out": out, "unembed.W_U": np.eye(2)}
    return _net(net.cell.state, net.units, arrays | {"unembed.b_U": np.array([0.0, 0.5])})


def crossings(axes: Any, evidence: Evidence) -> None:
    """Draw the length at which each net first errs against the bound on it."""
    for number, (name, part) in enumerate(evidence.parts.items()):
        found = [(re.search(r"bound (\d+)", each.name), each.measured) for each in part.quantities]
        pairs = [(int(bound[1]), first) for bound, first in found if bound]
        if pairs:
            axes.scatter(
                *zip(*pairs, strict=True), s=26, alpha=0.75, color=f"C{number}", label=name.removeprefix("(b) ")
            )
    axes.plot([3, 200], [3, 200], "--", color="black", linewidth=1, label="the bound")
    dress(axes, [], "bound on the length", "length of the first wrong answer", "xy")


FIGURE = show(crossings)
CLAIM = Claim(subjects, check, sabotage, id="R24", standing="theorem", certified="proved", figure=FIGURE)
