"""Validation of automata: each function returns all problems as sentences for a `SpecError`.

`named_problems` checks an automaton with states and letters given by name (a dictionary, a file); `table_problems`
checks the table of indices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from vitrify.spec.formats.text import is_half

Triple = tuple[str, str, str]
"""(state, letter, next state)"""

Transitions = Mapping[str, Mapping[str, str]] | Iterable[Triple]
"""The next state by state and letter, or triples."""


def triples_of(transitions: Transitions) -> tuple[Triple, ...]:
    """Return transitions as triples."""
    if isinstance(transitions, Mapping):
        return tuple((state, letter, target) for state, row in transitions.items() for letter, target in row.items())
    return tuple(transitions)


def named_problems(
    states: Sequence[object] | None,
    alphabet: Sequence[object] | None,
    triples: Sequence[Triple] | None,
    initial: str | None,
    accepting: Sequence[str] | None,
) -> list[str]:
    """Return the problems of an automaton written by name; a part that is None is invalid already, and skipped."""
    problems: list[str] = []
    if states is not None:
        problems += token_problems("state", states)
    if alphabet is not None:
        problems += token_problems("letter", alphabet)
    if triples is not None:
        problems += _unknown_in_triples(states, alphabet, triples)
        problems += _repeated(triples)
        if states is not None and alphabet is not None:
            problems += _missing(states, alphabet, triples)
    listed = frozenset(states or ())
    if states is not None and initial is not None and initial not in listed:
        problems.append(f"the initial state {initial!r} is not listed in states")
    for state, times in Counter(accepting or ()).items():
        if states is not None and state not in listed:
            problems.append(f"the accepting state {state!r} is not listed in states")
        if times > 1:
            problems.append(f"the accepting state {state!r} is listed {times} times; list it once")
    return problems


def table_problems(
    states: Sequence[object],
    alphabet: Sequence[object],
    transitions: Sequence[Sequence[int]],
    initial: int,
    accepting: Collection[int],
) -> list[str]:
    """Return the problems of an automaton given as a table of state indices."""
    problems = token_problems("state", states) + token_problems("letter", alphabet)
    inside = range(len(states))
    if len(transitions) != len(states):
        problems.append(f"transitions need one row for each of the {len(states)} states, got {len(transitions)} rows")
    for state, row in enumerate(transitions):
        if len(row) != len(alphabet):
            problems.append(f"row {state} of transitions needs {len(alphabet)} entries, one per letter, got {len(row)}")
        problems += [
            f"row {state} of transitions leads to state index {target}; there are states 0 to {len(states) - 1}"
            for target in dict.fromkeys(row)
            if target not in inside
        ]
    if initial not in inside:
        problems.append(f"the initial state index {initial} is outside 0 to {len(states) - 1}")
    problems += [
        f"the accepting state index {state} is outside 0 to {len(states) - 1}"
        for state in sorted(accepting)
        if state not in inside
    ]
    return problems


def token_problems(kind: str, tokens: Sequence[object]) -> list[str]:
    """Return the problems of a list of names; a name is a non-empty string without blanks, listed once.

    >>> token_problems("letter", ["a", "b c", "a"])
    ["letter 'a' is listed 2 times; list it once", "letter 'b c' contains a blank; write for example 'b_c'"]
    """
    problems = [] if tokens else [f"an automaton needs at least one {kind}"]
    for token, times in Counter(tokens).items():
        if times > 1:
            problems.append(f"{kind} {token!r} is listed {times} times; list it once")
        problems += [f"{kind} {token!r} {fault}" for fault in _token_faults(token)]
    return problems


def _token_faults(token: object) -> Iterator[str]:
    if not isinstance(token, str):
        yield "must be a string"
    elif not token:
        yield "is empty; give it a name"
    elif any(character.isspace() for character in token):
        yield f"contains a blank; write for example {'_'.join(token.split()) or '_'!r}"
    elif is_half(token):
        yield "contains half of a surrogate pair, which UTF-8 can't encode"


def _unknown_in_triples(
    states: Sequence[object] | None, alphabet: Sequence[object] | None, triples: Sequence[Triple]
) -> list[str]:
    known_states, known_letters = frozenset(states or ()), frozenset(alphabet or ())
    problems = []
    for source, letter, target in triples:
        edge = f"the transition {source!r} --{letter}--> {target!r}"
        if states is not None:
            unknown = [name for name in dict.fromkeys((source, target)) if name not in known_states]
            problems += [f"{edge} uses the state {name!r}, which is not listed in states" for name in unknown]
        if alphabet is not None and letter not in known_letters:
            problems.append(f"{edge} uses the letter {letter!r}, which is not listed in alphabet")
    return problems


def _repeated(triples: Sequence[Triple]) -> list[str]:
    targets: dict[tuple[str, str], list[str]] = {}
    for source, letter, target in triples:
        targets.setdefault((source, letter), []).append(target)
    problems = []
    for (source, letter), ends in targets.items():
        if len(set(ends)) > 1:
            problems.append(
                f"the automaton is not deterministic: state {source!r} on letter {letter!r} leads to "
                f"{' and '.join(map(repr, dict.fromkeys(ends)))}; keep one of them"
            )
        elif len(ends) > 1:
            problems.append(f"the transition of state {source!r} on letter {letter!r} is given {len(ends)} times")
    return problems


def _missing(states: Sequence[object], alphabet: Sequence[object], triples: Sequence[Triple]) -> list[str]:
    present = {(source, letter) for source, letter, _ in triples}
    missing = [
        f"({state!r}, {letter!r})"
        for state in dict.fromkeys(states)
        for letter in dict.fromkeys(alphabet)
        if (state, letter) not in present
    ]
    if not missing:
        return []
    return [
        "the automaton is not complete: every state needs a transition on every letter, but there is none for "
        f"{', '.join(missing)}; add them, or add a sink state that is not accepting, loops to itself on every letter, "
        "and takes the missing transitions"
    ]
