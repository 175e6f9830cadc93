"""Diagnose: every task of the battery, trained or asked under a declared budget, beside what is known about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.claims._agreement import SOLVED
from vitrify.claims._learned import interval, plain, rate_interval
from vitrify.errors import InputError
from vitrify.interop.diagnose import references as ours
from vitrify.interop.diagnose.models import Answers, attempt, numbers
from vitrify.interop.diagnose.predictions import OPEN, agreement, known_kind, law, laws, nearest
from vitrify.interop.diagnose.probing import Probed, probe
from vitrify.interop.diagnose.targets import Target, target
from vitrify.interop.diagnose.tasks import Known, Task, Variant, asked_rows, chosen, training_rows

AHEAD = 16  # steps whose rows are drawn at once
LATE = 0.1  # of the steps, at the end, whose mean loss chooses the learning rate


@dataclass(frozen=True)
class Budget:
    """How much is trained and asked: declared before, and printed with the result.

    The learning rate is chosen on the first seed, by the training loss. `seconds` bounds the training of all tasks
    together: each training gets the same share of what is left, and ends early if it must.
    """

    steps: int = 2000
    batch: int = 32
    seeds: tuple[int, ...] = (0, 1, 2)
    rates: tuple[float, ...] = (2e-3, 1e-2)
    rows: int = 256
    seconds: float | None = None

    def __post_init__(self) -> None:
        wrong = [
            f"{name} must be at least 1, not {getattr(self, name)}"
            for name in ("steps", "batch", "rows")
            if getattr(self, name) < 1
        ]
        wrong += [] if self.seeds else ["there must be a seed"]
        wrong += [] if self.rates and all(rate > 0 for rate in self.rates) else ["learning rates must be positive"]
        wrong += ["the budget must be positive"] if self.seconds is not None and not self.seconds > 0 else []
        if wrong:
            raise InputError("; ".join(wrong))

    @property
    def trainings(self) -> int:
        """Trainings of one task."""
        return len(self.seeds) + len(self.rates) - 1

    @property
    def words(self) -> str:
        """In words."""
        rates = ", ".join(f"{rate:g}" for rate in self.rates)
        bound = f", at most {self.seconds:g} s" if self.seconds is not None else ""
        best = f"learning rate {rates}" if len(self.rates) == 1 else f"the best of the learning rates {rates}"
        return f"{self.steps:,} steps of {self.batch} rows, {best}, seeds {', '.join(map(str, self.seeds))}{bound}"


@dataclass(frozen=True)
class Cell:
    """One test of one task: the scores of all seeds, and what is known about it."""

    task: str
    test: str
    length: int
    judged: bool
    accuracy: tuple[float, ...]
    loss: tuple[float, ...]
    known: Known
    rows: int
    needed: float  # the accuracy from which on the task counts as learnt
    open: bool = False  # the rows of training were not learnt, and without that nothing is said

    @property
    def solved(self) -> bool:
        """Whether the median over seeds is as good as needed."""
        return bool(np.median(self.accuracy) >= self.needed)

    @property
    def mean(self) -> float:
        """The mean accuracy over seeds."""
        return float(np.mean(self.accuracy))

    @property
    def interval(self) -> tuple[float, float]:
        """95 %: over seeds by Student's t; of a single one, over rows, each counted as one case."""
        if len(self.accuracy) > 1:
            low, high = interval(self.accuracy)
            return max(low, 0.0), min(high, 1.0)
        return rate_interval(round(self.mean * self.rows), self.rows)


