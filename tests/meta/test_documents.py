"""Every block of the README and the docs is executed, and every command and claim is documented."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import vitrify
from readme_table import PAGES as PAGES_WITH_TABLES
from readme_table import written
from vitrify.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SLOW_PAGES = ["induction-head.md"]


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def marked(page: Path) -> Any:
    """Return a page as a parameter of a test; those that train many seeds are left to `make test-all`."""
    slow = [pytest.mark.slow, pytest.mark.timeout(900)]
    return pytest.param(page, marks=slow if page.name in SLOW_PAGES else pytest.mark.long)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if blocks(page, "pycon")], ids=page_id)
def test_python_blocks_print_what_they_say(page: Path) -> None:
    text = "\n".join(blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert result.failed == 0, "".join(report)


def sessions(page: Path) -> list[tuple[str, str]]:
    """Commands with the output that stands below them."""
    found = []
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if sessions(page)], ids=page_id)
def test_console_blocks_print_what_they_say(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the README in processes of their own, as a user's are: starting one takes longer than most commands."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for command, output in sessions(page):
        program, *words = shlex.split(command)
        assert program == "vitrify"
        if page.name == "README.md":
            line = [sys.executable, "-m", "vitrify", *words]
            done = subprocess.run(line, capture_output=True, text=True, check=False)
        else:
            done = vitrify(*words)
        assert stripped(done.stdout) == stripped(output), done.stderr


def test_the_readme_has_at_least_one_block_of_each_kind() -> None:
    assert blocks(ROOT / "README.md", "pycon")
    assert len(sessions(ROOT / "README.md")) >= 2


def test_every_command_and_option_is_documented() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        name = command.name or (command.callback.__name__ if command.callback else "")
        assert f"`vitrify {name}" in page, name
    for option in (
        "--construction",
        "--attention",
        "--max-length",
        "--positions",
        "--window",
        "--trace",
        "--all",
        "--stdin",
        "--top",
        "--mutants",
        "--depth",
        "--tolerance",
        "--json",
    ):
        assert option in page, option


@pytest.mark.parametrize("page", PAGES_WITH_TABLES)
def test_tables_of_verdicts_are_those_that_the_evidence_gives(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text == written(text, ROOT / "docs" / "evidence", PAGES_WITH_TABLES[page]), "run `make readme`"


def test_the_readme_is_short_and_has_a_picture() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    (picture,) = re.findall(r"^!\[.+\]\((.+)\)$", text, re.MULTILINE)
    assert (ROOT / picture).stat().st_size < 300_000


def test_every_folder_in_the_readme_tree_exists() -> None:
    (tree,) = [b for b in blocks(ROOT / "README.md", "text") if b.startswith("src/vitrify/")]
    for line in tree.splitlines()[2:]:
        name = line.split()[0]
        assert (ROOT / ("src/vitrify/" if line.startswith("  ") else "") / name).is_dir(), name
