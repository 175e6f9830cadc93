"""Diagnose: every task of the battery, trained or asked under a declared budget, beside what is known about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

import vitrify
from vitrify.encoding import JsonMapping, JsonObject, decoded, encoded
from vitrify.errors import InputError
from vitrify.interop.diagnose import references as ours
from vitrify.interop.diagnose import tasks as battery_tasks
from vitrify.interop.diagnose.models import Answers, Learns, Target, attempt, numbers, target
from vitrify.interop.diagnose.probing import Probed, probe
from vitrify.interop.diagnose.references import KINDS, OPEN, agreement, known_kind, law, laws, nearest
from vitrify.interop.diagnose.tasks import DiagnosisTask, KnownScores, TokenBatch, Variant, asked_rows, chosen
from vitrify.intervals import mean_interval, rate_interval
from vitrify.learn.agreement import SOLVED
from vitrify.parameters import Count, Parameterized, Positive, Within
from vitrify.report.frame import environment
from vitrify.report.wording import duration

AHEAD = 16  # steps whose rows are drawn at once
DIGITS = 5  # significant digits of the result
LATE = 0.1  # of the steps, at the end, whose mean loss chooses the learning rate


@dataclass(frozen=True)
class Budget(Parameterized):
    """The amount of training and evaluation: declared before, and printed with the result.

    The learning rate is chosen on the first seed, by the training loss. `seconds` bounds the training of all tasks
    together: each training gets the same share of what is left, and ends early if it must.
    """

    steps: Count = 2000
    batch: Count = 32
    seeds: Annotated[tuple[int, ...], Within(1)] = (0, 1, 2)
    rates: Annotated[tuple[Positive, ...], Within(1)] = (2e-3, 1e-2)
    rows: Count = 256
    seconds: Positive | None = None

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
        return f"{self.steps:,} steps of {self.batch} sequences, {best}, seeds {', '.join(map(str, self.seeds))}{bound}"


@dataclass(frozen=True)
class TaskScore:
    """One test of one task: the scores of all seeds, and what is known about it."""

    task: str
    test: str
    length: int
    judged: bool
    accuracy: tuple[float, ...]
    loss: tuple[float, ...]
    known: KnownScores
    rows: int
    needed: float  # the accuracy from which on the task counts as learnt
    open: bool = False  # training sequences were not learnt, and without that theorems say nothing

    @property
    def solved(self) -> bool:
        """True if the median over seeds reaches the required accuracy."""
        return bool(np.median(self.accuracy) >= self.needed)

    @property
    def mean(self) -> float:
        """The mean accuracy over seeds."""
        return float(np.mean(self.accuracy))

    @property
    def interval(self) -> tuple[float, float]:
        """95 %: over seeds by Student's t; of a single one, over rows, each counted as one case."""
        if len(self.accuracy) > 1:
            low, high = mean_interval(self.accuracy)
            return max(low, 0.0), min(high, 1.0)
        return rate_interval(round(self.mean * self.rows), self.rows)


