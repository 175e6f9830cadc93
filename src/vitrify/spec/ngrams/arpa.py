r"""Reader of ARPA files: their n-grams as tables, before any check that they form a language model.

    \data\
    ngram 1=3
    ngram 2=2

    \1-grams:
    -99     <s>     -0.30
    -0.30   a       -0.30
    -0.30   </s>

    \2-grams:
    -0.30   <s> a
    -0.30   a </s>

    \end\

This module handles the syntax; `NGramModel` checks that the numbers form a language model. Every n-gram has its line
number, so that later checks can report it.

Fields are separated by ASCII blanks only, because words of real vocabularies contain no-break spaces and the like. So
the reader works on bytes, and decodes each word once, among the unigrams.
"""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from vitrify.arrays import Float, Int
from vitrify.errors import Problem, SpecError

COUNT = re.compile(rb"ngram\s+(\d{1,2})\s*=\s*(\d{1,18})")
SECTION = re.compile(rb"\\([1-9]\d?)-grams:")
MAX_BYTES, CHUNK_BYTES = 1 << 31, 1 << 20  # of an unpacked file; of its parts
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class NGramTable:
    """The listed n-grams of one length, unsorted, each as a row of word ids."""

    words: Int[np.ndarray, "ngrams order"]
    log10_prob: Float[np.ndarray, " ngrams"]
    log10_backoff: Float[np.ndarray, " ngrams"]
    line: Int[np.ndarray, " ngrams"]  # 0 if the n-gram does not come from a file


@dataclass(frozen=True, eq=False)
class Listing:
    """The n-grams of a file or a dictionary, not yet checked, with the problems met while reading them."""

    vocabulary: tuple[str, ...] = ()  # word id -> word
    tables: tuple[NGramTable, ...] = ()  # one per order, from the unigrams up
    file: str | None = None
    problems: tuple[Problem, ...] = ()
    complete: bool = True  # False if the file lacks n-grams of the highest declared order

    def problem(self, message: str, level: int, index: int) -> Problem:
        """Return a problem with one n-gram, located at its line."""
        line = int(self.tables[level].line[index]) if self.tables else 0
        return Problem(message, file=self.file, line=line or None)


@dataclass(frozen=True)
class Section:
    """A section of the file: its title line has the index `at`, its lines follow up to the index `stop`."""

    title: bytes
    at: int
    stop: int


def read_arpa(path: str | Path) -> Listing:
    """Read an ARPA file, gzipped if its name ends in .gz; problems that allow to continue are in the listing."""
    lines = _lines(Path(path))
    notes = _Notes(str(path))
    sections = _sections(lines, notes)
    declared = _declared(lines, sections[0], notes)
    bodies = _bodies(sections[1:], len(lines), declared, notes)
    ids: dict[bytes, int] = {}
    tables = [_table(order, lines, bodies.get(order), ids, notes) for order in range(1, max(bodies, default=1) + 1)]
    for order, (count, _) in declared.items():
        listed = notes.listed.get(order)
        if order in bodies and listed != count:
            message = f"the header declares {count} {order}-grams, found {listed}; the file is cut or damaged"
            notes.add(bodies[order].at, message)
    while len(tables) > 1 and not len(tables[-1].words):
        tables.pop()
    vocabulary = tuple(word.decode("utf-8", "replace") for word in ids)
    complete = all(order <= len(tables) for order, (count, _) in declared.items() if count)
    return Listing(vocabulary, tuple(tables), str(path), tuple(notes.problems), complete)


class _Notes:
    """The problems met so far in one file, and the number of n-grams in each section."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.listed: dict[int, int] = {}

    def add(self, index: int, message: str) -> None:
        self.problems.append(Problem(message, file=self.file, line=index + 1))


def _lines(path: Path) -> list[bytes]:
    """Return the lines of a file as bytes; a SpecError if it can't be read or is empty."""
    try:
        data = _unpacked(path) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError:
        raise SpecError([Problem("no such file", file=str(path))]) from None
    except (OSError, EOFError, zlib.error) as error:
        raise SpecError([Problem(f"can't be read: {error}", file=str(path))]) from error
    if len(data) > MAX_BYTES:
        raise SpecError([Problem(f"at most {MAX_BYTES:,} bytes are read, and it has more", file=str(path))])
    if not data.strip():
        raise SpecError([Problem("the file is empty; an ARPA file begins with \\data\\", file=str(path))])
    return data.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\n").split(b"\n")


def _unpacked(path: Path) -> bytes:
    """Return the content of a packed file, of more than `MAX_BYTES` only the beginning: it may unpack to anything."""
    parts: list[bytes] = []
    with gzip.open(path) as file:
        while len(parts) * CHUNK_BYTES <= MAX_BYTES and (part := file.read(CHUNK_BYTES)):
            parts.append(part)
    return b"".join(parts)


