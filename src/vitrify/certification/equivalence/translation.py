r"""A network that runs a RASP program, expression by expression: for every word up to its length.

**Statement.** At every position of every word on which the program has a value, the ideal answers with that value.

**Invariant.** After every half block, the contents of the residual stream at a position are a sum of tables, each a
function of the values that some expressions of the program have at that position of the word (`tables.py`).

| step | instances that are checked |
| --- | --- |
| embedding | none: W_E is a table of `tokens`, W_pos one of `indices` |
| a linear read | the tables add up; a sum that depends only on the value of a function, for all values of its |
| | arguments, is a table of that function |
| units | they are evaluated for all values of what they read |
| a head | it runs an operation of the program that reads other positions, for all pairs of values of its queries and |
| | keys (`selections.py`) |
| unembedding | the logits are a table of the result, and answer right for each of its values |

Each step is true of every word if the steps before it are, so that the claim follows by induction over the half blocks:
what a head selects is a set of positions that the values there and at the query determine, and all pairs of values are
compared. Sets of values contain all values that occur (`expressions.py`). The values of a position are taken to vary
independently, which admits too many combinations, never too few. No name and no label decides anything; those of spaces
only say which dimensions are looked at together.

In a net that looks ahead BOS reads the word. What it holds is bounded coordinate by coordinate, from the least and the
largest value that heads may write; keys of BOS must win or lose within these bounds, and its values must not move.

**Formulas and counting programs** are checked as the program `spec.program`, which equals them by definition:

| spec | program | at a position |
| --- | --- | --- |
| `Y x` | `aggregate(select(indices, indices - 1), x, False)` | only the one before is selected, none at the first |
| `O x` | `last(marked(x) & upto, True, False)` | true iff a position up to here is marked; `H x` is `!O !x` |
| `x S y` | `last(marked(~(x & ~y)) & upto, y, False)` | after the last marked one only x holds: y there decides |
| `#x` | `width(marked(x))`, causal; `indices + 1` for `#true` | the number of positions up to here |

For a formula the product of states comes first: it speaks about every length, and finds words.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma, product_of_states
from vitrify.certification.equivalence.expressions import READS, ProgramExpressions
from vitrify.certification.equivalence.ideal import HeadRule
from vitrify.certification.equivalence.selections import MAX_HELD, HeadOutput, HeadReads, matched
from vitrify.certification.equivalence.tables import ROUNDING, TokenContents, ValueTable
from vitrify.certification.margins.values import Undecided
from vitrify.errors import SpecError
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.programs.expression import Value
from vitrify.spec.programs.program import Program
from vitrify.spec.programs.values import symbols_of

FEW_PAIRS = 1 << 12  # of states of a network and a formula, before it is taken for a program


@lemma(Program, Formula, Crasp)
def expression_by_expression(case: SpecCase) -> SpecProof:
    """Match the heads and units of a network with the expressions of a program."""
    if isinstance(case.spec, Formula):
        with suppress(Undecided):
            return product_of_states(replace(case, max_pairs=min(case.max_pairs, FEW_PAIRS)))
    program, longest = case.spec if isinstance(case.spec, Program) else case.spec.program, case.ideal.longest
    try:
        if program.length != longest:
            program = Program(program.root, program.alphabet, longest, program.causal)
        run = _Translation(case, ProgramExpressions(program))
        run.all()
    except SpecError as error:
        raise Undecided(f"the program is none for words to length {longest}: {error}") from None
    except RecursionError:
        raise Undecided("hundreds of functions stand inside each other") from None
    return SpecProof("translation, expression by expression", longest, run.instances)


class _Translation:
    """One pass through the ideal: what tokens hold, and center and radius of what BOS holds if the net looks ahead."""

    def __init__(self, case: SpecCase, source: ProgramExpressions) -> None:
        self.case, self.ideal, self.source = case, case.ideal, source
        net, letters = case.net, source.program.alphabet
        if sorted(net.inputs[1:]) != sorted(letters) or net.output.kind not in ("transducer", "values"):
            raise Undecided("the network reads other symbols than the program, or answers in another way")
        self.stream = TokenContents(source, np.stack([self.ideal.embedded(net.inputs.index(a, 1)) for a in letters]))
        self.ahead = any(rule.head.mask not in ("causal", "strict") for rule in self.ideal.rules)
        places = self.ideal.positions[: net.pads]
        self.bos: tuple[Floats, Floats] = self.ideal.embed[[0]] + places, np.zeros_like(places)
        self.operations = [n for n, node in enumerate(source.nodes) if node.op in READS]
        self.instances = {"pairs of values, for sums of widths": source.checked} if source.checked else {}

    def all(self) -> None:
        for index, block in enumerate(self.ideal.blocks):
            written = [self._head(rule, index) for rule in block.heads]
            if self.ahead:
                self._bos_heads(block.heads)
            for dims, node, one in (each for each in written if each is not None):
                self.stream.write(dims, ValueTable((node,), one.table), one.error)
            if block.units:
                self._units(index)
        self._answers()

    def _count(self, what: str, number: int) -> None:
        self.instances[what] = self.instances.get(what, 0) + number

    def _head(self, rule: HeadRule, index: int) -> tuple[Ints, int, HeadOutput] | None:
        """Return the dimensions that a head writes, the operation that it runs, and its table; None if it writes 0."""
        if rule.head.window is not None or rule.head.mask == "after":
            raise Undecided("a head with a window, or of later positions alone, is no selection of a program")
        b_k = rule.k_places[0] - self.ideal.places[index][0] @ rule.k
        keys, values = self._bos(rule.k, b_k, rule.pad_keys), self._bos(rule.v, rule.b_v, rule.pad_values)
        placed = rule.v_places + rule.b_v
        dims = np.flatnonzero(np.any(rule.v, axis=0) | np.any(placed, axis=0) | np.any(values, axis=(0, 1)))
        if not len(dims):
            return None
        reads = HeadReads(
            rule,
            self.stream,
            self.stream.read(rule.q, rule.q_places),
            self.stream.read(rule.k, rule.k_places),
            self.stream.read(rule.v[:, dims], placed[:, dims]),
            keys,
            (values[0][:, dims], values[1][:, dims]),
        )
        reasons = dict[str, None]()
        for node in self.operations:
            try:
                written = matched(reads, node)
            except Undecided as stop:
                reasons[str(stop)] = None
                continue
            self.operations = [*(n for n in self.operations if n != node), node]  # the others first, next time
            self._count("heads", 1)
            self._count("pairs of values of a query and a key", written.pairs)
            return dims, node, written
        raise Undecided(f"a head of block {index} runs no operation of the program: {'; '.join(reasons)}")

    def _units(self, index: int) -> None:
        """Evaluate the units of a block, those of one space together."""
        w_in, b_in, w_out, b_out = self.ideal.blocks[index].units
        results = []
        for dims in self._groups(index, np.flatnonzero(np.any(w_out, axis=0) | (b_out != 0))):
            mine = np.flatnonzero(np.any(w_out[:, dims], axis=1))
            if not len(mine):
                results.append(
                    (dims, self.stream.reduced([ValueTable((), b_out[dims])], np.zeros(len(dims)), np.abs(b_out[dims])))
                )
                continue
            inward, outward = w_in[:, mine], w_out[np.ix_(mine, dims)]
            first = inward[np.argmax(inward != 0, axis=0), np.arange(len(mine))]
            scale = np.where(first == 0, 1.0, first)
            lines, which = np.unique(inward / scale, axis=1, return_inverse=True)  # units that read the same sum
            which = which.reshape(-1)
            read = self.stream.read(lines, self.ideal.places[index] @ lines)
            rows = read.term.table.reshape(-1, lines.shape[1])
            self._count("combinations of values that units read", len(rows))
            table, error = np.empty((len(rows), len(dims))), np.zeros(len(dims))
            size = read.size[which] * np.abs(scale) + np.abs(b_in[mine])
            noise = read.error[which] * np.abs(scale) + ROUNDING * size
            for start in range(0, len(rows), step := max(1, MAX_HELD // (len(mine) + 1))):
                before = rows[start : start + step][:, which] * scale + b_in[mine]
                table[start : start + step] = np.maximum(before, 0.0) @ outward + b_out[dims]
                signs = np.unique(np.where(before > noise, 1, np.where(before < -noise, -1, 0)).astype(np.int8), axis=0)
                for pattern in signs:  # errors of units that cancel do not pass
                    on, unsure = pattern > 0, pattern == 0
                    slopes = np.zeros((lines.shape[1], len(dims)))
                    np.add.at(slopes, which[on], scale[on, None] * outward[on])
                    error = np.maximum(error, read.error @ np.abs(slopes) + noise[unsure] @ np.abs(outward[unsure]))
            error = error + ROUNDING * (size @ np.abs(outward) + np.abs(b_out[dims]))
            term = ValueTable(read.term.exprs, table.reshape(*read.term.table.shape[:-1], len(dims)))
            results.append((dims, self.stream.reduced([term], error, np.abs(table).max(axis=0))))
        if self.ahead:
            self._bos_units(index)
        self.stream.erase(self.ideal.blocks[index].gone)
        for dims, result in results:
            self.stream.write(dims, result.term, result.error)

    def _groups(self, index: int, dims: Ints) -> list[Ints]:
        """Return written dimensions in groups: those of one space together, others alone."""
        left, groups = set(dims.tolist()), []
        for space in self.case.weights.labels.spaces:
            mine = sorted(left & set(space.dims)) if space.born == 2 * index + 2 else []
            groups += [np.array(mine)] if mine else []
            left -= set(mine)
        return [*groups, *(np.array([dim]) for dim in sorted(left))]

    # ---- BOS: center and radius of every coordinate, in a net that looks ahead; else it is known
    def _bos(self, matrix: Floats, bias: Floats, known: Floats) -> tuple[Floats, Floats]:
        """Return center and radius of what a matrix reads at the pads."""
        if not self.ahead:
            return known, np.zeros_like(known)
        return self.bos[0] @ matrix + bias, self.bos[1] @ np.abs(matrix)

    def _bos_heads(self, rules: list[HeadRule]) -> None:
        """Add what heads may write at BOS: a mean of values of tokens and of BOS, or nothing."""
        low, high = self.bos[0] - self.bos[1], self.bos[0] + self.bos[1]
        for rule in rules:
            placed, (mine, radius) = rule.v_places + rule.b_v, self._bos(rule.v, rule.b_v, rule.pad_values)
            least, most = placed.min(axis=0), placed.max(axis=0)
            for dims, term in self.stream.held:
                table = (term.table @ rule.v[dims]).reshape(-1, rule.v.shape[1])
                least, most = least + table.min(axis=0), most + table.max(axis=0)
            radius = radius + self.stream.error @ np.abs(rule.v)
            low = low + np.minimum(0.0, np.minimum(least, mine) - radius)
            high = high + np.maximum(0.0, np.maximum(most, mine) + radius)
        self.bos = (low + high) / 2, (high - low) / 2

    def _bos_units(self, index: int) -> None:
        w_in, b_in, w_out, b_out = self.ideal.blocks[index].units
        center, radius = self.bos[0] @ w_in + b_in, self.bos[1] @ np.abs(w_in)
        low, high = np.maximum(center - radius, 0.0), np.maximum(center + radius, 0.0)
        center, radius = self.bos[0].copy(), self.bos[1].copy()
        center[:, self.ideal.blocks[index].gone] = radius[:, self.ideal.blocks[index].gone] = 0.0
        self.bos = center + (low + high) / 2 @ w_out + b_out, radius + (high - low) / 2 @ np.abs(w_out)

    # ---- answers
    def _answers(self) -> None:
        """Check the logits for every value of the result."""
        net, oracle, w_u = self.case.net, self.case.oracle, self.ideal.w_u
        read = self.stream.read(w_u, self.ideal.places[-1] @ w_u + self.ideal.b_u)
        result = self.stream.factor(read.term, self.source.root)
        off, domain = float((read.error + result.far).max()), self.source.domains[self.source.root]
        self._count("values of the result", len(domain))
        symbols: dict[Value, str] = {True: "True", False: "False"}
        if isinstance(spec := self.case.spec, Program):
            symbols = dict(zip(spec.values[spec.root], symbols_of(spec.values[spec.root]), strict=True))
        for value, logits in ((domain[n], result.table[n]) for n in np.flatnonzero(result.occurs)):
            if net.output.kind == "values":
                right = abs(logits[0] - float(value)) + off <= oracle.tolerance()  # type: ignore[arg-type]
            else:
                best = np.array(net.output.symbols) == symbols.get(value, "")
                right = best.sum() == 1 and logits[best][0] - logits[~best].max(initial=-np.inf) > 2 * off + oracle.TIE
            if not right:
                raise Undecided(f"the answer where the result is {value!r} is not right")
        if isinstance(spec, Program) and spec.empty is not None:
            self._answer_to_the_empty_word(symbols[spec.empty])

    def _answer_to_the_empty_word(self, symbol: str) -> None:
        """Check the logits after BOS alone."""
        best = np.array(self.case.net.output.symbols) == symbol
        right, others = self.ideal.first_logits[best], self.ideal.first_logits[~best]
        if right.size != 1 or right[0] - others.max(initial=-np.inf) <= self.case.oracle.TIE:
            raise Undecided("the answer for the empty word is not right")
