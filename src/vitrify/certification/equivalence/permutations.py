r"""Lemma "permutations": rounds of two blocks multiply the permutations that a formula's variables choose.

The network is the ideal one (`ideal.py`): heads select exactly. *Instances* are the finitely many cases of a statement,
and each is computed. $G$ is the group that the permutations of five points below generate. **Invariant**: before round
$r \ge 1$ the contents of position $p$ are $x + t_p b$ and, in five dimensions, a permutation $m_p$ in $G$; $t_p$ is the
bit of the token, and $x$, $b$ are the same for all positions. In each round

1. A head reads the bit $y$ at one position that does not depend on the word, 0 at BOS (instances: all positions). After
   units the contents are $x' + t_p b$ and a permutation: in the first round $g_{p,y}$, later $m_p$ (instances: all
   positions, bits, and elements of $G$); what is left of $y$ and the older $m_p$ is not read again, but erased.
2. A head reads the permutation at the position $2^r$ back, and at BOS the identity (instances: all positions). After
   units the contents are $x'' + t_p b$ and the product of both, the earlier one applied first (instances: all pairs of
   elements of $G$).

So after $R$ rounds the last position holds the product of $g_{p,y}$ over the last $2^R$ positions. Those with $g_{p,0}
= g_{p,1}$ the identity are left out; the others are a program. **By induction over the formula**, a part of the program
has one product where its formula is true and one where it is false: for a variable those of its instruction; for $\neg$
the other way round; for $\land$ and $\lor$ it is four parts, of $\varphi, \psi, \varphi, \psi$, and the products for
the four pairs of truth values depend on the value of the formula alone (instances). Claim: the logits at the last
position are right for both products of the whole formula.
"""

from __future__ import annotations

from itertools import product as pairs

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.ideal import HeadRule, Ideal
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import logit_margins
from vitrify.spec.automata.groups import Permutation, PermutationGroup
from vitrify.spec.computation.barrington import IDENTITY, Instruction, product
from vitrify.spec.tasks.formula_value import BITS, PAD, FormulaValue, Node

ROUNDING = 1e-9  # of contents that are computed here
TRUTH = (False, True)
TOKEN_BITS = np.array([0.0, 1.0])  # the bit of the token


