"""`vitrify score`: files of right answers, against languages, tasks and numbers that are computed without vitrify."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

from cases import each
from command_line import vitrify
from oracles.level_grammars import write_grammar
from oracles.suite_files import LANGUAGES, TASKS, write_language, write_objects, write_task
from vitrify.constructions.catalogue import build
from vitrify.net.answers import generation_answers
from vitrify.net.example_files import LabeledExample
from vitrify.net.folder import save
from vitrify.net.inference import batch_of, encode
from vitrify.net.scoring import BATCH, score
from vitrify.spec import find_spec
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.kinds import Spec, kinds

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))
from benchmarks import suites  # noqa: E402
from benchmarks.suite_specs import CHOMSKY, FLARE, Entry  # noqa: E402

EXAMPLES = ROOT / "examples"
LENGTHS = (5, 9, 21)
DOGS = "S -> 'the' N V [1/4] | N V [3/4]\nN -> 'dogs' [1/3] | 'cats' [2/3]\nV -> 'sleep' [1.0]"
SENTENCES = {
    (*article, noun, "sleep"): a * n
    for article, a in ((("the",), Fraction(1, 4)), ((), Fraction(3, 4)))
    for noun, n in (("dogs", Fraction(1, 3)), ("cats", Fraction(2, 3)))
}


def net(folder: Path, spec: Spec, construction: str | None = None, **choices: Any) -> Path:
    """Write the model folder of a spec."""
    save(build(spec, construction, **choices), folder, spec)
    return folder


def suite_net(folder: Path, entry: Entry, length: int) -> Path:
    spec = entry.spec(length)
    return net(folder, spec, *(("linear-recurrence",) if isinstance(spec, Automaton) else ()))


def scored(*words: object, given: str | None = None) -> tuple[int, dict[str, Any]]:
    done = vitrify("score", *words, "--json", given=given)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def options(entry: Entry) -> list[str]:
    return ["--append", "?"] * entry.append + ["--decode"] * entry.decode


def test_every_language_and_task_has_a_spec() -> None:
    assert set(FLARE) == set(LANGUAGES)
    assert len(FLARE) == 18
    assert set(CHOMSKY) == set(TASKS)
    assert len(CHOMSKY) == 15


@pytest.mark.long
@each("name", FLARE)
def test_a_language_of_flare_agrees_on_every_string_and_a_wrong_label_is_named(name: str, tmp_path: Path) -> None:
    rows = write_language(tmp_path, name, count=100, longest=40)
    model, entry = suite_net(tmp_path / "net", FLARE[name], 40), FLARE[name]
    code, data = scored(model, tmp_path / name, *options(entry))
    assert (code, data["agreeing"], data["sequences"]) == (0, 200, 200)
    assert 0.2 < sum(label for _, label in rows) / len(rows) < 0.95
    labels = tmp_path / name / "labels.txt"
    lines = labels.read_text().split()
    lines[7] = str(1 - int(lines[7]))
    labels.write_text("\n".join(lines) + "\n")
    code, data = scored(model, tmp_path / name, *options(entry))
    assert (code, data["agreeing"]) == (1, 199)
    (wrong,) = data["disagreements"]
    assert wrong["where"] == f"{tmp_path / name / 'main.tok'}:8"


@pytest.mark.long
@each("name", CHOMSKY)
def test_a_chomsky_task_agrees_at_three_lengths_and_a_wrong_output_is_named(name: str, tmp_path: Path) -> None:
    entry = CHOMSKY[name]
    for length in LENGTHS:
        write_task(tmp_path, name, length, count=40)
        model, file = suite_net(tmp_path / f"net{length}", entry, length), tmp_path / name / f"{length}.npz"
        code, data = scored(model, file, *options(entry))
        assert (code, data["agreeing"], data["sequences"]) == (0, 40, 40)
    arrays = dict(np.load(file))
    arrays["output"][3] = np.roll(arrays["output"][3], 1, axis=-1)
    np.savez(file, **arrays)
    code, data = scored(model, file, *options(entry))
    assert (code, data["agreeing"], [each["where"] for each in data["disagreements"]]) == (1, 39, [f"{file}[3]"])


@pytest.mark.long
@each("levels", [3, 4, 5])
def test_a_grammar_by_levels_agrees_with_a_recognizer_of_whole_strings(levels: int, tmp_path: Path) -> None:
    labels = write_grammar(tmp_path, "levels", levels, count=60, seed=levels)
    grammar = find_spec(tmp_path / "levels.cfg.json")
    model = net(tmp_path / "net", grammar, "spans")
    file, longest = tmp_path / "levels.tsv", ["--longest", 3 ** (levels - 1)]  # no sentence is longer
    code, data = scored(model, file, *longest)
    assert (code, data["agreeing"], data["sequences"] + data["left_out"]) == (0, data["sequences"], 60)
    assert 30 <= sum(labels) < 60 - data["left_out"]
    file.write_text(file.read_text().replace("\t1\n", "\t0\n", 1))
    assert scored(model, file, *longest)[1]["agreeing"] == data["agreeing"] - 1


@pytest.mark.slow
def test_a_grammar_of_the_size_of_cfg3b_agrees_and_a_long_sentence_takes_a_tenth_of_a_dense_run(tmp_path: Path) -> None:
    labels = write_grammar(tmp_path, "levels", 7, count=40, seed=2)
    grammar = find_spec(tmp_path / "levels.cfg.json")
    weights = build(grammar)
    net_ = weights.architecture
    result = score(weights, tmp_path / "levels.tsv", longest=net_.max_length)
    assert result.agrees
    assert result.sequences + result.left_out == 40
    assert sum(labels) >= 20
    assert weights.by_position is not None
    sentence = max((tmp_path / "levels.tsv").read_text().splitlines(), key=len).split("\t")[0]
    tokens, _ = batch_of(net_, [encode(net_, list(sentence[: net_.max_length]))])
    weights.by_position(tokens)
    logits, seconds = [], []
    for run in (weights.by_position, lambda seen: net_.forward(weights.prepared, seen)):
        run(tokens)
        begin = process_time()
        logits.append(run(tokens))
        seconds.append(process_time() - begin)
    assert np.abs(logits[0] - logits[1]).max() < 1e-12
    assert 10 * seconds[0] < seconds[1], seconds


@pytest.mark.long
def test_the_table_of_a_folder_lists_what_is_expressed_built_and_agrees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("parity", "marked-copy"):
        write_language(tmp_path / "flare", name, count=30, longest=60)
    for length in LENGTHS:
        write_task(tmp_path / "chomsky", "compute_sqrt", length, count=10)
    (tmp_path / "flare" / "parity").rename(tmp_path / "flare" / "unheard-of")
    (tmp_path / "dogs.cfg.json").write_text('{"rules": {"S": [[1, 2], [2]], "2": [["a"], ["b"]]}}')
    (tmp_path / "dogs.txt").write_text("1 a\nb\n1 c\n")
    code = suites.main([str(tmp_path), "--json", "--only", "marked-copy,unheard-of,compute_sqrt"])
    rows = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert code == 1
    assert rows["unheard-of"]["expressed"] == "no"
    assert "no spec" in rows["unheard-of"]["remark"]
    assert rows["compute_sqrt"]["agreeing"] == rows["compute_sqrt"]["sequences"] == 30
    copies = rows["marked-copy"]
    strings = [
        line
        for file in (tmp_path / "flare" / "marked-copy").rglob("main.tok")
        for line in file.read_text().splitlines()
    ]
    assert copies["left_out"] == sum(len(line.split()) > 40 for line in strings) > 0
    assert copies["agreeing"] == copies["sequences"] == len(strings) - copies["left_out"]
    assert suites.main([str(tmp_path), "--only", "dogs"]) == 1
    assert "does not read 'c'" in " ".join(capsys.readouterr().out.split())


def _states(word: tuple[str, ...]) -> Iterator[int]:
    """Yield the remainders of a binary number by 3, the highest bit first."""
    value = 0
    yield value
    for bit in word:
        value = (2 * value + int(bit)) % 3
        yield value


def test_states_and_labels_agree_with_a_simulation_and_a_wrong_state_does_not(tmp_path: Path) -> None:
    model = net(tmp_path / "net", find_spec("divisibility:3"), "log-depth", max_length=8)
    words = [word for length in range(6) for word in product("01", repeat=length)]
    rows: list[dict[str, Any]] = [{"input": list(w), "states": [*map(str, _states(w))]} for w in words]
    for row, word in zip(rows, words, strict=True):
        row["label"], row["state"] = not int("0" + "".join(word), 2) % 3, row["states"][-1]
    write_objects(tmp_path / "right.jsonl", rows)
    code, data = scored(model, tmp_path / "right.jsonl")
    assert code == 0
    assert data["agreement"] == {name: {"compared": 63, "agreed": 63} for name in ("label", "state", "states")}
    rows[40]["states"][2] = "1" if rows[40]["states"][2] != "1" else "2"
    write_objects(tmp_path / "wrong.jsonl", rows)
    code, data = scored(model, tmp_path / "wrong.jsonl")
    assert (code, data["agreeing"]) == (1, 62)
    assert data["disagreements"][0]["name"] == "states"
    assert data["disagreements"][0]["where"].endswith(":41")
    table = "input\tstates\taccept\n" + "".join(
        f"{' '.join(row['input'])}\t{' '.join(row['states'])}\t{row['label']}\n" for row in rows
    )
    (tmp_path / "wrong.tsv").write_text(table)
    assert scored(model, tmp_path / "wrong.tsv")[1]["agreeing"] == 62
    for states in (rows[50]["states"][:-1], [*rows[50]["states"], "0"]):  # one too few, one too many
        write_objects(tmp_path / "wrong.jsonl", [{"input": rows[50]["input"], "states": states}])
        assert scored(model, tmp_path / "wrong.jsonl")[0] == 1
    assert "sequences agree (98.41 %)" in vitrify("score", model, tmp_path / "wrong.tsv").stdout


def _next(prefix: tuple[str, ...]) -> dict[str, Fraction]:
    """Return the probabilities of the next word, from the list of all sentences."""
    after: dict[str, Fraction] = {}
    for sentence, probability in SENTENCES.items():
        padded = (*sentence, "</s>")
        if padded[: len(prefix)] == prefix:
            after[padded[len(prefix)]] = after.get(padded[len(prefix)], Fraction(0)) + probability
    return {word: p / sum(after.values()) for word, p in after.items()}


def _dogs() -> Grammar:
    return Grammar.from_text(DOGS)


def test_next_words_and_sentences_agree_with_a_list_of_all_sentences(tmp_path: Path) -> None:
    model = net(tmp_path / "net", _dogs(), "shapes")
    rows: list[dict[str, Any]] = []
    for length in range(4):
        for words in product(("the", "dogs", "cats", "sleep"), repeat=length):
            row: dict[str, Any] = {"tokens": list(words), "label": words in SENTENCES}
            if words in SENTENCES:
                row["next"] = [sorted(_next(words[:end])) for end in range(length + 1)]
            rows.append(row)
    write_objects(tmp_path / "rows.jsonl", rows)
    code, data = scored(model, tmp_path / "rows.jsonl")
    assert (code, data["agreeing"], data["agreement"]["next"]) == (0, 85, {"compared": 4, "agreed": 4})
    last = next(row for row in rows if "next" in row)
    last["next"][1] = ["sleep", "dogs"]
    write_objects(tmp_path / "rows.jsonl", rows)
    assert scored(model, tmp_path / "rows.jsonl")[1]["agreement"]["next"] == {"compared": 4, "agreed": 3}
    (tmp_path / "plain.txt").write_text("the dogs sleep\n\ndogs the\ncats sleep\n")
    code, data = scored(model, tmp_path / "plain.txt")
    assert (code, data["agreeing"], data["sequences"]) == (1, 2, 3)


def test_next_symbols_of_a_folder_are_compared_by_networks_that_say_them(tmp_path: Path) -> None:
    words = [*SENTENCES, ("dogs",), ()]
    data = tmp_path / "data"
    data.mkdir()
    (data / "main.tok").write_text("".join(f"{' '.join(each)}\n" for each in words))
    (data / "labels.txt").write_text("".join(f"{int(each in SENTENCES)}\n" for each in words))
    lines = []
    for words_ in words:
        if words_ in SENTENCES:
            sets = [_next(words_[:end]) for end in range(len(words_) + 1)]
            lines.append([{"s": " ".join(sorted(set(each) - {"</s>"})), "e": "</s>" in each} for each in sets])
    (data / "next-symbols.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    model = net(tmp_path / "net", _dogs(), "shapes")
    code, result = scored(model, data)
    assert (code, result["agreement"]) == (
        0,
        {"label": {"compared": 6, "agreed": 6}, "next": {"compared": 4, "agreed": 4}},
    )
    states = Automaton.explore("", ("the", "dogs", "cats", "sleep"), lambda _, word: word, lambda word: word == "sleep")
    _, result = scored(net(tmp_path / "states", states, max_length=4), data)
    assert (result["agreement"]["label"]["compared"], result["ignored"]) == (6, {"next": 4})
    right = (data / "next-symbols.jsonl").read_text()
    (data / "next-symbols.jsonl").write_text(right.replace("sleep", "dogs", 1))
    assert scored(model, data)[1]["agreement"]["next"] == {"compared": 4, "agreed": 3}
    hostile = [right.partition("\n")[2], f"{right}[]\n", "[1]\n" + right, "{\n" + right, right.replace("true", "1", 1)]
    for text in hostile:
        (data / "next-symbols.jsonl").write_text(text)
        answer = vitrify("score", model, data)
        assert (answer.returncode, answer.stdout, answer.stderr.count("error")) == (2, "", 1)


def test_probabilities_and_perplexity_agree_with_fractions(tmp_path: Path) -> None:
    model = net(tmp_path / "net", _dogs(), "probabilities")
    rows: list[dict[str, Any]] = []
    total, tokens = 0.0, 0
    for words, probability in SENTENCES.items():
        maps = [{w: float(p) for w, p in _next(words[:end]).items()} for end in range(len(words) + 1)]
        rows.append({"input": " ".join(words), "next": maps, "log_prob": float(np.log(float(probability)))})
        total, tokens = total + float(np.log(float(probability))), tokens + len(words) + 1
    write_objects(tmp_path / "rows.jsonl", rows)
    code, data = scored(model, tmp_path / "rows.jsonl", "--tolerance", "1e-9")
    assert (code, data["agreeing"]) == (0, 4)
    assert data["perplexity"] == pytest.approx(np.exp(-total / tokens), rel=1e-9)
    rows[2]["next"][0]["dogs"] += 1e-5
    rows[3]["log_prob"] -= 1e-5
    write_objects(tmp_path / "rows.jsonl", rows)
    _, data = scored(model, tmp_path / "rows.jsonl")
    assert {(d["where"][-1], d["name"]) for d in data["disagreements"]} == {("3", "next"), ("4", "log_prob")}
    assert scored(model, tmp_path / "rows.jsonl", "--tolerance", "1e-4")[0] == 0


def test_the_perplexity_is_that_of_the_command_perplexity(tmp_path: Path) -> None:
    vitrify("build", EXAMPLES / "weather.txt", "--order", 2, "-o", tmp_path / "net")
    other = json.loads(vitrify("perplexity", tmp_path / "net", EXAMPLES / "week.txt", "--json").stdout)
    code, data = scored(tmp_path / "net", EXAMPLES / "week.txt")
    assert (code, data["tokens"]) == (0, other["tokens"])
    assert data["perplexity"] == pytest.approx(other["perplexity_including_oov"], rel=1e-12)


def test_what_run_prints_is_scored_against_another_network(tmp_path: Path) -> None:
    """A network agrees with itself, and not with one of another language."""
    spec = Automaton.from_regex("(ab)*")
    models = [net(tmp_path / name, each, "log-depth", max_length=8) for name, each in
              (("one", spec), ("two", Automaton.from_regex("(ab)*b?")))]  # fmt: skip
    lines = "\n".join(" ".join(word) for length in range(5) for word in product("ab", repeat=length))
    printed = vitrify("run", models[0], "--stdin", given=lines).stdout
    assert scored(models[0], "-", given=printed)[0] == 0
    code, data = scored(models[1], "-", given=printed)
    assert code == 1
    assert any(d["tokens"] == ["b"] for d in data["disagreements"])


def test_thoughts_are_decoded_and_those_cut_short_say_so(tmp_path: Path) -> None:
    machine = net(tmp_path / "machine", find_spec(EXAMPLES / "increment.tm.toml"))
    rows: list[dict[str, object]] = [
        {"input": list(format(n, "b")), "output": list(format(n + 1, "b")), "state": "done"} for n in range(1, 40)
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    assert scored(machine, "--decode", given=text)[1]["agreeing"] == 39
    code, data = scored(machine, "--decode", given=text.replace('"output": ["1", "0"]', '"output": ["1", "1"]'))
    assert (code, data["agreeing"]) == (1, 38)
    spec = find_spec(EXAMPLES / "adder8.aag")
    adder = build(spec)
    sums = [(a, b, list(format(a + b, "09b")[::-1])) for a, b in ((5, 3), (255, 255), (17, 100))]
    examples = [
        LabeledExample(f"{a}+{b}", tuple(f"{a:08b}"[::-1] + f"{b:08b}"[::-1]), {"output": tuple(digits)})
        for a, b, digits in sums
    ]
    assert score(adder, examples, decode=True, spec=spec).agrees
    save(adder, tmp_path / "adder", spec)
    short = vitrify("run", tmp_path / "adder", *examples[0].sequence, "--generate", 30)
    assert "cut short: 30 of 52 gates are written" in short.stdout
    assert score(adder, examples, decode=True, steps=51, spec=spec).cut_short == 3
    assert "s8 = unknown" in short.stdout


def test_a_machine_that_has_not_halted_says_so() -> None:
    spec = find_spec(EXAMPLES / "increment.tm.toml")
    weights = build(spec, "turing-any-length", max_length=8)
    prompts = [("1", "1", "1"), ("1",)]
    short, whole = generation_answers(weights, prompts, 4, None, spec)
    assert short.cut_short.startswith("after 4 steps the machine has not halted")
    assert not whole.cut_short
    begun = LabeledExample("begun", prompts[0], {"thought": short.symbols})
    assert score(weights, [begun], decode=True, steps=4, spec=spec).agreeing == 0  # it is right so far
    assert short.to_json()["cut_short"] == short.cut_short
    assert "cut_short" not in whole.to_json()


def test_every_spec_with_a_conclusion_can_say_what_it_lacks() -> None:
    classes = [kind.spec for kind in kinds()]
    concluding = {each.__name__ for each in classes if hasattr(each, "conclusion")}
    assert concluding == {each.__name__ for each in classes if hasattr(each, "missing")}
    assert {"Circuit", "TuringMachine"} <= concluding


def test_files_are_read_as_they_are_needed() -> None:
    weights = build(Automaton.from_regex("(ab)*"), max_length=8)
    taken = 0

    def endless() -> Iterator[LabeledExample]:
        nonlocal taken
        for taken in range(1, 10 * BATCH):
            symbol = "a" if taken < 2 * BATCH else "z"
            yield LabeledExample(f"row {taken}", symbol, {"label": "0"})

    with pytest.raises(Exception, match=rf"row {2 * BATCH}: this network does not read 'z'"):
        score(weights, endless())
    assert taken <= 3 * BATCH


def test_batches_of_numbers_are_read_whatever_their_size(tmp_path: Path) -> None:
    """Two outputs of whole numbers are two symbols, and no one-hot vector."""
    model = net(tmp_path / "net", find_spec("cyclic:3"), "linear-recurrence")
    np.savez(tmp_path / "two.npz", input=np.array([[1, 1, 0], [1, 0, 0]]), output=np.array([2, 1]))
    code, data = scored(model, tmp_path / "two.npz")
    assert (code, data["agreement"]) == (0, {"output": {"compared": 2, "agreed": 2}})


def test_a_stream_without_a_name_is_recognized_by_its_first_line() -> None:
    weights = build(Automaton.from_regex("(ab)*"), max_length=8)
    for text in ('{"input": "a b", "label": 1}\n', "a b\t1\n", "\na b\t1\n"):
        assert score(weights, io.StringIO(text)).agreement["label"].agreed == 1
