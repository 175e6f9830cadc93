r"""An n-gram language model becomes a transformer, in the three shapes of Svete & Cotterell (2024, arXiv 2404.14994).

| shape | attention layers × heads | how the last $n-1$ symbols reach one position |
| --- | --- | --- |
| `heads` | 1 × $(n-1)$ | head $i$ reads the symbol $i$ places back, $i = 0 \dots n-2$ |
| `layers` | $(n-1)$ × 1 | layer 0 reads the symbol itself, layer $i$ the previous position's slot $i-1$ |
| `single` | 1 × 1 | one head mixes the last $n-1$ symbols, an MLP takes the mixture apart |

Position selection uses the kit's codes and sinks, so these nets are in the spirit of the paper's rather than its own
weights; the published position code is there as `positions="sqrt"`.

**The MLP costs what the model lists.** Let $h_k$ be the last $k$ symbols. Back-off says $\log p(w|h_k) - \log
p(w|h_{k-1}) = b(h_k) + \delta(h_k w)$, with $\delta(h_k w) = \log p^*(h_k w) - b(h_k) - \log p(w|h_{k-1})$ where $h_k
w$ is listed and 0 where it is not; and the whole difference is 0 where the context $h_k$ is not listed. Summed over
$k$, $\log p(w|h)$ is the unigram value, plus one sparse row for each listed context that matches, plus constants
$b(h_k)$ that do not depend on $w$. The softmax removes the constants, so: one unit per listed context, one output
weight per listed n-gram.

A file whose sums are off by more than 1e-10 is reproduced as it stands: the constants are kept in one more dimension,
and the logits are then the file's log-probabilities without a softmax. That costs one more output weight per context
and per word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Matrix
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import ANY, Case, choose, digits, table
from vitrify.kit.heads import shift, window
from vitrify.kit.network import Builder, Network, Readout, Space
from vitrify.kit.positions import CodeName, position_code
from vitrify.net.architecture import Output
from vitrify.net.spaces import Bits, Categorical, OneHot, Reals
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ngram import BEGIN, LN10, NGramModel

Shape = Literal["heads", "layers", "single"]
Code = Literal["auto", "onehot", "bits"]
Patterns = NDArray[np.int64]  # [context, slot]: input ids, slot 0 being the last symbol, and ANY

LOGIT_ERROR = 1e-10  # what soft attention may do to a logit: a tenth of the 1e-9 promised for probabilities
KEPT_DEFECT = 1e-10  # sums further from one than this are kept as they are
ONEHOT_WORDS = 64  # larger vocabularies are coded in bits: a one-hot slot per symbol would dwarf the rest
BASE = 3.0  # of the single head's mixture: with 2, lower digits add up to almost one unit


def ngram(
    model: NGramModel,
    *,
    shape: Shape = "heads",
    attention: AttentionKind = "softmax",
    max_length: int = 1024,
    code: Code = "auto",
    positions: CodeName = "dyadic",
    snap: bool = False,
) -> Network:
    """A transformer that gives every next symbol the probability that the model gives it.

    `snap` spends a second unit per context to remove the noise of soft attention altogether, instead of making it
    small.
    """
    if shape not in get_args(Shape):
        raise BuildRefused(f"an n-gram model is built in the shape {', '.join(get_args(Shape))}, not {shape!r}")
    if max_length < 1:
        raise BuildRefused(f"--max-length must be at least 1, got {max_length}")
    slots = model.order - 1
    inputs = (BEGIN, *model.readable)
    net = Builder(
        name=f"{model.order}-gram model, {shape}, {attention}",
        inputs=inputs,
        max_length=max_length,
        attention=attention,
        pads=max(slots, 1) if shape == "single" else 1,
    )
    kind: Categorical = (
        Bits(inputs) if code == "bits" or (code == "auto" and len(inputs) > ONEHOT_WORDS) else OneHot(inputs)
    )
    token = net.embed("token", kind, kind.codes)
    makers = {"heads": _by_heads, "layers": _by_layers, "single": _by_one_head}
    rows = listed_rows(model)
    history = makers[shape](net, token, rows.patterns, positions) if slots else []
    literal = model.normalisation_defect()[0] > KEPT_DEFECT
    logits = Space("logits", Reals(model.predicted, -1e4, 1e4))
    parts: list[tuple[Space, Matrix]] = []
    if len(rows.patterns):
        written = Space("logits", Reals((*model.predicted, "back-off"), -1e4, 1e4)) if literal else logits
        names = [" ".join(inputs[i] for i in reversed(row) if i != ANY) for row in rows.patterns.tolist()]
        outputs = _beside(rows.deltas, rows.backoffs) if literal else rows.deltas
        table(
            net,
            history,
            rows.patterns,
            written,
            outputs,
            snap=snap,
            matches=slots,
            name="listed contexts",
            rows=names,
        )
        parts = [(written, _spread(len(model.predicted), literal))]
    return net.network(
        Output("lm", model.predicted, scores="log" if literal else "softmax"),
        Readout(tuple(parts), rows.unigram, {space: LOGIT_ERROR for space, _ in parts}),
        {
            "construction": "n-gram model",
            "shape": shape,
            "attention": attention,
            "positions": positions if shape != "single" else "relative",
            "code": kind.tag,
            "order": model.order,
            "listed n-grams": sum(len(level) for level in model.levels),
            "listed contexts": len(rows.patterns),
            "source": "in the spirit of Svete & Cotterell 2024, arXiv 2404.14994",
        },
        reuse=False,  # the published shapes have no units but the table's
    )


def sizes(model: NGramModel, shape: Shape) -> dict[str, int]:
    """What the formulas promise: attention layers, heads, and units of the table (one per listed context)."""
    slots = model.order - 1
    layers = {"heads": min(slots, 1), "layers": slots, "single": min(slots, 1)}[shape]
    return {
        "attention_layers": layers,
        "heads": slots if shape != "single" else layers,
        "table_units": sum(len(contexts) for contexts in model.contexts()),
        "table_weights": sum(len(level) for level in model.levels[1:]),
    }


def _by_heads(net: Builder, token: Space, patterns: Patterns, positions: CodeName) -> list[Space]:
    """One head per slot; the one that reads its own position needs no position code."""
    backs = range(patterns.shape[1])
    code = position_code(positions, net.max_length, backs)
    place = net.place("position", code.kind(), code.table()) if len(backs) > 1 else token
    return [shift(net, token, back, code, place, name=f"slot {back}") for back in backs]


def _by_layers(net: Builder, token: Space, patterns: Patterns, positions: CodeName) -> list[Space]:
    backs = range(patterns.shape[1])
    code = position_code(positions, net.max_length, (0, 1))
    place = net.place("position", code.kind(), code.table()) if len(backs) > 1 else token
    history = [shift(net, token, 0, code, place, name="slot 0")]
    for back in backs[1:]:
        history.append(shift(net, history[-1], 1, code, place, name=f"slot {back}"))
    return history


def _by_one_head(net: Builder, token: Space, patterns: Patterns, positions: CodeName) -> list[Space]:  # noqa: ARG001
    r"""Soft and sparse heads mix with weights $3^{-i}$, whose digits an MLP reads off.

    A hard head can only mix evenly, which loses the order, so an MLP first moves each symbol into one of $n-1$ bins,
    by its position modulo $n-1$; after the head, an MLP turns the bins so that bin $i$ holds the symbol $i$ places
    back. What no listed context could ask for is not carried.
    """
    slots = patterns.shape[1]
    names = [f"slot {back}" for back in range(slots)]
    if net.attention != "hard":
        mixture = window(net, token, [BASE**-back for back in range(slots)], name="mixture")
        return list(digits(net, mixture, BASE, names, _categorical(token)))
    remainder = OneHot(tuple(str(r) for r in range(slots)))
    at = np.arange(net.pads + net.max_length) % slots
    pads = np.zeros((net.pads, slots))
    pads[-1, slots - 1] = 1.0  # the last pad is the only one that counts: no listed context has more than one <s>
    clock = net.place("position mod n-1", remainder, remainder.codes[at[net.pads :]], pads=pads)
    asked = _asked(token, patterns)
    used = sorted({(r, c) for _, r, c in asked})
    mixed = window(net, _bind(net, token, clock, used), [1.0] * slots, name="mixture")
    turned = []
    for back, name in enumerate(names):
        cases = []
        for r in range(slots):
            bin_ = (r - back) % slots
            here = [(place, c) for place, (b, c) in enumerate(used) if b == bin_ and (back, b, c) in asked]
            cases.append(Case(clock, r, mixed, [place for place, _ in here], [c for _, c in here]))
        turned.append(choose(net, cases, Space(name, replace(_categorical(token), void=True))))
    return turned


def _asked(token: Space, patterns: Patterns) -> set[tuple[int, int, int]]:
    """Which coordinates of the token's code are asked for: (places back, bin, coordinate).

    A context that begins with `<s>` says where its symbols stand, `<s>` itself in the last bin.
    """
    slots = patterns.shape[1]
    if not isinstance(token.kind, OneHot):
        return {(back, r, c) for back in range(slots) for r in range(slots) for c in range(token.size)}
    asked = set()
    for pattern in patterns.tolist():
        context = [value for value in pattern if value != ANY]
        for back, value in enumerate(context):
            bins = range(slots) if context[-1] else [(len(context) - 2 - back) % slots]
            asked |= {(back, r, value) for r in bins}
    return asked


def _bind(net: Builder, token: Space, clock: Space, used: list[tuple[int, int]]) -> Space:
    """The token's code in the bin of its position, zeros in the others: a table of token × bin."""
    codes, last = _categorical(token).codes, clock.size - 1
    pairs = [(word, r) for r in range(clock.size) for word in range(len(codes)) if word or r == last]
    out = np.array([[codes[word, c] if b == r else 0.0 for b, c in used] for word, r in pairs])
    kept = out.any(axis=1)
    labels = tuple(f"bin {r}{token.kind.names[c]}" for r, c in used)
    bins = Space("bins", Reals(labels, token.kind.low, token.kind.high))
    return table(net, [token, clock], np.array(pairs)[kept], bins, out[kept], name="bins")


