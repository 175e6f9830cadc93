r"""Run circuit finders on folders of puzzles, measure what they return, and compare methods in a table.

Four numbers are measured of a method on a puzzle. The *circuit* is the $k$ edges with the highest scores, where $k$ is
the true number of edges (or the edges that a method names without scores).

| number | meaning |
| --- | --- |
| AUC | probability that a true edge has a higher score than another |
| F1 | of the circuit's edges |
| faithfulness | share of answers that stay when all edges outside the circuit are patched |
| completeness | 1 minus the mean of $\lvert F(C \setminus K) - F(M \setminus K) \rvert$, where $F$ is the share of answers that stay, $C$ the circuit, $M$ all edges, and $K$ is $C$ or one of `SUBSETS` random subsets of it, each edge with probability 1/2 (Wang et al. 2022, arXiv 2211.00593) |

Means over puzzles have 95 % bootstrap intervals.
"""  # noqa: E501

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.encoding import JsonObject
from vitrify.errors import FolderError, InputError, SpecError
from vitrify.mechanisms.circuit import Judge
from vitrify.mechanisms.parts import Edge
from vitrify.mechanisms.puzzle import ANSWER, RENDERINGS, read_json, read_judge
from vitrify.mechanisms.score import Agreement, Result, score

ENTRY, ENTRY_VERSION = "vitrify circuit leaderboard entry", 1
SUBSETS = 4
RESAMPLES = 1000
NUMBERS = ("auc", "f1", "faithfulness", "completeness")
TITLE = "# Leaderboard of circuit finders"
INTRODUCTION = """Methods that find the circuits of [networks whose circuits are known](circuit-benchmark.md): means
over puzzles, with 95 % bootstrap intervals. `vitrify benchmark-circuits table` writes this page from the entries that
`vitrify benchmark-circuits run METHOD DIR -o FILE` writes. To add a method, send its entry: all puzzles are compiled
from their names, so anybody can measure it again."""
COMPARED = """The AUC of a method on the plain network of a puzzle, less that on another rendering of it. A positive
difference means that the rendering is harder."""
HARDER_HEAD = "| method | rendering | puzzles | lower than plain | higher | difference |"
SAME = 1e-9  # difference of AUC that is rounding
HEAD = "| method | puzzles | AUC | F1 at the true size | faithfulness | completeness |"
Finder = Callable[[Path], Mapping[Edge, float]]


@dataclass(frozen=True)
class Row:
    """What a method reached on one puzzle; AUC is None where all edges are true."""

    puzzle: str
    rendering: str
    auc: float | None
    f1: float
    faithfulness: float
    completeness: float


@dataclass(frozen=True)
class LeaderboardEntry:
    """A method on the leaderboard."""

    method: str
    about: str
    rows: tuple[Row, ...]
    link: str = ""

    def to_json(self) -> JsonObject:
        """Return plain data, as `read_entry` reads it."""
        return {"format": ENTRY, "version": ENTRY_VERSION} | asdict(self)


