r"""Recurrent cells: the update of a hidden state from position to position.

A cell reads a vector $x_t$ at every position; $h_0 = 0$, or the state in a cache. With $u_t = x_t W_B$:

| kind | next state | $W_A$ |
| --- | --- | --- |
| `linear` | $h_{t-1} W_A + u_t$ | [state, state], the same at every position |
| `relu` | $\mathrm{relu}(h_{t-1} W_A + u_t)$, a simple (Elman) recurrent net | [state, state] |
| `diagonal` | $h_{t-1} \odot (x_t W_A) + u_t$ | [read, state] |
| `positive` | $h_{t-1} \odot \sigma(x_t W_A + b) + u_t$: decays in (0, 1) | [read, state] |
| `signed` | $h_{t-1} \odot \tanh(x_t W_A + b) + u_t$: decays in (-1, 1) | [read, state] |
| `householder` | $h_{t-1} \prod_j (I - v_j^\top v_j) + u_t$, $v_j = x_t W_{A,j}$ | [factor, read, state] |
| `full` | $\sum_i x_{t,i}\, h_{t-1} W_{A,i} + u_t$ | [read, state, state] |
| `lstm` | $h_t = \sigma(o)\,\tanh(c_t)$, $c_t = \sigma(f)\,c_{t-1} + \sigma(i)\,\tanh(g)$ | [state, 4 state] |

where $(i, f, g, o) = h_{t-1} W_A + u_t + b$ in an LSTM. A factor $I - v^\top v$ is a reflection where $|v|^2 = 2$,
the identity where $v = 0$, and has the eigenvalue $1 - |v|^2$ in general: the usual $I - \beta k^\top k$ with a unit
vector $k$ is $v = \sqrt\beta\,k$.

All kinds but `relu` and `lstm` are linear in the state: joining two neighbouring runs of positions is associative, so
the states also come out of $\lceil\log_2 T\rceil$ rounds over all positions at once, in which position $t$ takes over
what is known $1, 2, 4, \dots$ positions before it (`parallel`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from vitrify.arrays import Array, Float, Matrix, namespace
from vitrify.errors import FolderError
from vitrify.net.architecture import Size
from vitrify.net.sparse import matmul

if TYPE_CHECKING:
    from vitrify.net.transformer_forward import Part

CellKind = Literal["linear", "relu", "diagonal", "positive", "signed", "householder", "full", "lstm"]
NONLINEAR: tuple[CellKind, ...] = ("relu", "lstm")
ELEMENTWISE: tuple[CellKind, ...] = ("diagonal", "positive", "signed")  # each dimension of the state has its own decay
BIASED: tuple[CellKind, ...] = ("positive", "signed", "lstm")
State = Array | tuple[Array, Array]  # carried from position to position: h, or (h, c) of an LSTM
Step = Callable[..., tuple[State, Array]]  # (carry, inputs of one position) -> (carry, hidden state)


@dataclass(frozen=True)
class Cell:
    """A recurrent cell with `state` dimensions; `factors` is the number of factors of a Householder product.

    A `parallel` cell is computed by an associative scan over all positions; only linear cells can be.
    """

    kind: CellKind
    state: Size
    factors: Size = 0
    parallel: bool = False

    def __post_init__(self) -> None:
        if self.parallel and self.kind in NONLINEAR:
            raise FolderError(f"only a cell that is linear in its state can be parallel, not one of kind {self.kind!r}")
        if (self.kind == "householder") != (self.factors > 0):
            raise FolderError("a cell has factors if it is of kind 'householder', and only then")

    @property
    def memory(self) -> int:
        """The number of values carried from one position to the next."""
        return 2 * self.state if self.kind == "lstm" else self.state

    def shapes(self, read: int) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every array of a cell with `read` input dimensions."""
        state = self.state
        transition: dict[CellKind, tuple[int, ...]] = {
            **dict.fromkeys(ELEMENTWISE, (read, state)),
            "householder": (self.factors, read, state),
            "full": (read, state, state),
            "lstm": (state, 4 * state),
        }
        gates = 4 * state if self.kind == "lstm" else state
        shapes = {"W_A": transition.get(self.kind, (state, state)), "W_B": (read, gates)}
        return shapes | ({"b": (gates,)} if self.kind in BIASED else {})

    def held(self, read: int) -> int:
        """Return the number of activations held at once for one position, beside the input."""
        rows = {"householder": self.factors, "full": read, "lstm": 8}.get(self.kind, 1)
        return self.state * (2 + rows + (self.state if self.parallel and self.kind not in ELEMENTWISE else 0))


