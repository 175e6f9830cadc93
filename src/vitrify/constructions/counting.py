r"""A counting program becomes a transformer with uniform attention, one attention layer per nested count.

In the spirit of Yang and Chiang (2024, arXiv 2404.04393): a head that gives all tokens the same weight counts, and
units compare counts. Programs are for words up to a length $N$; counts are then at most $N$ and told apart without
error. They are compiled by way of programs (`program.py`), with heads of one nesting in one layer.

| | formula |
| --- | --- |
| attention layers | at most the nesting of `#` |
| heads | at most one per different count; `#true` is known from the place and takes none |
"""

from __future__ import annotations

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.constructions.program import program_net
from vitrify.kit.network import Network
from vitrify.net.transformer import AttentionKind
from vitrify.spec.crasp import Crasp


def counting(spec: Crasp, *, attention: AttentionKind = "softmax", max_length: int | None = None) -> Network:
    """The transformer of a counting program: the truth value of its result at every position."""
    return program_net(spec.program, attention=attention, max_length=max_length, gather=True)


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Crasp)
    return counting(spec, attention=settings.attention, max_length=settings.max_length)


CONSTRUCTIONS = (
    Construction("counting", Crasp, "counting programs, an attention layer per nested count", _make, default=True),
)
