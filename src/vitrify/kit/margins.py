r"""Margins: how sharp each head must be, worked out backwards from what the readout and the units can bear.

*Backwards*, every space gets the error it may have: the least that any of its readers needs. *Forwards*, each softmax
head gets the temperature that keeps its leak within half of that, and the error that really remains is added up.
For $n$ keys, values bounded by $V$ and a gap $g$, the keys that should lose take at most $(n-1)e^{-\beta g}$ of the
weight, so the output is off by at most $2V(n-1)e^{-\beta g}$, and $\beta = \ln(2V(n-1)/\tau)/g$ keeps it below $\tau$.
Sparsemax is one-hot as soon as $\beta g \ge 1$. Hard attention needs no $\beta$.

Rounding moves a score of $d$ products by at most $(d+2)\,u\,S$, $S$ bounding $\sum|q_c k_c|$; a head whose gap does not
stay well above that is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from vitrify.errors import BuildRefused
from vitrify.kit.network import Affine, Attend, Bank, Experts, Network, Operation, Space, Units, heads_of, written_by

Arithmetic = Literal["float64", "float32"]
ROUNDOFF: dict[Arithmetic, float] = {"float64": 2.0**-53, "float32": 2.0**-24}
NO_NEED = math.inf
STEP = 4.0  # temperatures are rounded up to a multiple of 1/4


@dataclass(frozen=True)
class Sharpness:
    """A head's temperature and what it rests on."""

    beta: float
    beta_min: float | None
    gap: float | None
    kappa: float | None
    tolerance: float | None
    leak: float


@dataclass(frozen=True, eq=False)
class Margins:
    """The sharpness of every head and the proved error of every space."""

    heads: Mapping[Attend, Sharpness]
    errors: Mapping[Space, float]


def margins(network: Network, arithmetic: Arithmetic = "float64") -> Margins:
    """Choose every temperature, or refuse in a sentence."""
    needs = _needs(network)
    errors: dict[Space, float] = {space: 0.0 for space, _ in (*network.embedded, *network.placed)}
    heads: dict[Attend, Sharpness] = {}
    for operation in network.operations:
        _check(repr(operation.name), operation.reads, needs, errors)
        wanted = min(needs[space] for space in written_by(operation))
        for head in heads_of(operation):
            heads[head] = _sharpness(network, head, wanted / len(heads_of(operation)), errors, arithmetic)
        works = operation.experts if isinstance(operation, Experts) else (operation,)
        error = max(_error(work, heads, errors, arithmetic) for work in works)
        errors |= dict.fromkeys(written_by(operation), error)
    _check("the readout", network.readout.needs, needs, errors)
    return Margins(heads, errors)


def _error(
    operation: Attend | Bank | Units,
    heads: Mapping[Attend, Sharpness],
    errors: Mapping[Space, float],
    arithmetic: Arithmetic,
) -> float:
    """How far the spaces that an operation writes may be off: rounding, its own error, and what it passes on."""
    rounding = operation.error * ROUNDOFF[arithmetic] / ROUNDOFF["float64"]
    if isinstance(operation, Attend):
        own = heads[operation].leak
        passed = sum(operation.written.gain(space) * errors[space] for space in operation.value.spaces)
    elif isinstance(operation, Bank) or operation.passes:
        own = 0.0
        if isinstance(operation, Bank):
            own = operation.truncation + sum(heads[head].leak for head in operation.heads)
        passed = max(affine.moved(errors) for affine in operation.passes)
    else:
        own, passed = 0.0, sum(operation.gain.get(space, 0.0) * errors[space] for space in operation.reads)
        if operation.joint is not None:
            passed = min(passed, operation.joint * max(errors[space] for space in operation.reads))
    return rounding + own + passed


def _check(reader: str, reads: Iterable[Space], needs: Mapping[Space, float], errors: Mapping[Space, float]) -> None:
    for space in reads:
        if errors[space] > needs[space]:
            raise BuildRefused(
                f"{reader} needs {space.name!r} within {needs[space]:.3g}, but only {errors[space]:.3g} can be "
                "promised: choose a smaller --max-length, or more precise arithmetic"
            )


def _needs(network: Network) -> dict[Space, float]:
    """The error that each space may have, from its readers, last operation first."""
    needs: dict[Space, float] = dict.fromkeys(network.spaces, NO_NEED)
    for space, need in network.readout.needs.items():
        needs[space] = min(needs[space], need)
    for operation in reversed(network.operations):
        wanted = min(needs[space] for space in written_by(operation))
        for space in operation.reads:
            needs[space] = min(needs[space], _need(operation, space, wanted))
    return needs


