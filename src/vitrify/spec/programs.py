"""The usual programs, each a function of nothing: an expression that any alphabet and length can be given to."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.spec.program import (
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
    """The word backwards."""
    return aggregate(select(indices, length - indices - 1), tokens)


def histogram() -> Expr:
    """How often the symbol at each position occurs in the word."""
    return width(select(tokens, tokens))


def running_count(symbol: str) -> Expr:
    """How often a symbol has occurred up to each position."""
    return width(marked(tokens == symbol) & upto)


def shift(by: int = 1, default: str | None = None) -> Expr:
    """The symbol so many places to the left."""
    return aggregate(select(indices, indices - by), tokens, default)


def detect(pattern: Sequence[str]) -> Expr:
    """Whether a pattern ends at each position."""
    found: Expr = tokens == pattern[-1]
    for back, symbol in enumerate(reversed(pattern[:-1]), start=1):
        found = found & aggregate(select(indices, indices - back), tokens == symbol, default=False)
    return found


def fraction_of_previous(symbol: str) -> Expr:
    """The share of a symbol among the positions up to each one."""
    return mean(upto, tokens == symbol)


def pair_balance(opening: str, closing: str) -> Expr:
    """How many more opening than closing brackets there are up to each position."""
    return running_count(opening) - running_count(closing)


def _earlier(keys: Expr) -> Expr:
    """How many positions come before each one when they are sorted by a key, equal ones from left to right."""
    return width(select(keys, keys, "<") | (select(keys, keys) & before))


def sort(alphabet: Sequence[str]) -> Expr:
    """The symbols in the order of the alphabet."""
    order = {symbol: rank for rank, symbol in enumerate(alphabet)}
    return aggregate(select(_earlier(apply(order.__getitem__, tokens)), indices), tokens)


def sort_unique(alphabet: Sequence[str]) -> Expr:
    """The different symbols in the order of the alphabet, and nothing after them."""
    order = {symbol: rank for rank, symbol in enumerate(alphabet)}
    rank = apply(order.__getitem__, tokens)
    new = ~(aggregate(select(tokens, tokens) & before, True, default=False))
    place = width(select(rank, rank, "<") & marked(new))
    return aggregate(select(place, indices) & marked(new), tokens)


def sort_by_frequency() -> Expr:
    """The different symbols, the most frequent first, equally frequent ones in the order of their appearance."""
    often = histogram()
    new = ~(aggregate(select(tokens, tokens) & before, True, default=False))
    ahead = width(marked(new) & select(often, often, ">")) + width(marked(new) & select(often, often) & before)
    return aggregate(select(ahead, indices) & marked(new), tokens)


def most_frequent() -> Expr:
    """The most frequent symbol, at every position; of equally frequent ones the first."""
    often = histogram()
    beaten = aggregate(select(often, often, ">"), True, default=False)
    return first(marked(~beaten), tokens)


def dyck1(opening: str = "(", closing: str = ")") -> Expr:
    """Whether the brackets up to each position are balanced."""
    balance = pair_balance(opening, closing)
    return apply("and", width(marked(balance < 0) & upto) == 0, balance == 0)


def shuffle_dyck(pairs: Sequence[tuple[str, str]]) -> Expr:
    """Whether the brackets of each kind are balanced, whatever stands between them."""
    result = expression(True)
    for opening, closing in pairs:
        result = result & dyck1(opening, closing)
    return result


def dyck(pairs: Sequence[tuple[str, str]], depth: int) -> Expr:
    """Whether brackets of several kinds are balanced and well nested, to a depth: the last opening one must fit."""
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
    """The place of the last occurrence of a symbol up to each position, or nothing."""
    return last(marked(tokens == symbol) & upto, indices)


def induction() -> Expr:
    """What came after the last earlier occurrence of the present symbol, or nothing."""
    previous = aggregate(select(indices, indices - 1), tokens)
    return last(select(previous, tokens) & before, tokens)


def copy_after(separator: str) -> Expr:
    """After a separator, the word before it once more, symbol by symbol."""
    middle = first(marked(tokens == separator) & upto, indices, default=-1)
    here = choose(middle == -1, -1, indices - middle)
    return aggregate(select(indices, choose(here < 0, -1, here)) & before, tokens)


def addition(base: int = 10) -> Expr:
    """The sum of two numbers, written digit by digit as symbols `a+b` from the lowest digit on; carries run along."""
    total = apply(lambda pair: sum(int(part) for part in pair.split("+")), tokens)
    settled = last(marked(total != base - 1) & before, total >= base, default=False)
    return (total + settled) % base


def counted(symbol: str) -> Expr:
    """How often a symbol occurs in what is seen."""
    return count(tokens == symbol)


def more(symbol: str, other: str) -> Expr:
    """Whether a symbol has occurred more often than another up to each position."""
    return count(tokens == symbol) > count(tokens == other)


def most_frequent_of(alphabet: Sequence[str]) -> Expr:
    """The most frequent symbol up to each position, the first of equally frequent ones; its size is the alphabet's."""
    best, often = expression(alphabet[0]), count(tokens == alphabet[0])
    for symbol in alphabet[1:]:
        own = count(tokens == symbol)
        best, often = choose(own > often, symbol, best), apply("max", own, often)
    return best


def next_sorted(alphabet: Sequence[str], separator: str) -> Expr:
    """After a separator, the first symbol of the alphabet behind the present one that has occurred, or the separator.

    So it writes the different symbols before the separator in their order; its size is the alphabet's.
    """
    order = {separator: -1} | {symbol: rank for rank, symbol in enumerate(alphabet)}
    rank = apply(Table({(symbol,): place for symbol, place in order.items()}, "rank"), tokens)
    result = expression(separator)
    for place, symbol in reversed(list(enumerate(alphabet))):
        result = choose(apply("and", count(tokens == symbol) > 0, rank < place), symbol, result)
    return result


def copy_different(separator: str) -> Expr:
    """After a separator, the word before it once more, if its symbols differ: what came after the present one."""
    return choose(tokens == separator, first(everywhere, tokens), induction())


def copy_up_to(separator: str, most: int) -> Expr:
    """After a separator, the word before it once more, if it has at most so many symbols: a look for every length."""
    long = count(count(tokens == separator) == 0)
    result = expression(separator)
    for length in range(1, most + 1):
        result = choose(long == length, aggregate(select(indices, indices - length), tokens), result)
    return result


def digit_sum(digits: Sequence[str]) -> Expr:
    """The sum of all digits up to each position: a digit is worth its place in the list."""
    total = expression(0)
    for value, digit in enumerate(digits):
        total = total + value * count(tokens == digit) if value else total
    return total


def sum_modulo(digits: Sequence[str]) -> Expr:
    """The sum of all digits up to each position modulo their number, by the remainder of a division."""
    return digit_sum(digits) % len(digits)


def sum_modulo_up_to(digits: Sequence[str], most: int) -> Expr:
    """The same without a division, for at most so many digits: every sum is listed."""
    total, base = digit_sum(digits), len(digits)
    result = expression(0)
    for rest in range(1, base):
        listed = [total == value for value in range(rest, most * (base - 1) + 1, base)]
        result = choose(apply("or", *listed), rest, result)
    return result
