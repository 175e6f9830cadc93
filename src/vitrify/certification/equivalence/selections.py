r"""Heads that run an operation of a program: `aggregate`, `first`, `last`, `min`, `max`, `mean`, `width` of a selector.

A head that selects keys runs an operation if for all values of the query's expressions and all those of the key's:

- Selected keys are visible, and score more than all other visible ones.
- BOS scores more than keys that are not selected, and less than selected ones; for a width, the same as these.
- Of several selected keys: for `mean` and `width`, they score the same and share the weight. For `last`, a later one
  scores more, or they score the same and ties go to the right; `first` is the other way round. For `max` a larger
  value scores more, for `min` a smaller one. For `aggregate`, their values are the same, or the program has no value.
- The values are a table of what the operation reads (for a mean, a linear one); that of BOS is the default's.

A width is written as $(b + n v) / (1 + n)$, where $n$ keys of value $v$ share the weight with BOS of value $b$. A head
that averages runs a width if all visible tokens have the same weight at every position, and the value is a multiple of
[selected]; or if all visible keys are selected and score the same as BOS. A key's position is before the query's, the
same or after; where both are among the expressions that scores or tests read, all pairs of positions are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.equivalence.expressions import Cut, ProgramExpressions, by_position, leaves
from vitrify.certification.equivalence.ideal import EQUAL, HeadRule
from vitrify.certification.equivalence.tables import ROUNDING, SAME, LinearRead, TokenContents
from vitrify.certification.margins.values import Undecided
from vitrify.net.attention import allowed_keys, weigh
from vitrify.spec.programs.expression import Expr, Selector, Value

MAX_SCORES = 1 << 28  # compared for one head
MAX_HELD = 1 << 21  # in memory at once
TIED = 1e-11  # scores nearer to each other than this, relative to the largest, are equal


@dataclass(frozen=True, eq=False)
class HeadReads:
    """The reads of a head, and center and radius of the keys and values of the pads [pad, …]."""

    rule: HeadRule
    stream: TokenContents
    query: LinearRead
    key: LinearRead
    value: LinearRead
    pad_keys: tuple[Floats, Floats]
    pad_values: tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class HeadOutput:
    """The table [value of the operation, dim] that a head writes, its error by dimension, and the pairs compared."""

    table: Floats
    error: Floats
    pairs: int


def matched(head: HeadReads, node: int) -> HeadOutput:
    """Return what a head writes if it runs an operation of the program; else `Undecided`."""
    try:
        table, far, pairs = _averages(head, node)
    except Undecided as stop:
        try:
            table, far, pairs = _selects(head, node)
        except Undecided as other:
            raise Undecided(f"{other}; {stop}" if head.rule.averages else str(other)) from None
    off = head.value.error + head.pad_values[1].max(axis=0) + far
    return HeadOutput(table, off + ROUNDING * (head.value.size + np.abs(table).max(axis=0)), pairs)


def _selects(head: HeadReads, node: int) -> tuple[Floats, Floats, int]:
    source, rule, operation = head.stream.source, head.rule, head.stream.source.nodes[node]
    selector, op = operation.args[0], operation.op
    q_cut, k_cut = _cuts(source, selector, head.query.term.exprs, head.key.term.exprs)
    queries, keys = head.stream.rows(head.query.term, q_cut), head.stream.rows(head.key.term, k_cut)
    if len(queries) * len(keys) > MAX_SCORES:
        raise Undecided(f"{len(queries):,} × {len(keys):,} queries and keys are too many to compare")
    q_size, k_size = np.maximum(head.query.size, np.abs(queries).max(axis=0)), np.abs(keys).max(axis=0)
    k_size = np.maximum.reduce([head.key.size, k_size, (np.abs(head.pad_keys[0]) + head.pad_keys[1]).max(axis=0)])
    off = float(head.query.error @ (k_size + head.key.error) + head.key.error @ q_size)
    largest = float(q_size @ k_size + 1)
    tie, gap = 2 * off + TIED * largest, 2 * off + EQUAL * largest
    where = _positions(source, k_cut) if op not in ("min", "max") else _ranks(source, operation, k_cut)
    order = None if where is None else np.argsort(where, kind="stable")
    shares = rule.head.attention != "hard" or rule.head.ties == "average"
    single = None if shares else {"right": "last", "left": "first"}[rule.head.ties]
    for start in range(0, len(queries), step := max(1, MAX_HELD // (len(keys) + 1))):
        some = slice(start, start + step)
        scores = queries[some] @ keys.T
        chosen, losing = _chosen(source, selector, rule, q_cut, k_cut, some)
        low, high = np.where(chosen, scores, np.inf).min(axis=1), np.where(chosen, scores, -np.inf).max(axis=1)
        other = np.where(losing, scores, -np.inf).max(axis=1)
        pads, radius = queries[some] @ head.pad_keys[0].T, np.abs(queries[some]) @ head.pad_keys[1].T
        least, most = (pads - radius).max(axis=1), (pads + radius).max(axis=1)
        if rule.averages and (op != "width" or losing.any()):  # all keys share the weight, if they score the same
            raise Undecided("an average over the whole word is no such operation")
        if (other >= np.minimum(low, least) - gap).any():
            raise Undecided("a key that is not selected may win")
        spread = (high - low)[np.isfinite(low)].max(initial=0.0)  # of selected keys
        if op == "width":
            apart = max((high - least).max(), (most - low).max(), np.ptp(pads, axis=1).max() + 2 * radius.max())
            if not shares or max(apart, spread) > tie:
                raise Undecided("BOS is not as good as the keys that are counted")
            continue
        if (most >= low - gap).any():
            raise Undecided("BOS may win where a key is selected")
        if op == "mean" and (not shares or spread > tie):
            raise Undecided("selected keys have different weights")
        ordered = op in ("first", "last", "min", "max")
        if ordered and (where is None or order is None) and (single != op or spread > tie):
            raise Undecided(f"the {op} of the selected keys need not win")
        if ordered and where is not None and order is not None:
            _need_order(scores[:, order], chosen[:, order], where[order], gap, last=op in ("last", "max"))
    return *_fetched(head, node), len(queries) * len(keys)


def _cuts(source: ProgramExpressions, selector: Selector, query: Cut, key: Cut) -> tuple[Cut, Cut]:
    """Return the expressions of queries and of keys that a selector and a head read."""
    tests = [test for test in leaves(selector) if not by_position(test)]
    sides = [[source.number(test.args[side]) for test in tests] for side in (1, 0)]
    return source.joint(query, sides[0]), source.joint(key, sides[1])


def _positions(source: ProgramExpressions, cut: Cut) -> Ints | None:
    """Return the position of each combination of values, if it is one of the expressions."""
    return _flat(source, source.indices, cut)


def _ranks(source: ProgramExpressions, operation: Expr, cut: Cut) -> Ints | None:
    """Return the rank of the value that a key offers, for each combination of values of a cut, if they determine it."""
    node = source.number(operation.args[1])
    index = _flat(source, node, cut)
    ranks = np.argsort(np.argsort([float(value) for value in source.domains[node]]))  # type: ignore[arg-type]  # numbers
    return None if index is None else np.where(index < 0, -1, ranks[index])


def _flat(source: ProgramExpressions, node: int, cut: Cut) -> Ints | None:
    """Return the index of an expression's value for each combination of values of a cut; None if it is not known."""
    index = source.at(node, cut)
    return None if index is None else np.broadcast_to(index, [len(source.domains[n]) for n in cut]).ravel()


