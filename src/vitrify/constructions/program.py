r"""A program of selections and aggregations becomes a transformer: heads select, units compute, nothing is approximate.

The language is that of RASP (Weiss et al. 2021, arXiv 2106.06981); the compilation is our own. Every expression has a
finite set of values. In the stream it is a *code* (one dimension per value) or a *line* (one number, with a point per
value); what a reader needs is taken from either by a linear map where that is enough, else by ramps between points.

| part | cost |
| --- | --- |
| functions of one expression, sums, negations | nothing: a linear map, or the ramps that its reader needs |
| comparisons, and, or | two units (four for equality) |
| minimum, maximum | one unit |
| other functions of several expressions | one unit per class of equal rows and columns |
| `aggregate`, `first`, `last`, `mean`, `width` | one head; the tests of a conjunction stand side by side in it |
| counts of marked positions to the left | one head, exact: every visible position has the same weight |
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from vitrify.constructions._program_functions import FEW
from vitrify.constructions._program_looks import Looks
from vitrify.constructions._program_stream import numbers_of, symbols_of
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.network import Network, Readout
from vitrify.net.architecture import Output
from vitrify.net.transformer import AttentionKind
from vitrify.spec.program_file import Program


def program_net(
    program: Program, *, attention: AttentionKind = "softmax", max_length: int | None = None, gather: bool = False
) -> Network:
    """The transformer of a program; `gather` puts all heads of one nesting into one layer."""
    if max_length is not None and max_length != program.length:
        raise BuildRefused(f"the program is for words to length {program.length}: change it there, or leave it out")
    if program.ambiguities:
        raise BuildRefused("\n".join(map(str, program.ambiguities)))
    try:
        return replace(_compiled(program, attention), gather=gather)
    except RecursionError:
        raise BuildRefused("hundreds of functions stand inside each other: use fewer of them") from None


def _compiled(program: Program, attention: AttentionKind) -> Network:
    draft = _Compiler(program, attention)
    network = draft.network()
    if draft.refused:
        raise BuildRefused("\n".join(draft.refused))
    if sum(table.shape[1] for table in draft.token_tables.values()) < len(program.alphabet):
        return _Compiler(program, attention, letters=False).network()
    return network


class _Compiler(Looks):
    """All of a program, and how its result is read."""

    def network(self) -> Network:
        """Everything that the result needs, and how it is read."""
        root, domain = self.program.root, self.values[self.program.root]
        about = {
            "construction": "program of selections and aggregations",
            "attention": self.attention,
            "program": self.program.name,
            "source": "language of Weiss et al. 2021, arXiv 2106.06981",
        }
        if any(isinstance(value, Fraction) for value in domain):
            number = self.number(root)
            readout = Readout(number.parts, number.bias, dict.fromkeys(number.spaces, 1e-09))
            return self.net.network(Output("values", ("value",)), readout, about)
        if self.values.numeric(root) and len(domain) > FEW:
            number, points = self.number(root), numbers_of(domain)
            wide = number @ (2.0 * points[None, :])
            need = {space: 0.2 / max(sum(number.gain(s) for s in number.spaces), 1.0) for space in number.spaces}
            return self.net.network(
                Output("transducer", symbols_of(domain)), Readout(wide.parts, wide.bias - points**2, need), about
            )
        code = self.vector(root, np.eye(len(domain)))
        need = {space: 0.2 / max(sum(code.gain(s) for s in code.spaces), 1.0) for space in code.spaces}
        return self.net.network(Output("transducer", symbols_of(domain)), Readout(code.parts, code.bias, need), about)


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Program)
    return program_net(spec, attention=settings.attention, max_length=settings.max_length)


CONSTRUCTIONS = (
    Construction(
        "program", Program, "programs of selections and aggregations", _make, default=True, certified="proved"
    ),
)
