"""Random n-gram models, and a text corpus that comes with Python: its help texts."""

from __future__ import annotations

import re

import numpy as np

from vitrify.spec.ngrams.model import BEGIN, END, NGramModel

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def random_ngram(words: int, order: int, seed: int, *, listed: float = 0.7) -> NGramModel:
    r"""Return a random back-off model over the first letters of the alphabet; not every context is listed.

    Unigrams are uniform on the simplex. Each listed n-gram of a lower order that does not end in `</s>` becomes a
    context with probability `listed`, lists a random set of words with a random share $m$ of the mass, and backs off
    with $b(h) = (1-m) / (1 - \sum_{w \text{ listed}} p(w|h'))$, which makes the probabilities sum to one; a
    context that lists every word has all the mass.
    """
    rng = np.random.default_rng(seed)
    names = [*LETTERS[:words], END]
    unigram = dict(zip(names, rng.dirichlet(np.ones(len(names))), strict=True))
    ngrams: dict[tuple[str, ...], tuple[float, float]] = {(BEGIN,): (-99.0, 0.0)}
    ngrams |= {(word,): (float(np.log10(p)), 0.0) for word, p in unigram.items()}
    below: dict[tuple[str, ...], dict[str, float]] = {(): unigram}
    contexts: list[tuple[str, ...]] = [(word,) for word in (BEGIN, *names[:-1])]
    for _ in range(order - 1):
        longer: list[tuple[str, ...]] = []
        for context in contexts:
            shorter = next(below[context[at:]] for at in range(1, len(context) + 1) if context[at:] in below)
            chosen = [word for word in names if rng.random() < 0.7] or [names[int(rng.integers(len(names)))]]
            if context is contexts[0]:  # always listed, with a context of the next order, so that the order is reached
                chosen = sorted({*chosen, names[0]}, key=names.index)
            elif rng.random() >= listed:
                continue
            mass = 1.0 if len(chosen) == len(names) else float(rng.uniform(0.3, 0.9))
            share = dict(zip(chosen, mass * rng.dirichlet(np.ones(len(chosen))), strict=True))
            left = 1.0 - sum(shorter[word] for word in chosen)
            backoff = (1.0 - mass) / left if len(chosen) < len(names) else 1.0
            ngrams[context] = (ngrams[context][0], float(np.log10(backoff)))
            ngrams |= {(*context, word): (float(np.log10(p)), 0.0) for word, p in share.items()}
            below[context] = {word: share.get(word, backoff * shorter[word]) for word in names}
            longer += [(*context, word) for word in chosen if word != END]
        contexts = longer
    return NGramModel.from_ngrams(ngrams)


def pydoc_sentences(limit: int | None = None) -> list[list[str]]:
    """Return the sentences of Python's help texts as lower-case words, by default all, else the first `limit`."""
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[name] for name in sorted(topics))
    pieces = (re.findall(r"[a-z]+", piece) for piece in re.split(r"\n\s*\n|[.:;?!]\s", text.lower()))
    return [piece for piece in pieces if piece][:limit]
