"""Before anything is trained: does the model keep to the protocol? What is wrong is said in one sentence."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vitrify.arrays import Array, Ints
from vitrify.errors import InputError
from vitrify.interop.diagnose.models import Answers, Learns, Target, attempt, numbers
from vitrify.interop.diagnose.tasks import DiagnosisTask, TokenBatch, Variant, any_rows, asked_rows

CLOSE = 1e-3  # of the largest logit, by which logits may differ that should be the same


@dataclass
class Probed:
    """The result of a probe pass: whether the model learns, warnings, and the seconds of a step."""

    learns: bool
    warnings: list[str] = field(default_factory=list)
    step: float = 0.0


def probe(
    target: Target, tasks: Sequence[DiagnosisTask], batch: int, seeds: Sequence[int], rate: float, rows: int
) -> Probed:
    """Check shapes and numbers on every task, and on the first all else; raises what is wrong.

    What is trained must read anything; what has its weights is given rows of the tasks, `rows` of which are drawn.
    """

    def given(task: DiagnosisTask, test: Variant) -> TokenBatch:
        if not target.fixed:
            return any_rows(task, test, batch)
        return TokenBatch(*(part[:batch] for part in asked_rows(task, test, rows)[0]))

    probed: Probed | None = None
    for task in tasks:
        model = target.model(len(task.vocabulary), task.length, seeds[0], rate)
        for test in (task.tests[0], max(task.tests, key=lambda test: test.length)):
            if test.length <= target.longest:
                logits_of(target, task, model, given(task, test).tokens)
        if probed is None:
            probed = _thoroughly(target, task, model, given(task, task.tests[0]), seeds, rate)
    if probed is None:
        raise InputError("there must be a task")
    return probed


def logits_of(target: Target, task: DiagnosisTask, model: Answers, tokens: Ints) -> Array:
    """The logits of a batch, if they are as they must be."""
    what = f"{target.name} on {task.name}, given {tokens.shape[0]} rows of {tokens.shape[1]} tokens,"
    output = attempt(what, lambda: model.logits(tokens))
    output = getattr(output, "logits", output)  # as models of Hugging Face answer
    if not hasattr(output, "shape"):
        raise InputError(f"{what} must return an array of logits, and returned a {type(output).__name__}")
    logits = attempt(what, lambda: numbers(output))
    expected = (*tokens.shape, len(task.vocabulary))
    if logits.shape != expected:
        raise InputError(
            f"{what} must return logits of the shape [batch, length, vocabulary] = {list(expected)}, and returned "
            f"{list(logits.shape)}{_hint(logits.shape, expected)}"
        )
    if logits.dtype.kind != "f":
        raise InputError(f"{what} must return floating point numbers, and returned {logits.dtype}")
    wrong = np.isnan(logits) | (logits == np.inf)
    if wrong.any():
        row, place, answer = (int(at[0]) for at in np.nonzero(wrong))
        kind = "NaN" if np.isnan(logits[row, place, answer]) else "infinite"
        raise InputError(
            f"{what} must return numbers, and before any training {int(wrong.sum())} of {logits.size} logits are not: "
            f"the first is {kind}, in row {row} at place {place}"
        )
    return logits


def _hint(shape: tuple[int, ...], expected: tuple[int, ...]) -> str:
    batch, length, vocabulary = expected
    if shape == (length, batch, vocabulary):
        return ": the batch must come first"
    if shape == (batch, vocabulary):
        return ": it must answer after every token, not only after the last"
    if shape == (batch, vocabulary, length):
        return ": the vocabulary must come last"
    if len(shape) == 3 and shape[:2] == expected[:2]:
        return ": the last size must be the vocabulary that the factory was given"
    return ""


def _thoroughly(
    target: Target, task: DiagnosisTask, model: Answers, inputs: TokenBatch, seeds: Sequence[int], rate: float
) -> Probed:
    before = logits_of(target, task, model, inputs.tokens)
    probed = Probed(isinstance(model, Learns))
    probed.warnings += _looks_ahead(target, task, model, inputs, before)
    if not probed.learns:
        return probed
    after = _stepped(target, task, model, inputs)
    if np.array_equal(before, after):
        raise InputError(f"{target.name} must learn, and a step of training on {task.name} changed no logit")
    again = target.model(len(task.vocabulary), task.length, seeds[0], rate)
    if not _close(before, logits_of(target, task, again, inputs.tokens)):
        probed.warnings.append(f"{target.name} is not reproducible: the same seed gives different first weights")
    if len(seeds) > 1:
        other = target.model(len(task.vocabulary), task.length, seeds[1], rate)
        if np.array_equal(after, _stepped(target, task, other, inputs)):
            raise InputError(
                f"{target.name} must use its seed: {seeds[0]} and {seeds[1]} give the same logits after a step"
            )
    start = time.perf_counter()
    _stepped(target, task, model, inputs)
    probed.step = time.perf_counter() - start
    return probed


def _stepped(target: Target, task: DiagnosisTask, model: Answers, inputs: TokenBatch) -> Array:
    """The logits after one step, whose loss must be a number."""
    assert isinstance(model, Learns)
    what = f"a step of training of {target.name} on {task.name}"
    loss = attempt(what, lambda: float(model.step(*inputs)))
    if not np.isfinite(loss):
        raise InputError(f"{what} must return its loss, and the loss of the first step is {loss}")
    return logits_of(target, task, model, inputs.tokens)


def _looks_ahead(target: Target, task: DiagnosisTask, model: Answers, inputs: TokenBatch, before: Array) -> list[str]:
    """Return a warning if later tokens change earlier answers, tried by replacing and by removing them."""
    half = inputs.tokens.shape[1] // 2
    changed = inputs.tokens[:, :half] if target.fixed else inputs.tokens.copy()
    changed[:, half:] = np.roll(changed[:, half:], 1, axis=0)
    after = logits_of(target, task, model, changed)
    if _close(before[:, :half], after[:, :half]):
        return []
    return [
        f"{target.name} is not causal: later tokens change earlier answers, and where the answer is the "
        f"next token (copying, brackets, flip-flop) it can be read off"
    ]


def _close(one: Array, other: Array) -> bool:
    """Return whether logits agree up to rounding; those that are minus infinity must be so in both."""
    size = max(float(np.abs(one[np.isfinite(one)]).max(initial=0.0)), 1e-6)
    return bool(np.allclose(one, other, rtol=0, atol=CLOSE * size))
