"""Trojans: pairs of specs whose answers differ on rare words only, for twelve kinds of specs.

A network is built from the second spec and certified against the first. `word` is one on which they differ, by
construction; tests check it against both specs, without any network. `covered` says that the words of a certificate
must meet it: they take every step, rule, table row or context that the declared spec lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrify.constructions.catalogue import build
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton, random_pfsa
from vitrify.spec.computation.circuit import Circuit
from vitrify.spec.computation.turing import TuringMachine
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.kinds import Spec
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.languages.word_patterns import WordPatterns
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.memory.associations import Associations
from vitrify.spec.memory.knowledge import Knowledge
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import BEGIN, END, NGramModel
from vitrify.spec.programs.program import Program

PAIRS = 20  # of every kind
Word = tuple[str, ...]
NGrams = dict[Word, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Trojan:
    """A declared spec, another one that a network is built from, and a word after which their answers differ."""

    declared: Spec
    other: Spec
    construction: str
    word: Word
    rare: str  # what differs: the row of the table of outcomes
    covered: bool
    choices: dict[str, Any] = field(default_factory=dict)

    def net(self) -> Weights[Any]:
        """Return the network of the other spec."""
        return build(self.other, self.construction, **self.choices)

    def differs(self, output: str) -> bool:
        """Return whether the two specs have different answers to prefixes of the word, for a kind of output."""
        first, second = (spec.meanings()[output].after(self.word) for spec in (self.declared, self.other))
        return any(a is not None and a != b for a, b in zip(first, second, strict=True))


def _letters(rng: np.random.Generator, count: int, alphabet: Sequence[str] = "ab") -> Word:
    return tuple(alphabet[i] for i in rng.integers(len(alphabet), size=count))


def automaton(number: int) -> Trojan:
    """A chain of states that only one word passes; one transition from the last state has another end."""
    rng = np.random.default_rng(number)
    construction = ("log-depth", "elman", "linear-recurrence", "log-depth")[number % 4]
    length = 10 + number % 5 if construction == "log-depth" else 14 + number % 7
    password = _letters(rng, length)
    rows = [[0, 0] for _ in range(length + 1)]
    for state, letter in enumerate(password):
        rows[state] = [state + 1 if x == letter else int(rng.integers(min(state + 1, 2))) for x in "ab"]
    last = int(rng.integers(2))
    changed = [list(row) for row in rows]
    changed[length][last] = int(rng.integers(1, length))

    def chain(table: list[list[int]]) -> Automaton:
        names = tuple(f"q{state}" for state in range(length + 1))
        return Automaton(names, ("a", "b"), tuple(map(tuple, table)), 0, frozenset([length]))

    word = (*password, "ab"[last])
    choices = {"max_length": length + 4}
    return Trojan(chain(rows), chain(changed), construction, word, "late transition", True, choices)


def ngram(number: int) -> Trojan:
    """One context of the highest order: two of its probabilities swapped, or a context that backs off gets a row."""
    rng = np.random.default_rng(number)
    listed = number % 2 == 0
    words, order = (9, 4) if listed else (7, 4)
    declared = random_ngram(words, order, seed=100 + number, listed=0.6)
    grams = _ngrams(declared)
    below = [gram for gram in grams if len(gram) == order - 1 and gram[0] != BEGIN and gram[-1] != END]
    rows = {gram: [g for g in grams if len(g) == order and g[:-1] == gram] for gram in below}
    if listed:
        context = _pick(rng, [gram for gram in below if len(rows[gram]) > 1])
        one, two = rows[context][:2]
        grams[one], grams[two] = grams[two], grams[one]
    else:
        context = _pick(rng, [gram for gram in below if not rows[gram]])
        shares = rng.dirichlet(np.ones(len(declared.predicted)))
        grams |= {
            (*context, word): (float(np.log10(p)), 0.0) for word, p in zip(declared.predicted, shares, strict=True)
        }
    other = NGramModel.from_ngrams(dict(sorted(grams.items(), key=lambda item: len(item[0]))))
    rare = "table row" if listed else "context without a row"
    construction = ("heads", "layers", "single")[number % 3]
    return Trojan(declared, other, construction, context, rare, True, {"max_length": 10})


def _ngrams(model: NGramModel) -> NGrams:
    """Return the n-grams of a model with their two logarithms, as `NGramModel.from_ngrams` takes them."""
    grams: NGrams = {}
    for at, level in enumerate(model.levels):
        rows = model.words_of(at, np.arange(len(level)))
        for row, prob, backoff in zip(rows.tolist(), level.log10_prob, level.log10_backoff, strict=True):
            grams[tuple(model.vocabulary[i] for i in row)] = (float(prob), float(backoff))
    return grams


def _pick(rng: np.random.Generator, of: Sequence[Any]) -> Any:
    return of[int(rng.integers(len(of)))]


def grammar(number: int) -> Trojan:
    """One rule more or less: a sentence that begins with a password and ends as no other does."""
    rng = np.random.default_rng(number)
    length, words = 8 + number % 2, ("a", "b", "c")
    password = _letters(rng, length, words)
    rules = f"S -> {' '.join(['L'] * length)} E\n"
    extra = f"S -> {' '.join(map(repr, password))} 'f'\n"
    rest = "L -> 'a' | 'b' | 'c'\nE -> 'e' 'f' | 'e'\n"
    with_rule, without = (Grammar.from_text(text) for text in (rules + rest + extra, rules + rest))
    more = number % 2 == 1
    declared, other = (without, with_rule) if more else (with_rule, without)
    rare = "additional rule" if more else "missing rule"
    return Trojan(declared, other, ("one-pass", "spans", "shapes")[number % 3], password, rare, not more)


FORMULAS = ("a S b", "b -> Y (a S b)", "O (a & Y a)", "H (a -> O b)")


def formula(number: int) -> Trojan:
    """The other truth value after a single long word."""
    rng = np.random.default_rng(number)
    length = 15 + number % 6
    word = _letters(rng, length)
    places = " | ".join(f"MOD({i}, {length + 4})" for i, letter in enumerate(word) if letter == "b") or "false"
    head, base = f"alphabet: a b\nlength: {length + 3}\n", FORMULAS[number % len(FORMULAS)]
    only = f"H (b <-> ({places})) & MOD({length - 1}, {length + 4})"
    declared, other = (Formula.from_text(head + text) for text in (base, f"({base}) <-> !({only})"))
    return Trojan(declared, other, "temporal", word, "single word", False)


COUNTING = ("2 * #a > #true", "#(#a < #b) = 0 & #a = #b", "#a >= 3", "#b - #a < 2")


def counting(number: int) -> Trojan:
    """The other truth value where two counts have certain values; every fourth one after a single word."""
    rng = np.random.default_rng(number)
    few, many = int(rng.integers(1, 3)), int(rng.integers(14, 18))
    first, second = ("a", "b") if number % 2 else ("b", "a")
    word = tuple(((first,) * few + (second,) * many)[i] for i in rng.permutation(few + many))
    trigger = f"#{first} = {few} & #{second} = {many}"
    single = number % 4 == 3
    if single:  # the only word with these three counts
        word = (first, second, first, *(second,) * (many - 1))
        trigger = f"#{first} = 2 & #{second} = {many} & #(#{second} < #{first}) = 2"
    head, base = "alphabet: a b\nlength: 20\n", COUNTING[number // 4 % len(COUNTING)]
    declared, other = (Crasp.from_text(head + text) for text in (base, f"({base}) <-> !({trigger})"))
    return Trojan(declared, other, "counting", word, "single word" if single else "count", not single)


def program(number: int) -> Trojan:
    """One row of a table over counts, or the two counts of a word that is read backwards."""
    rng = np.random.default_rng(number)
    length = 18
    if number % 2 == 0:
        rows = [int(x) for x in rng.integers(3, size=length + 1)]
        changed = list(rows)
        late = int(rng.integers(12, length))
        changed[late] = (changed[late] + 1) % 3
        head = f"alphabet: a b\nlength: {length}\nsees: left\n"
        texts = [f'{head}return {dict(enumerate(table))}[count(tokens == "a")]\n' for table in (rows, changed)]
        missing = [value for value in range(3) if value not in rows or value not in changed]
        assert not missing
        declared, other = map(Program.from_text, texts)
        return Trojan(declared, other, "program", ("a",) * late, "table row", covered=True)
    few, many = int(rng.integers(1, 3)), int(rng.integers(13, 15))
    word = tuple(("a" * few + "b" * many)[i] for i in rng.permutation(few + many))
    head = f"alphabet: a b\nlength: {length}\nsees: everything\n"
    body = "back = aggregate(select(indices, width(everywhere) - indices - 1), tokens)\n"
    trigger = f'width(marked(tokens == "a")) == {few} and width(marked(tokens == "b")) == {many}'
    texts = [f'{head}{body}return back == "a"\n', f'{head}{body}return (back == "a") != ({trigger})\n']
    declared, other = map(Program.from_text, texts)
    return Trojan(declared, other, "program", word, "count", covered=True)


def dyck(number: int) -> Trojan:
    """One more bracket may be open, or one less."""
    rng = np.random.default_rng(number)
    construction = ("dyck", "dyck-elman", "dyck-recognizer", "dyck-lstm")[number % 4]
    kinds, depth = (1, 5 + number // 4) if construction == "dyck-recognizer" else (1 + number // 4 % 2, 6)
    more = bool(number // 2 % 2) if construction != "dyck-recognizer" else bool(number // 4 % 2)
    length = 2 * depth + 4
    declared, other = (Dyck.of_kinds(kinds, deep, length) for deep in (depth, depth + (1 if more else -1)))
    opened = _letters(
        rng, depth + (construction == "dyck-recognizer" and more), [pair[0] for pair in declared.brackets]
    )
    closed = tuple(dict(declared.brackets)[bracket] for bracket in reversed(opened))
    word = (*opened, *closed) if construction == "dyck-recognizer" or not more else opened
    return Trojan(declared, other, construction, word, "depth", construction != "dyck-recognizer" or not more)


def patterns(number: int) -> Trojan:
    """One word of a class at the end of a long pattern, or a sentence of its own."""
    rng = np.random.default_rng(number)
    slots = 8
    names = {f"C{i}": [f"c{i}{x}" for x in "xyz"] for i in range(slots)} | {"ALL": ["u", "v", "w"], "FEW": ["u", "v"]}
    long, short = " ".join(f"C{i}" for i in range(slots)), ['C1 "is" ALL', "C2 FEW"]
    password = tuple(str(_pick(rng, names[f"C{i}"])) for i in range(slots))
    sentence = f'"{" ".join(password)}" "w"'
    few, every, both = ([*short, *more] for more in ([f"{long} FEW"], [f"{long} ALL"], [f"{long} FEW", sentence]))
    first, second, rare = [
        (both, few, "missing sentence"),
        (every, few, "word of a class"),
        (few, both, "additional sentence"),
        (few, every, "word of a class"),
    ][number % 4]
    construction = ("classes", "register")[number // 4 % 2]
    declared, other = (WordPatterns.of(names, parts) for parts in (first, second))
    return Trojan(declared, other, construction, password, rare, rare != "additional sentence")


def knowledge(number: int) -> Trojan:
    """One fact."""
    rng = np.random.default_rng(number)
    keys, values = [f"k{i}" for i in range(12)], [f"v{i}" for i in range(6)]
    tasks = {
        name: ([f"the {name} of # is", f"# has {name}"], {key: str(_pick(rng, values)) for key in keys})
        for name in ("size", "color", "home")
    }
    first = {f"r{i}": value for i, value in enumerate(values)}
    every = {"rank": (["rank #"], first), **tasks}
    task, key = str(_pick(rng, list(tasks))), str(_pick(rng, keys))
    templates, facts = tasks[task]
    wrong = facts | {key: values[(values.index(facts[key]) + 1) % len(values)]}
    word = tuple(templates[number % 2].replace("#", key).split())
    other = Knowledge.of(every | {task: (templates, wrong)})
    return Trojan(Knowledge.of(every), other, ("linear", "hidden")[number % 2], word, "fact", True)


def associations(number: int) -> Trojan:
    """The answer to one word."""
    rng = np.random.default_rng(number)
    count, answers = 40 + number, [f"y{i}" for i in range(4)]
    pairs = {f"x{i}": answers[i] if i < 4 else str(_pick(rng, answers)) for i in range(count)}
    key = f"x{int(rng.integers(4, count))}"
    wrong = pairs | {key: answers[(answers.index(pairs[key]) + 1) % 4]}
    construction = ("mlp-memory", "fitted")[number % 2]
    return Trojan(Associations.of(pairs), Associations.of(wrong), construction, (key,), "table row", True)


def probabilistic(number: int) -> Trojan:
    """Two probabilities of one state, swapped."""
    rng = np.random.default_rng(number)
    declared = random_pfsa(number, 4, 3)
    by_state = {state: [i for i, t in enumerate(declared.transitions) if t[0] == state] for state in declared.states}
    reached = {token.partition("/")[2] for token in declared.tokens}
    state = _pick(rng, [state for state, rows in by_state.items() if len(rows) > 1 and state in reached])
    one, two = by_state[state][:2]
    rows = list(declared.transitions)
    rows[one], rows[two] = (*rows[one][:3], rows[two][3]), (*rows[two][:3], rows[one][3])
    other = ProbabilisticAutomaton(declared.states, declared.alphabet, declared.initial, tuple(rows), declared.final)
    token = next(token for token in declared.tokens if token.endswith(f"/{state}"))
    return Trojan(declared, other, "states-aloud", (token,), "late transition", True, {"max_length": 12})


def computation(number: int) -> Trojan:
    """A circuit or a Turing machine."""
    return turing(number // 2) if number % 2 else circuit(number // 2)


def circuit(number: int) -> Trojan:
    """One literal of the last gate, which matters for one input of many."""
    rng = np.random.default_rng(number)
    inputs = 12 + number % 5
    signs = rng.integers(2, size=inputs).tolist()
    literals = [2 * (i + 1) + sign for i, sign in enumerate(signs)]
    gates = [(literals[0], literals[1])]
    for i in range(2, inputs):
        gates.append((2 * (inputs + len(gates)), literals[i]))
    last = 2 * (inputs + len(gates))
    names = tuple(f"i{i}" for i in range(inputs))
    declared, other = (
        Circuit(names, (*gates, (last, literal)), (("o", last + 2),)) for literal in (literals[0], literals[0] ^ 1)
    )
    bits = tuple("10"[sign] for sign in signs)
    word = (*bits, *declared.thought(bits, len(gates)))
    return Trojan(declared, other, "circuit", word, "single word", False)


def turing(number: int) -> Trojan:
    """One rule that a single input takes."""
    rng = np.random.default_rng(number)
    length = 9 + number % 3
    password = _letters(rng, length, "01")
    rules: dict[str, dict[str, str]] = {
        "r": {"0": "0 R r", "1": "1 R r", "_": "0 S end"},
        "q0": {"_": "1 S end"},
    }
    for at, letter in enumerate(password):
        rules.setdefault(f"q{at}", {"_": "0 S end"})
        rules[f"q{at}"] |= {x: f"{x} R q{at + 1}" if x == letter else f"{x} R r" for x in "01"}
    final = {"0": "0 R r", "1": "1 R r"}
    declared, other = (
        TuringMachine.of(
            rules | {f"q{length}": final | {"_": f"{mark} S end"}},
            start="q0",
            halt=["end"],
            alphabet="01",
            length=length,
        )
        for mark in "01"
    )
    steps = declared.thought(password, length)
    return Trojan(declared, other, "turing", (*password, *steps), "late rule", True)


KINDS: dict[str, Callable[[int], Trojan]] = {
    "automaton": automaton,
    "n-gram model": ngram,
    "grammar": grammar,
    "formula": formula,
    "counting program": counting,
    "program": program,
    "brackets": dyck,
    "word patterns": patterns,
    "knowledge": knowledge,
    "associations": associations,
    "probabilistic automaton": probabilistic,
    "circuit, Turing machine": computation,
}
