"""`vitrify score` on damaged files and wrong options: one message, exit code 2."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

from cases import each
from command_line import vitrify
from vitrify.constructions.catalogue import build
from vitrify.net.folder import save
from vitrify.spec.automata.automaton import Automaton


@pytest.fixture(scope="module")
def any_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, spec = tmp_path_factory.mktemp("score") / "net", Automaton.from_regex("(ab)*")
    save(build(spec, max_length=8), folder, spec)
    return folder


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


def test_misuse_is_refused(tmp_path: Path, any_net: Path) -> None:
    assert "name a file or folder" in vitrify("score", any_net).stderr
    assert "can't be read: No such file" in vitrify("score", any_net, tmp_path / "none.tsv").stderr
    done = vitrify("score", any_net, "--decode", given="a b\t1\n")
    assert done.returncode == 2
    assert "can't generate" in done.stderr
    done = vitrify("score", any_net, "-", "--longest", 1, given="a b\t1\n")
    assert done.returncode == 2
    assert "all 1 sequences are longer than 1" in done.stderr
    done = vitrify("score", any_net, "-", "--longest", 2, "--json", given="a b\t1\na b a b\t1\n")
    assert json.loads(done.stdout)["left_out"] == 1
