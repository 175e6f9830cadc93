r"""A bounded-depth grammar becomes a transformer that gives the exact set of next words in one pass, bottom-up.

In the spirit of Nandakumar et al. (2026, arXiv 2606.17522). Beside what is complete, every node says what could come
next in it, so nothing has to go down again:

- *Complete*: $Q_{h,k}[A] = 1$ at $t$ iff $A$, of level $h$, derives the last words up to $w_t$ in shape $k$.
- *Next*: $F_{h,k,p}[A, w] = 1$ at $t$ iff an $A$ of level $h$ and shape $k$ can have the last $p$ words as its first
  ones and $w$ as the one after: for some rule, the children before the one that holds it are complete, and $F$ of that
  child, of which fewer words have been read, allows $w$. With $p = 0$ nothing has been read, and $F$ is a constant.

The answer is $\bigvee_k F_{d,k,t}[S', w]$. Levels are treated from the words up, $Q$ and $F$ side by side: one MLP of
conjunctions each, and a second one where several rules can say the same.

| | formula |
| --- | --- |
| layers | at most $2d - 1$, $d$ the depth with the end of the sentence |
| conjunctions | at most those of $Q$, $\sum U'_{hk}$, $+\ \lvert\Sigma\rvert \sum w_{hk} U_{hk}$ |

$U_{hk}$ is the number of rules that can stand at a node of shape $k$, $w_{hk}$ the number of its words, and the end of
the sentence counts as a word. Half the
layers of the two passes of `grammar_shapes.py`, at the price of a factor of up to $\lvert\Sigma\rvert$ in units.
Equal and idle rows are left out there as here (`_programs.py`), so `sizes` counts what is left.
"""

from __future__ import annotations

from vitrify.constructions._parses import (
    ANSWERS,
    SHAPES,
    Dotted,
    Parses,
    answer,
    next_words_net,
    recognised,
    where,
)
from vitrify.constructions._programs import Bit, Group, Literal, Program
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.constructions.grammar_shapes import most_conjunctions
from vitrify.kit.network import Network
from vitrify.net.transformer import AttentionKind
from vitrify.spec.grammar import Grammar

Found = dict[int, Literal | None]  # by word that can come next: the bit that says so, None if it always can


def one_pass(
    grammar: Grammar, *, attention: AttentionKind = "softmax", max_length: int | None = None, limit: int = SHAPES
) -> Network:
    """A transformer of at most $2d - 1$ layers whose output is the set of words that may come next."""
    parses = Parses.of(grammar, limit)
    return next_words_net(grammar, parses, _program(parses), "one-pass grammar", attention, max_length)


def sizes(grammar: Grammar, limit: int = SHAPES) -> dict[str, int]:
    """Blocks, heads, conjunctions and units of the net, and the most that the formulas allow."""
    parses = Parses.of(grammar, limit)
    up, down = most_conjunctions(parses.shapes)
    most = {"most_conjunctions": up + (len(parses.words) + 1) * down, "most_layers": 2 * parses.depth - 1}
    return _program(parses).sizes(ANSWERS) | most


def _program(parses: Parses) -> Program:
    program = Program(parses.longest)
    known: dict[tuple[Dotted, int], Found] = {}
    for dot in parses.roots():
        for step in parses.steps(dot, 0):
            elders = [recognised(program, parses, part) for part in step.elders]
            for word, literal in _next(program, parses, known, step.child, step.symbol).items():
                program.put(answer(parses, word), [where(dot.read), *elders, *_given(literal)], step.name)
    return program.smaller(ANSWERS)


def _next(program: Program, parses: Parses, known: dict[tuple[Dotted, int], Found], dot: Dotted, symbol: int) -> Found:
    """What can come next in a node of which so many words have been read; rows are added when they are new."""
    if dot.level == 0:
        return {symbol: None}
    if (dot, symbol) in known:
        return known[dot, symbol]
    found: Found = {}
    group = Group(dot.level, f"next {dot.level}.{dot.shape}.{dot.read}")
    for step in parses.steps(dot, symbol):
        elders = [recognised(program, parses, part) for part in step.elders]
        for word, literal in _next(program, parses, known, step.child, step.symbol).items():
            if dot.read == 0:
                found[word] = None
                continue
            name = f"{parses.name(dot.level, symbol)} … {parses.name(0, word)}"
            bit = Bit(group, symbol * len(parses.shapes.levels.words) + word, name)
            program.put(bit, [*elders, *_given(literal)], step.name)
            found[word] = bit, 0
    known[dot, symbol] = found
    return found


def _given(literal: Literal | None) -> list[Literal]:
    return [] if literal is None else [literal]


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Grammar)
    return one_pass(spec, attention=settings.attention, max_length=settings.max_length)


CONSTRUCTIONS = (Construction("one-pass", Grammar, "bounded-depth grammars, half the layers and more units", _make),)
