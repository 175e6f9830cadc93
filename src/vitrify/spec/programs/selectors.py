"""Selectors as signed sums of conjunctions of tests, which attention heads can compute."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from vitrify.arrays import Bools
from vitrify.spec.programs.expression import Expr, Selector, Table, function_of
from vitrify.spec.programs.values import Domain, Values

Holds = Bools
MASKS: dict[str, Literal["strict", "causal"]] = {"<": "strict", "<=": "causal"}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, eq=False)
class Atom:
    """A test of a key against a query: a relation by name, or as a matrix [key, query]."""

    key: Expr
    query: Expr
    relation: str | None
    matrix: Holds

    @property
    def mask(self) -> Literal["strict", "causal"] | None:
        """Equivalent attention mask, if the test compares positions; else None."""
        both = self.key.op == "indices" and self.query.op == "indices"
        return MASKS.get(self.relation or "") if both else None

    @property
    def equality(self) -> bool:
        return self.relation == "=="

    def holds(self, keys: Domain, queries: Domain) -> Holds:
        """Return the pairs of values that pass, [key, query]."""
        assert self.matrix.shape == (len(keys), len(queries))
        return self.matrix

    @property
    def pair(self) -> tuple[int, int]:
        return id(self.key), id(self.query)


Conjunction = tuple[Atom, ...]
Signed = list[tuple[int, Conjunction]]


def conjunctions(selector: Selector, values: Values, *, width: bool) -> Signed:
    """Return the selector as one conjunction, or for a width as several with signs, whose sizes add up to its size.

    The list is empty for a selector that never selects anything.
    """
    signed = _signed(selector, values, negated=False)
    if width or (len(signed) == 1 and signed[0][0] == 1):
        return signed
    if not _sides(selector, 0):  # it tests nothing: all positions, or none
        return [(1, ())] if sum(sign for sign, _ in signed) else []
    return [(1, (_joint(selector, values),))]


def _signed(selector: Selector, values: Values, *, negated: bool) -> Signed:
    if selector.op == "all":
        return [] if negated else [(1, ())]
    if selector.op == "select":
        return [(1, (_atom(selector, values, negated),))]
    if selector.op == "not":
        return _signed(selector.args[0], values, negated=not negated)
    left, right = (_signed(arg, values, negated=negated) for arg in selector.args)
    both = [(a * b, _merged((*one, *two))) for (a, one), (b, two) in product(left, right)]
    if (selector.op == "and") != negated:
        return both
    single = _union(left, right)
    return single if single is not None else [*left, *right, *((-sign, atoms) for sign, atoms in both)]


def _atom(selector: Selector, values: Values, negated: bool) -> Atom:
    key, query = selector.args
    holds = function_of(selector.data)
    matrix = np.array([[bool(holds(k, q)) for q in values[query]] for k in values[key]], dtype=bool)
    relation = selector.data if isinstance(selector.data, str) else None
    if negated:
        matrix, relation = ~matrix, OPPOSITE.get(relation or "")
    return Atom(key, query, relation, matrix)


def _merged(atoms: Conjunction) -> Conjunction:
    """Merge tests of the same key against the same query; masks stay separate."""
    by_slot: dict[Hashable, Atom] = {}
    for atom in atoms:
        slot = (atom.pair, atom.mask)
        if slot in by_slot and atom.mask is None:
            matrix = by_slot[slot].matrix & atom.matrix
            same = (matrix == atom.matrix).all()
            atom = Atom(atom.key, atom.query, atom.relation if same else None, matrix)
        by_slot[slot] = atom
    return tuple(by_slot.values())


def _union(left: Signed, right: Signed) -> Signed | None:
    """Return two tests of the same key against the same query as one that passes if either does; else None."""
    if len(left) == len(right) == 1 and left[0][0] == right[0][0] == 1 and len(left[0][1]) == len(right[0][1]) == 1:
        (one,), (two,) = left[0][1], right[0][1]
        if one.pair == two.pair:
            return [(1, (Atom(one.key, one.query, None, one.matrix | two.matrix),))]
    return None


def _joint(selector: Selector, values: Values) -> Atom:
    """Return any combination of tests as one test of all keys together against all queries together."""
    keys, queries = _sides(selector, 0), _sides(selector, 1)
    key, query = _bundle(keys, values), _bundle(queries, values)
    rows = list(product(*(range(len(values[k])) for k in keys)))
    columns = list(product(*(range(len(values[q])) for q in queries)))
    at = {id(k): index for index, k in enumerate(keys)}, {id(q): index for index, q in enumerate(queries)}

    def passes(node: Selector, row: tuple[int, ...], column: tuple[int, ...]) -> bool:
        if node.op == "all":
            return True
        if node.op == "select":
            k, q = node.args
            args = values[k][row[at[0][id(k)]]], values[q][column[at[1][id(q)]]]
            return bool(function_of(node.data)(*args))
        if node.op == "not":
            return not passes(node.args[0], row, column)
        both = all if node.op == "and" else any
        return both(passes(arg, row, column) for arg in node.args)

    matrix = np.array([[passes(selector, row, column) for column in columns] for row in rows], dtype=bool)
    return Atom(key, query, None, matrix)


def _sides(selector: Selector, side: int) -> list[Expr]:
    """Return the keys (or queries) of all tests, each once."""
    if selector.op == "select":
        return [selector.args[side]]
    distinct = {id(e): e for arg in selector.args if isinstance(arg, Selector) for e in _sides(arg, side)}
    return list(distinct.values())


def _bundle(nodes: list[Expr], values: Values) -> Expr:
    """Return several expressions as one, with values numbered in the order of their product."""
    if len(nodes) == 1:
        return nodes[0]
    rows = {args: number for number, args in enumerate(product(*(values[node] for node in nodes)))}
    return values.include(Expr("apply", tuple(nodes), Table(rows, "bundle")))  # type: ignore[arg-type]
