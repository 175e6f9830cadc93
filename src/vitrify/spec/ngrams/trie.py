r"""The n-grams of a model as a trie with one level per order; the parent of an n-gram is its prefix.

Level $k$ has the n-grams of $k + 1$ words, sorted by (parent, word), where `parent` is the index of the prefix (all
words but the last) in level $k - 1$. So n-grams are looked up by binary search on the keys `parent * words + word`,
for a million n-grams at a time. `assemble` makes the trie of a listing; `level_problems` and `rule_problems` check it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Float, Int
from vitrify.errors import Problem
from vitrify.spec.formats.text import is_half
from vitrify.spec.ngrams.arpa import Listing, NGramTable

BEGIN, END = "<s>", "</s>"
LOG10_ZERO = -99.0  # the log10 of probability 0 in ARPA files
BLANKS = " \t\n\r\v\f"


@dataclass(frozen=True, eq=False)
class Level:
    """All n-grams of one order, sorted by (parent, word); the arrays are read-only copies."""

    parent: Int[np.ndarray, " ngrams"]  # index of the prefix in the level below, 0 for unigrams
    word: Int[np.ndarray, " ngrams"]
    log10_prob: Float[np.ndarray, " ngrams"]
    log10_backoff: Float[np.ndarray, " ngrams"]  # 0 where none is listed

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

    def keys(self, words: int) -> Int[np.ndarray, " ngrams"]:
        """Return the sort keys `parent * words + word` of the n-grams."""
        return np.asarray(self.parent.astype(np.int64) * words + self.word)


def child(
    keys: Int[np.ndarray, " ngrams"],
    words: int,
    parent: Int[np.ndarray, " queries"],
    word: Int[np.ndarray, " queries"],
) -> Int[np.ndarray, " queries"]:
    """Return the indices of the n-grams (parent, word) in the level with these keys; -1 if not listed.

    >>> child(np.array([1, 2, 5]), 3, parent=np.array([0, 0, 1, -1]), word=np.array([2, 0, 2, 2]))
    array([ 1, -1,  2, -1])
    """
    if not len(keys):
        return np.full(len(parent), -1)
    query = parent.astype(np.int64) * words + word
    index = np.minimum(np.searchsorted(keys, query), len(keys) - 1)
    return np.where((parent >= 0) & (word >= 0) & (keys[index] == query), index, -1)


def words_of(
    levels: Sequence[Level], level: int, indices: Int[np.ndarray, " picked"]
) -> Int[np.ndarray, "picked order"]:
    """Return the word ids of some n-grams of one level, by following the parents to the root."""
    words = np.empty((len(indices), level + 1), dtype=np.int32)
    index = np.asarray(indices)
    for k in reversed(range(level + 1)):
        words[:, k] = levels[k].word[index]
        index = levels[k].parent[index]
    return words


def right_aligned(rows: Sequence[Int[np.ndarray, " words"]], width: int) -> Int[np.ndarray, "rows width"]:
    """Return the last `width` entries of each row as one table, with -1 on the left of the shorter rows."""
    aligned = np.full((len(rows), width), -1, dtype=np.int64)
    for to, row in zip(aligned, rows, strict=True):
        tail = row[max(0, len(row) - width) :]
        to[width - len(tail) :] = tail
    return aligned


def arpa_text(vocabulary: Sequence[str], levels: Sequence[Level]) -> str:
    """Return the text of an ARPA file, with enough digits to read it back exactly."""
    parts = ["\\data\\\n", *(f"ngram {k}={len(level)}\n" for k, level in enumerate(levels, start=1))]
    for k, level in enumerate(levels):
        parts.append(f"\n\\{k + 1}-grams:\n")
        grams = words_of(levels, k, np.arange(len(level))).tolist()
        for prob, backoff, ids in zip(level.log10_prob.tolist(), level.log10_backoff.tolist(), grams, strict=True):
            words = " ".join([vocabulary[i] for i in ids])
            parts.append(f"{prob!r}\t{words}\t{backoff!r}\n" if backoff else f"{prob!r}\t{words}\n")
    return "".join([*parts, "\n\\end\\\n"])


def listing_of(ngrams: Mapping[tuple[str, ...], tuple[float, float]]) -> Listing:
    """Return the n-grams of a dictionary as a listing; the vocabulary is ordered as the unigrams are."""
    ids: dict[str, int] = {}
    for gram in ngrams:
        if _is_ngram(gram) and len(gram) == 1:
            ids[gram[0]] = len(ids)
    problems = []
    rows: dict[int, list[tuple[list[int], float, float]]] = {}
    for gram, (prob, backoff) in ngrams.items():
        if not _is_ngram(gram):
            problems.append(Problem(f"an n-gram is a tuple of words, got {gram!r}"))
        elif missing := [repr(word) for word in gram if word not in ids]:
            message = f"every word of {' '.join(gram)!r} must be among the unigrams, missing: {', '.join(missing)}"
            problems.append(Problem(message))
        else:
            rows.setdefault(len(gram), []).append(([ids[word] for word in gram], prob, backoff))
    tables = []
    for order in range(1, max(rows, default=1) + 1):
        listed = rows.get(order, [])
        words = np.array([row[0] for row in listed], dtype=np.int32).reshape(-1, order)
        numbers = np.array([row[1:] for row in listed], dtype=np.float64).reshape(-1, 2)
        tables.append(NGramTable(words, numbers[:, 0], numbers[:, 1], np.zeros(len(listed), dtype=np.int64)))
    return Listing(tuple(ids), tuple(tables), problems=tuple(problems))


def _is_ngram(gram: object) -> bool:
    return isinstance(gram, tuple) and len(gram) > 0 and all(isinstance(word, str) for word in gram)


def assemble(listing: Listing) -> tuple[tuple[Level, ...], Listing]:
    """Return the trie of a listing, and the sorted listing; duplicates and missing prefixes are added as problems."""
    listing = replace(listing, tables=tuple(map(_sorted, listing.tables)))
    parents = _parents(listing.tables, len(listing.vocabulary))
    if any((parent < 0).any() for parent in parents):
        listing = _with_prefixes(listing)
        parents = _parents(listing.tables, len(listing.vocabulary))
    levels, tables, problems = [], [], list(listing.problems)
    for k, (table, parent) in enumerate(zip(listing.tables, parents, strict=True)):
        repeated = np.append(False, (table.words[1:] == table.words[:-1]).all(axis=1))[: len(table.words)]
        for i in np.flatnonzero(repeated).tolist():
            first = f", first on line {table.line[i - 1]}" if table.line[i] else ""
            problems.append(listing.problem(f"{_text(listing, k, i)} is listed twice{first}", k, i))
        table = _select(table, ~repeated)
        levels.append(Level(parent[~repeated], table.words[:, -1], table.log10_prob, table.log10_backoff))
        tables.append(table)
    return tuple(levels), replace(listing, tables=tuple(tables), problems=tuple(problems))


def _sorted(table: NGramTable) -> NGramTable:
    """Sort a table by its words, the first word first; equal n-grams stay in file order."""
    return _select(table, np.lexsort(table.words.T[::-1]))


def _select(table: NGramTable, rows: NDArray[np.int64] | NDArray[np.bool_]) -> NGramTable:
    return NGramTable(table.words[rows], table.log10_prob[rows], table.log10_backoff[rows], table.line[rows])


def _parents(tables: Sequence[NGramTable], words: int) -> list[Int[np.ndarray, " ngrams"]]:
    """Return the index of each n-gram's prefix in the level below, repeats not counted; -1 if it is not listed."""
    parents = [np.zeros(len(tables[0].words), dtype=np.int64)]
    keys: list[Int[np.ndarray, " ngrams"]] = [np.arange(words)]
    for table in tables[1:]:
        index = table.words[:, 0].astype(np.int64)
        for column, level in enumerate(keys[1:], start=1):
            index = child(level, words, index, table.words[:, column])
        parents.append(index)
        keys.append(np.unique(index * words + table.words[:, -1]))
    return parents


