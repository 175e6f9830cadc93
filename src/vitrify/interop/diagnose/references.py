"""Reference architectures beside a model: from recorded evidence, or trained now under the same budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vitrify.claims import each_architecture_learns_what_its_theorems_allow as table
from vitrify.claims._kept import kept
from vitrify.claims.catalogue import find
from vitrify.errors import InputError
from vitrify.interop.diagnose.tasks import FLIP_FLOP, TRAINED, TWICE, Task
from vitrify.learn.models.catalogue import Family

if TYPE_CHECKING:
    from vitrify.interop.diagnose.battery import Budget

TABLE = "each_architecture_learns_what_its_theorems_allow"
GLITCHES = "transformers_glitch_on_a_flip_flop_and_lstms_do_not"
TAILS = {TRAINED: "0.8", "dense tail": "dense 0.1", "sparse tail": "sparse 0.98"}
NETS = {"transformer": "transformer", "LSTM": "LSTM", "positive": "linear recurrence"}


@dataclass(frozen=True)
class Beside:
    """An architecture of ours: its scores by task and test (the median over seeds), and how they were measured."""

    name: str
    measured: str
    scores: Mapping[tuple[str, str], float]


def recorded(evidence: Path, tasks: Sequence[Task]) -> list[Beside]:
    """What is recorded of the same tasks at the same lengths; evidence that is not there is left out."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    labels: dict[str, list[str]] = {}
    for name, read in ((TABLE, _from_table), (GLITCHES, _from_glitches)):
        if not (evidence / f"{name}.json").exists():
            continue
        known = kept(find(name), evidence)
        for architecture, scores in read(known, tasks).items():
            found.setdefault(architecture, {}).update(scores)
            device = known.get("measured on", {}).get("device", "a device that was not kept")
            labels.setdefault(architecture, []).append(f"{known['row']}: {known['domain']}, on {device}")
    return [Beside(name, "recorded, " + "; ".join(labels[name]), scores) for name, scores in found.items() if scores]


def _from_table(known: Mapping[str, Any], tasks: Sequence[Task]) -> dict[str, dict[tuple[str, str], float]]:
    (shown,) = known["shown"].values()
    found: dict[str, dict[tuple[str, str], float]] = {name: {} for name in shown["architectures"]}
    for task in tasks:
        if task.name not in shown["tasks"]:
            continue
        column = shown["tasks"].index(task.name)
        if shown["lengths"][column] != [test.sandbox.tokens for test in task.tests]:
            continue  # recorded at another size
        for row, name in enumerate(shown["architectures"]):
            for at, test in enumerate((TRAINED, TWICE)):
                found[name][task.name, test] = float(np.median(np.array(shown["accuracy"][row][column])[:, at]))
    return found


def _from_glitches(known: Mapping[str, Any], tasks: Sequence[Task]) -> dict[str, dict[tuple[str, str], float]]:
    (shown,) = known["shown"].values()
    same = known["domain"].startswith(f"rows of {FLIP_FLOP}:") and any(task.name == "flip-flop" for task in tasks)
    return {
        name: {
            ("flip-flop", test): 1 - float(np.median(shown["nets"][net]["rates"][tail])) for test, tail in TAILS.items()
        }
        for name, net in NETS.items()
        if same and net in shown["nets"]
    }


def known(names: Sequence[str]) -> dict[str, Family]:
    """The architectures that can be trained beside a model; names of others are refused."""
    (subject,) = table.paper()
    families: dict[str, Family] = dict(subject.data["setting"].families)
    unknown = [name for name in names if name not in families]
    if unknown:
        raise InputError(f"there is no reference {', '.join(map(repr, unknown))}; there are {', '.join(families)}")
    return families


def trained(names: Sequence[str], tasks: Sequence[Task], budget: Budget, say: Callable[[str], None]) -> list[Beside]:
    """Train architectures of ours under the same budget: the same steps, batches, rates and seeds, on the same rows."""
    from vitrify.learn.afterwards import afterwards
    from vitrify.learn.recipe import Recipe
    from vitrify.learn.train import train

    families = known(names)
    recipe = Recipe(steps=budget.steps, batch=budget.batch, test_rows=64, marks=0)
    found = []
    for name in names:
        scores: dict[tuple[str, str], float] = {}
        for task in tasks:
            say(f"training our {name} on {task.name}")
            family = families[name]
            runs = train(family, task.sandbox, axes={"lr": budget.rates, "seed": budget.seeds}, recipe=recipe)
            by_rate = [runs[at : at + len(budget.seeds)] for at in range(0, len(runs), len(budget.seeds))]
            best = min(by_rate, key=lambda group: _loss(group[0].last))
            for test in task.tests:
                own = table.stretched(family, best, test.sandbox)
                each = afterwards(family, own, [test.sandbox], budget.rows)[0]
                scores[task.name, test.name] = float(np.median([one["accuracy"] for one in each]))
        found.append(Beside(f"{name} (trained now)", f"trained beside it: {budget.words}", scores))
    return found


def _loss(last: Mapping[str, float]) -> float:
    return float("inf") if last["broken"] >= 0 else last["train"]
