"""Inputs that are almost right: bytes, tokens, lines and JSON values of right ones, deleted, doubled, moved, replaced.

`mutated` takes an input and a pool of others, from which pieces are spliced in. What is put in are numbers, names and
brackets on which readers fail: numbers of thousands of digits, exponents without end, nesting without end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

TOKEN = re.compile(r"[A-Za-z_]\w*|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\s+|.", re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?:/\d+)?")
SMALL = "0 -1 1 2 3 7 17 64 255 256 1000 65535 65536 1000000 2147483647 2147483648 4294967295 4294967296"
LARGE = "9223372036854775807 9223372036854775808 18446744073709551616 1e308 1e309 -1e309 1e400 1e99999 1e999999999"
ODD = "0.5 0.3333 1/3 1/0 -0 -0.0 00 1e3 1e-9 1e-320 1e-999999999 NaN nan inf -inf Infinity 0x10 1_0 ٣ ² ½"
DIGITS = ("1" + "0" * 30, "9" * 400, "9" * 5000, "0." + "3" * 5000, "1" * 5000 + "/3")
NUMBERS = (*SMALL.split(), *LARGE.split(), *ODD.split(), *DIGITS)
TOKENS = (
    "\x00", "\ufeff", "\u2028", "\x85", "\x1b[31m", "[/bold]", "\ud800", "∞", "é", "𝔸", "\t", "\r", "\n", "\n\n", " ",
    "\\", '"', "'", "#", "*", "**", "+", "?", "|", "&", "!", "->", "=", "==", ":", ":=", ",", ".", "..", "/", "(",
    ")", "[", "]", "{", "}", "<", ">", "^", "()", "[]", "{}", "%", "$", "@", "~", "-", "--", "not", "true", "null",
    "a", "b", "BOS", "<s>", "</s>", "<unk>", "ε", "0", "1", "(" * 3000, ")" * 3000, "[" * 3000, "{" * 300, "a" * 5000,
    "!" * 3000, "()" * 2000, "a|" * 3000, "*" * 40, "(a|b)*" * 12, " a" * 3000, "[[", "]]", '"' * 3, "é" * 300,
    "x" * 300, "../..", "/etc/hostname", "%s%n", "\x7f", "=" * 99,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 7, 64, 1000, 65536, 2**31, 2**32, 2**40, 2**63, 2**64, 10**30, 10**400, 0.5, -0.0,
    1e-300, 1e300, -1e308, float("nan"), float("inf"), "", "0", "a", "NaN", "Infinity", "\x00", "\ud800", "a" * 5000,
    "../x", "/etc/hostname", "1e999999999", "9" * 5000, [], [[]], {}, {"kind": "flag"}, [0] * 9, ["a", "a"],
    [[[[[[[[]]]]]]]], {"": 0}, [None], "-1", "1/0",
)  # fmt: skip
MAX_BYTES = 1 << 18  # of an input
DEEP = ("[" * 20000, '{"a":' * 20000, "[" * 3000 + "]" * 3000, '{"a":' * 2000 + "1" + "}" * 2000)


def mutated(data: bytes, pool: Sequence[bytes], rng: Random) -> bytes:
    """Return an input with one to six changes: mostly of its tokens, lines or JSON values, sometimes of its bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
        data = _changed(data, pool, rng)[:MAX_BYTES]
    return data


def _changed(data: bytes, pool: Sequence[bytes], rng: Random) -> bytes:
    if rng.random() < 0.1:
        return _bytes(data, rng)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _bytes(data, rng)
    if text.lstrip()[:1] in ("{", "[") and rng.random() < 0.8:
        try:
            return json.dumps(changed_json(json.loads(text), rng, pool), ensure_ascii=False).encode(
                errors="surrogatepass"
            )
        except (ValueError, RecursionError):
            pass
    other = rng.choice(pool).decode(errors="ignore") if pool else text
    return rng.choice(TEXT_CHANGES)(text, other, rng).encode(errors="surrogatepass")


