"""Validity conditions of a grammar; each violation is reported with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from vitrify.errors import Problem
from vitrify.spec.formats.text import is_half
from vitrify.spec.grammars.depth import derivation_heights
from vitrify.spec.grammars.rules import Rule, Symbol, descendants, drawn, grouped
from vitrify.spec.graphs import children_first
from vitrify.spec.ngrams.trie import BEGIN, END

NAME = re.compile(r"[\w/](?:(?!->)[\w/^<>-])*")
"""The nonterminals of NLTK's notation: letters, digits, `_` and `/`, after the first also `^`, `<`, `>` and `-`."""

MAX_DIGITS = 2000  # of a number in a file, and of numerator and denominator
REFUSED_DEFECT = Fraction(1, 1000)  # sums farther from one are not rounding errors
WARNED_DEFECT = Fraction(1, 1_000_000)  # files with seven digits stay below this


@dataclass
class GrammarSource:
    """File of a grammar, the line of every rule, and the problems of lines that gave no rule.

    `claimed` are the left sides of lines that could not be read, so that they are not also reported as undefined.
    """

    file: str | None = None
    lines: list[int] = field(default_factory=list)
    start_line: int | None = None
    problems: list[Problem] = field(default_factory=list)
    claimed: set[str] = field(default_factory=set)

    def at(self, message: str, rule: int | None) -> Problem:
        """Return a problem at the line of one rule, or of the file where `rule` is None."""
        line = self.lines[rule] if rule is not None and rule < len(self.lines) else None
        return Problem(message, self.file, line)


def problems_of(start: str, rules: Sequence[Rule], source: GrammarSource) -> tuple[list[Problem], list[Problem]]:
    """Return the problems of a grammar: reasons to refuse it, and reasons to warn."""
    refused = [*source.problems]
    if not rules and not source.problems:
        refused.append(Problem("a grammar needs at least one rule, as in S -> 'a'", source.file))
    for index, rule in enumerate(rules):
        refused += [source.at(message, index) for message in rule_faults(rule)]
    refused += _repeated(rules, source)
    refused += _undefined(start, rules, source)
    refused += [source.at(message, index) for message, index in _unit_cycles(rules)]
    refused += _probability_problems(rules, source)
    warned: list[Problem] = []
    if not refused:  # these checks need a grammar without other errors
        refused += _unproductive(rules, source)
        sums = _sums(rules, source)
        refused += [problem for problem, defect in sums if defect > REFUSED_DEFECT]
        warned += [problem for problem, defect in sums if defect <= REFUSED_DEFECT]
        warned += _unreachable(start, rules, source)
    return refused, warned


def rule_faults(rule: Rule) -> Iterator[str]:
    """Yield the faults of one rule by itself."""
    if not rule.rhs:
        yield f"a right side of {rule.lhs} is empty; every rule must give at least one symbol"
    for symbol in dict.fromkeys([Symbol(rule.lhs), *rule.rhs]):
        if symbol.terminal:
            yield from (f"the word {symbol.name!r} {fault}" for fault in _word_faults(symbol.name))
        elif not NAME.fullmatch(symbol.name):
            yield (
                f"the nonterminal {symbol.name!r} must be made of letters, digits, _ and /, "
                "after the first also ^, <, > and - (but not ->)"
            )


def _word_faults(word: str) -> Iterator[str]:
    if not word:
        yield "is empty; every rule must give at least one symbol, and every word a letter"
    if any(character.isspace() for character in word):
        yield f"holds a blank; write two words, or for example {'_'.join(word.split()) or '_'!r}"
    if "'" in word and '"' in word:
        yield "holds both kinds of quotes, so it can't be quoted; leave one kind out"
    if is_half(word):
        yield "holds half of a surrogate pair, which no text file can carry"
    if word in (BEGIN, END):
        yield "is reserved for sentence boundaries; choose another name"


