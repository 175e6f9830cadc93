"""Constructions are matched with specs by class, exactly, and without importing the construction."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from vitrify import registry
from vitrify.constructions.catalogue import chosen, constructions, fitting
from vitrify.errors import BuildRefused
from vitrify.spec.automata.families import cyclic


def construction(name: str, imported: str, kind: str, default: bool) -> str:
    """Return a file with one construction, which can't be imported."""
    literals = f'name="{name}", summary="a thing that is built", default={default}'
    return f"{imported}\n@construction({literals})\ndef {name}(spec: {kind}): ...\n1 / 0\n"


OURS = "from vitrify.spec.automata.automaton import Automaton"
FILES = {
    "spec/own.py": "class Automaton:\n    pass\n",  # the same name as ours, another class
    "spec/heir.py": f"{OURS}\n\n\nclass Heir(Automaton):\n    pass\n",
    "spec/shown.py": "from mine_plugin.spec.own import Automaton as Automaton\n",
    "constructions/near.py": construction("near", "from ..spec.own import Automaton", "Automaton", default=True),
    "constructions/shown.py": construction(
        "shown", "from mine_plugin.spec.shown import Automaton", "Automaton", default=False
    ),
    "constructions/ours.py": construction("ours", f"{OURS} as A", "A", default=False),
    "constructions/heir.py": construction("heir", "from mine_plugin.spec.heir import Heir", "Heir", default=True),
}


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in FILES.items():
        path = tmp_path / "mine_plugin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in ("", "spec", "constructions"):
        (tmp_path / "mine_plugin" / folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(registry.PLUGINS, "mine_plugin")
    caches = (registry.plugins, constructions)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()
    for name in [name for name in sys.modules if name.startswith("mine_plugin")]:
        del sys.modules[name]


def test_classes_of_one_name_are_told_apart() -> None:
    from mine_plugin.spec.own import Automaton as Own  # type: ignore[import-not-found]

    assert [entry.name for entry in fitting(Own())] == ["near", "shown"]
    names = [entry.name for entry in fitting(cyclic(2))]
    assert {"log-depth", "ours"} <= set(names)
    assert not {"near", "shown", "heir"} & set(names)
    assert chosen(Own()).name == "near"
    assert not [name for name in sys.modules if name.startswith("mine_plugin.constructions.")]


def test_a_class_has_its_own_default_before_that_of_the_class_above_it() -> None:
    from mine_plugin.spec.heir import Heir  # type: ignore[import-not-found]

    spec = cyclic(2)
    heir = Heir(**{field.name: getattr(spec, field.name) for field in fields(spec)})
    assert chosen(heir).name == "heir"
    assert chosen(heir, "log-depth").name == "log-depth"
    assert chosen(spec).name == "log-depth"
    with pytest.raises(BuildRefused, match="no construction builds a spec of type int yet; there are some for A, "):
        chosen(3)
