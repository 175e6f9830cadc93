"""Many cases in one test: `each` runs all of them and lists those that fail, `all_pairs` covers a product by pairs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from typing import Any

import pytest

MAX_SHOWN = 20  # failing cases whose message is shown


def all_pairs(*choices: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return combinations, one value of each choice, such that every pair of values of two choices occurs in one.

    Greedy: of the product, always the first combination that has the most pairs not seen so far. With choices of sizes
    a ≥ b ≥ … that is little more than a·b combinations, instead of a·b·….
    """
    values = [list(choice) for choice in choices]
    if len(values) < 2:
        return [(value,) for choice in values for value in choice]
    places = list(combinations(range(len(values)), 2))
    left = {(i, a, j, b) for i, j in places for a in range(len(values[i])) for b in range(len(values[j]))}
    pool = [
        (index, {(i, index[i], j, index[j]) for i, j in places}) for index in product(*(range(len(v)) for v in values))
    ]
    covering = []
    while left:
        index, pairs = max(pool, key=lambda candidate: len(candidate[1] & left))
        left -= pairs
        covering.append(tuple(v[at] for v, at in zip(values, index, strict=True)))
    return covering


def rest_slow(values: Iterable[Any], first: int) -> list[Any]:
    """Return values for `pytest.mark.parametrize`: the first ones as they are, the rest with the slow tests."""
    return [value if at < first else pytest.param(value, marks=pytest.mark.slow) for at, value in enumerate(values)]


def in_turn(first: Iterable[Any], second: Sequence[Any]) -> list[list[tuple[Any, Any]]]:
    """Return the product of two choices in groups: in each, all values of the first, with those of the second in turn.

    The first group has every value of both (where the first choice has as many), and all groups have all pairs.
    """
    values = list(first)
    turns = range(len(second))
    return [[(value, second[(at + turn) % len(second)]) for at, value in enumerate(values)] for turn in turns]


def each_then_slow(
    names: str | Sequence[str], *groups: Iterable[Any], ids: Callable[[Any], object] = repr
) -> Callable[..., Any]:
    """Decorate a test to run on each value of a group, as `each` does: the first group, the others as slow tests."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        runs = [each(names, group, ids=ids)(test) for group in groups]
        signature = inspect.signature(runs[0])

        @functools.wraps(runs[0])
        def run(*args: Any, group: int, **fixtures: Any) -> None:
            runs[group](*args, **fixtures)

        group = inspect.Parameter("group", inspect.Parameter.KEYWORD_ONLY)
        run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), group])  # type: ignore[attr-defined]
        del run.__wrapped__
        marked: Callable[..., None] = pytest.mark.parametrize("group", rest_slow(range(len(runs)), first=1))(run)
        return marked

    return decorate


def each(
    names: str | Sequence[str], values: Iterable[Any], *, ids: Callable[[Any], object] | Iterable[object] = repr
) -> Callable[..., Any]:
    """Decorate a test to run on all values, like `pytest.mark.parametrize`, but as one test with one list of failures.

    A case costs nothing beyond its run (a test of pytest costs milliseconds), and all violations are told at once.
    """
    parameters = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    cases = [dict(zip(parameters, (value,) if len(parameters) == 1 else value, strict=True)) for value in values]
    if not cases:
        raise ValueError(f"each({names!r}, …) needs at least one case")
    if any(isinstance(value, type(pytest.param())) for case in cases for value in case.values()):
        raise TypeError(f"each({names!r}, …) is one test, so its cases have no marks: use pytest.mark.parametrize")
    labels = [str(label) for label in ids] if not callable(ids) else None

    def label(number: int) -> str:
        if labels is not None:
            return labels[number]
        assert callable(ids)
        return ", ".join(f"{name}={_short(str(ids(value)))}" for name, value in cases[number].items())

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            failures: list[tuple[str, BaseException]] = []
            for number, case in enumerate(cases):
                if "tmp_path" in fixtures:  # every case has an empty folder, as it would as a test of its own
                    case = case | {"tmp_path": fixtures["tmp_path"] / f"case-{number}"}
                    case["tmp_path"].mkdir()
                try:
                    test(*args, **(fixtures | case))
                except (Exception, pytest.fail.Exception) as failure:
                    failures.append((label(number), failure))
            if failures:
                raise AssertionError(_told(failures, len(cases))) from failures[0][1]

        signature = inspect.signature(test)
        rest = [parameter for name, parameter in signature.parameters.items() if name not in parameters]
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        del run.__wrapped__  # or else pytest asks for the parameters as fixtures
        return run

    return decorate


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}…"


def _told(failures: Sequence[tuple[str, BaseException]], count: int) -> str:
    lines = [f"{len(failures)} of {count} cases fail; the cause shown is that of the first"]
    lines += [f"[{label}] {type(failure).__name__}: {failure}" for label, failure in failures[:MAX_SHOWN]]
    if len(failures) > MAX_SHOWN:
        lines.append(f"… and {len(failures) - MAX_SHOWN} more")
    return "\n".join(lines)
