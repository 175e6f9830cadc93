r"""A linear recurrence with a nilpotent transition and one hidden unit per context runs any word-class language.

Statement: Let sentences be given by finitely many patterns, each a sequence of word classes from $C$, and $P_n$ be the
contexts: the last $n-1$ classes before some position of a pattern. A state space model $h_t = h_{t-1} A + x_t B$ reads
class vectors $x_t$; its state is a shift register of $n-1$ of them, of dimension $(n-1)\lvert C\rvert$ (less if
sentences are shorter), and $A^{n-1} = 0$. Followed by an MLP of $\lvert P_n\rvert$ units, it returns the exact set of
next words after every prefix of a sentence iff $n \ge n^*$, the smallest window that determines it, and otherwise a
superset. Only embedding and unembedding grow with the number of words in a class.
Why: $A$ moves each block of the state on by one and drops the oldest, so the state is the window itself. All numbers
are multiples of ½: nothing is rounded.
Checked: Every prefix of every sentence of small languages, at every window from 2 to $n^* + 1$. For classes of 1,000
words: sentences in which every word occurs wherever it may, and 200 random ones; the net's sizes and the rank of its
embedding must equal those for classes of 2 words. Powers of $A$ are multiplied out. Logits are bit-identical when the
words before the last $n-1$ are replaced, and when words are replaced by others of the same classes.
Not checked: All sentences of the large language, languages beyond one hand-written and six random ones, and what the
source says about learning.
Source: Nandakumar, Qu, Mi & Liu 2025, TMLR, arXiv 2306.17184v3 [A] (v1 under this number is another paper), one hidden
unit per n-gram rule [S]; the weights are our own derivation.
Saboteur: The oldest block is fed back into the newest, so that nothing is ever forgotten.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.claims._figures import points, show
from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, Weights
from vitrify.claims._words import check_words, word_subjects
from vitrify.constructions.word_register import count_shifts, sizes, word_register
from vitrify.net.inference import logits
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense
from vitrify.spec.languages.word_patterns import WordPatterns

TRANSITION = "blocks.0.rec.W_A"
WINDOWS = 200  # random windows on which the net's memory is tried


def subjects() -> Subjects:
    return word_subjects(lambda spec, n, _: word_register(spec, window=n))


def check(subject: Subject) -> Evidence:
    n, weights = subject.data["window"], subject.weights
    promised = sizes(subject.spec, window=n).exact
    declared = {
        "units": promised["units"],
        "embedding": len(subject.spec.members),
        "width": promised["d_model"],
        "ones in the transition": count_shifts(subject.spec, n),
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
    array, size = dense(subject.weights.arrays[TRANSITION]).copy(), subject.weights.architecture.d_embed
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
    points("window {}", ("width", "units"), "window", "size", joined=True, only="waking"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R4", standing="theorem", certified="proved", budget_seconds=60, figure=FIGURE
)
