r"""Five problems, each with a sandbox and an exact built net from which training can start.

Nets that answer by their largest score have a margin of 1. `smooth` multiplies their scores by $c$, so that a softmax
over $k$ answers errs by at most $(k - 1)e^{-c}$ nats.

| problem | sandbox | net |
| --- | --- | --- |
| n-gram | sentences of a random back-off model | one head per position, one unit per listed context |
| induction | what followed this symbol the last time | two heads: the previous symbol, and where it equals this one |
| grammar | nested brackets with words in them | one pass over levels: what is complete, what may come next |
| experts | queries of several tasks | an expert for each task, and a router |
| hierarchy | the class of a random hierarchy's string | a convolution for each level, one channel per rule |

The rules of a symbol begin with different words, and are equally probable. So the words that may come next are equally
probable too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from vitrify.constructions.grammar_one_pass import one_pass
from vitrify.constructions.hierarchy import hierarchy_cnn
from vitrify.constructions.knowledge import knowledge
from vitrify.constructions.ngram import ngram
from vitrify.constructions.program import program_net
from vitrify.kit import assemble
from vitrify.learn.models.built import smooth
from vitrify.net.architecture import Architecture
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Sandbox, make
from vitrify.sandboxes.knowledge import KnowledgeSandbox
from vitrify.spec.grammars.families import random_hierarchy
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.ngrams.families import LETTERS, random_ngram
from vitrify.spec.programs.expression import aggregate, indices, last, select, tokens, upto
from vitrify.spec.programs.program import program

JUDGED_SEED = 100  # of the n-gram model and of the hierarchy in the judged run; 0 was explored
SHALLOW = "S -> '(' T ')' | '[' T ']'\nT -> '(' 'x' ')' | '[' 'x' ']' | 'x'"
DEEP = "S -> '(' T ')' | '[' T ']'\nT -> '(' U ')' | '[' U ']' | 'x'\nU -> 'x' | 'y'"


@dataclass(frozen=True, eq=False)
class BuiltProblem:
    """A sandbox, and a net built for it."""

    sandbox: Sandbox
    built: Weights[Architecture]


def n_gram(words: int, order: int, length: int, seed: int = 0) -> BuiltProblem:
    """Return a random n-gram model, with sentences cut at a length."""
    model = random_ngram(words, order, seed=seed)
    sandbox = make("ngram", {"model": model, "length": length, "apart": True})
    return BuiltProblem(sandbox, assemble(ngram(model, max_length=length), arithmetic="float32"))


def induction(symbols: int, length: int, sharpness: float) -> BuiltProblem:
    """Return induction: the symbol after the last earlier occurrence, by a program of two selections."""
    before = aggregate(select(indices, indices - 1), tokens)
    written = program(last(select(before, tokens) & upto, tokens), LETTERS[:symbols], length, causal=True)
    sandbox = make("induction", {"states": symbols, "length": length})
    return BuiltProblem(sandbox, smooth(assemble(program_net(written), arithmetic="float32"), sharpness))


def brackets(text: str, length: int, sharpness: float) -> BuiltProblem:
    """Return next-word prediction for a grammar text."""
    grammar = Grammar.from_text(text).uniform()
    sandbox = make("pcfg", {"grammar": grammar, "length": length})
    return BuiltProblem(sandbox, smooth(assemble(one_pass(grammar), arithmetic="float32"), sharpness))


def experts(tasks: int, keys: int, sharpness: float) -> BuiltProblem:
    """Return a mixture of experts over tasks with shared keys, whose router is differentiable."""
    sandbox = KnowledgeSandbox(tasks=tasks, keys=keys)
    return BuiltProblem(sandbox, smooth(assemble(knowledge(sandbox.known), arithmetic="float32"), sharpness))


def hierarchy(v: int, m: int, levels: int, sharpness: float, seed: int = 0) -> BuiltProblem:
    """Return classification of strings of a random hierarchy: `v` symbols per level, `m` rules per symbol."""
    sandbox = make("hierarchy", {"v": v, "m": m, "L": levels, "mode": "classify", "task": seed})
    return BuiltProblem(sandbox, smooth(hierarchy_cnn(random_hierarchy(v, m, 2, levels, seed, classes=v)), sharpness))


Problems = Mapping[str, Callable[[], BuiltProblem]]
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
        "n-gram": partial(n_gram, 6, 3, 24, JUDGED_SEED),
        "induction": partial(induction, 12, 32, 10.0),
        "grammar": partial(brackets, DEEP, 6, 8.0),
        "experts": partial(experts, 4, 12, 12.0),
        "hierarchy": partial(hierarchy, 6, 3, 3, 10.0, JUDGED_SEED),
    }
)
