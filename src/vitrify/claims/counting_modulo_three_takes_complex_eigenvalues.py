r"""Counting modulo 3 takes complex eigenvalues: two whole numbers suffice; real diagonal layers of any depth do not.

Statement: (a) A linear recurrence of $p - 1$ whole numbers counts modulo a prime $p$ at every length, bit by bit: its
transition is the companion matrix of a cyclotomic polynomial; modulo $q$ it takes $\varphi(q)$ numbers. (b) Linear
recurrences of finite precision whose transition matrices are triangular with real eigenvalues can't count modulo 3. Of
(b) this form is shown here: the states of any stack of $L$ layers of diagonal recurrences, with MLPs between them,
whose factors and inputs are functions of what the layer reads, repeat on $a, aa, aaa, \dots$ with a period that divides
$2^L$; it is 1 if no factor is negative, so that these do not even compute PARITY, at any depth.
Why: (a) $C^q = I$, and nothing is rounded. (b) A coordinate follows $x \mapsto \mathrm{round}(\mathrm{round}(\lambda
x) + b)$, which is monotone or antitone on finitely many floats, so its period is 1 or 2 times that of what drives it.
Checked: (a) Counts modulo 3, 5, 7, 6 and 12, and two counts at once: proved for every length, run on all words to
length 6 and every prefix of 1,000 random words of length 120; sizes, and as many different states as the automaton has.
(b) 12 random stacks of each depth 1 to 4, with factors in $(-1, 1)$ and in $(0, 1)$, in their own float64 arithmetic:
the period, and for each stack two lengths with equal states, bit by bit, and different remainders modulo 3. (c) The
rotation by 120°, rounded after every operation to 8, 11, 14 and 24 bits and in float64.
Not checked: (b) all weights: that is the proof above. It needs rounding that is monotone; triangular matrices that are
not diagonal are not run.
Source: Grazzi et al. 2025, arXiv 2411.12537 [A]; Sarrof, Veitsman & Hahn 2024, arXiv 2405.17394 [A], for factors that
are not negative; the nets and the proof of (b) are our own derivation. That a rotation in floats drifts away from its
three states is not what is seen in (c): within 13 steps 8 to 24 bits repeat with the period 3, and in float64 the state
is 2e-11 away from exact after 100,000 steps, without a wrong answer. It has no certificate, and more than three states.
Saboteur: (a) The same recurrence in the basis in which it rotates planes, in floats. (b) The first layer is a companion
matrix, so that the period is 3 times as long. (c) The angle is a hundredth of a degree off.
"""

from __future__ import annotations

from dataclasses import replace
from math import cos, gcd, hypot, pi, sin

import numpy as np

from vitrify.arrays import Floats
from vitrify.bounds.orbits import orbit, random_stack
from vitrify.certification.evidence import Domain, Evidence, Method, Quantity, quantities
from vitrify.claims._figures import named, points, show
from vitrify.claims._nets import Claim, Subject, Subjects, built, check_net, witnessed
from vitrify.constructions.commutative import group_counters
from vitrify.constructions.cyclotomic import companion, totient
from vitrify.net.cells import Cell
from vitrify.net.inference import with_pads
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic, product

LENGTH, SAMPLES, WORK = 120, 1_000, 1e9
DEPTHS, NETS = (1, 2, 3, 4), 12
BITS, STEPS, LONG = (8, 11, 14, 24, 53), 200, 100_000


def subjects() -> Subjects:
    for modulus in (3, 5, 7, 6, 12):
        yield built(f"(a) modulo {modulus}", cyclic(modulus), "cyclotomic", max_length=LENGTH)
    yield built("(a) modulo 3 and 4", product(cyclic(3), cyclic(4)), "cyclotomic", max_length=LENGTH)
    for kind in ("signed", "positive"):
        for depth in DEPTHS:
            nets = [random_stack(seed, kind, depth) for seed in range(NETS)]
            yield Subject(
                f"(b) {kind}, {depth} layer{'s' * (depth > 1)}", data={"nets": nets, "depth": depth, "kind": kind}
            )
    yield Subject("(c) rotation by 120°", data={"angle": 2 * pi / 3})


def check(subject: Subject) -> Evidence:
    if "angle" in subject.data:
        return _rotation(subject.data["angle"])
    if subject.weights is not None:
        states = {"different states on random words": len(subject.spec.states)}
        return check_net(
            subject, states, {next(iter(states)): _states(subject)}, max_length=6, samples=SAMPLES, work=WORK
        )
    most = 1 if subject.data["kind"] == "positive" else 2 ** subject.data["depth"]
    witness, periods, latest, pairs = None, list[int](), 0, list[tuple[int, int] | None]()
    for number, net in enumerate(subject.data["nets"]):
        repeated = orbit(net, "1")
        periods, latest = [*periods, repeated.period], max(latest, repeated.start)
        pairs.append(repeated.confused(3))
        if most % repeated.period or pairs[-1] is None:
            witness = {"net": number, "expected": f"a period that divides {most}", "actual": repeated.period}
            break
    domain = Domain("random stacks on words of one letter", Method.SAMPLED, len(periods))
    evidence = witnessed(witness, len(periods), domain, seed=0)
    right = Quantity("nets that tell all remainders modulo 3 apart", int(witness is not None), 0, "=")
    seen = {"periods": sorted(set(periods)), "letters before the period": latest, "lengths with equal states": pairs}
    return evidence.adding(right, *quantities({}, seen))


