"""Public suites from a folder of yours: which are expressed, built and agreed with, in one table.

    python benchmarks/suites.py FOLDER [--only parity,cycle_navigation] [--json]

Every part of the folder is recognized by its layout and name, at any depth:

| layout | suite | spec |
| --- | --- | --- |
| folder `parity`, … with `main.tok` and `labels.txt` | FLaRe | `suite_specs.FLARE` |
| folder `parity_check`, … with batches `*.npz` | Chomsky hierarchy | `suite_specs.CHOMSKY` |
| file `NAME.automaton.json`, `NAME.cfg.json`, … with `NAME.jsonl`, `.tsv` or `.txt` beside it | your own | that file |

Nothing of these suites is in this repository. A name without a spec of ours is listed as not expressed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.suite_parts import ASK
from benchmarks.suite_specs import CHOMSKY, FLARE, Entry

from vitrify.cli.render import TextTable, json_line, tell
from vitrify.constructions.catalogue import build
from vitrify.errors import VitrifyError
from vitrify.net.example_files import STRINGS, read_examples
from vitrify.net.scoring import FileScore, score
from vitrify.spec import read_spec
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.kinds import Spec, suffix_of

ANY_LENGTH = 1 << 16  # longest string of an automaton's language
EXAMPLES = (".jsonl", ".tsv", ".txt")


@dataclass(frozen=True)
class Part:
    """One language, task or spec of a suite, with its files."""

    suite: str
    name: str
    files: tuple[Path, ...]
    entry: Entry | None


@dataclass(frozen=True)
class Row:
    """What became of a part; counts are of sequences, seconds of building and of scoring."""

    suite: str
    name: str
    expressed: str
    layers: int | None = None
    width: int | None = None
    built: float | None = None
    agreeing: int = 0
    sequences: int = 0
    left_out: int = 0
    scored: float | None = None
    remark: str = ""


def parts(folder: Path) -> Iterator[Part]:
    """Yield the parts of a folder, in the order of their paths."""
    names = {path.parent for pattern in (STRINGS, "*.npz") for path in folder.rglob(pattern)}
    for place in sorted(names):
        batches = tuple(sorted(place.glob("*.npz"), key=lambda path: (len(path.name), path.name)))
        if batches:
            yield Part("Chomsky hierarchy", place.name, batches, CHOMSKY.get(place.name))
        elif not any(above in names for above in place.parents):  # a split belongs to its language
            yield Part("FLaRe", place.name, (place,), FLARE.get(place.name))
    for path in sorted(folder.rglob("*")):
        suffix = suffix_of(path.name) if path.is_file() and path.suffix not in EXAMPLES else None
        if suffix is not None:
            stem = path.name.removesuffix(suffix)
            files = tuple(path.with_name(stem + each) for each in EXAMPLES if path.with_name(stem + each).exists())
            if files:
                yield Part("own", stem, files, Entry(str(path), partial(_own, path)))


def _own(path: Path, _length: int) -> Spec:
    return read_spec(path)


def judged(part: Part) -> Row:
    """Return the row of a part: its spec is built and scored on all files; a refusal is a remark."""
    if part.entry is None:
        return Row(part.suite, part.name, "no", remark="no spec of ours has this name")
    expressed, row = "no", Row(part.suite, part.name, "no")
    built = scored = 0.0
    scores: list[FileScore] = []
    try:
        for files in ([file] for file in part.files) if part.entry.decode else [part.files]:
            begin = time.perf_counter()
            longest = len(next(read_examples(files[0])).sequence) if part.entry.decode else part.entry.longest
            spec = part.entry.spec(longest or ANY_LENGTH)
            expressed = type(spec).__name__
            recurrent = isinstance(spec, Automaton)
            net = build(spec, "linear-recurrence", max_length=ANY_LENGTH) if recurrent else build(spec)
            middle = time.perf_counter()
            append, limit = ASK if part.entry.append else None, getattr(net.architecture, "longest", None)
            for file in files:
                decode = part.entry.decode
                scores.append(score(net, file, decode=decode, spec=spec, append=append, longest=limit, shown=1))
            built, scored = built + middle - begin, scored + time.perf_counter() - middle
            row = Row(part.suite, part.name, expressed, net.sizes.layers, net.sizes.d_model)
    except VitrifyError as error:
        return Row(part.suite, part.name, expressed, remark=str(error))
    wrong = [place for each in scores for place in each.disagreements]
    remark = f"{wrong[0].where}: {wrong[0].name} {wrong[0].expected}, not {wrong[0].answer}" if wrong else ""
    counts = {name: sum(getattr(each, name) for each in scores) for name in ("agreeing", "sequences", "left_out")}
    return Row(**asdict(row) | counts | {"built": built, "scored": scored, "remark": remark})


def table(rows: Sequence[Row]) -> TextTable:
    """Return the rows as one table."""
    columns = ("suite", "name", "expressed", "layers", "width", "built", "agreed", "left out", "time", "remark")
    cells = [
        (
            row.suite, row.name, row.expressed, row.layers, row.width, row.built and f"{row.built:.2f} s",
            f"{row.agreeing:,} of {row.sequences:,}", row.left_out, row.scored and f"{row.scored:.2f} s", row.remark,
        )
        for row in rows
    ]  # fmt: skip
    return TextTable(columns, cells, keys=2)


def main(words: Sequence[str] | None = None) -> int:
    """Print the table, and return 0 if every part is expressed, built and agrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--json", action="store_true", help="print a JSON line for each part")
    chosen = parser.parse_args(words)
    only = [name for name in chosen.only.split(",") if name]
    if not chosen.folder.is_dir():
        parser.error(f"{chosen.folder} is no folder")
    rows = [judged(part) for part in parts(chosen.folder) if not only or part.name in only]
    if not rows:
        parser.error(f"{chosen.folder} has none of the layouts that --help lists")
    if chosen.json:
        for row in rows:
            json_line(asdict(row))
    else:
        tell(table(rows))
    return int(any(row.agreeing < row.sequences or not row.sequences for row in rows))


if __name__ == "__main__":
    sys.exit(main())