def _categorical(space: Space) -> Categorical:
    assert isinstance(space.kind, OneHot | Bits)
    return space.kind


@dataclass(frozen=True, eq=False)
class Rows:
    """The listed contexts as a table: patterns over slots (0 = the last symbol), and what each adds to the logits."""

    patterns: Patterns
    deltas: Matrix
    backoffs: NDArray[np.float64]
    unigram: NDArray[np.float64]


def listed_rows(model: NGramModel) -> Rows:
    """One row per listed context, one entry per listed n-gram (see the top of this file)."""
    from scipy.sparse import coo_array

    input_of, output_of = _index(model.vocabulary, (BEGIN, *model.readable)), _index(model.vocabulary, model.predicted)
    patterns, backoffs = [], []
    rows, columns, values = [], [], []
    start = 0
    for level, contexts in enumerate(model.contexts()):
        words = model.words_of(level, contexts)
        pattern = np.full((len(contexts), model.order - 1), ANY, dtype=np.int64)
        pattern[:, : level + 1] = input_of[words[:, ::-1]]
        patterns.append(pattern)
        backoffs.append(LN10 * model.levels[level].log10_backoff[contexts])
        row_of = np.full(len(model.levels[level]), -1)
        row_of[contexts] = start + np.arange(len(contexts))
        above = model.levels[level + 1]
        grams = model.words_of(level + 1, np.arange(len(above)))
        lower = model.log10_probs(_padded(grams[:, 1:-1], model.order - 1), grams[:, -1])
        rows.append(row_of[above.parent])
        columns.append(output_of[above.word])
        values.append(LN10 * (above.log10_prob - model.levels[level].log10_backoff[above.parent] - lower))
        start += len(contexts)
    shape = (start, len(model.predicted))
    where = (np.concatenate([*rows, np.zeros(0, int)]), np.concatenate([*columns, np.zeros(0, int)]))
    return Rows(
        patterns=np.concatenate(
            [*patterns, np.zeros((0, max(model.order - 1, 1)), dtype=np.int64)[:, : model.order - 1]]
        ),
        deltas=coo_array((np.concatenate([*values, np.zeros(0)]), where), shape=shape).tocsr(),
        backoffs=np.concatenate([*backoffs, np.zeros(0)]),
        unigram=LN10 * model.levels[0].log10_prob[output_of >= 0],
    )