@lemma(FormulaValue)
def permutations(case: SpecCase) -> SpecProof:
    """Prove that a network multiplies the permutations of a program of its formula."""
    ideal, spec = case.ideal, case.spec
    net, rounds = ideal.net, len(ideal.blocks) // 2
    if net.pads != 1 or net.looks_ahead or [len(block.heads) for block in net.blocks] != [1, 1] * rounds:
        raise Undecided("products are followed behind one pad, in rounds of two blocks of one head")
    if ideal.longest != spec.length or 2**rounds > spec.length:
        raise Undecided(f"{rounds} rounds on {ideal.longest} tokens do not multiply the permutations of a formula")
    zero, one, pad = (ideal.embedded(net.input_ids[symbol]) for symbol in (*BITS, PAD))
    if not np.array_equal(zero, pad):
        raise Undecided("padding tokens do not hold the bit 0")
    bit, dims = one - zero, [np.array(label.dims) for label in case.weights.labels.spaces]
    names = [label.name.partition(" (round")[0] for label in case.weights.labels.spaces]
    own, chosen = (dims[names.index(name)] for name in ("permutation", "chosen permutation"))
    x, letters, source = _chosen(ideal, 0, zero, bit, chosen, None)
    group = _group(letters)
    instances = {"permutations": letters.size // 5, "products": 0}
    for index in range(rounds):
        if index:
            x, same, _ = _chosen(ideal, 2 * index, x, bit, chosen, (own, group))
            if (same != group[:, None, None, None]).any():
                raise Undecided("a permutation changes where it should not")
            instances["permutations"] += same.size // 5
        x = _composed(ideal, 2 * index + 1, x, bit, (chosen, own), group, 2**index)
        instances["products"] += len(group) ** 2
    word = _instructions(spec, letters[:, 0], source, 2**rounds)
    ends = np.array(_products(spec.node, word))[::-1]  # where the formula is false, and where it is true
    contents = np.tile(x, (2, 1))
    contents[:, own] += ends
    right = [net.output.symbols.index(answer) for answer in BITS]
    if not (logit_margins(ideal.logits(contents, spec.length - 1), right) > case.oracle.TIE).all():
        raise Undecided("the answer for some product is wrong")
    return SpecProof("permutations", ideal.longest, {**instances, "instructions": len(word)})


def _read(rule: HeadRule, x: Floats, varying: Ints) -> tuple[Ints, Floats]:
    """Return the position that a head reads at every position, -1 for BOS, and what it writes there but for `varying`.

    No dimension of `varying` may change a score.
    """
    if np.any(rule.q[varying]) or np.any(rule.k[varying]):
        raise Undecided("bits or permutations change the scores of a head")
    source, _ = rule.winners(x @ rule.k, x @ rule.q)
    written = x @ rule.v + rule.b_v + rule.v_places
    if np.ptp(written, axis=0).max(initial=0.0) > ROUNDING:
        raise Undecided("a head copies something of positions")
    return source, written[0]


def _split(contents: Floats, dims: Ints, bit: Floats, left: Ints) -> tuple[Floats, Ints]:
    """Return x and the permutations of contents [..., own bit, position, dim] = x + own bit · b + permutation.

    In the dimensions `left` there may be anything.
    """
    permuted = np.rint(contents[..., dims])
    rest = contents.copy()
    rest[..., dims] -= permuted
    rest[..., left] = 0.0
    rest = rest - TOKEN_BITS[:, None, None] * bit
    x = rest.reshape(-1, rest.shape[-1])[0]
    if np.abs(rest - x).max() > ROUNDING or (np.sort(permuted, axis=-1) != np.arange(len(dims))).any():
        raise Undecided("a position does not hold its bit and one permutation")
    return x, permuted.astype(np.int64)


def _chosen(
    ideal: Ideal, block: int, x: Floats, bit: Floats, dims: Ints, held: tuple[Ints, Ints] | None
) -> tuple[Floats, Ints, Ints]:
    """Return x after a block, the permutations [held, bit read, own bit, position, point], and where bits are read.

    `held` are the dimensions of the permutations before the block, and all that they may hold; None: there are none.
    """
    at, (rule,) = np.arange(ideal.longest), ideal.selecting(block)
    own = np.zeros(0, dtype=np.int64) if held is None else held[0]
    source, written = _read(rule, x, np.concatenate([np.flatnonzero(bit), own]))
    if np.any(rule.v[own]) or np.abs(rule.pad_values[0] - written).max() > ROUNDING:
        raise Undecided("a head that reads bits reads more, or no 0 at BOS")
    before = x[None] if held is None else np.repeat(x[None], len(held[1]), axis=0)
    if held is not None:
        before[:, own] += held[1]
    read = written + TOKEN_BITS[:, None] * (bit @ rule.v)
    contents = before[:, None, None, None] + read[:, None, None] + TOKEN_BITS[:, None, None] * bit
    contents = np.repeat(contents, len(at), axis=3)
    left = np.concatenate([np.flatnonzero(bit @ rule.v), own])
    x, letters = _split(ideal.after_units(block, contents, at), dims, bit, left)
    _need_unread(ideal, block + 1, left)
    if (letters[:, :, :1] != letters).any():
        raise Undecided("the bit of the token changes a permutation")
    return x, letters if held is not None else letters[0, :, :1], source


def _need_unread(ideal: Ideal, block: int, left: Ints) -> None:
    """Refuse a block that reads some dimensions, or does not erase them."""
    (rule,), units = ideal.selecting(block), ideal.blocks[block].units
    read = [rule.q, rule.k, rule.v, *units[:1]]
    if any(np.any(matrix[left]) for matrix in read) or not set(left.tolist()) <= {*ideal.blocks[block].gone.tolist()}:
        raise Undecided("what is left of a bit or of an older permutation is read, or is not erased")


def _composed(
    ideal: Ideal, block: int, x: Floats, bit: Floats, dims: tuple[Ints, Ints], group: Ints, distance: int
) -> Floats:
    """Return x after a block that multiplies permutations at a distance; they stand in the first, then second dims."""
    (rule,), (here, after) = ideal.selecting(block), dims
    source, written = _read(rule, x, np.concatenate([np.flatnonzero(bit), here]))
    if (source != np.maximum(np.arange(len(source)) - distance, -1)).any() or np.any(rule.v[bit != 0]):
        raise Undecided(f"a head does not read the permutation {distance} back at every position")
    if np.abs(rule.pad_values[0] - written - np.array(IDENTITY) @ rule.v[here]).max() > ROUNDING:
        raise Undecided("BOS does not hold the identity")
    units = ideal.blocks[block].units
    if units and np.ptp(ideal.places[block] @ units[0], axis=0).max(initial=0.0) > ROUNDING:
        raise Undecided("units that multiply read positions")
    contents = np.tile(x + written, (len(group), len(group), 2, 1, 1)) + TOKEN_BITS[:, None, None] * bit
    contents[..., here] += group[None, :, None, None]
    contents = contents + (group @ rule.v[here])[:, None, None, None]
    x, results = _split(ideal.after_units(block, contents, 0), after, bit, after[:0])
    expected = np.stack([group[:, first] for first in group])  # [earlier, later, point]: the earlier one first
    if (results[:, :, :, 0] != expected[:, :, None]).any():
        raise Undecided("units do not multiply two permutations")
    return x


def _group(letters: Ints) -> Ints:
    """Return the group that some permutations generate, as rows."""
    generators = tuple(map(tuple, np.unique(letters.reshape(-1, len(IDENTITY)), axis=0).tolist()))
    return np.array(PermutationGroup(len(IDENTITY), generators).elements)


def _instructions(spec: FormulaValue, letters: Ints, source: Ints, window: int) -> list[Instruction]:
    """Return the instructions of the last positions, without those that are always the identity."""
    word = []
    for at in range(spec.length - window, spec.length):
        if_zero, if_one = (tuple(row) for row in letters[:, at].tolist())
        read = int(source[at])
        if read >= len(spec.variables):
            raise Undecided("an instruction reads no variable")
        if if_one != if_zero and read < 0:
            if_one = if_zero  # BOS is always 0
        if (if_one, if_zero) != (IDENTITY, IDENTITY):
            word.append(Instruction(spec.variables[max(read, 0)], if_one, if_zero))
    return word


def _products(node: Node, word: list[Instruction]) -> tuple[Permutation, Permutation]:
    """Return the products of a program where a formula is true and where it is false, by induction over the formula."""
    operator, *parts = node
    if operator == "variable":
        if len(word) != 1 or word[0].variable != parts[0]:
            raise Undecided(f"the program has no instruction for {parts[0]!r} where it should be")
        return word[0].if_one, word[0].if_zero
    if operator == "not":
        return _products(parts[0], word)[::-1]
    values, at = [], 0
    for part in parts * 2:
        length = _length(part)
        values.append(_products(part, word[at : at + length])[::-1])  # by truth value
        at += length
    if at != len(word):
        raise Undecided("the program has not four parts for a conjunction")
    combine = all if operator == "and" else any
    ends: dict[bool, set[Permutation]] = {False: set(), True: set()}
    for truth in pairs(TRUTH, repeat=2):
        ends[combine(truth)].add(product([value[t] for value, t in zip(values, truth * 2, strict=True)]))
    if any(len(products) > 1 for products in ends.values()):
        raise Undecided(f"the product of a program depends on more than the value of its {operator}")
    return ends[True].pop(), ends[False].pop()


def _length(node: Node) -> int:
    """Return the instructions of a program of a formula."""
    operator, *parts = node
    if operator == "variable":
        return 1
    return sum(map(_length, parts)) * (1 if operator == "not" else 2)
