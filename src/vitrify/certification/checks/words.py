"""Checks of nets that read words: every answer on a domain of words is compared with the oracle's."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.checks.coverage import Coverage, covering_words
from vitrify.certification.evidence import (
    LARGEST_ERROR,
    CaseKind,
    Domain,
    Evidence,
    Method,
    Progress,
    Quantity,
    Verdict,
    tested_links,
)
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.certification.oracles.meanings import Beginnings
from vitrify.certification.oracles.right import Oracle
from vitrify.certification.precision.rounding import decided
from vitrify.errors import InputError
from vitrify.intervals import upper_failure_rate
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.trace import Trace
from vitrify.net.weights import Weights, has_positions
from vitrify.spec.kinds import Spec

if TYPE_CHECKING:
    from vitrify.certification.checks.points import PointCheck

MAX_ACTIVATIONS = 1 << 23  # activations of one batch
WORK = 4e10  # multiplications that a check may cost by default: some seconds on one core
DEFAULT_MAX_WORDS = 1 << 13  # where no max_length is given, all words of a length are tried up to this many
MAX_WORDS = 1 << 22  # an exhaustive run over more words than this is refused
SPACE_TOLERANCE = 1e-9  # rounding beyond the proved error of a space
BOUNDED_WORDS = 4  # random words along which the effect of lower precision is bounded
COVERED = "steps of the spec (a state and a letter) that tested words take"
SMALLEST = 1e-6  # error that may be allowed of right answers that are all the same, relative to them
MAX_STEPS = 1 << 13  # length of the words on which a network without a maximum length is checked
SAMPLES = 64  # random words, of full length so that every position is checked, or random sentences


@dataclass(frozen=True)
class WordBatch:
    """Words [word, length] that are run together and judged at every prefix; `cases` is the number of answers.

    `domain` describes them: all words up to a length, some that exercise listed parts, or random ones.
    """

    domain: Domain
    words: tuple[Ints, ...]
    cases: int


@dataclass(frozen=True, eq=False)
class WordCheck:
    """The check of one network against its spec, prepared once and run on any number of variants of the net."""

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
    def batches(self) -> tuple[WordBatch, ...]:
        """Return all short words, words that exercise each listed part of the spec, and random long words."""
        rng = np.random.default_rng(self.seed)
        positions = max(2_000, int(self.work / self.net.cost))
        short = self.short(positions // 2)
        listed = self.oracle.cases(rng, max(200, positions // 8))
        random = self._random(rng, positions // 4)
        parts = _sampled(CaseKind.LISTED_WORDS, [*listed, *map(list, self.coverage.words if self.coverage else ())])
        return tuple(batch for batch in (short, parts, random) if batch.words)

    @cached_property
    def coverage(self) -> Coverage | None:
        """Words that take every step of the spec, as far as the budget allows; None if the spec has no states."""
        meaning = self.spec.meaning(self.net.output.kind, self.net.inputs[1:]) if isinstance(self.spec, Spec) else None
        if meaning is None or meaning.states is None or self.net.looks_ahead:
            return None
        count = max(200, int(self.work / self.net.cost) // (8 * max(self.net.max_length, 1)))
        rng = np.random.default_rng(self.seed)
        return covering_words(meaning.states, self.net.inputs[1:], self.net.max_length, count, rng)

    def short(self, most: int) -> WordBatch:
        """Return all words up to `max_length`; where that is None, up to a length at which there are at most `most`."""
        language = self.oracle.language
        if language is None:
            return _all_words(self.net, self.max_length, most)
        return _all_beginnings(self.net, language, self.max_length, most)

    def _random(self, rng: np.random.Generator, positions: int) -> WordBatch:
        """Draw random sentences where there is a language; else random words of full length, within the budget."""
        language = self.oracle.language
        if language is None:
            return _random_words(self.net, rng, positions, self.samples)
        return _sampled(CaseKind.RANDOM_SENTENCES, [language.draw(rng) for _ in range(self.samples or SAMPLES)])

    def run(
        self, weights: Weights[Architecture], progress: Progress | None = None, *, hardest_first: bool = False
    ) -> Evidence:
        """Check a net; stops at the first wrong answer, which becomes the witness (the counterexample).

        Short words come first and give short counterexamples; `hardest_first` finds mistakes faster.
        """
        assert has_positions(weights)
        start = time.perf_counter()
        total = sum(batch.cases for batch in self.batches)
        worst, done = 0.0, 0
        witness = too_soft(weights)
        order = self.batches[::-1] if hardest_first else self.batches
        for batch in order:
            if witness is None:
                before = done
                for share, error, witness in self._wrong_answers(weights, batch):
                    worst, done = max(worst, error), before + round(share * batch.cases)
                    if progress:
                        progress(done, total)
                    if witness:
                        break
        if witness is None and self.net.output.kind in ("lm", "values"):
            witness = self._meaningless_tolerance()
        quantities = [Quantity(LARGEST_ERROR, worst, self.oracle.tolerance(), "<=")]
        if witness is None:
            distance, witness = self._spaces(weights)
            quantities.append(Quantity("largest distance of a named space from a legal value", distance))
        if witness is None:
            inside, witness = self.oracle.check_inside(weights, self.seed)
            quantities += [Quantity(name, value) for name, value in inside.items()]
        if self.coverage is not None:
            taken, every = self.coverage.taken, self.coverage.total
            quantities.append(Quantity(COVERED, taken, every, None if every is None else "<="))
        if witness is None:
            random = sum(len(words) for words in self.batches[-1].words)
            rate = upper_failure_rate(0, random)
            quantities.append(Quantity("rate of random words with an error (95 % upper bound)", rate))
        return tested(self, weights, done, quantities, witness, time.perf_counter() - start)

    def _meaningless_tolerance(self) -> dict[str, object] | None:
        """Return the witness that the allowed error lets a constant answer pass, if it does."""
        if self.oracle.tolerance() <= self.oracle.TOLERANCE:
            return None
        some = [self.oracle.known(words[:SAMPLES]) for batch in self.batches for words in batch.words]
        rows = [np.where(self.oracle.where_known(known)[..., None], known, np.nan) for known in some]
        answers = np.concatenate([row.reshape(-1, row.shape[-1]) for row in rows])
        return meaningless_tolerance(answers, self.oracle.tolerance())

    def _wrong_answers(
        self, weights: Weights[SequenceArchitecture], batch: WordBatch
    ) -> Iterator[tuple[float, float, dict[str, object] | None]]:
        """Yield the share of the words that is done, the largest error, and the shortest wrong answer if any."""
        every = sum(len(words) for words in batch.words)
        done = 0
        for tokens in batches(self.net, batch.words):
            words = tokens[:, self.net.pads :]
            logits = batch_logits(weights, tokens)[:, self.net.pads - 1 :]
            errors = self.oracle.errors(words, logits)
            done += len(words)
            wrong = np.argwhere(errors > self.oracle.tolerance()).tolist()
            witness = None
            if wrong:
                row, prefix = min(wrong, key=lambda place: place[1])
                end = words.shape[1] if self.net.looks_ahead else prefix  # what comes after may matter
                witness = self.oracle.witness(words[row, :end], logits[row, : end + 1])
            yield done / every, float(errors.max()), witness

    def decided(self, weights: Weights[SequenceArchitecture], precision: str) -> Iterator[Bools]:
        """Yield which answers to some random words a run in lower precision must give, too: [answer]."""
        longest = self.batches[-1].words[-1]
        for tokens in batches(self.net, (longest[:BOUNDED_WORDS],)):
            same = decided(weights, tokens, precision)[:, self.net.pads - 1 :]
            yield same[self.oracle.has_answer(tokens[:, self.net.pads :])]

    @cached_property
    def _exercise(self) -> tuple[Ints, ...]:
        """Return the words on which named spaces are checked: random ones, of any language if the oracle knows all.

        Of words that together cost more than a quarter of the budget, it is every second, third … of each length.
        """
        if not self.oracle.KNOWS_SPACES:
            every = tuple(chain(*(batch.words for batch in self.batches if not batch.domain.covers_lengths)))
            step = 1 + int(sum(words.size for words in every) / max(2_000, self.work / self.net.cost / 4))
            return tuple(words[::step] for words in every)
        strange = _random_words(self.net, np.random.default_rng(self.seed), SAMPLES * self.net.max_length)
        return (*self.batches[-1].words, *strange.words)

    def _spaces(self, weights: Weights[SequenceArchitecture]) -> tuple[float, dict[str, object] | None]:
        """Return the largest distance of a named space from a legal value (or from the right one, if known).

        A distance beyond the proved error of the space is a failure, which is returned, too.
        """
        spread = 0.0
        reals = self.oracle.KNOWS_SPACES
        checked = [label for label in weights.labels.spaces if label.born > 0 and (label.kind.tag != "reals" or reals)]
        floats = MAX_ACTIVATIONS // max(1, len(self.net.units_per_layer))  # the activations of all layers are in memory
        for tokens in batches(self.net, self._exercise, floats) if checked else ():
            seen: dict[str, Floats] = {}
            self.net.forward(weights.prepared, tokens, record=seen.__setitem__)
            trace = Trace(weights, (), seen)
            for label in checked:
                vectors = trace.residual(label.born)[:, self.net.pads - 1 :, list(label.dims)]
                far = self.oracle.space_error(tokens[:, self.net.pads :], label, vectors)
                far = float(label.kind.deviation(vectors).max()) if far is None else far
                spread = max(spread, far)
                if not far <= label.error + SPACE_TOLERANCE:
                    return spread, {"space": label.name, "expected": f"legal within {label.error:.3g}", "actual": far}
        return spread, None


def tested(
    check: WordCheck | PointCheck,
    weights: Weights[Architecture],
    cases: int,
    quantities: Iterable[Quantity],
    witness: dict[str, object] | None,
    seconds: float,
) -> Evidence:
    """Return the evidence of a check that was run on a net."""
    domains = tuple(batch.domain for batch in check.batches)
    verdict: Verdict = "holds" if witness is None else "fails"
    evidence = Evidence(verdict, cases, domains, tuple(quantities), (), witness, check.seed, seconds)
    evidence = replace(evidence, links=tested_links(domains))
    return replace(evidence, checked=(weights, check.spec, evidence))


def meaningless_tolerance(right: Floats, tolerance: float) -> dict[str, object] | None:
    """Return the witness that an allowed error lets one answer pass for all cases, so that it tells nothing.

    `right` are the right answers [case, ...], NaN where there is none. The middle of the range of each number is the
    best constant answer, and errs by half of that range. The allowed error comes from the folder of the network.
    """
    rows = right.reshape(len(right), -1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if not len(rows):
        return None
    least = max(float(np.ptp(rows, axis=0).max()) / 2, SMALLEST * (1 + float(np.abs(rows).max())))
    if tolerance < least:
        return None
    return {"expected": f"an allowed error below {least:.3g}, at which a constant answer is right", "actual": tolerance}


def too_soft(weights: Weights[Architecture]) -> dict[str, object] | None:
    """Return a head whose inverse temperature is below what its gap demands, or None."""
    for head in weights.labels.heads:
        beta = float(weights.arrays[f"blocks.{head.block}.attn.beta"][head.index])
        if head.beta_min is not None and beta < head.beta_min:
            return {"head": head.name, "expected": f"beta of at least {head.beta_min:.6g}", "actual": beta}
    return None


def _all_words(net: SequenceArchitecture, max_length: int | None, positions: int) -> WordBatch:
    """Return all words up to a length; each is run to the end, and every prefix counts once."""
    letters = len(net.inputs) - 1
    longest = max_length
    if longest is None:
        longest = 0
        most = min(DEFAULT_MAX_WORDS, positions)
        while longest < min(net.max_length, most) and 0 < letters ** (longest + 1) <= most:
            longest += 1
    if longest > net.max_length:
        raise InputError(f"words of length {longest} are longer than the network reads: at most {net.max_length}")
    if max_length is not None and longest < net.min_length:
        raise InputError(f"words of length {longest} are shorter than the network reads: at least {net.min_length}")
    if letters**longest > MAX_WORDS:
        raise InputError(
            f"there are {letters}^{longest} words of length {longest}, too many to try: choose a smaller --max-length"
        )
    least = net.min_length
    lengths = range(least, longest + 1) if net.looks_ahead else [longest]
    words = tuple(_words_of_length(letters, n) for n in lengths)
    cases = sum(letters**n for n in range(least, longest + 1))
    is_complete = longest == net.longest < MAX_STEPS or not letters
    domain = Domain(CaseKind.WORDS, _method(is_complete), cases, least, longest)
    return WordBatch(domain, words, cases)


def _all_beginnings(
    net: SequenceArchitecture, language: Beginnings, max_length: int | None, positions: int
) -> WordBatch:
    """Return all prefixes of sentences up to a length; those that no other one continues are run."""
    if max_length is not None and max_length > net.max_length:
        raise InputError(f"words of length {max_length} are longer than the network reads: at most {net.max_length}")
    most = min(DEFAULT_MAX_WORDS, positions) if max_length is None else MAX_WORDS
    prefixes: list[list[int]] = []
    is_cut = False
    for word in language.beginnings():
        if max_length is not None and len(word) > max_length:
            is_cut = True
            break
        prefixes.append(word)
        if len(prefixes) > most and max_length is not None:
            raise InputError(f"there are more than {most} words to length {max_length}: choose a smaller --max-length")
        if len(prefixes) > most and len(word) > 1:  # only complete lengths count
            prefixes = [shorter for shorter in prefixes if len(shorter) < len(word)]
            is_cut = True
            break
    continued = {tuple(word[:-1]) for word in prefixes}
    words = by_length([word for word in prefixes if tuple(word) not in continued])
    longest = max(map(len, prefixes), default=0)
    domain = Domain(CaseKind.PREFIXES, _method(not is_cut and longest < MAX_STEPS), len(prefixes), 0, longest)
    return WordBatch(domain, words, len(prefixes))


def _method(is_complete: bool) -> Method:
    return Method.EXHAUSTIVE if is_complete else Method.SAMPLED


def _random_words(
    net: SequenceArchitecture, rng: np.random.Generator, positions: int, samples: int | None = None
) -> WordBatch:
    """Draw random words of full length: `samples`, or as many as the budget of positions allows."""
    length = min(net.max_length, max(1, positions)) if len(net.inputs) > 1 else 0
    count = samples or min(SAMPLES, max(4, positions // max(length, 1)))
    words = rng.integers(1, max(len(net.inputs), 2), size=(count, length))
    return WordBatch(
        Domain(CaseKind.RANDOM_WORDS, Method.SAMPLED, count, length, length), (words,), count * (length + 1)
    )


def _sampled(kind: CaseKind, words: list[list[int]]) -> WordBatch:
    """Return words of different lengths, each judged at every prefix."""
    lengths = [len(word) for word in words] or [0]
    domain = Domain(kind, Method.SAMPLED, len(words), min(lengths), max(lengths))
    return WordBatch(domain, by_length(words), sum(len(word) + 1 for word in words))


def _words_of_length(letters: int, length: int) -> Ints:
    """Return all words of one length, in lexicographic order: the digits of 0, 1, 2 … in base `letters`."""
    if length == 0:
        return np.zeros((1, 0), dtype=np.int64)
    place = np.array([letters**i for i in reversed(range(length))], dtype=np.int64)
    return np.arange(letters**length)[:, None] // place % letters + 1


def batches(net: SequenceArchitecture, every: Iterable[Ints], floats: int = MAX_ACTIVATIONS) -> Iterator[Ints]:
    """Yield tokens [word, position] with the pads in front, as many words at a time as memory allows."""
    for words in every:
        tokens = with_pads(net, words)
        step = max(1, floats // net.activations(tokens.shape[1]))
        for at in range(0, len(tokens), step):
            yield tokens[at : at + step]


def by_length(words: Iterable[Sequence[int]]) -> tuple[Ints, ...]:
    """Return the words of each length as an array [word, position], short ones first."""
    grouped: dict[int, list[Sequence[int]]] = {}
    for word in words:
        grouped.setdefault(len(word), []).append(word)
    return tuple(np.array(grouped[n], dtype=np.int64).reshape(len(grouped[n]), n) for n in sorted(grouped))
