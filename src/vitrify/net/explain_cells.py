"""Explain a recurrent cell in the names of its spaces: the update of each state dimension, or of each token."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats
from vitrify.net.architecture import Architecture
from vitrify.net.cells import Cell
from vitrify.net.explain_terms import Source, added, listed, signed, terms_of
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights

RULES = {
    "linear": "h ← h A + x B",
    "relu": "h ← relu(h A + x B)",
    "diagonal": "h ← h ⊙ a(x) + x B, a(x) a scale for each number",
    "positive": "h ← h ⊙ σ(a(x)) + x B, a(x) a number for each number",
    "signed": "h ← h ⊙ tanh(a(x)) + x B, a(x) a number for each number",
    "householder": "h ← h H(x) + x B, H(x) a product of Householder factors",
    "full": "h ← h A(x) + x B, A(x) a matrix",
    "lstm": "c ← σ(f) ⊙ c + σ(i) ⊙ tanh(g), h ← σ(o) ⊙ tanh(c)",
}


def followed(
    weights: Weights[Architecture], block: int, cell: Cell, inputs: list[Source], outputs: list[Source]
) -> list[str]:
    """Return a line for each state dimension, or for each token where a recurrent net's transition depends on it.

    `inputs` are the spaces that the cell reads, `outputs` those of its state.
    """
    net, part = weights.architecture, f"blocks.{block}.rec."
    arrays = {name.removeprefix(part): dense(a) for name, a in weights.arrays.items() if name.startswith(part)}
    if cell.kind in ("linear", "relu", "lstm"):
        gates = ("i", "f", "g", "o") if cell.kind == "lstm" else ("",)
        return [
            f"{f'{gate} of ' if gate else ''}{name} ← {_rule(cell, arrays, inputs, outputs, at + g * cell.state)}"
            for g, gate in enumerate(gates)
            for at, name in _coordinates(outputs)
        ]
    if not isinstance(net, Recurrent) or cell.kind in ("positive", "signed"):  # what it reads is no token any more
        if cell.kind != "diagonal":
            return [RULES[cell.kind]]
        return [
            f"{name} ← ({added(terms_of(arrays['W_A'][:, at], inputs))})·{name} + "
            f"{added(terms_of(arrays['W_B'][:, at], inputs))}"
            for at, name in _coordinates(outputs)
        ]
    embedded = dense(weights.arrays["embed.W_E"])
    return [
        f"{symbol}: {_moves(transition(cell, arrays['W_A'], x), x @ arrays['W_B'], outputs)}"
        for symbol, x in zip(net.inputs, embedded, strict=True)
    ]


def transition(cell: Cell, w_a: Floats, x: Floats) -> Floats:
    """Return the matrix that multiplies the state when a cell with input-dependent transitions reads x."""
    if cell.kind == "diagonal":
        return np.diag(x @ w_a)
    if cell.kind == "full":
        return np.asarray(np.einsum("i,ist->st", x, w_a))
    matrix: Floats = np.eye(cell.state)
    for factor in w_a:
        matrix = matrix - np.outer(matrix @ (x @ factor), x @ factor)
    return matrix


def _coordinates(outputs: list[Source]) -> list[tuple[int, str]]:
    return sorted((dim, s.coordinate(at)) for s in outputs for at, dim in enumerate(s.dims))


def _rule(cell: Cell, arrays: dict[str, Floats], inputs: list[Source], outputs: list[Source], column: int) -> str:
    bias = float(arrays["b"][column]) if cell.kind == "lstm" else 0.0
    terms = terms_of(arrays["W_A"][:, column], outputs) + terms_of(arrays["W_B"][:, column], inputs)
    return f"relu({added(terms, bias)})" if cell.kind == "relu" else added(terms, bias)


def _moves(matrix: Floats, driven: Floats, outputs: list[Source]) -> str:
    """Return the update of the state by a token: arrows if each dimension moves to at most one, else sums."""
    names = dict(_coordinates(outputs))
    gone = [names[a] for a in range(len(matrix)) if not matrix[a].any()]
    parts = []
    if len(gone) == len(matrix):
        parts.append("all forgotten")
    elif np.array_equal(matrix, np.eye(len(matrix))):
        parts.append("all stays")
    elif np.isin(matrix, (-1, 0, 1)).all() and (np.count_nonzero(matrix, axis=1) <= 1).all():
        arrows = [(a, b, matrix[a, b]) for a, b in np.argwhere(matrix).tolist()]
        parts += [f"{names[a]} → {'−' if w < 0 else ''}{names[b]}" for a, b, w in arrows if a != b or w < 0]
        parts += [f"{listed(gone)} forgotten"] if gone else []
    else:
        parts += [f"{names[b]} ← {added(terms_of(matrix[:, b], outputs))}" for b in range(len(matrix))]
    parts += [f"{name} {signed(value)}" for name, value in terms_of(driven, outputs)]
    return ", ".join(parts)
