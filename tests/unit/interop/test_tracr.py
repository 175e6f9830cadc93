"""Programs of Tracr from their own source: read, compiled, and right by what plain Python says."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cases import each
from command_line import vitrify
from tracr_programs import CASES
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError, SpecError
from vitrify.interop.tracr.reader import from_tracr
from vitrify.net.inference import batch_logits
from vitrify.spec.programs.program import Program

LIBRARY = Path(__file__).parents[3] / "examples" / "tracr" / "library.py"
ALL, RANDOM = 6, 200  # all words to this length; random words of full length


@pytest.mark.long
@each("name", list(CASES))
def test_a_program_of_tracr_is_compiled_and_right_on_all_words_to_length_6(name: str) -> None:
    case = CASES[name]
    symbols = list(case.symbols)
    spec = from_tracr(f"{LIBRARY}:{name}", symbols, case.length)
    net = build(spec)
    kind, domain = net.architecture.output.kind, spec.values[spec.root]
    letters = {str(symbol): number for number, symbol in enumerate(symbols)}
    rng = np.random.default_rng(0)
    batches = [
        np.array(list(product(range(len(symbols)), repeat=size))) for size in range(1, min(ALL, case.length) + 1)
    ]
    batches.append(rng.integers(0, len(symbols), size=(RANDOM, case.length)))
    order = np.array([net.architecture.inputs.index(text) for text in letters])
    for words in batches:
        rows = np.concatenate([np.zeros((len(words), 1), np.int64), order[words]], axis=1)
        found = batch_logits(net, rows)[:, 1:]
        for word, logits in zip(words.tolist(), found, strict=True):
            read = [symbols[number] for number in word]
            if not case.legal(read):
                continue
            wanted = case.means(read)
            if kind == "values":
                np.testing.assert_allclose(logits[:, 0], [float(value) for value in wanted], atol=1e-9)
            else:
                assert [domain[index] for index in logits.argmax(axis=-1)] == wanted, read


def test_names_become_labels_and_sums_stay_free() -> None:
    spec = from_tracr(f"{LIBRARY}:reverse", "abc", 5)
    net = build(spec)
    assert {"reverse", "length"} <= {space.name for space in net.labels.spaces}
    assert "opposite" in spec.to_text()
    assert Program.from_text(spec.to_text()).root is spec.root


def test_a_call_of_the_compiler_gives_symbols_and_length_and_runs_a_net_of_ours() -> None:
    spec = from_tracr(LIBRARY.with_name("readme.py"))  # has an assertion on what the net answers
    assert (spec.alphabet, spec.length, spec.causal) == (("1", "2", "3"), 5, False)
    assert spec(["1", "2", "3"]) == [3, 2, 1]
    assert not [name for name in sys.modules if name.partition(".")[0] == "tracr"]


def written(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "mine.py"
    path.write_text("from tracr.rasp import rasp\n" + "\n".join(lines), encoding="utf-8")
    return f"{path}:made"


def test_causal_programs_see_nothing_to_the_right(tmp_path: Path) -> None:
    source = written(tmp_path, "made = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE))")
    assert from_tracr(source, "ab", 4, causal=True)(list("abab")) == [1, 2, 3, 4]
    assert from_tracr(source, "ab", 4)(list("abab")) == [4, 4, 4, 4]


def test_a_division_by_zero_has_no_value_and_floats_are_fractions(tmp_path: Path) -> None:
    source = written(tmp_path, "made = rasp.SequenceMap(lambda x, y: x / y / 3, rasp.tokens, rasp.indices)")
    assert list(map(str, from_tracr(source, (1, 2), 3)(["1", "2", "1"]))) == ["None", "2/3", "1/6"]


def test_an_aggregate_of_numbers_that_disagree_is_their_mean(tmp_path: Path) -> None:
    lines = (
        "all_ = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.TRUE)",
        "made = rasp.Aggregate(all_, rasp.tokens)",
    )
    spec = from_tracr(written(tmp_path, *lines), (1, 2), 4)
    assert list(map(str, spec(["1", "2", "2"]))) == ["5/3"] * 3
    assert build(spec).architecture.output.kind == "values"


def test_an_expression_is_evaluated_when_it_is_called(tmp_path: Path) -> None:
    lines = "same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)", "made = rasp.SelectorWidth(same)"
    source = written(
        tmp_path, *lines, "assert made('abac') == [2, 1, 2, 1]", "assert rasp.evaluate(made, 'aa') == [2, 2]"
    )
    assert from_tracr(source, "ab", 4)(list("aab")) == [2, 2, 1]


PAIRS = "pairs = rasp.SequenceMap(lambda x, y: (x, y), rasp.tokens, rasp.tokens)"
EQ = "rasp.Comparison.EQ"


def test_a_predicate_that_refuses_none_selects_nothing_there_even_among_tuples(tmp_path: Path) -> None:
    lines = (
        PAIRS,
        "before = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query - 1)",
        "previous = rasp.Aggregate(before, pairs)",  # None at the first position
        "made = rasp.SelectorWidth(rasp.Select(previous, rasp.tokens, lambda key, query: key[0] == query))",
    )
    assert from_tracr(written(tmp_path, *lines), "ab", 4)(list("aab")) == [2, 2, 0]
    lines = (*lines[:3], f"made = rasp.SelectorWidth(rasp.Select(previous, previous, {EQ}))")
    assert from_tracr(written(tmp_path, *lines), "ab", 4)(list("aaab")) == [0, 3, 3, 3]


def test_constants_and_defaults_may_be_tuples(tmp_path: Path) -> None:
    lines = (
        PAIRS,
        "before = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key == query - 1)",
        "previous = rasp.Aggregate(before, pairs, default=DEFAULT)",
        "made = rasp.SequenceMap(lambda x, y: str(x) + str(y[1]), previous, rasp.Full(('a', 7)))",
    )
    for default, at_first in (("(0, 0)", "(0, 0)7"), ("0", "07"), ("None", None)):
        text = "\n".join(lines).replace("DEFAULT", default)
        spec = from_tracr(written(tmp_path, text), "ab", 4)
        assert spec(list("ab")) == [at_first, "('a', 'a')7"]


def test_a_string_is_no_tuple_that_is_written_like_it(tmp_path: Path) -> None:
    lines = (
        PAIRS,
        "text = rasp.Map(lambda x: '(1, 1)', rasp.tokens)",
        f"made = rasp.SelectorWidth(rasp.Select(pairs, text, {EQ}))",
    )
    assert from_tracr(written(tmp_path, *lines), (1, 2), 3)(["1", "1"]) == [0, 0]


def test_a_float_is_the_closest_fraction_or_what_its_bits_say(tmp_path: Path) -> None:
    for text, value in (("5e-10", "0"), ("0.1", "1/10"), ("2.5e-8", str(Fraction(2.5e-8)))):
        source = written(tmp_path, f"made = rasp.Map(lambda x: {text}, rasp.tokens)")
        assert [str(v) for v in from_tracr(source, "a", 1)(["a"])] == [value]


CALLS = """
from tracr.compiler import compiling
made = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE))
other = rasp.tokens
model = compiling.compile_rasp_to_model(made, {"a", "b"}, 5, mlp_exactness=50)
short = compiling.compile_rasp_to_model(other, {"a"}, 2, causal=True)
def build(): return short
assert model.apply(["compiler_bos", "a", "b"]).decoded == [compiling.COMPILER_BOS, 2, 2]
"""


def test_what_the_compiler_returned_is_named_and_lends_its_settings_to_its_program_alone(tmp_path: Path) -> None:
    file = written(tmp_path, CALLS).rpartition(":")[0]
    for name, settings in (
        ("made", (("a", "b"), 5, False)),
        ("model", (("a", "b"), 5, False)),
        ("other", (("a",), 2, True)),
        ("build", (("a",), 2, True)),
    ):
        spec = from_tracr(f"{file}:{name}")
        assert (spec.alphabet, spec.length, spec.causal) == settings
    assert from_tracr(f"{file}:model", "abc", 3).alphabet == ("a", "b", "c")
    readme = LIBRARY.with_name("readme.py")
    with pytest.raises(InputError, match="neither symbols nor a length: give both"):
        from_tracr(f"{readme}:make_length")  # another program is compiled there
    with pytest.raises(InputError, match=r"name an SOp \(made, other, model, short\), what compile_rasp_to_model"):
        from_tracr(f"{file}:none")


WRONG = {
    "made = rasp.Map(lambda x: x + 1, rasp.tokens)": (SpecError, "map fails on 'a': TypeError"),
    "made = rasp.SequenceMap(lambda x, i: {'a': [1], 'b': [1, 2, 3, 4]}[x][i], rasp.tokens, rasp.indices)": (
        SpecError,
        "map fails on 'a', 1: IndexError: .*; a function must accept every combination of values of its arguments",
    ),
    "made = rasp.Map(lambda x: 1 / 0, rasp.tokens)\nmade = made +": (SpecError, "mine.py:3: SyntaxError"),
    "x = 1\nraise SystemExit('stop')": (SpecError, "mine.py:3: SystemExit: stop"),
    "made = rasp.Select(rasp.tokens, 'a', rasp.Comparison.EQ)": (SpecError, "mine.py:2: TypeError: 'a' must be values"),
    "made = 3": (InputError, "made is a int; name an SOp"),
    "other = rasp.tokens": (InputError, r"made is not there; name an SOp \(other\)"),
    "made = rasp.Map(lambda x: (x, x), rasp.tokens)": (SpecError, "its result has others"),
    "made = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.EQ), rasp.tokens, default=())": (
        SpecError,
        "a default must be a value like those that are selected: .. is no number",
    ),
    "made = rasp.Map(lambda x: float('inf'), rasp.tokens)": (SpecError, "its numbers must be finite"),
    "all_ = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)\nmade = rasp.Aggregate(all_, rasp.tokens)": (
        SpecError,
        "an aggregate is ambiguous",
    ),
}


@each("text", WRONG)
def test_what_is_wrong_is_one_message_with_the_line(text: str, tmp_path: Path) -> None:
    kind, message = WRONG[text]
    with pytest.raises(kind, match=message):
        build(from_tracr(written(tmp_path, text), "ab", 4))


def test_the_command_line_builds_and_certifies_a_program_of_tracr(tmp_path: Path) -> None:
    command = ["build", f"{LIBRARY}:reverse", "--symbols", "a,b,c", "--max-length", "6", "-o", str(tmp_path / "net")]
    done = vitrify(*command, "--certify", "--json")
    assert json.loads(done.stdout)["verdict"] == "holds"
    assert Program.read(tmp_path / "net" / "spec.rasp")(list("abc")) == list("cba")
    assert vitrify("build", LIBRARY.with_name("readme.py"), "-o", tmp_path / "other").returncode == 0
    done = vitrify(*command[:2], "-o", tmp_path / "third")
    assert (done.returncode, "neither symbols nor a length" in done.stderr) == (2, True)


def test_symbols_and_length_are_needed() -> None:
    missing = {"neither symbols nor a length": (None, None), "no length": ("ab", None), "no symbols": (None, 3)}
    for what, (letters, longest) in missing.items():
        with pytest.raises(InputError, match=f"the program has {what}: give both"):
            from_tracr(f"{LIBRARY}:reverse", letters, longest)
    for symbols, length, given in (((), 3, "0 symbols"), ("ab", 0, "the length 0"), ([(1, 2)], 3, "symbol .1, 2.")):
        with pytest.raises(InputError, match=given):
            from_tracr(f"{LIBRARY}:reverse", symbols, length)
    with pytest.raises(InputError, match="two symbols are written in the same way"):
        from_tracr(f"{LIBRARY}:reverse", (1, "1"), 3)
    with pytest.raises(InputError, match="is no such file"):
        from_tracr("nowhere.py:reverse", "ab", 3)
