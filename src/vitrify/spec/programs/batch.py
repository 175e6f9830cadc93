"""Programs on many words at once: the same meaning as `evaluate`, on arrays of value indices."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from vitrify.arrays import Array, Bools, Floats, Ints
from vitrify.spec.programs.expression import AmbiguousAggregate, Expr, Selector, Value, function_of, parts
from vitrify.spec.programs.values import Domain, Values


class Batch:
    """Runs one program on words of one length, given as letter indices; tables are computed once."""

    def __init__(self, root: Expr, values: Values, note: Callable[[Expr, Ints], None] | None = None) -> None:
        """`note` is called with each ambiguous aggregate and a word; without it an ambiguous aggregate is an error."""
        self.root, self.values, self.note = root, values, note
        self._nodes = [node for node in parts(root) if id(node) not in values.unclear]
        self._tables: dict[int, Array] = {}

    def __call__(self, words: Ints) -> Ints:
        """Return the indices of the values at each position [word, position], in the domain of the result."""
        if not words.shape[1]:
            return words
        computed: dict[int, Array] = {}
        for node in self._nodes:
            inner = [computed[id(arg)] for arg in node.args]
            computed[id(node)] = self._selected(node, inner, words) if isinstance(node, Selector) else None
            if not isinstance(node, Selector):
                computed[id(node)] = self._values(node, inner, words)
        return np.asarray(computed.get(id(self.root), words))  # expressions with problems have no values

    def _selected(self, node: Selector, inner: list[Array], words: Ints) -> Bools:
        """Return the selected positions [word, query, key]."""
        length = words.shape[1]
        seen = np.tri(length, dtype=bool) if self.values.causal else np.ones((length, length), dtype=bool)
        if node.op == "all":
            return np.broadcast_to(seen, (len(words), length, length))
        if node.op == "select":
            keys, queries = inner
            return np.asarray(self._table(node)[keys[:, None, :], queries[:, :, None]] & seen)
        if node.op == "not":
            return np.asarray(~inner[0] & seen)
        return np.asarray(inner[0] & inner[1] if node.op == "and" else inner[0] | inner[1])

    def _values(self, node: Expr, inner: list[Array], words: Ints) -> Ints:
        if node.op == "tokens":
            return words
        if node.op == "indices":
            return np.broadcast_to(np.arange(words.shape[1]), words.shape)
        if node.op == "const":
            return np.zeros_like(words)
        if node.op == "apply" and isinstance(node.data, str) and node.data in ("and", "or"):
            held = [np.array([bool(v) for v in self.values[arg]])[x] for arg, x in zip(node.args, inner, strict=True)]
            both = np.logical_and if node.data == "and" else np.logical_or
            truth = np.asarray(both.reduce(held), dtype=np.int64)  # the domain is (False, True), or one of them
            return truth if len(self.values[node]) == 2 else np.zeros_like(truth)
        if node.op == "apply":
            return np.asarray(self._table(node)[tuple(inner)])
        domain = self.values[node]
        if node.op == "width":
            counts: Ints = inner[0].sum(axis=-1)
            return counts
        selected, values = inner
        default = _numbered([node.data], domain)[0]
        if node.op == "mean":
            numbers = np.array([float(v) for v in self.values[node.args[1]]])[values]  # type: ignore[arg-type]
            size = selected.sum(axis=-1)
            total = (selected * numbers[:, None, :]).sum(axis=-1) / np.maximum(size, 1)
            points = np.array([float(v) for v in domain])  # type: ignore[arg-type]
            nearest = np.abs(total[..., None] - points).argmin(axis=-1) if len(points) < 64 else _nearest(points, total)
            return np.where(size > 0, nearest, default)
        into = _numbered(self.values[node.args[1]], domain)[values]
        if node.op in ("min", "max"):  # numbers stand in a domain by their size
            beyond, best = (len(domain), np.min) if node.op == "min" else (-1, np.max)
            extreme = best(np.where(selected, into[:, None, :], beyond), axis=-1)
            return np.asarray(np.where(selected.any(axis=-1), extreme, default))
        position = selected.argmax(axis=-1)
        if node.op == "last":
            position = selected.shape[-1] - 1 - selected[..., ::-1].argmax(axis=-1)
        chosen = np.take_along_axis(np.broadcast_to(into[:, None, :], selected.shape), position[..., None], -1)[..., 0]
        if node.op == "aggregate":
            disagree = ((into[:, None, :] != chosen[..., None]) & selected).any(axis=(1, 2))
            if disagree.any() and self.note is None:
                raise AmbiguousAggregate("an aggregate selects positions with different values: take first or last")
            if disagree.any() and self.note is not None:
                self.note(node, words[int(disagree.argmax())])
        return np.where(selected.any(axis=-1), chosen, default)

    def _table(self, node: Expr) -> Array:
        """Return a function on value indices, as an array."""
        if id(node) not in self._tables:
            domains = [self.values[arg] for arg in node.args]
            results = [function_of(node.data)(*args) for args in product(*domains)]
            shape = [len(domain) for domain in domains]
            if isinstance(node, Selector):
                self._tables[id(node)] = np.array(results, dtype=bool).reshape(shape)
            else:
                self._tables[id(node)] = _numbered(results, self.values[node]).reshape(shape)
        return self._tables[id(node)]


def _numbered(values: Domain | list[Value], domain: Domain) -> Ints:
    where = {value: number for number, value in enumerate(domain)}
    return np.array([where[value] for value in values], dtype=np.int64)


def _nearest(points: Floats, numbers: Floats) -> Ints:
    """Return the indices of the nearest of many ordered points."""
    right = np.clip(np.searchsorted(points, numbers), 1, len(points) - 1)
    return right - (numbers - points[right - 1] < points[right] - numbers)
