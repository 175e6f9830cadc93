"""No method certifies a wrong net: mutants of many nets, put to every method; provers with a fault are found out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from audit import Audit, audit, judge, words_of
from audit_faults import FAULTS, faulty_nets
from audit_nets import NETS, subject
from audit_proofs import contradiction, premise_fails
from audit_survivors import UNEXPLAINED
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.margins import heads as margin_heads
from vitrify.certification.margins import legal as margin_legal
from vitrify.certification.margins import net as margins
from vitrify.certification.margins import units as margin_units
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.rounding import leaked_weight
from vitrify.certification.margins.values import Stretch
from vitrify.certification.mutation_test import Mutant
from vitrify.errors import FolderError
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer

FEW = ("n-gram, heads", "Z3, cascade", "formula, hard", "Z3, commutative", "associations, units", "Z2, recurrent")


def check_audit(name: str, found: Audit) -> None:
    """No method says anything false, everything that survives has its reason, and some mutants are wrong."""
    assert not found.unsound, (name, found.unsound)
    survivors = [judged for judged in found.judgements if judged.survived]
    assert all(judged.reason is not None and judged.reason[0] != UNEXPLAINED for judged in survivors), name
    assert sum(found.survivors.values()) == len(survivors)
    assert found.wrong + found.refused + len(survivors) == len(found.judgements)
    assert found.wrong > 0


@pytest.mark.long
@pytest.mark.parametrize("name", FEW)
def test_two_hundred_mutants(name: str) -> None:
    """So many of six nets; real arithmetic only for the shortest words."""
    found = audit(replace(subject(name), real_length=1), 34, seed=11)
    assert len(found.judgements) == 34
    check_audit(name, found)


@pytest.mark.slow
def test_two_thousand_mutants_of_many_nets() -> None:
    count = -(-2_000 // len(NETS)) + 3
    assert len(NETS) >= 20
    assert len({shape for _, shape, *_ in NETS.values()}) >= 20
    kinds: Counter[str] = Counter()
    for name in NETS:
        found = audit(subject(name), count, seed=7)
        check_audit(name, found)
        kinds.update(judged.kind for judged in found.judgements)
    assert sum(kinds.values()) >= 2_000
    assert set(kinds) == set(FAULTS)


@pytest.mark.slow
def test_the_nets_themselves_are_right_and_most_are_proved() -> None:
    proved = 0
    for name in NETS:
        it = subject(name)
        judged = judge(replace(it, real_length=0), Mutant("nothing", it.weights, "none"))
        assert judged.wrong is None, name
        assert judged.methods["exhaustive"] == judged.methods["reals"] == "holds", (name, judged)
        assert not judged.unsound
        proved += judged.methods["proved"] == "holds"
    assert proved >= 20


def test_mutants_are_reproducible_and_never_the_net_itself() -> None:
    weights = subject("formula").weights
    kinds = [[mutant.what for mutant in faulty_nets(weights, 60, seed)] for seed in (1, 1, 2)]
    assert kinds[0] == kinds[1] != kinds[2]
    for mutant in faulty_nets(weights, 200, seed=3):
        new = mutant.weights
        arrays = [
            name for name, array in weights.arrays.items() if not np.array_equal(dense(array), dense(new.arrays[name]))
        ]
        facts = [new.labels != weights.labels, new.architecture != weights.architecture]
        assert len(arrays) + sum(facts) == (2 if mutant.kind == "length" else 1), mutant.what
    assert {mutant.kind for mutant in faulty_nets(weights, 200, seed=3)} == set(FAULTS)


def test_a_method_that_says_yes_to_everything_is_unsound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is no rubber stamp: a check that always holds, and so do balls, is caught."""
    it = subject("Z3, cascade")
    wrong = next(mutant for mutant in faulty_nets(it.weights, 50, 0) if judge(it, mutant).wrong)
    run = type(it.check(it.weights)).run

    def always(*given: Any, **more: Any) -> Any:
        return replace(run(*given, **more), verdict="holds")

    monkeypatch.setattr("audit.WordCheck.run", always)
    assert judge(it, wrong).unsound == ("exhaustive",)
    it = replace(it, real_length=it.length)
    monkeypatch.setattr("audit.in_reals", lambda weights, check: always(check, weights))
    assert [part.split(":")[0] for part in judge(it, wrong).unsound] == ["exhaustive", "reals"]


# ---- provers with a fault
def contradictions(name: str, count: int) -> list[str]:
    """What real runs say against the proofs of mutants of a net."""
    found, it = [], subject(name)
    for mutant in faulty_nets(it.weights, count, seed=1):
        check = it.check(mutant.weights)
        words = words_of(check)
        proof = proof_of(mutant.weights, check.oracle)
        if proof.holds and not premise_fails(mutant.weights, proof, words):
            against = contradiction(mutant.weights, proof, words)
            found += [against] if against else []
    return found


def changed_selection(change: Callable[[Any], None]) -> Callable[[Any], Any]:
    real = margin_heads.selection_of

    def selection_of(scores: Any) -> Any:
        found = real(scores)
        change(found)
        return found

    return selection_of


def doubled(found: Any) -> None:
    found.gap *= 2


def untied(found: Any) -> None:
    found.ties = False


def somebody(found: Any) -> None:
    found.no_key = False


def one_less(found: Any) -> None:
    for wins in found.winners:
        at = np.flatnonzero(wins)
        wins[at[1:][-1:]] = False


def one_key_leaks(name: str, scores: Any, *more: Any, real: Any = leaked_weight) -> tuple[float, float]:
    leak, uneven = real(name, scores, *more)
    return leak / max(1, scores.count - 1), uneven


