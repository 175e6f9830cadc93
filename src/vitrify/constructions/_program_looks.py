"""The parts of a program that look at other positions, as attention heads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.constructions._program_functions import FEW, Functions
from vitrify.constructions._program_stream import (
    Floats,
    Form,
    classes_of,
    numbers_of,
    same,
    slope_of,
    symbols_of,
    total_of,
)
from vitrify.kit.gadgets import steps
from vitrify.kit.heads import count
from vitrify.kit.heads.select import Test, select
from vitrify.kit.network import Affine, Space
from vitrify.net.spaces import Bits, Flag, Integers, OneHot, Reals
from vitrify.net.transformer import Mask
from vitrify.spec.program import Expr, Selector
from vitrify.spec.program_selectors import Atom, conjunctions


class Looks(Functions):
    """What is made by heads."""

    @property
    def base(self) -> Mask:
        """What a position sees when nothing is selected."""
        return "causal" if self.program.causal else "none"

    def _made(self, node: Expr) -> Form:
        if node.op == "width":
            return self._width(node)
        if node.op in ("aggregate", "mean", "first", "last"):
            return self._fetched(node)
        return super()._made(node)

    def _fetched(self, node: Expr) -> Form:
        """What a head brings: the code or the number of a value elsewhere."""
        selector, inner = node.args
        domain, default = self.values[node], node.data
        if self.values.boolean(node):
            value, points = self._with_default(self.number(inner), [float(bool(default))]), numbers_of(domain)
            space = Space(self.name(node), Flag())
        elif node.op == "mean" or (self.values.numeric(node) and len(domain) > FEW):
            numbers = numbers_of(domain)
            value, points = self._with_default(self.number(inner), [float(default)]), numbers
            low, high = float(min(numbers.min(), 0)), float(max(numbers.max(), 0))
            space = Space(self.name(node), Reals(("value",), low, high))
        else:
            where = {same(v): row for row, v in enumerate(domain)}
            images = np.eye(len(domain))[[where[same(v)] for v in self.values[inner]]]
            value, points = (
                self._with_default(self.vector(inner, images), np.eye(len(domain))[where[same(default)]]),
                None,
            )
            space = Space(self.name(node), OneHot(symbols_of(domain), void=True))
        mask, tests = self._tests(selector)
        which = node.op if node.op in ("first", "last") else None
        select(self.net, tests, value, space, which=which, mask=mask, shares=node.op == "mean")  # type: ignore[arg-type]
        self.from_heads.add(space)
        return Form(Affine.copy(space), points)

    def _with_default(self, value: Affine, default: Sequence[float] | Floats) -> Affine:
        """A value that is the default at BOS."""
        clean = self.cleaned(value) if any(space in self.from_heads for space in value.spaces) else value
        missing = np.asarray(default, dtype=float) - clean.bias
        return clean + Affine.of({self.net.bos: missing[None, :]})

    def _width(self, node: Expr) -> Form:
        """The number of selected positions, as a sum over conjunctions."""
        (selector,) = node.args
        terms = conjunctions(selector, self.values, width=True)
        if len(terms) == 1 and terms[0][0] == 1:
            return self._one_width(node, terms[0][1])
        sizes = [self._size(node, atoms) * float(sign) for sign, atoms in terms]
        return Form(total_of([Affine.constant(0.0), *sizes]), numbers_of(self.values[node]))

    def _size(self, node: Expr, atoms: tuple[Atom, ...]) -> Affine:
        form = self._one_width(node, atoms)
        points = form.points
        assert points is not None
        numbers = np.arange(self.program.length + 1.0)
        slope = slope_of(points, numbers[:, None])
        if slope is not None:
            return form.affine @ slope[None, :] + Affine.constant(numbers[:1] - slope * points[0])
        space = Space(self.name(node), Integers(("count",), 0.0, float(self.program.length)))
        order = np.argsort(points)
        steps(self.net, form.affine, points[order], [(space, numbers[order][:, None])], name=f"values of {space.name}")
        return Affine.copy(space)

    def _one_width(self, node: Expr, atoms: tuple[Atom, ...]) -> Form:
        mask, tests = self._mask_and_tests(atoms)
        counts = np.arange(self.program.length + 1.0)
        fixed = all(not test.query.parts for test in tests)
        if mask in ("causal", "strict") and self.attention != "hard" and fixed and len(tests) <= 1:
            flag = tests[0].key if tests else Affine.of({self.net.bos: [[-1.0]]}, [1.0])
            if not tests:
                return Form(Affine.of({self.net.index: [[1.0]]}, [-1.0 if mask == "strict" else 0.0]), counts)
            space = count(self.net, flag, ("count",), float(self.program.length), name=self.name(node))
            self.from_heads.add(space)
            total = Affine.copy(space)
            return Form(total + flag * -1.0 if mask == "strict" else total, counts)
        space = Space(self.name(node), Reals(("1/(1+n)",), 0.0, 1.0))
        bos = Affine.of({self.net.bos: [[1.0]]})
        select(self.net, tests, bos, space, sink="join", mask=mask)
        self.from_heads.add(space)
        return Form(Affine.copy(space), 1.0 / (1.0 + counts))

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
        if atom.equality and len({*map(same, keys), *map(same, queries)}) > 4 and len(queries) > 1:
            union = {value: row for row, value in enumerate(dict.fromkeys([*map(same, keys), *map(same, queries)]))}
            bits = Bits(tuple(map(str, range(len(union))))).codes
            query = self.vector(atom.query, bits[[union[same(v)] for v in queries]], clean=True) * 0.5
            key = self.vector(atom.key, bits[[union[same(v)] for v in keys]], clean=True)
            return Test(query, self.at_tokens(key), bits.shape[1] / 2)
        holds = atom.holds(keys, queries).astype(float)
        rows, row_of = classes_of(holds)
        columns, column_of = classes_of(holds.T)
        if len(columns) <= len(rows):
            query = self.vector(atom.query, np.eye(len(columns))[column_of], clean=True)
            key = self.vector(atom.key, holds[:, columns], clean=True)
        else:
            query = self.vector(atom.query, holds[rows].T, clean=True)
            key = self.vector(atom.key, np.eye(len(rows))[row_of], clean=True)
        return Test(query, self.at_tokens(key), 1.0)
