r"""RASP programs of selections and aggregations compile to exact transformers, one head for each `select`.

Statement: For every program of element-wise functions with finitely many values, selections, aggregates, means and
selector widths, and every length $N$, there is a transformer that computes its result at every position without error
on words to length $N$, with at most one head for each part of the program that reads other positions.
Why: A conjunction of tests is a sum of scores; BOS, half a unit below the full sum, is read where no position passes.
The width $n$ of a selection is recovered from the weight $1/(1+n)$ of BOS when it joins the selected positions. A
number is one dimension, and ramps between neighbouring values turn it into an exact code where a test needs one.
Checked: Eight library programs (reverse, histogram, running count, sort, most frequent, induction, balanced brackets,
share of a symbol) at $N = 12$, with softmax and hard attention: the result at every position of all words over 3
symbols (2 brackets) to length 6 and on random words of length 12, against the interpreter. The number of heads equals
the number of selections. The law: at $N = 12, 50, 100, 200$ heads and attention layers are the same, units lie on one
line exactly, and every result along four random words of length $N$ is right.
Not checked: Words beyond 200 and other programs; the slope of the units against a formula in $N$. RASP in the source
allows arbitrary element-wise functions without a size; here their values must be finitely many. Tracr's own compiler is
not run.
Source: Weiss, Goldberg & Yahav 2021, arXiv 2106.06981 [A]: the language; Lindner et al. 2023, arXiv 2301.05062 [A]: the
first compiler. The compilation here is our own.
Saboteur: The output of the last head is zero.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.claims._figures import bars, show
from vitrify.claims._nets import Claim, Evidence, Quantity, Subject, Subjects, Weights, check_net, zeroed
from vitrify.constructions.catalogue import Attention, build
from vitrify.constructions.program import program_net, sizes
from vitrify.kit import assemble
from vitrify.net.inference import batch_logits, with_pads
from vitrify.spec.programs import families as library
from vitrify.spec.programs.expression import Expr
from vitrify.spec.programs.program import Program, program

ABC = ("a", "b", "c")
LENGTH, LENGTHS = 12, (12, 50, 100, 200)
WORDS = 4  # random ones that are run at each of the lengths
PROGRAMS: dict[str, tuple[Expr, tuple[str, ...], bool]] = {
    "reverse": (library.reverse(), ABC, False),
    "histogram": (library.histogram(), ABC, False),
    "running count": (library.running_count("a"), ABC, True),
    "sort unique": (library.sort_unique(ABC), ABC, False),
    "most frequent": (library.most_frequent(), ABC, False),
    "induction": (library.induction(), ABC, True),
    "balanced brackets": (library.dyck1(), ("(", ")"), True),
    "share of a symbol": (library.fraction_of_previous("a"), ABC, True),
}


def subjects() -> Subjects:
    for name, (root, alphabet, causal) in PROGRAMS.items():
        spec = program(root, alphabet, LENGTH, causal=causal, name=name)
        yield Subject(f"{name}, soft", spec, assemble(program_net(spec)))
        yield Subject(f"{name}, hard", spec, assemble(program_net(spec, attention="hard")))


def check(subject: Subject) -> Evidence:
    """Return the check of every value at every position, and of the heads: these programs need all."""
    evidence = check_net(subject, {"heads": sizes(subject.spec).at_most["heads"]}, max_length=6)
    return evidence.adding(*law(subject)) if evidence.verdict == "holds" else evidence


def law(subject: Subject) -> tuple[Quantity, ...]:
    """Return sizes and wrong results of the program's nets at all lengths."""
    attention: Attention = "softmax" if subject.weights.architecture.soft else "hard"
    specs = [replace(subject.spec, length=length) for length in LENGTHS]
    nets = [build(spec, attention=attention) for spec in specs]
    wrong = [wrong_results(net, spec) for net, spec in zip(nets, specs, strict=True)]
    slopes = (np.diff([net.sizes.units for net in nets]) / np.diff(LENGTHS)).tolist()
    fixed = [(net.sizes.attention_layers, net.sizes.heads) for net in nets]
    return (
        Quantity("attention layers and heads at all N", fixed, [fixed[0]] * len(nets), "="),
        Quantity(f"wrong results along {WORDS} words, at all N", wrong, [0] * len(nets), "="),
        Quantity("units more per letter, from each N to the next", slopes, slopes[:1] * len(slopes), "="),
    )


def wrong_results(net: Weights, spec: Program) -> int:
    """Return at how many positions of random words of full length the result is not the interpreter's."""
    words = np.random.default_rng(spec.length).integers(1, len(spec.alphabet) + 1, (WORDS, spec.length))
    pads, oracle = net.architecture.pads, oracle_for(spec, net.architecture)
    logits = batch_logits(net, with_pads(net.architecture, words))[:, pads - 1 :]
    return int((oracle.errors(words, logits) > oracle.tolerance()).sum())


def sabotage(subject: Subject) -> Subject:
    return zeroed(subject, f"blocks.{max(head.block for head in subject.weights.labels.heads)}.attn.W_O")


FIGURE = show(bars({"heads, one for each select": "heads"}, "heads"))
CLAIM = Claim(subjects, check, sabotage, id="R31", standing="theorem", certified="sampled", figure=FIGURE)