def no_error_of_units(*given: Any, real: Any = margin_units.table) -> Any:
    points, error = real(*given)
    return points, 0 * error


def a_value_less(*given: Any, real: Any = margin_units.table) -> Any:
    points, error = real(*given)
    return points[: max(1, len(points) - 1)], error


def second_heads_ignored(run: Any, index: int, place: int, *rest: Any, real: Any = margins._MarginRun._head) -> Any:
    return None if place else real(run, index, place, *rest)


BrokenProver = tuple[Any, str, Any, str, int]
BROKEN_PROVERS: dict[str, BrokenProver] = {  # what is broken, how, and a net of which so many mutants show it
    "no leak": (margin_heads, "leaked_weight", lambda *_: (0.0, 0.0), "n-gram, heads", 20),
    "only one key leaks": (margin_heads, "leaked_weight", one_key_leaks, "formula", 10),
    "values are never apart": (margin_heads, "_spread", lambda _, v: np.zeros(v.shape[1]), "n-gram, heads", 20),
    "errors do not pass on": (Stretch, "moved", lambda _, m: np.zeros(m.shape[1]), "n-gram, heads", 20),
    "gaps doubled": (margins, "selection_of", changed_selection(doubled), "n-gram, heads", 10),
    "no ties": (margins, "selection_of", changed_selection(untied), "reversal", 4),
    "a query always sees a key": (margins, "selection_of", changed_selection(somebody), "brackets, recognizer", 4),
    "a winner forgotten": (margins, "selection_of", changed_selection(one_less), "some a, cascade, hard", 10),
    "units without errors": (margins, "table", no_error_of_units, "n-gram, heads", 20),
    "a value forgotten": (margins, "table", a_value_less, "n-gram, heads", 10),
    "second heads ignored": (margins._MarginRun, "_head", second_heads_ignored, "n-gram, heads", 10),
    "target not checked": (margins, "check_target", lambda *_: None, "n-gram, heads", 20),
    "codes not checked": (margin_legal, "_check", lambda *_, **__: None, "n-gram, heads", 20),
    "sums not checked": (margin_legal, "_check_sums", lambda *_: None, "Z3, commutative", 80),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", BROKEN_PROVERS)
def test_a_prover_with_a_fault_is_found_out(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, wrong, net, count = BROKEN_PROVERS[fault]
    monkeypatch.setattr(where, name, wrong)
    assert contradictions(net, count)


@pytest.mark.long
def test_a_prover_without_a_fault_is_not() -> None:
    largest: dict[str, int] = {}
    for *_, net, count in BROKEN_PROVERS.values():
        largest[net] = max(count, largest.get(net, 0))
    assert {net: contradictions(net, count) for net, count in largest.items()} == {net: [] for net in largest}


# ---- holes that the audit found in the prover
def test_a_constant_that_makes_a_space_illegal_is_seen() -> None:
    weights = subject("Z3, commutative").weights
    assert margins.margins(weights).holds
    bias = np.array(weights.arrays["blocks.0.attn.b_V"])
    bias[0, 0] += 0.1
    proof = margins.margins(weights.with_array("blocks.0.attn.b_V", bias))
    assert proof.reason == "'count' may hold numbers that are not whole"


def test_a_proof_is_as_exact_as_answers_must_be() -> None:
    """A head that leaks a hundred-thousandth selects well, but the probabilities are then off by too much."""
    weights = subject("n-gram, heads").weights
    soft = weights.with_array("blocks.0.attn.beta", weights.arrays["blocks.0.attn.beta"] / 2)
    assert margins.margins(soft).holds
    proof = margins.margins(soft, allowed=1e-9)
    assert "where 1e-09 is allowed" in (proof.reason or "")
    assert margins.margins(weights, allowed=1e-9).holds


def test_a_range_that_is_never_kept_is_no_range() -> None:
    it = subject("grammar, shapes, hard")
    label = next(space for space in it.weights.labels.spaces if space.kind.tag == "integers" and space.born > 0)
    kind: Any = label.kind
    far = replace(label, kind=replace(kind, low=90.0, high=91.0))
    spaces = tuple(far if space is label else space for space in it.weights.labels.spaces)
    proof = margins.margins(replace(it.weights, labels=replace(it.weights.labels, spaces=spaces)), language=True)
    assert "never holds a number between 90 and 91" in (proof.reason or "")


def test_a_net_that_reads_more_than_its_program_is_refused() -> None:
    it = subject("reversal")
    net = it.weights.architecture
    assert isinstance(net, Transformer)
    longer = replace(net, max_length=net.max_length + 1)
    with pytest.raises(FolderError, match="reads 7 symbols, its program is for 6 at most"):
        WordCheck(longer, it.spec)


def test_each_statement_of_a_proof_is_held_against_runs() -> None:
    it = subject("reversal")
    proof = proof_of(it.weights, it.check(it.weights).oracle)
    assert proof.margin is not None
    assert contradiction(it.weights, proof, it.words) is None
    tight = tuple(replace(head, leak=0.0) for head in proof.heads)
    wrong = {
        "of its weight to other keys": replace(proof, heads=tight),
        "an answer has a margin of": replace(proof, margin=1.5 * proof.margin),
        "from the ideal ones": replace(proof, error=0.0),
        "further from": replace(proof, spaces=tuple(replace(space, error=0.0 * space.error) for space in proof.spaces)),
    }
    for said, false in wrong.items():
        assert said in (contradiction(it.weights, false, it.words) or ""), said