def _states(subject: Subject) -> int:
    """Return the number of different states, bit by bit, on random words."""
    net, seen = subject.weights.architecture, dict[str, Floats]()
    words = np.random.default_rng(0).integers(1, len(net.inputs), size=(SAMPLES // 10, LENGTH))
    net.forward(subject.weights.prepared, with_pads(net, words), record=seen.__setitem__)
    states = seen["blocks.0.hook_state"]
    return len(np.unique(states.reshape(-1, states.shape[-1]) + 0.0, axis=0))


def _rotation(angle: float) -> Evidence:
    """Return where a rotated point goes when every operation is rounded to some bits, and how far from exact."""
    wrong, seen = 0, list[Quantity]()
    for bits in BITS:
        points = _rotated(angle, bits, LONG if bits == BITS[-1] else STEPS)
        steps = np.arange(len(points))
        corners = np.array([[cos(2 * pi * k / 3), sin(2 * pi * k / 3)] for k in range(3)])
        wrong += int(((points @ corners.T).argmax(axis=1) != steps % 3).sum())
        first = np.unique(points, axis=0, return_index=True)[1]
        repeats = "" if len(first) == len(points) else f", which repeat after {first.max() + 1}"
        away = float(np.hypot(*(points - corners[steps % 3]).T).max())
        text = f"{len(first)} different states{repeats}; {away:.2g} away from exact"
        seen.append(Quantity(f"{len(points) - 1:,} steps in {bits} bits", text))
    cases = STEPS * (len(BITS) - 1) + LONG
    witness = {"expected": "three states in turn", "actual": f"{wrong} steps near a wrong one"} if wrong else None
    evidence = witnessed(witness, cases, Domain("steps of a rotation", Method.EXHAUSTIVE, cases))
    return evidence.adding(Quantity("steps nearest to a wrong state", wrong, 0, "="), *seen)


def _rotated(angle: float, bits: int, steps: int) -> Floats:
    """Return a point after each rotation, where every product and sum is rounded to so many bits."""

    def rounded(value: float) -> float:
        if bits == BITS[-1] or not value:
            return value
        scale = 2.0 ** (bits - int(np.frexp(value)[1]))
        return round(value * scale) / scale

    c, s, x, y = rounded(cos(angle)), rounded(sin(angle)), 1.0, 0.0
    points = [(x, y)]
    for _ in range(steps):
        x, y = rounded(rounded(x * c) - rounded(y * s)), rounded(rounded(x * s) + rounded(y * c))
        points.append((x, y))
    assert hypot(x, y) > 0
    return np.array(points)


def sabotage(subject: Subject) -> Subject:
    if "angle" in subject.data:
        return replace(subject, data={"angle": subject.data["angle"] + pi / 18_000})
    if subject.weights is None:
        return replace(subject, data={**subject.data, "nets": [_counting(net) for net in subject.data["nets"]]})
    counters, states = group_counters(subject.spec.reachable())
    arrays = {name: np.array(array) for name, array in subject.weights.arrays.items()}
    at = 0
    for number, counter in enumerate(counters):
        part = slice(at, at := at + totient(counter.period))
        turns = [2 * pi * a / counter.period for a in range(1, counter.period // 2 + 1) if gcd(a, counter.period) == 1]
        for letter, exponent in enumerate(counter.weights, start=1):
            arrays["blocks.0.rec.W_A"][letter, part, part] = _planes([exponent * turn for turn in turns])
        arrays["blocks.0.rec.W_B"][0, part] = np.tile([1.0, 0.0], len(turns))
        for remainders, state in states.items():
            directions = [(2 * cos(turn * remainders[number]), 2 * sin(turn * remainders[number])) for turn in turns]
            arrays["unembed.W_U"][part, state] = np.ravel(directions)
    return replace(subject, weights=replace(subject.weights, arrays=arrays))


def _planes(angles: list[float]) -> Floats:
    """Return the matrix of row vectors that rotates planes by angles."""
    matrix = np.zeros((2 * len(angles), 2 * len(angles)))
    for at, angle in enumerate(angles):
        matrix[2 * at : 2 * at + 2, 2 * at : 2 * at + 2] = [[cos(angle), sin(angle)], [-sin(angle), cos(angle)]]
    return matrix


def _counting(weights: Weights[Transformer]) -> Weights[Transformer]:
    """Return a stack whose first layer counts modulo 3, by a companion matrix."""
    net = weights.architecture
    first, *others = net.blocks
    stack = replace(net, blocks=(replace(first, cell=Cell("full", 2)), *others))
    arrays = {name: weights.arrays.get(name, np.zeros(shape)) for name, shape in stack.shapes().items()}
    arrays |= {"embed.W_E": np.eye(len(net.inputs), net.d_model), "blocks.0.rec.W_C": np.eye(2, net.d_model)}
    arrays |= {"blocks.0.rec.W_A": np.zeros((net.d_model, 2, 2)), "blocks.0.rec.W_B": np.eye(net.d_model, 2)}
    arrays["blocks.0.rec.W_A"][2] = companion(3)
    arrays["blocks.0.rec.W_B"][1:] = 0.0
    return replace(weights, architecture=stack, arrays=arrays)


FIGURE = show(
    points("modulo {}", "d_model", "modulus", "numbers in the state"),
    points(
        "{} layer",
        "letters before the period",
        "layers",
        "letters until real nets repeat",
        "y",
        by=named("(signed|positive)"),
    ),
)
CLAIM = Claim(subjects, check, sabotage, id="R24", standing="theorem", certified="proved", figure=FIGURE)
