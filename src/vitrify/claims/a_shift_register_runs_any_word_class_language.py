r"""A linear recurrence with a nilpotent transition and one hidden unit per context runs any word-class language.

Statement: a state space model $h_t = h_{t-1} A + x_t B$ whose state is a shift register of $n-1$ class vectors,
$A^{n-1} = 0$, followed by one hidden unit for each of the contexts $P_n$, gives the exact set of next words after every
beginning of a sentence iff $n \ge n^*$; below, it only ever allows too much. The state has $(n-1)\lvert C\rvert$
numbers (no more than the longest sentence fills), and no size depends on how many words a class has.
Why: $A$ moves each block of the state one place on and drops the oldest, so the state is the window itself; on it stand
the same rules as in the feed-forward net. All numbers are whole or halves: nothing is rounded.
Checked: every beginning of every sentence for small languages, at every window from 2 to $n^* + 1$; sampled sentences
that have every word at every place for classes of 1,000 words, whose sizes and rank must be those of classes of 2
words; powers of $A$ multiplied out; logits stay bit-identical when what stands before the last $n-1$ words is
exchanged, and when words are swapped for others in the same classes.
Source: Nandakumar, Qu, Mi & Liu 2025, *State space models can express n-gram languages*, TMLR, arXiv 2306.17184v3 [A]
(v1 under this number is another paper), one hidden unit per n-gram rule [S]; the weights here are our own derivation.
Saboteur: what falls out of the oldest block comes back into the newest, so that nothing is ever forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._words import check_words, word_subjects
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.word_register import sizes, word_register
from vitrify.net.recurrent import Recurrent
from vitrify.net.run import logits
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.patterns import WordPatterns

TRANSITION = "blocks.0.rec.W_A"
WINDOWS = 200  # random windows on which the net's memory is tried


def subjects() -> Iterator[Subject]:
    """Recurrent nets."""
    return word_subjects(lambda spec, n, _: word_register(spec, window=n))


def check(subject: Subject) -> Evidence:
    """Missing and superfluous words, sizes, what the embedding keeps of a word, and how far back the state reaches."""
    n, weights = subject.data["window"], subject.weights
    promised = sizes(subject.spec, n)
    declared = {
        "units": promised["units"],
        "embedding": promised["embedding"],
        "width": promised["state"],
        "ones in the transition": promised["transition"],
        "entries of A^(n-1)": 0,
        "logits that words before the window move": 0,
    }
    transition = dense(weights.arrays[TRANSITION])
    measured = {
        "ones in the transition": int(np.count_nonzero(transition == 1.0)),
        "entries of A^(n-1)": int(np.count_nonzero(np.linalg.matrix_power(transition, n - 1))),
        "logits that words before the window move": _remembered(subject.spec, weights, n),
    }
    return check_words(subject, 0, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The register is closed to a ring."""
    array = dense(subject.weights.arrays[TRANSITION]).copy()
    size = subject.weights.architecture.d_embed
    array[-size:, :size] = np.eye(size)
    return replace(subject, weights=subject.weights.with_array(TRANSITION, array))


def _remembered(spec: WordPatterns, weights: Weights[Recurrent], n: int) -> int:
    """Logits after beginnings of sentences that change when the words before the last n - 1 are others."""
    rng, ids = np.random.default_rng(0), weights.architecture.input_ids
    windows = []
    for _ in range(WINDOWS):
        sentence = spec.draw(rng)
        beginning = [ids[word] for word in sentence[: rng.integers(1, len(sentence) + 1)]]
        windows.append([*rng.integers(1, len(ids) + 1, size=n).tolist(), *beginning][1 - n :])
    runs = [[rng.integers(1, len(ids) + 1, size=n).tolist() + window for window in windows] for _ in range(2)]
    one, two = (np.stack([rows[-1] for rows in logits(weights, run)]) for run in runs)
    return int((one != two).sum())


CLAIM = Claim(row="R4", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
