"""Certificates of the nets that claims are about: what shows that a net answers as its spec does, and how."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vitrify.certify import certify
from vitrify.certify.evidence import Evidence
from vitrify.certify.examine import with_proof
from vitrify.certify.oracles import oracle_for
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

WORK = 1e4  # multiplications of an examination where the claim's own check is none of this net
HEADS, PAIRS = 20, 20_000  # of nets whose margins are worked out here: heads, and pairs of positions that they compare
LEFT = "margins not tried here, the net is too large: 'vitrify certify' does it"


def certificate(weights: Weights[Any], spec: object, found: Evidence) -> Evidence:
    """The examination of a net, the claim's own where that was one of this very net, and its margins if it is small."""
    mine = found.of is not None and found.of[0] is weights and found.of[1] is spec
    shown = replace(found, cases=found.of[2], notes=()) if mine and found.of else certify(weights, spec, work=WORK)
    net = weights.architecture
    if shown.verdict != "holds" or not isinstance(net, Transformer) or net.reads != "tokens":
        return shown
    heads = sum(len(block.heads) for block in net.blocks)
    if heads > HEADS or heads * net.max_length**2 > PAIRS:
        return replace(shown, notes=(LEFT,))
    return with_proof(shown, weights, oracle_for(spec, net))


def summary(shown: Evidence) -> dict[str, Any]:
    """What a certificate says, without the margins of every head and space."""
    proved = shown.proof is not None and shown.proof["holds"]
    return {
        "method": shown.method,
        "domain": shown.domain,
        "cases": shown.cases,
        "largest error": shown.measured.get("largest error"),
        "proved to length": shown.proof["max_length"] if shown.proof is not None and proved else None,
        "notes": list(shown.notes),
    }
