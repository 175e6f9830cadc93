r"""$q$-sparse averaging needs $q$ bits in a query, a first layer as wide as the input, or a state as long as it.

Statement: To average over any $q$ of $N \ge 2q + 1$ positions within $1/(2q)$: (a) one attention layer with $H$ heads,
query size $m$ and $p$ bits needs $Hmp \ge q$; (b) a fully connected network of any depth needs a first layer of rank
$Nd'$ for vectors in $\mathbb R^{d'}$; (c) a recurrent network needs $N - 1$ bits of state even for $q = 1$, where the
last of $N$ tokens points to an earlier one.
Why: (a) Alice has a set of pointers, Bob the signs at the positions. The average decides whether their sets are
disjoint, which takes $q$ bits; Alice's pointers act on it through her query alone, of $Hmp$ bits. (b) A kernel vector
of the first layer makes $z$ and $-z$ indistinguishable. (c) At the cut the state is all that is known of the signs.
Checked: (a), (c) The protocol and the network give the same output, and bits sent equal the formula, on all instances
or 64 random ones: three random networks below each bound ((a): $q$ = 6, 8, 10; (c): $N$ = 10, 13, 17), each refuted by
two inputs that are run again, and hand-written networks that are right, one with a state of exactly the least size. (b)
Four random ReLU networks whose first layer is too narrow, refuted by a vector, its negative and a pointer set; one of
rank $Nd'$ that is exact on 200 samples.
Not checked: All networks below the bounds: the theorems cover these. The source states (b) for a width of $Nd'/2$ and
(c) for $(N-1)/2$ bits; the sharper numbers and their proofs are ours.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, theorems 4, 10 and 11 [S].
Saboteur: A right network takes the place of a small one, so that nothing can be refuted; messages of right networks
lose the last bit of every number; the exact network loses one weight.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.by_hand import averaging_layer, register
from vitrify.bounds.games import averaging_game, pointer_game
from vitrify.bounds.kernel import averaging_net, refute_averaging
from vitrify.bounds.protocols import Cut, Query
from vitrify.bounds.quantized import random_layer
from vitrify.bounds.quantized_recurrent import random_recurrent
from vitrify.claims._figures import bits_sent, either, points, show
from vitrify.claims._nets import Claim, Domain, Evidence, Method, Subject, Subjects, quantities, witnessed
from vitrify.claims._protocols import Says, check_game, sabotage_game, subject
from vitrify.spec.geometry.maxout import Layer, Maxout, random_relu

QUERIES = ((6, 2, 2), (8, 3, 2), (10, 1, 8))  # pointers, size of a query, bits
NETS = ((9, 1, 2, 8), (9, 2, 3, 17), (21, 3, 8, 60), (11, 1, 5, 4))  # positions, size of a vector, pointers, units
STATES = ((9, 2, 3), (12, 3, 3), (16, 1, 8))  # positions, numbers of the state, bits of each
P = 8  # bits of the right layers
WITHIN = 1e-9  # of the exact net


def subjects() -> Subjects:
    for pointers, size, p in QUERIES:
        game = averaging_game(pointers)
        small = random_layer(game.symbols, game.length, bits=p, query_size=size, ask=game.ask, seed=pointers)
        small = replace(small, bias=np.where(np.arange(game.length) == game.ask, -np.inf, 0.0)[None])
        right = Query(averaging_layer(game, pointers, P), game)
        yield subject(f"(a) random layer, {pointers} pointers", Query(small, game), size * p, right=right)
    for pointers in (2, 5):
        game = averaging_game(pointers)
        right = Query(averaging_layer(game, pointers, P), game)
        yield subject(f"(a) right layer, {pointers} pointers", right, 2 * pointers * P, mean_of(pointers))
    for places, width, pointers, units in NETS:
        first = [places * width + places, units, units, width]
        net = random_relu(first, seed=places, radius=1.0)
        sizes = {"places": places, "width": width, "pointers": pointers}
        yield Subject(f"(b) {units} units, {places} × {width} numbers", net, data={"small": True, **sizes})
    sizes = {"places": 9, "width": 2, "pointers": 3}
    yield Subject("(b) exact net", averaging_net(**sizes), data={"small": False, **sizes})
    for places, size, p in STATES:
        game = pointer_game(places)
        small_net = random_recurrent(game.symbols, "-+", size=size, bits=p, seed=places)
        yield subject(f"(c) random state, {places} positions", Cut(small_net, game), size * p, right=_register(places))
    yield subject("(c) register, 9 positions", _register(9), 9, lambda out: "-+"[np.argmax(out)])


def _register(places: int) -> Cut:
    game = pointer_game(places)
    return Cut(register(game), game)


def mean_of(pointers: int) -> Says:
    """Return the reader of outputs: the possible mean of $q$ signs within $1/(2q)$ of a value, else the value."""

    def says(out: Ints) -> Fraction | float:
        value = out[0] / (2 ** (P - 1) - 1)
        nearest = Fraction(2 * round((value + 1) * pointers / 2), pointers) - 1
        return nearest if abs(value - nearest) <= 1 / (2 * pointers) else float(value)

    return says


def check(subject: Subject) -> Evidence:
    return check_game(subject) if "protocol" in subject.data else _connected(subject)


def _connected(subject: Subject) -> Evidence:
    net, data = subject.spec, subject.data
    places, width, pointers = data["places"], data["width"], data["pointers"]
    search = refute_averaging(net, places, width, pointers)
    error = max(search.errors)
    if not data["small"]:
        error = max(error, _worst(net, places, width, pointers))
    right = error > 1 / (2 * pointers) if data["small"] else error <= WITHIN
    measured = {"refuted": search.z is not None, "rank": search.rank, "needed": search.needed, "error": error}
    method, cases = (Method.CONSTRUCTED, 2) if data["small"] else (Method.SAMPLED, 200)
    sizes = {"vectors": places, "numbers of each": width, "pointers": pointers}
    domain = Domain("vectors and pointers", method, cases, settings=sizes)
    witness = None if right else {"actual": str(search), "error": error}
    evidence = witnessed(witness, cases, domain, seed=0, notes=(str(search),))
    return evidence.adding(*quantities({"refuted": data["small"]}, measured))


def _worst(net: Maxout, places: int, width: int, pointers: int) -> float:
    """The largest error of a net on random vectors and pointers."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(200):
        z = rng.normal(size=(places, width))
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1)
        pointed = np.isin(np.arange(places), rng.permutation(places)[:pointers])
        out = net(np.concatenate([z.ravel(), pointed])[None])[0]
        worst = max(worst, float(np.abs(out - z[pointed].mean(axis=0)).max()))
    return worst


def sabotage(subject: Subject) -> Subject:
    if "protocol" in subject.data:
        return sabotage_game(subject)
    data = subject.data
    if data["small"]:
        return replace(subject, spec=averaging_net(data["places"], data["width"], data["pointers"]))
    first = subject.spec.layers[0]
    weights = first.weights.copy()
    weights[0] = 0.0
    return replace(subject, spec=Maxout((Layer(weights, first.biases), *subject.spec.layers[1:]), subject.spec.radius))


FIGURE = show(
    bits_sent("that are sent", "bits that the sets take"),
    points(
        "needed",
        "rank",
        "rank that the sets need",
        "rank of the net",
        "2x2y",
        by=either("refuted", "an error was found", "no error"),
        laws={"as much as needed": lambda rank: rank},
    ),
)
CLAIM = Claim(
    subjects, check, sabotage, id="B1", standing="theorem", uncertified="about what no net can do", figure=FIGURE
)
