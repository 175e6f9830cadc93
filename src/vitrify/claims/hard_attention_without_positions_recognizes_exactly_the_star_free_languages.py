r"""Hard attention without positions recognizes exactly the star-free languages.

Statement: Transformers without positions, of hard attention with a strict mask and ties to the right, recognize exactly
the star-free languages, which are those of past-time temporal logic. One set of weights does so at every length.
Why: A strict since, $\varphi\,S'\,\psi$, is the value of $\psi$ at the last earlier position where $\lnot\varphi \lor
\psi$ holds, which is what such a head reads; and each level of the holonomy decomposition of an aperiodic automaton is
the value of the last reset. Conversely, a head remembers the last value of each key and which key came later. A letter
sets, clears or leaves each of these bits, and never flips one: the net is a cascade of resets.
Checked: Seven star-free languages as automata and six as formulas, among them (ab)*, a*b*, *the second letter is a*,
*no letter twice in a row* and brackets of two kinds to depth 2, and twelve random nets of two layers with both masks
and ties to both sides. Each net is proved, bit by bit, for every word of every length, and run on all words to length 6
and on random words of 10, 100 (200 words for each net) and 1,000 letters with the same bytes. From each net the minimal
automaton and a formula are read. Both must be the language of the spec, as minimal automata, which decides all words;
so must the net that is built from the formula. No map of the transition monoid may cycle through states. Sizes are
compared with their formulas, and automata whose language has a group of 2, 3 or 6 permutations must be refused.
Not checked: The converse for all nets: it is run on these 25.
Source: Angluin, Chiang & Yang 2023, arXiv 2310.13897 [A]: the theorem, by way of first-order logic and the Krohn-Rhodes
decomposition; the constructions and the readings are our own. Schützenberger 1965 for aperiodic monoids.
Saboteur: In turn the heads see their own position, break ties to the left, or mark the positions where $\varphi \lor
\psi$ holds; in random nets ties are broken to the other side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from vitrify.arrays import Bools, Ints
from vitrify.bounds.random_nets import random_net
from vitrify.certification.reading.automata import automaton_of
from vitrify.certification.reading.formulas import formula_of, wanted_answers
from vitrify.claims._figures import points, show
from vitrify.claims._nets import Claim, Evidence, Quantity, Subject, Subjects, Weights, built, check_net, refused
from vitrify.constructions.catalogue import build
from vitrify.constructions.temporal import strict_net
from vitrify.kit import assemble
from vitrify.net.architecture import Output
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.transformer import Head, Transformer
from vitrify.spec.automata.analysis import is_aperiodic, transition_monoid
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import flip_flop
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.logic.strict import StrictTerms, Term

WORDS = {10: 100, 100: 200, 1_000: 2}  # of each length
MAX_SHOWN = 400  # letters of a formula
MARGINS = 12  # length of the nets whose margins are proved
RANDOM = 12  # random nets
FORMULAS = {
    "no letter twice in a row": "H ((a -> !Y a) & (b -> !Y b) & (c -> !Y c))",
    "(ab)*": "H ((a <-> !Y a) & !c) & b",
    "a*b*": "H ((a -> !Y b) & !c)",
    "the second letter is a": "O (a & Y !Y true)",
    "a bb since the last c": "Y (!c S (b & Y b))",
    "every b after a and c": "H (b -> (Y O a & Y (!a S c)))",
}
GROUPS = ("(aa)*", "((a|b)(a|b)(a|b))*", "(aaaaaa)*")  # languages with groups of 2, 3 and 6 permutations
KINDS = [Head("hard", mask, ties=ties) for mask in ("causal", "strict") for ties in ("left", "right")]


def subjects() -> Subjects:
    for number, (name, automaton) in enumerate(_languages().items()):
        data = {"construction": "star-free", "saboteur": ("mask", "ties")[number % 2]}
        yield built(name, automaton, "star-free", data, max_length=MARGINS)
    for number, (name, text) in enumerate(FORMULAS.items()):
        spec = Formula.from_text(f"alphabet: a b c\nlength: {MARGINS}\n{text}")
        data = {"construction": "temporal", "saboteur": ("marks", "mask", "ties")[number % 3]}
        yield built(f"{name}, formula", spec, "temporal", data, attention="hard", max_length=MARGINS)
    yield from _random_nets()


def _languages() -> dict[str, Automaton]:
    texts = {"(ab)*": "ab", "a*b*": "ab", "(a|b)a(a|b)*": "ab", "(ab|ba)*": "ab"}
    languages = {text: Automaton.from_regex(text, letters) for text, letters in texts.items()}
    twice = Automaton.explore("", "abc", lambda s, a: "twice" if s in ("twice", a) else a, lambda s: s != "twice")
    brackets = Automaton.explore("", "()[]", _stack, lambda stack: not stack)
    return {"brackets to depth 2": brackets, "flip-flop": flip_flop(), "no letter twice": twice, **languages}


def _stack(stack: str, bracket: str) -> str:
    """Return the open brackets after one more; `x` after an error."""
    if bracket in "([" and stack != "x":
        return stack + bracket if len(stack) < 2 else "x"
    return stack[:-1] if stack[-1:] + bracket in ("()", "[]") else "x"


def _random_nets() -> Iterator[Subject]:
    """Yield random nets whose automata have several states and depend on the side to which ties are broken."""
    seed, count = 0, 0
    while count < RANDOM:
        seed += 1
        net, rng = random_net(seed, KINDS[0], max_length=MARGINS, heads=2, positions=False), np.random.default_rng(seed)
        drawn = [[KINDS[i] for i in rng.integers(len(KINDS), size=2)] for _ in net.architecture.blocks]
        output = Output("transducer", ("False", "True"))
        net = _with_heads(replace(net, architecture=replace(net.architecture, output=output)), drawn)
        automaton = automaton_of(net)
        if len(automaton.states) > 2 and automaton_of(_other_ties(net)) != automaton:
            count += 1
            yield Subject(f"random {seed}", formula_of(net), net, {"saboteur": "ties"})


def _with_heads(weights: Weights[Transformer], heads: list[list[Head]]) -> Weights[Transformer]:
    net = weights.architecture
    blocks = tuple(replace(block, heads=tuple(own)) for block, own in zip(net.blocks, heads, strict=True))
    return replace(weights, architecture=replace(net, blocks=blocks))


def _other_ties(weights: Weights[Transformer]) -> Weights[Transformer]:
    blocks = weights.architecture.blocks
    return _with_heads(
        weights, [[replace(h, ties="left" if h.ties == "right" else "right") for h in block.heads] for block in blocks]
    )


def check(subject: Subject) -> Evidence:
    net, spec = subject.weights, subject.spec
    read, formula = automaton_of(net), formula_of(net)
    at_start = read.accepts(())  # where a formula has no value
    language = spec.minimized() if isinstance(spec, Automaton) else spec.automaton(empty=at_start)
    again = automaton_of(build(formula, "temporal", attention="hard"))
    text = str(formula)
    wrong = {f"wrong answers to words of {n:,} letters": _wrong_answers(net, spec, language, n) for n in WORDS}
    quantities = [
        Quantity("the minimal automaton that is read is that of the language", read == language, True, "="),
        Quantity("and so is that of the formula", formula.automaton(empty=at_start) == language, True, "="),
        Quantity("and that of the formula's net", again == formula.automaton(), True, "="),
        Quantity("no map of the transition monoid cycles", is_aperiodic(read), True, "="),
        *(Quantity(name, count, 0, "=") for name, count in wrong.items()),
        Quantity("states of the minimal automaton", len(read.states)),
        Quantity("maps of its states", len(transition_monoid(read))),
        Quantity(
            "formula", text if len(text) <= MAX_SHOWN else f"{formula.operators} operators, depth {formula.depth}"
        ),
    ]
    if "construction" in subject.data:
        sets, placed = _weights_for_all_lengths(subject)
        quantities += [Quantity("sets of weights for these lengths", sets, 1, "=")]
        quantities += [Quantity("numbers in tables of positions", placed, 0, "=")]
    groups = [refused(partial(build, Automaton.from_regex(text), "star-free")) for text in GROUPS]
    quantities += [Quantity(f"refused: {', '.join(GROUPS)}", all(groups), True, "=")]
    return check_net(subject, max_length=6, samples=1_000).adding(*quantities)


def _weights_for_all_lengths(subject: Subject) -> tuple[int, int]:
    """Return how many sets of arrays are built for the lengths, and how many numbers their tables of positions hold."""
    choices: dict[str, Any] = {} if subject.data["construction"] == "star-free" else {"attention": "hard"}
    nets = [build(subject.spec, subject.data["construction"], max_length=n, **choices) for n in WORDS]
    tables = [np.count_nonzero(net.arrays["pos_embed.W_pos"]) for net in nets]
    others = {tuple(array.tobytes() for name, array in net.arrays.items() if "W_pos" not in name) for net in nets}
    return len(others), int(sum(tables))


def _wrong_answers(net: Weights[Transformer], spec: Automaton | Formula, language: Automaton, length: int) -> int:
    """Return the number of wrong answers to words of a length, with the same arrays and no positions."""
    table = np.zeros((net.architecture.pads + length, net.architecture.d_model))
    longer = replace(
        net,
        architecture=replace(net.architecture, max_length=length),
        arrays={**net.arrays, "pos_embed.W_pos": table},
    )
    words = _words(language, length)
    answers = batch_logits(longer, with_pads(longer.architecture, words + 1))[:, 1:].argmax(axis=-1)
    output = net.architecture.output
    yes = np.isin(np.array(output.symbols)[answers], wanted_answers(output, "True"))
    return int((yes != _truth(spec, words)).sum())


def _truth(spec: Automaton | Formula, words: Ints) -> Bools:
    if isinstance(spec, Formula):
        return spec.holds(words)
    return np.isin(spec.run_batch(words)[:, 1:], list(spec.accepting))


def _words(language: Automaton, length: int) -> Ints:
    """Return random words, most of whose letters leave it open if a continuation is in the language."""
    rng, open_states, rows = np.random.default_rng(length), _open_states(language), language.transitions
    good = [[letter for letter, target in enumerate(row) if target in open_states] for row in rows]
    words = np.zeros((WORDS[length], length), dtype=np.int64)
    for word, drawn in zip(words, rng.random((*words.shape, 2)), strict=True):
        state = language.initial
        for at, (free, share) in enumerate(drawn.tolist()):
            letters = range(len(rows[state])) if free < 1 / length or not good[state] else good[state]
            word[at] = letters[int(share * len(letters))]
            state = rows[state][word[at]]
    return words


def _open_states(language: Automaton) -> set[int]:
    """Return the states from which words lead both into the language and out of it."""
    accepting = set(language.accepting)
    into, out = accepting, set(range(len(language.states))) - accepting
    for _ in language.states:
        into = into | {q for q, row in enumerate(language.transitions) if into & set(row)}
        out = out | {q for q, row in enumerate(language.transitions) if out & set(row)}
    return into & out


class _WrongMarks(StrictTerms):
    """Terms in which a strict since is decided where its left or its right side holds."""

    def mark(self, term: Term) -> Term:
        return self.either(term[1], term[2])


def sabotage(subject: Subject) -> Subject:
    net, way = subject.weights, subject.data["saboteur"]
    if way == "ties":
        return replace(subject, weights=_other_ties(net))
    if way == "mask":
        causal = [[replace(head, mask="causal") for head in block.heads] for block in net.architecture.blocks]
        return replace(subject, weights=_with_heads(net, causal))
    return replace(subject, weights=assemble(strict_net(_WrongMarks(subject.spec), "wrong marks", MARGINS)))


FIGURE = show(
    points(
        "states of the minimal automaton",
        "maps of its states",
        "states of the minimal automaton",
        "maps of its states",
        by=lambda name: "formulas" if "formula" in name else "automata",
    ),
    points(
        "states of the minimal automaton",
        "layers",
        "states of the minimal automaton",
        "layers",
        by=lambda name: "formulas" if "formula" in name else "automata",
    ),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R12", standing="theorem", certified="proved", budget_seconds=60, figure=FIGURE
)
