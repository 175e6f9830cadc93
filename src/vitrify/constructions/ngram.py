r"""An n-gram language model becomes a transformer, in the three variants of Svete & Cotterell (2024, arXiv 2404.14994).

| variant | attention layers × heads | how the last $n-1$ symbols reach one position |
| --- | --- | --- |
| `heads` | 1 × $(n-1)$ | head $i$ reads the symbol $i$ positions back, $i = 0 \dots n-2$ |
| `layers` | $(n-1)$ × 1 | layer 0 reads the symbol itself, layer $i$ the previous position's slot $i-1$ |
| `single` | 1 × 1 | one head mixes the last $n-1$ symbols, an MLP separates them |

Position selection uses the kit's codes and sinks instead of the paper's weights; the published position code is
available as `positions="sqrt"`.

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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from vitrify.arrays import Floats, Ints, Matrix
from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, Positions, construction
from vitrify.kit.gadgets.gate import Case, choose
from vitrify.kit.gadgets.steps import digits
from vitrify.kit.gadgets.table import ANY, table
from vitrify.kit.heads.average import window
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import Builder, Network, Output, Readout, Space
from vitrify.kit.positions import CodeName, dimensions, position_code
from vitrify.net.spaces import Bits, Categorical, OneHot, Reals
from vitrify.spec.ngrams.model import BEGIN, LN10, NGramModel

Variant = Literal["heads", "layers", "single"]
Code = Literal["auto", "onehot", "bits"]
Patterns = Ints  # [context, slot]: input ids, slot 0 being the last symbol, and ANY

LOGIT_ERROR = 1e-10  # by soft attention: a tenth of the 1e-9 promised for probabilities
MAX_SUM_DEFECT = 1e-10  # a model whose sums are further from 1 is reproduced without a softmax
ONEHOT_WORDS = 64  # larger vocabularies are coded in bits: one-hot slots would dominate the width
BASE = 3.0  # of the single head's mixture: with 2, lower digits add up to almost one unit


def _by_heads(net: Builder, token: Space, slots: int, positions: CodeName, *, layers: bool) -> list[Space]:
    """One head per slot, side by side or in layers; the one that reads its own position needs no position code."""
    code = position_code(positions, net.max_length, (0, 1) if layers else range(slots))
    position = net.embed_position("position", code.kind(), code.table()) if slots > 1 else token
    history: list[Space] = []
    for back in range(slots):
        source, offset = (history[-1], 1) if layers and back else (token, back)
        history.append(shift(net, source, offset, code, position, name=f"slot {back}"))
    return history


def _by_one_head(net: Builder, token: Space, patterns: Patterns) -> list[Space]:
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
    clock = net.embed_position("position mod n-1", remainder, remainder.codes[at[net.pads :]], pads=pads)
    needed = _needed_coordinates(token, patterns)
    used = sorted({(r, c) for _, r, c in needed})
    mixed = window(net, _bind(net, token, clock, used), [1.0] * slots, name="mixture")
    turned = []
    for back, name in enumerate(names):
        cases = []
        for r in range(slots):
            bin_ = (r - back) % slots
            here = [(index, c) for index, (b, c) in enumerate(used) if b == bin_ and (back, b, c) in needed]
            cases.append(Case(clock, r, mixed, [index for index, _ in here], [c for _, c in here]))
        turned.append(choose(net, cases, Space(name, replace(_categorical(token), void=True))))
    return turned


def _needed_coordinates(token: Space, patterns: Patterns) -> set[tuple[int, int, int]]:
    """Return the coordinates of the token's code that contexts need: (positions back, bin, coordinate).

    A context that begins with `<s>` fixes the bins of its symbols, `<s>` itself being in the last bin.
    """
    slots = patterns.shape[1]
    if not isinstance(token.kind, OneHot):
        return {(back, r, c) for back in range(slots) for r in range(slots) for c in range(token.size)}
    needed = set()
    for pattern in patterns.tolist():
        context = [value for value in pattern if value != ANY]
        for back, value in enumerate(context):
            bins = range(slots) if context[-1] else [(len(context) - 2 - back) % slots]
            needed |= {(back, r, value) for r in bins}
    return needed


def _bind(net: Builder, token: Space, clock: Space, used: list[tuple[int, int]]) -> Space:
    """Return the space with the token's code in the bin of its position, zeros in the others."""
    codes, last = _categorical(token).codes, clock.size - 1
    pairs = [(word, r) for r in range(clock.size) for word in range(len(codes)) if word or r == last]
    out = np.array([[codes[word, c] if b == r else 0.0 for b, c in used] for word, r in pairs])
    used_rows = out.any(axis=1)
    labels = tuple(f"bin {r}{token.kind.names[c]}" for r, c in used)
    bins = Space("bins", Reals(labels, token.kind.low, token.kind.high))
    return table(net, [token, clock], np.array(pairs)[used_rows], bins, out[used_rows], name="bins")


