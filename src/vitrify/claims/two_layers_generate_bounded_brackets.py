r"""Two attention layers generate brackets of bounded depth in a width that grows like $\log k$; $D + 1$ recognise them.

Statement: for the language of well-nested words over $k$ kinds of brackets, at most $D$ of them open at once, a
transformer of two layers with one head each, $2D$ units and a width of $2\lceil\log_2 k\rceil + \lceil\log_2(D+1)\rceil
+ 5$ (no logarithm below 2) gives exactly the set of brackets that may come next after every beginning; and one of $D +
1$ layers with $2D + 1$ heads and a width that does not depend on $D$ says of every word, whatever it is, whether it is
in the language.
Why: what must close next is the last opening bracket that left as many brackets open as are open now, so one head
counts and one head looks up; and if nearest neighbours without a partner pair up in rounds, a pair with $r - 1$ pairs
inside each other is found in round $r$.
Checked: sets of next brackets after all beginnings to length 5 (2 from 8 kinds on), after every beginning of words in
which each kind waits at each depth through long rows of others, and of random words of full length, for up to 64 kinds,
depth 10 and length 60, under three kinds of attention; the answer on all words to length 8 of two kinds, $D \le 3$, on
words of the language and on such words with one bracket changed, missing or twice, under hard attention; sizes against
the formulas.
Source: Yao et al. 2021, arXiv 2105.11115 [S]; the weights here are our own derivation.
Saboteur: the second layer of the generator looks at depths only, so that closing brackets are taken for opening ones;
the first round of the recogniser sees nothing on the right.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.dyck import dyck, sizes
from vitrify.constructions.dyck_recogniser import dyck_recogniser
from vitrify.constructions.dyck_recogniser import sizes as sizes_of_recogniser
from vitrify.kit import assemble
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Ledger
from vitrify.spec.dyck import Dyck

GENERATORS: tuple[tuple[int, int, int, AttentionKind], ...] = (
    (8, 10, 60, "softmax"),
    (64, 10, 60, "softmax"),
    (2, 3, 60, "sparsemax"),
    (3, 5, 40, "hard"),
)
WORK = 1e9  # multiplications for what is not asked for explicitly


def subjects() -> Iterator[Subject]:
    """Generators of 2 to 64 kinds, and recognisers of depth 1 to 3."""
    for kinds, depth, length, attention in GENERATORS:
        spec = Dyck.of_kinds(kinds, depth, length)
        net = assemble(dyck(spec, attention=attention))
        yield Subject(
            f"generator, {kinds} kinds to depth {depth}, {attention}", spec, net, {"to": 5 if kinds < 8 else 2}
        )
    for depth in (1, 2, 3):
        spec = Dyck.of_kinds(2, depth, 8)
        net = assemble(dyck_recogniser(spec, attention="hard"))
        yield Subject(f"recogniser, 2 kinds to depth {depth}, hard", spec, net, {"to": 8})


def check(subject: Subject) -> Evidence:
    """Sets of next brackets or answers, and sizes."""
    size, net = Ledger.of(subject.weights), subject.weights.architecture
    if net.output.kind == "next":
        promised = sizes(subject.spec, net.blocks[0].heads[0].attention)
    else:
        promised = sizes_of_recogniser(subject.spec)
    evidence = WordExamination(net, subject.spec, max_length=subject.data["to"], work=WORK).run(subject.weights)
    return with_sizes(evidence, promised, {name: getattr(size, name) for name in promised})


def sabotage(subject: Subject) -> Subject:
    """The key of the generator's second layer forgets the step; the right neighbour of round 1 is never seen."""
    if subject.weights.architecture.output.kind == "next":
        step = next(space for space in subject.weights.labels.spaces if space.name == "step")
        return zeroed(subject, "blocks.1.attn.W_K", (0, list(step.dims)))
    return zeroed(subject, "blocks.0.attn.W_O", 1)


CLAIM = Claim(row="R10", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
