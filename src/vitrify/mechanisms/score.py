"""Scores of a circuit that a method found: against the true one, and by what the network answers with it alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.errors import FolderError, InputError
from vitrify.mechanisms.circuit import Judge
from vitrify.mechanisms.parts import Edge
from vitrify.mechanisms.puzzle import ANSWER, RESULT, read_json, read_judge

ENDS = ("embed", "pos", "output")  # nodes that every network has
PORTS = (".q", ".k", ".v", ".gate")


@dataclass(frozen=True)
class Agreement:
    """How a found set agrees with the true one."""

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, found: Collection[Any], true: Collection[Any]) -> Agreement:
        """Shares of what was found that is true and of what is true that was found, and their harmonic mean.

        To find nothing where there is nothing is right.
        """
        both = len(set(found) & set(true))
        precision = both / len(set(found)) if found else float(not true)
        recall = both / len(set(true)) if true else 1.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return cls(precision, recall, f1)


@dataclass(frozen=True)
class Score:
    """Edges, edges whatever a head does with them, and nodes; ROC AUC where there are scores; what is still answered.

    `faithfulness` is the share of answers that stay when every other edge carries what donors say; None without a
    network to ask.
    """

    name: str
    edges: Agreement | None  # None where a result does not say which input of a head it means
    between_nodes: Agreement
    nodes: Agreement
    auc: float | None
    faithfulness: float | None


@dataclass(frozen=True)
class Result:
    """What a method found: a set of edges, or a score for each, of which those above the threshold are the set."""

    edges: frozenset[Edge]
    scores: Mapping[Edge, float] | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Result:
        """The result that a file holds."""
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


def node_of(port: str) -> str:
    """The node that a port belongs to."""
    return next((port.removesuffix(end) for end in PORTS if port.endswith(end)), port)


def score(answer: Mapping[str, Any], result: Result, judge: Judge | None = None) -> Score:
    """Score a result; names that the network does not have are refused."""
    true = {(str(a), str(b)) for a, b, _ in answer["edges"]}
    candidates = [(str(a), str(b)) for a, b in answer["candidates"]]
    whole = {(a, node_of(b)) for a, b in candidates}
    named = result.edges | set(result.scores or {})
    odd = sorted(edge for edge in named if edge not in set(candidates) and edge not in whole)
    if odd:
        raise InputError(
            f"{len(odd)} edges of the result are none of the network's, the first being {' → '.join(odd[0])}; "
            "question.json lists them all"
        )
    split = named <= set(candidates)
    spread = {edge for edge in candidates if edge in result.edges or (edge[0], node_of(edge[1])) in result.edges}
    found_nodes, true_nodes = ({node for a, b in some for node in (a, node_of(b))} for some in (spread, true))
    return Score(
        name=str(answer["name"]),
        edges=Agreement.of(result.edges, true) if split else None,
        between_nodes=Agreement.of({(a, node_of(b)) for a, b in spread}, {(a, node_of(b)) for a, b in true}),
        nodes=Agreement.of(found_nodes - {*ENDS}, true_nodes - {*ENDS}),
        auc=_auc(result, true, candidates, split),
        faithfulness=judge.kept(spread) if judge is not None else None,
    )


def _auc(result: Result, true: Collection[Edge], candidates: Collection[Edge], split: bool) -> float | None:
    r"""The probability that a true edge has a higher score than another, ties counting half.

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
    """Score a result file; the network is looked for beside the folder of answers unless said."""
    told, found = read_json(answer, ANSWER), read_json(result, RESULT)
    if found.get("name", told["name"]) != told["name"]:
        raise InputError(f"the result is about {found['name']!r}, the answer about {told['name']!r}")
    place = folder or answer.parent.parent / str(told["name"])
    judge = None
    if folder is not None or (place / "question.json").is_file():
        judge = read_judge(place)
        if judge.wired.weights.digest != told["digest"]:
            raise InputError(f"{place} is not the network that {answer} is about")
    return score(told, Result.from_json(found), judge)
