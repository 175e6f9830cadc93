r"""Regular expressions, checked here with a caret under every mistake, then made deterministic by automata-lib.

The letters are single characters, and the expression describes whole words (there are no anchors). Operators:

    ab          a, then b                       a|b      a or b
    a*          any number of a                 a&b      both a and b
    a+          at least one                    a^b      shuffle: the letters of both, interleaved
    a?          at most one                     .        any letter of the alphabet
    a{2}        exactly two                     [abx-z]  one of a, b, x, y, z
    a{2,4}      two to four                     [^ab]    any letter of the alphabet but a and b
    a{2,} a{,4} at least two, at most four      (a)      grouping
    \*          the letter *                    ()       the empty word

`* + ? {}` bind tightest, then concatenation, then `| & ^`; mixing two of these three needs brackets. Class shorthands
such as \d, anchors, and two repetitions in a row (lazy `*?`) are refused: other dialects disagree about them.

automata-lib sees each letter as a private character and each class as a choice, because its own escapes and classes
widen the alphabet silently; and `a{0}` is refused because automata-lib 9.2 reads it as `a?`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vitrify.errors import Problem, SpecError

LIMIT = 1000  # repetitions, and letters in a class: past it an expression is a slip of the pen, and would not end
INFIX = "|&^"
POSTFIX = "*+?"
PRIVATE = 0xF0000  # first of 65,534 private characters, which no operator of automata-lib uses

State = int | None  # a state of automata-lib's, or None for the sink


@dataclass(frozen=True)
class Regex:
    """A regular expression made deterministic: where it starts, how it moves, when it accepts."""

    alphabet: tuple[str, ...]
    start: State
    step: Callable[[State, str], State]
    accepts: Callable[[State], bool]


@dataclass(frozen=True)
class Token:
    """One piece of an expression: its text, its first column, and the letters it names, if any."""

    kind: str  # one of ( ) infix postfix letters others any
    text: str
    column: int
    letters: tuple[str, ...] = ()


def compile_regex(
    expression: str, alphabet: Sequence[str] | None = None, file: str | None = None, line: int | None = None
) -> Regex:
    """The deterministic machine of an expression over an alphabet, by default the letters that occur in it."""
    tokens, slips = _scan(expression)
    slips += _misplaced(tokens)
    named = sorted({letter for token in tokens for letter in token.letters})
    letters = tuple(named) if alphabet is None else tuple(alphabet)
    slips += [
        (
            token.column,
            f"{_quoted(outside)} outside the alphabet {' '.join(letters)}; add {_it(outside)} to the alphabet",
        )
        for token in tokens
        if (outside := [letter for letter in token.letters if letter not in letters])
    ]
    slips += [
        (token.column, f"{token.text} matches no letter of the alphabet {' '.join(letters)}")
        for token in tokens
        if token.kind == "others" and letters and set(letters) <= set(token.letters)
    ]
    problems = [
        Problem(f"{message}\n    {expression}\n    {' ' * column}^", file, line) for column, message in sorted(slips)
    ]
    if not letters:
        problems.append(
            Problem("no letter occurs, so the alphabet is unknown; declare it, as in: alphabet: a b", file, line)
        )
    problems += [
        Problem(
            f"the letters of a regular expression are single characters, got {letter!r} in the alphabet", file, line
        )
        for letter in letters
        if len(letter) != 1
    ]
    if problems:
        raise SpecError(problems)
    return _determinise(tokens, letters)


def _determinise(tokens: Sequence[Token], letters: tuple[str, ...]) -> Regex:
    from automata.fa.dfa import DFA
    from automata.fa.nfa import NFA

    private = {letter: chr(PRIVATE + index) for index, letter in enumerate(letters)}
    spelled = "".join(_spelled(token, private) for token in tokens)
    nfa = NFA.from_regex(spelled, input_symbols=frozenset(private.values()))
    dfa = DFA.from_nfa(nfa, minify=True)
    moves: Mapping[Any, Mapping[str, int]] = dfa.transitions  # partial: what is missing leads to the sink

    def step(state: State, letter: str) -> State:
        return None if state is None else moves[state].get(private[letter])

    return Regex(letters, dfa.initial_state, step, lambda state: state in dfa.final_states)


def _spelled(token: Token, private: dict[str, str]) -> str:
    if token.kind == "letters":
        chosen = token.letters
    elif token.kind == "others":
        chosen = tuple(letter for letter in private if letter not in token.letters)
    else:
        return token.text
    return f"({'|'.join(private[letter] for letter in chosen)})"


# From characters to tokens. A slip is a column and a sentence.

Slip = tuple[int, str]


def _scan(expression: str) -> tuple[list[Token], list[Slip]]:
    tokens: list[Token] = []
    slips: list[Slip] = []
    column = 0
    while column < len(expression):
        token, faults = _token_at(expression, column)
        tokens.append(token)
        slips += [(column, fault) for fault in faults]
        column += len(token.text)
    return tokens, slips


def _token_at(expression: str, column: int) -> tuple[Token, list[str]]:
    character = expression[column]
    if character in "()":
        return Token(character, character, column), []
    if character in INFIX:
        return Token("infix", character, column), []
    if character in POSTFIX:
        return Token("postfix", character, column), []
    if character == ".":
        return Token("any", character, column), []
    if character == "{":
        return _repetition(expression, column)
    if character == "[":
        return _class(expression, column)
    if character == "\\":
        text = expression[column : column + 2]
        return Token("letters", text, column, (text[-1],)), _escape_faults(text)
    return Token("letters", character, column, (character,)), _letter_faults(character)


def _letter_faults(character: str) -> list[str]:
    if character.isspace():
        return ["a blank can't be a letter; delete it"]
    if character == "$":
        return ["the whole word is always matched, so there is no anchor $; write \\$ for the letter"]
    return [f"nothing opens this {character}; write \\{character} for the letter"] if character in "]}" else []


def _escape_faults(text: str) -> list[str]:
    if len(text) == 1:
        return ["a backslash needs a character after it; write \\\\ for the letter"]
    if text[1].isalnum() or text[1].isspace():
        return [f"there is no escape {text}; list the letters, as in [0-9]"]
    return []


def _repetition(expression: str, column: int) -> tuple[Token, list[str]]:
    match = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}").match(expression, column)
    if match is None or not (match[1] or match[3]):
        text = match[0] if match else "{"
        return Token("postfix", text, column), [
            "a repetition looks like {2}, {2,4}, {2,} or {,4}; write \\{ for the letter"
        ]
    token = Token("postfix", match[0], column)
    if max(len(match[1]), len(match[3])) > 9:  # too long for a number of repetitions, and perhaps for int()
        return token, [f"at most {LIMIT} repetitions"]
    low = int(match[1] or 0)
    high = int(match[3]) if match[3] else (None if match[2] else low)
    if max(low, high or 0) > LIMIT:
        return token, [f"at most {LIMIT} repetitions"]
    if high == 0:
        return token, ["a repetition zero times is the empty word; write ()"]
    if high is not None and high < low:
        return token, [f"a repetition from {low} to {high} is empty; write {{{high},{low}}}"]
    return token, []


def _class(expression: str, column: int) -> tuple[Token, list[str]]:
    match = re.compile(r"\[(\^?)((?:\\.|[^\\\]])*)\]", re.DOTALL).match(expression, column)
    if match is None:
        return Token("letters", expression[column:], column), [
            "this [ is never closed; add a ], or write \\[ for the letter"
        ]
    letters: dict[str, None] = {}
    faults: list[str] = [] if match[2] else ["a class needs at least one letter"]
    for first, last in re.findall(r"(\\.|.)(?:-(\\.|[^\\]))?", match[2], re.DOTALL):
        for piece in (first, last):
            faults += _escape_faults(piece) if piece.startswith("\\") else []
            faults += ["a blank can't be a letter; delete it"] if piece.isspace() else []
        low, high = ord(first[-1]), ord((last or first)[-1])
        if high < low:
            faults.append(f"the range {first}-{last} is empty; write {last}-{first}")
        elif high - low >= LIMIT:
            faults.append(f"at most {LIMIT} letters in a range")
        else:
            letters |= dict.fromkeys(map(chr, range(low, high + 1)))
    kind = "others" if match[1] else "letters"
    return Token(kind, match[0], column, tuple(letters)), faults


# From tokens to misplaced ones: what stands before and after each operator.


def _misplaced(tokens: Sequence[Token]) -> list[Slip]:
    slips: list[Slip] = []
    open_at: list[tuple[int, str]] = []  # each open bracket, and the operator in use around it
    level, before = "", "start"
    for token in tokens:
        kind, text, column = token.kind, token.text, token.column
        if kind == "postfix":
            slips += [(column, fault) for fault in _postfix_faults(text, before)]
        elif kind == "infix":
            slips += [(column, fault) for fault in _infix_faults(text, before, level)]
            level = text
        elif kind == "(":
            open_at.append((column, level))
            level = ""
        elif kind == ")":
            slips += [(column, "an operator needs something on its right; write () for the empty word")] * (
                before == "infix"
            )
            if open_at:
                level = open_at.pop()[1]
            else:
                slips.append((column, "nothing opens this ); delete it, or write \\) for the letter"))
        before = kind
    slips += [(column, "this ( is never closed; add a ), or write \\( for the letter") for column, _ in open_at]
    if tokens and before == "infix":
        slips.append((tokens[-1].column, "an operator needs something on its right; write () for the empty word"))
    return slips


def _postfix_faults(text: str, before: str) -> list[str]:
    if before in ("start", "(", "infix"):
        return [f"there is nothing before {text} to repeat; write \\{text[0]} for the letter"]
    return ["two repetitions in a row; put brackets around the first, as in (a+)?"] if before == "postfix" else []


def _infix_faults(text: str, before: str, level: str) -> list[str]:
    if before in ("start", "(", "infix"):
        anchor = " (^ is the shuffle, not an anchor: the whole word is always matched)" if text == "^" else ""
        return [f"{text} needs something on its left; write () for the empty word{anchor}"]
    if level and level != text:
        return [f"{level} and {text} bind equally; say with brackets which comes first"]
    return []


def _quoted(letters: Sequence[str], shown: int = 10) -> str:
    more = f" and {len(letters) - shown} more" if len(letters) > shown else ""
    return f"{', '.join(map(repr, letters[:shown]))}{more} {'is' if len(letters) == 1 else 'are'}"


def _it(letters: Sequence[str]) -> str:
    return "it" if len(letters) == 1 else "them"
