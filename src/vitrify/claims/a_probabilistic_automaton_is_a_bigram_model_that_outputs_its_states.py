r"""Every probabilistic automaton, nondeterministic ones too, is a bigram model that also outputs its states.

Statement: For every probabilistic finite automaton there is a one-layer transformer over pairs (letter, next state),
with one head that attends to its own position only and one unit per pair (and one for BOS), such that the probability
of a string, summed over all state sequences beside it, equals that of the automaton, in one step per letter.
Why: Given the state, what comes next depends on nothing else. Erasing the states sums over all paths, which is the
forward algorithm.
Checked: Three random nondeterministic automata with (states, letters) = (2, 2), (3, 2), (4, 1), each with one of the
three kinds of attention: the net runs on every state path of every string to length 8; summed probabilities equal the
forward algorithm within 1e-9, and impossible paths get no more than that. Sizes are compared with the formulas.
Not checked: Strings longer than 8 and larger automata. Recurrent nets, and that no net of finite precision over letters
alone would do, are claim R42; probabilistic Turing machines, of which the source speaks as well, are R41.
Source: Nowak et al. 2024, arXiv 2406.14197 [A]; the weights are our own derivation.
Saboteur: The unit for one pair of letter and state outputs nothing.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from vitrify.claims._figures import points, show
from vitrify.claims._nets import Domain, Evidence, Method, Quantity, Weights, in_turn, sized, witnessed, zeroing
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.net.inference import batch_logits, log_probabilities
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton, random_pfsa
from vitrify.spec.ngrams.model import END

LONGEST = 8
TOGETHER = 4096  # ways that are run at once
TOLERANCE = 1e-9  # of a probability; what the n-gram construction promises
SIZES = ((2, 2, 1.0), (3, 2, 0.5), (4, 1, 0.8))  # states, letters, share of all transitions


def subjects() -> Subjects:
    specs = {
        f"{states} states, {letters} letters": random_pfsa(seed, states, letters, density=density)
        for seed, (states, letters, density) in enumerate(SIZES)
    }
    return in_turn(specs, max_length=LONGEST)


def check(subject: Subject) -> Evidence:
    spec = subject.spec
    worst, lost, ways = 0.0, 0.0, 0
    witness = None
    for length in range(LONGEST + 1):
        if witness is not None:
            break
        paths = _ways(spec, length)
        marginals, missing = _marginals(subject.weights, spec, paths)
        ways, lost = ways + len(paths), max(lost, missing)
        for string, chance in zip(product(spec.alphabet, repeat=length), marginals.tolist(), strict=True):
            error = abs(chance - spec.probability(string))
            worst = max(worst, error)
            if not error <= TOLERANCE and witness is None:
                witness = {"string": " ".join(string), "expected": spec.probability(string), "actual": chance}
    if not lost <= TOLERANCE and witness is None:
        witness = {"probability of what the automaton can't do": lost}
    domain = Domain("ways of strings through the states", Method.EXHAUSTIVE, ways, 0, LONGEST)
    return witnessed(witness, ways, domain).adding(
        Quantity("largest error", worst, TOLERANCE, "<="),
        Quantity("probability of what the automaton can't do", lost, TOLERANCE, "<="),
        *sized(subject),
    )


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
    """All rows of tokens [way, 1 + length] that the automaton can write; each begins with -1."""
    after, rows = _successors(spec), np.full((1, 1), -1)
    for _ in range(length):
        way, token = np.nonzero(after[rows[:, -1] + 1])
        rows = np.hstack([rows[way], token[:, None]])
    return rows


def _marginals(weights: Weights, spec: ProbabilisticAutomaton, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """The probability of every string of a length [string], and the largest one of leaving the automaton's ways."""
    net, ways = weights.architecture, rows[:, 1:]
    length = ways.shape[1]
    inputs = np.array([net.input_ids[token] for token in spec.tokens])
    tokens = np.hstack([np.zeros((len(ways), net.pads), dtype=np.int64), inputs[ways]])
    logits = [batch_logits(weights, tokens[at : at + TOGETHER]) for at in range(0, len(tokens), TOGETHER)]
    chances = np.exp(log_probabilities(net.output, np.concatenate(logits)))[:, net.pads - 1 :]
    columns = np.array([net.output.symbols.index(token) for token in spec.tokens])
    written = np.take_along_axis(chances[:, :length], columns[ways][..., None], axis=-1)[..., 0]
    complete = written.prod(axis=1) * chances[:, length, net.output.symbols.index(END)]
    marginal = np.zeros(len(spec.alphabet) ** length)
    powers = len(spec.alphabet) ** np.arange(length)[::-1]
    np.add.at(marginal, (_parts(spec)[0][ways] * powers).sum(axis=1), complete)
    return marginal, float(
        (chances[:, -1, columns] * ~_successors(spec)[rows[:, -1] + 1]).sum(axis=-1).max(initial=0.0)
    )


sabotage = zeroing("blocks.0.mlp.W_out", 1)  # what follows the first pair of a letter and a state is forgotten
FIGURE = show(
    points("{} states", ("d_model", "units", "heads"), "states of the automaton", "size of the net", joined=True)
)
CLAIM = Claim(subjects, check, sabotage, id="R2", standing="theorem", certified="proved", figure=FIGURE)
