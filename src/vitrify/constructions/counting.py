r"""A counting program becomes a transformer with uniform attention, one attention layer per nested count.

In the spirit of Yang and Chiang (2024, arXiv 2404.04393): a head that gives all tokens the same weight counts, and
units compare counts. In the mode `bounded`, programs are for words up to a length $N$; counts are then at most $N$ and
told apart without error. They are compiled by way of programs (`program.py`), with heads of one nesting in one layer.
In the mode `layernorm` no weight depends on $N$ (`_counting_norm.py`): heads bring shares, and a comparison is the sign
of a number that may be as small as $1/(N+1)$, which a norm over two dimensions of its own makes $\pm1$.

| | `bounded` | `layernorm` |
| --- | --- | --- |
| attention layers | at most the nesting of `#` | the same, and at least one where counts are compared |
| heads | at most one per different count; `#true` is known from the place and takes none | at most one per nesting |
| what bounds the length | the program's `length` | rows of the position table; float64 |
"""

from __future__ import annotations

from vitrify.constructions._counting_norm import shares
from vitrify.constructions.catalogue import Construction, Mode, Settings
from vitrify.constructions.program import program_net
from vitrify.kit.network import Network
from vitrify.net.transformer import AttentionKind
from vitrify.spec.crasp import Crasp


def counting(
    spec: Crasp, *, attention: AttentionKind = "softmax", max_length: int | None = None, mode: Mode = "bounded"
) -> Network:
    """The transformer of a counting program: the truth value of its result at every position."""
    if mode == "layernorm":
        return shares(spec, attention=attention, max_length=max_length)
    return program_net(spec.program, attention=attention, max_length=max_length, gather=True)


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Crasp)
    mode = settings.mode or "bounded"
    return counting(spec, attention=settings.attention, max_length=settings.max_length, mode=mode)


CONSTRUCTIONS = (
    Construction(
        "counting",
        Crasp,
        "counting programs, an attention layer per nested count",
        _make,
        default=True,
        choices=("attention", "max_length", "mode"),
        certified="proved",
    ),
)
