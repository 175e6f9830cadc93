r"""Five problems that are built and trained alike: a sandbox, and an exact net for it from which training can start.

Nets that answer by their largest score lead by 1; their scores are made so many times larger (`smooth`) that a softmax
over $k$ answers errs by at most $(k - 1)e^{-c}$ nats.

| problem | sandbox | net |
| --- | --- | --- |
| n-gram | sentences of a random back-off model | one head per place, one unit per listed context |
| induction | what followed this symbol the last time | two heads: the symbol before, and where it is this one |
| grammar | nested brackets with words in them | one pass over levels: what is complete, what may come next |
| experts | queries of several tasks | an expert for each task, and a router |
| hierarchy | the class of a random hierarchy's string | a convolution for each level, one channel per rule |

Every rule of the grammar begins with a word of its own, and the rules of a symbol are equally probable. So the words
that may come next are equally probable too, and the set of them is all that there is to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from vitrify.constructions.grammar_one_pass import one_pass
from vitrify.constructions.hierarchy import hierarchy_cnn
from vitrify.constructions.knowledge import knowledge
from vitrify.constructions.ngram import ngram
from vitrify.constructions.program import program_net
from vitrify.kit import assemble
from vitrify.learn.models.built import smooth
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Sandbox, make
from vitrify.spec.grammar import Grammar
from vitrify.spec.grammars import random_hierarchy
from vitrify.spec.ngrams import LETTERS, random_ngram
from vitrify.spec.program import aggregate, indices, last, select, tokens, upto
from vitrify.spec.program_file import program

SHALLOW = "S -> '(' T ')' | '[' T ']'\nT -> '(' 'x' ')' | '[' 'x' ']' | 'x'"
DEEP = "S -> '(' T ')' | '[' T ']'\nT -> '(' U ')' | '[' U ']' | 'x'\nU -> 'x' | 'y'"


@dataclass(frozen=True, eq=False)
class Problem:
    """What is drawn, and a net that was built for it."""

    sandbox: Sandbox
    built: Weights[Any]


def n_gram(words: int, order: int, length: int) -> Problem:
    """The probabilities of a random model, in sentences that are cut at a length."""
    model = random_ngram(words, order, seed=0)
    sandbox = make("ngram", {"model": model, "length": length, "apart": True})
    return Problem(sandbox, assemble(ngram(model, max_length=length), arithmetic="float32"))


def induction(symbols: int, length: int, sharpness: float) -> Problem:
    """The last place whose symbol before is this one, by a program of two looks."""
    before = aggregate(select(indices, indices - 1), tokens)
    written = program(last(select(before, tokens) & upto, tokens), LETTERS[:symbols], length, causal=True)
    sandbox = make("induction", {"states": symbols, "length": length})
    return Problem(sandbox, smooth(assemble(program_net(written), arithmetic="float32"), sharpness))


def brackets(text: str, length: int, sharpness: float) -> Problem:
    """Which words may come next in a grammar of this text."""
    grammar = Grammar.from_text(text).uniform()
    sandbox = make("pcfg", {"grammar": grammar, "length": length})
    return Problem(sandbox, smooth(assemble(one_pass(grammar), arithmetic="float32"), sharpness))


def experts(tasks: int, keys: int, sharpness: float) -> Problem:
    """The values of the keys that all tasks share, by a mixture of experts whose router has a slope."""
    sandbox: Any = make("knowledge", {"tasks": tasks, "keys": keys})
    return Problem(sandbox, smooth(assemble(knowledge(sandbox.known), arithmetic="float32"), sharpness))


def hierarchy(v: int, m: int, levels: int, sharpness: float) -> Problem:
    """The class of a string of a random hierarchy."""
    sandbox = make("hierarchy", {"v": v, "m": m, "L": levels, "mode": "classify"})
    return Problem(sandbox, smooth(hierarchy_cnn(random_hierarchy(v, m, 2, levels, 0, classes=v)), sharpness))


Problems = Mapping[str, Callable[[], Problem]]
SMALL: Problems = MappingProxyType(
    {
        "n-gram": partial(n_gram, 3, 3, 12),
        "induction": partial(induction, 8, 24, 8.0),
        "grammar": partial(brackets, SHALLOW, 6, 8.0),
        "experts": partial(experts, 3, 4, 10.0),
        "hierarchy": partial(hierarchy, 4, 2, 2, 10.0),
    }
)
LARGE: Problems = MappingProxyType(
    {
        "n-gram": partial(n_gram, 6, 3, 24),
        "induction": partial(induction, 12, 32, 10.0),
        "grammar": partial(brackets, DEEP, 6, 8.0),
        "experts": partial(experts, 4, 12, 12.0),
        "hierarchy": partial(hierarchy, 6, 3, 3, 10.0),
    }
)
