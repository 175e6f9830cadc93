r"""Recurrent cells: how a state of some numbers goes from position to position under what is driven in.

A cell reads a row $x_t$ at every position and starts from $h = 0$ (or where a cache left it). With $u_t = x_t W_B$:

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
what is known $1, 2, 4, \dots$ places before it (`parallel`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vitrify.arrays import Array, namespace
from vitrify.errors import FolderError
from vitrify.net.sparse import matmul

if TYPE_CHECKING:
    from vitrify.net.transformer_forward import Part

CellKind = Literal["linear", "relu", "diagonal", "positive", "signed", "householder", "full", "lstm"]
NONLINEAR: tuple[CellKind, ...] = ("relu", "lstm")
ELEMENTWISE: tuple[CellKind, ...] = ("diagonal", "positive", "signed")  # each number of the state has its own scale
BIASED: tuple[CellKind, ...] = ("positive", "signed", "lstm")
Step = Callable[..., tuple[Any, Array]]  # what is kept and the row of each position -> what is kept, the new state


@dataclass(frozen=True)
class Cell:
    """A recurrence of `state` numbers; `factors` counts those of a Householder product.

    A `parallel` one is computed in rounds over all positions, which only linear ones can be.
    """

    kind: CellKind
    state: int
    factors: int = 0
    parallel: bool = False

    def __post_init__(self) -> None:
        if self.parallel and self.kind in NONLINEAR:
            raise FolderError(f"only a cell that is linear in its state can be parallel, not one of kind {self.kind!r}")
        if (self.kind == "householder") != (self.factors > 0):
            raise FolderError("a cell has factors if it is of kind 'householder', and only then")

    @property
    def linear(self) -> bool:
        """Whether the next state is a linear function of the state before."""
        return self.kind not in NONLINEAR

    @property
    def memory(self) -> int:
        """Numbers that go from one position to the next."""
        return 2 * self.state if self.kind == "lstm" else self.state

    def shapes(self, read: int) -> dict[str, tuple[int, ...]]:
        """Name and shape of every array of a cell that reads so many numbers."""
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
        """Numbers that a run holds at once for one position, beside what is read."""
        rows = {"householder": self.factors, "full": read, "lstm": 8}.get(self.kind, 1)
        return self.state * (2 + rows + (self.state if self.parallel and self.kind not in ELEMENTWISE else 0))


def states(cell: Cell, part: Part, x: Array) -> Array:
    """The states [batch, pos, state] of a cell whose arrays are those of `part`, driven by rows [batch, pos, read]."""
    w_a, driven = part["rec.W_A"], matmul(x, part["rec.W_B"])
    h = namespace(x).zeros_like(driven[:, 0, : cell.state])
    kept = part.kept("rec", (h, h) if cell.kind == "lstm" else h)
    if cell.parallel:
        turn = _scales(cell, part, x) if cell.kind in ELEMENTWISE else _matrices(cell, w_a, x)
        found = _in_rounds(turn, driven, kept)
        kept = found[:, -1]
    else:
        given: tuple[Array, ...] = (driven + part["rec.b"] if cell.kind == "lstm" else driven,)
        if cell.kind in ELEMENTWISE:
            given = (_scales(cell, part, x), *given)
        elif cell.kind == "householder":
            given = (matmul(x, w_a), *given)
        elif cell.kind == "full":
            given = (x, *given)
        steps = {**dict.fromkeys(ELEMENTWISE, _scaled), "householder": _reflected}
        steps |= {"full": _chosen(w_a), "lstm": _lstm(w_a)}
        kept, found = _stepped(steps.get(cell.kind) or _turned(w_a, relu=cell.kind == "relu"), kept, given)
    part.keep("rec", kept)
    return found


def _stepped(step: Step, kept: Any, given: tuple[Array, ...]) -> tuple[Any, Array]:
    """One position after the other, what is kept in the end and the states; NumPy loops, JAX scans."""
    if isinstance(given[0], np.ndarray):
        found = []
        for position in range(given[0].shape[1]):
            kept, h = step(kept, *(rows[:, position] for rows in given))
            found.append(h)
        return kept, np.stack(found, axis=1)
    from jax import lax  # driven by a JAX array, so JAX is there

    xp = namespace(given[0])
    kept, found = lax.scan(lambda kept, now: step(kept, *now), kept, tuple(xp.moveaxis(rows, 1, 0) for rows in given))
    return kept, xp.moveaxis(found, 0, 1)


def _turned(w_a: Any, *, relu: bool) -> Step:
    def step(h: Array, driven: Array) -> tuple[Array, Array]:
        h = matmul(h, w_a) + driven
        h = namespace(h).maximum(h, 0) if relu else h
        return h, h

    return step


def _scales(cell: Cell, part: Part, x: Array) -> Array:
    """What every number of the state is multiplied by [batch, pos, state]."""
    scale = matmul(x, part["rec.W_A"])
    if cell.kind == "diagonal":
        return scale
    scale = scale + part["rec.b"]
    return _sigmoid(scale) if cell.kind == "positive" else namespace(x).tanh(scale)


def _scaled(h: Array, scale: Array, driven: Array) -> tuple[Array, Array]:
    h = h * scale + driven
    return h, h


def _reflected(h: Array, v: Array, driven: Array) -> tuple[Array, Array]:
    for factor in range(v.shape[1]):
        h = h - (h * v[:, factor]).sum(axis=-1, keepdims=True) * v[:, factor]
    return (h + driven,) * 2


def _chosen(w_a: Any) -> Step:
    def step(h: Array, x: Array, driven: Array) -> tuple[Array, Array]:
        h = (x[:, :, None] * matmul(h, w_a)).sum(axis=1) + driven  # all transitions, then those that x asks for
        return h, h

    return step


def _lstm(w_a: Any) -> Step:
    def step(kept: tuple[Array, Array], driven: Array) -> tuple[tuple[Array, Array], Array]:
        h, c = kept
        xp, size = namespace(c), c.shape[-1]
        gates = matmul(h, w_a) + driven
        i, f, g, o = (gates[:, at * size : (at + 1) * size] for at in range(4))
        c = _sigmoid(f) * c + _sigmoid(i) * xp.tanh(g)
        h = _sigmoid(o) * xp.tanh(c)
        return (h, c), h

    return step


def _sigmoid(x: Array) -> Array:
    """Exactly 0 and 1 for large numbers, without overflow."""
    return (1 + namespace(x).tanh(x / 2)) / 2


def _in_rounds(turn: Array, driven: Array, kept: Array) -> Array:
    """The same states by an associative scan: a run of positions is its transition and what it leaves in the state.

    A transition is a scale for each number [batch, pos, state], or a matrix [batch, pos, state, state].
    """
    xp, scales = namespace(driven), turn.ndim == 3
    first = kept * turn[:, 0] if scales else (kept[:, None] @ turn[:, 0])[:, 0]
    driven = xp.concatenate([(driven[:, 0] + first)[:, None], driven[:, 1:]], axis=1)
    reach = 1
    while reach < driven.shape[1]:
        before, after = turn[:, :-reach], turn[:, reach:]
        if scales:
            left, joined = driven[:, :-reach] * after, before * after
        else:
            left, joined = (driven[:, :-reach, None, :] @ after)[:, :, 0], before @ after
        driven = xp.concatenate([driven[:, :reach], left + driven[:, reach:]], axis=1)
        turn = xp.concatenate([turn[:, :reach], joined], axis=1)
        reach *= 2
    return driven


def _matrices(cell: Cell, w_a: Any, x: Array) -> Array:
    """The transition [batch, pos, state, state] at every position."""
    xp = namespace(x)
    one = xp.eye(cell.state, dtype=x.dtype)
    if cell.kind == "householder":
        v = matmul(x, w_a)
        turn = one + xp.zeros((*x.shape[:2], 1, 1), dtype=x.dtype)
        for factor in range(cell.factors):
            turn = turn - (turn @ v[:, :, factor, :, None]) @ v[:, :, factor, None]
        return turn
    if cell.kind == "full":
        return xp.einsum("bpi,sit->bpst", x, matmul(one, w_a))
    return matmul(one, w_a) + xp.zeros((*x.shape[:2], 1, 1), dtype=x.dtype)