def _chosen(
    source: ProgramExpressions, selector: Selector, rule: HeadRule, q_cut: Cut, k_cut: Cut, some: slice
) -> tuple[Bools, Bools]:
    """Return which keys [query, key] a selector can select, and which others the head can see, for some queries."""
    keys, queries = dict[int, Ints](), dict[int, Ints]()
    shape = [prod(len(source.domains[n]) for n in cut) for cut in (q_cut, k_cut)]
    there = np.ones((len(range(*some.indices(shape[0]))), shape[1]), dtype=bool)
    for test in leaves(selector):
        key, query = (source.number(arg) for arg in test.args)
        if not by_position(test):
            at_key, at_query = _flat(source, key, k_cut), _flat(source, query, q_cut)
            if at_key is None or at_query is None:
                raise Undecided("a test has too many values to evaluate")
            keys[key], queries[query] = at_key[None], at_query[some, None]
            there &= (keys[key] >= 0) & (queries[query] >= 0)
    i, j = _positions(source, q_cut), _positions(source, k_cut)
    sides = None if i is None or j is None else np.sign(j[None] - i[some, None])
    chosen, losing = np.zeros_like(there), np.zeros_like(there)
    for side in (-1, 0, 1):
        here = there if sides is None else there & (sides == side)
        now = source.chosen(selector, keys, queries, side) & here
        if side <= {"causal": 0, "strict": -1, "none": 1}[rule.head.mask]:
            losing |= here & ~now
        elif now.any():
            raise Undecided("a selected key is not visible")
        chosen |= now
    return chosen, losing


def _need_order(scores: Floats, chosen: Bools, where: Ints, gap: float, *, last: bool) -> None:
    """Refuse selected keys of which a later one (or an earlier one) may not win; keys are in order."""
    starts = np.unique(where, return_index=True)[1]
    low = np.minimum.reduceat(np.where(chosen, scores, np.inf), starts, axis=1)
    high = np.maximum.reduceat(np.where(chosen, scores, -np.inf), starts, axis=1)
    if not last:
        low, high = low[:, ::-1], high[:, ::-1]
    if (low[:, 1:] <= np.maximum.accumulate(high, axis=1)[:, :-1] + gap).any():
        raise Undecided("another of the selected keys may win")


