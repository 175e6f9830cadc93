r"""First weights, by the names of arrays, such that nothing fades or bursts.

Numbers are normal with standard deviation $1/\sqrt{\text{fan-in}}$; what a block writes into the stream is
$1/\sqrt{2\,\text{depth}}$ smaller, and what feeds ReLU units of a stack without a stream $\sqrt 2$ larger. Cells start
so that a state lasts:

| kind | start |
| --- | --- |
| `linear` | $W_A$ orthogonal |
| `relu` | $W_A = 0.9\,I$ |
| `positive`, `signed` | decays spread over [0.9, 0.999] by the bias |
| `householder` | $W_A$ semi-orthogonal: $|v| = \sqrt 2$ (reflections), or less if more numbers are read than kept |
| `lstm` | the bias of the forget gate is 1 |

Where the first state is multiplied by a decay $a$, what is driven in is $\sqrt{1 - a^2}$ smaller: a state then has the
size of what drives it, however long it lasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from vitrify.learn.models.catalogue import Array, Parameters, Sandbox, answers_of, inputs_of, normal
from vitrify.learn.runs import Net
from vitrify.net.cells import Cell, CellKind
from vitrify.net.transformer import Block, Head, Transformer

Recurrence = Literal["elman", "lstm", "linear", "positive", "signed", "householder"]
DECAYS = (0.9, 0.999)


def transformer(sandbox: Sandbox, name: str, d_model: int, *blocks: Block, **more: Any) -> Transformer:
    """A transformer that reads and answers a sandbox, without pads unless more is said."""
    return Transformer(
        inputs=inputs_of(sandbox),
        output=answers_of(sandbox),
        max_length=sandbox.tokens,
        d_model=d_model,
        blocks=blocks,
        name=f"{name} {sandbox.name}",
        **{"pads": 0, **more},
    )


def head_of(sandbox: Sandbox, **more: Any) -> Head:
    """A head that sees what a sandbox lets an answer depend on."""
    return Head(mask="none" if sandbox.bidirectional else "causal", **more)


def cell_of(kind: Recurrence, state: int, factors: int) -> Cell:
    """A cell by the name that a user gives; those with a decay of their own for each number run in parallel."""
    named: CellKind = "relu" if kind == "elman" else kind
    return Cell(named, state, factors if kind == "householder" else 0, parallel=kind in ("positive", "signed"))


def first(
    shapes: Mapping[str, tuple[int, ...]], key: Array, scale: Array | float, depth: int, net: Net = None
) -> Parameters:
    """Weights to start from, for the arrays of these shapes; `net` is asked for its cells, if it has any."""
    arrays = normal(key, shapes, {name: deviation(name, shape, depth, scale) for name, shape in shapes.items()})
    arrays |= {name: jnp.ones(shape) for name, shape in shapes.items() if name.endswith(".w")}
    for index, cell in cells(net):
        part = f"blocks.{index}.rec."
        fresh = _cell_start(cell, {name: arrays[part + name] for name in ("W_A", "W_B", "b") if part + name in arrays})
        arrays |= {part + name: array for name, array in fresh.items()}
    return arrays


def cells(net: Net) -> list[tuple[int, Cell]]:
    """The recurrent cells of a net, with the number of their block."""
    if hasattr(net, "cell"):
        return [(0, net.cell)]
    return [(index, block.cell) for index, block in enumerate(getattr(net, "blocks", ())) if block.cell]


def deviation(name: str, shape: tuple[int, ...], depth: int, scale: Array) -> Array:
    """The standard deviation of the first numbers of an array; 0 for biases and for what begins at 1."""
    last = name.split(".")[-1]
    if last.startswith("b_") or last in ("b", "w"):
        return 0.0
    if last == "W":  # of a convolution: [out, in, row, column], or one such kernel for each place
        return scale * np.sqrt(2 / prod(shape[-3:]))
    fan = {"W_O": prod(shape[:-1]), "W_E": shape[-1], "W_pos": shape[-1]}.get(last, shape[-2])
    writes = last in ("W_O", "W_C") or (last == "W_out" and "router" not in name)
    return scale / np.sqrt(fan * (2 * depth if writes else 1))


def _cell_start(cell: Cell, drawn: Mapping[str, Array]) -> Parameters:
    """Return the initial arrays of a cell that the name alone does not determine."""
    w_a = drawn["W_A"]
    if cell.kind == "linear":
        return {"W_A": jnp.linalg.qr(w_a)[0]}
    if cell.kind == "relu":
        return {"W_A": DECAYS[0] * jnp.eye(cell.state), "W_B": drawn["W_B"] * np.sqrt(1 - DECAYS[0] ** 2)}
    if cell.kind in ("positive", "signed"):
        decays = np.linspace(*DECAYS, cell.state)
        bias = np.log(decays / (1 - decays)) if cell.kind == "positive" else np.arctanh(decays)
        return {"b": jnp.asarray(bias, jnp.float32), "W_B": drawn["W_B"] * np.sqrt(1 - decays**2).astype(np.float32)}
    if cell.kind == "householder":  # rows that are read have norm sqrt(read)
        read = w_a.shape[1]
        return {"W_A": jnp.stack([_semi_orthogonal(factor) * np.sqrt(2 / read) for factor in w_a])}
    forget = np.repeat([0.0, 1.0, 0.0, 0.0], cell.state)  # gates stand as i, f, g, o
    return {"b": jnp.asarray(forget, jnp.float32)}


def _semi_orthogonal(matrix: Array) -> Array:
    """Orthonormal columns, or rows where there are fewer of them."""
    return jnp.linalg.qr(matrix)[0] if matrix.shape[0] >= matrix.shape[1] else jnp.linalg.qr(matrix.T)[0].T


def filled(net: Net, parameters: Mapping[str, Array], beta: float = 1.0) -> dict[str, Array]:
    """All arrays of a net: inverse temperatures of attention at `beta`, and zeros for all else that is not trained."""
    arrays = dict(parameters)
    kind = next(iter(arrays.values())).dtype
    for name, shape in net.shapes().items():
        if name.endswith("attn.beta"):
            arrays[name] = jnp.full(shape, beta, kind)
        elif name not in arrays:
            arrays[name] = jnp.zeros(shape, kind)
    return arrays
