"""What claims about built nets share: a size that is not the declared one fails, and says which."""

from __future__ import annotations

import numpy as np
import pytest

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import check_ngram, with_sizes, zeroed
from vitrify.claims.catalogue import Subject
from vitrify.constructions.ngram import Shape, ngram
from vitrify.kit import assemble
from vitrify.spec.ngrams import random_ngram

MODEL = random_ngram(2, 3, seed=0)


def subject(shape: Shape = "heads") -> Subject:
    return Subject(shape, MODEL, assemble(ngram(MODEL, shape=shape, attention="hard", max_length=10)))


def test_a_wrong_size_fails_with_both_figures() -> None:
    held = Evidence("holds", "exhaustive", "all", 1, declared={"error": 0}, measured={"error": 0})
    good = with_sizes(held, {"layers": 2}, {"layers": 2, "width": 9})
    assert good.verdict == "holds"
    assert good.declared == {"error": 0, "layers": 2}
    assert good.measured == {"error": 0, "layers": 2, "width": 9}
    bad = with_sizes(held, {"layers": 2, "heads": 1}, {"layers": 3, "heads": 1})
    assert bad.verdict == "fails"
    assert bad.witness == {"layers": "declared 2, measured 3"}


def test_a_wrong_answer_keeps_its_witness() -> None:
    failed = Evidence("fails", "exhaustive", "all", 1, witness={"word": ["a"]})
    assert with_sizes(failed, {"layers": 2}, {"layers": 3}).witness == {"word": ["a"]}


@pytest.mark.parametrize("shape", ["heads", "layers", "single"])
def test_the_right_net_of_another_shape_is_rejected(shape: Shape) -> None:
    assert check_ngram(subject(shape), shape).verdict == "holds"
    for other in ("heads", "layers", "single"):
        if other != shape:
            evidence = check_ngram(subject(shape), other)
            assert evidence.verdict == "fails"
            assert evidence.witness is not None
            assert set(evidence.witness) <= {"attention_layers", "heads"}


def test_zeroing_leaves_the_rest_alone() -> None:
    one = subject()
    before = one.weights.digest
    broken = zeroed(one, "unembed.b_U", 0)
    assert one.weights.digest == before
    difference = one.weights.arrays["unembed.b_U"] - broken.weights.arrays["unembed.b_U"]
    assert np.flatnonzero(difference).tolist() == [0]
    assert check_ngram(broken, "heads").verdict == "fails"
