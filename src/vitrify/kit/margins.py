r"""Margins: the inverse temperature of each head, derived from the errors that the readout and the units tolerate.

*Backward pass*: every space gets the error it may have, the least that any of its readers tolerates. *Forward pass*:
each softmax head gets the inverse temperature that keeps its leak within half of that, and the remaining errors are
added up. For $n$ keys, values bounded by $V$ and a gap $g$, the keys that should lose take at most $(n-1)e^{-\beta g}$
of the weight, so the output is off by at most $2V(n-1)e^{-\beta g}$, and $\beta = \ln(2V(n-1)/\tau)/g$ keeps it below
$\tau$. Sparsemax is one-hot as soon as $\beta g \ge 1$. Hard attention needs no $\beta$.

Rounding moves a score of $d$ products by at most $(d+2)\,u\,S$, $S$ bounding $\sum|q_c k_c|$; a head whose gap does not
stay well above that is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from vitrify.errors import BuildRefused
from vitrify.kit.network import Affine, Network, Norm, Recur, Space
from vitrify.kit.operations import Attend, Bank, Experts, Operation, Units, heads_of, written_by
from vitrify.net.spaces import Flag, Integers
from vitrify.net.sparse import is_sparse

Arithmetic = Literal["float64", "float32"]
Errors: TypeAlias = Mapping[Space, float]
ROUNDOFF: dict[Arithmetic, float] = {"float64": 2.0**-53, "float32": 2.0**-24}
UNLIMITED = math.inf
BETA_STEPS_PER_UNIT = 4.0  # inverse temperatures are rounded up to a multiple of 1/4


@dataclass(frozen=True)
class Sharpness:
    """The inverse temperature of a head, and the quantities from which it follows."""

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
    """Return the inverse temperature of every head and the error of every space; refuse if none will do."""
    needs = _needs(network)
    errors: dict[Space, float] = dict.fromkeys(network.inputs_of_stream, 0.0)
    heads: dict[Attend, Sharpness] = {}
    for operation in network.operations:
        _check(repr(operation.name), operation.reads, needs, errors, arithmetic)
        allowed = min(needs[space] for space in written_by(operation))
        for head in heads_of(operation):
            heads[head] = _sharpness(network, head, allowed / len(heads_of(operation)), errors, arithmetic)
        works = operation.experts if isinstance(operation, Experts) else (operation,)
        error = max(_error(work, heads, errors, arithmetic) for work in works)
        errors |= dict.fromkeys(written_by(operation), error)
    _check("the readout", network.readout.max_errors, needs, errors, arithmetic)
    return Margins(heads, errors)


def _error(
    operation: Attend | Bank | Recur | Units | Norm,
    heads: Mapping[Attend, Sharpness],
    errors: Mapping[Space, float],
    arithmetic: Arithmetic,
) -> float:
    """Return the error of what an operation writes: rounding, the method's own error, and errors passed on."""
    rounding = operation.error * ROUNDOFF[arithmetic] / ROUNDOFF["float64"]
    if isinstance(operation, Attend):
        truncation = heads[operation].leak
        passed = sum(operation.written.gain(space) * errors[space] for space in operation.value.spaces)
    elif isinstance(operation, Recur):
        truncation, passed = 0.0, operation.error_gain * operation.drives.error_bound(errors)
    elif isinstance(operation, Bank) or operation.passes:
        truncation = 0.0
        if isinstance(operation, Bank):
            truncation = operation.truncation + sum(heads[head].leak for head in operation.heads)
        passed = max(affine.error_bound(errors) for affine in operation.passes)
    else:
        truncation, passed = 0.0, sum(operation.gain.get(space, 0.0) * errors[space] for space in operation.reads)
        if operation.joint is not None:
            passed = min(passed, operation.joint * max(errors[space] for space in operation.reads))
    return rounding + truncation + passed


def _check(reader: str, reads: Iterable[Space], needs: Errors, errors: Errors, arithmetic: Arithmetic) -> None:
    for space in reads:
        if errors[space] > needs[space]:
            raise BuildRefused(
                f"{reader} needs {space.name!r} within {needs[space]:.3g}, but only {errors[space]:.3g} can be "
                f"promised: use a smaller spec or maximum length{', or float64' if arithmetic == 'float32' else ''}"
            )


def _needs(network: Network) -> dict[Space, float]:
    """Return the error that each space may have, from its readers, last operation first."""
    needs: dict[Space, float] = dict.fromkeys(network.spaces, UNLIMITED)
    for space, need in network.readout.max_errors.items():
        needs[space] = min(needs[space], need)
    for operation in reversed(network.operations):
        allowed = min(needs[space] for space in written_by(operation))
        for space in operation.reads:
            needs[space] = min(needs[space], _need(operation, space, allowed))
    return needs


def _need(operation: Operation, space: Space, allowed: float) -> float:
    if isinstance(operation, Attend):
        return _need_of_head(operation, space, allowed)
    if isinstance(operation, Bank):
        selecting = [head for head in operation.heads if head.gap is not None]
        share = allowed / len(operation.heads)
        needs = (_need_of_head(head, space, share) for head in selecting if space in head.reads)
        return min((operation.margin.get(space, UNLIMITED), *needs))
    if isinstance(operation, Recur):
        if space in operation.scale.spaces:
            return 0.0
        gain = operation.error_gain * operation.drives.gain(space) * len(operation.drives.parts)
        return allowed / gain if gain else UNLIMITED
    if isinstance(operation, Units | Norm):
        return _need_of_units(operation, space, allowed)
    router = _need_of_router(operation, space)
    return min(router, *(_need_of_units(expert, space, allowed) for expert in operation.experts))


