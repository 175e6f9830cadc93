r"""A word-class language takes an embedding of its classes and one hidden unit for each class-level context.

Statement: Let a word-class language be given by finitely many patterns, each a sequence of classes of words. Its
contexts $P_n$ are the last $n-1$ classes before some position of a pattern. A network that embeds each word as the set
of its classes and has $\lvert P_n\rvert$ hidden units returns the exact set of next words after every prefix of a
sentence iff $n \ge n^*$, the smallest window that determines it; for $n < n^*$ it returns a superset. No size depends
on the number of words in a class.
Why: Any word of a class may stand where the class may. So if a context matches the last $n-1$ words, some sentence has
these words there, and the answer is the union of the true sets over all prefixes that end with them. From $n^*$ on
these sets are equal. Words in the same classes have the same embedding.
Checked: Every prefix of every sentence of small languages, at every window from 2 to $n^* + 1$, each language and
window with one of softmax, sparsemax and hard attention. For classes of 1,000 words: sentences in which every word
occurs wherever it may, and 200 random ones; sizes must equal those for classes of 2 words. The rank of the embedding
equals that of the word-by-class matrix, plus one for BOS, and logits are bit-identical when words are replaced by
others in the same classes.
Not checked: Prefixes of all sentences for the large language (sampled), and languages beyond one hand-written and six
random ones. How such a network is learned is part of the paper and not of this claim.
Source: Nandakumar, Mi & Liu 2023, arXiv 2306.17184v1 [A] (v3 under this number is another paper); the weights are our
own derivation.
Saboteur: One context is removed, so legal next words are lost.
"""

from __future__ import annotations

from vitrify.claims._figures import points, show
from vitrify.claims._nets import ATTENTIONS, Claim, Evidence, Subject, Subjects, zeroing
from vitrify.claims._words import check_words, word_subjects
from vitrify.constructions.word_classes import sizes, word_classes
from vitrify.kit import assemble


def subjects() -> Subjects:
    return word_subjects(lambda spec, n, turn: assemble(word_classes(spec, window=n, attention=ATTENTIONS[turn % 3])))


def check(subject: Subject) -> Evidence:
    promised = sizes(subject.spec, window=subject.data["window"]).exact
    counts = {name: promised[name] for name in ("heads", "units")}
    return check_words(subject, 1, {**counts, "embedding": len(subject.spec.members) + 1})


sabotage = zeroing("blocks.0.mlp.W_out", 0)  # the context of the first word is forgotten
FIGURE = show(
    points(
        "window {}",
        {
            "prefixes with a word too many": "prefixes that get a word too many",
            "prefixes that lose a word": "prefixes that lose a next word",
        },
        "window",
        "prefixes",
        only="waking",
    ),
    points("window {}", ("width", "units", "heads"), "window", "size", joined=True, only="waking"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R4", standing="theorem", certified="proved", budget_seconds=60, figure=FIGURE
)
