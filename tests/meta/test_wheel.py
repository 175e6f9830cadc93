"""An installed wheel without extras: every command runs on an example, or says which extra it needs."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from bare_commands import CASES, ROOT, extras, names, prepare, problem
from vitrify import __version__
from vitrify.cli.app import app

SRC = ROOT / "src" / "vitrify"
LIBRARY = """
import vitrify as v
from vitrify.files import bundled
spec = v.read(bundled("examples") / "abba.regex")
net = v.build(spec, max_length=8)
assert v.run(net, "abba").accept
assert v.certify(net, spec, max_length=6).verdict == "holds"
"""


def test_every_command_has_a_case() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    tried = {" ".join(case.words.split()[: 1 + case.words.startswith("benchmark-circuits")]) for case in CASES}
    assert set(names(group)) == tried


@pytest.mark.jax
@pytest.mark.long
def test_a_command_without_its_library_names_the_extra(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "bare_commands", str(tmp_path), str(ROOT / "examples")]
    environment = {name: value for name, value in os.environ.items() if name != "VITRIFY_STORE"}
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    results = {words: (code, stderr) for words, code, stderr in json.loads(done.stdout)}
    problems = [problem(case, *results[case.words]) for case in CASES if case.words in results]
    assert [each for each in problems if each] == []
    assert {case.words for case in CASES if case.extra} <= set(results)


def needs() -> list[tuple[str, str, str]]:
    """Return the calls of `need` in the sources: file, module and extra."""
    calls = []
    for path in sorted(SRC.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "need(" not in text:
            continue
        file = ".".join(path.relative_to(SRC.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "need":
                module, named = node.args
                extra = named.value if isinstance(named, ast.Constant) else import_module(file).EXTRA
                if isinstance(module, ast.Constant):  # and not the variable of a loop
                    calls.append((file, str(module.value).partition(".")[0], str(extra)))
    return calls


def test_an_extra_that_is_named_brings_the_library() -> None:
    assert [call for call in needs() if call[1] not in extras()[call[2]]] == []
    assert len(needs()) > 20


def test_every_extra_is_in_the_docs_and_no_other() -> None:
    _, _, section = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").partition("## Extras\n")
    firsts = [line.split("|")[1] for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    assert {name for cell in firsts[1:] for name in re.findall(r"`([\w-]+)`", cell)} == set(extras())


def test_package_readme_and_citation_describe_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    _, first, *_ = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")
    assert project["description"] == " ".join(first.split())
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    assert project["description"] in " ".join(citation.split())
    assert f"\nrepository-code: {project['urls']['Repository']}\n" in citation
    assert re.findall(r"^  - (?!name)(.+)$", citation, re.MULTILINE) == project["keywords"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    line = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(line, check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel and its core dependencies into an empty environment; return the folder of its programs."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    options = ["--quiet", "--disable-pip-version-check", "--constraint", str(ROOT / "requirements.lock")]
    subprocess.run([str(folder / "bin" / "pip"), "install", *options, str(wheel)], check=True)
    return folder / "bin"


def ran(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program as a stranger would: nothing of this checkout is on the path."""
    left = ("PYTHONPATH", "VITRIFY_STORE")
    environment = {name: value for name, value in os.environ.items() if name not in left}
    return subprocess.run([*map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_a_wheel_has_the_examples_and_the_recorded_evidence(wheel: Path) -> None:
    files = set(zipfile.ZipFile(wheel).namelist())
    evidence = {f"vitrify/docs/evidence/{path.name}" for path in (ROOT / "docs" / "evidence").glob("*.json")}
    assert evidence
    assert evidence <= files
    specs = {path.name for path in (ROOT / "examples").iterdir() if path.suffix not in ("", ".py")}
    assert {f"vitrify/examples/{name}" for name in specs} <= files
    assert not [name for name in files if name.endswith(".svg") and "evidence" in name]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_command_of_a_bare_install_runs_or_names_its_extra(installed: Path, tmp_path: Path) -> None:
    prepare(tmp_path)
    program = "from vitrify.files import bundled; print(bundled('examples'))"
    examples = ran(installed / "python", "-c", program, cwd=tmp_path).stdout.strip()
    assert Path(examples).is_relative_to(installed.parent)
    problems = []
    for case in CASES:
        done = ran(installed / "vitrify", *case.words.format(examples=examples).split(), cwd=tmp_path)
        problems.append(problem(case, done.returncode, done.stderr))
    assert [each for each in problems if each] == []


@pytest.mark.slow
def test_a_bare_install_shows_help_recorded_verdicts_and_builds(installed: Path, tmp_path: Path) -> None:
    alone = ran(installed / "vitrify", cwd=tmp_path)
    assert alone.returncode == 2
    assert "Usage: vitrify" in alone.stdout + alone.stderr
    shown = json.loads(ran(installed / "vitrify", "evidence", "--json", cwd=tmp_path).stdout)
    recorded = {path.stem for path in (ROOT / "docs" / "evidence").glob("*.json")}
    assert {each["name"] for each in shown} == recorded
    built = ran(installed / "python", "-c", LIBRARY, cwd=tmp_path)
    assert built.returncode == 0, built.stderr
