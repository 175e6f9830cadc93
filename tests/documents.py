"""Fenced code blocks of Markdown pages, and how each kind of block is executed."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from typer.main import get_command

from command_line import vitrify
from vitrify.cli.app import app
from vitrify.errors import VitrifyError
from vitrify.spec import read_spec
from vitrify.spec.kinds import suffixes

ROOT = Path(__file__).parents[1]
WRITTEN = (path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "modules")  # the rest is made
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *WRITTEN]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
SHELL = {"echo", "printf", "cat", "mkdir", "ls", "cp", "mv", "head"}  # programs that lines of `sh` blocks may start
OPERATORS = {"|", ">", "<", "&&", ";"}
ENDLESS = {"serve"}  # commands that do not end by themselves: their options are checked
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n)?```(?P<language>[^\n]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the reason in `<!-- not run: reason -->` above it, if any."""

    language: str
    text: str
    reason: str | None = None


def blocks(page: Path, *languages: str) -> list[Block]:
    """Return the blocks of a page in these languages, by default all, in the page's order."""
    found = [Block(m["language"], m["text"], m["reason"]) for m in FENCE.finditer(page.read_text(encoding="utf-8"))]
    return [block for block in found if not languages or block.language in languages]


def commands(text: str) -> Iterator[str]:
    """Yield the commands of an `sh` block: lines, joined where one ends with a backslash or inside quotation marks."""
    command = ""
    for line in text.replace("\\\n", " ").splitlines(keepends=True):
        command += line
        try:
            words = shlex.split(command, comments=True)
        except ValueError:  # a quotation is open
            continue
        if words:
            yield command
        command = ""
    assert not command, f"a quotation is not closed: {command}"


def sessions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a `console` block with the output below each."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def stripped(text: str) -> list[str]:
    """Return the lines of an output without blanks at their ends."""
    return [line.rstrip() for line in text.strip().splitlines()]


