"""The kind of spec of docs/contribute/specs.md with its construction, in a package of its own: two files, no edit.

The commands of the page (build, certify, recheck, run) are run by `tests/meta/test_documents.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contributed import succeeds as run
from contributed import write_files
from documents import ROOT

PAGE = ROOT / "docs" / "contribute" / "specs.md"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `mine` and two specs."""
    home = write_files(PAGE, tmp_path_factory.mktemp("home"))
    (home / "two.echo").write_text("alphabet: a b c\nback: 2\n")
    (home / "three.echo").write_text("alphabet: a b c\nback: 3\n")
    return home


def test_it_is_listed_and_its_suffix_is_in_the_help(package: Path) -> None:
    assert "echo" in run(package, "-m", "vitrify", "list")
    assert ".echo" in run(package, "-m", "vitrify", "build", "--help")


def test_its_oracle_rejects_a_network_of_another_spec(package: Path) -> None:
    code = """
import numpy as np
import vitrify as v
from vitrify.certification.oracles.meanings import MeaningOracle
from vitrify.certification.oracles.catalogue import oracle_for
two, three = v.read("two.echo"), v.read("three.echo")
net = v.build(two, max_length=8)
assert isinstance(oracle_for(two, net.architecture), MeaningOracle)
assert v.certify(net, two).verdict == "holds"
evidence = v.certify(net, three)
assert evidence.verdict == "fails", evidence
assert evidence.witness["expected"] != evidence.witness["actual"]
mutants = v.mutation_test(net, two, count=20)
assert mutants.rate >= 0.9, mutants
"""
    run(package, "-c", code)


def test_contracts_see_it(package: Path) -> None:
    code = """
from samples import SAMPLES, ENTRIES, built
(kind,) = [kind for kind in SAMPLES if kind.__name__ == "Echo"]
assert len(SAMPLES[kind]) == 2
(entry,) = [entry for entry in ENTRIES.values() if entry.kind is kind]
for spec in SAMPLES[kind]:
    assert not entry.sizes(spec, max_length=12).problems(built(entry, spec, "softmax").sizes)
"""
    run(package, "-c", code)


@pytest.mark.long
def test_it_is_opened_in_the_app(package: Path) -> None:
    pytest.importorskip("fastapi")
    code = """
from serving import Visitor, serving
with serving(workers=1, tracers=1, waiting=4, own=3) as address, Visitor(address) as visitor:
    assert "symbol some positions before" in visitor.http.get("/glass").text
    text = open("two.echo").read()
    assert visitor.give("two.echo", text).json()["kind"] == "symbol some positions before"
    wrong = visitor.give("wrong.echo", "alphabet: a a\\nback: 0\\n")
    assert wrong.status_code == 422 and "back must be a whole number" in wrong.text, wrong.text
    net = visitor.build("two.echo", text)["net"]
    answer = visitor.run(net, ["a", "b", "c"])["answer"]
    assert answer["answers"] == ["(none)", "(none)", "(none)", "a"][-len(answer["answers"]):], answer
    assert answer["right"] == [None, True, True, True], answer
    assert visitor.check(net)["verdict"] == "holds"
"""
    run(package, "-c", f"if __name__ == '__main__':\n{code.replace(chr(10), chr(10) + '    ')}")
