r"""Lemma "contexts": a network of heads that read fixed distances back, and one layer of units, is an n-gram model.

The network is the ideal one (`ideal.py`): heads select exactly. *Instances* are the finitely many cases of a statement,
and each is computed.

Notation: $u_d$ is the symbol $d$ positions back, or BOS if the word begins after it; $A_d$ [symbol, dim] is what it
adds to the residual stream before the units. All arrays are sparse.

Invariant (`slots.py`): the residual stream before the units is a constant plus $\sum_d A_d[u_d]$.

Units (`_conjunctions`): the unit $r$ has a pattern of symbols, $u_0 = c_0, \dots, u_{k-1} = c_{k-1}$. If all agree it
is a constant $a_r > 0$; if one does not, it is at most its largest sum without that slot's best value, which is not
positive. Instances: one per unit and slot. So with $G(c)$ the output rows of the units with the pattern $c$, the logits
are $N(u) = \text{base} + \sum_k G(u_0 \dots u_{k-1})$.

Claim: let $U$ be the empty context, all patterns, and all contexts that the model lists. For a history $u$ let $c$ be
its longest suffix in $U$. No longer suffix has a pattern, so $N(u) = N(c)$; none is listed, so by the rule of back-off
the model's probabilities after $u$ are those after $c$. Instances: $N(c)$ has the probabilities of the model, for every
$c \in U$; and the answer before the first symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from vitrify.arrays import Floats, Ints, Matrix
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.slots import ZERO, Slots
from vitrify.certification.margins.units import best_of_points
from vitrify.certification.margins.values import Undecided, reads
from vitrify.net.transformer import Transformer
from vitrify.net.weights import has_architecture
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton
from vitrify.spec.ngrams.model import NGramModel

MAX_ENTRIES = 1 << 22  # of one dense table
ANY = -1  # the unit does not test this slot
Context = tuple[int, ...]  # input ids, the last symbol first


@lemma(NGramModel, ProbabilisticAutomaton)
def contexts(case: SpecCase) -> SpecProof:
    """Prove an n-gram model by its listed contexts."""
    from scipy.sparse import csr_array

    weights, proof = case.weights, case.proof
    if proof is None or proof.reason is not None or not has_architecture(weights, Transformer):
        raise Undecided("margins are not proved" + (f": {proof.reason}" if proof else ""))
    net, arrays = weights.architecture, weights.arrays
    model = case.spec.ngrams_over(case.net.inputs[1:]) if isinstance(case.spec, ProbabilisticAutomaton) else case.spec
    if net.looks_ahead or any(block.units for block in net.blocks[:-1]):
        raise Undecided("units before the last layer, and heads that look ahead, are not followed")
    w_u, b_u = csr_array(arrays["unembed.W_U"]), arrays["unembed.b_U"]
    prefix, with_units = f"blocks.{len(net.blocks) - 1}.mlp.", bool(net.blocks and net.blocks[-1].units)
    mlp = [arrays[prefix + name] for name in ("W_in", "b_in", "W_out", "b_out")] if with_units else []
    slots = Slots(weights, proof)
    for layer in range(len(net.blocks)):
        slots.read(layer)
    if any(abs(table @ w_u).max() > ZERO for table in slots.tables):
        raise Undecided("the logits read a symbol directly")
    constant = slots.constant([w_u, *mlp[:1]])
    patterns, rows = _conjunctions(slots.tables, constant, mlp) if mlp else ([], csr_array((0, net.d_model)))
    base = (constant + mlp[3] if mlp else constant) @ w_u + b_u
    index = {pattern: number for number, pattern in enumerate(dict.fromkeys(patterns))}
    added = _incidence([[index[pattern]] for pattern in patterns], len(index)).T @ rows  # G, by pattern
    every = list(dict.fromkeys([(), *(p for p in index if p[:1] != (0,)), *_listed(case, model)]))
    step = max(1, MAX_ENTRIES // len(b_u))
    for at in range(0, len(every), step):
        some = every[at : at + step]
        suffixes = [[index[c[:k]] for k in range(len(c) + 1) if c[:k] in index] for c in some]
        logits = np.asarray((_incidence(suffixes, len(index)) @ added @ w_u).todense()) + base
        known = np.exp(model.next_log_probs_of_contexts(_word_ids(case, model, some)))
        far = case.oracle.judged(known[:, None], logits[:, None])[:, 0]
        if not (far <= case.oracle.tolerance()).all():
            return SpecProof("contexts", None, witness=_history(some[int(far.argmax())], set(every), len(net.inputs)))
    far = case.oracle.judged(case.oracle.known(np.zeros((1, 0), dtype=np.int64)), slots.first[None, None])
    if not far[0, 0] <= case.oracle.tolerance():
        return SpecProof("contexts", None, witness=())
    heads = sum(len(block.heads) for block in net.blocks)
    return SpecProof("contexts", slots.longest, {"heads": heads, "units": len(patterns), "contexts": len(every)})


def _history(context: Context, every: set[Context], inputs: int) -> Context:
    """Return a word that ends in a context, after a symbol that makes no longer one of the contexts in a set."""
    letters = range(1, inputs) if context[-1:] != (0,) else ()
    longer = next((i for i in letters if (*context, i) not in every), None)
    return tuple(i for i in reversed(context if longer is None else (*context, longer)) if i)


def _incidence(groups: Sequence[Sequence[int]], size: int) -> Matrix:
    """Return the matrix [group, index] that is 1 where an index is in a group."""
    from scipy.sparse import csr_array

    ends = np.cumsum([0, *map(len, groups)])
    flat = np.array([index for group in groups for index in group], dtype=np.int64)
    return csr_array((np.ones(len(flat)), flat, ends), shape=(len(groups), size))


def _listed(case: SpecCase, model: NGramModel) -> list[Context]:
    """Return the contexts that a model lists and that some history ends in, as input ids, the last symbol first."""
    ids = {word: index for index, word in enumerate(case.net.inputs)}
    of_word = [ids.get(word, -1) for word in model.vocabulary]
    listed = []
    for level, numbers in enumerate(model.contexts()):
        for words in model.words_of(level, numbers).tolist():
            context = tuple(of_word[word] for word in reversed(words))
            if min(context) >= 0 and 0 not in context[:-1] and context != (0,):
                listed.append(context)
    return listed


def _word_ids(case: SpecCase, model: NGramModel, some: Sequence[Context]) -> Ints:
    """Return contexts as word ids [context, order - 1], padded with -1 on the left; those too long are cut."""
    width, of_input = model.order - 1, model.ids(case.net.inputs)
    table = np.full((len(some), width), -1, dtype=np.int64)
    for row, context in zip(table, some, strict=True):
        seen = [of_input[i] for i in reversed(context[:width])]
        row[width - len(seen) :] = seen
    return table


def _conjunctions(tables: list[Matrix], constant: Floats, mlp: list[Matrix]) -> tuple[list[Context], Matrix]:
    """Return the pattern of every unit that can be active, and the row that it then adds to the residual stream."""
    from scipy.sparse import csc_array, csr_array

    w_in, b_in, w_out = csc_array(mlp[0]), mlp[1], csr_array(mlp[2])
    top = constant @ w_in + b_in
    drops, values = [], []
    for distance, table in enumerate(tables):
        best, second, value = _best(table, w_in, with_bos=distance > 0)
        top = top + best
        drops.append(best - second)
        values.append(np.where(drops[-1] > ZERO, value, ANY))
    pattern, drop = np.array(values).T, np.array(drops).T
    active = np.flatnonzero(top > 0)
    pattern, drop, top = pattern[active], drop[active], top[active]
    tested = pattern != ANY
    if (drop[~tested] > 0).any() or (tested & (top[:, None] - drop > 0)).any():
        raise Undecided("a unit is no conjunction of symbols")
    if (tested[:, 1:] & ~tested[:, :-1]).any() or (pattern[:, :-1] * tested[:, 1:] == 0)[tested[:, 1:]].any():
        raise Undecided("a unit tests symbols that are not the last ones")
    lengths = tested.sum(axis=1).tolist()
    rows = csr_array((top, (range(len(active)), active)), shape=(len(active), len(b_in))) @ w_out
    return [tuple(row[:size]) for row, size in zip(pattern.tolist(), lengths, strict=True)], rows


def _best(table: Matrix, w_in: Matrix, *, with_bos: bool) -> tuple[Floats, Floats, Ints]:
    """Return the largest and the second largest sum that a symbol of a slot gives every unit, and the best symbol.

    Units that read the slot alike are computed once.
    """
    from scipy.sparse import csc_array

    used = np.flatnonzero(reads(table.T))
    part = csc_array(w_in.tocsr()[used])
    part.sort_indices()
    alike: dict[bytes, int] = {}
    ends = part.indptr.tolist()
    number = np.empty(part.shape[1], dtype=np.int64)
    chosen: list[int] = []
    for unit, (start, end) in enumerate(pairwise(ends)):
        key = part.indices[start:end].tobytes() + part.data[start:end].tobytes()
        if key not in alike:
            alike[key] = len(chosen)
            chosen.append(unit)
        number[unit] = alike[key]
    best, second, value = best_of_points(table[int(not with_bos) :, used], part[:, chosen])
    return best[number], second[number], value[number] + (not with_bos)
