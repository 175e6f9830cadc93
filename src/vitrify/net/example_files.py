r"""Files of sequences with right answers: tables, JSON lines, plain text, and the layouts of public suites.

An answer stands under its name in the JSON of `vitrify run`, so that what one network prints can be compared with
another network. `label` is an answer about the whole sequence, whatever the network's kind.

| layout | recognized by | an example is |
| --- | --- | --- |
| table | `.tsv` | symbols, a tab, the answer; a first line `input`, tab, name says which answer it is |
| JSON lines | `.jsonl` | an object with `input` or `tokens`, and answers by their names |
| one-hot batches | `.npz` | an entry of the arrays `input` and `output`, as Chomsky-hierarchy tasks draw them |
| FLaRe folder | `main.tok` in it | a line of `main.tok` and of `labels.txt`; members also one of `next-symbols.jsonl` |
| plain text | anything else | a line of symbols, without an answer |

The layouts of other projects are those of their public repositories: google-deepmind/neural_networks_chomsky_hierarchy
(G. Delétang et al., ICLR 2023, arXiv 2207.02098) and rycolab/flare (A. Butoi et al., ICLR 2025, arXiv 2411.07107).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.spec.ngrams.trie import END

Tick: TypeAlias = Callable[[float, float], None]

MAX_LINE = 1 << 24  # characters; a line without an end would take all memory
NO_TEXT = re.compile("[\0\udc80-\udcff]")  # NUL, and bytes that are no UTF-8 (`surrogateescape`)
TICK_LINES = 256
STRINGS, LABELS, NEXT_SYMBOLS = "main.tok", "labels.txt", "next-symbols.jsonl"
INPUTS = ("input", "tokens")


@dataclass(frozen=True)
class LabeledExample:
    """A sequence, as text or symbols, with right answers by name, and the place in the file that it stands at."""

    where: str
    sequence: str | tuple[str, ...]
    answers: Mapping[str, Any] = field(default_factory=dict)


def read_examples(source: Path | IO[str], tick: Tick = lambda _done, _total: None) -> Iterator[LabeledExample]:
    """Yield the examples of a file, a folder or a stream; `tick` takes the number of bytes read and their total."""
    if not isinstance(source, Path):
        yield from _text_examples(_stream_lines(source, "standard input"), "standard input", "")
    elif source.is_dir():
        yield from _folder_examples(source, tick)
    elif source.suffix == ".npz":
        yield from _batch_examples(source)
    else:
        yield from _text_examples(_file_lines(source, tick), str(source), source.suffix)


def _file_lines(path: Path, tick: Tick) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as stream:
            yield from _stream_lines(stream, str(path), path.stat().st_size, tick)
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror or error}") from None


def _stream_lines(stream: IO[str], name: str, size: int = 0, tick: Tick = lambda _done, _total: None) -> Iterator[str]:
    """Yield lines without their ends; what is no text, or has a line without end, is refused."""
    number, done = 0, 0
    while True:
        number += 1
        try:
            line = stream.readline(MAX_LINE + 1)
        except UnicodeDecodeError as error:  # of a stream that was opened elsewhere, which decodes many lines at once
            raise InputError(f"{name}: must be text (UTF-8), but {error.reason} in line {number} or later") from None
        if not line:
            return
        if len(line) > MAX_LINE:
            raise InputError(f"{name}:{number}: a line must have at most {MAX_LINE:,} characters: split the sequence")
        if (found := NO_TEXT.search(line)) is not None:
            byte = ord(found[0]) & 0xFF
            raise InputError(f"{name}:{number}: must be text (UTF-8), but has the byte 0x{byte:02x}")
        done += len(line)
        if size and number % TICK_LINES == 0:
            tick(min(done, size), size)
        yield line.rstrip("\r\n")


def _text_examples(lines: Iterator[str], name: str, suffix: str) -> Iterator[LabeledExample]:
    """Yield the examples of lines; without a suffix that tells, the first line decides how they are written."""
    columns: list[str] | None = None
    for number, line in enumerate(lines, start=1):
        where = f"{name}:{number}"
        if not line.strip(" ") or (number == 1 and not line.strip()):
            continue
        if not suffix:
            suffix = ".jsonl" if line.startswith('{"') else ".tsv" if "\t" in line else ".txt"
        if suffix in (".jsonl", ".ndjson"):
            yield _object_example(line, where)
        elif suffix != ".tsv":
            yield LabeledExample(where, line)
        elif columns is None and line.split("\t")[0] in INPUTS:
            columns = line.split("\t")
            _check_names(columns[1:], where)
        else:
            columns = columns or ["input", "label"]
            cells = line.split("\t")
            if len(cells) != len(columns):
                raise InputError(
                    f"{where}: a line must have {len(columns)} columns ({', '.join(columns)}), not {len(cells)}"
                )
            answers = {key: _cell(key, text, where) for key, text in zip(columns[1:], cells[1:], strict=True) if text}
            yield LabeledExample(where, cells[0], answers)


def _check_names(names: Sequence[str], where: str) -> None:
    if unknown := [name for name in names if name not in READERS]:
        raise InputError(f"{where}: there is no answer {unknown[0]!r}; there are {', '.join(READERS)}")


def _cell(key: str, text: str, where: str) -> Any:
    """Return the answer in a cell of a table: JSON, or symbols separated by blanks."""
    if text[0] in "[{":
        return READERS[key](_parsed(text, where), f"{where}: {key}")
    return READERS[key](text.split() if key in SEVERAL else text.strip(), f"{where}: {key}")


def _object_example(line: str, where: str) -> LabeledExample:
    data = _parsed(line, where)
    name = next((name for name in INPUTS if isinstance(data, dict) and name in data), None)
    if name is None:
        raise InputError(f'{where}: a line must be a JSON object with "input", as {{"input": "a b", "label": 1}}')
    sequence = data[name] if isinstance(data[name], str) else _symbols(data[name], f"{where}: {name}")
    answers = {key: READERS[key](data[key], f"{where}: {key}") for key in READERS if data.get(key) is not None}
    return LabeledExample(where, sequence, answers)


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = (
            error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply or has a huge number"
        )
        raise InputError(f"{where}: this is no JSON value: {reason}") from None


def _symbol(data: Any, where: str) -> str:
    if isinstance(data, str | int):
        return str(data)
    raise InputError(f"{where} must be a symbol, is {json.dumps(data)[:60]}")


def _symbols(data: Any, where: str) -> tuple[str, ...]:
    if isinstance(data, str):
        return tuple(data.split())
    if not isinstance(data, list):
        raise InputError(f"{where} must be a list of symbols, is {json.dumps(data)[:60]}")
    return tuple(_symbol(each, where) for each in data)


def _number(data: Any, where: str) -> float:
    try:
        if not isinstance(data, bool):
            return float(data)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{where} must be a number, is {json.dumps(data)[:60]}")


def _numbers(data: Any, where: str) -> tuple[float, ...]:
    if not isinstance(data, list):
        raise InputError(f"{where} must be a list of numbers, is {json.dumps(data)[:60]}")
    return tuple(_number(each, where) for each in data)


def _named(value: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def read(data: Any, where: str) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise InputError(f"{where} must be an object, is {json.dumps(data)[:60]}")
        return {name: value(each, f"{where}: {name}") for name, each in data.items()}

    return read


def _next(data: Any, where: str) -> Any:
    """Return the set of next symbols, or their probabilities; a list of them if there is one for each prefix."""
    if isinstance(data, dict):
        return _named(_number)(data, where)
    if isinstance(data, list) and any(isinstance(each, list | dict) for each in data):
        return [_next(each, where) for each in data]
    return frozenset(_symbols(data, where))


READERS: dict[str, Callable[[Any, str], Any]] = {
    "label": _symbol,
    "accept": _symbol,
    "state": _symbol,
    "states": _symbols,
    "output": _symbols,
    "class": lambda data, where: _symbols(data, where) if isinstance(data, list) else _symbol(data, where),
    "next": _next,
    "log_prob": _number,
    "log_probs": _numbers,
    "values": _named(_number),
    "thought": _symbols,
    "conclusion": _named(_symbol),
}
SEVERAL = ("states", "output", "next", "log_probs", "thought")


def _folder_examples(folder: Path, tick: Tick) -> Iterator[LabeledExample]:
    """Yield the examples of all splits in a folder: the folders at and below it that have strings with labels."""
    splits = sorted(path.parent for path in folder.rglob(STRINGS))
    if not splits:
        raise InputError(f"{folder} has no {STRINGS}: give a folder with strings ({STRINGS}) and labels ({LABELS})")
    for split in splits:
        strings, labels = _file_lines(split / STRINGS, tick), _file_lines(split / LABELS, tick)
        following = _file_lines(split / NEXT_SYMBOLS, tick) if (split / NEXT_SYMBOLS).exists() else None
        members = 0
        for number, (text, label) in enumerate(zip_longest(strings, labels), start=1):
            where = f"{split / STRINGS}:{number}"
            if text is None or label is None:
                short = STRINGS if text is None else LABELS
                raise InputError(f"{where}: every string needs a line in {short}, which has {number - 1}")
            answers: dict[str, Any] = {"label": label.strip()}
            if following is not None and answers["label"] == "1":
                members += 1
                answers["next"] = _legal(next(following, None), f"{split / NEXT_SYMBOLS}:{members}")
            yield LabeledExample(where, text, answers)
        if following is not None and next(following, None) is not None:
            raise InputError(f"{split / NEXT_SYMBOLS}:{members + 1}: must have a line for each string of label 1")


def _legal(line: str | None, where: str) -> list[frozenset[str]]:
    """Return the sets of next symbols of a line: objects of symbols `s` and whether the string may end, `e`."""
    if line is None:
        raise InputError(f"{where}: must have a line for each string of label 1, ends here")
    sets = _parsed(line, where)
    fit = isinstance(sets, list) and all(
        isinstance(each, dict) and isinstance(each.get("s"), str) and isinstance(each.get("e"), bool) for each in sets
    )
    if not fit:
        raise InputError(f'{where}: must be a list of objects as {{"s": "0 1", "e": true}}, one for each prefix')
    return [frozenset([*each["s"].split(), *[END] * each["e"]]) for each in sets]


def _batch_examples(path: Path) -> Iterator[LabeledExample]:
    """Yield the examples of a batch: arrays `input` and `output`, one-hot or numbers of symbols, one entry for each."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            inputs, outputs = (np.asarray(arrays[name]) for name in ("input", "output"))
    except Exception as error:  # zipfile, zlib and NumPy's parser of headers raise many kinds for a damaged file
        raise InputError(
            f"{path} must have the arrays 'input' and 'output': {str(error) or type(error).__name__}"
        ) from None
    words, answers = _numbered(inputs, f"{path}: input"), _numbered(outputs, f"{path}: output")
    if words.ndim != 2 or answers.ndim > 2 or len(words) != len(answers):
        raise InputError(
            f"{path}: input and output must have one entry for each example, have {inputs.shape}, {outputs.shape}"
        )
    truth = outputs.ndim == 2 and answers.ndim == 1 and outputs.shape[1] == 2  # one of two symbols: no or yes
    for number, (word, answer) in enumerate(zip(words, answers, strict=True)):
        symbols = tuple(map(str, np.atleast_1d(answer)))
        given = {"label": symbols[0]} if truth else {"output": symbols}
        yield LabeledExample(f"{path}[{number}]", tuple(map(str, word)), given)


def _numbered(array: Array, name: str) -> Array:
    """Return the numbers of symbols; an array of floats has a one-hot vector for each."""
    if array.dtype.kind == "f" and array.ndim and array.shape[-1]:
        if not (((array == 0) | (array == 1)).all() and (array.sum(axis=-1) == 1).all()):
            raise InputError(f"{name} must be one-hot vectors or whole numbers")
        return array.argmax(axis=-1)
    if array.dtype.kind in "iu":
        return array
    raise InputError(f"{name} must be one-hot vectors or whole numbers, has the type {array.dtype}")
