r"""Decompile a transformer with hard attention: the formula of past-time logic that it computes.

In the spirit of Angluin, Chiang and Yang (2023, arXiv 2310.13897). Without position embeddings, the residual stream at
a position is one of finitely many vectors, its *type*; first that of its letter. A head copies the value of
the last (or first) visible position among those whose score is the best, and which types score best depends on nothing
but the type of the query and the types that are visible. With $\chi$ true at the types that share the best score, and
$\varphi$ at those of them with one value, the last of them has that value iff $(\neg\chi)\,S\,\varphi$, and the first
iff $O(\varphi \land \neg Y O \chi)$; a score is the best iff nothing better was seen: $\neg O(\dots)$. A new type is an
old one together with what the heads copy; units only merge types. The formula is true where a type answers yes.
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Arrays, Bools, Floats
from vitrify.errors import BuildRefused
from vitrify.net.architecture import Output
from vitrify.net.positions import tabulated
from vitrify.net.sparse import dense
from vitrify.net.transformer import Head, Transformer
from vitrify.net.transformer_forward import Part, mlp
from vitrify.net.weights import Weights
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.logic.ltl_worlds import Fact, World

Case = tuple[Floats, Fact]  # a vector, and the fact that says at which positions it is
DIGITS = 9  # numbers that agree to this many are equal
MAX_TYPES = 512


def formula_of(weights: Weights, symbol: str = "True") -> Formula:
    r"""Return the formula that is true where a net answers with `symbol`, or a recognizer with an accepting state.

    >>> from vitrify.constructions.temporal import temporal
    >>> from vitrify.kit import assemble
    >>> once = Formula.from_text("alphabet: a b c\nlength: 9\nc & O (a & O b)")
    >>> print(formula_of(assemble(temporal(once, attention="hard"))))
    (O ((O ("b")) & ("a"))) & ("c")
    """
    weights = tabulated(weights)
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
    wanted = wanted_answers(net.output, symbol)
    yes = [here for logits, here in answers if net.output.symbols[int(logits.argmax())] in wanted]
    return Formula(world.nodes[world.short(world.either(yes))], net.inputs[1:], net.max_length)


def wanted_answers(output: Output, symbol: str) -> tuple[str, ...]:
    """Return the answers that count as a symbol: of a recognizer, `True` is any accepting state."""
    return output.accepting if output.kind == "recognizer" and symbol == "True" else (symbol,)


def _refuse(net: Transformer, arrays: Arrays) -> None:
    """Refuse a net from which no formula can be read, with all reasons at once."""
    plain = isinstance(net, Transformer) and net.reads == "tokens" and not net.norm and net.residual == "add"
    if not plain or any(block.experts or block.cell for block in net.blocks):
        raise BuildRefused(
            "a formula is read from a transformer over tokens, without layer norm, experts and recurrent cells"
        )
    problems = []
    heads = [head for block in net.blocks for head in block.heads]
    places = arrays["pos_embed.W_pos"][net.pads :]
    if np.ptp(places, axis=0).any():
        problems.append("its residual stream holds positions, which past-time formulas without MOD can't name")
    if net.pads != 1:
        problems.append(f"{net.pads} beginnings of the sequence stand in front, not one")
    if any(head.attention != "hard" for head in heads):
        problems.append("its attention is not hard (build it with --attention hard)")
    if any(head.mask == "none" for head in heads):
        problems.append("a head attends ahead")
    if any(head.window is not None for head in heads):
        problems.append("a head sees a window of the last positions")
    if net.segmented:
        problems.append("a head sees only the keys of its segment")
    if net.output.kind not in ("transducer", "recognizer", "class"):
        problems.append(f"its answers are not symbols but of kind {net.output.kind!r}")
    if problems:
        raise BuildRefused("no formula can be read from this net: " + "; ".join(problems))


def _merged(world: World, cases: list[Case]) -> list[Case]:
    """Return the possible cases, merged by vector."""
    groups: dict[bytes, tuple[Floats, list[Fact]]] = {}
    for x, here in cases:
        if world.possible(here):
            groups.setdefault(_key(x), (x, []))[1].append(here)
    if len(groups) > MAX_TYPES:
        raise BuildRefused(f"the net has more than {MAX_TYPES} different vectors in one layer: take a smaller net")
    return [(x, world.short(world.either(facts))) for x, facts in groups.values()]


def _key(x: Floats) -> bytes:
    return (np.round(x, DIGITS) + 0.0).tobytes()


def _value(part: Part, place: int, x: Floats) -> Floats:
    """Return what a head copies from a position."""
    return np.asarray((x @ part["attn.W_V"][place] + part["attn.b_V"][place]) @ part["attn.W_O"][place])


def _brought(world: World, head: Head, part: Part, place: int, cases: list[Case], bos: Floats) -> list[Case]:
    """Return every value that a head can copy, with the fact that it copies it."""
    stream = np.array([*(x for x, _ in cases), bos])
    query = stream[:-1] @ part["attn.W_Q"][place] + part["attn.b_Q"][place]
    key = stream @ part["attn.W_K"][place] + part["attn.b_K"][place]
    scores = np.round(query @ key.T * part["attn.beta"][place], DIGITS)
    values = [_value(part, place, x) for x in stream]
    queries_by_levels: dict[tuple[Level, ...], list[Fact]] = {}
    for row, (_, here) in zip(scores, cases, strict=True):
        queries_by_levels.setdefault(_levels(row, head.resolution), []).append(here)
    copies: dict[bytes, tuple[Floats, list[Fact]]] = {}
    for levels, queries in queries_by_levels.items():
        query = world.either(queries)
        for level in levels:
            for value, fact in _chosen(world, head, level, [here for _, here in cases], values):
                copies.setdefault(_key(value), (value, []))[1].append(world.both(query, fact))
    cleaned = [(value, world.short(world.either(facts))) for value, facts in copies.values()]
    return [(value, fact) for value, fact in cleaned if world.possible(fact)]


Level = tuple[frozenset[int], frozenset[int], frozenset[int]]  # keys that score better, best, and as good as best


def _levels(scores: Floats, resolution: float) -> tuple[Level, ...]:
    """Return a level for each score that may be the best visible one, downwards; BOS, the last key, is visible."""
    levels = []
    for best in sorted({float(score) for score in scores if score >= scores[-1]}, reverse=True):
        better, top, tied = scores > best, scores == best, (scores >= best - resolution) & (scores <= best)
        levels.append((_members(better), _members(top), _members(tied)))
    return tuple(levels)


def _members(flags: Bools) -> frozenset[int]:
    return frozenset(np.flatnonzero(flags).tolist())


def _chosen(world: World, head: Head, level: Level, types: list[Fact], values: list[Floats]) -> list[Case]:
    """Return, for one level as the best score, every value with the fact that the selected key has it."""
    bos = len(types)
    better, top, tied = level
    any_tied = world.either(types[k] for k in sorted(tied - {bos}))
    case = world.negated(_seen(world, head, world.either(types[k] for k in sorted(better))))
    if bos not in top:
        case = world.both(case, _seen(world, head, world.either(types[k] for k in sorted(top))))
    groups: dict[bytes, list[int]] = {}
    for k in sorted(tied):
        groups.setdefault(_key(values[k]), []).append(k)
    cases = []
    for members in groups.values():
        own = world.either(types[k] for k in members if k != bos)
        facts = [world.both(case, _picked(world, head, own, any_tied, bos in tied))]
        if bos in members:
            picked = world.negated(_seen(world, head, any_tied)) if head.ties == "right" else world.true
            facts.append(world.both(case, picked))
        cases.append((values[members[0]], world.either(facts)))
    if head.ties == "average":
        for i, (_, x) in enumerate(cases):
            for _, y in cases[:i]:
                if world.possible(world.both(x, y)):
                    raise BuildRefused("no formula can be read from this net: a head averages over different values")
    return cases


def _seen(world: World, head: Head, fact: Fact) -> Fact:
    """Return the fact that `fact` held at a visible position."""
    seen = world.once(fact)
    return world.yesterday(seen) if head.mask == "strict" else seen


def _picked(world: World, head: Head, own: Fact, tied: Fact, with_bos: bool) -> Fact:
    """Return the fact that the selected one of the tied tokens is one of `own`."""
    if head.ties == "average":
        return _seen(world, head, own)
    if head.ties == "left":
        first = world.both(own, world.negated(world.yesterday(world.once(tied))))
        return world.false if with_bos else _seen(world, head, first)
    last = world.since(world.negated(tied), own)
    return world.yesterday(last) if head.mask == "strict" else last
