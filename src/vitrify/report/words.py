"""Numbers and other values as a page says them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST = 12  # of a list
LONGEST = 400  # letters of a sentence


def number(found: float) -> str:
    """A number, with its thousands apart.

    >>> number(31459), number(1.5265566588595902e-15), number(0.25)
    ('31,459', '1.527e-15', '0.25')
    """
    return f"{found:,}" if isinstance(found, int) else f"{found:,.4g}" if abs(found) < 1e6 else f"{found:.4g}"


def duration(seconds: float) -> str:
    """A time.

    >>> duration(0.034), duration(17.82), duration(376)
    ('0.03 s', '18 s', '6 min 16 s')
    """
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def value(found: Any) -> str:
    """Anything that evidence can hold, in a few words.

    >>> value([153, 6]), value(True), value({"word": ["a", "b"], "expected": 1})
    ('153, 6', 'yes', 'word a, b; expected 1')
    """
    if found is None:
        return "–"
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, int | float):
        return number(found)
    if isinstance(found, Mapping):
        return _cut("; ".join(f"{key} {value(each)}" for key, each in found.items()))
    if isinstance(found, list | tuple):
        more = f", … ({len(found)} in all)" if len(found) > MOST else ""
        return _cut(", ".join(value(each) for each in found[:MOST]) + more)
    return _cut(str(found))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
