r"""Matching runs on points of a circle: two numbers add up to 0 modulo $M$ where one is the mirror image of the other.

In the spirit of Sanford, Hsu and Telgarsky (2023, arXiv 2306.02896); the weights are our own derivation. Number $x$ is
the point at the angle $2\pi x/M$. The product of a query $(\cos, \sin)$ and a key $(\cos, -\sin)$ is the cosine of
the sum of their angles: 1 where the numbers match, at most $\cos(2\pi/M)$ elsewhere.

- *Match2*: one head looks for a match and reads 1 there. BOS stands half a gap below a match and says 0 (the paper's
  blank ties with a match, and then rounding may tip it).
- *Match3Bigram*: layer 1 copies the number before; units turn the sum of both into its point, one ramp per whole
  number, and into none at the first position. Layer 2 is Match2 with these keys.
- *Match3Local*: one head per neighbour copies its number. Before the beginning it reads a large negative one from BOS;
  beyond the end it reads the last number, which is near anyway. Units look at the sum of each pair of these and the
  number itself, whether it is $0$, $M$ or $2M$, and count such pairs.

| | Match2 | Match3Bigram | Match3Local, reach $K$ |
| --- | --- | --- | --- |
| layers, heads | 1; 1 | 2; 2 | 1; $2K$ |
| width | 4, of which 3 are embedded | 10 | $2K + 4$ |
| queries of heads | 3 | 3 | 2 |
| units | 0 | $4M - 2$ | $12(K+1)(2K+1)$ for $M \ge 4$; 10 instead of 12 for 3, and 8 for 2 |

The gap of a circle is $1 - \cos(2\pi/M) \approx 20/M^2$: what a larger modulus takes is precision.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.constructions._circles import opposite
from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.heads.select import select
from vitrify.kit.network import Affine, AttentionKind, Builder, Circle, Flag, Integers, Network, Output, Readout, Space
from vitrify.spec.computation.matching import Matching
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.match2 import Match2
from vitrify.spec.tasks.match3_bigram import Match3Bigram
from vitrify.spec.tasks.match3_local import Match3Local


def sizes(task: Matching) -> DeclaredSizes:
    """Return all sizes, by the modulus and the reach."""
    if isinstance(task, Match3Local):
        k, jumps = task.reach, {2: 4, 3: 5}.get(task.modulus, 6)
        units = 2 * jumps * (k + 1) * (2 * k + 1)
        return DeclaredSizes({"layers": 1, "heads": 2 * k, "d_model": 2 * k + 4, "d_head": 2, "units": units})
    if isinstance(task, Match3Bigram):
        return DeclaredSizes({"layers": 2, "heads": 2, "d_model": 10, "d_head": 3, "units": 4 * task.modulus - 2})
    return DeclaredSizes({"layers": 1, "heads": 1, "d_model": 4, "d_head": 3, "units": 0})


@construction("match2", "pairs that add up to 0, in one head", sizes, default=True, certified=("to T", "every length"))
def match2(task: Match2, *, attention: Attention = "softmax") -> Network:
    """Return a transformer that outputs, at every number, whether another completes it to 0 modulo M."""
    net = _builder(task, attention)
    angle = _angle(net, task)
    return _network(net, task, _match_flag(net, angle, angle), 0.5)


@construction(
    "match3-bigram", "neighbors that complete a number, in two layers", sizes, default=True, unproved="may leak"
)
def match3_bigram(task: Match3Bigram, *, attention: Attention = "softmax") -> Network:
    """Return a transformer that outputs, at every number, whether two adjacent numbers complete it to 0 modulo M."""
    net, m = _builder(task, attention), task.modulus
    angle, number = _angle(net, task), _number(net, task, nothing=-2 * m)
    before = at_position(net, earlier(net, 1), Affine.copy(number), Space("number before", number.kind))
    codes = Circle(task.alphabet)
    points = np.arange(-1, 2 * m - 1)
    values = np.vstack([np.zeros(2), codes.codes[points[1:] % m]])
    both = Affine.copy(number) + Affine.copy(before)
    pair = Space("sum of both", codes)
    error = _rounding_of_ramps(points, values)
    steps(net, both, points.astype(float), [(pair, values)], name="points of sums", error=error)
    return _network(net, task, _match_flag(net, angle, pair), 0.5)


@construction(
    "match3-local",
    "nearby pairs that complete a number, in one layer",
    sizes,
    default=True,
    unproved="several keys may share",
)
def match3_local(task: Match3Local, *, attention: Attention = "softmax") -> Network:
    """Return a transformer that outputs, at every number, whether two numbers near it complete it to 0 modulo M."""
    net, m = _builder(task, attention), task.modulus
    number = _number(net, task, nothing=-3 * m)
    near = {0: number}
    for offset in (*range(-task.reach, 0), *range(1, task.reach + 1)):
        writes = Space(f"number at {offset:+}", number.kind)
        near[offset] = at_position(net, earlier(net, -offset), Affine.copy(number), writes, mask="none")
    pairs = [*combinations_with_replacement(sorted(near), 2)]
    sums = Affine.constant(np.zeros(len(pairs)))
    for column, (a, b) in zip(np.eye(len(pairs)), pairs, strict=True):
        for space in (number, near[a], near[b]):
            sums = sums + Affine.of({space: column[None]})
    points = np.array([x for x in range(-1, 3 * m - 2) if min(x % m, -x % m) <= 1])
    values = (points % m == 0).astype(float)
    hits = Space("pairs that match", Integers(("pairs",), 0.0, float(len(pairs))))
    steps(net, sums, points.astype(float), [(hits, values)], name="sums of pairs", each=True, total=True)
    return _network(net, task, hits, 0.5)


def _builder(task: Matching, attention: AttentionKind) -> Builder:
    return Builder(f"{task.name} modulo {task.modulus}, {attention}", (BEGIN, *task.alphabet), task.length, attention)


def _angle(net: Builder, task: Matching) -> Space:
    codes = Circle(task.alphabet)
    return net.embed("angle", codes, np.vstack([np.zeros(2), codes.codes]))


def _number(net: Builder, task: Matching, nothing: int) -> Space:
    """Return the space of the number itself; at BOS it is so small that no sum with it matches."""
    kind = Integers(("x",), float(nothing), float(task.modulus - 1))
    return net.embed("number", kind, np.array([nothing, *range(task.modulus)], dtype=float)[:, None])


def _match_flag(net: Builder, angle: Space, key: Space) -> Space:
    assert isinstance(angle.kind, Circle)
    token = Affine.of({net.bos: [[-1.0]]}, [1.0])
    tests = [opposite(angle, key, angle.kind)]
    return select(net, tests, token, Space("a match", Flag()), mask="none", shares=False)


def _rounding_of_ramps(points: Ints, values: Floats) -> float:
    """Return a bound on the rounding error of a sum of ramps, each of two units that grow and cancel."""
    jumps = np.abs(np.diff(values, axis=0))
    terms = 2 * len(jumps)
    grown = 2 * float(points[-1] - points[0] + 1)
    return UNIT_ROUNDOFF * (terms + 2) * (2 * grown * float(jumps.sum(axis=0).max()) + 1)


def _network(net: Builder, task: Matching, answer: Space, threshold: float) -> Network:
    """Return the network: the logit of `yes` exceeds `no` by 4 times the answer's excess over the threshold."""
    output = Output("transducer", task.outputs)
    readout = Readout(((answer, np.array([[0.0, 4.0]])),), np.array([4 * threshold, 0.0]), {answer: 0.25})
    source = "in the spirit of Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896"
    return net.network(output, readout, task.name, {"modulus": task.modulus}, source=source, reuse=False)
