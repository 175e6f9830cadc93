"""The questions on which a circuit is judged: words, where they are asked about, and the donors of other activations.

A donor is another word, read at the same places or at others: what a part says at a place is replaced by what it says
on that word, there or elsewhere. Without other places no donor would ever change what depends on the place alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.oracles import AsksSome, oracle_for
from vitrify.certify.words import WordExamination
from vitrify.errors import BuildRefused, FolderError
from vitrify.net.architecture import Output
from vitrify.net.run import log_probabilities

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

WORDS = 48  # of one length
LENGTHS = 2  # how many lengths there are
DONORS = 4  # of a word: half of them at the same places, half at others
TOLERANCE = 1e-4  # how far a probability or a number may move and still be the same answer
TIE = 1e-6  # logits nearer to each other than this are tied


@dataclass(frozen=True, eq=False)
class Questions:
    """Words of one length: tokens [word, pos] with BOS in front, where an answer counts, and pairs of word and donor.

    `pairs` [pair, 2] are numbers of words, `places` [pair, pos] say where in the donor each place is taken from.
    """

    tokens: Ids
    asked: NDArray[np.bool_]
    pairs: Ids
    places: Ids

    def given(self, activities: Mapping[str, Any]) -> dict[str, Any]:
        """What every writer says on the donors, pair by pair [pair, pos, …]."""
        at = (self.pairs[:, 1][:, None], self.places)
        return {node: value[at] for node, value in activities.items()}

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        found = {name: getattr(self, name).tolist() for name in ("tokens", "pairs", "places")}
        return found | {"asked": self.asked.astype(int).tolist()}

    @classmethod
    def from_json(cls, data: Any) -> Questions:
        """What `to_json` wrote."""
        try:
            arrays = {name: np.array(data[name], dtype=np.int64) for name in ("tokens", "asked", "pairs", "places")}
            if any(array.ndim != 2 for array in arrays.values()):
                raise ValueError("four tables of numbers")
        except (KeyError, TypeError, ValueError) as error:
            raise FolderError(f"the domain is not one of a circuit: {error!r}") from None
        return cls(arrays["tokens"], arrays["asked"].astype(bool), arrays["pairs"], arrays["places"])

    def only(self, pairs: NDArray[np.int64]) -> Questions:
        """The questions of some pairs, and no other words."""
        words, numbers = np.unique(self.pairs[pairs], return_inverse=True)
        return Questions(self.tokens[words], self.asked[words], numbers.reshape(len(pairs), 2), self.places[pairs])


def joined(parts: Sequence[Questions]) -> tuple[Questions, ...]:
    """All questions about words of one length together."""
    found: dict[int, Questions] = {}
    for part in parts:
        length = part.tokens.shape[1]
        before = found.get(length)
        if before is not None:
            pairs = np.concatenate([before.pairs, part.pairs + len(before.tokens)])
            arrays = [np.concatenate([getattr(before, n), getattr(part, n)]) for n in ("tokens", "asked", "places")]
            part = Questions(arrays[0], arrays[1], pairs, arrays[2])
        found[length] = part
    return tuple(found.values())


def questions(net: Any, spec: object, seed: int = 0, words: int = WORDS) -> tuple[Questions, ...]:
    """Short words, words that exercise what the spec lists, and random ones; those of the most usual lengths."""
    oracle = oracle_for(spec, net)
    exam = WordExamination(net, spec, seed=seed, work=1e7, samples=words)
    groups: dict[int, list[list[int]]] = {}
    for domain in exam.domains:
        for part in domain.words:
            groups.setdefault(part.shape[1], []).extend(part.tolist())
    rng = np.random.default_rng(seed)
    found: list[Questions] = []
    for _, group in sorted(groups.items(), key=lambda item: (-min(len(item[1]), words), -item[0])):
        distinct = np.unique(np.array(group, dtype=np.int64), axis=0)
        if distinct.shape[1] and len(distinct) > 1 and len(found) < LENGTHS:
            chosen = distinct[rng.permutation(len(distinct))[:words]]
            asked = np.ones((len(chosen), chosen.shape[1] + 1), dtype=bool)
            if isinstance(oracle, AsksSome):
                asked = oracle.asked(chosen)
            elif net.looks_ahead:  # the answer to the whole word
                asked[:, :-1] = False
            if asked.any():
                found.append(_paired(net, chosen, asked, rng))
    if not found:
        raise BuildRefused("there are no two words of one length to compare")
    return tuple(found)


def _paired(net: Any, words: Ids, asked: NDArray[np.bool_], rng: np.random.Generator) -> Questions:
    """Words with BOS in front, each with its donors."""
    count, length = len(words), words.shape[1] + net.pads
    tokens = np.concatenate([np.zeros((count, net.pads), dtype=np.int64), words], axis=1)
    before = np.zeros((count, net.pads - 1), dtype=bool)
    pairs, places = [], []
    for number in range(DONORS):
        step = 1 + int(rng.integers(count - 1))  # another word for every word
        pairs.append(np.stack([np.arange(count), (np.arange(count) + step) % count], axis=1))
        if number % 2:
            places.append(np.stack([rng.permutation(length) for _ in range(count)]))
        else:
            places.append(np.tile(np.arange(length), (count, 1)))
    whole = np.concatenate([before, asked], axis=1)
    return Questions(tokens, whole, np.concatenate(pairs), np.concatenate(places))


def differs(output: Output, one: Floats, two: Floats) -> NDArray[np.bool_]:
    """Where two runs [word, pos, out] answer differently: [word, pos].

    Other states, symbols or classes that share the largest logit, up to rounding; another set of next words; a
    probability or a number that is off by more than the tolerance.
    """
    found: NDArray[np.bool_]
    if output.kind == "next":
        found = ((one > TIE) != (two > TIE)).any(axis=-1)
    elif output.kind == "lm":
        found = ~(np.abs(_probabilities(output, one) - _probabilities(output, two)).max(axis=-1) <= TOLERANCE)
    elif output.kind == "values":
        found = ~(np.abs(one - two).max(axis=-1) <= max(TOLERANCE, 2 * output.error))
    else:
        best = [logits >= logits.max(axis=-1, keepdims=True) - TIE for logits in (one, two)]
        found = (best[0] != best[1]).any(axis=-1)
    return found


def _probabilities(output: Output, logits: Floats) -> Floats:
    """Probabilities; weights that sum to nothing, up to rounding, are none."""
    if output.scores == "linear":
        total = logits.sum(axis=-1, keepdims=True)
        return np.asarray(np.where(total > TIE, logits / np.where(total > TIE, total, 1.0), 0.0))
    return np.asarray(np.exp(log_probabilities(output, logits)))
