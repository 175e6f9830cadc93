r"""The n-grams of a model hang in a trie, one level per order, each n-gram below its prefix.

Level $k$ holds the n-grams of order $k + 1$, sorted by (parent, word), where `parent` is the place of the prefix (all
words but the last) in level $k - 1$. So an n-gram is found in level $k$ by bisection on the keys
`parent * words + word`, for a million n-grams at a time. `assemble` hangs up a listing; `level_problems` and
`rule_problems` say what is wrong with a trie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vitrify.errors import Problem
from vitrify.spec.arpa import Listing, Table

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int, Int32, Int64

BEGIN, END = "<s>", "</s>"
BLANKS = " \t\n\r\v\f"


@dataclass(frozen=True, eq=False)
class Level:
    """All n-grams of one order, sorted by (parent, word); the arrays are copied and can't be written to."""

    parent: Int32[np.ndarray, " ngrams"]  # place of the prefix in the level below, 0 for unigrams
    word: Int32[np.ndarray, " ngrams"]
    log10_prob: Float64[np.ndarray, " ngrams"]
    log10_backoff: Float64[np.ndarray, " ngrams"]  # 0 where none is listed

    def __post_init__(self) -> None:
        for name in ("parent", "word"):
            self._freeze(name, np.array(getattr(self, name), dtype=np.int32))
        for name in ("log10_prob", "log10_backoff"):
            self._freeze(name, np.array(getattr(self, name), dtype=np.float64) + 0.0)  # no -0.0: equal means same bytes

    def _freeze(self, name: str, array: np.ndarray) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    def _arrays(self) -> tuple[np.ndarray, ...]:
        return self.parent, self.word, self.log10_prob, self.log10_backoff

    def __len__(self) -> int:
        return len(self.word)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Level):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(self._arrays(), other._arrays(), strict=True))

    def __hash__(self) -> int:
        return hash(tuple(array.tobytes() for array in self._arrays()))

    def keys(self, words: int) -> Int64[np.ndarray, " ngrams"]:
        """The numbers `parent * words + word`, ascending, that the n-grams are found by."""
        keys: Int64[np.ndarray, " ngrams"] = self.parent.astype(np.int64) * words + self.word
        return keys


def child(
    keys: Int64[np.ndarray, " ngrams"],
    words: int,
    parent: Int[np.ndarray, " queries"],
    word: Int[np.ndarray, " queries"],
) -> Int64[np.ndarray, " queries"]:
    """The places, in the level with these keys, of the n-grams (parent, word); -1 where none is listed.

    >>> child(np.array([1, 2, 5]), 3, parent=np.array([0, 0, 1, -1]), word=np.array([2, 0, 2, 2]))
    array([ 1, -1,  2, -1])
    """
    if not len(keys):
        return np.full(len(parent), -1)
    query = parent.astype(np.int64) * words + word
    place = np.minimum(np.searchsorted(keys, query), len(keys) - 1)
    return np.where((parent >= 0) & (word >= 0) & (keys[place] == query), place, -1)


def words_of(
    levels: Sequence[Level], level: int, indices: Int[np.ndarray, " picked"]
) -> Int32[np.ndarray, "picked order"]:
    """The word ids of some n-grams of one level, found by walking up to the root."""
    words = np.empty((len(indices), level + 1), dtype=np.int32)
    place = np.asarray(indices)
    for k in reversed(range(level + 1)):
        words[:, k] = levels[k].word[place]
        place = levels[k].parent[place]
    return words


@dataclass(frozen=True, eq=False)
class Source:
    """Where the n-grams of a trie came from, and the problems met on the way."""

    file: str | None = None
    lines: tuple[Int[np.ndarray, " ngrams"], ...] = ()  # per level; 0 for an n-gram from no file
    problems: tuple[Problem, ...] = ()
    whole: bool = True  # false where the longest n-grams are known to be lost

    def problem(self, message: str, level: int, index: int) -> Problem:
        """A problem with one n-gram, at its line."""
        line = int(self.lines[level][index]) if self.lines else 0
        return Problem(message, file=self.file, line=line or None)