@dataclass(frozen=True)
class Diagnosis:
    """What was found: cells, what the atlas says beside them, and how it was measured."""

    target: str
    kind: str | None
    learns: bool
    budget: Budget
    cells: tuple[Cell, ...]
    beside: tuple[ours.Beside, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    trainings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def domain(self) -> str:
        """How it was measured."""
        if self.learns:
            return f"trained: {self.budget.words}; asked about {self.budget.rows} rows of each test"
        seeds = ", ".join(map(str, self.budget.seeds))
        return f"asked as it is, not trained, about {self.budget.rows} rows of each test; seeds {seeds}"

    def solved(self) -> dict[str, bool]:
        """Of each task, whether it is solved where theorems speak about it."""
        return {cell.task: cell.solved for cell in self.cells if cell.judged and not cell.open}

    def like(self) -> list[str]:
        """The kinds whose theorems agree best with what was found."""
        return nearest(self.solved())

    def said(self, cell: Cell) -> dict[str, Any]:
        """What the atlas says about a cell: of the kind that was declared, or of all kinds."""
        if not cell.judged:
            return {}
        own = law(self.kind, cell.task) if self.kind else None
        every = {kind: {**said._asdict(), "words": said.words} for kind, said in laws(cell.task).items()}
        return {
            "theorem": own and {**own._asdict(), "words": own.words},
            "agreement": (OPEN if cell.open else agreement(cell.solved, own)) if self.kind else None,
            "kinds": every,
            "like": [kind for kind, said in every.items() if said["can"] == cell.solved and not cell.open],
            "open": cell.open,
        }

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        cells = [
            {
                "task": cell.task,
                "test": cell.test,
                "length": cell.length,
                "judged": cell.judged,
                "mean": cell.mean,
                "interval": cell.interval,
                "accuracy": cell.accuracy,
                "loss": cell.loss,
                **cell.known._asdict(),
                **self.said(cell),
                "references": {
                    one.name: value for one in self.beside if (value := one.scores.get((cell.task, cell.test)))
                },
            }
            for cell in self.cells
        ]
        found: dict[str, Any] = plain(
            {
                "target": self.target,
                "kind": self.kind,
                "mode": "trained" if self.learns else "asked",
                "measured": self.domain,
                "cells": cells,
                "like": self.like(),
                "references": [{"name": one.name, "measured": one.measured} for one in self.beside],
                "trainings": self.trainings,
                "warnings": self.warnings,
                "notes": self.notes,
                "seconds": self.seconds,
            }
        )
        return found


def diagnose(
    given: Any,
    *,
    tasks: Sequence[str] | None = None,
    budget: Budget | None = None,
    kind: str | None = None,
    references: Sequence[str] = (),
    evidence: Path | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda _: None,
) -> Diagnosis:
    """Put a model to the battery: a factory, a function of tokens, `module:factory`, or a Hugging Face folder.

    `references` names architectures of ours to train under the same budget; recorded ones come from `evidence`.
    """
    start, budget = time.perf_counter(), budget or Budget()
    ours.known(references)
    source = target(given, known_kind(kind), device)
    source = replace(source, kind=known_kind(source.kind))
    budget = replace(budget, seeds=budget.seeds[:1]) if source.fixed else budget
    found, notes = _askable(source, chosen(tasks), tasks is not None)
    say("probing")
    probed = probe(source, found, budget.batch, budget.seeds, budget.rates[0], budget.rows)
    if probed.learns and probed.step:
        total = probed.step * budget.steps * budget.trainings * len(found)
        say(f"training: about {min(total, budget.seconds or total):,.0f} s")
    cells, trainings = [], {}
    clock = Clock(budget, len(found))
    for task in found:
        models, about = _models(source, task, budget, probed, clock, say)
        trainings[task.name] = about
        tests = [test for test in task.tests if test.length <= source.longest]
        asked = [_cell(source, task, test, models, budget) for test in tests]
        unlearnt = task.premise and bool(np.median(asked[0].accuracy) < SOLVED)
        cells += [replace(cell, open=unlearnt) for cell in asked]
        if len(tests) < len(task.tests):
            notes.append(f"{task.name}: rows of more than {source.longest} tokens are not asked")
        notes += [f"{task.name}: {text}" for text in about.pop("notes", ())]
    beside = ours.recorded(evidence, found) if evidence else []
    beside += ours.trained(references, found, budget, say) if references else []
    return Diagnosis(
        source.name,
        source.kind,
        probed.learns,
        budget,
        tuple(cells),
        tuple(beside),
        tuple(probed.warnings),
        tuple(notes),
        trainings if probed.learns else {},
        time.perf_counter() - start,
    )


def _askable(source: Target, tasks: list[Task], named: bool) -> tuple[list[Task], list[str]]:
    """The tasks that the target can be asked, and what is left out."""
    if not source.told:
        return tasks, []
    left = [task.name for task in tasks if not task.told]
    if named and left:
        raise InputError(
            f"{source.name} was not trained on our tasks, and the answers of {', '.join(left)} do not follow from the "
            f"text alone: ask {', '.join(task.name for task in chosen(None) if task.told)}"
        )
    note = f"not asked, as the answers do not follow from the text alone: {', '.join(left)}"
    return [task for task in tasks if task.told], [note] if left else []


class Clock:
    """Shares the seconds that are left among the trainings that are left."""

    def __init__(self, budget: Budget, tasks: int) -> None:
        self.end = None if budget.seconds is None else time.perf_counter() + budget.seconds
        self.left = budget.trainings * tasks

    def share(self) -> float:
        """When the next training must end."""
        now, left = time.perf_counter(), max(self.left, 1)
        self.left -= 1
        return np.inf if self.end is None else now + max(self.end - now, 0.0) / left


def _models(
    source: Target, task: Task, budget: Budget, probed: Probed, clock: Clock, say: Callable[[str], None]
) -> tuple[list[Answers], dict[str, Any]]:
    """A model for each seed, trained if it learns; and how that went."""
    sizes = len(task.vocabulary), task.length
    if not probed.learns:
        say(f"asking {task.name}")
        return [source.model(*sizes, seed, 0.0) for seed in budget.seeds], {}
    first = budget.seeds[0]
    tried = []
    for rate in budget.rates:
        model = source.model(*sizes, first, rate)
        tried.append((_train(model, source, task, first, rate, budget, clock, say), model))
    best = min(range(len(tried)), key=lambda at: tried[at][0]["loss"])
    runs, models = [tried[best][0]], [tried[best][1]]
    for seed in budget.seeds[1:]:
        models.append(source.model(*sizes, seed, budget.rates[best]))
        runs.append(_train(models[-1], source, task, seed, budget.rates[best], budget, clock, say))
    about: dict[str, Any] = {"rate": budget.rates[best], "steps": [run["steps"] for run in runs]}
    about["loss"] = [run["loss"] for run in runs]
    about["notes"] = [
        f"seed {seed} broke at step {run['steps']}: its loss was not a number"
        for seed, run in zip(budget.seeds, runs, strict=True)
        if not np.isfinite(run["loss"])
    ]
    short = [run["steps"] for run in runs if run["steps"] < budget.steps and np.isfinite(run["loss"])]
    about["notes"] += [f"the budget ended training after {min(short):,} of {budget.steps:,} steps"] if short else []
    return models, about


def _train(
    model: Any,
    source: Target,
    task: Task,
    seed: int,
    rate: float,
    budget: Budget,
    clock: Clock,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Train on rows that depend on the seed alone; the loss is the mean over the last steps."""
    end, losses = clock.share(), []
    what = f"training {source.name} on {task.name}"
    for step, given in enumerate(_stream(task, seed, budget)):
        losses.append(attempt(what, lambda given=given: float(model.step(*given))))  # type: ignore[misc]
        if not np.isfinite(losses[-1]):
            return {"steps": step + 1, "loss": np.inf}
        if step % 50 == 0:
            say(f"{task.name}, seed {seed}, rate {rate:g}: step {step:,} of {budget.steps:,}, loss {losses[-1]:.3f}")
        if time.perf_counter() > end:
            break
    late = max(round(LATE * len(losses)), 1)
    return {"steps": len(losses), "loss": float(np.mean(losses[-late:]))}


def _stream(task: Task, seed: int, budget: Budget) -> Iterator[Any]:
    for step in range(0, budget.steps, AHEAD):
        drawn = training_rows(task, seed, step * budget.batch, AHEAD * budget.batch)
        for at in range(min(AHEAD, budget.steps - step)):
            yield [part[at * budget.batch : (at + 1) * budget.batch] for part in drawn]


def _cell(source: Target, task: Task, test: Variant, models: Sequence[Answers], budget: Budget) -> Cell:
    """Ask all models about the same rows."""
    given, about = asked_rows(task, test, budget.rows)
    found = [_score(source, task, model, given, budget.batch) for model in models]
    accuracy, loss = zip(*found, strict=True)
    judged = test.name == task.judged
    return Cell(task.name, test.name, test.length, judged, accuracy, loss, about, budget.rows, task.solved)


def _score(source: Target, task: Task, model: Answers, given: Any, batch: int) -> tuple[float, float]:
    """Accuracy and loss over the questions that count; answers are chosen among those that the task has."""
    right = lost = 0.0
    for at in range(0, len(given.tokens), batch):
        tokens, targets, weights = (part[at : at + batch] for part in given)
        short = batch - len(tokens)
        padded = np.pad(tokens, ((0, short), (0, 0)), mode="edge") if short else tokens
        what = f"asking {source.name} about {task.name}"
        logits = attempt(what, lambda padded=padded: numbers(model.logits(padded)))[: len(tokens)]  # type: ignore[misc]
        among = np.where(np.isnan(logits), -np.inf, logits)[..., task.answers]
        said = task.answers[among.argmax(axis=-1)]
        broken = np.isnan(logits).any(axis=-1)
        right += float((((said == targets) & ~broken) * weights).sum())
        top = logits.max(axis=-1, keepdims=True)
        logp = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
        lost -= float((np.take_along_axis(logp, targets[..., None], axis=-1)[..., 0] * weights).sum())
    total = float(given.weights.sum())
    return right / total, lost / total
