r"""Recurrent language models of finite precision are probabilistic automata: the automaton is read from the net.

A net at $b$ bits (`quantized_recurrent.py`) has at most $2^{bd}$ states of $d$ coordinates, so that a search over all
tokens from the first state ends. A state of the automaton is a state of the net together with the logits there; moves
have the softmax of the logits, as exact fractions of the numbers that float64 holds, over their sum. A token leads to
one state, so the automaton of tokens is deterministic. Where a chain of thought is erased or tokens become letters
(`WeightedAutomaton.relabelled`), it may be nondeterministic: with thoughts, finite precision gives all probabilistic
automata and nothing else (in the spirit of Nowak et al. 2024, arXiv 2406.14197).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import count
from typing import NamedTuple

import numpy as np

from vitrify.arrays import Floats
from vitrify.bounds.quantized_recurrent import QuantizedRecurrent
from vitrify.errors import InputError
from vitrify.spec.automata.weighted import WeightedAutomaton
from vitrify.spec.ngrams.model import END


class NetState(NamedTuple):
    """A quantized state and the logits there, or that of a string which has ended, without either."""

    integers: tuple[int, ...] = ()
    logits: tuple[float, ...] = ()


ENDED = NetState()


def automaton_of(net: QuantizedRecurrent) -> WeightedAutomaton:
    """Return the automaton of the strings of a quantized recurrent language model.

    A string ends with the answer `</s>`, which is not part of it, or with another answer that the net does not read.
    """
    if net.first_logits is None:
        raise InputError("a language model needs logits before the first symbol: quantize a net, or give first_logits")
    tokens = tuple(dict.fromkeys((*net.symbols, *(answer for answer in net.answers if answer != END))))
    start = NetState(tuple(net.start(1)[0].tolist()), tuple(net.first_logits.tolist()))

    def follow(state: NetState) -> tuple[list[tuple[str, NetState, Fraction]], Fraction]:
        if state == ENDED:
            return [], Fraction(1)
        shares = dict(zip(net.answers, distribution(np.array(state.logits)), strict=True))
        possible = {answer: p for answer, p in shares.items() if p and answer != END}
        return [(answer, after(state, answer), p) for answer, p in possible.items()], shares.get(END, Fraction(0))

    def after(state: NetState, answer: str) -> NetState:
        if answer not in net.symbols:
            return ENDED
        word = np.array([[net.symbols.index(answer)]])
        integers, logits = net.after(np.array([state.integers], dtype=np.int64), word)
        return NetState(tuple(integers[0].tolist()), tuple(logits[0].tolist()))

    numbers = count()
    return WeightedAutomaton.explore({start: Fraction(1)}, follow, tokens, lambda _: f"h{next(numbers)}")


def distribution(logits: Floats) -> list[Fraction]:
    """Return the softmax of logits as fractions that sum to 1.

    >>> distribution(np.array([0.0, 0.0, -2000.0]))
    [Fraction(1, 2), Fraction(1, 2), Fraction(0, 1)]
    """
    shares = [Fraction(share) for share in np.exp(logits - logits.max()).tolist()]
    total = sum(shares)
    return [share / total for share in shares]
