r"""C-RASP programs run on softmax transformers, one attention layer per nested count.

Statement: a program of letters, positions modulo a number, Boolean connectives, counts of positions up to each one,
sums, constant multiples, minima, maxima, conditionals and comparisons of counts runs without error, for words to
length $N$, on as many attention layers as counts are nested, with one head for each different count.
Why: counts are exact under uniform attention; everything else is units, because every number is whole and bounded.
Heads of one nesting wait for each other, so that they share a layer.
Checked: 24 random programs whose counts decide, nested up to three deep, over 2 or 3 letters: all words to length 8,
words $x^n y^n$ and of one letter, every prefix of random words of length 20, against running sums; attention layers
and heads against the nesting and the number of counts.
Source: A. Yang and D. Chiang, "Counting like transformers", 2024, arXiv 2404.04393 [S]; for words of any length the
paper uses layer norm, which `counting_programs_run_at_any_length_by_layer_norm` is about. The weights are our own
derivation.
Saboteur: no head brings anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import examined, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.counting import counting
from vitrify.kit import assemble
from vitrify.net.weights import Ledger
from vitrify.spec.counting_languages import random_counting

LENGTH, PROGRAMS = 20, 24


def subjects() -> Iterator[Subject]:
    """Random programs under softmax."""
    for seed in range(PROGRAMS):
        spec = random_counting(seed, alphabet="abc"[: 2 + seed % 2], length=LENGTH)
        yield Subject(f"program {seed}, nesting {spec.depth}", spec, assemble(counting(spec)))


def check(subject: Subject) -> Evidence:
    """Truth values, and sizes."""
    size = Ledger.of(subject.weights)
    return examined(
        subject,
        8,
        {"attention_layers": subject.spec.depth, "heads": subject.spec.counts},
        {"attention_layers": size.attention_layers, "heads": size.heads},
    )


def sabotage(subject: Subject) -> Subject:
    """No head brings anything: only the letter and its place are left."""
    for block in sorted({head.block for head in subject.weights.labels.heads}):
        subject = zeroed(subject, f"blocks.{block}.attn.W_O", slice(None))
    return subject


CLAIM = Claim(row="R13", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
