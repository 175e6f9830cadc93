r"""A one-layer chain of thought with fewer steps than hops writes the same for functions that lead to different ends.

Statement: One layer with $H$ heads, $d$ dimensions and $p$-bit numbers that writes a chain of thought needs
$\Omega(\sqrt{n/(Hdp)})$ steps to follow pointers through functions $f, g$ of $n$ elements as many times. Two parties,
one knowing $f$, the other $g$, run $s$ steps by exchanging $s(H(d+1)(p + \lceil\log_2 n\rceil) + \lceil\log_2 n\rceil)$
bits; if all of them are equal for $f$ and $f'$, so is everything that the network writes.
Why: Each step adds up entries of $f$ for one query, so its sums tell little about $f$. Pointers that are not read may
lead anywhere.
Checked: Chains of one head that look up one pointer per step ($n = 4, 8, 16$; 2 and 4 hops): with one step less, or
with values of one binary digit less. For each of four $g$ and starts, two functions with equal messages are found whose
right answers differ; two parties who run the chain send the same, and the bits are counted. With all steps and digits
no such pair is found: among all 256 functions for $n = 4$, among 4,096 random ones for $n = 8, 16$; answers are right
on 64 random functions. At $n = 16$ and 2 hops its transcript has 44 bits, fewer than the 64 of $f$: functions with
equal transcripts exist and are found, but they lead to the same end.
Not checked: The lower bound; it is a rate with an unknown constant, and its proof bounds the rounds of pointer chasing.
That the transcript has fewer bits than $f$ refutes nothing, as the last network shows. Other networks than look-ups.
Source: Peng, Narayanan & Papadimitriou 2024, arXiv 2402.08164, theorem 2 [S]; networks and search are our own.
Saboteur: The chain with all its steps and digits takes the place of one that lacks some, and a chain with one step less
that of the complete one.
"""

from __future__ import annotations

import numpy as np

from vitrify.bounds.chased import ChainSearch, followed, lookup_chain, refute_chain
from vitrify.bounds.games import composition_game
from vitrify.bounds.protocols import ChainOfThought
from vitrify.claims._figures import named, points, show
from vitrify.claims._nets import Claim, Domain, Evidence, Method, Subject, Subjects, quantities, witnessed

LACKING = ((4, 4, 3, 0), (16, 2, 1, 0), (16, 4, 3, 0), (8, 2, 2, 1), (16, 4, 4, 1))  # n, hops, steps, digits dropped
COMPLETE = ((4, 4), (8, 4), (16, 2))  # n, hops
QUESTIONS = 4  # pairs of g and a start
TRIES = 4096


def subjects() -> Subjects:
    for n, hops, steps, dropped in LACKING:
        lacks = f"{hops - steps} step less" if steps < hops else f"{dropped} digit less"
        chain = lookup_chain(n, steps, _bits(n) - dropped, dropped)
        yield Subject(f"{hops} hops, n = {n}, {lacks}", data={"chain": chain, "hops": hops, "lacks": True})
    for n, hops in COMPLETE:
        data = {"chain": lookup_chain(n, hops, _bits(n)), "hops": hops, "lacks": False}
        yield Subject(f"{hops} hops, n = {n}, complete", data=data)


def _bits(n: int) -> int:
    """Return the bits of signed numbers that hold all elements."""
    return (n - 1).bit_length() + 1


def check(subject: Subject) -> Evidence:
    chain, hops, lacks = (subject.data[name] for name in ("chain", "hops", "lacks"))
    rng = np.random.default_rng(0)
    questions = [(rng.permutation(chain.n).tolist(), int(rng.integers(chain.n))) for _ in range(QUESTIONS)]
    searches = [refute_chain(chain, hops, g, x, TRIES) for g, x in questions]
    cases = sum(search.tries for search in searches)
    method = Method.EXHAUSTIVE if composition_game(chain.n).inputs <= TRIES and not lacks else Method.SAMPLED
    domain = Domain("functions f", method, cases, settings={"n": chain.n, "hops": hops, "steps": len(chain.layers)})
    confirmed = [_confirmed(chain, hops, g, x, search) for (g, x), search in zip(questions, searches, strict=True)]
    declared: dict[str, object] = {
        "questions with two functions of one transcript and different right answers": QUESTIONS if lacks else 0,
        "bits of a transcript": _declared_bits(chain),
        "questions with two functions of one transcript": QUESTIONS,
    }
    measured: dict[str, object] = {
        "questions with two functions of one transcript and different right answers": sum(confirmed),
        "bits of a transcript": chain.bits,
        "questions with two functions of one transcript": sum(search.alike is not None for search in searches),
        "bits of f": searches[0].needed,
    }
    if not lacks:
        declared["wrong answers"], measured["wrong answers"] = 0, _wrong(chain, hops, *questions[0])
    return witnessed(None, cases, domain, seed=0).adding(*quantities(declared, measured))


def _declared_bits(chain: ChainOfThought) -> int:
    """Return the bits of a transcript by the formula, with one head of one dimension."""
    token = (chain.n - 1).bit_length()
    return len(chain.layers) * (2 * (chain.layers[0].bits + token) + token)


def _confirmed(chain: ChainOfThought, hops: int, g: list[int], x: int, search: ChainSearch) -> bool:
    """Return whether two parties send the same for both functions, though pointers lead elsewhere."""
    if search.refutation is None:
        return False
    runs = [chain.together(f, g, x) for f in search.refutation]
    ends = {followed(f, g, x, hops) for f in search.refutation}
    return runs[0].messages == runs[1].messages and runs[0].bits == chain.bits and len(ends) == 2


def _wrong(chain: ChainOfThought, hops: int, g: list[int], x: int) -> int:
    """Return how many of some random functions get a wrong answer."""
    functions = np.random.default_rng(1).integers(chain.n, size=(64, chain.n)).tolist()
    return sum(chain.alone(f, g, x)[-1] != followed(f, g, x, hops) for f in functions)


def sabotage(subject: Subject) -> Subject:
    n, hops, lacks = subject.data["chain"].n, subject.data["hops"], subject.data["lacks"]
    return subject.with_data(chain=lookup_chain(n, hops if lacks else hops - 1, _bits(n)))


FIGURE = show(
    points(
        "bits of f",
        "bits of a transcript",
        "bits of the function",
        "bits of the thoughts",
        "2x2y",
        by=named("(complete|1 step less|1 digit less)"),
        laws={"as many as needed": lambda bits: bits},
    )
)
CLAIM = Claim(
    subjects, check, sabotage, id="B12", standing="theorem", uncertified="about what no net can do", figure=FIGURE
)
