r"""A program of selections and aggregations becomes a transformer: heads select, units compute, nothing is approximate.

The language is that of RASP (Weiss et al. 2021, arXiv 2106.06981); the compilation is our own. Every expression has a
finite set of values. In the stream it is a *code* (one dimension per value) or a *line* (one number, with a point per
value); what a reader needs is taken from either by a linear map where that is enough, else by ramps between points.

| part | cost |
| --- | --- |
| functions of one expression, sums, negations | nothing: a linear map, or the ramps that its reader needs |
| comparisons, and, or | two units (four for equality) |
| minimum, maximum | one unit |
| other functions of several expressions | one unit per class of equal rows and columns |
| `aggregate`, `first`, `last`, `mean`, `width` | one head; the tests of a conjunction stand side by side in it |
| counts of marked positions to the left | one head, exact: every visible position has the same weight |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import snap, steps
from vitrify.kit.heads import count
from vitrify.kit.heads.select import Test, select
from vitrify.kit.network import Affine, Builder, Network, Readout, Space, Units
from vitrify.net.architecture import Output
from vitrify.net.spaces import Bits, Flag, Integers, Kind, OneHot, Reals
from vitrify.net.transformer import AttentionKind, Mask
from vitrify.spec.program import Expr, Selector, Table, Value, evaluate, function_of, parts
from vitrify.spec.program_file import BEGIN, Program
from vitrify.spec.program_selectors import Atom, conjunctions
from vitrify.spec.program_values import Domain

Floats = NDArray[np.float64]
FEW = 8  # numbers with more values than this travel as one number
MOST_UNITS = 1 << 14  # of one table
MOST_LEAVES = 8  # of a truth function that is made in one layer


def program_net(program: Program, *, attention: AttentionKind = "softmax", max_length: int | None = None) -> Network:
    """The transformer of a program."""
    if max_length is not None and max_length != program.length:
        raise BuildRefused(f"the program is for words to length {program.length}: change it there, or leave it out")
    word = program.ambiguous()
    if word is not None:
        raise BuildRefused(
            f"an aggregate is ambiguous: on the word {' '.join(word)} it selects positions with different values; take "
            "first or last, or select one position"
        )
    draft = _Compiler(program, attention)
    network = draft.network()
    if sum(table.shape[1] for table in draft.token_tables.values()) < len(program.alphabet):
        return _Compiler(program, attention, letters=False).network()
    return network


@dataclass(frozen=True, eq=False)
class _Form:
    """How an expression stands in the stream: a one-hot over its values, or a number with a point for each value."""

    affine: Affine
    points: Floats | None = None  # None: a one-hot


class _Compiler:
    """The spaces of a program, made when somebody asks for them."""

    def __init__(self, program: Program, attention: AttentionKind, *, letters: bool = True) -> None:
        self.letters = letters  # whether the token stands in the stream, or only what is asked about it
        self.token_tables: dict[bytes, Floats] = {}
        self.program, self.values, self.attention = program, program.values, attention
        self.net = Builder(program.name, (BEGIN, *program.alphabet), program.length, attention, void=True)
        self.base: Mask = "causal" if program.causal else "none"
        self._forms: dict[int, _Form] = {}
        self._vectors: dict[tuple[int, bytes, bool], Affine] = {}
        self._sources: dict[int, frozenset[str]] = {}
        self._texts: dict[str, int] = {}
        self._from_heads: set[Space] = set()
        self._snapped: dict[Space, Space] = {}

    def sources(self, node: Expr) -> frozenset[str]:
        """What a value depends on: the token, the place, what stands elsewhere."""
        if id(node) not in self._sources:
            for part in parts(node):
                own = {part.op} if part.op in ("tokens", "indices") else set()
                crosses = {"elsewhere"} if part.op in ("aggregate", "mean", "width", "first", "last") else set()
                inner = [self._sources[id(arg)] for arg in part.args]
                self._sources[id(part)] = frozenset(own | crosses).union(*inner)
        return self._sources[id(node)]

    def network(self) -> Network:
        """Everything that the result needs, and how it is read."""
        root, domain = self.program.root, self.values[self.program.root]
        about = {
            "construction": "program of selections and aggregations",
            "attention": self.attention,
            "program": self.program.name,
            "source": "language of Weiss et al. 2021, arXiv 2106.06981",
        }
        if any(isinstance(value, Fraction) for value in domain):
            number = self.number(root)
            readout = Readout(number.parts, number.bias, dict.fromkeys(number.spaces, 1e-09))
            return self.net.network(Output("values", ("value",)), readout, about)
        if self.values.numeric(root) and len(domain) > FEW:
            number, points = self.number(root), _numbers(domain)
            wide = number @ (2.0 * points[None, :])
            need = {space: 0.2 / max(sum(number.gain(s) for s in number.spaces), 1.0) for space in number.spaces}
            return self.net.network(
                Output("transducer", _symbols(domain)), Readout(wide.parts, wide.bias - points**2, need), about
            )
        code = self.vector(root, np.eye(len(domain)))
        need = {space: 0.2 / max(sum(code.gain(s) for s in code.spaces), 1.0) for space in code.spaces}
        return self.net.network(Output("transducer", _symbols(domain)), Readout(code.parts, code.bias, need), about)

    def number(self, node: Expr, *, clean: bool = False) -> Affine:
        """The value itself, as one number."""
        return self.vector(node, _numbers(self.values[node])[:, None], clean=clean)

    def vector(self, node: Expr, table: Floats, *, clean: bool = False) -> Affine:
        """For each value of an expression a vector of one's choice, as an affine map of the stream.

        What is `clean` has no error and depends, at BOS, on nothing but its bias.
        """
        source, rows = self._source(node)
        table = np.ascontiguousarray(table[rows], dtype=float)
        if source is None:
            return Affine.constant(table[0])
        key = (id(source), table.tobytes() + str(table.shape).encode(), clean)
        if key not in self._vectors:
            self._vectors[key] = self._made_vector(source, table, clean)
        return self._vectors[key]

    def _made_vector(self, node: Expr, table: Floats, clean: bool) -> Affine:
        if node.op == "indices":
            return self._placed(table)
        if node.op == "tokens":
            self.token_tables[table.tobytes()] = table
            if not self.letters:
                kind = _kind(table, self.program.alphabet)
                rows = np.vstack([np.zeros(table.shape[1]), table])
                return Affine.copy(self.net.embed(self._named("of the token"), kind, rows))
        form = self.form(node)
        affine = self._cleaned(form.affine) if clean else form.affine
        if form.points is None:
            return affine @ table
        slope = _slope(form.points, table)
        settled = not clean or not any(space in self._from_heads for space in affine.spaces)
        if slope is not None and settled:
            return affine @ slope[None, :] + Affine.constant(table[0] - slope * form.points[0])
        order = np.argsort(form.points)
        space = Space(self._name(node), _kind(table, self.values[node]))
        steps(self.net, form.affine, form.points[order], [(space, table[order])], name=f"values of {space.name}")
        return Affine.copy(space)

    def _placed(self, table: Floats) -> Affine:
        slope = _slope(np.arange(len(table), dtype=float), table)
        if slope is not None:
            return Affine.of({self.net.index: slope[None, :]}, table[0] - slope)
        space = self.net.place(self._named("place"), _kind(table, tuple(range(len(table)))), table)
        return Affine.copy(space)

    def _cleaned(self, affine: Affine) -> Affine:
        """The same with every one-hot that a head wrote made exact, and zero at BOS."""
        found = Affine.constant(affine.bias)
        for space, matrix in affine.parts:
            if space in self._from_heads and isinstance(space.kind, OneHot | Flag):
                if space not in self._snapped:
                    self._snapped[space] = snap(self.net, space, name=self._named(f"{space.name}, exact"), void=True)
                space = self._snapped[space]
            found = found + Affine.of({space: matrix})
        return found

    def _source(self, node: Expr) -> tuple[Expr | None, NDArray[np.int64]]:
        """The one expression that a value depends on, with the row of the value for each value of that; or itself."""
        sources, domain = self.sources(node), self.values[node]
        where = {_key(value): row for row, value in enumerate(domain)}
        if not sources:
            (found,) = evaluate(node, [self.program.alphabet[0]])
            return None, np.array([where[_key(found)]])
        if sources == {"tokens"}:
            each = [evaluate(node, [letter])[0] for letter in self.program.alphabet]
            return _leaf(node, "tokens"), np.array([where[_key(value)] for value in each])
        if sources == {"indices"}:
            each = evaluate(node, [self.program.alphabet[0]] * self.program.length)
            return _leaf(node, "indices"), np.array([where[_key(value)] for value in each])
        if node.op == "apply":
            loose = {id(arg): arg for arg in node.args if self.sources(arg)}
            if len(loose) == 1:
                (inner,) = loose.values()
                function = function_of(node.data)
                fixed = [None if id(arg) in loose else self.values[arg][0] for arg in node.args]
                rows = []
                for value in self.values[inner]:
                    args = [value if id(arg) in loose else f for arg, f in zip(node.args, fixed, strict=True)]
                    rows.append(where[_key(function(*args))])
                source, below = self._source(inner)
                return source, np.array(rows)[below]
        return node, np.arange(len(domain))

    def form(self, node: Expr) -> _Form:
        """How an expression that is nobody's function stands in the stream."""
        if id(node) not in self._forms:
            self._forms[id(node)] = self._made(node)
        return self._forms[id(node)]

    def _made(self, node: Expr) -> _Form:
        if node.op == "tokens":
            size = len(self.program.alphabet)
            table = np.vstack([np.zeros(size), np.eye(size)])
            return _Form(Affine.copy(self.net.embed("token", OneHot(self.program.alphabet, void=True), table)))
        if node.op == "width":
            return self._width(node)
        if node.op != "apply":
            return self._fetched(node)
        if node.data in ("+", "-", "neg"):
            return self._sum(node)
        if self._connects(node):
            return self._connected(node)
        numeric = all(self.values.numeric(arg) for arg in node.args)
        if node.data in ("<", "<=", ">", ">=", "==", "!=") and numeric:
            left, right = node.args
            differences = np.unique(np.subtract.outer(_numbers(self.values[left]), _numbers(self.values[right])))
            holds = function_of(node.data)
            total = self.number(left) + self.number(right) * -1.0
            return self._flag(node, total, differences, lambda x: holds(x, 0.0))
        if node.data in ("min", "max") and numeric and len(node.args) == 2:
            return self._extreme(node)
        if node.data == "if" and self.values.numeric(node) and len(self.values[node]) > FEW:
            return self._either(node)
        return self._table(node)

    def _connects(self, node: Expr) -> bool:
        """Whether this is a connective of truth values."""
        named = (
            node.op == "apply" and isinstance(node.data, str) and node.data in ("and", "or", "not", "==", "!=", "if")
        )
        return named and all(self.values.boolean(arg) for arg in node.args)

    def _connected(self, node: Expr) -> _Form:
        """A truth function of few others in one layer, however its connectives are nested: two units for and, or."""
        leaves = self._leaves(node)
        if len(leaves) > MOST_LEAVES:
            return self._wide(node)
        rows = list(product((False, True), repeat=len(leaves)))
        truth = np.array([_truth(node, dict(zip(map(id, leaves), row, strict=True))) for row in rows])
        held = np.array(rows, dtype=float)
        for value in (True, False):  # a conjunction, or the negation of one, of leaves and negated leaves
            rare = held[truth == value]
            if len(rare) == 1:
                signs = 2.0 * rare[0] - 1.0
                total = _total([self.number(leaf) * sign for leaf, sign in zip(leaves, signs, strict=True)])
                top = float((signs > 0).sum())
                points = np.arange(top - len(leaves), top + 1)
                return self._flag(node, total, points, lambda x, v=value, t=top: (x >= t) == v)
        return self._table(node, leaves)

    def _wide(self, node: Expr) -> _Form:
        """A conjunction or disjunction of many."""
        if node.data not in ("and", "or"):
            return self._table(node)
        total = _total([self.number(arg) for arg in node.args])
        least = len(node.args) if node.data == "and" else 1
        return self._flag(node, total, np.arange(len(node.args) + 1.0), lambda x: x >= least)

    def _leaves(self, node: Expr) -> list[Expr]:
        """The truth values that a nest of connectives is made of; constants are none."""
        found: dict[int, Expr] = {}
        stack = [node]
        while stack:
            part = stack.pop()
            if part is node or (self._connects(part) and id(part) not in self._forms):
                stack.extend(part.args)
            elif len(self.values[part]) > 1:
                found[id(part)] = part
        return list(found.values())

    def _sum(self, node: Expr) -> _Form:
        signs = (-1.0,) if node.data == "neg" else (1.0, 1.0 if node.data == "+" else -1.0)
        total = _total([self.number(arg) * sign for arg, sign in zip(node.args, signs, strict=True)])
        return _Form(total, _numbers(self.values[node]))

    def _flag(self, node: Expr, total: Affine, points: Floats, holds: Any) -> _Form:
        domain = self.values[node]
        says = np.array([[float(bool(holds(point)))] for point in points])
        space = Space(self._name(node), Flag())
        steps(self.net, total, points, [(space, says)], name=f"decide: {space.name}")
        return _Form(Affine.copy(space), np.array([float(bool(value)) for value in domain]))

    def _extreme(self, node: Expr) -> _Form:
        """max(a, b) = a + relu(b - a), min(a, b) = a - relu(a - b)."""
        a, b = (self.number(arg) for arg in node.args)
        sign = 1.0 if node.data == "max" else -1.0
        lead = (b + a * -1.0) * sign
        space = Space(self._name(node), Reals(("lead",), 0.0, float(lead.bound[0])))
        gain = {s: lead.gain(s) for s in lead.spaces}
        self.net.add(Units(f"lead: {space.name}", lead.parts, lead.bias, ((space, np.eye(1)),), gain=gain))
        return _Form(a + Affine.copy(space) * sign, _numbers(self.values[node]))

    def _either(self, node: Expr) -> _Form:
        """A number that passes where the condition holds, and another where it does not: two units each."""
        yes, condition, no = node.args
        flag = self.number(condition)
        numbers = _numbers(self.values[node])
        limit = 2.0 * float(np.abs(numbers).max()) + 2.0
        units = []
        for arg, gate in ((yes, flag), (no, Affine.constant(1.0) + flag * -1.0)):
            shut = gate * limit + Affine.constant(-limit)
            units += [self.number(arg) + shut, self.number(arg) * -1.0 + shut]
        read = units[0]
        for unit in units[1:]:
            read = read.beside(unit)
        space = Space(
            self._name(node), Integers(("value",), float(min(numbers.min(), 0)), float(max(numbers.max(), 0)))
        )
        gain = {s: 2.0 * read.gain(s) for s in read.spaces}
        self.net.add(
            Units(
                f"either: {space.name}",
                read.parts,
                read.bias,
                ((space, np.array([[1.0], [-1.0], [1.0], [-1.0]])),),
                margin=dict.fromkeys(read.spaces, 0.25),
                gain=gain,
            )
        )
        return _Form(Affine.copy(space), numbers)

    def _table(self, node: Expr, leaves: list[Expr] | None = None) -> _Form:
        """One unit per combination of classes of arguments, or of leaves, but for the commonest result."""
        args = leaves or list({id(arg): arg for arg in node.args if self.sources(arg)}.values())
        domains = [self.values[arg] for arg in args]
        where = {_key(value): row for row, value in enumerate(self.values[node])}
        grid = np.empty([len(domain) for domain in domains], dtype=np.int64)
        for index in np.ndindex(*grid.shape):
            known = {id(arg): domain[i] for arg, domain, i in zip(args, domains, index, strict=True)}
            if leaves:
                grid[index] = where[_key(_truth(node, known))]
                continue
            given = (known.get(id(arg), self.values[arg][0]) for arg in node.args)
            grid[index] = where[_key(function_of(node.data)(*given))]
        classes = [_classes(np.moveaxis(grid, axis, 0).reshape(grid.shape[axis], -1)) for axis in range(grid.ndim)]
        reduced = grid[np.ix_(*(firsts for firsts, _ in classes))]
        common = int(np.bincount(reduced.ravel()).argmax())
        rows = np.argwhere(reduced != common)
        if len(rows) > MOST_UNITS:
            sizes = " × ".join(str(len(firsts)) for firsts, _ in classes)
            raise BuildRefused(
                f"{self._text(node)} needs a table of {sizes} = {reduced.size:,} rows: a net of that size is refused; "
                "use fewer values, or operations (sums, comparisons, minima) instead of a function of several arguments"
            )
        read = Affine.constant(np.full(len(rows), 1.0 - 2.0 * len(args)))
        for axis, (arg, (firsts, member)) in enumerate(zip(args, classes, strict=True)):
            code = self.vector(arg, np.eye(len(firsts))[member])
            wanted = np.zeros((len(firsts), len(rows)))
            wanted[rows[:, axis], np.arange(len(rows))] = 2.0
            read = read + code @ wanted
        domain = self.values[node]
        as_line = self.values.numeric(node) and len(domain) > FEW
        images = _numbers(domain)[:, None] if as_line else np.eye(len(domain))
        space = Space(self._name(node), _kind(images, domain))
        outputs = images[reduced[tuple(rows.T)]] - images[common]
        reach = sum(read.gain(s) for s in read.spaces)
        self.net.add(
            Units(
                f"table: {space.name}",
                read.parts,
                read.bias,
                ((space, outputs),),
                constants=((space, images[common]),),
                margin=dict.fromkeys(read.spaces, 1.0 / max(reach, 1.0)),
                gain={s: read.gain(s) * float(np.abs(outputs).max(initial=0.0)) for s in read.spaces},
            )
        )
        return _Form(Affine.copy(space), _numbers(domain) if as_line else None)

    def _fetched(self, node: Expr) -> _Form:
        """What a head brings: the code or the number of a value elsewhere."""
        selector, inner = node.args
        domain, default = self.values[node], node.data
        if self.values.boolean(node):
            value, points = self._with_default(self.number(inner), [float(bool(default))]), _numbers(domain)
            space = Space(self._name(node), Flag())
        elif node.op == "mean" or (self.values.numeric(node) and len(domain) > FEW):
            numbers = _numbers(domain)
            value, points = self._with_default(self.number(inner), [float(default)]), numbers
            low, high = float(min(numbers.min(), 0)), float(max(numbers.max(), 0))
            space = Space(self._name(node), Reals(("value",), low, high))
        else:
            where = {_key(v): row for row, v in enumerate(domain)}
            images = np.eye(len(domain))[[where[_key(v)] for v in self.values[inner]]]
            value, points = (
                self._with_default(self.vector(inner, images), np.eye(len(domain))[where[_key(default)]]),
                None,
            )
            space = Space(self._name(node), OneHot(_symbols(domain), void=True))
        mask, tests = self._tests(selector)
        which = node.op if node.op in ("first", "last") else None
        select(self.net, tests, value, space, which=which, mask=mask, shares=node.op == "mean")  # type: ignore[arg-type]
        self._from_heads.add(space)
        return _Form(Affine.copy(space), points)

    def _with_default(self, value: Affine, default: Sequence[float] | Floats) -> Affine:
        """A value that is the default at BOS."""
        clean = self._cleaned(value) if any(space in self._from_heads for space in value.spaces) else value
        missing = np.asarray(default, dtype=float) - clean.bias
        return clean + Affine.of({self.net.bos: missing[None, :]})

    def _width(self, node: Expr) -> _Form:
        """The number of selected positions, as a sum over conjunctions."""
        (selector,) = node.args
        terms = conjunctions(selector, self.values, width=True)
        if len(terms) == 1 and terms[0][0] == 1:
            return self._one_width(node, terms[0][1])
        sizes = [self._size(node, atoms) * float(sign) for sign, atoms in terms]
        return _Form(_total([Affine.constant(0.0), *sizes]), _numbers(self.values[node]))

    def _size(self, node: Expr, atoms: tuple[Atom, ...]) -> Affine:
        form = self._one_width(node, atoms)
        points = form.points
        assert points is not None
        numbers = np.arange(self.program.length + 1.0)
        slope = _slope(points, numbers[:, None])
        if slope is not None:
            return form.affine @ slope[None, :] + Affine.constant(numbers[:1] - slope * points[0])
        space = Space(self._name(node), Integers(("count",), 0.0, float(self.program.length)))
        order = np.argsort(points)
        steps(self.net, form.affine, points[order], [(space, numbers[order][:, None])], name=f"values of {space.name}")
        return Affine.copy(space)

    def _one_width(self, node: Expr, atoms: tuple[Atom, ...]) -> _Form:
        mask, tests = self._mask_and_tests(atoms)
        counts = np.arange(self.program.length + 1.0)
        fixed = all(not test.query.parts for test in tests)
        if mask in ("causal", "strict") and self.attention != "hard" and fixed and len(tests) <= 1:
            flag = tests[0].key if tests else Affine.of({self.net.bos: [[-1.0]]}, [1.0])
            if not tests:
                return _Form(Affine.of({self.net.index: [[1.0]]}, [-1.0 if mask == "strict" else 0.0]), counts)
            space = count(self.net, flag, ("count",), float(self.program.length), name=self._name(node))
            self._from_heads.add(space)
            total = Affine.copy(space)
            return _Form(total + flag * -1.0 if mask == "strict" else total, counts)
        space = Space(self._name(node), Reals(("1/(1+n)",), 0.0, 1.0))
        bos = Affine.of({self.net.bos: [[1.0]]})
        select(self.net, tests, bos, space, sink="join", mask=mask)
        self._from_heads.add(space)
        return _Form(Affine.copy(space), 1.0 / (1.0 + counts))

    def _tests(self, selector: Selector) -> tuple[Mask, list[Test]]:
        ((_, atoms),) = conjunctions(selector, self.values, width=False)
        return self._mask_and_tests(atoms)

    def _mask_and_tests(self, atoms: tuple[Atom, ...]) -> tuple[Mask, list[Test]]:
        mask: Mask = self.base
        tests = []
        for atom in atoms:
            if atom.mask is not None:
                mask = "strict" if "strict" in (atom.mask, mask) else "causal"
            else:
                tests.append(self._test(atom))
        return mask, tests

    def _test(self, atom: Atom) -> Test:
        keys, queries = self.values[atom.key], self.values[atom.query]
        if atom.equality and len({*map(_key, keys), *map(_key, queries)}) > 4 and len(queries) > 1:
            union = {value: row for row, value in enumerate(dict.fromkeys([*map(_key, keys), *map(_key, queries)]))}
            bits = Bits(tuple(map(str, range(len(union))))).codes
            query = self.vector(atom.query, bits[[union[_key(v)] for v in queries]], clean=True) * 0.5
            key = self.vector(atom.key, bits[[union[_key(v)] for v in keys]], clean=True)
            return Test(query, self._at_tokens(key), bits.shape[1] / 2)
        holds = atom.holds(keys, queries).astype(float)
        rows, row_of = _classes(holds)
        columns, column_of = _classes(holds.T)
        if len(columns) <= len(rows):
            query = self.vector(atom.query, np.eye(len(columns))[column_of], clean=True)
            key = self.vector(atom.key, holds[:, columns], clean=True)
        else:
            query = self.vector(atom.query, holds[rows].T, clean=True)
            key = self.vector(atom.key, np.eye(len(rows))[row_of], clean=True)
        return Test(query, self._at_tokens(key), 1.0)

    def _at_tokens(self, key: Affine) -> Affine:
        """The same with nothing at BOS."""
        return key + Affine.of({self.net.bos: -key.bias[None, :]}) if key.bias.any() else key

    def _name(self, node: Expr) -> str:
        return self._named(self._text(node))

    def _text(self, node: Expr) -> str:
        return node.data.name if isinstance(node.data, Table) else str(node.data if node.op == "apply" else node.op)

    def _named(self, text: str) -> str:
        self._texts[text] = self._texts.get(text, 0) + 1
        return text if self._texts[text] == 1 else f"{text} #{self._texts[text]}"


