"""Path patching in TransformerLens finds exactly the circuit of an exported network, entangled or not."""

from __future__ import annotations

import importlib.util
import json
import runpy
from pathlib import Path

import pytest

from vitrify.interop.export import export
from vitrify.mechanisms.puzzle import puzzle, question_json, result_json, write
from vitrify.mechanisms.score import Agreement, score_files

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # what libraries warn of is their business
EXAMPLE = Path(__file__).parents[2] / "examples" / "patching.py"
RIGHT = "Agreement(precision=1.0, recall=1.0, f1=1.0)"


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("torch", "transformer_lens"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'vitrify[interop]' runs the tests of exports")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")


@pytest.mark.parametrize(("name", "seed"), [("two-hops", None), ("mod3-log-depth", 2), ("grammar-levels", 1)])
def test_circuits_of_heads_and_units_are_found(name: str, seed: int | None, tmp_path: Path) -> None:
    from vitrify.interop.lens_loading import load
    from vitrify.interop.lens_patching import patched_paths

    made = puzzle(name, seed=seed)
    write(made, tmp_path)
    export(tmp_path / name, "transformer-lens", tmp_path / "lens", precision="float64")
    effects = patched_paths(load(tmp_path / "lens"), question_json(made))
    (tmp_path / "result.json").write_text(json.dumps(result_json(name, scores=effects)))
    found = score_files(tmp_path / "answers" / f"{name}.json", tmp_path / "result.json")
    one = Agreement(1.0, 1.0, 1.0)
    assert (found.edges, found.between_nodes, found.nodes, found.auc, found.faithfulness) == (one, one, one, 1.0, 1.0)
    assert [effects[edge] for edge in made.circuit.edges] == pytest.approx(made.circuit.effects)


def test_the_worked_example_scores_one_and_wrong_circuits_less(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE))
    said = capsys.readouterr().out
    for name in ("plain", "twin"):
        assert f"{name}: {RIGHT} AUC 1.0 faithfulness 1.0" in said
    less, more = said.splitlines()[-2:]
    assert less.startswith("an edge less: Agreement(precision=1.0, recall=0.8888")
    assert float(less.split()[-1]) < 1
    assert more.startswith("an edge more: Agreement(precision=0.9, recall=1.0")