def listing_of(ngrams: Mapping[tuple[str, ...], tuple[float, float]]) -> Listing:
    """List the n-grams of a dictionary; the unigrams give the vocabulary its order."""
    ids: dict[str, int] = {}
    for gram in ngrams:
        if _is_ngram(gram) and len(gram) == 1:
            ids[gram[0]] = len(ids)
    problems = []
    rows: dict[int, list[tuple[list[int], float, float]]] = {}
    for gram, (prob, backoff) in ngrams.items():
        if not _is_ngram(gram):
            problems.append(Problem(f"an n-gram is a tuple of words, got {gram!r}"))
        elif strangers := [repr(word) for word in gram if word not in ids]:
            message = f"every word of {' '.join(gram)!r} must be among the unigrams, missing: {', '.join(strangers)}"
            problems.append(Problem(message))
        else:
            rows.setdefault(len(gram), []).append(([ids[word] for word in gram], prob, backoff))
    tables = []
    for order in range(1, max(rows, default=1) + 1):
        listed = rows.get(order, [])
        words = np.array([row[0] for row in listed], dtype=np.int32).reshape(-1, order)
        numbers = np.array([row[1:] for row in listed], dtype=np.float64).reshape(-1, 2)
        tables.append(Table(words, numbers[:, 0], numbers[:, 1], np.zeros(len(listed), dtype=np.int64)))
    return Listing(tuple(ids), tuple(tables), problems=tuple(problems))


def _is_ngram(gram: object) -> bool:
    return isinstance(gram, tuple) and len(gram) > 0 and all(isinstance(word, str) for word in gram)


def assemble(listing: Listing) -> tuple[tuple[Level, ...], Source]:
    """Hang the n-grams of a listing in a trie; duplicates and missing prefixes become problems of its source."""
    problems = list(listing.problems)
    tables = [_in_order(table) for table in listing.tables]
    parents = _parents(tables, len(listing.vocabulary))
    if any((parent < 0).any() for parent in parents):
        tables, missing = _with_prefixes(tables, listing)
        problems += missing
        parents = _parents(tables, len(listing.vocabulary))
    levels, lines = [], []
    for table, parent in zip(tables, parents, strict=True):
        again = _repeats(table)
        for i in np.flatnonzero(again).tolist():
            first = f", first on line {table.line[i - 1]}" if table.line[i] else ""
            problems.append(_problem(listing, table, i, f"{_text(listing, table, i)} is listed twice{first}"))
        kept = ~again
        levels.append(Level(parent[kept], table.words[kept, -1], table.log10_prob[kept], table.log10_backoff[kept]))
        lines.append(table.line[kept])
    return tuple(levels), Source(listing.file, tuple(lines), tuple(problems), listing.whole)


def _in_order(table: Table) -> Table:
    """Sort a table by its words, the first word first; equal n-grams stay in the order they were listed."""
    order = np.lexsort(table.words.T[::-1])
    return Table(table.words[order], table.log10_prob[order], table.log10_backoff[order], table.line[order])


def _repeats(table: Table) -> Bool[np.ndarray, " ngrams"]:
    """Which rows of a sorted table say the same n-gram as the row before."""
    return np.append(False, (table.words[1:] == table.words[:-1]).all(axis=1))[: len(table.words)]


def _parents(tables: Sequence[Table], words: int) -> list[Int64[np.ndarray, " ngrams"]]:
    """The place of each n-gram's prefix in the level below, counted without repeats; -1 where it is not listed."""
    parents = [np.zeros(len(tables[0].words), dtype=np.int64)]
    keys: list[Int64[np.ndarray, " ngrams"]] = [np.arange(words)]
    for table in tables[1:]:
        place = table.words[:, 0].astype(np.int64)
        for column, level in enumerate(keys[1:], start=1):
            place = child(level, words, place, table.words[:, column])
        parents.append(place)
        keys.append(np.unique(place * words + table.words[:, -1]))
    return parents


def _with_prefixes(tables: Sequence[Table], listing: Listing) -> tuple[list[Table], list[Problem]]:
    """Add each missing prefix where it belongs, as a stand-in, so that the rest can still be judged."""
    whole, problems = list(tables), []
    for k in reversed(range(1, len(tables))):
        listed = set(map(tuple, whole[k - 1].words.tolist()))
        added = []
        for i, gram in enumerate(map(tuple, whole[k].words.tolist())):
            if gram[:-1] not in listed:
                listed.add(gram[:-1])
                added.append(i)
                text, prefix = _text(listing, whole[k], i), " ".join(listing.vocabulary[w] for w in gram[:-1])
                message = (
                    f"{text} needs its prefix {prefix!r} among the {k}-grams, to hold the back-off weight; list it"
                )
                problems.append(_problem(listing, whole[k], i, message))
        stand_ins = Table(whole[k].words[added, :-1], np.zeros(len(added)), np.zeros(len(added)), whole[k].line[added])
        whole[k - 1] = _in_order(_both(whole[k - 1], stand_ins))
    return whole, problems


