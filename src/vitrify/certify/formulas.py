r"""The way back: the formula of past-time logic that a transformer with hard attention computes.

In the spirit of Angluin, Chiang and Yang (2023, arXiv 2310.13897). Without positions in its stream, what stands at a
position is one of finitely many vectors, its *type*; at the beginning, that of its letter. A head brings the value of
the last (or first) visible position among those whose score is the best, and which types score best depends on nothing
but the type that asks and the types that are visible. With $\chi$ true at the types that share the best score, and
$\varphi$ at those of them with one value, the last of them has that value iff $(\neg\chi)\,S\,\varphi$, and the first
iff $O(\varphi \land \neg Y O \chi)$; a score is the best iff nothing better was seen: $\neg O(\dots)$. A new type is an
old one together with what the heads bring; units only merge types. The formula is where the types that say yes are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import BuildRefused
from vitrify.net.sparse import dense
from vitrify.net.transformer import Head, Transformer
from vitrify.net.transformer_forward import Part, mlp
from vitrify.net.weights import Weights
from vitrify.spec.ltl import Formula
from vitrify.spec.ltl_worlds import Fact, World

Floats = NDArray[np.float64]
Case = tuple[Floats, Fact]  # a vector, and where it stands
DIGITS = 9  # numbers that agree to so many are the same
MOST_TYPES = 512


def formula_of(weights: Weights[Any], symbol: str = "True") -> Formula:
    r"""The formula that is true where a net answers with a symbol, and a recogniser with an accepting state.

    >>> from vitrify.constructions.temporal import temporal
    >>> from vitrify.kit import assemble
    >>> once = Formula.from_text("alphabet: a b c\nlength: 9\nc & O (a & O b)")
    >>> print(formula_of(assemble(temporal(once))))
    ("c") & (O (("a") & (O ("b"))))
    """
    net, arrays = weights.architecture, {name: dense(array) for name, array in weights.arrays.items()}
    _refuse(net, arrays)
    world = World(net.inputs[1:])
    embedded = arrays["embed.W_E"] + arrays["pos_embed.W_pos"][[0] + [1] * (len(net.inputs) - 1)]
    bos, cases = embedded[0], _merged(world, list(zip(embedded[1:], world.letters, strict=True)))
    for index, block in net.turns:
        part = Part(arrays, f"blocks.{index}.", None)
        brought = [_brought(world, head, part, place, cases, bos) for place, head in enumerate(block.heads)]
        selves = [_value(part, place, bos) for place, head in enumerate(block.heads) if head.mask == "causal"]
        bos = bos + sum(selves, start=np.zeros_like(bos))
        for choices in brought:
            parts = [(x + value, world.both(here, fact)) for x, here in cases for value, fact in choices]
            cases = _merged(world, parts)
        if block.units:
            bos = bos + mlp(part, bos)
            cases = _merged(world, [(x + mlp(part, x), here) for x, here in cases])
    answers = [(x @ arrays["unembed.W_U"] + arrays["unembed.b_U"], here) for x, here in cases]
    wanted = net.output.accepting if net.output.kind == "recogniser" and symbol == "True" else (symbol,)
    yes = [here for logits, here in answers if net.output.symbols[int(logits.argmax())] in wanted]
    return Formula(world.nodes[world.short(world.either(yes))], net.inputs[1:], net.max_length)


def _refuse(net: Any, arrays: dict[str, Any]) -> None:
    """Everything that keeps a net from being read, at once."""
    plain = isinstance(net, Transformer) and net.reads == "tokens" and not net.norm and net.residual == "add"
    if not plain or any(block.experts for block in net.blocks):
        raise BuildRefused("a formula is read from a transformer over tokens, without layer norm and experts")
    problems = []
    heads = [head for block in net.blocks for head in block.heads]
    places = arrays["pos_embed.W_pos"][net.pads :]
    if np.ptp(places, axis=0).any():
        problems.append("its stream holds positions, which past-time formulas without MOD can't name")
    if net.pads != 1:
        problems.append(f"{net.pads} beginnings of the sequence stand in front, not one")
    if any(head.attention != "hard" for head in heads):
        problems.append("its attention is not hard (build it with --attention hard)")
    if any(head.mask == "none" for head in heads):
        problems.append("a head looks ahead")
    if any(head.window is not None for head in heads):
        problems.append("a head sees a window of the last positions")
    if net.output.kind not in ("transducer", "recogniser", "class"):
        problems.append(f"its answers are not symbols but of kind {net.output.kind!r}")
    if problems:
        raise BuildRefused("no formula can be read from this net: " + "; ".join(problems))


def _merged(world: World, cases: list[Case]) -> list[Case]:
    """Cases that happen, those with the same vector taken together."""
    groups: dict[bytes, tuple[Floats, list[Fact]]] = {}
    for x, here in cases:
        if world.possible(here):
            groups.setdefault(_key(x), (x, []))[1].append(here)
    if len(groups) > MOST_TYPES:
        raise BuildRefused(f"the net has more than {MOST_TYPES} different vectors in one layer: take a smaller net")
    return [(x, world.short(world.either(facts))) for x, facts in groups.values()]


def _key(x: Floats) -> bytes:
    return (np.round(x, DIGITS) + 0.0).tobytes()


def _value(part: Part, place: int, x: Floats) -> Floats:
    """What a head brings from a position."""
    value: Floats = (x @ part["attn.W_V"][place] + part["attn.b_V"][place]) @ part["attn.W_O"][place]
    return value


def _brought(world: World, head: Head, part: Part, place: int, cases: list[Case], bos: Floats) -> list[Case]:
    """What a head brings, and where: every value with the fact that it is brought."""
    stream = np.array([*(x for x, _ in cases), bos])
    query = stream[:-1] @ part["attn.W_Q"][place] + part["attn.b_Q"][place]
    key = stream @ part["attn.W_K"][place] + part["attn.b_K"][place]
    scores = np.round(query @ key.T * part["attn.beta"][place], DIGITS)
    values = [_value(part, place, x) for x in stream]
    askers: dict[tuple[Level, ...], list[Fact]] = {}
    for row, (_, here) in zip(scores, cases, strict=True):
        askers.setdefault(_levels(row, head.resolution), []).append(here)
    found: dict[bytes, tuple[Floats, list[Fact]]] = {}
    for levels, queries in askers.items():
        asks = world.either(queries)
        for level in levels:
            for value, fact in _chosen(world, head, level, [here for _, here in cases], values):
                found.setdefault(_key(value), (value, []))[1].append(world.both(asks, fact))
    cleaned = [(value, world.short(world.either(facts))) for value, facts in found.values()]
    return [(value, fact) for value, fact in cleaned if world.possible(fact)]


Level = tuple[frozenset[int], frozenset[int], frozenset[int]]  # keys that score better, best, and as good as best


def _levels(scores: Floats, resolution: float) -> tuple[Level, ...]:
    """For each score that may be the best of the visible ones, downwards; BOS, the last key, is always visible."""
    found = []
    for best in sorted({float(score) for score in scores if score >= scores[-1]}, reverse=True):
        better, top, tied = scores > best, scores == best, (scores >= best - resolution) & (scores <= best)
        found.append((_members(better), _members(top), _members(tied)))
    return tuple(found)


def _members(flags: NDArray[np.bool_]) -> frozenset[int]:
    return frozenset(np.flatnonzero(flags).tolist())


def _chosen(world: World, head: Head, level: Level, types: list[Fact], values: list[Floats]) -> list[Case]:
    """What is brought where one level has the best score: by value, the fact that the chosen key has it."""
    bos = len(types)
    better, top, tied = level
    any_tied = world.either(types[k] for k in sorted(tied - {bos}))
    case = world.negated(_seen(world, head, world.either(types[k] for k in sorted(better))))
    if bos not in top:
        case = world.both(case, _seen(world, head, world.either(types[k] for k in sorted(top))))
    groups: dict[bytes, list[int]] = {}
    for k in sorted(tied):
        groups.setdefault(_key(values[k]), []).append(k)
    found = []
    for members in groups.values():
        own = world.either(types[k] for k in members if k != bos)
        facts = [world.both(case, _picked(world, head, own, any_tied, bos in tied))]
        if bos in members:
            facts.append(world.both(case, _bos_picked(world, head, any_tied)))
        found.append((values[members[0]], world.either(facts)))
    if head.ties == "average":
        for i, (_, x) in enumerate(found):
            for _, y in found[:i]:
                if world.possible(world.both(x, y)):
                    raise BuildRefused("no formula can be read from this net: a head averages over different values")
    return found


def _seen(world: World, head: Head, fact: Fact) -> Fact:
    """It was so at a visible position."""
    seen = world.once(fact)
    return world.yesterday(seen) if head.mask == "strict" else seen


def _picked(world: World, head: Head, own: Fact, tied: Fact, with_bos: bool) -> Fact:
    """The chosen one of the tied tokens is one of its own."""
    if head.ties == "average":
        return _seen(world, head, own)
    if head.ties == "left":
        first = world.both(own, world.negated(world.yesterday(world.once(tied))))
        return world.false if with_bos else _seen(world, head, first)
    last = world.since(world.negated(tied), own)
    return world.yesterday(last) if head.mask == "strict" else last


def _bos_picked(world: World, head: Head, tied: Fact) -> Fact:
    """BOS is chosen although it is tied with these tokens."""
    return world.negated(_seen(world, head, tied)) if head.ties == "right" else world.true
