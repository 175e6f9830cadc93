"""Element-wise functions of a program's values, as ReLU units: sums are free, comparisons cost two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from operator import add

import numpy as np

from vitrify.arrays import Bools, Floats
from vitrify.constructions._program_stream import Form, ProgramStream, classes_of, kind_of, numbers_of, same
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.network import Affine, Flag, Integers, Reals, Space
from vitrify.spec.programs.expression import Expr, Value, function_of

MAX_CODE_VALUES = 8  # numbers with more values are stored as one number instead of a one-hot
MAX_TABLE_UNITS = 1 << 14
CONNECTIVES = ("and", "or", "not", "==", "!=", "if")
MAX_LEAVES = 8  # of a truth function computed in one layer


class Functions(ProgramStream):
    """Compiles element-wise functions into units."""

    def _new_form(self, node: Expr) -> Form:
        if node.op != "apply":
            return super()._new_form(node)
        if node.data in ("+", "-", "neg"):
            return self._sum(node)
        if self._connects(node):
            return self._connected(node)
        numeric = all(self.values.numeric(arg) for arg in node.args)
        if node.data in ("<", "<=", ">", ">=", "==", "!=") and numeric:
            left, right = node.args
            differences = np.unique(np.subtract.outer(numbers_of(self.values[left]), numbers_of(self.values[right])))
            holds = function_of(node.data)
            total = self.number(left) + self.number(right) * -1.0
            return self._flag(node, total, differences, [bool(holds(x, 0.0)) for x in differences])
        if node.data in ("min", "max") and numeric and len(node.args) == 2:
            return self._extreme(node)
        if node.data == "if" and self.values.numeric(node) and len(self.values[node]) > MAX_CODE_VALUES:
            return self._either(node)
        return self._table(node)

    def _connects(self, node: Expr) -> bool:
        """Return whether an expression is a connective of truth values."""
        named = node.op == "apply" and isinstance(node.data, str) and node.data in CONNECTIVES
        return named and all(self.values.boolean(arg) for arg in node.args)

    def _connected(self, node: Expr) -> Form:
        """Return a truth function of few leaves in one layer, however nested; two units for a conjunction."""
        leaves = self._leaves(node)
        if len(leaves) > MAX_LEAVES:
            return self._wide(node)
        rows = list(product((False, True), repeat=len(leaves)))
        truth = np.array([self._truth(node, dict(zip(map(id, leaves), row, strict=True))) for row in rows])
        held = np.array(rows, dtype=float)
        for value in (True, False):  # a conjunction, or the negation of one, of leaves and negated leaves
            rare = held[truth == value]
            if len(rare) == 1:
                signs = 2.0 * rare[0] - 1.0
                total = reduce(add, (self.number(leaf) * sign for leaf, sign in zip(leaves, signs, strict=True)))
                top = float((signs > 0).sum())
                points = np.arange(top - len(leaves), top + 1)
                return self._flag(node, total, points, (points >= top) == value)
        return self._table(node, leaves)

    def _wide(self, node: Expr) -> Form:
        """Return a conjunction or disjunction of many arguments."""
        if node.data not in ("and", "or"):
            return self._table(node)
        total = reduce(add, map(self.number, node.args))
        least = len(node.args) if node.data == "and" else 1
        points = np.arange(len(node.args) + 1.0)
        return self._flag(node, total, points, points >= least)

    def _leaves(self, node: Expr) -> list[Expr]:
        """Return the non-constant truth values that a nest of connectives combines."""
        leaves: dict[int, Expr] = {}
        stack = [node]
        while stack:
            part = stack.pop()
            if part is node or (self._connects(part) and id(part) not in self.forms):
                stack.extend(part.args)
            elif len(self.values[part]) > 1:
                leaves[id(part)] = part
        return list(leaves.values())

    def _truth(self, node: Expr, known: dict[int, Value]) -> bool:
        """Return the value of a truth function, given its leaves; constants have their only value."""
        if id(node) in known:
            return bool(known[id(node)])
        if len(self.values[node]) == 1:
            return bool(self.values[node][0])
        return bool(function_of(node.data)(*(self._truth(arg, known) for arg in node.args)))

    def _sum(self, node: Expr) -> Form:
        signs = (-1.0,) if node.data == "neg" else (1.0, 1.0 if node.data == "+" else -1.0)
        total = reduce(add, (self.number(arg) * sign for arg, sign in zip(node.args, signs, strict=True)))
        return Form(total, numbers_of(self.values[node]))

    def _flag(self, node: Expr, total: Affine, points: Floats, holds: Sequence[bool] | Bools) -> Form:
        """Return a flag that is a function of the total, which takes one of some points."""
        domain = self.values[node]
        says = np.array(holds, dtype=float)[:, None]
        space = Space(self.name(node), Flag())
        steps(self.net, total, points, [(space, says)], name=f"decide: {space.name}")
        return Form(Affine.copy(space), np.array([float(bool(value)) for value in domain]))

    def _extreme(self, node: Expr) -> Form:
        """Return max(a, b) = a + relu(b - a) or min(a, b) = a - relu(a - b)."""
        a, b = (self.number(arg) for arg in node.args)
        sign = 1.0 if node.data == "max" else -1.0
        excess = (b + a * -1.0) * sign
        space = Space(self.name(node), Reals(("lead",), 0.0, float(excess.bound[0])))
        gain = {s: excess.gain(s) for s in excess.spaces}
        self.net.units(f"lead: {space.name}", excess, space, np.eye(1), gain=gain)
        self._inherit(space, excess)
        return Form(a + Affine.copy(space) * sign, numbers_of(self.values[node]))

    def _either(self, node: Expr) -> Form:
        """Return one number where the condition holds, another where it does not: two units each.

        At BOS the program has no value, but the range of the space includes every value of either number.
        """
        yes, condition, no = node.args
        flag = self.number(condition)
        numbers = numbers_of(self.values[node])
        ranges = [self.number(arg).range for arg in (yes, no)]
        least = min(0.0, numbers.min(), *(float(low[0]) for low, _ in ranges))
        largest = max(0.0, numbers.max(), *(float(high[0]) for _, high in ranges))
        limit = 2.0 * max(-least, largest) + 2.0
        units = []
        for arg, gate in ((yes, flag), (no, Affine.constant(1.0) + flag * -1.0)):
            shut = gate * limit + Affine.constant(-limit)
            units += [self.number(arg) + shut, self.number(arg) * -1.0 + shut]
        read = reduce(Affine.beside, units)
        space = Space(self.name(node), Integers(("value",), float(least), float(largest)))
        gain = {s: 2.0 * read.gain(s) for s in read.spaces}
        signs = np.array([[1.0], [-1.0], [1.0], [-1.0]])
        self.net.units(f"either: {space.name}", read, space, signs, margin=dict.fromkeys(read.spaces, 0.25), gain=gain)
        self._inherit(space, read)
        return Form(Affine.copy(space), numbers)

    def _table(self, node: Expr, leaves: list[Expr] | None = None) -> Form:
        """Return a lookup table: a unit per combination of argument (or leaf) classes, except the commonest result."""
        args = leaves or list({id(arg): arg for arg in node.args if self.sources(arg)}.values())
        domains = [self.values[arg] for arg in args]
        where = {same(value): row for row, value in enumerate(self.values[node])}
        grid = np.empty([len(domain) for domain in domains], dtype=np.int64)
        for index in np.ndindex(*grid.shape):
            known = {id(arg): domain[i] for arg, domain, i in zip(args, domains, index, strict=True)}
            if leaves:
                grid[index] = where[same(self._truth(node, known))]
                continue
            arguments = (known.get(id(arg), self.values[arg][0]) for arg in node.args)
            grid[index] = where[same(function_of(node.data)(*arguments))]
        classes = [classes_of(np.moveaxis(grid, axis, 0).reshape(grid.shape[axis], -1)) for axis in range(grid.ndim)]
        reduced = grid[np.ix_(*(firsts for firsts, _ in classes))]
        common = int(np.bincount(reduced.ravel()).argmax())
        rows = np.argwhere(reduced != common)
        if len(rows) > MAX_TABLE_UNITS:
            sizes = " × ".join(str(len(firsts)) for firsts, _ in classes)
            line = f"line {self.values.lines[node]}: " if node in self.values.lines else ""
            self.refused.append(
                f"{line}{self.text(node)} needs a table of {sizes} = {reduced.size:,} rows: a net of that size "
                "is refused; use fewer values, or operations (sums, comparisons, minima) instead of a function of "
                "several arguments"
            )
            rows = rows[:1]  # the rest of the program may have reasons of its own
        read = Affine.constant(np.full(len(rows), 1.0 - 2.0 * len(args)))
        for axis, (arg, (firsts, member)) in enumerate(zip(args, classes, strict=True)):
            code = self.vector(arg, np.eye(len(firsts))[member])
            wanted = np.zeros((len(firsts), len(rows)))
            wanted[rows[:, axis], np.arange(len(rows))] = 2.0
            read = read + code @ wanted
        domain = self.values[node]
        as_line = self.values.numeric(node) and len(domain) > MAX_CODE_VALUES
        images = numbers_of(domain)[:, None] if as_line else np.eye(len(domain))
        space = Space(self.name(node), kind_of(images, domain))
        outputs = images[reduced[tuple(rows.T)]] - images[common]
        reach = sum(read.gain(s) for s in read.spaces)
        margin = dict.fromkeys(read.spaces, 1.0 / max(reach, 1.0))
        gain = {s: read.gain(s) * float(np.abs(outputs).max(initial=0.0)) for s in read.spaces}
        self.net.units(f"table: {space.name}", read, space, outputs, images[common], margin=margin, gain=gain)
        self._inherit(space, read)
        return Form(Affine.copy(space), numbers_of(domain) if as_line else None)

    def _inherit(self, space: Space, read: Affine) -> None:
        """Record that a space has errors if what its units read has."""
        if self.attention != "hard" and not self.inexact.isdisjoint(read.spaces):
            self.inexact.add(space)