def _with_prefixes(listing: Listing) -> Listing:
    """Report each missing prefix and add a placeholder for it, so that the other checks can run."""
    for k in reversed(range(1, len(listing.tables))):
        below, table = listing.tables[k - 1 : k + 1]
        listed = set(map(tuple, below.words.tolist()))
        added, problems = [], list(listing.problems)
        for i, gram in enumerate(map(tuple, table.words.tolist())):
            if gram[:-1] not in listed:
                listed.add(gram[:-1])
                added.append(i)
                need = f"its prefix {_named(listing, gram[:-1])} among the {k}-grams, for its back-off weight"
                problems.append(listing.problem(f"{_text(listing, k, i)} needs {need}; list it", k, i))
        zeros = np.zeros(len(added))
        placeholders = NGramTable(table.words[added, :-1], zeros, zeros, table.line[added])
        joined = NGramTable(*(np.concatenate([vars(below)[name], each]) for name, each in vars(placeholders).items()))
        tables = [*listing.tables[: k - 1], _sorted(joined), *listing.tables[k:]]
        listing = replace(listing, tables=tuple(tables), problems=tuple(problems))
    return listing


def _text(listing: Listing, level: int, index: int) -> str:
    return _named(listing, listing.tables[level].words[index])


def _named(listing: Listing, words: Iterable[int]) -> str:
    return repr(" ".join(listing.vocabulary[word] for word in words))


