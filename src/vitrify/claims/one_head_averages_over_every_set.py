r"""One head averages over every set of $q$ of $N$ positions, with keys of far fewer than $N$ dimensions.

Statement: For all $N$, $q$, $d'$ and $\varepsilon$ a transformer with one layer, one head and $O(d' + q \log N)$
dimensions is within $\varepsilon$ of the mean of the vectors in $\mathbb R^{d'}$ at any $q$ positions that a position
points at; with $H$ heads of $m$ dimensions and $p$ bits, $Hmp \ge q$ is necessary.
Why: A query whose product with the keys is $n$ on a set and at most $n - 1$ elsewhere gives each member the weight
$1/q$, and all others together almost none, at a temperature of $\ln(4N/\varepsilon)$.
Checked: Pointers are tokens, so every set is an input. Keys are words of a Reed–Solomon code, $m$ = 56, 144, 272 for
$q$ = 2, 4, 8 and $N = 4096$, where a one-hot code takes 4,096 and one dimension per set $\binom Nq$. That every set and
every word is right is proved from the weights, by all pairs of keys ($N \le 4096$; the code alone at 65,536), and
tested on more than 1,000 random sets and on sets on which $n - 1$ is reached. Declared sets (each one symbol): signs,
unit vectors and moments, scores of all sets without rounding; narrow signs and moments of 8 of 256 are refused.
Not checked: The published rate $O(q\log N)$: its constant is not known to us, and its queries are no simple function of
the set. Here $m = \min_r\,(q(r-1)+1)\,p_r = O(q^2\log^2 N/\log^2(q\log N))$, 3.4 to 4.3 times $q \ln N$ for $N = 4096$;
a union bound over random signs takes $\tfrac{32}{3} q\ln(2N\binom Nq)$ = 532, 1,668 and 5,541 there. $3\,q\ln N$ unit
vectors and $19\,q\ln N$ signs suffice for the sets that were tested only. A pointer net has a second layer, which adds
up the pointers; in the source queries may be any function of them. That less than $q$ bits fail: another claim.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, theorems 2 to 4 [S]; all weights and codes are our own.
Saboteur: Keys lose one block, so that another position may score as much as the set; the sum of pointers is not
clipped; keys of declared sets lose one dimension; a sufficient code takes the place of one that must be refused.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import ceil, comb, log

import numpy as np

from vitrify.certification.equivalence.catalogue import SpecCase, prove_spec
from vitrify.certification.evidence import Link, Scope
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.certification.oracles.sparse_averaging import looked_at
from vitrify.claims._figures import points, show
from vitrify.claims._nets import Domain, Evidence, Method, Quantity, built, check_net, edited, refused, sized, zeroed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.sparse_averaging import sizes, sparse_averaging
from vitrify.kit import assemble
from vitrify.kit.set_codes import MAX_OFF_SCORE, RANDOM, CodeOfSets, min_gap_of_moments
from vitrify.kit.superimposed import code_size, confused, max_agreement, superimposed_keys
from vitrify.net.inference import batch_logits, encode, with_pads
from vitrify.net.sparse import dense
from vitrify.spec.tasks.pointer_averaging import PointerAveraging
from vitrify.spec.tasks.sparse_averaging import SparseAveraging, random_sets

POINTERS = ((4, 2, 1, 1), (64, 2, 3, 128), (64, 4, 2, 128), (64, 8, 2, 128), (1024, 4, 2, 192), (1024, 8, 2, 96))
WIDEST = {2: 77, 4: 153, 8: 289}  # dimensions that must suffice for 4,096 positions
LENGTH = 256  # of declared sets
SETS: tuple[tuple[CodeOfSets, int, int], ...] = (("signs", 2, 256), ("units", 2, 48))
MOMENTS = ((256, 2), (64, 4))  # positions and members
ALL: tuple[tuple[int, int, CodeOfSets], ...] = ((49, 2, "superimposed"), (12, 3, "moments"))
NARROW, REFUSED = 3.6, 8
SLOW, LARGE = 1024, 65_536  # positions: above which a net that is not proved is not run; of the largest code
WORDS = 4
OFF_DECLARED, GAP = "largest score off a declared set", "least gap of any set"
WIDTH, ONE_HOT, PER_SET = "dimensions of a key", "of a one-hot code", "of one dimension for each set"
RATE, BITS = "dimensions / (q ln N)", "H m p"


def subjects() -> Subjects:
    for n, q, d, queries in (*POINTERS, *((4096, q, 2, 16) for q in WIDEST)):
        yield built(f"any {q} of {n} positions", PointerAveraging(n, q, d, queries))
    yield Subject(f"keys of any 2 of {LARGE} positions", data={"length": LARGE, "sparsity": 2, "blocks": 0})
    for code, q, count in SETS:
        task = SparseAveraging(LENGTH, q, 1, random_sets(LENGTH, q, count, seed=q))
        yield _subject(f"{q} of {LENGTH}, {code}", task, code)
    for length, q in MOMENTS:
        task = SparseAveraging(length, q, 1, random_sets(length, q, 256, seed=q))
        yield _subject(f"{q} of {length}, moments", task, "moments")
    for length, q, code in ALL:
        yield _subject(f"all sets of {q} of {length}, {code}", SparseAveraging(length, q, 1), code)
    tasks = {q: SparseAveraging(LENGTH, q, 1, random_sets(LENGTH, q, 256, seed=q)) for q in (2, 8)}
    narrow = {"code": "signs", "draws": REFUSED, "width": ceil(NARROW * 2 * log(LENGTH))}
    yield Subject(f"2 of {LENGTH}, too narrow", tasks[2], None, narrow)
    yield Subject(f"8 of {LENGTH}, moments", tasks[8], None, {"code": "moments", "draws": 1, "width": None})


def _subject(name: str, task: SparseAveraging, code: CodeOfSets) -> Subject:
    net = assemble(sparse_averaging(task, code=code, seed=0))
    return Subject(name, task, net, {"code": code, "sizes": sizes(task, code=code)})


def check(subject: Subject) -> Evidence:
    if "length" in subject.data:
        return _keys(subject)
    if subject.weights is None:
        return _refusals(subject)
    return _pointers(subject) if isinstance(subject.spec, PointerAveraging) else _declared(subject)


# Every set


def _pointers(subject: Subject) -> Evidence:
    """Prove a net right for every set, and run it on random groups and on a set that another position nearly joins."""
    task: PointerAveraging = subject.spec
    net, m = subject.weights.architecture, subject.data["sizes"].exact["d_head"]
    words = np.array([encode(net, word) for word in _words(task)])
    asked = len(words) * task.queries
    evidence = Evidence("holds", asked, (Domain("sets of positions", Method.SAMPLED, asked),), seed=0)
    evidence = evidence.adding(*sized(subject), *_widths(task.positions, task.sparsity, m))
    evidence = proved(evidence, subject)
    if evidence.verdict != "holds" and task.positions > SLOW:
        return evidence
    logits = batch_logits(subject.weights, with_pads(net, words))[:, net.pads - 1 :]
    oracle = oracle_for(task, net)
    errors = oracle.errors(words, logits).max(axis=1)
    worst = int(errors.argmax())
    if not errors[worst] <= net.output.error:
        return replace(evidence, verdict="fails", witness=oracle.witness(words[worst], logits[worst]))
    return evidence.adding(Quantity("largest error", float(errors[worst]), net.output.error, "<="))


def proved(evidence: Evidence, subject: Subject) -> Evidence:
    """Return the evidence with both links proved by a lemma about the stored weights; it fails if none applies."""
    weights, task = subject.weights, subject.spec
    try:
        proof = prove_spec(SpecCase(weights, task, oracle_for(task, weights.architecture), None))
    except Undecided as reason:
        return replace(evidence, verdict="fails", witness={"proof": str(reason)})
    links = [Link(name, Scope.MAX_LENGTH, proof.longest, proof.lemma, proof.instances) for name in ("weights", "spec")]
    evidence = replace(evidence, links=(links[0], links[1]), checked=None)
    evidence = replace(evidence, checked=(weights, task, evidence))
    return evidence.adding(*(Quantity(*each) for each in proof.instances.items()))


def _words(task: PointerAveraging) -> list[tuple[str, ...]]:
    """Return random words, the first with a set on which another position scores as much as any can.

    There, members hold e1 and that position -e1.
    """
    rng, q = np.random.default_rng(0), task.sparsity
    words = [list(task.draw(rng, task.length)) for _ in range(2 if task.positions < LENGTH else 1)]
    other, members = confused(superimposed_keys(task.positions, code_size(task.positions, q)), q)
    for j in members:
        words[0][j] = "1+"
    words[0][other] = "1-"
    words[0][task.positions : task.positions + q] = [task.pointers[j] for j in members]
    return [tuple(word) for word in words]


def _widths(length: int, sparsity: int, m: int) -> list[Quantity]:
    """Return the width of a key beside the trivial codes, the published rate and the lower bound."""
    widest = WIDEST[sparsity] if length == 4096 else length
    return [
        Quantity(WIDTH, m, widest, "<="),
        Quantity(ONE_HOT, length, m, ">="),
        Quantity(PER_SET, comb(length, sparsity), m, ">="),
        Quantity(RATE, m / (sparsity * log(length))),
        Quantity(BITS, m, sparsity, ">="),  # a query of one head, with one bit for each dimension
    ]


def _keys(subject: Subject) -> Evidence:
    """Compare all pairs of keys of a code."""
    length, q = subject.data["length"], subject.data["sparsity"]
    size = code_size(length, q)
    keys = superimposed_keys(length, size)
    if subject.data["blocks"]:
        keys = keys[:, : -size.order * subject.data["blocks"]]
    agreement, points = max_agreement(keys), int(keys[0].sum())
    holds = agreement is not None and q * agreement < points
    witness = None if holds else {"largest product of two keys": agreement, "blocks": points}
    domain = Domain("pairs of keys", Method.EXHAUSTIVE, comb(length, 2))
    evidence = Evidence("holds" if holds else "fails", comb(length, 2), (domain,), witness=witness)
    return evidence.adding(*_widths(length, q, size.width))


# Declared sets


def _declared(subject: Subject) -> Evidence:
    task, net, code = subject.spec, subject.weights, subject.data["code"]
    evidence = check_net(subject, samples=WORDS, work=1e6)
    evidence = proved(evidence, subject) if evidence.verdict == "holds" else evidence
    seen = looked_at(net, task)
    if evidence.verdict != "holds" or seen is None:
        return evidence
    if code == "moments":
        least = min_gap_of_moments(task.length, task.sparsity)
        return _beside(evidence, Quantity(GAP, float(seen.gap), least, ">="), seen.gap >= Fraction(least))
    trivial, m = min(task.length, len(task.pointers)), net.sizes.d_head
    evidence = _beside(evidence, Quantity("of a trivial code", trivial, m, ">="), trivial >= m)
    if code not in RANDOM:
        return _beside(evidence, Quantity(GAP, float(seen.gap), 1.0, ">="), seen.gap >= 1)
    return _beside(evidence, Quantity(OFF_DECLARED, float(seen.off), 0.5, "<="), seen.off <= MAX_OFF_SCORE)


def _beside(evidence: Evidence, quantity: Quantity, holds: bool) -> Evidence:
    """Return the evidence with a quantity that was judged in fractions, which it only holds rounded."""
    evidence = replace(evidence, quantities=(*evidence.quantities, quantity))
    return evidence if holds else replace(evidence, verdict="fails", witness={quantity.name: quantity.measured})


def _refusals(subject: Subject) -> Evidence:
    """Count the draws of insufficient codes that are refused."""
    draws, code = subject.data["draws"], subject.data["code"]
    construct = partial(sparse_averaging, subject.spec, code=code, width=subject.data["width"])
    count = sum(refused(partial(construct, seed=seed)) for seed in range(draws))
    evidence = Evidence("holds", draws, (Domain(f"draws of {code}", Method.SAMPLED, draws),), seed=0)
    return evidence.adding(Quantity("refused draws", count, draws, "="))


def sabotage(subject: Subject) -> Subject:
    if "length" in subject.data:
        return subject.with_data(blocks=1)
    if subject.weights is None:
        return subject.with_data(code="superimposed", width=None)
    dims = list(subject.weights.labels.space("position").dims)
    if not isinstance(subject.spec, PointerAveraging):
        return zeroed(subject, "pos_embed.W_pos", (slice(None), dims[0]))
    if subject.spec.sparsity == 4:  # units that cut off the sum stay silent
        return edited(subject, "blocks.0.mlp.b_in", slice(1, None, 2), times=0.0, plus=-1e3)
    order = code_size(subject.spec.positions, subject.spec.sparsity).order
    places = np.array(dense(subject.weights.arrays["pos_embed.W_pos"]))
    places[:, dims[-order:]] = 0.0
    return replace(subject, weights=subject.weights.with_array("pos_embed.W_pos", places))


FIGURE = show(
    points(
        "{} positions",
        {"measured": "dimensions of a key", "one-hot code": "of a one-hot code"},
        "positions N",
        "dimensions of a key",
        "2x2y",
    )
)
CLAIM = Claim(
    subjects, check, sabotage, id="R17", standing="theorem", certified="proved", budget_seconds=60, figure=FIGURE
)
