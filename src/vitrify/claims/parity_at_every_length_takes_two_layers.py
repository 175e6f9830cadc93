r"""PARITY at every length takes two layers of softmax or hard attention: weights and positions do not depend on it.

Statement: In exact arithmetic, one set of weights decides at every length $n$ whether a word has an odd number of ones,
with positions that are functions of $t$ alone: (a) two causal layers of hard attention that averages ties, positions
$t, t^2$ and $t \bmod 2$, margin 1; (b) two softmax layers without a mask and without a norm, positions $\ln t,
\ln(t+1), t \bmod 2$, and a lead of at least $1/(4(n+1)(2n+1))$; a third layer, with the position $(t+1)^3$, makes that
0.98; (c) with a layer norm over $(x, -x)$ before the unembedding, and $\epsilon = 0$, the lead is the constant $2c$, so
the cross-entropy is $\ln(1 + e^{-2c})$ and tends to 0 as $c$ grows.
Why: In `any_length_parity.py`. An average has no exact number of ones, $k$; but a head whose weight of BOS grows with
the position $t$ compares $k$ with $t$: what it reads passes a threshold at $t = k$, and the parity of that position is
the answer.
Checked: Certificates prove (a) to 96 and (b) to 48 letters: the order of letters changes no answer, and every number of
ones was run, with bounds of rounding. All words to length 8, 1,000 random ones of these lengths; then the same arrays,
byte by byte, and the same formulas of positions at $n = 10, 100, 1000$: every number of ones at $n = 10$ and $100$,
some at $n = 1000$, letters in random order, and the lead against its law. (c) $c = 1$, and $c = 4$ to $n = 100$; at 10
and 100 also the law $2cx/\sqrt{x^2 + \epsilon}$ for $\epsilon = 10^{-12}, 10^{-8}, 10^{-5}$. The longest words by the
bound of rounding; float32 at that length, without a wrong answer; one more letter, which is refused; and a length with
wrong answers where nothing is refused: ones only, 1,500 of them under softmax and 3,000 under hard attention.
Not checked: That one layer is not enough (cited). All lengths: the margin of (b) is proved in exact arithmetic, by
hand, and the float law is a bound by hand. Certificates of (c) say *sampled*: rounding is not bounded by machine behind
norms. Float64 at its longest, 41,284 letters, and 23,726,565 for (a), were not run.
Source: Chiang & Cholak 2022, arXiv 2202.12172 [T], with positions $t/n$ and the variant with a norm; Kozachinskiy &
Steifer 2025, arXiv 2501.02535 [A]: three layers whose positions do not depend on $n$; one layer never suffices:
Kozachinskiy, Steifer & Wałęga 2026, arXiv 2602.05896 [A]. The two layers of (b) are our own derivation; their margin is
as small as that of the first source. (a) is our own, with a head that finds whole numbers from means.
Saboteur: (a) The query asks for $k + \frac12$. (b) The threshold is 0.4 instead of 0.75; the third layer has the
position $(t+1)^2$. (c) $\epsilon = 10^{-5}$, the default of trained networks.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, log1p, sqrt
from typing import Any

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.evidence import Domain, Evidence, Method, Quantity
from vitrify.claims._figures import bars, curves, show
from vitrify.claims._nets import Claim, Subject, Subjects, built, check_net, edited
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.net.inference import with_pads
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic

LENGTHS, ALL_COUNTS_TO, SAMPLES = (10, 100, 1_000), 100, 1_000  # all numbers of ones to length 100
PROVED = 48  # letters to which certificates prove softmax nets; hard attention, twice as many
SHARPNESS = (1.0, 4.0)
EPSILONS = (1e-12, 1e-8, 1e-5)
LONG = 1_500, 3_000  # lengths with wrong answers in float32, of softmax and of hard attention
CHUNK = 128  # queries that attend at once


def subjects() -> Subjects:
    yield built("(a) hard", cyclic(2), "parity-by-position", {"kind": "hard"}, max_length=2 * PROVED)
    for finish in ("none", "attention"):
        name = {"none": "(b) softmax, 2 layers", "attention": "(b) softmax, 3 layers"}[finish]
        yield built(name, cyclic(2), "parity-any-length", {"kind": finish}, finish=finish, max_length=PROVED)
    for c in SHARPNESS:
        data = {"kind": "norm", "c": c, "epsilon": 0.0}
        yield built(f"(c) norm, c = {c:g}", cyclic(2), "parity-any-length", data, finish="norm", c=c, max_length=PROVED)


def ones(length: int) -> Ints:
    """Return all numbers of ones in words of a length, some of them for long words."""
    few = {0, 1, length // 2, length // 2 + 1, length}
    return np.array(range(length + 1) if length <= ALL_COUNTS_TO else sorted(few))


def leads(weights: Weights[Transformer], length: int, numbers: Ints) -> Floats:
    """Return the leads of the right answer [number, prefix] on a random word for each number of ones.

    A network without a mask answers for the whole word, at every position.
    """
    rng, net = np.random.default_rng(length), weights.architecture
    words = np.stack([rng.permutation(np.arange(length) < number) for number in numbers.tolist()]).astype(np.int64)
    logits = np.asarray(net.forward(weights.prepared, with_pads(net, words + 1), query_chunk=CHUNK), dtype=float)
    counts = numbers[:, None] if net.looks_ahead else np.cumsum(np.pad(words, ((0, 0), (1, 0))), axis=1)
    return np.asarray((logits[..., 1] - logits[..., 0]) * np.where(counts % 2, 1.0, -1.0))


def law(kind: str, length: int, c: float = 1.0) -> float:
    """Return the least lead at a length."""
    return {"hard": 1.0, "none": 1 / (4 * (length + 1) * (2 * length + 1)), "attention": 0.98, "norm": 2 * c}[kind]


def check(subject: Subject) -> Evidence:
    kind, weights = subject.data["kind"], subject.weights
    evidence = check_net(subject, max_length=8, samples=SAMPLES, work=1e9)
    if evidence.verdict == "fails":
        return evidence
    own = weights.architecture.max_length
    nets = [build(subject.spec, weights_name(kind), max_length=n, **choices(subject)) for n in (own, *LENGTHS)]
    arrays = {tuple((name, array.tobytes()) for name, array in sorted(net.arrays.items())) for net in nets}
    formulas = {net.architecture.formulas for net in nets}
    quantities, cases = [Quantity("sets of arrays for these lengths", len(arrays), 1, "=")], 0
    quantities += [Quantity("sets of formulas of positions", len(formulas), 1, "=")]
    lengths = LENGTHS if subject.data.get("c", 1.0) == 1.0 else LENGTHS[:2]
    for length in lengths:
        numbers = ones(length)
        measured = leads(weights, length, numbers)
        least, cases = law(kind, length, subject.data.get("c", 1.0)) * (1 - 1e-6), cases + len(numbers)
        quantities.append(Quantity(f"least lead at n = {length:,}", float(measured.min()), least, ">="))
    if kind == "norm":
        quantities += _of_norm(subject)
    if lengths == LENGTHS:
        quantities += _of_formats(subject)
    domain = Domain("numbers of ones, letters in random order", Method.SAMPLED, cases, lengths[0], lengths[-1])
    return replace(evidence, domains=(*evidence.domains, domain), cases=evidence.cases + cases).adding(*quantities)


def weights_name(kind: str) -> str:
    return "parity-by-position" if kind == "hard" else "parity-any-length"


def choices(subject: Subject) -> dict[str, Any]:
    """Return the options with which the network of a subject is built."""
    named = {"finish": subject.data["kind"]} if subject.data["kind"] != "hard" else {}
    return named | ({"c": subject.data["c"]} if "c" in subject.data else {})


def _of_norm(subject: Subject) -> list[Quantity]:
    """Return the cross-entropy against its law, and the lead under other ε against theirs."""
    c, plain, result = subject.data["c"], build(cyclic(2), "parity-any-length"), list[Quantity]()
    for length in LENGTHS[:2]:
        numbers = ones(length)
        lead, x = leads(subject.weights, length, numbers), leads(plain, length, numbers)
        entropy, expected = float(np.log1p(np.exp(-lead)).max()), log1p(exp(-2 * c))
        result.append(Quantity(f"cross-entropy at n = {length}", entropy, expected * (1 + 1e-9), "<="))
        for epsilon in EPSILONS:
            measured = leads(with_epsilon(subject.weights, epsilon), length, numbers)
            apart = float(np.abs(measured / (2 * c * x / np.sqrt(x**2 + epsilon)) - 1).max())
            name = f"n = {length}, ε = {epsilon:g}"
            result += [Quantity(f"share by which the lead differs from its law, {name}", apart, 1e-6, "<=")]
            result += [Quantity(f"least lead, {name}", float(measured.min()))]
    half = {epsilon: int((1 / 8 * sqrt(3 / epsilon)) ** 0.5) for epsilon in EPSILONS}  # x = 1/8n² is √(ε/3)
    return [*result, *(Quantity(f"n at which ε = {e:g} halves the least lead", n) for e, n in half.items())]


def _of_formats(subject: Subject) -> list[Quantity]:
    """Return the longest words by the bound of rounding, and float32 at that length, beyond it, and far beyond."""
    weights, kind = subject.weights, subject.data["kind"]
    single = weights.map(lambda array: np.asarray(array, dtype=np.float32))
    longest, result = weights.architecture.exact_to(24), list[Quantity]()
    wrong = int((leads(single, longest, ones(longest)) <= 0).sum())
    result += [Quantity("longest words in float64, by the bound", weights.architecture.longest)]
    result += [Quantity("longest words in float32, by the bound", longest)]
    result += [Quantity("wrong answers there in float32", wrong, 0, "=")]
    try:
        leads(single, longest + 1, np.array([1]))
        refused = False
    except InputError:
        refused = True
    result += [Quantity("a letter more is refused", refused, True, "=")]
    if kind != "attention":  # its cubes are not exact there
        free, length = replace(single, architecture=replace(single.architecture, rounding=0)), LONG[kind == "hard"]
        wrong = int((leads(free, length, np.array([length])) <= 0).sum())
        result += [Quantity(f"wrong among {length + 1:,} answers to ones only, n = {length:,} in float32", wrong)]
    return result


def with_epsilon(weights: Weights[Transformer], epsilon: float) -> Weights[Transformer]:
    """Return a network with another ε under the root of its norms."""
    return replace(weights, architecture=replace(weights.architecture, eps=epsilon))


def sabotage(subject: Subject) -> Subject:
    kind, weights = subject.data["kind"], subject.weights
    if kind == "norm":
        return replace(subject, weights=with_epsilon(weights, EPSILONS[-1]))
    if kind == "hard":  # the share of BOS, 1/(i+1), is added to twice that of ones
        (shares,) = (label for label in weights.labels.spaces if label.name == "k/n and 1/n")
        return edited(subject, "blocks.1.attn.W_Q", (0, shares.dims[1], 0), plus=1.0)
    if kind == "none":
        steps = np.flatnonzero(np.isclose(weights.arrays["blocks.0.mlp.W_out"], -0.75).any(axis=1))
        return edited(subject, "blocks.0.mlp.W_out", steps, times=0.4 / 0.75)
    formulas = weights.architecture.formulas
    square = tuple(replace(f, coefficients=(1, 2, 1)) if len(f.coefficients) == 4 else f for f in formulas)
    return replace(subject, weights=replace(weights, architecture=replace(weights.architecture, formulas=square)))


FIGURE = show(
    curves("least lead at n = {}", None, "length n", "least margin", "xy", laws={"1/n²": lambda n: 1 / n**2}),
    bars(
        {"float32": "longest words in float32, by the bound", "float64": "longest words in float64, by the bound"},
        "longest words, by the bound",
        "y",
    ),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R11", standing="theorem", certified="sampled", budget_seconds=20, figure=FIGURE
)
