"""The second saboteur of claims about built nets: random mutants of one weight, and which of them the checks reject.

Nobody chose these errors, so their share says how much a check notices. A mutant that is not rejected may compute its
spec all the same, as many weights have slack; where both links of a small net's certificate are proved, those of the
mutant are tried, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from vitrify.certification.checking import net_check, with_proof
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.evidence import LARGEST_ERROR, Evidence, Quantity
from vitrify.certification.mutation_test import single_weight_mutants
from vitrify.claims.protocol.certificates import HEADS, MAX_PAIRS, PAIRS
from vitrify.net.architecture import Architecture
from vitrify.net.weights import Weights, has_positions

MUTANTS, NETS = 20, 5  # of a claim, and its nets that are mutated
WORK = 1e6  # multiplications of the check of a mutant
MAX_COST, MAX_LENGTH = 3e5, 300  # multiplications per position and positions of nets whose checks are that cheap
REJECTED, SURVIVORS = "random mutants of one weight that are rejected", "mutants that are not rejected"
EQUIVALENT, UNNOTICED = "computes its spec: both links are proved", "gives no wrong answer"
KINDS = {EQUIVALENT: "compute their spec, as both links are proved", UNNOTICED: "give no wrong answer"}


class CertifiedNet(NamedTuple):
    """A net of a claim that computes its spec, with its certificate."""

    name: str
    weights: Weights[Architecture]
    spec: object
    certificate: Evidence

    @property
    def cheap(self) -> bool:
        """Return whether a check takes some hundredths of a second."""
        net = self.weights.architecture
        return float(getattr(net, "cost", 0.0)) <= MAX_COST and getattr(net, "max_length", 0) <= MAX_LENGTH

    @property
    def proved(self) -> bool:
        """Return whether both links are proved, of a net so small that proofs are quick even where heads are broken."""
        net = self.weights.architecture
        heads = sum(getattr(net, "heads_per_layer", ()))
        size = max(getattr(net, "max_length", 0), len(getattr(net, "inputs", ())))
        headline = self.certificate.headline
        return headline is not None and headline.scope.proved and heads <= HEADS and heads * size**2 <= PAIRS


def with_mutants(evidence: Evidence, nets: Sequence[CertifiedNet], certified: int) -> Evidence:
    """Return the evidence of a claim with the share of mutants that are rejected, and why the others are not.

    `nets` are those with cheap checks, of `certified` ones in all.
    """
    if certified and not nets:
        return replace(evidence, notes=(*evidence.notes, f"{REJECTED}: none was tried, as no check is cheap"))
    chosen = nets[:: -(-len(nets) // NETS)] if nets else ()
    reasons: dict[str, str | None] = {}
    for number, net in enumerate(chosen):
        count = MUTANTS // len(chosen) + (number < MUTANTS % len(chosen))
        reasons |= {f"{net.name}: {what}": reason for what, reason in _tried(net, count).items()}
    if not reasons:
        return evidence
    survivors = {name: reason for name, reason in reasons.items() if reason is not None}
    share = f"{len(reasons) - len(survivors)} of {len(reasons)}"
    kinds = Counter(next(text for kind, text in KINDS.items() if kind in reason) for reason in survivors.values())
    note = "; ".join([f"{REJECTED}: {share}", *(f"{count} {text}" for text, count in kinds.items())])
    evidence = evidence.adding(Quantity(REJECTED, share), Quantity(SURVIVORS, survivors))
    return replace(evidence, notes=(*evidence.notes, note))


def _tried(net: CertifiedNet, count: int) -> dict[str, str | None]:
    """Return for each mutant of a net why its check does not reject it; None where it does."""
    check, reasons = net_check(net.weights.architecture, net.spec, work=WORK), dict[str, str | None]()
    for mutant in single_weight_mutants(net.weights, count, seed=count):
        evidence, weights = check.run(mutant.weights, hardest_first=True), mutant.weights
        if evidence.verdict == "holds" and net.proved and isinstance(check, WordCheck) and has_positions(weights):
            evidence = with_proof(evidence, weights, check, max_pairs=MAX_PAIRS)
        proved = evidence.headline is not None and evidence.headline.scope.proved
        error = evidence.measured(LARGEST_ERROR)
        tested = f"{UNNOTICED} in {evidence.cases:,} cases, with an error of at most {error:.3g}"
        reasons[mutant.what] = (EQUIVALENT if proved else tested) if evidence.verdict == "holds" else None
    return reasons
