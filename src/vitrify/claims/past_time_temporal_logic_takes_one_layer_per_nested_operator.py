r"""Past-time temporal logic and masked hard attention are equally expressive, with one layer per nested operator.

Statement: For every formula of past-time temporal logic whose temporal operators are nested to depth $D$ there is a
masked hard-attention transformer with at most $D$ attention layers, and at most one head per different subformula with
a temporal operator on top, that computes it at every position; without predicates of the position, such as `MOD`, it
needs no positions. Conversely, from such a network without positions an equivalent formula can be read. Softmax
attention needs positions, and one layer more where these and letters meet.
Why: What $\varphi\,S\,\psi$ owes to the past is decided at the last earlier position where $\neg\varphi \lor \psi$
holds: a head that breaks ties to the right reads $\psi$ there; yesterday is the case $\varphi = \bot$. Conversely, a
head returns the value of the last visible position among those of the best-scoring types, which is a since. Equal
contents have equal scores, so a softmax head must add the position to prefer the last of them.
Checked: 14 textbook formulas (hard attention and softmax): all words over 3 letters to length 7 and random words of
length 12, against the semantics. 100 random formulas nested up to 2, 3 and 4 deep (hard; 500 at large scale): all words
to length 5 and random words of length 12. Layers and heads are compared with depth and subformulas. For formulas
without such predicates under hard attention the formula read from the network is equivalent to the one that it was
built from, for every length, as both have the same minimal automaton; the network built from it is checked on the same
words.
Not checked: Softmax beyond length 12, arbitrary networks for the converse (only built ones), and the link to
first-order logic, which is cited. Softmax is not in the source. Star-free languages have a claim of their own.
Source: Angluin, Chiang & Yang 2023, arXiv 2310.13897 [A]: the equivalence; the construction and the reading of formulas
are our own.
Saboteur: All values are zero.
"""

from __future__ import annotations

import random
from functools import partial

import numpy as np

from vitrify.certification.reading.formulas import formula_of
from vitrify.claims._figures import declared, points, show
from vitrify.claims._nets import (
    Claim,
    Domain,
    Evidence,
    Method,
    Subject,
    Subjects,
    built,
    check_net,
    check_truths,
    combine,
    groups,
    on_every_member,
    on_groups,
    quantities,
    witnessed,
    zeroed,
)
from vitrify.constructions.catalogue import build
from vitrify.spec.logic.ltl import Formula

LENGTH = 12
TEXTBOOK = {
    "once": "O a",
    "historically": "H (a | b)",
    "since": "!c S a",
    "yesterday": "Y a",
    "an a begins": "O (a & !Y true)",
    "every b right after an a": "H (b -> Y a)",
    "a b somewhere": "O (b & Y a)",
    "no c after a b": "H (c -> !O b)",
    "a, then b, then c": "O (c & O (b & O a))",
    "every b answered by a c": "!(!c S b)",
    "no letter twice in a row": "H ((a -> !Y a) & (b -> !Y b) & (c -> !Y c))",
    "an a between any two bs": "H (b -> !Y (!a S b))",
    "a at every even position": "H (MOD(0, 2) -> a)",
    "a at every prime position": "H (AT(2, 3, 5, 7, 11) -> a)",
}
RANDOM, MORE_RANDOM, GROUP = 100, 500, 25  # random formulas, at large scale, and as one subject
SHORT = 5  # letters of all words on which each of them is checked


def subjects() -> Subjects:
    for name, text in TEXTBOOK.items():
        spec = _formula(text)
        yield built(name, spec, attention="hard")
        yield built(f"{name}, soft", spec, attention="softmax")
    yield from groups(_random(RANDOM), GROUP, "random formulas")


def large() -> Subjects:
    return groups(_random(MORE_RANDOM), GROUP, "random formulas")


def _random(count: int) -> Subjects:
    """Yield nets of random formulas that are neither always true nor never."""
    rng, made = random.Random(12), 0
    words = np.indices((3,) * SHORT).reshape(SHORT, -1).T
    while made < count:
        spec = _formula(_drawn(rng, 2 + made % 3))
        values = spec.holds(words)
        if spec.operators and values.any() and not values.all():
            made += 1
            yield Subject(f"{made}: {spec}", spec, build(spec, attention="hard"), {"random": True})


def _formula(text: str) -> Formula:
    return Formula.from_text(f"alphabet: a b c\nlength: {LENGTH}\n{text}")


def _drawn(rng: random.Random, depth: int) -> str:
    if not depth:
        return rng.choice("abc")
    left, right = _drawn(rng, depth - 1), _drawn(rng, rng.randrange(depth))
    pick = rng.choice(["S", "S", "O", "H", "Y", "&", "|", "->"])
    return f"{pick} ({left})" if pick in ("O", "H", "Y") else f"({left}) {pick} ({right})"


def check(subject: Subject) -> Evidence:
    spec = subject.spec
    size = subject.weights.sizes
    bounds = {"nested operators": spec.depth + spec.positional, "operators": spec.operators}
    measured = {"nested operators": size.attention_layers, "operators": size.heads}
    words = partial(check_truths, longest=SHORT) if "random" in subject.data else partial(check_net, max_length=7)
    there = words(subject).adding(*quantities(bounds, measured, "<="))
    if there.verdict != "holds" or spec.positional or subject.weights.architecture.soft:
        return there
    read = formula_of(subject.weights)
    again = words(Subject("again", spec, build(read, attention="hard")))
    apart = None if read.automaton() == spec.automaton() else {"expected": str(spec), "actual": str(read)}
    back = witnessed(apart, 1, Domain("pairs of minimal automata, for every length", Method.PROVED, 1))
    return combine({"there": there, "back": back, "there again": again})


def sabotage(subject: Subject) -> Subject:
    for block in {head.block for head in subject.weights.labels.heads}:
        subject = zeroed(subject, f"blocks.{block}.attn.W_V")
    return subject


FIGURE = show(
    points(
        declared("nested operators"),
        "attention_layers",
        "nested operators",
        "attention layers",
        laws={"one each": lambda depth: depth},
    ),
    points(declared("operators"), "heads", "operators", "heads", laws={"one each": lambda count: count}),
)
CLAIM = Claim(
    subjects,
    on_groups(check),
    on_every_member(sabotage),
    id="R12",
    standing="theorem",
    certified="proved",
    budget_seconds=20,
    large=large,
    figure=FIGURE,
)