def _both(one: Table, two: Table) -> Table:
    return Table(*(np.concatenate([getattr(one, name), getattr(two, name)]) for name in one.__dataclass_fields__))


def _text(listing: Listing, table: Table, index: int) -> str:
    return repr(" ".join(listing.vocabulary[word] for word in table.words[index]))


def _problem(listing: Listing, table: Table, index: int, message: str) -> Problem:
    return Problem(message, file=listing.file, line=int(table.line[index]) or None)


def level_problems(vocabulary: Sequence[str], levels: Sequence[Level]) -> Iterator[str]:
    """The ways in which arrays fail to be a trie at all."""
    if not vocabulary or not levels:
        yield "a model needs at least the unigrams <s> and </s>; this one is empty"
        return
    if len(set(vocabulary)) < len(vocabulary):
        yield "the vocabulary must list each word once"
    for word in vocabulary:
        if not isinstance(word, str) or not word or any(blank in word for blank in BLANKS) or not _encodes(word):
            yield f"a word is text without blanks that UTF-8 can write, got {word!r}"
    below = 1
    for k, level in enumerate(levels, start=1):
        if len({array.shape for array in level._arrays()}) > 1 or level.word.ndim != 1:
            yield f"the arrays of the {k}-grams must be vectors of one length"
            return
        keys = level.keys(len(vocabulary))
        if not len(level):
            yield f"there are no {k}-grams; leave their level out"
        elif ((level.parent < 0) | (level.parent >= below) | (level.word < 0) | (level.word >= len(vocabulary))).any():
            yield f"parents and words of the {k}-grams must be places in the level below and in the vocabulary"
        elif (keys[1:] <= keys[:-1]).any():
            yield f"the {k}-grams must be sorted by (parent, word), each listed once"
        elif k == 1 and len(level) != len(vocabulary):
            yield f"the vocabulary has {len(vocabulary)} words, but {len(level)} unigrams are listed"
        below = len(level)


def _encodes(word: str) -> bool:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def rule_problems(vocabulary: Sequence[str], levels: Sequence[Level], source: Source) -> Iterator[Problem]:
    """The ways in which a trie breaks the rules of ARPA, n-gram by n-gram; sums are judged elsewhere."""
    for marker in (BEGIN, END):
        if marker not in vocabulary:
            yield Problem(f"{marker} must be among the unigrams", file=source.file)
    begin, end = (np.array([word == marker for word in vocabulary]) for marker in (BEGIN, END))
    late, early = np.zeros(len(vocabulary), dtype=bool), np.zeros(len(vocabulary), dtype=bool)
    for k, level in enumerate(levels):
        if k:
            early = early[level.parent] | end[levels[k - 1].word[level.parent]]
            late = late[level.parent] | begin[level.word]
        prob, backoff = level.log10_prob, level.log10_backoff
        rules = [
            (late, "<s> may only stand first in an n-gram, {gram} has it later"),
            (early, "</s> may only stand last in an n-gram, {gram} goes on after it"),
            (
                ~np.isfinite(prob),
                "the log10 probability of {gram} must be finite, got {prob}; write -99 for impossible",
            ),
            (np.isfinite(prob) & (prob > 0), "the log10 probability of {gram} must be at most 0, got {prob}"),
            (~np.isfinite(backoff), "the back-off weight of {gram} must be finite, got {backoff}; write -99 for none"),
        ]
        if k == len(levels) - 1 and source.whole:
            message = "{gram} is of the highest order, so its back-off weight must be 0 or absent, got {backoff}"
            rules.append((np.isfinite(backoff) & (backoff != 0), message))
        for broken, message in rules:
            where = np.flatnonzero(broken)
            for i, gram in zip(where.tolist(), words_of(levels, k, where).tolist(), strict=True):
                text = repr(" ".join(vocabulary[word] for word in gram))
                yield source.problem(message.format(gram=text, prob=prob[i], backoff=backoff[i]), k, i)
