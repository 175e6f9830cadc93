"""The domain on which a circuit is judged: words, the positions whose answers count, and donors of activations.

A donor is another word. In activation patching, the activation of a part at a position is replaced by its activation
on the donor, at the same position or at another. Only the latter changes what depends on the position alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Array, Arrays, Bools, Floats, Ints
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.certification.oracles.meanings import MeaningOracle
from vitrify.encoding import JsonObject
from vitrify.errors import BuildRefused, FolderError
from vitrify.net.architecture import Output, SequenceArchitecture
from vitrify.net.inference import log_probabilities, with_pads

MAX_WORDS_PER_LENGTH = 48
LENGTHS = 2  # different word lengths
DONORS = 4  # per word: half of them at the same positions, half at others
TOLERANCE = 1e-4  # change of a probability or a number that is still the same answer
ARRAYS = ("tokens", "mask", "pairs", "donor_positions")  # of a domain
TIE = 1e-6  # logits nearer to each other than this are tied


@dataclass(frozen=True, eq=False)
class PatchDomain:
    """Words of one length: tokens [word, pos] with BOS in front, a `mask` of answers that count, pairs with donors.

    `pairs` [pair, 2] are indices of words; `donor_positions` [pair, pos] are the positions read in the donor.
    """

    tokens: Ints
    mask: Bools
    pairs: Ints
    donor_positions: Ints

    @property
    def aligned(self) -> Bools:
        """Which pairs [pair] read the donor at the same positions."""
        return np.asarray((self.donor_positions == np.arange(self.tokens.shape[1])).all(axis=1))

    def donor_activations(self, activities: Arrays) -> dict[str, Array]:
        """Return the activation of every writer on the donors, pair by pair [pair, pos, …]."""
        at = (self.pairs[:, 1][:, None], self.donor_positions)
        return {node: value[at] for node, value in activities.items()}

    def to_json(self) -> JsonObject:
        """Plain data."""
        return {name: getattr(self, name).astype(int).tolist() for name in ARRAYS}

    @classmethod
    def from_json(cls, data: JsonObject) -> PatchDomain:
        """Return the domain that `to_json` was called on."""
        try:
            tokens, mask, pairs, positions = (np.array(data[name], dtype=np.int64) for name in ARRAYS)
            if any(array.ndim != 2 for array in (tokens, mask, pairs, positions)):
                raise ValueError("four tables of numbers")
        except (KeyError, TypeError, ValueError) as error:
            raise FolderError(f"the domain is not one of a circuit: {error!r}") from None
        return cls(tokens, mask.astype(bool), pairs, positions)

    def only(self, pairs: Ints) -> PatchDomain:
        """Return the domain of some pairs, without other words."""
        words, numbers = np.unique(self.pairs[pairs], return_inverse=True)
        own = self.tokens[words], self.mask[words]
        return PatchDomain(*own, numbers.reshape(len(pairs), 2), self.donor_positions[pairs])


def joined(parts: Sequence[PatchDomain]) -> tuple[PatchDomain, ...]:
    """Merge the parts of a domain that have words of one length."""
    by_length: dict[int, PatchDomain] = {}
    for part in parts:
        length = part.tokens.shape[1]
        before = by_length.get(length)
        if before is not None:
            pairs = np.concatenate([before.pairs, part.pairs + len(before.tokens)])
            both = {name: np.concatenate([getattr(before, name), getattr(part, name)]) for name in ARRAYS}
            part = PatchDomain(**both | {"pairs": pairs})
        by_length[length] = part
    return tuple(by_length.values())


def patch_domain(
    net: SequenceArchitecture, spec: object, seed: int = 0, words: int = MAX_WORDS_PER_LENGTH
) -> tuple[PatchDomain, ...]:
    """Draw short words, words that exercise the parts of the spec, and random ones, of the most frequent lengths."""
    oracle = oracle_for(spec, net)
    check = WordCheck(net, spec, seed=seed, work=1e7, samples=words)
    groups: dict[int, list[list[int]]] = {}
    for batch in check.batches:
        for part in batch.words:
            groups.setdefault(part.shape[1], []).extend(part.tolist())
    rng = np.random.default_rng(seed)
    parts: list[PatchDomain] = []
    for _, group in sorted(groups.items(), key=lambda item: (-min(len(item[1]), words), -item[0])):
        distinct = np.unique(np.array(group, dtype=np.int64), axis=0)
        if distinct.shape[1] and len(distinct) > 1 and len(parts) < LENGTHS:
            chosen = distinct[rng.permutation(len(distinct))[:words]]
            mask = np.ones((len(chosen), chosen.shape[1] + 1), dtype=bool)
            if isinstance(oracle, MeaningOracle):
                mask = oracle.has_answer(chosen)
            elif net.looks_ahead:  # the answer to the whole word
                mask[:, :-1] = False
            if mask.any():
                parts.append(_paired(net, chosen, mask, rng))
    if not parts:
        raise BuildRefused("there are no two words of one length to compare")
    return tuple(parts)


def _paired(net: SequenceArchitecture, words: Ints, mask: Bools, rng: np.random.Generator) -> PatchDomain:
    """Return words with BOS in front, each with its donors."""
    count, length = len(words), words.shape[1] + net.pads
    tokens = with_pads(net, words)
    before = np.zeros((count, net.pads - 1), dtype=bool)
    pairs, donor_positions = [], []
    for number in range(DONORS):
        step = 1 + int(rng.integers(count - 1))  # another word for every word
        pairs.append(np.stack([np.arange(count), (np.arange(count) + step) % count], axis=1))
        if number % 2:
            donor_positions.append(np.stack([rng.permutation(length) for _ in range(count)]))
        else:
            donor_positions.append(np.tile(np.arange(length), (count, 1)))
    mask = np.concatenate([before, mask], axis=1)
    return PatchDomain(tokens, mask, np.concatenate(pairs), np.concatenate(donor_positions))


def differs(output: Output, one: Floats, two: Floats, tolerance: float | None = None) -> Bools:
    """Return where two runs [word, pos, out] answer differently: [word, pos].

    That is: other states, symbols or classes share the largest logit, up to the tolerance; another set of next words is
    above it; a probability or a number is off by more.
    """
    tolerance = usual_tolerance(output) if tolerance is None else tolerance
    if output.kind in ("lm", "values"):
        numbers = [probabilities(output, logits) if output.kind == "lm" else logits for logits in (one, two)]
        return np.asarray(~(np.abs(numbers[0] - numbers[1]).max(axis=-1) <= tolerance))
    return np.asarray((answer_sets(output, one, tolerance) != answer_sets(output, two, tolerance)).any(axis=-1))


def answer_sets(output: Output, logits: Floats, tolerance: float) -> Bools:
    """Return which symbols are answers: those above the tolerance (next words), or within it of the largest."""
    if output.kind == "next":
        return np.asarray(logits > tolerance)
    return np.asarray(logits >= logits.max(axis=-1, keepdims=True) - tolerance)


def usual_tolerance(output: Output) -> float:
    """Return how much an answer may move without being another one."""
    if output.kind in ("lm", "values"):
        return max(TOLERANCE, 2 * output.error)
    return TIE


def probabilities(output: Output, logits: Floats) -> Floats:
    """Return probabilities: zeros where linear weights sum to 0 up to rounding."""
    if output.scores == "linear":
        total = logits.sum(axis=-1, keepdims=True)
        return np.asarray(np.where(total > TIE, logits / np.where(total > TIE, total, 1.0), 0.0))
    return np.asarray(np.exp(log_probabilities(output, logits)))
