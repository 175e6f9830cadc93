r"""Regular expressions: parsed with a caret under every mistake, and compiled to minimal automata by derivatives.

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
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.derivatives import Expressions
from vitrify.spec.formats.text import Problem, in_file, refuse_any

MAX_COUNT = 1000  # of repetitions, and of letters in a range: more is a typing error, and would take too long
SHOWN_AROUND = 100  # characters of a long expression on each side of a mistake
INFIX = "|&^"
POSTFIX = "*+?"
RIGHT_MISSING = "an operator needs something on its right; write () for the empty word"
KINDS = dict.fromkeys(INFIX, "infix") | dict.fromkeys(POSTFIX, "postfix") | {"(": "(", ")": ")", ".": "any"}


@dataclass(frozen=True)
class Token:
    """A token of an expression: its text, its first column, and the letters it names, if any."""

    kind: str  # ( ) infix postfix letters others any, where others is a class such as [^ab]
    text: str
    column: int
    letters: tuple[str, ...] = ()


def compile_regex(
    expression: str, alphabet: Sequence[str] | None = None, file: str | None = None, line: int | None = None
) -> Automaton:
    """Return the minimal automaton of an expression over an alphabet, by default the letters that occur in it."""
    tokens, mistakes = _scan(expression)
    mistakes += _misplaced(tokens)
    named = sorted({letter for token in tokens for letter in token.letters})
    letters = tuple(named) if alphabet is None else tuple(alphabet)
    for token in tokens:
        if outside := [letter for letter in token.letters if letter not in letters]:
            which, add = _quoted(outside), "it" if len(outside) == 1 else "them"
            message = f"{which} outside the alphabet {' '.join(letters)}; add {add} to the alphabet"
            mistakes.append((token.column, message))
    mistakes += [
        (token.column, f"{token.text} matches no letter of the alphabet {' '.join(letters)}")
        for token in tokens
        if token.kind == "others" and letters and set(letters) <= set(token.letters)
    ]
    problems = [
        Problem(f"{message}\n{_marked(expression, column)}", file, line) for column, message in sorted(mistakes)
    ]
    if not letters:
        problems.append(
            Problem("no letter occurs, so the alphabet is unknown; declare it, as in: alphabet: a b", file, line)
        )
    message = "the letters of a regular expression are single characters, got {!r} in the alphabet"
    problems += [Problem(message.format(letter), file, line) for letter in letters if len(letter) != 1]
    refuse_any(problems)
    with in_file(file):
        return _minimal_automaton(tokens, letters)


def _marked(expression: str, column: int) -> str:
    """Return a line of an expression around a column, and below it a caret."""
    start = max(0, column - SHOWN_AROUND) if len(expression) > 2 * SHOWN_AROUND else 0
    shown = expression[start : start + 2 * SHOWN_AROUND]
    before, after = "…" * (start > 0), "…" * (start + len(shown) < len(expression))
    return f"    {before}{shown}{after}\n    {' ' * (column - start + len(before))}^"


def _minimal_automaton(tokens: Sequence[Token], letters: tuple[str, ...]) -> Automaton:
    """Return the minimal automaton; letters that every token treats alike are one letter until the last step."""
    alike: dict[tuple[bool, ...], int] = {}
    number = {a: alike.setdefault(tuple(a in token.letters for token in tokens), len(alike)) for a in letters}
    pool = Expressions()
    start = _expression(tokens, number, pool)
    classes = map(str, range(len(alike)))  # of letters
    small = Automaton.explore(start, classes, lambda at, k: pool.derivative(at, int(k)), pool.nullable)
    small = small.minimized()
    table = tuple(tuple(row[number[a]] for a in letters) for row in small.transitions)
    return Automaton(small.states, letters, table, small.initial, small.accepting)


def _expression(tokens: Sequence[Token], number: dict[str, int], expressions: Expressions) -> int:
    """Return the expression of valid tokens; the stack has one (operator, operands, open sequence) per open bracket."""
    levels: list[tuple[str, list[int], list[int]]] = [("|", [], [])]
    for token in tokens:
        operator, operands, parts = levels[-1]
        if token.kind == "(":
            levels.append(("|", [], []))
        elif token.kind == ")":
            levels.pop()
            levels[-1][2].append(expressions.combined(operator, [*operands, expressions.combined(".", parts)]))
        elif token.kind == "infix":
            levels[-1] = (token.text, [*operands, expressions.combined(".", parts)], [])
        elif token.kind == "postfix":
            parts.append(expressions.repetition(parts.pop(), *_bounds(token.text)))
        else:
            outside = token.kind != "letters"  # [^…], or a dot, which names no letters
            parts.append(expressions.letters({n for a, n in number.items() if (a in token.letters) != outside}))
    operator, operands, parts = levels.pop()
    return expressions.combined(operator, [*operands, expressions.combined(".", parts)])


def _bounds(text: str) -> tuple[int, int | None]:
    """Return the minimum and the maximum number of repetitions; None is no maximum."""
    if text in POSTFIX:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[text]
    low, comma, high = text[1:-1].partition(",")
    return int(low or 0), int(high) if high else None if comma else int(low)


# From characters to tokens. A mistake is a column and a message.

Mistake = tuple[int, str]


def _scan(expression: str) -> tuple[list[Token], list[Mistake]]:
    tokens: list[Token] = []
    mistakes: list[Mistake] = []
    column = 0
    while column < len(expression):
        token, faults = _token_at(expression, column)
        tokens.append(token)
        mistakes += [(column, fault) for fault in faults]
        column += len(token.text)
    return tokens, mistakes


def _token_at(expression: str, column: int) -> tuple[Token, list[str]]:
    character = expression[column]
    if character in KINDS:
        return Token(KINDS[character], character, column), []
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
        message = "a repetition looks like {2}, {2,4}, {2,} or {,4}; write \\{ for the letter"
        return Token("postfix", text, column), [message]
    token = Token("postfix", match[0], column)
    if max(len(match[1]), len(match[3])) > 9:  # too long for a number of repetitions, and perhaps for int()
        return token, [f"at most {MAX_COUNT} repetitions"]
    low = int(match[1] or 0)
    high = int(match[3]) if match[3] else (None if match[2] else low)
    if max(low, high or 0) > MAX_COUNT:
        return token, [f"at most {MAX_COUNT} repetitions"]
    if high == 0:
        return token, ["a repetition zero times is the empty word; write ()"]
    if high is not None and high < low:
        return token, [f"a repetition from {low} to {high} is empty; write {{{high},{low}}}"]
    return token, []


def _class(expression: str, column: int) -> tuple[Token, list[str]]:
    match = re.compile(r"\[(\^?)((?:\\.|[^\\\]])*)\]", re.DOTALL).match(expression, column)
    if match is None:
        message = "this [ is never closed; add a ], or write \\[ for the letter"
        return Token("letters", expression[column:], column), [message]
    letters: dict[str, None] = {}
    faults: list[str] = [] if match[2] else ["a class needs at least one letter"]
    for first, last in re.findall(r"(\\.|.)(?:-(\\.|[^\\]))?", match[2], re.DOTALL):
        for piece in (first, last):
            faults += _escape_faults(piece) if piece.startswith("\\") else []
            faults += ["a blank can't be a letter; delete it"] if piece.isspace() else []
        low, high = ord(first[-1]), ord((last or first)[-1])
        if high < low:
            faults.append(f"the range {first}-{last} is empty; write {last}-{first}")
        elif high - low >= MAX_COUNT:
            faults.append(f"at most {MAX_COUNT} letters in a range")
        else:
            letters |= dict.fromkeys(map(chr, range(low, high + 1)))
    kind = "others" if match[1] else "letters"
    return Token(kind, match[0], column, tuple(letters)), faults


# Misplaced tokens: operators without operands, brackets without partners.


def _misplaced(tokens: Sequence[Token]) -> list[Mistake]:
    mistakes: list[Mistake] = []
    open_at: list[tuple[int, str]] = []  # the column of each open bracket, and the operator in use around it
    level, before = "", "start"
    for token in tokens:
        kind, text, column = token.kind, token.text, token.column
        if kind == "postfix":
            mistakes += [(column, fault) for fault in _postfix_faults(text, before)]
        elif kind == "infix":
            mistakes += [(column, fault) for fault in _infix_faults(text, before, level)]
            level = text
        elif kind == "(":
            open_at.append((column, level))
            level = ""
        elif kind == ")":
            if before == "infix":
                mistakes.append((column, RIGHT_MISSING))
            if open_at:
                level = open_at.pop()[1]
            else:
                mistakes.append((column, "nothing opens this ); delete it, or write \\) for the letter"))
        before = kind
    mistakes += [(column, "this ( is never closed; add a ), or write \\( for the letter") for column, _ in open_at]
    if tokens and before == "infix":
        mistakes.append((tokens[-1].column, RIGHT_MISSING))
    return mistakes


def _postfix_faults(text: str, before: str) -> list[str]:
    if before in ("start", "(", "infix"):
        return [f"there is nothing before {text} to repeat; write \\{text[0]} for the letter"]
    return ["two repetitions in a row; put brackets around the first, as in (a+)?"] if before == "postfix" else []


def _infix_faults(text: str, before: str, level: str) -> list[str]:
    if before in ("start", "(", "infix"):
        anchor = " (^ is the shuffle, not an anchor: the whole word is always matched)" if text == "^" else ""
        return [f"{text} needs something on its left; write () for the empty word{anchor}"]
    if level and level != text:
        return [f"{level} and {text} bind equally; add brackets to say which comes first"]
    return []


def _quoted(letters: Sequence[str], shown: int = 10) -> str:
    more = f" and {len(letters) - shown} more" if len(letters) > shown else ""
    return f"{', '.join(map(repr, letters[:shown]))}{more} {'is' if len(letters) == 1 else 'are'}"
