r"""How far a language model is from its spec: the divergence of its distributions, on words that the spec writes.

The mean over positions of $\mathrm{KL}(p \,\|\, q)$, where $p$ is the distribution of the spec, from which the words
are drawn, and $q$ that of the network, is the excess of the loss of the network over the least possible, in nats per
symbol.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.arrays import Ints
from vitrify.certification.checks.words import SAMPLES, WordCheck
from vitrify.certification.evidence import Quantity
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import batch_logits, log_probabilities, with_pads
from vitrify.net.weights import Weights

MAX_WRITTEN = 64  # symbols of a word
DIVERGENCE = "excess loss on words that the spec writes (nats per symbol)"
FARTHEST = "largest error on these words"


def divergence(weights: Weights[SequenceArchitecture], check: WordCheck) -> tuple[Quantity, ...]:
    """Return the mean divergence of a language model from its spec, and the largest error of a probability."""
    net, worst, excess = check.net, 0.0, list[float]()
    for words in _written(check):
        known = check.oracle.known(words)
        logp = log_probabilities(net.output, batch_logits(weights, with_pads(net, words))[:, net.pads - 1 :])
        there = check.oracle.where_known(known)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(known > 0, known * (np.log(known) - logp), 0.0).sum(axis=-1)
        excess += terms[there].tolist()
        worst = max(worst, float(np.abs(known - np.exp(logp)).max(axis=-1, initial=0.0)[there].max(initial=0.0)))
    return (Quantity(DIVERGENCE, float(np.mean(excess))), Quantity(FARTHEST, worst)) if excess else ()


def _written(check: WordCheck) -> Iterator[Ints]:
    """Yield words [word, position] of one length, as input ids, drawn from the spec; they need not end."""
    net, oracle = check.net, check.oracle
    if oracle.language is not None:
        yield from check.batches[-1].words  # random sentences
        return
    rng = np.random.default_rng(check.seed)
    columns = [net.output.symbols.index(symbol) for symbol in net.inputs[1:] if symbol in net.output.symbols]
    ids = np.array([place for place, symbol in enumerate(net.inputs) if place and symbol in net.output.symbols])
    words = np.zeros((SAMPLES, 0), dtype=np.int64)
    while words.shape[1] < min(net.max_length, MAX_WRITTEN) and len(ids):
        share = oracle.known(words)[:, -1, columns].cumsum(axis=1)
        words = words[share[:, -1] > 0]
        share = share[share[:, -1] > 0]
        if not len(words):
            return
        letter = (rng.random((len(words), 1)) * share[:, -1:] >= share).sum(axis=1).clip(max=len(ids) - 1)
        words = np.column_stack([words, ids[letter]])
    yield words
