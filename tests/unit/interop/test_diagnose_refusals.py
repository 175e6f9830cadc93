"""Models that do not keep to the protocol: one clear sentence each, before anything is trained."""

# ruff: noqa: ARG001, ARG002, ARG005  these models ignore what they are given

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.errors import InputError
from vitrify.interop.diagnose.battery import diagnose as diagnosed
from vitrify.interop.diagnose.models import target
from vitrify.interop.diagnose.probing import probe
from vitrify.interop.diagnose.tasks import chosen

BATCH, LENGTH, VOCABULARY = 4, 33, 3  # of parity at the trained length


def diagnose(given: Any, seeds: tuple[int, ...] = (0, 1)) -> list[str]:
    """The warnings of the probe pass."""
    return probe(target(given), chosen(["parity"]), BATCH, seeds, 1e-3, BATCH).warnings


class Biases:
    """A model that keeps to the protocol."""

    def __init__(self, vocabulary: int, length: int, seed: int) -> None:
        del length
        self.bias = np.random.default_rng(seed).normal(size=vocabulary)

    def logits(self, tokens: Any) -> Any:
        return np.broadcast_to(self.bias, (*tokens.shape, len(self.bias)))

    def step(self, tokens: Any, targets: Any, weights: Any) -> Any:
        del tokens, weights
        self.bias = self.bias + 0.1 * np.bincount(targets.ravel(), minlength=len(self.bias))
        return 1.0


def test_a_model_that_keeps_to_the_protocol_is_not_warned_of() -> None:
    assert diagnose(Biases) == []


def answering(make: Callable[[Any], Any]) -> Any:
    """A model whose logits are made of the tokens."""

    class Model(Biases):
        def logits(self, tokens: Any) -> Any:
            return make(super().logits(tokens))

    return Model


@each(
    ("made", "said"),
    [
        (lambda x: x[:, -1], r"\[4, 33, 3\], and returned \[4, 3\]: it must answer after every token"),
        (lambda x: x.swapaxes(0, 1), r"returned \[33, 4, 3\]: the batch must come first"),
        (lambda x: x.swapaxes(1, 2), r"returned \[4, 3, 33\]: the vocabulary must come last"),
        (lambda x: x[..., :2], r"returned \[4, 33, 2\]: the last size must be the vocabulary"),
        (lambda x: x[None], r"and returned \[1, 4, 33, 3\]$"),
        (lambda x: (x, x), "must return an array of logits, and returned a tuple"),
        (lambda x: None, "must return an array of logits, and returned a NoneType"),
        (lambda x: np.zeros(x.shape, int), "must return floating point numbers, and returned int64"),
        (
            lambda x: np.where(np.arange(33)[:, None] == 7, np.nan, x),
            "12 of 396 logits are not: the first is NaN, in row 0 at place 7",
        ),
        (lambda x: x + np.inf, "the first is infinite, in row 0 at place 0"),
    ],
)
def test_logits_must_be_numbers_of_the_right_shape(made: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        diagnose(answering(made))


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Found no NVIDIA driver on your system."),
        AssertionError("Torch not compiled with CUDA enabled"),
        ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?)"),
    ],
)
def test_a_model_that_needs_a_gpu_is_told_so(error: Exception) -> None:
    def fails(_: Any) -> Any:
        raise error

    with pytest.raises(InputError, match=r"needs a device that is not here .*: it must run on the CPU"):
        diagnose(answering(fails))


def test_other_errors_of_a_model_are_one_sentence() -> None:
    def fails(_: Any) -> Any:
        raise ValueError("first line\nsecond line")

    with pytest.raises(InputError, match=r"on parity, given 4 rows of 33 tokens, raised ValueError: first line$"):
        diagnose(answering(fails))
    with pytest.raises(InputError, match=r"Refuses\(vocabulary=3, length=65, seed=0\) raised ValueError: no$"):
        diagnose(type("Refuses", (), {"__init__": refuse}))


