"""`vitrify score`: files of right answers, against languages, tasks and numbers that are computed without vitrify."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

from cases import each
from command_line import vitrify
from oracles.suite_files import LANGUAGES, TASKS, write_language, write_objects, write_task
from vitrify.constructions.catalogue import build
from vitrify.net.answers import generation_answers
from vitrify.net.example_files import LabeledExample
from vitrify.net.folder import save
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


HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "wrong symbol": ("x.tsv", b"a b\t1\na q\t0\n", "x.tsv:2: this network does not read 'q'"),
    "truncated JSON": ("x.jsonl", b'{"input": "a b", "label": 1}\n{"input": "a', "x.jsonl:2: this is no JSON"),
    "nested JSON": ("x.jsonl", b"[" * 100_000, "x.jsonl:1: this is no JSON value: it is nested too deeply"),
    "a list": ("x.jsonl", b"[1, 2]\n", 'x.jsonl:1: a line must be a JSON object with "input"'),
    "no such answer": ("x.jsonl", b'{"input": "a", "labels": 1}\n', "x.jsonl:1: has no answer, which can't be"),
    "wrong type": ("x.jsonl", b'{"input": "a", "states": 3}\n', "x.jsonl:1: states must be a list of symbols, is 3"),
    "number": ("x.jsonl", b'{"input": "a", "log_prob": "x"}\n', "x.jsonl:1: log_prob must be a number"),
    "huge number": ("x.jsonl", b'{"input": ' + b"9" * 5000 + b"}\n", "x.jsonl:1: this is no JSON value"),
    "binary": ("x.txt", bytes(range(256)) * 64, "x.txt:1: must be text (UTF-8)"),
    "NUL": ("x.txt", b"a\0b\n", "x.txt:1: must be text (UTF-8), but has the byte 0x00"),
    "Latin 1": ("x.tsv", b"a b\t1\na b\t1\na \xe9\t1\n", "x.tsv:3: must be text (UTF-8), but has the byte 0xe9"),
    "huge line": ("x.txt", b"a " * (9 << 20), "x.txt:1: a line must have at most 16,777,216 characters"),
    "long word": ("x.txt", b"a " * 50, "x.txt:1: the sequence has 50 tokens, the network was built for at most 8"),
    "columns": ("x.tsv", b"a b\t1\na b\n", "x.tsv:2: a line must have 2 columns (input, label), not 1"),
    "column name": ("x.tsv", b"input\tlable\n", "x.tsv:1: there is no answer 'lable'; there are label, accept"),
    "empty": ("x.tsv", b"", "there are no sequences"),
    "no archive": ("x.npz", b"PK\x03\x04 nothing", "x.npz must have the arrays 'input' and 'output'"),
    "no label": ("x.tsv", b"input\toutput\na b\t\n", "x.tsv:2: has no answer, which can't be compared"),
}


@each("case", HOSTILE)
def test_hostile_files_are_one_message(case: str, tmp_path: Path, any_net: Path) -> None:
    name, content, message = HOSTILE[case]
    (tmp_path / name).write_bytes(content)
    done = vitrify("score", any_net, name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("error:") == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def any_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return net(tmp_path_factory.mktemp("score") / "net", Automaton.from_regex("(ab)*"), max_length=8)


FOLDERS: dict[str, tuple[dict[str, str], str]] = {
    "labels missing": ({"main.tok": "a b\na\n"}, "labels.txt can't be read: No such file"),
    "labels short": ({"main.tok": "a b\na\n", "labels.txt": "1\n"}, "a line in labels.txt, which has 1"),
    "strings short": ({"main.tok": "a b\n", "labels.txt": "1\n0\n"}, "a line in main.tok, which has 1"),
    "no strings": ({"labels.txt": "1\n"}, "has no main.tok: give a folder with strings"),
}
ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "objects": ({"input": np.array([{}, {}]), "output": np.zeros(2, int)}, "must have the arrays 'input' and 'output'"),
    "names": ({"inputs": np.zeros((2, 3), int)}, "must have the arrays 'input' and 'output'"),
    "one-hot": ({"input": np.full((2, 3, 2), 0.5), "output": np.zeros(2, int)}, "input must be one-hot vectors or"),
    "text": (
        {"input": np.array([["a"]]), "output": np.zeros(1, int)},
        "input must be one-hot vectors or whole numbers",
    ),
    "lengths": (
        {"input": np.zeros((2, 3), int), "output": np.zeros(3, int)},
        "one entry for each example, have (2, 3)",
    ),
}


@each("case", FOLDERS)
def test_hostile_folders_are_one_message(case: str, tmp_path: Path, any_net: Path) -> None:
    files, message = FOLDERS[case]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    _refused(vitrify("score", any_net, tmp_path), message)


@each("case", ARRAYS)
def test_hostile_arrays_are_one_message(case: str, tmp_path: Path, any_net: Path) -> None:
    arrays, message = ARRAYS[case]
    np.savez(tmp_path / "data.npz", **arrays)
    _refused(vitrify("score", any_net, tmp_path / "data.npz"), message)


def test_damaged_archives_are_one_message(tmp_path: Path, any_net: Path) -> None:
    file, message = tmp_path / "data.npz", "must have the arrays 'input' and 'output'"
    np.savez_compressed(file, input=np.zeros((200, 9), int), output=np.arange(200))
    whole = file.read_bytes()
    for place in range(40, len(whole), 7):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        done = vitrify("score", any_net, file)
        assert done.returncode == 2
        assert done.stderr.count("error:") == 1
    np.save(tmp_path / "plain.npy", np.zeros(3))
    file.write_bytes((tmp_path / "plain.npy").read_bytes())
    _refused(vitrify("score", any_net, file), message)


def _refused(done: CompletedProcess[str], message: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("error:") == 1
    assert message in done.stderr


def test_batches_of_numbers_are_read_whatever_their_size(tmp_path: Path) -> None:
    """Two outputs of whole numbers are two symbols, and no one-hot vector."""
    model = net(tmp_path / "net", find_spec("cyclic:3"), "linear-recurrence")
    np.savez(tmp_path / "two.npz", input=np.array([[1, 1, 0], [1, 0, 0]]), output=np.array([2, 1]))
    code, data = scored(model, tmp_path / "two.npz")
    assert (code, data["agreement"]) == (0, {"output": {"compared": 2, "agreed": 2}})


def test_misuse_is_refused(tmp_path: Path, any_net: Path) -> None:
    assert "name a file or folder" in vitrify("score", any_net).stderr
    assert "can't be read: No such file" in vitrify("score", any_net, tmp_path / "none.tsv").stderr
    done = vitrify("score", any_net, "--decode", given="a b\t1\n")
    assert done.returncode == 2
    assert "can't generate" in done.stderr
    done = vitrify("score", any_net, "-", "--longest", 1, given="a b\t1\n")
    assert done.returncode == 2
    assert "all 1 sequences are longer than 1" in done.stderr
    assert scored(any_net, "-", "--longest", 2, given="a b\t1\na b a b\t1\n")[1]["left_out"] == 1


def test_a_stream_without_a_name_is_recognized_by_its_first_line() -> None:
    weights = build(Automaton.from_regex("(ab)*"), max_length=8)
    for text in ('{"input": "a b", "label": 1}\n', "a b\t1\n", "\na b\t1\n"):
        assert score(weights, io.StringIO(text)).agreement["label"].agreed == 1
