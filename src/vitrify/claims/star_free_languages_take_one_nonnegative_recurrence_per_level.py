r"""Star-free languages take one diagonal recurrence without negative factors per level of resets, and groups take more.

Statement: Input-gated diagonal recurrences $h_t = A(x_t) h_{t-1} + B(x_t)$ with $A \ge 0$, in layers with MLPs between
them, recognize in finite precision exactly the star-free languages. Here, for one direction: an automaton whose
holonomy decomposition has $L$ levels, of resets only, runs on $L$ such layers of one number each, with the factors 1
and $2^{-30}$, at every length, bit by bit, in float64.
Why: A level keeps its coordinate or resets it; the next level needs the one before the letter. Behind a reset a number
is $r + 2^{-30}r'$ with the new and the old coordinate, and what was before is rounded off.
Checked: Nine star-free languages and four random automata without groups: each net is proved, bit by bit, for every
word of every length, run on all words to length 7 and on 1,000 random words of 128 letters, and, with the same bytes,
on random words of 10, 100 and 1,000 letters. Sizes are compared with their formulas. Languages with groups of
2, 3 and 6 permutations are refused, with the group's name.
Not checked: The converse, for all such stacks; that of PARITY and of counts modulo 3 is
`counting_modulo_three_takes_complex_eigenvalues`. Float32, which holds 24 bits: the nets are for float64.
Source: Sarrof, Veitsman & Hahn 2024, arXiv 2405.17394 [A]; the construction is our own. Factors 0 and 1 alone do not
suffice where $B = 0$ at the factor 1: such a layer is in the same state after a letter that comes twice as after one,
and so is the next, so that a language like (ab)* is out of reach at any depth. With other $B$ it counts, without end.
Saboteur: The factor of a reset is 0 instead of $2^{-30}$, so that the coordinate before it is lost; where nothing reads
that, it is 1.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.arrays import Arrays
from vitrify.certification.evidence import Evidence, Quantity
from vitrify.claims._figures import bars, points, show
from vitrify.claims._nets import Claim, Subject, Subjects, built, check_net, refused
from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused
from vitrify.net.inference import batch_logits, with_pads
from vitrify.spec.automata.analysis import is_aperiodic
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import flip_flop, random_automaton

NAME = "star-free-recurrence"
LENGTHS, WORDS = (10, 100, 1_000), 8
RANDOM, STATES, SAMPLES, WORK = 4, 4, 1_000, 1e9
LANGUAGES = ("(ab)*", "a*b*", "(a|b)a(a|b)*", "(ab|ba)*", "(a|b)*abb(a|b)*", "b*(ab*ab*ab*)?", "(a(ab)*b)*")
GROUPS = ("(aa)*", "((a|b)(a|b)(a|b))*", "(aaaaaa)*")  # languages with groups of 2, 3 and 6 permutations


def subjects() -> Subjects:
    twice = Automaton.explore("", "abc", lambda s, a: "twice" if s in ("twice", a) else a, lambda s: s != "twice")
    languages = {text: Automaton.from_regex(text, "ab") for text in LANGUAGES}
    languages |= {"no letter twice": twice, "flip-flop": flip_flop()}
    seed = 0
    while len(languages) < len(LANGUAGES) + 2 + RANDOM:
        automaton = random_automaton(STATES, 2, seed).reachable()
        seed += 1
        if len(automaton.states) == STATES and is_aperiodic(automaton):
            languages[f"random {seed}"] = automaton
    for name, automaton in languages.items():
        try:
            yield built(name, automaton, NAME)
        except BuildRefused:  # a group of the decomposition that no word cycles through
            continue


def check(subject: Subject) -> Evidence:
    nets = [build(subject.spec, NAME, max_length=length) for length in LENGTHS]
    others = {_bytes(net.arrays) for net in (*nets, build(subject.spec, NAME))}
    groups = [refused(partial(build, Automaton.from_regex(text), NAME)) for text in GROUPS]
    wrong = {length: _wrong(subject, length) for length in LENGTHS}
    return check_net(subject, max_length=7, samples=SAMPLES, work=WORK).adding(
        *(Quantity(f"wrong answers to words of {length:,} letters", wrong[length], 0, "=") for length in LENGTHS),
        Quantity("sets of weights for these lengths", len(others), 1, "="),
        Quantity("no map of the transition monoid cycles", is_aperiodic(subject.spec), True, "="),
        Quantity(f"refused: {', '.join(GROUPS)}", all(groups), True, "="),
    )


def _bytes(arrays: Arrays) -> tuple[bytes, ...]:
    """Return the content of all arrays; the table of positions, which only holds zeros, as what is not 0 in it."""
    return tuple(
        np.asarray(a)[np.nonzero(a)].tobytes() if "W_pos" in name else a.tobytes() for name, a in arrays.items()
    )


def _wrong(subject: Subject, length: int) -> int:
    """Return the number of wrong states after the prefixes of random words, by the weights of the subject."""
    net = subject.weights
    table = np.zeros((net.architecture.pads + length, net.architecture.d_model))
    longer = replace(
        net, architecture=replace(net.architecture, max_length=length), arrays={**net.arrays, "pos_embed.W_pos": table}
    )
    words = np.random.default_rng(length).integers(0, len(subject.spec.alphabet), size=(WORDS, length))
    words[: WORDS // 2] = np.sort(words[: WORDS // 2] + 10 * (np.arange(length) % 2), axis=1) % 10  # two runs of each
    answers = batch_logits(longer, with_pads(longer.architecture, words + 1)).argmax(axis=-1)
    return int((answers != subject.spec.reachable().run_batch(words)).sum())


def sabotage(subject: Subject) -> Subject:
    broken = _with_factors(subject, 0.0)
    return broken if _wrong(broken, LENGTHS[1]) else _with_factors(subject, 1.0)


def _with_factors(subject: Subject, factor: float) -> Subject:
    """Return the subject with another factor for resets."""
    arrays = dict(subject.weights.arrays)
    for name in [name for name in arrays if name.endswith("rec.W_A")]:
        array = np.array(arrays[name])
        array[array < 0] = factor - 1.0
        arrays[name] = array
    return replace(subject, weights=replace(subject.weights, arrays=arrays))


FIGURE = show(
    bars({"layers, one for each level": "layers"}, "layers"),
    points("layers", ("units", "d_model"), "levels", "size of the net"),
)
CLAIM = Claim(subjects, check, sabotage, id="R24", standing="theorem", certified="proved", figure=FIGURE)