@dataclass
class Reader:
    """Somebody who types a page's blocks one after the other, in one Python session and in one folder.

    The folder has a copy of `examples/`. Commands of vitrify run in this process, unless `processes` is set or an
    `export` line came before, which a running process would not see.
    """

    folder: Path
    processes: bool = False
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    exported: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shutil.copytree(ROOT / "examples", self.folder / "examples", dirs_exist_ok=True)

    def run(self, block: Block) -> None:
        """Execute a block; of one that is marked as not run, check what can be checked without running it."""
        kind = getattr(self, f"_{block.language}", None)
        assert kind is not None, f"no test executes blocks in the language {block.language!r}"
        kind(block)

    def _text(self, block: Block) -> None:
        assert block.reason is None, "blocks of text are never run: no comment is needed"

    def _bibtex(self, block: Block) -> None:
        assert block.text.lstrip().startswith("@")

    def _pycon(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest(block.text, self.names, "page", None, 0)
        if block.reason is None:
            report: list[str] = []
            test.globs = self.names  # the parser made a copy; later blocks use the names of earlier ones
            result = doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
            assert result.failed == 0, "".join(report)

    def _python(self, block: Block) -> None:
        """Execute a block, or write it to the file that its first line names: `# mine/constructions/resets.py`."""
        code = compile(block.text, "page", "exec")
        if (named := re.match(r"# ([\w/]+\.py)\n", block.text)) is not None:
            path = self.folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            for parent in path.relative_to(self.folder).parents[:-1]:
                (self.folder / parent / "__init__.py").touch()
            path.write_text(block.text, encoding="utf-8")
        elif block.reason is None:
            exec(code, self.names)

    def _toml(self, block: Block) -> None:
        """Parse a block, and read it as what it is: part of a pyproject.toml, a sweep, or a spec of some kind."""
        keys = set(tomllib.loads(block.text))
        if block.reason is None and not keys <= {"build-system", "project", "tool"}:
            path = self.folder / "page.toml"
            path.write_text(block.text, encoding="utf-8")
            if {"sandbox", "model"} <= keys:
                from vitrify.learn.experiment import read_sweep  # imports JAX

                assert read_sweep(path)
            else:
                self._spec(block.text, ".toml")

    def _json(self, block: Block) -> None:
        json.loads(block.text)
        if block.reason is None:
            self._spec(block.text, ".json")

    def _spec(self, text: str, ending: str) -> None:
        """Read a text as a spec: one kind of those whose files end so must accept it."""
        refusals = []
        for suffix in (suffix for suffix in suffixes() if suffix.endswith(ending)):
            path = self.folder / f"page{suffix}"
            path.write_text(text, encoding="utf-8")
            try:
                read_spec(path)
            except VitrifyError as error:
                refusals.append(f"{suffix}: {error}")
            else:
                return
        raise AssertionError("no kind of spec reads this:\n" + "\n".join(refusals))

    def _console(self, block: Block) -> None:
        for command, output in sessions(block.text):
            if block.reason is not None:
                self._check(command)
            else:
                done = self._done(command)
                assert stripped(done.stdout) == stripped(output), f"{command}\n{done.stdout}\n{done.stderr}"
                assert done.returncode in (0, 1), f"{command}\n{done.stderr}"  # 1: what is checked does not hold

    def _sh(self, block: Block) -> None:
        """Run each line; once an optional library is missing, later lines, which may need its output, are checked."""
        runs = block.reason is None
        for command in commands(block.text):
            program, *words = shlex.split(command, comments=True)
            if program == "export":
                self.exported |= dict(word.split("=", 1) for word in words)
            elif not runs or program in ("make", "pip") or ENDLESS & set(words[:1]):
                self._check(command)
            else:
                done = self._done(command)
                runs = not lacks_a_library(done)
                assert done.returncode == 0 or not runs, f"{command}\n{done.stdout}\n{done.stderr}"

    def _done(self, command: str) -> subprocess.CompletedProcess[str]:
        """Return the result of a command: of vitrify in this process where that is the same, else in a shell."""
        program, *words = shlex.split(command, comments=True)
        assert program == "vitrify" or program in SHELL, f"no test runs the program {program!r}"
        shell = bool(OPERATORS & set(words)) or program != "vitrify"
        if not (shell or self.processes or self.exported):
            return vitrify(*words, cwd=self.folder)
        alias = f'vitrify() {{ {shlex.quote(sys.executable)} -P -m vitrify "$@"; }}\n'  # the folder is on no path
        path = os.pathsep.join(filter(None, [self.exported.get("PYTHONPATH"), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, **self.exported, "PYTHONPATH": path}
        return subprocess.run(
            ["sh", "-c", alias + command],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def _check(self, command: str) -> None:
        """Check a command without running it: targets of make, extras of pip, commands and options of vitrify."""
        program, *words = shlex.split(command, comments=True)
        if program == "make":
            done = subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        elif program == "pip":
            for extras in re.findall(r"\[(.+?)\]", command):
                assert set(extras.split(",")) <= set(EXTRAS), command
        else:
            assert program == "vitrify", f"no test checks the program {program!r}"
            parse(words)


@cache
def the_command_line() -> Any:
    """Return the group of all commands."""
    return get_command(app)


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command that the words after `vitrify` name, and the words behind its name."""
    command = the_command_line()
    while hasattr(command, "commands") and words:
        name, *words = words
        assert name in command.commands, f"there is no command {name!r}"
        command = command.commands[name]
    return command, words


def parse(words: list[str]) -> None:
    """Parse the words of a vitrify command as the command line does, and stop before anything runs."""
    command, rest = command_of(words)
    command.make_context(words[0], rest)


@cache
def options(command: Any) -> set[str]:
    """Return the options of a command."""
    context = command.make_context("command", [], resilient_parsing=True)
    return {option for parameter in command.get_params(context) for option in parameter.opts}


def mentioned(text: str) -> Iterator[list[str]]:
    """Yield the words of the vitrify commands that stand in a page's sentences, between backticks."""
    for span in re.findall(r"`vitrify ([a-z][^`]*)`", FENCE.sub("", text)):
        yield re.split(r"[\s|\[\]=\\]+", span)


def lacks_a_library(done: subprocess.CompletedProcess[str]) -> bool:
    """Return whether a command was refused because an optional library is not installed here."""
    named = re.search(r"this needs \w+, which can't be imported .*: pip install 'vitrify\[([\w-]+)\]'", done.stderr)
    return done.returncode == 2 and named is not None and named[1] in EXTRAS
