r"""Averaging over $q$ pointers takes $q$ bits in a query, a first layer as wide as the input, or a state as long.

Statement: to average over any $q$ of $N \ge 2q + 1$ places to within $1/(2q)$, (a) a layer of attention needs queries
of $Hmp \ge q$ bits, (b) a fully connected net of any depth needs a first layer of rank $Nd'$ for vectors of size $d'$,
and (c) a recurrent net needs a state of a bit per place even for $q = 1$: $N - 1$ bits where the last of $N$ tokens
points to one of those before it.
Why: (a) pointers of one party into signs of the other decide whether two sets are disjoint, and the query is all that
the signs meet; (b) a kernel vector of the first layer makes $z$ and $-z$ look alike; (c) at the cut the state is all
that is known of the signs.
Checked: the output of the protocol against that of the net, and bits sent against the formula, on all instances (or 64
random ones), for random nets below the bound, which are refuted by two inputs run once more, and for nets by hand that
are right, one with a state of exactly the least size; random ReLU nets of 8 to 60 units whose first layer is too
narrow, refuted by a vector, its negative and a pointer set, and one of rank $Nd'$ that is exact.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, Theorems 4, 10 and 11 [S]. (b) is published for a width of
$Nd'/2$ and (c) for $(N-1)/2$ bits; the sharper figures, their proofs and all nets are ours.
Saboteur: in place of a small net one that is right, which is not refuted; of the right nets' messages every number
loses its last bit, and the exact fully connected net forgets one number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from vitrify.bounds.games import averaging_game, pointer_game
from vitrify.bounds.kernel import averaging_net, refute_averaging
from vitrify.bounds.protocols import Cut, Query
from vitrify.bounds.quantised import Ints, random_layer
from vitrify.bounds.quantised_recurrent import random_recurrent
from vitrify.bounds.right import averaging_layer, register
from vitrify.certify.evidence import Evidence
from vitrify.claims._protocols import Says, check_game, sabotage_game, subject
from vitrify.claims.catalogue import Claim, Subject
from vitrify.spec.maxout import Layer, Maxout
from vitrify.spec.maxout_nets import random_relu

QUERIES = ((6, 2, 2), (8, 3, 2), (10, 1, 8))  # pointers, size of a query, bits
NETS = ((9, 1, 2, 8), (9, 2, 3, 17), (21, 3, 8, 60), (11, 1, 5, 4))  # places, size of a vector, pointers, units
STATES = ((9, 2, 3), (12, 3, 3), (16, 1, 8))  # places, numbers of the state, bits of each
P = 8  # bits of the right layers
WITHIN = 1e-9  # of the exact net


def subjects() -> Iterator[Subject]:
    """Layers, recurrent nets and fully connected nets, too small and right."""
    for pointers, size, p in QUERIES:
        game = averaging_game(pointers)
        small = random_layer(game.symbols, game.length, bits=p, query_size=size, ask=game.ask, seed=pointers)
        small = replace(small, bias=np.where(np.arange(game.length) == game.ask, -np.inf, 0.0)[None])
        right = Query(averaging_layer(game, pointers, P), game)
        yield subject(f"(a) random layer, {pointers} pointers", Query(small, game), size * p, right=right)
    for pointers in (2, 5):
        game = averaging_game(pointers)
        yield subject(
            f"(a) right layer, {pointers} pointers",
            Query(averaging_layer(game, pointers, P), game),
            2 * pointers * P,
            mean_of(pointers),
        )
    for places, width, pointers, units in NETS:
        first = [places * width + places, units, units, width]
        net = random_relu(first, seed=places, radius=1.0)
        sizes = {"places": places, "width": width, "pointers": pointers}
        yield Subject(f"(b) {units} units, {places} × {width} numbers", net, data={"small": True, **sizes})
    yield Subject(
        "(b) exact net", averaging_net(9, 2, 3), data={"small": False, "places": 9, "width": 2, "pointers": 3}
    )
    for places, size, p in STATES:
        game = pointer_game(places)
        small_net = random_recurrent(game.symbols, "-+", size=size, bits=p, seed=places)
        yield subject(f"(c) random state, {places} places", Cut(small_net, game), size * p, right=_register(places))
    yield subject("(c) register, 9 places", _register(9), 9, lambda out: "-+"[np.argmax(out)])


def _register(places: int) -> Cut:
    game = pointer_game(places)
    return Cut(register(game), game)


def mean_of(pointers: int) -> Says:
    """The mean of so many signs that a mixed value is, if it is within $1/(2q)$ of one."""

    def says(out: Ints) -> Fraction | float:
        value = out[0] / (2 ** (P - 1) - 1)
        nearest = Fraction(2 * round((value + 1) * pointers / 2), pointers) - 1
        return nearest if abs(value - nearest) <= 1 / (2 * pointers) else float(value)

    return says


def check(subject: Subject) -> Evidence:
    """Protocols, or the rank of a first layer."""
    return check_game(subject) if "protocol" in subject.data else _connected(subject)


def _connected(subject: Subject) -> Evidence:
    net, data = subject.spec, subject.data
    places, width, pointers = data["places"], data["width"], data["pointers"]
    search = refute_averaging(net, places, width, pointers)
    error = max(search.errors)
    if not data["small"]:
        error = max(error, _worst(net, places, width, pointers))
    right = error > 1 / (2 * pointers) if data["small"] else error <= WITHIN
    declared = {"refuted": data["small"]}
    measured = {"refuted": search.z is not None, "rank": search.rank, "needed": search.needed, "error": error}
    good = right and declared["refuted"] == measured["refuted"]
    return Evidence(
        "holds" if good else "fails",
        "constructed" if data["small"] else "sampled",
        f"{places} vectors of {width} numbers, {pointers} pointers",
        2 if data["small"] else 200,
        None if good else {"found": str(search), "error": error},
        declared,
        measured,
        seed=0,
        notes=(str(search),),
    )


def _worst(net: Maxout, places: int, width: int, pointers: int) -> float:
    """The largest error of a net on random vectors and pointers."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(200):
        z = rng.normal(size=(places, width))
        z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1)
        given = np.isin(np.arange(places), rng.permutation(places)[:pointers])
        out = net(np.concatenate([z.ravel(), given])[None])[0]
        worst = max(worst, float(np.abs(out - z[given].mean(axis=0)).max()))
    return worst


def sabotage(subject: Subject) -> Subject:
    """Small nets become right ones; right ones lose something."""
    if "protocol" in subject.data:
        return sabotage_game(subject)
    data = subject.data
    if data["small"]:
        return replace(subject, spec=averaging_net(data["places"], data["width"], data["pointers"]))
    first = subject.spec.layers[0]
    weights = first.weights.copy()
    weights[0] = 0.0
    return replace(subject, spec=Maxout((Layer(weights, first.biases), *subject.spec.layers[1:]), subject.spec.radius))


CLAIM = Claim(row="B1", status="proved", subjects=subjects, check=check, sabotage=sabotage)
