r"""Disentangled transformers, whose layers append instead of adding, are as expressive as ordinary ones.

Statement: For every transformer whose layers add to one residual stream there is a disentangled one, whose layers
append their outputs, with the same heads, units and outputs, and conversely. With $H$ heads and $M$ MLPs the width $d$
becomes $d(1 + H + M)$; in the other direction it stays the same.
Why: A part that read a sum reads its terms through copies of one matrix. A part that appended adds, in dimensions of
its own.
Checked: Five built nets (an n-gram model, an automaton in log depth, brackets, two estimators of order 2) converted to
the disentangled form and back: all words to length 5 or 6 and every prefix of random words of full length (12), against
the specs; the largest difference of outputs on 200 random words is at most 1e-9; widths equal the formulas. Three
random nets of each kind, with all kinds of heads, and norms in the appended form: the same difference.
Not checked: Ordinary transformers with layer norm: their conversion is refused. Larger nets, and all real inputs: words
are enumerated or sampled. The source states the equivalence for attention-only models.
Source: Nichani et al. 2024, arXiv 2402.14735 [A]; the conversions are our own.
Saboteur: One dimension that the unembedding reads is removed.
"""

from __future__ import annotations

import numpy as np

from vitrify.claims._figures import bars, show
from vitrify.claims._nets import CaseKind, Claim, Domain, Evidence, Method, Subject, Subjects, check_net, sized, zeroed
from vitrify.constructions.catalogue import build
from vitrify.net.architecture import Output
from vitrify.net.disentangle import apart, together
from vitrify.net.inference import logits
from vitrify.net.transformer import Block, Head, Residual, Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.tasks.estimate import Estimate

SAME = 1e-9  # sums of the same terms in another order, on outputs of a few tens
BUILT = {
    "3-gram model": (random_ngram(3, 3, seed=0), "heads"),
    "counter modulo 3": (cyclic(3), "log-depth"),
    "brackets": (Dyck.of("( ) [ ]", depth=3, length=12), "dyck"),
    "estimator, heads": (Estimate(2, 3, 12), "estimate-heads"),
    "estimator, digits": (Estimate(2, 3, 12), "estimate-digits"),
}


def subjects() -> Subjects:
    for name, (spec, shape) in BUILT.items():
        first = build(spec, shape, max_length=None if isinstance(spec, Estimate) else 12)
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
    return {"first": first, "width": width, "heads": first.sizes.heads, "units": first.sizes.units}


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
    first = subject.data["first"]
    rng, length = np.random.default_rng(0), first.architecture.max_length
    letters = len(first.architecture.inputs)
    words = [rng.integers(1, letters, size=rng.integers(length + 1)).tolist() for _ in range(200)]
    outputs, expected = (list(logits(weights, words)) for weights in (subject.weights, first))
    far = max(float(np.abs(a - b).max()) for a, b in zip(outputs, expected, strict=True))
    same = f"outputs within {SAME}"
    declared = {**{name: subject.data[name] for name in ("width", "heads", "units")}, same: True}
    measured = {"width": subject.weights.architecture.width, same: far <= SAME}
    if subject.spec is not None:
        return check_net(subject, declared, measured, max_length=6 if letters < 5 else 5)
    drawn = Domain(CaseKind.RANDOM_WORDS, Method.SAMPLED, len(words), 0, length)
    return Evidence("holds", len(words), (drawn,)).adding(*sized(subject, declared, measured))


def sabotage(subject: Subject) -> Subject:
    return zeroed(subject, "unembed.W_U", np.flatnonzero(subject.weights.arrays["unembed.W_U"].any(axis=1))[-1])


FIGURE = show(bars({"width of the stream": "width", "heads": "heads"}, "count"))
CLAIM = Claim(subjects, check, sabotage, id="R22", standing="theorem", certified="sampled", figure=FIGURE)