def _index(vocabulary: Sequence[str], chosen: Sequence[str]) -> NDArray[np.int64]:
    """The place of each vocabulary word among the chosen ones, -1 where it is not."""
    places = {word: place for place, word in enumerate(chosen)}
    return np.array([places.get(word, -1) for word in vocabulary])


def _padded(contexts: NDArray[np.int32], width: int) -> NDArray[np.int64]:
    padded = np.full((len(contexts), width), -1, dtype=np.int64)
    if contexts.shape[1]:
        padded[:, width - contexts.shape[1] :] = contexts
    return padded


def _beside(matrix: Matrix, column: NDArray[np.float64]) -> Matrix:
    from scipy.sparse import csr_array, hstack

    return hstack([matrix, csr_array(column[:, None])], format="csr")


def _spread(words: int, literal: bool) -> Matrix:
    """The unembedding: each logit reads its own dimension, and the kept constants if there are any."""
    from scipy.sparse import csr_array, eye_array, vstack

    own = eye_array(words, format="csr")
    return vstack([own, csr_array(np.ones((1, words)))], format="csr") if literal else own


def _maker(shape: Shape) -> Callable[[object, Settings], Network]:
    def make(spec: object, settings: Settings) -> Network:
        assert isinstance(spec, NGramModel)
        return ngram(
            spec,
            shape=shape,
            attention=settings.attention,
            max_length=settings.max_length or 1024,
            positions=settings.positions or "dyadic",
        )

    return make


CONSTRUCTIONS = (
    Construction(
        "heads",
        NGramModel,
        "n-1 heads in one layer",
        _maker("heads"),
        default=True,
        choices=("attention", "max_length", "positions"),
        certified="proved",
    ),
    Construction(
        "layers",
        NGramModel,
        "one head in each of n-1 layers",
        _maker("layers"),
        choices=("attention", "max_length", "positions"),
        certified="proved",
    ),
    Construction(
        "single",
        NGramModel,
        "one head in one layer, and MLPs that take its mixture apart",
        _maker("single"),
        choices=("attention", "max_length", "positions"),
        certified="proved",
    ),
)
