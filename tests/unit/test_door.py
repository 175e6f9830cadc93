"""The one door to the library: every name behind it is there, typed, documented, and costs nothing until it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vitrify
from vitrify.spec.kinds import suffixes

ROOT = Path(__file__).parents[2]


@pytest.mark.jax
def test_every_public_name_is_there_and_says_what_it_does() -> None:
    for name in vitrify.PUBLIC:
        assert getattr(vitrify, name).__doc__, name
    assert set(vitrify.PUBLIC) <= set(dir(vitrify))
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'; it has .*build"):
        vitrify.nonsense  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(vitrify.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    named = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assigned = {
        name.id
        for node in block.body
        if isinstance(node, ast.Assign)
        for name in ast.walk(node.targets[0])
        if isinstance(name, ast.Name)
    }
    assert {*named, *assigned} - {None, "models", "sandboxes", "tasks"} == set(vitrify.PUBLIC)


def test_every_kind_of_spec_is_there() -> None:
    assert {entry.name for entry in suffixes().values()} <= set(vitrify.PUBLIC)


def test_the_version_is_that_of_the_project() -> None:
    assert f'version = "{vitrify.__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_page_of_the_library_has_every_public_name() -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    assert set(vitrify.PUBLIC) <= set(re.findall(r"\bv\.(\w+)", page))


def test_the_door_imports_nothing_heavy() -> None:
    program = "import sys, vitrify; assert not {'numpy', 'jax', 'vitrify.spec', 'vitrify.net'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_no_public_name_is_also_a_module() -> None:
    """Else the import system would put the module in the place of the function."""
    modules = {path.stem for path in Path(vitrify.__path__[0]).iterdir()}
    assert not modules & set(vitrify.PUBLIC)
