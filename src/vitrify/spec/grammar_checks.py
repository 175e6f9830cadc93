"""What must hold of a grammar, each broken rule told with the line it stands on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from vitrify.errors import Problem
from vitrify.spec.grammar_rules import Rule, Symbol, descendants, drawn, grouped, walk
from vitrify.spec.ngram_trie import BEGIN, END

NAME = re.compile(r"[\w/](?:(?!->)[\w/^<>-])*")
"""The nonterminals of NLTK's notation: letters, digits, `_` and `/`, after the first also `^`, `<`, `>` and `-`."""

LONGEST = 2000  # digits of a number in a file, and of the two parts of a fraction
REFUSED_DEFECT = Fraction(1, 1000)  # sums this far from one are no rounding
WARNED_DEFECT = Fraction(1, 1_000_000)  # what files with seven digits stay below


@dataclass(frozen=True)
class Source:
    """Where a grammar stands: the file, the line of every rule, and what was wrong with lines that gave no rule.

    `claimed` are left sides of lines that could not be read: they are not missing, only broken.
    """

    file: str | None = None
    lines: tuple[int | None, ...] = ()
    start_line: int | None = None
    problems: tuple[Problem, ...] = ()
    claimed: frozenset[str] = frozenset()

    def at(self, message: str, rule: int | None) -> Problem:
        """A problem of one rule, or of the whole file."""
        line = self.lines[rule] if rule is not None and rule < len(self.lines) else None
        return Problem(message, self.file, line)


def problems_of(start: str, rules: Sequence[Rule], source: Source) -> tuple[list[Problem], list[Problem]]:
    """What is wrong with a grammar: reasons to refuse it, and to warn of it."""
    refused = [*source.problems]
    if not rules and not source.problems:
        refused.append(Problem("a grammar needs at least one rule, as in S -> 'a'", source.file))
    for place, rule in enumerate(rules):
        refused += [source.at(message, place) for message in rule_faults(rule)]
    refused += _repeated(rules, source)
    refused += _undefined(start, rules, source)
    refused += [source.at(message, place) for message, place in _unit_cycles(rules)]
    refused += _probability_problems(rules, source)
    warned: list[Problem] = []
    if not refused:  # what follows makes sense only of a grammar that is whole
        refused += _unproductive(rules, source)
        sums = _sums(rules, source)
        refused += [problem for problem, defect in sums if defect > REFUSED_DEFECT]
        warned += [problem for problem, defect in sums if defect <= REFUSED_DEFECT]
        warned += _unreachable(start, rules, source)
    return refused, warned


def rule_faults(rule: Rule) -> Iterator[str]:
    """What is wrong with one rule by itself."""
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
    if any("\ud800" <= character <= "\udfff" for character in word):
        yield "holds half of a surrogate pair, which no text file can carry"
    if word in (BEGIN, END):
        yield "is kept for the borders of sentences; name it otherwise"


def _repeated(rules: Sequence[Rule], source: Source) -> Iterator[Problem]:
    first: dict[tuple[str, tuple[Symbol, ...]], int] = {}
    for place, rule in enumerate(rules):
        before = first.setdefault((rule.lhs, rule.rhs), place)
        if before != place:
            line = source.lines[before] if source.lines else None
            where = f", first on line {line}" if line is not None else ""
            yield source.at(f"the rule {Rule(rule.lhs, rule.rhs)} is given twice{where}; keep one", place)


def _undefined(start: str, rules: Sequence[Rule], source: Source) -> Iterator[Problem]:
    known = {rule.lhs for rule in rules} | source.claimed
    if rules and start not in known:
        yield Problem(f"the start symbol {start!r} has no rule", source.file, source.start_line)
    told: set[str] = set()
    for place, rule in enumerate(rules):
        for child in rule.children:
            if child not in known and child not in told:
                told.add(child)
                yield source.at(
                    f"the nonterminal {child} has no rule; give it one, or write '{child}' if it is a word", place
                )


def _unit_cycles(rules: Sequence[Rule]) -> Iterator[tuple[str, int]]:
    units = [rule for rule in rules if len(rule.rhs) == 1 and not rule.rhs[0].terminal]
    edges = {lhs: [rule.rhs[0].name for rule in group] for lhs, group in grouped(units).items()}
    _, cycle = walk(edges, edges)
    if cycle:
        place = next(k for k, rule in enumerate(rules) if rule in units and (rule.lhs, rule.children[0]) == cycle[:2])
        yield f"rules with one symbol go in a circle: {drawn(cycle)}; break it, as it derives nothing new", place


def _probability_problems(rules: Sequence[Rule], source: Source) -> Iterator[Problem]:
    without = [place for place, rule in enumerate(rules) if rule.probability is None]
    if 0 < len(without) < len(rules):
        for place in without:
            yield source.at(f"{rules[place]} has no probability, but other rules have one: all or none", place)
    for place, rule in enumerate(rules):
        if rule.probability is None:
            continue
        if max(abs(rule.probability.numerator), rule.probability.denominator) >= 10**LONGEST:
            message = f"the probability of {rule.lhs} -> … is a fraction of more than {LONGEST} digits; round it"
            yield source.at(message, place)
        elif not 0 < rule.probability <= 1:
            yield source.at(f"the probability of {rule} must be above 0 and at most 1", place)


def _unproductive(rules: Sequence[Rule], source: Source) -> Iterator[Problem]:
    lost = unproductive(rules)
    for place, rule in enumerate(rules):
        if rule.lhs in lost:
            lost.remove(rule.lhs)
            yield source.at(f"{rule.lhs} derives no sentence: each of its rules leads back to such symbols", place)


def unproductive(rules: Iterable[Rule]) -> set[str]:
    """The left sides that derive no string of words."""
    rules = tuple(rules)
    users: dict[str, list[int]] = {}
    for place, rule in enumerate(rules):
        for child in set(rule.children):
            users.setdefault(child, []).append(place)
    missing = [len(set(rule.children)) for rule in rules]
    found = list(dict.fromkeys(rule.lhs for rule, count in zip(rules, missing, strict=True) if not count))
    productive = set(found)
    for symbol in found:  # grows while it is walked
        for place in users.get(symbol, ()):
            missing[place] -= 1
            if not missing[place] and rules[place].lhs not in productive:
                productive.add(rules[place].lhs)
                found.append(rules[place].lhs)
    return {rule.lhs for rule in rules} - productive


def _sums(rules: Sequence[Rule], source: Source) -> list[tuple[Problem, Fraction]]:
    found = []
    for lhs, group in grouped(rules).items():
        chances = [rule.probability for rule in group if rule.probability is not None]
        total = sum(chances, Fraction(0))
        defect = abs(total - 1)
        if chances and defect > WARNED_DEFECT:
            off = f"they sum to {float(total)!r}, off by {float(defect):.3g}"
            message = f"the probabilities of {lhs} must sum to 1, {off}"
            place = next(k for k, rule in enumerate(rules) if rule.lhs == lhs)
            found.append((source.at(message, place), defect))
    return found


def _unreachable(start: str, rules: Sequence[Rule], source: Source) -> Iterator[Problem]:
    met = set(descendants(start, grouped(rules)))
    lost = list(dict.fromkeys(rule.lhs for rule in rules if rule.lhs not in met))
    if lost:
        place = next(k for k, rule in enumerate(rules) if rule.lhs == lost[0])
        yield source.at(f"no sentence uses {', '.join(lost)}: not reachable from {start}", place)
