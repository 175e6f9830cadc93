r"""Convolutional networks: a stack of 2-D convolutions with ReLU, a sum over all positions, dense layers with ReLU.

An input is a batch of planes [batch, plane, row, column]: one plane of intensities for an image, one plane per symbol
for a sequence of symbols. The arrays have the layout that deep-learning libraries use: `conv.i.W` [out, in, row,
column], and a convolution is the correlation $z_{o,p} = b_o + \sum_{c,d} W_{o,c,d}\, x_{c,\,p \cdot \text{stride} + d}$
over the planes with `pad` zeros around them. One whose weights are not shared (a locally connected layer) has arrays of
its own for each position $p$ of its output: `conv.i.W` [place, out, in, row, column] and `conv.i.b` [place, out].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Array, Arrays, Float, Floats, Int, Namespace, Num, namespace
from vitrify.encoding import added, drawn
from vitrify.errors import FolderError, InputError
from vitrify.net.architecture import Output, Reads, Record, Size
from vitrify.net.sparse import affine
from vitrify.parameters import Within

Pixels = Literal["numbers", "bits", "symbols"]
Pair = tuple[Size, Size]  # along rows and along columns
Steps = tuple[Annotated[int, Within(1, 1 << 20)], Annotated[int, Within(1, 1 << 20)]]
MAX_ENTRIES = 1 << 22  # of the maps of one layer

CACHED = 256  # a batch of some megabytes runs twice as fast as one of hundreds


@dataclass(frozen=True)
class Convolution:
    """One convolution: its output channels, kernel and stride; `pad` zeros are put on every side.

    Unless `shared`, each position of its output has weights of its own.
    """

    channels: Size
    kernel: Steps
    stride: Steps = (1, 1)
    pad: Pair = (0, 0)
    shared: bool = added(True)

    __repr__ = drawn

    def __post_init__(self) -> None:
        if any(pad > kernel for pad, kernel in zip(self.pad, self.kernel, strict=True)):
            raise FolderError(f"a kernel of {self.kernel} pixels would only see zeros where {self.pad} are put around")

    def places(self, rows: int, columns: int) -> Pair:
        """Return the rows and columns of its output maps for input maps of this size."""
        down, right = (
            (size + 2 * pad - kernel) // stride + 1
            for size, pad, kernel, stride in zip((rows, columns), self.pad, self.kernel, self.stride, strict=True)
        )
        return down, right


@dataclass(frozen=True)
class Convolutional:
    """A convolutional network; `pixels` says what its input planes hold.

    `numbers`: any intensities. `bits`: zeros and ones only. `symbols`: a sequence in one row, a one in the plane of the
    symbol that stands at a place; `symbols` names the planes.
    """

    tag: ClassVar[str] = "convolutional"
    reads: ClassVar[Reads] = "image"
    d_head: ClassVar[int] = 0

    planes: Size
    rows: Size
    columns: Size
    output: Output
    convolutions: tuple[Convolution, ...] = ()
    dense: tuple[Size, ...] = ()
    pixels: Pixels = "numbers"
    symbols: tuple[str, ...] = ()
    name: str = field(default="convolutional", compare=False)

    def __post_init__(self) -> None:
        for channels, rows, columns in self.maps:
            if rows < 1 or columns < 1 or channels * rows * columns > MAX_ENTRIES:
                raise FolderError(f"a layer can't have {channels} maps of {rows} × {columns} numbers")
        if self.pixels == "symbols" and len(self.symbols) != self.planes:
            raise FolderError(f"{self.planes} planes can't stand for {len(self.symbols)} symbols")

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """No layer has heads."""
        return (0,) * len(self.units_per_layer)

    @property
    def units_per_layer(self) -> tuple[int, ...]:
        """Channels of each convolution, then units of each dense layer."""
        return (*(layer.channels for layer in self.convolutions), *self.dense)

    @property
    def width(self) -> int:
        """The largest number of channels or units of a layer."""
        return max((self.planes, *self.units_per_layer))

    @property
    def shared(self) -> bool:
        """True if every convolution has the same weights at all positions."""
        return all(layer.shared for layer in self.convolutions)

    @property
    def maps(self) -> tuple[tuple[int, int, int], ...]:
        """Channels, rows and columns before each convolution and after the last."""
        sizes = [(self.planes, self.rows, self.columns)]
        for layer in self.convolutions:
            sizes.append((layer.channels, *layer.places(*sizes[-1][1:])))
        return tuple(sizes)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every array."""
        shapes: dict[str, tuple[int, ...]] = {}
        width = self.planes
        for index, layer in enumerate(self.convolutions):
            _, rows, columns = self.maps[index + 1]
            own = () if layer.shared else (rows * columns,)
            shapes[f"conv.{index}.W"] = (*own, layer.channels, width, *layer.kernel)
            shapes[f"conv.{index}.b"] = (*own, layer.channels)
            width = layer.channels
        for index, units in enumerate(self.dense):
            shapes |= {f"dense.{index}.W_in": (width, units), f"dense.{index}.b_in": (units,)}
            width = units
        return shapes | {"unembed.W_U": (width, len(self.output.symbols)), "unembed.b_U": (len(self.output.symbols),)}

    def activations(self, positions: int) -> int:
        """Return the activations held at once for one input, times `CACHED`, so that a batch fits the CPU cache."""
        del positions  # the size of the input is fixed
        return CACHED * max(channels * rows * columns for channels, rows, columns in self.maps)

    def forward(
        self,
        arrays: Arrays,
        inputs: Num[Array, "batch plane row column"],
        *,
        lengths: Int[Array, " batch"] | None = None,
        record: Record | None = None,
        query_chunk: int | None = None,
    ) -> Float[Array, "batch out"]:
        r"""Logits [batch, out] of planes [batch, plane, row, column], for NumPy and JAX arrays alike.

        $x \leftarrow \mathrm{relu}(W * x + b)$ for each convolution, then the sum over all places, then $x \leftarrow
        \mathrm{relu}(x W + b)$ for each dense layer; logits $= x W_U + b_U$. `record(name, value)` sees every layer
        before and after its ReLU.
        """
        del lengths, query_chunk  # for networks that read sequences
        seen = record or (lambda _name, _value: None)
        xp = namespace(inputs)
        x = inputs
        for index, layer in enumerate(self.convolutions):
            linear, bias = convolve, arrays[f"conv.{index}.b"]
            if layer.shared:
                bias = bias[:, None, None]
            else:
                linear, bias = locally_connected, bias.T.reshape(self.maps[index + 1])
            x = _relu(xp, linear(x, arrays[f"conv.{index}.W"], layer) + bias, f"conv.{index}", seen)
        x = x.sum(axis=(2, 3))
        seen("hook_pooled", x)
        for index in range(len(self.dense)):
            before = affine(x, arrays[f"dense.{index}.W_in"], arrays[f"dense.{index}.b_in"])
            x = _relu(xp, before, f"dense.{index}", seen)
        return affine(x, arrays["unembed.W_U"], arrays["unembed.b_U"])


