r"""A back-off model of real text becomes one layer with one unit per listed context and one weight per listed n-gram.

Statement: For every back-off n-gram model there is a one-layer transformer with one MLP unit per listed context and one
weight into the logits per listed n-gram of order two and more, instead of $\lvert\Sigma\rvert^{n-1}$ units, that gives
the same next-word probabilities.
Why: $\log p(w \mid h)$ telescopes over the suffixes of $h$. Back-off makes each step a sparse row plus a constant, and
the softmax removes constants.
Checked: A model of order 5 estimated from 400 sentences of Python's help texts, under softmax, sparsemax and hard
attention: units and output weights counted on the arrays; next-word probabilities on a random part of the listed
contexts and on random histories, most of them unseen.
Not checked: Larger corpora, strings longer than 64. Histories are sampled in the comparison; only the certificate's
proof is about all of them. The sparsity statement is ours; the theorem in the source is about tables of all
$\lvert\Sigma\rvert^{n-1}$ contexts.
Source: This work; the architecture is that of Svete & Cotterell 2024, arXiv 2404.14994, theorem 3.1 [T].
Saboteur: The unit of the first listed context of one word is removed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from vitrify.claims._figures import dress, show
from vitrify.claims._nets import ATTENTIONS, Claim, Evidence, Subject, Subjects, built, check_net, edited
from vitrify.constructions.catalogue import chosen
from vitrify.net.sparse import nonzeros
from vitrify.spec.ngrams.families import pydoc_sentences
from vitrify.spec.ngrams.model import NGramModel

SENTENCES = 400
WORK = 2e9
TABLE = "blocks.0.mlp.W_out"


def subjects() -> Subjects:
    model = NGramModel.fit(pydoc_sentences(SENTENCES), 5)
    for attention in ATTENTIONS:
        name = f"order 5, {sum(map(len, model.levels)):,} n-grams, {attention}"
        yield built(name, model, "heads", attention=attention, max_length=64)


def check(subject: Subject) -> Evidence:
    arrays = subject.weights.arrays
    most = sum(map(len, subject.spec.levels)) + len(subject.spec.vocabulary)
    output = sum(nonzeros(arrays[name]) for name in (TABLE, "unembed.W_U", "unembed.b_U"))
    limit = f"output weights at most {most:,}"
    declared = {"table weights": sum(map(len, subject.spec.levels[1:])), limit: True}
    measured = {"table weights": nonzeros(arrays[TABLE]), limit: output <= most, "output weights": output}
    return check_net(subject, declared, measured, max_length=1, work=WORK)


sabotage = partial(edited, name="blocks.0.mlp.b_in", index=0, times=0.0, plus=-1e6)  # a context loses its unit


def growth(axes: Any, evidence: Evidence) -> None:
    """Draw the units that the construction declares against the contexts that a model of a corpus lists."""
    for number, order in enumerate((2, 3, 4, 5)):
        models = [NGramModel.fit(pydoc_sentences(count), order) for count in (20, 60, SENTENCES // 2, SENTENCES)]
        listed = [sum(map(len, model.contexts())) for model in models]
        units = [chosen(model, "heads").sizes(model, max_length=64).exact["units"] for model in models]
        axes.plot(listed, units, color=f"C{number}", marker="o", markersize=4, label=f"order {order}, of the formula")
    built_nets = [part.measured("units") for part in evidence.parts.values()]
    axes.plot([listed[-1]] * len(built_nets), built_nets, "x", color="C7", markersize=9, label="measured on nets")
    dress(axes, [], "listed contexts of Python's help texts", "units", "xy")


FIGURE = show(growth)
CLAIM = Claim(
    subjects, check, sabotage, id="R1", standing="theorem", certified="proved", budget_seconds=20, figure=FIGURE
)
