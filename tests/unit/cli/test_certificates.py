"""`certify` leaves a certificate, `build --certify` too, and `recheck` gives a second opinion on it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from command_line import vitrify

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets") / "weather"
    done = vitrify("build", EXAMPLES / "weather.arpa", "-o", folder, "--max-length", 8, "--certify", "--json")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
def test_build_certifies_and_recheck_agrees(weather: Path) -> None:
    data = json.loads((weather / "certificate.json").read_text(encoding="utf-8"))
    assert data["evidence"]["verdict"] == "holds"
    assert set(data["sha256"]) == {"config.json", "labels.json", "model.safetensors", "spec.arpa"}
    done = vitrify("recheck", weather, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["agrees"], found["problem"]) == (True, None)
    assert any(line.startswith("all 9841 words to length 8") for line in found["done"])
    assert "agrees" in vitrify("recheck", weather).stdout
    assert vitrify("run", weather, "sun").returncode == 0


@pytest.mark.long
def test_certify_writes_unless_told_not_to(tmp_path: Path) -> None:
    net = tmp_path / "net"
    assert vitrify("build", EXAMPLES / "abba.regex", "-o", net, "--max-length", 8).returncode == 0
    assert vitrify("certify", net, "--no-write").returncode == 0
    assert not (net / "certificate.json").exists()
    done = vitrify("recheck", net)
    assert done.returncode == 2
    assert "has no certificate.json: 'vitrify certify" in done.stderr
    assert vitrify("certify", net, "--max-length", 5, "--mutants", 3, "--reals").returncode == 0
    data = json.loads((net / "certificate.json").read_text(encoding="utf-8"))
    assert data["mutations"]["tried"] == 3
    done = vitrify("recheck", net)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
@pytest.mark.parametrize(("name", "usual"), [("estimate", "holds  "), ("sparse_averaging", "holds within 0.05  ")])
def test_the_error_that_a_network_is_allowed_stands_beside_the_verdict(tmp_path: Path, name: str, usual: str) -> None:
    """Who edits it in config.json weakens what is certified, and its first line says so; or gets no certificate."""
    net, few = tmp_path / "net", ("--samples", 4, "--attack", 0)
    assert vitrify("build", EXAMPLES / f"{name}.task.toml", "-o", net).returncode == 0
    assert vitrify("certify", net, *few).stdout.startswith(usual)
    path = net / "config.json"
    text = path.read_text(encoding="utf-8")
    config = json.loads(text)
    for allowed, verdict in ((1.5, "fails  "), (0.3, "holds within 0.3  ")):
        config["net"]["output"]["error"] = allowed
        path.write_text(json.dumps(config), encoding="utf-8")
        assert vitrify("certify", net, *few).stdout.startswith(verdict)
    assert "within 0.3 of the spec's" in _words(vitrify("certify", net, *few).stdout)
    assert "of 0.3 that are allowed" in _words(vitrify("recheck", net).stdout)


def _words(table: str) -> str:
    return " ".join(table.replace("│", " ").split())


@pytest.mark.long
def test_arithmetic_is_told_and_kept(tmp_path: Path) -> None:
    net = tmp_path / "net"
    assert vitrify("build", EXAMPLES / "weather.arpa", "-o", net, "--max-length", 8).returncode == 0
    done = vitrify("certify", net, "--arithmetic", "--max-length", 4)
    assert done.returncode == 0, done.stderr
    assert "float16 is the smallest format that is proved to keep the answer" in done.stdout
    assert re.search(r"float16 *│ 8 *│ 0\.\d+ *│ 8 ", done.stdout)
    path = net / "certificate.json"
    text = path.read_text(encoding="utf-8")
    report = json.loads(text)["evidence"]["proof"]["arithmetic"]
    assert [(found["name"], found["proved"]) for found in report["formats"][::2]] == [("float16", 8), ("float32", 8)]
    assert vitrify("recheck", net).returncode == 0
    path.write_text(text.replace('"proved": 8', '"proved": 9', 1), encoding="utf-8")
    done = vitrify("recheck", net)
    assert done.returncode == 1
    assert "certificate.json changed since it was written" in done.stdout
    done = vitrify("certify", net, "--arithmetic", "--no-proof")
    assert done.returncode == 2
    assert "leave --no-proof out" in done.stderr


def test_recheck_says_what_does_not_agree(weather: Path, tmp_path: Path) -> None:
    for file in weather.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with (tmp_path / "spec.arpa").open("a", encoding="utf-8") as spec:
        spec.write("\n")
    done = vitrify("recheck", tmp_path)
    assert done.returncode == 1
    assert "spec.arpa changed since the certificate was written" in done.stdout


def test_build_leaves_nothing_where_the_net_does_not_hold(tmp_path: Path) -> None:
    done = vitrify("build", EXAMPLES / "awoke.patterns", "-o", tmp_path / "net", "--window", 2, "--certify")
    assert done.returncode == 1
    assert "fails" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_recheck_does_not_judge_nets_that_it_does_not_run(tmp_path: Path) -> None:
    """Exit code 2: the files are what was certified, and nobody has asked the net again."""
    net = tmp_path / "net"
    made = vitrify("build", EXAMPLES / "roof.maxout.json", "-o", net, "--certify")
    assert made.returncode == 0, made.stderr
    done = vitrify("recheck", net)
    assert done.returncode == 2
    assert "not judged" in done.stdout
    assert "agrees" not in done.stdout
    found = json.loads(vitrify("recheck", net, "--json").stdout)
    assert (found["agrees"], found["problem"]) == (None, None)
    assert found["unjudged"] == "recheck runs plain transformers that read tokens; this net differs in reads"
    assert found["done"] == ["hashes of 4 files and of the certificate"]
    (net / "labels.json").write_text("{}", encoding="utf-8")
    done = vitrify("recheck", net)
    assert done.returncode == 1
    assert "labels.json changed" in done.stdout


@pytest.fixture
def door(tmp_path: Path) -> Path:
    net = tmp_path / "net"
    assert vitrify("build", EXAMPLES / "abba.regex", "-o", net, "--max-length", 4).returncode == 0
    return net


def test_a_network_is_judged_by_a_changed_spec_only_where_that_is_accepted(door: Path) -> None:
    spec = next(door.glob("spec.*"))
    data = json.loads(spec.read_text())
    spec.write_text(json.dumps(data, indent=3))  # says the same
    done = vitrify("certify", door)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{spec.name} is not the spec that the model was built from" in done.stderr
    assert not (door / "certificate.json").exists()
    assert vitrify("certify", door, "--accept-spec").returncode == 0
    done = vitrify("recheck", door)
    assert (done.returncode, f"config.json was written for another {spec.name}" in done.stdout) == (1, True)
    data["accepting"] = [state for state in data["states"] if state not in data["accepting"]]
    spec.write_text(json.dumps(data))
    done = vitrify("certify", door, "--accept-spec")
    assert (done.returncode, "do not accept the same answers" in done.stderr) == (2, True)


def test_nothing_is_written_through_a_link(door: Path) -> None:
    other = door.parent / "other.txt"
    other.write_text("mine")
    for name in ("certificate.json", ".certificate.json.partial"):
        (door / name).symlink_to(other)
        done = vitrify("certify", door, "--max-length", 2)
        assert done.returncode == 2
        assert "certificate.json can't be written" in done.stderr
        (door / name).unlink()
    assert other.read_text() == "mine"
    os.mkfifo(door / "certificate.json")
    assert vitrify("certify", door, "--max-length", 2).returncode == 2
