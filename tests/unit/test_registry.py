"""Catalogues see the entries of plugins beside their own, and declarations without importing anything."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vitrify import registry
from vitrify.errors import InputError

ENTRY = '"""A bound of nothing."""\n\nBOUND = Bound(kind="depth", papers=())\n'


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package `mine_plugin` with two catalogues, named by the environment variable."""
    for folder in ("", "bounds", "bounds/calculators", "spec"):
        (tmp_path / "mine_plugin" / folder).mkdir()
        (tmp_path / "mine_plugin" / folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(registry.PLUGINS, " mine_plugin, ")
    registry.plugins.cache_clear()
    yield tmp_path / "mine_plugin"
    registry.plugins.cache_clear()
    for name in [name for name in sys.modules if name.startswith("mine_plugin")]:
        del sys.modules[name]


def test_names_headlines_and_modules_of_a_plugin_stand_beside_ours(plugin: Path) -> None:
    package = "vitrify.bounds.calculators"
    ours = registry.names(package)
    (plugin / "bounds" / "calculators" / "aaa.py").write_text(ENTRY)
    (plugin / "bounds" / "calculators" / "_machinery.py").write_text("1 / 0")
    (plugin / "bounds" / "calculators" / "catalogue.py").write_text("1 / 0")
    assert registry.names(package) == ["aaa", *ours]
    first, *others = registry.headlines(package, "BOUND")
    assert (first.name, first.title, first.fields) == ("aaa", "A bound of nothing", {"kind": "depth"})
    assert [entry.name for entry in others] == ours
    assert [entry.name for entry in registry.headlines(package, "BOUND", "aaa")] == ["aaa"]
    (plugin / "bounds" / "calculators" / "aaa.py").write_text("VALUE = 3")
    assert registry.load(package, "aaa").VALUE == 3
    assert registry.load(package, ours[0]).__name__ == f"{package}.{ours[0]}"


def test_a_catalogue_that_a_plugin_does_not_have_is_ours_alone(plugin: Path) -> None:
    assert plugin.name in registry.plugins()
    assert "parity" in registry.names("vitrify.constructions")


def test_a_name_has_one_file(plugin: Path) -> None:
    (plugin / "bounds" / "calculators" / f"{registry.names('vitrify.bounds.calculators')[0]}.py").write_text("")
    with pytest.raises(InputError, match=r"mine_plugin\.bounds\.calculators and vitrify\.bounds\.calculators both"):
        registry.names("vitrify.bounds.calculators")


def test_declarations_are_read_from_the_source_of_plugins_too(plugin: Path) -> None:
    (plugin / "spec" / "folder").mkdir()
    (plugin / "spec" / "folder" / "new.py").write_text(
        "1 / 0\nTHING = Thing(\n    3,\n)\n\n\n@mark(New)\nclass New:\n    pass\n\n\n"
        "class Other:\n    pass\n\n\n@mark(Old)\n@other\ndef old():\n    pass\n"
    )
    (thing,) = registry.declared("vitrify.spec", "THING = ")
    assert (thing.module, ast.unparse(thing.node)) == ("mine_plugin.spec.folder.new", "THING = Thing(3)")
    marked = [entry.node for entry in registry.declared("vitrify.spec", "@mark")]
    assert [node.name for node in marked if isinstance(node, ast.ClassDef | ast.FunctionDef)] == ["New", "old"]


def test_every_statement_is_found_with_where_its_names_come_from(plugin: Path) -> None:
    (plugin / "spec" / "new.py").write_text(
        '"""A module."""\nfrom math import (\n    pi as PI,  # a comment\n    sqrt,\n)\nfrom .near import Near\n1 / 0\n'
        "@mark(1)\ndef one(x: Near = 3): ...\n\n\n"
        "@mark(2)\ndef two(y: sqrt(PI) = max(2, 1)):\n    return 1\n\n\nTHREE = 3\n"
    )
    one, two = registry.declared("vitrify.spec", "@mark")
    assert isinstance(one.node, ast.FunctionDef)
    assert isinstance(two.node, ast.FunctionDef)
    assert (one.node.name, two.node.name, one.doc) == ("one", "two", "A module.")
    assert one.origin("Near") == ("mine_plugin.spec.near", "Near")
    assert one.origin("PI") == ("math", "pi")
    assert one.origin("Own") == ("mine_plugin.spec.new", "Own")
    annotation = two.node.args.args[0].annotation
    assert annotation is not None
    assert two.value(annotation) == pytest.approx(3.14159**0.5, abs=1e-5)
    assert two.value(two.node.args.defaults[0]) == 2


@pytest.mark.jax
def test_headlines_are_those_of_whole_modules() -> None:
    for package, value in (("vitrify.claims", "CLAIM"), ("vitrify.sandboxes", "SANDBOX")):
        for headline in registry.headlines(package, value):
            module = registry.load(package, headline.name)
            assert headline.doc == inspect.cleandoc(module.__doc__ or "")
            assert hasattr(module, value)
            assert all(getattr(getattr(module, value), name) == field for name, field in headline.fields.items())


def test_a_plugin_that_lacks_a_module_says_so(plugin: Path) -> None:
    (plugin / "bounds" / "__init__.py").write_text("import no_such_module_anywhere")
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        registry.names("vitrify.bounds.calculators")


def test_a_plugin_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.PLUGINS, "no_such_plugin")
    registry.plugins.cache_clear()
    with pytest.raises(InputError, match="no_such_plugin"):
        registry.plugins()
    registry.plugins.cache_clear()


def test_an_installed_distribution_names_a_plugin(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = plugin.parent / "mine_plugin-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine-plugin\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[vitrify.plugins]\nmine = mine_plugin\n")
    monkeypatch.delenv(registry.PLUGINS)
    registry.plugins.cache_clear()
    assert registry.plugins() == ("mine_plugin",)
