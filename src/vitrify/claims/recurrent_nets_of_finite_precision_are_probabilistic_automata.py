r"""Recurrent language models of finite precision are deterministic probabilistic automata; with thoughts, all automata.

Statement: A recurrent language model of constant precision has the distribution of a deterministic probabilistic
automaton, and every such automaton has a simple recurrent net of ReLU units with a number for each transition. With a
chain of thought, that is with tokens that a homomorphism maps to letters or erases, the same holds of all probabilistic
automata, and one number for each state is enough. These are more: $p(a^n) = \tfrac12(1-\alpha)\alpha^n +
\tfrac12(1-\beta)\beta^n$ with $\alpha > \beta$ has two states, and no deterministic automaton.
Why: At finite precision a net has finitely many states, which are those of an automaton; a token leads from one to one.
Tokens with the state beside the letter make any automaton deterministic. In the mixture $e_n = P(\text{end} \mid a^n)$
falls strictly to $1 - \alpha$; a net with $S$ states visits one twice on $a^0 \dots a^S$, and gives the same answer.
Checked: Three random nondeterministic automata with the states beside the letters, three deterministic ones with
letters alone, and the mixture of $\alpha = \tfrac12$, $\beta = \tfrac14$. The probabilities that a net gives to all
strings to length 8 are compared with the forward algorithm in fractions, sizes with the formulas, and all distributions
along 1,000 random walks of up to 64 letters; both links of its certificate are proved for every length. Backwards: the
automaton of each net's states at 2 bits, with the states beside the letters or the letter `a` erased by $(I -
A_\epsilon)^{-1}$ in fractions, gives the same probabilities, and sums to 1. For the mixture, the best nets with $S = 1,
\dots, 6$ states and letters alone: on $n \le 100$ their largest error is $(e_{S-1} - e_{100})/2$, and that of any other
net with $S$ states at least $(e_{S-1} - e_{100-S})/2$; 20 random recurrences at 4 bits err by at least half the
distance of two $e_n$ where their states are the same.
Not checked: Larger automata; rounding inside a step (here the state is rounded after every token).
Source: Nowak et al. 2024, arXiv 2406.14197 [A]; for letters alone Svete & Cotterell 2023, arXiv 2310.05161 [A]; the
weights and the constant of the separation are our own derivation.
Saboteur: The logits of two states are exchanged.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from vitrify.bounds.language_models import automaton_of, distribution
from vitrify.bounds.quantized_recurrent import QuantizedRecurrent, quantize_recurrent, random_recurrent
from vitrify.claims._figures import bars, declared, show
from vitrify.claims._nets import Claim, Domain, Evidence, Method, Quantity, Subject, Subjects, built, sized, witnessed
from vitrify.claims._runs import error_on_runs, largest_difference, random_walks, string_masses
from vitrify.constructions.catalogue import build
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton, mixture, random_pfsa
from vitrify.spec.automata.weighted import ERASED, Belief
from vitrify.spec.ngrams.model import END

ALOUD, LETTERS = "states-aloud-elman", "letters-elman"
LONGEST = 8
LONG, WALKS = 64, 1000  # letters of random walks, and their number
ERASED_STEPS = 6  # of runs with a letter erased
TOLERANCE = 1e-12  # of a sum of products of probabilities in float64
BITS, RANDOM_BITS = 2, 4  # of a number of a built net, whose numbers are 0 and 1; of a random recurrence
SIZES = ((2, 2, 1.0), (3, 2, 0.5), (4, 1, 0.8))  # states, letters, share of all transitions
HORIZON = 100  # of the separation
CONTESTANTS = range(1, 7)  # states
RANDOM = 20  # recurrences


def subjects() -> Subjects:
    for seed, (states, letters, density) in enumerate(SIZES):
        name = f"{states} states, {letters} letters"
        yield built(name, random_pfsa(seed, states, letters, density=density), ALOUD, max_length=LONG)
        deterministic = random_pfsa(seed, states + 2, letters, density=density, deterministic=True)
        yield built(f"{name}, letters alone", deterministic, LETTERS, max_length=LONG)
    yield built("mixture of geometric distributions", mixture(), ALOUD, max_length=LONG)


def check(subject: Subject) -> Evidence:
    spec, weights = subject.spec, subject.weights
    tokens = weights.architecture.inputs[1:]
    letter_of = {token: token.partition("/")[0] for token in tokens}
    exact = spec.weighted
    strings = [string for length in range(LONGEST + 1) for string in product(spec.alphabet, repeat=length)]
    right = {string: float(exact.probability(string)) for string in strings}
    masses, _ = string_masses(weights, letter_of, LONGEST + 1)
    worst, string = largest_difference(masses, right)
    read = automaton_of(quantize_recurrent(weights, tokens, BITS))
    back, _ = largest_difference({s: float(read.relabelled(letter_of).probability(s)) for s in strings}, right)
    along = error_on_runs(spec, weights, random_walks(spec, weights.architecture, WALKS, LONG, seed=1))
    witness = {"string": " ".join(string), "error": worst} if not worst <= TOLERANCE else None
    domain = Domain("strings", Method.EXHAUSTIVE, len(strings), 0, LONGEST)
    most = len(tokens) * 2 ** (BITS * weights.architecture.cell.state) + 1
    drawn = Domain("random walks", Method.SAMPLED, WALKS, longest=LONG)
    evidence = witnessed(witness, len(strings) + WALKS, domain, drawn, seed=1).adding(
        Quantity("largest error of a distribution on random walks", along, TOLERANCE, "<="),
        Quantity("largest error of the probability of a string", worst, TOLERANCE, "<="),
        Quantity("the same of the automaton read from the net", back, TOLERANCE, "<="),
        Quantity("states of this automaton", len(read.names), most, "<="),
        Quantity("total probability of its strings", float(read.mass), 1.0, "="),
        Quantity("a token determines its next state", read.is_deterministic, True, "="),
        Quantity("error with a letter erased, beyond what is not summed", _erased_error(subject), TOLERANCE, "<="),
        Quantity("tokens for each letter", len(tokens) / len(spec.alphabet)),
        *sized(subject),
    )
    return evidence.adding(*_separation(spec)) if spec == mixture() else evidence


def _erased_error(subject: Subject) -> float:
    """Return how far net and automaton differ where the letter a is a thought, but for runs that have not ended."""
    spec, tokens = subject.spec, subject.weights.architecture.inputs[1:]
    written = {token: token.partition("/")[0] for token in tokens if token.partition("/")[0] != "a"}
    masses, going = string_masses(subject.weights, written, ERASED_STEPS)
    short = spec.weighted.relabelled({"a": ERASED})
    return max(abs(p - float(short.probability(s)) + going / 2) - going / 2 for s, p in masses.items())


def _separation(spec: ProbabilisticAutomaton) -> tuple[Quantity, ...]:
    """Return the errors of deterministic contestants on the mixture, and what their numbers of states allow."""
    exact, ends = spec.weighted, list[Fraction]()
    belief: Belief | None = exact.start
    while belief is not None and len(ends) <= HORIZON:
        ends.append(exact.distribution(belief)[END])
        belief = exact.step(belief, "a")
    falls = all(later < earlier for earlier, later in pairwise(ends))
    errors, least = [], []
    for states in CONTESTANTS:
        net = build(_lasso(ends, states), LETTERS, max_length=HORIZON)
        answers = _answers(quantize_recurrent(net, ["a"], BITS), HORIZON)
        errors.append(max(abs(float(p - e)) for (_, p), e in zip(answers, ends, strict=True)))
        least.append(float(ends[states - 1] - ends[HORIZON - states]) / 2)
    margins = []
    for seed in range(RANDOM):
        answers = _answers(random_recurrent(["a"], ["a", END], size=2, bits=RANDOM_BITS, seed=seed), HORIZON)
        first: dict[tuple[object, Fraction], int] = {}
        m, n = next((first[a], n) for n, a in enumerate(answers) if first.setdefault(a, n) < n)
        error = max(abs(answers[m][1] - ends[m]), abs(answers[n][1] - ends[n]))
        margins.append(float(error / (abs(ends[m] - ends[n]) / 2)))
    names = f"largest errors with {', '.join(map(str, CONTESTANTS))} states"
    return (
        Quantity("the probability of the end falls strictly", falls, True, "="),
        Quantity(names, tuple(round(error, 9) for error in errors), tuple(round(bound, 9) for bound in least), "="),
        Quantity("least error of a random recurrence, over its bound", min(margins), 1.0, ">="),
    )


def _lasso(ends: list[Fraction], states: int) -> ProbabilisticAutomaton:
    """Return the automaton of so many states on a, whose last one repeats, that is nearest to some probabilities."""
    final = [float(end) for end in ends[: states - 1]] + [float(ends[states - 1] + ends[-1]) / 2]
    names = tuple(f"s{state}" for state in range(states))
    moves = tuple((q, "a", r, 1.0 - p) for q, r, p in zip(names, (*names[1:], names[-1]), final, strict=True))
    return ProbabilisticAutomaton(names, ("a",), ((names[0], 1.0),), moves, tuple(zip(names, final, strict=True)))


def _answers(net: QuantizedRecurrent, longest: int) -> list[tuple[tuple[int, ...], Fraction]]:
    """Return the state and the probability of the end after a^0, a^1, …."""
    assert net.first_logits is not None
    state, logits, answers = net.start(1), net.first_logits, []
    for _ in range(longest + 1):
        answers.append((tuple(state[0].tolist()), distribution(np.asarray(logits))[net.answers.index(END)]))
        state, (logits,) = net.after(state, np.zeros((1, 1), dtype=np.int64))
    return answers


def sabotage(subject: Subject) -> Subject:
    """Return the subject with the first two different rows of logits exchanged, but for that of BOS."""
    logits = subject.weights.arrays["unembed.W_U"].copy()
    rows = range(1, len(logits))
    one, other = next((a, b) for a in rows for b in rows if a < b and not np.array_equal(logits[a], logits[b]))
    logits[[one, other]] = logits[[other, one]]
    return replace(subject, weights=subject.weights.with_array("unembed.W_U", logits))


FIGURE = show(
    bars(
        {
            "states read from the net": "states of this automaton",
            "values of the state, at most": declared("states of this automaton"),
        },
        "states",
        "y",
    )
)
CLAIM = Claim(subjects, check, sabotage, id="R42", standing="theorem", certified="proved", figure=FIGURE)
