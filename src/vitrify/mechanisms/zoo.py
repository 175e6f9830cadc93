"""The zoo: small built networks of every kind, each made in less than a second, whose true circuits are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vitrify.constructions.catalogue import chosen
from vitrify.errors import InputError
from vitrify.kit import assemble
from vitrify.net.transformer import AttentionKind, Transformer
from vitrify.net.weights import Weights, has_architecture
from vitrify.spec.automata import families as automata
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.probabilistic import random_pfsa
from vitrify.spec.computation.circuit import adder
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
class Resident:
    """One network of the zoo: its spec, its construction, the longest word that it reads, its heads."""

    family: str
    spec: Callable[[], object]
    construction: str
    length: int | None = None
    attention: AttentionKind = "softmax"

    def build(self) -> Weights:
        """The network; no dimension of its stream is used twice, so that no part hears what another has erased."""
        spec = self.spec()
        entry, choices = chosen(spec, self.construction), {"attention": self.attention, "max_length": self.length}
        network = entry.make(spec, **{name: choices[name] for name in choices if name in entry.choices})
        weights = network if isinstance(network, Weights) else assemble(replace(network, reuse=False))
        assert has_architecture(weights, Transformer)
        return weights


def _text(kind: type[Formula | Crasp], text: str) -> Callable[[], object]:
    return lambda: kind.from_text(f"alphabet: a b\nlength: 8\n{text}")


def _klein() -> Automaton:
    return automata.product(automata.cyclic(2), automata.cyclic(2))


ZOO: dict[str, Resident] = {
    "bigram": Resident("n-gram", lambda: random_ngram(3, 2, seed=0), "heads", 6),
    "trigram-heads": Resident("n-gram", lambda: random_ngram(2, 3, seed=1), "heads", 6),
    "trigram-layers": Resident("n-gram", lambda: random_ngram(2, 3, seed=1), "layers", 6),
    "trigram-single": Resident("n-gram", lambda: random_ngram(2, 3, seed=1), "single", 6),
    "fourgram-heads": Resident("n-gram", lambda: random_ngram(2, 4, seed=2), "heads", 6),
    "mod3-cascade": Resident("automaton", lambda: automata.cyclic(3), "cascade", 8),
    "mod3-one-layer": Resident("automaton", lambda: automata.cyclic(3), "commutative", 8),
    "mod3-log-depth": Resident("automaton", lambda: automata.cyclic(3), "log-depth", 8),
    "parity-log-depth": Resident("automaton", lambda: automata.cyclic(2), "log-depth", 8),
    "parity-two-layers": Resident("automaton", lambda: automata.cyclic(2), "parity", 8),
    "klein-cascade": Resident("automaton", _klein, "cascade", 6),
    "klein-one-layer": Resident("automaton", _klein, "commutative", 6),
    "flip-flop-cascade": Resident("automaton", automata.flip_flop, "cascade", 8),
    "flip-flop-log-depth": Resident("automaton", automata.flip_flop, "log-depth", 8),
    "divisible-by-3": Resident("automaton", lambda: automata.divisibility(3), "cascade", 8),
    "corridor": Resident("automaton", lambda: automata.gridworld(4), "gridworld", 8),
    "seen-an-a": Resident("automaton", lambda: Automaton.from_regex("(a|b)*a(a|b)*"), "cascade", 8),
    "abba": Resident("automaton", lambda: Automaton.from_regex("(ab|ba)*"), "log-depth", 8),
    "mod3-hard": Resident("automaton", lambda: automata.cyclic(3), "log-depth", 8, "hard"),
    "trigram-sparse": Resident("n-gram", lambda: random_ngram(2, 3, seed=1), "layers", 6, "sparsemax"),
    "induction": Resident("induction", lambda: KHop(hops=1, symbols=4, length=12), "k-hop"),
    "two-hops": Resident("induction", lambda: KHop(hops=2, symbols=4, length=12), "k-hop"),
    "three-hops": Resident("induction", lambda: KHop(hops=3, symbols=3, length=12), "k-hop"),
    "induction-program": Resident("induction", lambda: program(programs.induction(), "abc", 8, causal=True), "program"),
    "brackets": Resident("Dyck", lambda: Dyck.of("( ) [ ]", depth=3, length=8), "dyck"),
    "brackets-recognizer": Resident("Dyck", lambda: Dyck.of("( ) [ ]", depth=2, length=6), "dyck-recognizer"),
    "brackets-shallow": Resident("Dyck", lambda: Dyck.of("( )", depth=1, length=8), "dyck-recognizer"),
    "brackets-shuffled": Resident("Dyck", lambda: crasp.shuffle_dyck([("a", "b"), ("c", "d")], 6), "counting"),
    "facts-units": Resident("facts", lambda: random_facts(4, 3, 2, seed=0, fillers=2), "facts", 6),
    "facts-heads": Resident("facts", lambda: random_facts(4, 3, 2, seed=0, fillers=2), "facts-heads", 6),
    "memory-matrix": Resident("facts", lambda: random_associations(30, seed=1, outputs=3), "fitted"),
    "memory-units": Resident("facts", lambda: random_associations(30, seed=1, outputs=3), "mlp-memory"),
    "experts-xor": Resident("experts", worlds.xor_world, "hidden", 6),
    "experts-hidden": Resident("experts", lambda: worlds.random_world(2, tasks=(2, 2)), "hidden", 6),
    "experts-linear": Resident("experts", lambda: worlds.random_world(1, tasks=(2, 3)), "linear", 6, "hard"),
    "reverse": Resident("program", lambda: program(programs.reverse(), "abc", 6), "program"),
    "histogram": Resident("program", lambda: program(programs.histogram(), "abc", 6), "program"),
    "shift": Resident("program", lambda: program(programs.shift(2, "a"), "abc", 6), "program"),
    "detect-ab": Resident("program", lambda: program(programs.detect("ab"), "abc", 6), "program"),
    "sort": Resident("program", lambda: program(programs.sort("abc"), "abc", 6), "program"),
    "since": Resident("logic", _text(Formula, "b -> Y (a S b)"), "temporal"),
    "once-twice": Resident("logic", _text(Formula, "O (a & Y O b)"), "temporal"),
    "history": Resident("logic", _text(Formula, "H (a -> Y b)"), "temporal"),
    "majority": Resident("counting", lambda: crasp.majority("a", "ab", 8), "counting"),
    "counted-brackets": Resident("counting", lambda: crasp.dyck1(8, "a", "b"), "counting"),
    "counting-nested": Resident("counting", _text(Crasp, "#(#a < #b) >= 2"), "counting"),
    "counting-modulo": Resident("counting", _text(Crasp, "2 * #a = #true & MOD(1, 2)"), "counting"),
    "grammar-one-pass": Resident("grammar", lambda: grammars.random_hierarchy(3, 2, 2, 2, 1).plain(), "one-pass", 6),
    "grammar-shapes": Resident("grammar", lambda: grammars.random_hierarchy(3, 2, 2, 2, 1).plain(), "shapes", 6),
    "grammar-spans": Resident("grammar", lambda: grammars.random_hierarchy(3, 2, 2, 2, 1).plain(), "spans", 6),
    "grammar-levels": Resident("grammar", lambda: grammars.random_hierarchy(3, 2, 2, 2, 1).plain(), "unambiguous", 6),
    "grammar-plane": Resident("grammar", lambda: grammars.random_hierarchy(3, 2, 2, 2, 1).plain(), "plane", 6),
    "grammar-small": Resident("grammar", lambda: grammars.random_grammar(1, shapes=4), "one-pass", 6),
    "grammar-bayes": Resident("grammar", lambda: grammars.random_hierarchy(2, 2, 2, 2, 1), "unambiguous", 6),
    "word-classes": Resident("patterns", lambda: waking_up(2), "classes", 6),
    "word-memory": Resident("patterns", lambda: random_patterns(1), "memory", 6),
    "composition": Resident("task", lambda: Composition(size=3), "composition"),
    "recall": Resident("task", lambda: Recall(keys=4, values=4, pairs=3, queries=3, fused=False), "recall"),
    "copying": Resident("task", lambda: Copying(symbols=3, size=5, gram=2), "copying"),
    "pairs-that-match": Resident("task", lambda: Match2(modulus=7, length=8), "match2"),
    "neighbors-that-match": Resident("task", lambda: Match3Bigram(modulus=7, length=8), "match3-bigram"),
    "near-ones-that-match": Resident("task", lambda: Match3Local(modulus=7, length=8, reach=2), "match3-local"),
    "estimate-heads": Resident("task", lambda: Estimate(order=1, symbols=2, length=8), "estimate-heads"),
    "estimate-norm": Resident("task", lambda: Estimate(order=2, symbols=2, length=8), "estimate-norm"),
    "adder": Resident("thought", lambda: adder(2), "circuit"),
    "increment": Resident("thought", lambda: increment(3), "turing"),
    "increment-hybrid": Resident("thought", lambda: increment(3), "turing-hybrid"),
    "states-aloud": Resident("thought", lambda: random_pfsa(0, 2, 2), "states-aloud", 6),
}


def resident(name: str) -> Resident:
    """The network of that name."""
    if name not in ZOO:
        raise InputError(f"no network of the zoo is called {name!r}; there are {', '.join(ZOO)}")
    return ZOO[name]
