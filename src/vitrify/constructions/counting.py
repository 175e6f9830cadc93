r"""A counting program becomes a transformer with uniform attention, one attention layer per nested count.

In the spirit of Yang and Chiang (2024, arXiv 2404.04393): a head that gives all tokens the same weight counts, and
units compare counts. In the mode `bounded`, programs are for words up to a length $N$; counts are then integers up to
$N$. They are compiled by way of programs (`program.py`), with heads of one nesting in one layer. In the mode
`layernorm` no weight depends on $N$: heads compute shares, and a comparison is the sign of a number that may be as
small as $1/(N+1)$, which a layer norm over two dimensions of its own turns into $\pm1$.

| | `bounded` | `layernorm` |
| --- | --- | --- |
| attention layers | at most the nesting of `#` | the same, and at least one where counts are compared |
| heads | at most one per different count; `#true` is the position and takes none | at most one per nesting |
| what bounds the length | the program's `length` | rows of the position table; float64 |

With a norm, at position $i$, a count $c$ is represented by its share $c/(i+1)$, BOS being one of the $i+1$ positions,
and a number $n$ by $n$ times the share of BOS. So $l \ge r$ is the sign of the share of $2(l - r) + 1$, an odd number:
it is never 0, but it may be as small as $1/(i+1)$. A pair $(z, -z)$ goes through a norm over its own two dimensions and
is $(\pm1, \mp1)$. No weight but the flags for `MOD` and `AT` depends on the length of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, Mode, construction
from vitrify.constructions.program import position_flag, program_net
from vitrify.kit.gadgets.extremes import minimum
from vitrify.kit.gadgets.signs import sign
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.heads.average import mean
from vitrify.kit.network import Affine, AttentionKind, Builder, Flag, Network, Output, Readout, Reals, Space
from vitrify.spec.logic.crasp import MEANINGS, Crasp
from vitrify.spec.logic.crasp_text import Step, references
from vitrify.spec.logic.truth import POSITIONAL
from vitrify.spec.programs.program import BEGIN

NUMBERS = ("+", "-", "neg", "*", "min", "max", "if")
# A connective is a function of how many of its two arguments are true; the first of an implication is negated.
CONNECTIVES = {"and": (0, 0, 1), "or": (0, 1, 1), "implies": (0, 1, 1), "iff": (1, 0, 1)}
# A comparison reads one sign or both, of l ≥ r and of r ≥ l; `<` is the negation of `>=`.
COMPARISONS: dict[str, tuple[tuple[int, int], ...]] = dict.fromkeys((">=", "<"), ((1, 0),))
COMPARISONS |= dict.fromkeys(("<=", ">"), ((0, 1),)) | dict.fromkeys(("=", "!="), ((1, 0), (0, 1)))
NEGATED = ("<", ">", "!=")


def sizes(spec: Crasp, *, mode: Mode) -> DeclaredSizes:
    """Return bounds of the attention layers and heads, by the nesting of counts and their number."""
    nesting = spec.depth if mode == "bounded" else max(1, spec.depth)
    return DeclaredSizes(
        at_most={"attention_layers": nesting, "heads": spec.counts if mode == "bounded" else nesting},
        unknown="layers without heads, width and units depend on the values that each step of the program can take",
    )


@construction(
    "counting",
    "counting programs, an attention layer per nested count",
    sizes,
    default=True,
    certified=("to T", "to T"),
)
def counting(
    spec: Crasp, *, attention: Attention = "softmax", max_length: MaxLength | None = None, mode: Mode = "bounded"
) -> Network:
    """Return the transformer of a counting program: the truth value of its result at every position."""
    if mode == "layernorm":
        return _ShareCompiler(spec, attention, max_length or spec.length).network()
    return program_net(spec.program, attention=attention, max_length=max_length, gather=True)


class _ShareCompiler:
    """Compiler of the mode `layernorm`: nesting by nesting, with one head for all counts of each."""

    def __init__(self, spec: Crasp, attention: AttentionKind, length: int) -> None:
        self.spec = spec
        self.net = Builder(spec.name, (BEGIN, *spec.alphabet), length, attention, void=True)
        self.fixed: dict[int, int] = {}  # the value of every step that is the same everywhere
        self.level: list[int] = []  # the nesting of counts below each step
        self.maps: dict[int, Affine] = {}
        self.signs: dict[tuple[int, int], Space] = {}
        self.one = Affine.constant(0.0)  # the share of BOS, once there is a head
        for number, step in enumerate(spec.steps):
            self._classify(number, str(step[0]), step, references(step))

    def _classify(self, number: int, operator: str, step: Step, reads: Sequence[int]) -> None:
        """Record whether a step is constant, and its nesting of counts; shares need at least one."""
        inner = [self.fixed[i] for i in reads if i in self.fixed]
        level = max((self.level[i] for i in reads), default=0)
        if operator in ("true", "false", "number"):
            self.fixed[number] = int(step[1]) if operator == "number" else int(operator == "true")
        elif operator == "#" and inner == [0]:
            self.fixed[number] = 0
        elif operator in COMPARISONS and len(set(reads)) == 1:
            self.fixed[number] = int(operator not in NEGATED)
        elif operator == "#":
            level += 1
        elif reads and len(inner) == len(reads):
            self.fixed[number] = int(MEANINGS[operator](*map(np.bool_ if operator == "not" else int, inner)))
        elif operator in NUMBERS:
            level = max(level, 1)
        self.level.append(0 if number in self.fixed else level)

    def network(self) -> Network:
        for level in range(max(self.level) + 1):
            if level:
                self._count(level)
            for number, step in enumerate(self.spec.steps):
                if self.level[number] == level and number not in self.fixed and step[0] != "#":
                    self.maps[number] = self._compiled(number, str(step[0]), step)
        truth = self.truth(len(self.spec.steps) - 1)
        code = truth @ np.array([[-1.0, 1.0]]) + Affine.constant([1.0, 0.0])
        needs = dict.fromkeys(code.spaces, 0.2)
        output = Output("transducer", ("False", "True"))
        readout = Readout(code.parts, code.bias, needs)
        facts = {"program": self.spec.name}
        source = "language of Yang and Chiang 2024, arXiv 2404.04393"
        return self.net.network(output, readout, "counting program, by shares and norms", facts, source=source)

    def truth(self, number: int) -> Affine:
        """Return the map that is 1 where a step is true, 0 elsewhere; at BOS only what heads read is defined."""
        return Affine.constant(self.fixed[number]) if number in self.fixed else self.maps[number]

    def share(self, number: int) -> Affine:
        """Return the value of a step divided by the number of positions."""
        return self.one * self.fixed[number] if number in self.fixed else self.maps[number]

    def _count(self, level: int) -> None:
        """Add one head for all that is counted at a nesting, and for the share of BOS at the first."""
        steps = self.spec.steps
        all_of_them = [n for n, step in enumerate(steps) if step[0] == "#" and n not in self.fixed]
        here = [n for n in all_of_them if self.level[n] == level]
        counted = [n for n in here if references(steps[n])[0] not in self.fixed]
        parts = [self.net.at_tokens(self.truth(references(steps[n])[0])) for n in counted]
        names = [f"#{n}" for n in counted]
        if level == 1:
            parts, names = [Affine.copy(self.net.bos), *parts], ["bos", *names]
        if parts:
            value = reduce(Affine.beside, parts)
            space = mean(self.net, value, name=f"shares {level}", kind=Reals(tuple(f" {n}" for n in names), 0.0, 1.0))
            columns = dict(zip(names, np.eye(len(names))[:, :, None], strict=True))
            if level == 1:
                self.one = Affine.of({space: columns["bos"]})
            self.maps |= {n: Affine.of({space: columns[f"#{n}"]}) for n in counted}
        self.maps |= {n: Affine.constant(1.0) + self.one * -1.0 for n in here if n not in counted}

    def _compiled(self, number: int, operator: str, step: Step) -> Affine:
        reads = references(step)
        if operator == "letter":
            letter = str(step[1])
            table = np.array([[float(symbol == letter)] for symbol in self.net.inputs])
            table[0] = 0.0
            return Affine.copy(self.net.embed(f"is {letter}", Flag(), table))
        if operator in POSITIONAL:
            return Affine.copy(position_flag(self.net, step))
        if operator == "not":
            return _not(self.truth(reads[0]))
        if operator in CONNECTIVES:
            left, right = map(self.truth, reads)
            return self._connected(number, operator, _not(left) if operator == "implies" else left, right)
        if operator in COMPARISONS:
            return self._compared(number, operator, reads)
        return self._number(number, operator, reads)

    def _connected(self, number: int, operator: str, left: Affine, right: Affine) -> Affine:
        values = CONNECTIVES[operator]
        if not left.parts or not right.parts:
            known, other = (left, right) if not left.parts else (right, left)
            low, high = values[int(known.bias[0])], values[int(known.bias[0]) + 1]
            return Affine.constant(low) if low == high else other if high else _not(other)
        return self._steps(f"{operator} {number}", left + right, (0.0, 1.0, 2.0), values)

    def _steps(self, name: str, reads: Affine, points: Sequence[float], values: Sequence[int]) -> Affine:
        flag, table = Space(name, Flag()), np.array(values, dtype=float)[:, None]
        steps(self.net, reads, np.array(points), [(flag, table)], name=name)
        return Affine.copy(flag)

    def _compared(self, number: int, operator: str, reads: Sequence[int]) -> Affine:
        signs = [self._sign(reads[1 - larger], reads[1 - smaller]) for larger, smaller in COMPARISONS[operator]]
        first = np.array([[1.0], [0.0]])
        points = (-1.0, 1.0) if len(signs) == 1 else (0.0, 2.0)
        values = (1, 0) if operator in NEGATED else (0, 1)
        return self._steps(f"{operator} {number}", Affine.of(dict.fromkeys(signs, first)), points, values)

    def _sign(self, larger: int, smaller: int) -> Space:
        """Return the sign of whether one count is at least another."""
        if (larger, smaller) not in self.signs:
            twice = (self.share(larger) + self.share(smaller) * -1.0) * 2.0 + self.one
            name = f"sign of {larger} ≥ {smaller}"
            if self.spec.lines:
                self.net.lines[name] = self.spec.lines[max(larger, smaller)]
            self.signs[larger, smaller] = sign(self.net, twice, 1.0 / (self.net.max_length + 1), name=name)
        return self.signs[larger, smaller]

    def _number(self, number: int, operator: str, reads: Sequence[int]) -> Affine:
        if operator == "*":
            known, other = reads if reads[0] in self.fixed else reads[::-1]
            return self.share(other) * self.fixed[known]
        if operator == "if":
            return self._chosen(number, self.truth(reads[0]), self.share(reads[1]), self.share(reads[2]))
        parts = [self.share(i) for i in reads]
        if operator == "neg":
            return parts[0] * -1.0
        if operator in ("+", "-"):
            return parts[0] + parts[1] * (1.0 if operator == "+" else -1.0)
        turn, smallest = (1.0 if operator == "min" else -1.0), parts[0]
        for step_index, part in enumerate(parts[1:]):
            smallest = self._smaller(f"{operator} {number}.{step_index}", smallest * turn, part * turn) * turn
        return smallest

    def _chosen(self, number: int, truth: Affine, yes: Affine, no: Affine) -> Affine:
        r"""Return `no` $+ \min(\max(d, -Cf), Cf)$ with $d =$ `yes` $-$ `no`, $|d| \le C$ and the truth value $f$."""
        if not truth.parts:
            return yes if truth.bias[0] else no
        more = yes + no * -1.0
        limit = truth * float(max(more.bound.max(), 1.0))
        above = self._smaller(f"if {number}.0", more * -1.0, limit) * -1.0
        return no + self._smaller(f"if {number}.1", above, limit)

    def _smaller(self, name: str, left: Affine, right: Affine) -> Affine:
        bound = float(max(left.bound.max(), right.bound.max()))
        return Affine.copy(minimum(self.net, left, right, Space(name, Reals(("",), -bound, bound))))


def _not(truth: Affine) -> Affine:
    return Affine.constant(1.0) + truth * -1.0
