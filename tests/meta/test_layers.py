"""A layer imports only what stands above it, and building does not import JAX."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "vitrify"
LAYERS = [
    "errors",
    "limits",
    "interrupts",
    "encoding",
    "files",
    "intervals",
    "hints",
    "parameters",
    "arrays",
    "registry",
    "markup",
    "optional",
    "workers",
    "spec",
    "net",
    "kit",
    "constructions",
    "certification",
    "sandboxes",
    "learn",
    "bounds",
    "mechanisms",
    "claims",
    "report",
    "interop",
    "extraction",
    "web",
    "cli",
]
TOP = set(LAYERS[: LAYERS.index("spec")])  # single modules, which every package may import


def layer_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def parsed(path: Path) -> tuple[list[str], list[ast.Import | ast.ImportFrom]]:
    """The classes of a file, by name, and all its imports: every file is parsed once, and no tree is kept."""
    tree = ast.parse(read(path))
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    return classes, [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(path: Path) -> set[str]:
    """The layers of vitrify that a file imports, anywhere in it."""
    found = set()
    for node in parsed(path)[1]:
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "vitrify" else [f"vitrify.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("vitrify.")}
    return found


FILES = [path for path in sorted(SRC.rglob("*.py")) if layer_of(path) not in ("__init__", "__main__")]


def test_a_file_imports_only_its_own_layer_and_those_above() -> None:
    violations = []
    for path in FILES:
        layer = layer_of(path)
        if layer == "rechecking":  # the second opinion shares nothing with what it judges
            allowed = {"errors", "spec"}
        else:
            allowed = (
                set(LAYERS[: LAYERS.index(layer) + 1]) | {"__version__"} | ({"rechecking"} if layer == "cli" else set())
            )
        violations += [f"{path.relative_to(SRC)} imports {name}" for name in sorted(imports(path) - allowed)]
    assert not violations, "\n".join(violations)


def test_every_folder_is_a_known_layer() -> None:
    assert {layer_of(path) for path in FILES} == {*LAYERS, "rechecking"}


def test_the_second_opinion_is_small_and_loads_no_other_layer() -> None:
    assert len((SRC / "rechecking.py").read_text(encoding="utf-8").splitlines()) <= 400
    program = """
import sys
import vitrify.rechecking
from vitrify.spec.kinds import kinds
assert len(kinds()) >= 18
loaded = {name.split(".")[1] for name in sys.modules if name.startswith("vitrify.")}
assert loaded <= {*"rechecking errors limits encoding files hints parameters arrays registry spec".split()}, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_no_file_is_named_after_nothing_or_grows_beyond_400_lines() -> None:
    shown = [path for kind in ("js", "css", "j2") for path in SRC.rglob(f"*.{kind}")]
    for path in [*FILES, *shown]:
        assert path.stem not in {"utils", "helpers", "common", "misc", "manager"}
        assert len(read(path).splitlines()) <= 400, path


def test_building_running_and_certifying_import_no_jax() -> None:
    program = """
import sys
from vitrify.spec.automata.families import cyclic
from vitrify.constructions.catalogue import build
from vitrify.kit import assemble
from vitrify.net.inference import trace
from vitrify.certification import certify
spec = cyclic(3)
net = build(spec)
trace(net, ["1", "1"])
certify(net, spec, max_length=3)
from vitrify.spec.languages.word_patterns import waking_up
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
heavy = {"numpy", "scipy", "jax", "pydantic", "rich", "vitrify.kit"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_claims_train_through_trials_only() -> None:
    """So every check that trains saves its runs where `--resume` says, and resumes them."""
    trainers = {"vitrify.learn.train", "vitrify.learn.trainer"}
    wrong = []
    for path in sorted((SRC / "claims").glob("*.py")):
        nodes = parsed(path)[1]
        modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                modules |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        wrong += [f"{path.name} imports {name}" for name in sorted(modules & trainers)]
    assert not wrong, "\n".join(wrong)


def test_a_claim_about_training_is_one_page() -> None:
    """Without its plan, which is data."""
    texts = {path.name: read(path) for path in (SRC / "claims").glob("*.py")}
    plans = re.compile(r"^PLAN = .*?^\)$", re.MULTILINE | re.DOTALL)
    lines = {name: len(plans.sub("", text).splitlines()) for name, text in texts.items() if "Claim.planned(" in text}
    assert len(lines) >= 24
    assert not {name: count for name, count in lines.items() if count > 180}


def test_a_module_with_a_leading_underscore_is_imported_by_its_own_package_only() -> None:
    """What two packages share is public, and stands on the floor of the lower one."""
    wrong = []
    for path in sorted(SRC.rglob("*.py")):
        package = ["vitrify", *path.relative_to(SRC).parts[:-1]]
        for node in parsed(path)[1]:
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for module in modules:
                parts = module.split(".")
                private = next((at for at, part in enumerate(parts) if part.startswith("_") and part[1] != "_"), 0)
                if parts[0] == "vitrify" and private and parts[:private] != package:
                    wrong.append(f"{path.relative_to(SRC)}: {module}")
    assert wrong == []


def test_one_name_is_one_class() -> None:
    """A reader who has met a class by its name has met it everywhere, but in the file with the names of Tracr."""
    places: dict[str, list[str]] = {}
    for path in (path for path in FILES if path != SRC / "interop" / "tracr" / "language.py"):
        for name in parsed(path)[0]:
            places.setdefault(name, []).append(str(path.relative_to(SRC)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