@dataclass(frozen=True)
class Diagnosis:
    """The result of a benchmark: cells, the predictions of the atlas for them, and how they were measured."""

    target: str
    kind: str | None
    learns: bool
    budget: Budget
    cells: tuple[TaskScore, ...]
    beside: tuple[ours.Beside, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    trainings: JsonMapping = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def domain(self) -> str:
        """Return the settings of the measurement."""
        if self.learns:
            return f"trained: {self.budget.words}; tested on {self.budget.rows} sequences each"
        seeds = ", ".join(map(str, self.budget.seeds))
        return f"not trained; tested on {self.budget.rows} sequences each; seeds {seeds}"

    def solved(self) -> dict[str, bool]:
        """Of each task, whether it is solved where theorems speak about it."""
        return {cell.task: cell.solved for cell in self.cells if cell.judged and not cell.open}

    def like(self) -> list[str]:
        """The kinds whose theorems agree best with what was found."""
        return nearest(self.solved())

    def said(self, cell: TaskScore) -> JsonObject:
        """Return the predictions of the atlas for a cell: for the declared kind of model, or for all kinds."""
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

    def to_json(self) -> JsonObject:
        """As plain data."""
        names = ("task", "test", "length", "judged", "mean", "interval", "accuracy", "loss")
        cells = [
            {
                **{name: getattr(cell, name) for name in names},
                **cell.known._asdict(),
                **self.said(cell),
                "references": {
                    one.name: value for one in self.beside if (value := one.scores.get((cell.task, cell.test)))
                },
            }
            for cell in self.cells
        ]
        data = encoded(
            {
                "target": self.target,
                "kind": self.kind,
                "mode": "trained" if self.learns else "evaluated",
                "measured": self.domain,
                "cells": cells,
                "like": self.like(),
                "references": [{"name": one.name, "measured": one.measured} for one in self.beside],
                **{name: getattr(self, name) for name in ("trainings", "warnings", "notes", "seconds")},
            },
            digits=DIGITS,
        )
        return dict(decoded(data))  # type: ignore[arg-type]  # an object


def diagnose(
    given: object,
    *,
    tasks: Sequence[str] | None = None,
    budget: Budget | None = None,
    kind: str | None = None,
    references: Sequence[str] = (),
    evidence: Path | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda _: None,
    announce: Callable[[str], None] = lambda _: None,
) -> Diagnosis:
    """Benchmark a model: a factory, a function of tokens, `module:factory`, or a Hugging Face folder.

    `references` names architectures of ours to train under the same budget; recorded ones come from `evidence`.
    `say` receives progress, `announce` an estimate of the training time, from a measured step.
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
        steps = budget.steps * budget.trainings * sum(task.length for task in found) / found[0].length  # of one length
        took = duration(min(probed.step * steps, budget.seconds or np.inf))
        much = f"{len(found)} tasks × {budget.trainings} trainings × {budget.steps:,} steps"
        announce(f"training takes about {took}: {much}, {probed.step:.2g} s for a step of {found[0].name}")
    cells, trainings = [], {}
    deadlines = _deadlines(budget, len(found))
    for task in found:
        models, about = _models(source, task, budget, probed, deadlines, say)
        trainings[task.name] = about
        tests = [test for test in task.tests if test.length <= source.longest]
        row = [_cell(source, task, test, models, budget) for test in tests]
        unlearnt = task.premise and bool(np.median(row[0].accuracy) < SOLVED)
        cells += [replace(cell, open=unlearnt) for cell in row]
        if len(tests) < len(task.tests):
            notes.append(f"{task.name}: rows of more than {source.longest} tokens are not asked")
        notes += [f"{task.name}: {text}" for text in about.pop("notes", ())]
    beside = ours.recorded(evidence, found) if evidence else []
    beside += ours.trained(references, found, budget, say) if references else []
    lists = tuple(cells), tuple(beside), tuple(probed.warnings), tuple(notes)
    spent = trainings if probed.learns else {}, time.perf_counter() - start
    return Diagnosis(source.name, source.kind, probed.learns, budget, *lists, *spent)


def _askable(source: Target, tasks: list[DiagnosisTask], named: bool) -> tuple[list[DiagnosisTask], list[str]]:
    """The tasks that the target can be asked, and what is left out."""
    if not source.pretrained:
        return tasks, []
    left = [task.name for task in tasks if not task.in_context]
    if named and left:
        raise InputError(
            f"{source.name} was not trained on our tasks, and the answers of {', '.join(left)} do not follow from the "
            f"text alone: ask {', '.join(task.name for task in chosen(None) if task.in_context)}"
        )
    note = f"not asked, as the answers do not follow from the text alone: {', '.join(left)}"
    return [task for task in tasks if task.in_context], [note] if left else []


def _deadlines(budget: Budget, tasks: int) -> Iterator[float]:
    """Return when each training must end: those that are left share the seconds that are left."""
    end = np.inf if budget.seconds is None else time.perf_counter() + budget.seconds
    for left in range(budget.trainings * tasks, 0, -1):
        now = time.perf_counter()
        yield now + max(end - now, 0.0) / left


def _models(
    source: Target,
    task: DiagnosisTask,
    budget: Budget,
    probed: Probed,
    deadlines: Iterator[float],
    say: Callable[[str], None],
) -> tuple[list[Answers], JsonObject]:
    """Return a model for each seed, trained if it learns; and how that went."""
    sizes = len(task.vocabulary), task.length
    if not probed.learns:
        say(f"asking {task.name}")
        return [source.model(*sizes, seed, 0.0) for seed in budget.seeds], {}

    def train(seed: int, rate: float) -> tuple[Answers, int, float]:
        """Train on rows that depend on the seed alone; return the steps, and the mean loss of the last ones."""
        model, end, losses = source.model(*sizes, seed, rate), next(deadlines), list[float]()
        assert isinstance(model, Learns)
        for step, inputs in enumerate(_stream(task, seed, budget)):
            losses.append(attempt(f"training {source.name} on {task.name}", partial(_step, model, inputs)))
            if not np.isfinite(losses[-1]):
                return model, step + 1, np.inf
            if step % 50 == 0:
                what = f"{task.name}, seed {seed}, rate {rate:g}"
                say(f"{what}: step {step:,} of {budget.steps:,}, loss {losses[-1]:.3f}")
            if time.perf_counter() > end:
                break
        late = max(round(LATE * len(losses)), 1)
        return model, len(losses), float(np.mean(losses[-late:]))

    tried = [train(budget.seeds[0], rate) for rate in budget.rates]
    best = min(range(len(tried)), key=lambda at: tried[at][2])
    runs = [tried[best], *(train(seed, budget.rates[best]) for seed in budget.seeds[1:])]
    models, steps, losses = map(list, zip(*runs, strict=True))
    notes = [
        f"seed {seed} broke at step {count}: its loss was not a number"
        for seed, count, loss in zip(budget.seeds, steps, losses, strict=True)
        if not np.isfinite(loss)
    ]
    short = [count for _, count, loss in runs if count < budget.steps and np.isfinite(loss)]
    notes += [f"the budget ended training after {min(short):,} of {budget.steps:,} steps"] if short else []
    return models, {"rate": budget.rates[best], "steps": steps, "loss": losses, "notes": notes}


def _step(model: Learns, inputs: TokenBatch) -> float:
    return float(model.step(*inputs))


def _stream(task: DiagnosisTask, seed: int, budget: Budget) -> Iterator[TokenBatch]:
    for step in range(0, budget.steps, AHEAD):
        drawn = battery_tasks.training_rows(task, seed, step * budget.batch, AHEAD * budget.batch)
        for at in range(min(AHEAD, budget.steps - step)):
            yield TokenBatch(*(part[at * budget.batch : (at + 1) * budget.batch] for part in drawn))


def _cell(source: Target, task: DiagnosisTask, test: Variant, models: Sequence[Answers], budget: Budget) -> TaskScore:
    """Ask all models about the same rows."""
    inputs, about = asked_rows(task, test, budget.rows)
    scores = [_score(source, task, model, inputs, budget.batch) for model in models]
    accuracy, loss = zip(*scores, strict=True)
    judged = test.name == task.judged
    return TaskScore(task.name, test.name, test.length, judged, accuracy, loss, about, budget.rows, task.solved)


def _score(source: Target, task: DiagnosisTask, model: Answers, inputs: TokenBatch, batch: int) -> tuple[float, float]:
    """Accuracy and loss over the questions that count; answers are chosen among those that the task has."""
    right = lost = 0.0
    for at in range(0, len(inputs.tokens), batch):
        tokens, targets, weights = (part[at : at + batch] for part in inputs)
        short = batch - len(tokens)
        padded = np.pad(tokens, ((0, short), (0, 0)), mode="edge") if short else tokens
        what = f"asking {source.name} about {task.name}"
        logits = attempt(what, lambda padded=padded: numbers(model.logits(padded)))[: len(tokens)]  # type: ignore[misc]
        among = np.where(np.isnan(logits), -np.inf, logits)[..., task.answers]
        predictions = task.answers[among.argmax(axis=-1)]
        broken = np.isnan(logits).any(axis=-1)
        right += float((((predictions == targets) & ~broken) * weights).sum())
        top = logits.max(axis=-1, keepdims=True)
        logp = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
        lost -= float((np.take_along_axis(logp, targets[..., None], axis=-1)[..., 0] * weights).sum())
    total = float(inputs.weights.sum())
    return right / total, lost / total


def page(diagnosis: JsonMapping) -> str:
    """The page, from a diagnosis as plain data; everything in it is escaped."""
    tasks: dict[str, list[JsonMapping]] = {}
    for cell in diagnosis["cells"]:
        tasks.setdefault(cell["task"], []).append(cell)
    template = environment().get_template("diagnosis.html.j2")
    return template.render(found=diagnosis, tasks=tasks, kinds=KINDS, version=vitrify.__version__)
