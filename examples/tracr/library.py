"""Programs in Tracr's own language: they compile here as they are, also where Tracr is not installed.

vitrify build examples/tracr/library.py:reverse --symbols a,b,c --max-length 10 -o reverse
"""

# mypy: ignore-errors

from tracr.rasp import rasp

EQ, LT, LEQ, TRUE = rasp.Comparison.EQ, rasp.Comparison.LT, rasp.Comparison.LEQ, rasp.Comparison.TRUE

everything = rasp.Select(rasp.tokens, rasp.tokens, TRUE).named("everything")
up_to_here = rasp.Select(rasp.indices, rasp.indices, LEQ).named("up_to_here")
same = rasp.Select(rasp.tokens, rasp.tokens, EQ).named("same")

# How long is the word, and the word backwards
length = rasp.SelectorWidth(everything).named("length")
opposite = (length - rasp.indices - 1).named("opposite")
reverse = rasp.Aggregate(rasp.Select(rasp.indices, opposite, EQ), rasp.tokens).named("reverse")

# How often does a symbol occur: the one here, the symbol a, or how many places have a symbol that occurs at most twice
histogram = rasp.SelectorWidth(same).named("histogram")
count_a = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, lambda key, _: key == "a")).named("count_a")
rare = rasp.SelectorWidth(rasp.Select(histogram, histogram, lambda key, _: key <= 2)).named("rare")


def share_up_to_here(flag):
    """Return the share of the positions up to each one at which a flag is true."""
    return rasp.numerical(rasp.Aggregate(up_to_here, rasp.numerical(rasp.Map(int, flag)), default=0))


share_a = share_up_to_here(rasp.tokens == "a").named("share_a")


def balance(pair):
    """Return the share of opening brackets up to each position, minus that of closing ones."""
    opened, closed = (share_up_to_here(rasp.tokens == bracket) for bracket in pair)
    return rasp.numerical(rasp.LinearSequenceMap(opened, closed, 1, -1)).named("balance")


pair_balance = balance("()")


def dyck(*pairs):
    """Return at every position whether the brackets of each kind, taken alone, are balanced in the whole word."""
    balances = [balance(pair) for pair in pairs]
    negative, closed = balances[0] < 0, balances[0] == 0
    for other in balances[1:]:
        negative, closed = negative | (other < 0), closed & (other == 0)
    all_places = rasp.Select(rasp.indices, rasp.indices, TRUE)
    negative = rasp.numerical(rasp.Map(int, negative))
    ever = rasp.numerical(rasp.Aggregate(all_places, negative, default=0)).named("ever_negative")
    last = rasp.Select(rasp.indices, length - 1, EQ).named("last")
    return (rasp.Aggregate(last, closed) & rasp.sop_not(ever)).named("balanced")


def dyck1():
    return dyck("()")


def shuffle_dyck2():
    return dyck("()", "[]")


def shuffle_dyck3():
    return dyck("()", "[]", "{}")


def shift(by, values):
    """Return the values some positions to the left; there is none at the first positions."""
    return rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda key, query: query == key + by), values)


previous = shift(1, rasp.tokens).named("previous")
two_back = shift(2, rasp.tokens).named("two_back")


def pattern(symbols):
    """Return whether the symbols end at a position; at the first positions it is not known."""
    found = rasp.tokens == symbols[-1]
    for back, symbol in enumerate(reversed(symbols[:-1]), start=1):
        found = shift(back, rasp.tokens == symbol) & found
    return found


def detect_aba():
    return pattern("aba").named("aba")


# Sorting: numbers that are all different, numbers that repeat, and symbols by how often they occur
def sorted_by(keys, values):
    rank = rasp.SelectorWidth(rasp.Select(keys, keys, LT)).named("rank")
    return rasp.Aggregate(rasp.Select(rank, rasp.indices, EQ), values).named("sorted")


sort_different = sorted_by(rasp.tokens, rasp.tokens)


def distinct(keys, longest=8):
    """Return keys that differ everywhere, and stand in the same order: earlier ones of equal keys come first."""
    return rasp.SequenceMap(lambda key, place: key + place / (longest + 1), keys, rasp.indices).named("distinct")


def sort():
    return sorted_by(distinct(rasp.tokens), rasp.tokens)


def sort_by_frequency():
    return sorted_by(distinct(-1 * histogram), rasp.tokens)


# Selectors are combined: is this the first, the last, the only one of its symbol; is the symbol before it the same
before = rasp.Select(rasp.indices, rasp.indices, LT).named("before")
is_new = (rasp.SelectorWidth(rasp.selector_and(same, before)) == 0).named("is_new")
is_last = (rasp.SelectorWidth(rasp.selector_and(same, rasp.selector_not(up_to_here))) == 0).named("is_last")
others = rasp.SelectorWidth(rasp.selector_or(before, ~same)).named("others")
doubled = (rasp.SequenceMap(lambda x, y: x == y, previous, rasp.tokens)).named("doubled")


def three_arguments():
    """Return a function of three values, by way of pairs."""
    pairs = rasp.SequenceMap(lambda x, y: (x, y), rasp.tokens, rasp.indices)
    triples = rasp.SequenceMap(lambda pair, z: (*pair, z), pairs, length)
    return rasp.Map(lambda triple: (triple[0] * triple[1] + triple[2]) % 5, triples).named("mixed")
