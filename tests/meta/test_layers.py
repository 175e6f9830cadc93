"""A layer imports only what stands above it, and building does not import JAX."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "vitrify"
LAYERS = [
    "errors",
    "arrays",
    "registry",
    "markup",
    "spec",
    "net",
    "kit",
    "constructions",
    "certify",
    "sandboxes",
    "learn",
    "bounds",
    "mechanisms",
    "claims",
    "report",
    "interop",
    "web",
    "cli",
]
TOP = {"errors", "arrays", "registry", "markup"}


def layer_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The layers of vitrify that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "vitrify" else [f"vitrify.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("vitrify.")}
    return found


FILES = [path for path in sorted(SRC.rglob("*.py")) if layer_of(path) not in ("__init__", "__main__")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_a_file_imports_only_its_own_layer_and_those_above(path: Path) -> None:
    own = layer_of(path)
    if own == "recheck":  # the second opinion shares nothing with what it judges
        assert imports(path) <= {"errors", "spec"}
        return
    allowed = set(LAYERS[: LAYERS.index(own) + 1]) | {"__version__"} | ({"recheck"} if own == "cli" else set())
    assert imports(path) <= allowed


def test_every_folder_is_a_known_layer() -> None:
    assert {layer_of(path) for path in FILES} == {*LAYERS, "recheck"}


def test_the_second_opinion_is_small_and_loads_no_other_layer() -> None:
    assert len((SRC / "recheck.py").read_text(encoding="utf-8").splitlines()) <= 300
    program = """
import sys
import vitrify.recheck
from vitrify.spec import SUFFIXES
from importlib import import_module
for _, module, _ in SUFFIXES.values():
    import_module(f"vitrify.spec.{module}")
loaded = {name.split(".")[1] for name in sys.modules if name.startswith("vitrify.")}
assert loaded <= {"recheck", "errors", "arrays", "registry", "spec"}, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_no_file_is_named_after_nothing_or_grows_beyond_400_lines() -> None:
    shown = [path for kind in ("js", "css", "j2") for path in SRC.rglob(f"*.{kind}")]
    for path in [*FILES, *shown]:
        assert path.stem not in {"utils", "helpers", "common", "misc", "manager"}
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path


def test_building_running_and_certifying_import_no_jax() -> None:
    program = """
import sys
from vitrify.spec.automata import cyclic
from vitrify.constructions.catalogue import build
from vitrify.kit import assemble
from vitrify.net import trace
from vitrify.certify import certify
spec = cyclic(3)
net = build(spec)
trace(net, ["1", "1"])
certify(net, spec, max_length=3)
from vitrify.spec.word_languages import waking_up
register = build(waking_up(2), "register")
trace(register, ["who0", "awoke"])
certify(register, waking_up(2), max_length=3)
assert "jax" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_listing_claims_imports_none_of_them() -> None:
    program = """
import sys
sys.argv = ["vitrify", "list"]
from vitrify.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
heavy = {"numpy", "scipy", "jax", "vitrify.kit"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
