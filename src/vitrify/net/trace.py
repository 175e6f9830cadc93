"""The activations of one run, under their TransformerLens names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vitrify.arrays import Floats
from vitrify.net.spaces import Content, decode
from vitrify.net.weights import Weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHADES = " ·░▒▓█"
SHOWN_REALS = 8  # dimensions; larger spaces of reals are printed only by `read`


@dataclass(frozen=True, eq=False)
class Trace:
    """The activations of one sequence: `trace["blocks.0.attn.hook_pattern"]` is [head, query, key], and so on."""

    weights: Weights[Any]
    tokens: tuple[str, ...]
    activations: Mapping[str, Floats]

    def __getitem__(self, name: str) -> Floats:
        if name not in self.activations:
            raise KeyError(f"no activation is called {name!r}; there are {', '.join(self.activations)}")
        return self.activations[name]

    def residual(self, moment: int) -> Floats:
        """Return the residual stream [pos, model] at a moment: 0 after embedding, then after each half layer."""
        return self[self.weights.architecture.moments[moment]]

    def space(self, name: str) -> Floats:
        """Return the vectors [pos, dim] of a named space, at the moment it is written."""
        label = self.weights.labels.space(name)
        return self.residual(label.born)[:, list(label.dims)]

    def read(self, name: str) -> list[Content]:
        """Return the decoded value of a named space at every position."""
        kind = self.weights.labels.space(name).kind
        return [decode(kind, row) for row in self.space(name)]

    def attention(self, block: int, head: int) -> str:
        """Return one head's attention as text: a row per query, a column per key, darker where the weight is larger."""
        pattern = self[f"blocks.{block}.attn.hook_pattern"][head]
        label = next((h for h in self.weights.labels.heads if (h.block, h.index) == (block, head)), None)
        width = max(len(token) for token in self.tokens)
        lines = [f"block {block} head {head}" + (f": {label.name}" if label else "")]
        for token, row in zip(self.tokens, pattern, strict=True):
            shares = np.clip(np.nan_to_num(row), 0.0, 1.0)  # weights of linear heads may be any numbers
            cells = "".join(SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)] for share in shares)
            best = int(row.argmax())
            pointer = f"→ {self.tokens[best]} ({row[best]:.3g})" if row.any() else "→ nothing"
            lines.append(f"{token:>{width}} |{cells}| {pointer}")
        return "\n".join(lines)

    def _experts(self, block: int) -> str:
        """Return the active expert at every position, by name where it has one."""
        named = {label.part: label.name for label in self.weights.labels.units if label.block == block}
        chosen = self[f"blocks.{block}.moe.hook_expert"][:, 0].tolist()
        return f"block {block} expert: " + "  ".join(named.get(f"moe.experts.{e}", str(e)) for e in chosen)

    def __str__(self) -> str:
        """Return all heads as text, then the named spaces by position; large spaces of reals are left out.

        A net without both shows the names of its activations.
        """
        heads = self.weights.architecture.heads_per_layer
        parts = [self.attention(block, head) for block, count in enumerate(heads) for head in range(count)]
        mixed = [block for block in range(len(heads)) if f"blocks.{block}.moe.hook_expert" in self.activations]
        parts += [self._experts(block) for block in mixed]
        for label in self.weights.labels.spaces:
            if label.kind.tag != "reals" or label.kind.size <= SHOWN_REALS:
                values = "  ".join(short(value) for value in self.read(label.name))
                parts.append(
                    f"{label.name} ({', '.join(n.strip('=[]') for n in label.kind.names)}): {values}"
                    if label.kind.tag in ("reals", "integers")
                    else f"{label.name}: {values}"
                )
        shapes = (f"{name} {list(value.shape)}" for name, value in self.activations.items())
        return "\n".join(parts or ["activations, by name, with their shapes", *shapes])

    def plot(self) -> Figure:
        """Return a matplotlib figure of the attention of every head: a row for each query, a column for each key."""
        from vitrify.net.display import attention_figure

        return attention_figure(self)

    def _repr_html_(self) -> str:
        from vitrify.net.display import trace_card

        return trace_card(self)


def short(value: Content | str) -> str:
    """Return a decoded value in a few characters."""
    if isinstance(value, list):
        return "[" + " ".join(short(part) for part in value) + "]"
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