def level_problems(vocabulary: Sequence[str], levels: Sequence[Level]) -> Iterator[str]:
    """Yield the ways in which arrays fail to be a trie."""
    if not vocabulary or not levels:
        yield "a model needs at least the unigrams <s> and </s>; this one is empty"
        return
    if len(set(vocabulary)) < len(vocabulary):
        yield "the vocabulary must list each word once"
    for word in vocabulary:
        if not isinstance(word, str) or not word or any(blank in word for blank in BLANKS) or is_half(word):
            yield f"a word is text without blanks that UTF-8 can encode, got {word!r}"
    below = 1
    for k, level in enumerate(levels, start=1):
        if len({array.shape for array in level._arrays()}) > 1 or level.word.ndim != 1:
            yield f"the arrays of the {k}-grams must be vectors of one length"
            return
        keys = level.keys(len(vocabulary))
        if not len(level):
            yield f"there are no {k}-grams; leave their level out"
        elif ((level.parent < 0) | (level.parent >= below) | (level.word < 0) | (level.word >= len(vocabulary))).any():
            yield f"parents and words of the {k}-grams must be indices in the level below and in the vocabulary"
        elif (keys[1:] <= keys[:-1]).any():
            yield f"the {k}-grams must be sorted by (parent, word), each listed once"
        elif k == 1 and len(level) != len(vocabulary):
            yield f"the vocabulary has {len(vocabulary)} words, but {len(level)} unigrams are listed"
        below = len(level)


def rule_problems(vocabulary: Sequence[str], levels: Sequence[Level], source: Listing) -> Iterator[Problem]:
    """Yield the n-grams that break the rules of ARPA; `NGramModel` checks that probabilities sum to one."""
    for marker in (BEGIN, END):
        if marker not in vocabulary:
            yield Problem(f"{marker} must be among the unigrams", file=source.file)
    begin, end = (np.array([word == marker for word in vocabulary]) for marker in (BEGIN, END))
    late_begin, early_end = np.zeros(len(vocabulary), dtype=bool), np.zeros(len(vocabulary), dtype=bool)
    for k, level in enumerate(levels):
        if k:
            early_end = early_end[level.parent] | end[levels[k - 1].word[level.parent]]
            late_begin = late_begin[level.parent] | begin[level.word]
        prob, backoff = level.log10_prob, level.log10_backoff
        rules = [
            (late_begin, "<s> may only be first in an n-gram, {gram} has it later"),
            (early_end, "</s> may only be last in an n-gram, {gram} continues after it"),
            (
                ~np.isfinite(prob),
                "the log10 probability of {gram} must be finite, got {prob}; write -99 for impossible",
            ),
            (np.isfinite(prob) & (prob > 0), "the log10 probability of {gram} must be at most 0, got {prob}"),
            (~np.isfinite(backoff), "the back-off weight of {gram} must be finite, got {backoff}; write -99 for none"),
        ]
        if k == len(levels) - 1 and source.complete:
            message = "{gram} is of the highest order, so its back-off weight must be 0 or absent, got {backoff}"
            rules.append((np.isfinite(backoff) & (backoff != 0), message))
        for broken, message in rules:
            where = np.flatnonzero(broken)
            for i, gram in zip(where.tolist(), words_of(levels, k, where).tolist(), strict=True):
                text = repr(" ".join(vocabulary[word] for word in gram))
                yield source.problem(message.format(gram=text, prob=prob[i], backoff=backoff[i]), k, i)
