"""The zoo: recipes of small compiled transformers whose true circuits are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from itertools import product
from typing import Any

from vitrify.constructions.catalogue import chosen
from vitrify.errors import InputError
from vitrify.kit import assemble
from vitrify.net.transformer import AttentionKind, Transformer
from vitrify.net.weights import Weights, has_architecture
from vitrify.registry import declared
from vitrify.spec.automata import families as automata
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.probabilistic import random_pfsa
from vitrify.spec.computation.circuit import adder, random_circuit
from vitrify.spec.computation.turing import increment
from vitrify.spec.grammars import families as grammars
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.languages.word_patterns import random_patterns, waking_up
from vitrify.spec.logic import crasp
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.memory import knowledge as worlds
from vitrify.spec.memory.associations import random_associations
from vitrify.spec.memory.facts import random_facts
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.programs import families as programs
from vitrify.spec.programs.program import program
from vitrify.spec.tasks.composition import Composition
from vitrify.spec.tasks.copying import Copying
from vitrify.spec.tasks.estimate import Estimate
from vitrify.spec.tasks.k_hop import KHop
from vitrify.spec.tasks.match2 import Match2
from vitrify.spec.tasks.match3_bigram import Match3Bigram
from vitrify.spec.tasks.match3_local import Match3Local
from vitrify.spec.tasks.recall import Recall


@dataclass(frozen=True)
class ZooEntry:
    """Recipe of a network: the family it is listed in, a function that makes its spec, the name of a construction."""

    family: str
    spec: Callable[[], object]
    construction: str
    length: int | None = None  # of the longest input
    attention: AttentionKind = "softmax"
    options: tuple[tuple[str, Any], ...] = ()  # further ones of the construction

    def build(self) -> Weights:
        """Return the network; no dimension of its residual stream is erased and reused for another value."""
        spec = self.spec()
        entry, choices = chosen(spec, self.construction), {"attention": self.attention, "max_length": self.length}
        named = {name: choices[name] for name in choices if name in entry.choices}
        network = entry.make(spec, **named, **dict(self.options))
        weights = network if isinstance(network, Weights) else assemble(replace(network, reuse=False))
        assert has_architecture(weights, Transformer)
        return weights


def _text(kind: type[Formula | Crasp], text: str) -> Callable[[], object]:
    return lambda: kind.from_text(f"alphabet: a b\nlength: 8\n{text}")


KLEIN = partial(automata.product, automata.cyclic(2), automata.cyclic(2))  # the Klein four-group
ZOO: dict[str, ZooEntry] = {
    "bigram": ZooEntry("n-gram", lambda: random_ngram(3, 2, seed=0), "heads", 6),
    "trigram-heads": ZooEntry("n-gram", lambda: random_ngram(2, 3, seed=1), "heads", 6),
    "trigram-layers": ZooEntry("n-gram", lambda: random_ngram(2, 3, seed=1), "layers", 6),
    "trigram-single": ZooEntry("n-gram", lambda: random_ngram(2, 3, seed=1), "single", 6),
    "fourgram-heads": ZooEntry("n-gram", lambda: random_ngram(2, 4, seed=2), "heads", 6),
    "mod3-cascade": ZooEntry("automaton", lambda: automata.cyclic(3), "cascade", 8),
    "mod3-one-layer": ZooEntry("automaton", lambda: automata.cyclic(3), "commutative", 8),
    "mod3-log-depth": ZooEntry("automaton", lambda: automata.cyclic(3), "log-depth", 8),
    "parity-log-depth": ZooEntry("automaton", lambda: automata.cyclic(2), "log-depth", 8),
    "parity-two-layers": ZooEntry("automaton", lambda: automata.cyclic(2), "parity", 8),
    "klein-cascade": ZooEntry("automaton", KLEIN, "cascade", 6),
    "klein-one-layer": ZooEntry("automaton", KLEIN, "commutative", 6),
    "flip-flop-cascade": ZooEntry("automaton", automata.flip_flop, "cascade", 8),
    "flip-flop-log-depth": ZooEntry("automaton", automata.flip_flop, "log-depth", 8),
    "divisible-by-3": ZooEntry("automaton", lambda: automata.divisibility(3), "cascade", 8),
    "corridor": ZooEntry("automaton", lambda: automata.gridworld(4), "gridworld", 8),
    "seen-an-a": ZooEntry("automaton", lambda: Automaton.from_regex("(a|b)*a(a|b)*"), "cascade", 8),
    "abba": ZooEntry("automaton", lambda: Automaton.from_regex("(ab|ba)*"), "log-depth", 8),
    "mod3-hard": ZooEntry("automaton", lambda: automata.cyclic(3), "log-depth", 8, "hard"),
    "trigram-sparse": ZooEntry("n-gram", lambda: random_ngram(2, 3, seed=1), "layers", 6, "sparsemax"),
    "induction": ZooEntry("induction", lambda: KHop(hops=1, symbols=4, length=12), "k-hop"),
    "two-hops": ZooEntry("induction", lambda: KHop(hops=2, symbols=4, length=12), "k-hop"),
    "three-hops": ZooEntry("induction", lambda: KHop(hops=3, symbols=3, length=12), "k-hop"),
    "induction-program": ZooEntry("induction", lambda: program(programs.induction(), "abc", 8, causal=True), "program"),
    "brackets": ZooEntry("Dyck", lambda: Dyck.of("( ) [ ]", depth=3, length=8), "dyck"),
    "brackets-recognizer": ZooEntry("Dyck", lambda: Dyck.of("( ) [ ]", depth=2, length=6), "dyck-recognizer"),
    "brackets-shallow": ZooEntry("Dyck", lambda: Dyck.of("( )", depth=1, length=8), "dyck-recognizer"),
    "brackets-shuffled": ZooEntry("Dyck", lambda: crasp.shuffle_dyck([("a", "b"), ("c", "d")], 6), "counting"),
    "facts-units": ZooEntry("facts", lambda: random_facts(4, 3, 2, seed=0, fillers=2), "facts", 6),
    "facts-heads": ZooEntry("facts", lambda: random_facts(4, 3, 2, seed=0, fillers=2), "facts-heads", 6),
    "memory-matrix": ZooEntry("facts", lambda: random_associations(30, seed=1, outputs=3), "fitted"),
    "memory-units": ZooEntry("facts", lambda: random_associations(30, seed=1, outputs=3), "mlp-memory"),
    "experts-xor": ZooEntry("experts", worlds.xor_world, "hidden", 6),
    "experts-hidden": ZooEntry("experts", lambda: worlds.random_world(2, tasks=(2, 2)), "hidden", 6),
    "experts-linear": ZooEntry("experts", lambda: worlds.random_world(1, tasks=(2, 3)), "linear", 6, "hard"),
    "reverse": ZooEntry("program", lambda: program(programs.reverse(), "abc", 6), "program"),
    "histogram": ZooEntry("program", lambda: program(programs.histogram(), "abc", 6), "program"),
    "shift": ZooEntry("program", lambda: program(programs.shift(2, "a"), "abc", 6), "program"),
    "detect-ab": ZooEntry("program", lambda: program(programs.detect("ab"), "abc", 6), "program"),
    "sort": ZooEntry("program", lambda: program(programs.sort("abc"), "abc", 6), "program"),
    "since": ZooEntry("logic", _text(Formula, "b -> Y (a S b)"), "temporal"),
    "once-twice": ZooEntry("logic", _text(Formula, "O (a & Y O b)"), "temporal"),
    "history": ZooEntry("logic", _text(Formula, "H (a -> Y b)"), "temporal"),
    "majority": ZooEntry("counting", lambda: crasp.majority("a", "ab", 8), "counting"),
    "counted-brackets": ZooEntry("counting", lambda: crasp.dyck1(8, "a", "b"), "counting"),
    "counting-nested": ZooEntry("counting", _text(Crasp, "#(#a < #b) >= 2"), "counting"),
    "counting-modulo": ZooEntry("counting", _text(Crasp, "2 * #a = #true & MOD(1, 2)"), "counting"),
    "grammar-one-pass": ZooEntry("grammar", lambda: grammars.random_hierarchy(3, 2, 2, 2, 1).plain(), "one-pass", 6),
    "grammar-shapes": ZooEntry("grammar", lambda: grammars.random_hierarchy(3, 2, 2, 2, 1).plain(), "shapes", 6),
    "grammar-spans": ZooEntry("grammar", lambda: grammars.random_hierarchy(3, 2, 2, 2, 1).plain(), "spans", 6),
    "grammar-levels": ZooEntry("grammar", lambda: grammars.random_hierarchy(3, 2, 2, 2, 1).plain(), "unambiguous", 6),
    "grammar-plane": ZooEntry("grammar", lambda: grammars.random_hierarchy(3, 2, 2, 2, 1).plain(), "plane", 6),
    "grammar-small": ZooEntry("grammar", lambda: grammars.random_grammar(1, shapes=4), "one-pass", 6),
    "grammar-bayes": ZooEntry("grammar", lambda: grammars.random_hierarchy(2, 2, 2, 2, 1), "unambiguous", 6),
    "word-classes": ZooEntry("patterns", lambda: waking_up(2), "classes", 6),
    "word-memory": ZooEntry("patterns", lambda: random_patterns(1), "memory", 6),
    "composition": ZooEntry("task", lambda: Composition(size=3), "composition"),
    "recall": ZooEntry("task", lambda: Recall(keys=4, values=4, pairs=3, queries=3, fused=False), "recall"),
    "copying": ZooEntry("task", lambda: Copying(symbols=3, size=5, gram=2), "copying"),
    "pairs-that-match": ZooEntry("task", lambda: Match2(modulus=7, length=8), "match2"),
    "neighbors-that-match": ZooEntry("task", lambda: Match3Bigram(modulus=7, length=8), "match3-bigram"),
    "near-ones-that-match": ZooEntry("task", lambda: Match3Local(modulus=7, length=8, reach=2), "match3-local"),
    "estimate-heads": ZooEntry("task", lambda: Estimate(order=1, symbols=2, length=8), "estimate-heads"),
    "estimate-norm": ZooEntry("task", lambda: Estimate(order=2, symbols=2, length=8), "estimate-norm"),
    "adder": ZooEntry("thought", lambda: adder(2), "circuit"),
    "increment": ZooEntry("thought", lambda: increment(3), "turing"),
    "increment-hybrid": ZooEntry("thought", lambda: increment(3), "turing-hybrid"),
    "states-aloud": ZooEntry("thought", lambda: random_pfsa(0, 2, 2), "states-aloud", 6),
}


@dataclass(frozen=True)
class ZooFamily:
    """Recipes of one kind that differ in a few numbers: one for every combination of the values of its axes.

    An axis named like a parameter of `spec` goes there, `construction` and `attention` go to the recipe, and all others
    are options of the construction. `name` is a template of the names, which the axes fill.
    """

    name: str
    family: str
    spec: Callable[..., object]
    construction: str
    length: int | None = None
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    options: tuple[str, ...] = ()  # axes that are options of the construction

    def entries(self) -> dict[str, ZooEntry]:
        """Return the recipes by name."""
        made = {}
        for values in product(*self.axes.values()):
            point = dict(zip(self.axes, values, strict=True))
            options = tuple((key, point[key]) for key in self.options)
            numbers = {key: point[key] for key in point if key not in ("construction", "attention", *self.options)}
            entry = ZooEntry(
                self.family,
                partial(self.spec, **numbers),
                str(point.get("construction", self.construction)),
                self.length,
                point.get("attention", "softmax"),
                options,
            )
            made[self.name.format(**point)] = entry
        return made


def _nested(depth: int) -> Crasp:
    """Counts of counts: how often so far was the count of the level below at least 2?"""
    text = "#a"
    for _ in range(depth - 1):
        text = f"#({text} >= 2)"
    return Crasp.from_text(f"alphabet: a b\nlength: 8\n{text} >= 2")


def _once(times: int) -> Formula:
    """Return the formula: at least so many a so far."""
    return Formula.from_text("alphabet: a b\nlength: 8\n" + "O (a & Y " * (times - 1) + "O a" + ")" * (times - 1))


FAMILIES: tuple[ZooFamily, ...] = (
    # size: alphabets, orders, states, facts
    ZooFamily("ngram-{words}-{order}", "n-gram", partial(random_ngram, seed=3), "heads", 6,
              {"words": (2, 3, 4, 5), "order": (2, 3, 4)}),
    ZooFamily("ngram-layers-{words}-{order}", "n-gram", partial(random_ngram, seed=3), "layers", 6,
              {"words": (2, 3, 4), "order": (3, 4)}),
    ZooFamily("cycle-{n}", "automaton", automata.cyclic, "log-depth", 8, {"n": (4, 5, 6, 7)}),
    ZooFamily("cycle-cascade-{n}", "automaton", automata.cyclic, "cascade", 8, {"n": (2, 4, 5, 6)}),
    ZooFamily("divisible-{k}", "automaton", automata.divisibility, "log-depth", 8, {"k": (3, 5, 7)}),
    ZooFamily("corridor-{n}", "automaton", automata.gridworld, "gridworld", 8, {"n": (2, 3)}),
    ZooFamily("random-automaton-{states}-{seed}", "automaton", partial(automata.random_automaton, letters=2),
              "log-depth", 6, {"states": (3, 4, 5), "seed": (1, 2)}),
    ZooFamily("facts-{subjects}-{relations}", "facts", partial(random_facts, answers=3, seed=1, fillers=2), "facts", 6,
              {"subjects": (3, 6), "relations": (2, 4)}),
    ZooFamily("recall-{keys}-{pairs}", "task", lambda keys, pairs: Recall(keys, keys, pairs, 2, False), "recall",
              axes={"keys": (4, 6), "pairs": (2, 4)}),
    ZooFamily("copying-{symbols}-{gram}", "task", partial(Copying, size=4), "copying",
              axes={"symbols": (4, 5), "gram": (1, 3)}),
    ZooFamily("gates-{gates}-{seed}", "thought", partial(random_circuit, inputs=3, outputs=2), "circuit",
              axes={"gates": (4, 8), "seed": (1, 2)}),
    # depth and composition: hops, counts of counts, nested formulas, derivations
    ZooFamily("hops-{hops}-{symbols}", "induction", partial(KHop, length=12), "k-hop",
              axes={"hops": (1, 2, 3, 4, 5), "symbols": (2, 5, 6)}),
    ZooFamily("nested-counts-{depth}", "counting", _nested, "counting", axes={"depth": (1, 2, 3, 4, 5)}),
    ZooFamily("once-{times}", "logic", _once, "temporal", axes={"times": (2, 3, 4, 5)}),
    ZooFamily("brackets-{kinds}-{depth}", "Dyck",
              lambda kinds, depth: Dyck.of(" ".join("()[]<>"[: 2 * kinds]), depth=depth, length=8), "dyck",
              axes={"kinds": (1, 2, 3), "depth": (2, 4)}),
    ZooFamily("sort-{letters}", "program", lambda letters: program(programs.sort(letters), letters, 6), "program",
              axes={"letters": ("ab", "abcd")}),
    ZooFamily("most-frequent-{letters}", "program",
              lambda letters: program(programs.most_frequent_of(letters), letters, 6), "program",
              axes={"letters": ("ab", "abc")}),
    ZooFamily("detect-{pattern}", "program", lambda pattern: program(programs.detect(pattern), "abc", 6), "program",
              axes={"pattern": ("abc", "abca")}),
    ZooFamily("grammar-random-{seed}", "grammar", partial(grammars.random_grammar, shapes=3), "one-pass", 6,
              {"seed": (3, 5, 8)}),
    ZooFamily("near-match-{reach}", "task", lambda reach: Match3Local(modulus=5, length=8, reach=reach),
              "match3-local", axes={"reach": (1, 3)}),
    # superposition: codes of more words than they have dimensions
    ZooFamily("memory-{inputs}-{dimension}", "facts", partial(random_associations, seed=2, outputs=3), "fitted",
              axes={"inputs": (16, 32), "dimension": (14, 18, 22)}, options=("dimension",)),
    ZooFamily("memory-units-{inputs}", "facts", partial(random_associations, seed=2, outputs=3), "mlp-memory",
              axes={"inputs": (8, 16, 48)}),
)  # fmt: skip


@cache
def _catalogue() -> dict[str, ZooEntry]:
    """Return the recipes of `ZOO` and of all families."""
    made = dict(ZOO)
    for family in FAMILIES:
        made |= family.entries()
    return made


def networks() -> dict[str, ZooEntry]:
    """Return all recipes by name: `ZOO`, all families, and the `CIRCUIT` of other files in folders `mechanisms`."""
    modules = [import_module(each.module) for each in declared("vitrify.mechanisms", "CIRCUIT = ")]
    added: dict[str, ZooEntry] = {module.__name__.rpartition(".")[2]: module.CIRCUIT for module in modules}
    if taken := sorted(_catalogue().keys() & added.keys()):
        raise InputError(f"the zoo already has a network {', '.join(taken)}: rename the file")
    return _catalogue() | added


def network(name: str) -> ZooEntry:
    """Return the recipe of that name."""
    if name not in networks():
        raise InputError(f"no network of the zoo is called {name!r}; there are {', '.join(networks())}")
    return networks()[name]
