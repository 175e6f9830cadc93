"""Certificates in folders: what is right passes a second opinion, and nothing that was tampered with does."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from scipy.sparse import csr_array

from cases import each
from tampered import resealed
from vitrify.certification import certify
from vitrify.certification.certificate import write_certificate
from vitrify.certification.mutation_test import mutants, mutation_test
from vitrify.constructions.catalogue import build
from vitrify.encoding import canonical
from vitrify.errors import FolderError
from vitrify.net.folder import load, save, spec_path
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights
from vitrify.rechecking import Disagreement, Recheck, _answers, _arrays, _forward, _meaning, recheck
from vitrify.spec import read_spec

EXAMPLES = Path(__file__).parents[2] / "examples"
NETS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "heads": ("weather.arpa", None, {"max_length": 12}),
    "hard": ("abba.regex", None, {"attention": "hard", "max_length": 20}),
    "sparse": ("abba.regex", None, {"attention": "sparsemax", "max_length": 8}),
    "whole words": ("parity.automaton.json", "parity", {"max_length": 8}),
    "truth": ("door.ltl", None, {}),
    "counts": ("majority.crasp", None, {}),
    "next sets": ("brackets.dyck", None, {"max_length": 8}),
    "membership": ("brackets.dyck", "dyck-recognizer", {"max_length": 6}),
    "values": ("reverse.rasp", None, {}),
    "questions": ("recall.task.toml", None, {}),
    "numbers": ("estimate.task.toml", None, {}),
    "gates": ("adder8.aag", None, {}),
    "steps": ("increment.tm.toml", None, {}),
    "positions": ("increment.tm.toml", "turing-any-length", {"max_length": 30}),
    "grammar": ("phrases.pcfg", None, {}),
    "patterns": ("awoke.patterns", None, {}),
    "recall": ("capitals.pairs", None, {}),
    "task": ("hops.task.toml", None, {}),
}
TAMPERED = ("heads", "hard", "whole words", "next sets", "patterns")  # quick ones, one of each kind of answer


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders with a certificate, each built once."""
    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            file, construction, choices = NETS[name]
            spec = read_spec(EXAMPLES / file)
            net = build(spec, construction, **choices)
            made[name] = tmp_path_factory.mktemp("nets") / "net"
            save(net, made[name], spec)
            short = 5 if name in ("heads", "hard", "next sets") else None
            evidence = certify(net, spec, prove=True, max_length=short)
            broken = mutation_test(net, spec, count=4) if name == "hard" else None
            write_certificate(made[name], evidence, broken)
        return made[name]

    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", NETS)
def test_a_certified_folder_agrees(folders: Callable[[str], Path], name: str) -> None:
    found = recheck(folders(name))
    assert found.problem is None
    assert any(line.startswith("all ") for line in found.done)
    load(folders(name))  # a certificate is no stranger in a folder


@pytest.mark.long
def test_where_heads_look_is_worked_out_again(folders: Callable[[str], Path]) -> None:
    assert "β of 5 heads, and where 5 of them look, at all positions" in recheck(folders("hard")).done
    assert any(line.startswith("margins of") for line in recheck(folders("truth")).left)


