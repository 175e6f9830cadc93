"""Random mutants of one weight: what is rejected, what is said of the rest, and that this is true."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.certification.checking import certify
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.evidence import Evidence
from vitrify.certification.mutation_test import Mutant, single_weight_mutants
from vitrify.claims.protocol import mutants
from vitrify.claims.protocol.mutants import EQUIVALENT, REJECTED, SURVIVORS, UNNOTICED, CertifiedNet, with_mutants
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.sparse import dense, from_entries
from vitrify.net.weights import has_positions
from vitrify.spec.automata.families import divisibility, symmetric_group
from vitrify.spec.logic.ltl import Formula

HELD = Evidence("holds", 1)
FORMULA = Formula.from_text("alphabet: a b c\nlength: 12\n!(!c S a) <-> O b")


def exact(name: str, spec: Any, *, prove: bool = True, **choices: Any) -> CertifiedNet:
    weights = build(spec, **choices)
    return CertifiedNet(name, weights, spec, certify(weights, spec, work=1e6, prove=prove))


@each("seed", range(30))
def test_a_mutant_differs_in_one_weight_by_its_sign_or_half_of_it(seed: int) -> None:
    weights = build(symmetric_group(3), "cascade", max_length=12)
    (mutant,) = single_weight_mutants(weights, 1, seed)
    changed = []
    for name, array in weights.arrays.items():
        for index in np.argwhere(mutant.weights.arrays[name] != array).tolist():
            before, after = array[tuple(index)], mutant.weights.arrays[name][tuple(index)]
            changed.append((f"{name}[{', '.join(map(str, index))}] times {after / before:g}", after / before))
    assert [what for what, _ in changed] == [mutant.what]
    assert changed[0][1] in (-1.0, 0.5, 1.5)
    assert not mutant.what.endswith(".beta")


def test_mutants_of_sparse_arrays_are_those_of_dense_ones() -> None:
    weights = build(divisibility(7), max_length=12)
    thin = weights
    for name, array in weights.arrays.items():
        if array.ndim == 2:
            rows, columns = np.nonzero(array)
            thin = thin.with_array(name, from_entries(rows, columns, array[rows, columns], array.shape))
    for one, other in zip(single_weight_mutants(weights, 20, 3), single_weight_mutants(thin, 20, 3), strict=True):
        assert one.what == other.what
        assert all(np.array_equal(array, dense(other.weights.arrays[n])) for n, array in one.weights.arrays.items())


def test_every_weight_has_three_mutants_and_all_are_drawn_in_the_end() -> None:
    weights = build(FORMULA, attention="hard")
    arrays = [array for name, array in weights.arrays.items() if not name.endswith(".beta")]
    drawn = [mutant.what for mutant in single_weight_mutants(weights, 10_000, 0)]
    assert len(drawn) == len(set(drawn)) == 3 * sum(map(np.count_nonzero, arrays))
    assert drawn[:20] == [mutant.what for mutant in single_weight_mutants(weights, 10_000, 0)][:20]
    assert drawn[:20] != [mutant.what for mutant in single_weight_mutants(weights, 10_000, 1)][:20]


def test_survivors_that_are_said_to_compute_their_spec_do() -> None:
    """On all words to length 7, by a run of each mutant."""
    nets = [exact("formula", FORMULA, attention="hard"), exact("S3", symmetric_group(3), max_length=12)]
    evidence = with_mutants(HELD, nets, 2)
    survivors = evidence.measured(SURVIVORS)
    equivalent = [what for what, reason in survivors.items() if reason == EQUIVALENT]
    assert equivalent
    assert evidence.measured(REJECTED) == f"{20 - len(survivors)} of 20"
    assert evidence.notes[0].startswith(f"{REJECTED}: {20 - len(survivors)} of 20; {len(equivalent)} compute")
    words = np.array(list(product(range(3), repeat=7)))
    for mutant in single_weight_mutants(nets[0].weights, 10, seed=10):
        if f"formula: {mutant.what}" in equivalent:
            assert has_positions(mutant.weights)
            logits = batch_logits(mutant.weights, with_pads(mutant.weights.architecture, words + 1))[:, 1:]
            assert np.array_equal(logits.argmax(axis=-1) == 1, FORMULA.holds(words))


def test_a_check_that_notices_nothing_rejects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    net = exact("formula", FORMULA, prove=False, attention="hard")
    blind = Evidence("holds", 7).adding(*net.certificate.quantities[:1])
    monkeypatch.setattr(WordCheck, "run", lambda *_, **__: blind)
    evidence = with_mutants(HELD, [net], 1)
    assert evidence.measured(REJECTED) == "0 of 20"
    assert all(reason.startswith(f"{UNNOTICED} in 7 cases") for reason in evidence.measured(SURVIVORS).values())


def test_a_mutant_that_only_a_proof_rejects_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The net without its heads is wrong on words of 3 letters; here the check runs words of at most one."""
    net = exact("formula", FORMULA, attention="hard")

    array = net.weights.arrays["blocks.0.attn.W_O"]
    mutant = Mutant("heads", net.weights.with_array("blocks.0.attn.W_O", 0 * array), "weight")
    passed = Evidence("holds", 1, links=net.certificate.links).adding(*net.certificate.quantities[:1])
    monkeypatch.setattr(mutants, "single_weight_mutants", lambda *_, **__: iter([mutant]))
    monkeypatch.setattr(WordCheck, "run", lambda *_, **__: passed)
    assert with_mutants(HELD, [net], 1).measured(REJECTED) == "1 of 1"


def test_large_nets_are_left_out_and_the_note_says_so() -> None:
    assert not exact("long", symmetric_group(3), prove=False, max_length=400).cheap
    assert with_mutants(HELD, [], 0) == HELD
    assert "none was tried" in with_mutants(HELD, [], 3).notes[0]
