"""The core needs none of the optional libraries, and help comes at once."""

from __future__ import annotations

import ast
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "vitrify"
OPTIONAL = {"torch", "transformers", "tokenizers", "transformer_lens", "onnx", "onnxruntime", "onnxscript", "ray"}
TRAVELLING = {"torch_module", "hf_model", "lens_loading"}  # files that exports carry: they stand for themselves


def imported_at_once(path: Path) -> set[str]:
    """What a file imports when it is imported itself: not in functions, and not for types only."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
        waiting += ast.iter_child_nodes(node)
    return found


def test_no_file_imports_an_optional_library_at_once() -> None:
    told = re.compile(rf"import .*\b({'|'.join(OPTIONAL)})\b|from ({'|'.join(OPTIONAL)})\b")
    for path in SRC.rglob("*.py"):
        if path.stem not in TRAVELLING and told.search(path.read_text(encoding="utf-8")):
            assert not imported_at_once(path) & OPTIONAL, path
    assert imported_at_once(SRC / "interop" / "torch_module.py") >= {"torch"}


@pytest.mark.slow
def test_every_module_is_imported_without_them() -> None:
    program = f"""
import sys
from importlib import import_module
from pkgutil import walk_packages

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OPTIONAL!r}:
            raise ImportError(f"blocked: {{name}}")

sys.meta_path.insert(0, Blocked())
import vitrify
count = 0
for entry in walk_packages(vitrify.__path__, "vitrify."):
    if entry.name.split(".")[-1] not in {TRAVELLING!r} and not entry.name.endswith("__main__"):
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
