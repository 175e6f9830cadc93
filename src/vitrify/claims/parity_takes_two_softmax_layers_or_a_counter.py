r"""PARITY runs on two softmax layers with a margin that falls like $n^{-2}$, or on one layer with a bounded counter.

Statement: (a) one net of two softmax layers, three heads and three units, in which only the table of positions depends
on $n$, says whether a word of $n$ letters has an odd number of ones, and the right answer leads by $2\tanh(c)/N^2$ for
even $N = n + 1$ (by the same times $(1 \pm 1/N)/(1 - \tanh^2(c)/N^2)$ for odd $N$). (b) One layer of one head and $2T$
units does the same for all words to length $T$, and the right answer leads by 1 at every length.
Why: (a) a uniform layer tells everybody $k/N$, three units mark position $k$ with $1/N$, and two heads that prefer odd
and even positions average the mark; (b) a head with a sink counts exactly, and units look the parity of the count up.
That one layer never does PARITY is no contradiction to either. It is said of one layer whose size and weights do not
grow with $n$, and it rests on how little a softmax over $n$ keys moves when one letter changes. (a) has two layers, and
pays with a margin that vanishes. (b) has one layer, but not one net for all lengths: its units ($2T$) and its largest
weights (about $2T$) grow with the length for which it is built, and beyond that length it says nothing.
Checked: (a) all words to $n = 9$, random words of both parities to $n = 10^4$: the sign, and the lead against the law
within 2 %; all arrays but the table of positions against those for $n = 1$. (b) every beginning of words of 100 letters
that have 0 to 100 ones first: the least lead; units and the largest weight against $2T$ and $2T - \tfrac12$.
Source: Chiang & Cholak 2022, arXiv 2202.12172 [T] for (a); modular counters of Liu et al. 2023, arXiv 2210.10749 [S]
for (b); one layer never suffices: Kozachinskiy, Steifer & Wałęga 2026, arXiv 2602.05896 [A].
Saboteur: (a) one of the two heads prefers no position; (b) the sink is gone, so that the head gives means.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.commutative import commutative
from vitrify.constructions.parity import lead, parity
from vitrify.kit import assemble
from vitrify.net.run import batch_logits
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.automata import cyclic

C = 1.0
SHORT = 9  # all words up to here
LONG = (50, 101, 1000, 10_000)
WITHIN = 0.02  # the law must be met to this share
QUERIES = 64  # that attend at once: what fits a cache
COUNTED = 100  # the length for which the counter is built


def subjects() -> Iterator[Subject]:
    """The counter, and the two-layer nets by length."""
    counter = assemble(commutative(cyclic(2), max_length=COUNTED))
    yield Subject(f"(b) counter to length {COUNTED}", cyclic(2), counter)
    nets = {length: assemble(parity(cyclic(2), length, C)) for length in (*range(1, SHORT + 1), *LONG)}
    yield Subject("(a) two layers", cyclic(2), nets[SHORT], {"nets": nets})


def check(subject: Subject) -> Evidence:
    """The margins of either net."""
    return _two_layers(subject) if subject.data else _counter(subject)


def words_of(length: int) -> Iterator[list[int]]:
    """All short words; of long ones a random one of each parity. Letters are 1 and 2, the second counts."""
    if length <= SHORT:
        yield from map(list, product((1, 2), repeat=length))
        return
    rng = np.random.default_rng(length)
    for ones in (length // 2, length // 2 + 1):
        yield rng.permutation([2] * ones + [1] * (length - ones)).tolist()


def _lead(weights: Weights, word: list[int]) -> float:
    """How far the right answer leads at the end of a word."""
    tokens = np.array([[0, *word]])
    found = weights.architecture.forward(weights.prepared, tokens, query_chunk=QUERIES)[0, -1]
    ahead = float(found[1] - found[0])
    return ahead if word.count(2) % 2 else -ahead


def _two_layers(subject: Subject) -> Evidence:
    nets: dict[int, Weights] = subject.data["nets"]
    declared: dict[str, object] = {"largest distance from the law": WITHIN, "arrays that depend on n": ["W_pos"]}
    margins: dict[str, object] = {}
    cases, worst = 0, 0.0
    witness: dict[str, object] | None = None
    changed = set()
    for length, weights in nets.items():
        same = {name: np.array_equal(array, nets[1].arrays[name]) for name, array in weights.arrays.items()}
        changed |= {name for name in same if not same[name]}
        least = np.inf
        for word in words_of(length):
            found, wanted = _lead(weights, word), lead(length, C, word.count(2))
            cases, least, worst = cases + 1, min(least, found), max(worst, abs(found / wanted - 1))
            if worst > WITHIN:
                witness = {"letters": length, "ones": word.count(2), "expected": wanted, "found": found}
                break
        if witness:
            break
        margins |= {f"margin at n = {length}": least} if length >= SHORT else {}
    if not witness and changed != {"pos_embed.W_pos"}:
        witness = {"expected": "the same arrays for every length", "found": sorted(changed)}
    names = sorted(name.rpartition(".")[2] for name in changed)
    measured: dict[str, object] = {"largest distance from the law": worst, "arrays that depend on n": names, **margins}
    return Evidence(
        verdict="fails" if witness else "holds",
        method="exhaustive+sampled",
        domain=f"all words to length {SHORT}; random words of length {', '.join(map(str, LONG))}",
        cases=cases,
        witness=witness,
        declared=declared,
        measured=measured,
        seed=0,
    )


def _counter(subject: Subject) -> Evidence:
    weights, size = subject.weights, Ledger.of(subject.weights)
    words = 1 + np.tri(COUNTED + 1, COUNTED, -1, dtype=np.int64)  # 0 to T ones, then zeros
    found = batch_logits(weights, np.pad(words, ((0, 0), (1, 0))))
    odd = np.pad(np.cumsum(words == 2, axis=1) % 2, ((0, 0), (1, 0)))
    leads = (found[..., 1] - found[..., 0]) * np.where(odd, 1.0, -1.0)
    declared = {"margin": 1.0, "layers": 1, "units": 2 * COUNTED, "largest weight": 2 * COUNTED - 0.5}
    measured = {
        "margin": round(float(leads.min()), 9),
        "layers": size.layers,
        "units": size.units,
        "largest weight": size.max_abs,
    }
    wrong = {name: (declared[name], measured[name]) for name in declared if declared[name] != measured[name]}
    return Evidence(
        verdict="fails" if wrong else "holds",
        method="exhaustive",
        domain=f"every beginning of words of length {COUNTED} that have any number of ones first",
        cases=leads.size,
        witness={name: f"declared {a}, measured {b}" for name, (a, b) in wrong.items()} or None,
        declared=declared,
        measured=measured,
    )


def sabotage(subject: Subject) -> Subject:
    """One of the two heads prefers no position; the counter has no sink."""
    if not subject.data:
        return zeroed(subject, "pos_embed.W_pos", slice(None))
    nets = {
        length: zeroed(Subject("", weights=net), "blocks.1.attn.W_K", 0).weights
        for length, net in subject.data["nets"].items()
    }
    return Subject(subject.name, weights=nets[SHORT], data={"nets": nets})


CLAIM = Claim(row="R11", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
