r"""PARITY runs on two softmax layers with margin $\Theta(n^{-2})$, or on one layer with a counter of bounded length.

Statement: (a) There is one network with two softmax layers, three heads and three units, in which only the position
table depends on $n$, that decides whether a word of $n$ letters has an odd number of ones, with margin $2\tanh(c)/N^2$
for even $N = n + 1$ (times $(1 \pm 1/N)/(1 - \tanh^2(c)/N^2)$ for odd $N$), where $\pm c$ are the scores by which the
two heads of the second layer prefer odd and even positions. (b) For every $T$ one layer with one head and $2T$ units
decides it on all words to length $T$ with margin 1.
Why: (a) A uniform layer computes $k/N$, three units mark position $k$ with $1/N$, and two heads that prefer odd and
even positions average the mark. (b) A head with a sink counts exactly and units look the parity up. Neither contradicts
that one layer of fixed size and weights cannot do PARITY at all lengths: (a) has two layers and a vanishing margin, (b)
has units and weights that grow with $T$.
Checked: (a) All words to $n = 9$ and random words of both parities, about half of them ones, 500 at $n = 50$ and $101$
and 2 at $n = 1000$ and $10^4$, with $c = 1$: the sign, and the margin against the law within 2 %; all arrays but the
position table equal those for $n = 1$. (b) $T = 100$: every prefix of the 101 words $1^k 0^{100-k}$: the least margin
is 1; units and largest weight equal $2T$ and $2T - \tfrac12$. Certificates are of the net for $n = 9$ and of the
counter.
Not checked: (a) for all $n$, and all words for $n > 9$. (b) on words in which ones do not come first (the state depends
on their number only). The variant with layer norm and a constant margin, which the source also gives.
Source: Chiang & Cholak 2022, arXiv 2202.12172 [T] for (a); modular counters of Liu et al. 2023, arXiv 2210.10749 [S]
for (b); one layer never suffices: Kozachinskiy, Steifer & Wałęga 2026, arXiv 2602.05896 [A].
Saboteur: (a) One of the two heads prefers no position. (b) The sink is removed, so that the head gives means.
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.claims._figures import curves, show
from vitrify.claims._nets import CaseKind, Domain, Evidence, Method, Quantity, quantities, sized, witnessed, zeroed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.commutative import commutative
from vitrify.constructions.parity import margin, parity
from vitrify.kit import assemble
from vitrify.net.inference import batch_logits
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic

C = 1.0
SHORT = 9  # all words up to here
LONG = (50, 101, 1000, 10_000)
MIDDLE, SAMPLES = 101, 500  # letters, and random words of each length up to here; of longer ones, 2
WITHIN = 0.02  # the law must be met to this share
QUERIES = 64  # that attend at once: what fits a cache
COUNTED = 100  # the length for which the counter is built


def subjects() -> Subjects:
    counter = assemble(commutative(cyclic(2), max_length=COUNTED))
    yield Subject(f"(b) counter to length {COUNTED}", cyclic(2), counter)
    nets = {length: assemble(parity(cyclic(2), C, max_length=length)) for length in (*range(1, SHORT + 1), *LONG)}
    yield Subject("(a) two layers", cyclic(2), nets[SHORT], {"nets": nets})


def check(subject: Subject) -> Evidence:
    return _two_layers(subject) if subject.data else _counter(subject)


def words_of(length: int) -> Ints:
    """Return all short words [word, letter]; of long ones random ones of both parities. The second letter counts."""
    if length <= SHORT:
        return 1 + np.indices((2,) * length).reshape(length, -1).T
    rng, count = np.random.default_rng(length), SAMPLES if length <= MIDDLE else 2
    ones = length // 2 + np.arange(count) % 2
    return np.stack([rng.permutation(np.where(np.arange(length) < number, 2, 1)) for number in ones.tolist()])


def _margins(weights: Weights, words: Ints) -> Floats:
    """Return the margins of the right answers at the ends of words of one length."""
    tokens, net = np.pad(words, ((0, 0), (1, 0))), weights.architecture
    parts = [tokens] if words.shape[1] <= MIDDLE else np.split(tokens, len(tokens))
    logits = np.concatenate([net.forward(weights.prepared, part, query_chunk=QUERIES)[:, -1] for part in parts])
    return np.asarray((logits[:, 1] - logits[:, 0]) * np.where((words == 2).sum(axis=1) % 2, 1.0, -1.0))


def _two_layers(subject: Subject) -> Evidence:
    nets: dict[int, Weights] = subject.data["nets"]
    margins: dict[str, object] = {}
    cases, worst = 0, 0.0
    witness: dict[str, object] | None = None
    changed = set()
    for length, weights in nets.items():
        same = {name: np.array_equal(array, nets[1].arrays[name]) for name, array in weights.arrays.items()}
        changed |= {name for name in same if not same[name]}
        least = np.inf
        words = words_of(length)
        for measured, ones in zip(_margins(weights, words).tolist(), (words == 2).sum(axis=1).tolist(), strict=True):
            law = margin(length, C, ones)
            cases, least, worst = cases + 1, min(least, measured), max(worst, abs(measured / law - 1))
            if worst > WITHIN:
                witness = {"letters": length, "ones": ones, "expected": law, "actual": measured}
                break
        if witness:
            break
        margins |= {f"margin at n = {length}": least} if length >= SHORT else {}
    if not witness and changed != {"pos_embed.W_pos"}:
        witness = {"expected": "the same arrays for every length", "actual": sorted(changed)}
    names = sorted(name.rpartition(".")[2] for name in changed)
    short = Domain(CaseKind.WORDS, Method.EXHAUSTIVE, sum(2**n for n in nets if n <= SHORT), min(nets), SHORT)
    drawn = sum(len(words_of(n)) for n in LONG)
    long = Domain(CaseKind.RANDOM_WORDS, Method.SAMPLED, drawn, min(LONG), max(LONG), settings={"lengths": LONG})
    distance = Quantity("largest distance from the law", worst, WITHIN, "<=")
    arrays = quantities({"arrays that depend on n": ["W_pos"]}, {"arrays that depend on n": names, **margins})
    return witnessed(witness, cases, short, long, seed=0).adding(distance, *arrays)


def _counter(subject: Subject) -> Evidence:
    weights = subject.weights
    words = 1 + np.tri(COUNTED + 1, COUNTED, -1, dtype=np.int64)  # 0 to T ones, then zeros
    logits = batch_logits(weights, np.pad(words, ((0, 0), (1, 0))))
    odd = np.pad(np.cumsum(words == 2, axis=1) % 2, ((0, 0), (1, 0)))
    margins = (logits[..., 1] - logits[..., 0]) * np.where(odd, 1.0, -1.0)
    declared = {"margin": 1.0, "layers": 1, "units": 2 * COUNTED, "largest weight": 2 * COUNTED - 0.5}
    measured = {"margin": round(float(margins.min()), 9), "largest weight": weights.sizes.max_abs}
    kind = "beginnings of words that have any number of ones first"
    evidence = Evidence("holds", margins.size, (Domain(kind, Method.EXHAUSTIVE, margins.size, 0, COUNTED),))
    return evidence.adding(*sized(subject, declared, measured))


def sabotage(subject: Subject) -> Subject:
    if not subject.data:
        return zeroed(subject, "pos_embed.W_pos")
    nets = {
        length: zeroed(Subject("", weights=net), "blocks.1.attn.W_K", 0).weights
        for length, net in subject.data["nets"].items()
    }
    return Subject(subject.name, weights=nets[SHORT], data={"nets": nets})


FIGURE = show(
    curves("margin at n = {}", None, "length n", "least margin of two layers", "xy", laws={"1/n²": lambda n: 1 / n**2})
)
CLAIM = Claim(
    subjects, check, sabotage, id="R11", standing="theorem", certified="proved", budget_seconds=20, figure=FIGURE
)
