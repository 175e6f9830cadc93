"""The command line in this process: what a test would see of a process of its own, without starting one."""

from __future__ import annotations

import io
import os
import sys
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess

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
    out, err, code = io.StringIO(), io.StringIO(), 0
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
    return CompletedProcess([*map(str, words)], code, out.getvalue(), err.getvalue())
