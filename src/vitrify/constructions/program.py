r"""A program of selections and aggregations becomes a transformer: heads select, units compute, nothing is approximate.

The language is that of RASP (Weiss et al. 2021, arXiv 2106.06981); the compilation is our own. Every expression has a
finite set of values. In the residual stream it is a *code* (one-hot, a dimension per value) or a *line* (one number,
with a point per value). Readers take what they need by a linear map where that is enough, else by ramps between points.

| part | cost |
| --- | --- |
| functions of one expression, sums, negations | nothing: a linear map, or the ramps that its reader needs |
| comparisons, and, or | two units (four for equality) |
| minimum, maximum | one unit |
| other functions of several expressions | one unit per class of equal rows and columns |
| `aggregate`, `first`, `last`, `mean`, `min`, `max`, `width` | one head, with the tests of a conjunction side by side |
| `sum` | a `width` for each value that is not 0, or for each bit of the values if these are fewer |
| counts of marked positions to the left | one head, exact: every visible position has the same weight |
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions._program_functions import MAX_CODE_VALUES, Functions
from vitrify.constructions._program_stream import Form, classes_of, numbers_of, same, slope_of
from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.heads.average import count
from vitrify.kit.heads.select import Test, Which, select
from vitrify.kit.network import Affine, Bits, Builder, Flag, Integers, Network, OneHot, Output, Readout, Reals, Space
from vitrify.net.transformer import AttentionKind, Mask
from vitrify.spec.logic.truth import leaf_holds, leaf_text
from vitrify.spec.programs.expression import FETCHES, Expr, parts
from vitrify.spec.programs.program import Program
from vitrify.spec.programs.selectors import Atom, conjunctions
from vitrify.spec.programs.values import symbols_of

WHICH: dict[str, Which] = {"first": "first", "last": "last", "min": "first", "max": "last"}  # by position or by value
MAX_FRAMES = 20_000  # of Python, for functions inside each other
UNITS_UNKNOWN = (
    "a function takes units, and their layer and width, only where no linear map of what it reads will do, and that "
    "depends on the values that all parts of the program can have"
)


def sizes(program: Program) -> DeclaredSizes:
    """Return a bound of the heads: one for each selection that is read, and one for each conjunction of a width."""
    heads = 0
    for node in parts(program.root):
        heads += node.op in FETCHES
        heads += len(conjunctions(node.args[0], program.values, width=True)) if node.op == "width" else 0
    return DeclaredSizes(at_most={"heads": heads, "attention_layers": heads}, unknown=UNITS_UNKNOWN)


def position_flag(net: Builder, leaf: Sequence[str | int]) -> Space:
    """Return the flag of a leaf that speaks about the position, MOD or AT, from the position table."""
    held = leaf_holds(str(leaf[0]), leaf[1:], np.zeros((1, net.max_length), dtype=np.int64), (), 0)
    assert held is not None
    return net.embed_position(str(leaf_text(str(leaf[0]), leaf[1:])), Flag(), held.T.astype(np.float64))


@construction("program", "programs of selections and aggregations", sizes, default=True, certified=("to T", "to T"))
def program_net(
    program: Program, gather: bool = False, *, attention: Attention = "softmax", max_length: MaxLength | None = None
) -> Network:
    """Return the transformer of a program; `gather` puts all heads of one nesting into one layer."""
    if max_length is not None and max_length > program.length:
        raise BuildRefused(
            f"--max-length {max_length}: the program's line 'length: {program.length}' says how long words are: "
            f"write 'length: {max_length}' there, or leave --max-length out"
        )
    if max_length is not None:
        program = replace(program, length=max_length, lines=program.values.lines)
    if program.ambiguities:
        raise BuildRefused("\n".join(map(str, program.ambiguities)))
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(max(limit, MAX_FRAMES))  # near the limit, NumPy raises other errors instead
        return replace(_compiled(program, attention), gather=gather)
    except RecursionError:
        deepest = program.values.lines.get(program.root)
        line = "" if deepest is None else f"line {deepest}: "
        raise BuildRefused(f"{line}thousands of functions stand inside each other: use fewer of them") from None
    finally:
        sys.setrecursionlimit(limit)


def _compiled(program: Program, attention: AttentionKind) -> Network:
    draft = _Compiler(program, attention)
    network = draft.network()
    if draft.refused:
        raise BuildRefused("\n".join(draft.refused))
    if sum(table.shape[1] for table in draft.token_tables.values()) < len(program.alphabet):
        return _Compiler(program, attention, letters=False).network()
    return network


class _Compiler(Functions):
    """Compiles a program: functions at a position, heads that attend to others, and the readout."""

    def network(self) -> Network:
        """Return the network of the program's result."""
        root, domain = self.program.root, self.values[self.program.root]
        output = Output("transducer", symbols_of(domain))
        if self.values.numeric(root) and any(isinstance(value, Fraction) for value in domain):
            output = Output("values", ("value",))
            number = self.number(root)
            readout = Readout(number.parts, number.bias, dict.fromkeys(number.spaces, 1e-09))
        elif self.values.numeric(root) and len(domain) > MAX_CODE_VALUES:
            number, points = self.number(root), numbers_of(domain)
            wide = number @ (2.0 * points[None, :])
            reach, largest = max(sum(number.gain(s) for s in number.spaces), 1.0), max(2.0 * np.abs(points).max(), 1.0)
            need = {s: 0.2 / reach / (float(largest) if s in self.sharp else 1.0) for s in number.spaces}
            readout = Readout(wide.parts, wide.bias - points**2, need)
        else:
            code = self.vector(root, np.eye(len(domain)))
            need = {space: 0.2 / max(sum(code.gain(s) for s in code.spaces), 1.0) for space in code.spaces}
            readout = Readout(code.parts, code.bias, need)
        if self.program.empty is not None:
            readout = self._answering_the_empty_word(readout, output)
        facts = {"program": self.program.name}
        source = "language of Weiss et al. 2021, arXiv 2106.06981"
        return self.net.network(output, readout, "program of selections and aggregations", facts, source=source)

    def _answering_the_empty_word(self, readout: Readout, output: Output) -> Readout:
        """Return the readout with one more term: at BOS, one answer leads whatever stands there."""
        program = self.program
        domain = self.values[program.root]
        if output.kind == "values":
            self.refused.append("an answer for the empty word needs outputs that are symbols: round the numbers")
            return readout
        best = np.array([[value is program.empty or same(value) == same(program.empty) for value in domain]])
        logits = Affine(readout.parts, readout.bias)
        logits = logits + Affine.of({self.net.bos: (2.0 * float(logits.bound.max()) + 2.0) * best})
        return Readout(logits.parts, logits.bias, readout.max_errors)

    @property
    def base(self) -> Mask:
        """The mask of heads without a mask of their own."""
        return "causal" if self.program.causal else "none"

    def _new_form(self, node: Expr) -> Form:
        if node.op == "width":
            return self._width(node)
        if node.op in FETCHES:
            return self._fetched(node)
        return super()._new_form(node)

    def _fetched(self, node: Expr) -> Form:
        """Return the form of an aggregate: a head copies the code or number of a value from other positions."""
        selector, inner = node.args
        domain, default = self.values[node], node.data
        if self.values.boolean(node):
            missing, points = np.array([float(bool(default))]), numbers_of(domain)
            value, space = self.number(inner), Space(self.name(node), Flag())
        elif node.op == "mean" or (self.values.numeric(node) and len(domain) > MAX_CODE_VALUES):
            missing, points = np.array([float(default)]), numbers_of(domain)
            low, high = float(min(points.min(), 0)), float(max(points.max(), 0))
            value, space = self.number(inner), Space(self.name(node), Reals(("value",), low, high))
        else:
            where = {same(v): row for row, v in enumerate(domain)}
            images = np.eye(len(domain))[[where[same(v)] for v in self.values[inner]]]
            missing, points = np.eye(len(domain))[where[same(default)]], None
            value, space = self.vector(inner, images), Space(self.name(node), OneHot(symbols_of(domain), void=True))
        value, terms = self._with_default(value, missing), conjunctions(selector, self.values, width=False)
        if not terms:
            return Form(Affine.constant(missing), points)
        mask, tests = self._mask_and_tests(terms[0][1])
        which: Which | None = WHICH.get(node.op)
        options: dict[str, Any] = {"which": which, "mask": mask, "shares": node.op == "mean"}
        if node.op in ("min", "max"):
            ranks = np.arange(1.0, len(self.values[inner]) + 1)
            options |= {
                "order": self.net.at_tokens(self.vector(inner, ranks[:, None], clean=True)),
                "ranks": len(ranks),
            }
        if selector in self.values.names:
            options["name"] = f"{self.values.names[selector]}: {space.name}"
        select(self.net, tests, value, space, **options)
        self.inexact.add(space)
        self.sharp |= {space} if node.op != "mean" else set()
        return Form(Affine.copy(space), points)

    def _with_default(self, value: Affine, default: Floats) -> Affine:
        """Return the value, with the default at BOS."""
        clean = self.cleaned(value) if any(space in self.inexact for space in value.spaces) else value
        return clean + Affine.of({self.net.bos: (default - clean.bias)[None, :]})

    def _width(self, node: Expr) -> Form:
        """Return the number of selected positions, as a sum over conjunctions."""
        (selector,) = node.args
        terms = conjunctions(selector, self.values, width=True)
        if len(terms) == 1 and terms[0][0] == 1:
            return self._one_width(node, terms[0][1])
        sizes = [self._size(node, atoms) * float(sign) for sign, atoms in terms]
        return Form(reduce(add, sizes, Affine.constant(0.0)), numbers_of(self.values[node]))

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
            self.inexact.add(space)
            total = Affine.copy(space)
            return Form(total + flag * -1.0 if mask == "strict" else total, counts)
        space = Space(self.name(node), Reals(("1/(1+n)",), 0.0, 1.0))
        bos = Affine.of({self.net.bos: [[1.0]]})
        select(self.net, tests, bos, space, sink="join", mask=mask)
        self.inexact.add(space)
        return Form(Affine.copy(space), 1.0 / (1.0 + counts))

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
            return Test(query, self.net.at_tokens(key), bits.shape[1] / 2)
        holds = atom.holds(keys, queries).astype(float)
        rows, row_of = classes_of(holds)
        columns, column_of = classes_of(holds.T)
        if len(columns) <= len(rows):
            query = self.vector(atom.query, np.eye(len(columns))[column_of], clean=True)
            key = self.vector(atom.key, holds[:, columns], clean=True)
        else:
            query = self.vector(atom.query, holds[rows].T, clean=True)
            key = self.vector(atom.key, np.eye(len(rows))[row_of], clean=True)
        return Test(query, self.net.at_tokens(key), 1.0)
