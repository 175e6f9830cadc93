r"""Nets with hard attention overlook letters: some are fixed, and the answer no longer depends on another one.

Statement: for a net with hard attention, of any depth, there is a length $n$ and a restriction that fixes the letters
at some of $n$ places so that the answer does not depend on the letter at some other place. So no such net recognises
PARITY at all lengths; nor Dyck-1, if a balanced word can still be completed.
Why: whatever scores highest wins, so a few well-chosen letters draw all attention to themselves.
Checked: for random nets, for a net built for PARITY without its last layer and for a recogniser of brackets to depth 2,
a sound analysis of what each head can attend to (exact rational arithmetic on the stored weights) finds a restriction
and a place; the net itself is run on 200 random completions with either letter there, and two words are named to which
it gives the same answer although only one is in the language. The analysis must find nothing where there is nothing: a
net of $\log_2 n$ layers does PARITY of $n$ letters, and under none of the restrictions that are tried a letter is said
to be irrelevant.
Source: Hahn 2020, arXiv 1906.06755 [S]: the theorem, by random restrictions; the analysis and search here are our own,
one net at a time, and no proof for all nets.
Saboteur: the verdict about one net is tried on another, which does PARITY (or Dyck-1) at this length; where nothing may
be found, the net loses its last layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.bounds.activations import ExactNet
from vitrify.bounds.cone import Cone, Restriction, blind_spot
from vitrify.bounds.gates import all_words
from vitrify.bounds.random_nets import random_net
from vitrify.certify.evidence import Evidence
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.dyck_recogniser import dyck_recogniser
from vitrify.constructions.log_depth import log_depth
from vitrify.kit import assemble
from vitrify.net.run import batch_logits
from vitrify.net.transformer import Head, Ties
from vitrify.net.weights import Weights
from vitrify.spec.automata import cyclic
from vitrify.spec.dyck import Dyck

LENGTH = 10  # of words that random nets read
BRACKETS = 8
PARITY = 6  # letters that a net of three layers does right
# Nets that say yes to a tenth of all words or more, and no, too:
RANDOM: tuple[tuple[int, Ties], ...] = ((3, "left"), (15, "left"), (32, "right"), (39, "right"))
COMPLETIONS = 200


def subjects() -> Iterator[Subject]:
    """Random nets, a PARITY net without its last layer, shallow brackets, and a PARITY net as it should be."""
    for seed, ties in RANDOM:
        net = random_net(seed, Head("hard", "none", ties=ties), max_length=LENGTH, width=4)
        yield _subject(f"random {seed}", net, LENGTH, "PARITY")
    whole = assemble(log_depth(cyclic(2), max_length=PARITY, attention="hard"))
    yield _subject("PARITY net without its last layer", _cut(whole), PARITY, "PARITY")
    shallow = assemble(dyck_recogniser(Dyck.of_kinds(1, 2, BRACKETS)))
    yield _subject("brackets to depth 2", shallow, BRACKETS, "Dyck-1")
    yield _subject("PARITY net", whole, PARITY, "")


def _subject(name: str, net: Weights, length: int, language: str) -> Subject:
    return Subject(name, weights=net, data={"analysed": net, "length": length, "language": language})


def _cut(net: Weights) -> Weights:
    """The net whose last heads bring nothing."""
    name = f"blocks.{len(net.architecture.blocks) - 1}.attn.W_O"
    return net.with_array(name, 0 * net.arrays[name])


def check(subject: Subject) -> Evidence:
    """A blind spot is found and is one, or is not found where there is none."""
    language, length = subject.data["language"], subject.data["length"]
    spot = blind_spot(ExactNet(subject.data["analysed"]), length, _balanced(length) if language == "Dyck-1" else None)
    if not language:
        return _nothing(subject, spot)
    declared = {"an irrelevant place is found": True, "answers that change there": 0}
    if spot is None:
        return Evidence("fails", "proved", f"words of {length} letters", 1, {"found": "no irrelevant place"}, declared)
    place = min(spot.irrelevant)
    words = _completions(spot, length, language)
    said = [_answers(subject.weights, _with(words, place, letter)) for letter in (1, 2)]
    changed = np.flatnonzero(np.array(said[0]) != np.array(said[1]))
    pair = [_shown(subject.weights, _with(words[:1], place, letter)[0]) for letter in (1, 2)]
    measured = {
        "an irrelevant place is found": True,
        "answers that change there": len(changed),
        "fixed letters": _shown(subject.weights, [spot.fixed.get(at, 0) for at in range(length)]),
        "irrelevant places": len(spot.irrelevant),
        "one of these is in the language, and the answer is the same": f"{pair[0]} and {pair[1]}: {said[0][0]}",
    }
    witness = None
    if len(changed):
        row = words[changed[:1]]
        witness = {"place": place + 1, "word": _shown(subject.weights, row[0]), "found": "the answer changes there"}
    return Evidence(
        verdict="fails" if witness else "holds",
        method="proved+sampled",
        domain=f"words of {length} letters with {len(spot.fixed)} fixed",
        cases=2 * len(words),
        witness=witness,
        declared=declared,
        measured=measured,
        seed=0,
    )


def _nothing(subject: Subject, spot: Cone | None) -> Evidence:
    """Nothing is irrelevant to a net that does PARITY on every word."""
    words = all_words(2, subject.data["length"])
    odd = np.array(_answers(subject.weights, words)) == "1"
    wrong = int((odd != (words == 2).sum(axis=1) % 2).sum())
    declared = {"irrelevant places": 0, "words that are not answered by their parity": 0}
    measured = {"irrelevant places": len(spot.irrelevant) if spot else 0, **dict.fromkeys([*declared][1:], wrong)}
    return Evidence(
        verdict="holds" if declared == measured else "fails",
        method="exhaustive",
        domain=f"all words of {subject.data['length']} letters",
        cases=len(words),
        witness=None if declared == measured else {"declared": declared, "found": measured},
        declared=declared,
        measured=measured,
    )


def _balanced(length: int) -> Any:
    """Whether a balanced word is left under a restriction; 1 opens and 2 closes."""

    def consistent(fixed: Restriction) -> bool:
        return bool(_heights(fixed, length)[0])

    return consistent


def _heights(fixed: Restriction, length: int) -> list[set[int]]:
    """For each place the numbers of open brackets from which a balanced end can be reached; last that after the end."""
    left = [{0}]
    for place in reversed(range(length)):
        steps = {1: (1,), 2: (-1,)}.get(fixed.get(place, 0), (1, -1))
        left.append({height - step for height in left[-1] for step in steps if height - step >= 0})
    reached = left[::-1]
    return [reached[0] & {0}, *reached[1:]]


def _completions(spot: Cone, length: int, language: str) -> NDArray[np.int64]:
    """Random words under the restriction; for Dyck-1 the first is balanced."""
    rng = np.random.default_rng(0)
    words = rng.integers(1, 3, (COMPLETIONS, length))
    for at, letter in spot.fixed.items():
        words[:, at] = letter
    if language == "Dyck-1":
        heights, now = _heights(spot.fixed, length), 0
        for at in range(length):
            opens = spot.fixed.get(at, 1) == 1 and now + 1 in heights[at + 1]
            words[0, at], now = (1, now + 1) if opens else (2, now - 1)
    return words


def _with(words: NDArray[np.int64], place: int, letter: int) -> NDArray[np.int64]:
    changed = words.copy()
    changed[:, place] = letter
    return changed


def _answers(weights: Weights, words: NDArray[np.int64]) -> list[str]:
    net = weights.architecture
    logits = batch_logits(weights, np.pad(words, ((0, 0), (net.pads, 0))))[:, -1]
    return [net.output.symbols[place] for place in logits.argmax(axis=-1)]


def _shown(weights: Weights, word: Any) -> str:
    return "".join(weights.architecture.inputs[token][0] if token else "·" for token in word)


def sabotage(subject: Subject) -> Subject:
    """The net that is run does the language at this length; the one that does is cut."""
    length, language = subject.data["length"], subject.data["language"]
    if not language:
        cut = _cut(subject.weights)
        return replace(subject, weights=cut, data={**subject.data, "analysed": cut})
    if language == "Dyck-1":
        return replace(subject, weights=assemble(dyck_recogniser(Dyck.of_kinds(1, BRACKETS // 2, BRACKETS))))
    return replace(subject, weights=assemble(log_depth(cyclic(2), max_length=length, attention="hard")))


CLAIM = Claim(row="B6", status="proved", subjects=subjects, check=check, sabotage=sabotage)