def _relu(xp: Namespace, x: Array, name: str, seen: Record) -> Array:
    seen(f"{name}.hook_pre", x)
    x = xp.maximum(x, 0.0)
    seen(f"{name}.hook_post", x)
    return x


def convolve(
    x: Num[Array, "batch plane row column"], kernel: Float[Array, "out plane height width"], layer: Convolution
) -> Float[Array, "batch out rows columns"]:
    """Return the linear part of a convolution: maps [batch, in, row, column] to [batch, out, row, column].

    One matrix product for each pixel of the kernel; pixels that are zero throughout are left out where that is known.
    """
    xp = namespace(x)
    batch, channels, *size = x.shape
    rows, columns = layer.places(*size)
    x = _with_zeros(x, layer)
    taps = kernel.reshape(layer.channels, channels, -1)
    total = xp.zeros((batch, layer.channels, rows * columns), dtype=x.dtype)
    for number, window in enumerate(_windows(layer, rows, columns)):
        tap = taps[:, :, number]
        if not isinstance(tap, np.ndarray) or tap.any():
            total = total + xp.matmul(tap, x[:, :, *window].reshape(batch, channels, rows * columns))
    return total.reshape(batch, layer.channels, rows, columns)


def locally_connected(
    x: Num[Array, "batch plane row column"],
    kernel: Float[Array, "place out plane height width"],
    layer: Convolution,
) -> Float[Array, "batch out rows columns"]:
    """Return the linear part of a convolution whose weights are not shared: one batched matrix product over places."""
    xp = namespace(x)
    batch, _, *size = x.shape
    rows, columns = layer.places(*size)
    x = _with_zeros(x, layer)
    taps = xp.stack([x[:, :, *window] for window in _windows(layer, rows, columns)], axis=2)
    inputs = taps.reshape(batch, -1, rows * columns).transpose(2, 0, 1)  # [place, batch, plane and pixel of the kernel]
    matrices = kernel.reshape(*kernel.shape[:2], -1).transpose(0, 2, 1)
    return xp.matmul(inputs, matrices).transpose(1, 2, 0).reshape(batch, layer.channels, rows, columns)


