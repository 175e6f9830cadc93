r"""A back-off model of real text becomes one layer with one unit per listed context and one weight per listed n-gram.

Statement: the size of the net for an n-gram model is that of its ARPA file: units = listed contexts, weights into the
logits = listed n-grams of order two and more, and not $|\Sigma|^{n-1}$.
Why: $\log p(w|h)$ telescopes over the suffixes of $h$; back-off makes each step a sparse row plus a constant, and the
softmax removes constants.
Checked: order 5 on a part of Python's help texts, all three kinds of attention: units and output weights counted on the
arrays; next-word probabilities on a random part of the listed contexts and on random histories, most of them unseen.
Source: this work; the shape is that of Svete & Cotterell 2024, arXiv 2404.14994, theorem 3.1 [T].
Saboteur: the unit of the most frequent kind of context, the first bigram context, is removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import ATTENTIONS, with_sizes
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.ngram import ngram, sizes
from vitrify.kit import assemble
from vitrify.net.sparse import nonzeros
from vitrify.net.weights import Ledger
from vitrify.spec.corpora import pydoc_sentences
from vitrify.spec.estimate import estimate

SENTENCES = 400
WORK = 2e9


def subjects() -> Iterator[Subject]:
    """One model, under each kind of attention."""
    model = estimate(pydoc_sentences(SENTENCES), 5)
    for attention in ATTENTIONS:
        weights = assemble(ngram(model, attention=attention, max_length=64))
        yield Subject(f"order 5, {sum(map(len, model.levels)):,} n-grams, {attention}", model, weights)


def check(subject: Subject) -> Evidence:
    """Probabilities, and the size of the table."""
    promised, size, arrays = sizes(subject.spec, "heads"), Ledger.of(subject.weights), subject.weights.arrays
    listed = sum(map(len, subject.spec.levels))
    output = sum(nonzeros(arrays[name]) for name in ("blocks.0.mlp.W_out", "unembed.W_U", "unembed.b_U"))
    limit = f"output weights at most {listed + len(subject.spec.vocabulary):,}"
    declared = {"units": promised["table_units"], "table weights": promised["table_weights"], limit: True}
    measured = {
        "units": size.units,
        "table weights": nonzeros(arrays["blocks.0.mlp.W_out"]),
        limit: output <= listed + len(subject.spec.vocabulary),
        "output weights": output,
    }
    evidence = WordExamination(subject.weights.architecture, subject.spec, max_length=1, work=WORK).run(subject.weights)
    return with_sizes(evidence, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """A listed context loses its unit."""
    bias = subject.weights.arrays["blocks.0.mlp.b_in"].copy()
    bias[0] = -1e6
    return replace(subject, weights=subject.weights.with_array("blocks.0.mlp.b_in", bias))


CLAIM = Claim(row="R1", status="proved", certified="proved", subjects=subjects, check=check, sabotage=sabotage)
