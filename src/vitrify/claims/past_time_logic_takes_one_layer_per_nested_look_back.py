r"""Past-time temporal logic and masked hard attention say the same, one attention layer per nested look back.

Statement: A formula of past-time temporal logic whose operators that look back are nested to depth $D$ is computed
without error by a transformer with hard attention in at most $D$ attention layers (one more where `MOD` and letters
meet), with at most one head for each different subformula with such an operator on top. From a net without positions a
formula can be read back that says the same.

Why: $\varphi\,S\,\psi$ is decided at the last position where $\neg\varphi \lor \psi$ holds: a head that breaks ties to
the right reads $\psi$ there. On the way back, what a head brings is the value of the last of those visible types whose
score is the best, and that is a since.

Checked: For textbook formulas and random ones of depth 4, all words over 3 letters to length 7 and random words of
length 12, against the meaning of the formula; layers and heads against its depth and its subformulas. Where the net
holds no positions, the formula that is read from it is asked the same questions, and so is the net that is built from
that.

Source: D. Angluin, D. Chiang, A. Yang, "Masked hard-attention transformers recognize exactly the star-free languages",
2023, arXiv 2310.13897 [A]: the equivalence. The construction of nets and the reading of formulas are our own.

Saboteur: No head is told anything about its keys.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from vitrify.certify.evidence import Evidence, combine
from vitrify.certify.formulas import formula_of
from vitrify.claims._nets import examined, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.temporal import temporal
from vitrify.kit import assemble
from vitrify.net.weights import Ledger
from vitrify.spec.ltl import Formula

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
    "a at every even place": "H (MOD(0, 2) -> a)",
}
RANDOM = 8


def subjects() -> Iterator[Subject]:
    """Textbook formulas, soft and hard, and random ones that are not constant."""
    for name, text in TEXTBOOK.items():
        spec = _formula(text)
        yield Subject(name, spec, assemble(temporal(spec)))
        yield Subject(f"{name}, soft", spec, assemble(temporal(spec, attention="softmax")))
    rng, made = random.Random(12), 0
    while made < RANDOM:
        spec = _formula(_drawn(rng, 4))
        said = spec.holds(np.indices((3,) * 6).reshape(6, -1).T)
        if spec.looks and said.any() and not said.all():
            made += 1
            yield Subject(f"random {made}: {spec}", spec, assemble(temporal(spec)))


def _formula(text: str) -> Formula:
    return Formula.from_text(f"alphabet: a b c\nlength: {LENGTH}\n{text}")


def _drawn(rng: random.Random, depth: int) -> str:
    if not depth:
        return rng.choice("abc")
    left, right = _drawn(rng, depth - 1), _drawn(rng, rng.randrange(depth))
    pick = rng.choice(["S", "S", "O", "H", "Y", "&", "|", "->"])
    return f"{pick} ({left})" if pick in ("O", "H", "Y") else f"({left}) {pick} ({right})"


def check(subject: Subject) -> Evidence:
    """Every truth value at every position, sizes, and the way back where there is one."""
    spec, size = subject.spec, Ledger.of(subject.weights)
    layers = spec.depth + ("MOD" in str(spec))
    declared = {"layers beyond the depth": 0, "heads beyond one per look back": 0}
    beyond = (max(size.attention_layers - layers, 0), max(size.heads - spec.looks, 0))
    there = examined(subject, 7, declared, dict(zip(declared, beyond, strict=True)))
    if "MOD" in str(spec) or "Y" in str(spec) or subject.weights.architecture.soft:
        return there
    read = formula_of(subject.weights)
    back = examined(Subject("read", read, subject.weights), 7, {}, {})
    again = examined(Subject("again", spec, assemble(temporal(read))), 7, {}, {})
    return combine({"there": there, "back": back, "there again": again})


def sabotage(subject: Subject) -> Subject:
    """All keys look alike."""
    for block in {head.block for head in subject.weights.labels.heads}:
        subject = zeroed(subject, f"blocks.{block}.attn.W_K", slice(None))
    return subject


CLAIM = Claim(row="R12", status="proved", certified="proved", subjects=subjects, check=check, sabotage=sabotage)
