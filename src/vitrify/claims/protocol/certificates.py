"""Certificates of the exact nets of a claim, made beside its check within a small budget."""

from __future__ import annotations

from dataclasses import replace

from vitrify.certification import certify
from vitrify.certification.checking import with_proof
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.evidence import Evidence
from vitrify.net.architecture import Architecture
from vitrify.net.weights import Weights, has_positions

WORK = 1e4  # multiplications of a check where the claim's own check is none of this net
MAX_PAIRS = 1 << 11  # of states of a net and its spec that are searched here
HEADS, PAIRS = 20, 20_000  # of nets whose margins are worked out here: heads, and pairs of positions that they compare
LEFT = "margins not tried here, the net is too large: 'vitrify certify' does it"


def certificate(weights: Weights[Architecture], spec: object, evidence: Evidence) -> Evidence:
    """Return the check of a net, the claim's own where it was of this very net; with margins unless it is large."""
    checked = evidence.checked
    if checked is not None and checked[0] is weights and checked[1] is spec:
        certified = checked[2]
    else:
        certified = certify(weights, spec, work=WORK)
    if (
        certified.verdict != "holds"
        or certified.proof
        or weights.architecture.reads != "tokens"
        or not has_positions(weights)
    ):
        return certified
    if certified.headline is not None and certified.headline.scope.proved:  # by the claim's own check
        return certified
    net = weights.architecture
    heads = sum(net.heads_per_layer)
    if heads > HEADS or heads * net.max_length**2 > PAIRS:
        return replace(certified, notes=(LEFT,))
    return with_proof(certified, weights, WordCheck(net, spec), max_pairs=MAX_PAIRS)


def compact(certified: Evidence) -> Evidence:
    """Return a certificate without the margins of every head and space, and without times."""
    proof = {key: value for key, value in (certified.proof or {}).items() if key not in ("heads", "spaces", "seconds")}
    return replace(certified, proof=proof, seconds=0.0, checked=None)
