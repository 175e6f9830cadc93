"""Selectors as signed sums of conjunctions of tests: what heads can look for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vitrify.spec.program import Expr, Selector, Table, function_of
from vitrify.spec.program_values import Domain, Values

Holds = NDArray[np.bool_]
MASKS: dict[str, Literal["strict", "causal"]] = {"<": "strict", "<=": "causal"}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, eq=False)
class Atom:
    """A test of a key against a query: a relation by name, or written out as a matrix [key, query]."""

    key: Expr
    query: Expr
    relation: str | None
    matrix: Holds

    @property
    def mask(self) -> Literal["strict", "causal"] | None:
        """The mask that says the same, if one does: this place against that place."""
        both = self.key.op == "indices" and self.query.op == "indices"
        return MASKS.get(self.relation or "") if both else None

    @property
    def equality(self) -> bool:
        return self.relation == "=="

    def holds(self, keys: Domain, queries: Domain) -> Holds:
        """Which pairs of values pass, [key, query]."""
        assert self.matrix.shape == (len(keys), len(queries))
        return self.matrix

    @property
    def pair(self) -> tuple[int, int]:
        return id(self.key), id(self.query)


Conjunction = tuple[Atom, ...]
Signed = list[tuple[int, Conjunction]]


def conjunctions(selector: Selector, values: Values, *, width: bool) -> Signed:
    """The selector as conjunctions: one, or for a width several with signs, whose sizes add up to its size."""
    found = _signed(selector, values, negated=False)
    if width or (len(found) == 1 and found[0][0] == 1):
        return found
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
    """Tests of the same key against the same query become one; masks stay by themselves."""
    kept: dict[Any, Atom] = {}
    for atom in atoms:
        slot = (atom.pair, atom.mask)
        if slot in kept and atom.mask is None:
            matrix = kept[slot].matrix & atom.matrix
            same = (matrix == atom.matrix).all()
            atom = Atom(atom.key, atom.query, atom.relation if same else None, matrix)
        kept[slot] = atom
    return tuple(kept.values())


def _union(left: Signed, right: Signed) -> Signed | None:
    """Two tests of the same key against the same query, as one that either passes."""
    if len(left) == len(right) == 1 and left[0][0] == right[0][0] == 1 and len(left[0][1]) == len(right[0][1]) == 1:
        (one,), (two,) = left[0][1], right[0][1]
        if one.pair == two.pair:
            return [(1, (Atom(one.key, one.query, None, one.matrix | two.matrix),))]
    return None


def _joint(selector: Selector, values: Values) -> Atom:
    """Any combination of tests, as one test of all keys together against all queries together."""
    keys, queries = _sides(selector, 0), _sides(selector, 1)
    key, query = _bundle(keys, values), _bundle(queries, values)
    rows = list(product(*(range(len(values[k])) for k in keys)))
    columns = list(product(*(range(len(values[q])) for q in queries)))
    at = {id(k): place for place, k in enumerate(keys)}, {id(q): place for place, q in enumerate(queries)}

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
    """The keys (or queries) of all tests, each once."""
    if selector.op == "select":
        return [selector.args[side]]
    found = {id(e): e for arg in selector.args if isinstance(arg, Selector) for e in _sides(arg, side)}
    return list(found.values())


def _bundle(nodes: list[Expr], values: Values) -> Expr:
    """Several expressions as one, whose values are numbered in the order of their product."""
    if len(nodes) == 1:
        return nodes[0]
    rows = {args: number for number, args in enumerate(product(*(values[node] for node in nodes)))}
    return values.include(Expr("apply", tuple(nodes), Table(rows, "bundle")))  # type: ignore[arg-type]
