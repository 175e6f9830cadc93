"""Scores of a predicted circuit: against the true one, and by the answers that the network gives with it alone."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vitrify.encoding import JsonObject
from vitrify.errors import FolderError, InputError
from vitrify.mechanisms.circuit import Judge
from vitrify.mechanisms.parts import Edge, node_of
from vitrify.mechanisms.puzzle import ANSWER, RESULT, read_json, read_judge

ENDS = ("embed", "pos", "output")  # nodes that every network has


@dataclass(frozen=True)
class Agreement:
    """Precision, recall and F1 of a predicted set against the true one."""

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, predicted: Collection[Hashable], true: Collection[Hashable]) -> Agreement:
        """Compare two sets. An empty prediction of an empty set is right."""
        both = len(set(predicted) & set(true))
        precision = both / len(set(predicted)) if predicted else float(not true)
        recall = both / len(set(true)) if true else 1.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return cls(precision, recall, f1)


@dataclass(frozen=True)
class Score:
    """Scores of edges, of edges between nodes (whichever input of a head), and of nodes; ROC AUC if edges have scores.

    `faithfulness` is the share of answers that stay when every other edge is patched; None without a network.
    """

    name: str
    edges: Agreement | None  # None where a result does not say which input of a head it means
    between_nodes: Agreement
    nodes: Agreement
    auc: float | None
    faithfulness: float | None


@dataclass(frozen=True)
class Result:
    """Result of a circuit finder: a set of edges, or scores of edges, where those above the threshold are the set."""

    edges: frozenset[Edge]
    scores: Mapping[Edge, float] | None = None

    @classmethod
    def from_json(cls, data: JsonObject) -> Result:
        """Read a result from the data of its file."""
        if "edges" not in data and "scores" not in data:
            raise FolderError('a result must have "edges", a list of [from, to], or "scores", of [from, to, number]')
        try:
            scores = {(str(a), str(b)): float(number) for a, b, number in data["scores"]} if "scores" in data else None
            threshold = float(data.get("threshold", 0.0))
            if "edges" in data:
                edges = {(str(a), str(b)) for a, b in data["edges"]}
            else:
                edges = {edge for edge, number in (scores or {}).items() if number > threshold}
        except (TypeError, ValueError) as error:
            raise FolderError(f"a result has edges [from, to] and scores [from, to, number]: {error}") from None
        if scores is not None and not np.isfinite(list(scores.values())).all():
            raise FolderError("scores must be finite numbers")
        return cls(frozenset(edges), scores)

    def within(self, edges: Collection[Edge]) -> list[Edge]:
        """Return the edges of a network that are found; an edge to a head stands for those to all its inputs."""
        return [edge for edge in edges if edge in self.edges or (edge[0], node_of(edge[1])) in self.edges]


def score(answer: JsonObject, result: Result, judge: Judge | None = None) -> Score:
    """Score a result; names that the network does not have are refused."""
    true = {(str(a), str(b)) for a, b, _ in answer["edges"]}
    candidates = [(str(a), str(b)) for a, b in answer["candidates"]]
    node_pairs = {(a, node_of(b)) for a, b in candidates}
    named = result.edges | set(result.scores or {})
    odd = sorted(edge for edge in named if edge not in set(candidates) and edge not in node_pairs)
    if odd:
        raise InputError(
            f"{len(odd)} edges of the result are not edges of the network, the first being {' → '.join(odd[0])}; "
            "question.json lists them all"
        )
    split = named <= set(candidates)
    spread = set(result.within(candidates))
    predicted_nodes, true_nodes = ({node for a, b in some for node in (a, node_of(b))} for some in (spread, true))
    return Score(
        name=str(answer["name"]),
        edges=Agreement.of(result.edges, true) if split else None,
        between_nodes=Agreement.of({(a, node_of(b)) for a, b in spread}, {(a, node_of(b)) for a, b in true}),
        nodes=Agreement.of(predicted_nodes - {*ENDS}, true_nodes - {*ENDS}),
        auc=_auc(result, true, candidates, split),
        faithfulness=judge.faithfulness(spread) if judge is not None else None,
    )


def _auc(result: Result, true: Collection[Edge], candidates: Collection[Edge], split: bool) -> float | None:
    r"""Return the probability that a true edge has a higher score than another, ties counting half.

    With ranks $r$ of the true ones among all, it is $(\sum r - m(m+1)/2)\,/\,m(n - m)$ for $m$ true edges of $n$. Edges
    without a score come last.
    """
    if result.scores is None:
        return None
    if not split:
        true, candidates = {(a, node_of(b)) for a, b in true}, {(a, node_of(b)) for a, b in candidates}
    lowest = min(result.scores.values(), default=0.0) - 1.0
    values = np.array([result.scores.get(edge, lowest) for edge in candidates])
    right = np.array([edge in true for edge in candidates])
    if right.all() or not right.any():
        return None
    order = np.sort(values)
    ranks = (np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right") + 1) / 2
    m = int(right.sum())
    return float((ranks[right].sum() - m * (m + 1) / 2) / (m * (len(right) - m)))


def score_files(answer: Path, result: Path, folder: Path | None = None) -> Score:
    """Score a result file; by default, the network is beside the folder of answers."""
    truth, data = read_json(answer, ANSWER), read_json(result, RESULT)
    if data.get("name", truth["name"]) != truth["name"]:
        raise InputError(f"the result is about {data['name']!r}, the answer about {truth['name']!r}")
    place = folder or answer.parent.parent / str(truth["name"])
    judge = None
    if folder is not None or (place / "question.json").is_file():
        judge = read_judge(place)
        if judge.wired.weights.digest != truth["digest"]:
            raise InputError(f"{place} is not the network that {answer} is about")
    return score(truth, Result.from_json(data), judge)