def finder(name: str) -> Finder:
    """Return a built-in method by name, or the function `find` of a Python file (`FILE.py`, `FILE.py:FUNCTION`)."""
    from vitrify.mechanisms.methods import METHODS

    if name in METHODS:
        return lambda folder: METHODS[name](read_judge(folder))
    path, _, function = name.partition(".py:")
    file = Path(path if path.endswith(".py") else f"{path}.py")
    if not name.endswith(".py") and not function:
        raise InputError(f"a method is FILE.py, FILE.py:FUNCTION or one of {', '.join(METHODS)}, not {name!r}")
    spec = spec_from_file_location(file.stem, file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise InputError(f"can't read {file}: there is no such file")
    module = module_from_spec(spec)
    _guarded(f"{file} can't be imported", partial(spec.loader.exec_module, module))
    made = getattr(module, function or "find", None)
    if not callable(made):
        raise InputError(
            f"{file} must have a function {function or 'find'}(folder) that returns a score for every edge"
        )
    return lambda folder: _guarded(f"{function or 'find'} of {file} fails on {folder.name}", lambda: made(folder))


def _guarded(what: str, call: Callable[[], Any]) -> Any:
    """Return the result of a stranger's code; what it raises becomes one message."""
    try:
        return call()
    except Exception as error:
        raise InputError(f"{what}: {type(error).__name__}: {error}") from None


def puzzle_names(folder: Path) -> list[str]:
    """Return the puzzles in a folder that `make` or `dataset` wrote."""
    names = sorted(path.parent.name for path in folder.glob("*/question.json"))
    names = names or sorted(path.stem for path in (folder / "questions").glob("*.json"))
    if not names:
        raise InputError(f"{folder} has no puzzles: 'vitrify benchmark-circuits make {folder}' writes some")
    return names


def find(method: Finder, folder: Path, name: str) -> Result:
    """Run a method on a copy of one puzzle, in which there is nothing but the network and its question."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / name
        model = folder / "models" / name
        shutil.copytree(model if model.is_dir() else folder / name, copy)
        if model.is_dir():
            shutil.copy(folder / "questions" / f"{name}.json", copy / "question.json")
        scores = method(copy)
    if not isinstance(scores, Mapping) or not all(isinstance(edge, tuple) and len(edge) == 2 for edge in scores):
        raise InputError(f"a method must return a mapping from edges (from, to) to numbers, on {name} it did not")
    return Result.from_json({"scores": [[*edge, number] for edge, number in scores.items()]})


def measure(truth: JsonObject, result: Result, judge: Judge) -> Row:
    """Return what a result reaches on a puzzle."""
    true = {(str(a), str(b)) for a, b, _ in truth["edges"]}
    checked = score(truth, result)
    if checked.edges is None:
        raise InputError("edges of a leaderboard entry must go to inputs of heads: .q, .k or .v")
    circuit = set(result.edges)
    if result.scores is not None:
        order = sorted(result.scores, key=lambda edge: (-(result.scores or {})[edge], edge))
        circuit = set(islice(order, len(true)))
    rng = np.random.default_rng(0)
    halves = [{edge for edge in sorted(circuit) if rng.random() < 0.5} for _ in range(SUBSETS)]
    gaps = [abs(judge.faithfulness(circuit - cut) - (1 - judge.changed(sorted(cut)))) for cut in (circuit, *halves)]
    about = str(truth["name"]), str(truth.get("rendering", "plain"))
    f1 = Agreement.of(circuit, true).f1
    return Row(*about, checked.auc, f1, judge.faithfulness(circuit), 1 - float(np.mean(gaps)))


def run(method: Finder, folder: Path, answers: Path) -> Iterator[Row]:
    """Yield what a method reaches on every puzzle of a folder that has an answer."""
    for name in puzzle_names(folder):
        truth = read_json(answers / f"{name}.json", ANSWER)
        model = folder / "models" / name
        judge = read_judge(model if model.is_dir() else folder / name, folder / "questions" / f"{name}.json")
        yield measure(truth, find(method, folder, name), judge)


def read_entry(path: Path) -> LeaderboardEntry:
    """Read an entry of the leaderboard; all that is wrong with it becomes one message."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"can't read {path}: {error.strerror}") from None
    except ValueError as error:
        raise FolderError(f"{path} is no JSON: {error}") from None
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (ENTRY, ENTRY_VERSION):
        raise FolderError(f'{path} must say "format": "{ENTRY}" and "version": {ENTRY_VERSION}')
    problems = [f'{path}: "{key}" must be a text' for key in ("method", "about") if not isinstance(data.get(key), str)]
    rows = data.get("rows")
    if not isinstance(rows, list) or not rows:
        problems.append(f'{path}: "rows" must be a list of results, one for each puzzle')
        rows = []
    problems += [f"{path}: row {number}: {fault}" for number, row in enumerate(rows) for fault in _faults(row)]
    places = [(row["puzzle"], row["rendering"]) for row in rows] if not problems else []
    problems += [f"{path}: two rows are about {place}" for place in set(places) if places.count(place) > 1]
    if problems:
        raise SpecError(problems)
    checked = tuple(Row(**row) for row in rows)
    return LeaderboardEntry(data["method"], data["about"], checked, str(data.get("link", "")))


def _faults(row: object) -> Iterator[str]:
    wanted = {field.name for field in fields(Row)}
    if not isinstance(row, dict) or set(row) != wanted:
        yield f"must have the keys {', '.join(sorted(wanted))}"
        return
    if not isinstance(row["puzzle"], str) or row["rendering"] not in RENDERINGS:
        yield f'"puzzle" must be a name, and "rendering" one of {", ".join(RENDERINGS)}'
    for key in NUMBERS:
        value = row[key]
        if not (key == "auc" and value is None) and not (type(value) in (int, float) and 0 <= value <= 1):
            yield f'"{key}" must be a number from 0 to 1, not {value!r}'


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % bootstrap interval."""
    array, rng = np.array(values, dtype=float), np.random.default_rng(0)
    means = array[rng.integers(len(array), size=(RESAMPLES, len(array)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(array.mean()), float(low), float(high)


def summary(entry: LeaderboardEntry, rendering: str) -> dict[str, tuple[float, float, float]]:
    """Return mean and interval of each number over the puzzles of one rendering; empty if there are none."""
    rows = [row for row in entry.rows if row.rendering == rendering]
    columns = {key: [value for row in rows if (value := getattr(row, key)) is not None] for key in NUMBERS}
    return {key: interval(values) for key, values in columns.items() if values}


def table(entries: Sequence[LeaderboardEntry]) -> list[tuple[str, str, int, dict[str, tuple[float, float, float]]]]:
    """Return rendering, method, number of puzzles and summary, best AUC first within a rendering."""
    lines: list[tuple[str, str, int, dict[str, tuple[float, float, float]]]] = []
    for rendering in RENDERINGS:
        some = [(entry, summary(entry, rendering)) for entry in entries]
        counts = {entry.method: sum(row.rendering == rendering for row in entry.rows) for entry in entries}
        ordered = sorted((each for each in some if each[1]), key=lambda each: -each[1].get("auc", (0.0, 0, 0))[0])
        lines += [(rendering, entry.method, counts[entry.method], numbers) for entry, numbers in ordered]
    return lines


def cell(numbers: tuple[float, float, float] | None) -> str:
    """Return a mean with its interval."""
    return "–" if numbers is None else f"{numbers[0]:.3f} [{numbers[1]:.2f}, {numbers[2]:.2f}]"


def page(entries: Sequence[LeaderboardEntry]) -> str:
    """Return the leaderboard as Markdown."""
    about = [f"| {f'[{e.method}]({e.link})' if e.link else f'`{e.method}`'} | {e.about} |" for e in entries]
    lines = [TITLE, "", INTRODUCTION, "", "| method | what it does |", "| --- | --- |", *about]
    for rendering in RENDERINGS:
        some = [line for line in table(entries) if line[0] == rendering]
        if some:
            lines += ["", f"## {rendering.capitalize()} networks", ""]
            lines += [
                "| method | puzzles | AUC | F1 at the true size | faithfulness | completeness |",
                "| --- " * 6 + "|",
            ]
        for _, method, count, numbers in some:
            lines.append(f"| `{method}` | {count} | " + " | ".join(cell(numbers.get(key)) for key in NUMBERS) + " |")
    lines += ["", "## Which rendering is harder?", "", COMPARED, "", HARDER_HEAD, "| --- " * 6 + "|"]
    for entry in entries:
        for rendering in RENDERINGS[1:]:
            one = harder(entry, rendering)
            if one.puzzles:
                cells = f"{one.puzzles} | {one.lower} | {one.higher} | {cell(one.difference)}"
                lines.append(f"| `{entry.method}` | {rendering} | {cells} |")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Harder:
    """On how many puzzles a method's AUC is lower or higher than on the plain network, and by how much it is lower."""

    puzzles: int
    lower: int
    higher: int
    difference: tuple[float, float, float]  # mean of plain less the other, with its interval


def harder(entry: LeaderboardEntry, rendering: str) -> Harder:
    """Compare the AUC of a method on plain networks and in another rendering, puzzle by puzzle."""
    auc = {(row.puzzle, row.rendering): row.auc for row in entry.rows if row.auc is not None}
    plain = {name: value for (name, kind), value in auc.items() if kind == "plain"}
    gaps = [plain[name] - other for (name, kind), other in auc.items() if kind == rendering and name in plain]
    lower, higher = sum(gap > SAME for gap in gaps), sum(gap < -SAME for gap in gaps)
    return Harder(len(gaps), lower, higher, interval(gaps) if gaps else (0.0, 0.0, 0.0))
