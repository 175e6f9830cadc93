"""Puzzles: a network in a folder with the question that is asked about it, and the answer in a file of its own.

`docs/circuits.md` describes both files, and the result that a method writes to be scored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vitrify.errors import FolderError, InputError
from vitrify.mechanisms.circuit import Circuit, Judge, judged, true_circuit
from vitrify.mechanisms.domain import TIE, TOLERANCE, Questions
from vitrify.mechanisms.entangle import entangle
from vitrify.mechanisms.parts import Edge, Grain, Node, Wiring, wiring
from vitrify.mechanisms.zoo import resident
from vitrify.net.architecture import Output
from vitrify.net.folder import load, save

VERSION = 1
QUESTION, ANSWER, RESULT = ("vitrify circuit question", "vitrify circuit answer", "vitrify circuit result")


@dataclass(frozen=True, eq=False)
class Puzzle:
    """A network, its questions, its true circuit, and what became of each node if it was entangled."""

    name: str
    judge: Judge
    circuit: Circuit
    seed: int | None = None
    renamed: Mapping[str, str] | None = None
    about: Mapping[str, str] | None = None  # what the nodes of the circuit are for

    @property
    def wired(self) -> Wiring:
        return self.judge.wired


def puzzle(name: str, *, seed: int | None = None, grain: Grain = "units") -> Puzzle:
    """The network of the zoo with that name as a puzzle, entangled if a seed is given."""
    entry = resident(name)
    wired = wiring(entry.build(), grain)
    judge = judged(wired, entry.spec())
    found = true_circuit(judge)
    about = {node.name: node.about for node in wired.nodes}
    if seed is None:
        return Puzzle(name, judge, found, about=about)
    twin = entangle(wired, seed)
    about = {twin.renamed[old]: said for old, said in about.items()}
    edges = tuple(twin.edge(edge) for edge in found.edges)
    return Puzzle(name, Judge(twin.wired, judge.domain), replace(found, edges=edges), seed, twin.renamed, about)


def question_json(made: Puzzle) -> dict[str, Any]:
    """What is given to whoever looks for the circuit."""
    net = made.wired.weights.architecture
    return {
        "format": QUESTION,
        "version": VERSION,
        "name": made.name,
        "entangled": made.seed is not None,
        "tokens": list(net.inputs),
        "answers": list(net.output.symbols),
        "pads": net.pads,
        "metric": metric(net.output),
        "domain": [part.to_json() for part in made.judge.domain],
        "nodes": [_node_json(node, made.seed is None) for node in made.wired.nodes],
        "edges": [list(edge) for edge in made.wired.edges],
    }


def metric(output: Output) -> dict[str, Any]:
    """When an answer counts as changed, in words and numbers."""
    if output.kind == "lm":
        said = "a probability moves by more than the tolerance"
        return {"kind": "probabilities", "scores": output.scores, "tolerance": TOLERANCE, "tie": TIE, "changed": said}
    if output.kind == "values":
        wide = max(TOLERANCE, 2 * output.error)
        return {"kind": "values", "tolerance": wide, "changed": "a number moves by more than the tolerance"}
    if output.kind == "next":
        return {"kind": "signs", "tolerance": TIE, "changed": "another set of logits is above the tolerance"}
    said = "another set of logits is within the tolerance of the largest"
    return {"kind": "largest", "tolerance": TIE, "changed": said}


def _node_json(node: Node, told: bool) -> dict[str, Any]:
    found = {key: value for key, value in asdict(node).items() if key != "about" or told}
    return found | {"units": list(node.units)}


def answer_json(made: Puzzle) -> dict[str, Any]:
    """The answer: the true edges with their effects, what each node is for, which node it was before."""
    return {
        "format": ANSWER,
        "version": VERSION,
        "name": made.name,
        "digest": made.wired.weights.digest,
        "edges": [[*edge, effect] for edge, effect in zip(made.circuit.edges, made.circuit.effects, strict=True)],
        "candidates": [list(edge) for edge in made.wired.edges],
        "kept": made.circuit.kept,
        "about": dict(made.about or {}),
        "entangled": None if made.seed is None else {"seed": made.seed, "renamed": dict(made.renamed or {})},
    }


def write(made: Puzzle, folder: Path) -> None:
    """The network and its question in `folder/NAME`, the answer in `folder/answers`."""
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    save(made.wired.weights, folder / made.name)
    _write(folder / made.name / "question.json", question_json(made))
    _write(folder / "answers" / f"{made.name}.json", answer_json(made))


def _write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=None) + "\n", encoding="utf-8")


def read_json(path: Path, wanted: str) -> dict[str, Any]:
    """A file of this format and version."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"can't read {path}: {error.strerror}") from None
    except ValueError as error:
        raise FolderError(f"{path} is no JSON: {error}") from None
    found = (data.get("format"), data.get("version")) if isinstance(data, dict) else None
    if found != (wanted, VERSION):
        raise FolderError(f'{path} must say "format": "{wanted}" and "version": {VERSION}')
    assert isinstance(data, dict)
    return data


def read_judge(folder: Path) -> Judge:
    """The judge of a puzzle, from its folder."""
    data = read_json(folder / "question.json", QUESTION)
    try:
        groups = {node["name"]: node["units"] for node in data["nodes"] if node["kind"] == "units"}
        domain = [Questions.from_json(part) for part in data["domain"]]
    except (KeyError, TypeError) as error:
        raise FolderError(f"{folder / 'question.json'} lacks {error}") from None
    return Judge(wiring(load(folder), groups=groups), domain)


def result_json(name: str, edges: Iterable[Edge] | None = None, scores: Mapping[Edge, float] | None = None) -> Any:
    """A result, as a method would write it."""
    found: dict[str, Any] = {"format": RESULT, "version": VERSION, "name": name}
    if edges is not None:
        found["edges"] = [list(edge) for edge in edges]
    if scores is not None:
        found["scores"] = [[*edge, score] for edge, score in scores.items()]
    return found