def states(cell: Cell, part: Part, x: Float[Array, "batch pos read"]) -> Float[Array, "batch pos state"]:
    """Return the hidden states of a cell whose arrays are those of `part`, on inputs x."""
    w_a, driven = part["rec.W_A"], matmul(x, part["rec.W_B"])
    h = namespace(x).zeros_like(driven[:, 0, : cell.state])
    carry = part.state("rec", (h, h) if cell.kind == "lstm" else h)
    if cell.parallel:
        transitions = _decays(cell, part, x) if cell.kind in ELEMENTWISE else _transition_matrices(cell, w_a, x)
        hidden = _parallel_scan(transitions, driven, carry)
        carry = hidden[:, -1]
    else:
        inputs = [driven + part["rec.b"] if cell.kind == "lstm" else driven]
        if cell.kind in ELEMENTWISE:
            inputs.append(_decays(cell, part, x))
        elif cell.kind in ("householder", "full"):
            inputs.append(matmul(x, w_a) if cell.kind == "householder" else x)
        carry, hidden = _scan(lambda carry, *now: _step(cell.kind, w_a, carry, *now), carry, tuple(inputs))
    part.set_state("rec", carry)
    return hidden


def _scan(step: Step, carry: State, inputs: tuple[Array, ...]) -> tuple[State, Array]:
    """Run position after position; return the last carry and all hidden states. NumPy loops, JAX scans."""
    if isinstance(inputs[0], np.ndarray):
        hidden = []
        for position in range(inputs[0].shape[1]):
            carry, h = step(carry, *(series[:, position] for series in inputs))
            hidden.append(h)
        return carry, np.stack(hidden, axis=1)
    from jax import lax  # the inputs are JAX arrays, so JAX is installed

    xp = namespace(inputs[0])
    carry, hidden = lax.scan(
        lambda carry, now: step(carry, *now), carry, tuple(xp.moveaxis(series, 1, 0) for series in inputs)
    )
    return carry, xp.moveaxis(hidden, 0, 1)


def _step(kind: CellKind, w_a: Matrix, carry: State, driven: Array, read: Array = None) -> tuple[State, Array]:
    """Return the carry and the hidden state after a position that reads a decay, Householder vectors, or x itself."""
    h: Array = carry
    if kind == "lstm":
        h, c = carry
        xp, size = namespace(c), c.shape[-1]
        gates = matmul(h, w_a) + driven
        i, f, g, o = (gates[:, at * size : (at + 1) * size] for at in range(4))
        c = _sigmoid(f) * c + _sigmoid(i) * xp.tanh(g)
        h = _sigmoid(o) * xp.tanh(c)
        return (h, c), h
    if kind in ELEMENTWISE:
        h = h * read + driven
    elif kind == "householder":
        for factor in range(read.shape[1]):
            h = h - (h * read[:, factor]).sum(axis=-1, keepdims=True) * read[:, factor]
        h = h + driven
    elif kind == "full":
        h = (read[:, :, None] * matmul(h, w_a)).sum(axis=1) + driven  # all transitions, weighted by x
    else:
        h = matmul(h, w_a) + driven
        h = namespace(h).maximum(h, 0) if kind == "relu" else h
    return h, h


def _decays(cell: Cell, part: Part, x: Float[Array, "batch pos read"]) -> Float[Array, "batch pos state"]:
    """Return the factor of every state dimension at every position."""
    scale = matmul(x, part["rec.W_A"])
    if cell.kind == "diagonal":
        return scale
    scale = scale + part["rec.b"]
    return _sigmoid(scale) if cell.kind == "positive" else namespace(x).tanh(scale)


def _sigmoid(x: Array) -> Array:
    """Return the logistic function, exactly 0 and 1 for large arguments, without overflow."""
    return (1 + namespace(x).tanh(x / 2)) / 2


def _parallel_scan(transitions: Array, driven: Array, carry: Array) -> Array:
    """Return the same states by an associative scan; a range of positions is its transition and its contribution.

    A transition is a factor for each dimension [batch, pos, state], or a matrix [batch, pos, state, state].
    """
    xp, scales = namespace(driven), transitions.ndim == 3
    first = carry * transitions[:, 0] if scales else (carry[:, None] @ transitions[:, 0])[:, 0]
    driven = xp.concatenate([(driven[:, 0] + first)[:, None], driven[:, 1:]], axis=1)
    reach = 1
    while reach < driven.shape[1]:
        before, after = transitions[:, :-reach], transitions[:, reach:]
        if scales:
            moved, joined = driven[:, :-reach] * after, before * after
        else:
            moved, joined = (driven[:, :-reach, None, :] @ after)[:, :, 0], before @ after
        driven = xp.concatenate([driven[:, :reach], moved + driven[:, reach:]], axis=1)
        transitions = xp.concatenate([transitions[:, :reach], joined], axis=1)
        reach *= 2
    return driven


def _transition_matrices(
    cell: Cell, w_a: Matrix, x: Float[Array, "batch pos read"]
) -> Float[Array, "batch pos state state"]:
    """Return the transition matrix at every position."""
    xp = namespace(x)
    identity = xp.eye(cell.state, dtype=x.dtype)
    if cell.kind == "householder":
        v = matmul(x, w_a)
        transitions = identity + xp.zeros((*x.shape[:2], 1, 1), dtype=x.dtype)
        for factor in range(cell.factors):
            transitions = transitions - (transitions @ v[:, :, factor, :, None]) @ v[:, :, factor, None]
        return transitions
    if cell.kind == "full":
        return xp.einsum("bpi,sit->bpst", x, matmul(identity, w_a))
    return matmul(identity, w_a) + xp.zeros((*x.shape[:2], 1, 1), dtype=x.dtype)