def _need(operation: Operation, space: Space, wanted: float) -> float:
    if isinstance(operation, Attend):
        return _need_of_head(operation, space, wanted)
    if isinstance(operation, Bank):
        selecting = [head for head in operation.heads if head.gap is not None]
        share = wanted / len(operation.heads)
        needs = (_need_of_head(head, space, share) for head in selecting if space in head.reads)
        return min((operation.margin.get(space, NO_NEED), *needs))
    if isinstance(operation, Units):
        return _need_of_units(operation, space, wanted)
    router = _need_of_router(operation, space)
    return min(router, *(_need_of_units(expert, space, wanted) for expert in operation.experts))


def _need_of_router(experts: Experts, space: Space) -> float:
    """Every score may move by a quarter of the lead."""
    if isinstance(experts.router, Affine):
        gain = experts.router.gain(space)
        return experts.lead / (4 * gain * len(experts.router.parts)) if gain else NO_NEED
    return _need_of_units(experts.router, space, experts.lead / 4)


def _need_of_units(units: Units, space: Space, wanted: float) -> float:
    gain = units.gain.get(space, 0.0)
    if units.joint:
        return min(units.margin.get(space, NO_NEED), wanted / units.joint)
    noisy = sum(1 for other in units.reads if units.gain.get(other, 0.0) > 0)
    return min(units.margin.get(space, NO_NEED), wanted / (gain * noisy) if gain else NO_NEED)


def _need_of_head(head: Attend, space: Space, wanted: float) -> float:
    """Values may use half of what the reader bears; queries and keys may move a score by an eighth of the gap."""
    gain = head.written.gain(space)
    if head.beta is not None:  # its temperature is not to be chosen, so there is nothing to share with it
        return wanted / gain if gain else NO_NEED
    need = wanted / (2 * gain * len(head.value.parts)) if gain else NO_NEED
    if head.gap is None:
        return need
    moved = float(head.query.gain(space) * head.key.bound.sum() + head.key.gain(space) * head.query.bound.sum())
    return min(need, head.gap / (8 * moved)) if moved else need


def _sharpness(
    network: Network, head: Attend, wanted: float, errors: Mapping[Space, float], arithmetic: Arithmetic
) -> Sharpness:
    if head.beta is not None:
        least = None if head.attention == "hard" else head.beta
        return Sharpness(head.beta, least, None, None, head.shortfall, head.shortfall)
    if head.gap is None:
        return Sharpness(1.0, None, None, None, None, 0.0)
    rounding = ROUNDOFF[arithmetic] * (head.query.size + 2) * head.bound
    kappa = head.bound / head.gap
    noisy = any(errors[space] > 0 for space in (*head.query.spaces, *head.key.spaces))
    gap = (head.gap / 2 if noisy else head.gap) - 2 * rounding
    if gap < head.gap / 4:
        raise BuildRefused(
            f"the head {head.name!r} must tell scores apart that differ by {head.gap:.3g} among scores up to "
            f"{head.bound:.3g}; {arithmetic} rounds them by up to {rounding:.1g}: use the dyadic position code, a "
            "smaller --max-length, or more precise arithmetic"
        )
    if noisy and head.shares and head.attention != "hard":
        raise BuildRefused(
            f"the head {head.name!r} averages over keys with equal scores, so its query and key must be exact: snap "
            "the spaces that soft attention has written before they are compared"
        )
    if head.attention == "hard":
        return Sharpness(1.0, None, head.gap, kappa, None, 0.0)
    if head.attention == "sparsemax":
        least = 1.0 / gap
        return Sharpness(round_up(least), least, head.gap, kappa, None, 0.0)
    keys = network.max_length + network.pads
    largest = float(head.written.bound.max(initial=0.0))
    if largest == 0.0:
        return Sharpness(1.0, None, head.gap, kappa, None, 0.0)
    tolerance = min(wanted / 2, largest) if math.isfinite(wanted) else head.leak
    scale = 2.0 * largest * max(keys - 1, 1)
    least = max(math.log(scale / tolerance), 1.0) / gap
    beta = round_up(least)
    return Sharpness(beta, least, head.gap, kappa, tolerance, min(scale * math.exp(-beta * gap), tolerance))


def round_up(beta: float) -> float:
    """The next multiple of 1/4; large temperatures stay as they are, to a whole number."""
    return math.ceil(beta * STEP) / STEP if beta < 2**40 else math.ceil(beta)
