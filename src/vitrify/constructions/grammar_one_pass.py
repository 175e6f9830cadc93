r"""A bounded-depth grammar becomes a transformer that gives the exact set of next words in one pass, bottom-up.

In the spirit of Nandakumar et al. (2026, arXiv 2606.17522). For every node the net computes whether it is complete and
which words could come next in it, so no top-down pass is needed:

- *Complete*: $Q_{h,k}[A] = 1$ at $t$ iff $A$, of level $h$, derives the last words up to $w_t$ in shape $k$.
- *Next*: $F_{h,k,p}[A, w] = 1$ at $t$ iff an $A$ of level $h$ and shape $k$ can have the last $p$ words as its first
  ones and $w$ as the one after: for some rule, the children before the one that holds it are complete, and $F$ of that
  child, of which fewer words have been read, allows $w$. With $p = 0$ nothing has been read, and $F$ is a constant.

The answer is $\bigvee_k F_{d,k,t}[S', w]$. Levels are treated from the words up, $Q$ and $F$ side by side: one MLP of
conjunctions each, and a second one where several rules can make a bit 1.

| | formula |
| --- | --- |
| layers | at most $2d - 1$, $d$ the depth with the end of the sentence |
| conjunctions | at most those of $Q$, $\sum U'_{hk}$, $+\ \lvert\Sigma\rvert \sum w_{hk} U_{hk}$ |

$U_{hk}$ is the number of rules that can stand at a node of shape $k$, $w_{hk}$ the number of its words, and the end of
the sentence counts as a word. Half the
layers of the two passes of `grammar_shapes.py`, at the price of a factor of up to $\lvert\Sigma\rvert$ in units.
Equal and idle rows are left out there as here (`_programs.py`): all sizes are bounds.
"""

from __future__ import annotations

from vitrify.constructions._parses import ANSWERS, MAX_SHAPES, Parses, next_words_net, one_pass_program
from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, construction
from vitrify.constructions.grammar_shapes import bounds, most_conjunctions
from vitrify.kit.network import Network
from vitrify.spec.grammars.grammar import Grammar


def sizes(grammar: Grammar) -> DeclaredSizes:
    """Return bounds: the one pass."""
    parses = Parses.of(grammar)
    up, down = most_conjunctions(parses.shapes)
    return bounds(parses.shapes, up + len(parses.shapes.levels.words) * down, 2 * parses.depth - 1)


@construction("one-pass", "bounded-depth grammars, half the layers and more units", sizes, certified=("to T", "to T"))
def one_pass(
    grammar: Grammar, limit: int = MAX_SHAPES, *, attention: Attention = "softmax", max_length: MaxLength | None = None
) -> Network:
    """A transformer of at most $2d - 1$ layers whose output is the set of words that may come next."""
    parses = Parses.of(grammar, limit)
    program = one_pass_program(parses).smaller(ANSWERS)
    return next_words_net(grammar, parses, program, "one-pass grammar", "in one pass", attention, max_length)
