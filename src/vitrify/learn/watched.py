"""Probes by name: what `vitrify train --probe NAME` logs with the losses, at every measurement.

| name | measured | one number for |
| --- | --- | --- |
| `previous` | attention to the previous token | each head |
| `matches` | attention to earlier occurrences of the present token | each head |
| `induction` | attention to the tokens right after these | each head |
| `sink` | attention to the beginning of the sequence | each head |
| `entropy` | entropy of the attention weights, in nats | each head |
| `latent:NAME` | $R^2$ of a linear probe of a latent variable in the residual stream | each moment |
| `latent:NAME:K` | accuracy of such a probe of a latent variable with the values 0 … K − 1 | each moment |
| `distance:DIR` | distance of the weights from those of a model folder, modulo symmetries | the net |
| `mechanism:DIR` | distance of where heads attend and when units fire, on the same sequences | the net |

Heads are numbered through all layers, moments are those of `net.moments`. Distances are between networks of one
architecture: the family `built` trains that of a model folder. A name is part of the identity of a run, and
the weights of a model folder that it names are, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn import distance, probes
from vitrify.learn.models.catalogue import Family
from vitrify.learn.plan import MemberGroup
from vitrify.learn.program import Probe
from vitrify.net.folder import load
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Example, Sandbox

HEADS: Mapping[str, Probe] = MappingProxyType(
    {
        "previous": probes.attention_on(probes.previous_token),
        "matches": probes.attention_on(probes.matches),
        "induction": probes.attention_on(probes.induction),
        "sink": probes.attention_on(probes.sink),
        "entropy": probes.entropy,
    }
)
NAMED = ("latent:NAME", "latent:NAME:CLASSES", "distance:DIR", "mechanism:DIR")


def problem(name: str) -> str | None:
    """Return what is wrong with the name of a probe, if anything is."""
    kind, _, rest = name.partition(":")
    known = name in HEADS or (kind in ("latent", "distance", "mechanism") and rest)
    return None if known else f"must be some of {', '.join([*HEADS, *NAMED])}, not {name!r}"


def pinned(name: str) -> str:
    """Return the name of a probe with the digest of the weights that it compares with, if any."""
    kind, _, rest = name.partition(":")
    return f"{kind}:{_reference(rest).digest}" if kind in ("distance", "mechanism") else name


def probe(name: str, family: Family, sandbox: Sandbox) -> Probe:
    """Return the probe of a name."""
    kind, _, rest = name.partition(":")
    if name in HEADS:
        return HEADS[name]
    if kind == "latent":
        latent, _, classes = rest.partition(":")
        if classes and not classes.isdecimal():
            raise InputError(f"{name}: the number of classes must be a whole number, not {classes!r}")
        return probes.decodes(partial(_latent, latent, bool(classes)), int(classes) if classes else None)
    reference = _reference(rest)
    if reference.architecture != family.architecture(sandbox):
        raise InputError(f"{name}: distances are between networks of one architecture; train the family `built` on it")
    if kind == "distance":
        return distance.probe(reference)
    return distance.mechanism_probe(reference, family, sandbox)


def named(group: MemberGroup) -> dict[str, Probe]:
    """Return the probes that the recipe of a group names."""
    return {name: probe(name, group.family, group.sandbox) for name in group.recipe.probes}


def _reference(folder: str) -> Weights[Any]:
    return load(Path(folder))


def _latent(name: str, classes: bool, batch: Example) -> Array:
    """Return a latent variable: classes as they are, real numbers with one axis of components."""
    if name not in batch.latent:
        raise InputError(f"sequences have no latent variable {name!r}: they have {', '.join(batch.latent) or 'none'}")
    value, positions = batch.latent[name], (batch.tokens.shape[1], batch.targets.shape[1])
    if classes:
        return value
    leading = 2 if value.ndim > 1 and value.shape[1] in positions else 1  # the axes of sequences, and of positions
    return value.reshape(*value.shape[:leading], -1)
