"""The claim, the sandbox and the circuit of CONTRIBUTING.md, in a package: found, checked, and able to fail.

Its commands are run by `test_documents.py`; its construction is tested in `tests/unit/constructions/test_guide.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contributed import run, succeeds, write_files
from documents import ROOT

CONTRACTS = ROOT / "tests" / "contract"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `mine`."""
    return write_files(ROOT / "CONTRIBUTING.md", tmp_path_factory.mktemp("home"))


def test_the_page_has_a_file_of_every_kind(package: Path) -> None:
    files = sorted(str(path.relative_to(package / "mine")) for path in (package / "mine").rglob("[a-z]*.py"))
    assert [file.split("/")[0] for file in files] == ["claims", "constructions", "mechanisms", "sandboxes"]


@pytest.mark.jax
@pytest.mark.long
def test_the_claim_holds_and_its_saboteur_is_rejected(package: Path) -> None:
    code = f"""
import runpy
from vitrify.claims import catalogue, is_learned
page = catalogue.find("R90")
outcome = catalogue.run_claim(page)
assert outcome.verdict == "holds" and outcome.saboteur_rejected, outcome
assert {{evidence.verdict for evidence in outcome.saboteurs.values()}} == {{"fails"}}
assert outcome.methods == {{"proved": 3}} and page.fields["certified"] == "proved"
learned = next(each for each in catalogue.listing() if is_learned(each))
catalogue.listing = lambda: [page, learned]  # the contract tests of these two only
contract = runpy.run_path({str(CONTRACTS / "test_claims.py")!r})
for name in ("the_docstring_says_everything", "the_file_name_is_a_sentence", "id_and_standing"):
    contract[f"test_{{name}}"]()
contract["test_what_is_read_without_importing_is_what_is_imported"]()
"""
    succeeds(package, "-c", code)


@pytest.mark.long
def test_a_claim_whose_saboteur_passes_is_undecided(package: Path) -> None:
    code = """
from vitrify.claims import _nets
from vitrify.claims.catalogue import find, run_claim
_nets.zeroing = lambda *_: lambda subject: subject  # breaks nothing
outcome = run_claim(find("R90"))
assert outcome.verdict == "undecided" and not outcome.saboteur_rejected, outcome
"""
    succeeds(package, "-c", code)


@pytest.mark.jax
@pytest.mark.long
def test_the_sampler_of_the_sandbox_agrees_with_its_exact_predictor(package: Path) -> None:
    """By contract tests, and by the integral over the bias: a word with s ones has probability s! (n−s)! / (n+1)!."""
    code = f"""
import runpy
from itertools import product
from math import factorial
import jax, jax.numpy as jnp, numpy as np
from vitrify.sandboxes.catalogue import Example, make, names
assert "coin" in names()
coin = make("coin", length=5)
words = jnp.array(list(product((0, 1), repeat=5)))
rows = Example(words[:, :-1], words, jnp.ones((32, 5)), {{}})
logp = np.take_along_axis(np.asarray(jax.vmap(coin.optimal)(rows)), np.asarray(words)[..., None], axis=-1).sum((1, 2))
exact = [factorial(s) * factorial(5 - s) / factorial(6) for s in np.asarray(words).sum(axis=1)]
assert np.allclose(np.exp(logp), exact, rtol=1e-5), (np.exp(logp), exact)
contract = runpy.run_path({str(CONTRACTS / "test_sandboxes.py")!r})
contract["test_after_every_prefix_answers_come_as_often_as_the_oracle_says"]("coin")
contract["test_nobody_beats_the_optimal_predictor_and_the_floor_is_its_loss"]("coin")
kind = type(coin)
kind.optimal = kind.half_a_count  # a predictor that is not optimal is noticed
contract["drawn"].cache_clear()
try:
    contract["test_after_every_prefix_answers_come_as_often_as_the_oracle_says"]("coin")
except AssertionError:
    print("noticed")
"""
    assert succeeds(package, "-c", code) == "noticed\n"


@pytest.mark.long
def test_the_circuit_is_exact_and_its_twin_has_the_same_one(package: Path) -> None:
    code = """
from vitrify.mechanisms.puzzle import answer_json, puzzle
from vitrify.mechanisms.score import Result, score
for seed in (None, 3):
    one = puzzle("ends_in_ab", seed=seed)
    assert one.circuit.exact and len(one.circuit.edges) == 7
    right = score(answer_json(one), Result(frozenset(one.circuit.edges)), one.judge)
    assert right.edges.f1 == right.faithfulness == 1
    for edge in one.circuit.edges:
        less = score(answer_json(one), Result(frozenset(one.circuit.edges) - {edge}), one.judge)
        assert less.edges.recall < 1 and less.faithfulness < 1, edge
"""
    succeeds(package, "-c", code)
    listed = json.loads(succeeds(package, "-m", "vitrify", "benchmark-circuits", "list", "--json"))
    assert {"name": "ends_in_ab", "family": "logic", "construction": "temporal"} in listed


def test_a_circuit_with_the_name_of_another_is_refused(package: Path) -> None:
    (package / "other" / "mechanisms").mkdir(parents=True)
    text = (package / "mine" / "mechanisms" / "ends_in_ab.py").read_text(encoding="utf-8")
    (package / "other" / "mechanisms" / "induction.py").write_text(text, encoding="utf-8")
    done = run(package, "-m", "vitrify", "benchmark-circuits", "list", plugins="other")
    assert done.returncode == 2
    assert "the zoo already has a network induction: rename the file" in done.stderr


def test_an_installed_package_is_found_by_its_entry_point(package: Path) -> None:
    """What pip writes for the `pyproject.toml` of the page."""
    info = package / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[vitrify.plugins]\nmine = mine\n")
    assert "automata_of_resets_need_no_layer" in succeeds(package, "-m", "vitrify", "list", plugins="")
