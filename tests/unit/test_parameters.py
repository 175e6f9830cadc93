"""Parameters: declared by type hints, read from text and JSON, checked when made, described to people."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from vitrify.errors import InputError
from vitrify.parameters import (
    Fault,
    Help,
    Parameterized,
    Within,
    arguments,
    convert,
    described,
    in_words,
    key_values,
    later,
    read,
    sentences,
)


@dataclass(frozen=True)
class Chain(Parameterized):
    TRACED: ClassVar[tuple[str, ...]] = ("p",)

    states: Annotated[int, Within(2, 64), Help("states of the chain")]
    p: Annotated[float, Within(0, 1, "()")] = 0.5
    start: Literal["fixed", "random"] = "fixed"
    clip: Annotated[float | None, Within(0, ends="(]")] = None
    orders: tuple[Annotated[int, Within(1)], ...] = (1, 2)
    closed: bool = False
    seed: int = later(0)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.states < len(self.orders):
            yield "states", f"must be at least the number of orders, {len(self.orders)}, not {self.states}"


@dataclass(frozen=True)
class Part:
    width: Annotated[int, Within(1)]
    kind: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    extra: Part | None = None
    rate: float = 0.0
    names: tuple[str, ...] = field(default_factory=tuple)


def build(spec: str, *, max_length: Annotated[int | None, Within(1), Help("longest input")] = None, width: int) -> str:
    return f"{spec} {max_length} {width}"


def faults_of(kind: Any, given: Any, **how: Any) -> list[str]:
    faults: list[Fault] = []
    convert(kind, given, ("net",), faults, **how)
    return sentences(faults)


def test_every_broken_rule_is_told_at_once_with_range_and_value() -> None:
    with pytest.raises(InputError) as error:
        Chain(states=1, p=1.0, start="no", clip=0, orders=(1, 0), closed=1)  # type: ignore[arg-type]
    assert str(error.value) == (
        "no such test_parameters: states must be a whole number from 2 to 64, not 1; "
        'p must be a number above 0 and below 1, not 1.0; start must be one of fixed, random, not "no"; '
        "clip must be a number above 0 or none, not 0; orders.1 must be a whole number of at least 1, not 0; "
        "closed must be true or false, not 1"
    )


def test_rules_between_fields_come_after_those_of_single_fields() -> None:
    with pytest.raises(InputError, match="states must be at least the number of orders, 3, not 2"):
        Chain(states=2, orders=(1, 2, 3))
    with pytest.raises(InputError) as error:
        Chain(states=1, orders=(1, 2, 3))
    assert "orders" not in str(error.value)


@each("number", [True, 2.0, "2", None, np.array(2)])
def test_only_whole_numbers_are_whole_numbers(number: Any) -> None:
    with pytest.raises(InputError, match="states must be a whole number"):
        Chain(states=number)
    assert Chain(states=np.int64(2)).states == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_range_holds_finite_numbers_only(number: float) -> None:
    assert number not in Within()
    assert number not in Within(0)
    with pytest.raises(InputError, match="p must be"):
        Chain(states=2, p=number)


def test_a_range_may_be_asked_for_a_number_that_no_float_holds() -> None:
    assert 10**400 in Within(0)
    assert 10**400 not in Within(0, 5)
    assert -(10**400) not in Within(0)


@given(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3), st.sampled_from(["[]", "(]", "[)", "()"]))
def test_ends_of_a_range_are_in_or_out_as_written(low: int, high: int, number: int, ends: Any) -> None:
    lower = number > low if ends[0] == "(" else number >= low
    upper = number < high if ends[1] == ")" else number <= high
    assert (number in Within(low, high, ends)) == (lower and upper)
    assert (number in Within(low, ends=ends)) == lower
    assert (number in Within(high=high, ends=ends)) == upper


@pytest.mark.jax
def test_traced_fields_may_be_jax_values_inside_a_compiled_program() -> None:
    import jax

    assert float(jax.jit(lambda p: Chain(states=1 + 1, orders=(1, 1, 1), p=p).p * 2)(3.0)) == 6.0
    with pytest.raises(InputError, match="states must be"):
        jax.jit(lambda p: Chain(states=0, p=p).p)(3.0)


def test_text_is_read_as_what_is_declared() -> None:
    text = {"states": "3", "p": "0.25", "start": "random", "clip": "none", "orders": "1,2,3", "closed": "Yes"}
    assert Chain(**arguments(Chain, text, "chain")) == Chain(3, 0.25, "random", None, (1, 2, 3), True)
    assert repr(arguments(Whole, {"parts": (), "rate": 1}, "whole")["rate"]) == "1.0"


def test_unknown_missing_and_wrong_parameters_are_named_together() -> None:
    with pytest.raises(InputError) as error:
        arguments(Chain, {"state": "3", "p": "x", "start": "no"}, "sandbox chain")
    told = str(error.value)
    assert told.startswith("sandbox chain: state is not a parameter; there are: states, p, start, clip, orders")
    assert "states is missing: states of the chain, a whole number from 2 to 64" in told
    assert "p must be a number above 0 and below 1, not x" in told
    assert "start must be one of fixed, random, not no" in told


def test_words_of_a_command_line_are_key_and_value() -> None:
    assert key_values(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}
    with pytest.raises(InputError, match=r"given as key=value, not 'c'; a is given twice"):
        key_values(["a=1", "c", "a=2"])


def test_a_value_of_another_class_is_read_by_its_name() -> None:
    part = Part(1)
    assert convert(Part | None, "file", (), [], text=True, find=lambda _: part) is part
    assert convert(Part | None, "none", (), [], text=True, find=lambda _: part) is None
    told = faults_of(Part | None, "file", text=True, find=lambda _: Within())
    assert told == ["net must be of type Part or none, not a value of type Within"]


def test_json_becomes_nested_values_and_faults_name_their_place() -> None:
    data = {"parts": [{"width": 1}, {"width": 2, "kind": "b"}], "extra": {"width": 3}, "names": ["x"]}
    assert convert(Whole, data, (), []) == Whole((Part(1), Part(2, "b")), Part(3), 0.0, ("x",))
    assert faults_of(Whole, {"parts": [{"width": 0}, {"kind": "c", "wide": 1}], "extra": 4, "rate": "1"}) == [
        "net.parts.0.width must be a whole number of at least 1, not 0",
        "net.parts.1.wide is not a parameter; there are: width, kind",
        "net.parts.1.width is missing: a whole number of at least 1",
        'net.parts.1.kind must be one of a, b, not "c"',
        "net.extra must be of type Part or none, not 4",
        'net.rate must be a number, not "1"',
    ]
    assert faults_of(Whole, {"parts": [], "extra": {}}) == ["net.extra.width is missing: a whole number of at least 1"]
    assert faults_of(tuple[int, str], [1]) == ["net must be a list of 2: a whole number, a text, not [1]"]


def test_strings_of_json_are_not_numbers() -> None:
    assert faults_of(int, "3") == ['net must be a whole number, not "3"']
    assert faults_of(bool, "true") == ['net must be true or false, not "true"']
    assert faults_of(int | None, "none") == ['net must be a whole number or none, not "none"']


def test_a_function_is_described_by_its_keyword_only_parameters() -> None:
    length, width = described(build)
    assert (length.name, length.allowed, length.help) == (
        "max_length",
        "a whole number of at least 1 or none",
        "longest input",
    )
    assert (length.type, length.within, length.default, width.required) == (int, Within(1), None, True)
    assert build("x", **arguments(build, {"width": "2", "max_length": "8"}, "build")) == "x 8 2"


def test_parameters_are_data_for_forms() -> None:
    told = {parameter.name: parameter.to_json() for parameter in described(Chain)}
    assert told["states"] == {
        "name": "states",
        "kind": "int",
        "allowed": "a whole number from 2 to 64",
        "help": "states of the chain",
        "required": True,
        "low": 2,
        "high": 64,
        "choices": [],
        "default": None,
    }
    assert (told["start"]["kind"], told["start"]["choices"], told["start"]["default"]) == (
        "choice",
        ["fixed", "random"],
        "fixed",
    )
    assert (told["orders"]["kind"], told["orders"]["default"]) == ("text", [1, 2])
    assert in_words(tuple[int, ...] | str) == "a list, each entry a whole number or a text"


def test_values_that_are_read_have_no_wrong_field() -> None:
    faults: list[Fault] = []
    assert read(described(Chain), {"states": 99}, faults) == {"states": None}
    assert faults == [(("states",), "(states of the chain) must be a whole number from 2 to 64, not 99")]


def test_the_kit_is_cheap_and_imports_no_numbers() -> None:
    program = "import sys, vitrify.parameters; assert not {'numpy', 'jax', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


Length = Annotated[int, Within(1), Help("longest input")]


def shortened(*, max_length: Length | None = None) -> None:
    del max_length


def test_help_and_range_of_what_may_be_none() -> None:
    (parameter,) = described(shortened)
    assert (parameter.help, parameter.within, parameter.type) == ("longest input", Within(1), int)


Table = Mapping[str, Annotated[tuple[int, ...], Within(1, 2)]]


def test_mappings_and_lengths_are_declared_too() -> None:
    assert convert(Table, {"a": [1], "b": [1, 2]}, (), []) == {"a": (1,), "b": (1, 2)}
    faults: list[Fault] = []
    assert convert(Table, {"a": [], "b": ["1"], "c": 3}, ("t",), faults) == {"a": None, "b": (None,), "c": None}
    assert sentences(faults) == [
        "t.a must be a list from 1 to 2, each entry a whole number, not []",
        't.b.0 must be a whole number, not "1"',
        "t.c must be a list from 1 to 2, each entry a whole number, not 3",
    ]
    assert faults_of(Annotated[Table, Within(1)], {}) == [
        "net must be a table of at least 1, each entry a list from 1 to 2, each entry a whole number, not {}"
    ]


def test_an_alternative_is_chosen_by_the_kind_of_its_data() -> None:
    hint = Mapping[str, str] | tuple[tuple[str, int], ...]
    assert convert(hint, [["a", 1]], (), []) == (("a", 1),)
    assert faults_of(hint, [["a", "b"]]) == ['net.0.1 must be a whole number, not "b"']
    assert faults_of(hint, {"a": 1.5}) == ['net.a must be a text, not 1.5; write "1.5"']
    assert faults_of(hint, True)[0].startswith(
        "net must be a table, each entry a text or a list, each entry a list of 2"
    )


def test_long_values_are_cut_and_huge_numbers_refused() -> None:
    assert faults_of(int, "x" * 500) == ['net must be a whole number, not "' + "x" * 79 + "…"]
    assert faults_of(float, 10**400)[0].startswith("net must be a number, not 1000")
    assert faults_of(tuple[Part, ...], 3) == ["net must be a list, each entry a table with width, kind, not 3"]


def test_a_table_is_asked_for_where_data_stand_and_a_class_where_another_value_stands() -> None:
    assert faults_of(Part, 3) == ["net must be a table with width, kind, not 3"]
    assert faults_of(Part, Within()) == ["net must be of type Part, not a value of type Within"]
