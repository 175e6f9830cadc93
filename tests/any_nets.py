"""Random small networks of every architecture and feature, with an input each: for two forward passes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.net.architecture import Output
from vitrify.net.cells import Cell, CellKind
from vitrify.net.conv import Convolution, Convolutional
from vitrify.net.experts import Expert
from vitrify.net.inference import logits, outputs
from vitrify.net.recurrent import Recurrent
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

LETTERS = ("<s>", "a", "b", "c")
CELLS: tuple[CellKind, ...] = ("linear", "relu", "diagonal", "householder", "full", "lstm")


def any_net(seed: int) -> tuple[Weights[Any], Any]:
    """A net with random weights, and a word or numbers that it reads; every third is on a grid, which makes ties."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["transformer", "recurrent", "convolutional"], p=[0.8, 0.1, 0.1])
    net: Any = {"transformer": _transformer, "recurrent": _recurrent, "convolutional": _convolutional}[kind](rng)
    shapes = net.shapes()
    if seed % 3 == 0:
        arrays = {name: rng.integers(-2, 3, shape) / 2 for name, shape in shapes.items()}
    else:
        arrays = {name: rng.normal(scale=0.6, size=shape) for name, shape in shapes.items()}
    return Weights(net, arrays), _input(net, rng)


def said(weights: Weights[Any], given: Any) -> NDArray[np.float64]:
    """What the forward pass in floating point says: [place, symbol]."""
    if weights.architecture.reads == "tokens":
        return next(iter(logits(weights, [given])))
    found: NDArray[np.float64] = outputs(weights, np.asarray(given)[None])[0]
    return found if found.ndim == 2 else found[None]


def _input(net: Any, rng: np.random.Generator) -> Any:
    if net.reads == "tokens":
        return rng.integers(1, len(net.inputs), size=rng.integers(net.max_length + 1)).tolist()
    if net.reads == "image":
        return rng.integers(-4, 5, size=net.maps[0]) / 4
    shape = (len(net.inputs),) if net.reads == "vector" else (net.max_length, len(net.inputs))
    return rng.integers(-8, 9, size=shape) / 8


def _head(rng: np.random.Generator) -> Head:
    return Head(
        attention=rng.choice(["softmax", "sparsemax", "hard"]).item(),
        mask=rng.choice(["none", "causal", "strict", "after"]).item(),
        window=None if rng.random() < 0.6 else int(rng.integers(1, 4)),
        ties=rng.choice(["left", "right", "average"]).item(),
        resolution=float(rng.choice([0.0, 1e-9, 0.3])),
    )


def _cell(rng: np.random.Generator) -> Cell:
    kind = CELLS[rng.integers(len(CELLS))]
    parallel = kind not in ("relu", "lstm") and bool(rng.random() < 0.3)
    return Cell(kind, int(rng.integers(1, 4)), factors=int(kind == "householder") * 2, parallel=parallel)


def _expert(rng: np.random.Generator, width: int, out: int) -> Expert:
    reads, writes = (rng.permutation(size)[: rng.integers(1, size + 1)].tolist() for size in (width, out))
    return Expert(tuple(reads), int(rng.integers(1, 3)), tuple(writes))


def _transformer(rng: np.random.Generator) -> Transformer:
    add = bool(rng.random() < 0.7)
    width = d_model = int(rng.integers(2, 5))
    blocks = []
    for _ in range(rng.integers(0, 3)):
        heads = tuple(_head(rng) for _ in range(rng.integers(0, 3)))
        cell = _cell(rng) if rng.random() < 0.2 else None
        d_out, units = int(rng.integers(1, 3)), int(rng.choice([0, 1, 4]))
        width += 0 if add else d_out * (len(heads) + (cell is not None))
        experts: tuple[Expert, ...] = ()
        if rng.random() < 0.3:
            experts = tuple(_expert(rng, width, d_model if add else d_out) for _ in range(3))
        width += 0 if add else d_out * (bool(units) + bool(experts))
        router = int(rng.integers(0, 3)) if experts else 0
        blocks.append(
            Block(heads, int(rng.integers(1, 3)), int(rng.integers(1, 3)), units, d_out, experts, router, cell)
        )
    fields: dict[str, Any] = {
        "inputs": LETTERS,
        "output": Output("transducer", ("x", "y", "z")[: rng.integers(1, 4)]),
        "max_length": int(rng.integers(1, 7)),
        "d_model": d_model,
        "blocks": tuple(blocks),
        "residual": "add" if add else "concatenate",
        "loops": int(rng.integers(1, 3)) if add else 1,
        "norm": bool(rng.random() < 0.4),
        "eps": float(rng.choice([1e-5, 0.5])),
    }
    plain = Transformer(**fields, pads=int(rng.integers(1, 3)))
    if plain.norm and rng.random() < 0.5:
        groups = tuple((tuple(rng.permutation(wide)[:2].tolist()),) for wide in plain.widths)
        return Transformer(**fields, groups=groups)
    reads = rng.choice(["tokens", "tokens", "tokens", "vector", "rows"]).item()
    return plain if reads == "tokens" else Transformer(**fields, reads=reads, pads=0)


def _recurrent(rng: np.random.Generator) -> Recurrent:
    units = int(rng.choice([0, 3]))
    output = Output("transducer", ("x", "y"))
    return Recurrent(LETTERS, output, int(rng.integers(1, 7)), 3, _cell(rng), units, 2 * bool(units))


def _convolutional(rng: np.random.Generator) -> Convolutional:
    layers = [Convolution(3, (2, 2), pad=(1, 0)), Convolution(2, (2, 1), stride=(2, 1))][: rng.integers(1, 3)]
    dense = (4,) if rng.random() < 0.5 else ()
    return Convolutional(int(rng.integers(1, 3)), 4, 3, Output("class", ("x", "y")), tuple(layers), dense)
