r"""Variants of transformers, and which of them are special cases of which.

A variant has a value on each of ten axes. One value is below another if every net of the first kind is one of the
second kind; a variant is a special case of another if it is below it, or equal, on every axis. Kinds of attention are
not ordered: that hard attention with ties to one side runs on softmax, say, is a theorem about some nets, no matter of
definition.

- `attention`: `hard` (the best key) or `softmax`; `ties` of hard attention: `one side` (each head to its own) or
  `averaged`.
- `mask`: `none`, `causal`, `strict` (earlier positions only) or `any` (each head its own).
- `positions`: `none`, `residues` (modulo constants), `predicates` (finitely many values), `formula` (numbers computed
  from the position alone), `bounded` (they may depend on the length), `any`.
- `precision`, bits of a number at length $n$: `O(1)` (nothing is ever rounded), `O(1), sums rounded` (after every
  addition), `O(1), rounded once` (sums are exact), `O(log n)`, `poly(n)`, `real`.
- `depth`: `one layer`, `constant`, `log n`, `poly(n)`. `steps` of a chain of thought, and `padding` tokens.
- `norm`: `none` or `layer norm`.
- `decision`: `margin` (the logits of yes and no differ by a constant, at every length) or `sign` (by any amount).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

Scope = Literal["one net", "each length"]

# For each axis: a value and those directly above it.
STRONGER: dict[str, dict[str, tuple[str, ...]]] = {
    "attention": {"hard": (), "softmax": ()},
    "ties": {"": (), "one side": (), "averaged": ()},
    "mask": {"none": ("any",), "causal": ("any",), "strict": ("any",), "any": ()},
    "positions": {
        "none": ("residues",),
        "residues": ("predicates", "formula"),
        "predicates": ("bounded",),
        "formula": ("any",),
        "bounded": ("any",),
        "any": (),
    },
    "precision": {
        "O(1)": ("O(1), sums rounded", "O(1), rounded once", "O(log n)"),
        "O(1), sums rounded": (),
        "O(1), rounded once": (),
        "O(log n)": ("poly(n)",),
        "poly(n)": ("real",),
        "real": (),
    },
    "depth": {"one layer": ("constant",), "constant": ("log n",), "log n": ("poly(n)",), "poly(n)": ()},
    "steps": {"none": ("log n",), "log n": ("n",), "n": ("poly(n)",), "poly(n)": ("unbounded",), "unbounded": ()},
    "padding": {"none": ("poly(n)",), "poly(n)": ()},
    "norm": {"none": ("layer norm",), "layer norm": ()},
    "decision": {"margin": ("sign",), "sign": ()},
}
# Scopes: one net, of which only the table of positions may grow, is right at all lengths; or there is a net for each
# length, of polynomial size. The first is more, so it passes on to the second.
SCOPES: dict[Scope, tuple[Scope, ...]] = {"one net": ("each length",), "each length": ()}

POSITIONS = {
    "none": "no positions",
    "residues": "positions modulo constants",
    "predicates": "finitely many position codes",
    "formula": "positions by a formula",
    "bounded": "bounded positions",
    "any": "any positions",
}


@dataclass(frozen=True)
class ModelVariant:
    """A variant of transformers; by default the least: no mask, no positions, no norm, no chain of thought."""

    attention: str
    ties: str = ""
    mask: str = "none"
    positions: str = "none"
    precision: str = "O(1)"
    depth: str = "constant"
    steps: str = "none"
    padding: str = "none"
    norm: str = "none"
    decision: str = "margin"

    def __post_init__(self) -> None:
        unknown = [axis for axis in STRONGER if getattr(self, axis) not in STRONGER[axis]]
        if unknown or (self.attention == "hard") != bool(self.ties):
            raise ValueError(f"{unknown or 'ties'}: not a value of the axis, or not for this attention: {self}")

    @property
    def attention_shown(self) -> str:
        """The kind of attention in words."""
        return (
            f"hard attention, ties {'to one side' if self.ties == 'one side' else self.ties}"
            if self.ties
            else "softmax"
        )

    @property
    def mask_shown(self) -> str:
        """The mask in words."""
        return {"none": "no mask", "any": "any masks"}.get(self.mask, f"{self.mask} mask")

    @property
    def positions_shown(self) -> str:
        """The position codes in words."""
        return POSITIONS[self.positions]

    @property
    def precision_shown(self) -> str:
        """The precision in words."""
        return "real numbers" if self.precision == "real" else self.precision.replace(")", ") bits", 1)

    @property
    def depth_shown(self) -> str:
        """The depth in words."""
        return self.depth if self.depth == "one layer" else f"{self.depth} depth"

    @property
    def extras(self) -> tuple[str, ...]:
        """What else the variant has: steps, padding, a norm; and that a sign decides, however small."""
        steps = "" if self.steps == "none" else f"{self.steps} steps"
        padding = "" if self.padding == "none" else f"{self.padding} padding tokens"
        norm = "" if self.norm == "none" else self.norm
        return tuple(filter(None, (steps, padding, norm, "a constant margin" if self.decision == "margin" else "")))

    def __str__(self) -> str:
        shown = (self.mask_shown, self.positions_shown, self.precision_shown, self.depth_shown, *self.extras)
        return ", ".join([self.attention_shown, *shown])

    def within(self, other: ModelVariant) -> bool:
        """Return whether every net of this kind is one of the other kind."""
        return _within(self, other)

    def neighbors(self) -> list[ModelVariant]:
        """Return the variants that differ in one axis by one step, up or down, and the other way to break ties."""
        changed: list[dict[str, Any]] = []
        for axis, order in STRONGER.items():
            value = getattr(self, axis)
            steps = {*order[value], *(low for low, high in order.items() if value in high)}
            changed += [{axis: each} for each in sorted(steps)]
        if self.ties:
            changed.append({"ties": "averaged" if self.ties == "one side" else "one side"})
        return [replace(self, **each) for each in changed]


@cache
def _within(small: ModelVariant, large: ModelVariant) -> bool:
    return all(getattr(large, axis) in above(axis, getattr(small, axis)) for axis in STRONGER)


@cache
def above(axis: str, value: str) -> frozenset[str]:
    """Return a value of an axis and all values above it.

    >>> sorted(above("mask", "causal"))
    ['any', 'causal']
    """
    return frozenset({value}).union(*(above(axis, each) for each in STRONGER[axis][value]))


def covers(wide: Scope, narrow: Scope) -> bool:
    """Return whether what one net does says something about a scope: one net for all lengths is a net for each."""
    return narrow == wide or narrow in SCOPES[wide]


ONE_SIDE = ModelVariant("hard", "one side", mask="any", precision="real", decision="sign")
AVERAGED = ModelVariant("hard", "averaged", "any", "any", "O(log n)", norm="layer norm", decision="sign")
SOFTMAX = ModelVariant("softmax", "", "any", "any", "O(log n)", norm="layer norm", decision="sign")

# The rows of the map.
MODELS: dict[str, ModelVariant] = {
    "hard attention with masks, no positions": ONE_SIDE,
    "hard attention with masks, positions modulo constants": replace(ONE_SIDE, positions="residues"),
    "hard attention, ties to one side": replace(ONE_SIDE, positions="any", norm="layer norm"),
    "hard attention, ties averaged": AVERAGED,
    "softmax, O(1) bits, sums rounded": replace(SOFTMAX, precision="O(1), sums rounded"),
    "softmax, O(1) bits, exact sums": replace(SOFTMAX, precision="O(1), rounded once"),
    "softmax, O(log n) bits": SOFTMAX,
    "softmax, real numbers, constant margin": ModelVariant("softmax", "", "any", "bounded", "real"),
    "softmax, real numbers, one layer": replace(SOFTMAX, precision="real", depth="one layer", norm="none"),
    "softmax, real numbers": replace(SOFTMAX, precision="real"),
    "softmax, log n layers": replace(SOFTMAX, depth="log n"),
    "ties averaged, log n steps": replace(AVERAGED, steps="log n"),
    "ties averaged, polynomially many steps": replace(AVERAGED, steps="poly(n)"),
    "ties averaged, unbounded steps": replace(AVERAGED, precision="real", steps="unbounded"),
}