def _categorical(space: Space) -> Categorical:
    assert isinstance(space.kind, OneHot | Bits)
    return space.kind


@dataclass(frozen=True, eq=False)
class Rows:
    """The listed contexts: patterns over slots (0 = the last symbol), and what each context adds to the logits."""

    patterns: Patterns
    deltas: Matrix
    backoffs: Floats
    unigram: Floats


def listed_rows(model: NGramModel) -> Rows:
    """Return one row per listed context, one entry per listed n-gram (see the top of this file)."""
    from scipy.sparse import coo_array

    input_of, output_of = _index(model.vocabulary, (BEGIN, *model.readable)), _index(model.vocabulary, model.predicted)
    patterns, backoffs = [np.zeros((0, model.order - 1), dtype=np.int64)], [np.zeros(0)]
    rows, columns, values = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
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
        histories = np.pad(grams[:, 1:-1], ((0, 0), (model.order - 1 - level, 0)), constant_values=-1)
        lower = model.log10_probs(histories, grams[:, -1])
        rows.append(row_of[above.parent])
        columns.append(output_of[above.word])
        values.append(LN10 * (above.log10_prob - model.levels[level].log10_backoff[above.parent] - lower))
        start += len(contexts)
    where = (np.concatenate(rows), np.concatenate(columns))
    return Rows(
        patterns=np.concatenate(patterns),
        deltas=coo_array((np.concatenate(values), where), shape=(start, len(model.predicted))).tocsr(),
        backoffs=np.concatenate(backoffs),
        unigram=LN10 * model.levels[0].log10_prob[output_of >= 0],
    )


def _index(vocabulary: Sequence[str], chosen: Sequence[str]) -> Ints:
    """Return the index of each vocabulary word among the chosen ones, -1 if it is none of them."""
    indices = {word: index for index, word in enumerate(chosen)}
    return np.array([indices.get(word, -1) for word in vocabulary])


def _sizes(model: NGramModel, layers: int, heads: int, position_size: int, units: int = 0) -> DeclaredSizes:
    r"""Return exact sizes: $n-1$ slots and one more of the code's size, the logits, `places` for positions."""
    slots = model.order - 1
    logits = (len(model.predicted) + (model.normalization_defect()[0] > MAX_SUM_DEFECT)) if slots else 0
    contexts = sum(len(contexts) for contexts in model.contexts())
    width = (slots + 1) * code_size(1 + len(model.readable)) + logits + (position_size if slots else 0)
    return DeclaredSizes({"layers": layers, "heads": heads, "d_model": width, "units": units + contexts})


def code_size(inputs: int) -> int:
    """Return the dimensions of the code of the input symbols: one-hot, or bits."""
    return inputs if inputs <= ONEHOT_WORDS else (inputs - 1).bit_length()


def sizes_of_heads(model: NGramModel, *, max_length: int, positions: CodeName) -> DeclaredSizes:
    """Return the sizes of one layer with a head for each slot; positions matter from two slots on."""
    slots = model.order - 1
    position_size = dimensions(positions, max_length, range(slots)) + 1 if slots > 1 else 0
    return _sizes(model, min(slots, 1), slots, position_size)


def sizes_of_layers(model: NGramModel, *, max_length: int, positions: CodeName) -> DeclaredSizes:
    """Return the sizes of a layer with one head for each slot."""
    slots = model.order - 1
    position_size = dimensions(positions, max_length, (0, 1)) + 1 if slots > 1 else 0
    return _sizes(model, slots, slots, position_size)


