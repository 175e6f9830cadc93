"""The expressions of a RASP program as numbers: their values, and each as a function of others at the same position.

Sets of values are computed here, from the values of arguments, so that every value that occurs is in its set. The width
of a selection is also a function of widths of simpler selections; that holds for all pairs of values, which is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from vitrify.arrays import Bools, Ints
from vitrify.certification.margins.values import Undecided
from vitrify.spec.programs.expression import (
    FETCHES,
    OPERATIONS,
    Expr,
    Pairs,
    Selector,
    Value,
    exact,
    function_of,
    parts,
)
from vitrify.spec.programs.program import Program
from vitrify.spec.programs.selectors import Atom, conjunctions
from vitrify.spec.programs.values import Values

MAX_ROWS = 1 << 21  # of the table of a function
MAX_COMPARED = 1 << 17  # pairs of values for which two selections are compared
MAX_MEANS = 1 << 14  # values of a mean
READS = (*FETCHES, "width")  # a sum is a sum of widths
Cut = tuple[int, ...]  # numbers of expressions
ARRAYS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "neg": np.negative,
    "min": np.minimum,
    "max": np.maximum,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "not": lambda a: a == 0,
    "if": lambda a, c, b: np.where(c != 0, a, b),
    "and": lambda *a: np.logical_and.reduce(np.broadcast_arrays(*a)),
    "or": lambda *a: np.logical_or.reduce(np.broadcast_arrays(*a)),
}


class ProgramExpressions:
    """A program up to a length; expressions have numbers, those of arguments are smaller.

    - `domains[n]`: the values of expression n.
    - `args[n]`, `tables[n]`: the arguments of a function, and the index of its value by theirs, -1 where these can't
      have such values together; the table of anything else is None.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.length, self.causal = program, program.length, program.causal
        self.nodes: list[Expr] = []
        self.domains: list[tuple[Value, ...]] = []
        self.args: list[Cut] = []
        self.tables: list[Ints | None] = []
        self.below: list[frozenset[int]] = []
        self._atoms: list[frozenset[int]] = []
        self.checked = 0  # pairs of a key and a query
        self._numbers: dict[int, int] = {}
        self._at: dict[tuple[int, Cut], Ints | None] = {}
        self._alive: list[Expr] = []
        self._known: dict[Hashable, int] = {}
        self.indices, self.tokens = self.number(Expr("indices")), self.number(Expr("tokens"))
        self.root = self.number(program.root)

    def number(self, root: Expr) -> int:
        """Return the number of an expression; new ones are added."""
        for node in parts(root):
            if not isinstance(node, Selector) and id(node) not in self._numbers:
                self._add(node)
        return self._numbers[id(root)]

    def _add(self, node: Expr) -> None:
        args, table = self._function(node)
        if table is not None and node.op == "width":
            domain: tuple[Value, ...] = tuple(range(self.length + 1)) if args else (0,)
        elif table is not None:
            domain, table = _values(table)
            args, table = _needed(args, table)
        else:
            domain = self._domain(node)
        self._alive.append(node)  # its identity stays unique
        known = self._known.setdefault(self._meaning(node, args, domain, table), len(self.nodes))
        self._numbers[id(node)] = known
        if known < len(self.nodes):
            return
        self.nodes.append(node)
        self.domains.append(domain)
        self.args.append(args)
        self.tables.append(table)
        self.below.append(frozenset(args).union(*(self.below[arg] for arg in args)))
        made = frozenset(args) if node.op == "apply" else [len(self.nodes) - 1]
        self._atoms.append(self.atoms(made) if node.op == "apply" else frozenset(made if node.op != "const" else ()))

    def _meaning(self, node: Expr, args: Cut, domain: tuple[Value, ...], table: Ints | None) -> Hashable:
        """Return a value that is the same only for expressions that are always equal."""
        typed = tuple((type(value).__name__, value) for value in domain)
        if table is not None:
            return node.op == "width", args, typed, table.tobytes()
        if node.op not in READS:
            return node.op
        inner = [self._numbers[id(arg)] for arg in node.args[1:]]
        grid = self._grid(leaves(node.args[0]), MAX_COMPARED)
        if grid is None:
            return id(node)
        keys, queries, shape = grid
        pairs = [
            np.broadcast_to(self.chosen(node.args[0], keys, queries, side), shape).tobytes() for side in (-1, 0, 1)
        ]
        return node.op, *inner, type(node.data).__name__, node.data, *keys, -1, *queries, *pairs

    def _grid(self, tests: Iterable[Selector], most: int) -> tuple[dict[int, Ints], dict[int, Ints], Cut] | None:
        """Return the indices of all values of the keys of tests (rows) and queries (columns), and how many there are.

        None if they are too many.
        """
        sides = [{self._numbers[id(test.args[side])] for test in tests if not by_position(test)} for side in (1, 0)]
        sizes = [[len(self.domains[n]) for n in sorted(side)] for side in sides]
        shape = prod(sizes[0]), prod(sizes[1])
        if shape[0] * shape[1] > most:
            return None
        queries, keys = (
            dict(zip(sorted(side), map(np.ravel, np.indices(size)), strict=True))
            for side, size in zip(sides, sizes, strict=True)
        )
        return {n: part[None, :] for n, part in keys.items()}, {n: part[:, None] for n, part in queries.items()}, shape

    def _domain(self, node: Expr) -> tuple[Value, ...]:
        if node.op in ("tokens", "indices"):
            return self.program.alphabet if node.op == "tokens" else tuple(range(self.length))
        if node.op == "width":
            return tuple(range(self.length + 1))
        inner = self.domains[self._numbers[id(node.args[1])]]
        values = [*(self._means(inner) if node.op == "mean" else inner), node.data]
        return tuple({(isinstance(value, bool), value): value for value in values}.values())

    def _means(self, values: Iterable[Value]) -> list[Value]:
        """Return all means of up to `length` numbers."""
        numbers = [Fraction(value) for value in values]  # type: ignore[arg-type]  # a mean is of numbers
        sums, means = {Fraction(0)}, set[Fraction]()
        for count in range(1, self.length + 1):
            sums = {total + number for total in sums for number in numbers}
            means |= {total / count for total in sums}
            if len(means) > MAX_MEANS:
                raise Undecided(f"a mean has more than {MAX_MEANS:,} values")
        return sorted(map(exact, means))  # type: ignore[type-var]

    def _function(self, node: Expr) -> tuple[Cut, np.ndarray | None]:
        """Return the arguments of a function and its values by theirs (of a width: indices); None for anything else."""
        if node.op == "const":
            table = np.empty((), dtype=object)
            table[()] = node.data
            return (), table
        if node.op == "width":
            return self._width(node)
        if node.op != "apply":
            return (), None
        numbers = [self._numbers[id(arg)] for arg in node.args]
        args = tuple(dict.fromkeys(part for number in numbers for part in self._support(number)))
        if prod(len(self.domains[arg]) for arg in args) > MAX_COMPARED:
            args = tuple(dict.fromkeys(number for number in numbers if len(self.domains[number]) > 1))
        args = self._apart(args)
        if prod(len(self.domains[arg]) for arg in args) > MAX_ROWS:
            raise Undecided(f"a function has more than {MAX_ROWS:,} rows")
        inner = [part for part in (self.at(number, args) for number in numbers) if part is not None]
        shape, domains = [len(self.domains[arg]) for arg in args], [self.domains[number] for number in numbers]
        kinds = (int,) if node.data in ("min", "max", "if") else (bool, int)
        numeric = domains[::2] if node.data == "if" else domains
        whole = all(type(value) in kinds for domain in numeric for value in domain)
        whole &= all(type(value) in (bool, int) for domain in domains for value in domain)
        if whole and isinstance(node.data, str) and node.data in ARRAYS:
            grid = [np.array(domain, dtype=np.int64)[part] for domain, part in zip(domains, inner, strict=True)]
            return args, np.broadcast_to(ARRAYS[node.data](*grid), shape)
        function, rows = function_of(node.data), np.empty(prod(shape), dtype=object)
        for row, places in enumerate(
            zip(*(np.broadcast_to(part, shape).ravel().tolist() for part in inner), strict=True)
        ):
            rows[row] = exact(function(*(domain[at] for domain, at in zip(domains, places, strict=True))))
        return args, rows.reshape(shape)

    def _support(self, node: int) -> Cut:
        """Return what a function is a function of: itself, what it is a function of if that is one, or nothing."""
        if len(self.domains[node]) == 1:
            return ()
        single = self.tables[node] is not None and self.nodes[node].op == "apply" and len(self.args[node]) == 1
        return self.args[node] if single else (node,)

    def _apart(self, args: Cut) -> Cut:
        """Return arguments that have no part in common, where the table stays small: only they vary independently."""
        for node in args:
            others = [other for other in args if other != node]
            shared = self.below[node] & frozenset(others).union(*(self.below[other] for other in others))
            if shared and self.nodes[node].op == "apply":
                apart = tuple(dict.fromkeys(part for n in args for part in (self.args[n] if n == node else (n,))))
                if prod(len(self.domains[n]) for n in apart) <= MAX_COMPARED:
                    return self._apart(apart)
        return args

    # ---- widths
    def _width(self, node: Expr) -> tuple[Cut, Ints | None]:
        """Return the width as a function of simpler ones: of the position, of conjunctions, or of a causal one."""
        (selector,) = node.args
        tests = [leaf for leaf in leaves(selector) if not by_position(leaf)]
        if not tests:
            if not self.causal:
                return (), None
            earlier, itself = (bool(self.chosen(selector, {}, {}, side)) for side in (-1, 0))
            return (self.indices,), np.arange(self.length) * earlier + itself
        if self._same(selector, []):
            return (), np.zeros((), dtype=np.int64)
        if self.causal and self._same(selector, [(1, Selector("all"))]):
            return (self.indices,), np.arange(1, self.length + 1)
        signed = conjunctions(selector, self.program.values, width=True)
        if len(signed) != 1 or signed[0][0] != 1:
            return self._signed_sum(selector, signed)
        atoms = signed[0][1]
        contents = [atom for atom in atoms if atom.mask is None]
        if not self.causal or len(contents) != 1 or all(atom.mask != "strict" for atom in atoms):
            return (), None
        (test,) = contents
        if len(self.domains[self.number(test.query)]) > 1:
            return (), None
        marked = _selector((test,), self.program.values)
        if not self._same(selector, [(1, marked & BEFORE)]):
            return (), None
        total, key = self.number(Expr("width", (marked,))), self.number(test.key)
        (query,), holds = self.domains[self.number(test.query)], function_of(marked.data)
        here = np.array([bool(holds(value, query)) for value in self.domains[key]])  # is not before itself
        return (total, key), self._counts(np.arange(self.length + 1)[:, None] - here)

    def _signed_sum(
        self, selector: Selector, signed: Sequence[tuple[int, tuple[Atom, ...]]]
    ) -> tuple[Cut, Ints | None]:
        terms = [(sign, _selector(atoms, self.program.values)) for sign, atoms in signed]
        if not self._same(selector, terms) or (self.length + 1) ** len(terms) > MAX_ROWS:
            return (), None
        args = [self.number(Expr("width", (term,))) for _, term in terms]
        counts = np.meshgrid(*[np.arange(self.length + 1)] * len(terms), indexing="ij", sparse=True)
        total = sum(sign * count for (sign, _), count in zip(terms, counts, strict=True))
        return tuple(args), self._counts(np.broadcast_to(total, [self.length + 1] * len(terms)))

    def _counts(self, numbers: Ints) -> Ints:
        return np.where((numbers >= 0) & (numbers <= self.length), numbers, -1)

    def _same(self, selector: Selector, terms: Sequence[tuple[int, Selector]]) -> bool:
        """Return whether a selector is a signed sum of others, for all values of its keys and queries."""
        tests = [leaf for one in (selector, *(term for _, term in terms)) for leaf in leaves(one)]
        for test in tests:
            self.number(test.args[0]), self.number(test.args[1])
        grid = self._grid(tests, MAX_ROWS)
        if grid is None:
            return False
        k, q, shape = grid
        self.checked += prod(shape)
        for side in (-1, 0, 1)[: 2 if self.causal else 3]:
            total: Any = sum(sign * self.chosen(term, k, q, side).astype(int) for sign, term in terms)
            if np.any(total != self.chosen(selector, k, q, side)):
                return False
        return True

    def chosen(self, selector: Selector, keys: dict[int, Ints], queries: dict[int, Ints], side: int) -> Bools:
        """Return whether keys are selected, by the indices of their values and those of queries.

        `side` is the sign of the key's position minus the query's.
        """
        if selector.op == "all" or (self.causal and side > 0):
            return np.asarray(selector.op == "all" and not (self.causal and side > 0))
        if by_position(selector):
            return np.asarray(bool(OPERATIONS[selector.data](side, 0)))
        if selector.op == "select":
            key, query = (self._numbers[id(arg)] for arg in selector.args)
            holds = function_of(selector.data)
            matrix = np.array([[bool(holds(k, q)) for q in self.domains[query]] for k in self.domains[key]])
            return np.asarray(matrix[keys[key], queries[query]])
        inner = [self.chosen(part, keys, queries, side) for part in selector.args]
        if selector.op == "not":
            return ~inner[0]
        return inner[0] & inner[1] if selector.op == "and" else inner[0] | inner[1]

    # ---- functions at one position
    def at(self, node: int, cut: Cut) -> Ints | None:
        """Return the index of a value by those of a cut (axes), -1 where these can't occur; None if it is unknown."""
        if (node, cut) not in self._at:
            self._at[node, cut] = self._new_at(node, cut)
        return self._at[node, cut]

    def _new_at(self, node: int, cut: Cut) -> Ints | None:
        if node in cut:
            return np.arange(len(self.domains[node])).reshape([-1 if n == node else 1 for n in cut])
        table = self.tables[node]
        if len(self.domains[node]) == 1:
            return np.zeros([1] * len(cut), dtype=np.int64)
        inner = [self.at(arg, cut) for arg in self.args[node]]
        if table is None or any(part is None for part in inner):
            return None
        arrays = np.broadcast_arrays(*(part for part in inner if part is not None))
        if arrays[0].size > MAX_ROWS:
            return None
        possible = np.all([part >= 0 for part in arrays], axis=0)
        return np.where(possible, table[tuple(np.maximum(part, 0) for part in arrays)], -1)

    def atoms(self, nodes: Iterable[int]) -> frozenset[int]:
        """Return what expressions are functions of in the end."""
        return frozenset[int]().union(*(self._atoms[node] for node in nodes))

    def joint(self, nodes: Iterable[int], more: Iterable[int]) -> Cut:
        """Return expressions of which both some and more are functions."""
        cut = tuple(nodes)
        for node in more:
            if self.at(node, cut) is None:
                cut = tuple(sorted(self.atoms((*cut, node)))) if self.atoms(cut) & self.atoms([node]) else (*cut, node)
        return cut


