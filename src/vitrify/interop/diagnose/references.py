"""Predictions and references beside a score: the atlas on a kind of architecture and a task, and trained references.

The kinds and most cells are those of the claim G4, which measures them; tasks that it lacks are added here. References
come from recorded evidence, or are trained now under the same budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vitrify.certification.evidence import Evidence
from vitrify.claims import each_architecture_learns_what_its_theorems_allow as table
from vitrify.claims.catalogue import find
from vitrify.errors import InputError
from vitrify.interop.diagnose.tasks import FLIP_FLOP, TRAINED, TWICE, DiagnosisTask
from vitrify.learn.agreement import CONDITIONS, COSTS, NO_GROUPS, PREDICTED
from vitrify.learn.agreement import agreement as table_agreement
from vitrify.learn.models.catalogue import Family
from vitrify.report import wording

if TYPE_CHECKING:
    from vitrify.interop.diagnose.battery import Budget

TABLE = "each_architecture_learns_what_its_theorems_allow"
GLITCHES = "transformers_glitch_on_a_flip_flop_and_lstms_do_not"
TAILS = {TRAINED: "P(ignore) = 0.8", "dense tail": "P(ignore) = 0.1", "sparse tail": "P(ignore) = 0.98"}
NETS = {"transformer": "transformer", "LSTM": "LSTM", "positive": "linear recurrence"}


@dataclass(frozen=True)
class Beside:
    """An architecture of ours: its scores by task and test (the median over seeds), and how they were measured."""

    name: str
    measured: str
    scores: Mapping[tuple[str, str], float]


def recorded(evidence: Path, tasks: Sequence[DiagnosisTask]) -> list[Beside]:
    """Return recorded accuracies on the same tasks at the same lengths; missing evidence is left out."""
    accuracies: dict[str, dict[tuple[str, str], float]] = {}
    labels: dict[str, list[str]] = {}
    for name, read in ((TABLE, _from_table), (GLITCHES, _from_glitches)):
        if not (evidence / f"{name}.json").exists():
            continue
        outcome = find(name).recorded(evidence)
        ((subject, part),) = outcome.evidence.parts.items()
        run = "; ".join(wording.domains(part))
        for architecture, scores in read(part, tasks).items():
            accuracies.setdefault(architecture, {}).update(scores)
            device = outcome.measured_on.get("device", "a device that was not recorded")
            labels.setdefault(architecture, []).append(f"{outcome.id}: {subject}: {run}, on {device}")
    return [
        Beside(name, "recorded, " + "; ".join(labels[name]), scores) for name, scores in accuracies.items() if scores
    ]


def _from_table(part: Evidence, tasks: Sequence[DiagnosisTask]) -> dict[str, dict[tuple[str, str], float]]:
    shown = part.figure
    accuracies: dict[str, dict[tuple[str, str], float]] = {name: {} for name in shown["architectures"]}
    for task in tasks:
        if task.name not in shown["tasks"]:
            continue
        column = shown["tasks"].index(task.name)
        if shown["lengths"][column] != [test.sandbox.tokens for test in task.tests]:
            continue  # recorded at another size
        for row, name in enumerate(shown["architectures"]):
            for at, test in enumerate((TRAINED, TWICE)):
                accuracies[name][task.name, test] = float(np.median(np.array(shown["accuracy"][row][column])[:, at]))
    return accuracies


def _from_glitches(part: Evidence, tasks: Sequence[DiagnosisTask]) -> dict[str, dict[tuple[str, str], float]]:
    shown = part.figure
    sizes = {run.settings.get("tokens") for run in part.domains}
    same = sizes == {FLIP_FLOP} and any(task.name == "flip-flop" for task in tasks)
    return {
        name: {
            ("flip-flop", test): 1 - float(np.median(shown["nets"][net]["rates"][tail])) for test, tail in TAILS.items()
        }
        for name, net in NETS.items()
        if same and net in shown["nets"]
    }


def known(names: Sequence[str]) -> dict[str, Family]:
    """The architectures that can be trained beside a model; names of others are refused."""
    (subject,) = table.large()
    families: dict[str, Family] = {name: trial.family for name, trial in subject.trials.items()}
    unknown = [name for name in names if name not in families]
    if unknown:
        raise InputError(f"there is no reference {', '.join(map(repr, unknown))}; there are {', '.join(families)}")
    return families


def trained(
    names: Sequence[str], tasks: Sequence[DiagnosisTask], budget: Budget, say: Callable[[str], None]
) -> list[Beside]:
    """Train architectures of ours under the same budget: the same steps, batches, rates and seeds, on the same rows."""
    from vitrify.learn.evaluation import evaluate, stretched
    from vitrify.learn.recipe import Recipe
    from vitrify.learn.train import train

    families = known(names)
    recipe = Recipe(steps=budget.steps, batch=budget.batch, test_examples=64, evals_per_doubling=0)
    references = []
    for name in names:
        scores: dict[tuple[str, str], float] = {}
        for task in tasks:
            say(f"training our {name} on {task.name}")
            family = families[name]
            runs = train(family, task.sandbox, axes={"lr": budget.rates, "seed": budget.seeds}, recipe=recipe)
            by_rate = [runs[at : at + len(budget.seeds)] for at in range(0, len(runs), len(budget.seeds))]
            firsts = [group[0].last for group in by_rate]
            losses = [float("inf") if last["broken"] >= 0 else last["train"] for last in firsts]
            best = by_rate[losses.index(min(losses))]
            for test in task.tests:
                own = stretched(family, best, test.sandbox)
                each = evaluate(family, own, [test.sandbox], budget.rows)[0]
                scores[task.name, test.name] = float(np.median([one["accuracy"] for one in each]))
        references.append(Beside(f"{name} (trained now)", f"trained beside it: {budget.words}", scores))
    return references


OPEN = "not learned as trained"
KINDS: Mapping[str, str] = {
    "transformer": "softmax attention in two or more layers",
    "one layer": "softmax attention in one layer",
    "looped": "attention layers that are run several times",
    "LSTM": "a recurrence with gates that depend on its state",
    "positive": "a recurrence that is linear in its state, decays from 0 to 1: linear attention, Mamba, RWKV",
    "signed": "the same with decays from -1 to 1",
    "reflections": "a linear recurrence by products of reflections: DeltaNet with eigenvalues down to -1",
    "hybrid": "a recurrence and attention",
}


class Law(NamedTuple):
    """A prediction of the atlas for a kind of model on a task: can or can't, and the claim that shows it."""

    can: bool
    id: str
    claim: str

    @property
    def words(self) -> str:
        """In a few words, beside the id."""
        if self.id.startswith("G"):
            return "does" if self.can else "does not"
        return "can" if self.can else COSTS.get(self.id) or CONDITIONS.get(self.id) or "can't"


