"""Nets of the catalogue whose variant can be read off, each beside the fact that it is an instance of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vitrify.bounds.survey import about_models as facts
from vitrify.bounds.survey.statements import Built, Executed
from vitrify.constructions.catalogue import build
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, flip_flop, symmetric_group
from vitrify.spec.computation.turing import TuringMachine, increment
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.logic.crasp import Crasp, dyck1, majority
from vitrify.spec.logic.ltl import Formula

LENGTHS = (6, 12)


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A spec for each length, the construction that builds its nets, and the fact that they are instances of."""

    name: str
    fact: Built
    construction: str
    spec: Callable[[int], Any]
    attention: str = "softmax"
    mode: str = ""

    def net(self, length: int) -> tuple[Any, Weights[Transformer]]:
        """Return the spec and the net for words up to a length."""
        spec = self.spec(length)
        fixed = self.construction in ("parity", "parity-by-position", "star-free", "turing-any-length")
        choices: dict[str, Any] = {} if fixed else {"attention": self.attention}
        choices |= {"mode": self.mode} if self.mode else {}
        choices |= {"max_length": length} if isinstance(spec, Automaton | TuringMachine) else {}
        return spec, build(spec, self.construction, **choices)


def _fact(by: Executed, attention: str = "", target: str = "") -> Built:
    """Return the fact that is executed by a claim, for a kind of attention and a target where there are several."""
    (fact,) = (
        fact
        for fact in facts.BUILT
        if fact.by == by and attention in (fact.model.attention, "") and target in (fact.target, "")
    )
    return fact


def _formula(text: str) -> Callable[[int], Formula]:
    return lambda length: Formula.from_text(f"alphabet: a b c\nlength: {length}\n{text}")


def _program(text: str) -> Callable[[int], Crasp]:
    return lambda length: Crasp.from_text(f"alphabet: a b\nlength: {length}\n{text}")


def _always(automaton: Automaton) -> Callable[[int], Automaton]:
    return lambda _: automaton


SECOND = Automaton.explore(
    "", "ab", lambda word, letter: word if len(word) > 1 else word + letter, accepts=lambda word: word[1:] == "a"
)
NESTED = _program("#(#a > #b) > #b")
EXHIBITS = (
    Exhibit("since and yesterday", _fact(facts.STAR_FREE), "temporal", _formula("!c S (Y a S b)"), "hard"),
    Exhibit("second letter is a", _fact(facts.STAR_FREE), "star-free", _always(SECOND)),
    Exhibit("even positions", _fact(facts.WITH_MOD), "temporal", _formula("H (MOD(0, 2) -> a)"), "hard"),
    Exhibit("yesterday, soft", _fact(facts.SOFT_PAST), "temporal", _formula("H (b -> Y (!a S b))")),
    Exhibit("majority", _fact(facts.MACHINES, "", "MAJORITY"), "counting", lambda n: majority("a", "ab", n)),
    Exhibit("balanced brackets", _fact(facts.SHUFFLES), "counting", dyck1),
    Exhibit("nested counts", _fact(facts.PROGRAMS), "counting", NESTED),
    Exhibit("nested counts, norm", _fact(facts.BY_NORM), "counting", NESTED, mode="layernorm"),
    Exhibit("nested counts, norm, hard", _fact(facts.NORMED), "counting", NESTED, "hard", "layernorm"),
    Exhibit("parity", _fact(facts.TWO_LAYERS), "parity", _always(cyclic(2))),
    Exhibit("parity at every length", _fact(facts.PARITY_AT_ALL, "hard"), "parity-by-position", _always(cyclic(2))),
    Exhibit("counter modulo 3", _fact(facts.COMMUTING), "commutative", _always(cyclic(3))),
    Exhibit("S3", _fact(facts.SOLVABLE, "softmax"), "cascade", _always(symmetric_group(3))),
    Exhibit("S3, hard", _fact(facts.SOLVABLE, "hard"), "cascade", _always(symmetric_group(3)), "hard"),
    Exhibit("brackets", _fact(facts.BRACKETS), "dyck-recognizer", lambda n: Dyck.of_kinds(2, 2, n), "hard"),
    Exhibit("flip-flop", _fact(facts.LOG_DEPTH, "softmax"), "log-depth", _always(flip_flop())),
    Exhibit("flip-flop, hard", _fact(facts.LOG_DEPTH, "hard"), "log-depth", _always(flip_flop()), "hard"),
    Exhibit("machine, polynomial time", _fact(facts.ANY_TIME, target="P"), "turing-any-length", increment),
    Exhibit("machine, any time", _fact(facts.ANY_TIME, target="RE"), "turing-any-length", increment),
    Exhibit("S3 in a loop", _fact(facts.LOOPED), "looped", _always(symmetric_group(3))),
)
