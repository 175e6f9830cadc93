"""Automata on disk: `.automaton.json` (read and written) and `.regex` (read), with all problems told at once.

A `.automaton.json` file names its parts; transitions are nested objects, or a list of triples:

    {
      "states": ["even", "odd"],
      "alphabet": ["0", "1"],
      "transitions": {"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd", "1": "even"}},
      "initial": "even",
      "accepting": ["even"]
    }

    "transitions": [["even", "0", "even"], ["even", "1", "odd"], ["odd", "0", "odd"], ["odd", "1", "even"]]

A `.regex` file holds one expression, on a line of its own; # starts a comment line:

    # words that end in abb
    alphabet: a b
    (a|b)*abb

The alphabet line is optional: without it the alphabet is the letters that occur, in code-point order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vitrify.errors import Problem, SpecError
from vitrify.spec.automaton_checks import Triple, named_problems, token_problems
from vitrify.spec.automaton_regex import Regex, compile_regex
from vitrify.spec.files import Pairs, kind_of, lines_of, parse_json, refuse_any, text_of

KEYS = ("states", "alphabet", "transitions", "initial", "accepting")


@dataclass(frozen=True)
class Draft:
    """An automaton as a file gives it: everything by name, and already checked."""

    states: tuple[str, ...]
    alphabet: tuple[str, ...]
    triples: tuple[Triple, ...]
    initial: str
    accepting: tuple[str, ...]


def read_json(path: Path) -> Draft:
    """The automaton of a `.automaton.json` file."""
    file = str(path)
    given = parse_json(text_of(path), file)
    if not isinstance(given, Pairs):
        raise SpecError(
            [Problem(f"the file must hold one JSON object with {', '.join(KEYS)}, got {kind_of(given)}", file)]
        )
    problems = [f"the key {key!r} is given twice; keep one" for key in given.repeated]
    problems += [f"the key {key!r} is missing" for key in KEYS if key not in given]
    problems += [f"the key {key!r} is unknown; the keys are {', '.join(KEYS)}" for key in given if key not in KEYS]
    states, alphabet, accepting = (_names(given, key, problems) for key in ("states", "alphabet", "accepting"))
    triples, initial = _triples(given, problems), _initial(given, problems)
    problems += named_problems(states, alphabet, triples, initial, accepting)
    refuse_any(Problem(problem, file) for problem in problems)
    parts = (states, alphabet, triples, initial, accepting)
    assert not any(part is None for part in parts)  # else there was a problem
    return Draft(*parts)  # type: ignore[arg-type]


def json_text(
    states: Sequence[str],
    alphabet: Sequence[str],
    transitions: Mapping[str, Mapping[str, str]],
    initial: str,
    accepting: Sequence[str],
) -> str:
    """The text of a `.automaton.json` file, one line for each state."""
    rows = ",\n".join(f"    {_json(state)}: {_json(transitions[state])}" for state in states)
    parts = [
        f'  "states": {_json(states)}',
        f'  "alphabet": {_json(alphabet)}',
        f'  "transitions": {{\n{rows}\n  }}',
        f'  "initial": {_json(initial)}',
        f'  "accepting": {_json(accepting)}',
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def read_regex(path: Path) -> Regex:
    """The regular expression of a `.regex` file, made deterministic."""
    file = str(path)
    lines = lines_of(path)
    declared = [(number, line) for number, line in lines if line.startswith("alphabet:")]
    expressions = [(number, line) for number, line in lines if not line.startswith("alphabet:")]
    problems = [
        Problem(f"a second alphabet; the first is on line {declared[0][0]}", file, number) for number, _ in declared[1:]
    ]
    problems += [
        Problem(f"a second expression; the first is on line {expressions[0][0]}: join them with |", file, number)
        for number, _ in expressions[1:]
    ]
    if not expressions:
        problems.append(Problem("the file holds no expression; write one, as in (a|b)*abb", file))
    alphabet = None
    for number, line in declared[:1]:
        alphabet = tuple(line.removeprefix("alphabet:").split())
        problems += [Problem(problem, file, number) for problem in token_problems("letter", alphabet)]
        problems += [
            Problem(f"the letters of a regular expression are single characters, got {letter!r}", file, number)
            for letter in alphabet
            if len(letter) > 1
        ]
    refuse_any(problems)
    number, expression = expressions[0]
    return compile_regex(expression, alphabet, file, number)


def _names(given: Pairs, key: str, problems: list[str]) -> tuple[str, ...] | None:
    if key not in given:
        return None
    value = given[key]
    if not isinstance(value, list):
        problems.append(f"{key} must be a list of strings, got {kind_of(value)}")
        return None
    wrong = [item for item in value if not isinstance(item, str)]
    problems += [f"{key} must be a list of strings, got the item {_json(item)}{_quote_it(item)}" for item in wrong]
    return None if wrong else tuple(value)


def _initial(given: Pairs, problems: list[str]) -> str | None:
    value = given.get("initial")
    if "initial" in given and not isinstance(value, str):
        problems.append(f"initial must be the name of a state, got {kind_of(value)}{_quote_it(value)}")
    return value if isinstance(value, str) else None


def _triples(given: Pairs, problems: list[str]) -> tuple[Triple, ...] | None:
    if "transitions" not in given:
        return None
    value = given["transitions"]
    found: list[str] = []
    if isinstance(value, Pairs):
        triples = _triples_of_object(value, found)
    elif isinstance(value, list):
        triples = _triples_of_list(value, found)
    else:
        found.append(f"transitions must be an object of objects or a list of triples, got {kind_of(value)}")
        triples = []
    problems += found
    return None if found else tuple(triples)


def _triples_of_object(rows: Pairs, problems: list[str]) -> list[Triple]:
    triples = []
    problems += [f"transitions give the state {state!r} twice; keep one" for state in rows.repeated]
    for state, row in rows.items():
        if not isinstance(row, Pairs):
            problems.append(f"the transitions of {state!r} must be an object {{letter: state}}, got {kind_of(row)}")
            continue
        problems += [
            f"the automaton is not deterministic: state {state!r} has letter {letter!r} twice; keep one"
            for letter in row.repeated
        ]
        for letter, target in row.items():
            if isinstance(target, str):
                triples.append((state, letter, target))
            else:
                problems.append(
                    f"state {state!r} on letter {letter!r} must lead to the name of a state, "
                    f"got {kind_of(target)}{_quote_it(target)}"
                )
    return triples


def _triples_of_list(items: list[object], problems: list[str]) -> list[Triple]:
    triples = []
    for place, item in enumerate(items, start=1):
        if isinstance(item, list) and len(item) == 3 and all(isinstance(name, str) for name in item):
            triples.append((item[0], item[1], item[2]))
        else:
            problems.append(f"transition {place} must be a triple of strings [state, letter, state], got {_json(item)}")
    return triples


def _quote_it(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'; write "{_json(value)}"' if number else ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
