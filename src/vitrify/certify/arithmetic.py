r"""The arithmetic report: in which formats a net keeps its answers, provably and as far as runs show.

*Provably*: the margins are proved once more for a run in which every number is of the format, stored weights included
(`formats.py`), for all words up to the longest length at which that succeeds. *Measured*: the one forward pass in that
format (`narrow.py`), compared with float64 on some words, to the first length at which an answer changes. What is
proved can't be longer than what is measured. Of a language model the likeliest next symbol counts as the answer; of
real numbers, that they are within the error that the output allows. The answer to the empty word is not looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.formats import FORMATS, Format
from vitrify.certify.margins import margins
from vitrify.certify.narrow import narrowed
from vitrify.net.architecture import Output
from vitrify.net.run import batch_logits
from vitrify.net.sparse import is_sparse
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

Ids = NDArray[np.int64]
Asked = Callable[[Ids], NDArray[np.bool_]]

WORDS = 4  # that are run in every format
FIRST = 8  # letters of the first run; the next ones have twice as many each
CHUNK = 256  # queries at a time
STEPS = 1e7  # products of one run whose every operation is rounded
NATIVE = 1e10  # products of one run in float32, which NumPy has


@dataclass(frozen=True)
class FormatReport:
    """What a format keeps: to the length `proved` (None: not even of one letter), with logits within `error`.

    `reason` says why it is not proved further. Runs gave the same answers to the length `kept` (None: not tried), and
    another one behind that if `broken`.
    """

    name: str
    proved: int | None
    error: float | None
    reason: str | None
    kept: int | None
    broken: bool


@dataclass(frozen=True)
class ArithmeticReport:
    """What every format keeps, the smallest first; `max_length` is the declared one."""

    max_length: int
    formats: tuple[FormatReport, ...]
    seconds: float = 0.0

    @property
    def smallest(self) -> str | None:
        """The smallest format that provably keeps the answer to every word of the declared length."""
        return next((found.name for found in self.formats if found.proved == self.max_length), None)

    @property
    def summary(self) -> str:
        """The smallest such format, in a sentence."""
        what = "no format is" if self.smallest is None else f"{self.smallest} is the smallest format that is"
        return f"{what} proved to keep the answer to every word up to length {self.max_length}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, without the time it took."""
        formats = [asdict(found) for found in self.formats]
        return {"max_length": self.max_length, "smallest": self.smallest, "formats": formats}


def arithmetic_report(
    weights: Weights[Any],
    words: Sequence[Ids],
    *,
    language: bool = False,
    longest: int | None = None,
    asked: Asked | None = None,
    unproved: str | None = None,
) -> ArithmeticReport:
    """In which formats a net keeps its answers, to which length.

    `words` [word, length] are those that are run; `asked` says after which of their prefixes there is a right answer;
    `unproved` is why margins can't be proved even without rounding, if that is known.
    """
    start = time.perf_counter()
    declared = weights.architecture.max_length if longest is None else longest
    found = []
    for kind in FORMATS.values():
        proved, error, reason = None, None, unproved
        if unproved is None:
            proved, error, reason = proved_length(weights, kind, declared, language=language)
        kept, broken = kept_length(weights, kind, words, asked)
        found.append(FormatReport(kind.name, proved, error, reason, kept, broken))
    return ArithmeticReport(declared, tuple(found), time.perf_counter() - start)


def proved_length(
    weights: Weights[Any], kind: Format, longest: int, *, language: bool = False
) -> tuple[int | None, float | None, str | None]:
    """The length to which a format provably keeps all answers, how far logits are off there, why it ends there."""
    least = max(1, weights.architecture.min_length)
    low, high, error, reason = least - 1, longest + 1, None, None
    middle = longest
    while low < middle < high:
        proof = margins(weights, language=language, longest=middle, arithmetic=kind)
        if proof.holds:
            low, error = middle, proof.error
        else:
            high, reason = middle, proof.reason
        middle = (low + high) // 2
    return (low if low >= least else None), error, reason


def kept_length(
    weights: Weights[Any], kind: Format, words: Sequence[Ids], asked: Asked | None = None
) -> tuple[int | None, bool]:
    """To which length runs in a format give the answers of float64, and whether another answer comes behind that."""
    net = weights.architecture
    if not isinstance(net, Transformer):
        return None, False
    narrow = weights if kind.bits == 64 else weights.map(_float32) if kind.bits == 32 else narrowed(weights, kind)
    chosen = sorted((word for part in words for word in part), key=len)[-WORDS:]

    def breaks(length: int) -> bool:
        return any(_changed(weights, narrow, kind, word[:length], asked) for word in chosen)

    kept: int | None = None
    for length in _lengths(net, len(chosen[-1]) if chosen else 0):
        if _products(net, length) > (STEPS if kind.bits < 32 else NATIVE):
            break
        if breaks(length):
            return _first(breaks, kept or 0, length) - 1, True
        kept = length
    return kept, False


def _first(breaks: Callable[[int], bool], low: int, high: int) -> int:
    """The first length that breaks, above one that does not, up to one that does.

    What comes after a prefix can spoil the answer to it where it overflows, so each length is run by itself.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if breaks(middle) else (middle, high)
    return high


def _float32(array: Any) -> Any:
    return array.astype(np.float32) if is_sparse(array) else np.asarray(array, dtype=np.float32)


def _lengths(net: Transformer, longest: int) -> list[int]:
    """The lengths of the runs, each about twice the one before; a net that looks ahead is asked more often."""
    found, length = [], max(net.min_length, 1 if net.looks_ahead else FIRST)
    while length < longest:
        found.append(length)
        length = length + max(1, length // 8) if net.looks_ahead else 2 * length
    return [*found, longest] if longest >= max(1, net.min_length) else []


def _products(net: Transformer, length: int) -> float:
    """Products of one run over a word, roughly."""
    here = sum(len(block.heads) * (block.d_head + block.d_value) * length for block in net.blocks)
    return float(length * (here + sum(_size(shape) for shape in net.shapes().values() if len(shape) > 1)))


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))


def _changed(weights: Weights[Any], narrow: Weights[Any], kind: Format, word: Ids, asked: Asked | None) -> bool:
    """Whether a net gives another answer than in float64 after some prefix of a word."""
    net = weights.architecture
    tokens = np.concatenate([np.zeros(net.pads, dtype=np.int64), word])[None]
    wide = batch_logits(weights, tokens)[0, net.pads - 1 :]
    with np.errstate(all="ignore"):
        found = (
            batch_logits(narrow, tokens) if kind.bits >= 32 else net.forward(narrow.arrays, tokens, query_chunk=CHUNK)
        )
    other = _other(net.output, wide, np.asarray(found, dtype=np.float64)[0, net.pads - 1 :])
    other[0] = False
    if asked is not None:
        other &= asked(word[None])[0]
    return bool(other.any())


def _other(output: Output, wide: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where [prefix] logits give another answer."""
    if output.kind == "values":
        return np.asarray(~(np.abs(found - wide) <= output.error).all(axis=-1))
    if output.kind == "next":
        return np.asarray(((found > 0) != (wide > 0)).any(axis=-1) | np.isnan(found).any(axis=-1))
    return np.asarray((found.argmax(axis=-1) != wide.argmax(axis=-1)) | np.isnan(found).any(axis=-1))
