"""ARPA files: what real ones look like, what broken ones are told, and real text against a second evaluator."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from cases import each
from corpora import pydoc_sentences
from oracles.arpa_evaluator import ArpaEvaluator
from vitrify.errors import SpecError, SpecWarning
from vitrify.spec.ngrams import arpa
from vitrify.spec.ngrams.model import NGramModel

HALF, QUARTER = "-0.3010299956639812", "-0.6020599913279624"

GOOD = f"""\\data\\
ngram 1=4
ngram 2=2
ngram 3=1

\\1-grams:
-99\t<s>
{HALF}\ta\t-0.09691001300805639
{QUARTER}\tb
{QUARTER}\t</s>

\\2-grams:
-0.3979400086720376\ta b\t{HALF}
-0.3010299956639812\tb a

\\3-grams:
-0.2041199826559248\ta b </s>

\\end\\
"""


def model_of(tmp_path: Path, text: str | bytes, name: str = "lm.arpa") -> NGramModel:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return NGramModel.read(path)


def problems_of(tmp_path: Path, text: str | bytes) -> list[str]:
    """The problems as 'line: message', or just the message where no line is named."""
    with pytest.raises(SpecError) as caught:
        model_of(tmp_path, text)
    assert {problem.file for problem in caught.value.problems} == {str(tmp_path / "lm.arpa")}
    return [f"{p.line}: {p.message}" if p.line else p.message for p in caught.value.problems]


def test_a_good_file(tmp_path: Path) -> None:
    model = model_of(tmp_path, GOOD)
    assert model.vocabulary == ("<s>", "a", "b", "</s>")
    assert repr(model) == "NGramModel(order=3, words=4, ngrams=(4, 2, 1))"
    np.testing.assert_allclose(np.exp(model.next_log_probs([["a", "b"]])), [[0.25, 0.125, 0.625]])


@each(
    "text",
    [
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\t", "  "),
        GOOD.replace(" ", "\t").replace("ngram\t", "ngram "),
        "Made by hand\n\\unrelated\\\n\n" + GOOD,
        "\ufeff" + GOOD,
        GOOD + "\ntrailing words\n\\2-grams:\nnot ours\n",
        GOOD.removesuffix("\n"),
        GOOD.replace("\n", "\n\n"),
        GOOD.replace("-99\t", "-9.9e1\t"),
        GOOD.replace("ngram 1=4", "ngram 1 = 4 "),
        GOOD.replace(f"{QUARTER}\t</s>", f"{QUARTER}\t</s>\t0"),
        GOOD.replace("a b </s>", "a b </s>\t0.0"),
        GOOD.replace("ngram 3=1", "ngram 3=1\nngram 4=0"),
        GOOD.replace("ngram 3=1", "ngram 3=1\nngram 4=0").replace("\\end", "\\4-grams:\n\n\\end"),
        GOOD.replace("\\1-grams:", " \\1-grams: "),
    ],
)
def test_ways_to_write_the_same_model(tmp_path: Path, text: str) -> None:
    assert text != GOOD
    assert model_of(tmp_path, text, "other.arpa") == model_of(tmp_path, GOOD)


def test_the_order_of_lines_does_not_matter(tmp_path: Path) -> None:
    one, two = f"-0.3979400086720376\ta b\t{HALF}\n", f"{HALF}\tb a\n"
    shuffled = GOOD.replace(one + two, two + one)
    assert shuffled != GOOD
    assert model_of(tmp_path, shuffled) == model_of(tmp_path, GOOD)


def test_words_hold_any_character_that_is_not_blank(tmp_path: Path) -> None:
    words = ["naïve", "語", "a\u00a0b", "a\u2028b", "\x1c", "\x85", "\\data\\", "-1.5", "ngram", "#", "🙂", "\ufeff"]
    share = repr(-math.log10(len(words) + 1))
    lines = "".join(f"{share} {word}\n" for word in words)
    count = len(words) + 2
    text = f"\\data\\\nngram 1={count}\n\\1-grams:\n-99 <s>\n{share} </s>\n{lines}\\end\\\n"
    model = model_of(tmp_path, text)
    assert model.readable == tuple(words)
    model.write(tmp_path / "again.arpa")
    assert NGramModel.read(tmp_path / "again.arpa") == model


@pytest.mark.parametrize("name", ["again.arpa", "again.arpa.gz"])
def test_written_files_read_back_equal_and_are_the_same_bytes_each_time(tmp_path: Path, name: str) -> None:
    model = NGramModel.fit(pydoc_sentences(limit=50), 4, unk=True)
    paths = [tmp_path / folder / name for folder in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        model.write(path)
    assert NGramModel.read(paths[0]) == model
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if name.endswith(".gz"):
        assert paths[0].read_bytes()[:2] == b"\x1f\x8b"
        assert paths[0].read_bytes()[4:8] == bytes(4), "the time of writing must stay out of the file"


def test_what_is_written(tmp_path: Path) -> None:
    model_of(tmp_path, GOOD).write(tmp_path / "again.arpa")
    expected = GOOD.replace("-99\t", "-99.0\t")
    assert (tmp_path / "again.arpa").read_text() == expected


CUT = "the file ends without \\end\\"

BAD: list[tuple[str, str | bytes, list[str]]] = [
    ("empty", "", ["the file is empty"]),
    ("blank", "\n \n", ["the file is empty"]),
    ("prose", "Dear reader,\nhello\n", ["1: no \\data\\ line, so this is no ARPA file; it begins with 'Dear reader,'"]),
    ("binary", b"\x00\xff\xfe\x01", ["1: no \\data\\ line"]),
    ("header only", "\\data\\\n\\end\\\n", ["a model needs at least", "1: the header declares no n-grams"]),
    ("no header", GOOD[GOOD.index("\\1-grams") :], ["1: no \\data\\ line"]),
    ("end missing", GOOD.replace("\\end\\\n", ""), [f"18: {CUT}"]),
    (
        "bad header",
        GOOD.replace("ngram 2=2", "ngrams 2=2"),
        ["3: the header needs lines like 'ngram 2=120', got 'ngrams 2=2'", "12: the header declares no 2-grams"],
    ),
    ("header twice", GOOD.replace("ngram 2=2", "ngram 2=2\nngram 2=2"), ["4: the header declares the 2-grams already"]),
    ("gap in header", GOOD.replace("ngram 2=2\n", ""), ["11: the header declares no 2-grams; add 'ngram 2=…'"]),
    ("count", GOOD.replace("ngram 2=2", "ngram 2=7"), ["12: the header declares 7 2-grams, found 2"]),
    ("count of none", GOOD.replace("ngram 3=1", "ngram 3=0"), ["16: the header declares 0 3-grams, found 1"]),
    ("undeclared", GOOD.replace("ngram 3=1\n", ""), ["15: the header declares no 3-grams; add 'ngram 3=…'"]),
    (
        "unknown section",
        GOOD.replace("\\3-grams:", "\\3-gramms:"),
        [
            "16: unknown section '\\\\3-gramms:'",
            "19: the header declares 1 3-grams, but the \\3-grams: section is missing",
        ],
    ),
    (
        "repeated section",
        GOOD.replace("\\3-grams:", "\\2-grams:"),
        ["16: the 2-grams have a section already, on line 12", "19: the header declares 1 3-grams, but"],
    ),
    ("fields few", GOOD.replace("b a\n", "b\n"), ["14: a 2-gram line has 3 or 4 fields, got 2"]),
    ("fields many", GOOD.replace("b a\n", "b a 0.0 7\n"), ["14: a 2-gram line has 3 or 4 fields, got 5"]),
    ("number", GOOD.replace("-99", "-9-9"), ["7: the log10 probability must be a number, got '-9-9'"]),
    ("underscore", GOOD.replace("-99", "-9_9"), ["7: the log10 probability must be a number, got '-9_9'"]),
    ("weight", GOOD.replace(f"b\t{HALF}", "b\thalf"), ["13: the back-off weight must be a number, got 'half'"]),
    ("stranger", GOOD.replace("b a\n", "b c\n"), ["14: every word must be among the unigrams, missing: 'c'"]),
    ("not UTF-8", GOOD.encode().replace(b"b", b"b\xff"), ["9: words must be UTF-8, got the bytes b'b\\xff'"]),
    (
        "infinite",
        GOOD.replace("-99", "-inf"),
        ["7: the log10 probability of '<s>' must be finite, got -inf; write -99"],
    ),
    ("nan", GOOD.replace("-99", "nan"), ["7: the log10 probability of '<s>' must be finite, got nan; write -99"]),
    ("positive", GOOD.replace("-99", "0.5"), ["7: the log10 probability of '<s>' must be at most 0, got 0.5"]),
    ("weight inf", GOOD.replace(f"b\t{HALF}", "b\tinf"), ["13: the back-off weight of 'a b' must be finite, got inf"]),
    ("top weight", GOOD.replace("a b </s>", "a b </s>\t-1"), ["17: 'a b </s>' is of the highest order"]),
    (
        "top weight below an empty order",
        GOOD.replace("a b </s>", "a b </s>\t-1").replace("ngram 3=1", "ngram 3=1\nngram 4=0"),
        ["18: 'a b </s>' is of the highest order"],
    ),
    ("prefix", GOOD.replace("a b </s>", "b b </s>"), ["17: 'b b </s>' needs its prefix 'b b' among the 2-grams"]),
    (
        "begin late",
        GOOD.replace("b a\n", "b <s>\n"),
        ["14: <s> may only be first in an n-gram, 'b <s>' has it later"],
    ),
    ("end early", GOOD.replace("b a\n", "</s> a\n"), ["14: </s> may only be last in an n-gram, '</s> a' continues"]),
    ("twice", GOOD.replace("\tb a\n", "\ta b\n"), ["14: 'a b' is listed twice, first on line 13"]),
    (
        "unigram twice",
        GOOD.replace("\tb\n", "\tb\n-1 b\n"),
        ["6: the header declares 4 1-grams, found 5", "10: 'b' is listed twice, first on line 9"],
    ),
    ("no begin", GOOD.replace("<s>", "<t>"), ["<s> must be among the unigrams"]),
    (
        "sum",
        GOOD.replace("-0.2041199826559248", "-0.3"),
        ["13: the probabilities after 'a b' must sum to 1, they sum to 0.87"],
    ),
    (
        "cut in a line",
        GOOD[: GOOD.index("b a\n")],
        [f"14: {CUT}", "14: the header declares 1 3-grams, but", "14: a 2-gram line has 3 or 4 fields, got 1"],
    ),
    (
        "cut in the unigrams",
        GOOD[: GOOD.index("-0.6")],
        [
            "</s> must be among the unigrams",
            "6: the header declares 4 1-grams, found 2",
            f"8: {CUT}",
            "8: the header declares 2 2-grams, but the \\2-grams: section is missing",
            "8: the header declares 1 3-grams, but the \\3-grams: section is missing",
        ],
    ),
    (
        "several",
        GOOD.replace("-99", "x").replace("b a\n", "b c\n").replace("a b </s>", "b b </s> y"),
        [
            "7: the log10 probability must be a number, got 'x'",
            "14: every word must be among the unigrams, missing: 'c'",
            "17: the back-off weight must be a number, got 'y'",
            "17: 'b b </s>' needs its prefix 'b b'",
        ],
    ),
]


@each(("text", "expected"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_broken_files_are_told_what_is_wrong_and_where(tmp_path: Path, text: str | bytes, expected: list[str]) -> None:
    found = problems_of(tmp_path, text)
    assert [problem[: len(start)] for problem, start in zip(found, expected, strict=False)] == expected
    assert len(found) == len(expected)


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    """A truncated file is never taken for a whole one: cut anywhere before the last character of \\end\\."""
    data = GOOD.encode().rstrip()
    for stop in range(len(data)):
        assert problems_of(tmp_path, data[:stop])


def test_a_prefix_missing_twice_over_is_told_once_each(tmp_path: Path) -> None:
    text = GOOD.replace("ngram 3=1", "ngram 3=1\nngram 4=1").replace("\\end", "\\4-grams:\n-1 b b b a\n\\end")
    assert [problem.split(" among")[0] for problem in problems_of(tmp_path, text)] == [
        "21: 'b b b a' needs its prefix 'b b b'",
        "21: 'b b b' needs its prefix 'b b'",
    ]


def test_a_slightly_rounded_file_is_read_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(SpecWarning, match=r"lm.arpa:13: the probabilities after 'a b' must sum to 1"):
        model_of(tmp_path, GOOD.replace("-0.2041199826559248", "-0.20412"[:7]))


def test_files_that_can_not_be_opened(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.arpa: no such file"):
        NGramModel.read(tmp_path / "none.arpa")
    with pytest.raises(SpecError, match="can't be read"):
        NGramModel.read(tmp_path)
    with pytest.raises(SpecError, match="can't be read"):
        model_of(tmp_path, GOOD, "plain.arpa.gz")
    with pytest.raises(SpecError, match="can't be read"):
        model_of(tmp_path, gzip.compress(GOOD.encode())[:-20], "cut.arpa.gz")


@pytest.mark.slow
def test_a_model_of_real_text_agrees_with_a_second_evaluator(tmp_path: Path) -> None:
    sentences = pydoc_sentences()
    model = NGramModel.fit(sentences, 5)
    assert sum(map(len, model.levels)) >= 100_000
    model.write(tmp_path / "pydoc.arpa")
    assert NGramModel.read(tmp_path / "pydoc.arpa") == model
    oracle = ArpaEvaluator(tmp_path / "pydoc.arpa")
    rng = np.random.default_rng(1)
    histories: list[list[str]] = [[]]
    for _ in range(150):
        sentence = sentences[rng.integers(len(sentences))]
        seen = sentence[: rng.integers(len(sentence) + 1)]
        noise = [model.readable[i] for i in rng.integers(len(model.readable), size=rng.integers(1, 7))]
        histories += [seen, noise, noise + seen[:2], seen + noise[:1]]
    table = model.next_log_probs(histories)
    for history, row in zip(histories, table, strict=True):
        columns = rng.integers(len(model.predicted), size=40)
        expected = [oracle.log_prob(["<s>", *history], model.predicted[column]) for column in columns]
        np.testing.assert_allclose(row[columns], expected, rtol=0, atol=1e-12)
    for history in histories[:40]:
        assert model.log_prob(history, "the") == pytest.approx(oracle.log_prob(["<s>", *history], "the"), abs=1e-12)
    np.testing.assert_allclose(np.exp(table).sum(axis=1), 1.0, atol=1e-12)


def test_a_packed_file_is_unpacked_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arpa, "MAX_BYTES", 1 << 20)
    model_of(tmp_path, gzip.compress(GOOD.encode()), "good.arpa.gz")
    with pytest.raises(SpecError, match="at most 1,048,576 bytes are read, and it has more"):
        model_of(tmp_path, gzip.compress(bytes(1 << 26)), "bomb.arpa.gz")
