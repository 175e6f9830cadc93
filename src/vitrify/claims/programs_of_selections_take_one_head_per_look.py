r"""Programs of selections and aggregations compile to exact transformers, one head for each look elsewhere.

Statement: A program over words to length $N$, made of element-wise functions with finitely many values and of
selections, aggregates, means and widths, is computed without error by a transformer that spends one head on every
part that looks elsewhere.

Why: A conjunction of tests is a sum of scores: BOS, half a unit below the sum, is read where no position passes. The
width of a selection is told by the weight $1/(1+n)$ of BOS when it joins the selected positions. Numbers travel as one
dimension, and ramps between neighbouring values make exact codes of them where a test needs one.

Checked: For each program of the usual library, all words over 3 symbols to length 6 and random words of length 12,
against the interpreter; the number of heads against the number of selections in the program.

Source: G. Weiss, Y. Goldberg, E. Yahav, "Thinking like transformers", 2021, arXiv 2106.06981 [A]: the language; D.
Lindner et al., "Tracr", 2023, arXiv 2301.05062 [A]: the first compiler. The compilation here is our own.

Saboteur: The last head of the net reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import examined, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.program import program_net
from vitrify.kit import assemble
from vitrify.net.weights import Ledger
from vitrify.spec import programs as library
from vitrify.spec.program import Expr, parts
from vitrify.spec.program_file import program

ABC = ("a", "b", "c")
LENGTH = 12
PROGRAMS: dict[str, tuple[Expr, tuple[str, ...], bool]] = {
    "reverse": (library.reverse(), ABC, False),
    "histogram": (library.histogram(), ABC, False),
    "running count": (library.running_count("a"), ABC, True),
    "sort unique": (library.sort_unique(ABC), ABC, False),
    "most frequent": (library.most_frequent(), ABC, False),
    "induction": (library.induction(), ABC, True),
    "balanced brackets": (library.dyck1(), ("(", ")"), True),
    "share of a symbol": (library.fraction_of_previous("a"), ABC, True),
}


def subjects() -> Iterator[Subject]:
    """The usual programs, under soft and hard attention."""
    for name, (root, alphabet, causal) in PROGRAMS.items():
        spec = program(root, alphabet, LENGTH, causal=causal, name=name)
        yield Subject(f"{name}, soft", spec, assemble(program_net(spec)))
        yield Subject(f"{name}, hard", spec, assemble(program_net(spec, attention="hard")))


def check(subject: Subject) -> Evidence:
    """Every value at every position, and one head for each part that looks elsewhere."""
    looks = sum(node.op in ("aggregate", "mean", "width", "first", "last") for node in parts(subject.spec.root))
    return examined(subject, 6, {"heads": looks}, {"heads": Ledger.of(subject.weights).heads})


def sabotage(subject: Subject) -> Subject:
    """A head that always brings nothing."""
    block = max(head.block for head in subject.weights.labels.heads)
    return zeroed(subject, f"blocks.{block}.attn.W_O", slice(None))


CLAIM = Claim(row="R31", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