def _fetched(head: HeadReads, node: int) -> tuple[Floats, Floats]:
    """Return the table of an operation whose keys are right: of what it reads, with the default at BOS."""
    source = head.stream.source
    operation, domain = source.nodes[node], source.domains[node]
    pads, radius = head.pad_values
    if max(np.ptp(pads, axis=0).max(), radius.max()) > SAME:
        raise Undecided("the value at BOS is not the same for all words")
    if operation.op == "width":
        if head.value.term.exprs:
            raise Undecided("a head that counts reads a value")
        counts = np.array(domain, dtype=float)[:, None]
        table = (len(pads) * pads[:1] + counts * head.value.term.table) / (len(pads) + counts)
        return table, np.zeros(pads.shape[1])
    inner = source.number(operation.args[1])
    read = head.stream.factor(head.value.term, inner)
    far = read.far
    if operation.op == "mean":
        numbers, points = (np.array([float(v) for v in source.domains[n]]) for n in (inner, node))  # type: ignore[arg-type]
        end = int(np.abs(numbers - numbers[0]).argmax())
        slope = (read.table[end] - read.table[0]) / ((numbers[end] - numbers[0]) or 1.0)
        far = far + np.abs(read.table[0] + np.outer(numbers - numbers[0], slope) - read.table).max(axis=0)
        table = read.table[0] + np.outer(points - numbers[0], slope)
    else:
        table = read.table[[max(_index(source.domains[inner], value), 0) for value in domain]]
    default = _index(domain, operation.data)
    if operation.op == "mean" or _index(source.domains[inner], operation.data) >= 0:
        far = far + np.abs(table[default] - pads[0])
    table[default] = pads[0]
    if (far > SAME * (1.0 + np.abs(table).max(axis=0))).any():
        raise Undecided("the value at BOS is not the default, or values to be averaged are on no line")
    return table, far


def _averages(head: HeadReads, node: int) -> tuple[Floats, Floats, int]:
    source, rule, operation = head.stream.source, head.rule, head.stream.source.nodes[node]
    here = (source.indices,)
    if not rule.averages or operation.op != "width" or set(head.query.term.exprs + head.key.term.exprs) - set(here):
        raise Undecided("an average is no such operation")
    if rule.head.mask == "none" or any(part[1].any() for part in (head.pad_keys, head.pad_values)):
        raise Undecided("an average over later positions is not followed")
    count, pads = source.length, len(head.pad_keys[0])
    queries, keys = head.stream.rows(head.query.term, here), head.stream.rows(head.key.term, here)
    seen = allowed_keys(rule.head, pads + np.arange(count), np.arange(pads + count))
    weight = weigh(rule.head, queries @ np.vstack([head.pad_keys[0], keys]).T, seen)
    tokens, constant = weight[:, pads:][seen[:, pads:]], weight[:, :pads] @ head.pad_values[0]
    if not len(tokens) or np.ptp(tokens) > SAME * tokens.min() or np.ptp(constant, axis=0).max() > SAME:
        raise Undecided("tokens have different weights at different positions")
    q_cut, k_cut = _cuts(source, operation.args[0], (), head.value.term.exprs)
    values = head.stream.rows(head.value.term, k_cut) * float(tokens[0])
    chosen, losing = _chosen(source, operation.args[0], rule, q_cut, k_cut, slice(None))
    if (chosen & losing).any() or (chosen != chosen[:1]).any():
        raise Undecided("an average depends neither on queries nor on the side of a key")
    on, off = values[chosen[0]], values[losing[0]]
    step = on[0] if len(on) else np.zeros(values.shape[1])
    far = count * np.abs(np.vstack([on - step, off])).max(axis=0, initial=0.0)
    if (far > SAME * (1.0 + count * np.abs(step))).any():
        raise Undecided("what a head averages is not what is counted")
    uneven = np.ptp(tokens) / tokens.min() * count * np.abs(values).max(axis=0, initial=0.0)
    table = constant[:1] + np.outer(np.arange(count + 1.0), step)
    return table[list(source.domains[node])], far + uneven + np.ptp(constant, axis=0), chosen.size


def _index(domain: tuple[Value, ...], value: Value) -> int:
    """Return the index of a value, -1 if it is none of them; True is not 1."""
    typed = [(isinstance(other, bool), other) for other in domain]
    return typed.index((isinstance(value, bool), value)) if (isinstance(value, bool), value) in typed else -1
