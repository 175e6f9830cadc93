"""The command line in this process: what a test would see of a process of its own, without starting one."""

from __future__ import annotations

import io
import os
import sys
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from typer.main import get_command

from vitrify.cli import app as app_module
from vitrify.cli import main


def vitrify(
    *words: object, given: str | None = None, cwd: Path = Path(), columns: int | None = None
) -> CompletedProcess[str]:
    """Run a command as `python -m vitrify` does, in the folder `cwd`; `given` is its standard input.

    The output is as wide as in a pipe, or as in a terminal of so many columns.
    """
    os.environ.pop("COLUMNS", None)
    if columns:
        os.environ["COLUMNS"] = str(columns)
    argv, stdin = sys.argv, sys.stdin
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))  # as strict as a pipe
    app_module.app, code = _commands(), 0
    sys.argv, sys.stdin = ["vitrify", *map(str, words)], io.StringIO(given or "")
    try:
        with chdir(cwd), warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
            warnings.simplefilter("default")
            main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.argv, sys.stdin = argv, stdin
        os.environ.pop("COLUMNS", None)
    return CompletedProcess([*map(str, words)], code, *(_text(stream) for stream in (out, err)))


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@cache
def _commands() -> Any:
    """Return all commands, which would otherwise be made anew at every call."""
    return get_command(app_module.app)
