"""What is proved of margins is true of float64: built nets with huge and tiny numbers, against exact arithmetic."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from audit_nets import NETS, subject
from audit_rounding import rounding_contradiction
from rescaled_nets import rescaled_net
from vitrify.certification.margins.net import margins
from vitrify.net.transformer import Transformer
from vitrify.net.weights import has_architecture

MIN_PROVED = 0.6  # share of the rescaled nets that must still be proved: else the law says little
WORDS = 2  # random words of each net


def outcomes(seeds: range) -> Counter[str]:
    """Count the nets that are proved, and those that are not; a run that contradicts a proof fails."""
    nets = [weights for name in NETS if has_architecture(weights := subject(name).weights, Transformer)]
    counts: Counter[str] = Counter()
    for seed in seeds:
        weights = rescaled_net(nets[seed % len(nets)], seed)
        proof = margins(weights)
        counts["proved" if proof.holds else "not proved"] += 1
        if proof.holds:
            net, rng = weights.architecture, np.random.default_rng(seed)
            lengths = rng.integers(max(1, net.min_length), proof.max_length + 1, size=WORDS)
            words = [rng.integers(1, len(net.inputs), size=length) for length in lengths]
            assert rounding_contradiction(weights, proof, words) is None, seed
    return counts


@pytest.mark.long
def test_huge_and_tiny_numbers_stay_within_the_proved_errors() -> None:
    assert outcomes(range(135))["proved"] >= MIN_PROVED * 135


@pytest.mark.slow
def test_so_they_do_in_two_thousand_nets() -> None:
    assert outcomes(range(135, 2135))["proved"] >= MIN_PROVED * 2000
