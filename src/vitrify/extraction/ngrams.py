r"""Extraction of n-gram models: the laws of the next symbol by context, and what they lose against the network.

All words up to a length are run. The law after a context $c$ of $m - 1$ symbols is the mean of the network's
distributions after all words that end in it, each weighted by the probability that the network itself gives to the
word. The *excess* of order $m$ is the mean over positions of

$$\mathrm{E}\,\mathrm{KL}(p(\cdot \mid x) \,\|\, p_m(\cdot \mid c)), \quad x \text{ drawn from the network:}$$

by so much the loss of the model exceeds that of the network on the network's own words, in nats per symbol. It falls
with $m$; the order is the first at which it is at most the tolerance.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification import certify
from vitrify.certification.checks.words import batches
from vitrify.certification.evidence import CaseKind, Domain, Evidence, Method, Progress, Quantity, tested_links
from vitrify.certification.recognition import one_sentence
from vitrify.encoding import JsonObject
from vitrify.errors import FolderError, InputError
from vitrify.extraction.observations import INTERRUPTED, Exhausted, SearchBudget
from vitrify.extraction.result import Extraction, amount
from vitrify.intervals import mean_interval
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import batch_logits, log_probabilities
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.ngrams.model import BEGIN, END, NGramModel
from vitrify.spec.ngrams.trie import LOG10_ZERO

MAX_RUN = 1 << 14  # words of the longest length that is run in full by default
MAX_ORDER = 6
MAX_CONTEXTS = 1 << 14
SAMPLED = 256  # words that the network writes, on which the excess beyond the complete length is measured
LATER = 64  # positions after the complete length on which it is measured
ROUNDING = 1e-9  # difference of probabilities up to which a certificate is tried


@dataclass(frozen=True)
class Laws:
    """Distributions [prefix, symbol] after all prefixes of some words, with their words, lengths and weights.

    The weights of the prefixes of each length add up to 1.
    """

    words: Ints  # [prefix, position], -1 before the first symbol
    lengths: Ints
    weights: Floats
    laws: Floats

    def contexts(self, order: int) -> tuple[Ints, Ints]:
        """Return the contexts [context, order - 1], and the number of that of each prefix; -2 stands for BOS."""
        width = order - 1
        if not width:
            return np.zeros((1, 0), dtype=np.int64), np.zeros(len(self.words), dtype=np.int64)
        last = self.words[:, -width:].copy()
        begins = (self.lengths < width).nonzero()[0]
        last[begins, width - 1 - self.lengths[begins]] = -2
        unique, place = np.unique(last, axis=0, return_inverse=True)
        return unique, place.ravel()

    def model(self, order: int) -> tuple[Ints, Ints, Floats]:
        """Return contexts, the number of the context of each prefix, and the law after each context."""
        contexts, place = self.contexts(order)
        share = np.bincount(place, self.weights, len(contexts))
        weights = np.where(share[place] > 0, self.weights, 1.0)
        total = np.zeros((len(contexts), self.laws.shape[1]))
        np.add.at(total, place, weights[:, None] * self.laws)
        return contexts, place, total / total.sum(axis=1, keepdims=True)

    def excess(self, law: Floats) -> Floats:
        """Return the Kullback–Leibler divergence of a law [prefix, symbol] from each distribution, in nats."""
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(self.laws > 0, self.laws * (np.log(self.laws) - np.log(law)), 0.0)
        return np.asarray(np.maximum(terms.sum(axis=1), 0.0))


def extract_ngram(
    weights: Weights[SequenceArchitecture],
    budget: SearchBudget,
    *,
    max_length: int | None = None,
    order: int | None = None,
    tolerance: float = 1e-3,
    seed: int = 0,
    progress: Progress | None = None,
) -> Extraction:
    """Return the n-gram model of a network that predicts the next symbol."""
    _refuse(weights)
    weights = one_sentence(weights).map(lambda array: np.asarray(dense(array), dtype=np.float64))
    net = weights.architecture
    letters, longest = len(net.inputs) - 1, max_length or 0
    affordable = min(MAX_RUN, budget.words // 2)
    while max_length is None and longest < net.max_length and letters ** (longest + 1) <= affordable:
        longest += 1
    if longest > net.max_length or letters**longest > 1 << 20:
        raise InputError(f"all words of length {longest} can't be run: choose a smaller --max-length")
    observed, longest, stopped = _observed(weights, longest, budget, progress)
    orders = range(1, min(MAX_ORDER, longest) + 1)  # one more, and every word would be a context of its own
    most = max((m for m in orders if letters ** (m - 1) <= MAX_CONTEXTS), default=1)
    if order is not None and order > most:
        raise InputError(f"the order is at most {most}, by words of length {longest}: choose a smaller --order")
    table = []
    for m in [order] if order else range(1, most + 1):
        _, place, laws = observed.model(m)
        each = observed.excess(laws[place])
        far = np.abs(observed.laws - laws[place]).max(axis=1)
        table.append((m, float(observed.weights @ each) / (longest + 1), float(far.max())))
        if order is None and table[-1][1] <= tolerance:
            break
    m, excess, farthest = table[-1]
    model = _model(observed, m, net)
    evidence = _certified(weights, model, longest, seed) if farthest < ROUNDING else None
    if evidence is None:
        evidence = _measured(observed, longest, net, excess, tolerance, seed)
    evidence = evidence.adding(
        *(Quantity(f"excess of order {k} (nats per symbol)", each) for k, each, _ in table),
        Quantity("largest difference of a probability", farthest),
        *(() if stopped else _beyond(weights, model, longest, seed)),
    )
    holds = evidence.verdict == "holds"
    about = f"context of {m - 1} symbols" if m != 2 else "context of 1 symbol"
    known = (
        f"{about}: the model loses {amount(excess)} nats per symbol on all words to length {longest}, and no "
        f"probability is off by more than {amount(farthest)}"
    )
    counterexample = None if holds else _farthest(observed, laws[place], far, net)
    seconds = time.perf_counter() - budget.start
    method = "next-symbol distributions of all contexts"
    return Extraction("ngram", model, evidence, known, method, budget.spent, seconds, stopped, counterexample)


def _refuse(weights: Weights[SequenceArchitecture]) -> None:
    net = weights.architecture
    if net.reads != "tokens" or net.output.kind != "lm" or net.looks_ahead or net.pads < 1 or net.min_length:
        raise InputError(
            f"an n-gram model is extracted from a network that predicts the next symbol after every prefix, BOS first; "
            f"this one has answers of kind {net.output.kind!r}"
        )
    if not {*net.inputs[1:]} <= {*net.output.symbols} <= {*net.inputs[1:], END}:
        raise InputError(f"the network must predict the symbols that it reads, and perhaps {END}")


def _observed(
    weights: Weights[SequenceArchitecture], longest: int, budget: SearchBudget, progress: Progress | None
) -> tuple[Laws, int, str | None]:
    """Return the distributions after all words to a length, that length, and why it is not the longest if it is not."""
    laws, complete = None, 0
    for length in dict.fromkeys((longest // 2, longest)):  # if it is interrupted, all short words are known
        try:
            laws, complete = _all_words(weights, length, budget, progress), length
        except (Exhausted, KeyboardInterrupt) as stop:
            reason = str(stop) or INTERRUPTED
            if laws is None:
                raise InputError(f"nothing was extracted: {reason}") from None
            return laws, complete, reason
    assert laws is not None
    return laws, complete, None


def _all_words(
    weights: Weights[SequenceArchitecture], longest: int, budget: SearchBudget, progress: Progress | None
) -> Laws:
    """Run all words of a length, and return the distributions after all their prefixes."""
    net = weights.architecture
    letters = len(net.inputs) - 1
    count = letters**longest
    numbers = np.arange(count)
    place = letters ** np.arange(longest - 1, -1, -1, dtype=np.int64)
    words = numbers[:, None] // place % max(letters, 1)
    logps = [np.zeros((letters**length, len(net.output.symbols))) for length in range(longest + 1)]
    done = 0
    for tokens in batches(net, [words + 1]):
        budget.spend(len(tokens))
        logits = batch_logits(weights, tokens)[:, net.pads - 1 :]
        logp = log_probabilities(net.output, logits)
        for length in range(longest + 1):
            prefixes = numbers[done : done + len(tokens)] // letters ** (longest - length)
            logps[length][prefixes] = logp[:, length]
        done += len(tokens)
        if progress:
            progress(done, count)
    column = np.array([net.output.symbols.index(symbol) for symbol in net.inputs[1:]], dtype=np.int64)
    share = [np.ones(1)]
    for length in range(longest):
        share.append((share[-1][:, None] * np.exp(logps[length][:, column])).reshape(-1))
    rows = [np.full((letters**length, longest), -1) for length in range(longest + 1)]
    for length, part in enumerate(rows):
        part[:, longest - length :] = words[:: letters ** (longest - length), :length]
    lengths = np.concatenate([np.full(len(part), length) for length, part in enumerate(rows)])
    return Laws(np.concatenate(rows), lengths, np.concatenate(share), np.exp(np.concatenate(logps)))


def _model(observed: Laws, order: int, net: SequenceArchitecture) -> NGramModel:
    """Return the model that lists all n-grams up to an order; every context has all symbols, so nothing backs off."""
    ngrams: dict[tuple[str, ...], tuple[float, float]] = {(BEGIN,): (LOG10_ZERO, 0.0)}
    for m in range(1, order + 1):
        contexts, _, laws = observed.model(m)
        for context, law in zip(contexts.tolist(), laws, strict=True):
            names = tuple(BEGIN if letter == -2 else net.inputs[letter + 1] for letter in context if letter != -1)
            if len(names) < m - 1:
                continue  # listed at a lower order
            for symbol, p in zip(net.output.symbols, law.tolist(), strict=True):
                ngrams[(*names, symbol)] = (float(np.log10(p)) if p > 0 else LOG10_ZERO, 0.0)
            if END not in net.output.symbols:
                ngrams[(*names, END)] = (LOG10_ZERO, 0.0)
    return NGramModel.from_ngrams(ngrams)


def _certified(weights: Weights[SequenceArchitecture], model: NGramModel, longest: int, seed: int) -> Evidence | None:
    """Return the certificate of the model where the network has its symbols and it holds; else None."""
    try:
        evidence = certify(weights, model, max_length=min(longest, 8), seed=seed, prove=True)
    except FolderError:
        return None
    return evidence if evidence.verdict == "holds" else None


def _measured(
    observed: Laws, longest: int, net: SequenceArchitecture, excess: float, tolerance: float, seed: int
) -> Evidence:
    """Return the evidence that a model loses at most the tolerance on all words up to a length."""
    method = Method.EXHAUSTIVE if longest == net.max_length else Method.SAMPLED
    domains = (Domain(CaseKind.WORDS, method, len(observed.words), 0, longest),)
    evidence = Evidence("holds", len(observed.words), domains, seed=seed, links=tested_links(domains))
    return evidence.adding(Quantity("excess (nats per symbol)", excess, tolerance, "<="))


def _beyond(weights: Weights[SequenceArchitecture], model: NGramModel, longest: int, seed: int) -> Iterator[Quantity]:
    """Yield the excess at later positions, on words that the network writes."""
    from vitrify.net.generate import generate

    net = weights.architecture
    if longest >= net.max_length:
        return
    written = generate(weights, [()] * SAMPLED, min(net.max_length, longest + LATER), seed=seed)
    excess = []
    for each in written:
        word = [symbol for symbol in each.symbols if symbol != END]
        logp = log_probabilities(net.output, weights(word))[longest + 1 :]
        if not len(logp):
            continue
        histories = [word[: longest + 1 + at] for at in range(len(logp))]
        other = model.next_log_probs(histories)[:, [model.predicted.index(symbol) for symbol in net.output.symbols]]
        p = np.exp(logp)
        excess.append(float(np.where(p > 0, p * (logp - other), 0.0).sum(axis=1).mean()))
    if excess:
        name = f"excess after more than {longest} symbols, on {len(excess)} words that the network writes"
        yield replace(Quantity(name, float(np.mean(excess))), interval=mean_interval(excess))


def _farthest(observed: Laws, laws: Floats, far: Floats, net: SequenceArchitecture) -> JsonObject:
    """Return the word after which a probability is farthest off, with both."""
    row = int(far.argmax())
    symbol = int(np.abs(observed.laws[row] - laws[row]).argmax())
    word = [net.inputs[letter + 1] for letter in observed.words[row].tolist() if letter >= 0]
    named = {"word": word, "next": net.output.symbols[symbol]}
    return named | {"expected": float(laws[row, symbol]), "actual": float(observed.laws[row, symbol])}
