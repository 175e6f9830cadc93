"""Shared parts of logics with a truth value at every position: meaning, program and text of leaves and connectives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from vitrify.arrays import Array, Bools, Ints
from vitrify.spec.kinds import Answer, Meaning, PrefixStates
from vitrify.spec.programs.expression import Expr, apply, expression, indices, tokens

CONNECTIVES: dict[str, Callable[..., Array]] = {"not": np.logical_not, "and": np.logical_and, "or": np.logical_or}
CONNECTIVES |= {"implies": lambda a, b: ~a | b, "iff": np.equal}
POSITIONAL = ("MOD", "AT")  # leaves that are true at some positions, whatever the word


def truths(
    alphabet: tuple[str, ...], holds: Callable[[Ints], Bools], states: PrefixStates | None = None
) -> dict[str, Meaning]:
    """Return `True` or `False` at every position; there is no answer before the first letter.

    `holds` takes words as indices of letters [word, position]; `states` determine all later answers.
    """

    def after(word: Sequence[str]) -> list[Answer]:
        letters = np.array([[alphabet.index(letter) for letter in word]], dtype=np.int64)
        return [None, *map(str, holds(letters)[0].tolist())]

    return {"transducer": Meaning("symbol", alphabet, ("False", "True"), after, states=states)}


def leaf_holds(
    operator: str, data: Sequence[str | int], words: Ints, alphabet: tuple[str, ...], start: int
) -> Bools | None:
    """Return where a letter, a constant, MOD or AT is true [word, position]; None for any other operator.

    The first position is `start`.
    """
    if operator == "letter":
        return np.asarray(words == alphabet.index(str(data[0])))
    if operator == "MOD":
        return np.broadcast_to((np.arange(words.shape[1]) + start) % int(data[1]) == int(data[0]), words.shape)
    if operator == "AT":
        return np.broadcast_to(np.isin(np.arange(words.shape[1]) + start, [int(at) for at in data]), words.shape)
    return np.full(words.shape, operator == "true") if operator in ("true", "false") else None


def next_position(position: int, leaves: Iterable[Sequence[str | int]]) -> int:
    """Return the next position, up to what MOD and AT among some leaves tell apart: it repeats after the last AT."""
    own = [leaf for leaf in leaves if leaf[0] in POSITIONAL]
    last = max((int(at) for leaf in own if leaf[0] == "AT" for at in leaf[1:]), default=-1)
    period = math.lcm(*(int(leaf[2]) for leaf in own if leaf[0] == "MOD"))
    return position + 1 if position < last + period else last + 1


def logic_expression(operator: str, data: Sequence[str | int], inner: Sequence[Expr]) -> Expr | None:
    """Return the expression of a leaf or a connective; None for any other operator."""
    if operator == "letter":
        return apply("==", tokens, data[0])
    if operator == "MOD":
        return apply("==", indices % int(data[1]), int(data[0]))
    if operator == "AT":
        return apply("or", *(apply("==", indices, int(at)) for at in data))
    if operator == "implies":
        return ~inner[0] | inner[1]
    if operator in CONNECTIVES:
        return apply("==" if operator == "iff" else operator, *inner)
    return expression(operator == "true") if operator in ("true", "false") else None


def leaf_text(operator: str, data: Sequence[str | int]) -> str | None:
    """Return a letter, a constant, MOD or AT as it is written in files; None for any other operator."""
    if operator == "letter":
        return f'"{data[0]}"'
    if operator in POSITIONAL:
        return f"{operator}({', '.join(map(str, data))})"
    return operator if operator in ("true", "false") else None
