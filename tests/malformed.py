"""Files that are almost specs: examples with a piece cut out, doubled, turned or put in, and mere noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.spec.kinds import suffixes
from vitrify.web.examples import examples

ODD = [b"\x00", b"\xff\xfe", b"-1", b"1e999", b"NaN", b"{", b"[[", b'"', b"\n\n", b"()" * 2000, "∞".encode(), b"*" * 50]


def malformed(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents; most are no specs, some may still be one."""
    rng = np.random.default_rng(seed)
    given = [(name, path.read_bytes()) for name, path in examples().items()]
    ends = list(suffixes())
    for number in range(count):
        if number % 5 == 4:
            noise = rng.integers(256, size=int(rng.integers(400))).astype(np.uint8).tobytes()
            yield f"noise{ends[number // 5 % len(ends)]}", noise
            continue
        name, data = given[number % len(given)]
        for _ in range(int(rng.integers(1, 4))):
            data = changed(data, rng)
        yield name, data


def changed(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the content of a file with a piece cut out, doubled, turned, exchanged or put in."""
    first, last = sorted(rng.integers(len(data) + 1, size=2).tolist())
    last = min(last, first + 40)
    piece = data[first:last]
    ways = (
        data[:first] + data[last:],
        data[:first],
        data[:last] + piece + data[last:],
        data[:first] + ODD[int(rng.integers(len(ODD)))] + data[last:],
        data[:first] + piece[::-1] + data[last:],
        data[:first] + bytes(rng.integers(256, size=len(piece)).astype(np.uint8)) + data[last:],
    )
    return ways[int(rng.integers(len(ways)))]
