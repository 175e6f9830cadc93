"""Common programs: expressions that work with any alphabet and length."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.spec.programs.expression import (
    Expr,
    Table,
    aggregate,
    apply,
    before,
    choose,
    count,
    everywhere,
    expression,
    first,
    indices,
    last,
    marked,
    mean,
    select,
    tokens,
    upto,
    width,
)

length = width(everywhere)


def reverse() -> Expr:
    """Return the word backwards."""
    return aggregate(select(indices, length - indices - 1), tokens)


def histogram() -> Expr:
    """Return the number of occurrences in the word of the symbol at each position."""
    return width(select(tokens, tokens))


def running_count(symbol: str) -> Expr:
    """Return the number of occurrences of a symbol up to each position."""
    return width(marked(tokens == symbol) & upto)


def shift(by: int = 1, default: str | None = None) -> Expr:
    """Return the symbol `by` positions to the left."""
    return aggregate(select(indices, indices - by), tokens, default)


def detect(pattern: Sequence[str]) -> Expr:
    """Return True where a pattern ends."""
    matched: Expr = tokens == pattern[-1]
    for back, symbol in enumerate(reversed(pattern[:-1]), start=1):
        matched = matched & aggregate(select(indices, indices - back), tokens == symbol, default=False)
    return matched


def fraction_of_previous(symbol: str) -> Expr:
    """Return the fraction of a symbol among the positions up to each one."""
    return mean(upto, tokens == symbol)


def pair_balance(opening: str, closing: str) -> Expr:
    """Return the number of opening minus closing brackets up to each position."""
    return running_count(opening) - running_count(closing)


def _earlier(keys: Expr) -> Expr:
    """Return the rank of each position when sorted by a key, equal ones from left to right."""
    return width(select(keys, keys, "<") | (select(keys, keys) & before))


def sort(alphabet: Sequence[str]) -> Expr:
    """Return the symbols in the order of the alphabet."""
    order = {symbol: rank for rank, symbol in enumerate(alphabet)}
    return aggregate(select(_earlier(apply(order.__getitem__, tokens)), indices), tokens)


def sort_unique(alphabet: Sequence[str]) -> Expr:
    """Return the different symbols in the order of the alphabet, then None."""
    order = {symbol: rank for rank, symbol in enumerate(alphabet)}
    rank = apply(order.__getitem__, tokens)
    new = ~(aggregate(select(tokens, tokens) & before, True, default=False))
    rank_among_new = width(select(rank, rank, "<") & marked(new))
    return aggregate(select(rank_among_new, indices) & marked(new), tokens)


def sort_by_frequency() -> Expr:
    """Return the different symbols, most frequent first, ties in the order of appearance."""
    often = histogram()
    new = ~(aggregate(select(tokens, tokens) & before, True, default=False))
    ahead = width(marked(new) & select(often, often, ">")) + width(marked(new) & select(often, often) & before)
    return aggregate(select(ahead, indices) & marked(new), tokens)


def most_frequent() -> Expr:
    """Return the most frequent symbol, at every position; of equally frequent ones the first."""
    often = histogram()
    beaten = aggregate(select(often, often, ">"), True, default=False)
    return first(marked(~beaten), tokens)


def dyck1(opening: str = "(", closing: str = ")") -> Expr:
    """Return True where the brackets up to the position are balanced."""
    balance = pair_balance(opening, closing)
    return apply("and", width(marked(balance < 0) & upto) == 0, balance == 0)


def shuffle_dyck(pairs: Sequence[tuple[str, str]]) -> Expr:
    """Return True where the brackets of each kind, taken alone, are balanced."""
    result = expression(True)
    for opening, closing in pairs:
        result = result & dyck1(opening, closing)
    return result


def dyck(pairs: Sequence[tuple[str, str]], depth: int) -> Expr:
    """Return True where brackets of several kinds are balanced and well nested, up to a depth."""
    opening = apply({o: 1 for o, _ in pairs}.get, tokens) == 1
    partner = {c: o for o, c in pairs}
    total = width(marked(opening) & upto) - width(marked(~opening) & upto)
    height = choose(total > depth, depth + 1, choose(total < 0, -1, total))
    level = choose(opening, height, height + 1)  # the level that a bracket opens or closes
    match = last(select(choose(opening, level, -2), level) & before, tokens)
    wrong = ~opening & ~apply(lambda m, t: partner.get(t) == m, match, tokens)
    bad = wrong | (total < 0) | (total > depth)
    return apply("and", width(marked(bad) & upto) == 0, total == 0)


def last_marked(symbol: str) -> Expr:
    """Return the position of the last occurrence of a symbol up to each position, or None."""
    return last(marked(tokens == symbol) & upto, indices)


def induction() -> Expr:
    """Return the symbol after the last earlier occurrence of the current symbol, or None."""
    previous = aggregate(select(indices, indices - 1), tokens)
    return last(select(previous, tokens) & before, tokens)


def copy_after(separator: str) -> Expr:
    """Return, after a separator, the word before it again, symbol by symbol."""
    middle = first(marked(tokens == separator) & upto, indices, default=-1)
    here = choose(middle == -1, -1, indices - middle)
    return aggregate(select(indices, choose(here < 0, -1, here)) & before, tokens)


def addition(base: int = 10) -> Expr:
    """Return the digits of a sum of two numbers, given as symbols `a+b` from the lowest digit on, with carries."""
    total = apply(lambda pair: sum(int(part) for part in pair.split("+")), tokens)
    settled = last(marked(total != base - 1) & before, total >= base, default=False)
    return (total + settled) % base


def counted(symbol: str) -> Expr:
    """Return the number of visible occurrences of a symbol."""
    return count(tokens == symbol)


def more(symbol: str, other: str) -> Expr:
    """Return True where a symbol has occurred more often than another."""
    return count(tokens == symbol) > count(tokens == other)


def most_frequent_of(alphabet: Sequence[str]) -> Expr:
    """Return the most frequent symbol up to each position, ties to the first; the size grows with the alphabet."""
    best, often = expression(alphabet[0]), count(tokens == alphabet[0])
    for symbol in alphabet[1:]:
        own = count(tokens == symbol)
        best, often = choose(own > often, symbol, best), apply("max", own, often)
    return best


def next_sorted(alphabet: Sequence[str], separator: str) -> Expr:
    """Return, after a separator, the next symbol of the alphabet that has occurred, or the separator.

    Generated step by step, this lists the different symbols before the separator in their order. The size grows with
    the alphabet.
    """
    order = {separator: -1} | {symbol: rank for rank, symbol in enumerate(alphabet)}
    rank = apply(Table({(symbol,): index for symbol, index in order.items()}, "rank"), tokens)
    result = expression(separator)
    for index, symbol in reversed(list(enumerate(alphabet))):
        result = choose(apply("and", count(tokens == symbol) > 0, rank < index), symbol, result)
    return result


def copy_different(separator: str) -> Expr:
    """Return, after a separator, the word before it again, if no symbol occurs twice in it."""
    return choose(tokens == separator, first(everywhere, tokens), induction())


def copy_up_to(separator: str, most: int) -> Expr:
    """Return, after a separator, the word before it again, if it has at most `most` symbols; one head per length."""
    long = count(count(tokens == separator) == 0)
    result = expression(separator)
    for length in range(1, most + 1):
        result = choose(long == length, aggregate(select(indices, indices - length), tokens), result)
    return result


def digit_sum(digits: Sequence[str]) -> Expr:
    """Return the sum of all digits up to each position; a digit's value is its index in the list."""
    total = expression(0)
    for value, digit in enumerate(digits):
        total = total + value * count(tokens == digit) if value else total
    return total


def sum_modulo(digits: Sequence[str]) -> Expr:
    """Return the sum of all digits up to each position modulo their number, as the remainder of a division."""
    return digit_sum(digits) % len(digits)


def sum_modulo_up_to(digits: Sequence[str], most: int) -> Expr:
    """Return the same without a division, for at most `most` digits: every sum is listed."""
    total, base = digit_sum(digits), len(digits)
    result = expression(0)
    for rest in range(1, base):
        listed = [total == value for value in range(rest, most * (base - 1) + 1, base)]
        result = choose(apply("or", *listed), rest, result)
    return result
