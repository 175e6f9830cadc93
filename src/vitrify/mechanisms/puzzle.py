"""Circuit puzzles: a network in a folder with the question about it, and the answer in a file of its own.

`docs/how-to/circuit-benchmark.md` describes both files, and the result that a method writes to be scored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from vitrify.encoding import JsonObject
from vitrify.errors import FolderError, InputError
from vitrify.files import write_text
from vitrify.mechanisms.circuit import Judge, TrueCircuit, judged, true_circuit
from vitrify.mechanisms.domain import TIE, PatchDomain
from vitrify.mechanisms.entangle import entangle
from vitrify.mechanisms.parts import Edge, Grain, NetWiring, wiring
from vitrify.mechanisms.zoo import network
from vitrify.net.architecture import Output
from vitrify.net.folder import load, save

VERSION = 2
QUESTION, ANSWER, RESULT = ("vitrify circuit question", "vitrify circuit answer", "vitrify circuit result")


@dataclass(frozen=True, eq=False)
class Puzzle:
    """A network, its domain, its true circuit, and the new name of each node if it was entangled."""

    name: str
    judge: Judge
    circuit: TrueCircuit
    seed: int | None = None
    renamed: Mapping[str, str] | None = None
    about: Mapping[str, str] | None = None  # what the nodes of the circuit are for

    @property
    def wired(self) -> NetWiring:
        return self.judge.wired


def puzzle(name: str, *, seed: int | None = None, grain: Grain = "units") -> Puzzle:
    """Return the network of the zoo with that name as a puzzle, entangled if a seed is given."""
    entry = network(name)
    wired = wiring(entry.build(), grain)
    judge = judged(wired, entry.spec())
    circuit = true_circuit(judge)
    about = {node.name: node.about for node in wired.nodes}
    if seed is None:
        return Puzzle(name, judge, circuit, about=about)
    twin = entangle(wired, seed)
    about = {twin.renamed[old]: sentence for old, sentence in about.items()}
    edges = tuple(twin.edge(edge) for edge in circuit.edges)
    return Puzzle(name, Judge(twin.wired, judge.domain), replace(circuit, edges=edges), seed, twin.renamed, about)


def question_json(puzzle: Puzzle) -> JsonObject:
    """Return the data of question.json, for whoever searches the circuit."""
    net = puzzle.wired.weights.architecture
    nodes = [asdict(node) | {"units": list(node.units)} for node in puzzle.wired.nodes]
    hidden = () if puzzle.seed is None else ("about",)
    return {
        "format": QUESTION,
        "version": VERSION,
        "name": puzzle.name,
        "entangled": puzzle.seed is not None,
        "tokens": list(net.inputs),
        "answers": list(net.output.symbols),
        "pads": net.pads,
        "metric": metric(net.output, puzzle.judge.tolerance),
        "domain": [part.to_json() for part in puzzle.judge.domain],
        "nodes": [{key: value for key, value in node.items() if key not in hidden} for node in nodes],
        "edges": [list(edge) for edge in puzzle.wired.edges],
    }


def metric(output: Output, tolerance: float) -> JsonObject:
    """Describe when an answer counts as changed, in words and numbers."""
    data: JsonObject = {"tolerance": tolerance}
    if output.kind == "lm":
        text = "a probability moves by more than the tolerance"
        return data | {"kind": "probabilities", "scores": output.scores, "tie": TIE, "changed": text}
    if output.kind == "values":
        return data | {"kind": "values", "changed": "a number moves by more than the tolerance"}
    if output.kind == "next":
        return data | {"kind": "signs", "changed": "another set of logits is above the tolerance"}
    return data | {"kind": "largest", "changed": "another set of logits is within the tolerance of the largest"}


def answer_json(puzzle: Puzzle) -> JsonObject:
    """Return the data of the answer: the true edges with their effects, the role and the old name of each node."""
    return {
        "format": ANSWER,
        "version": VERSION,
        "name": puzzle.name,
        "digest": puzzle.wired.weights.digest,
        "edges": [[*edge, effect] for edge, effect in zip(puzzle.circuit.edges, puzzle.circuit.effects, strict=True)],
        "candidates": [list(edge) for edge in puzzle.wired.edges],
        "faithfulness": puzzle.circuit.faithfulness,
        "about": dict(puzzle.about or {}),
        "entangled": None if puzzle.seed is None else {"seed": puzzle.seed, "renamed": dict(puzzle.renamed or {})},
    }


def write(puzzle: Puzzle, folder: Path) -> None:
    """Write the network and its question to `folder/NAME`, the answer to `folder/answers`."""
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    save(puzzle.wired.weights, folder / puzzle.name)
    _write(folder / puzzle.name / "question.json", question_json(puzzle))
    _write(folder / "answers" / f"{puzzle.name}.json", answer_json(puzzle))


def _write(path: Path, data: JsonObject) -> None:
    write_text(path, json.dumps(data, ensure_ascii=False, indent=None) + "\n")


def read_json(path: Path, wanted: str) -> JsonObject:
    """Read a file of this format and version."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"can't read {path}: {error.strerror}") from None
    except ValueError as error:
        raise FolderError(f"{path} is no JSON: {error}") from None
    header = (data.get("format"), data.get("version")) if isinstance(data, dict) else None
    if header != (wanted, VERSION):
        raise FolderError(f'{path} must say "format": "{wanted}" and "version": {VERSION}')
    assert isinstance(data, dict)
    return data


def read_judge(folder: Path) -> Judge:
    """Read the judge of a puzzle from its folder."""
    data = read_json(folder / "question.json", QUESTION)
    try:
        groups = {node["name"]: node["units"] for node in data["nodes"] if node["kind"] == "units"}
        domain = [PatchDomain.from_json(part) for part in data["domain"]]
        tolerance = float(data["metric"]["tolerance"])
    except (KeyError, TypeError, ValueError) as error:
        raise FolderError(f"{folder / 'question.json'} lacks {error}") from None
    return Judge(wiring(load(folder), groups=groups), domain, tolerance)


def result_json(
    name: str, edges: Iterable[Edge] | None = None, scores: Mapping[Edge, float] | None = None
) -> JsonObject:
    """Return a result as a method would write it."""
    data: JsonObject = {"format": RESULT, "version": VERSION, "name": name}
    if edges is not None:
        data["edges"] = [list(edge) for edge in edges]
    if scores is not None:
        data["scores"] = [[*edge, score] for edge, score in scores.items()]
    return data
