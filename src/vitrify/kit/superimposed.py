r"""Superimposed codes: keys whose sums, clipped at 1, tell every set of $q$ of $N$ positions from all other positions.

Let $\mathbb F$ be a field of $p$ elements, a prime or a power of 2. Position $j < N \le p^r$ is a polynomial $f_j$ of
degree below $r$, whose coefficients are the digits of $j$ to the base $p$. Its key $u_j \in \{0, 1\}^{np}$ has a block
for each of $n \le p + 1$ points $x$ (the elements of the field, and infinity, where the value is the coefficient of
$x^{r-1}$), with a 1 at the value $f_j(x)$ (Reed and Solomon 1960; Kautz and Singleton 1964). Two polynomials agree on
at most $r - 1$ points. So with the query $w_y = \min(1, \sum_{j \in y} u_j)$

$$u_i \cdot w_y = n \text{ for } i \in y, \qquad u_i \cdot w_y \le q(r-1) \text{ for } i \notin y,$$

for **every** set $y$ of at most $q$ positions: with $n = q(r-1) + 1$ points the gap is 1. The width is $m = \min_r np$
with the least possible $p$; $r = 1$ is the one-hot code, $n = 1$ and $m = N$.
"""

from __future__ import annotations

from itertools import combinations, count
from typing import NamedTuple

import numpy as np

from vitrify.arrays import Float, Floats, Ints


class CodeSize(NamedTuple):
    """Points $n$, elements $p$ of the field, and digits $r$ of a code."""

    points: int
    order: int
    digits: int

    @property
    def width(self) -> int:
        return self.points * self.order


def code_size(length: int, sparsity: int) -> CodeSize:
    """Return the size of the narrowest code for sets of `sparsity` of `length` positions.

    >>> [code_size(4096, q).width for q in (2, 4, 8)]
    [56, 144, 272]
    """
    sizes = [CodeSize(1, length, 1)]
    for digits in range(2, length.bit_length() + 1):
        points = sparsity * (digits - 1) + 1
        order = next(p for p in count(max(points - 1, 2)) if p**digits >= length and _is_order(p))
        sizes.append(CodeSize(points, order, digits))
    return min(sizes, key=lambda size: size.width)


def superimposed_keys(length: int, size: CodeSize) -> Float[np.ndarray, "position dimension"]:
    """Return the keys of all positions."""
    points, order, digits = size
    digit = np.arange(length)[:, None] // order ** np.arange(digits) % order
    at = np.arange(min(points, order))
    value = np.repeat(digit[:, -1:], len(at), axis=1)
    times = _products(order) if digits > 1 else None
    for k in reversed(range(digits - 1)):  # Horner's rule
        value = times[value, at]  # type: ignore[index]  # a table where there is more than one digit
        value = (value + digit[:, k : k + 1]) % order if _is_prime(order) else value ^ digit[:, k : k + 1]
    values = np.hstack([value, digit[:, -1:]])[:, :points]  # infinity last
    keys = np.zeros((length, points, order))
    np.put_along_axis(keys, values[:, :, None], 1.0, axis=2)
    return keys.reshape(length, size.width)


def max_agreement(keys: Floats) -> int | None:
    """Return the largest product of two different keys; None if they are not those of a superimposed code.

    Every key must have a single 1 in each of several blocks of columns. No two keys have the same values in some $t$
    blocks, whichever these are, if and only if all products are below $t$: about $N \\binom nt$ steps, not $N^2 n$.

    >>> max_agreement(superimposed_keys(1000, code_size(1000, 3)))
    2
    """
    rows, columns = np.nonzero(keys)
    if not len(rows) or (keys[rows, columns] != 1).any() or len(rows) % len(keys):
        return None
    points = len(rows) // len(keys)
    if (rows != np.repeat(np.arange(len(keys)), points)).any():
        return None
    values = columns.reshape(len(keys), points)
    if (values.max(axis=0)[:-1] >= values.min(axis=0)[1:]).any():
        return None
    base = int(keys.shape[1])
    for t in range(1, points + 1):
        if all(_all_differ(values[:, list(some)], base) for some in combinations(range(points), t)):
            return t - 1
    return points


def confused(keys: Floats, sparsity: int) -> tuple[int, list[int]]:
    """Return a position and a set without it on which it scores as much as a greedy choice of members achieves."""
    members: list[int] = []
    left = keys[0].copy()  # ones of position 0 that no member has
    for _ in range(sparsity):
        shared = keys @ left
        shared[[0, *members]] = -1.0
        members.append(int(shared.argmax()))
        left *= 1.0 - keys[members[-1]]
    return 0, members


def _all_differ(rows: Ints, base: int) -> bool:
    """Return whether no two rows of numbers below a base are the same."""
    packed = rows[:, 0]
    for column in rows.T[1:]:
        if int(packed.max()) * base >= 1 << 62:  # number the rows so far anew
            packed = np.unique(packed, return_inverse=True)[1]
        packed = packed * base + column
    ordered = np.sort(packed)
    return bool((ordered[1:] != ordered[:-1]).all())


def _is_order(number: int) -> bool:
    return _is_prime(number) or number & number - 1 == 0


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))


def _products(order: int) -> Ints:
    """Return the multiplication table of a field: modulo a prime, or of polynomials over two elements."""
    one = np.arange(order)
    if _is_prime(order):
        return np.asarray(np.outer(one, one) % order)
    bits = order.bit_length() - 1
    for modulus in range(order + 1, 2 * order, 2):
        table = np.zeros((order, order), dtype=np.int64)
        for i in range(bits):
            table ^= (one[:, None] >> i & 1) * (one << i)
        for i in reversed(range(bits - 1)):
            table ^= (table >> bits + i & 1) * (modulus << i)
        if table[1:, 1:].all():  # no divisors of 0: the modulus is irreducible
            return table
    raise AssertionError("there is a field of every power of 2")