def _truth(node: Expr, known: dict[int, Any]) -> bool:
    """A truth function, given its leaves."""
    if id(node) in known:
        return bool(known[id(node)])
    if node.op == "const":
        return bool(node.data)
    return bool(function_of(node.data)(*(_truth(arg, known) for arg in node.args)))


def _leaf(node: Expr, op: str) -> Expr:
    return next(part for part in parts(node) if part.op == op)


def _numbers(domain: Domain) -> Floats:
    return np.array([float(value) for value in domain])  # type: ignore[arg-type]


def _symbols(domain: Domain) -> tuple[str, ...]:
    plain = tuple("none" if value is None else str(value) for value in domain)
    return plain if len(set(plain)) == len(plain) else tuple(repr(value) for value in domain)


def _key(value: Value) -> Any:
    """Truth values count as the numbers 0 and 1."""
    return int(value) if isinstance(value, bool) else value


def _total(parts_of: Sequence[Affine]) -> Affine:
    total = parts_of[0]
    for part in parts_of[1:]:
        total = total + part
    return total


def _slope(points: Floats, table: Floats) -> Floats | None:
    """The slope with which a table is an affine function of its points, if it is one."""
    if len(points) == 1:
        return np.zeros(table.shape[1])
    far = int(np.abs(points - points[0]).argmax())
    slope: Floats = (table[far] - table[0]) / (points[far] - points[0])
    line = table[0] + np.outer(points - points[0], slope)
    return slope if np.abs(line - table).max() <= 1e-12 * max(1.0, float(np.abs(table).max())) else None


def _classes(rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of each class of equal rows, and the class of every row, in order of appearance."""
    _, firsts, member = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return firsts[order], rank[member.ravel()]


def _kind(table: Floats, domain: Domain) -> Kind:
    """What a space of such vectors is."""
    size = table.shape[1]
    binary = bool(np.isin(table, (0.0, 1.0)).all())
    if size == 1 and binary:
        return Flag()
    if binary and (table.sum(axis=1) == 1).all():
        named = (
            _symbols(domain) if size == len(domain) and (table == np.eye(size)).all() else tuple(map(str, range(size)))
        )
        return OneHot(named, void=True)
    labels = tuple(map(str, range(size)))
    return Reals(labels, float(min(table.min(), 0.0)), float(max(table.max(), 0.0)))


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Program)
    return program_net(spec, attention=settings.attention, max_length=settings.max_length)


CONSTRUCTIONS = (Construction("program", Program, "programs of selections and aggregations", _make, default=True),)
