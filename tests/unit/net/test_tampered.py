"""Model folders from anybody: every command gives one message and exit code 2, or the right judgement."""

from __future__ import annotations

import filecmp
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy.sparse import csr_array

from audit_proofs import contradiction, premise_fails
from command_line import vitrify
from samples import ENTRIES, SAMPLES, built, own
from tampered import OUTSIDE, tampered
from vitrify.certification.certificate import write_certificate
from vitrify.certification.checking import certify, net_check
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.margins.net import proof_of
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.errors import VitrifyError
from vitrify.net.folder import load, save
from vitrify.net.inference import log_probabilities, logits, outputs
from vitrify.net.sparse import Stack
from vitrify.net.weights import Weights
from vitrify.web import tasks
from vitrify.web.worker import WebQuestion

SAMPLE: dict[str, int] = {  # number of the sample that a construction builds
    "log-depth": 0, "heads": 0, "dyck": 1, "dyck-lstm": 0, "program": 0, "temporal": 0, "counting": 0, "recall": 0,
    "linear-recurrence": 0, "maxout": 1, "hidden": 1, "spans": 2, "one-pass": 2, "probabilities": 2, "cnn": 2,
    "turing": 0, "turing-any-length": 0, "turing-hybrid": 0, "loop": 1, "estimate-heads": 0, "features": 0,
}  # fmt: skip
SPARSE = ("heads", "turing")  # whose matrices are stored as sparse ones
SLOW_TO_CERTIFY = ("features", "probabilities")  # left to the slow test
MAX_SECONDS = 20
REPOSITORY = str(Path(__file__).parents[3])
READABLE = [os.path.realpath(path) for path in (*sys.path, sys.base_prefix, REPOSITORY, os.devnull)]


class Original:
    """A folder with a certificate, the network in it, and the inputs on which tampered ones are judged."""

    def __init__(self, name: str, folder: Path) -> None:
        entry, self.folder = ENTRIES[name], folder
        self.spec = cast(Any, SAMPLES[entry.kind][SAMPLE[name]])
        weights: Any = built(entry, self.spec, own(entry))
        assert weights is not None
        self.weights = sparse(weights) if name in SPARSE else weights
        save(self.weights, folder, self.spec)
        net, self.quick = weights.architecture, dict[str, Any]()
        if net.reads == "tokens":
            self.quick = {"max_length": max(net.min_length, min(2, net.max_length)), "samples": 4}
        write_certificate(folder, certify(self.weights, self.spec, prove=True, **self.quick))
        self.check = net_check(weights.architecture, self.spec, **self.quick)

    def options(self) -> list[str]:
        return [word for key, value in self.quick.items() for word in (f"--{key.replace('_', '-')}", str(value))]

    def input(self) -> list[str]:
        """Return an input to run."""
        net = self.weights.architecture
        if net.reads == "tokens":
            return [net.inputs[1]] * self.quick["max_length"]
        if net.reads == "image":
            return [net.symbols[0]] * net.columns if net.symbols else ["0"] * (net.rows * net.columns)
        return ["0.5"] * len(net.inputs) if net.reads == "vector" else []

    def misjudged(self, weights: Weights[Any]) -> str | None:
        """Return a wrong answer of a network that was judged to be right, by names; None if there is none."""
        net, own = weights.architecture, self.weights.architecture
        if not isinstance(self.check, WordCheck):
            points = self.check.batches[0].inputs[:16]
            wrong = self.check.oracle.errors(points, outputs(weights, points)) > max(1e-6, net.output.error)
            same = net.output.symbols == own.output.symbols
            return None if same and not wrong.any() else f"{net.output.symbols}, {int(wrong.sum())} wrong points"
        for word in (word for batch in self.check.batches for words in batch.words for word in words[:40]):
            names = [own.inputs[i] for i in word]
            if not net.min_length <= len(names) <= net.max_length:
                continue
            (rows,) = logits(weights, [[net.input_ids[name] for name in names]])
            for right, row in zip(self.check.oracle.right(word), rows, strict=True):
                if not np.isnan(right).any() and not self._agrees(net.output, right, row):
                    return f"{names}: {row} for {right}"
        oracle = oracle_for(self.spec, net)
        proof = proof_of(weights, oracle)
        words = [words for batch in self.check.batches for words in batch.words if words.shape[1] <= net.max_length]
        if not proof.holds or premise_fails(weights, proof, words):
            return None
        return contradiction(weights, proof, words)

    def _agrees(self, output: Any, right: Any, row: Any) -> bool:
        kind, symbols = self.check.oracle.answer, self.weights.architecture.output.symbols  # type: ignore[union-attr]
        numbers = np.exp(log_probabilities(output, row)) if kind == "distribution" else row
        named = dict(zip(output.symbols, numbers, strict=True))
        if kind == "symbol":
            return bool(max(named, key=lambda symbol: named[symbol]) == symbols[int(right.argmax())])
        if kind == "set":
            return all((named[symbol] > 0) == bool(share) for symbol, share in zip(symbols, right, strict=True))
        allowed = max(1e-6, output.error)
        return all(abs(named[symbol] - number) <= allowed for symbol, number in zip(symbols, right, strict=True))


