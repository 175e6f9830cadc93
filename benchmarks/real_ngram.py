"""A real 5-gram model: build, save, score; the net's own speed beside that of the trie it was made from, in one run.

Run it with `.venv/bin/python benchmarks/real_ngram.py`.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from vitrify.constructions.ngram import ngram
from vitrify.kit import assemble
from vitrify.net.folder import load, save
from vitrify.net.inference import encode, log_probabilities, logits
from vitrify.spec.ngrams.families import pydoc_sentences
from vitrify.spec.ngrams.model import NGramModel

T = TypeVar("T")
TOKENS = 5_000


def timed(name: str, work: Callable[[], T]) -> tuple[T, float]:
    """Do something once and print how long it took."""
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    print(f"{name:<40} {seconds:8.2f} s")
    return result, seconds


def main() -> None:
    """Print the figures."""
    sentences = pydoc_sentences()
    with tempfile.TemporaryDirectory() as folder:
        arpa, net = Path(folder) / "lm.arpa", Path(folder) / "net"
        NGramModel.fit(sentences, 5).write(arpa)
        model, reading = timed("read ARPA", lambda: NGramModel.read(arpa))
        weights, building = timed("build", lambda: assemble(ngram(model)))
        _, saving = timed("save", lambda: save(weights, net, model))
        weights, _ = timed("load", lambda: load(net))
    asked: list[list[str]] = []
    while sum(map(len, asked)) < TOKENS:
        asked.append(sentences[7 * len(asked)][:200])
    tokens = sum(len(words) + 1 for words in asked)
    output = weights.architecture.output
    ids = [encode(weights.architecture, words) for words in asked]
    found, running = timed(
        f"score {tokens} positions, net", lambda: [log_probabilities(output, row) for row in logits(weights, ids)]
    )
    prefixes = [words[:t] for words in asked for t in range(len(words) + 1)]
    expected, walking = timed(f"score {tokens} positions, trie", lambda: model.next_log_probs(prefixes))
    size = weights.sizes
    print(f"{'n-grams, contexts = units':<40} {sum(map(len, model.levels)):,}, {size.units:,}")
    print(f"{'non-zero of dense parameters':<40} {size.nonzero:,} of {size.dense:,}")
    print(f"{'largest difference of log-probabilities':<40} {np.abs(np.concatenate(found) - expected).max():.2g}")
    print(f"{'read + build + save':<40} {reading + building + saving:8.2f} s")
    print(f"{'net time over trie time':<40} {running / walking:8.1f}")
    print(f"{'positions per second':<40} {tokens / running:8.0f}")
    print(f"{'peak memory':<40} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:8.2f} GiB")


if __name__ == "__main__":
    main()
