r"""The arithmetic report: in which formats a net keeps its answers, provably and as far as runs show.

*Provably*: the margins are proved once more for a run in which every number is of the format, stored weights included
(`formats.py`), for all words up to the longest length at which that succeeds. *Measured*: the one forward pass in that
format (`narrow.py`), compared with float64 on some words, to the first length at which an answer changes. What is
proved can't be longer than what is measured. Of a language model the likeliest next symbol counts as the answer; of
real numbers, that they are within the error that the output allows. The answer to the empty word is not compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from vitrify.arrays import Bools, Floats, Ints, Matrix
from vitrify.certification.margins.net import margins
from vitrify.certification.oracles.right import Oracle
from vitrify.certification.precision.formats import FORMATS, Format
from vitrify.certification.precision.narrow import narrowed
from vitrify.encoding import JsonObject
from vitrify.net.architecture import Output, SequenceArchitecture
from vitrify.net.inference import batch_logits
from vitrify.net.sparse import is_sparse
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

HasAnswer = Callable[[Ints], Bools]

RUN_WORDS = 4  # words that are run in every format
FIRST_LENGTH = 8  # letters of the first run; each next run is twice as long
QUERY_CHUNK = 256  # queries of attention that are computed at a time
MAX_ROUNDED_PRODUCTS = 1e7  # of one run in which every operation is rounded
MAX_NATIVE_PRODUCTS = 1e10  # of one run in float32, which NumPy has


@dataclass(frozen=True)
class FormatReport:
    """Range of word lengths in which a format gives the answers of float64.

    Proved for words up to the length `proved` (None: not even one letter), with logits within `error`; `reason` says
    why no further. Runs agreed up to the length `kept` (None: not run); `broken` says that the next length differed.
    """

    name: str
    proved: int | None
    error: float | None
    reason: str | None
    kept: int | None
    broken: bool


@dataclass(frozen=True)
class ArithmeticReport:
    """The reports of all formats, the smallest first; `max_length` is the declared one."""

    max_length: int
    formats: tuple[FormatReport, ...]

    @property
    def smallest(self) -> str | None:
        """The smallest format that provably keeps the answer to every word of the declared length."""
        return next((report.name for report in self.formats if report.proved == self.max_length), None)

    def to_json(self) -> JsonObject:
        """Plain JSON data."""
        formats = [asdict(report) for report in self.formats]
        return {"max_length": self.max_length, "smallest": self.smallest, "formats": formats}


def arithmetic_report(
    weights: Weights[SequenceArchitecture],
    words: Sequence[Ints],
    oracle: Oracle | None = None,
    unproved: str | None = None,
) -> ArithmeticReport:
    """Report in which formats a net keeps its answers, and up to which length.

    `words` [word, length] are those that are run; `oracle` knows after which prefixes there is a right answer, by
    default after all; `unproved` is why margins can't be proved even without rounding, if that is known.
    """
    declared = weights.architecture.max_length
    if oracle is not None and oracle.longest is not None:
        declared = min(oracle.longest, declared)
    language = oracle is not None and oracle.language is not None
    has_answer = None if oracle is None else oracle.has_answer
    reports = []
    for kind in FORMATS.values():
        proved, error, reason = None, None, unproved
        if unproved is None:
            proved, error, reason = proved_length(weights, kind, declared, language=language)
        agreed, broken = agreed_length(weights, kind, words, has_answer)
        reports.append(FormatReport(kind.name, proved, error, reason, agreed, broken))
    return ArithmeticReport(declared, tuple(reports))


def proved_length(
    weights: Weights[SequenceArchitecture], kind: Format, longest: int, *, language: bool = False
) -> tuple[int | None, float | None, str | None]:
    """Return the length up to which a format provably keeps all answers, the error of the logits, why no further."""
    shortest = max(1, weights.architecture.min_length)
    low, high, error, reason = shortest - 1, longest + 1, None, None
    middle = longest
    while low < middle < high:
        proof = margins(weights, language=language, longest=middle, arithmetic=kind)
        if proof.holds:
            low, error = middle, proof.error
        else:
            high, reason = middle, proof.reason
        middle = (low + high) // 2
    return (low if low >= shortest else None), error, reason


def agreed_length(
    weights: Weights[SequenceArchitecture], kind: Format, words: Sequence[Ints], has_answer: HasAnswer | None = None
) -> tuple[int | None, bool]:
    """Return the length up to which runs in a format agree with float64, and whether the next length differs."""
    net = weights.architecture
    if not isinstance(net, Transformer):
        return None, False
    narrow = weights if kind.bits == 64 else weights.map(_float32) if kind.bits == 32 else narrowed(weights, kind)
    chosen = sorted((word for part in words for word in part), key=len)[-RUN_WORDS:]

    def breaks(length: int) -> bool:
        return any(_answer_changes(weights, narrow, kind, word[:length], has_answer) for word in chosen)

    agreed: int | None = None
    for length in _lengths(net, len(chosen[-1]) if chosen else 0):
        if _products(net, length) > (MAX_ROUNDED_PRODUCTS if kind.bits < 32 else MAX_NATIVE_PRODUCTS):
            break
        if breaks(length):
            # where later tokens overflow they can spoil the answer to a prefix, so each length is run by itself
            return bisect_left(range(length), True, lo=(agreed or 0) + 1, key=breaks) - 1, True
        agreed = length
    return agreed, False


def _float32(array: Matrix) -> Matrix:
    return array.astype(np.float32) if is_sparse(array) else np.asarray(array, dtype=np.float32)


def _lengths(net: Transformer, longest: int) -> list[int]:
    """Return the lengths of the runs, each about twice the one before; closer if the net attends ahead."""
    lengths, length = [], max(net.min_length, 1 if net.looks_ahead else FIRST_LENGTH)
    while length < longest:
        lengths.append(length)
        length = length + max(1, length // 8) if net.looks_ahead else 2 * length
    return [*lengths, longest] if longest >= max(1, net.min_length) else []


def _products(net: Transformer, length: int) -> float:
    """Return roughly the number of products of one run over a word."""
    here = sum(len(block.heads) * (block.d_head + block.d_value) * length for block in net.blocks)
    return float(length * (here + sum(int(np.prod(shape)) for shape in net.shapes().values() if len(shape) > 1)))


def _answer_changes(
    weights: Weights[SequenceArchitecture],
    narrow: Weights[SequenceArchitecture],
    kind: Format,
    word: Ints,
    has_answer: HasAnswer | None,
) -> bool:
    """Return whether a net gives another answer than in float64 after some prefix of a word."""
    net = weights.architecture
    tokens = np.concatenate([np.zeros(net.pads, dtype=np.int64), word])[None]
    wide = batch_logits(weights, tokens)[0, net.pads - 1 :]
    with np.errstate(all="ignore"):
        if kind.bits >= 32:
            logits = batch_logits(narrow, tokens)
        else:
            logits = net.forward(narrow.arrays, tokens, query_chunk=QUERY_CHUNK)
    changed = _differs(net.output, wide, np.asarray(logits, dtype=np.float64)[0, net.pads - 1 :])
    asked = True if has_answer is None else has_answer(word[None])[0]
    return bool((changed & asked)[1:].any())


def _differs(output: Output, wide: Floats, narrow: Floats) -> Bools:
    """Return after which prefixes two runs give different answers."""
    if output.kind == "values":
        return np.asarray(~(np.abs(narrow - wide) <= output.error).all(axis=-1))
    if output.kind == "next":
        return np.asarray(((narrow > 0) != (wide > 0)).any(axis=-1) | np.isnan(narrow).any(axis=-1))
    return np.asarray((narrow.argmax(axis=-1) != wide.argmax(axis=-1)) | np.isnan(narrow).any(axis=-1))