CLAIMS: Mapping[tuple[str, str], str] = {  # of an id that several claims share, for a task; "" for all others
    ("R20", ""): "an_induction_head_takes_two_layers_of_constant_size",
    ("R24", ""): "any_automaton_runs_on_one_recurrent_layer",
    ("R24", "diagonal"): "parity_takes_a_diagonal_recurrence_a_negative_eigenvalue",
    ("R24", "permutations"): "a_permutation_takes_n_minus_c_householder_factors",
}
MORE: Mapping[str, Mapping[str, tuple[bool, str]]] = {
    "transformer": {
        "induction": (True, "R20"),
        "composition": (True, "R19"),
        "flip-flop": (False, "G3"),
        "majority": (True, "G1"),
    },
    "one layer": NO_GROUPS | {"induction": (False, "B4"), "composition": (False, "B3")},
    "LSTM": {"flip-flop": (True, "R24")},
}


def law(kind: str, task: str) -> Law | None:
    """Return the prediction for a kind on a task, or None."""
    prediction = {**PREDICTED.get(kind, {}), **MORE.get(kind, {})}.get(task)
    if prediction is None:
        return None
    can, claim_id = prediction
    special = "diagonal" if kind in ("positive", "signed", "hybrid") else task if kind == "reflections" else ""
    shared = CLAIMS.get((claim_id, special)) or CLAIMS.get((claim_id, ""))
    return Law(can, claim_id, shared or _claim_of_id(claim_id))


@cache
def _claim_of_id(claim_id: str) -> str:
    return find(claim_id).name


def laws(task: str) -> dict[str, Law]:
    """All that is said about a task, by kind."""
    predictions = {kind: law(kind, task) for kind in KINDS}
    return {kind: prediction for kind, prediction in predictions.items() if prediction is not None}


def agreement(solved: bool, prediction: Law | None) -> str:
    """Compare a score with a prediction; limits of state and measured results can be surpassed."""
    if prediction is not None and solved and not prediction.can:
        if prediction.id in COSTS:
            return f"its {COSTS[prediction.id].removeprefix('takes ')} suffices"
        if prediction.id.startswith("G"):
            return "better than was measured"
    return table_agreement(float(solved), prediction and (prediction.can, prediction.id))


def known_kind(kind: str | None) -> str | None:
    """A kind by its name in any case; an unknown one is refused."""
    if kind is None:
        return None
    known = next((name for name in KINDS if name.lower() == kind.lower()), None)
    if known is None:
        raise InputError(f"there is no kind {kind!r}; there are {', '.join(KINDS)}")
    return known


def nearest(solved: Mapping[str, bool]) -> list[str]:
    """The kinds whose laws agree with most of the tasks that were solved or not, against those that disagree."""
    scores = {}
    for kind in KINDS:
        predictions = {task: law(kind, task) for task in solved}
        right = [
            bool(prediction.can) == solved[task] for task, prediction in predictions.items() if prediction is not None
        ]
        scores[kind] = sum(right) - sum(not one for one in right)
    best = max(scores.values(), default=0)
    return [kind for kind, score in scores.items() if score == best and score > 0]
