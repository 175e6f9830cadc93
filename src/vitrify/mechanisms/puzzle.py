"""Circuit puzzles: a network in a folder with the question about it, and the answer in a file of its own.

`docs/how-to/circuit-benchmark.md` describes both files, and the result that a method writes to be scored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from vitrify.encoding import JsonObject
from vitrify.errors import BuildRefused, FolderError, InputError
from vitrify.files import write_text
from vitrify.mechanisms.circuit import Judge, TrueCircuit, judged, true_circuit
from vitrify.mechanisms.domain import TIE, PatchDomain
from vitrify.mechanisms.entangle import entangle
from vitrify.mechanisms.features import Concept, concepts, concepts_json, features_json, readable, turned
from vitrify.mechanisms.grade import grade
from vitrify.mechanisms.interchange import Interchange, interchange
from vitrify.mechanisms.parts import Edge, Grain, NetWiring, wiring
from vitrify.mechanisms.soften import recorded as softened_networks
from vitrify.mechanisms.soften import soft_judge, softness_of
from vitrify.mechanisms.train import recorded as trained_networks
from vitrify.mechanisms.train import recorded_judge
from vitrify.mechanisms.zoo import network
from vitrify.net.architecture import Output
from vitrify.net.folder import load, save
from vitrify.net.labels import Labels

VERSION = 2
QUESTION, ANSWER, RESULT = ("vitrify circuit question", "vitrify circuit answer", "vitrify circuit result")


Rendering = Literal["plain", "entangled", "softened", "trained"]
RENDERINGS: tuple[Rendering, ...] = ("plain", "entangled", "softened", "trained")


@dataclass(frozen=True, eq=False)
class Puzzle:
    """A network, its domain, its true circuit and concepts, and the new name of each node if it was entangled."""

    name: str
    judge: Judge
    circuit: TrueCircuit
    seed: int | None = None
    renamed: Mapping[str, str] | None = None
    about: Mapping[str, str] | None = None  # what the nodes of the circuit are for
    rendering: Rendering = "plain"
    concepts: tuple[Concept, ...] = ()
    comparison: Interchange | None = None  # with the construction, of a softened or a trained network

    @property
    def wired(self) -> NetWiring:
        return self.judge.wired

    @property
    def folder(self) -> str:
        """The name of its folder where there are several renderings: all but the plain one add their own."""
        return self.name if self.rendering == "plain" else f"{self.name}.{self.rendering}"

    def _repr_html_(self) -> str:
        from vitrify.mechanisms.picture import circuit_picture

        return circuit_picture(self.wired, self.circuit.edges)


def puzzle(name: str, *, seed: int | None = None, grain: Grain = "units", rendering: Rendering | None = None) -> Puzzle:
    """Return the network of the zoo with that name as a puzzle, by default plain, or entangled if a seed is given."""
    return next(renderings(name, (rendering or ("plain" if seed is None else "entangled"),), seed=seed, grain=grain))


def renderings(
    name: str, wanted: Sequence[Rendering] = RENDERINGS, *, seed: int | None = None, grain: Grain = "units"
) -> Iterator[Puzzle]:
    """Yield a network of the zoo as puzzles, in the renderings that are wanted and exist."""
    entry = network(name)
    wired = wiring(entry.build(), grain)
    judge = judged(wired, entry.spec())
    circuit = true_circuit(judge)
    about = {node.name: node.about for node in wired.nodes}
    known = concepts(wired.weights, judge.domain)
    plain = Puzzle(name, judge, circuit, about=about, concepts=known)
    for rendering in wanted:
        if rendering == "plain":
            yield plain
        elif rendering == "entangled":
            yield _entangled(plain, seed or 0)
        elif grain != "units":
            raise InputError("softened and trained networks have groups of units as nodes: leave out --grain layers")
        else:
            yield _compared(plain, rendering)


def _entangled(plain: Puzzle, seed: int) -> Puzzle:
    """Return the entangled twin; effects and faithfulness are measured on it."""
    twin = entangle(plain.wired, seed)
    about = {twin.renamed[old]: sentence for old, sentence in (plain.about or {}).items()}
    edges = tuple(twin.edge(edge) for edge in plain.circuit.edges)
    judge = Judge(twin.wired, plain.judge.domain)
    circuit = TrueCircuit(edges, tuple(judge.changed((edge,)) for edge in edges), judge.faithfulness(edges))
    hidden = tuple(
        replace(turned(each, twin.turn), name=f"concept {number}") for number, each in enumerate(plain.concepts)
    )
    return Puzzle(plain.name, judge, circuit, seed, twin.renamed, about, "entangled", hidden)


def _compared(plain: Puzzle, rendering: Rendering) -> Puzzle:
    """Return a softened or trained network, after interchange interventions; concepts that it lost are left out."""
    edges = plain.circuit.edges
    if rendering == "softened":
        judge = soft_judge(plain.judge, edges, softness_of(plain.name))
    else:
        judge = recorded_judge(plain.name, plain.judge, edges)
    comparison = interchange(plain.judge, judge, edges)
    if not comparison.holds or comparison.faithfulness is None:
        raise BuildRefused(
            f"the {rendering} rendering of {plain.name!r} has not the circuit of the plain one: {comparison}"
        )
    circuit = TrueCircuit(edges, tuple(judge.changed((edge,)) for edge in edges), comparison.faithfulness)
    known = tuple(each for each in plain.concepts if readable(judge.wired.weights, judge.domain, each))
    return replace(plain, judge=judge, circuit=circuit, rendering=rendering, concepts=known, comparison=comparison)


def available(name: str) -> tuple[Rendering, ...]:
    """Return the renderings of a network that exist."""
    recorded = {"softened": name in softened_networks(), "trained": name in trained_networks()}
    return tuple(each for each in RENDERINGS if recorded.get(each, True))


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
        "rendering": puzzle.rendering,
        "tokens": list(net.inputs),
        "answers": list(net.output.symbols),
        "pads": net.pads,
        "metric": metric(net.output, puzzle.judge.tolerance),
        "domain": [part.to_json() for part in puzzle.judge.domain],
        "nodes": [{key: value for key, value in node.items() if key not in hidden} for node in nodes],
        "edges": [list(edge) for edge in puzzle.wired.edges],
        "concepts": concepts_json(puzzle.concepts),
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
        "rendering": puzzle.rendering,
        "digest": puzzle.wired.weights.digest,
        "edges": [[*edge, effect] for edge, effect in zip(puzzle.circuit.edges, puzzle.circuit.effects, strict=True)],
        "candidates": [list(edge) for edge in puzzle.wired.edges],
        "faithfulness": puzzle.circuit.faithfulness,
        "grade": asdict(grade(puzzle.wired, puzzle.circuit.edges)),
        "features": features_json(puzzle.concepts),
        "interchange": None if puzzle.comparison is None else asdict(puzzle.comparison),
        "about": dict(puzzle.about or {}),
        "entangled": None if puzzle.seed is None else {"seed": puzzle.seed, "renamed": dict(puzzle.renamed or {})},
    }


def write(puzzle: Puzzle, folder: Path, name: str | None = None) -> None:
    """Write the network and its question to `folder/NAME`, the answer to `folder/answers`."""
    name = name or puzzle.name
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    save_model(puzzle, folder / name)
    _write(folder / name / "question.json", question_json(puzzle))
    _write(folder / "answers" / f"{name}.json", answer_json(puzzle))


def save_model(puzzle: Puzzle, folder: Path, bare: bool = False) -> None:
    """Write the network of a puzzle; its labels only if it is plain and shall not be bare."""
    weights = puzzle.wired.weights
    if bare or puzzle.rendering != "plain":
        weights = replace(weights, labels=Labels(), about={"name": puzzle.name})
    save(weights, folder)


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


def read_judge(folder: Path, question: Path | None = None) -> Judge:
    """Read the judge of a puzzle from its folder; its question may be elsewhere."""
    own = folder / "question.json"
    data = read_json(own if own.is_file() or question is None else question, QUESTION)
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
