"""Small specs of every type, and the nets that constructions make of them: what contracts are tested on."""

from __future__ import annotations

from typing import Any

import pytest

from built import ATTENTIONS
from vitrify.constructions.catalogue import Attention, Construction, build, constructions
from vitrify.errors import BuildRefused
from vitrify.net.weights import Weights
from vitrify.spec.kinds import kinds

LENGTH = 12
SAMPLES: dict[type, list[object]] = {}  # what every construction of a type must build
for spec in (sample for kind in kinds() for sample in kind.spec.samples().values()):
    SAMPLES.setdefault(type(spec), []).append(spec)
ENTRIES = {entry.name: entry for entry in constructions()}


def own(entry: Construction) -> Attention:
    """Return the attention under which an entry is certified: softmax, unless it is fixed."""
    fixed: Attention = entry.fixed.get("attention", "softmax")
    return fixed


SOFT_AND_ANOTHER = [  # each entry with two kinds of attention, the second in turn; the third is slow
    (name, attention)
    if attention in ("softmax", own(ENTRIES[name])) or ATTENTIONS.index(attention) == 1 + place % (len(ATTENTIONS) - 1)
    else pytest.param(name, attention, marks=pytest.mark.slow)
    for place, name in enumerate(ENTRIES)
    for attention in ATTENTIONS
]


def common(entry: Construction, attention: Attention = "softmax", length: int = LENGTH) -> dict[str, Any]:
    """Return an attention and a length as the choices of an entry, those that it has."""
    choices = {"attention": attention, "max_length": length}
    return {name: value for name, value in choices.items() if name in entry.choices}


def built(entry: Construction, spec: object, attention: Attention, length: int = LENGTH) -> Weights[Any] | None:
    """The net of an entry, or nothing where it refuses in a sentence; without a choice of attention, it has its own."""
    if "attention" not in entry.choices and attention != own(entry):
        return None
    try:
        return build(spec, entry.name, **common(entry, attention, length))
    except BuildRefused:
        return None
