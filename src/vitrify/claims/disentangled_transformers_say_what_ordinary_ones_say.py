r"""Disentangled transformers, whose layers append instead of adding, are as expressive as ordinary ones.

Statement: for every transformer whose parts add to one stream there is one whose parts append what they say, with the
same heads and units and the same outputs, and the other way round. With $H$ heads and $M$ MLPs the width $d$ becomes
$d(1 + H + M)$; back it stays as it is.
Why: who read a sum reads its terms through copies of one matrix; who appended adds, in dimensions of its own.
Checked: built nets (an n-gram model, an automaton in log depth, brackets, estimators of order 2) made apart, and these
made one again: all words to length 6, and every prefix of random long words, against the specs themselves; the largest
difference from the outputs of the first net; widths against the formulas. Random nets of both kinds, with all kinds of
heads, and norms where parts are appended: the largest difference on random words.
Source: E. Nichani et al. 2024, arXiv 2402.14735 [A]; the conversions are our own. A norm over an ordinary stream has no
disentangled form here, and `apart` refuses it.
Saboteur: the answer is read without one dimension of one part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import examined, with_sizes
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.catalogue import Settings, build
from vitrify.net.architecture import Output
from vitrify.net.disentangle import apart, together
from vitrify.net.run import logits
from vitrify.net.transformer import Block, Head, Residual, Transformer
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.automata import cyclic
from vitrify.spec.dyck import Dyck
from vitrify.spec.ngrams import random_ngram
from vitrify.spec.tasks.estimate import Estimate

SAME = 1e-9  # sums of the same terms in another order, on outputs of a few tens
BUILT = {
    "3-gram model": (random_ngram(3, 3, seed=0), "heads"),
    "counter modulo 3": (cyclic(3), "log-depth"),
    "brackets": (Dyck.of("( ) [ ]", depth=3, length=12), "dyck"),
    "estimator, heads": (Estimate(2, 3, 12), "estimate-heads"),
    "estimator, digits": (Estimate(2, 3, 12), "estimate-digits"),
}


def subjects() -> Iterator[Subject]:
    """Built nets taken apart and put together again, and random ones."""
    for name, (spec, shape) in BUILT.items():
        chosen = Settings(max_length=None if isinstance(spec, Estimate) else 12)
        first = build(spec, shape, chosen)
        wide = apart(first)
        yield Subject(f"{name}, apart", spec, wide, _sizes(first, wide))
        yield Subject(f"{name}, together again", spec, together(wide), _sizes(first, wide))
    for seed in range(3):
        first = _random(seed, "add", norm=False)
        wide = apart(first)
        yield Subject(f"random net {seed}, apart", None, wide, _sizes(first, wide))
        first = _random(seed, "concatenate", norm=True)
        yield Subject(f"random disentangled net {seed}, together", None, together(first), _sizes(first, first))


def _sizes(first: Weights, wide: Weights) -> dict[str, object]:
    net = first.architecture
    parts = 1 + sum(len(block.heads) + block.halves for block in net.blocks)
    width = parts * net.d_model if net.residual == "add" else wide.architecture.width
    return {"first": first, "width": width, "heads": Ledger.of(first).heads, "units": Ledger.of(first).units}


def _random(seed: int, residual: Residual, *, norm: bool) -> Weights:
    """Two layers of heads of several kinds, and units."""
    heads = (Head(), Head("sparsemax", "strict"), Head("hard", resolution=1e-9), Head("softmax", "none", window=3))
    net = Transformer(
        inputs=("<s>", "a", "b", "c"),
        output=Output("transducer", ("x", "y")),
        max_length=12,
        d_model=5,
        blocks=(Block(heads, 3, 2, units=6, d_out=4), Block(heads[:2], 2, 3, units=4, d_out=3)),
        residual=residual,
        norm=norm,
        eps=1e-3,
    )
    rng = np.random.default_rng(seed)
    return Weights(net, {name: rng.normal(size=shape) for name, shape in net.shapes().items()})


def check(subject: Subject) -> Evidence:
    """Right answers where there is a spec, equal outputs, and sizes."""
    first, size = subject.data["first"], Ledger.of(subject.weights)
    rng, length = np.random.default_rng(0), first.architecture.max_length
    letters = len(first.architecture.inputs)
    words = [rng.integers(1, letters, size=rng.integers(length + 1)).tolist() for _ in range(200)]
    found, wanted = (list(logits(weights, words)) for weights in (subject.weights, first))
    far = max(float(np.abs(a - b).max()) for a, b in zip(found, wanted, strict=True))
    declared = {"width": subject.data["width"], "heads": subject.data["heads"], "units": subject.data["units"]}
    declared |= {f"outputs within {SAME}": True}
    measured = {"width": size.d_model, "heads": size.heads, "units": size.units, f"outputs within {SAME}": far <= SAME}
    if subject.spec is not None:
        return examined(subject, 6 if letters < 5 else 5, declared, measured)
    return with_sizes(Evidence("holds", "sampled", f"{len(words)} random words", len(words)), declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The last dimension that the answer reads is left out."""
    table = subject.weights.arrays["unembed.W_U"].copy()
    table[np.flatnonzero(table.any(axis=1))[-1]] = 0.0
    return replace(subject, weights=subject.weights.with_array("unembed.W_U", table))


CLAIM = Claim(row="R22", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