def refuse(self: Any, vocabulary: int, length: int, seed: int) -> None:
    raise ValueError("no")


def test_rows_of_twice_the_length_must_be_read() -> None:
    def short(x: Any) -> Any:
        if x.shape[1] > LENGTH:
            raise IndexError("no such place")
        return x

    with pytest.raises(InputError, match="given 4 rows of 65 tokens, raised IndexError: no such place"):
        diagnose(answering(short))


def test_a_step_must_change_something_and_return_its_loss() -> None:
    class Still(Biases):
        def step(self, tokens: Any, targets: Any, weights: Any) -> Any:
            return 1.0

    class Silent(Biases):
        def step(self, tokens: Any, targets: Any, weights: Any) -> Any:
            return None

    class Broken(Biases):
        def step(self, tokens: Any, targets: Any, weights: Any) -> Any:
            return float("nan")

    with pytest.raises(InputError, match="must learn, and a step of training on parity changed no logit"):
        diagnose(Still)
    with pytest.raises(InputError, match="a step of training of Silent on parity raised TypeError"):
        diagnose(Silent)
    with pytest.raises(InputError, match="the loss of the first step is nan"):
        diagnose(Broken)


def test_seeds_must_be_used() -> None:
    def deaf(vocabulary: int, length: int, seed: int) -> Biases:
        del seed
        return Biases(vocabulary, length, 0)

    with pytest.raises(InputError, match="must use its seed: 0 and 1 give the same logits"):
        diagnose(deaf)
    assert diagnose(deaf, seeds=(0,)) == []


def test_what_is_not_reproducible_or_looks_ahead_is_warned_of() -> None:
    def chance(vocabulary: int, length: int, seed: int) -> Biases:
        made = Biases(vocabulary, length, seed)
        made.bias = np.random.default_rng().normal(size=vocabulary)
        return made

    class Ahead(Biases):
        def logits(self, tokens: Any) -> Any:
            return super().logits(tokens) + tokens[:, ::-1, None]

    (said,) = diagnose(chance)
    assert "not reproducible" in said
    (said,) = diagnose(Ahead)
    assert "not causal: later tokens change earlier answers" in said


def test_logits_of_minus_infinity_are_allowed() -> None:
    assert diagnose(answering(lambda x: np.where(np.arange(3) == 0, -np.inf, x))) == []


def test_a_factory_must_return_something_of_use() -> None:
    with pytest.raises(InputError, match=r"must return a torch module, a pair .*, not nothing: see docs/how-to"):
        diagnose(lambda vocabulary, length, seed: None)
    with pytest.raises(InputError, match="not a list"):
        diagnose(lambda vocabulary, length, seed: [1])


@each(
    ("given", "said"),
    [
        ("no_such_module:make", "importing no_such_module raised ModuleNotFoundError"),
        ("json:make", r"json must have a factory make\(vocabulary, length, seed\)"),
        ("nowhere.py:make", "there is no file nowhere.py"),
        ("what is this", "must be module:factory, file.py:factory or a Hugging Face folder"),
        ("sys:path", "path must be a factory or a function of tokens, and is a list"),
        (lambda one, two: one, "and takes one, two"),
    ],
)
def test_a_target_must_be_found(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        target(given)


def test_a_file_that_breaks_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "broken_model.py"
    file.write_text("raise KeyError('x')\n")
    with pytest.raises(InputError, match=r"importing .*broken_model.py raised KeyError: 'x'"):
        target(f"{file}:make")


def test_unknown_tasks_kinds_and_references_are_refused() -> None:
    with pytest.raises(InputError, match="there is no task 'party'; there are recall"):
        diagnosed(Biases, tasks=["party"])
    with pytest.raises(InputError, match="there is no kind 'snail'; there are transformer"):
        diagnosed(Biases, kind="snail", tasks=["parity"])
    with pytest.raises(InputError, match="there is no reference 'snail'; there are transformer"):
        diagnosed(Biases, tasks=["parity"], references=["snail"])
