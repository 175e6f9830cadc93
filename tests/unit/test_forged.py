"""Forged certificates with every digest computed anew: `recheck` never affirms the forged statement."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from forged import FOLDERS, affirmed, certified_folder, forge
from vitrify.rechecking import recheck

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders with a certificate, each built once."""
    built: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in built:
            built[name] = certified_folder(name, tmp_path_factory.mktemp("nets") / "net")
        return built[name]

    return folder


def forgeries_affirmed(folders: Callable[[str], Path], tmp_path: Path, count: int, seed: int) -> list[str]:
    rng, tried, wrong = np.random.default_rng(seed), 0, []
    names = list(FOLDERS)
    while tried < count:
        name, target = names[tried % len(names)], tmp_path / "net"
        where = forge(folders(name), target, rng)
        if where is not None:
            tried += 1
            why = affirmed(target, where)
            wrong += [f"{name}: {why}"] if why else []
        shutil.rmtree(target)
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("name", FOLDERS)
def test_the_folders_agree_before_they_are_forged(folders: Callable[[str], Path], name: str) -> None:
    report = recheck(folders(name))
    assert (report.problem, report.unjudged) == (None, None)


@pytest.mark.long
def test_recheck_affirms_no_forged_statement(folders: Callable[[str], Path], tmp_path: Path) -> None:
    assert forgeries_affirmed(folders, tmp_path, 60, seed=0) == []


@pytest.mark.slow
def test_recheck_affirms_none_of_1000_forged_statements(folders: Callable[[str], Path], tmp_path: Path) -> None:
    assert forgeries_affirmed(folders, tmp_path, 1000, seed=1) == []
