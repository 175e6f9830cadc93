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

from vitrify.constructions._parses import ANSWERS, SHAPES, Parses, next_words_net, one_pass_program
from vitrify.constructions._programs import Program
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.kit.network import Network
from vitrify.net.transformer import AttentionKind
from vitrify.spec.grammar import Grammar


def one_pass(
    grammar: Grammar, *, attention: AttentionKind = "softmax", max_length: int | None = None, limit: int = SHAPES
) -> Network:
    """A transformer of at most $2d - 1$ layers whose output is the set of words that may come next."""
    parses = Parses.of(grammar, limit)
    return next_words_net(grammar, parses, _program(parses), "one-pass grammar", "in one pass", attention, max_length)


def sizes(grammar: Grammar, limit: int = SHAPES) -> dict[str, int]:
    """Layers, heads, conjunctions and units of the net, and the most layers that the formula allows."""
    parses = Parses.of(grammar, limit)
    return _program(parses).sizes(ANSWERS) | {"most_layers": 2 * parses.depth - 1}


def _program(parses: Parses) -> Program:
    return one_pass_program(parses).smaller(ANSWERS)


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Grammar)
    return one_pass(spec, attention=settings.attention, max_length=settings.max_length)


CONSTRUCTIONS = (
    Construction(
        "one-pass", Grammar, "bounded-depth grammars, half the layers and more units", _make, certified="proved"
    ),
)
