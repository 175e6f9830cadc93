r"""Under hard attention some letters can be fixed so that the answer no longer depends on another letter.

Statement: For every network with hard attention, of any depth, there are a length $n$, letters to fix at some of the
$n$ positions (a *restriction*), and a free position whose letter never changes the answer, whatever the other free
letters are. So no such network recognizes PARITY at all lengths; nor Dyck-1, as some such restriction leaves a balanced
completion.
Why: The highest score wins, so a few well-chosen letters draw all attention to themselves.
Checked: Four random networks ($n = 10$), a PARITY network without its last layer ($n = 6$), and a recognizer of
brackets nested at most 2 deep ($n = 8$): a sound analysis of what each head can attend to, in exact rational arithmetic
on the stored weights, finds a restriction and a position. To confirm it, the network is run on 200 random completions
with either letter there. Two words with the same answer are named, of which only one is in PARITY (for brackets: in
Dyck-1). In a network of 3 layers that does compute PARITY of 6 letters the search finds nothing.
Not checked: All networks: the theorem is proved in the source by random restrictions; here single networks are
analysed, one length each. A search that finds nothing is no proof.
Source: Hahn 2020, arXiv 1906.06755 [S]; the analysis and the search are our own.
Saboteur: The restriction found for one network is tried on another that computes PARITY (or Dyck-1) at this length. For
the network in which nothing must be found: its last layer is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.activations import ExactNet
from vitrify.bounds.cone import Cone, Restriction, blind_spot
from vitrify.bounds.gates import all_words
from vitrify.bounds.random_nets import random_net
from vitrify.claims._figures import grid, show
from vitrify.claims._nets import CaseKind, Domain, Evidence, Method, Quantity, witnessed, zeroed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_logits
from vitrify.net.transformer import Head, Ties
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic
from vitrify.spec.languages.dyck import Dyck

LENGTH = 10  # of words that random nets read
BRACKETS = 8
PARITY = 6  # letters that a net of three layers does right
# Nets that say yes to a tenth of all words or more, and no, too:
RANDOM: tuple[tuple[int, Ties], ...] = ((3, "left"), (15, "left"), (32, "right"), (39, "right"))
COMPLETIONS = 200


def subjects() -> Subjects:
    for seed, ties in RANDOM:
        net = random_net(seed, Head("hard", "none", ties=ties), max_length=LENGTH, width=4)
        yield _subject(f"random {seed}", net, LENGTH, "PARITY")
    parity = build(cyclic(2), "log-depth", max_length=PARITY, attention="hard")
    yield _subject("PARITY net without its last layer", _cut(parity), PARITY, "PARITY")
    shallow = build(Dyck.of_kinds(1, 2, BRACKETS), "dyck-recognizer", attention="hard")
    yield _subject("brackets to depth 2", shallow, BRACKETS, "Dyck-1")
    yield _subject("PARITY net", parity, PARITY, "")


def _subject(name: str, net: Weights, length: int, language: str) -> Subject:
    return Subject(name, weights=net, data={"analyzed": net, "length": length, "language": language})


def _cut(net: Weights) -> Weights:
    """Return the net whose last heads output zero."""
    silent = zeroed(Subject("", weights=net), f"blocks.{len(net.architecture.blocks) - 1}.attn.W_O")
    return cast(Weights, silent.weights)


def check(subject: Subject) -> Evidence:
    language, length = subject.data["language"], subject.data["length"]
    exact = ExactNet(subject.data["analyzed"])
    if language == "Dyck-1":  # a balanced word must be left; 1 opens and 2 closes
        spot = blind_spot(exact, length, lambda fixed: bool(_heights(fixed, length)[0]))
    else:
        spot = blind_spot(exact, length)
    if not language:
        return _nothing(subject, spot)
    if spot is None:
        words_of_length = Domain(CaseKind.WORDS, Method.PROVED, None, length, length)
        return Evidence("fails", 1, (words_of_length,), witness={"actual": "no irrelevant position"})
    position = min(spot.irrelevant)
    words = _completions(spot, length, language)
    answers = [_answers(subject.weights, _with(words, position, letter)) for letter in (1, 2)]
    changed = np.flatnonzero(np.array(answers[0]) != np.array(answers[1]))
    pair = [_shown(subject.weights, _with(words[:1], position, letter)[0]) for letter in (1, 2)]
    witness = None
    if len(changed):
        row = words[changed[:1]]
        word = _shown(subject.weights, row[0])
        witness = {"position": position + 1, "word": word, "actual": "the answer changes there"}
    kind, fixed, cases = "words with some letters fixed", {"fixed letters": len(spot.fixed)}, 2 * len(words)
    domains = (
        Domain(kind, method, count, length, length, settings=fixed)
        for method, count in ((Method.PROVED, None), (Method.SAMPLED, cases))
    )
    return witnessed(witness, cases, *domains, seed=0).adding(
        Quantity("an irrelevant position is found", True, True, "="),
        Quantity("answers that change there", len(changed), 0, "="),
        Quantity("fixed letters", _shown(subject.weights, [spot.fixed.get(at, 0) for at in range(length)])),
        Quantity("irrelevant positions", len(spot.irrelevant)),
        Quantity("two words of which one is in the language", pair),
        Quantity("the answer to both", answers[0][0]),
    )


def _nothing(subject: Subject, spot: Cone | None) -> Evidence:
    """Nothing is irrelevant to a net that does PARITY on every word."""
    length = subject.data["length"]
    words = all_words(2, length)
    odd = np.array(_answers(subject.weights, words)) == "1"
    wrong = int((odd != (words == 2).sum(axis=1) % 2).sum())
    evidence = Evidence("holds", len(words), (Domain(CaseKind.WORDS, Method.EXHAUSTIVE, len(words), length, length),))
    return evidence.adding(
        Quantity("irrelevant positions", len(spot.irrelevant) if spot else 0, 0, "="),
        Quantity("words that are not answered by their parity", wrong, 0, "="),
    )


def _heights(fixed: Restriction, length: int) -> list[set[int]]:
    """Return the numbers of open brackets, before each position and at the end, from which a word can be balanced."""
    left = [{0}]
    for position in reversed(range(length)):
        steps = {1: (1,), 2: (-1,)}.get(fixed.get(position, 0), (1, -1))
        left.append({height - step for height in left[-1] for step in steps if height - step >= 0})
    reached = left[::-1]
    return [reached[0] & {0}, *reached[1:]]


def _completions(spot: Cone, length: int, language: str) -> Ints:
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


def _with(words: Ints, position: int, letter: int) -> Ints:
    changed = words.copy()
    changed[:, position] = letter
    return changed


def _answers(weights: Weights, words: Ints) -> list[str]:
    net = weights.architecture
    logits = batch_logits(weights, np.pad(words, ((0, 0), (net.pads, 0))))[:, -1]
    return [net.output.symbols[position] for position in logits.argmax(axis=-1)]


def _shown(weights: Weights, word: Iterable[int]) -> str:
    return "".join(weights.architecture.inputs[token][0] if token else "·" for token in word)


def sabotage(subject: Subject) -> Subject:
    length, language = subject.data["length"], subject.data["language"]
    if not language:
        cut = _cut(subject.weights)
        return replace(subject, weights=cut, data={**subject.data, "analyzed": cut})
    if language == "Dyck-1":
        brackets = Dyck.of_kinds(1, BRACKETS // 2, BRACKETS)
        return replace(subject, weights=build(brackets, "dyck-recognizer", attention="hard"))
    return replace(subject, weights=build(cyclic(2), "log-depth", max_length=length, attention="hard"))


def restrictions(evidence: Evidence) -> tuple[list[str], list[str], list[list[float]]]:
    """Return names, positions and a shade for each letter: fixed, free, or not there."""
    words = {name: str(part.measured("fixed letters") or "") for name, part in evidence.parts.items()}
    longest = max(map(len, words.values()))
    rows = [[0.08 if letter == "·" else 1.0 for letter in word.ljust(longest, " ")] for word in words.values() if word]
    rows = [
        [0.0 if at >= len(word) else cell for at, cell in enumerate(row)]
        for row, word in zip(rows, filter(None, words.values()), strict=True)
    ]
    return [name for name, word in words.items() if word], [str(at + 1) for at in range(longest)], rows


FIGURE = show(grid(restrictions, "filled: letters that are fixed, by position"))
CLAIM = Claim(
    subjects, check, sabotage, id="B6", standing="theorem", uncertified="about what no net can do", figure=FIGURE
)