@pytest.mark.long
def test_positions_by_formula_are_computed_again(folders: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(folders("positions"), tmp_path / "net")
    config = json.loads((tmp_path / "net" / "config.json").read_text(encoding="utf-8"))
    config["net"]["formulas"][1]["coefficients"] = [0, 0, 2]
    (tmp_path / "net" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    sealed(tmp_path / "net", _nothing)
    assert "the answer to" in str(recheck(tmp_path / "net").problem)


def test_the_same_certificate_has_the_same_bytes(folders: Callable[[str], Path], tmp_path: Path) -> None:
    again = tmp_path / "net"
    shutil.copytree(folders("patterns"), again)
    (again / "certificate.json").unlink()
    spec = read_spec(spec_path(again))
    write_certificate(again, certify(load(again), spec, prove=True))
    assert (again / "certificate.json").read_bytes() == (folders("patterns") / "certificate.json").read_bytes()


def sealed(folder: Path, change: Callable[[Any], None]) -> None:
    """Change a certificate and compute every digest anew, as somebody would who knows how."""
    path = folder / "certificate.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    with suppress(Exception):  # of a folder that can't be read
        size = load(folder, verify=False).sizes
        data["sizes"] = {"nonzero": size.nonzero, "dense": size.dense, "max_abs": size.max_abs}
    data["sha256"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in data["sha256"]}
    rest = {key: value for key, value in data.items() if key != "digest"}
    data["digest"] = hashlib.sha256(canonical(rest).encode()).hexdigest()
    path.write_text(canonical(data), encoding="utf-8")


def _nothing(data: Any) -> None:
    """Only the digests are new."""


def flipped(folder: Path, rng: np.random.Generator) -> str:
    name = str(rng.choice(sorted(path.name for path in folder.iterdir() if path.name != "README.md")))
    content = bytearray((folder / name).read_bytes())
    place = int(rng.integers(len(content)))
    content[place] ^= 1 << int(rng.integers(8))
    (folder / name).write_bytes(bytes(content))
    return f"bit of byte {place} of {name}"


def swapped(folder: Path, rng: np.random.Generator) -> str | None:
    """Other weights, every digest recomputed; only such as a check finds wrong."""
    net, spec = load(folder), read_spec(spec_path(folder))
    (mutant,) = mutants(net, 1, int(rng.integers(1 << 30)))
    found = certify(mutant.weights, spec, max_length=5 if net.architecture.max_length > 8 else None)
    if found.verdict == "holds" or "space" in (found.witness or {}):
        return None  # all answers are right, and spaces are not looked at again
    kept = (folder / "certificate.json").read_text(encoding="utf-8")
    save(mutant.weights, folder, spec)
    (folder / "certificate.json").write_text(kept, encoding="utf-8")
    sealed(folder, _nothing)
    return mutant.what


def other_spec(folder: Path, rng: np.random.Generator) -> str | None:
    """The spec with one symbol changed, every digest recomputed."""
    path = spec_path(folder)
    text = path.read_text(encoding="utf-8")
    digits = [i for i, letter in enumerate(text) if letter.isalnum()]
    at = digits[int(rng.integers(len(digits)))]
    changed = text[:at] + ("7" if text[at] != "7" else "2") + text[at + 1 :]
    path.write_text(changed, encoding="utf-8")
    try:
        same = read_spec(path)
        holds = certify(load(folder, verify=False), same, max_length=3).verdict == "holds"
    except Exception:  # whatever it is, it can't be used
        holds = False
    if holds:
        return None  # a comment, or a number that is nowhere used
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["sha256"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    sealed(folder, _nothing)
    return f"symbol {at} of the spec"


def field_changes() -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Changes of fields that say more, or something else, than is so."""

    def domain(at: int, **new: Callable[[Any], Any]) -> Callable[[Any], None]:
        def change(data: Any) -> None:
            run = data["evidence"]["domains"][at]
            run.update({key: value(run[key]) for key, value in new.items()})

        return change

    def error(key: str, value: Any) -> Callable[[Any], None]:
        def change(data: Any) -> None:
            (stated,) = (each for each in data["evidence"]["quantities"] if each["name"] == "largest error")
            stated[key] = value

        return change

    def put(*path: str, value: Any) -> Callable[[Any], None]:
        def change(data: Any) -> None:
            for key in path[:-1]:
                data = data[key]
            data[path[-1]] = value

        return change

    def unbacked(data: Any) -> None:
        data["evidence"]["domains"].pop(0)
        data["evidence"]["links"] = [{"name": x, "scope": "exhaustive", "longest": 3} for x in ("weights", "spec")]

    yield "verdict", put("evidence", "verdict", value="fails")
    yield "undecided", put("evidence", "verdict", value="undecided")
    yield "witness", put("evidence", "witness", value={"word": ["a"]})
    yield "longer", domain(0, longest=lambda length: length + 10)
    yield "a little longer", domain(0, longest=lambda length: length + 1)
    yield "fewer words", domain(0, count=lambda _: 1)
    yield "more words", domain(0, count=lambda count: 10 * count)
    yield "no exhaustive part", unbacked
    yield "other domain", domain(0, kind=lambda kind: f"long {kind}")
    yield "more random words", domain(-1, count=lambda count: 100_000 * count)
    yield "longer random words", domain(-1, shortest=lambda _: 10**6, longest=lambda _: 10**6)
    yield "no method", domain(0, method=lambda _: "")
    yield "no longer sampled", domain(-1, method=lambda _: "exhaustive")
    yield "unknown words", domain(-1, kind=lambda _: "favourite words")
    yield "another method", domain(-1, method=lambda _: "by heart")
    yield "no domains", put("evidence", "domains", value=[])
    yield "fewer cases", put("evidence", "cases", value=1)
    yield "more cases", put("evidence", "cases", value=10**9)
    yield "larger error", error("declared", 2.0)
    yield "measured beyond", error("measured", 3.0)
    yield "no number", error("measured", None)
    yield "not a number", error("measured", "NaN")
    yield "another relation", error("relation", ">=")
    yield "no quantities", put("evidence", "quantities", value=[])
    yield "no evidence", put("evidence", value={})
    yield "one more key", put("more", value=1)
    yield "no files", put("sha256", value={})
    yield "survivors", put("mutations", value={"tried": 10, "rejected": 9, "survivors": [], "seed": 0})


def tampered(source: Path, target: Path, number: int) -> str | None:
    """Tamper with a copy of a folder in the way of that number; None where nothing wrong came of it."""
    shutil.copytree(source, target)
    rng = np.random.default_rng(number)
    kind = number % 4
    if kind == 0 or (kind == 2 and number % 8 == 2):
        return flipped(target, rng)
    if kind == 1:
        changes = list(field_changes())
        what, change = changes[number // 4 % len(changes)]
        sealed(target, change)
        return what
    return swapped(target, rng) if kind == 3 else other_spec(target, rng)


def passes(folder: Path) -> bool:
    try:
        found = recheck(folder)
        return found.problem is None and found.unjudged is None  # one that is not judged is no pass: exit 2
    except FolderError:  # nothing that can be checked: exit 2
        return False


def campaign_of_tampering(folders: Callable[[str], Path], tmp_path: Path, count: int) -> int:
    tried = number = 0
    while tried < count:
        name = TAMPERED[number // 4 % len(TAMPERED)]
        target = tmp_path / str(number)
        what = tampered(folders(name), target, number)
        if what is not None:
            assert not passes(target), f"{name}: {what} is not noticed"
            tried += 1
        shutil.rmtree(target)
        number += 1
    return number


@pytest.mark.long
def test_no_tampered_folder_passes(folders: Callable[[str], Path], tmp_path: Path) -> None:
    assert campaign_of_tampering(folders, tmp_path, 100) < 150


@pytest.mark.slow
def test_none_of_500_tampered_folders_passes(folders: Callable[[str], Path], tmp_path: Path) -> None:
    assert campaign_of_tampering(folders, tmp_path, 500) < 750


@pytest.mark.parametrize("name", TAMPERED)
def test_every_change_of_a_field_is_noticed(folders: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    for number, (what, change) in enumerate(field_changes()):
        target = tmp_path / str(number)
        shutil.copytree(folders(name), target)
        sealed(target, change)
        assert not passes(target), what


def test_a_verdict_turned_round_is_noticed(folders: Callable[[str], Path], tmp_path: Path) -> None:
    """A net that fails, certified as such, whose certificate is then made to say that it holds."""
    good = load(folders("hard"))
    spec = read_spec(spec_path(folders("hard")))
    wrong = next(m.weights for m in mutants(good, 50, 3) if certify(m.weights, spec).verdict == "fails")
    save(wrong, tmp_path / "net", spec)
    write_certificate(tmp_path / "net", certify(wrong, spec))
    assert "says 'fails'" in str(recheck(tmp_path / "net").problem)
    right = json.loads((folders("hard") / "certificate.json").read_text(encoding="utf-8"))
    sealed(tmp_path / "net", lambda data: data.update(evidence=right["evidence"]))
    assert recheck(tmp_path / "net").problem


def test_a_stated_margin_beyond_the_real_one_is_noticed(folders: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(folders("hard"), tmp_path / "net")

    def wider(data: Any) -> None:
        data["evidence"]["proof"]["heads"][3]["gap"] *= 1.01

    sealed(tmp_path / "net", wider)
    assert "should attend 8 back" in str(recheck(tmp_path / "net").problem)


def test_what_cannot_be_checked_is_said(folders: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(folders("hard"), tmp_path / "net")
    sealed(tmp_path / "net", lambda data: data.update(schema=1))
    with pytest.raises(FolderError, match=r"has schema 1, not 7: 'vitrify certify .*' renews it"):
        recheck(tmp_path / "net")
    (tmp_path / "net" / "certificate.json").unlink()
    with pytest.raises(FolderError, match="has no certificate"):
        recheck(tmp_path / "net")
    with pytest.raises(FolderError, match="has no certificate"):
        recheck(tmp_path / "nowhere")


def test_a_certificate_that_cannot_be_written_is_a_clear_message(
    folders: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copytree(folders("patterns"), tmp_path / "net")
    (tmp_path / "net" / "certificate.json").unlink()
    (tmp_path / "net" / "certificate.json").mkdir()
    evidence = certify(load(folders("patterns")), read_spec(spec_path(folders("patterns"))), max_length=1)
    with pytest.raises(FolderError, match=r"certificate.json can't be written \(.*\): .*--no-write"):
        write_certificate(tmp_path / "net", evidence)


KINDS = [
    Head(attention, mask, window, ties, resolution)  # type: ignore[arg-type]
    for attention, ties, resolution in (
        ("softmax", "average", 0.0),
        ("sparsemax", "average", 0.0),
        ("hard", "left", 0.5),
        ("hard", "right", 0.5),
        ("hard", "average", 0.5),
    )
    for mask, window in (("none", None), ("causal", None), ("strict", None), ("after", None), ("causal", 3))
]


@each("head", KINDS, ids=str)
def test_both_forward_passes_give_the_same_logits(head: Head) -> None:
    """Random nets of two blocks with two such heads and units: the one pass of the package is the oracle."""
    from dataclasses import asdict

    from vitrify.net.architecture import Output

    rng = np.random.default_rng(KINDS.index(head))
    block = Block(heads=(head, head), d_head=3, d_value=2, units=5)
    net = Transformer(("<s>", "a", "b"), Output("class", ("x", "y")), 6, 8, (block, block), pads=2)
    arrays = {name: rng.integers(-4, 5, size=shape) / 4 for name, shape in net.shapes().items()}
    words = rng.integers(1, 3, size=(7, 6))
    wanted = net.forward(Weights(net, arrays).prepared, np.pad(words, ((0, 0), (2, 0))))[:, 1:]
    blocks = {
        f"blocks.{i}.": {k.removeprefix(f"blocks.{i}."): a for k, a in arrays.items() if k.startswith(f"blocks.{i}.")}
        for i in range(2)
    }
    np.testing.assert_allclose(_forward({**arrays, **blocks}, asdict(net), words), wanted, rtol=1e-9, atol=1e-9)


def test_blanks_stale_digests_and_soft_heads_are_noticed(folders: Callable[[str], Path], tmp_path: Path) -> None:
    certificate = (folders("heads") / "certificate.json").read_text(encoding="utf-8")
    blank, stale, soft = tmp_path / "blank", tmp_path / "stale", tmp_path / "soft"
    shutil.copytree(folders("heads"), blank)
    (blank / "certificate.json").write_text(certificate + "\n", encoding="utf-8")
    assert "certificate.json changed" in str(recheck(blank).problem)
    shutil.copytree(folders("heads"), stale)
    (stale / "spec.arpa").write_text((stale / "spec.arpa").read_text(encoding="utf-8") + "\n", encoding="utf-8")
    sealed(stale, _nothing)
    assert "written for another spec.arpa" in str(recheck(stale).problem)
    net = load(folders("heads"))
    beta = "blocks.0.attn.beta"
    save(net.with_array(beta, net.arrays[beta] * 0.9), soft, read_spec(spec_path(folders("heads"))))
    (soft / "certificate.json").write_text(certificate, encoding="utf-8")
    sealed(soft, _nothing)
    assert "has the β" in str(recheck(soft).problem)


def test_weights_that_change_no_answer_change_the_sizes(folders: Callable[[str], Path], tmp_path: Path) -> None:
    """A weight that no answer depends on: who changes it and every digest, but not the figures, is noticed."""
    net, spec, folder = load(folders("hard")), read_spec(spec_path(folders("hard"))), tmp_path / "net"
    idle = net.with_array("unembed.b_U", net.arrays["unembed.b_U"] * 1.0 + 0.125)  # all answers move together
    assert certify(idle, spec, max_length=5).verdict == "holds"
    save(idle, folder, spec)
    shutil.copy(folders("hard") / "certificate.json", folder)
    sizes = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))["sizes"]
    sealed(folder, _nothing)
    found = recheck(folder)
    assert found.problem is None  # nothing tells it from what was certified, which is said
    assert any("weights that no such answer needs" in line for line in found.left)
    forged = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    assert forged["sizes"] != sizes
    rest = {key: value for key, value in (forged | {"sizes": sizes}).items() if key != "digest"}
    seal = hashlib.sha256(canonical(rest).encode()).hexdigest()
    (folder / "certificate.json").write_text(canonical(rest | {"digest": seal}), encoding="utf-8")
    assert "and the certificate states" in str(recheck(folder).problem)


def test_sparse_arrays_are_read_as_they_are(folders: Callable[[str], Path], tmp_path: Path) -> None:
    net, spec = load(folders("heads")), read_spec(spec_path(folders("heads")))
    name = "blocks.0.mlp.W_in"
    thin = net.with_array(name, csr_array(net.arrays[name]))
    save(thin, tmp_path / "net", spec)
    assert "blocks.0.mlp.W_in.indptr" in safetensors.numpy.load_file(tmp_path / "net" / "model.safetensors")
    write_certificate(tmp_path / "net", certify(thin, spec, max_length=5))
    assert recheck(tmp_path / "net").problem is None
    content = (tmp_path / "net" / "model.safetensors").read_bytes()
    config = json.loads((tmp_path / "net" / "config.json").read_text(encoding="utf-8"))
    np.testing.assert_array_equal(_arrays(content, config["net"])[name], net.arrays[name])


def test_words_that_are_longer_than_the_net_reads_are_no_domain(folders: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(folders("whole words"), tmp_path / "net")

    def longer(data: Any) -> None:
        evidence = data["evidence"]
        assert evidence["domains"][0] | {"count": 256, "shortest": 8, "longest": 8} == evidence["domains"][0]
        evidence["domains"][0] |= {"count": 768, "longest": 9}
        evidence["cases"] += 512

    sealed(tmp_path / "net", longer)
    assert "no domain of this network" in str(recheck(tmp_path / "net").problem)


@pytest.mark.parametrize(("name", "noticed"), [("values", True), ("hard", False)])
def test_nets_that_look_ahead_are_asked_everywhere(folders: Callable[[str], Path], name: str, noticed: bool) -> None:
    """A meaning that differs in the middle of short words only: where beginnings are words of their own, they tell."""
    folder = folders(name)
    net = json.loads((folder / "config.json").read_text(encoding="utf-8"))["net"]
    meaning = _meaning(read_spec(spec_path(folder)), net)

    def other(word: Any) -> list[Any]:
        right = list(meaning.after(word))
        return [right[0], "nothing", *right[2:]] if 2 <= len(word) < net["max_length"] else right

    domains = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))["evidence"]["domains"]
    arrays = _arrays((folder / "model.safetensors").read_bytes(), net)
    with pytest.raises(Disagreement) if noticed else nullcontext():
        _answers(arrays, net, replace(meaning, after=other), domains, Recheck())


def test_numbers_are_as_near_as_the_network_says(tmp_path: Path) -> None:
    spec = read_spec(EXAMPLES / "sparse_averaging.task.toml")
    net = build(spec)
    save(net, tmp_path / "net", spec)
    write_certificate(tmp_path / "net", certify(net, spec, work=1e6))
    found = recheck(tmp_path / "net")
    assert (found.problem, found.unjudged) == (None, None)
    config = json.loads((tmp_path / "net" / "config.json").read_text(encoding="utf-8"))["net"]
    meaning, arrays = _meaning(spec, config), _arrays((tmp_path / "net" / "model.safetensors").read_bytes(), config)
    with pytest.raises(Disagreement, match="is wrong"):
        _answers(arrays, config | {"output": config["output"] | {"error": 1e-9}}, meaning, [], Recheck())


def _update(change: dict[str, Any], data: Any) -> None:
    data["evidence"].update(change)


LARGE = {"name": "largest error", "measured": 9.0, "declared": 1e-9, "relation": "<="}
UNJUDGED = {
    "world.knowledge.toml": "differs in experts",
    "roof.maxout.json": "differs in reads",
    "faces.scene.toml": "differs in architecture",
}


@pytest.mark.long
@each("file", UNJUDGED)
def test_what_is_not_run_is_not_judged(file: str, tmp_path: Path) -> None:
    """The files and what the certificate says of itself are checked, and that is all that is said."""
    spec = read_spec(EXAMPLES / file)
    net = build(spec)
    save(net, tmp_path / "net", spec)
    write_certificate(tmp_path / "net", certify(net, spec, work=1e6))
    found = recheck(tmp_path / "net")
    assert found.problem is None
    assert UNJUDGED[file] in str(found.unjudged)
    assert found.done == ["hashes of 4 files and of the certificate"]
    changes: list[dict[str, Any]] = [{"verdict": "fails"}, {"quantities": [LARGE]}]
    for number, change in enumerate(changes):
        shutil.copytree(tmp_path / "net", tmp_path / str(number))
        sealed(tmp_path / str(number), partial(_update, change))
        found = recheck(tmp_path / str(number))
        assert found.problem
        assert found.unjudged is None


def resealed_net(source: Path, target: Path, change: Callable[[Any], None], name: str = "config.json") -> str:
    """Return what `recheck` says of a copy of a folder with another JSON file, and digests that fit."""
    shutil.copytree(source, target)
    data = json.loads((target / name).read_text(encoding="utf-8"))
    change(data)
    (target / name).write_text(json.dumps(data), encoding="utf-8")
    assert resealed(target) == "resealed"
    return recheck(target).problem or ""


@pytest.mark.long
def test_names_in_another_order_do_not_agree(folders: Callable[[str], Path], tmp_path: Path) -> None:
    for name in ("numbers", "heads", "next sets"):
        problem = resealed_net(folders(name), tmp_path / name, lambda data: data["net"]["output"]["symbols"].reverse())
        assert problem == "the spec and the network have other answers"


@pytest.mark.parametrize(
    ("key", "number", "problem"),
    [("block", -1, "some label no block"), ("index", -1, "a label of no head"), ("block", 99, "some label no block")],
)
def test_labels_of_no_head_do_not_agree(
    folders: Callable[[str], Path], tmp_path: Path, key: str, number: int, problem: str
) -> None:
    def change(data: Any) -> None:
        data["heads"][0][key] = number

    assert problem in resealed_net(folders("hard"), tmp_path / "net", change, "labels.json")


def test_two_labels_of_one_head_do_not_agree(folders: Callable[[str], Path], tmp_path: Path) -> None:
    problem = resealed_net(
        folders("hard"), tmp_path / "net", lambda data: data["heads"].append(data["heads"][0]), "labels.json"
    )
    assert "some head has two labels" in problem


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [("spaces", "dims", [10**6]), ("spaces", "born", 99), ("units", "stop", 10**6), ("heads", "writes", 5)],
)
def test_labels_that_load_refuses_are_named_as_not_checked(
    folders: Callable[[str], Path], tmp_path: Path, kind: str, key: str, value: object
) -> None:
    def change(data: Any) -> None:
        data[kind][0][key] = value

    resealed_net(folders("hard"), tmp_path / "net", change, "labels.json")
    with pytest.raises(FolderError):
        load(tmp_path / "net")
    found = recheck(tmp_path / "net")
    assert found.problem or any("labels but the β" in line for line in found.left)


@pytest.mark.parametrize("name", ["hard", "next sets"])
def test_a_run_of_short_words_that_calls_itself_exhaustive_does_not_agree(
    folders: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    def change(data: Any) -> None:
        evidence = data["evidence"]
        assert evidence["domains"][0]["method"] == "sampled"
        evidence["domains"][0]["method"] = "exhaustive"
        for link in evidence["links"]:
            if link["scope"] == "sampled":
                link["scope"] = "exhaustive"

    shutil.copytree(folders(name), tmp_path / "net")
    sealed(tmp_path / "net", change)
    assert "not exhaustive" in (recheck(tmp_path / "net").problem or "")


@pytest.mark.parametrize(
    ("columns", "starts"),
    [
        ([1, 0], [0, 2, 2]),
        ([0, 0], [0, 2, 2]),
        ([-1, 1], [0, 2, 2]),
        ([0, 2], [0, 2, 2]),
        ([0, 1], [0, 2]),
        ([0, 1], [1, 2, 2]),
    ],
)
def test_a_sparse_array_that_is_not_canonical_does_not_agree(columns: list[int], starts: list[int]) -> None:
    parts = {"embed.W_E.data": np.ones(2), "embed.W_E.indices": np.array(columns), "embed.W_E.indptr": np.array(starts)}
    content = safetensors.numpy.save(
        parts | {"pos_embed.W_pos": np.zeros((2, 2))}, {"vitrify": '{"sparse": {"embed.W_E": [2, 2]}}'}
    )
    with pytest.raises(Disagreement, match="not canonical"):
        _arrays(content, {"max_length": 1, "pads": 1, "blocks": []})
