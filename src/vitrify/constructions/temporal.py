r"""A formula of past-time temporal logic becomes a transformer, one attention layer per nested look back.

In the spirit of Yang, Chiang and Angluin (2024, arXiv 2310.13897): $\varphi\,S\,\psi$ is decided at the last position
where $\neg\varphi \lor \psi$ holds, so one head that looks for the rightmost marked position computes it. Formulas are
compiled by way of programs (`program.py`); connectives are units.

| | formula |
| --- | --- |
| attention layers | at most the depth of nested temporal operators, plus one if `MOD` and letters meet below one |
| heads | one per different subformula with such an operator on top |
"""

from __future__ import annotations

from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, construction
from vitrify.constructions.program import UNITS_UNKNOWN, program_net
from vitrify.kit.network import Network
from vitrify.spec.logic.ltl import Formula


def sizes(formula: Formula) -> DeclaredSizes:
    """Return bounds of attention layers and heads."""
    layers = formula.depth + ("MOD" in str(formula))
    return DeclaredSizes(at_most={"heads": formula.operators, "attention_layers": layers}, unknown=UNITS_UNKNOWN)


@construction(
    "temporal", "past-time temporal logic, a layer per nesting", sizes, default=True, certified=("to T", "every length")
)
def temporal(formula: Formula, *, attention: Attention = "softmax", max_length: MaxLength | None = None) -> Network:
    """Return the transformer of a formula: its truth value at every position."""
    return program_net(formula.program, attention=attention, max_length=max_length)
