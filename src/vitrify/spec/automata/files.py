"""Readers of `.automaton.json` and `.regex` files; a SpecError lists all problems of a file.

A `.automaton.json` file has transitions as nested objects, or as a list of triples:

    {
      "states": ["even", "odd"],
      "alphabet": ["0", "1"],
      "transitions": {"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd", "1": "even"}},
      "initial": "even",
      "accepting": ["even"]
    }

    "transitions": [["even", "0", "even"], ["even", "1", "odd"], ["odd", "0", "odd"], ["odd", "1", "even"]]

A `.regex` file has one expression, on a line of its own; # starts a comment line:

    # words that end in abb
    alphabet: a b
    (a|b)*abb

The alphabet line is optional: without it the alphabet is the letters that occur, in code-point order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vitrify.encoding import JsonObject
from vitrify.parameters import Help
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.checks import Triple, named_problems, token_problems, triples_of
from vitrify.spec.automata.regex import compile_regex
from vitrify.spec.formats.data import read_data
from vitrify.spec.formats.headed import Header
from vitrify.spec.formats.text import Problem, lines_of, refuse_any


@dataclass(frozen=True)
class AutomatonFile:
    """The schema of a `.automaton.json` file."""

    states: tuple[str, ...]
    alphabet: tuple[str, ...]
    transitions: Annotated[
        Mapping[str, Mapping[str, str]] | tuple[Triple, ...],
        Help("state: {letter: next state}, or triples [state, letter, next state]"),
    ]
    initial: Annotated[str, Help("the name of a state")]
    accepting: tuple[str, ...]


def read_json(path: Path) -> JsonObject:
    """Return the checked arguments of `Automaton.from_dict` from a `.automaton.json` file."""
    file = read_data(path)
    parts, problems = file.parts(AutomatonFile)
    parts["transitions"] = triples_of(parts["transitions"]) if "transitions" in parts else None
    named = [parts.get(key) for key in ("states", "alphabet", "transitions", "initial", "accepting")]
    problems += [Problem(message, str(path)) for message in named_problems(*named)]
    refuse_any(problems)
    return parts


def read_regex(path: Path) -> Automaton:
    """Return the minimal automaton of the regular expression in a `.regex` file."""
    header = Header(lines_of(path), (), str(path), optional=("alphabet",))
    header.problems += [
        Problem(f"a second expression; the first is on line {header.others[0][0]}: join them with |", str(path), number)
        for number, _ in header.others[1:]
    ]
    if not header.others:
        header.problems.append(Problem("the file has no expression; write one, as in (a|b)*abb", str(path)))
    alphabet = header.words("alphabet")
    header.report("alphabet", token_problems("letter", alphabet))
    header.report(
        "alphabet",
        [f"the letters of a regular expression are single characters, got {a!r}" for a in alphabet if len(a) > 1],
    )
    refuse_any(header.problems)
    number, expression = header.others[0]
    return compile_regex(expression, alphabet if "alphabet" in header.entries else None, str(path), number)
