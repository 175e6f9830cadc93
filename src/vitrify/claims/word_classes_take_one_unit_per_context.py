r"""A word-class language takes an embedding of its classes and one hidden unit for each class-level context.

Statement: a network that embeds a word as the set of its classes and has one hidden unit for each of the contexts $P_n$
(the last $n-1$ classes before some place of a pattern) gives the exact set of next words after every beginning of a
sentence iff $n \ge n^*$; below, it only ever allows too much; none of its sizes depends on how many words a class has.
Why: every context that matches a window is realised by a sentence with these words, so the answer is the union of the
true ones over all beginnings with that window, and these are equal from $n^*$ on; words in the same classes are the
same vector.
Checked: every beginning of every sentence for small languages, at every window from 2 to $n^* + 1$ and under every kind
of attention; sampled sentences that have every word at every place for classes of 1,000 words, whose sizes must be
those of classes of 2 words. The two halves have different roles: the embedding has the rank of the matrix of words and
classes (and one for the beginning), whatever the sizes of the classes, and logits stay bit-identical when words are
swapped for others in the same classes.
Source: Nandakumar, Mi & Liu 2023, *Why can neural language models solve next-word prediction?*, arXiv 2306.17184v1 [A]
(v3 under this number is another paper); the weights here are our own derivation.
Saboteur: one context is forgotten, so legal words are lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import ATTENTIONS, zeroed
from vitrify.claims._words import check_words, word_subjects
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.word_classes import sizes, word_classes
from vitrify.kit import assemble
from vitrify.net.weights import Weights
from vitrify.spec.patterns import WordPatterns


def subjects() -> Iterator[Subject]:
    """Transformers, with the kinds of attention in turn."""

    def build(spec: WordPatterns, n: int, turn: int) -> Weights:
        return assemble(word_classes(spec, window=n, attention=ATTENTIONS[turn % 3]))

    return word_subjects(build)


def check(subject: Subject) -> Evidence:
    """Missing and superfluous words, sizes, and what the embedding keeps of a word."""
    promised = sizes(subject.spec, subject.data["window"])
    return check_words(subject, 1, {name: promised[name] for name in ("heads", "units", "embedding")})


def sabotage(subject: Subject) -> Subject:
    """The context of the first word is forgotten."""
    return zeroed(subject, "blocks.0.mlp.W_out", 0)


CLAIM = Claim(row="R4", status="proved", certified="proved", subjects=subjects, check=check, sabotage=sabotage)