def _sections(lines: list[bytes], notes: _Notes) -> list[Section]:
    r"""Cut the file at the lines that begin with a backslash, from `\data\` to `\end\`; text outside is ignored."""
    titles = [i for i, line in enumerate(lines) if line.lstrip().startswith(b"\\")]
    data = next((n for n, i in enumerate(titles) if lines[i].strip() == b"\\data\\"), None)
    if data is None:
        first = _shown(lines[0][:60])
        raise SpecError([Problem(f"no \\data\\ line, so this is no ARPA file; it begins with {first}", notes.file, 1)])
    titles = titles[data:]
    end = next((n for n, i in enumerate(titles) if lines[i].strip() == b"\\end\\"), None)
    if end is None:
        notes.add(len(lines) - 1, "the file ends without \\end\\; it is cut or damaged")
        titles.append(len(lines))
    else:
        del titles[end + 1 :]
    return [Section(lines[at].strip(), at, stop) for at, stop in pairwise(titles)]


def _declared(lines: list[bytes], data: Section, notes: _Notes) -> dict[int, tuple[int, int]]:
    """Return the header: order -> (declared number of n-grams, index of that line)."""
    declared: dict[int, tuple[int, int]] = {}
    for at in range(data.at + 1, data.stop):
        line = lines[at].strip()
        match = COUNT.fullmatch(line)
        if not line:
            continue
        if match is None:
            notes.add(at, f"the header needs lines like 'ngram 2=120', got {_shown(line)}")
        elif (order := int(match[1])) in declared:
            notes.add(at, f"the header declares the {order}-grams already, on line {declared[order][1] + 1}")
        else:
            declared[order] = (int(match[2]), at)
    if not declared:
        notes.add(data.at, "the header declares no n-grams; it needs lines like 'ngram 1=50' below \\data\\")
    return declared


def _bodies(
    sections: list[Section], end: int, declared: dict[int, tuple[int, int]], notes: _Notes
) -> dict[int, Section]:
    """Return the section of each order; unknown, repeated, undeclared or missing ones are problems."""
    bodies: dict[int, Section] = {}
    for section in sections:
        match = SECTION.fullmatch(section.title)
        if match is None:
            notes.add(
                section.at, f"unknown section {_shown(section.title)}; expected one like '\\2-grams:' or '\\end\\'"
            )
        elif (order := int(match[1])) in bodies:
            notes.add(section.at, f"the {order}-grams have a section already, on line {bodies[order].at + 1}")
        else:
            bodies[order] = section
            if order not in declared:
                notes.add(section.at, f"the header declares no {order}-grams; add 'ngram {order}=…' below \\data\\")
    for order, (count, _) in declared.items():
        if order not in bodies and count:
            notes.add(
                end - 1, f"the header declares {count} {order}-grams, but the \\{order}-grams: section is missing"
            )
    return bodies


def _table(order: int, lines: list[bytes], section: Section | None, ids: dict[bytes, int], notes: _Notes) -> NGramTable:
    """Parse one section; the unigrams define the word ids, which longer n-grams refer to."""
    start, stop = (section.at + 1, section.stop) if section else (0, 0)
    rows = [(at, fields) for at, line in enumerate(lines[start:stop], start) if (fields := line.split())]
    notes.listed[order] = len(rows)
    well_formed = []
    for at, fields in rows:
        if order + 1 <= len(fields) <= order + 2:
            well_formed.append((at, fields))
        else:
            notes.add(at, f"a {order}-gram line has {order + 1} or {order + 2} fields, got {len(fields)}")
    if order == 1:
        _name_words(well_formed, ids, notes)
    flat = (ids.get(word, -1) for _, fields in well_formed for word in fields[1 : order + 1])
    words = np.fromiter(flat, np.int32, len(well_formed) * order).reshape(-1, order)
    known = (words >= 0).all(axis=1)
    for n in np.flatnonzero(~known).tolist():
        at, fields = well_formed[n]
        missing = [_shown(word) for word in fields[1 : order + 1] if word not in ids]
        notes.add(at, f"every word must be among the unigrams, missing: {', '.join(missing)}")
    at_prob = [(at, fields[0]) for at, fields in well_formed]
    at_backoff = [(at, fields[order + 1] if len(fields) > order + 1 else b"0") for at, fields in well_formed]
    return NGramTable(
        words[known],
        _numbers(at_prob, "log10 probability", notes)[known],
        _numbers(at_backoff, "back-off weight", notes)[known],
        np.fromiter((at + 1 for at, _ in well_formed), np.int64, len(well_formed))[known],
    )


def _name_words(rows: list[tuple[int, list[bytes]]], ids: dict[bytes, int], notes: _Notes) -> None:
    """Assign an id to each unigram, in file order; words that are not UTF-8 are problems."""
    for at, fields in rows:
        ids.setdefault(fields[1], len(ids))
        try:
            fields[1].decode("utf-8")
        except UnicodeDecodeError:
            notes.add(at, f"words must be UTF-8, got the bytes {fields[1]!r}; convert the file")


def _numbers(fields: list[tuple[int, bytes]], what: str, notes: _Notes) -> Float[np.ndarray, " ngrams"]:
    """Parse one column; a malformed number is a problem and becomes 0, so that later checks can run."""
    values = np.zeros(len(fields))
    for n, (at, text) in enumerate(fields):
        try:
            values[n] = float(text if b"_" not in text else b"malformed")  # Python reads 1_0 as ten; ARPA does not
        except ValueError:
            notes.add(at, f"the {what} must be a number, got {_shown(text)}")
    return values


def _shown(text: bytes) -> str:
    """Quote bytes from a file for a message, even if they are not UTF-8."""
    return repr(text.decode("utf-8", "replace"))
