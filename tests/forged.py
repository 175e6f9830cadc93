"""Forged certificates: one statement of `certificate.json` replaced by another, every digest computed anew.

`recheck` *affirms* a forged statement if it reports no problem, judges the answers, and does not name the statement
among what it did not check: in `Recheck.left`, or as a link that it says it did not derive again. What it states
about its own runs (`Recheck.done`) may agree with a forgery only if it ran these very words.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.certification import certify
from vitrify.certification.certificate import write_certificate
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions.catalogue import build
from vitrify.encoding import canonical
from vitrify.errors import FolderError
from vitrify.net.folder import save
from vitrify.rechecking import Recheck, recheck
from vitrify.spec import read_spec

EXAMPLES = Path(__file__).parents[1] / "examples"
Where = tuple[Any, ...]  # the keys and indices of a value of the certificate
# name: spec, construction, its choices, and how it is certified
FOLDERS: dict[str, tuple[str, str | None, dict[str, Any], dict[str, Any]]] = {
    "n-grams": ("weather.arpa", None, {"max_length": 10}, {"reals": True, "arithmetic": True}),
    "automaton": ("abba.regex", None, {"attention": "hard", "max_length": 12}, {"attack": 20}),
    "last state": ("parity.automaton.json", "parity", {"max_length": 6}, {}),
    "formula": ("door.ltl", None, {}, {}),
    "counts": ("majority.crasp", None, {}, {}),
    "brackets": ("brackets.dyck", None, {"max_length": 8}, {}),
    "patterns": ("awoke.patterns", None, {}, {"arithmetic": True}),
    "associations": ("capitals.pairs", None, {}, {}),
    "task": ("hops.task.toml", None, {}, {}),
}
LISTED = {  # the beginning of the keys of a statement, and the words in `left` that say that it is not checked
    ("evidence", "cases"): "number of cases",
    ("evidence", "seed"): "seed",
    ("evidence", "notes"): "notes",
    ("evidence", "quantities"): "quantities: ",
    ("evidence", "proof"): "proof: ",
    ("mutations",): "mutants",
    ("tool",): "version",
}


def certified_folder(name: str, folder: Path) -> Path:
    """Write a network with a certificate into a folder."""
    file, construction, choices, how = FOLDERS[name]
    spec = read_spec(EXAMPLES / file)
    net = build(spec, construction, **choices)
    save(net, folder, spec)
    short = None if name in ("last state", "patterns", "associations", "task") else 4
    evidence = certify(net, spec, prove=True, max_length=short, **how)
    assert evidence.verdict == "holds"
    write_certificate(folder, evidence, mutation_test(net, spec, count=3) if name == "automaton" else None)
    return folder


def forge(folder: Path, target: Path, rng: np.random.Generator) -> Where | None:
    """Copy a folder, forge one statement of its certificate and return where; None if nothing changed."""
    shutil.copytree(folder, target)
    path = target / "certificate.json"
    before = json.loads(path.read_text(encoding="utf-8"))
    data = copy.deepcopy(before)
    targeted = list(_larger_claims(data))
    if rng.random() < 0.5:
        where, change = targeted[int(rng.integers(len(targeted)))]
        change()
    else:
        leaves = [where for where in _leaves(data) if where[0] != "digest"]
        where = leaves[int(rng.integers(len(leaves)))]
        _replace(data, where, rng)
    if data == before:
        return None
    data.pop("digest", None)
    digest = hashlib.sha256(canonical(data).encode()).hexdigest()
    path.write_text(canonical(data | {"digest": digest}), encoding="utf-8")
    return where


def affirmed(folder: Path, where: Where) -> str | None:
    """Return why a recheck affirms what was forged there, or None."""
    data = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    try:
        report = recheck(folder)
    except FolderError:  # nothing that can be checked
        return None
    if report.problem is not None or report.unjudged is not None or _is_listed(report, where, data):
        return None
    value: Any = data
    for key in where:
        value = value[key] if not isinstance(value, dict) or key in value else None
    return f"{where} is now {value!r}; links {report.links}, done {report.done}, left {report.left}"


def _is_listed(report: Recheck, where: Where, data: Any) -> bool:
    """Return whether a report says that it did not check a statement, or that it ran the very words itself."""
    left = "; ".join(report.left)
    for start, words in LISTED.items():
        if where[: len(start)] == start:
            return words in left and (words != "quantities: " or _all_named(report, data))
    if where[:2] == ("evidence", "links"):
        link = data["evidence"]["links"][where[2]]
        if where[3:4] == ("reason",):
            return "reasons" in left
        return "not derived again" in report.links[link["name"]] and link["lemma"] in report.links[link["name"]]
    if where[:2] == ("evidence", "domains") and len(where) > 2:
        domain = data["evidence"]["domains"][min(where[2], len(data["evidence"]["domains"]) - 1)]
        if where[3:] == ("method",) and domain["method"] == "exhaustive":
            return False  # that no word is longer is checked
        if domain["method"] == "sampled" and domain["kind"] not in ("words", "prefixes of sentences"):
            return "sampled words" in left
        if domain.get("arithmetic", "float64") != "float64":
            return "real arithmetic" in left
        return any(f"all {domain['count']} words to length {domain['longest']}," in line for line in report.done)
    return False


def _all_named(report: Recheck, data: Any) -> bool:
    (line,) = (line for line in report.left if line.startswith("quantities: "))
    return all(str(each["name"]) in line for each in data["evidence"]["quantities"])


def _larger_claims(data: Any) -> Iterator[tuple[Where, Callable[[], None]]]:
    """Yield statements that say more than is so, each consistent in itself."""
    evidence = data["evidence"]
    longest = max(domain["longest"] for domain in evidence["domains"])
    for at, link in enumerate(evidence["links"]):
        where: Where = ("evidence", "links", at)
        for lemma in ("margins", "product of states"):
            proof = {"lemma": lemma, "instances": {"pairs of states": 7, "steps": 14}, "reason": ""}
            yield where, partial(link.update, proof, scope="every length", longest=None)
            yield where, partial(link.update, proof, scope="to T", longest=longest)
            yield where, partial(link.update, proof, scope="to T", longest=longest - 1)
        yield (*where, "instances"), partial(link.update, instances={"compositions": 10**6})
        yield (*where, "lemma"), partial(link.update, lemma="doubling")
        yield (*where, "reason"), partial(link.update, reason="too large by one")
        yield (*where, "longest"), partial(link.update, longest=(link.get("longest") or 0) + 1)
    for at, domain in enumerate(evidence["domains"]):
        where = ("evidence", "domains", at)
        yield (*where, "count"), partial(_twice_as_many, evidence, domain)
        yield (*where, "longest"), partial(domain.update, longest=domain["longest"] + 1)
        yield (*where, "arithmetic"), partial(domain.update, arithmetic="reals")
        yield (*where, "method"), partial(_exhaustive, evidence, domain)
    for at, quantity in enumerate(evidence["quantities"]):
        if isinstance(quantity["measured"], int | float):
            yield ("evidence", "quantities", at), partial(quantity.update, measured=quantity["measured"] / 2)
    added = {"name": "words tried by the attack", "measured": 10**7}
    yield ("evidence", "quantities", 0), partial(evidence["quantities"].append, added)
    if proof := evidence.get("proof"):
        where = ("evidence", "proof")
        yield where, partial(proof.update, error=0.0, margin=10.0)
        yield where, partial(proof.update, assumed=[])
        yield where, partial(proof.update, arithmetic={"smallest": "float16"})
        yield where, partial(proof.update, holds=True, reason=None, max_length=longest)
    tested = {"tried": 200, "rejected": 200, "survivors": [], "seed": 0}
    yield ("mutations",), partial(data.update, mutations=tested)
    yield ("sizes",), partial(data["sizes"].update, nonzero=data["sizes"]["nonzero"] - 1)
    yield ("evidence", "notes"), partial(evidence.update, notes=["proved by hand"])
    yield ("evidence", "seed"), partial(evidence.update, seed=7)
    yield ("evidence", "cases"), partial(evidence.update, cases=evidence["cases"] + 1)


def _twice_as_many(evidence: Any, domain: Any) -> None:
    evidence["cases"] += domain["count"] * (domain["longest"] + 1)
    domain["count"] *= 2


def _exhaustive(evidence: Any, domain: Any) -> None:
    """Call a run of all short words a run of every input, in the links that are tested, too."""
    domain.update(method="exhaustive")
    for link in evidence["links"]:
        if link["scope"] == "sampled":
            link.update(scope="exhaustive")


def _leaves(data: Any, where: Where = ()) -> Iterator[Where]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        inner = list(_leaves(value, (*where, key)))
        yield from inner or [(*where, key)]


def _replace(data: Any, where: Where, rng: np.random.Generator) -> None:
    """Give a value another one of its type, or sometimes none."""
    for key in where[:-1]:
        data = data[key]
    value = data[where[-1]]
    if rng.random() < 0.1 and isinstance(data, dict):
        del data[where[-1]]
    elif isinstance(value, bool) or value is None:
        data[where[-1]] = not value
    elif isinstance(value, int):
        data[where[-1]] = int(rng.choice([0, 1, value + 1, value - 1, 2 * value + 1, 10 * value]))
    elif isinstance(value, float):
        data[where[-1]] = float(rng.choice([0.0, value / 2, value * 2, value + 1.0]))
    elif isinstance(value, str):
        words = ["exhaustive", "sampled", "to T", "every length", "words", "random words", "margins", "float64", ""]
        data[where[-1]] = words[int(rng.integers(len(words)))]
    else:
        data[where[-1]] = [1] if isinstance(value, list) else {"heads": 1}
