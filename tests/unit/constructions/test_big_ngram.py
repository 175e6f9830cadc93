"""A real model: order 5, more than 100,000 n-grams, through an ARPA file into one layer with four heads."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from built import listed_contexts
from cases import rest_slow
from corpora import pydoc_sentences
from oracles.arpa_evaluator import ArpaEvaluator
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_logits, log_probabilities
from vitrify.net.sparse import nonzeros
from vitrify.net.weights import Weights
from vitrify.spec.ngrams.model import NGramModel

HISTORIES = 10_000
LENGTH = 8  # words of a history; every prefix of one is a history too
CLOSE = 1e-9
GIGABYTES = 2 * 2**30

BUILD = """
import sys
from vitrify.constructions.catalogue import build
from vitrify.kit import assemble
from vitrify.spec.ngrams.model import NGramModel
weights = build(NGramModel.read(sys.argv[1]))
print(weights.digest)
"""
MEASURE = """
import json, resource, subprocess, sys
run = subprocess.run([sys.executable, "-c", *sys.argv[1:]], capture_output=True, text=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([run.returncode, run.stdout, run.stderr, peak]))
"""  # a process of its own: a child's peak includes that of the process it was forked from


@dataclass(frozen=True, eq=False)
class Case:
    path: Path
    sentences: list[list[str]]
    arpa: ArpaEvaluator
    weights: Weights


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    path = tmp_path_factory.mktemp("big") / "pydoc.arpa"
    sentences = pydoc_sentences()
    NGramModel.fit(sentences, 5).write(path)
    weights = build(NGramModel.read(path))
    return Case(path, sentences, ArpaEvaluator(path), weights)


def sequences(case: Case, seed: int) -> Iterator[list[str]]:
    """Texts as written, texts of random words, and texts that change in the middle; few are longer than the order."""
    draw = random.Random(seed)
    known = case.weights.architecture.inputs[1:]
    while True:
        text = draw.choice(case.sentences)
        start = draw.choice([0, draw.randrange(len(text))])
        written = text[start : start + LENGTH]
        strange = [draw.choice(known) for _ in range(LENGTH)]
        cut = draw.randrange(LENGTH)
        yield draw.choice([written, strange, written[:cut] + strange[cut:], strange[:cut] + written[: LENGTH - cut]])


def histories(case: Case, count: int, seed: int) -> Iterator[tuple[list[list[str]], np.ndarray]]:
    """Batches of histories with the net's log-probabilities after each: every prefix of every text, each once."""
    net = case.weights.architecture
    seen: set[tuple[str, ...]] = set()
    texts = sequences(case, seed)
    while len(seen) < count:
        batch = [text for text in (next(texts) for _ in range(64)) if text]
        tokens = np.zeros((len(batch), 1 + LENGTH), dtype=np.int64)
        for row, text in zip(tokens, batch, strict=True):
            row[1 : 1 + len(text)] = [net.input_ids[word] for word in text]
        rows = log_probabilities(net.output, batch_logits(case.weights, tokens))
        fresh: dict[tuple[str, ...], np.ndarray] = {}
        for text, row in zip(batch, rows, strict=True):
            for n in range(len(text) + 1):
                fresh.setdefault(tuple(text[:n]), row[n])
        new = [prefix for prefix in fresh if prefix not in seen][: count - len(seen)]
        seen |= set(new)
        yield [list(prefix) for prefix in new], np.array([fresh[prefix] for prefix in new])


def largest_difference(case: Case, count: int, seed: int) -> tuple[float, int]:
    """The largest difference of two log-probabilities over some histories, a few next words each; and how many unseen.

    Next words: one listed after some suffix of the history, the end, and two random ones.
    """
    draw = random.Random(seed + 1)
    symbols = case.weights.architecture.output.symbols
    number = {word: place for place, word in enumerate(symbols)}
    follows: dict[tuple[str, ...], list[str]] = {}
    for gram in case.arpa.ngrams:
        follows.setdefault(gram[:-1], []).append(gram[-1])
    worst, asked, unseen = 0.0, 0, 0
    for batch, rows in histories(case, count, seed):
        for history, row in zip(batch, rows, strict=True):
            context = tuple(["<s>", *history][-4:])
            unseen += context not in case.arpa.ngrams
            while context not in follows:
                context = context[1:]
            words = [draw.choice(follows[context]), "</s>", draw.choice(symbols), draw.choice(symbols)]
            for word in words:
                if word != "<s>":
                    wanted = case.arpa.log_prob(["<s>", *history], word)
                    worst = max(worst, abs(wanted - float(row[number[word]])))
            asked += 1
    assert asked == count
    return worst, unseen


@pytest.mark.slow
def test_the_model_is_large(case: Case) -> None:
    assert case.arpa.order == 5
    assert len(case.arpa.ngrams) >= 100_000


@pytest.mark.slow
def test_it_costs_what_it_lists(case: Case) -> None:
    size = case.weights.sizes
    assert (size.layers, size.heads) == (1, 4)
    assert size.units == len(listed_contexts(case.arpa.ngrams))
    arrays = case.weights.arrays
    output = sum(nonzeros(arrays[name]) for name in ("blocks.0.mlp.W_out", "unembed.W_U", "unembed.b_U"))
    words = sum(1 for gram in case.arpa.ngrams if len(gram) == 1)
    assert output <= len(case.arpa.ngrams) + words


@pytest.mark.slow
@pytest.mark.parametrize("count", rest_slow([200, 600], first=1))
def test_log_probabilities_of_histories(case: Case, count: int) -> None:
    worst, unseen = largest_difference(case, count, seed=0)
    assert worst <= CLOSE
    assert unseen >= count // 4


@pytest.mark.slow
def test_log_probabilities_of_ten_thousand_histories(case: Case) -> None:
    worst, unseen = largest_difference(case, HISTORIES, seed=100)
    assert worst <= CLOSE
    assert unseen >= HISTORIES // 4


@pytest.mark.slow
def test_whole_rows(case: Case) -> None:
    symbols = case.weights.architecture.output.symbols
    batch, rows = next(histories(case, 60, seed=7))
    for history, row in zip(batch[::3], rows[::3], strict=True):
        wanted = [case.arpa.log_prob(["<s>", *history], word) for word in symbols]
        np.testing.assert_allclose(row, wanted, rtol=0, atol=CLOSE)


@pytest.mark.slow
def test_building_needs_less_than_two_gigabytes_and_gives_the_same_bytes(case: Case) -> None:
    command = [sys.executable, "-c", MEASURE, BUILD, str(case.path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    status, out, errors, kilobytes = json.loads(run.stdout)
    assert status == 0, errors
    assert out.strip() == case.weights.digest
    assert 0 < kilobytes * 1024 < GIGABYTES
