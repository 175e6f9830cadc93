r"""Every probabilistic automaton, nondeterministic ones too, is a bigram model that also outputs its states.

Statement: For every probabilistic finite automaton with $S$ states there is (a) a one-layer transformer over pairs
(letter, next state), with one head that attends to its own position only and one unit per pair (and one for BOS), and
(b) one over states and letters in turn, a trigram model, with a second head that attends to the previous position and
$S + P + 1$ units for $P$ pairs of a state and a letter that it may write. The probability of a string, summed over all
its state sequences, equals that of the automaton, in one step per letter for (a) and two for (b).
Why: Given the state, what comes next depends on nothing else; of the next state, also on the letter. Erasing the states
sums over all paths, which is the forward algorithm.
Checked: Three random nondeterministic automata with (states, letters) = (2, 2), (3, 2), (4, 1), each with one of the
three kinds of attention: the probabilities that the net gives to all strings, to length 8 for (a) and 6 for (b), equal
the forward algorithm within 1e-9, and what has not ended has the mass that it has in the automaton. 1,000 random walks
of up to 24 letters: all distributions of the next token. Sizes are compared with the formulas.
Not checked: Larger automata. Recurrent nets, and that no net of finite precision over letters alone would do, are claim
R42; probabilistic Turing machines, of which the source speaks as well, are R41.
Source: Nowak et al. 2024, arXiv 2406.14197 [A]; the weights are our own derivation.
Saboteur: (a) The unit for one pair of letter and state outputs nothing. (b) The second head attends to its own position
instead of the previous one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from vitrify.claims._figures import points, show
from vitrify.claims._nets import ATTENTIONS, Domain, Evidence, Method, Quantity, built, sized, witnessed, zeroed
from vitrify.claims._runs import error_on_runs, largest_difference, random_walks, string_masses
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.spec.automata.probabilistic import random_pfsa

PAIRS, IN_TURN = "states-aloud", "states-in-turn"
LETTERS = {PAIRS: 8, IN_TURN: 6}  # of all strings
LONG, WALKS = 24, 1000  # letters of random walks, and their number
TOLERANCE = 1e-9  # of a probability; what the n-gram construction promises
SIZES = ((2, 2, 1.0), (3, 2, 0.5), (4, 1, 0.8))  # states, letters, share of all transitions


def subjects() -> Subjects:
    for seed, ((states, letters, density), attention) in enumerate(zip(SIZES, ATTENTIONS, strict=True)):
        spec, name = random_pfsa(seed, states, letters, density=density), f"{states} states, {letters} letters"
        yield built(f"{name}, {attention}", spec, PAIRS, attention=attention, max_length=LONG)
        in_turn = f"{name}, in turn, {attention}"
        yield built(in_turn, spec, IN_TURN, attention=attention, max_length=2 * LONG + 1)


def check(subject: Subject) -> Evidence:
    """Compare distributions along random walks; if they are right, the probabilities of strings and the sizes."""
    spec, weights, net = subject.spec, subject.weights, subject.weights.architecture
    along = error_on_runs(spec, weights, random_walks(spec, net, WALKS, LONG, seed=1))
    drawn = Domain("random walks", Method.SAMPLED, WALKS, longest=LONG)
    if not along <= TOLERANCE:
        return witnessed({"error of a distribution on random walks": along}, WALKS, drawn, seed=1)
    in_turn = net.max_length > LONG
    longest = LETTERS[IN_TURN if in_turn else PAIRS]
    strings = [string for length in range(longest + 1) for string in product(spec.alphabet, repeat=length)]
    right = {string: spec.probability(string) for string in strings}
    letters = {token: token.partition("/")[0] for token in net.inputs[1:]}
    masses, going = string_masses(weights, letters, 2 * (longest + 1) if in_turn else longest + 1)
    worst, string = largest_difference(masses, right)
    witness = {"string": " ".join(string), "error": worst} if not worst <= TOLERANCE else None
    every = Domain("strings of all ways through the states", Method.EXHAUSTIVE, len(strings), 0, longest)
    return witnessed(witness, len(strings) + WALKS, every, drawn, seed=1).adding(
        Quantity("largest error of the probability of a string", worst, TOLERANCE, "<="),
        Quantity("error of the mass that has not ended", abs(going + sum(right.values()) - 1), TOLERANCE, "<="),
        Quantity("largest error of a distribution on random walks", along, TOLERANCE, "<="),
        *sized(subject),
    )


def sabotage(subject: Subject) -> Subject:
    """Return the subject that has forgotten what follows the first pair, or reads a position twice."""
    weights = subject.weights
    if weights.architecture.max_length == LONG:
        return zeroed(subject, "blocks.0.mlp.W_out", 1)
    arrays = {name: weights.arrays[f"blocks.0.attn.{name}"].copy() for name in ("W_Q", "W_K")}
    for name, array in arrays.items():
        array[1] = array[0]
        weights = weights.with_array(f"blocks.0.attn.{name}", array)
    return replace(subject, weights=weights)


FIGURE = show(points("{} states", "units", "states", "units", by=lambda name: "in turn" if "turn" in name else "pairs"))
CLAIM = Claim(subjects, check, sabotage, id="R2", standing="theorem", certified="proved", figure=FIGURE)
