"""Basins, critical energies and drifts of gradient flows, and the nulls of the claim, on planted ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cases import each
from vitrify.claims import energy_decides_if_gradient_flow_learns_a_binary_markov_chain as claim
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials import flows
from vitrify.claims.trials.flows import SOLID, StartCounts, ball
from vitrify.learn import bit_chain

COUNTS = StartCounts(square=60, border=100, widths=(0.1, 0.3, 1.0), each=30)
CHAINS = tuple(flows.chain(number) for number in range(8))


def planted() -> tuple[Subject, Measured]:
    """Return a subject and measurements in which every flow ends where the energy says."""
    arrays: dict[str, np.ndarray] = {}
    parts = [flows.starts_of(number, chain, COUNTS) for number, chain in enumerate(CHAINS)]
    for kind in parts[0]:
        starts = np.stack([part[kind] for part in parts])
        arrays |= {f"{kind}/{name}": starts[..., at] for at, name in enumerate("ewa"[: starts.shape[-1]])}
        arrays[f"{kind}/trapped"] = flows.predicted(arrays, kind, CHAINS).astype(float)
    zero = np.zeros(len(CHAINS))
    for plane, names in {"(e, w)": ("E",), "(e, w, a)": ("E", "E with a")}.items():
        arrays |= {f"{plane}/drift of {name}": zero for name in names} | {f"{plane}/crossed": zero}
    arrays["square/drift in steps"] = flows.descent_drifts(arrays["square/e"], arrays["square/w"], CHAINS)
    arrays["portraits/paths"] = np.zeros((2, 30, 26, 2))
    (subject,) = claim.subjects()
    return replace(subject, data={**subject.data, "chains": CHAINS, "starts": COUNTS}), arrays


def test_chains_of_odd_numbers_exceed_one() -> None:
    assert [sum(chain) > 1 for chain in CHAINS] == [False, True] * 4
    assert flows.chain(3) == flows.chain(3)


def test_the_critical_energy_is_found_between_starts() -> None:
    arrays = {
        "border/e": np.sqrt(np.tile(bit_chain.SADDLE + 1 + np.array([-0.05, -0.01, 0.02, 0.05]), (3, 1))),
        "border/w": np.full((3, 4), -1.0),
        "border/trapped": np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]], float),
    }
    found = flows.critical_energies(arrays) - bit_chain.SADDLE
    np.testing.assert_allclose(found, [0.005, -0.03, (-flows.BORDER - 0.05) / 2], atol=1e-12)


def test_gradient_descent_keeps_the_energy_only_nearly() -> None:
    e, w = np.full((8, 1), 0.5), np.full((8, 1), 0.5)
    drift = flows.descent_drifts(e, w, CHAINS)
    assert ((drift > 1e-6) & (drift < 0.1)).all()


def test_all_statements_hold_where_the_energy_decides() -> None:
    subject, arrays = planted()
    assert set(claim.judge(subject, arrays).statements.values()) == {"holds"}


@each("key", list(claim.PLAN.statements))
def test_each_statement_fails_on_its_null_and_the_others_do_not(key: str) -> None:
    subject, arrays = planted()
    null = claim.CLAIM.nulls[key](subject, arrays, np.random.default_rng(0))
    failing = {name for name, verdict in claim.judge(subject, null).statements.items() if verdict != "holds"}
    assert key in failing
    assert failing <= ({"small", "attention", "basins"} if key in ("small", "attention") else {key})


def test_a_flow_that_ended_nowhere_leaves_all_undecided() -> None:
    subject, arrays = planted()
    kinds = ["square", "border", *map(ball, COUNTS.widths), "better", SOLID]
    lost = {f"{kind}/trapped": np.full_like(arrays[f"{kind}/trapped"], np.nan) for kind in kinds}
    assert set(claim.judge(subject, {**arrays, **lost}).statements.values()) == {"undecided"}