def sizes_of_one_head(model: NGramModel, *, attention: Attention) -> DeclaredSizes:
    r"""Return the sizes of one head: exact where it mixes with weights, bounds where hard attention uses bins.

    Reading $n-1$ digits of base 3 off each of the $m$ coordinates of the mixture takes $m(2^n - 2)$ units.
    """
    slots, code = model.order - 1, code_size(1 + len(model.readable))
    if not slots:
        return _sizes(model, 0, 0, 0)
    if attention != "hard":
        return _sizes(model, 2, 1, code, units=code * (2 ** (slots + 1) - 2))
    most = _sizes(model, 3, 1, slots + 2 * slots * code, units=slots * (1 + len(model.readable)) + slots**2 * code)
    bounds = {name: most.exact[name] for name in ("d_model", "units")}
    return DeclaredSizes({"layers": 3, "heads": 1}, at_most=bounds)


@construction(
    "heads",
    "n-1 heads in one layer",
    sizes_of_heads,
    default=True,
    certified=("to T", "every length"),
    variant="heads",
)
@construction(
    "layers",
    "one head in each of n-1 layers",
    sizes_of_layers,
    certified=("to T", "every length"),
    variant="layers",
)
@construction(
    "single",
    "one head in one layer, and MLPs that take its mixture apart",
    sizes_of_one_head,
    certified=("to T", "every length"),
    variant="single",
)
def ngram(
    model: NGramModel,
    code: Code = "auto",
    snap: bool = False,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength = 1024,
    positions: Positions = "dyadic",
    variant: Variant = "heads",
) -> Network:
    """Return a transformer that gives every next symbol the probability that the model gives it.

    `snap` spends a second unit per context to remove the noise of soft attention altogether, instead of making it
    small.
    """
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    slots = model.order - 1
    inputs = (BEGIN, *model.readable)
    name = f"{model.order}-gram model, {variant}, {attention}"
    net = Builder(name, inputs, max_length, attention, pads=max(slots, 1) if variant == "single" else 1)
    kind: Categorical = (
        Bits(inputs) if code == "bits" or (code == "auto" and len(inputs) > ONEHOT_WORDS) else OneHot(inputs)
    )
    token = net.embed("token", kind, kind.codes)
    rows = listed_rows(model)
    history: list[Space] = []
    if slots and variant == "single":
        history = _by_one_head(net, token, rows.patterns)
    elif slots:
        history = _by_heads(net, token, slots, positions, layers=variant == "layers")
    literal = model.normalization_defect()[0] > MAX_SUM_DEFECT
    parts: list[tuple[Space, Matrix]] = []
    if len(rows.patterns):
        names = [" ".join(inputs[i] for i in reversed(row) if i != ANY) for row in rows.patterns.tolist()]
        written, outputs = model.predicted, rows.deltas
        unembedding: Matrix = eye_array(len(written), format="csr")  # each logit reads its own dimension
        if literal:  # and the back-off constants
            outputs = hstack([outputs, csr_array(rows.backoffs[:, None])], format="csr")
            unembedding = vstack([unembedding, csr_array(np.ones((1, len(written))))], format="csr")
            written = (*written, "back-off")
        logits = Space("logits", Reals(written, -1e4, 1e4))
        table(
            net, history, rows.patterns, logits, outputs, snap=snap, matches=slots, name="listed contexts", rows=names
        )
        parts = [(logits, unembedding)]
    return net.network(
        Output("lm", model.predicted, scores="log" if literal else "softmax"),
        Readout(tuple(parts), rows.unigram, {space: LOGIT_ERROR for space, _ in parts}),
        "n-gram model",
        {
            "variant": variant,
            "positions": positions if variant != "single" else "relative",
            "code": kind.tag,
            "order": model.order,
            "listed n-grams": sum(len(level) for level in model.levels),
            "listed contexts": len(rows.patterns),
        },
        source="in the spirit of Svete & Cotterell 2024, arXiv 2404.14994",
        reuse=False,  # the published constructions have no units but the table's
    )
