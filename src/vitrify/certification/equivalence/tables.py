r"""Contents of the residual stream as tables of the values of expressions, and what matrices read of them.

A sum of tables is replaced by a table of one expression where, over all values of what it is a function of, the sum
depends on that expression alone. The values of one position are taken to vary independently.

`error` bounds, by dimension or column, how far numbers are from the exact ones: by rounding, and by differences that
are taken for none.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import prod

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.equivalence.expressions import Cut, ProgramExpressions
from vitrify.certification.margins.values import Undecided

MAX_NUMBERS = 1 << 23  # in a table
MAX_COMBINED = 1 << 18  # combinations of values; of more, tables with fewer values are looked for
SAME = 1e-9  # numbers of a table nearer to each other than this, relative to the largest, are the same
ROUNDING = 1e-14  # of a computed table, relative to the largest sum of sizes


@dataclass(frozen=True, eq=False)
class ValueTable:
    """A table [*values of expressions, column]: numbers that these expressions determine."""

    exprs: Cut
    table: Floats


@dataclass(frozen=True, eq=False)
class LinearRead:
    """Numbers that are read: their table, and by column their error and a bound of the sizes that add up to them."""

    term: ValueTable
    error: Floats
    size: Floats


@dataclass(frozen=True, eq=False)
class Factored:
    """A table [value, column] of one expression, differences taken for none by column, and which values occur."""

    table: Floats
    far: Floats
    occurs: Bools


class TokenContents:
    """Contents of the residual stream at a token: tables of expressions, each in some dimensions, which add up."""

    def __init__(self, source: ProgramExpressions, tokens: Floats) -> None:
        """From the contents [letter, dim] of the letters."""
        self.source = source
        self.held = [(np.arange(tokens.shape[1]), ValueTable((source.tokens,), tokens))]
        self.error = ROUNDING * np.abs(tokens).max(axis=0)

    def write(self, dims: Ints, term: ValueTable, error: Floats) -> None:
        """Add a table to some dimensions."""
        self.held = [*self.held, (dims, term)]
        self.error = self.error.copy()
        self.error[dims] += error

    def erase(self, dims: Ints) -> None:
        """Set some dimensions to zero."""
        self.held = [
            (at, ValueTable(term.exprs, np.where(np.isin(at, dims), 0.0, term.table)))
            for at, term in self.held
            if not np.isin(at, dims).all()
        ]
        self.error = self.error.copy()
        self.error[dims] = 0.0

    def read(self, matrix: Floats, placed: Floats) -> LinearRead:
        """Return what a matrix [dim, column] reads, with what it makes of positions [position, column]."""
        terms, size = [ValueTable((self.source.indices,), placed)], np.abs(placed).max(axis=0, initial=0.0)
        for dims, term in self.held:
            rows = matrix[dims]
            if np.any(rows):
                terms.append(ValueTable(term.exprs, term.table @ rows))
                size = size + np.abs(term.table).reshape(-1, len(dims)).max(axis=0) @ np.abs(rows)
        return self.reduced(terms, self.error @ np.abs(matrix), size)

    def reduced(self, terms: list[ValueTable], error: Floats, size: Floats) -> LinearRead:
        """Return the sum of terms, where possible as a table of functions of what they are tables of."""
        source, joined = self.source, dict[frozenset[int], ValueTable]()
        parts = sum(1 + len(term.exprs) for term in terms)
        error = error + ROUNDING * (1 + parts) * (size + max(np.abs(term.table).max(initial=0.0) for term in terms))
        for term in terms:
            _join(joined, term)
        terms = list(joined.values())
        if len({n for term in terms for n in term.exprs}) < 2:
            return LinearRead(self.sum(terms, tuple({n: n for term in terms for n in term.exprs})), error, size)
        if prod(len(source.domains[n]) for n in {n for term in terms for n in term.exprs}) > MAX_COMBINED:
            terms, error = self._coarser(terms, error)
        for node, args in enumerate(source.args):
            for cut in (self._below(terms, node), args):
                terms, error = self._replaced(terms, error, node, cut)
        cut = tuple(sorted({n for term in terms for n in term.exprs}))
        atoms = tuple(sorted(source.atoms(cut)))
        if len(cut) > 1:
            for node in sorted(range(len(source.nodes)), key=lambda n: len(source.domains[n])):
                terms, error = self._replaced(terms, error, node, atoms)
            cut = tuple(sorted({n for term in terms for n in term.exprs}))
        if len(cut) > 1 and prod(len(source.domains[n]) for n in atoms) * len(error) <= MAX_NUMBERS:
            alone = dict[frozenset[int], ValueTable]()
            _join(alone, self.sum(terms, atoms))
            (term,) = alone.values()
            if len(term.exprs) < len(cut):
                return LinearRead(term, error, size)
        return LinearRead(self.sum(terms, cut), error, size)

    def _coarser(self, terms: list[ValueTable], error: Floats) -> tuple[list[ValueTable], Floats]:
        """Replace tables of one expression by tables of a function of it that has fewer values, where there is one."""
        source, results = self.source, list[ValueTable]()
        for term in terms:
            for node in sorted(range(len(source.nodes)), key=lambda n: len(source.domains[n])):
                if len(term.exprs) == 1 and source.args[node] == term.exprs and source.nodes[node].op == "apply":
                    with suppress(Undecided):
                        one = self.factor(term, node)
                        term, error = ValueTable((node,), one.table), error + one.far
            results.append(term)
        return results, error

    def _replaced(self, terms: list[ValueTable], error: Floats, node: int, cut: Cut) -> tuple[list[ValueTable], Floats]:
        """Replace the terms that a cut determines by a table of one function of it, if they are one."""
        source = self.source
        mine = [term for term in terms if all(n == node or source.at(n, cut) is not None for n in term.exprs)]
        several = len({n for term in mine for n in term.exprs} - {node}) > 1
        if not several or len(source.args[node]) < 2 or source.at(node, cut) is None:
            return terms, error
        try:
            one = self.factor(self.sum(mine, cut), node)
        except Undecided:
            return terms, error
        others = [term for term in terms if not any(term is each for each in mine)]
        return [*others, ValueTable((node,), one.table)], error + one.far

    def _below(self, terms: list[ValueTable], node: int) -> Cut:
        """Return the expressions of terms that an expression is made of."""
        below = self.source.below[node].union([node])
        return tuple(sorted({n for term in terms if below.issuperset(term.exprs) for n in term.exprs} - {node}))

    def rows(self, term: ValueTable, cut: Cut) -> Floats:
        """Return the rows [values of a cut, column] of a table."""
        return self.sum([term], cut).table.reshape(-1, term.table.shape[-1])

    def sum(self, terms: list[ValueTable], cut: Cut) -> ValueTable:
        """Return the sum of some terms over a cut that determines their expressions."""
        columns, shape = terms[0].table.shape[-1], [len(self.source.domains[n]) for n in cut]
        if prod(shape) * columns > MAX_NUMBERS:
            raise Undecided(f"{prod(shape):,} combinations of values are too many to evaluate")
        total = np.zeros((*shape, columns))
        for term in terms:
            index = [part for part in (self.source.at(n, cut) for n in term.exprs) if part is not None]
            if len(index) < len(term.exprs) or any((part < 0).any() for part in index):
                raise Undecided("a table is no function of some expressions")
            total += term.table[tuple(index)]
        return ValueTable(cut, total)

    def factor(self, term: ValueTable, node: int) -> Factored:
        """Return a table as one of an expression; `Undecided` if other expressions matter, too."""
        source = self.source
        cut = source.joint(term.exprs, [node])
        rows, index = self.rows(term, cut), source.at(node, cut)
        if index is None:
            raise Undecided("an expression has too many values to evaluate")
        number = np.broadcast_to(index, [len(source.domains[n]) for n in cut]).ravel()
        order = np.argsort(number, kind="stable")
        order = order[np.searchsorted(number[order], 0) :]  # those that can occur
        different, starts = np.unique(number[order], return_index=True)
        if not len(different):
            raise Undecided("no combination of values can occur")
        low, high = (f.reduceat(rows[order], starts, axis=0) for f in (np.minimum, np.maximum))
        far = np.asarray((high - low).max(axis=0))
        if (far > SAME * (1.0 + np.abs(rows).max(axis=0))).any():
            raise Undecided("a table depends on more than one expression of the program")
        table = np.repeat((low[:1] + high[:1]) / 2, len(source.domains[node]), axis=0)
        table[different] = (low + high) / 2
        return Factored(table, far, np.isin(np.arange(len(table)), different))


def _join(terms: dict[frozenset[int], ValueTable], term: ValueTable) -> None:
    """Add a term to others, without the expressions that don't matter to it."""
    exprs, table = term.exprs, term.table
    for axis in reversed(range(len(exprs))):
        if np.ptp(table, axis=axis).max(initial=0.0) <= ROUNDING * np.abs(table).max(initial=0.0):
            exprs, table = exprs[:axis] + exprs[axis + 1 :], np.asarray(table.take(0, axis=axis))
    key = frozenset(exprs)
    if key in terms:
        other = terms[key]
        table = table + other.table.transpose(*(other.exprs.index(n) for n in exprs), len(exprs))
    terms[key] = ValueTable(exprs, table)
