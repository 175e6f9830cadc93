"""Every front end says what its meaning says: the net against the oracle on all short words and on random longer ones.

Quick: alphabets of two letters. Slow: the same and alphabets of four, all words to length 8, 2,000 longer ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice, takewhile

import numpy as np
import pytest
from numpy.typing import NDArray

from built import all_words, answers, random_words
from programs import usual_programs
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.certification.precision.formats import FORMATS
from vitrify.certification.precision.rounding import bounded_logits, decided, supports
from vitrify.constructions.catalogue import Attention, build
from vitrify.net.inference import batch_logits
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import gridworld, permutation_group, symmetric_group
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.logic import crasp as counting
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.logic.ltl import Formula

Ids = NDArray[np.int64]

ALL, LONG = 8, 20  # all words to here; random ones to there
TINY = 2.0**-126  # below it, float32 counts in steps that the bound of rounding knows nothing of


@dataclass(frozen=True)
class Case:
    """A spec of a front end, and the shape that is built from it."""

    front_end: str
    name: str
    spec: object
    shape: str | None = None
    length: int = LONG

    @property
    def attentions(self) -> list[Attention]:
        return ["softmax"] if self.shape == "parity" else ["softmax", "hard"]

    def __str__(self) -> str:
        return f"{self.front_end}: {self.name}"


FORMULA = "alphabet: {}\nlength: 20\nb -> Y (a S (b | H a)) & O MOD(1, 3)"
COUNTS = "alphabet: {}\nlength: 20\nh := #a - 2 * #b\n#(h < 0) = 0 & (max(h, #true - 6) > 1 | MOD(1, 2))"


def cases(letters: int) -> Iterator[Case]:
    """Every front end over an alphabet of so many letters, two or four."""
    abc, pairs = " ".join("abcd"[:letters]), [("(", ")"), ("[", "]")][: letters // 2]
    brackets = " ".join(bracket for pair in pairs for bracket in pair)
    for program in usual_programs(letters, LONG):
        yield Case("program", program.name, program)
    yield Case("formula", "since", Formula.from_text(FORMULA.format(abc)))
    yield Case("counting program", "nested", Crasp.from_text(COUNTS.format(abc)))
    yield Case("counting language", "majority", counting.majority("a", abc.split(), LONG))
    yield Case("counting language", "brackets", counting.shuffle_dyck(pairs, LONG))
    moves = {letter: (1, place) for place, letter in enumerate(abc.split(), start=-1)}
    yield Case("counting language", "counters", counting.stateless_counters(moves, [(False, True)], LONG))
    yield Case("brackets", "generator", Dyck.of(brackets, depth=3, length=LONG), "dyck")
    yield Case("brackets", "recognizer", Dyck.of(brackets, depth=3, length=LONG), "dyck-recognizer")
    regex = "(a(a|b)*b)*" if letters == 2 else "(ab|c*d)*"
    yield Case("cascade", "expression", Automaton.from_regex(regex), "cascade")
    yield Case("cascade", "permutations", symmetric_group(3 if letters == 2 else 4), "cascade")
    for length in (8, LONG):  # a net for words of one length
        check = permutation_group({letter: [1, 0] if place % 2 else [0, 1] for place, letter in enumerate(abc.split())})
        yield Case("PARITY", f"{length} letters", check, "parity", length)
    yield Case("gridworld", "corridor", gridworld(3 if letters == 2 else 5), "gridworld")


def asked(case: Case, weights: Weights, most: int, count: int) -> Iterator[Ids]:
    """Words of one length at a time: all short ones (to length 8, or as far as there are `most`), random longer ones.

    Where answers do not depend on what comes later, a word stands for all its beginnings.
    """
    net, rng = weights.architecture, np.random.default_rng(0)
    language, letters = oracle_for(case.spec, net).language, len(net.inputs) - 1
    if language is not None:
        short = takewhile(lambda word: len(word) <= ALL, language.beginnings())
        drawn = list(islice((word for word in iter(lambda: language.draw(rng), None) if len(word) > ALL), count))
        for _, words in groupby(sorted([*short, *drawn], key=len), len):
            yield np.array(list(words), dtype=np.int64)
        return
    longest = max(length for length in range(ALL + 1) if letters**length <= most)
    for length in range(net.min_length, longest + 1) if net.looks_ahead else [longest]:
        yield all_words(letters, length)
    lengths = range(max(longest + 1, net.min_length), net.max_length + 1)
    for length in lengths:
        yield random_words(letters, length, -(-count // len(lengths)), seed=length)


def wrong(case: Case, weights: Weights, words: Ids) -> list[dict[str, object]]:
    """Some wrong answers, as a person would like to see them."""
    oracle, found = oracle_for(case.spec, weights.architecture), answers(weights, words)
    rows = np.flatnonzero((oracle.errors(words, found) > oracle.tolerance()).any(axis=1))[:3]
    return [oracle.witness(words[row], found[row]) for row in rows]


def check(case: Case, attention: Attention, most: int, count: int, proved: int) -> tuple[int, float]:
    """Ask a net, and the same net in float32; how many words were asked, and the share that float32 must get right.

    Of each length, `proved` words are followed with a bound on rounding.
    """
    sequences = isinstance(case.spec, Automaton)
    length = case.length if sequences else None
    kind = None if case.shape == "parity" else attention
    weights = build(case.spec, case.shape, attention=kind, max_length=length)
    total, shares = 0, []
    for words in asked(case, weights, most, count):
        assert not wrong(case, weights, words)
        total += len(words)
        shares.append(in_float32(weights, words[:: -(-len(words) // proved)]))
    return total, float(np.mean(shares))


def in_float32(weights: Weights, words: Ids) -> float:
    """Whether float32 stays within its bound, and agrees where it must; the share of answers where it must."""
    net = weights.architecture
    assert supports(net)
    tokens = np.concatenate([np.zeros((len(words), net.pads), dtype=np.int64), words], axis=1)
    narrow = batch_logits(weights.map(lambda array: np.asarray(array, dtype=np.float32)), tokens)
    assert narrow.dtype == np.float32
    wide, error = bounded_logits(weights, tokens, FORMATS["float32"])
    assert (np.abs(narrow - wide) <= error + TINY).all()
    if net.output.kind == "values":
        return 1.0
    must = decided(weights, tokens)
    same = (narrow > 0) == (wide > 0) if net.output.kind == "next" else narrow.argmax(-1) == wide.argmax(-1)
    assert (same.all(axis=-1) if same.ndim == 3 else same)[must].all()
    return float(must[:, net.pads - 1 :].mean())


QUICK, FULL = ([(case, kind) for case in cases(letters) for kind in case.attentions] for letters in (2, 4))


IN_TURN = [(case, case.attentions[place % len(case.attentions)]) for place, case in enumerate(cases(2))]


@pytest.mark.long
@pytest.mark.parametrize(("case", "attention"), IN_TURN, ids=str)
def test_two_letters(case: Case, attention: Attention) -> None:
    total, _ = check(case, attention, most=256, count=100, proved=2)
    assert total >= 100


@pytest.mark.slow
@pytest.mark.parametrize(("case", "attention"), [*QUICK, *FULL], ids=str)
def test_all_words_to_length_8_and_2000_longer_ones(case: Case, attention: Attention) -> None:
    total, share = check(case, attention, most=4**ALL, count=2_000, proved=16)
    assert total >= min(2_000, 2**case.length)
    print(f"{case} {attention}: {total} words, {share:.4f} must be right in float32")  # noqa: T201