BEFORE = Selector("select", (Expr("indices"), Expr("indices")), "<")


def leaves(selector: Selector) -> list[Selector]:
    """Return the tests of a selector."""
    if selector.op == "select":
        return [selector]
    return [leaf for part in selector.args for leaf in leaves(part)]


def by_position(test: Selector) -> bool:
    """Return whether a test compares the two positions, by name."""
    return test.op == "select" and isinstance(test.data, str) and all(arg.op == "indices" for arg in test.args)


def _selector(atoms: Sequence[Atom], values: Values) -> Selector:
    """Return a conjunction of tests as a selector."""
    result = Selector("all")
    for atom in atoms:
        keys, queries = values[atom.key], values[atom.query]
        pairs = Pairs((keys[k], queries[q]) for k, q in np.argwhere(atom.matrix)) if atom.relation is None else None
        one = Selector("select", (atom.key, atom.query), pairs or atom.relation)
        result = one if result.op == "all" else result & one
    return result


def _values(table: np.ndarray) -> tuple[tuple[Value, ...], Ints]:
    """Return the different values of a table, and the table with their indices."""
    if table.dtype != object:
        different, index = np.unique(table, return_inverse=True)
        return tuple(different.tolist()), index.reshape(table.shape)
    typed = [(isinstance(value, bool), value) for value in table.ravel().tolist()]  # True is not 1
    values = list(dict.fromkeys(typed))
    if all(isinstance(value, int | Fraction) for _, value in values):
        values.sort()
    where = {value: at for at, value in enumerate(values)}
    rows = np.array([where[value] for value in typed], dtype=np.int64)
    return tuple(value for _, value in values), rows.reshape(table.shape)


def _needed(args: Cut, table: Ints) -> tuple[Cut, Ints]:
    """Return the arguments that matter to a table, and the table of these."""
    for axis in reversed(range(len(args))):
        if not np.ptp(table, axis=axis).any():
            args, table = args[:axis] + args[axis + 1 :], np.asarray(table.take(0, axis=axis))
    return args, table
