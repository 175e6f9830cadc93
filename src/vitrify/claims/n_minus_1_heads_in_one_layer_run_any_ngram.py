r"""One layer of $n-1$ heads runs any n-gram language model, with hard, sparse or soft attention.

Statement: For every n-gram language model $p$ over an alphabet $\Sigma$ there is a transformer with one layer and $n-1$
heads that is weakly equivalent to it: $q(y) = p(y)$ for every string $y \in \Sigma^*$.
Why: Head $i$ copies the symbol $i$ positions back into a slot. The MLP has one unit per listed context, active when the
slots hold that context. The unembedding adds up what each suffix of the history contributes to the log-probability.
Checked: Random models with $(\lvert\Sigma\rvert, n)$ = (2, 2), (3, 3) and (4, 4), each under softmax, sparsemax and
hard attention. Next-symbol probabilities are compared at every prefix of all strings to length 8 and of random strings
of length 24. Heads, layers, units (one per listed context) and output weights are compared with the formulas.
Not checked: Strings longer than the maximum length 24 for which the nets are built, larger alphabets, and the paper's
own weights: the position code and the table here are ours. The paper's theorems are for hard (3.1) and sparse (4.1)
attention in real arithmetic; softmax is not in the paper and agrees here within 1e-9.
Source: Svete & Cotterell 2024, arXiv 2404.14994, theorems 3.1 and 4.1 [T].
Saboteur: The head that attends furthest back copies nothing.
"""

from __future__ import annotations

from functools import partial

from vitrify.claims._nets import Claim, check_ngram, ngram_subjects, zeroing

subjects = partial(ngram_subjects, "heads")
sabotage = zeroing("blocks.0.attn.W_V", -1)  # of the head that looks furthest back
CLAIM = Claim(subjects, check_ngram, sabotage, id="R1", standing="theorem", certified="proved", budget_seconds=60)
