r"""Rows of a sandbox as Parquet files, or as a folder that Hugging Face's `datasets` loads.

A row of the table is an example of the sandbox: `index` (its number), `tokens`, `targets`, `weight`, where the sandbox
has them `soft` (a distribution as target) and `start` (the position of the first token in a position table), what is
hidden from the reader as `latent_NAME`, and `optimal`, the best possible distribution [query][answer]. All of it
follows from the sandbox, the seed, the split and the number of the row. The same machine and versions give the same
bytes: batches have a size that depends on the sandbox only, the last one is drawn whole and cut, and nothing is written
down but the rows. One batch is in memory at a time, however many rows there are.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal

import jax
import numpy as np

from vitrify import registry
from vitrify.arrays import Array
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.files import whole_folder, write_text
from vitrify.limits import checked_seed
from vitrify.optional import need
from vitrify.sandboxes.catalogue import MAX_EXAMPLES, PACKAGE, SPLITS, Example, Sandbox, Split, examples

Layout = Literal["parquet", "datasets"]
Progress = Callable[[int, int], None]  # rows done, rows in all
BATCH_BYTES = 1 << 25  # of the columns of one batch, which is one row group
BATCH_ROWS = 1024  # at most
SHARD_BYTES = 1 << 28  # of the columns of one file, before they are packed
CARD = "README.md"
MARK = "made by `vitrify data`"  # a folder with this on its card may be written again


@dataclass(frozen=True)
class WrittenData:
    """A report of what was written: examples by split, files and their bytes."""

    folder: Path
    rows: Mapping[Split, int]
    files: tuple[Path, ...]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(path.stat().st_size for path in self.files)


def write_data(
    sandbox: Sandbox,
    folder: Path | str,
    splits: Mapping[Split, int],
    *,
    seed: int = 0,
    layout: Layout = "parquet",
    progress: Progress | None = None,
) -> WrittenData:
    """Write the first rows of some splits to a folder, in one step: it is there when all of it is, or not at all.

    `layout` is `parquet` (files beside a card) or `datasets` (files in `data/`, and a card that also tells
    `load_dataset` about them). An empty folder, or one that was written here before, is replaced; anything else is left
    alone.
    """
    target = Path(folder).resolve()
    _check(splits, seed, target)
    table = SandboxTable(sandbox, seed)
    target.parent.mkdir(parents=True, exist_ok=True)
    _check_space(table, splits, target)
    with whole_folder(target, "data", _is_ours) as partial:
        place = partial / "data" if layout == "datasets" else partial
        place.mkdir(exist_ok=True)
        done, count = 0, sum(splits.values())
        for split, wanted in splits.items():
            for path, first, last in table.shards(place, split, wanted):
                for piece in table.write(path, split, first, last):
                    done += piece
                    if progress:
                        progress(done, count)
        write_text(partial / CARD, _card(table, splits, layout))
    return WrittenData(target, dict(splits), tuple(sorted(target.rglob("*.parquet"))))


def in_splits(words: Iterable[str], count: int) -> dict[Split, int]:
    """Splits with their numbers of rows, given as `NAME` or `NAME=ROWS`.

    >>> in_splits(["train", "test=100"], 1000)
    {'train': 1000, 'test': 100}
    """
    counts: dict[Split, int] = {}
    for word in words:
        name, equals, rows = word.partition("=")
        rows = rows if equals else str(count)
        if name not in SPLITS or name in counts or not rows.isdecimal():
            raise InputError(f"splits are {', '.join(SPLITS)}, each once and as NAME or NAME=ROWS, not {word!r}")
        counts[name] = int(rows)
    return counts


class SandboxTable:
    """A sandbox as a table: rows come in batches of `batch`, and `per_file` of them, whole batches, make a file."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        """Work out the shapes, and nothing else."""
        shapes = jax.eval_shape(lambda: _columns(sandbox, seed, "train", 0, 1))
        fields = [name for name in ("tokens", "targets", "weight", "soft", "start") if name in shapes]
        each = 8 + sum(math.prod(shape.shape) * shape.dtype.itemsize for shape in shapes.values())
        self.sandbox, self.seed, self.about = sandbox, seed, _about(sandbox, seed)
        self.columns = ("index", *fields, *sorted(shapes.keys() - {*fields, "optimal"}), "optimal")
        self.batch = max(1, min(BATCH_ROWS, BATCH_BYTES // each))
        self.per_file = max(1, SHARD_BYTES // (each * self.batch)) * self.batch
        self._drawn = jax.jit(lambda split, start: _columns(sandbox, seed, split, start, self.batch), static_argnums=0)

    def draw(self, split: Split, start: int) -> dict[str, Array]:
        """Return the columns of a batch."""
        columns = {"index": np.arange(start, start + self.batch), **self._drawn(split, np.uint32(start))}
        return {name: np.asarray(columns[name]) for name in self.columns}

    def shards(self, place: Path, split: Split, count: int) -> Iterator[tuple[Path, int, int]]:
        """The files of a split, each with its first row and the one behind its last."""
        files = math.ceil(count / self.per_file)
        for number in range(files):
            first = number * self.per_file
            name = f"{split}-{number:05}-of-{files:05}.parquet"
            yield place / name, first, min(first + self.per_file, count)

    def write(self, path: Path | BytesIO, split: Split, first: int, last: int) -> Iterator[int]:
        """Write rows to a file, a batch at a time; how many were written, each time."""
        arrow, writer = need("pyarrow", "tables"), None
        try:
            for start in range(first, last, self.batch):
                count = min(self.batch, last - start)
                table = arrow.table({name: _array(column[:count]) for name, column in self.draw(split, start).items()})
                table = table.replace_schema_metadata({"vitrify": json.dumps(self.about, ensure_ascii=False)})
                if writer is None:
                    file = path if isinstance(path, BytesIO) else str(path)
                    writer = need("pyarrow.parquet", "tables").ParquetWriter(file, table.schema, compression="zstd")
                writer.write_table(table)
                yield count
        finally:
            if writer is not None:
                writer.close()


def _columns(sandbox: Sandbox, seed: int, split: Split, start: Array, count: int) -> dict[str, Array]:
    """A batch as columns, and the optimal distributions beside it."""
    batch: Example = examples(sandbox, seed, split, start, count)
    try:
        best = jax.numpy.exp(jax.vmap(sandbox.of(split).optimal)(batch))
    except NotImplementedError:
        raise InputError(f"{sandbox.name} knows no optimal distribution: its rows can't be written with one") from None
    latent = {f"latent_{name.replace(' ', '_')}": value for name, value in batch.latent.items()}
    more = {name: value for name, value in (("soft", batch.soft), ("start", batch.start)) if value is not None}
    columns = {"tokens": batch.tokens, "targets": batch.targets, "weight": batch.weight}
    return columns | more | latent | {"optimal": best}


def _array(column: Array) -> Array:
    """A column of numbers, or of lists of them, as deep as the array is."""
    arrow = need("pyarrow", "tables")
    values = arrow.array(np.ascontiguousarray(column).reshape(-1))
    for axis in range(column.ndim - 1, 0, -1):
        size, lists = column.shape[axis], math.prod(column.shape[:axis])
        values = arrow.ListArray.from_arrays(np.arange(lists + 1, dtype=np.int32) * np.int32(size), values)
    return values


def _about(sandbox: Sandbox, seed: int) -> JsonObject:
    """Return the metadata of a table: the sandbox, its parameters, its symbols."""
    return {
        "sandbox": sandbox.name,
        "parameters": sandbox.identity(),
        "seed": seed,
        "symbols": list(sandbox.symbols),
        "answers": list(sandbox.answers),
        "entropy rate": sandbox.rate(),
    }


def _check(splits: Mapping[Split, int], seed: int, target: Path) -> None:
    odd = [split for split in splits if split not in SPLITS]
    if odd or not splits:
        raise InputError(f"a split is one of {', '.join(SPLITS)}, not {', '.join(odd) or 'none of them'}")
    for split, count in splits.items():
        if not 1 <= count <= MAX_EXAMPLES:
            raise InputError(f"the rows of {split} must be 1 to {MAX_EXAMPLES:,}, not {count:,}")
    checked_seed(seed)
    if target.is_file():
        raise InputError(f"{target} is a file: name a folder to write to")
    if target.exists() and any(target.iterdir()) and not _is_ours(target):
        raise InputError(f"{target} holds something else: name a new folder, or an empty one")


def _is_ours(folder: Path) -> bool:
    card = folder / CARD
    return card.exists() and MARK in card.read_text(encoding="utf-8", errors="replace")


def _check_space(table: SandboxTable, splits: Mapping[Split, int], target: Path) -> None:
    wanted = 0.0  # bytes, about, by one batch of each split
    for split, count in splits.items():
        sample = BytesIO()
        rows = sum(table.write(sample, split, 0, min(count, table.batch)))
        wanted += sample.getbuffer().nbytes * count / rows
    free = shutil.disk_usage(target.parent).free
    if wanted > 0.95 * free:
        raise InputError(
            f"{sum(splits.values()):,} rows of {table.sandbox.name} take about {wanted / 1e9:,.1f} GB, and "
            f"{free / 1e9:,.1f} GB are free in {target.parent}: write fewer rows, shorter ones, or somewhere else"
        )


def _card(table: SandboxTable, splits: Mapping[Split, int], layout: Layout) -> str:
    """The card of the folder: what `datasets` reads in front, what a person reads behind it."""
    about, sandbox = table.about, table.sandbox
    title = next(line.title for line in registry.headlines(PACKAGE, "SANDBOX") if line.name == sandbox.name)
    front = ["---", "tags: [synthetic]", "configs:", "- config_name: default", "  data_files:"]
    for split in splits:
        front += [f"  - split: {split}", f"    path: data/{split}-*.parquet"]
    counts = ", ".join(f"{count:,} rows of {split}" for split, count in splits.items())
    body = [
        f"# {sandbox.name}",
        "",
        f"{title}. {counts}, {MARK} with the seed {table.seed}.",
        "",
        "| column | holds |",
        "| --- | --- |",
        "| `index` | the number of the example in its split |",
        f"| `tokens` | {_said(sandbox)} |",
        "| `targets` | the right answer after 0, 1, … tokens: numbers of `answers` |",
        "| `weight` | how much each answer counts; where it is 0, nothing is asked |",
        *(f"| `{name}` | hidden from the reader |" for name in table.columns if name.startswith("latent_")),
        *(["| `soft` | a distribution as target |"] if "soft" in table.columns else []),
        *(["| `start` | the position of the first token in a position table |"] if "start" in table.columns else []),
        "| `optimal` | the best possible distribution over `answers` at each of these questions |",
        "",
        "```json",
        json.dumps(about, indent=1, ensure_ascii=False),
        "```",
        "",
    ]
    return "\n".join([*front, "---", "", *body] if layout == "datasets" else body)


def _said(sandbox: Sandbox) -> str:
    if sandbox.reads == "tokens":
        return "what is read: numbers of `symbols`"
    planes = "" if sandbox.planes is None else " of {} planes, {} rows and {} columns".format(*sandbox.planes)
    return f"what is read: the numbers of a {sandbox.reads}{planes}"
