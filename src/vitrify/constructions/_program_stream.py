"""Values of a program in the residual stream: a one-hot code or a line of points, and how readers use either."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Floats, Ints
from vitrify.kit.gadgets.steps import snap, steps
from vitrify.kit.network import Affine, AttentionKind, Builder, Flag, Kind, OneHot, Reals, Space
from vitrify.spec.programs.expression import CROSSES, Expr, Table, Value, evaluate, function_of, parts
from vitrify.spec.programs.program import BEGIN, Program
from vitrify.spec.programs.values import Domain, symbols_of


@dataclass(frozen=True, eq=False)
class Form:
    """Representation of an expression: a one-hot over its values, or a number with a point for each value."""

    affine: Affine
    points: Floats | None = None  # None: a one-hot


class ProgramStream:
    """The spaces of a program, created on demand."""

    def __init__(self, program: Program, attention: AttentionKind, *, letters: bool = True) -> None:
        self.letters = letters  # whether the token's one-hot is embedded, or only the functions of it that are read
        self.token_tables: dict[bytes, Floats] = {}
        self.program, self.values, self.attention = program, program.values, attention
        self.net = Builder(program.name, (BEGIN, *program.alphabet), program.length, attention, void=True)
        self.forms: dict[int, Form] = {}
        self._vectors: dict[tuple[int, bytes, bool], Affine] = {}
        self._sources: dict[int, frozenset[str]] = {}
        self._texts = dict.fromkeys(("token", "bos", "index"), 1)  # names of spaces, and how often each was wanted
        self.inexact: set[Space] = set()  # spaces with errors of soft attention
        self.sharp: set[Space] = set()  # of these, those that a larger inverse temperature makes more exact
        self._snapped: dict[Space, Space] = {}
        self.refused: list[str] = []  # reasons why the net can't be built

    def sources(self, node: Expr) -> frozenset[str]:
        """Return what a value depends on: the token, the position, other positions."""
        if id(node) not in self._sources:
            for part in parts(node):
                own = {part.op} if part.op in ("tokens", "indices") else set()
                crosses = {"elsewhere"} if part.op in CROSSES else set()
                inner = [self._sources[id(arg)] for arg in part.args]
                self._sources[id(part)] = frozenset(own | crosses).union(*inner)
        return self._sources[id(node)]

    def number(self, node: Expr, *, clean: bool = False) -> Affine:
        """Return the value itself, as one number."""
        return self.vector(node, numbers_of(self.values[node])[:, None], clean=clean)

    def vector(self, node: Expr, table: Floats, *, clean: bool = False) -> Affine:
        """Return an affine map of the residual stream to a chosen vector (row of `table`) for each value.

        With `clean`, it has no error and is its bias at BOS.
        """
        source, rows = self.source(node)
        table = np.ascontiguousarray(table[rows], dtype=float)
        if source is None:
            return Affine.constant(table[0])
        key = (id(source), table.tobytes() + str(table.shape).encode(), clean)
        if key not in self._vectors:
            name = self.values.names.get(node)  # a function of the source needs no space of its own until it is read
            self._vectors[key] = self._made_vector(source, table, clean, name)
        return self._vectors[key]

    def _made_vector(self, node: Expr, table: Floats, clean: bool, name: str | None) -> Affine:
        if node.op == "indices":
            return self._positional(table, name or "place")
        if node.op == "tokens":
            self.token_tables[table.tobytes()] = table
            if not self.letters:
                rows = np.vstack([np.zeros(table.shape[1]), table])
                kind = kind_of(table, self.program.alphabet)
                return Affine.copy(self.net.embed(self.named(name or "of the token"), kind, rows))
        form = self.form(node)
        affine = self.cleaned(form.affine) if clean else form.affine
        if form.points is None:
            return affine @ table
        slope = slope_of(form.points, table)
        settled = not clean or not any(space in self.inexact for space in affine.spaces)
        if slope is not None and settled:
            return affine @ slope[None, :] + Affine.constant(table[0] - slope * form.points[0])
        order = np.argsort(form.points)
        space = Space(self.named(name or self.text(node)), kind_of(table, self.values[node]))
        steps(self.net, form.affine, form.points[order], [(space, table[order])], name=f"values of {space.name}")
        return Affine.copy(space)

    def _positional(self, table: Floats, name: str) -> Affine:
        slope = slope_of(np.arange(len(table), dtype=float), table)
        if slope is not None:
            return Affine.of({self.net.index: slope[None, :]}, table[0] - slope)
        space = self.net.embed_position(self.named(name), kind_of(table, tuple(range(len(table)))), table)
        return Affine.copy(space)

    def cleaned(self, affine: Affine) -> Affine:
        """Return the same map with every one-hot that has errors made exact, and zero at BOS."""
        clean = Affine.constant(affine.bias)
        for space, matrix in affine.parts:
            if space in self.inexact and isinstance(space.kind, OneHot | Flag):
                if space not in self._snapped:
                    self._snapped[space] = snap(self.net, space, name=self.named(f"{space.name}, exact"), void=True)
                space = self._snapped[space]
            clean = clean + Affine.of({space: matrix})
        return clean

    def source(self, node: Expr) -> tuple[Expr | None, Ints]:
        """Return the one expression that a value is a function of (or itself), and that function as row indices."""
        sources, domain = self.sources(node), self.values[node]
        where = {same(value): row for row, value in enumerate(domain)}
        if not sources:
            (constant,) = evaluate(node, [self.program.alphabet[0]])
            return None, np.array([where[same(constant)]])
        if sources == {"tokens"}:
            each = [evaluate(node, [letter])[0] for letter in self.program.alphabet]
            return leaf(node, "tokens"), np.array([where[same(value)] for value in each])
        if sources == {"indices"}:
            each = evaluate(node, [self.program.alphabet[0]] * self.program.length)
            return leaf(node, "indices"), np.array([where[same(value)] for value in each])
        if node.op == "apply":
            loose = {id(arg): arg for arg in node.args if self.sources(arg)}
            if len(loose) == 1:
                (inner,) = loose.values()
                function = function_of(node.data)
                fixed = [None if id(arg) in loose else self.values[arg][0] for arg in node.args]
                rows = []
                for value in self.values[inner]:
                    args = [value if id(arg) in loose else f for arg, f in zip(node.args, fixed, strict=True)]
                    rows.append(where[same(function(*args))])
                source, below = self.source(inner)
                return source, np.array(rows)[below]
        return node, np.arange(len(domain))

    def form(self, node: Expr) -> Form:
        """Return the form of an expression that is no function of a single other one."""
        if id(node) not in self.forms:
            self.forms[id(node)] = self._new_form(node)
        return self.forms[id(node)]

    def _new_form(self, node: Expr) -> Form:
        """Return a new form: here of the token; subclasses add those that units and heads compute."""
        assert node.op == "tokens"
        size = len(self.program.alphabet)
        table = np.vstack([np.zeros(size), np.eye(size)])
        return Form(Affine.copy(self.net.embed("token", OneHot(self.program.alphabet, void=True), table)))

    def name(self, node: Expr) -> str:
        name = self.named(self.text(node))
        if node in self.values.lines:
            self.net.lines[name] = self.values.lines[node]
        return name

    def text(self, node: Expr) -> str:
        if node in self.values.names:
            return self.values.names[node]
        return node.data.name if isinstance(node.data, Table) else str(node.data if node.op == "apply" else node.op)

    def named(self, text: str) -> str:
        self._texts[text] = self._texts.get(text, 0) + 1
        return text if self._texts[text] == 1 else f"{text} #{self._texts[text]}"


def leaf(node: Expr, op: str) -> Expr:
    return next(part for part in parts(node) if part.op == op)


def numbers_of(domain: Domain) -> Floats:
    return np.array([float(value) for value in domain])  # type: ignore[arg-type]


def same(value: Value) -> Value:
    """Return the value, with truth values as the numbers 0 and 1."""
    return int(value) if isinstance(value, bool) else value


def slope_of(points: Floats, table: Floats) -> Floats | None:
    """Return the slope with which a table is an affine function of its points, or None if it is none."""
    if len(points) == 1:
        return np.zeros(table.shape[1])
    far = int(np.abs(points - points[0]).argmax())
    slope: Floats = (table[far] - table[0]) / (points[far] - points[0])
    line = table[0] + np.outer(points - points[0], slope)
    return slope if np.abs(line - table).max() <= 1e-12 * max(1.0, float(np.abs(table).max())) else None


def classes_of(rows: NDArray[np.generic]) -> tuple[Ints, Ints]:
    """Return the first of each class of equal rows, and the class of every row, in order of appearance."""
    _, firsts, member = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return firsts[order], rank[member.ravel()]


def kind_of(table: Floats, domain: Domain) -> Kind:
    """Return the kind of a space that holds the rows of a table."""
    size = table.shape[1]
    binary = bool(np.isin(table, (0.0, 1.0)).all())
    if size == 1 and binary:
        return Flag()
    if binary and (table.sum(axis=1) == 1).all():
        one_hot = size == len(domain) and (table == np.eye(size)).all()
        named = symbols_of(domain) if one_hot else tuple(map(str, range(size)))
        return OneHot(named, void=True)
    labels = tuple(map(str, range(size)))
    return Reals(labels, float(min(table.min(), 0.0)), float(max(table.max(), 0.0)))