def sparse(weights: Weights[Any]) -> Weights[Any]:
    """Return the network with its matrices, and those of its heads, stored as sparse ones."""

    def stored(array: Any) -> Any:
        flat = csr_array(array.reshape(-1, array.shape[-1]))
        return flat if array.ndim == 2 else Stack(len(array), flat)

    arrays = {name: stored(array) if ".W_" in name else array for name, array in weights.arrays.items()}
    return replace(weights, arrays=arrays)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Original]:
    return {name: Original(name, tmp_path_factory.mktemp("nets") / "net") for name in SAMPLE}


@contextmanager
def within_seconds(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"{seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


OPENED: list[str] | None = None  # paths, while they are watched


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if OPENED is not None and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        path = os.fsdecode(arguments[0])
        unfollowed = bool(arguments[2] & os.O_NOFOLLOW)  # then a link is an error of the system
        OPENED.append(str(Path(path).absolute()) if unfollowed else os.path.realpath(path))


sys.addaudithook(_watch)


@contextmanager
def nothing_read_outside(folder: Path) -> Iterator[None]:
    """Fail if a file is opened that is neither in the folder nor part of Python or of vitrify."""
    global OPENED
    OPENED = []
    try:
        yield
    finally:
        paths, OPENED = OPENED, None
    outside = [path for path in paths if not path.startswith((*READABLE, f"{folder}/", "/proc/"))]
    assert not outside, outside


OPTIONS: dict[str, list[list[str]]] = {  # one of them is added to each command
    "info": [[], ["--json"]],
    "run": [[], ["--json"], ["--all"], ["--trace"], ["--generate", "3"]],
    "explain": [[], ["--json"], ["--all"], ["--formula"]],
    "recheck": [[], ["--json"]],
    "certify": [[], [], ["--json"], ["--accept-spec"], ["--reals"], ["--arithmetic"], ["--attack", "9"]],
}


QUESTIONS: list[dict[str, Any]] = [  # that a page of the app asks about a network; one of them about each folder
    {"do": "trace", "stop": 0, "position": None},
    {"do": "trace", "stop": 1, "position": 0},
    {"do": "suggest", "seed": 3},
    {"do": "write", "steps": 3},
    {"do": "listed", "array": "embed.W_E", "search": ""},
    {"do": "changed", "changes": [{"seed": 1}]},
]


def served(target: Path, words: list[str], question: dict[str, Any]) -> str:
    """Return how a worker of the app answers a question about a folder; fail where it is no message and no answer."""
    for remembered in (tasks._load, tasks._changed, tasks._run):
        remembered.cache_clear()
    given = {"folder": str(target), "changes": [], "words": words} | question
    said: list[Any] = []
    WebQuestion(given.pop("do"), given).run(said.append)
    answer = json.loads(said[-1])
    if "error" not in answer:
        return "loaded"
    assert answer["status"] == 422, answer  # neither a fault of the app nor one of the system
    assert answer["error"], answer
    return "refused"


def judged(
    original: Original, target: Path, change: str, loaded: Weights[Any] | None, rng: np.random.Generator
) -> Iterator[tuple[str, str]]:
    """Yield each command with its outcome on a tampered folder, and fail where it is no message and no judgement."""
    before = {path.name: path.lstat().st_mtime_ns for path in target.iterdir()}
    spec = next(original.folder.glob("spec.*"))
    usual = {"run": original.input(), "certify": original.options()}
    for command, options in OPTIONS.items():
        words = [*usual.get(command, ()), *options[int(rng.integers(len(options)))]]
        case = (change, command, words)
        with within_seconds(MAX_SECONDS), nothing_read_outside(target):
            try:
                done = vitrify(command, target, *words)
            except Exception as error:
                raise AssertionError(case) from error
        assert done.returncode in (0, 1, 2), case
        assert "Traceback" not in done.stderr, case
        assert "Warning" not in done.stderr, (case, done.stderr)
        assert "the system refused" not in done.stderr, (case, done.stderr)
        if done.returncode == 2 and not (command == "recheck" and done.stdout):  # which may also say why not
            assert done.stderr.startswith("error: ") or "Usage" in done.stderr, (case, done.stderr)
            assert {path.name: path.lstat().st_mtime_ns for path in target.iterdir()} == before, case
        same_spec = filecmp.cmp(target / spec.name, spec, shallow=False) if (target / spec.name).is_file() else False
        if done.returncode == 0 and command in ("recheck", "certify") and same_spec and loaded is not None:
            with np.errstate(all="ignore"):
                wrong = original.misjudged(loaded)
            assert wrong is None, (case, wrong)
        yield command, {0: "holds", 1: "fails", 2: "refused"}[done.returncode]
    question = QUESTIONS[int(rng.integers(len(QUESTIONS)))]
    with within_seconds(MAX_SECONDS), nothing_read_outside(target):
        try:
            outcome = served(target, original.input(), question)
        except Exception as error:
            raise AssertionError((change, question)) from error
    yield "serve", outcome
    assert (target.parent / OUTSIDE).read_text() == "secret\n", change


def tamper(
    originals: dict[str, Original], names: list[str], target: Path, count: int, seed: int
) -> Counter[tuple[str, str, str]]:
    """Return the outcomes by network, command and outcome of so many tampered folders."""
    rng, outcomes = np.random.default_rng(seed), Counter[tuple[str, str, str]]()
    for number in range(count):
        original = originals[name := names[number % len(names)]]
        change = f"{name}: " + tampered(original.folder, target, rng)
        try:
            loaded = load(target, verify=False)
        except VitrifyError:
            loaded = None
        outcomes[name, "load", "accepted" if loaded else "refused"] += 1
        outcomes.update((name, command, outcome) for command, outcome in judged(original, target, change, loaded, rng))
    return outcomes


@pytest.mark.long
def test_every_command_judges_or_refuses_a_tampered_folder(originals: dict[str, Original], tmp_path: Path) -> None:
    names = [name for name in SAMPLE if name not in SLOW_TO_CERTIFY]
    outcomes = tamper(originals, names, tmp_path / "changed", 150, seed=1)
    assert sum(count for (_, _, outcome), count in outcomes.items() if outcome == "refused") > 300


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLE)
def test_the_app_answers_every_question_about_every_kind_of_network(originals: dict[str, Original], name: str) -> None:
    original = originals[name]
    outcomes = {each["do"]: served(original.folder, original.input(), each) for each in QUESTIONS}
    assert outcomes["trace"] == "loaded" or original.weights.architecture.reads != "tokens"
    assert outcomes["write"] == "refused" or original.weights.architecture.reads == "tokens"


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(2, 12))
def test_so_do_they_with_five_thousand(originals: dict[str, Original], tmp_path: Path, seed: int) -> None:
    tamper(originals, list(SAMPLE), tmp_path / "changed", 500, seed)