def _with_zeros(x: Num[Array, "batch plane row column"], layer: Convolution) -> Num[Array, "batch plane height width"]:
    """Return maps with the zeros around them that a convolution sees."""
    down, right = layer.pad
    return namespace(x).pad(x, ((0, 0), (0, 0), (down, down), (right, right))) if any(layer.pad) else x


def transposed(g: Floats, kernel: Floats, layer: Convolution, size: Pair) -> Floats:
    """Return the adjoint of `convolve` on maps of a size, as the gradient needs it."""
    batch, _, rows, columns = g.shape
    flat = g.reshape(batch, layer.channels, rows * columns)
    taps = kernel.reshape(layer.channels, kernel.shape[1], -1)
    down, right = layer.pad
    x = np.zeros((batch, kernel.shape[1], size[0] + 2 * down, size[1] + 2 * right))
    for number, window in enumerate(_windows(layer, rows, columns)):
        if taps[:, :, number].any():
            x[:, :, *window] += np.matmul(taps[:, :, number].T, flat).reshape(batch, -1, rows, columns)
    return x[:, :, down : down + size[0], right : right + size[1]]


def _windows(layer: Convolution, rows: int, columns: int) -> list[tuple[slice, slice]]:
    """Return, for each pixel of the kernel, the pixels of the input that it is multiplied with."""
    (down, right), (height, width) = layer.stride, layer.kernel
    return [
        (slice(i, i + down * (rows - 1) + 1, down), slice(j, j + right * (columns - 1) + 1, right))
        for i in range(height)
        for j in range(width)
    ]


def image_planes(net: Convolutional, images: NDArray[np.generic]) -> Floats:
    """Return images [batch, row, column] as planes; other sizes are refused."""
    if net.pixels == "symbols":
        raise InputError(f"this network reads sequences of {net.columns} symbols, no images")
    if images.ndim != 3 or images.shape[1:] != (net.rows, net.columns):
        shape = "×".join(map(str, images.shape[1:]))
        raise InputError(f"this network reads images of {net.rows}×{net.columns} pixels, not {shape}")
    try:
        pixels = images.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"an image must hold numbers, not {images.dtype}") from None
    if not np.isfinite(pixels).all():
        raise InputError("every pixel of an image must be a finite number")
    if net.pixels == "bits" and not np.isin(pixels, (0.0, 1.0)).all():
        raise InputError("this network reads binary images: every pixel must be 0 or 1")
    return pixels[:, None]


def pixels(net: Convolutional, words: Sequence[str]) -> Floats:
    """Return the image whose pixels are given as text, row by row, as planes."""
    if len(words) != net.rows * net.columns:
        raise InputError(f"this network reads images of {net.rows}×{net.columns} pixels, not {len(words)} of them")
    try:
        values = np.array([float(word) for word in words])
    except ValueError as error:
        raise InputError(f"this network reads numbers: {error}") from None
    return image_planes(net, values.reshape(1, net.rows, net.columns))


def symbol_planes(net: Convolutional, sequences: Sequence[Sequence[str]]) -> Floats:
    """Return sequences of symbols as planes, one per symbol; unknown symbols are refused."""
    if net.pixels != "symbols":
        raise InputError(f"this network reads images of {net.rows}×{net.columns} pixels, no symbols")
    place = {symbol: number for number, symbol in enumerate(net.symbols)}
    planes = np.zeros((len(sequences), net.planes, net.rows, net.columns))
    for plane, sequence in zip(planes, sequences, strict=True):
        unknown = sorted({symbol for symbol in sequence if symbol not in place})
        if unknown:
            raise InputError(
                f"this network does not read {', '.join(map(repr, unknown))}; it reads: {' '.join(net.symbols)}"
            )
        if len(sequence) != net.columns:
            raise InputError(f"this network reads sequences of {net.columns} symbols, not {len(sequence)}")
        plane[[place[symbol] for symbol in sequence], 0, np.arange(net.columns)] = 1.0
    return planes
