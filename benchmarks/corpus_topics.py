"""The corpus of the sandbox `corpus`: Python's own help texts, and their topics as scikit-learn's LDA finds them.

The texts are `pydoc_data.topics`, cut into documents of about 150 words where paragraphs end; a paragraph that several
help pages share counts once. Words are those of at least three letters that stand in 5 documents or more and in at most
30 % of them. Of every topic the most frequent words are kept that belong to it with a posterior above 0.8. Needs
scikit-learn (`pip install 'vitrify[digits]'`); another version of Python has other texts.
"""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np

TOPICS, WORDS, SIZE, SURE = 8, 8, 150, 0.8
OUT = Path(__file__).parent.parent / "src" / "vitrify" / "sandboxes" / "corpus.json"


def documents() -> list[str]:
    """The help texts in pieces of about `SIZE` words."""
    from pydoc_data.topics import topics

    seen: set[str] = set()
    found: list[str] = []
    for name in sorted(topics):
        piece: list[str] = []
        for paragraph in re.split(r"\n\s*\n", topics[name]):
            if paragraph in seen:
                continue
            seen.add(paragraph)
            piece += paragraph.split()
            if len(piece) >= SIZE:
                found.append(" ".join(piece))
                piece = []
        if len(piece) >= SIZE // 2:
            found.append(" ".join(piece))
    return found


def fitted() -> dict[str, Any]:
    """The corpus as JSON data: topics with their words, and how often each word stands in each document."""
    import sklearn
    from sklearn.decomposition import LatentDirichletAllocation
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(token_pattern=r"(?u)\b[a-z]{3,}\b", stop_words="english", max_df=0.3, min_df=5)
    counts = counter.fit_transform(documents())
    names = counter.get_feature_names_out()
    model = LatentDirichletAllocation(
        n_components=TOPICS, random_state=0, max_iter=50, doc_topic_prior=0.1, topic_word_prior=0.01
    ).fit(counts)
    laws = model.components_ / model.components_.sum(axis=1, keepdims=True)
    joint = laws * model.transform(counts).mean(axis=0)[:, None]
    posterior = joint / joint.sum(axis=0)  # of the topic, given the word
    often = np.asarray(counts.sum(axis=0)).ravel()
    own = [(posterior.argmax(axis=0) == topic) & (posterior.max(axis=0) > SURE) for topic in range(TOPICS)]
    chosen = [np.argsort(np.where(mask, -often, 1), kind="stable")[:WORDS] for mask in own]
    kept = counts[:, np.concatenate(chosen)].toarray()
    kept = kept[kept.sum(axis=1) > 0]
    return {
        "source": f"pydoc_data.topics of CPython {platform.python_version()}, documents of about {SIZE} words",
        "fitted": f"sklearn.decomposition.LatentDirichletAllocation, scikit-learn {sklearn.__version__}",
        "topics": [[str(names[word]) for word in words] for words in chosen],
        "posterior": [
            [round(float(posterior[topic, word]), 3) for word in words] for topic, words in enumerate(chosen)
        ],
        "documents": [[[int(word), int(row[word])] for word in np.flatnonzero(row)] for row in kept],
    }


if __name__ == "__main__":
    corpus = fitted()
    OUT.write_text(json.dumps(corpus, separators=(",", ":")) + "\n")
    for words in corpus["topics"]:
        print(" ".join(words))
    print(f"{len(corpus['documents'])} documents, {OUT.stat().st_size} bytes -> {OUT}")
