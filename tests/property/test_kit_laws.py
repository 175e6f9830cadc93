"""Laws of the kit over random networks: the assembled net is the interpreted one, and no dimension is used twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from tiny_nets import KINDS, NEED, Floats, Word, held, letters, network
from vitrify.kit.assembly import assemble
from vitrify.kit.gadgets.gate import gate
from vitrify.kit.gadgets.steps import digits, int_lookup, snap
from vitrify.kit.gadgets.table import ANY, table
from vitrify.kit.heads.match import last_marked, recent_match
from vitrify.kit.heads.shift import shift
from vitrify.kit.layout import lay_out
from vitrify.kit.network import Builder, Network, Space
from vitrify.kit.positions import CodeName, PositionCode, position_code
from vitrify.kit.schedule import schedule
from vitrify.net.inference import trace
from vitrify.net.spaces import Flag, Integers, Kind, OneHot, Reals

LENGTH = 5
LETTERS = 3
VALUES = ("x", "y", "z")
CODES: tuple[CodeName, ...] = ("dyadic", "quadratic", "sqrt")
NUMBERS = Integers(("n",), 0.0, 3.0)
ROUNDING = 1e-9  # of a chain of a dozen operations whose gains multiply
Positions = tuple[PositionCode, Space]
Meaning = Callable[
    [dict[str, Floats]], Floats
]  # from the rows [pos, dim] of all earlier spaces to the rows of this one


@dataclass
class Drawing:
    """A network in the making, and what every one of its spaces means."""

    net: Builder
    meanings: dict[str, Meaning] = field(default_factory=dict)
    onehots: list[Space] = field(default_factory=list)
    numbers: list[Space] = field(default_factory=list)
    flags: list[Space] = field(default_factory=list)
    others: list[Space] = field(default_factory=list)

    def keep(self, space: Space, meaning: Meaning) -> None:
        self.meanings[space.name] = meaning
        if space.kind == OneHot(VALUES):
            self.onehots.append(space)
        else:
            {Integers: self.numbers, Flag: self.flags}.get(type(space.kind), self.others).append(space)

    @property
    def all(self) -> list[Space]:
        return [*self.onehots, *self.numbers, *self.flags, *self.others]

    def interpret(self, word: Word) -> dict[str, Floats]:
        """What every space holds at BOS and at each token, by the definitions."""
        rows: dict[str, Floats] = {"": np.array([0, *word], dtype=float)[:, None]}
        for name, meaning in self.meanings.items():
            rows[name] = meaning(rows)
        return rows


def _of_letters(rows: Floats) -> Meaning:
    return lambda seen: rows[seen[""][:, 0].astype(int)]


def back(rows: Floats, offset: int) -> Floats:
    return rows[np.maximum(np.arange(len(rows)) - offset, 0)]


def last_where(right: Callable[[int, int], bool], rows: Floats) -> Floats:
    """Row j of the last position j ≤ t, j ≥ 1 that is right for t; row 0 where there is none."""
    return np.array([rows[max([j for j in range(1, t + 1) if right(t, j)], default=0)] for t in range(len(rows))])


@st.composite
def drawings(draw: st.DrawFn) -> tuple[Drawing, list[Space]]:
    """A random acyclic network and the spaces that its readout reads; what is drawn but not read is left unread."""
    net = Builder("random", letters(LETTERS), LENGTH, draw(st.sampled_from(KINDS)))
    made = Drawing(net)
    codes = np.vstack([np.zeros(3), np.eye(3)])
    counts, marks = np.array([[0.0], [1.0], [3.0], [0.0]]), np.array([[0.0], [0.0], [1.0], [1.0]])
    made.keep(net.embed("token", OneHot(VALUES), codes), _of_letters(codes))
    made.keep(net.embed("number", NUMBERS, counts), _of_letters(counts))
    made.keep(net.embed("mark", Flag(), marks), _of_letters(marks))
    code = position_code(draw(st.sampled_from(CODES)), LENGTH, [1, 2])
    place = net.embed_position("position", code.kind(), code.table())
    for number in range(draw(st.integers(1, 9))):
        step = draw(st.sampled_from([_shift, _table, _gate, _int_lookup, _snap, _digits, _marked, _match]))
        step(draw, made, f"s{number}", (code, place))
    read = draw(st.lists(st.sampled_from(made.all), min_size=1, max_size=3, unique=True))
    return made, read


def _shift(draw: st.DrawFn, made: Drawing, name: str, at: Positions) -> None:
    source, offset = draw(st.sampled_from(made.all)), draw(st.integers(0, 2))
    out = shift(made.net, source, offset, *at, name=name)
    made.keep(out, lambda seen: back(seen[source.name], offset))


def _table(draw: st.DrawFn, made: Drawing, name: str, _: Positions) -> None:
    reads = draw(st.lists(st.sampled_from([*made.onehots, *made.flags]), min_size=1, max_size=2, unique=True))
    options = [range(3) if isinstance(space.kind, OneHot) else range(2) for space in reads]
    first = np.array([[value, *[ANY] * (len(reads) - 1)] for value in options[0]])  # every row asks for another value
    if len(reads) == 2:
        first[:, 1] = draw(st.sampled_from([ANY, *options[1]]))
    chosen = draw(st.lists(st.integers(0, 2), min_size=len(first), max_size=len(first)))
    snapped = draw(st.booleans())
    outputs = np.eye(3)[chosen]
    out = table(made.net, reads, first, Space(name, OneHot(VALUES)), outputs, snap=snapped)

    def meaning(seen: dict[str, Floats]) -> Floats:
        agree = np.ones((len(seen[""]), len(first)), dtype=bool)
        for place, space in enumerate(reads):
            rows = seen[space.name]
            holds = rows if isinstance(space.kind, OneHot) else np.column_stack([1 - rows, rows])
            agree &= (first[:, place] == ANY) | (holds[:, first[:, place]] == 1)
        return agree.astype(float) @ outputs

    made.keep(out, meaning)


def _gate(draw: st.DrawFn, made: Drawing, name: str, _: Positions) -> None:
    flag, value = draw(st.sampled_from(made.flags)), draw(st.sampled_from([*made.onehots, *made.numbers]))
    made.keep(gate(made.net, flag, value, name=name), lambda seen: seen[flag.name] * seen[value.name])


def _int_lookup(draw: st.DrawFn, made: Drawing, name: str, _: Positions) -> None:
    number = draw(st.sampled_from(made.numbers))
    kinds: list[Kind] = [NUMBERS, Flag(), OneHot(VALUES)]
    kind = draw(st.sampled_from(kinds))
    largest = 2 if isinstance(kind, OneHot) else int(kind.high)
    choices = draw(st.lists(st.integers(0, largest), min_size=4, max_size=4))
    values = np.eye(3)[choices] if isinstance(kind, OneHot) else np.array(choices, dtype=float)[:, None]
    out = int_lookup(made.net, number, lambda n: values[n], Space(name, kind))
    made.keep(out, lambda seen: values[np.round(seen[number.name][:, 0]).astype(int)])


def _snap(draw: st.DrawFn, made: Drawing, name: str, _: Positions) -> None:
    source = draw(st.sampled_from([*made.onehots, *made.flags]))
    made.keep(snap(made.net, source, name=name), lambda seen: seen[source.name])


def _digits(_draw: st.DrawFn, made: Drawing, name: str, _: Positions) -> None:
    """A mixture that each letter sets, taken apart: two spaces born at once, of which both, one or none are read."""
    rows = np.array([[0.0], [1 / 3], [1.0], [4 / 3]])
    mixture = made.net.embed(f"{name} mixture", Reals(("x",), 0.0, 2.0), rows)
    made.keep(mixture, _of_letters(rows))
    parts = digits(made.net, mixture, 3.0, (f"{name} high", f"{name} low"), OneHot(("only",)))
    for part, bits in zip(parts, ([0, 0, 1, 1], [0, 1, 0, 1]), strict=True):
        made.keep(part, _of_letters(np.array(bits, dtype=float)[:, None]))


def _marked(draw: st.DrawFn, made: Drawing, name: str, _: Positions) -> None:
    flag, value = made.flags[0], draw(st.sampled_from(made.all))
    out = last_marked(made.net, flag, value, name=name)
    made.keep(out, lambda seen: last_where(lambda _, j: bool(seen[flag.name][j, 0]), seen[value.name]))


def _match(draw: st.DrawFn, made: Drawing, name: str, _: Positions) -> None:
    query, key, value = draw(st.sampled_from(made.onehots)), made.onehots[0], draw(st.sampled_from(made.all))
    out = recent_match(made.net, query, key, value, name=name)
    made.keep(
        out,
        lambda seen: last_where(lambda t, j: bool(seen[query.name][t] @ seen[key.name][j]), seen[value.name]),
    )


def alive(made: Network) -> dict[Space, range]:
    """The moments at which a space must stand undisturbed: until the first MLP that can erase it, if there is one."""
    plan = schedule(made)
    found = {}
    for space, born in plan.born.items():
        readers = [moment for operation, moment in plan.moments.items() if space in operation.reads]
        kept = any(space == read for read, _ in made.readout.parts)
        erasing = (m for m in range(2, plan.end, 2) if m > born and m >= max(readers, default=0) and not kept)
        found[space] = range(born, next(erasing, plan.end))
    return found


some_words = st.lists(st.lists(st.integers(1, LETTERS), max_size=LENGTH).map(tuple), min_size=1, max_size=4)


@pytest.mark.long
@given(drawings())
@settings(deadline=None, max_examples=examples(100))
def test_spaces_that_live_at_once_never_share_a_dimension(drawn: tuple[Drawing, list[Space]]) -> None:
    drawing, read = drawn
    made = network(drawing.net, *read, reuse=True)
    plan, lives = schedule(made), alive(made)
    reused, single = lay_out(plan), lay_out(plan, reuse=False)
    for moment in range(plan.end):
        dims = [dim for space, life in lives.items() if moment in life for dim in reused.dims[space]]
        assert len(dims) == len(set(dims))
    assert reused.width == max(
        sum(space.size for space, life in lives.items() if moment in life) for moment in range(plan.end)
    )
    assert reused.width <= single.width == sum(space.size for space in made.spaces)
    assert sorted(dim for dims in single.dims.values() for dim in dims) == list(range(single.width))


@pytest.mark.long
@given(drawings(), some_words)
@settings(deadline=None, max_examples=examples(100))
def test_the_assembled_net_is_the_interpreted_one(drawn: tuple[Drawing, list[Space]], some: list[Word]) -> None:
    drawing, read = drawn
    meanings = [drawing.interpret(word) for word in some]
    for reuse in (True, False):
        weights = assemble(network(drawing.net, *read, reuse=reuse))
        for found, meaning in zip(held(weights, some), meanings, strict=True):
            expected = np.concatenate([meaning[space.name] for space in read], axis=1)
            assert np.abs(found - expected).max() <= NEED


@pytest.mark.long
@given(drawings(), some_words)
@settings(deadline=None, max_examples=examples(100))
def test_every_space_holds_what_it_means_for_as_long_as_its_label_says(
    drawn: tuple[Drawing, list[Space]], some: list[Word]
) -> None:
    drawing, read = drawn
    weights = assemble(network(drawing.net, *read, reuse=True))
    for word in some[:1]:
        run, meaning = trace(weights, [weights.architecture.inputs[letter] for letter in word]), drawing.interpret(word)
        for label in weights.labels.spaces:
            for moment in range(label.born, label.dies + 1) if label.name in meaning else ():
                rows = run.residual(moment)[:, list(label.dims)]
                assert np.abs(rows - meaning[label.name]).max() <= label.error + ROUNDING, (label.name, moment)


@given(st.data())
@settings(deadline=None, max_examples=examples(20))
def test_the_same_drawing_gives_the_same_bytes(data: st.DataObject) -> None:
    drawing, read = data.draw(drawings())
    made = network(drawing.net, *read, reuse=True)
    assert assemble(made).digest == assemble(made).digest