def _repeated(rules: Sequence[Rule], source: GrammarSource) -> Iterator[Problem]:
    first: dict[tuple[str, tuple[Symbol, ...]], int] = {}
    for index, rule in enumerate(rules):
        before = first.setdefault((rule.lhs, rule.rhs), index)
        if before != index:
            line = source.lines[before] if source.lines else None
            where = f", first on line {line}" if line is not None else ""
            yield source.at(f"the rule {Rule(rule.lhs, rule.rhs)} is given twice{where}; keep one", index)


def _undefined(start: str, rules: Sequence[Rule], source: GrammarSource) -> Iterator[Problem]:
    known = {rule.lhs for rule in rules} | source.claimed
    if rules and start not in known:
        yield Problem(f"the start symbol {start!r} has no rule", source.file, source.start_line)
    reported: set[str] = set()
    for index, rule in enumerate(rules):
        for child in rule.children:
            if child not in known and child not in reported:
                reported.add(child)
                yield source.at(
                    f"the nonterminal {child} has no rule; give it one, or write '{child}' if it is a word", index
                )


def _unit_cycles(rules: Sequence[Rule]) -> Iterator[tuple[str, int]]:
    units = [rule for rule in rules if len(rule.rhs) == 1 and not rule.rhs[0].terminal]
    edges = {lhs: [rule.rhs[0].name for rule in group] for lhs, group in grouped(units).items()}
    _, cycle = children_first(edges, edges)
    if cycle:
        index = next(k for k, rule in enumerate(rules) if rule in units and (rule.lhs, rule.children[0]) == cycle[:2])
        yield f"rules with one symbol go in a circle: {drawn(cycle)}; break it, as it derives nothing new", index


def _probability_problems(rules: Sequence[Rule], source: GrammarSource) -> Iterator[Problem]:
    without = [index for index, rule in enumerate(rules) if rule.probability is None]
    if 0 < len(without) < len(rules):
        for index in without:
            yield source.at(f"{rules[index]} has no probability, but other rules have one: all or none", index)
    for index, rule in enumerate(rules):
        if rule.probability is None:
            continue
        if max(abs(rule.probability.numerator), rule.probability.denominator) >= 10**MAX_DIGITS:
            message = f"the probability of {rule.lhs} -> … is a fraction of more than {MAX_DIGITS} digits; round it"
            yield source.at(message, index)
        elif not 0 < rule.probability <= 1:
            yield source.at(f"the probability of {rule} must be above 0 and at most 1", index)


def _unproductive(rules: Sequence[Rule], source: GrammarSource) -> Iterator[Problem]:
    lost = {rule.lhs for rule in rules} - derivation_heights(grouped(rules), any).keys()
    for index, rule in enumerate(rules):
        if rule.lhs in lost:
            lost.remove(rule.lhs)
            yield source.at(f"{rule.lhs} derives no sentence: each of its rules leads back to such symbols", index)


def _sums(rules: Sequence[Rule], source: GrammarSource) -> list[tuple[Problem, Fraction]]:
    problems = []
    for lhs, group in grouped(rules).items():
        chances = [rule.probability for rule in group if rule.probability is not None]
        total = sum(chances, Fraction(0))
        defect = abs(total - 1)
        if chances and defect > WARNED_DEFECT:
            off = f"they sum to {float(total)!r}, off by {float(defect):.3g}"
            message = f"the probabilities of {lhs} must sum to 1, {off}"
            index = next(k for k, rule in enumerate(rules) if rule.lhs == lhs)
            problems.append((source.at(message, index), defect))
    return problems


def _unreachable(start: str, rules: Sequence[Rule], source: GrammarSource) -> Iterator[Problem]:
    met = set(descendants(start, grouped(rules)))
    lost = list(dict.fromkeys(rule.lhs for rule in rules if rule.lhs not in met))
    if lost:
        index = next(k for k, rule in enumerate(rules) if rule.lhs == lost[0])
        yield source.at(f"no sentence uses {', '.join(lost)}: not reachable from {start}", index)
