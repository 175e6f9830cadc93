"""The files that a page shows, as a package in a folder, and Python programs that run beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from documents import Reader, blocks


def write_files(page: Path, folder: Path) -> Path:
    """Write every `python` block of a page that names its file below a folder, and return the folder."""
    reader = Reader(folder)
    for block in blocks(page, "python"):
        reader.run(block)
    return folder


def run(folder: Path, *words: str, plugins: str = "mine") -> subprocess.CompletedProcess[str]:
    """Run Python in a folder whose packages can be imported; `plugins` are those that vitrify adds."""
    paths = os.pathsep.join((str(folder), os.environ["PYTHONPATH"]))
    environment = {**os.environ, "VITRIFY_PLUGINS": plugins, "PYTHONPATH": paths, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def succeeds(folder: Path, *words: str, plugins: str = "mine") -> str:
    """Run Python as `run` does, and return the output of a program that ends without an error."""
    done = run(folder, *words, plugins=plugins)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
