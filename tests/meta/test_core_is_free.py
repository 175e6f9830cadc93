"""The core needs none of the optional libraries, and help comes at once."""

from __future__ import annotations

import ast
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from bare_commands import extras

SRC = Path(__file__).parents[2] / "src" / "vitrify"
OPTIONAL = frozenset().union(*extras().values())
TRAVELLING = {"torch_module", "hf_model", "lens_loading"}  # files that exports carry: they stand for themselves


def imported(path: Path) -> set[str]:
    """Return the top packages that a file imports anywhere, but for types only."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
        waiting += ast.iter_child_nodes(node)
    return found


def test_optional_libraries_are_imported_by_need_alone() -> None:
    """The app is the exception: `vitrify serve` looks for its libraries before it imports the app."""
    mention = re.compile(rf"import .*\b({'|'.join(OPTIONAL)})\b|from ({'|'.join(OPTIONAL)})\b")
    for path in SRC.rglob("*.py"):
        free = path.stem in TRAVELLING or path.is_relative_to(SRC / "web")
        if not free and mention.search(path.read_text(encoding="utf-8")):
            assert not imported(path) & OPTIONAL, path
    assert imported(SRC / "interop" / "torch_module.py") >= {"torch"}


@pytest.mark.slow
def test_every_module_is_imported_without_them() -> None:
    program = f"""
import sys
from importlib import import_module
from pkgutil import walk_packages

from bare_commands import Blocked

sys.meta_path.insert(0, Blocked())
import vitrify
count = 0
for entry in walk_packages(vitrify.__path__, "vitrify."):
    free = entry.name.split(".")[-1] in {TRAVELLING!r} or entry.name.startswith("vitrify.web.")
    if not free and not entry.name.endswith("__main__"):
        import_module(entry.name)
        count += 1
assert count > 300, count
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_help_takes_less_than_half_a_second() -> None:
    """Of processor time, as the machine may be busy with other things; the best of three."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "vitrify", "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if times[-1] < 0.5:
            break
    assert min(times) < 0.5, times
