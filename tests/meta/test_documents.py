"""Every block of the README, CONTRIBUTING and the docs is executed, and every command and claim is documented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cases import each
from documents import FENCE, PAGES, ROOT, Block, Reader, blocks, command_of, mentioned, options, sessions
from readme_table import PAGES as PAGES_WITH_TABLES
from readme_table import written
from vitrify.cli.app import app

README = ROOT / "README.md"
SLOW_PAGES = {"induction-head.md"}  # take more than ten seconds
MAX_NOT_RUN = 8  # blocks with a comment `<!-- not run: reason -->`
DIRECTIVES = {
    "toctree",
    "include",
    "figure",
    "catalogue",
    "claims",
    "modules",
    "door",
}  # run by the build of the site


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def code(page: Path) -> list[Block]:
    """Return the blocks of a page that are no directives."""
    return [block for block in blocks(page) if not block.language.startswith("{")]


def marked(page: Path) -> Any:
    """Return a page as a parameter of a test; those that train many seeds are left to `make test-all`."""
    slow = [pytest.mark.slow, pytest.mark.timeout(900)]
    return pytest.param(page, marks=slow if page.name in SLOW_PAGES else pytest.mark.long)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if code(page)], ids=page_id)
def test_every_block_of_a_page_runs_and_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands of the README run in processes of their own, as a user's do; that takes longer than most commands."""
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, processes=page == README)
    for block in code(page):
        reader.run(block)


@each("page", PAGES, ids=page_id)
def test_every_fence_opens_or_closes_a_block(page: Path) -> None:
    """Fences that the tests would not see, such as indented ones or tildes, are not allowed."""
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^[ >]*(?:```|~~~)", text, re.MULTILINE)) == 2 * len(blocks(page))
    assert len(re.findall(r"^<!-- not run", text, re.MULTILINE)) == sum(
        block.reason is not None for block in blocks(page)
    )
    for directive in (block.language[1:].split("}")[0] for block in blocks(page) if block.language.startswith("{")):
        assert directive in DIRECTIVES or (directive == "code-block" and run_by_interop(page)), directive


def run_by_interop(page: Path) -> bool:
    """Return whether a test with other libraries names the page: it runs the `{code-block}` directives there."""
    return any(page.name in test.read_text(encoding="utf-8") for test in (ROOT / "tests" / "interop").glob("test_*.py"))


@each("page", PAGES, ids=page_id)
def test_every_command_in_a_sentence_exists_with_its_options(page: Path) -> None:
    for words in mentioned(page.read_text(encoding="utf-8")):
        command, rest = command_of(words)
        named = {word for word in rest if re.fullmatch("--?[a-z][a-z-]*", word)}
        assert named <= options(command), f"vitrify {' '.join(words)}: no option {named - options(command)}"


def test_commands_in_sentences_are_taken_apart() -> None:
    text = "Run `vitrify bench`, `vitrify build FILE -o DIR --to=hf\\|onnx [--all]` and\n```sh\nvitrify list\n```\n"
    assert list(mentioned(text)) == [["bench"], ["build", "FILE", "-o", "DIR", "--to", "hf", "onnx", "--all", ""]]
    with pytest.raises(AssertionError, match="there is no command 'bench'"):
        command_of(["bench"])
    command, rest = command_of(["benchmark-circuits", "make", "DIR"])
    assert {"--entangle", "--json"} <= options(command)
    assert rest == ["DIR"]


@each("page", PAGES, ids=page_id)
def test_every_module_that_a_page_names_with_its_folder_exists(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for path in re.findall(r"`((?:[\w-]+/)+[\w-]+\.py)`", text):
        assert any((ROOT / folder / path).is_file() for folder in ("", "src/vitrify")), path


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    reasons = [f"{page_id(page)}: {block.reason}" for page in PAGES for block in blocks(page) if block.reason]
    assert len(reasons) <= MAX_NOT_RUN, "\n".join(reasons)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("", "anything"),
        ("yaml", "a: 1"),
        ("text", "unmarked text is fine, marked text is not"),
        ("pycon", ">>> 1 + 1\n3\n"),
        ("pycon", ">>> 1 +\n"),
        ("python", "1 / 0"),
        ("python", "def ("),
        ("console", "$ vitrify list --nonsense\n"),
        ("console", "$ vitrify --version\nvitrify 0.0\n"),
        ("sh", "vitrify list --nonsense"),
        ("sh", "vitrify build nothing.regex -o net"),
        ("sh", "vitrify serve --nonsense"),
        ("sh", "make nonsense"),
        ("sh", "pip install 'vitrify[nonsense]'"),
        ("sh", "curl nowhere"),
        ("sh", "echo word | vitrify nonsense"),
        ("toml", "a = "),
        ("toml", 'task = "nonsense"'),
        ("toml", 'sandbox = "markov"\nmodel = "nonsense"'),
        ("json", "{"),
        ("json", "{}"),
        ("bibtex", "Knuth"),
    ],
)
@pytest.mark.long
def test_a_wrong_block_is_noticed(language: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(BaseException) as noticed:  # noqa: PT011
        Reader(tmp_path).run(Block(language, text, "marked" if language == "text" else None))
    assert not isinstance(noticed.value, KeyboardInterrupt)


@pytest.mark.parametrize(
    "command",
    ["vitrify sweep --nonsense", "vitrify nonsense", "make nonsense", "pip install '.[nonsense]'", "curl"],
)
@pytest.mark.parametrize("language", ["sh", "console"])
def test_a_block_that_is_not_run_is_checked_all_the_same(command: str, language: str, tmp_path: Path) -> None:
    text = f"$ {command}\n" if language == "console" else command
    with pytest.raises(BaseException) as noticed:  # noqa: PT011
        Reader(tmp_path).run(Block(language, text, "no GPU"))
    assert not isinstance(noticed.value, KeyboardInterrupt)


def test_blocks_of_a_page_share_names_and_a_folder(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for language, text in [
        ("python", "# mine/deep/one.py\nx = 1\n"),
        ("python", "y = 2\n"),
        ("pycon", ">>> z = y + 1\n"),
        ("pycon", ">>> z\n3\n"),
        ("sh", "echo '(ab)*' > ab.regex"),
        ("console", "$ cat ab.regex\n(ab)*\n"),
        ("sh", "vitrify build ab.regex -o net --max-length 4  # a comment"),
    ]:
        reader.run(Block(language, text))
    assert {path.name for path in (tmp_path / "mine" / "deep").iterdir()} == {"__init__.py", "one.py"}
    assert (tmp_path / "net").is_dir()


def test_the_readme_has_at_least_one_block_of_each_kind() -> None:
    assert blocks(README, "pycon")
    assert sum(len(list(sessions(block.text))) for block in blocks(README, "console")) >= 2


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
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    (picture,) = re.findall(r"^!\[.+\]\((.+)\)$", text, re.MULTILINE)
    assert (ROOT / picture).stat().st_size < 300_000


def test_every_folder_in_the_readme_tree_exists() -> None:
    (tree,) = [block.text for block in blocks(README, "text") if block.text.startswith("src/vitrify/")]
    for line in tree.splitlines()[2:]:
        name = line.split()[0]
        assert (ROOT / ("src/vitrify/" if line.startswith("  ") else "") / name).is_dir(), name
