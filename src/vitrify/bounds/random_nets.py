"""Random transformers, on which bounds that hold for every net are tested."""

from __future__ import annotations

import numpy as np

from vitrify.net.architecture import Output, OutputKind
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights


def random_net(
    seed: int,
    head: Head,
    *,
    max_length: int,
    layers: int = 2,
    heads: int = 1,
    width: int = 3,
    positions: bool = True,
    scale: float | None = None,
    output: OutputKind = "class",
) -> Weights:
    """Return a net over the letters 0 and 1 whose heads are all of one kind.

    Weights are normal numbers of the given scale, the same for every `max_length` unless there are positions. Without a
    scale they are multiples of 1/2 from -1 to 1, which produce ties and are exact in floating point.
    """
    net = Transformer(
        inputs=("<s>", "0", "1"),
        output=Output(output, ("no", "yes")),
        max_length=max_length,
        d_model=width,
        blocks=(Block((head,) * heads, d_head=2, d_value=2, units=4),) * layers,
        name=f"random net {seed}",
    )
    rng = np.random.default_rng(seed)
    shapes = net.shapes()
    placed = shapes.pop("pos_embed.W_pos")

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        return rng.integers(-2, 3, shape) / 2 if scale is None else rng.normal(scale=scale, size=shape)

    arrays = {name: draw(shape) for name, shape in shapes.items()}
    arrays["pos_embed.W_pos"] = draw(placed) if positions else np.zeros(placed)
    return Weights(net, arrays, about={"seed": seed})
