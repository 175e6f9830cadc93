"""Every refusal to build a program names a line, and the change that it proposes makes the program build."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cases import each
from vitrify.certification import certify
from vitrify.constructions import _program_functions
from vitrify.constructions.catalogue import build
from vitrify.errors import VitrifyError
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.programs.program import Program

HEAD = "alphabet: a b\nlength: {}\nsees: everything\n\n"
COUNTS = HEAD.format(12) + "x = count(tokens == 'a')\ny = count(tokens == 'b')\n"
DEEP = "".join(f"x{i} = aggregate(select(indices, x{i - 1}), indices, 0)\n" for i in range(1, 400))
SHARES = 'alphabet: a b\nlength: 20\nn := #"a"\nn > #"b"'
LONG: dict[str, Any] = {"mode": "layernorm", "max_length": 60_000, "arithmetic": "float32"}
# class, text, options, line that is named, words of the refusal; the text and options after the change
CASES: dict[str, tuple[type[Any], str, dict[str, Any], int, str, str, dict[str, Any]]] = {
    "a table of too many rows": (
        Program, COUNTS + "return x // (1 + y)\n", {}, 7, "or operations (sums, comparisons, minima)",
        COUNTS + "return x - y\n", {},
    ),
    "words that are longer than the program's": (
        Program, COUNTS + "return x == y\n", {"max_length": 20}, 2, "write 'length: 20' there",
        COUNTS.replace("length: 12", "length: 20") + "return x == y\n", {"max_length": 20},
    ),
    "the same of a counting program": (
        Crasp, SHARES, {"max_length": 30}, 2, "write 'length: 30' there", SHARES.replace("20", "30"),
        {"max_length": 30},
    ),
    "an ambiguous aggregate": (
        Program, HEAD.format(5) + "x = marked(tokens == 'a')\nreturn aggregate(x, indices, 0)\n", {}, 6,
        "take first or last", HEAD.format(5) + "x = marked(tokens == 'a')\nreturn first(x, indices, 0)\n", {},
    ),
    "shares that float32 can't tell apart": (
        Crasp, SHARES, LONG, 4, "or float64", SHARES, LONG | {"arithmetic": "float64"},
    ),
}  # fmt: skip


@each("name", CASES)
def test_a_refusal_names_a_line_and_a_change_that_makes_it_build(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_program_functions, "MAX_TABLE_UNITS", 20)
    kind, text, options, line, change, changed, after = CASES[name]
    with pytest.raises(VitrifyError) as refused:
        build(kind.from_text(text), **options)
    message = str(refused.value)
    named = re.search(r"line '(.*)'|line (\d+)|^(\d+):", message)
    assert named is not None, message
    number = text.splitlines().index(named[1].split("'")[0]) + 1 if named[1] else int(named[2] or named[3])
    assert number == line, message
    assert change in message
    build(kind.from_text(changed), **after)


def test_a_program_is_built_for_shorter_words_than_its_own() -> None:
    spec = Program.from_text(COUNTS + "return x == y\n")
    net = build(spec, max_length=6)
    assert net.architecture.max_length == 6
    assert certify(net, spec).verdict == "holds"


def test_hundreds_of_functions_may_stand_inside_each_other() -> None:
    spec = Program.from_text(HEAD.format(4) + "x0 = indices\n" + DEEP + "return x399\n")
    assert build(spec).sizes.attention_layers == 399
