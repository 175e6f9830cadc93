r"""A network that runs a RASP program, expression by expression: for every word up to its length.

**Statement.** At every position of every word on which the program has a value, the logits of the ideal answer with it.

**Invariant.** After every half block the contents of the residual stream at a position are a sum of tables, each of the
values that some expressions of the program have at that position (`Held`). It is proved from left to right through the
network, with expressions in the order of the program, and rests on no name or label.

| step | instances |
| --- | --- |
| embedding | the rows of W_E are a table of `tokens`, those of W_pos of `indices` |
| a linear read | its tables add up; where the sum over all values of arguments depends only on a function of them, it is a table of that function (`_reduced`) |
| units | they are evaluated for all values of what they read |
| a head | there is an operation of the program (`aggregate`, `first`, `last`, `mean`, `width`) such that, for all values of the query's expressions and of the key's: selected keys score more than all other visible ones, BOS lies between (for a width: is as good as a selected key), the winner of several is the one that the operation reads, and the value is a table of what it reads; BOS has the default |
| a head that averages | all tokens have the same weight at all positions, and the value is a multiple of the selector |
| unembedding | the logits are a table of the result, and lead with its symbol |

By induction over the word's expressions the net then computes each of them: selections are sets of positions that
the values determine, so that it is enough to compare all pairs of values. Values of one position are taken to vary
independently, also where they never occur together. In a net that looks ahead BOS reads the word; what it holds is
bounded coordinate by coordinate, and keys and values there must not depend on it.

`error` bounds how far the tables are from the exact sums, by rounding and by differences that are taken for none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.equivalence.catalogue import Case, SpecProof, lemma
from vitrify.certification.equivalence.ideal import EQUAL, HeadRule
from vitrify.certification.equivalence.source import FETCHES, Cut, Source, by_position, leaves
from vitrify.certification.margins.values import Undecided
from vitrify.net.attention import allowed_keys, weigh
from vitrify.net.sparse import dense
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.programs.expression import Expr, Selector, Value
from vitrify.spec.programs.program import Program
from vitrify.spec.programs.values import symbols_of

MAX_NUMBERS = 1 << 24  # in a table
MAX_HELD = 1 << 21  # scores in memory at once
SAME = 1e-9  # numbers of a table nearer to each other than this, relative to the largest, are the same
MAX_SCORES = 1 << 28  # compared for one head
TIED = 1e-11  # scores nearer to each other than this, relative to the largest, are equal
ROUNDING = 1e-14  # of a computed table, relative to its largest number


@dataclass(frozen=True, eq=False)
class Term:
    """A table [*values of expressions, column]: numbers that these expressions determine."""

    exprs: Cut
    table: Floats

    def like(self, exprs: Cut) -> Floats:
        """Return the table with the same expressions in another order."""
        return self.table.transpose(*(self.exprs.index(n) for n in exprs), len(exprs))


@dataclass(frozen=True, eq=False)
class Held:
    """Contents of some dimensions: a table of expressions at the position."""

    dims: Ints
    term: Term


@dataclass(frozen=True, eq=False)
class Read:
    """A linear read of the residual stream: its terms, added up, and the error of each column."""

    term: Term
    error: Floats


def _without(held: Held, gone: Ints) -> Term:
    """Return a table with some dimensions set to zero."""
    return replace(held.term, table=np.where(np.isin(held.dims, gone), 0.0, held.term.table))


@lemma(Program, Formula, Crasp)
def expression_by_expression(case: Case) -> SpecProof:
    """Match the heads and units of a network with the expressions of a program."""
    spec, longest = case.spec, case.ideal.longest
    program: Program = spec if isinstance(spec, Program) else spec.program
    if program.length != longest:
        program = Program(program.root, program.alphabet, longest, program.causal)
    run = _Translation(case, Source(program))
    run.all()
    return SpecProof("translation, expression by expression", longest, run.instances)


class _Translation:
    """One pass through the ideal: what tokens hold, and the range of what BOS holds in a net that looks ahead."""

    def __init__(self, case: Case, source: Source) -> None:
        self.case, self.ideal, self.source = case, case.ideal, source
        net, self.instances = case.net, dict[str, int]()
        self.ahead = any(rule.head.mask not in ("causal", "strict") for rule in self.ideal.rules)
        letters = source.program.alphabet
        if sorted(net.inputs[1:]) != sorted(letters):
            raise Undecided("the network reads other symbols than the program")
        tokens = source.number(Expr("tokens"))
        rows = np.stack([self.ideal.embedded(net.inputs.index(letter, 1)) for letter in letters])
        self.held = [Held(np.arange(rows.shape[1]), Term((tokens,), rows))]
        self.error = ROUNDING * np.abs(rows).max(axis=0)
        pads = np.asarray(self.ideal.embed[[0]] + np.asarray(dense(case.weights.arrays["pos_embed.W_pos"]))[: net.pads])
        self.bos = pads, np.zeros_like(pads)  # center and radius; only followed if the net looks ahead
        self.matched: set[int] = set()
        self.open = [n for n, node in enumerate(source.nodes) if node.op in FETCHES]

    def all(self) -> None:
        for index, block in enumerate(self.ideal.blocks):
            before = self.held, self.error
            for rule in block.heads:
                held, error = self.held, self.error
                self.held, self.error = before
                written, off = self._head(rule, index)
                self.held, self.error = [*held, *written], error + off
            if self.ahead and block.heads:
                self._bos_heads(block.heads, before[0], index)
            if block.units:
                self._units(index)
        self._readout()

    def _count(self, what: str, number: int) -> None:
        self.instances[what] = self.instances.get(what, 0) + number

    # ---- linear reads
    def _read(self, matrix: Floats, placed: Floats) -> Read:
        """Return what a matrix [dim, column] reads of the contents, with what it makes of positions [position, column]."""
        terms: dict[frozenset[int], Term] = {}
        self._join(terms, Term((self.source.indices,), placed))
        for held in self.held:
            rows = matrix[held.dims]
            if np.any(rows):
                self._join(terms, Term(held.term.exprs, held.term.table @ rows))
        return self._reduced(list(terms.values()), self.error @ np.abs(matrix))

    def _join(self, terms: dict[frozenset[int], Term], term: Term) -> None:
        """Add a term to others, without the expressions that don't matter to it."""
        exprs, table = term.exprs, term.table
        for axis in reversed(range(len(exprs))):
            if np.ptp(table, axis=axis).max(initial=0.0) <= ROUNDING * np.abs(table).max(initial=0.0):
                exprs, table = exprs[:axis] + exprs[axis + 1 :], table.take(0, axis=axis)
        term, key = Term(exprs, table), frozenset(exprs)
        terms[key] = Term(exprs, table + terms[key].like(exprs)) if key in terms else term

    def _reduced(self, terms: list[Term], error: Floats) -> Read:
        """Return the sum of terms, where possible as a table of functions of what they are tables of."""
        source, joined = self.source, dict[frozenset[int], Term]()
        for term in terms:
            self._join(joined, term)
        largest = sum(np.abs(term.table).max(initial=0.0) for term in terms)
        terms, error = list(joined.values()), error + 2 * ROUNDING * (len(terms) + 1) * largest
        for node, args in enumerate(source.args):
            for cut in (self._below(terms, node), args):
                terms, error = self._replaced(terms, error, node, cut)
        atoms = tuple(sorted(source.atoms(n for term in terms for n in term.exprs)))
        if sum(len(term.exprs) for term in terms) > 1:
            for node in sorted(range(len(source.nodes)), key=lambda n: len(source.domains[n])):
                terms, error = self._replaced(terms, error, node, atoms)
        cut = tuple(sorted({n for term in terms for n in term.exprs}))
        alone = dict[frozenset[int], Term]()
        if len(cut) > 1 and prod(len(source.domains[n]) for n in atoms) * len(error) <= MAX_NUMBERS:
            self._join(alone, self._sum(terms, atoms))
        fewer = [term for term in alone.values() if len(term.exprs) < len(cut)]
        return Read(fewer[0] if fewer else self._sum(terms, cut), error)

    def _replaced(self, terms: list[Term], error: Floats, node: int, cut: Cut) -> tuple[list[Term], Floats]:
        """Replace the terms that a cut determines by a table of one function of it, if they are one."""
        source = self.source
        mine = [term for term in terms if all(n == node or source.at(n, cut) is not None for n in term.exprs)]
        several = len({n for term in mine for n in term.exprs} - {node}) > 1
        if not several or len(source.args[node]) < 2 or source.at(node, cut) is None:
            return terms, error
        try:
            table, far = self._factor(self._sum(mine, cut), node)
        except Undecided:
            return terms, error
        return [*(term for term in terms if not any(term is one for one in mine)), Term((node,), table)], error + far

    def _below(self, terms: list[Term], node: int) -> Cut:
        """Return the expressions of terms that an expression is made of."""
        below = self.source.below[node]
        return tuple(
            sorted({n for term in terms if below.union([node]).issuperset(term.exprs) for n in term.exprs} - {node})
        )

    def _rows(self, term: Term, cut: Cut) -> Floats:
        """Return the rows [values of a cut, column] of a table."""
        return self._sum([term], cut).table.reshape(-1, term.table.shape[-1])

    def _sum(self, terms: list[Term], cut: Cut) -> Term:
        """Return the sum of some terms over a cut that determines their expressions."""
        columns = terms[0].table.shape[-1]
        shape = [len(self.source.domains[n]) for n in cut]
        if prod(shape) * columns > MAX_NUMBERS:
            raise Undecided(f"{prod(shape):,} combinations of values are too many to evaluate")
        total = np.zeros((*shape, columns))
        for term in terms:
            index = [part for part in (self.source.at(n, cut) for n in term.exprs) if part is not None]
            if len(index) < len(term.exprs) or any((part < 0).any() for part in index):
                raise Undecided("a term is no function of some expressions")
            total += term.table[tuple(index)] if index else term.table
        return Term(cut, total)

    def _factor(self, term: Term, node: int) -> tuple[Floats, Floats]:
        """Return a table as one of an expression [value, column], and the largest difference taken for none, by column.

        `Undecided` if other expressions matter, too.
        """
        source = self.source
        cut = source.joint(term.exprs, [node])
        index = source.at(node, cut)
        rows = self._rows(term, cut)
        if index is None or rows.size > MAX_NUMBERS:
            raise Undecided("too many combinations of values to evaluate")
        number = np.broadcast_to(index, [len(source.domains[n]) for n in cut]).ravel()
        order = np.argsort(number, kind="stable")
        order = order[np.searchsorted(number[order], 0) :]
        different, starts = np.unique(number[order], return_index=True)
        low, high = (f.reduceat(rows[order], starts, axis=0) for f in (np.minimum, np.maximum))
        far = np.asarray((high - low).max(axis=0, initial=0.0))
        if (far > SAME * (1.0 + np.abs(rows).max(axis=0, initial=0.0))).any():
            raise Undecided("a table depends on more than one expression of the program")
        table = np.repeat((low[:1] + high[:1]) / 2, len(source.domains[node]), axis=0)
        table[different] = (low + high) / 2
        return table, far

    # ---- units
    def _units(self, index: int) -> None:
        ideal, (w_in, b_in, w_out, b_out) = self.ideal, self.ideal.blocks[index].units
        written: list[Held] = []
        off = np.zeros_like(self.error)
        for dims in self._groups(index, np.flatnonzero(np.any(w_out, axis=0) | (b_out != 0))):
            mine = np.flatnonzero(np.any(w_out[:, dims], axis=1))
            inward, outward = w_in[:, mine], w_out[np.ix_(mine, dims)]
            scale = np.array([column[np.flatnonzero(column)[0]] if column.any() else 1.0 for column in inward.T])
            lines, which = np.unique(inward / scale, axis=1, return_inverse=True) if len(mine) else (inward, mine)
            read = self._read(lines, ideal.places[index] @ lines)
            rows = read.term.table.reshape(-1, lines.shape[1])
            self._count("combinations of values that units read", len(rows))
            table = np.empty((len(rows), len(dims)))
            for start in range(0, len(rows), step := max(1, MAX_HELD // (len(mine) + 1))):
                before = rows[start : start + step][:, which.ravel()] * scale + b_in[mine]
                table[start : start + step] = np.maximum(before, 0.0) @ outward + b_out[dims]
            size = np.abs(rows).max(axis=0)[which.ravel()] * np.abs(scale) + np.abs(b_in[mine])
            noise = read.error[which.ravel()] * np.abs(scale) + ROUNDING * size
            after = self._reduced(
                [Term(read.term.exprs, table.reshape(*read.term.table.shape[:-1], -1))], noise @ np.abs(outward)
            )
            written.append(Held(dims, after.term))
            off[dims] = after.error
        gone = ideal.blocks[index].gone
        self.held = [Held(held.dims, _without(held, gone)) for held in self.held] + written
        self.error[gone] = 0.0
        self.error = self.error + off
        if self.ahead:
            self._bos_units(index)

    def _groups(self, index: int, dims: Ints) -> list[Ints]:
        """Return written dimensions in groups: those of one space together, others alone."""
        left, groups = set(dims.tolist()), []
        for space in self.case.weights.labels.spaces:
            mine = sorted(left & set(space.dims))
            if space.born == 2 * index + 2 and mine:
                groups.append(np.array(mine))
                left -= set(mine)
        return [*groups, *(np.array([dim]) for dim in sorted(left))]

    # ---- heads
    def _head(self, rule: HeadRule, index: int) -> tuple[list[Held], Floats]:
        """Return what a head writes: the table of an operation of the program; and its error by dimension."""
        if rule.head.window is not None:
            raise Undecided("a head with a window is no selection of a program")
        off = np.zeros_like(self.error)
        dims = np.flatnonzero(
            np.any(rule.v, axis=0) | np.any(rule.v_places + rule.b_v, axis=0) | np.any(rule.pad_values, axis=0)
        )
        if not len(dims):
            return [], off
        query, key = self._read(rule.q, rule.q_places), self._read(rule.k, rule.k_places)
        value = self._read(rule.v[:, dims], (rule.v_places + rule.b_v)[:, dims])
        places = self.ideal.places[index]
        keys = self._bos_read(rule.k, rule.k_places[0] - places[0] @ rule.k, rule.pad_keys)
        values = self._bos_read(rule.v, rule.b_v, rule.pad_values)
        parts = _HeadParts(rule, query, key, value, keys, (values[0][:, dims], values[1][:, dims]))
        reasons = {}
        for node in sorted(self.open, key=lambda n: n in self.matched):
            try:
                table, far = (self._averages if rule.averages else self._selects)(parts, node)
            except Undecided as stop:
                reasons[node] = str(stop)
                continue
            self.matched.add(node)
            self._count("heads", 1)
            off[dims] = value.error + values[1][:, dims].max(axis=0) + far + ROUNDING * np.abs(table).max(axis=0)
            return [Held(dims, Term((node,), table))], off
        raise Undecided(f"a head of block {index} runs no operation: {'; '.join(sorted(set(reasons.values())))}")

    def _bos_read(self, matrix: Floats, bias: Floats, known: Floats) -> tuple[Floats, Floats]:
        """Return center and radius of what a matrix reads at the pads; they are known unless the net looks ahead."""
        if not self.ahead:
            return known, np.zeros_like(known)
        return self.bos[0] @ matrix + bias, self.bos[1] @ np.abs(matrix)

    def _selects(self, parts: _HeadParts, node: int) -> tuple[Floats, Floats]:
        """Return the table of an operation that a head runs by selecting keys; `Undecided` if it is another one."""
        source, rule, operation = self.source, parts.rule, self.source.nodes[node]
        selector, op = operation.args[0], operation.op
        tests = [test for test in leaves(selector) if not by_position(test)]
        q_cut = source.joint(parts.query.term.exprs, [source.number(test.args[1]) for test in tests])
        k_cut = source.joint(parts.key.term.exprs, [source.number(test.args[0]) for test in tests])
        queries, keys = self._rows(parts.query.term, q_cut), self._rows(parts.key.term, k_cut)
        if len(keys) * queries.shape[1] > MAX_NUMBERS or len(queries) * len(keys) > MAX_SCORES:
            raise Undecided(f"{len(queries):,} × {len(keys):,} queries and keys are too many to compare")
        q_size, k_size = (np.abs(rows).max(axis=0) for rows in (queries, keys))
        k_size = np.maximum(k_size, (np.abs(parts.pad_keys[0]) + parts.pad_keys[1]).max(axis=0))
        off = float(parts.query.error @ (k_size + parts.key.error) + parts.key.error @ q_size)
        tie, gap = 2 * off + TIED * float(q_size @ k_size + 1), 2 * off + EQUAL * float(q_size @ k_size + 1)
        where = self._where(k_cut)
        order = np.argsort(where, kind="stable") if where is not None else np.arange(0)
        shares = rule.head.attention != "hard" or rule.head.ties == "average"
        single = {"right": "last", "left": "first"}.get(rule.head.ties if not shares else "")
        for start in range(0, len(queries), step := max(1, MAX_HELD // (len(keys) + 1))):
            some = slice(start, start + step)
            scores = queries[some] @ keys.T
            chosen, losing = self._chosen(selector, rule, q_cut, k_cut, some)
            low, high = np.where(chosen, scores, np.inf).min(axis=1), np.where(chosen, scores, -np.inf).max(axis=1)
            other = np.where(losing, scores, -np.inf).max(axis=1)
            pads, width = queries[some] @ parts.pad_keys[0].T, np.abs(queries[some]) @ parts.pad_keys[1].T
            least, most = (pads - width).max(axis=1), (pads + width).max(axis=1)
            if (other >= np.minimum(low, least) - gap).any():
                raise Undecided("a key that is not selected may win")
            if op == "width":
                apart = max((high - least).max(), (most - low).max(), (most - least).max())
                if not shares or apart > tie or np.ptp(pads, axis=1).max() > tie:
                    raise Undecided("BOS is not as good as the keys that are counted")
                continue
            if (most >= low - gap).any():
                raise Undecided("BOS may win where a key is selected")
            if op == "mean" and (not shares or (high - low)[np.isfinite(low)].max(initial=0.0) > tie):
                raise Undecided("selected keys have different weights")
            if (
                op in ("first", "last")
                and where is None
                and (single != op or (high - low)[np.isfinite(low)].max(initial=0.0) > tie)
            ):
                raise Undecided(f"the {op} of the selected keys need not win")
            if op in ("first", "last") and where is not None:
                self._need_order(scores[:, order], chosen[:, order], where[order], gap, last=op == "last")
        self._count("pairs of values of a query and a key", len(queries) * len(keys))
        return self._fetched(parts, node)

    def _where(self, cut: Cut) -> Ints | None:
        """Return the position of each combination of values, if it is one of the expressions."""
        index = self.source.at(self.source.indices, cut)
        return None if index is None else np.broadcast_to(index, [len(self.source.domains[n]) for n in cut]).ravel()

    def _chosen(self, selector: Selector, rule: HeadRule, q_cut: Cut, k_cut: Cut, some: slice) -> tuple[Bools, Bools]:
        """Return which keys [query, key] a selector can select, and which others the head can see."""
        source = self.source
        queries, keys = {}, {}
        for cut, side, known in ((k_cut, 0, keys), (q_cut, 1, queries)):
            for test in leaves(selector):
                number, shape = source.number(test.args[side]), [len(source.domains[n]) for n in cut]
                index = source.at(number, cut)
                if index is not None:
                    flat = np.broadcast_to(index, shape).ravel()
                    known[number] = flat[some][:, None] if side else flat[None]
        possible = [
            np.all([part >= 0 for part in np.broadcast_arrays(*known.values())], axis=0) if known else np.True_
            for known in (queries, keys)
        ]
        i, j = self._where(q_cut), self._where(k_cut)
        sides = np.sign(j[None] - i[some][:, None]) if i is not None and j is not None else None
        shape = (
            len(range(*some.indices(prod(len(source.domains[n]) for n in q_cut)))),
            prod(len(source.domains[n]) for n in k_cut),
        )
        chosen, losing = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        for side in (-1, 0, 1):
            there = possible[0] & possible[1] & (np.True_ if sides is None else sides == side)
            visible = side <= {"causal": 0, "strict": -1}.get(rule.head.mask, 1)
            now = source.chosen(selector, keys, queries, side) & there
            if not visible and now.any():
                raise Undecided("a selected key is not visible")
            chosen |= now
            losing |= visible & there & ~now
        return chosen, losing

    def _need_order(self, scores: Floats, chosen: Bools, where: Ints, gap: float, *, last: bool) -> None:
        """Refuse selected keys of which a later one (or an earlier one) does not win; keys are in order."""
        _, starts = np.unique(where, return_index=True)
        low = np.minimum.reduceat(np.where(chosen, scores, np.inf), starts, axis=1)
        high = np.maximum.reduceat(np.where(chosen, scores, -np.inf), starts, axis=1)
        if not last:
            low, high = low[:, ::-1], high[:, ::-1]
        if (low[:, 1:] <= np.maximum.accumulate(high, axis=1)[:, :-1] + gap).any():
            raise Undecided("another of the selected keys may win")

    def _fetched(self, parts: _HeadParts, node: int) -> tuple[Floats, Floats]:
        """Return the table of an operation whose keys are right: of what it reads, with the default at BOS."""
        source, operation, domain = self.source, self.source.nodes[node], self.source.domains[node]
        pads, radius = parts.pad_values
        if max(np.ptp(pads, axis=0).max(), radius.max()) > SAME:
            raise Undecided("the value at BOS is not the same for all words")
        if operation.op == "width":
            if parts.value.term.exprs:
                raise Undecided("a head that counts reads a value")
            counts = np.array(domain, dtype=float)[:, None]
            return (len(pads) * pads[:1] + counts * parts.value.term.table) / (len(pads) + counts), np.zeros(
                pads.shape[1]
            )
        inner = source.number(operation.args[1])
        table, far = self._factor(parts.value.term, inner)
        if operation.op == "mean":
            numbers = np.array([float(value) for value in source.domains[inner]])  # type: ignore[arg-type]
            end = int(np.abs(numbers - numbers[0]).argmax())
            slope = (table[end] - table[0]) / (numbers[end] - numbers[0] or 1.0)
            line = table[0] + np.outer(numbers - numbers[0], slope)
            far = far + np.abs(line - table).max(axis=0)
            points = np.array([float(value) for value in domain])  # type: ignore[arg-type]
            result = table[0] + np.outer(points - numbers[0], slope)
        else:
            result = table[[_index(source.domains[inner], value, 0) for value in domain]]
        default = _index(domain, operation.data)
        if operation.op == "mean" or _index(source.domains[inner], operation.data, -1) >= 0:
            far = far + np.abs(result[default] - pads[0])
        result[default] = pads[0]
        if (far > SAME * (1.0 + np.abs(result).max(axis=0))).any():
            raise Undecided("the value at BOS is not the default, or values are no line")
        return result, far

    def _averages(self, parts: _HeadParts, node: int) -> tuple[Floats, Floats]:
        """Return the table of a width that a head runs by weights that are the same for all tokens."""
        source, rule, operation = self.source, parts.rule, self.source.nodes[node]
        if operation.op != "width" or set(parts.query.term.exprs + parts.key.term.exprs) - {source.indices}:
            raise Undecided("an average is no such operation")
        count, pads = source.length, len(parts.pad_keys[0])
        here = (source.indices,)
        queries, keys = self._rows(parts.query.term, here), self._rows(parts.key.term, here)
        at = pads + np.arange(count)
        seen = allowed_keys(rule.head, at, np.arange(pads + count))
        weight = weigh(rule.head, queries @ np.vstack([parts.pad_keys[0], keys]).T, seen)
        tokens, constant = weight[:, pads:][seen[:, pads:]], weight[:, :pads] @ parts.pad_values[0]
        if (
            not len(tokens)
            or np.ptp(tokens) > SAME * tokens.min()
            or np.ptp(constant, axis=0).max() > SAME
            or parts.pad_values[1].any()
            or parts.pad_keys[1].any()
        ):
            raise Undecided("tokens have different weights at different positions")
        selector = operation.args[0]
        tests = [test for test in leaves(selector) if not by_position(test)]
        q_cut = source.joint((), [source.number(test.args[1]) for test in tests])
        k_cut = source.joint(parts.value.term.exprs, [source.number(test.args[0]) for test in tests])
        values = self._rows(parts.value.term, k_cut) * float(tokens[0])
        chosen, losing = self._chosen(selector, rule, q_cut, k_cut, slice(None))
        self._count("pairs of values of a query and a key", chosen.size)
        if (chosen & losing).any() or (chosen != chosen[:1]).any():
            raise Undecided("an average does not depend on queries and positions")
        on, off = values[chosen[0]], values[losing[0]]
        step = on[0] if len(on) else np.zeros(values.shape[1])
        far = np.abs(np.vstack([on - step, off])).max(axis=0, initial=0.0) * count
        if (far > SAME * (1.0 + np.abs(step) * count)).any():
            raise Undecided("what a head averages is not what is counted")
        return constant[:1] + np.outer(np.arange(count + 1.0), step), far + ROUNDING * count * np.abs(step)

    # ---- BOS in a net that looks ahead: center and radius of every coordinate
    def _bos_heads(self, rules: list[HeadRule], held: list[Held], index: int) -> None:
        """Add what heads may write at BOS: a mean of values of tokens and of BOS, or nothing."""
        center, radius = self.bos
        low, high = center - radius, center + radius
        for rule in rules:
            placed = rule.v_places + rule.b_v
            least, most = placed.min(axis=0), placed.max(axis=0)
            for each in held:
                table = (each.term.table @ rule.v[each.dims]).reshape(-1, rule.v.shape[1])
                least, most = least + table.min(axis=0), most + table.max(axis=0)
            mine, off = self._bos_read(rule.v, rule.b_v, rule.pad_values)
            off = off + self.error @ np.abs(rule.v)
            low = low + np.minimum(0.0, np.minimum(least, mine - off))
            high = high + np.maximum(0.0, np.maximum(most, mine + off))
        self.bos = (low + high) / 2, (high - low) / 2

    def _bos_units(self, index: int) -> None:
        w_in, b_in, w_out, b_out = self.ideal.blocks[index].units
        center, radius = self.bos[0] @ w_in + b_in, self.bos[1] @ np.abs(w_in)
        low, high = np.maximum(center - radius, 0.0), np.maximum(center + radius, 0.0)
        kept = np.ones(w_out.shape[1])
        kept[self.ideal.blocks[index].gone] = 0.0
        self.bos = (
            self.bos[0] * kept + (low + high) / 2 @ w_out + b_out,
            self.bos[1] * kept + (high - low) / 2 @ np.abs(w_out),
        )

    # ---- answers
    def _readout(self) -> None:
        net, source, oracle = self.case.net, self.source, self.case.oracle
        read = self._read(self.ideal.w_u, self.ideal.places[-1] @ self.ideal.w_u + self.ideal.b_u)
        logits, far = self._factor(read.term, source.root)
        off, domain = float((read.error + far).max()), source.domains[source.root]
        self._count("values of the result", len(domain))
        if net.output.kind == "values":
            right = np.array([float(value) for value in domain])  # type: ignore[arg-type]
            wrong = np.abs(logits[:, 0] - right) + off > max(oracle.tolerance(), SAME)
        else:
            names = source.program.values[source.program.root]
            symbols = dict(zip(names, symbols_of(names), strict=True))
            best = [net.output.symbols.index(symbols[value]) for value in domain]
            lead = logits[np.arange(len(domain)), best]
            logits[np.arange(len(domain)), best] = -np.inf
            wrong = lead - logits.max(axis=1) <= 2 * off + oracle.TIE
        if wrong.any():
            raise Undecided(f"the answer where the result is {domain[int(wrong.argmax())]!r} is not right")


@dataclass(frozen=True, eq=False)
class _HeadParts:
    """The reads of a head, and center and radius of the keys and values of the pads."""

    rule: HeadRule
    query: Read
    key: Read
    value: Read
    pad_keys: tuple[Floats, Floats]
    pad_values: tuple[Floats, Floats]


def _index(domain: tuple[Value, ...], value: Value, default: int | None = None) -> int:
    """Return the index of a value; True is not 1."""
    at = [n for n, other in enumerate(domain) if other == value and isinstance(other, bool) == isinstance(value, bool)]
    if not at and default is None:
        raise Undecided(f"{value!r} is no value of an expression")
    return at[0] if at else int(default or 0)
