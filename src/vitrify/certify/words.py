"""Examinations of nets that read words: every question of a domain, each answer compared with the oracle's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.evidence import Evidence, Progress, upper_failure_rate
from vitrify.certify.oracles import AsksSome, Insider, KnowsNumbers, Language, Oracle, oracle_for
from vitrify.certify.rounding import decided
from vitrify.errors import InputError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.run import batch_logits
from vitrify.net.trace import Trace
from vitrify.net.weights import Weights

Ids = NDArray[np.int64]

FLOATS = 1 << 23  # activations of one batch
WORK = 4e10  # multiplications that an examination of its own choosing may cost: some seconds on one core
FEW_WORDS = 1 << 13  # where nobody says how far to go, all words of a length are tried up to this many
MOST_WORDS = 1 << 22  # an exhaustive run over more words than this is refused
ROUNDING = 1e-9  # what rounding may add to the proved error of a space
PROVED_WORDS = 4  # random words along which the effect of lower precision is bounded
SAMPLES = 64  # random words, of full length so that every position is asked about, or random sentences


@dataclass(frozen=True)
class Domain:
    """Words [word, length] that are asked about together, at every prefix.

    `method` says what a right answer to all of them means: exhaustive (all words up to a length) or sampled.
    """

    name: str
    words: tuple[Ids, ...]
    method: Literal["exhaustive", "sampled"]
    cases: int


@dataclass(frozen=True, eq=False)
class WordExamination:
    """The questions for one network and spec, prepared once and put to any number of variants of the net."""

    net: SequenceArchitecture
    spec: object
    max_length: int | None = None
    seed: int = 0
    work: float = WORK
    samples: int | None = None
    oracle: Oracle = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "oracle", oracle_for(self.spec, self.net))

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """All short words; words that exercise each listed part; random long words."""
        rng = np.random.default_rng(self.seed)
        positions = max(2_000, int(self.work / self.net.cost))
        short = self.short(positions // 2)
        listed = self.oracle.questions(rng, max(200, positions // 8))
        random = self._random(rng, positions // 4)
        name = f"every prefix of {len(listed)} words that exercise the listed parts"
        parts = Domain(name, _by_length(listed), "sampled", sum(len(word) + 1 for word in listed))
        return tuple(domain for domain in (short, parts, random) if domain.words)

    def short(self, most: int) -> Domain:
        """All words up to the length that was asked for, or else up to one at which there are at most so many."""
        language = self.oracle.language
        if language is None:
            return _all_words(self.net, self.max_length, most)
        return _all_beginnings(self.net, language, self.max_length, most)

    def _random(self, rng: np.random.Generator, positions: int) -> Domain:
        """Random sentences where there is a language; else random words of full length, as many as are affordable."""
        net, language = self.net, self.oracle.language
        if language is not None:
            sentences = [language.draw(rng) for _ in range(self.samples or SAMPLES)]
            name = f"every prefix of {len(sentences)} random sentences"
            return Domain(name, _by_length(sentences), "sampled", sum(len(word) + 1 for word in sentences))
        return _random_words(net, rng, positions, self.samples)

    def run(self, weights: Weights[Any], progress: Progress | None = None, *, hardest_first: bool = False) -> Evidence:
        """Examine a net; stops at the first wrong answer, which becomes the witness.

        Short words come first and give short witnesses; `hardest_first` finds mistakes faster.
        """
        start = time.perf_counter()
        total = sum(domain.cases for domain in self.domains)
        worst, done = 0.0, 0
        witness = too_soft(weights)
        order = self.domains[::-1] if hardest_first else self.domains
        for domain in order:
            if witness is None:
                before = done
                for share, error, witness in self._ask(weights, domain):
                    worst, done = max(worst, error), before + round(share * domain.cases)
                    if progress:
                        progress(done, total)
                    if witness:
                        break
        measured: dict[str, object] = {"largest error": worst}
        if witness is None:
            measured["largest distance of a named space from a legal value"], witness = self._spaces(weights)
        if witness is None and isinstance(self.oracle, Insider):
            inside, witness = self.oracle.inside(weights, self.seed)
            measured |= inside
        if witness is None:
            random = sum(len(words) for words in self.domains[-1].words)
            measured["rate of random words with an error (95 % upper bound)"] = upper_failure_rate(0, random)
        return Evidence(
            verdict="holds" if witness is None else "fails",
            method="+".join(dict.fromkeys(domain.method for domain in self.domains)),
            domain="; ".join(domain.name for domain in self.domains),
            cases=done,
            witness=witness,
            declared={"largest error": self.oracle.tolerance()},
            measured=measured,
            seed=self.seed,
            seconds=time.perf_counter() - start,
            of=(weights, self.spec, done),
        )

    def _ask(self, weights: Weights[Any], domain: Domain) -> Iterator[tuple[float, float, dict[str, object] | None]]:
        """Batch by batch: the share of the domain that is done, the largest error, the shortest wrong answer if any."""
        every = sum(len(words) for words in domain.words)
        asked = 0
        for tokens in self._batches(domain):
            words = tokens[:, self.net.pads :]
            logits = batch_logits(weights, tokens)[:, self.net.pads - 1 :]
            errors = self.oracle.errors(words, logits)
            asked += len(words)
            wrong = np.argwhere(errors > self.oracle.tolerance()).tolist()
            witness = None
            if wrong:
                row, prefix = min(wrong, key=lambda place: place[1])
                end = words.shape[1] if self.net.looks_ahead else prefix  # what comes after may matter
                witness = self.oracle.witness(words[row, :end], logits[row, : end + 1])
            yield asked / every, float(errors.max()), witness

    def _batches(self, domain: Domain, floats: int = FLOATS) -> Iterator[Ids]:
        for words in domain.words:
            pads = np.zeros((len(words), self.net.pads), dtype=np.int64)
            tokens = np.concatenate([pads, words], axis=1)
            step = max(1, floats // self.net.activations(tokens.shape[1]))
            for at in range(0, len(tokens), step):
                yield tokens[at : at + step]

    def decided(self, weights: Weights[Any], precision: str) -> Iterator[NDArray[np.bool_]]:
        """Where, on some of the random words, a run in lower precision must give the same answer [word, prefix].

        Only where there is a right one: [question].
        """
        longest = self.domains[-1].words[-1]
        for tokens in self._batches(Domain("", (longest[:PROVED_WORDS],), "sampled", 0)):
            same = decided(weights, tokens, precision)[:, self.net.pads - 1 :]
            yield same[self.oracle.asked(tokens[:, self.net.pads :])] if isinstance(self.oracle, AsksSome) else same

    @cached_property
    def _exercise(self) -> Domain:
        """The words on which named spaces are looked at: random ones, of any language if the oracle knows all."""
        if not isinstance(self.oracle, KnowsNumbers):
            sampled = [domain.words for domain in self.domains if domain.method == "sampled"]
            return replace(self.domains[-1], words=tuple(chain(*sampled)))
        strange = _random_words(self.net, np.random.default_rng(self.seed), SAMPLES * self.net.max_length)
        return replace(strange, words=(*self.domains[-1].words, *strange.words))

    def _spaces(self, weights: Weights[Any]) -> tuple[float, dict[str, object] | None]:
        """The largest distance of a named space from a legal value, or from the right one where the oracle knows it.

        One beyond the space's proved error is a failure.
        """
        spread = 0.0
        knows = isinstance(self.oracle, KnowsNumbers)
        checked = [label for label in weights.labels.spaces if label.born > 0 and (label.kind.tag != "reals" or knows)]
        floats = FLOATS // max(1, len(self.net.units_per_layer))  # the activations of all layers are kept
        for tokens in self._batches(self._exercise, floats) if checked else ():
            seen: dict[str, NDArray[np.float64]] = {}
            self.net.forward(weights.prepared, tokens, record=seen.__setitem__)
            trace = Trace(weights, (), seen)
            for label in checked:
                vectors = trace.residual(label.born)[:, self.net.pads - 1 :, list(label.dims)]
                far = None
                if isinstance(self.oracle, KnowsNumbers):
                    far = self.oracle.strayed(tokens[:, self.net.pads :], label, vectors)
                far = float(label.kind.deviation(vectors).max()) if far is None else far
                spread = max(spread, far)
                if not far <= label.error + ROUNDING:
                    return spread, {"space": label.name, "expected": f"legal within {label.error:.3g}", "found": far}
        return spread, None


def too_soft(weights: Weights[Any]) -> dict[str, object] | None:
    """A head whose temperature is below what its gap demands, if there is one."""
    for head in weights.labels.heads:
        beta = float(weights.arrays[f"blocks.{head.block}.attn.beta"][head.place])
        if head.beta_min is not None and beta < head.beta_min:
            return {"head": head.name, "expected": f"beta of at least {head.beta_min:.6g}", "found": beta}
    return None


def _all_words(net: SequenceArchitecture, max_length: int | None, positions: int) -> Domain:
    """All words up to a length; each is run to the end, and every prefix counts once."""
    letters = len(net.inputs) - 1
    longest = max_length
    if longest is None:
        longest = 0
        most = min(FEW_WORDS, positions)
        while longest < min(net.max_length, most) and 0 < letters ** (longest + 1) <= most:
            longest += 1
    if longest > net.max_length:
        raise InputError(f"words of length {longest} are longer than the network reads: at most {net.max_length}")
    if max_length is not None and longest < net.min_length:
        raise InputError(f"words of length {longest} are shorter than the network reads: at least {net.min_length}")
    if letters**longest > MOST_WORDS:
        raise InputError(
            f"there are {letters}^{longest} words of length {longest}, too many to try: ask for a smaller --max-length"
        )
    least = net.min_length
    lengths = range(least, longest + 1) if net.looks_ahead else [longest]
    words = tuple(_words_of_length(letters, n) for n in lengths)
    cases = sum(letters**n for n in range(least, longest + 1))
    return Domain(f"all {cases} words of length {least} to {longest}", words, "exhaustive", cases)


def _all_beginnings(net: SequenceArchitecture, language: Language, max_length: int | None, positions: int) -> Domain:
    """All beginnings of sentences up to a length; those that no other one continues are run."""
    if max_length is not None and max_length > net.max_length:
        raise InputError(f"words of length {max_length} are longer than the network reads: at most {net.max_length}")
    most = min(FEW_WORDS, positions) if max_length is None else MOST_WORDS
    found: list[list[int]] = []
    for word in language.beginnings():
        if max_length is not None and len(word) > max_length:
            break
        found.append(word)
        if len(found) > most and max_length is not None:
            raise InputError(f"there are more than {most} words to length {max_length}: ask for a smaller --max-length")
        if len(found) > most and len(word) > 1:  # only whole lengths count
            found = [shorter for shorter in found if len(shorter) < len(word)]
            break
    continued = {tuple(word[:-1]) for word in found}
    words = _by_length([word for word in found if tuple(word) not in continued])
    longest = max(map(len, found), default=0)
    return Domain(f"all {len(found)} beginnings of sentences to length {longest}", words, "exhaustive", len(found))


def _random_words(
    net: SequenceArchitecture, rng: np.random.Generator, positions: int, samples: int | None = None
) -> Domain:
    """Random words of full length, as many as asked for or as are affordable."""
    length = min(net.max_length, max(1, positions)) if len(net.inputs) > 1 else 0
    count = samples or min(SAMPLES, max(4, positions // max(length, 1)))
    words = rng.integers(1, max(len(net.inputs), 2), size=(count, length))
    name = f"every prefix of {count} random words of length {length}"
    return Domain(name, (words,), "sampled", count * (length + 1))


def _words_of_length(letters: int, length: int) -> Ids:
    """All words of one length, in lexicographic order: the digits of 0, 1, 2 … in base `letters`."""
    if length == 0:
        return np.zeros((1, 0), dtype=np.int64)
    place = np.array([letters**i for i in reversed(range(length))], dtype=np.int64)
    return np.arange(letters**length)[:, None] // place % letters + 1


def _by_length(words: list[list[int]]) -> tuple[Ids, ...]:
    grouped: dict[int, list[list[int]]] = {}
    for word in words:
        grouped.setdefault(len(word), []).append(word)
    return tuple(np.array(grouped[n], dtype=np.int64).reshape(len(grouped[n]), n) for n in sorted(grouped))