def _need_of_router(experts: Experts, space: Space) -> float:
    """Return the error allowed to a space that a router reads: every score may move by a quarter of the margin."""
    if isinstance(experts.router, Affine):
        gain = experts.router.gain(space)
        return experts.router_margin / (4 * gain * len(experts.router.parts)) if gain else UNLIMITED
    return _need_of_units(experts.router, space, experts.router_margin / 4)


def _need_of_units(units: Units | Norm, space: Space, allowed: float) -> float:
    gain = units.gain.get(space, 0.0)
    if units.joint:
        return min(units.margin.get(space, UNLIMITED), allowed / units.joint)
    noisy = sum(1 for other in units.reads if units.gain.get(other, 0.0) > 0)
    return min(units.margin.get(space, UNLIMITED), allowed / (gain * noisy) if gain else UNLIMITED)


def _need_of_head(head: Attend, space: Space, allowed: float) -> float:
    """Return the error allowed to a space that a head reads.

    Values may use half of what the head's reader tolerates; queries and keys may move a score by an eighth of the gap.
    """
    gain = head.written.gain(space)
    if head.beta is not None:  # its inverse temperature is not to be chosen, so there is nothing to share with it
        need, spare = (allowed / gain if gain else UNLIMITED), head.noise
    else:
        need = allowed / (2 * gain * len(head.value.parts)) if gain else UNLIMITED
        spare = None if head.gap is None else head.gap / 8
    if spare is None:
        return need
    moved_by_key = float(head.key.gain(space) * head.query.bound.sum())
    moved = float(head.query.gain(space) * head.key.bound.sum()) + moved_by_key
    scored = len({*head.query.spaces, *head.key.spaces}) if head.noise is not None else 1
    need = min(need, spare / (moved * scored)) if moved else need
    if moved_by_key and head.key_noise is not None:
        need = min(need, head.key_noise / (moved_by_key * len(head.key.spaces)))
    return need


def _sharpness(
    network: Network, head: Attend, allowed: float, errors: Mapping[Space, float], arithmetic: Arithmetic
) -> Sharpness:
    if head.gap is None and head.beta is not None:
        least = None if head.attention == "hard" else head.beta
        return Sharpness(head.beta, least, None, None, head.shortfall, head.shortfall)
    if head.gap is None:
        return Sharpness(1.0, None, None, None, None, 0.0)
    if head.attention == "hard" and _in_halves(head, errors, arithmetic):
        return Sharpness(1.0, None, head.gap, head.bound / head.gap, None, 0.0)
    rounding = ROUNDOFF[arithmetic] * (head.query.size + 2) * head.bound
    kappa = head.bound / head.gap
    noisy = any(errors[space] > 0 for space in (*head.query.spaces, *head.key.spaces))
    gap = (head.gap / 2 if noisy else head.gap) - 2 * rounding
    if gap < head.gap / 4:
        raise BuildRefused(
            f"the head {head.name!r} must tell scores apart that differ by {head.gap:.3g} among scores up to "
            f"{head.bound:.3g}; {arithmetic} rounds them by up to {rounding:.1g}: use "
            + " or ".join(_remedies(network, head, arithmetic))
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
    if head.beta is not None:
        return Sharpness(head.beta, head.beta, head.gap, kappa, head.shortfall, head.shortfall)
    keys = network.max_length + network.pads
    largest = float(head.written.bound.max(initial=0.0))
    if largest == 0.0:
        return Sharpness(1.0, None, head.gap, kappa, None, 0.0)
    tolerance = min(allowed / 2, largest) if math.isfinite(allowed) else head.leak
    scale = 2.0 * largest * max(keys - 1, 1)
    least = max(math.log(scale / tolerance), 1.0) / gap
    beta = round_up(least)
    return Sharpness(beta, least, head.gap, kappa, tolerance, min(scale * math.exp(-beta * gap), tolerance))


def _remedies(network: Network, head: Attend, arithmetic: Arithmetic) -> list[str]:
    """Return what helps where rounding is too coarse for the scores of a head."""
    code = ["the dyadic position code"] if isinstance(head.attends_to, int) else []  # of heads that read so far back
    positional = {space for space, _ in network.positional}
    size = "a smaller maximum length" if positional.intersection(head.reads) else "a smaller spec"
    return [*code, size, *(["float64"] if arithmetic == "float32" else [])]


def _in_halves(head: Attend, errors: Mapping[Space, float], arithmetic: Arithmetic) -> bool:
    """Return whether all scores are multiples of 1/2 that a format holds exactly: a head then rounds nothing."""
    whole = all(
        errors[space] == 0 and isinstance(space.kind, Integers | Flag)
        for space in (*head.query.spaces, *head.key.spaces)
    )
    grids = ((head.query, 2), (head.key, 1))
    weights = [scale * matrix for each, scale in grids for matrix in (*(m for _, m in each.parts), each.bias)]
    halves = all(not is_sparse(matrix) and not (matrix % 1).any() for matrix in weights)
    return whole and halves and 2 * head.bound * ROUNDOFF[arithmetic] <= 1


def round_up(beta: float) -> float:
    """Round an inverse temperature up to a multiple of 1/4; very large ones to an integer."""
    return math.ceil(beta * BETA_STEPS_PER_UNIT) / BETA_STEPS_PER_UNIT if beta < 2**40 else math.ceil(beta)