def _bytes(data: bytes, rng: Random) -> bytes:
    """Change bytes: flip, cut, double, exchange or put some in."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((0, 1, 1, 2, 4, 8, 40, 400)))
    piece = data[start:end]
    match rng.randrange(6):
        case 0:
            return data[:start] + data[end:]
        case 1:
            return data[:start]
        case 2:
            return data[:end] + piece + data[end:]
        case 3:
            return data[:start] + bytes(byte ^ (1 << rng.randrange(8)) for byte in piece) + data[end:]
        case 4:
            return data[:start] + rng.randbytes(max(1, len(piece))) + data[end:]
        case _:
            size = rng.choice((1, 2, 4, 8))
            number = rng.choice((0, 1, -1, 1 << (8 * size - 1), (1 << (8 * size)) - 1)) % (1 << (8 * size))
            return data[:start] + number.to_bytes(size, "little") + data[start + size :]


def _number(text: str, _: str, rng: Random) -> str:
    """Replace a number by a hostile one."""
    found = list(NUMBER.finditer(text))
    if not found:
        return _token(text, text, rng)
    match = rng.choice(found)
    return text[: match.start()] + rng.choice(NUMBERS) + text[match.end() :]


def _token(text: str, _: str, rng: Random) -> str:
    """Put a hostile token in place of one, or between two."""
    tokens = TOKEN.findall(text)
    place = rng.randrange(len(tokens) + 1)
    tokens[place : place + rng.randrange(2)] = [rng.choice(TOKENS)]
    return "".join(tokens)


def _tokens(text: str, other: str, rng: Random) -> str:
    """Delete, double, exchange or splice some tokens."""
    tokens = TOKEN.findall(text) or [""]
    start = rng.randrange(len(tokens))
    end = min(len(tokens), start + rng.choice((1, 1, 2, 3, 5, 20)))
    donor = TOKEN.findall(other) or [""] if rng.random() < 0.5 else tokens
    first = rng.randrange(len(donor))
    piece = donor[first : first + rng.choice((1, 1, 2, 3, 5, 20))]
    tokens[start:end] = rng.choice(
        ([], tokens[start:end] * 2, piece, piece + tokens[start:end], tokens[start:end][::-1])
    )
    return "".join(tokens)


def _lines(text: str, other: str, rng: Random) -> str:
    """Delete, double, move or splice some lines."""
    lines = text.splitlines(keepends=True) or [""]
    start = rng.randrange(len(lines))
    end = min(len(lines), start + rng.choice((1, 1, 1, 2, 5)))
    donor = other.splitlines(keepends=True) or [""] if rng.random() < 0.5 else lines
    first = rng.randrange(len(donor))
    piece = donor[first : first + rng.choice((1, 1, 2, 4))]
    own = lines[start:end]
    lines[start:end] = rng.choice(([], own * 2, piece, piece + own, own * (1 if len(text) > MAX_BYTES // 200 else 200)))
    return "".join(lines)


def _deep(text: str, _: str, rng: Random) -> str:
    """Wrap a piece in thousands of brackets, or put deep JSON in its place."""
    start = rng.randrange(len(text) + 1)
    end = min(len(text), start + rng.choice((1, 3, 10)))
    if rng.random() < 0.3:
        return text[:start] + rng.choice(DEEP) + text[end:]
    depth, (left, right) = rng.choice((3, 50, 900, 3000)), rng.choice(("()", "[]", "{}", "! ", "- "))
    return text[:start] + left * depth + text[start:end] + right * depth + text[end:]


TEXT_CHANGES: tuple[Callable[[str, str, Random], str], ...] = (
    *(_number,) * 4, *(_token,) * 3, *(_tokens,) * 5, *(_lines,) * 4, _deep,
)  # fmt: skip


def changed_json(data: Any, rng: Random, pool: Sequence[bytes] = ()) -> Any:
    """Replace, delete, double, exchange or rename a random value of JSON data."""
    paths = list(_paths(data))
    if not paths:
        return rng.choice(VALUES)
    *path, last = rng.choice(paths)
    parent = data
    for key in path:
        parent = parent[key]
    value = parent[last]
    match rng.randrange(9):
        case 0:
            del parent[last]
        case 1 if isinstance(parent, list):
            parent.insert(rng.randrange(len(parent) + 1), value)
        case 2 if isinstance(parent, list):
            other = rng.randrange(len(parent))
            parent[last], parent[other] = parent[other], value
        case 3 if isinstance(parent, dict):
            parent[rng.choice(("other", "", "../x", "name", *(key for key in parent)))] = parent.pop(last)
        case 4 if isinstance(value, int | float):
            parent[last] = rng.choice((value + 1, value - 1, value * 2, -value, str(value), [value], value * 10**9))
        case 5 if isinstance(value, list):
            parent[last] = rng.choice(
                (
                    value[::-1],
                    value[:-1],
                    value[1:],
                    value * 2,
                    value * (1 if len(value) > 99 else 300),
                    dict(enumerate(value)),
                )
            )
        case 5 if isinstance(value, str):
            text = rng.choice(pool).decode(errors="ignore") if pool else value
            parent[last] = rng.choice(TEXT_CHANGES)(value, text, rng)
        case 6:
            *path, other = rng.choice(paths)  # a value from elsewhere
            donor = data
            for key in path:
                donor = donor[key] if not isinstance(donor, str) else donor
            parent[last] = json.loads(json.dumps(donor))
        case _:
            parent[last] = rng.choice(VALUES)
    return data


def _paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from _paths(value, (*path, key))
