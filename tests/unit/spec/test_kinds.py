"""A kind of spec is one module: its declaration is read without importing it, and its class keeps what it promises."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify.errors import InputError, SpecError
from vitrify.registry import Declaration
from vitrify.spec import find_spec, kinds, read_spec
from vitrify.spec.automata.families import cyclic
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.kinds import Meaning, Spec, suffix_of, suffixes
from vitrify.spec.programs.families import shift
from vitrify.spec.programs.program import program

KINDS = {kind.spec.__name__: kind for kind in kinds.kinds()}
SAMPLES: dict[str, Spec] = {
    f"{name}, {sample}": spec for name, kind in KINDS.items() for sample, spec in kind.spec.samples().items()
}
MEANINGS: dict[str, Meaning] = {
    f"{name}, {output}": meaning for name, spec in SAMPLES.items() for output, meaning in spec.meanings().items()
}
READS_NUMBERS = {"Connectivity", "Cpwl", "Maxout", "Scene"}


@pytest.mark.parametrize("name", KINDS)
def test_a_declaration_says_the_same_before_and_after_its_import(name: str) -> None:
    kind = KINDS[name]
    declared = {suffix: entry for suffix, entry in suffixes().items() if entry.name == name}
    assert {suffix: entry.description for suffix, entry in declared.items()} == dict(kind.suffixes)
    assert {entry.module for entry in declared.values()} == {kind.spec.__module__}
    assert issubclass(kind.spec, Spec)
    assert kind.spec.samples()


def test_suffixes_are_listed_without_importing_a_kind() -> None:
    program = """
import sys
from vitrify.spec.kinds import suffixes
assert len(suffixes()) >= 22
loaded = {name for name in sys.modules if name.startswith("vitrify.spec.") and name.count(".") > 2}
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_written_and_read_back(name: str, tmp_path: Path) -> None:
    spec = SAMPLES[name]
    assert suffix_of(f"x{spec.suffix}") == spec.suffix
    spec.write(tmp_path / f"x{spec.suffix}")
    again = read_spec(tmp_path / f"x{spec.suffix}")
    assert type(again) is type(spec)
    again.write(tmp_path / f"y{spec.suffix}")
    assert (tmp_path / f"x{spec.suffix}").read_bytes() == (tmp_path / f"y{spec.suffix}").read_bytes()


def test_every_kind_says_what_networks_that_read_symbols_must_answer() -> None:
    assert {name for name, kind in KINDS.items() if not all(s.meanings() for s in kind.spec.samples().values())} == (
        READS_NUMBERS
    )


def words_of(meaning: Meaning) -> list[tuple[str, ...]]:
    """Short words, listed ones and random ones."""
    rng = np.random.default_rng(0)
    if meaning.language is None:
        return [tuple(rng.choice(meaning.inputs, size=length).tolist()) for length in (0, 1, 2, 5, 12)]
    listed = [tuple(islice(word, 64)) for word in islice(meaning.language.examples(), 3)]
    drawn = [tuple(islice(meaning.language.draw(rng), 64)) for _ in range(3)]
    return [*islice(meaning.language.prefixes(12), 9), *listed, *drawn]


@pytest.mark.parametrize("name", MEANINGS)
def test_there_is_an_answer_of_the_right_kind_after_every_prefix(name: str) -> None:
    meaning, asked = MEANINGS[name], 0
    for word in words_of(meaning):
        assert set(word) <= set(meaning.inputs)
        answers = meaning.after(word)
        assert len(answers) == len(word) + 1
        asked += sum(_right_kind(meaning, answer) for answer in answers)
    assert asked


def _right_kind(meaning: Meaning, answer: Any) -> bool:
    outputs = set(meaning.outputs)
    if answer is None:
        return False
    if meaning.answer == "symbol":
        assert answer in outputs
    elif meaning.answer == "set":
        assert isinstance(answer, frozenset)
        assert answer
        assert answer <= outputs
    elif meaning.answer == "distribution":
        assert isinstance(answer, Mapping)
        assert set(answer) <= outputs
        assert abs(float(sum(answer.values())) - 1) < 1e-6
    else:
        assert isinstance(answer, tuple)
        assert len(answer) == len(meaning.outputs)
        assert all(isinstance(number, float) for number in answer)
    return True


@pytest.mark.parametrize("name", [name for name, meaning in MEANINGS.items() if meaning.language])
def test_prefixes_of_a_language_come_once_short_ones_first(name: str) -> None:
    language = MEANINGS[name].language
    assert language is not None
    for longest in (0, 3):
        words = list(islice(language.prefixes(longest), 2000))
        assert len(set(words)) == len(words)
        assert all(len(a) <= len(b) <= longest for a, b in pairwise([(), *words]))


def test_answers_of_some_kinds_by_hand() -> None:
    def after(spec: Spec, output: str, word: str) -> list[Any]:
        return list(spec.meanings()[output].after(word.split()))

    assert after(cyclic(3), "recognizer", "1 0 1") == ["0", "1", "1", "2"]
    assert after(cyclic(3), "class", "1 0 1") == ["2"] * 4
    assert cyclic(3).meanings()["class"].accepting == cyclic(3).accepting_states
    grammar = Grammar.from_text("S -> 'a' 'b' | 'a'")
    assert after(grammar, "next", "a") == [{"a"}, {"b", "</s>"}]
    assert after(grammar, "lm", "a") == [{"a": 1}, {"b": 0.5, "</s>": 0.5}]
    assert after(program(shift(), "ab", 4), "transducer", "a b") == [None, "none", "a"]  # as the network names it


def declarations(*lines: str) -> list[Declaration]:
    return [Declaration(f"mine.spec.module{i}", ast.parse(line).body[0]) for i, line in enumerate(lines)]


@pytest.mark.parametrize("line", ["KIND = Kind(New, SUFFIXES)", "KIND = kind_of('new')", "KIND = Kind(New)"])
def test_a_declaration_that_cannot_be_read_is_refused(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "declared", lambda *_: declarations(line))
    with pytest.raises(InputError, match=r"mine\.spec\.module0: write KIND = Kind\("):
        suffixes.__wrapped__()


def test_a_suffix_has_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ['KIND = Kind(A, {".a": "first"})', 'KIND = Kind(B, {".b": "second", ".a": "third"})']
    monkeypatch.setattr(kinds, "declared", lambda *_: declarations(*lines))
    with pytest.raises(InputError, match=r"module1 and mine\.spec\.module0 both read \.a files"):
        suffixes.__wrapped__()


def test_the_longest_suffix_that_fits_decides() -> None:
    assert [suffix_of(name) for name in ("x.arpa.gz", "x.arpa", "x.automaton.json", "x.json", "regex")] == [
        ".arpa.gz",
        ".arpa",
        ".automaton.json",
        None,
        None,
    ]


def test_a_name_is_a_file_or_a_family(tmp_path: Path) -> None:
    assert find_spec("cyclic:3") == cyclic(3)
    (tmp_path / "a.regex").write_text("a*")
    assert find_spec(tmp_path / "a.regex") == find_spec(str(tmp_path / "a.regex"))


def test_a_missing_file_with_the_name_of_an_example_names_the_example(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no such file; vitrify comes with .*examples/weather\.arpa"):
        find_spec(tmp_path / "weather.arpa")
