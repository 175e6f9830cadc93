r"""A formula of past-time temporal logic becomes a transformer, one attention layer per nested look back.

In the spirit of Yang, Chiang and Angluin (2024, arXiv 2310.13897): $\varphi\,S\,\psi$ is decided at the last position
where $\neg\varphi \lor \psi$ holds, so one head that looks for the rightmost marked position computes it. Formulas are
compiled by way of programs (`program.py`); connectives are units.

| | formula |
| --- | --- |
| attention layers | at most the depth of nested looks back, plus one if `MOD` and letters meet below one |
| heads | one per different subformula with such an operator on top |
"""

from __future__ import annotations

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.constructions.program import program_net
from vitrify.kit.network import Network
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ltl import Formula


def temporal(formula: Formula, *, attention: AttentionKind = "hard", max_length: int | None = None) -> Network:
    """The transformer of a formula: its truth value at every position."""
    return program_net(formula.program, attention=attention, max_length=max_length)


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Formula)
    return temporal(spec, attention=settings.attention, max_length=settings.max_length)


CONSTRUCTIONS = (
    Construction(
        "temporal", Formula, "past-time temporal logic, a layer per nesting", _make, default=True, certified="proved"
    ),
)
