r"""The ideal of a transformer as a logic program: where is a dimension of the residual stream positive?

The program exists if the ideal is of the following kind, which is checked on the weights. No step rests on labels.

- A dimension is written once: by the embedding of tokens (0 or 1), by that of positions (0 or 1), by a head, or by the
  units of one block. So all values are whole numbers from 0 on, and *bits* are those that are at most 1.
- A head's scores are a matter of positions alone, and one key wins: it *copies* a dimension from that position, or
  from a pad, which is a constant.
- Units that read the same sum $s = \sum_i w_i x_i$, $w_i > 0$, write a function $g(s)$ that is one of three:

| kind | reads | $g(s)$ |
| --- | --- | --- |
| all | bits | 0 unless all are 1, then $c$ |
| some | whole numbers, with equal weights | 0 if all are 0, else $c$ |
| gate | bits and one number $x \le U$ | 0 unless all bits are 1, then $c x$ |

- A logit is its bias plus positive multiples of some dimensions, and positive iff one of them is.

Then a dimension of units is positive at a position iff one of its *rows*, sets of dimensions, is: all of its dimensions
are positive there. What a head copies is positive iff its source was, at an earlier position.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.equivalence.ideal import HeadRule, Ideal
from vitrify.certification.margins.values import Undecided

WHOLE_NUMBER_ERROR = 1e-9  # computed values this near to whole numbers are whole
PAD_ERROR = 1e-6  # the same at pads, which soft heads have read
NOTHING = -1  # source of what is 0 at all tokens, and only not at pads
MIN_LOGIT = 1e-3  # distance of every logit from 0

Node = tuple[int, int]  # a dimension, and the number of tokens up to its position
Row = tuple[int, ...]  # dimensions


@dataclass(eq=False)
class ClauseProgram:
    """The logic program of an ideal, for positions 1, …, `longest` (the number of tokens read).

    - `words[d]`: the tokens whose embedding is 1 in dimension d.
    - `held[d]` [position]: where the embedding of positions is 1, from position 1 on.
    - `rows[d]`: the rows of a dimension that units write.
    - `copied[d]`: the source of a dimension that a head writes, its position by position (0 is a pad), and whether it
      is positive at a pad, by position.
    - `born[d]`: when a dimension is written: 0 at the beginning, then one more for each half of a block.
    - `most[d]`: its largest value.
    - `said[symbol]`: the dimensions of which one is positive iff the logit is.
    """

    longest: int
    words: dict[int, frozenset[int]] = field(default_factory=dict)
    held: dict[int, Bools] = field(default_factory=dict)
    rows: dict[int, list[Row]] = field(default_factory=dict)
    copied: dict[int, tuple[int, Ints, Bools]] = field(default_factory=dict)
    born: dict[int, int] = field(default_factory=dict)
    most: dict[int, int] = field(default_factory=lambda: {NOTHING: 0})
    said: list[Row] = field(default_factory=list)

    @classmethod
    def of(cls, ideal: Ideal) -> ClauseProgram:
        """Return the program of an ideal; `Undecided` if it has none."""
        if any(rule.head.mask not in ("causal", "strict") for rule in ideal.rules):
            raise Undecided("a head that sees later positions is not followed by clauses")
        program = cls(ideal.longest)
        program._embedding(ideal)
        for index, block in enumerate(ideal.blocks):
            if len(block.gone):
                raise Undecided("dimensions that are erased and used again are not followed by clauses")
            for head in block.heads:
                program._head(ideal, head, 2 * index + 1)
            if block.units:
                program._units(block.units, 2 * index + 2)
        program._readout(ideal)
        return program

    def node(self, dim: int, at: int) -> Node | bool:
        """Return the node that a dimension at a position is copied from in the end, or its constant truth."""
        while dim in self.copied:
            source, places, pads = self.copied[dim]
            if not places[at - 1] or source == NOTHING:
                return not places[at - 1] and bool(pads[at - 1])
            dim, at = source, int(places[at - 1])
        return bool(self.held[dim][at - 1]) if dim in self.held else (dim, at)

    def _bear(self, dim: int, moment: int, most: int) -> None:
        if dim in self.born:
            raise Undecided(f"dimension {dim} is written twice")
        self.born[dim], self.most[dim] = moment, most

    def _embedding(self, ideal: Ideal) -> None:
        tokens, places = ideal.embed[1:], ideal.places[0] + ideal.steady
        for dim in np.flatnonzero(tokens.any(axis=0)).tolist():
            if places[:, dim].any() or not np.isin(tokens[:, dim], (0.0, 1.0)).all():
                raise Undecided(f"dimension {dim} of the embedding holds other numbers than 0 and 1")
            self._bear(dim, 0, 1)
            self.words[dim] = frozenset((np.flatnonzero(tokens[:, dim]) + 1).tolist())
        self._codes: set[int] = set()  # dimensions of positions that heads may compare, and nothing else may read
        for dim in np.flatnonzero(places.any(axis=0)).tolist():
            if np.isin(places[:, dim], (0.0, 1.0)).all():
                self._bear(dim, 0, 1)
                self.held[dim] = places[:, dim] == 1.0
            else:
                self.born[dim] = 0
                self._codes.add(dim)

    def _contents(self) -> list[int]:
        """Return the dimensions that a word may change."""
        return [dim for dim in self.born if dim not in self.held and dim not in self._codes]

    def _head(self, ideal: Ideal, head: HeadRule, moment: int) -> None:
        sources: dict[int, list[tuple[int, float]]] = {}
        for source, dim in zip(*map(np.ndarray.tolist, head.values.nonzero()), strict=True):
            sources.setdefault(dim, []).append((source, float(head.values[source, dim])))
        targets = {*sources, *np.flatnonzero((head.b_v != 0) | head.pad_values.any(axis=0)).tolist()}
        if not targets:
            return
        places, winners = self._sources(ideal, head)
        pads = head.pad_values[winners]  # [position, dim]; no matter where a letter wins
        for dim in sorted(targets):
            read = [(part, weight) for part, weight in sources.get(dim, ()) if self.born.get(part, moment) < moment]
            source, weight = read[0] if read else (NOTHING, 1.0)
            if len(read) > 1 or source not in self.most or weight != 1.0 or head.b_v[dim]:
                raise Undecided(f"dimension {dim}, written by a head, is no copy of another one")
            values = np.where(places == 0, pads[:, dim], 0.0)
            whole = np.round(values)
            if np.abs(values - whole).max(initial=0.0) > PAD_ERROR or whole.min(initial=0.0) < 0:
                raise Undecided(f"dimension {dim}, read at a pad, holds no whole number")
            self._bear(dim, moment, max(self.most[source], int(whole.max(initial=0.0))))
            self.copied[dim] = source, places, whole > 0

    def _sources(self, ideal: Ideal, head: HeadRule) -> tuple[Ints, Ints]:
        """Return the position that a head reads at each position, 0 for a pad, and the pad with the best score."""
        contents = self._contents()
        if head.q[contents].any() or head.k[contents].any() or head.averages or head.window is not None:
            raise Undecided("a head selects by contents, or averages: it is no copy")
        winner, pads = head.winners(ideal.steady @ head.k, ideal.steady @ head.q)
        if (pads[winner < 0].sum(axis=1) > 1).any():
            raise Undecided("the best keys of a head tie")
        return winner + 1, pads.argmax(axis=1)

    def _units(self, units: tuple[Floats, ...], moment: int) -> None:
        w_in, b_in, w_out, b_out = units
        if b_out.any():
            raise Undecided("units that add constants are not followed by clauses")
        written = []
        for dim in np.flatnonzero(w_out.any(axis=0)).tolist():
            groups: dict[bytes, list[int]] = {}
            for unit in np.flatnonzero(w_out[:, dim]).tolist():
                groups.setdefault(w_in[:, unit].tobytes(), []).append(unit)
            rows, most = list[Row](), 0
            for group in groups.values():
                column = np.flatnonzero(w_in[:, group[0]]).tolist()
                read = tuple(d for d in column if self.born.get(d, moment) < moment and self.most.get(d) != 0)
                if any(source not in self.most for source in read):
                    raise Undecided(f"the units of dimension {dim} read what is not known to be whole")
                more, value = self._group(read, w_in[list(read), group[0]], b_in[group], w_out[group, dim])
                rows += more
                most += value
            written.append((dim, rows, most))
        for dim, rows, most in written:
            self._bear(dim, moment, most)
            self.rows[dim] = rows

    def _group(self, read: Row, weight: Floats, bias: Floats, out: Floats) -> tuple[list[Row], int]:
        """Return the rows of units that read the same sum, and the most that they write together."""

        def g(s: Floats | float) -> Floats:
            return np.maximum(np.asarray(s)[..., None] + bias, 0.0) @ out

        most = np.array([self.most[dim] for dim in read], dtype=float)
        first = float(-bias.max())  # where g leaves 0
        if (weight <= 0).any():
            raise Undecided("units with negative weights are not followed by clauses")
        total = float(weight.sum())
        if first >= float(weight @ most):
            return [], 0
        if not len(read):
            raise Undecided("units that read nothing write a constant")
        if (most == 1).all() and first >= total - weight.min() - WHOLE_NUMBER_ERROR:  # all
            return [read], _whole(float(g(total)))
        numbers = np.arange(1, int(most.sum()) + 1) * weight[0]
        if np.ptp(weight) == 0 and first >= -WHOLE_NUMBER_ERROR and np.ptp(g(numbers)) <= WHOLE_NUMBER_ERROR:  # some
            return [(dim,) for dim in read], _whole(float(g(weight[0])))
        number = int(np.argmax(most))
        bits = np.delete(weight, number)
        single = len(bias) == 1 and (np.delete(most, number) == 1).all()
        if (
            single and abs(first - bits.sum()) <= WHOLE_NUMBER_ERROR and (bits >= weight[number] * most[number]).all()
        ):  # gate
            return [read], _whole(float(out[0] * weight[number])) * int(most[number])
        raise Undecided("units compute neither a conjunction, nor a disjunction, nor a gate")

    def _readout(self, ideal: Ideal) -> None:
        for symbol, bias in enumerate(ideal.b_u.tolist()):
            read = [d for d in np.flatnonzero(ideal.w_u[:, symbol]).tolist() if d in self.born]
            weights = ideal.w_u[read, symbol]
            if bias > -MIN_LOGIT or (weights + bias < MIN_LOGIT).any() or any(d not in self.most for d in read):
                raise Undecided("a logit is not positive exactly where one of its dimensions is")
            self.said.append(tuple(read))


def _whole(value: float) -> int:
    if value < 0.5 or abs(value - round(value)) > WHOLE_NUMBER_ERROR:
        raise Undecided(f"units write {value:.6g}, which is no positive whole number")
    return round(value)


@dataclass(eq=False)
class _Position:
    """The rows at one position: what they write, how many nodes each needs, and which rows read a node."""

    writes: list[int] = field(default_factory=list)
    needs: list[int] = field(default_factory=list)
    readers: dict[Node, list[int]] = field(default_factory=dict)


class Truth:
    """Consequences of nodes that are known to be positive, by the rows of a program.

    With `pads`, what heads read from pads and what positions set counts, too; else only what comes from tokens.
    """

    def __init__(self, program: ClauseProgram, *, pads: bool = True) -> None:
        self.program, self.pads = program, pads
        self._positions: dict[int, _Position] = {}
        self._implied: dict[Node, frozenset[Node]] = {}

    def implied(self, node: Node) -> frozenset[Node]:
        """Return nodes that are positive wherever a node is: what follows from it, and what all of its rows imply."""
        if node not in self._implied:
            dim, at = node
            every: frozenset[Node] | None = None if dim in self.program.rows else frozenset({node})
            for row in self.program.rows.get(dim, ()):
                nodes = {self.program.node(part, at) for part in row}
                if False not in nodes:
                    own = frozenset(part for part in nodes if not isinstance(part, bool))
                    own = own.union(*map(self.implied, own))
                    every = own if every is None else every & own
            every = (every or frozenset()) | {node}
            self._implied[node] = every | {(dim, at) for dim in self.after(at, every)}
        return self._implied[node]

    def after(self, at: int, known: Iterable[Node]) -> frozenset[int]:
        """Return the dimensions of words and units that are positive at a position if some nodes are."""
        here = self._position(at)
        left: dict[int, int] = {}
        true = {dim for dim, needs in zip(here.writes, here.needs, strict=True) if not needs}
        nodes = [*known, *((dim, at) for dim in true)]
        true |= {dim for dim, where in nodes if where == at}
        for node in nodes:  # the list grows during this loop
            for row in here.readers.get(node, ()):
                left[row] = left.get(row, here.needs[row]) - 1
                if not left[row] and here.writes[row] not in true:
                    true.add(here.writes[row])
                    nodes.append((here.writes[row], at))
        return frozenset(true)

    def _position(self, at: int) -> _Position:
        if at not in self._positions:
            self._positions[at] = position = _Position()
            for dim, rows in self.program.rows.items():
                for row in rows:
                    nodes = {self.program.node(part, at) for part in row}
                    if False in nodes or (True in nodes and not self.pads):
                        continue
                    nodes.discard(True)
                    for node in nodes:
                        assert not isinstance(node, bool)
                        position.readers.setdefault(node, []).append(len(position.writes))
                    position.writes.append(dim)
                    position.needs.append(len(nodes))
        return self._positions[at]
