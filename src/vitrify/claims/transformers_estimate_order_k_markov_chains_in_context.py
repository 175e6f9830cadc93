r"""Two attention layers estimate an order-$k$ Markov chain in context, with $k$ heads in the first layer, or just one.

Statement: For every order $k$, alphabet of $S$ symbols and length $T$, the empirical distribution of the symbols that
followed earlier occurrences of the last $k$ symbols (uniform if there are none) is the output, up to a declared error,
of (a) a transformer with $k$ heads in its first layer and one in its second, (b) one with three layers of one head and
layer norm, (c) one with two layers of one head and an MLP.
Why: A head that gives equal weight to all positions whose $k$ previous symbols match counts and divides at once. The
previous symbols come from $k$ heads in (a), else as one weighted mean. In (c) ReLU units read them as its digits. In
(b) norms make the means of two positions unit vectors, and these are compared.
Checked: $(k, S, T)$ = (1, 3, 40), (2, 3, 60), (3, 2, 60), (5, 2, 40), each of the three constructions, each net with
softmax or sparsemax, (a) also under hard attention for $k = 2$: all words up to length 8 (7 over three symbols), words
over few of the symbols, every prefix of random words of length $T$, against counts by definition, within the error that
the net declares (for (b) it grows like $4^k$). Layers, heads, width and units are compared with the formulas.
Not checked: Larger $k$, $S$ and $T$, and that one layer does not suffice. The papers' estimators are smoothed, or
approximate for finite attention scale.
Source: Rajaraman et al. 2024, arXiv 2407.17686 [A] ($k$ heads; three layers with norm); Ekbote et al. 2025, arXiv
2508.07208 [A] (two layers, one head); Nichani et al. 2024, arXiv 2402.14735 [A]. The weights, and digits instead of a
norm in (c), are our own derivation.
Saboteur: The norms are removed where there are any; otherwise the output of the first layer is zero.
"""

from __future__ import annotations

from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, built, check_net, without_norms, zeroed
from vitrify.net.transformer import AttentionKind
from vitrify.spec.tasks.estimate import Estimate

SHAPES = ("estimate-heads", "estimate-norm", "estimate-digits")
TASKS = (Estimate(1, 3, 40), Estimate(2, 3, 60), Estimate(3, 2, 60), Estimate(5, 2, 40))
KINDS: tuple[AttentionKind, ...] = ("softmax", "sparsemax")


def subjects() -> Subjects:
    for number, task in enumerate(TASKS):
        for offset, shape in enumerate(SHAPES):
            kind = KINDS[(number + offset) % 2]
            for attention in (kind, "hard") if shape == "estimate-heads" and number == 1 else (kind,):
                name = f"order {task.order} over {task.symbols} symbols, {shape}, {attention}"
                yield built(name, task, shape, attention=attention)


def check(subject: Subject) -> Evidence:
    return check_net(subject, max_length=8 if subject.spec.symbols < 3 else 7)


def sabotage(subject: Subject) -> Subject:
    normed = subject.weights.architecture.norm
    return without_norms(subject) if normed else zeroed(subject, "blocks.0.attn.W_O")


CLAIM = Claim(subjects, check, sabotage, id="R21", standing="theorem", certified="sampled", budget_seconds=60)
