r"""Past-time temporal logic and masked hard attention are equally expressive, with one layer per nested operator.

Statement: For every formula of past-time temporal logic whose temporal operators are nested to depth $D$ there is a
masked hard-attention transformer with at most $D$ attention layers, and at most one head per different subformula with
a temporal operator on top, that computes it at every position; without `MOD` it needs no positions. Conversely, from
such a network without positions an equivalent formula can be read. Softmax attention needs positions, and one layer
more where `MOD` and letters meet.
Why: What $\varphi\,S\,\psi$ owes to the past is decided at the last earlier position where $\neg\varphi \lor \psi$
holds: a head that breaks ties to the right reads $\psi$ there; yesterday is the case $\varphi = \bot$. Conversely, a
head returns the value of the last visible position among those of the best-scoring types, which is a since. Equal
contents have equal scores, so a softmax head must add the position to prefer the last of them.
Checked: 13 textbook formulas (hard attention and softmax) and 8 random ones of depth 4 (hard): all words over 3 letters
to length 7 and random words of length 12, against the semantics. Layers and heads are compared with depth and
subformulas. For formulas without `MOD` under hard attention, the formula read from the network, and the network built
from that formula, are checked on the same words.
Not checked: Words longer than 12, arbitrary networks for the converse (only built ones), and the link to first-order
logic, which is cited. Softmax is not in the source. Star-free languages have a claim of their own.
Source: Angluin, Chiang & Yang 2023, arXiv 2310.13897 [A]: the equivalence; the construction and the reading of formulas
are our own.
Saboteur: All values are zero.
"""

from __future__ import annotations

import random

import numpy as np

from vitrify.certification.reading.formulas import formula_of
from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, built, check_net, combine, quantities, zeroed
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
}
RANDOM = 8


def subjects() -> Subjects:
    for name, text in TEXTBOOK.items():
        spec = _formula(text)
        yield built(name, spec, attention="hard")
        yield built(f"{name}, soft", spec, attention="softmax")
    rng, made = random.Random(12), 0
    while made < RANDOM:
        spec = _formula(_drawn(rng, 4))
        values = spec.holds(np.indices((3,) * 6).reshape(6, -1).T)
        if spec.operators and values.any() and not values.all():
            made += 1
            yield built(f"random {made}: {spec}", spec, attention="hard")


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
    bounds = {"nested operators": spec.depth + ("MOD" in str(spec)), "operators": spec.operators}
    measured = {"nested operators": size.attention_layers, "operators": size.heads}
    there = check_net(subject, max_length=7).adding(*quantities(bounds, measured, "<="))
    if "MOD" in str(spec) or subject.weights.architecture.soft:
        return there
    read = formula_of(subject.weights)
    back = check_net(Subject("read", read, subject.weights), max_length=7)
    again = check_net(Subject("again", spec, build(read, attention="hard")), max_length=7)
    return combine({"there": there, "back": back, "there again": again})


def sabotage(subject: Subject) -> Subject:
    for block in {head.block for head in subject.weights.labels.heads}:
        subject = zeroed(subject, f"blocks.{block}.attn.W_V")
    return subject


CLAIM = Claim(subjects, check, sabotage, id="R12", standing="theorem", certified="proved")
