r"""Every probabilistic automaton, nondeterministic ones too, is a bigram model once it may say its states aloud.

Statement: for a probabilistic automaton there is a transformer of one layer, with one head that sees its own position
only and one unit for each pair of a letter and a state it leads to (and one for the beginning), over such pairs, so
that the probability of writing a string of letters, whatever the states beside them, is the automaton's, in one step
for each letter.
Why: given the state, what comes next depends on nothing else; a reader that forgets the states adds up all ways through
them, which is what the forward algorithm does. Without the states no bigram model will do.
Checked: the net runs on every way through the states of strings to length 8, the probabilities that it gives to ways of
the same string are added, and compared with the forward algorithm for all strings; random nondeterministic automata;
sizes against the formulas. Probabilistic Turing machines, of which the source speaks as well, are not built here.
Source: Nowak et al. 2024, arXiv 2406.14197 [A]; the weights are our own derivation.
Saboteur: the unit that knows what follows one pair of a letter and a state is silent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import ATTENTIONS, with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.catalogue import Settings
from vitrify.constructions.pfsa import pfsa, sizes
from vitrify.kit import assemble
from vitrify.net.run import batch_logits, log_probabilities
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.ngram import END
from vitrify.spec.pfsa import ProbabilisticAutomaton
from vitrify.spec.pfsas import random_pfsa

LONGEST = 8
TOGETHER = 4096  # ways that are run at once
TOLERANCE = 1e-9  # of a probability; what the n-gram construction promises
SIZES = ((2, 2, 1.0), (3, 2, 0.5), (4, 1, 0.8))  # states, letters, share of all transitions


def subjects() -> Iterator[Subject]:
    """Random automata in which a letter may lead to several states."""
    for seed, (states, letters, density) in enumerate(SIZES):
        spec = random_pfsa(seed, states, letters, density=density)
        attention = ATTENTIONS[seed % 3]
        net = assemble(pfsa(spec, Settings(attention, LONGEST)))
        yield Subject(f"{states} states, {letters} letters, {attention}", spec, net)


def check(subject: Subject) -> Evidence:
    """Marginal probabilities of all strings, the mass on impossible ways, and sizes."""
    start, spec = time.perf_counter(), subject.spec
    worst, lost, ways = 0.0, 0.0, 0
    witness = None
    for length in range(LONGEST + 1):
        if witness is not None:
            break
        paths = _ways(spec, length)
        found, missing = _marginals(subject.weights, spec, paths)
        ways, lost = ways + len(paths), max(lost, missing)
        for number, chance in enumerate(found.tolist()):
            string = _string(spec, number, length)
            error = abs(chance - spec.probability(string))
            worst = max(worst, error)
            if not error <= TOLERANCE and witness is None:
                witness = {"string": " ".join(string), "expected": spec.probability(string), "found": chance}
    if not lost <= TOLERANCE and witness is None:
        witness = {"probability of what the automaton can't do": lost}
    promised, size = sizes(spec), Ledger.of(subject.weights)
    evidence = Evidence(
        verdict="holds" if witness is None else "fails",
        method="exhaustive",
        domain=f"all strings to length {LONGEST}, {ways} ways through the states",
        cases=ways,
        witness=witness,
        declared={"largest error": TOLERANCE},
        measured={"largest error": worst, "probability of what the automaton can't do": lost},
        seconds=time.perf_counter() - start,
    )
    return with_sizes(evidence, promised, {name: getattr(size, name) for name in promised})


def _successors(spec: ProbabilisticAutomaton) -> np.ndarray:
    """Which token may come after which [1 + token, token]; the first row is for the beginning."""
    begin, moves, _ = spec.matrices
    letters, states = _parts(spec)
    held = np.vstack([begin, np.eye(len(spec.states))[states]])
    return np.stack([(held @ moves[y])[:, r] for y, r in zip(letters, states, strict=True)], axis=1) > 0


def _parts(spec: ProbabilisticAutomaton) -> tuple[np.ndarray, np.ndarray]:
    """The letter and the state of every token."""
    pairs = [token.split("/") for token in spec.tokens]
    letters = np.array([spec.alphabet.index(y) for y, _ in pairs])
    return letters, np.array([spec.states.index(r) for _, r in pairs])


def _ways(spec: ProbabilisticAutomaton, length: int) -> np.ndarray:
    """All rows of tokens [way, length] that the automaton can write."""
    after = _successors(spec)
    rows = np.zeros((1, 0), dtype=np.int64)
    for _ in range(length):
        way, token = np.nonzero(after[_last(rows)])
        rows = np.hstack([rows[way], token[:, None]])
    return rows


def _last(ways: np.ndarray) -> np.ndarray:
    """The row of `_successors` for what comes after some ways."""
    return ways[:, -1] + 1 if ways.shape[1] else np.zeros(len(ways), dtype=np.int64)


def _marginals(weights: Weights, spec: ProbabilisticAutomaton, ways: np.ndarray) -> tuple[np.ndarray, float]:
    """The probability of every string of a length [string], and the largest one of leaving the automaton's ways."""
    net, length = weights.architecture, ways.shape[1]
    inputs = np.array([net.input_ids[token] for token in spec.tokens])
    tokens = np.hstack([np.zeros((len(ways), net.pads), dtype=np.int64), inputs[ways]])
    logits = [batch_logits(weights, tokens[at : at + TOGETHER]) for at in range(0, len(tokens), TOGETHER)]
    chances = np.exp(log_probabilities(net.output, np.concatenate(logits)))[:, net.pads - 1 :]
    columns = np.array([net.output.symbols.index(token) for token in spec.tokens])
    written = np.take_along_axis(chances[:, :length], columns[ways][..., None], axis=-1)[..., 0]
    whole = written.prod(axis=1) * chances[:, length, net.output.symbols.index(END)]
    marginal = np.zeros(len(spec.alphabet) ** length)
    powers = len(spec.alphabet) ** np.arange(length)[::-1]
    np.add.at(marginal, (_parts(spec)[0][ways] * powers).sum(axis=1), whole)
    return marginal, float((chances[:, -1, columns] * ~_successors(spec)[_last(ways)]).sum(axis=-1).max(initial=0.0))


def _string(spec: ProbabilisticAutomaton, number: int, length: int) -> list[str]:
    digits = [number // len(spec.alphabet) ** place % len(spec.alphabet) for place in range(length)]
    return [spec.alphabet[digit] for digit in reversed(digits)]


def sabotage(subject: Subject) -> Subject:
    """What follows the first pair of a letter and a state is forgotten."""
    return zeroed(subject, "blocks.0.mlp.W_out", 1)


CLAIM = Claim(row="R2", status="proved", certified="proved", subjects=subjects, check=check, sabotage=sabotage)
