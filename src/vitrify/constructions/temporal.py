r"""A formula of past-time temporal logic becomes a transformer, one attention layer per nested look back.

**Hard attention** needs no positions. In the spirit of Angluin, Chiang and Yang (2023, arXiv 2310.13897): strict since,
$\varphi\,S'\,\psi$, is decided at the last earlier position where $\lnot\varphi \lor \psi$ holds, the *mark*. So one
kind of head computes all temporal operators (`spec/logic/strict.py`): its mask is strict, ties go to the right, the
query is 1, the key is the mark and the value is $\psi$. Where no earlier position is marked, the head reads the last
one, where $\psi$ is false; BOS has all bits 0. A bit is a dimension; a set of letters and a negation take nothing.

| | formula |
| --- | --- |
| attention layers | the depth of nested strict sinces |
| heads | one per different strict since |
| units | 1 for $x \land y$; 2 for $x \leftrightarrow y$ and for $x \lor (y \land z)$, of which $S$ needs one |
| width | letters, BOS, and one bit for each of `MOD(r, m)`, `AT(p, q, …)`, heads and connectives |

Blocks without heads compute connectives that stand inside each other. All numbers are whole or a half.

**Softmax and sparsemax** can't prefer the last of equal keys by contents alone. There a formula is compiled by way of a
program (`program.py`), whose heads add the position to their scores:

| | formula |
| --- | --- |
| attention layers | at most the depth of nested temporal operators, plus one if positions and letters meet below one |
| heads | one per different subformula with such an operator on top |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.program import UNITS_UNKNOWN, position_flag, program_net
from vitrify.kit.network import Affine, Builder, Flag, Network, OneHot, Output, Readout, Space
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.logic.strict import StrictTerms, Term
from vitrify.spec.logic.truth import POSITIONAL
from vitrify.spec.programs.program import BEGIN

UNITS = {"and": 1, "iff": 2, "chain": 2}
BITS = (*POSITIONAL, "strict", *UNITS)


def sizes(formula: Formula, *, attention: str) -> DeclaredSizes:
    """Return all sizes for hard attention; else bounds of attention layers and heads."""
    if attention != "hard":
        layers = formula.depth + formula.positional
        return DeclaredSizes(at_most={"heads": formula.operators, "attention_layers": layers}, unknown=UNITS_UNKNOWN)
    terms = StrictTerms(formula)
    parts = terms.parts()
    count = {operator: sum(part[0] == operator for part in parts) for operator in BITS}
    moments, levels = _moments(terms, parts)
    exact = {"heads": count["strict"], "attention_layers": max(levels.values()), "layers": (max(moments) + 1) // 2}
    units = sum(count[operator] * number for operator, number in UNITS.items())
    return DeclaredSizes({**exact, "units": units, "d_model": len(formula.alphabet) + 1 + sum(count.values())})


def _moments(terms: StrictTerms, parts: tuple[Term, ...]) -> tuple[list[int], Mapping[Term, int]]:
    """Return the half layer in which each term is computed, and the number of heads that it has passed.

    Heads are in odd half layers, all of one number in the same; units are in even ones.
    """
    levels: dict[Term, int] = {}
    reads = {part: [*_operands(part), *([terms.mark(part)] if part[0] == "strict" else [])] for part in parts}
    for part in parts:
        levels[part] = max((levels[other] for other in reads[part]), default=0) + (part[0] == "strict")
    moments: dict[Term, int] = {}
    for level in range(max(levels.values()) + 1):
        here = [part for part in parts if levels[part] == level]
        ready = [max(moments[other] for other in reads[part]) + 1 for part in here if part[0] == "strict"]
        attends = max(ready, default=1)
        for part in here:
            after = max((moments[other] for other in reads[part]), default=0)
            moments[part] = after + 2 - after % 2 if part[0] in UNITS else after
            if part[0] == "strict":
                moments[part] = attends + 1 - attends % 2
    return list(moments.values()), levels


def _operands(term: Term) -> list[Term]:
    return [part for part in term[1:] if isinstance(part, tuple)]


@construction(
    "temporal", "past-time temporal logic, a layer per nesting", sizes, default=True, certified=("to T", "every length")
)
def temporal(formula: Formula, *, attention: Attention = "softmax", max_length: MaxLength | None = None) -> Network:
    """Return the transformer of a formula: its truth value at every position."""
    if attention != "hard":
        return program_net(formula.program, attention=attention, max_length=max_length)
    try:
        return strict_net(StrictTerms(formula), formula.name, max_length or formula.length)
    except RecursionError:
        raise BuildRefused("hundreds of operators stand inside each other: use fewer of them") from None


def strict_net(terms: StrictTerms, name: str, max_length: int) -> Network:
    """Return the network of hard attention that computes the root of some terms."""
    return _Bits(terms, name, max_length).network()


class _Bits:
    """Builder of the bits of a formula: each term is an affine map of the residual stream, 0 at BOS."""

    def __init__(self, terms: StrictTerms, name: str, max_length: int) -> None:
        self.terms = terms
        self.net = Builder(name, (BEGIN, *terms.alphabet), max_length, "hard")
        letters = OneHot(terms.alphabet, void=True)
        self.token = self.net.embed("token", letters, np.vstack([np.zeros(letters.size), np.eye(letters.size)]))
        self.bos = self.net.bos
        self.bits: dict[Term, Affine] = {}

    def network(self) -> Network:
        """Return the network, whose logit of True is the bit of the formula."""
        names = Counter[str]()
        for term in self.terms.parts():
            text = self.terms.text(term)
            names[text] += 1
            self.bits[term] = self._bit(term, text if names[text] == 1 else f"{text} #{names[text]}")
        answer = self.bits[self.terms.root] @ np.array([[-1.0, 1.0]])
        errors = dict.fromkeys(answer.spaces, 0.25)
        readout = Readout(answer.parts, answer.bias + np.array([0.5, 0.0]), errors)
        source = "in the spirit of Angluin, Chiang & Yang 2023, arXiv 2310.13897"
        output = Output("transducer", ("False", "True"))
        net = self.net.network(output, readout, "temporal logic by strict since", source=source, reuse=False)
        return replace(net, gather=True)

    def _bit(self, term: Term, name: str) -> Affine:
        """Return the bit of a term, from those of its operands."""
        operator, inner = term[0], [self.bits[part] for part in _operands(term)]
        if operator == "letters":
            return Affine.of({self.token: np.array([[float(a in term[1])] for a in self.terms.alphabet])})
        if operator in POSITIONAL:
            return Affine.copy(position_flag(self.net, term))
        if operator == "not":
            return self._negated(inner[0])
        if operator == "strict":
            return self._since(self.bits[self.terms.mark(term)], inner[1], name)
        if operator == "and":
            return self._units(inner[0] + inner[1] + Affine.constant(-1.0), [1.0], name)
        if operator == "chain":
            total = inner[0] * 2.0 + inner[1] + inner[2]
            return self._units((total @ np.ones((1, 2))) + Affine.constant([-1.0, -2.0]), [1.0, -1.0], name)
        apart = inner[0] + inner[1] * -1.0
        return self._negated(self._units(apart @ np.array([[1.0, -1.0]]), [1.0, 1.0], f"!({name})"))

    def _negated(self, bit: Affine) -> Affine:
        return self.net.at_tokens(Affine.constant(1.0)) + bit * -1.0

    def _units(self, reads: Affine, out: list[float], name: str) -> Affine:
        return Affine.copy(self.net.units(name, reads, Space(name, Flag()), np.array(out)[:, None]))

    def _since(self, mark: Affine, value: Affine, name: str) -> Affine:
        """Return the value at the last marked position before this one."""
        placed = any(self.net.is_positional(space) for space in mark.spaces)
        options = {
            "gap": 1.0,
            "bound": 1.0,
            "mask": "strict",
            "ties": "right",
            "attends_to": None if placed else "last",
        }
        query, writes = Affine.constant(1.0), Space(name, Flag())
        return Affine.copy(self.net.attend(f"last marked: {name}", query, mark, value, writes, **options))
