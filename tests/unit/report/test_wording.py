"""Sentences about evidence are for people only: certificates, verdicts and exit codes do not depend on them."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atlas_rows import AUTOMATA, HEADLINES, live
from vitrify.certification import Domain, Method, certify, mutants
from vitrify.certification.certificate import write_certificate
from vitrify.cli.app import app
from vitrify.constructions.catalogue import build
from vitrify.encoding import canonical
from vitrify.errors import FolderError
from vitrify.net.folder import save
from vitrify.rechecking import recheck
from vitrify.report import wording
from vitrify.report.figures import Drawings
from vitrify.report.site import Site
from vitrify.spec.automata.families import cyclic

OTHER_WORDS: dict[str, object] = {
    "str": "x",
    "list[str]": ["x; y: all 7 z"],
    "tuple[str, str]": ("x", ""),
    "list[tuple[str, str]]": [("x", "y")],
}


def functions() -> dict[str, Callable[..., object]]:
    """Every function of the module, by name."""
    every = inspect.getmembers(wording, inspect.isfunction)
    return {name: each for name, each in every if each.__module__ == wording.__name__}


def reword(patched: pytest.MonkeyPatch) -> None:
    """Let every sentence say something else."""
    for name, function in functions().items():
        other = OTHER_WORDS[function.__annotations__["return"]]
        patched.setattr(wording, name, lambda *_, other=other: other)


def exit_codes(*folders: Path) -> list[int]:
    """What `certify` and `recheck` come to, for machines and for people."""
    run, found = CliRunner(), []
    for folder in folders:
        for words in (
            ["certify", "--no-write"],
            ["certify", "--no-write", "--json"],
            ["recheck"],
            ["recheck", "--json"],
        ):
            told = run.invoke(app, [words[0], str(folder), *words[1:]])
            found.append(2 if isinstance(told.exception, FolderError) else told.exit_code)
    return found


@pytest.mark.long
def test_rewording_every_sentence_leaves_certificates_and_exit_codes_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = cyclic(3)
    good = build(spec, max_length=6)
    bad = next(m.weights for m in mutants(good, 50, 0) if certify(m.weights, spec).verdict == "fails")
    folders = [tmp_path / name for name in ("good", "bad", "old")]
    for folder, net in zip(folders, (good, bad, good), strict=True):
        save(net, folder, spec)
        write_certificate(folder, certify(net, spec, prove=True, reals=True))
    certificates = [(folder / "certificate.json").read_bytes() for folder in folders]
    old = json.loads(certificates[2]) | {"schema": 2}
    rest = {key: value for key, value in old.items() if key != "digest"}
    old["digest"] = hashlib.sha256(canonical(rest).encode()).hexdigest()
    (folders[2] / "certificate.json").write_text(canonical(old), encoding="utf-8")
    before = exit_codes(*folders)
    assert before == [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 2, 2]
    assert recheck(folders[0]).problem is None
    with monkeypatch.context() as patched:
        reword(patched)
        assert wording.domain(Domain("words", Method.SAMPLED, 1)) == "x"
        assert exit_codes(*folders) == before
        assert recheck(folders[0]).problem is None
        for folder, net, certificate in zip(folders, (good, bad), certificates, strict=False):
            write_certificate(folder, certify(net, spec, prove=True, reals=True))
            assert (folder / "certificate.json").read_bytes() == certificate


def test_rewording_every_sentence_leaves_the_atlas_its_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [live(AUTOMATA), live("two_layers_compose_functions", verdict="fails", witness={"word": "a"})]
    reword(monkeypatch)
    site = Site(tmp_path, rows, Drawings(tmp_path / "store"))
    site.write()
    assert [site.cards[row.name]["verdict"] for row in rows] == ["holds", "fails"]
    data = json.loads((tmp_path / "claims" / f"{AUTOMATA}.json").read_text(encoding="utf-8"))
    assert data == (rows[0].outcome and rows[0].outcome.to_json())
    assert set(HEADLINES) >= {row.name for row in rows}


def test_a_domain_in_words() -> None:
    assert wording.domain(Domain("words", Method.PROVED, None, longest=9)) == "all words of length 0 to 9"
    assert wording.domain(Domain("queries", Method.EXHAUSTIVE, 12)) == "all 12 queries"
    run = Domain("training runs", Method.TRAINED, 8, settings={"description": "8 seeds of a net", "tokens": 64})
    assert wording.domain(run) == "8 training runs, tokens: 64, 8 seeds of a net"
    listed = Domain("words that exercise the listed parts", Method.SAMPLED, 5, 1, 7)
    assert wording.domain(listed) == "every prefix of 5 words that exercise the listed parts of length 1 to 7"


def test_a_proof_in_words() -> None:
    told = {"holds": True, "max_length": 8, "assumed": ["a", "b"], "error": 0.25, "margin": 0.5}
    (sentence,) = wording.proof(told)
    assert sentence.startswith("margins proved for every word of length 1 to 8, given that a and b: ")
    assert sentence.endswith("within 0.25 of those of exact selection, with a margin of at least 0.5 after that error")
    assert wording.proof({"holds": False, "reason": "too wide"}) == ["margins not proved: too wide"]
    formats = {"smallest": None, "max_length": 8}
    assert wording.proof(told | {"margin": None, "arithmetic": formats})[1].startswith("no format is proved to keep")
    assert wording.proof(None) == []
