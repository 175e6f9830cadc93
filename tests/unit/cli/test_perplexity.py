"""Plain texts: n-gram models fitted to them, and perplexities, against a computation from the ARPA file alone."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from command_line import vitrify
from vitrify.spec.ngrams.model import NGramModel

ROOT = Path(__file__).parents[3]
TRAINING, TEST = ROOT / "examples" / "weather.txt", ROOT / "examples" / "week.txt"
Table = dict[tuple[str, ...], tuple[float, float]]


def read_arpa(path: Path) -> Table:
    """Return log10 probability and back-off weight of every n-gram."""
    table, order = {}, 0
    for line in path.read_text().splitlines():
        if line.endswith("-grams:"):
            order = int(line[1 : line.index("-")])
        elif line and order and line[0] != "\\":
            probability, *words = line.split()
            backoff = float(words.pop()) if len(words) > order else 0.0
            table[tuple(words)] = (float(probability), backoff)
    return table


def log10_probability(table: Table, context: tuple[str, ...], word: str) -> float:
    if (*context, word) in table:
        return table[*context, word][0]
    return table.get(context, (0.0, 0.0))[1] + log10_probability(table, context[1:], word)


def expected(arpa: Path, order: int) -> dict[str, float]:
    """Return what `vitrify perplexity` should print for the test text."""
    table, logs, known, lines = read_arpa(arpa), [], [], TEST.read_text().splitlines()
    for line in lines:
        words = ["<s>", *line.split(), "</s>"]
        read = [word if (word,) in table else "<unk>" for word in words]
        for at in range(1, len(words)):
            context = tuple(read[max(0, at - order + 1) : at])
            logs.append(log10_probability(table, context, read[at]))
            known.append(read[at] != "<unk>")
    seen = [log for log, is_known in zip(logs, known, strict=True) if is_known]
    return {
        "sentences": len(lines),
        "tokens": len(logs),
        "oov": len(logs) - len(seen),
        "log10_probability": sum(logs),
        "perplexity_including_oov": 10 ** (-sum(logs) / len(logs)),
        "perplexity_excluding_oov": 10 ** (-sum(seen) / len(seen)),
    }


@pytest.mark.parametrize("order", [1, 3])
def test_net_and_arpa_file_have_the_perplexity_that_the_file_gives(order: int, tmp_path: Path) -> None:
    net = tmp_path / "net"
    assert vitrify("build", TRAINING, "--order", order, "-o", net).returncode == 0
    result = expected(net / "spec.arpa", order)
    assert result["oov"] == 1
    for model in (net, net / "spec.arpa"):
        done = vitrify("perplexity", model, TEST, "--json")
        assert json.loads(done.stdout) == pytest.approx(result, rel=1e-6), done.stderr
    assert "OOV words" in vitrify("perplexity", net, TEST).stdout


def test_a_text_becomes_the_fitted_model(tmp_path: Path) -> None:
    assert vitrify("build", TRAINING, "--order", 2, "-o", tmp_path / "net").returncode == 0
    sentences = [line.split() for line in TRAINING.read_text().splitlines()]
    assert NGramModel.read(tmp_path / "net" / "spec.arpa") == NGramModel.fit(sentences, 2, unk=True)


def test_certify_prints_the_verdict_on_what_was_built(tmp_path: Path) -> None:
    build = partial(vitrify, "build", TRAINING, "--order", 2, "--max-length", 8, "-o", tmp_path / "net", "--certify")
    printed = build().stdout
    assert "weights = ideal network: proved for every word up to length 8 (margins: " in printed
    assert "ideal network = spec: proved for every word of every length (contexts: " in printed
    data = json.loads(build("--json").stdout)
    assert (data["verdict"], data["methods"]) == ("holds", ["sampled", "proved"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["build", TRAINING, "-o", "net"], "a plain text becomes an n-gram model with --order N"),
        (["build", ROOT / "examples" / "weather.arpa", "--order", "2", "-o", "net"], "leave --order out"),
        (["perplexity", ROOT / "examples" / "weather.arpa", TEST], "this model has no <unk>; unknown: 'cloud', 'hail'"),
        (["perplexity", ROOT / "examples" / "weather.arpa", "none.txt"], "none.txt: the file can't be read"),
        (["perplexity", "none", TEST], "none"),
        (["build", "blank.txt", "--order", "2", "-o", "net"], "blank.txt: there are no sentences"),
        (["perplexity", ROOT / "examples" / "weather.arpa", "blank.txt"], "the text has no sentences"),
        (["perplexity", ROOT / "examples" / "weather.arpa", "marked.txt"], "the text must not contain <s>"),
    ],
)
def test_a_wrong_text_or_model_is_one_message_and_exit_code_2(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text("\n \n")
    (tmp_path / "marked.txt").write_text("<s> sun\n")
    done = vitrify(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_net_without_word_probabilities_has_no_perplexity(tmp_path: Path) -> None:
    vitrify("build", ROOT / "examples" / "abba.regex", "-o", tmp_path / "abba")
    done = vitrify("perplexity", tmp_path / "abba", TEST)
    assert (done.returncode, "needs a network that predicts words" in done.stderr) == (2, True)
