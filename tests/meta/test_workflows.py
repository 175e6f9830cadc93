"""The workflows of continuous integration: valid YAML that runs targets of the Makefile on the supported Pythons."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from documents import ROOT

yaml = pytest.importorskip("yaml")

FOLDER = ROOT / ".github" / "workflows"


def steps(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the one job of a workflow, and its steps."""
    workflow = yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))
    assert workflow[True]  # the key `on`, which YAML 1.1 reads as a truth value
    (job,) = workflow["jobs"].values()
    assert job["timeout-minutes"] <= 60
    return job, job["steps"]


def test_there_are_two_workflows() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {"test.yml", "site.yml"}


@pytest.mark.parametrize(("name", "target"), [("test", "test"), ("site", "docs")])
def test_a_workflow_runs_a_target_of_the_makefile(name: str, target: str) -> None:
    _, found = steps(name)
    (command,) = [step["run"] for step in found if "run" in step]
    assert command.split()[:2] == ["make", target]
    done = subprocess.run(["make", "-n", *command.split()[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_tests_run_on_every_python_that_the_package_supports() -> None:
    job, _ = steps("test")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [line.rsplit(" ", 1)[1] for line in project["classifiers"] if "Python :: 3." in line]
    assert job["strategy"]["matrix"]["python"] == listed


def test_the_site_is_published_from_the_folder_that_make_docs_writes() -> None:
    _, found = steps("site")
    (folder,) = [step["with"]["path"] for step in found if step.get("uses", "").startswith("actions/upload-pages")]
    assert f" {folder}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert Path(folder).parts[0] == "build"
