"""A Turing machine on a tape that is a string with a marked place, rewritten step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def steps_of(
    rules: Mapping[tuple[str, str], tuple[str, str, str]],
    start: str,
    halt: Sequence[str],
    blank: str,
    word: str,
    most: int,
) -> tuple[list[str], str]:
    """The steps, `written,move,state`, and the tape without outer blanks; every symbol is one character."""
    left, right = "", word  # the head reads the first of the right part
    state = start
    steps: list[str] = []
    while state not in halt and len(steps) < most:
        written, move, state = rules[state, right[0] if right else blank]
        right = written + right[1:]
        if move == "R":
            left, right = left + right[0], right[1:]
        elif move == "L":
            left, right = left[:-1], (left[-1] if left else blank) + right
        steps.append(f"{written},{move},{state}")
    return steps, (left + right).strip(blank)
